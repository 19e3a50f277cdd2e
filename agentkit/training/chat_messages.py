"""Messages of rows in the form of OpenAI Chat Completions, as many training libraries store them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from agentkit.json_values import as_object, as_text, read_arguments
from agentkit.messages.blocks import (
    AudioBlock,
    Block,
    ImageBlock,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.message import Msg, build_trusted
from agentkit.messages.sources import Base64Source, Source, source_from_url
from agentkit.tools.error_marks import write_output
from agentkit.training.row_formats import LossLog
from agentkit.training.row_values import drop_none, get_list, get_object, get_text, has_none, refuse
from agentkit.training.sample import MessageWeight, Weight

__all__ = ["ChatMessageReader", "ChatMessageWriter", "create_call", "write_url"]

_THINKING: Final = ("reasoning_content", "reasoning", "thinking")
_MASKS: Final = ("weight", "masked")
_READ: Final = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "ipython", "eot"}
    | {*_THINKING, *_MASKS}
)
_TEXT_ROLES: Final = ("user", "assistant", "system")
_NONE: Final = "a reader cannot distinguish an argument None from one that is missing"
_RESULT_ROLES: Final = ("tool", "function", "ipython")


def create_call(id: str, name: str, arguments: object) -> ToolUseBlock:
    """Returns a tool call.

    `arguments` is JSON text, which is kept if it is not compact, or a JSON object. Keys of an object that have the
    value None are omitted, because `datasets` adds such keys.
    """
    values, text = read_arguments(drop_none(arguments))
    call = ToolUseBlock(id, name, values)
    return call if text is None or text == call.arguments else ToolUseBlock(id, name, values, text)


@dataclass
class ChatMessageReader:
    """Reader for the messages of one row.

    Attributes:
        images: Images of the row, for placeholders without data.
        call_count: Number of tool calls that were read.
        open_calls: Ids and names of the tool calls without a result.
        weights: Weights of the messages that were read. They are None if no message has one.
    """

    images: Iterator[Any] = field(default_factory=lambda: iter(()))
    call_count: int = 0
    open_calls: dict[str, str] = field(default_factory=dict[str, str])
    weights: list[MessageWeight] = field(default_factory=list[MessageWeight])

    def read_all(self, messages: Sequence[Any], place: str) -> list[Msg]:
        """Returns the messages, and adds their weights to `weights`.

        Raises:
            MessageError: A message is invalid.
        """
        return [self.read(message, f"{place}[{index}]") for index, message in enumerate(messages)]

    def read(self, message: object, place: str) -> Msg:
        """Returns one message, and adds its weight to `weights`."""
        values = get_object(message, place)
        role = values.get("role")
        content = values.get("content")
        if role in _TEXT_ROLES and type(content) is str and len(values) == 2:  # most messages have only a text
            self.weights.append(None)
            return build_trusted(role, as_text(content, place), role)
        self.weights.append(_read_weight(values, place))
        metadata = {key: value for key, value in values.items() if key not in _READ and value is not None} or None
        if role in _RESULT_ROLES:
            return Msg("tool", [self._read_result(values, place)], "system", metadata=metadata)
        name = get_text(values, "name", place)
        if role == "assistant":
            return Msg(name or "assistant", _join(self._read_reply(values, place)), "assistant", metadata=metadata)
        if role in ("system", "developer", "user"):
            kind: Literal["user", "system"] = "user" if role == "user" else "system"
            blocks = self.read_content(values.get("content"), f"{place}.content")
            return Msg(name or kind, _join(blocks), kind, metadata=metadata)
        return refuse(f"{place}.role", f"expected a role such as 'user' or 'assistant', got {role!r}")

    # -- content -----------------------------------------------------------------------------------------------

    def read_content(self, content: object, place: str) -> list[Block]:
        """Returns the blocks of a content, which is a text, a list of parts, or None."""
        if content is None:
            return []
        if isinstance(content, str):
            return [TextBlock(as_text(content, place))]
        if not isinstance(content, list):
            refuse(place, f"expected a text or a list of parts, got {type(content).__name__}")
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
        return refuse(place, f"the content has an unknown type {kind!r}")

    def read_image(self, value: Any, place: str) -> ImageBlock:
        """Returns an image from a URL, a path, or an object with one of them. None means the next of `images`."""
        if value is None:
            value = next(self.images, None)
        if isinstance(value, dict):
            image = cast("dict[str, Any]", value)
            value = next((image[key] for key in ("url", "path", "bytes") if image.get(key)), None)
        if isinstance(value, bytes):
            return ImageBlock.from_bytes(value, "image/png")
        source = source_from_url(value)
        if source is None:
            refuse(place, "the image has no URL and no path")
        return ImageBlock(source)

    # -- replies and results -----------------------------------------------------------------------------------

    def _read_reply(self, values: dict[str, Any], place: str) -> list[Block]:
        thinking = next((get_text(values, key, place) for key in _THINKING if values.get(key)), "")
        blocks: list[Block] = [ThinkingBlock(thinking)] if thinking else []
        calls = get_list(values, "tool_calls", place)
        content = values.get("content")
        if values.get("ipython") and isinstance(content, str) and (call := _parse_call(content)):
            content, calls = None, [call]
        if content != "" or not (calls or values.get("function_call")):
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
        """Returns a tool call. A call without an id gets an id from its position in the row."""
        if not name:
            refuse(place, "the tool call has no name")
        self.call_count += 1
        id = id or f"call_{self.call_count}"
        self.open_calls[id] = name
        return create_call(id, name, arguments)

    def _read_result(self, values: dict[str, Any], place: str) -> ToolResultBlock:
        output = self.read_content(values.get("content"), f"{place}.content")
        return self.add_result(
            get_text(values, "tool_call_id", place), get_text(values, "name", place), _join(output), place
        )

    def add_result(self, id: str, name: str, output: Any, place: str) -> ToolResultBlock:
        """Returns a tool result. A result without an id belongs to an open call."""
        if not id:
            named = (call for call, tool in self.open_calls.items() if not name or tool == name)
            id = next(named, "") or next(iter(self.open_calls), "")
            if not id:
                refuse(place, "there is no tool call before the result")
        return ToolResultBlock(id, name or self.open_calls.pop(id, ""), output)


def _join(blocks: Sequence[Block]) -> Any:
    """Returns blocks as content. A single text becomes a string."""
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return blocks


def _parse_call(text: str) -> dict[str, Any] | None:
    """Parses the text of a tool call in a row of torchtune. Returns None if the text is not a JSON object."""
    try:
        call = as_object(json.loads(text))
    except (ValueError, RecursionError):
        return None
    arguments = call.get("arguments", call.get("parameters"))
    return {"name": call["name"], "arguments": arguments} if isinstance(call.get("name"), str) else None


def _read_weight(values: Mapping[str, Any], place: str) -> Weight:
    weight, masked = values.get("weight"), values.get("masked")
    if weight is None and masked is not None:
        weight = 0 if masked else 1
    if weight is not None and (not isinstance(weight, int | float) or weight not in (0, 1)):
        refuse(f"{place}.weight", f"expected 0 or 1, got {weight!r}")
    return None if weight is None else int(weight)


# -- writing -----------------------------------------------------------------------------------------------------


@dataclass
class ChatMessageWriter:
    """Writer of messages.

    Attributes:
        losses: Log of the content that the messages cannot contain.
        text_arguments: True to write the arguments of tool calls as JSON text. False to write them as an object.
        has_weights: True if the format has a field for the weight of a reply.
    """

    losses: LossLog
    text_arguments: bool = True
    has_weights: bool = True

    def write_all(
        self, msgs: Iterable[Msg], weights: Sequence[MessageWeight] | None = None, place: str = "msgs"
    ) -> list[dict[str, Any]]:
        """Returns the messages. Each tool result becomes a message of its own."""
        written: list[dict[str, Any]] = []
        for index, msg in enumerate(msgs):
            weight = None if weights is None else weights[index]
            written += self.write(msg, weight, f"{place}[{index}]")
        return written

    def write(self, msg: Msg, weight: MessageWeight, place: str) -> list[dict[str, Any]]:
        """Returns a message as one or several dicts."""
        if isinstance(msg.content, str):
            if weight is None and (msg.name == msg.role or not msg.name):
                return [{"role": msg.role, "content": msg.content}]
            message: dict[str, Any] = {"role": msg.role, "content": msg.content}
            if msg.name and msg.name != msg.role:
                message["name"] = msg.name
            return [self._add_weight(message, weight, place)]
        results = [self._write_result(block, f"{place}.content[{i}]") for i, block in _list_results(msg)]
        if results and len(results) == len(msg.content):
            if weight:
                self.losses.add(place, "the format trains no tool results")
            return results
        return [self._add_weight(self._write_blocks(msg, place), weight, place), *results]

    def _write_blocks(self, msg: Msg, place: str) -> dict[str, Any]:
        content: list[Block] = []
        thinking: list[str] = []
        calls: list[dict[str, Any]] = []
        for index, block in enumerate(msg.blocks):
            match block.type:
                case "text" | "image" | "audio" | "video" | "document":
                    content.append(block)
                case "thinking":
                    thinking.append(block.thinking)
                case "tool_use":
                    calls.append(self._write_call(block, f"{place}.content[{index}]"))
                case "tool_result":
                    pass
                case "opaque" | "invalid":
                    self.losses.add(f"{place}.content[{index}]", f"the format has no block of type {block.type}")
        message: dict[str, Any] = {
            "role": "assistant" if calls else msg.role,
            "content": self._write_content(content, place, is_call=bool(calls)),
        }
        if msg.name and msg.name != message["role"]:
            message["name"] = msg.name
        if thinking:
            message["reasoning_content"] = "\n".join(thinking)
        return {**message, "tool_calls": calls} if calls else message

    def _write_content(self, blocks: Sequence[Block], place: str, *, is_call: bool = False) -> Any:
        if not blocks:
            return None if is_call else ""
        if all(isinstance(block, TextBlock) for block in blocks) and len(blocks) == 1:
            return cast("TextBlock", blocks[0]).text
        return [part for block in blocks if (part := self._write_part(block, place))]

    def _write_part(self, block: Block, place: str) -> dict[str, Any] | None:
        if isinstance(block, TextBlock):
            return {"type": "text", "text": block.text}
        source = block.source if isinstance(block, MediaBlock) else None
        if isinstance(block, ImageBlock) and source is not None:
            return {"type": "image_url", "image_url": {"url": write_url(source)}}
        if isinstance(block, AudioBlock) and isinstance(source, Base64Source):
            audio = {"data": source.data, "format": source.media_type.rpartition("/")[2]}
            return {"type": "input_audio", "input_audio": audio}
        self.losses.add(place, f"the format has no block of type {block.type}")
        return None

    def _write_call(self, block: ToolUseBlock, place: str) -> dict[str, Any]:
        if not self.text_arguments and has_none(block.input):
            self.losses.add(place, _NONE)
        arguments: Any = block.arguments if self.text_arguments else block.copy_input()
        return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}

    def _write_result(self, block: ToolResultBlock, place: str) -> dict[str, Any]:
        output = write_output(block, lambda item: self._write_part(item, place))
        content: Any = output if isinstance(output, str) else [part for part in output if part]
        message = {"role": "tool", "tool_call_id": block.id, "content": content}
        return {**message, "name": block.name} if block.name else message

    def _add_weight(self, message: dict[str, Any], weight: MessageWeight, place: str) -> dict[str, Any]:
        if isinstance(weight, tuple):
            self.losses.add(place, "the format has no weights of blocks")
        elif weight is not None and self.has_weights and message["role"] == "assistant":
            return {**message, "weight": weight}
        elif weight and message["role"] != "assistant":
            self.losses.add(place, "the format trains only messages of the assistant")
        return message


def write_url(source: Source) -> str:
    """Returns the URL of a source. Data become a data URL."""
    if isinstance(source, Base64Source):
        return f"data:{source.media_type};base64,{source.data}"
    return source.url


def _list_results(msg: Msg) -> list[tuple[int, ToolResultBlock]]:
    return [(index, block) for index, block in enumerate(msg.blocks) if isinstance(block, ToolResultBlock)]
