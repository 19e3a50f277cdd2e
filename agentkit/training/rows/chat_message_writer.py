"""`ChatMessageWriter`: writes messages in the format of OpenAI Chat Completions, which many libraries read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from agentkit.messages.blocks import (
    AudioBlock,
    Block,
    ImageBlock,
    MediaBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source, Source
from agentkit.tools.error_marks import write_output
from agentkit.training.rows.content_reader import is_refusal
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.sample import MessageWeight, Sample

__all__ = ["ChatMessageWriter", "write_url"]


@dataclass(slots=True)
class ChatMessageWriter:
    """Writer of messages in the format of OpenAI Chat Completions.

    Attributes:
        losses: Log of the content that the format cannot represent.
        text_arguments: True to write the arguments of tool calls as JSON text. False to write them as an object.
        has_openai_fields: True if the format has the fields `weight` and `refusal` of OpenAI's fine-tuning.
    """

    losses: LossLog
    text_arguments: bool = True
    has_openai_fields: bool = True

    def write_sample(self, sample: Sample) -> list[dict[str, Any]]:
        """Returns the messages of a sample with their weights as dicts. Each tool result becomes a separate dict.

        Raises:
            MessageError: A tool call has no name, or a call or result has no id.
        """
        written: list[dict[str, Any]] = []
        for index, msg in enumerate(sample.msgs):
            written += self.write(msg, sample.get_weight(index), "msgs", index)
        return written

    def write_all(self, msgs: Iterable[Msg], place: str) -> list[dict[str, Any]]:
        """Returns messages without weights as dicts. Each tool result becomes a separate dict.

        Raises:
            MessageError: A tool call has no name, or a call or result has no id.
        """
        return [message for index, msg in enumerate(msgs) for message in self.write(msg, None, place, index)]

    def write(self, msg: Msg, weight: MessageWeight, list_place: str, index: int) -> list[dict[str, Any]]:
        """Returns a message as one or several dicts.

        Losses and errors name the place of the message with `list_place` and `index`, for example `msgs[3]`.

        Raises:
            MessageError: A tool call has no name, or a call or result has no id.
        """
        content = msg.content
        if weight is None and isinstance(content, str) and msg.name:  # fast path: no losses are possible
            message: dict[str, Any] = {"role": msg.role, "content": content}
            if msg.name != msg.role:
                message["name"] = msg.name
            return [message]
        place = f"{list_place}[{index}]"
        if isinstance(content, str):
            return [self._add_fields({"role": msg.role, "content": content}, msg, weight, place)]
        if not msg.features & Feature.RESULT:
            return [self._add_fields(self._write_blocks(msg, place), msg, weight, place)]
        results = [self._write_result(block, f"{place}.content[{i}]") for i, block in _list_results(msg)]
        if len(results) == len(content):
            self.losses.note_weight(weight, place)
            return results
        if self.has_openai_fields and msg.role == "assistant" and not msg.tool_uses and weight is None:
            weight = 0  # text in a message with tool results is not a reply, and must not be trained
        others = self._add_fields(self._write_blocks(msg, place), msg, weight, place)
        is_result = [block.type == "tool_result" for block in msg.blocks]
        if is_result != sorted(is_result, reverse=is_result[0]):
            self.losses.add(place, "the format has tool results only before or after all other content")
        return [*results, others] if is_result[0] else [others, *results]

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
                    self.losses.add_block(block, f"{place}.content[{index}]")
        self.losses.note_reply(msg, place)
        if not self.has_openai_fields:
            self.losses.note_refusal(msg, place)
        message: dict[str, Any] = {"role": "assistant" if calls else msg.role}
        refusal = content[0].text if len(content) == 1 and self._is_refusal(content[0]) else ""
        if refusal and message["role"] == "assistant":
            message |= {"content": None, "refusal": refusal}
        else:
            message["content"] = self._write_content(content, place, is_call=bool(calls))
        if thinking:
            message["reasoning_content"] = "\n".join(thinking)
        if calls:
            message["tool_calls"] = calls
        return message

    def _is_refusal(self, block: Block) -> TypeGuard[TextBlock]:
        """Returns True if a block is a refusal, and the format has a field for refusals."""
        return self.has_openai_fields and is_refusal(block)

    def _write_content(self, blocks: Sequence[Block], place: str, *, is_call: bool = False) -> Any:
        if not blocks:
            return None if is_call else ""
        if len(blocks) == 1 and isinstance(blocks[0], TextBlock) and not self._is_refusal(blocks[0]):
            return blocks[0].text
        return [part for block in blocks if (part := self._write_part(block, place))]

    def _write_part(self, block: Block, place: str) -> dict[str, Any] | None:
        if isinstance(block, TextBlock):
            part_type = "refusal" if self._is_refusal(block) else "text"
            return {"type": part_type, part_type: block.text}
        source = block.source if isinstance(block, MediaBlock) else None
        if isinstance(block, ImageBlock) and source is not None:
            self.losses.note_source(source, place)
            return {"type": "image_url", "image_url": {"url": write_url(source)}}
        if isinstance(block, AudioBlock) and isinstance(source, Base64Source):
            audio = {"data": source.data, "format": source.media_type.rpartition("/")[2]}
            return {"type": "input_audio", "input_audio": audio}
        self.losses.add_block(block, place)
        return None

    def _write_call(self, block: ToolUseBlock, place: str) -> dict[str, Any]:
        self.losses.note_call(block, place, is_text=self.text_arguments)
        arguments: Any = block.arguments if self.text_arguments else block.copy_input()
        return {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": arguments}}

    def _write_result(self, block: ToolResultBlock, place: str) -> dict[str, Any]:
        self.losses.note_output(block, place)
        output = write_output(block, lambda item: self._write_part(item, place))
        content: Any = output if isinstance(output, str) else [part for part in output if part]
        message = {"role": "tool", "tool_call_id": block.id, "content": content}
        if block.name:
            message["name"] = block.name
        return message

    def _add_fields(self, message: dict[str, Any], msg: Msg, weight: MessageWeight, place: str) -> dict[str, Any]:
        """Adds the speaker name and the weight of `msg` to the dict `message`, and returns the dict."""
        if not msg.name:
            self.losses.add(f"{place}.name", "the format cannot represent an empty speaker name")
        elif msg.name != message["role"]:
            message["name"] = msg.name
        if weight is not None:
            has_weights, can_have_weight = self.has_openai_fields, message["role"] == "assistant"
            self.losses.note_weight(weight, place, can_have_weight=can_have_weight, has_weights=has_weights)
            if has_weights and can_have_weight and isinstance(weight, int):
                message["weight"] = weight
        return message


def write_url(source: Source) -> str:
    """Returns the URL of a source. Base64 data becomes a data URL."""
    if isinstance(source, Base64Source):
        return f"data:{source.media_type};base64,{source.data}"
    return source.url


def _list_results(msg: Msg) -> list[tuple[int, ToolResultBlock]]:
    return [(index, block) for index, block in enumerate(msg.blocks) if block.type == "tool_result"]
