"""Loader for logged messages and requests of Ollama (Ollama source: api/types.go, `Message`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

from agentkit.provider_kit import (
    Block,
    InvalidBlock,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_list,
    as_text,
    check_log_message,
    derive_call_id,
    describe_value,
    ensure_json_safe,
    parse_function_call,
    read_log_entries,
    split_error_mark,
)
from agentkit_ollama._reply_fields import unwrap_sdk_object
from agentkit_ollama.replies import parse_media

__all__ = ["load_native"]

_KNOWN_KEYS: Final = frozenset(
    {"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"}
)
_CONTENT: Final = ("content", "thinking", "images", "tool_calls")


def load_native(log: object) -> list[Msg]:
    """Loads a conversation from a list of messages, one message, or a request.

    A request is a dict with the arguments of `chat`, or the JSON body of an HTTP request. The log can contain SDK
    objects. The loader opens no files, even if the data of an image is a path.

    A result without an id is assigned to the first call of the same tool that has no result yet. Images and audio
    replace the marks that the formatter wrote into the text, such as `[image 1]`. If a mark is missing, all images
    and audio are placed before the text. Unknown keys of a message become metadata. Unreadable parts become
    InvalidBlocks.

    Raises:
        MessageError: The value is not a conversation in Ollama's format.
    """
    messages = read_log_entries(ensure_json_safe(log, "log", unwrap_sdk_object), place="messages")
    loader = _Loader()
    return [loader.load_message(item, f"messages[{index}]") for index, item in enumerate(messages)]


class _Loader:
    """Loader for one conversation.

    Attributes:
        open_calls: Those tool calls of the latest message with tool calls that have no result yet.
    """

    def __init__(self) -> None:
        self.open_calls: list[ToolUseBlock] = []

    def load_message(self, value: Any, place: str) -> Msg:
        """Converts one message of the log."""
        if not isinstance(value, dict):
            reason = f"expected a message object, got {describe_value(value)}"
            return Msg("user", (InvalidBlock(value, reason, place),), "user")
        message = cast("dict[str, Any]", value)
        check_log_message(message, place, _CONTENT, (), "ollama", "")
        metadata = {key: item for key, item in message.items() if key not in _KNOWN_KEYS} or None
        role = as_text(message.get("role")).lower()
        if role == "tool":
            return Msg("system", (self._result(message, place),), "system", metadata=metadata)
        thinking = message.get("thinking")
        thoughts = [ThinkingBlock(thinking, OpaqueState("ollama"))] if isinstance(thinking, str) else []
        blocks = (*thoughts, *_parse_content(message, place), *self._calls(message, place))
        content: Any = blocks[0].text if len(blocks) == 1 and isinstance(blocks[0], TextBlock) else blocks
        # The server accepts any role. A message with an unknown role becomes a user message.
        msg_role: Any = role if role in ("system", "user", "assistant") else "user"
        return Msg(role or "user", content, msg_role, metadata=metadata)

    def _calls(self, message: dict[str, Any], place: str) -> Iterator[Block]:
        calls = as_list(message.get("tool_calls"))
        if calls:
            self.open_calls = []
        for index, call in enumerate(calls):
            block = parse_function_call(call, f"{place}.tool_calls[{index}]")
            if isinstance(block, ToolUseBlock):
                self.open_calls.append(block)
            yield block

    def _result(self, message: dict[str, Any], place: str) -> ToolResultBlock:
        id, name = as_text(message.get("tool_call_id")), as_text(message.get("tool_name") or message.get("name"))
        call = self._find_call(id, name)
        text, is_error = split_error_mark(as_text(message.get("content")))
        media = [*_invalid_content(message.get("content"), place), *_parse_images(message, place)]
        output: Any = (*([TextBlock(text)] if text else []), *media) if media else text
        new_id = derive_call_id(f"{place}{name}")
        return ToolResultBlock(
            id or (call.id if call else new_id), name or (call.name if call else ""), output, is_error
        )

    def _find_call(self, id: str, name: str) -> ToolUseBlock | None:
        """Removes the call of a tool result from `open_calls` and returns it. Returns None if no call matches.

        A result with an id matches the call with this id. A result without an id matches the first call of its
        tool, or the first call if the result has no tool name.
        """
        for call in self.open_calls:
            if (call.id == id) if id else (not name or call.name == name):
                self.open_calls.remove(call)
                return call
        return None


def _parse_content(message: dict[str, Any], place: str) -> Iterator[Block]:
    """Yields the text and media blocks of a message.

    Each media item replaces its mark, such as `[image 1]`. A mark is a separate line of the text.
    """
    content = message.get("content")
    yield from _invalid_content(content, place)
    yield from _place_media(as_text(content), _parse_images(message, place))


def _invalid_content(content: object, place: str) -> Iterator[Block]:
    """Yields an InvalidBlock if the content is neither a string nor None."""
    if content is not None and not isinstance(content, str):
        yield InvalidBlock(content, f"expected a string, got {describe_value(content)}", f"{place}.content")


def _place_media(text: str, media: list[Block]) -> list[Block]:
    blocks: list[Block] = []
    remaining = f"\n{text}\n"
    for number, block in enumerate(media, 1):
        head, mark, tail = remaining.partition(f"\n[{block.type} {number}]\n")
        if not mark:
            return [*media, *([TextBlock(text)] if text else [])]
        blocks += [*_text(head), block]
        remaining = f"\n{tail}"
    return [*blocks, *_text(remaining.removesuffix("\n"))]


def _text(piece: str) -> list[Block]:
    """Returns a list with a block for the text between two marks. The list is empty if the text is empty."""
    text = piece.removeprefix("\n")
    return [TextBlock(text)] if text else []


def _parse_images(message: dict[str, Any], place: str) -> list[Block]:
    images = enumerate(as_list(message.get("images")))
    return [_parse_image(item, f"{place}.images[{index}]") for index, item in images]


def _parse_image(item: Any, place: str) -> Block:
    if block := parse_media(item):
        return block
    return InvalidBlock(item, f"expected base64 data of an image or of audio, got {describe_value(item)}", place)
