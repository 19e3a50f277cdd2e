"""Content blocks of LangChain's messages: its own, and those of providers that it passes through."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text
from agentkit.logs.langchain.native_entries import read_native_entry
from agentkit.logs.langchain.reasoning import FOLLOWER
from agentkit.logs.langchain.server_tools import anthropic_block
from agentkit.messages.blocks import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    VideoBlock,
)
from agentkit.messages.sources import Base64Source, Source, URLSource, guess_media_type, source_from_url

__all__ = ["ISSUERS", "WIRES", "read_block", "unnumbered"]

Found: TypeAlias = Mapping[str, Any]

ISSUERS = {
    "anthropic": "anthropic",
    "google_genai": "gemini",
    "google_vertexai": "gemini",
    "openai": "openai",
    "azure_openai": "openai",
    "ollama": "ollama",
    "deepseek": "deepseek",
}
"""Who issued what a reply carries, by langchain's `response_metadata["model_provider"]`."""

WIRES = {"anthropic": "anthropic", "openai": "openai-responses"}
"""Whose content blocks langchain passes through as they are. (Google's parts have no type: it writes its own.)"""

_STANDARD = frozenset(
    {"server_tool_call", "server_tool_call_chunk", "server_tool_result", "tool_call_chunk", "invalid_tool_call"}
) | {"non_standard"}
"""Blocks in langchain's own words (langchain_core.messages.content), which no provider knows."""


def read_block(found: Any, provider: str, place: str) -> Block:
    """One item of a message's content. A block that neither we nor langchain's standard knows is opaque."""
    if isinstance(found, str):
        return TextBlock(found)
    block = unnumbered(found)
    kind = as_text(block.get("type"))
    reader = _READERS.get(kind)
    try:
        if reader is not None:
            return reader(block, provider, place)
    except MessageError as error:
        return InvalidBlock(found, f"{error.place}: {error.reason}", place)
    if not kind:
        return InvalidBlock(found, "it has no type", place)
    return OpaqueBlock("langchain" if kind in _STANDARD else WIRES.get(provider, "langchain"), block)


def unnumbered(found: object) -> dict[str, Any]:
    """A block without the numbers by which langchain joins the pieces of a stream, which no provider takes.

    (langchain-openai: `_pop_index_and_sub_index`)
    """
    block = {key: item for key, item in as_object(found).items() if key != "index"}
    if parts := as_list(block.get("summary")):
        block["summary"] = [unnumbered(part) or part for part in parts]
    return block


_PASSED_OVER = frozenset({"type", "cache_control"})


def _rest(block: Found, *known: str) -> dict[str, Any] | None:
    """What else a block says, as metadata."""
    return {key: item for key, item in block.items() if key not in _PASSED_OVER and key not in known} or None


def _said(found: object, where: str) -> str:
    if not isinstance(found, str):
        raise MessageError(where, "it is no text", "Give a text.")
    return found


def _text(block: Found, provider: str, place: str) -> TextBlock:
    signature = as_text(block.get("thought_signature") or as_object(block.get("extras")).get("signature"))
    state = OpaqueState("gemini", thought_signature=signature) if signature else None
    cited = as_list(block.get("annotations") or block.get("citations"))
    rest = _rest(block, "text", "annotations", "citations", "thought_signature") or {}
    metadata = {**rest, **({"citations": cited} if cited else {})} or None
    return TextBlock(_said(block.get("text"), "text"), state=state, metadata=metadata)


def _refusal(block: Found, provider: str, place: str) -> TextBlock:
    return TextBlock(as_text(block.get("refusal")), metadata={"refusal": True})


# -- thinking -------------------------------------------------------------------------------------------------


def _thinking(block: Found, provider: str, place: str) -> ThinkingBlock:
    """Anthropic's block, or Google's, which langchain calls the same."""
    state = _signed(ISSUERS.get(provider, "anthropic"), as_text(block.get("signature")))
    return ThinkingBlock(as_text(block.get("thinking")), state, metadata=_rest(block, "thinking", "signature"))


def _signed(issuer: str, signature: str) -> OpaqueState:
    """The state of a proof, under its issuer's name for it."""
    if issuer == "gemini":
        return OpaqueState(issuer, thought_signature=signature or None)
    return OpaqueState(issuer, signature=signature or None)


def _redacted(block: Found, provider: str, place: str) -> ThinkingBlock:
    return ThinkingBlock("", OpaqueState("anthropic", redacted_data=as_text(block.get("data")) or None))


def _reasoning(block: Found, provider: str, place: str) -> Block:
    """Langchain's standard block, or OpenAI's item, which has the same type."""
    if "summary" in block:
        item = {
            key: block[key] for key in ("type", "id", "summary", "content", "encrypted_content") if key in block
        }
        return read_native_entry("openai-responses", item, place, as_text(block.get(FOLLOWER)))
    extras = as_object(block.get("extras"))
    signature = as_text(extras.get("signature"))
    issuer = ISSUERS.get(provider, "anthropic" if signature else "")
    state = _signed(issuer, signature) if issuer else None
    return ThinkingBlock(as_text(block.get("reasoning")), state, metadata=_rest(block, "reasoning", "extras"))


def _reasoning_content(block: Found, provider: str, place: str) -> ThinkingBlock:
    """Bedrock's."""
    inner = as_object(block.get("reasoning_content"))
    signature = as_text(inner.get("signature")) or None
    return ThinkingBlock(as_text(inner.get("text")), OpaqueState("anthropic", signature=signature))


# -- media ----------------------------------------------------------------------------------------------------

_MEDIA: dict[str, type[ImageBlock | AudioBlock | VideoBlock | DocumentBlock]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
}
_SUPPOSED = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
_SOURCES = ("source_type", "data", "base64", "url", "source", "mime_type", "text")


def _medium(block: Found, provider: str, place: str) -> Block:
    """Langchain's blocks of both versions, and Anthropic's with their `source`."""
    kind = as_text(block.get("type"))
    if uri := as_text(block.get("file_uri")):
        named = {"file_uri": uri, "mime_type": block.get("mime_type")}  # Google's: its own files are nobody else's
        beside = {key: block[key] for key in ("video_metadata", "media_resolution") if block.get(key)}
        return read_native_entry("gemini", {"file_data": named, **beside}, place)
    source = _source(block, _SUPPOSED.get(kind, "application/octet-stream"))
    made = _MEDIA.get(kind) or _MEDIA.get(_family(source), DocumentBlock)
    rest = _rest(block, *_SOURCES, "title")
    if made is DocumentBlock:
        inner = as_object(block.get("extras")) or as_object(block.get("metadata"))
        title = as_text(block.get("title") or block.get("filename") or inner.get("filename")) or None
        return DocumentBlock(source, title=title, metadata=rest)
    return made(source, metadata=rest)


def _family(source: Source) -> str:
    return (source.media_type or "").partition("/")[0]


def _source(block: Found, supposed: str) -> Source:
    """`base64` or `url` (1.x); `source_type` with `data`, `url` or `text` (0.x); Anthropic's `source`."""
    inner = as_object(block.get("source")) or block
    media_type = as_text(inner.get("mime_type") or inner.get("media_type")) or None
    text, url = inner.get("text"), as_text(inner.get("url"))
    data = as_text(inner.get("base64") or inner.get("data"))
    if data and inner.get("type") != "text" and inner.get("source_type") != "text":
        return Base64Source(media_type or supposed, data)
    if isinstance(text, str) or data:
        return _plain(text if isinstance(text, str) else data)
    found = source_from_url(url, media_type) if url else None
    if found is None:
        what = "a file id, which no other place knows" if inner.get("file_id") or inner.get("id") else "missing"
        raise MessageError("source", f"it is {what}", "Give base64 data, or a URL.")
    return found


def _plain(text: str) -> Base64Source:
    return Base64Source("text/plain", base64.b64encode(text.encode()).decode("ascii"))


def _text_document(block: Found, provider: str, place: str) -> DocumentBlock:
    source = _source(block, "text/plain")
    return DocumentBlock(
        source, title=as_text(block.get("title")) or None, metadata=_rest(block, *_SOURCES, "title")
    )


def _image_url(block: Found, provider: str, place: str) -> ImageBlock:
    found = block.get("image_url")
    inner = as_object(found)
    source = source_from_url(inner.get("url") if inner else found)
    if source is None:
        raise MessageError("image_url", "there is no URL", "Give a URL, or a data URL.")
    detail = {"detail": inner["detail"]} if inner.get("detail") else {}
    return ImageBlock(source, metadata={**detail, **(_rest(block, "image_url") or {})} or None)


_SOUNDS = {"mp3": "audio/mpeg", "wav": "audio/wav"}


def _input_audio(block: Found, provider: str, place: str) -> AudioBlock:
    inner = as_object(block.get("input_audio"))
    named = as_text(inner.get("format")) or "wav"
    data = _said(inner.get("data"), "input_audio.data")
    return AudioBlock(Base64Source(_SOUNDS.get(named, f"audio/{named}"), data))


def _file(block: Found, provider: str, place: str) -> Block:
    """Langchain's file, or OpenAI's, which holds another object."""
    inner = as_object(block.get("file"))
    if not inner:
        return _medium(block, provider, place)
    title, data = as_text(inner.get("filename")) or None, as_text(inner.get("file_data"))
    if not data:
        raise MessageError("file", "it is a file id, which no other place knows", "Give the data.")
    supposed = guess_media_type(title or "") or "application/pdf"
    source = source_from_url(data) if data.startswith("data:") else Base64Source(supposed, data)
    return DocumentBlock(source or URLSource(data), title=title)


def _document(block: Found, provider: str, place: str) -> Block:
    return _medium({**block, "type": "file"}, provider, place)


# -- the rest -------------------------------------------------------------------------------------------------


def _tool_result(block: Found, provider: str, place: str) -> ToolResultBlock:
    """Anthropic's, inside a human message."""
    content = block.get("content")
    id, is_error = as_text(block.get("tool_use_id")), block.get("is_error") is True
    if isinstance(content, str):
        return ToolResultBlock(id, "", content, is_error)
    found: list[Any] = as_list(content)
    if content is not None and content is not found:
        unread = InvalidBlock(content, f"expected text or a list of blocks, got {type(content).__name__}", place)
        return ToolResultBlock(id, "", (unread,), is_error)
    items: Any = tuple(_item(one, provider, f"{place}.content[{at}]") for at, one in enumerate(found))
    return ToolResultBlock(id, "", items, is_error)


def _item(found: Any, provider: str, place: str) -> Block:
    block = read_block(found, provider, place)
    return block if _fits(block) else InvalidBlock(found, f"a result cannot hold a {block.type} block", place)


def _fits(block: Block) -> bool:
    kinds = TextBlock | ImageBlock | AudioBlock | VideoBlock | DocumentBlock | OpaqueBlock | InvalidBlock
    return isinstance(block, kinds)


def _server_tool(block: Found, provider: str, place: str) -> Block:
    """What a provider's own tool was asked and found."""
    native = anthropic_block(block) if provider == "anthropic" else None
    return OpaqueBlock("langchain", {**block}) if native is None else OpaqueBlock("anthropic", native)


def _non_standard(block: Found, provider: str, place: str) -> Block:
    """A provider's own block in langchain's wrapping."""
    value = block.get("value")
    if isinstance(value, dict) and "type" in value:
        return read_block(value, provider, place)
    return OpaqueBlock("langchain", {**block})


_READERS: dict[str, Callable[[Found, str, str], Block]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "reasoning": _reasoning,
    "reasoning_content": _reasoning_content,
    "image": _medium,
    "audio": _medium,
    "video": _medium,
    "media": _medium,
    "file": _file,
    "document": _document,
    "text-plain": _text_document,
    "image_url": _image_url,
    "input_audio": _input_audio,
    "tool_result": _tool_result,
    "server_tool_call": _server_tool,
    "server_tool_result": _server_tool,
    "non_standard": _non_standard,
}
