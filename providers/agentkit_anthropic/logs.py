"""Loader for messages and complete requests in Anthropic's format (Anthropic SDK: MessageCreateParams)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, cast

from agentkit.provider_kit import (
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    Source,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    as_list,
    as_object,
    as_text,
    check_log_message,
    describe_log_format,
    describe_value,
    ensure_json_safe,
    read_arguments,
    read_log_entries,
)
from agentkit_anthropic._parts import carried, content_text, remove_markers, search_text

__all__ = ["load_native"]


def load_native(log: object) -> list[Msg]:
    """Converts a log in Anthropic's format to messages.

    The system prompt becomes the first message. Tool results become separate messages with the tool names of their
    calls. An unreadable block becomes an InvalidBlock. Cache markers are omitted.

    Args:
        log: List of messages in Anthropic's format, the arguments of `messages.create`, or the JSON body of a
            request. SDK objects are allowed.

    Raises:
        MessageError: The value is not a log in Anthropic's format.

    """
    value = ensure_json_safe(log, "log")
    messages = read_log_entries(value, other_names=("system",), place="messages")
    loader = _Loader()
    loaded = loader.system(as_object(value).get("system"), "system")
    for number, message in enumerate(messages):
        loaded += loader.message(message, f"messages[{number}]")
    return loaded


_BLOCKS = "Pass a string, or a list of content blocks."


class _Loader:
    """Converter for one log. Stores the tool names of the calls, and the role of the current message."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # tool names by call id
        self.role = "system"  # role of the current message

    def system(self, content: object, place: str) -> list[Msg]:
        """Converts a system prompt or the content of a system message. Returns an empty list for empty content."""
        value = content if isinstance(content, str) else self._blocks(content, place)
        return [Msg("system", value, "system")] if value else []

    def message(self, native: object, place: str) -> Iterator[Msg]:
        """Converts one message of the log. Yields tool results as separate messages."""
        message = as_object(native)
        role, content = message.get("role"), message.get("content")
        self.role = as_text(role)
        if role not in ("user", "assistant", "system"):
            raise MessageError(
                f"{place}.role",
                f"expected 'user', 'assistant' or 'system', got {role!r}",
                describe_log_format(native),
            )
        check_log_message(message, place, ("content",), (), "anthropic", "type")
        if role == "system":
            yield from self.system(content, f"{place}.content")
        elif isinstance(content, str):
            yield Msg(role, content, role)
        else:
            blocks = self._blocks(content, f"{place}.content")
            for is_result, run in groupby(blocks, lambda block: isinstance(block, ToolResultBlock)):
                msg_role: Literal["user", "assistant", "system"] = "system" if is_result else role
                yield Msg(msg_role, [*run], msg_role)

    def _blocks(self, content: object, place: str) -> list[Block]:
        items = as_list(content)
        if content is not None and content is not items:
            raise MessageError(place, f"expected a string or a list, got {describe_value(content)}", _BLOCKS)
        return [self._block(as_object(item), f"{place}[{index}]", item) for index, item in enumerate(items)]

    def _block(self, block: dict[str, Any], place: str, native: Any) -> Block:
        try:
            return self._read(block, place)
        except MessageError as error:
            return InvalidBlock(native, f"{error.place}: {error.reason}", place)

    def _read(self, block: dict[str, Any], place: str) -> Block:
        block_type = as_text(block.get("type"))
        if block_type == "tool_result":
            return self._result(block, place)
        if block_type == "tool_use":
            self.names[as_text(block.get("id"))] = as_text(block.get("name"))
        if not block_type:
            reason = f"expected a string such as 'text', got {describe_value(block.get('type'))}"
            raise MessageError("type", reason, "Pass a content block with a type.")
        reader = (_READERS if self.role == "assistant" else _USER_READERS).get(block_type)
        if reader is None or _has_opaque_source(block):
            return OpaqueBlock("anthropic", remove_markers(block))
        return reader(block)

    def _result(self, block: dict[str, Any], place: str) -> ToolResultBlock:
        id, content = as_text(block.get("tool_use_id")), block.get("content")
        if content is not None and not isinstance(content, str | list):
            raise MessageError("content", f"expected a string or a list, got {describe_value(content)}", _BLOCKS)
        output: Any = content if isinstance(content, str) else ""
        if isinstance(content, list):
            output = tuple(
                self._item(as_object(item), f"{place}.content[{index}]", item)
                for index, item in enumerate(cast("list[Any]", content))
            )
        return ToolResultBlock(id, self.names.get(id, ""), output, block.get("is_error") is True)

    def _item(self, item: dict[str, Any], place: str, native: Any) -> Block:
        """Converts a block in a tool result: text, media, or an opaque block such as `tool_reference`."""
        block = self._block(item, place, native)
        if isinstance(block, TextBlock | ImageBlock | DocumentBlock | OpaqueBlock | InvalidBlock):
            return block
        reason = f"expected a type of block that a tool result can contain, got {block.type!r}"
        return InvalidBlock(native, reason, place)


def _has_opaque_source(block: Mapping[str, Any]) -> bool:
    """Returns True if the source of a block is a file id, or a list with a part that is not text."""
    source = as_object(block.get("source"))
    source_type = source.get("type")
    return source_type == "file" or (source_type == "content" and content_text(source) is None)


def _state(block_type: str, block: Mapping[str, Any], **more: Any) -> OpaqueState | None:
    fields = {**carried(block_type, block), **more}
    return OpaqueState("anthropic", fields=fields) if fields else None


def _text(block: Mapping[str, Any]) -> TextBlock:
    """Converts a text block. Citations become metadata, which requests never contain."""
    text = block.get("text")
    if not isinstance(text, str):
        reason = f"expected a string, got {describe_value(text)}"
        raise MessageError("text", reason, "Pass the text as a string.")
    citations = as_list(block.get("citations"))
    return TextBlock(text, metadata={"citations": citations} if citations else None)


def _assistant_text(block: Mapping[str, Any]) -> TextBlock:
    """Converts a text block of an assistant turn. The citations of the block are sent back in later requests."""
    return replace(_text(block), state=_state("text", block))


def _thinking(block: Mapping[str, Any]) -> ThinkingBlock:
    if not isinstance(block.get("thinking"), str | None):
        raise MessageError(
            "thinking", f"expected a string, got {describe_value(block['thinking'])}", "Pass the text as a string."
        )
    signature = as_text(block.get("signature")) or None
    return ThinkingBlock(as_text(block.get("thinking")), OpaqueState("anthropic", signature=signature))


def _redacted(block: Mapping[str, Any]) -> ThinkingBlock:
    return ThinkingBlock("", OpaqueState("anthropic", redacted_data=as_text(block.get("data")) or None))


def _call(block: Mapping[str, Any]) -> ToolUseBlock:
    arguments, raw = read_arguments(block.get("input"))
    return ToolUseBlock(
        as_text(block.get("id")), as_text(block.get("name")), arguments, raw, _state("tool_use", block)
    )


def _image(block: Mapping[str, Any]) -> ImageBlock:
    return ImageBlock(_source(as_object(block.get("source"))), state=_state("image", block))


def _source(source: Mapping[str, Any], media_type: str | None = None) -> Source:
    source_type = source.get("type")
    if source_type == "base64":
        return Base64Source(as_text(source.get("media_type")), as_text(source.get("data")))
    if source_type == "url":
        return URLSource(as_text(source.get("url")), media_type)
    reason = f"expected base64 data or a URL, got a source of the type {describe_value(source_type)}"
    raise MessageError("source", reason, "Pass a source of the type 'base64' or 'url'.")


def _document(block: Mapping[str, Any]) -> DocumentBlock:
    """Converts a document block. Joins the texts if the source of the block has several text parts."""
    source = as_object(block.get("source"))
    state = _state("document", block)
    if source.get("type") == "text":
        content: Source = _plain_text(as_text(source.get("data")))
    elif source.get("type") == "content":
        content = _plain_text(content_text(source) or "")
        state = _state("document", block, source=remove_markers(source))
    else:
        # The URL of a document always refers to a PDF file (Anthropic SDK: URLPDFSource).
        content = _source(source, "application/pdf")
    return DocumentBlock(content, title=as_text(block.get("title")) or None, state=state)


def _plain_text(text: str) -> Base64Source:
    return Base64Source("text/plain", base64.b64encode(text.encode()).decode("ascii"))


def _search_result(block: Mapping[str, Any]) -> TextBlock:
    """Converts a search result in a user message to text, because other providers have no such block."""
    return TextBlock(
        search_text(block), state=OpaqueState("anthropic", fields={"search_result": remove_markers(block)})
    )


_READERS: dict[str, Callable[[Mapping[str, Any]], Block]] = {
    "text": _assistant_text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "image": _image,
    "document": _document,
}
_USER_READERS = {**_READERS, "text": _text, "search_result": _search_result}
