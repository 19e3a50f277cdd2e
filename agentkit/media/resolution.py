"""`ResolvedMedia`: each media source of a request as data, as a URL, or as the reason for its omission."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import Box, Kind
from agentkit.messages.media_types import canonical_media_type, is_media_type, is_text_type
from agentkit.messages.sniffing import has_signature, image_size, sniff_media_type
from agentkit.messages.sources import (
    Base64Source,
    Source,
    URLSource,
    cache_file_content,
    encode_base64,
)

__all__ = [
    "LONGEST_TEXT",
    "NO_TYPE",
    "ResolvedMedia",
    "as_source",
    "convert_to_utf8",
    "detect_type",
    "fill_caches",
    "is_base64",
    "needs_fetching",
    "placeholder_source",
]


@dataclass(slots=True)
class ResolvedMedia:
    """Content of the media sources of one request.

    Attributes:
        files: Content of files and URLs that were loaded, or the reason why a source has none.
        assume: True if a placeholder replaces each file that is not read yet.
        unread: Reason for a file that is not read, if `assume` is False.
        fetches: True if a placeholder replaces each URL that has to be fetched and is not fetched yet.
        resizes: True if images that are too large will be resized later.
        fits: Smaller copies of images, by the identity of the resolved source and the box.

    """

    files: Mapping[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])
    assume: bool = False
    unread: str = "a file that was not read"
    fetches: bool = False
    resizes: bool = False
    fits: Mapping[tuple[int, Box], Base64Source] = field(default_factory=dict[tuple[int, Box], Base64Source])

    def resolve_for(
        self, capabilities: Capabilities, kind: Kind, source: Source
    ) -> Base64Source | URLSource | str:
        """Returns `resolve(source, kind)`, with a placeholder for a URL that has to be fetched for the target."""
        resolved = self.resolve(source, kind)
        if self.fetches and isinstance(resolved, URLSource) and needs_fetching(capabilities, kind, resolved):
            return placeholder_source(resolved.guessed_type or _DEFAULT_TYPES[kind])
        return resolved

    def resolve(self, source: Source, kind: Kind = "document") -> Base64Source | URLSource | str:
        """Returns the source as base64 text or as a remote URL, or the reason why it has no content.

        Args:
            source: Source of a media block.
            kind: Kind of the media. It decides the media type of the placeholder for a file without a suffix.

        """
        if isinstance(source, Base64Source):
            return _check(source)
        if source.scheme == "data":
            return _from_data_url(source)
        content = self.files.get(source)
        if content is not None:
            return content
        if source.scheme != "file":
            return _with_lower_scheme(source)
        if not self.assume:
            return self.unread
        return placeholder_source(source.guessed_type or _DEFAULT_TYPES[kind])


def placeholder_source(media_type: str, size: int | None = None) -> Base64Source:
    """Returns a source for media whose content is not loaded yet.

    Args:
        media_type: Media type of the source. The placeholder of a text has English words, so that counters count
            it; any other placeholder is empty.
        size: Size of a text in bytes. None if unknown: the text then costs about as much as other media.

    """
    if not is_text_type(media_type):
        return Base64Source(media_type, "")
    if size is None:
        return Base64Source(media_type, _SOME_TEXT)
    too_long = size > 4 * LONGEST_TEXT  # a character of UTF-8 has at most four bytes
    length = LONGEST_TEXT + 1 if too_long else min(size, LONGEST_TEXT)
    return Base64Source(media_type, encode_base64((_WORD * (length // len(_WORD) + 1))[:length]))


LONGEST_TEXT = 1_000_000
"""Limit of a text document that is sent as text, in characters: about 250,000 tokens."""

_WORD = b"word "
_SOME_TEXT = encode_base64(_WORD * 1_000)

_DEFAULT_TYPES: Mapping[Kind, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}
"""Media types of placeholders for media of unknown type."""


def needs_fetching(capabilities: Capabilities, kind: Kind, source: URLSource) -> bool:
    """Returns True if a target accepts the media at an http or https URL only as data."""
    rule, media_type = capabilities.media.rules[kind], source.guessed_type
    if source.scheme not in _WEB:
        return False
    if kind == "document" and media_type and is_text_type(media_type):
        return rule is None or not (source.scheme in rule.schemes and rule.fetches(kind, media_type))
    if rule is None or (source.scheme in rule.schemes and rule.fetches(kind, media_type)):
        return False
    return rule.embed if media_type is None else rule.takes(kind, media_type)


_WEB = frozenset({"http", "https"})


def _with_lower_scheme(source: URLSource) -> URLSource:
    """Returns the URL with its scheme in lower case (RFC 3986, 6.2.2.1), as servers and SDKs compare it."""
    url = source.scheme + source.url[len(source.scheme) :]
    return source if url == source.url else replace(source, url=url)


def _check(source: Base64Source) -> Base64Source | str:
    """Returns the source with a canonical media type, or the reason why its data is refused. Checked once."""
    checked: object = source.cache.get("checked")
    if checked is None:
        checked = source.cache["checked"] = _compute_check(source)
    return source if checked is True else cast("Base64Source | str", checked)


def _compute_check(source: Base64Source) -> object:
    """Returns True for a source that needs no change, else the changed source, or the reason for a refusal."""
    data = source.data
    if not is_base64(data):
        data = "".join(data.split())  # some encoders break lines
        if not is_base64(data):
            return _NO_BASE64
    result = as_source(data, source.media_type, "its data")
    same = isinstance(result, Base64Source) and data is source.data and result.media_type == source.media_type
    return same or result


def as_source(data: str, declared: str, subject: str) -> Base64Source | str:
    """Returns base64 text as a source with the media type that its first bytes indicate. A text becomes UTF-8.

    Args:
        data: Base64 text.
        declared: Declared media type, with parameters. It applies if the first bytes indicate no type.
        subject: Start of the reason for data without the signature of the declared type, which no target can open.

    """
    media_type = detect_type(data, canonical_media_type(declared))
    if media_type is None:
        return f"{subject} is no {canonical_media_type(declared)}" if declared else NO_TYPE
    return _checked_source(media_type, convert_to_utf8(data, declared) if is_text_type(media_type) else data)


def detect_type(data: str, declared: str | None) -> str | None:
    """Returns the media type of base64 text.

    This is the type that the first bytes indicate, else the declared type. Returns None if the declared type has a
    signature that the data lacks.
    """
    sniffed = sniff_media_type(data, declared or "")
    return declared if sniffed is None and declared and not has_signature(declared) else sniffed


_NO_BASE64 = "its data is not base64 text"


def _checked_source(media_type: str, data: str) -> Base64Source:
    """Returns a source whose data is known to be base64 text."""
    source = Base64Source(media_type, data)
    source.cache["checked"] = True
    return source


def fill_caches(source: Base64Source) -> None:
    """Fills the caches of a source in this thread, so that the event loop need not compute them."""
    _ = source.text if is_text_type(source.media_type) else (source.data_url, image_size(source))


def is_base64(data: str) -> bool:
    """Returns True if a text is standard base64 with at least one byte of data."""
    if data.endswith("==="):
        return False  # strict mode accepts groups of nothing but padding
    try:
        return bool(binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError):
        return False


NO_TYPE = "a file whose media type neither its name nor its content tells"
"""Reason for data of an unknown media type."""

_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


def _from_data_url(source: URLSource) -> Base64Source | str:
    """Returns the content of a data URL, cached on the source, or the reason for a refusal.

    RFC 2397: an optional media type and parameters, `;base64` last, then the data, percent-encoded or base64.
    Other cases follow the WHATWG Fetch Standard, "data: URLs": spaces around `base64` are allowed, the first comma
    ends the head even within quotes, and padding is optional.
    """
    head = _DATA_URL.match(source.url)
    if head is None:
        return "a malformed data URL"
    media_type = canonical_media_type(source.media_type or head[1] or "text/plain")
    if not is_media_type(media_type):
        return "a data URL with a malformed media type"
    if source.cached_content is None:
        data = _decode_body(source.url[head.end() :], head[2])
        declared = source.media_type or f"{media_type}{head[2]}"
        result = as_source(data, declared, "a data URL whose content") if data else _NO_DATA
        cache_file_content(source, ("data", result))
    return cast("Base64Source | str", cast("tuple[object, object]", source.cached_content)[1])


_NO_DATA = "a data URL whose data is empty or not base64 text"


def _decode_body(body: str, parameters: str) -> str:
    """Returns the body of a data URL as base64 text. Returns an empty text for a malformed body."""
    from urllib.parse import unquote, unquote_to_bytes

    if parameters.rpartition(";")[2].strip().lower() != "base64":
        return encode_base64(unquote_to_bytes(body))
    data = "".join((unquote(body) if "%" in body else body).split())
    if "=" not in data[-2:]:
        data += "=" * (-len(data) % 4)
    return data if is_base64(data) else ""


def convert_to_utf8(data: str, media_type: str) -> str:
    """Returns the base64 text of a text, converted to UTF-8 from the charset of its media type.

    The data is unchanged if the charset is missing or unknown, or if the bytes are not valid in it.
    """
    match = _CHARSET.search(media_type)
    codec = _CODECS.get(match[1].lower()) if match else None
    if codec is None:
        return data
    try:
        return encode_base64(base64.b64decode(data).decode(codec).encode())
    except UnicodeError:
        return data


_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)


# WHATWG Encoding Standard, 4.2, "Names and labels": the common labels, and Python's codec for each. UTF-8 and
# ASCII need no conversion. UTF-16 is missing because its bytes do not count as text.
_CODECS: dict[str, str] = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "cp1252"), "cp1252"),
    **{f"iso-8859-{number}": f"iso8859_{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "macintosh": "mac_roman",
    "koi8-r": "koi8_r", "koi8-u": "koi8_u",
    "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs",
    "euc-jp": "euc_jp", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "euc-kr": "cp949",
}  # fmt: skip
