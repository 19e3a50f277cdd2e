"""Functions that write media blocks as content parts for OpenAI's APIs and compatible vendors."""

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
from agentkit_openai._message_keys import KEY_PREFIX
from agentkit_openai.capabilities import AUDIO_FORMATS

__all__ = [
    "choose_file_name",
    "copy_state_fields",
    "get_detail",
    "get_part_keys",
    "source_url",
    "write_media_part",
    "write_url_part",
]


def source_url(source: Source) -> str:
    """Returns the URL of a media source. If the source contains the data of the media item, returns a data URL."""
    return source.data_url if isinstance(source, Base64Source) else source.url


def copy_state_fields(block: TextBlock | ToolUseBlock | MediaBlock, *names: str) -> dict[str, Any]:
    """Returns copies of the opaque state fields that `names` lists.

    Fields that the opaque state of the block does not contain are omitted.
    """
    fields = get_state_fields(block.state)
    return {name: copy_json(fields[name]) for name in names if name in fields}


def get_detail(block: MediaBlock) -> dict[str, Any]:
    """Returns `{"detail": LEVEL}` for an image with a level of detail, otherwise an empty dict.

    Source: openai-python, ImageURL.detail.
    """
    return copy_state_fields(block, "detail") if block.type == "image" else {}


def get_part_keys(block: MediaBlock) -> dict[str, Any]:
    """Returns the additional content-part keys that the log loader stored in the opaque state of a block.

    The returned dict does not contain `detail`, `filename` or keys of the message, because other functions write
    these keys.
    """
    if block.state is None:
        return {}
    keys = {
        key: value
        for key, value in get_state_fields(block.state).items()
        if key not in ("detail", "filename") and not key.startswith(KEY_PREFIX)
    }
    return {**copy_json(keys)}


def choose_file_name(block: MediaBlock) -> str:
    """Returns the file name under which a document is sent.

    If the title of the document was its file name in a log, returns the title unchanged. Otherwise, derives the
    file name from the title and the media type.
    """
    title = getattr(block, "title", None) or ""
    if title and copy_state_fields(block, "filename").get("filename") == title:
        return title
    name = re.sub(r"[^\w. -]+", "_", title).strip(" ._")[:80]
    source = block.source
    suffix = _SUFFIXES.get(source.media_type or "", "") if isinstance(source, Base64Source) else ""
    return name if name and "." in name else f"{name or 'document'}{suffix}"


_SUFFIXES = {
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
    "application/json": ".json",
}


def write_media_part(block: MediaBlock) -> dict[str, Any]:
    """Writes a media block as a content part (openai-python: ChatCompletionContentPartParam).

    Raises:
        ConversionError: The block is audio with a URL. Chat Completions accepts audio only as base64 data.
    """
    match block.type:
        case "image" | "video":
            return write_url_part(block)
        case "audio":
            source = block.source
            if not isinstance(source, Base64Source):
                raise ConversionError("audio URL", "content part")
            audio = {"data": source.data, "format": AUDIO_FORMATS[source.media_type]}
            return {"type": "input_audio", "input_audio": audio}
        case "document":
            file = {"filename": choose_file_name(block), "file_data": source_url(block.source)}
            return {"type": "file", "file": file}
        case _:
            assert_never(block.type)


def write_url_part(block: MediaBlock) -> dict[str, Any]:
    """Writes a media block as a content part `image_url`, `audio_url` or `video_url` (vLLM's docs).

    Media without a URL are written with a data URL.
    """
    key = f"{block.type}_url"
    return {"type": key, key: {"url": source_url(block.source), **get_detail(block)}}
