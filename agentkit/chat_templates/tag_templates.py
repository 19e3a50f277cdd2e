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

__all__ = ["wrap_messages", "write_tag_template"]

_ROLES: Final = ("system", "user", "assistant", "tool")


def write_tag_template(tags: Mapping[str, tuple[str, str]]) -> str:
    """Returns the Jinja text of a template that writes tags before and after each message of a role.

    Raises:
        OptionError: A role is unknown, or its value is not a pair of strings.
    """
    check_option("tags", tags, Mapping, 'Pass a dict such as {"user": ("U: ", "\\n")}.')
    lines = ["{%- for message in messages %}"]
    for index, (role, pair) in enumerate(tags.items()):
        before, after = _check_pair(role, pair)
        lines.append(f"{{%- {'el' if index else ''}if message.role == {json.dumps(role)} %}}")
        lines.append(_write_body(role, f"{{{{- {_quote(before)} }}}}", f"{{{{- {_quote(after)} }}}}"))
    if not tags:
        lines.append(_write_body("", "", ""))
    else:
        lines.append("{%- else %}" + _write_body("", "", "") + "{%- endif %}")
    return "".join((*lines, "{%- endfor %}"))


def _write_body(role: str, before: str, after: str) -> str:
    body = f"{before}{{{{- message.content }}}}{after}"
    if role == "assistant":
        return f"{{%- generation %}}{body}{{%- endgeneration %}}"
    return body if role else _OTHER_BODY


_OTHER_BODY: Final = (
    '{%- if message.role == "assistant" %}{%- generation %}{{- message.content }}{%- endgeneration %}'
    "{%- else %}{{- message.content }}{%- endif %}"
)
"""Jinja text for a message without tags. A message of an assistant is in a block `generation`, as with tags."""


def _quote(text: str) -> str:
    """Returns a text as a string constant of Jinja."""
    return json.dumps(text, ensure_ascii=False)


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
    """Returns messages with the tags of their roles as additional text blocks. An empty tag adds no block."""
    wrapped: list[Msg] = []
    for msg in msgs:
        is_result = any(isinstance(block, ToolResultBlock) for block in msg.blocks)
        before, after = tags.get("tool" if is_result else msg.role, ("", ""))
        blocks = (*_as_block(before), *msg.blocks, *_as_block(after))
        wrapped.append(replace(msg, content=blocks) if before or after else msg)
    return wrapped


def _as_block(text: str) -> tuple[TextBlock, ...]:
    return (TextBlock(text),) if text else ()
