"""Functions that read the parts of a Gemini `Content`, and normalize the keys and base64 data of the parts.

The API sends camelCase keys, and data in the standard or URL-safe base64 alphabet. Dumped objects of the SDK have
camelCase keys and the URL-safe alphabet. Requests in Python have snake_case keys (google-genai: `types.Part`,
`_common.BaseModel`). Functions with an argument `part` expect snake_case keys.
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
    describe_value,
    make_json_safe,
)

__all__ = [
    "OPAQUE_KEYS",
    "as_content",
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
    "to_camel_case",
]

OPAQUE_KEYS = ("executable_code", "code_execution_result", "tool_call", "tool_response")
"""Keys for the calls and results of tools that Google runs. Later requests must contain the parts with these keys.

"The client is expected to echo this message back" (google-genai: Part.tool_call).
"""

_EXTRA_KEYS = (
    *("media_resolution", "media_processing", "video_metadata", "document_metadata", "spreadsheet_metadata"),
    *("audio_metadata", "part_metadata", "speech_metadata", "audio_transcription"),
)
"""Keys of additional fields of a part, such as metadata (google-genai: Part, FunctionResponsePart)."""

_FREE_KEYS = frozenset({"args", "response", "part_metadata"})
"""Keys whose values are objects defined by a tool or by the application.

The keys of these objects are not converted to snake_case.
"""

_BYTES_KEYS = frozenset({"thought_signature", "data", "sdk_blob", "continuation_token"})

_STANDARD_ALPHABET = str.maketrans("-_", "+/")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)


@lru_cache(1_024)
def _to_snake_case(key: str) -> str:
    """Returns a key in snake_case, such as `inline_data` for `inlineData`. Returns a non-ASCII key unchanged."""
    name = str(key)  # keys of a Python dict need not be strings
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f"_{match[1].lower()}", name) if name.isascii() else name


@lru_cache(1_024)
def to_camel_case(key: str) -> str:
    """Returns a key in camelCase, such as `inlineData` for `inline_data`."""
    head, *tail = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def get_field(fields: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a key, or None if the value is missing or null.

    Args:
        fields: Object with keys in snake_case or camelCase.
        key: Key in snake_case.
    """
    item = fields.get(to_camel_case(key))
    return fields.get(key) if item is None else item


def normalize_keys(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of an object with snake_case keys and without null values. Nested objects keep their keys."""
    return {_to_snake_case(key): item for key, item in fields.items() if item is not None}


def normalize_base64(data: object) -> str:
    """Returns base64 text with padding, in the standard alphabet.

    `data` is bytes, or base64 text in the standard or the URL-safe alphabet. Returns an empty string for any other
    value.
    """
    if isinstance(data, bytes):
        return base64.b64encode(data).decode("ascii")
    text = re.sub(r"\s+", "", as_text(data)).translate(_STANDARD_ALPHABET).rstrip("=")
    return text + "=" * (-len(text) % 4)


def get_signature(part: Mapping[str, Any]) -> str | None:
    """Returns the signature of a part as standard base64 text, or None if the part has no signature."""
    signature = part.get("thought_signature")
    return normalize_base64(signature) or None if signature else None


def normalize_value(value: Any) -> Any:
    """Returns a copy of a JSON value with snake_case keys and without null values.

    Base64 data is converted to the standard alphabet. Nested objects are converted too, except objects whose key
    is one of `_FREE_KEYS`.
    """
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        named = ((_to_snake_case(key), item) for key, item in pairs if item is not None)
        return {name: _normalize_field(name, item) for name, item in named}
    if isinstance(value, list):
        return [normalize_value(item) for item in cast("list[Any]", value)]
    return value


def _normalize_field(name: str, item: Any) -> Any:
    if name in _BYTES_KEYS and isinstance(item, str | bytes):
        return normalize_base64(item)
    return item if name in _FREE_KEYS else normalize_value(item)


def get_extra_fields(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the additional fields of a part, such as metadata. Content and signature are not included.

    The additional fields are sent back with the part in later requests.
    """
    return {key: _normalize_field(key, part[key]) for key in _EXTRA_KEYS if part.get(key)}


def get_display_name(part: Mapping[str, Any]) -> dict[str, str]:
    """Returns a dict with the `display_name` of a media part. The dict is empty if the part has no display name.

    The JSON object of a function response can refer to a media item by its display name (google-genai: Blob,
    FileData).
    """
    fields = normalize_keys(as_object(part.get("inline_data") or part.get("file_data")))
    name = as_text(fields.get("display_name"))
    return {"display_name": name} if name else {}


def get_pair_key(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Returns a key for a call or a result of a tool that Google runs. Returns None for any other part.

    The first item of the key is "request" for a call (or for code), and "response" for a result. The second item
    is the same for a call and its result. If the call has an id, the second item contains the id.
    """
    for request, response in (("executable_code", "code_execution_result"), ("tool_call", "tool_response")):
        if request in data:
            return "request", f"{request} {as_text(as_object(data[request]).get('id'))}"
        if response in data:
            return "response", f"{request} {as_text(as_object(data[response]).get('id'))}"
    return None


def get_part_places(data: Mapping[str, Any], *, in_results: bool = False) -> frozenset[str]:
    """Returns the roles whose messages can contain a part, plus "result" if tool results can contain the part.

    Args:
        data: Part with snake_case keys.
        in_results: True if the model accepts media in function responses (Gemini 3 and later).

    Sources: google-genai, Part; Gemini docs, function-calling.
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
    """Parses the media item in a part.

    Raises:
        MessageError: The data is not base64 text, or the URI is invalid.
    """
    if "inline_data" in part:
        blob = normalize_keys(as_object(part["inline_data"]))
        media_type, data = as_text(blob.get("mime_type")), normalize_base64(blob.get("data"))
        if not _BASE64.fullmatch(data):
            reason = f"expected base64 data, got {describe_value(blob.get('data'))}"
            raise MessageError("inline_data.data", reason, "Pass the data as base64 text.")
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
    """Returns True if a part refers to a file in Gemini's Files API. Only Gemini's API can open such a file."""
    return is_stored_uri(as_text(normalize_keys(as_object(part.get("file_data"))).get("file_uri")))


def is_stored_uri(uri: str) -> bool:
    """Returns True if a text is the URI or name of a file in the Files API (google-genai: File.uri, File.name)."""
    return bool(_STORED.match(uri))


_STORED = re.compile(r"(https?://generativelanguage\.googleapis\.com/([^?#]*/)?)?files/", re.IGNORECASE)


def has_content(part: Mapping[str, Any]) -> bool:
    """Returns True if a part has content or a signature. Metadata and similar additional fields are ignored."""
    return bool(part.keys() - {"thought", *_EXTRA_KEYS})


def as_content(system: Any) -> dict[str, Any]:
    """Converts a system instruction to a `Content` object in the same way as the SDK.

    A string, a part or a list of parts becomes a `Content` object with the role `user`. A `Content` object is
    returned unchanged.
    """
    if isinstance(system, Mapping) and "parts" in system:
        return cast("dict[str, Any]", system)
    part = {"text": system} if isinstance(system, str) else cast("object", system)
    parts = [*cast("list[Any]", system)] if isinstance(system, list | tuple) else [part]
    return {"role": "user", "parts": parts}


def copy_opaque_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the data of an OpaqueBlock for a part: a copy of the part as JSON values with snake_case keys."""
    return cast("dict[str, Any]", make_json_safe(normalize_value(dict(part))))
