"""Templates that write a text before and after each message of a role, as torchtune's `PromptTemplate` does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError
from agentkit.messages.blocks import TextBlock, ToolResultBlock
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr

__all__ = ["check_tags", "wrap_messages", "write_tag_template"]

_ROLES: Final = ("system", "user", "assistant", "tool")


_TEMPLATE: Final = (
    '{%- set tags = TAGS %}{%- for message in messages %}{%- set tag = tags.get(message.role, ("", "")) %}'
    '{%- if message.role == "assistant" %}'
    "{%- generation %}{{- tag[0] ~ message.content ~ tag[1] }}{%- endgeneration %}"
    "{%- else %}{{- tag[0] ~ message.content ~ tag[1] }}{%- endif %}{%- endfor %}"
)
"""Jinja text of a template with tags. A JSON dict of the tags by role replaces the word `TAGS`."""


def check_tags(tags: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Checks tags (the texts before and after a message, by role), and returns a copy.

    Raises:
        OptionError: `tags` is not a dict, a role is unknown, or the value of a role is not a pair of strings.
    """
    check_option("tags", tags, Mapping, 'Pass a dict such as {"user": ("U: ", "\\n")}.')
    return {role: _check_pair(role, pair) for role, pair in tags.items()}


def write_tag_template(tags: Mapping[str, tuple[str, str]]) -> str:
    """Returns the Jinja text of a template that writes tags before and after each message of a role.

    Args:
        tags: Result of `check_tags`.
    """
    return _TEMPLATE.replace("TAGS", json.dumps(tags, ensure_ascii=False))


def _check_pair(role: str, pair: tuple[str, str]) -> tuple[str, str]:
    if role not in _ROLES:
        raise OptionError(f"tags[{role!r}]", "there is no role with this name", f"Use one of {', '.join(_ROLES)}.")
    texts = cast("Sequence[object]", pair) if isinstance(pair, list | tuple) else ()
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        raise OptionError(
            f"tags[{role!r}]",
            f"expected two strings, got {shorten_repr(pair, 60)}",
            "Pass the text before and the text after a message.",
        )
    return pair[0], pair[1]


def wrap_messages(msgs: Sequence[Msg], tags: Mapping[str, tuple[str, str]]) -> list[Msg]:
    """Returns the messages with a tag (fixed text) before and after their content, as text blocks.

    Each role has its own tags. An empty tag adds no block.
    """
    wrapped: list[Msg] = []
    for msg in msgs:
        is_result = any(isinstance(block, ToolResultBlock) for block in msg.blocks)
        before, after = tags.get("tool" if is_result else msg.role, ("", ""))
        blocks = (*_as_block(before), *msg.blocks, *_as_block(after))
        wrapped.append(replace(msg, content=blocks) if before or after else msg)
    return wrapped


def _as_block(text: str) -> tuple[TextBlock, ...]:
    return (TextBlock(text),) if text else ()
