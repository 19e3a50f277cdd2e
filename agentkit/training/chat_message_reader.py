"""`ChatMessageReader`: reads messages in the format of OpenAI Chat Completions, which many data sets use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, cast

from agentkit.json_values import as_object, as_text, read_arguments
from agentkit.messages.blocks import (
    AudioBlock,
    Block,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.message import Msg, Role, build_trusted
from agentkit.messages.sources import Base64Source, URLSource, source_from_url
from agentkit.reprs import shorten_repr
from agentkit.tools.error_marks import split_error_mark
from agentkit.training.row_values import drop_none, get_list, get_object, get_text, refuse
from agentkit.training.sample import MessageWeight, Weight

__all__ = ["ChatMessageReader", "MASKS", "build_msg", "create_call", "read_weight"]

_THINKING: Final = ("reasoning_content", "reasoning", "thinking")
MASKS: Final = ("weight", "masked")
"""Keys of a message that determine its weight. With the key `masked` of torchtune, True means the weight 0."""
_PLAIN: Final = frozenset({"role", "content", "name", *MASKS})
_TEXT_KEYS: Final = _PLAIN | {"ipython", "eot"}
_RESULT_KEYS: Final = _TEXT_KEYS | {"tool_call_id"}
_REPLY_KEYS: Final = _TEXT_KEYS | {"tool_calls", "function_call", "refusal", *_THINKING}
_TEXT_ROLES: Final = ("user", "assistant", "system")
_RESULT_ROLES: Final = ("tool", "function", "ipython")


def create_call(id: str, name: str, arguments: object) -> ToolUseBlock:
    """Returns a tool call.

    Args:
        id: Call id.
        name: Name of the tool.
        arguments: JSON object or JSON text. JSON text that is not compact is kept as `raw_input`. Keys with the
            value None are omitted from an object, because the package `datasets` adds such keys.
    """
    values, text = read_arguments(drop_none(arguments))
    call = ToolUseBlock(id, name, values)
    return call if text is None or text == call.arguments else ToolUseBlock(id, name, values, text)


class ChatMessageReader:
    """Reader for the messages of one row.

    Attributes:
        images: Images of the row. Each image part without data takes the next image.
        call_count: Number of tool calls that were read.
        open_calls: Tool names of the calls without a result, by call id.
        weights: Weights of the messages that were read. None for a message without a weight.
    """

    def __init__(self, images: Iterator[Any] | None = None) -> None:
        self.images = images or iter(())
        self.call_count = 0
        self.open_calls: dict[str, str] = {}
        self._open_ids: dict[str, dict[str, None]] = {}  # ids of the open calls of each tool, in their order
        self.weights: list[MessageWeight] = []

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ChatMessageReader:
        """Returns the reader for the messages of a row, with the images in the column `images`.

        Raises:
            MessageError: The column is not a list.
        """
        return cls(iter(get_list(row, "images", ""))) if row.get("images") else cls()

    def read_column(self, row: Mapping[str, Any], column: str, role: Literal["user", "assistant"]) -> list[Msg]:
        """Returns the messages of a column. Returns an empty list if the row has no such column.

        The column is a list of messages, or the text of a single message with the role `role`.

        Raises:
            MessageError: The column is neither a text nor a list, or a message is invalid.
        """
        value = row.get(column)
        if isinstance(value, str):
            return [Msg(role, value, role)]
        return self.read_all(get_list(row, column, ""), column)

    def read_all(self, messages: Sequence[Any], place: str) -> list[Msg]:
        """Returns the messages, and adds their weights to `weights`.

        Raises:
            MessageError: A message is invalid.
        """
        return [self.read(message, f"{place}[{index}]") for index, message in enumerate(messages)]

    def read(self, message: object, place: str) -> Msg:
        """Returns one message, and adds its weight to `weights`.

        Raises:
            MessageError: The message is invalid.
        """
        values = get_object(message, place)
        role = values.get("role")
        content = values.get("content")
        is_short = len(values) == 2
        if (
            role in _TEXT_ROLES and type(content) is str and (is_short or values.keys() <= _PLAIN)
        ):  # fast path: most messages have only a role and a text
            self.weights.append(None if is_short else read_weight(values, place))
            name = role if is_short else get_text(values, "name", place) or role
            return build_trusted(name, content if content.isascii() else as_text(content, place), role)
        self.weights.append(read_weight(values, place))
        if role in _RESULT_ROLES:
            return build_msg("tool", (self._read_result(values, place),), "system", values, _RESULT_KEYS)
        name = get_text(values, "name", place)
        if role == "assistant":
            reply = _join(self._read_reply(values, place))
            return build_msg(name or "assistant", reply, "assistant", values, _REPLY_KEYS)
        if role in ("system", "developer", "user"):
            msg_role: Literal["user", "system"] = "user" if role == "user" else "system"
            blocks = self.read_content(values.get("content"), f"{place}.content")
            return build_msg(name or msg_role, _join(blocks), msg_role, values, _TEXT_KEYS)
        return refuse(f"{place}.role", f"expected a role such as 'user' or 'assistant', got {role!r}")

    # -- content -----------------------------------------------------------------------------------------------

    def read_content(self, content: object, place: str) -> list[Block]:
        """Returns the blocks of message content: a text, a list of parts, or None.

        Raises:
            MessageError: The content has another type, or a part is invalid.
        """
        if content is None:
            return []
        if isinstance(content, str):
            return [build_trusted_text(as_text(content, place))]
        if not isinstance(content, list):
            refuse(place, f"expected a string or a list of parts, got {shorten_repr(content, 60)}")
        parts = enumerate(cast("list[object]", content))
        return [self._read_part(get_object(part, f"{place}[{i}]"), f"{place}[{i}]") for i, part in parts]

    def _read_part(self, part: dict[str, Any], place: str) -> Block:
        kind = part.get("type")
        if kind in ("text", "refusal"):
            key = next((key for key in ("text", "refusal", "content") if part.get(key) is not None), "text")
            return TextBlock(get_text(part, key, place))
        if kind in ("image", "image_url"):
            keys = ("image_url", "image", "url", "path", "content")
            return self.read_image(next((part[key] for key in keys if part.get(key) is not None), None), place)
        audio = as_object(part.get("input_audio"))
        if kind == "input_audio" and audio:
            media_type = f"audio/{get_text(audio, 'format', place) or 'wav'}"
            return AudioBlock(Base64Source(media_type, get_text(audio, "data", place)))
        return refuse(place, f"expected a text, image or audio part with data, got a part of type {kind!r}")

    def read_image(self, value: Any, place: str) -> ImageBlock:
        """Returns an image block for a URL, a path, bytes, or a dict with one of these.

        If the value is None, returns the next image of the row.

        Raises:
            MessageError: The value has another type, or the row has no further image.
        """
        if value is None:
            value = next(self.images, None)
        if isinstance(value, dict):
            image = cast("dict[str, Any]", value)
            value = next((image[key] for key in ("url", "path", "bytes") if image.get(key)), None)
        if isinstance(value, bytes):
            return ImageBlock.from_bytes(value, "image/png")
        source = source_from_url(value)
        if source is None and isinstance(value, str) and value.startswith("data:"):
            source = URLSource(value)  # a malformed data URL: the error is raised when a request is built
        if source is None:
            refuse(place, f"expected the URL, path or bytes of an image, got {shorten_repr(value, 60)}")
        return ImageBlock(source)

    # -- replies and results -----------------------------------------------------------------------------------

    def _read_reply(self, values: dict[str, Any], place: str) -> list[Block]:
        thinking = next((get_text(values, key, place) for key in _THINKING if values.get(key)), "")
        blocks: list[Block] = [ThinkingBlock(thinking)] if thinking else []
        calls = get_list(values, "tool_calls", place)
        content = values.get("content")
        if values.get("ipython") and isinstance(content, str) and (call := _parse_call(content)):
            content, calls = None, [call]
        if content != "" or not (blocks or calls or values.get("function_call")):
            blocks += self.read_content(content, f"{place}.content")
        if refusal := get_text(values, "refusal", place):
            blocks.append(TextBlock(refusal))
        if values.get("function_call"):
            calls = [*calls, {"function": values["function_call"]}]
        return blocks + [self._read_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(calls)]

    def _read_call(self, value: object, place: str) -> ToolUseBlock:
        call = get_object(value, place)
        function = as_object(call.get("function")) or call
        return self.add_call(
            get_text(call, "id", place), get_text(function, "name", place), function.get("arguments"), place
        )

    def add_call(self, id: str, name: str, arguments: object, place: str) -> ToolUseBlock:
        """Returns a tool call, and adds the call to `open_calls`.

        A call without an id gets an id such as `call_1` that no open call has.

        Raises:
            MessageError: The call has no name.
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
        return create_call(id, name, arguments)

    def _read_result(self, values: dict[str, Any], place: str) -> ToolResultBlock:
        output = self.read_content(values.get("content"), f"{place}.content")
        return self.add_result(
            get_text(values, "tool_call_id", place), get_text(values, "name", place), _join(output), place
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


def build_msg(
    name: str, content: str | tuple[Block, ...], role: Role, values: dict[str, Any], keys: AbstractSet[str]
) -> Msg:
    """Returns a message. Its metadata has the values whose keys are not in `keys`, except None values."""
    if values.keys() <= keys:
        return build_trusted(name, content, role)
    others = {key: value for key, value in values.items() if key not in keys and value is not None}
    return Msg(name, content, role, metadata=others) if others else build_trusted(name, content, role)


def _join(blocks: Sequence[Block]) -> str | tuple[Block, ...]:
    """Returns the message content for blocks: a string for a single text block, and otherwise a tuple."""
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return tuple(blocks)


def _parse_call(text: str) -> dict[str, Any] | None:
    """Parses the text of a tool call in a row of torchtune. Returns None for any other text."""
    try:
        call = as_object(json.loads(text))
    except (ValueError, RecursionError):
        return None
    arguments = call.get("arguments", call.get("parameters"))
    return {"name": call["name"], "arguments": arguments} if isinstance(call.get("name"), str) else None


def read_weight(values: Mapping[str, Any], place: str) -> Weight:
    """Returns the weight of a message. Returns None if the message has no `weight` and no `masked`.

    Raises:
        MessageError: The weight is neither 0 nor 1.
    """
    weight, masked = values.get("weight"), values.get("masked")
    if weight is None and masked is not None:
        weight = 0 if masked else 1
    if weight is not None and (not isinstance(weight, int | float) or weight not in (0, 1)):
        refuse(f"{place}.weight", f"expected 0 or 1, got {weight!r}")
    return None if weight is None else int(weight)
