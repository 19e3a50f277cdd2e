"""Content parts of requests of the OpenAI family, read back as blocks."""

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
    check_log_request,
    describe_log_format,
    make_json_safe,
    native_to_json,
    source_from_url,
)
from agentkit_openai._media_parts import file_name
from agentkit_openai._reasoning import read_thinking_part
from agentkit_openai._refusals import REFUSAL_PART, refusal_block

__all__ = ["LogSource", "as_content", "cited", "invalid", "items_in", "read_content", "read_output"]


class LogSource(NamedTuple):
    """Source of a log.

    Attributes:
        wire: Wire format that accepts opaque parts of the log.
        issuer: System that accepts opaque state of the log.
        reasoning_parts: True if content parts of the type `thinking` are reasoning.
    """

    wire: str
    issuer: str
    reasoning_parts: bool = False


def items_in(found: object, name: str, marks: tuple[str, ...], also: tuple[str, ...] = ()) -> list[Any]:
    """The entries of a log, in JSON values.

    A log is a list, a request that has one under `name`, a single entry, or any of them as JSON text. Raises
    MessageError for what is none: something else, a list in which no entry has one of the `marks`, or a request
    that has messages under another key than `name` and `also`.
    """
    whole = cast("Any", found) if isinstance(found, list | tuple) else native_to_json(found)
    request = cast("dict[str, Any]", whole) if isinstance(whole, dict) else {}
    if name in request:
        check_log_request(request, (name, *also))
        whole = request[name]
    elif any(mark in request for mark in marks):
        whole = [request]
    if not isinstance(whole, list | tuple):
        raise MessageError(
            "log", f"expected a list of {name}", describe_log_format(make_json_safe(cast("object", whole)))
        )
    entries: list[Any] = make_json_safe(cast("object", whole), name)
    if entries and not any(isinstance(entry, dict) and any(mark in entry for mark in marks) for entry in entries):
        raise MessageError("log", f"expected a list of {name}, got other objects", describe_log_format(entries))
    return entries


def as_content(blocks: list[Block]) -> str | list[Block]:
    """Blocks as the content of a message: a text alone is a string."""
    if not blocks:
        return ""
    only = blocks[0]
    plain_text = len(blocks) == 1 and isinstance(only, TextBlock) and not (only.state or only.metadata)
    return only.text if plain_text and isinstance(only, TextBlock) else blocks


def cited(blocks: list[Block], annotations: object) -> list[Block]:
    """The content of a message, its annotations the citations of its last text, as a reply's are."""
    found = as_list(annotations)
    at = next((at for at in reversed(range(len(blocks))) if isinstance(blocks[at], TextBlock)), None)
    if not found or at is None:
        return blocks
    metadata = {**(blocks[at].metadata or {}), "citations": make_json_safe(found)}
    return [*blocks[:at], replace(blocks[at], metadata=metadata), *blocks[at + 1 :]]


def read_output(content: object, origin: LogSource, place: str) -> str | list[Any]:
    """The output of a tool: text, or texts and media."""
    blocks = read_content(content, origin, place)
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return blocks or ""


def read_content(content: object, origin: LogSource, place: str) -> list[Block]:
    """The blocks of a message's content: a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return [TextBlock(as_text(content))] if content else []
    if content is None:
        return []
    if not isinstance(content, list):
        return [invalid(content, "expected text or a list of parts", place)]
    parts = cast("list[Any]", content)
    return [_read_part(part, origin, f"{place}[{at}]") for at, part in enumerate(parts)]


def _read_part(part: object, origin: LogSource, place: str) -> Block:
    """One part: text, refusal or media; a part that only the wire knows as OpaqueBlock."""
    if isinstance(part, str):
        return TextBlock(as_text(part))
    if not isinstance(part, dict):
        return invalid(part, "it is no content part", place)
    held = cast("dict[str, Any]", part)
    kind = held.get("type", "text" if held.keys() == {"text"} else None)
    if not isinstance(kind, str):
        keys = [key[:40] for key in list(held)[:8]]
        return invalid(held, f"expected a content part with a type, got the keys {keys}", place)
    try:
        block = _part(kind, held, origin)
    except MessageError as error:
        return invalid(held, str(error), place)
    if isinstance(block, MediaBlock) and (fields := {**_fields_of(held), **_name_of(block)}):
        block = replace(block, state=OpaqueState(origin.issuer, fields=fields))
    return block or OpaqueBlock(origin.wire, make_json_safe(held))


_READ = frozenset(
    {"type", "image_url", "video_url", "audio_url", "input_audio", "file", "file_data", "file_url", "filename"}
) | {"document_url", "document_name", "file_id", "cache_control", "prompt_cache_breakpoint"}


def _fields_of(part: dict[str, Any]) -> dict[str, Any]:
    """The keys beside a medium, which change what the model sees: `detail`; `fps`, `min_pixels` (model-studio)."""
    beside = {key: item for key, item in part.items() if key not in _READ and item is not None}
    if (detail := as_object(part.get("image_url")).get("detail")) is not None:
        beside["detail"] = detail
    if part.get("type") == "input_image" and beside.get("detail") == "auto":
        del beside["detail"]  # required there, and what is meant when nothing is said
    return cast("dict[str, Any]", make_json_safe(beside))


def _name_of(block: MediaBlock) -> dict[str, str]:
    """The name of a file, where it would not be made of its title again."""
    title = block.title if isinstance(block, DocumentBlock) else None
    return {"filename": title} if title and file_name(block) != title else {}


def invalid(found: object, reason: str, place: str) -> InvalidBlock:
    """What could not be read, with its place."""
    return InvalidBlock(make_json_safe(found), reason, place)


def _part(kind: object, part: dict[str, Any], origin: LogSource) -> Block | None:
    """One part (SDK: ChatCompletionContentPartParam, ResponseInputContentParam; vLLM: media by URL)."""
    if kind == "thinking" and origin.reasoning_parts:
        return read_thinking_part(part, origin.issuer)
    if kind in ("text", "input_text", "output_text", "summary_text"):
        return _text(part)
    if kind == "refusal":
        return refusal_block(as_text(part.get("refusal")), OpaqueState(origin.issuer, fields=REFUSAL_PART))
    if kind in ("image_url", "input_image"):
        source = _url(part.get("image_url"))
        return ImageBlock(source) if source else None
    if kind == "video_url":
        source = _url(part.get("video_url"))
        return VideoBlock(source) if source else None
    if kind == "audio_url":
        source = _url(part.get("audio_url"))
        return AudioBlock(source) if source else None
    if kind == "input_audio":
        audio = part.get("input_audio")
        return _sound({"data": audio} if isinstance(audio, str) else as_object(audio))
    if kind == "document_url":  # mistralai SDK: DocumentURLChunk
        source = _url(part.get("document_url"))
        return DocumentBlock(source, title=as_text(part.get("document_name")) or None) if source else None
    if kind in ("file", "input_file"):
        return _file(as_object(part.get("file")) or part)
    return None


def _text(part: dict[str, Any]) -> TextBlock:
    text = part.get("text")
    if not isinstance(text, str):
        raise MessageError("text", "there is no text in it", "Mend the part.")
    cited = part.get("annotations")
    return TextBlock(as_text(text), metadata={"citations": make_json_safe(cited)} if cited else None)


def _url(found: object) -> Source | None:
    """`image_url` is an object in Chat Completions, and a string in Responses."""
    return source_from_url(as_object(found).get("url") or found)


_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def _sound(audio: dict[str, Any]) -> AudioBlock | None:
    """Base64 text, or (DashScope) a URL or a data URL, which may leave its type out."""
    data, format = as_text(audio.get("data")), as_text(audio.get("format")) or "wav"
    media_type = _SOUNDS.get(format, f"audio/{format}")
    if data.startswith("data:;base64,"):
        return AudioBlock(Base64Source(media_type, data.partition(",")[2]))
    if data.startswith("data:") or "://" in data[:20]:
        source = source_from_url(data)
        return AudioBlock(source) if source else None
    return AudioBlock(Base64Source(media_type, data)) if data else None


def _file(file: dict[str, Any]) -> DocumentBlock | None:
    title = as_text(file.get("filename")) or None
    data, url = as_text(file.get("file_data")), as_text(file.get("file_url"))
    if data and not data.startswith("data:"):
        return DocumentBlock(Base64Source("application/pdf", data), title=title)
    source = source_from_url(data or url)
    return DocumentBlock(source, title=title) if source else None
