"""Outputs that an API returns outside the text of a reply: tool calls, thinking and citations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentkit.messages.message import Msg
from agentkit.prompts.field_types import Citation, Reasoning, read_citations
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.type_names import is_tool_calls

__all__ = ["read_native_outputs"]


def read_native_outputs(fields: Iterable[SignatureField], msg: Msg) -> dict[str, Any]:
    """Returns the values of the outputs that a reply contains outside its text, by name.

    An output for tool calls or citations always gets a value, which may be an empty list. An output of the type
    `Reasoning` gets the thinking of the reply. If the reply has no thinking, this output is not in the result.
    """
    outputs: dict[str, Any] = {}
    for field in fields:
        if is_tool_calls(field.type):
            outputs[field.name] = [*msg.tool_uses]
        elif field.type is Reasoning and msg.thinking:
            outputs[field.name] = Reasoning(msg.thinking)
        elif field.type == list[Citation]:
            outputs[field.name] = list(read_citations(msg))
    return outputs
