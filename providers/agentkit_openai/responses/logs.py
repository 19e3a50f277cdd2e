"""Loader for OpenAI Responses logs."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, cast

from agentkit.provider_kit import (
    Block,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_object,
    as_text,
    check_log_format,
    check_log_message,
    check_log_request,
    describe_value,
    ensure_json_safe,
    get_state_fields,
    parse_log_text,
    read_arguments,
    read_log_entries,
)
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._log_parts import LogSource, as_content, read_content
from agentkit_openai._message_keys import attach_keys
from agentkit_openai.responses._output_items import image_state, parse_image
from agentkit_openai.responses._reasoning import reasoning_state, reasoning_text
from agentkit_openai.responses._turn_items import CALL_FIELDS
from agentkit_openai.responses.capabilities import OUTPUT_FIELDS, RESPONSES

__all__ = ["load_responses"]

_ISSUER = str(RESPONSES.issuer)
_SOURCE = LogSource(str(RESPONSES.wire), _ISSUER)
_WIRES = "openai openai-responses"
"""Wire formats whose content parts the loader reads."""
_STORED_KEYS = ("previous_response_id", "conversation", "prompt")
"""Request keys that refer to messages stored by OpenAI (openai-python: ResponseCreateParams)."""


def load_responses(log: object) -> list[Msg]:
    """Loads the messages of a Responses log.

    `instructions` become the system prompt. Adjacent items of a reply become one message. The items of a reply are
    reasoning, assistant messages, tool calls, and items of tools that OpenAI runs. Tool results get the tool names
    of their tool calls.

    Args:
        log: List of items, a complete request or reply, or the JSON text of any of these. The list can contain
            items from the `output` of replies. SDK objects are also accepted.

    Raises:
        MessageError: `log` is not a log of Responses.
    """
    value: Any = ensure_json_safe(parse_log_text(log), "log")
    request = as_object(value)
    check_log_request(request, ("input", "instructions"), _STORED_KEYS)
    if isinstance(request.get("input"), str):
        value = {**request, "input": [{"role": "user", "content": request["input"]}]}
    elif "input" not in request and isinstance(request.get("output"), list):
        value = {**request, "input": request["output"]}
    entries = read_log_entries(value, "input", ("role", "type"), other_names=("instructions",))
    reader = _LogReader()
    reader.read_instructions(request.get("instructions"))
    reader.read_all(entries, "input")
    reader.add_reply()
    return reader.msgs


class _LogReader:
    """Reader for one log.

    Attributes:
        msgs: Messages that were read.
    """

    def __init__(self) -> None:
        self.msgs: list[Msg] = []
        self._reply_blocks: list[Block] = []  # blocks of the reply whose items are being read
        self._tool_names: dict[str, str] = {}  # names of tools, by call id

    def add(self, name: str, content: str | list[Block], role: Literal["user", "system"]) -> None:
        """Adds the current reply as a message, if there is one, and then adds a message with `content`."""
        self.add_reply()
        self.msgs.append(Msg(name, content, role))

    def add_reply(self) -> None:
        """Adds the blocks of the current reply as a message. Does nothing if there are no blocks."""
        blocks, self._reply_blocks = self._reply_blocks, []
        if blocks:
            self.msgs.append(Msg("assistant", as_content(blocks), "assistant"))

    def read_instructions(self, instructions: object) -> None:
        """Reads the system prompt: a string in a request, and a string or a list of items in a reply."""
        if isinstance(instructions, str):
            self.add("system", as_text(instructions), "system")
        elif isinstance(instructions, list):
            self.read_all(cast("list[Any]", instructions), "instructions")
        elif instructions is not None:
            reason = f"expected a string or a list of items, got {describe_value(instructions)}"
            self.add("system", [InvalidBlock(instructions, reason, "instructions")], "system")

    def read_all(self, entries: list[Any], name: str) -> None:
        for index, (entry, next_entry) in enumerate(zip_longest(entries, entries[1:])):
            self._read(entry, f"{name}[{index}]", as_object(next_entry).get("id"))

    def _read(self, entry: object, place: str, next_id: object) -> None:
        """Reads an item (openai-python: ResponseInputItemParam). `next_id` is the id of the next item."""
        if not isinstance(entry, dict):
            reason = f"expected an item (a JSON object), got {describe_value(entry)}"
            self.add("unknown", [InvalidBlock(entry, reason, place)], "user")
            return
        item = cast("dict[str, Any]", entry)
        check_log_format(item, place, _WIRES)
        item_type = item.get("type") or ("message" if "role" in item else None)
        if not item_type and item.keys() == {"id"}:
            item_type = "item_reference"  # openai-python: ItemReference.type is optional
        if item_type == "message":
            self._read_message(item, place)
        elif item_type in ("function_call_output", "custom_tool_call_output"):
            self.add("tool", [self._read_result(item, place)], "system")
        elif isinstance(item_type, str):
            self._reply_blocks.append(self._read_reply_item(item_type, item, place, next_id))
        else:
            check_log_message(item, place, ("type",), (), _WIRES)
            reason = f"expected an item in which `type` is a string, got {describe_value(item)}"
            self.add("unknown", [InvalidBlock(item, reason, place)], "user")

    def _read_message(self, item: dict[str, Any], place: str) -> None:
        role = item.get("role")
        check_log_message(item, place, ("content",), (), _WIRES)
        blocks = read_content(item.get("content"), _SOURCE, f"{place}.content")
        if role == "assistant":
            phase = as_text(item.get("phase"))
            fields = {"phase": phase} if phase else {}
            self._reply_blocks.extend(_add_text_state(blocks, fields, self._get_tied_id(item)))
        elif role in ("user", "system", "developer"):
            msg_role: Literal["user", "system"] = "user" if role == "user" else "system"
            if role == "developer":
                blocks = attach_keys(blocks, {"role": role}, _ISSUER) or blocks
            self.add(msg_role, as_content(blocks), msg_role)
        else:
            reason = f"expected a role such as 'user' or 'assistant', got {describe_value(role)}"
            self.add("unknown", [InvalidBlock(item, reason, place)], "user")

    def _read_reply_item(self, item_type: str, item: dict[str, Any], place: str, next_id: object) -> Block:
        """Reads an item of a reply as a block. An item of an unknown type becomes an `OpaqueBlock`."""
        if item_type == "reasoning":
            return ThinkingBlock(reasoning_text(item), OpaqueState(_ISSUER, **reasoning_state(item, next_id)))
        if item_type in ("function_call", "custom_tool_call"):
            try:
                return self._read_call(item_type, item)
            except MessageError as error:
                return InvalidBlock(item, str(error), place)
        image = parse_image(item)
        if image:
            return replace(image, state=OpaqueState(_ISSUER, **image_state(item)))
        return OpaqueBlock(_SOURCE.wire, item)

    def _read_call(self, item_type: str, item: dict[str, Any]) -> ToolUseBlock:
        id, name = as_text(item.get("call_id")), as_text(item.get("name"))
        self._tool_names[id] = name
        fields = {key: item[key] for key in CALL_FIELDS if item.get(key)}
        is_custom, item_id = item_type == "custom_tool_call", self._get_tied_id(item)
        if is_custom:
            fields = {**CUSTOM_CALL, **fields}
        state = OpaqueState(_ISSUER, item_id=item_id, fields=fields or None) if fields or item_id else None
        if is_custom:
            return ToolUseBlock(id, name, custom_input(as_text(item.get("input"))), state=state)
        return ToolUseBlock(id, name, *read_arguments(item.get("arguments")), state)

    def _get_tied_id(self, item: dict[str, Any]) -> str | None:
        """Returns the id of an item that follows reasoning in the same reply, or None for any other item.

        OpenAI can refuse the reasoning if the item after the reasoning has no id.
        """
        has_reasoning = any(isinstance(block, ThinkingBlock) for block in self._reply_blocks)
        return as_text(item.get("id")) or None if has_reasoning else None

    def _read_result(self, item: dict[str, Any], place: str) -> ToolResultBlock:
        id = as_text(item.get("call_id"))
        name = as_text(item.get("name")) or self._tool_names.get(id, "")
        output: Any = as_content(read_content(item.get("output"), _SOURCE, f"{place}.output"))
        fields = {key: item[key] for key in OUTPUT_FIELDS if item.get(key)}
        return ToolResultBlock(id, name, _add_output_fields(output, fields))


def _add_output_fields(output: str | list[Any], fields: dict[str, Any]) -> str | list[Any]:
    """Returns the output of a tool result, with `fields` in the opaque state of its first text."""
    items = [TextBlock(output)] if isinstance(output, str) else output
    index = next((index for index, item in enumerate(items) if isinstance(item, TextBlock)), None)
    if not fields or index is None:
        return output
    text = replace(items[index], state=OpaqueState(_ISSUER, fields=fields))
    return [*items[:index], text, *items[index + 1 :]]


def _add_text_state(blocks: list[Block], fields: dict[str, Any], id: str | None) -> list[Block]:
    """Returns the blocks of a message, with `fields` and the item id in the opaque state of its texts."""
    if not fields and not id:
        return blocks
    return [
        replace(
            block,
            state=OpaqueState(_ISSUER, item_id=id, fields={**get_state_fields(block.state), **fields} or None),
        )
        if isinstance(block, TextBlock)
        else block
        for block in blocks
    ]
