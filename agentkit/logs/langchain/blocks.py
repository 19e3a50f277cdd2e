"""`read_block`: converts a content block of a LangChain message to a block of agentkit."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, read_arguments
from agentkit.logs.embedded_items import EmbeddedItem
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
from agentkit.messages.sources import Base64Source, Source, source_from_url
from agentkit.replies.missing_call_ids import derive_call_id
from agentkit.reprs import describe_value

__all__ = ["SIGNATURE", "get_call_name", "is_call", "read_block", "strip_indexes"]

_Object: TypeAlias = dict[str, Any]

SIGNATURE: Final = "thought_signature"
"""Key of a Gemini signature in the text blocks of a log. The module `content` adds the same key to tool calls."""

_ISSUERS: Final = {
    "anthropic": "anthropic",
    "google_genai": "gemini",
    "google_vertexai": "gemini",
    "openai": "openai",
    "azure_openai": "openai",
    "ollama": "ollama",
    "deepseek": "deepseek",
}
"""Maps provider names in LangChain's `response_metadata["model_provider"]` to issuers of opaque state."""

_WIRES: Final = {"anthropic": "anthropic", "openai": "openai-responses"}
"""Wire formats by LangChain's provider name. LangChain stores native blocks of these providers unchanged."""


def read_block(item: Any, provider: str, place: str) -> Block:
    """Converts one item of a LangChain message's content to a block.

    An item that cannot be read becomes an `InvalidBlock`. An item of an unknown type becomes an `OpaqueBlock`.
    `provider` is LangChain's name for the provider of the message.
    """
    if isinstance(item, str):
        return TextBlock(item)
    block = strip_indexes(item)
    block_type = as_text(block.get("type"))
    if not block_type:
        return InvalidBlock(item, "expected a string or a block with a `type`", place)
    reader = _READERS.get(block_type)
    if reader is None:
        return OpaqueBlock(_WIRES.get(provider, "langchain"), block)
    try:
        return reader(block, provider, place)
    except MessageError as error:
        return InvalidBlock(item, f"{error.place}: {error.reason}", place)


def strip_indexes(item: object) -> _Object:
    """Returns an object without its key `index`. The parts in its list `summary` lose this key, too.

    Returns an empty dict if `item` is not an object.

    LangChain uses `index` to join the pieces of a stream. No provider accepts this key (langchain-openai:
    `_pop_index_and_sub_index`).
    """
    block = {key: value for key, value in as_object(item).items() if key != "index"}
    if parts := as_list(block.get("summary")):
        block["summary"] = [strip_indexes(part) or part for part in parts]
    return block


def _non_standard(block: _Object, provider: str, place: str) -> Block:
    """Reads a provider's block that LangChain wrapped in a `non_standard` block."""
    value = block.get("value")
    is_block = isinstance(value, dict) and "type" in value
    return read_block(value, provider, place) if is_block else _langchain_block(block, provider, place)


def _langchain_block(block: _Object, provider: str, place: str) -> OpaqueBlock:
    return OpaqueBlock("langchain", block)


def _metadata(block: _Object, *read: str) -> _Object | None:
    ignored = {"type", "cache_control", *read}
    return {key: value for key, value in block.items() if key not in ignored} or None


# -- text and thinking --------------------------------------------------------------------------------------------


def _text(block: _Object, provider: str, place: str) -> TextBlock:
    text = block.get("text")
    if not isinstance(text, str):
        reason = f"expected a string, got {describe_value(text)}"
        raise MessageError("text", reason, "Pass the text as a string.")
    metadata = _metadata(block, "text", "annotations", "citations", SIGNATURE) or {}
    if citations := as_list(block.get("annotations") or block.get("citations")):
        metadata["citations"] = citations
    return TextBlock(block["text"], state=_gemini_state(block), metadata=metadata or None)


def _refusal(block: _Object, provider: str, place: str) -> TextBlock:
    return TextBlock(as_text(block.get("refusal")), metadata={"refusal": True})


def _thinking(block: _Object, provider: str, place: str) -> ThinkingBlock:
    """Reads a thinking block of Anthropic or Google. LangChain uses one block type for both providers."""
    return _signed_thinking(block, "thinking", _ISSUERS.get(provider, "anthropic"))


def _redacted_thinking(block: _Object, provider: str, place: str) -> ThinkingBlock:
    return ThinkingBlock("", OpaqueState("anthropic", redacted_data=as_text(block.get("data")) or None))


def _bedrock_thinking(block: _Object, provider: str, place: str) -> ThinkingBlock:
    return _signed_thinking(as_object(block.get("reasoning_content")), "text", "anthropic")


def _reasoning(block: _Object, provider: str, place: str) -> Block:
    """Reads a `reasoning` block. A block with a `summary` is a reasoning item of OpenAI."""
    if "summary" in block:
        return EmbeddedItem("openai-responses", block).read(place)
    return _signed_thinking(block, "reasoning", _ISSUERS.get(provider, ""))


def _signed_thinking(block: _Object, key: str, issuer: str) -> ThinkingBlock:
    signature, state = _find_signature(block, "signature"), None
    if issuer == "gemini":
        state = OpaqueState(issuer, thought_signature=signature)
    elif issuer or signature:
        state = OpaqueState(issuer or "anthropic", signature=signature)
    return ThinkingBlock(as_text(block.get(key)), state, metadata=_metadata(block, key, "signature", "extras"))


def _gemini_state(block: _Object) -> OpaqueState | None:
    signature = _find_signature(block, SIGNATURE)
    return OpaqueState("gemini", thought_signature=signature) if signature else None


def _find_signature(block: _Object, key: str) -> str | None:
    return as_text(block.get(key) or as_object(block.get("extras")).get("signature")) or None


# -- media --------------------------------------------------------------------------------------------------------

_MediaClass: TypeAlias = type[ImageBlock | AudioBlock | VideoBlock | DocumentBlock]

_KINDS: Final[dict[str, _MediaClass]] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}
_MEDIA_KEYS: Final = ("source_type", "data", "base64", "url", "source", "mime_type", "text", "title")


def _media(block_class: _MediaClass | None, default_type: str, block: _Object, provider: str, place: str) -> Block:
    """Reads a media block in LangChain's, Anthropic's or Google's format.

    If `block_class` is None, the media type determines the class of the block.
    """
    if uri := as_text(block.get("file_uri")):  # Google's format
        data = {"file_uri": uri, "mime_type": block.get("mime_type")}
        options = {key: block[key] for key in ("video_metadata", "media_resolution") if block.get(key)}
        return EmbeddedItem("gemini", {"file_data": data, **options}).read(place)
    source, metadata = _source(block, default_type), _metadata(block, *_MEDIA_KEYS)
    block_class = block_class or _KINDS.get((source.media_type or "").partition("/")[0], DocumentBlock)
    if block_class is not DocumentBlock:
        return block_class(source, metadata=metadata)
    inner = as_object(block.get("extras")) or as_object(block.get("metadata"))
    title = as_text(block.get("title") or block.get("filename") or inner.get("filename")) or None
    return DocumentBlock(source, title=title, metadata=metadata)


def _image_url(block: _Object, provider: str, place: str) -> ImageBlock:
    inner = as_object(block.get("image_url")) or {"url": block.get("image_url")}
    detail = {"detail": inner["detail"]} if inner.get("detail") else {}
    return ImageBlock(_source(inner, ""), metadata={**detail, **(_metadata(block, "image_url") or {})} or None)


def _input_audio(block: _Object, provider: str, place: str) -> AudioBlock:
    inner = as_object(block.get("input_audio"))
    subtype = {"": "wav", "mp3": "mpeg"}.get(audio_format := as_text(inner.get("format")), audio_format)
    return AudioBlock(_source(inner, f"audio/{subtype}"))


def _file(block: _Object, provider: str, place: str) -> Block:
    """Reads a file in LangChain's format, or in OpenAI's format with an object under `file`."""
    inner = as_object(block.get("file"))
    if not inner:
        return _media(None, "application/pdf", block, provider, place)
    data, title = as_text(inner.get("file_data")), as_text(inner.get("filename"))
    key = "url" if data.startswith("data:") else "data"
    source = _source({**inner, key: data}, guess_media_type(title) or "application/pdf")
    return DocumentBlock(source, title=title or None)


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
    value = "a file id of the provider" if is_file else "neither"
    raise MessageError("source", f"expected data or a URL, got {value}", "Pass base64 data or a URL.")


# -- tools --------------------------------------------------------------------------------------------------------

_ARGUMENT_KEYS: Final = ("args", "input", "arguments", "parameters")


def _call(call: _Object, provider: str, place: str) -> ToolUseBlock:
    """Reads a tool call in the format of LangChain, Anthropic, or one of OpenAI's two APIs."""
    inner, name = as_object(call.get("function")) or call, get_call_name(call)
    id = as_text(call.get("call_id") or call.get("id")) or derive_call_id(f"{place}{name}")
    arguments: object = next((inner[key] for key in _ARGUMENT_KEYS if inner.get(key) is not None), None)
    metadata = {"error": call["error"]} if call.get("error") else None
    return ToolUseBlock(id, name, *read_arguments(arguments), _gemini_state(call), metadata=metadata)


def get_call_name(call: _Object) -> str:
    """Returns the tool name of a tool call in any format, or an empty string if the call has no name."""
    return as_text((as_object(call.get("function")) or call).get("name"))


def is_call(item: object) -> bool:
    """Returns True if a content block is a call of a tool that the application runs."""
    return _READERS.get(as_text(as_object(item).get("type"))) is _call


def _tool_result(block: _Object, provider: str, place: str) -> ToolResultBlock:
    """Reads a tool result in Anthropic's format. A `HumanMessage` of LangChain may contain such a result."""
    content: object = block.get("content")
    output: Any = content
    if content is None or isinstance(content, list):
        items = enumerate(as_list(cast("object", content)))
        output = [_result_item(item, provider, f"{place}.content[{index}]") for index, item in items]
    elif not isinstance(content, str):
        reason = f"expected a string or a list of blocks, got {describe_value(content)}"
        output = [InvalidBlock(content, reason, place)]
    return ToolResultBlock(as_text(block.get("tool_use_id")), "", output, block.get("is_error") is True)


def _result_item(item: Any, provider: str, place: str) -> Block:
    block = read_block(item, provider, place)
    if isinstance(block, ThinkingBlock | ToolUseBlock | ToolResultBlock):
        return InvalidBlock(item, f"a tool result cannot contain a {block.type} block", place)
    return block


def _server_call(block: _Object, provider: str, place: str) -> OpaqueBlock:
    """Returns an opaque block for the call of a tool that the provider itself ran.

    Anthropic's calls and results are converted to Anthropic's wire format (langchain-anthropic:
    `_convert_from_v1_to_anthropic`). Blocks of other providers stay in LangChain's format, because LangChain drops
    fields that the wire formats of these providers require.
    """
    if provider != "anthropic":
        return _langchain_block(block, provider, place)
    name, extras = block.get("name"), as_object(block.get("extras"))
    call = {"type": "server_tool_use", "id": block.get("id"), "name": name, "input": block.get("args")}
    if name == "code_interpreter":
        call["name"] = "code_execution"
    elif name == "remote_mcp":
        server = {key: extras[key] for key in ("server_name",) if key in extras}
        call |= {"type": "mcp_tool_use", "name": extras.get("tool_name"), **server}
    return OpaqueBlock("anthropic", call)


def _server_result(block: _Object, provider: str, place: str) -> OpaqueBlock:
    """Returns an opaque block for the result of a tool that the provider itself ran."""
    result_type = as_text(as_object(block.get("extras")).get("block_type"))
    if provider != "anthropic" or not result_type or "output" not in block:
        return _langchain_block(block, provider, place)
    flag = {"is_error": block.get("status") == "error"} if result_type == "mcp_tool_result" else {}
    result = {"type": result_type, "tool_use_id": block.get("tool_call_id"), "content": block["output"]}
    return OpaqueBlock("anthropic", {**result, **flag})


_READERS: Final[dict[str, Callable[[_Object, str, str], Block]]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "reasoning": _reasoning,
    "reasoning_content": _bedrock_thinking,
    "image": partial(_media, ImageBlock, "image/png"),
    "audio": partial(_media, AudioBlock, "audio/wav"),
    "video": partial(_media, VideoBlock, "video/mp4"),
    "text-plain": partial(_media, DocumentBlock, "text/plain"),
    "document": partial(_media, None, "application/pdf"),
    "media": partial(_media, None, "application/octet-stream"),
    "file": _file,
    "image_url": _image_url,
    "input_audio": _input_audio,
    "tool_call": _call,
    "tool_call_chunk": _call,
    "invalid_tool_call": _call,
    "tool_use": _call,
    "function_call": _call,
    "tool_result": _tool_result,
    "server_tool_call": _server_call,
    "server_tool_call_chunk": _langchain_block,
    "server_tool_result": _server_result,
    "non_standard": _non_standard,
}
"""Maps the type of a LangChain content block to the function that reads the block.

Each function takes the block, LangChain's name for the provider of the message, and the place of the block.
"""
