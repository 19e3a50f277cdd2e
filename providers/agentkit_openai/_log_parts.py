"""Functions that read entries and content parts from logs of OpenAI's APIs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

from agentkit.provider_kit import (
    AudioBlock,
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MediaBlock,
    MessageError,
    OpaqueBlock,
    OpaqueState,
    Source,
    TextBlock,
    VideoBlock,
    as_list,
    as_object,
    as_text,
    describe_value,
    make_json_safe,
    source_from_url,
)
from agentkit_openai._media_parts import choose_file_name
from agentkit_openai._reasoning import read_thinking_part
from agentkit_openai._refusals import REFUSAL_PART, refusal_block

__all__ = [
    "LogSource",
    "add_citations",
    "as_content",
    "read_content",
]


class LogSource(NamedTuple):
    """API and vendor that a log comes from.

    Attributes:
        wire: Wire format of the log. Only targets with the same wire format accept opaque blocks from the log.
        issuer: System that produced the opaque state in the log, and that accepts the state in later requests.
        reasoning_parts: True if the vendor sends reasoning in content parts of the type `thinking`.
    """

    wire: str
    issuer: str
    reasoning_parts: bool = False


def as_content(blocks: list[Block]) -> str | list[Block]:
    """Returns blocks as the content of a message.

    A single text block without opaque state and without metadata becomes a string. An empty list becomes an empty
    string.
    """
    if not blocks:
        return ""
    block = blocks[0]
    if len(blocks) == 1 and isinstance(block, TextBlock) and not (block.state or block.metadata):
        return block.text
    return blocks


def add_citations(blocks: list[Block], annotations: object) -> list[Block]:
    """Returns the blocks of a message, with the message's annotations in the metadata of the last text block.

    The metadata key is `citations`, as in parsed replies. If there are no annotations or no text block, the blocks
    are returned unchanged.
    """
    citations = as_list(annotations)
    if not citations:
        return blocks
    index = next((index for index in reversed(range(len(blocks))) if isinstance(blocks[index], TextBlock)), None)
    if index is None:
        return blocks
    metadata = {**(blocks[index].metadata or {}), "citations": make_json_safe(citations)}
    return [*blocks[:index], replace(blocks[index], metadata=metadata), *blocks[index + 1 :]]


def read_content(content: object, source: LogSource, place: str) -> list[Block]:
    """Reads content from a log as blocks. The content is a string, a list of content parts, or None."""
    if isinstance(content, str):
        return [TextBlock(content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list):
        reason = f"expected a string or a list of content parts, got {describe_value(content)}"
        return [InvalidBlock(content, reason, place)]
    parts = cast("list[Any]", content)
    return [_read_part(part, source, f"{place}[{index}]") for index, part in enumerate(parts)]


def _read_part(part: object, source: LogSource, place: str) -> Block:
    """Reads a content part as a block. A part of an unknown type becomes an `OpaqueBlock`."""
    if isinstance(part, str):
        return TextBlock(as_text(part))
    if not isinstance(part, dict):
        reason = f"expected a content part (an object or a string), got {describe_value(part)}"
        return InvalidBlock(part, reason, place)
    fields = cast("dict[str, Any]", part)
    part_type = fields.get("type", "text" if fields.keys() == {"text"} else None)
    if not isinstance(part_type, str):
        reason = f"expected a content part in which `type` is a string, got {describe_value(fields)}"
        return InvalidBlock(fields, reason, place)
    try:
        block = _create_block(part_type, fields, source)
    except MessageError as error:
        return InvalidBlock(fields, str(error), place)
    if isinstance(block, MediaBlock) and (state_fields := {**_get_other_keys(fields), **_get_file_name(block)}):
        block = replace(block, state=OpaqueState(source.issuer, fields=state_fields))
    return block or OpaqueBlock(source.wire, make_json_safe(fields))


_KEYS_READ = frozenset(
    {"type", "image_url", "video_url", "audio_url", "input_audio", "file", "file_data", "file_url", "filename"}
) | {"document_url", "document_name", "file_id", "cache_control", "prompt_cache_breakpoint"}


def _get_other_keys(part: dict[str, Any]) -> dict[str, Any]:
    """Returns those keys of a media part that no field of a media block can store, except cache markers.

    Examples are `detail`, `fps` and `min_pixels` (DashScope: model-studio). These keys set the resolution of the
    media item or the number of video frames.
    """
    keys = {key: value for key, value in part.items() if key not in _KEYS_READ and value is not None}
    if (detail := as_object(part.get("image_url")).get("detail")) is not None:
        keys["detail"] = detail
    if part.get("type") == "input_image" and keys.get("detail") == "auto":
        del keys["detail"]  # the formatter writes "auto" for any image whose block stores no level of detail
    return cast("dict[str, Any]", make_json_safe(keys))


def _get_file_name(block: MediaBlock) -> dict[str, str]:
    """Returns `{"filename": NAME}` for the opaque state of a document.

    Returns an empty dict if the formatter derives the same file name from the title of the document, or if the
    block has no title.
    """
    title = block.title if isinstance(block, DocumentBlock) else None
    return {"filename": title} if title and choose_file_name(block) != title else {}


def _create_block(part_type: str, part: dict[str, Any], source: LogSource) -> Block | None:
    """Creates the block for a content part.

    Returns None if the type is unknown, or if a media part contains neither data nor a URL.

    Sources of the types: openai-python (ChatCompletionContentPartParam, ResponseInputContentParam), vLLM's docs
    (`audio_url`, `video_url`) and the mistralai SDK (`document_url`: DocumentURLChunk).

    Raises:
        MessageError: A value in the part is invalid.
    """
    match part_type:
        case "thinking" if source.reasoning_parts:
            return read_thinking_part(part, source.issuer)
        case "text" | "input_text" | "output_text" | "summary_text":
            return _create_text(part)
        case "refusal":
            return refusal_block(as_text(part.get("refusal")), OpaqueState(source.issuer, fields=REFUSAL_PART))
        case "image_url" | "input_image" | "video_url" | "audio_url":
            key = "image_url" if part_type == "input_image" else part_type
            source_url = _parse_url(part.get(key))
            return _URL_BLOCKS[key](source_url) if source_url else None
        case "input_audio":
            value = part.get("input_audio")
            return _create_audio({"data": value} if isinstance(value, str) else as_object(value))
        case "document_url":
            document = _parse_url(part.get("document_url"))
            title = as_text(part.get("document_name")) or None
            return DocumentBlock(document, title=title) if document else None
        case "file" | "input_file":
            return _create_document(as_object(part.get("file")) or part)
        case _:
            return None


_URL_BLOCKS = {"image_url": ImageBlock, "video_url": VideoBlock, "audio_url": AudioBlock}


def _create_text(part: dict[str, Any]) -> TextBlock:
    text = part.get("text")
    if not isinstance(text, str):
        reason = f"expected a string, got {describe_value(text)}"
        raise MessageError("text", reason, "Pass a content part in which `text` is a string.")
    annotations = part.get("annotations")
    return TextBlock(as_text(text), metadata={"citations": make_json_safe(annotations)} if annotations else None)


def _parse_url(value: object) -> Source | None:
    """Returns the media source for a URL, or None if `value` has no URL.

    In Chat Completions, `value` is an object with the key `url`. In Responses, `value` is a string.
    """
    return source_from_url(as_object(value).get("url") or value)


_AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def _create_audio(audio: dict[str, Any]) -> AudioBlock | None:
    """Creates an audio block. Returns None if `audio` has no `data`, or if `data` is an invalid URL.

    The value of `data` is base64 text, a URL or a data URL. DashScope's logs contain ordinary URLs, and data URLs
    without a media type.
    """
    data, format = as_text(audio.get("data")), as_text(audio.get("format")) or "wav"
    media_type = _AUDIO_TYPES.get(format, f"audio/{format}")
    if data.startswith("data:;base64,"):
        return AudioBlock(Base64Source(media_type, data.partition(",")[2]))
    if data.startswith("data:") or "://" in data[:20]:
        source = source_from_url(data)
        return AudioBlock(source) if source else None
    return AudioBlock(Base64Source(media_type, data)) if data else None


def _create_document(file: dict[str, Any]) -> DocumentBlock | None:
    title = as_text(file.get("filename")) or None
    data, url = as_text(file.get("file_data")), as_text(file.get("file_url"))
    if data and not data.startswith("data:"):
        return DocumentBlock(Base64Source("application/pdf", data), title=title)
    source = source_from_url(data or url)
    return DocumentBlock(source, title=title) if source else None
