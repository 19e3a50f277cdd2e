"""Readers that convert the content blocks of LangChain messages to message blocks."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text
from agentkit.logs.langchain.reasoning import FOLLOWING_ID
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
    ToolUseBlock,
    VideoBlock,
)
from agentkit.messages.media_types import guess_media_type
from agentkit.messages.sources import Base64Source, Source, URLSource, source_from_url
from agentkit.models.registry import load_provider

__all__ = ["ISSUERS", "read_block", "read_native_entry", "strip_indexes"]

_Object: TypeAlias = dict[str, Any]
_Reader: TypeAlias = Callable[[_Object, str, str], Block]
"""Function that converts a content block. Takes the block, LangChain's provider name and the block's place."""

ISSUERS: Final = {
    "anthropic": "anthropic",
    "google_genai": "gemini",
    "google_vertexai": "gemini",
    "openai": "openai",
    "azure_openai": "openai",
    "ollama": "ollama",
    "deepseek": "deepseek",
}
"""Issuers of opaque state, by the provider name in LangChain's `response_metadata["model_provider"]`."""

_WIRES: Final = {"anthropic": "anthropic", "openai": "openai-responses"}
"""Wire formats by LangChain's provider name. LangChain stores unknown blocks of these providers unchanged."""

_UNSENDABLE: Final = frozenset({"server_tool_call_chunk", "tool_call_chunk", "invalid_tool_call"})
"""Block types that LangChain defines but no provider accepts (langchain_core.messages.content)."""


def read_block(item: Any, provider: str, place: str) -> Block:
    """Converts one item of a LangChain message's content to a block.

    An unreadable item becomes an `InvalidBlock`. An item of an unknown type becomes an `OpaqueBlock`.
    """
    if isinstance(item, str):
        return TextBlock(item)
    block = strip_indexes(item)
    block_type = as_text(block.get("type"))
    if not block_type:
        return InvalidBlock(item, "expected a block with a `type`", place)
    reader = _READERS.get(block_type)
    if reader is None:
        return OpaqueBlock("langchain" if block_type in _UNSENDABLE else _WIRES.get(provider, "langchain"), block)
    try:
        return reader(block, provider, place)
    except MessageError as error:
        return InvalidBlock(item, f"{error.place}: {error.reason}", place)


def strip_indexes(item: object) -> _Object:
    """Removes the stream index from an object. Returns an empty dict if the value is not an object.

    LangChain uses the index to join the pieces of a stream. No provider accepts it (langchain-openai:
    `_pop_index_and_sub_index`).
    """
    block = {key: value for key, value in as_object(item).items() if key != "index"}
    if parts := as_list(block.get("summary")):
        block["summary"] = [strip_indexes(part) or part for part in parts]
    return block


def read_native_entry(wire: str, entry: Any, place: str, following_id: str = "") -> Block:
    """Loads a message or item in a provider's wire format as a block, with the loader of this provider.

    An unreadable entry becomes an `InvalidBlock`.

    Args:
        wire: Name of the provider.
        entry: Message or item in the provider's wire format.
        place: Place of the entry in LangChain's log.
        following_id: Id of the next item. OpenAI accepts a reasoning item only before this next item. Empty if
            there is no such item.
    """
    load = load_provider(wire).load_native
    entries = [entry, {"type": "item_reference", "id": following_id}] if following_id else [entry]
    try:
        block = next(iter(load(entries)[0].blocks if load else ()), None)
    except MessageError as error:
        return InvalidBlock(entry, f"{error.place}: {error.reason}", place)
    if block is None or isinstance(block, InvalidBlock):
        return InvalidBlock(entry, block.reason if block else "the entry has no content", place)
    return block


def _metadata(block: _Object, *read: str) -> _Object | None:
    ignored = {"type", "cache_control", *read}
    return {key: value for key, value in block.items() if key not in ignored} or None


def _require_text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise MessageError(place, "expected text", "Pass a string.")
    return value


# -- text and thinking --------------------------------------------------------------------------------------------


def _text(block: _Object, provider: str, place: str) -> TextBlock:
    signature = as_text(block.get("thought_signature") or as_object(block.get("extras")).get("signature"))
    state = OpaqueState("gemini", thought_signature=signature) if signature else None
    metadata = _metadata(block, "text", "annotations", "citations", "thought_signature") or {}
    if citations := as_list(block.get("annotations") or block.get("citations")):
        metadata["citations"] = citations
    return TextBlock(_require_text(block.get("text"), "text"), state=state, metadata=metadata or None)


def _refusal(block: _Object, provider: str, place: str) -> TextBlock:
    return TextBlock(as_text(block.get("refusal")), metadata={"refusal": True})


def _signed_state(issuer: str, signature: str) -> OpaqueState:
    if issuer == "gemini":
        return OpaqueState(issuer, thought_signature=signature or None)
    return OpaqueState(issuer, signature=signature or None)


def _thinking(block: _Object, provider: str, place: str) -> ThinkingBlock:
    """Reads a thinking block of Anthropic or Google. LangChain uses the same block type for both."""
    state = _signed_state(ISSUERS.get(provider, "anthropic"), as_text(block.get("signature")))
    return ThinkingBlock(as_text(block.get("thinking")), state, metadata=_metadata(block, "thinking", "signature"))


def _redacted_thinking(block: _Object, provider: str, place: str) -> ThinkingBlock:
    return ThinkingBlock("", OpaqueState("anthropic", redacted_data=as_text(block.get("data")) or None))


def _bedrock_reasoning(block: _Object, provider: str, place: str) -> ThinkingBlock:
    inner = as_object(block.get("reasoning_content"))
    return ThinkingBlock(as_text(inner.get("text")), _signed_state("anthropic", as_text(inner.get("signature"))))


_REASONING_KEYS: Final = ("type", "id", "summary", "content", "encrypted_content")


def _reasoning(block: _Object, provider: str, place: str) -> Block:
    """Reads a `reasoning` block, which is in LangChain's standard format or is a reasoning item of OpenAI."""
    if "summary" in block:
        item = {key: block[key] for key in _REASONING_KEYS if key in block}
        return read_native_entry("openai-responses", item, place, as_text(block.get(FOLLOWING_ID)))
    signature = as_text(as_object(block.get("extras")).get("signature"))
    issuer = ISSUERS.get(provider, "anthropic" if signature else "")
    state = _signed_state(issuer, signature) if issuer else None
    return ThinkingBlock(as_text(block.get("reasoning")), state, metadata=_metadata(block, "reasoning", "extras"))


# -- media --------------------------------------------------------------------------------------------------------

_MEDIA_BLOCKS: Final[dict[str, type[ImageBlock | AudioBlock | VideoBlock | DocumentBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
}
_DEFAULT_TYPES: Final = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/pdf",
    "document": "application/pdf",
    "text-plain": "text/plain",
}
_SOURCE_KEYS: Final = ("source_type", "data", "base64", "url", "source", "mime_type", "text", "title")


def _media(block: _Object, provider: str, place: str) -> Block:
    """Reads a media block in the format of LangChain 0.x or 1.x, or in Anthropic's format with a `source`."""
    block_type = as_text(block.get("type"))
    if block_type != "text-plain" and (uri := as_text(block.get("file_uri"))):  # Google's format
        data = {"file_uri": uri, "mime_type": block.get("mime_type")}
        options = {key: block[key] for key in ("video_metadata", "media_resolution") if block.get(key)}
        return read_native_entry("gemini", {"file_data": data, **options}, place)
    source = _source(block, _DEFAULT_TYPES.get(block_type, "application/octet-stream"))
    metadata = _metadata(block, *_SOURCE_KEYS)
    if block_type == "text-plain":
        return DocumentBlock(source, title=as_text(block.get("title")) or None, metadata=metadata)
    media_kind = (source.media_type or "").partition("/")[0]
    block_class = _MEDIA_BLOCKS.get(block_type) or _MEDIA_BLOCKS.get(media_kind, DocumentBlock)
    if block_class is not DocumentBlock:
        return block_class(source, metadata=metadata)
    inner = as_object(block.get("extras")) or as_object(block.get("metadata"))
    title = as_text(block.get("title") or block.get("filename") or inner.get("filename")) or None
    return DocumentBlock(source, title=title, metadata=metadata)


def _source(block: _Object, default_type: str) -> Source:
    """Reads the source of a media block.

    LangChain 1.x stores the source under `base64` or `url`. In LangChain 0.x, `source_type` names the key of the
    source. Anthropic stores the source as an object under `source`.
    """
    inner = as_object(block.get("source")) or block
    media_type = as_text(inner.get("mime_type") or inner.get("media_type")) or None
    data, text = as_text(inner.get("base64") or inner.get("data")), inner.get("text")
    if data and "text" not in (inner.get("type"), inner.get("source_type")):
        return Base64Source(media_type or default_type, data)
    if isinstance(text, str) or data:
        content = text if isinstance(text, str) else data
        return Base64Source("text/plain", base64.b64encode(content.encode()).decode("ascii"))
    url = as_text(inner.get("url"))
    if source := source_from_url(url, media_type) if url else None:
        return source
    is_file = inner.get("file_id") or inner.get("id")
    reason = "expected data or a URL, got a file id of the provider" if is_file else "expected data or a URL"
    raise MessageError("source", reason, "Pass base64 data or a URL.")


def _image_url(block: _Object, provider: str, place: str) -> ImageBlock:
    inner = as_object(block.get("image_url"))
    source = source_from_url(inner.get("url") if inner else block.get("image_url"))
    if source is None:
        raise MessageError("image_url", "expected a URL", "Pass a URL or a data URL.")
    detail = {"detail": inner["detail"]} if inner.get("detail") else {}
    return ImageBlock(source, metadata={**detail, **(_metadata(block, "image_url") or {})} or None)


def _input_audio(block: _Object, provider: str, place: str) -> AudioBlock:
    inner = as_object(block.get("input_audio"))
    audio_format = as_text(inner.get("format")) or "wav"
    media_type = "audio/mpeg" if audio_format == "mp3" else f"audio/{audio_format}"
    return AudioBlock(Base64Source(media_type, _require_text(inner.get("data"), "input_audio.data")))


def _file(block: _Object, provider: str, place: str) -> Block:
    """Reads a file in LangChain's format, or in OpenAI's format with an object under `file`."""
    inner = as_object(block.get("file"))
    if not inner:
        return _media(block, provider, place)
    title, data = as_text(inner.get("filename")) or None, as_text(inner.get("file_data"))
    if not data:
        raise MessageError("file", "expected data, got a file id of the provider", "Pass the data.")
    if data.startswith("data:"):
        return DocumentBlock(source_from_url(data) or URLSource(data), title=title)
    return DocumentBlock(Base64Source(guess_media_type(title or "") or "application/pdf", data), title=title)


# -- tools --------------------------------------------------------------------------------------------------------

_OUTSIDE_RESULTS: Final = ThinkingBlock | ToolUseBlock | ToolResultBlock


def _tool_result(block: _Object, provider: str, place: str) -> ToolResultBlock:
    """Reads a tool result in Anthropic's format. LangChain allows such a result in a `HumanMessage`."""
    call_id, is_error = as_text(block.get("tool_use_id")), block.get("is_error") is True
    content: object = block.get("content")
    if isinstance(content, str):
        return ToolResultBlock(call_id, "", content, is_error)
    if content is not None and not isinstance(content, list):
        reason = f"expected text or a list of blocks, got {type(content).__name__}"
        return ToolResultBlock(call_id, "", (InvalidBlock(content, reason, place),), is_error)
    items = [
        _result_item(item, provider, f"{place}.content[{index}]")
        for index, item in enumerate(as_list(cast("object", content)))
    ]
    return ToolResultBlock(call_id, "", tuple(items), is_error)


def _result_item(item: Any, provider: str, place: str) -> Any:
    block = read_block(item, provider, place)
    if isinstance(block, _OUTSIDE_RESULTS):
        return InvalidBlock(item, f"a result cannot contain a {block.type} block", place)
    return block


def _server_tool(block: _Object, provider: str, place: str) -> OpaqueBlock:
    """Reads the call or the result of a tool that the provider ran by itself, as an opaque block.

    Anthropic's blocks are converted to Anthropic's wire format, as `_convert_from_v1_to_anthropic` of
    langchain-anthropic does. Blocks of other providers stay in LangChain's format, because LangChain drops fields
    that their wire formats require.
    """
    extras = as_object(block.get("extras"))
    if provider == "anthropic" and block["type"] == "server_tool_call":
        return OpaqueBlock("anthropic", _server_tool_call(block, extras))
    result_type = as_text(extras.get("block_type"))
    if provider != "anthropic" or not result_type or "output" not in block:
        return OpaqueBlock("langchain", block)
    flag = {"is_error": block.get("status") == "error"} if result_type == "mcp_tool_result" else {}
    result = {"type": result_type, "tool_use_id": block.get("tool_call_id"), "content": block["output"]}
    return OpaqueBlock("anthropic", {**result, **flag})


def _server_tool_call(block: _Object, extras: _Object) -> _Object:
    name = block.get("name")
    call = {"type": "server_tool_use", "id": block.get("id"), "name": name, "input": block.get("args")}
    if name == "code_interpreter":
        return {**call, "name": "code_execution"}
    if name == "remote_mcp":
        server = {"server_name": extras["server_name"]} if "server_name" in extras else {}
        return {**call, "type": "mcp_tool_use", "name": extras.get("tool_name"), **server}
    return call


def _non_standard(block: _Object, provider: str, place: str) -> Block:
    """Reads a provider's block that LangChain wrapped in a `non_standard` block."""
    value = block.get("value")
    is_block = isinstance(value, dict) and "type" in value
    return read_block(value, provider, place) if is_block else OpaqueBlock("langchain", block)


_READERS: Final[dict[str, _Reader]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "reasoning": _reasoning,
    "reasoning_content": _bedrock_reasoning,
    "image": _media,
    "audio": _media,
    "video": _media,
    "media": _media,
    "document": _media,
    "text-plain": _media,
    "file": _file,
    "image_url": _image_url,
    "input_audio": _input_audio,
    "tool_result": _tool_result,
    "server_tool_call": _server_tool,
    "server_tool_result": _server_tool,
    "non_standard": _non_standard,
}
"""Functions that read a content block of LangChain, by the type of the block."""
