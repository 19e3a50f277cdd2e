"""`ChatMessageReader`: reads messages in the format of OpenAI Chat Completions, which many data sets use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal

from agentkit.errors import MessageError
from agentkit.json_values import as_object, read_arguments
from agentkit.messages.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.message import Msg, Role, build_trusted
from agentkit.reprs import shorten_repr
from agentkit.tools.error_marks import split_error_mark
from agentkit.training.rows.content_reader import ContentReader, join_blocks
from agentkit.training.rows.row_values import (
    check_json,
    check_object,
    drop_none,
    get_list,
    get_text,
    get_unknown_values,
    is_missing,
    refuse,
)
from agentkit.training.sample import MessageWeight, Weight

__all__ = ["ChatMessageReader", "WEIGHT_KEYS", "build_msg", "read_weight"]

_THINKING: Final = ("reasoning_content", "reasoning", "thinking")
WEIGHT_KEYS: Final = ("weight", "masked")
"""Keys of a message that determine its weight. With the key `masked` of torchtune, True means the weight 0."""
_SIMPLE_KEYS: Final = frozenset({"role", "content", "name", *WEIGHT_KEYS})
# `eot` (end of turn) is not stored, because the tool calls of a message determine this value.
_TEXT_KEYS: Final = _SIMPLE_KEYS | {"ipython", "eot"}
_RESULT_KEYS: Final = _TEXT_KEYS | {"tool_call_id"}
_REPLY_KEYS: Final = _TEXT_KEYS | {"tool_calls", "function_call", "refusal", *_THINKING}
_WRAPPER_KEYS: Final = frozenset({"id", "function"})
_FUNCTION_KEYS: Final = {key: frozenset({"name", key}) for key in ("arguments", "parameters")}
_CALL_KEYS: Final = {key: keys | {"id"} for key, keys in _FUNCTION_KEYS.items()}
_CODE_TOOL: Final = "code_interpreter"
"""Built-in tool of Llama 3.1 that runs code (llama-models: `BuiltinTool.code_interpreter`)."""
_TEXT_ROLES: Final = ("user", "assistant", "system")
_RESULT_ROLES: Final = ("tool", "function", "ipython")


class ChatMessageReader:
    """Reader for the messages of one row.

    Attributes:
        content: Reader for the content of the messages.
        keeps_none: True to keep arguments of tool calls whose value is None. False to omit these arguments,
            because the package `datasets` adds such arguments.
        call_count: Counter for created ids such as `call_1`. Each tool call increases the counter. Numbers in the
            ids of open calls are skipped.
        open_calls: Maps the call id of each tool call without a result to the tool name.
        weights: Weights of the messages that were read. None for a message without a weight.
    """

    def __init__(self, content: ContentReader | None = None, *, keeps_none: bool = False) -> None:
        self.content = content or ContentReader()
        self.keeps_none = keeps_none
        self.call_count = 0
        self.open_calls: dict[str, str] = {}
        self._open_ids: dict[str, dict[str, None]] = {}  # maps a tool name to its open calls
        self.weights: list[MessageWeight] = []

    def read_column(self, row: Mapping[str, Any], column: str, role: Literal["user", "assistant"]) -> list[Msg]:
        """Returns the messages of a column. Empty if the row has no such column, or its value is None.

        The column is a list of messages, or the text of a single message with the role `role`.

        Raises:
            MessageError: The column is neither a string nor a list, or a message is invalid.
        """
        value = row.get(column)
        if isinstance(value, str):
            return [self.read({"role": role, "content": value}, column)]
        return self.read_all(get_list(row, column, ""), column)

    def read_all(self, messages: Sequence[Any], place: str) -> list[Msg]:
        """Returns the messages, and adds their weights to `weights`.

        Raises:
            MessageError: A message is invalid.
        """
        msgs: list[Msg] = []
        for index, message in enumerate(messages):
            msg = _build_plain(message)  # fast path for most messages
            if msg is None:
                msg = self.read(message, f"{place}[{index}]")
            else:
                self.weights.append(None)
            msgs.append(msg)
        return msgs

    def read(self, message: object, place: str) -> Msg:
        """Returns one message, and adds its weight to `weights`.

        Raises:
            MessageError: The message is invalid.
        """
        values = check_object(message, place)
        role = values.get("role")
        content = values.get("content")
        self.weights.append(read_weight(values, place))
        if role in _TEXT_ROLES and type(content) is str and values.keys() <= _SIMPLE_KEYS:  # fast path
            return build_trusted(get_text(values, "name", place) or role, content, role)
        if role in _RESULT_ROLES:
            return _build_chat_msg(
                "tool", [self._read_result(values, place)], "system", values, _RESULT_KEYS, place
            )
        name = get_text(values, "name", place)
        if role == "assistant":
            blocks = self._read_reply(values, place)
            _check_content(values, blocks, place)
            return _build_chat_msg(name or "assistant", blocks, "assistant", values, _REPLY_KEYS, place)
        if role in ("system", "developer", "user"):
            msg_role: Literal["user", "system"] = "user" if role == "user" else "system"
            blocks = self.content.read(values.get("content"), f"{place}.content")
            _check_content(values, blocks, place)
            return _build_chat_msg(name or msg_role, blocks, msg_role, values, _TEXT_KEYS, place)
        return refuse(
            f"{place}.role", f"expected a role such as 'user' or 'assistant', got {shorten_repr(role, 60)}"
        )

    # -- replies and results -----------------------------------------------------------------------------------

    def _read_reply(self, values: dict[str, Any], place: str) -> list[Block]:
        thinking = next((get_text(values, key, place) for key in _THINKING if values.get(key)), "")
        blocks: list[Block] = [ThinkingBlock(thinking)] if thinking else []
        calls = get_list(values, "tool_calls", place)
        function_call = values.get("function_call")
        has_call = not is_missing(function_call)
        content = self.content.read(values.get("content"), f"{place}.content")
        text = join_blocks(content)
        if _has_ipython(values) and not (calls or has_call) and isinstance(text, str) and text.strip():
            content, calls = [], [_parse_call(text)]
        if values.get("content") != "" or not (blocks or calls or has_call):
            blocks += content
        if refusal := get_text(values, "refusal", place):
            blocks.append(TextBlock(refusal, metadata={"refusal": True}))
        if has_call:
            calls = [*calls, {"function": function_call}]
        return [*blocks, *(self.read_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(calls))]

    def read_call(self, value: object, place: str) -> ToolUseBlock:
        """Returns a tool call, and adds the call to `open_calls`. Unknown keys become metadata.

        The name and the arguments are values of the call, or of its object `function`. Some data sets write the
        arguments as `parameters`.

        Raises:
            MessageError: The value is not a JSON object, or the call has no name.
        """
        call = check_object(value, place)
        function = as_object(call.get("function"))
        values = function or call
        arguments = "parameters" if "parameters" in values and values.get("arguments") is None else "arguments"
        ignored = {"type"} if call.get("type") in ("function", None) else set[str]()
        if function:
            unknown = get_unknown_values(function, _FUNCTION_KEYS[arguments], place)
            outer = get_unknown_values(call, _WRAPPER_KEYS | ignored, place)
            unknown = {**outer, "function": unknown} if unknown else outer
        else:
            unknown = get_unknown_values(call, _CALL_KEYS[arguments] | ignored, place)
        id, name = get_text(call, "id", place), get_text(values, "name", place)
        return self.add_call(id, name, values.get(arguments), place, unknown or None)

    def add_call(
        self, id: str, name: str, arguments: object, place: str, metadata: dict[str, Any] | None = None
    ) -> ToolUseBlock:
        """Returns a tool call, and adds the call to `open_calls`.

        Args:
            id: Call id. If empty, the call gets an id such as `call_1` that no open call has.
            name: Name of the tool.
            arguments: JSON object or JSON text. JSON text that is not compact is kept as `raw_input`.
            place: Place of the call.
            metadata: Metadata of the call.

        Raises:
            MessageError: The call has no name, or JSON cannot represent an argument.
        """
        if not name:
            refuse(place, "the tool call has no name")
        self.call_count += 1
        if not id:
            while f"call_{self.call_count}" in self.open_calls:
                self.call_count += 1
            id = f"call_{self.call_count}"
        self.open_calls[id] = name
        self._open_ids.setdefault(name, {})[id] = None
        if type(arguments) not in (dict, str):  # values of other types are kept as JSON text
            check_json(arguments, f"{place}.arguments")
        values, text = read_arguments(arguments if self.keeps_none else drop_none(arguments))
        try:
            call = ToolUseBlock(id, name, values, metadata=metadata)
        except MessageError as error:
            refuse(f"{place}.arguments", error.reason)
        if text is None or text == call.arguments:
            return call
        return ToolUseBlock(id, name, values, text, metadata=metadata)

    def _read_result(self, values: dict[str, Any], place: str) -> ToolResultBlock:
        output = join_blocks(self.content.read(values.get("content"), f"{place}.content"))
        return self.add_result(
            get_text(values, "tool_call_id", place), get_text(values, "name", place), output, place
        )

    def add_result(self, id: str, name: str, output: Any, place: str) -> ToolResultBlock:
        """Returns a tool result, and removes its call from `open_calls`.

        A result without an id belongs to the first open call of the tool `name`. If there is no such call, the
        result belongs to the first open call of any tool.

        Raises:
            MessageError: The result has no id, and no call is open.
        """
        if not id:
            id = next(iter(self._open_ids.get(name) or self.open_calls), "")
            if not id:
                refuse(place, "there is no open tool call before the result")
        text, is_error = split_error_mark(output) if isinstance(output, str) else (output, False)
        called = self.open_calls.pop(id, "")
        self._open_ids.get(called, {}).pop(id, None)
        return ToolResultBlock(id, name or called, text, is_error)


def _build_plain(message: Any) -> Msg | None:
    """Returns a message that has only a role and a text. Returns None for any other message."""
    values: dict[str, Any] = message
    if type(message) is dict and len(values) == 2:
        role, content = values.get("role"), values.get("content")
        if type(content) is str and role in _TEXT_ROLES:
            return build_trusted(role, content, role)
    return None


def build_msg(
    name: str,
    content: str | tuple[Block, ...],
    role: Role,
    values: dict[str, Any],
    keys: AbstractSet[str],
    place: str,
) -> Msg:
    """Returns a message whose metadata contains the values whose keys are not in `keys`. Omits None and NaN.

    Raises:
        MessageError: JSON cannot represent a value.
    """
    if values.keys() <= keys:
        return build_trusted(name, content, role)
    unknown = get_unknown_values(values, keys, place)
    return Msg(name, content, role, metadata=unknown) if unknown else build_trusted(name, content, role)


def _check_content(values: dict[str, Any], blocks: Sequence[Block], place: str) -> None:
    if not blocks and values.get("content") is None:
        refuse(f"{place}.content", "the message has no content")


def _build_chat_msg(
    name: str,
    blocks: Sequence[Block],
    role: Role,
    values: dict[str, Any],
    keys: AbstractSet[str],
    place: str,
) -> Msg:
    unread = _list_unread(values, blocks)
    return build_msg(name, join_blocks(blocks), role, values, keys - {*unread} if unread else keys, place)


def _list_unread(values: dict[str, Any], blocks: Sequence[Block]) -> list[str]:
    """Returns the keys whose values no block of the message contains, such as the second of two thinking keys."""
    thinking = next((block.thinking for block in blocks if isinstance(block, ThinkingBlock)), "")
    unread: list[str] = [key for key in _THINKING if key in values and values[key] not in (None, "", thinking)]
    unread += [key for key in ("ipython", "eot") if values.get(key) not in (None, True, False)]
    if _has_ipython(values) and not any(isinstance(block, ToolUseBlock) for block in blocks):
        unread.append("ipython")
    return unread


def _has_ipython(values: dict[str, Any]) -> bool:
    """Returns True if the key `ipython` of torchtune marks the message as a tool call."""
    return values.get("ipython") in (True, 1)


def _parse_call(text: str) -> dict[str, Any]:
    """Returns the tool call that a text in a row of torchtune contains.

    The text is either code, or a JSON object that contains the name of the tool. As in the format of Llama 3.1,
    code is a call of the built-in tool `code_interpreter`.
    """
    try:
        call = as_object(json.loads(text))
    except (ValueError, RecursionError):
        call = {}
    return call if isinstance(call.get("name"), str) else {"name": _CODE_TOOL, "arguments": {"code": text}}


def read_weight(values: Mapping[str, Any], place: str) -> Weight:
    """Returns the training weight of a message: 0, 1, or None if the message has no `weight` and no `masked`.

    Raises:
        MessageError: `weight` is neither 0 nor 1, `masked` is neither true nor false, or `masked` contradicts
            `weight`.
    """
    weight, masked = values.get("weight"), values.get("masked")
    if weight is None is masked:
        return None
    if weight is not None and (not isinstance(weight, int | float) or weight not in (0, 1)):
        refuse(f"{place}.weight", f"expected 0 or 1, got {shorten_repr(weight, 60)}")
    if masked is not None and (not isinstance(masked, int | float) or masked not in (0, 1)):
        refuse(f"{place}.masked", f"expected true or false, got {shorten_repr(masked, 60)}")
    if weight is not None and masked is not None and bool(weight) == bool(masked):
        refuse(f"{place}.masked", f"the value {masked!r} contradicts the weight {weight!r}")
    return int(weight) if weight is not None else int(not masked)
