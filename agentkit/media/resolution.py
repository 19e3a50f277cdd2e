"""`ResolvedMedia`: what each media source becomes in one request: data, a URL, or the reason for its omission."""

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
    "in_utf8",
    "is_base64",
    "needs_fetching",
    "placeholder_source",
    "true_type",
    "warm",
]


@dataclass(slots=True)
class ResolvedMedia:
    """What was read and fetched for one request: a source's content, or why there is none.

    For files that were not read yet, `assume` says that their content is to be taken for good, and `unread`
    why they have none otherwise; `fetches` says the same of URLs that have to be fetched. `fits` are pictures
    made smaller, by the identity of the source as it is resolved and what it had to fit in; `resizes` says
    that those which are not there yet will be.
    """

    files: Mapping[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])
    assume: bool = False
    unread: str = "a file that was not read"
    fetches: bool = False
    resizes: bool = False
    fits: Mapping[tuple[int, Box], Base64Source] = field(default_factory=dict[tuple[int, Box], Base64Source])

    def resolve_for(self, form: Capabilities, kind: Kind, source: Source) -> Base64Source | URLSource | str:
        """The same for one target, which may need what it cannot open to be fetched."""
        found = self.resolve(source, kind)
        if self.fetches and isinstance(found, URLSource) and needs_fetching(form, kind, found):
            return placeholder_source(found.guessed_type or _USUAL[kind])
        return found

    def resolve(self, source: Source, kind: Kind = "document") -> Base64Source | URLSource | str:
        """The source as a wire can have it (base64, or a URL that is no file and no data), or a reason.

        A file that was not read yet and has no suffix is taken for a usual one of the kind.
        """
        if isinstance(source, Base64Source):
            return _settle(source)
        if source.scheme == "data":
            return _from_data_url(source)
        found = self.files.get(source)
        if found is not None:
            return found
        if source.scheme != "file":
            return _with_plain_scheme(source)
        if not self.assume:
            return self.unread
        return placeholder_source(source.guessed_type or _USUAL[kind])


def placeholder_source(media_type: str, size: int | None = None) -> Base64Source:
    """What stands in for media whose content is not known yet.

    Of a text, English of so many bytes, as far as so long a text would be written out. One of unknown size costs
    about what other media do.
    """
    if not is_text_type(media_type):
        return Base64Source(media_type, "")
    if size is None:
        return Base64Source(media_type, _SOME_TEXT)
    too_long = size > 4 * LONGEST_TEXT  # in any case: a character of UTF-8 takes four bytes at most
    length = LONGEST_TEXT + 1 if too_long else min(size, LONGEST_TEXT)
    return Base64Source(media_type, encode_base64((_WORD * (length // len(_WORD) + 1))[:length]))


LONGEST_TEXT = 1_000_000
"""Characters of a text document that are written out as text: a quarter of a million tokens, about."""

_WORD = b"word "
_SOME_TEXT = encode_base64(_WORD * 1_000)

_USUAL: Mapping[Kind, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}
"""What media of unknown type are taken for until they were read or fetched."""


def needs_fetching(form: Capabilities, kind: Kind, source: URLSource) -> bool:
    """Whether a target takes media at an http or https URL in no other way than as data."""
    rule, known = form.media.rules[kind], source.guessed_type
    if source.scheme not in _WEB:
        return False
    if kind == "document" and known and is_text_type(known):
        return rule is None or not (source.scheme in rule.schemes and rule.fetches(kind, known))
    if rule is None or (source.scheme in rule.schemes and rule.fetches(kind, known)):
        return False
    return rule.embed if known is None else rule.takes(kind, known)


_WEB = frozenset({"http", "https"})


def _with_plain_scheme(source: URLSource) -> URLSource:
    """The scheme in lower case (RFC 3986, 6.2.2.1), as servers and SDKs compare it."""
    scheme, rest = source.url[: len(source.scheme)], source.url[len(source.scheme) :]
    return source if scheme == source.scheme else replace(source, url=source.scheme + rest)


def _settle(source: Base64Source) -> Base64Source | str:
    """The source with a canonical media type, if its data is base64 text: looked at once in its life."""
    settled: object = source.cache.get("settled")
    if settled is None:
        settled = source.cache["settled"] = _settled(source)
    return source if settled is True else cast("Base64Source | str", settled)


def _settled(source: Base64Source) -> object:
    """True for a source that is as it should be, else one that is, or the reason why there is none."""
    data = source.data
    if not is_base64(data):
        data = "".join(data.split())  # some encoders break lines
        if not is_base64(data):
            return _NO_BASE64
    found = as_source(data, source.media_type, "its data")
    same = isinstance(found, Base64Source) and data is source.data and found.media_type == source.media_type
    return same or found


def as_source(data: str, declared: str, what: str) -> Base64Source | str:
    """Base64 text with the media type that its first bytes tell, or else the declared one; a text in UTF-8.

    A reason about `what` where they should tell the declared one and do not: no target can open that.
    """
    media_type = true_type(data, canonical_media_type(declared))
    if media_type is None:
        return f"{what} is no {canonical_media_type(declared)}" if declared else NO_TYPE
    return sound_source(media_type, in_utf8(data, declared) if is_text_type(media_type) else data)


def true_type(data: str, declared: str | None) -> str | None:
    """The media type that the data's first bytes tell; the declared one, unless they would tell it and do not."""
    sniffed = sniff_media_type(data, declared or "")
    return declared if sniffed is None and declared and not has_signature(declared) else sniffed


_NO_BASE64 = "its data is not base64 text"


def sound_source(media_type: str, data: str) -> Base64Source:
    """A source whose data is known to be base64 text."""
    source = Base64Source(media_type, data)
    source.cache["settled"] = True
    return source


def warm(source: Base64Source) -> None:
    """Work out in this thread what the event loop would have to otherwise."""
    _ = source.text if is_text_type(source.media_type) else (source.data_url, image_size(source))


def is_base64(data: str) -> bool:
    """Whether a text is standard base64 that says something."""
    if data.endswith("==="):
        return False  # strict mode lets whole groups of padding through
    try:
        return bool(binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError):
        return False


NO_TYPE = "a file whose media type neither its name nor its content tells"

_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


def _from_data_url(source: URLSource) -> Base64Source | str:
    """RFC 2397: an optional type and parameters, `;base64` last, then the data, percent-encoded or base64.

    Where the RFC says nothing, the WHATWG Fetch Standard, "data: URLs": blanks may stand around `base64`, the
    first comma ends the head, quoted or not, and the padding may be missing.
    """
    head = _DATA_URL.match(source.url)
    if head is None:
        return "a malformed data URL"
    media_type = canonical_media_type(source.media_type or head[1] or "text/plain")
    if not is_media_type(media_type):
        return "a data URL with a malformed media type"
    if source.cached_content is None:
        data = _decoded(source.url[head.end() :], head[2])
        declared = source.media_type or f"{media_type}{head[2]}"
        found = as_source(data, declared, "a data URL whose content") if data else _NO_DATA
        cache_file_content(source, ("data", found))
    return cast("Base64Source | str", cast("tuple[object, object]", source.cached_content)[1])


_NO_DATA = "a data URL whose data is empty or not base64 text"


def _decoded(body: str, parameters: str) -> str:
    """The body of a data URL as base64 text; empty when it is none."""
    from urllib.parse import unquote, unquote_to_bytes

    if parameters.rpartition(";")[2].strip().lower() != "base64":
        return encode_base64(unquote_to_bytes(body))
    data = "".join((unquote(body) if "%" in body else body).split())
    if "=" not in data[-2:]:
        data += "=" * (-len(data) % 4)
    return data if is_base64(data) else ""


def in_utf8(data: str, media_type: str) -> str:
    """Base64 text of a text in UTF-8, given the media type it came with, parameters and all.

    As it is where no other charset is named, none that is known, or one that the bytes are not in.
    """
    named = _CHARSET.search(media_type)
    codec = _CODECS.get(named[1].lower()) if named else None
    if codec is None:
        return data
    try:
        return encode_base64(base64.b64decode(data).decode(codec).encode())
    except UnicodeError:
        return data


_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)


# WHATWG Encoding Standard, 4.2, "Names and labels": the common labels, and Python's codec for each. UTF-8 and
# ASCII need none; UTF-16 is not among them: its bytes are not taken for text.
_CODECS: dict[str, str] = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "cp1252"), "cp1252"),
    **{f"iso-8859-{number}": f"iso8859_{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "macintosh": "mac_roman",
    "koi8-r": "koi8_r", "koi8-u": "koi8_u",
    "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs",
    "euc-jp": "euc_jp", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "euc-kr": "cp949",
}  # fmt: skip
