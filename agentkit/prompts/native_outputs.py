"""Outputs that an API returns outside the text of a reply: tool calls, thinking and citations.

Depending on the options of the adapter, the prompt omits these outputs, and the inputs for tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, cast

from agentkit.errors import OptionError, ParseError
from agentkit.messages.message import Msg
from agentkit.prompts.field_types import Citation, Reasoning, read_citations
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.reply_texts import check_reply_end
from agentkit.prompts.signature import Signature
from agentkit.prompts.type_names import is_tool_calls
from agentkit.tools.tool import Tool, ToolLike, as_tools

__all__ = ["find_tools", "get_absent_value", "omit_fields", "omit_native_fields", "read_native_outputs"]

_AnySignature: TypeAlias = type[Signature[Any]]


@lru_cache(256)
def omit_native_fields(signature: _AnySignature, tools: bool, reasoning: bool, citations: bool) -> _AnySignature:
    """Returns the signature without the fields whose values are outside the texts of the prompt and the reply.

    Args:
        signature: Signature class.
        tools: True to omit the outputs for tool calls and the inputs for tools. If no output is for tool calls,
            the inputs stay.
        reasoning: True to omit the outputs of the type `Reasoning`.
        citations: True to omit the outputs of the type `list[Citation]`.

    Raises:
        OptionError: `tools` is True, and the signature has an output for tool calls but no input for tools.
    """
    names = [*_find_tool_fields(signature)] if tools else []
    for name, field in signature.output_fields.items():
        if (reasoning and field.type is Reasoning) or (citations and field.type == list[Citation]):
            names.append(name)
    return omit_fields(signature, tuple(names))


def _find_tool_fields(signature: _AnySignature) -> Iterator[str]:
    """Yields the names of the outputs for tool calls and of the inputs for tools.

    If no output is for tool calls, yields no names.

    Raises:
        OptionError: The signature has an output for tool calls but no input for tools.
    """
    calls = [name for name, field in signature.output_fields.items() if is_tool_calls(field.type)]
    inputs = [name for name, field in signature.input_fields.items() if _is_tools(field)]
    if calls and not inputs:
        advice = "Add an input of the type list[Tool], or pass native_tools=False."
        reason = f"the output {calls[0]!r} is for tool calls, but no input is for tools"
        raise OptionError("signature", reason, advice)
    if calls:
        yield from (*calls, *inputs)


@lru_cache(256)
def omit_fields(signature: _AnySignature, names: tuple[str, ...]) -> _AnySignature:
    """Returns the signature without some of its fields."""
    for name in names:
        signature = signature.delete(name)
    return signature


def read_native_outputs(fields: Iterable[SignatureField], msg: Msg) -> dict[str, Any]:
    """Returns the values of the outputs that a reply contains outside its text, by name.

    An output whose value would be empty, such as the calls of a reply without tool calls, is not in the result.

    Raises:
        ParseError: A value does not fit the constraints of its output.
    """
    outputs: dict[str, Any] = {}
    for field in fields:
        value: Any = None
        if is_tool_calls(field.type):
            value = [*msg.tool_uses]
        elif field.type is Reasoning and msg.thinking:
            value = Reasoning(msg.thinking)
        elif field.type == list[Citation]:
            value = [*read_citations(msg)]
        if value:
            outputs[field.name] = _validate(field, value, msg)
    return outputs


def get_absent_value(field: SignatureField, msg: Msg) -> Any:
    """Returns the value of an output that comes from thinking or tool calls, if the reply contains none of these.

    The value is the default of the output, or else an empty value.

    Raises:
        ParseError: The output has no default, and its constraints do not allow an empty value.
    """
    if not field.is_required:
        return field.get_default()
    return _validate(field, Reasoning() if field.type is Reasoning else [], msg)


def _validate(field: SignatureField, value: Any, msg: Msg) -> Any:
    try:
        return field.validate(value)
    except ParseError as error:
        check_reply_end(msg)
        error.message = msg
        raise


def _is_tools(field: SignatureField) -> bool:
    return field.type is Tool or field.type == list[Tool]


def find_tools(signature: _AnySignature, inputs: Mapping[str, Any]) -> list[Tool]:
    """Returns the tools in the inputs of a request."""
    tools: list[Tool] = []
    for name, field in signature.input_fields.items():
        value = inputs.get(name)
        if _is_tools(field) and value is not None:
            tools += as_tools(cast("list[ToolLike]", value) if isinstance(value, list) else [value])
    return tools
