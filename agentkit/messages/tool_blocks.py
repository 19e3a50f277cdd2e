"""Blocks for tool calls and for their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, cast, get_args

from pydantic import Discriminator
from pydantic_core import from_json, to_json

from agentkit.errors import MessageError
from agentkit.json_values import copy_json
from agentkit.messages.basic_blocks import BlockBase, InvalidBlock, OpaqueBlock, TextBlock
from agentkit.messages.mcp_results import McpItem, McpResult, read_mcp_item, read_mcp_result
from agentkit.messages.media_blocks import AudioBlock, DocumentBlock, ImageBlock, MediaBlock, VideoBlock
from agentkit.messages.opaque_state import OpaqueState
from agentkit.messages.validation import (
    ORDINARY_BUILDERS,
    SEQUENCE_TYPES,
    Text,
    UncheckedJsonObject,
    Validated,
    copy_object,
    is_text,
    same_json,
    slot_setter,
    validated_dataclass,
)

__all__ = ["ResultItem", "ToolResultBlock", "ToolUseBlock", "build_parsed_call"]


class _ComputedArguments(BlockBase):
    """Base class that adds slots for values computed from the input of a tool call."""

    __slots__ = ("_arguments", "_is_flat")

    _arguments: str
    _is_flat: bool


@validated_dataclass
class ToolUseBlock(_ComputedArguments):
    """Block for a tool call of a model.

    Attributes:
        id: Id by which the tool result refers to the call.
        name: Name of the tool.
        input: Arguments of the call. Stored JSON may contain the arguments as JSON text.
        raw_input: Arguments as the JSON text that the model wrote. APIs that expect JSON text receive this
            text unchanged if it parses to the same value as `input`. Otherwise, these APIs receive `input` as JSON
            text. None if the model's text is unknown.
        state: Opaque state of the call, such as a signature.
    """

    id: Text
    name: Text
    input: UncheckedJsonObject
    raw_input: Text | None = None
    state: OpaqueState | None = None
    type: Literal["tool_use"] = "tool_use"

    def __post_init__(self) -> None:
        try:
            encoded = to_json(self.input)
        except ValueError as error:
            raise MessageError("input", f"the value cannot be written as JSON: {error}", _ENCODABLE) from None
        raw, arguments = self.raw_input, encoded.decode()
        if raw is not None and (raw == arguments or _is_json_for(raw, self.input, encoded)):
            arguments = raw
        _set_arguments(self, arguments)
        _set_is_flat(self, _SCALARS.issuperset(map(type, self.input.values())))

    @property
    def arguments(self) -> str:
        """The arguments as JSON text.

        The text is `raw_input` if that text parses to the same value as `input`. Otherwise, `input` is serialized.
        """
        return self._arguments

    @property
    def raw_is_broken(self) -> bool:
        """True if `raw_input` is not the JSON text of `input`, for example because the reply was truncated."""
        return self.raw_input is not None and self._arguments is not self.raw_input

    def copy_input(self) -> dict[str, Any]:
        """Returns a deep copy of the input. The caller may change the copy."""
        return self.input.copy() if self._is_flat else copy_json(self.input)


_ENCODABLE: Final = "Pass strings that UTF-8 can encode."
_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_set_arguments = slot_setter(_ComputedArguments, "_arguments")
_set_is_flat = slot_setter(_ComputedArguments, "_is_flat")


def _is_json_for(text: str, value: dict[str, Any], encoded: bytes) -> bool:
    """Returns True if a text is the JSON text of `value`, with any spacing and key order.

    `encoded` is `value` as compact JSON.
    """
    try:
        parsed = from_json(text)
        # A comparison of JSON bytes is fast, and distinguishes 1, 1.0 and true.
        # If only the key order differs, the JSON bytes differ, but `same_json` returns True.
        return (parsed == value and to_json(parsed) == encoded) or same_json(parsed, value)
    except ValueError:
        return False


ResultItem: TypeAlias = Annotated[
    TextBlock | ImageBlock | AudioBlock | VideoBlock | DocumentBlock | OpaqueBlock | InvalidBlock,
    Discriminator("type"),
]
"""Block that the output of a tool result may contain."""


@validated_dataclass
class ToolResultBlock(BlockBase):
    """Block for the result of a tool call.

    Attributes:
        id: Id of the tool call.
        name: Name of the tool. If the name is empty, requests use the name in the matching tool call.
        output: A string, or a sequence of text, media and opaque blocks. The constructor also accepts a
            CallToolResult from the Model Context Protocol (MCP), or the list in its `content`. `isError` of the
            CallToolResult sets `is_error`.
        is_error: True if the tool failed.
    """

    id: Text
    name: Text = ""
    output: Text | tuple[ResultItem, ...] = ""
    is_error: bool = False
    type: Literal["tool_result"] = "tool_result"

    def __init__(
        self,
        id: str,
        name: str = "",
        output: str
        | Sequence[TextBlock | MediaBlock | OpaqueBlock | InvalidBlock | Mapping[str, Any] | McpItem]
        | Mapping[str, Any]
        | McpResult = "",
        is_error: bool = False,
        type: Literal["tool_result"] = "tool_result",
        *,
        metadata: dict[str, Any] | None = None,
    ) -> None: ...

    @classmethod
    def _convert_refused(cls, values: dict[str, Any]) -> dict[str, Any] | None:
        """Converts constructor arguments that contain an MCP result to arguments that pydantic accepts.

        Returns None if the constructor arguments contain no MCP result.
        """
        converted = _convert_output(values.get("output", ""))
        if converted is None:
            return None
        converted["is_error"] = converted.get("is_error") or values.get("is_error", False)
        metadata: dict[str, Any] = {**(converted.get("metadata") or {}), **(values.get("metadata") or {})}
        return {**values, **converted, "metadata": metadata or None}

    @property
    def items(self) -> tuple[TextBlock | MediaBlock | OpaqueBlock | InvalidBlock, ...]:
        """The output as blocks. A string becomes one text block."""
        return (TextBlock(self.output),) if isinstance(self.output, str) else self.output

    @property
    def listing(self) -> str:
        """The text of the output. If the output has several texts, `- ` precedes each text, as in AgentScope."""
        if isinstance(self.output, str):
            return self.output
        texts = [item.text for item in self.output if isinstance(item, TextBlock)]
        return texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts)

    @property
    def text(self) -> str:
        """The text of the output, with line breaks between text blocks."""
        if isinstance(self.output, str):
            return self.output
        return "\n".join(item.text for item in self.output if isinstance(item, TextBlock))


def _convert_output(output: object) -> dict[str, Any] | None:
    """Converts an MCP result or a list of MCP items to block fields. Returns None for any other output."""
    try:
        if not isinstance(output, list | tuple):
            return None if isinstance(output, str) else read_mcp_result(output)
        items = cast("Sequence[object]", output)
        blocks = [_convert_item(item, index) for index, item in enumerate(items)]
    except Exception:  # an object of another library may raise any error when its attributes are read
        return None
    if not any(blocks):
        return None
    return {"output": [item if block is None else block for item, block in zip(items, blocks, strict=True)]}


def _convert_item(item: object, index: int) -> dict[str, Any] | None:
    return None if isinstance(item, Validated) else read_mcp_item(item, index)


# -- construction without pydantic ----------------------------------------------------------------------------

_new = object.__new__
_set_metadata = slot_setter(BlockBase, "metadata")
_set_call_id = slot_setter(ToolUseBlock, "id")
_set_call_name = slot_setter(ToolUseBlock, "name")
_set_input = slot_setter(ToolUseBlock, "input")
_set_raw_input = slot_setter(ToolUseBlock, "raw_input")
_set_state = slot_setter(ToolUseBlock, "state")
_set_call_type = slot_setter(ToolUseBlock, "type")


def _build_ordinary_call(
    id: Any, name: Any, input: Any, raw_input: Any = None, state: Any = None, *, metadata: Any = None
) -> ToolUseBlock | None:
    """Builds a tool call without the dataclass schema of pydantic.

    Returns None if there is `metadata`, or if an argument is invalid.
    """
    if not (is_text(id) and is_text(name) and (raw_input is None or is_text(raw_input))):
        return None
    is_flat = _is_flat(input)
    values = input.copy() if is_flat else copy_object(input)
    if values is None or not (state is None or type(state) is OpaqueState) or metadata is not None:
        return None
    try:
        if is_flat and raw_input is None:
            return _assemble_call(id, name, values, None, state, to_json(values).decode())
        block = _assemble_call(id, name, values, raw_input, state)
        block.__post_init__()
    except ValueError:  # a lone surrogate
        return None  # pydantic then repeats the validation and raises an error that names the class
    return block


def _is_flat(input: object) -> bool:
    """Returns True if the input is a dict whose values are strings, integers, booleans or None."""
    if type(input) is not dict:
        return False
    values = cast("dict[Any, Any]", input)
    return _ORDINARY.issuperset(map(type, values.values())) and _STRING.issuperset(map(type, values))


def build_parsed_call(id: str, name: str, raw_input: str) -> ToolUseBlock | None:
    """Builds a tool call from the JSON text of its arguments. The text is parsed only once.

    Returns None if the text is not a JSON object whose values are strings, integers, booleans or None. Also
    returns None if UTF-8 cannot encode the id or the name.
    """
    try:
        parsed: object = from_json(raw_input)
    except (ValueError, TypeError):  # the text is not JSON, or has lone surrogates
        return None
    if not (isinstance(parsed, dict) and is_text(id) and is_text(name)):
        return None
    values = cast("dict[str, Any]", parsed)
    if not _ORDINARY.issuperset(map(type, values.values())):
        return None
    return _assemble_call(id, name, values, raw_input, None, raw_input)


def _assemble_call(
    id: str,
    name: str,
    input: dict[str, Any],
    raw_input: str | None,
    state: OpaqueState | None,
    arguments: str | None = None,
) -> ToolUseBlock:
    """Builds a tool call without validation.

    `arguments` is the JSON text of a flat input. If the text is None, the caller calls `__post_init__`.
    """
    block = _new(ToolUseBlock)
    if arguments is not None:
        _set_arguments(block, arguments)
        _set_is_flat(block, True)
    _set_call_id(block, id)
    _set_call_name(block, name)
    _set_input(block, input)
    _set_raw_input(block, raw_input)
    _set_state(block, state)
    _set_call_type(block, "tool_use")
    _set_metadata(block, None)
    return block


_STRING: Final = frozenset({str})
_ORDINARY: Final = _SCALARS - {float}  # excludes float, because pydantic must test that floats are finite

_set_result_id = slot_setter(ToolResultBlock, "id")
_set_result_name = slot_setter(ToolResultBlock, "name")
_set_output = slot_setter(ToolResultBlock, "output")
_set_is_error = slot_setter(ToolResultBlock, "is_error")
_set_result_type = slot_setter(ToolResultBlock, "type")


def _build_ordinary_result(
    id: Any, name: Any = "", output: Any = "", is_error: Any = False
) -> ToolResultBlock | None:
    """Builds a tool result without pydantic.

    Returns None if an argument is invalid, or has a type that only pydantic checks.
    """
    if type(output) in SEQUENCE_TYPES:
        output = tuple(output)
        is_valid = _ITEM_TYPES.issuperset(map(type, output))
    else:
        is_valid = is_text(output)
    if not (is_valid and is_text(id) and is_text(name) and type(is_error) is bool):
        return None
    block = _new(ToolResultBlock)
    _set_result_id(block, id)
    _set_result_name(block, name)
    _set_output(block, output)
    _set_is_error(block, is_error)
    _set_result_type(block, "tool_result")
    _set_metadata(block, None)
    return block


_ITEM_TYPES: Final = frozenset(get_args(get_args(ResultItem)[0]))

ORDINARY_BUILDERS[ToolUseBlock] = _build_ordinary_call
ORDINARY_BUILDERS[ToolResultBlock] = _build_ordinary_result
