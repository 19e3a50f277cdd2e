"""Conversion of pydantic's validation errors to `MessageError`, with the path of the invalid value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agentkit.errors import MessageError
from agentkit.reprs import shorten

__all__ = ["describe_error", "to_message_error"]


def to_message_error(name: str, error: ValidationError, positional: list[str]) -> MessageError:
    """Converts a pydantic `ValidationError` to a `MessageError`.

    `name` is the first part of the path in the error, such as `Msg` in `Msg.content[1].text`. `positional` names
    the positional parameters, which pydantic reports by index.
    """
    details = _find_deepest(error)
    place = shorten(name + "".join(_steps(details["loc"], positional)), _MAX_PLACE)
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, MessageError):
        return cause.with_prefix(place)
    return MessageError(place, _reason(details), _ADVICE.get(details["type"], "Pass a valid value."))


def describe_error(error: ValidationError) -> tuple[str, str]:
    """Returns the path of an invalid value, such as `items[2].name`, and the reason. The path can be empty."""
    details = _find_deepest(error)
    return shorten("".join(_steps(details["loc"], [])), _MAX_PLACE).removeprefix("."), _reason(details)


def _find_deepest(error: ValidationError) -> ErrorDetails:
    """Returns the error with the longest path.

    For a union, pydantic reports the errors of each type. The longest path probably belongs to the intended type.
    """
    return max(error.errors(include_url=False), key=lambda details: len(details["loc"]))


_ADVICE: Final = {
    "missing": "Pass a value for this field.",
    "unexpected_keyword_argument": "Remove this argument.",
    "unexpected_positional_argument": "Remove this argument.",
}
_MAX_PLACE: Final = 200  # maximum length of a path in characters; keys from the application can be long
_MAX_REASON: Final = 400
_MAX_VALUE: Final = 60


def _reason(details: ErrorDetails) -> str:
    message = shorten(details["msg"].removeprefix("Value error, "), _MAX_REASON)
    if details["type"] == "missing":
        return f"{message} (got nothing)"
    value = details["input"]
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # the value is nested too deeply, or is an integer with too many digits
        text = "too large to show"
    text = text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 3]}..."
    return f"{message} (got {type(value).__name__} {text})"


def _steps(location: tuple[int | str, ...], positional: list[str]) -> Iterator[str]:
    """Yields the parts of a path, such as `.content` and `[1]`, without the union types that pydantic inserts."""
    previous: int | str = ""
    for depth, step in enumerate(location):
        if isinstance(step, int):
            is_parameter = depth == 0 and step < len(positional)
            yield f".{positional[step]}" if is_parameter else f"[{step}]"
        elif step.isidentifier() and not _is_branch(previous, step):
            yield f".{step}"
        previous = step


def _is_branch(previous: int | str, step: str) -> bool:
    """Returns True if a part of a path names a type in a union, and not a field."""
    is_tagged = isinstance(previous, int) or previous == "source"
    return step in _BRANCH_TYPES or (is_tagged and step in _TAGS)


_BRANCH_TYPES: Final = frozenset({"str", "float", "int", "bool", "list", "dict", "nullable"})
_TAGS: Final = frozenset(
    {"text", "thinking", "tool_use", "tool_result", "image", "audio", "video", "document", "invalid", "opaque"}
    | {"url", "base64"}
)
