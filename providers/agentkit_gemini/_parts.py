"""Reading of the parts of a Gemini content: key spelling, base64 alphabet, media, signatures.

The API writes camelCase and either base64 alphabet. The SDK's objects have camelCase and the URL-safe alphabet.
Requests in Python have snake_case (SDK: types.Part and `_common.BaseModel`).
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
    "OPAQUE_KEYS",
    "copy_opaque_part",
    "get_display_name",
    "get_extra_fields",
    "get_field",
    "get_pair_key",
    "get_part_places",
    "get_signature",
    "has_content",
    "is_stored_file",
    "is_stored_uri",
    "normalize_base64",
    "normalize_keys",
    "normalize_value",
    "parse_media",
]

OPAQUE_KEYS = ("executable_code", "code_execution_result", "tool_call", "tool_response")
"""Keys of parts for tools that the server ran.

"The client is expected to echo this message back" (SDK: Part.tool_call).
"""

_EXTRA_KEYS = (
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

_FREE_KEYS = frozenset({"args", "response", "part_metadata"})
"""Keys of objects whose inner keys belong to a tool or to the caller. These objects are sent unchanged."""

_BYTES_KEYS = frozenset({"thought_signature", "data", "sdk_blob", "continuation_token"})

_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)


@lru_cache(1_024)
def _to_snake_case(key: str) -> str:
    """Returns `inline_data` for `inlineData`."""
    name = str(key)  # a dict that is not JSON may have keys that are not text
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name) if name.isascii() else name


@lru_cache(1_024)
def _to_camel_case(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.capitalize() for word in tail)


def get_field(fields: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a key, in snake_case or camelCase. Returns None if the value is missing or null."""
    item = fields.get(_to_camel_case(key))
    return fields.get(key) if item is None else item


def normalize_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an object with its keys in snake_case, without nulls. Nested objects are unchanged."""
    return {_to_snake_case(key): item for key, item in fields.items() if item is not None}


def normalize_base64(data: object) -> str:
    """Returns bytes or base64 text of either alphabet as padded base64 text in the standard alphabet."""
    if isinstance(data, bytes):
        return base64.b64encode(data).decode("ascii")
    text = re.sub(r"\s+", "", as_text(data)).translate(_STANDARD_ALPHABET).rstrip("=")
    return text + "=" * (-len(text) % 4)


def get_signature(part: Mapping[str, Any]) -> str | None:
    """Returns a part's signature as standard base64 text, or None if there is none."""
    signature = part.get("thought_signature")
    return normalize_base64(signature) or None if signature else None


def normalize_value(value: Any) -> Any:
    """Returns a JSON value with all keys in snake_case and all bytes in the standard alphabet, without nulls."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        named = ((_to_snake_case(key), item) for key, item in pairs if item is not None)
        return {name: _normalize_field(name, item) for name, item in named}
    if isinstance(value, list):
        return [normalize_value(item) for item in cast("list[Any]", value)]
    return value


def _normalize_field(name: str, item: Any) -> Any:
    if name in _FREE_KEYS:
        return item
    return (
        normalize_base64(item) if name in _BYTES_KEYS and isinstance(item, str | bytes) else normalize_value(item)
    )


def get_extra_fields(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the further fields of a part with snake_case keys. The fields are sent back with the part."""
    return {
        key: part[key] if key in _FREE_KEYS else normalize_value(part[key]) for key in _EXTRA_KEYS if part.get(key)
    }


def get_display_name(part: Mapping[str, Any]) -> dict[str, str]:
    """Returns the `display_name` of a media item as a dict, which is empty if there is none.

    The object of a function response may refer to the name (SDK: Blob, FileData).
    """
    fields = normalize_keys(as_object(part.get("inline_data") or part.get("file_data")))
    name = as_text(fields.get("display_name"))
    return {"display_name": name} if name else {}


def get_pair_key(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Returns the key that pairs a call of a server tool with its result. Returns None for any other part.

    Code and calls of server tools are requests, and their results are responses. The key contains the id of the
    part, if the part has one.
    """
    for request, response in (("executable_code", "code_execution_result"), ("tool_call", "tool_response")):
        if request in data:
            return "request", f"{request} {as_text(as_object(data[request]).get('id'))}"
        if response in data:
            return "response", f"{request} {as_text(as_object(data[response]).get('id'))}"
    return None


def get_part_places(data: Mapping[str, Any], *, in_results: bool = False) -> frozenset[str]:
    """Returns the places that accept a part with snake_case keys (SDK: Part; ai.google.dev: function-calling).

    Args:
        data: Fields of the part.
        in_results: True if function responses may contain media (Gemini 3 and later).
    """
    if get_pair_key(data) is not None or "function_call" in data or data.get("thought") is True:
        return frozenset({"assistant"})
    if "function_response" in data:
        return frozenset({"user"})
    if "text" in data:
        return frozenset({"assistant", "user", "system"})  # a system instruction accepts only text
    is_media = "file_data" in data or "inline_data" in data
    return frozenset({"assistant", "user", *(["result"] if in_results and is_media else [])})


_BLOCK_TYPES: dict[str, type[MediaBlock]] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}


def parse_media(part: Mapping[str, Any]) -> MediaBlock:
    """Parses the media item of a part with snake_case keys.

    Raises:
        MessageError: The data is not base64 text, or the URI is invalid.
    """
    if "inline_data" in part:
        blob = normalize_keys(as_object(part["inline_data"]))
        media_type, data = as_text(blob.get("mime_type")), normalize_base64(blob.get("data"))
        if not _BASE64.fullmatch(data):
            raise MessageError("inline_data", "expected base64 data", "Pass base64 text.")
        source: Base64Source | URLSource = Base64Source(media_type or "application/octet-stream", data)
    else:
        blob = normalize_keys(as_object(part.get("file_data")))
        source = URLSource(as_text(blob.get("file_uri")), as_text(blob.get("mime_type")) or None)
        media_type = source.guessed_type or ("video/*" if _YOUTUBE.match(source.url) else "")
    block_type = _BLOCK_TYPES.get(media_type.partition("/")[0].lower())
    if block_type is not None:
        return block_type(source)
    return DocumentBlock(source, title=as_text(blob.get("display_name")) or None)


_YOUTUBE = re.compile(r"https?://(www\.)?(youtube\.com|youtu\.be)/", re.IGNORECASE)


def is_stored_file(part: Mapping[str, Any]) -> bool:
    """Returns True if a part with snake_case keys is a file of the Files API, which no other provider can open."""
    return is_stored_uri(as_text(normalize_keys(as_object(part.get("file_data"))).get("file_uri")))


def is_stored_uri(uri: str) -> bool:
    """Returns True for the URI of a file of the Files API (ai.google.dev: files; SDK: File.uri, File.name)."""
    return bool(_STORED.match(uri))


_STORED = re.compile(r"(https?://generativelanguage\.googleapis\.com/([^?#]*/)?)?files/", re.IGNORECASE)


def has_content(part: Mapping[str, Any]) -> bool:
    """Returns True if a part with snake_case keys has content or a signature, and not only further fields."""
    return bool(part.keys() - {"thought", *_EXTRA_KEYS})


def copy_opaque_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of a part and its signature, as JSON values with snake_case keys, for an OpaqueBlock."""
    return cast("dict[str, Any]", make_json_safe(normalize_value(dict(part))))
