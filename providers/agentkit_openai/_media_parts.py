"""What the parts of OpenAI's wires say of media."""

from __future__ import annotations

import re
from typing import Any, assert_never

from agentkit.provider_kit import (
    Base64Source,
    ConversionError,
    MediaBlock,
    Source,
    TextBlock,
    ToolUseBlock,
    copy_json,
    get_state_fields,
)
from agentkit_openai._message_keys import MESSAGE
from agentkit_openai.capabilities import AUDIO_FORMATS

__all__ = ["beside", "came_with", "detail_of", "file_name", "media_part", "url_part", "wire_url"]


def wire_url(source: Source) -> str:
    """A URL that the server fetches, or a data URL."""
    return source.data_url if isinstance(source, Base64Source) else source.url


def came_with(block: TextBlock | ToolUseBlock | MediaBlock, *names: str) -> dict[str, Any]:
    """The keys that a block came with, and goes back with."""
    fields = get_state_fields(block.state)
    return {name: copy_json(fields[name]) for name in names if name in fields}


def detail_of(block: MediaBlock) -> dict[str, Any]:
    """How closely a picture is looked at (SDK: ImageURL.detail)."""
    return came_with(block, "detail") if block.type == "image" else {}


def beside(block: MediaBlock) -> dict[str, Any]:
    """What else stood beside the medium in its part."""
    own = {key: item for key, item in get_state_fields(block.state).items() if key not in ("detail", "filename")}
    return {**copy_json({key: item for key, item in own.items() if not key.startswith(MESSAGE)})}


def _embedded(source: Source) -> tuple[str, str]:
    """The base64 text and media type of a source on a wire that takes no URL for it."""
    if not isinstance(source, Base64Source):
        raise ConversionError("media by URL", "a turn or a tool result")
    return source.data, source.media_type


def file_name(block: MediaBlock) -> str:
    """A document's file name: the one that it came with, else its title where it is one, else by its type."""
    title = getattr(block, "title", None) or ""
    if title and came_with(block, "filename").get("filename") == title:
        return title
    kept = re.sub(r"[^\w. -]+", "_", title).strip(" ._")[:80]
    source = block.source
    suffix = _SUFFIXES.get(source.media_type or "", "") if isinstance(source, Base64Source) else ""
    return kept if kept and "." in kept else f"{kept or 'document'}{suffix}"


_SUFFIXES = {
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
    "application/json": ".json",
}


def media_part(block: MediaBlock) -> dict[str, Any]:
    """Writes a media block in OpenAI's form (SDK: ChatCompletionContentPartParam)."""
    match block.type:
        case "image":
            return {"type": "image_url", "image_url": {"url": wire_url(block.source), **detail_of(block)}}
        case "audio":
            data, media_type = _embedded(block.source)
            audio = {"data": data, "format": AUDIO_FORMATS[media_type]}
            return {"type": "input_audio", "input_audio": audio}
        case "document":
            file = {"filename": file_name(block), "file_data": wire_url(block.source)}
            return {"type": "file", "file": file}
        case "video":
            return {"type": "video_url", "video_url": {"url": wire_url(block.source)}}
        case _:
            assert_never(block.type)


def url_part(block: MediaBlock) -> dict[str, Any]:
    """Writes a media block as `image_url`, `audio_url` or `video_url`, with a URL or a data URL (vLLM's docs)."""
    key = f"{block.type}_url"
    return {"type": key, key: {"url": wire_url(block.source), **detail_of(block)}}
