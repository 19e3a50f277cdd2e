"""`convert_messages`: converts messages to the dicts that chat templates of models read.

The dicts have the format of OpenAI Chat Completions, with two differences: the arguments of a tool call are an
object and not JSON text, and thinking has the key `reasoning_content` (Hugging Face, chat templates).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, assert_never

from agentkit.chat_templates.rendered_chat import OmittedBlock
from agentkit.ledger.places import BlockPath, format_place
from agentkit.messages.blocks import Block, MediaBlock, TextBlock, ToolResultBlock
from agentkit.messages.message import Msg
from agentkit.tools.error_marks import write_output
from agentkit.tools.tool import Tool, declare_tool

__all__ = ["BlockText", "CALL_TYPES", "ConvertedMessages", "adapt_message", "convert_messages", "convert_tools"]

_LONGEST_TOKEN: Final = 200
"""Maximum length of the first part of a control token that is split between two texts, in characters."""

_FURTHER_CALL: Final = "further tool_use"
"""Type in a `BlockText` of a tool call that follows another tool call of the same message."""
CALL_TYPES: Final = frozenset({"tool_use", _FURTHER_CALL})
"""Types of tool calls in a `BlockText`."""

BlockText: TypeAlias = tuple[BlockPath, str, str]
"""Path of a block, its text and its type."""


@dataclass(slots=True)
class ConvertedMessages:
    """Messages as dicts for templates, and the data that locates their content in the rendered text.

    Attributes:
        messages: The messages.
        texts: Texts of the blocks, in order.
        media: Media blocks in order, each with its part in `messages`.
        omitted: Blocks that the template cannot write, and tool calls whose `raw_input` it cannot write.
    """

    messages: list[dict[str, Any]]
    texts: list[BlockText]
    media: list[tuple[MediaBlock, dict[str, Any]]]
    omitted: list[OmittedBlock]


def convert_messages(
    msgs: Iterable[Msg],
    separator: str = "\n",
    protect: Callable[[str, str], str] | None = None,
    media_kinds: Collection[str] = ("image", "audio", "video"),
) -> ConvertedMessages:
    """Converts messages to dicts.

    Each tool result becomes a message with the role `tool`. Content without media becomes one string.

    Args:
        msgs: The conversation.
        separator: Text between two text blocks of a message.
        protect: Function that takes a text of a user, a tool result or a name, and the place of the text. The
            function returns the text for the template, or raises an error. None means that no text is changed.
        media_kinds: Kinds of media for which the template has a placeholder. Other media are omitted.
    """
    converted = ConvertedMessages([], [], [], [])
    messages, texts = converted.messages, converted.texts
    for index, msg in enumerate(msgs):
        content, role, name = msg.content, msg.role, msg.name
        if not isinstance(content, str):
            _MessageConverter(converted, msg, index, separator, protect, media_kinds).convert(content)
            continue
        if role == "user" and protect:
            content = protect(content, format_place((index, 0)))
        message = {"role": role, "content": content}
        if name != role and name:
            message["name"] = protect(name, f"msgs[{index}].name") if protect else name
        messages.append(message)
        texts.append(((index, 0), content, "text"))
    return converted


@dataclass(slots=True)
class _MessageConverter:
    """Converter of one message whose content is a list of blocks.

    Attributes:
        parts: Content of the message.
        has_media: True if one of the parts is a media item.
    """

    converted: ConvertedMessages
    msg: Msg
    index: int
    separator: str
    protect: Callable[[str, str], str] | None
    media_kinds: Collection[str]
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    thinking: list[str] = field(default_factory=list[str])
    calls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    has_media: bool = False

    def convert(self, blocks: Sequence[Block]) -> None:
        needs_message = not blocks
        for number, block in enumerate(blocks):
            path = (self.index, number)
            match block.type:
                case "tool_result":
                    if needs_message:
                        self._add_message()
                    self._add_result(block, path)
                    needs_message = False
                    continue
                case "text":
                    self._add_text(
                        self._protect(block.text, path) if self.msg.role == "user" else block.text, path
                    )
                case "thinking":
                    self.thinking.append(block.thinking)
                    self.converted.texts.append((path, block.thinking, block.type))
                case "tool_use":
                    if block.raw_is_broken:
                        self._omit(path, "`raw_input` omitted: it is not the JSON text of `input`")
                    function = {"name": block.name, "arguments": block.copy_input()}
                    type_ = _FURTHER_CALL if self.calls else block.type
                    self.calls.append({"type": "function", "id": block.id, "function": function})
                    self.converted.texts.append((path, block.name, type_))
                case "image" | "audio" | "video" | "document":
                    self._add_media(block, path)
                case "opaque" | "invalid":
                    self._omit(path, f"a chat template cannot write a block of the type {block.type}")
                case _:
                    assert_never(block)
            needs_message = True
        if needs_message:
            self._add_message()

    def _add_message(self) -> None:
        """Adds a message with the blocks since the last tool result."""
        role = "assistant" if self.calls else self.msg.role
        message: dict[str, Any] = {"role": role, "content": self._take_content()}
        if (name := self.msg.name) not in ("", role):
            message["name"] = self.protect(name, f"msgs[{self.index}].name") if self.protect else name
        if self.thinking:
            message["reasoning_content"] = "\n".join(self.thinking)
        if self.calls:
            message["tool_calls"] = self.calls
        self.converted.messages.append(message)
        self.thinking, self.calls = [], []

    def _take_content(self) -> str | list[dict[str, Any]]:
        parts, has_media = self.parts, self.has_media
        self.parts, self.has_media = [], False
        return parts if has_media else self.separator.join([part["text"] for part in parts])

    def _add_result(self, block: ToolResultBlock, path: BlockPath) -> None:
        def add(item: Block) -> None:
            if isinstance(item, TextBlock):
                self._add_text(self._protect(item.text, path), path, block.type)
            elif isinstance(item, MediaBlock):
                self._add_media(item, path)
            else:
                self._omit(path, f"a chat template cannot write a block of the type {item.type}")

        output = write_output(block, add)
        if isinstance(output, str):
            self._add_text(self._protect(output, path), path, block.type)
        message = {"role": "tool", "content": self._take_content(), "tool_call_id": block.id}
        if name := self._protect(block.name, path):
            message["name"] = name
        self.converted.messages.append(message)

    def _protect(self, text: str, path: BlockPath) -> str:
        return self.protect(text, format_place(path)) if self.protect else text

    def _add_text(self, text: str, path: BlockPath, type: str = "text") -> None:
        if self.protect and self.msg.role == "user" and not self.separator:
            earlier = "".join([part.get("text", "") for part in self.parts])[-_LONGEST_TOKEN:]
            if self._protect(earlier + text, path) != earlier + text:  # the joined texts contain a control token
                text = f" {text}"
        self.parts.append({"type": "text", "text": text})
        self.converted.texts.append((path, text, type))

    def _add_media(self, block: MediaBlock, path: BlockPath) -> None:
        if block.type not in self.media_kinds:
            self._omit(path, f"the chat template has no placeholder for {block.type} blocks")
            return
        part = {"type": block.type}
        self.parts.append(part)
        self.converted.media.append((block, part))
        self.has_media = True

    def _omit(self, path: BlockPath, reason: str) -> None:
        self.converted.omitted.append(OmittedBlock(path, reason))


def adapt_message(message: Mapping[str, Any], needs_parts: bool, needs_text_arguments: bool) -> dict[str, Any]:
    """Returns a copy of a message whose values have the types that some templates require.

    Args:
        message: Message in the format of `convert_messages`.
        needs_parts: True to convert string content to a list of one part, and an empty string to an empty list.
        needs_text_arguments: True to convert the arguments of tool calls to JSON text.
    """
    adapted = dict(message)
    if needs_parts and isinstance(message["content"], str):
        adapted["content"] = [{"type": "text", "text": message["content"]}] if message["content"] else []
    if needs_text_arguments and "tool_calls" in message:
        adapted["tool_calls"] = [_convert_arguments(call) for call in message["tool_calls"]]
    return adapted


def _convert_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = json.dumps(function["arguments"], ensure_ascii=False)
    return {**call, "function": {**function, "arguments": arguments}}


def convert_tools(tools: Iterable[Tool]) -> list[dict[str, Any]] | None:
    """Returns the declarations of tools as templates read them. Returns None if there are no tools.

    The schemas in the declarations are not copied, because templates cannot change values.
    """
    functions = [
        {"type": "function", "function": {**declare_tool(tool, None), "parameters": tool.parameters}}
        for tool in tools
    ]
    return functions or None
