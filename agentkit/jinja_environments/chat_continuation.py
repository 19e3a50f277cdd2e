"""Marks the text that a model continues, and finds the end of this text in the rendered conversation."""

from __future__ import annotations

from typing import Any, Final, cast

from agentkit.errors import TemplateError
from agentkit.jinja_environments.chat_variables import REASONING_KEYS

__all__ = ["find_continued_end", "mark_continued_text"]

_MARK: Final = "CONTINUE_FINAL_MESSAGE_TAG "
"""Mark as in transformers. If the template trims the text, the space at the end of the mark is missing."""


def mark_continued_text(messages: list[dict[str, Any]], key: str, source: str, name: str) -> str:
    """Appends a mark to the text that the model will continue. Returns this text without the mark.

    The function replaces the last item of `messages`. For thinking, all keys with the same value get the mark,
    because templates read different keys.

    Args:
        messages: Messages as the template receives them.
        key: Key in the last message. The model continues the value of this key.
        source: Text of the template.
        name: Name of the template in errors.

    Raises:
        TemplateError: The last message has no value to continue, or the template does not read the key.
    """
    messages[-1] = {**messages[-1]}
    value = messages[-1].get(key)
    is_reasoning = key in REASONING_KEYS
    keys = [other for other in REASONING_KEYS if messages[-1].get(other) == value] if is_reasoning else [key]
    if value is None or not any(other in source for other in keys):
        raise TemplateError(
            name, f"the last message has no {key!r} to continue, or the template does not read this key"
        )
    if isinstance(value, str):
        messages[-1].update(dict.fromkeys(keys, value + _MARK))
        return value
    parts = [dict(part) for part in cast("list[dict[str, Any]]", value)]
    texts = [part for part in parts if "text" in part]
    if not texts:
        raise TemplateError(name, "the last message has no text to continue")
    text = str(texts[-1]["text"])
    texts[-1]["text"] = text + _MARK
    messages[-1][key] = parts
    return text


def find_continued_end(text: str, continued_text: str, name: str) -> int:
    """Returns the index at which the continued text ends in a rendered conversation.

    Args:
        text: Text of the rendered conversation, with the mark.
        continued_text: Text that the model continues, without the mark.
        name: Name of the template in errors.

    Raises:
        TemplateError: The template did not write the continued text or the mark.
    """
    mark = _MARK.strip()
    if continued_text.strip() not in text or mark not in text:
        raise TemplateError(name, "the text to continue is not in the rendered text")
    end = text.rindex(mark)
    is_trimmed = not text.startswith(_MARK, end)
    return len(text[:end].rstrip()) if is_trimmed else end
