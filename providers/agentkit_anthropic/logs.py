"""Anthropic's own messages, or a whole request, as messages (SDK: MessageCreateParams)."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

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
    check_log_request,
    describe_log_format,
    make_json_safe,
    read_arguments,
)
from agentkit_anthropic._parts import carried, content_text, search_text, unmarked

__all__ = ["load_native"]


def load_native(found: object) -> list[Msg]:
    """A conversation from its messages, or from a request: the arguments of `messages.create`, or its JSON body.

    SDK objects may stand anywhere in it. The system prompt comes first; results become messages of their own,
    under the names of their calls; what cannot be read is kept as InvalidBlock. Cache markers are left off.
    Raises MessageError for what is no conversation of Anthropic's.
    """
    given: Any = make_json_safe(found, "log")
    request: dict[str, Any] = {"messages": given} if isinstance(given, list) else as_object(given)
    messages = request.get("messages")
    if not isinstance(messages, list):
        raise MessageError("messages", "expected a list of messages", describe_log_format(cast("object", given)))
    check_log_request(request, ("messages", "system"))
    log = _Log()
    loaded = [msg for msg in [log.system(request.get("system"), "system")] if msg]
    for number, message in enumerate(cast("list[Any]", messages)):
        loaded += log.message(message, f"messages[{number}]")
    return loaded


_BLOCKS = "Pass a string, or a list of content blocks."


class _Log:
    """One conversation as it is read."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # of the tools, by call
        self.role = "system"  # whose message is read

    def system(self, content: object, place: str) -> Msg | None:
        """A system prompt, or a system message in between; None for an empty one."""
        if isinstance(content, str):
            return Msg("system", content, "system") if content else None
        blocks = self._blocks(content, place)
        return Msg("system", blocks, "system") if blocks else None

    def message(self, found: object, place: str) -> Iterator[Msg]:
        """One message: its results, and what else it says, each in a message of its own."""
        message = as_object(found)
        role, content = message.get("role"), message.get("content")
        self.role = as_text(role)
        if role not in ("user", "assistant", "system"):
            expected = "expected 'user', 'assistant' or 'system'"
            raise MessageError(f"{place}.role", f"{expected}, got {role!r}", describe_log_format(found))
        check_log_message(message, place, ("content",), (), "anthropic", "type")
        if role == "system":
            told = self.system(content, f"{place}.content")
            if told:
                yield told
        elif isinstance(content, str):
            yield Msg(role, content, role)
        else:
            for results, blocks in _runs(self._blocks(content, f"{place}.content")):
                yield Msg("system", blocks, "system") if results else Msg(role, blocks, role)

    def _blocks(self, content: object, place: str) -> list[Block]:
        items = as_list(content)
        if content is not None and content is not items:
            raise MessageError(place, f"expected text or a list, got {type(content).__name__}", _BLOCKS)
        return [self._block(as_object(item), f"{place}[{at}]", item) for at, item in enumerate(items)]

    def _block(self, block: dict[str, Any], place: str, found: Any) -> Block:
        try:
            return self._read(block, place)
        except MessageError as error:
            return InvalidBlock(found, f"{error.place}: {error.reason}", place)

    def _read(self, block: dict[str, Any], place: str) -> Block:
        kind = as_text(block.get("type"))
        if kind == "tool_result":
            return self._result(block, place)
        if kind == "tool_use":
            self.names[as_text(block.get("id"))] = as_text(block.get("name"))
        if not kind:
            raise MessageError("type", "it is missing", "Give a content block.")
        reader = (_READERS if self.role == "assistant" else _USER_READERS).get(kind)
        if reader is None or _is_theirs(block):
            return OpaqueBlock("anthropic", unmarked(block))
        return reader(block)

    def _result(self, block: dict[str, Any], place: str) -> ToolResultBlock:
        id, content = as_text(block.get("tool_use_id")), block.get("content")
        if content is not None and not isinstance(content, str | list):
            raise MessageError("content", f"expected text or a list, got {type(content).__name__}", _BLOCKS)
        output: Any = content if isinstance(content, str) else ""
        if isinstance(content, list):
            output = tuple(
                self._item(as_object(item), f"{place}.content[{at}]", item)
                for at, item in enumerate(cast("list[Any]", content))
            )
        return ToolResultBlock(id, self.names.get(id, ""), output, block.get("is_error") is True)

    def _item(self, item: dict[str, Any], place: str, found: Any) -> Block:
        """What a result holds: text, media, and what only this wire knows (`tool_reference`, `browser_state`)."""
        read = self._block(item, place, found)
        if isinstance(read, TextBlock | ImageBlock | DocumentBlock | OpaqueBlock | InvalidBlock):
            return read
        return InvalidBlock(found, "no block that a result of ours can hold", place)


def _runs(blocks: list[Block]) -> list[tuple[bool, list[Block]]]:
    """The blocks in their order, parted where results begin or end."""
    runs: list[tuple[bool, list[Block]]] = []
    for block in blocks:
        is_result = isinstance(block, ToolResultBlock)
        if not runs or runs[-1][0] is not is_result:
            runs.append((is_result, []))
        runs[-1][1].append(block)
    return runs


# -- blocks ---------------------------------------------------------------------------------------------------


def _is_theirs(block: Mapping[str, Any]) -> bool:
    """Whether a medium is nowhere but at the provider, or holds more than one of ours can."""
    source = as_object(block.get("source"))
    kind = source.get("type")
    return kind == "file" or (kind == "content" and content_text(source) is None)


def _state(kind: str, block: Mapping[str, Any], **more: Any) -> OpaqueState | None:
    fields = {**carried(kind, block), **more}
    return OpaqueState("anthropic", fields=fields) if fields else None


def _text(block: Mapping[str, Any]) -> TextBlock:
    """Anybody's text. What it cites stays in the metadata: the API refuses it in any turn but the model's."""
    if not isinstance(block.get("text"), str):
        raise MessageError("text", "expected text", "Pass a string.")
    cited = as_list(block.get("citations"))
    return TextBlock(block["text"], metadata={"citations": cited} if cited else None)


def _said(block: Mapping[str, Any]) -> TextBlock:
    """A model's text, with what it cites."""
    return replace(_text(block), state=_state("text", block))


def _thinking(block: Mapping[str, Any]) -> ThinkingBlock:
    if not isinstance(block.get("thinking"), str | None):
        raise MessageError("thinking", f"expected text, got {type(block['thinking']).__name__}", "Pass a string.")
    signature = as_text(block.get("signature")) or None
    return ThinkingBlock(as_text(block.get("thinking")), OpaqueState("anthropic", signature=signature))


def _redacted(block: Mapping[str, Any]) -> ThinkingBlock:
    return ThinkingBlock("", OpaqueState("anthropic", redacted_data=as_text(block.get("data")) or None))


def _call(block: Mapping[str, Any]) -> ToolUseBlock:
    given, raw = read_arguments(block.get("input"))
    return ToolUseBlock(
        as_text(block.get("id")), as_text(block.get("name")), given, raw, _state("tool_use", block)
    )


def _image(block: Mapping[str, Any]) -> ImageBlock:
    return ImageBlock(_source(as_object(block.get("source"))), state=_state("image", block))


def _source(source: Mapping[str, Any], media_type: str | None = None) -> Source:
    kind = source.get("type")
    if kind == "base64":
        return Base64Source(as_text(source.get("media_type")), as_text(source.get("data")))
    if kind == "url":
        return URLSource(as_text(source.get("url")), media_type)
    raise MessageError("source", "it is no source that is known", "Give base64 data, or a URL.")


def _document(block: Mapping[str, Any]) -> DocumentBlock:
    """A document, with what it is told to be besides; one of text parts is their text."""
    source = as_object(block.get("source"))
    state = _state("document", block)
    if source.get("type") == "text":
        made: Source = _plain_text(as_text(source.get("data")))
    elif source.get("type") == "content":
        made = _plain_text(content_text(source) or "")
        state = _state("document", block, source=unmarked(source))
    else:
        made = _source(source, "application/pdf")  # SDK: URLPDFSourceParam
    return DocumentBlock(made, title=as_text(block.get("title")) or None, state=state)


def _plain_text(text: str) -> Base64Source:
    return Base64Source("text/plain", base64.b64encode(text.encode()).decode("ascii"))


def _search_result(block: Mapping[str, Any]) -> TextBlock:
    """A search result of the caller's as text, which other wires take too."""
    return TextBlock(search_text(block), state=OpaqueState("anthropic", fields={"search_result": unmarked(block)}))


_READERS: dict[str, Callable[[Mapping[str, Any]], Block]] = {
    "text": _said,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "image": _image,
    "document": _document,
}
_USER_READERS = {**_READERS, "text": _text, "search_result": _search_result}
