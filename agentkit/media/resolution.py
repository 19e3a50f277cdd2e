"""`ResolvedMedia`: maps each media source of a request to data, to a URL, or to a reason for its omission."""

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
        files: Maps each file or URL to its content, or to the reason why the file or URL cannot be loaded.
        assume: True if a placeholder replaces each file that is not read yet.
        unread: Ledger reason for a file that is not read, if `assume` is False.
        fetches: True if a placeholder replaces each URL that must be fetched but is not fetched yet.
        resizes: True if images that are too large will be resized later.
        fits: Resized copies of images. A key is the `id()` of the original source and the size limits of the
            copy.
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
        """Returns a source that the target can use, or the reason why the content is missing.

        If `fetches` is True, a placeholder replaces a URL that must be fetched but is not fetched yet. In all
        other cases, the result is `resolve(source, kind)`.
        """
        resolved = self.resolve(source, kind)
        if self.fetches and isinstance(resolved, URLSource) and needs_fetching(capabilities, kind, resolved):
            return placeholder_source(resolved.guessed_type or _DEFAULT_TYPES[kind])
        return resolved

    def resolve(self, source: Source, kind: Kind = "document") -> Base64Source | URLSource | str:
        """Returns a source with base64 text or with a remote URL, or the reason why the content is missing.

        `kind` decides the media type of a placeholder for a file whose name does not show the media type.
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

    A placeholder for text has `size` bytes of English words, but at most `LONGEST_TEXT` + 1 bytes, so that token
    counters can count the words. If `size` is None, the placeholder has 1,000 words, which cost about as many
    tokens as an image. A placeholder for any other media type is empty.
    """
    if not is_text_type(media_type):
        return Base64Source(media_type, "")
    if size is None:
        return Base64Source(media_type, _SOME_TEXT)
    too_long = size > 4 * LONGEST_TEXT  # UTF-8 has at most four bytes per character
    length = LONGEST_TEXT + 1 if too_long else min(size, LONGEST_TEXT)
    return Base64Source(media_type, encode_base64((_WORD * (length // len(_WORD) + 1))[:length]))


LONGEST_TEXT = 1_000_000
"""Maximum length of a document that is sent as text, in characters. Such a text has about 250,000 tokens."""

_WORD = b"word "
_SOME_TEXT = encode_base64(_WORD * 1_000)

_DEFAULT_TYPES: Mapping[Kind, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}
"""Maps each media kind to the media type of placeholders for sources whose media type is unknown."""


def needs_fetching(capabilities: Capabilities, kind: Kind, source: URLSource) -> bool:
    """Returns True if media at an http or https URL must be downloaded for a target.

    A download is necessary if the target accepts the media, but cannot open the URL. A text document is also
    downloaded for a target that accepts no documents, because the request can contain the text.
    """
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
    """Returns the source with its URL scheme in lower case, because servers and SDKs expect lower case.

    Schemes are case-insensitive (RFC 3986, section 6.2.2.1).
    """
    url = source.scheme + source.url[len(source.scheme) :]
    return source if url == source.url else replace(source, url=url)


def _check(source: Base64Source) -> Base64Source | str:
    """Returns a source with valid base64 text and a canonical media type, or the reason for a refusal.

    The original source caches the result.
    """
    checked: object = source.cache.get("checked")
    if checked is None:
        checked = source.cache["checked"] = _compute_check(source)
    return source if checked is True else cast("Base64Source | str", checked)


def _compute_check(source: Base64Source) -> object:
    """Returns True if a source needs no change, else a changed source or the reason for a refusal."""
    data = source.data
    if not is_base64(data):
        data = "".join(data.split())  # some encoders insert line breaks into base64 text
        if not is_base64(data):
            return _NO_BASE64
    result = as_source(data, source.media_type, "the data")
    same = isinstance(result, Base64Source) and data is source.data and result.media_type == source.media_type
    return same or result


def as_source(data: str, declared: str, subject: str) -> Base64Source | str:
    """Converts base64 text to a media source, or returns the reason for a refusal.

    The first bytes of the data determine the media type. If these bytes are unknown, the declared type is used.
    However, files of some types always begin with known bytes, for example PNG files. Data that is declared as
    such a type, but begins with unknown bytes, is refused, because no target can open it. The content of a text
    document is converted to UTF-8.

    Args:
        data: Base64 text.
        declared: Declared media type, with optional parameters such as a charset.
        subject: Beginning of the reason for a refusal, such as "the data".
    """
    media_type = detect_type(data, canonical_media_type(declared))
    if media_type is None:
        return f"{subject} is not {canonical_media_type(declared)}" if declared else NO_TYPE
    return _checked_source(media_type, convert_to_utf8(data, declared) if is_text_type(media_type) else data)


def detect_type(data: str, declared: str | None) -> str | None:
    """Returns the media type that the first bytes of base64 text indicate, else the declared media type.

    Returns None if the first bytes are unknown and `declared` is missing. Also returns None if the first bytes are
    unknown, but files of the declared type always begin with known bytes, as PNG files do.
    """
    sniffed = sniff_media_type(data, declared or "")
    return declared if sniffed is None and declared and not has_signature(declared) else sniffed


_NO_BASE64 = "the data is not base64 text"


def _checked_source(media_type: str, data: str) -> Base64Source:
    """Creates a source from valid base64 text, and marks the source as checked."""
    source = Base64Source(media_type, data)
    source.cache["checked"] = True
    return source


def fill_caches(source: Base64Source) -> None:
    """Computes the cached values of a source.

    The computation is slow for large data, so call this function in a worker thread.
    """
    _ = source.text if is_text_type(source.media_type) else (source.data_url, image_size(source))


def is_base64(data: str) -> bool:
    """Returns True if a text is standard base64 with at least one byte of data."""
    if data.endswith("==="):
        return False  # the strict mode of `binascii` accepts four final characters that are all padding
    try:
        return bool(binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError):
        return False


NO_TYPE = "neither the name nor the content of the file shows the media type"
"""Ledger reason for a file with an unknown media type."""

_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


def _from_data_url(source: URLSource) -> Base64Source | str:
    """Decodes a data URL. Returns its content, or the reason for a refusal. The source caches the result.

    A data URL has an optional media type, optional parameters, and data. The data is in base64 after the
    parameter `;base64`, and otherwise percent-encoded (RFC 2397). Three further rules follow the WHATWG Fetch
    Standard, section "data: URLs": Spaces around `base64` are allowed. The first comma ends the header, even
    inside quotes. Padding is optional.
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
        result = as_source(data, declared, "the content of the data URL") if data else _NO_DATA
        cache_file_content(source, ("data", result))
    return cast("Base64Source | str", cast("tuple[object, object]", source.cached_content)[1])


_NO_DATA = "the data URL contains no data, or the data is not base64 text"


def _decode_body(body: str, parameters: str) -> str:
    """Converts the body of a data URL to base64 text. Returns an empty string if the body is malformed."""
    from urllib.parse import unquote, unquote_to_bytes

    if parameters.rpartition(";")[2].strip().lower() != "base64":
        return encode_base64(unquote_to_bytes(body))
    data = "".join((unquote(body) if "%" in body else body).split())
    if "=" not in data[-2:]:
        data += "=" * (-len(data) % 4)
    return data if is_base64(data) else ""


def convert_to_utf8(data: str, media_type: str) -> str:
    """Converts base64-encoded text from the charset in its media type to UTF-8.

    Returns the data unchanged if the charset is missing or unknown, or if the bytes are not valid in the charset.
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


# Common charset labels of the WHATWG Encoding Standard (section 4.2), with Python's codec for each label.
# UTF-8 and ASCII need no conversion. UTF-16 is missing because agentkit does not recognize UTF-16 bytes as text.
_CODECS: dict[str, str] = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "cp1252"), "cp1252"),
    **{f"iso-8859-{number}": f"iso8859_{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "macintosh": "mac_roman",
    "koi8-r": "koi8_r", "koi8-u": "koi8_u",
    "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs",
    "euc-jp": "euc_jp", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "euc-kr": "cp949",
}  # fmt: skip
