"""The parts of a Gemini content: their keys in one spelling, their bytes in one alphabet, what they carry.

The API writes camelCase and either base64 alphabet, the SDK's objects camelCase and the URL-safe one, requests in
Python snake_case (SDK: types.Part and `_common.BaseModel`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, cast

from agentkit.provider_kit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    MediaBlock,
    MessageError,
    URLSource,
    VideoBlock,
    as_object,
    as_text,
    make_json_safe,
)

__all__ = [
    "OPAQUE",
    "carried",
    "display_name",
    "holds_content",
    "is_stored_file",
    "is_stored_uri",
    "media_block",
    "opaque_data",
    "part_pair",
    "part_places",
    "pick",
    "settled",
    "shallow",
    "signature_of",
    "snake",
    "standard",
]

OPAQUE = ("executable_code", "code_execution_result", "tool_call", "tool_response")
"""What the server ran by itself: "The client is expected to echo this message back" (SDK: Part.tool_call)."""

_CARRIED = (
    "media_resolution",
    "media_processing",
    "video_metadata",
    "document_metadata",
    "spreadsheet_metadata",
    "audio_metadata",
    "part_metadata",
    "speech_metadata",
    "audio_transcription",
)
"""Keys that a part has besides its content and its signature (SDK: Part, FunctionResponsePart)."""

_THEIRS = frozenset({"args", "response", "part_metadata"})
"""Objects whose keys are the tool's or the caller's own, and stay as they are."""

_BYTES = frozenset({"thought_signature", "data", "sdk_blob", "continuation_token"})


@lru_cache(1_024)
def snake(key: str) -> str:
    """`inlineData` as `inline_data`."""
    name = str(key)  # a dict that is no JSON may have other keys
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name) if name.isascii() else name


@lru_cache(1_024)
def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


def pick(found: Mapping[str, Any], key: str) -> Any:
    """An item under its name in either spelling; None for what is missing or null."""
    item = found.get(_camel(key))
    return found.get(key) if item is None else item


def shallow(found: Mapping[str, Any]) -> dict[str, Any]:
    """An object with its own keys in snake_case, without what is null."""
    return {snake(key): item for key, item in found.items() if item is not None}


def standard(data: object) -> str:
    """Base64 text in the standard alphabet, whole groups: from either alphabet, with breaks and padding or not."""
    if isinstance(data, bytes):
        return base64.b64encode(data).decode("ascii")
    text = re.sub(r"\s+", "", as_text(data)).translate(_STANDARD).rstrip("=")
    return text + "=" * (-len(text) % 4)


_STANDARD = str.maketrans("-_", "+/")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)


def signature_of(part: Mapping[str, Any]) -> str | None:
    """A part's signature as standard base64 text; None if there is none."""
    found = part.get("thought_signature")
    return standard(found) or None if found else None


def settled(found: Any) -> Any:
    """A value of the wire with all keys in snake_case and all bytes in the standard alphabet, nulls left out."""
    if isinstance(found, dict):
        pairs = cast("dict[str, Any]", found).items()
        return {name: _settled(name, item) for key, item in pairs if item is not None for name in (snake(key),)}
    if isinstance(found, list):
        return [settled(item) for item in cast("list[Any]", found)]
    return found


def _settled(name: str, item: Any) -> Any:
    if name in _THEIRS:
        return item
    return standard(item) if name in _BYTES and isinstance(item, str | bytes) else settled(item)


def carried(part: Mapping[str, Any]) -> dict[str, Any]:
    """What a part in snake_case came with besides its content, to go back with it."""
    return {key: settled(part[key]) if key not in _THEIRS else part[key] for key in _CARRIED if part.get(key)}


def display_name(part: Mapping[str, Any]) -> dict[str, str]:
    """The name that a medium came with (SDK: Blob, FileData), which a function response's object may refer to."""
    held = shallow(as_object(part.get("inline_data") or part.get("file_data")))
    name = as_text(held.get("display_name"))
    return {"display_name": name} if name else {}


def part_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Code and a call of the server's own ask; their results answer, by id where there is one."""
    for asking, answering in (("executable_code", "code_execution_result"), ("tool_call", "tool_response")):
        if asking in data:
            return "request", f"{asking} {as_text(as_object(data[asking]).get('id'))}"
        if answering in data:
            return "response", f"{asking} {as_text(as_object(data[answering]).get('id'))}"
    return None


def part_places(data: Mapping[str, Any], *, in_results: bool = False) -> frozenset[str]:
    """Returns where a part in snake_case may stand (SDK: Part; ai.google.dev: function-calling).

    `in_results` is True if function responses hold media (Gemini 3 and later).
    """
    if part_pair(data) is not None or "function_call" in data or data.get("thought") is True:
        return frozenset({"assistant"})
    if "function_response" in data:
        return frozenset({"user"})
    if "text" in data:
        return frozenset({"assistant", "user", "system"})  # "config.system_instruction": text alone
    is_media = "file_data" in data or "inline_data" in data
    return frozenset({"assistant", "user", *(["result"] if in_results and is_media else [])})


_KINDS: dict[str, type[MediaBlock]] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}


def media_block(part: Mapping[str, Any]) -> MediaBlock:
    """The medium of a part in snake_case. Raises MessageError for data that are no base64 text, or no URI."""
    if "inline_data" in part:
        blob = shallow(as_object(part["inline_data"]))
        media_type, data = as_text(blob.get("mime_type")), standard(blob.get("data"))
        if not _BASE64.fullmatch(data):
            raise MessageError("inline_data", "its data are no base64 text", "Give base64 text.")
        source: Base64Source | URLSource = Base64Source(media_type or "application/octet-stream", data)
        known = media_type
    else:
        blob = shallow(as_object(part.get("file_data")))
        source = URLSource(as_text(blob.get("file_uri")), as_text(blob.get("mime_type")) or None)
        known = source.guessed_type or ("video/*" if _YOUTUBE.match(source.url) else "")
    kind = _KINDS.get(known.partition("/")[0].lower())
    if kind is not None:
        return kind(source)
    return DocumentBlock(source, title=as_text(blob.get("display_name")) or None)


_YOUTUBE = re.compile(r"https?://(www\.)?(youtube\.com|youtu\.be)/", re.IGNORECASE)


def is_stored_file(part: Mapping[str, Any]) -> bool:
    """Whether a part in snake_case is a file of the Files API, which nobody else can open."""
    return is_stored_uri(as_text(shallow(as_object(part.get("file_data"))).get("file_uri")))


def is_stored_uri(uri: str) -> bool:
    """Returns True for the URI of a file of the Files API (ai.google.dev: files; SDK: File.uri, File.name)."""
    return bool(_STORED.match(uri))


_STORED = re.compile(r"(https?://generativelanguage\.googleapis\.com/([^?#]*/)?)?files/", re.IGNORECASE)


def holds_content(part: Mapping[str, Any]) -> bool:
    """Returns True if a part in snake_case has content or a signature, and not only what stands beside it."""
    return bool(part.keys() - {"thought", *_CARRIED})


def opaque_data(part: Mapping[str, Any]) -> dict[str, Any]:
    """A server's part in snake_case, its signature within, as it goes back."""
    return cast("dict[str, Any]", make_json_safe(settled(dict(part))))
