"""The one place that reads files, and what a media source says without reading anything."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG
from typing import cast

import anyio

from agentkit.blocks import (
    Base64Source,
    MediaBlock,
    Source,
    ToolResultBlock,
    URLSource,
    canonical_media_type,
    encode,
    is_media_type,
    is_text_type,
)
from agentkit.errors import OptionError
from agentkit.messages import Msg, Trait

__all__ = ["Shelf", "load_media"]

_AT_ONCE = 8  # files read or texts checked at the same time
_THREADED = 1 << 16  # base64 text longer than this many characters is checked off the event loop


@dataclass(slots=True)
class Shelf:
    """What was read for one request: a file source's content, or why there is none.

    For files that were not read yet, `assume` says that their content is to be taken for good, and `unread`
    why they have none otherwise.
    """

    files: Mapping[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])
    assume: bool = False
    unread: str = "a file that was not read"

    def resolve(self, source: Source) -> Base64Source | URLSource | str:
        """The source as a wire can have it (base64, or a URL that is no file and no data), or a reason."""
        if isinstance(source, Base64Source):
            return _settle(source)
        if source.scheme == "data":
            return _from_data_url(source)
        if source.scheme != "file":
            return _with_plain_scheme(source)
        found = self.files.get(source)
        if found is not None:
            return found
        if not self.assume:
            return self.unread
        return Base64Source(source.guessed_type, "") if source.guessed_type else _NO_TYPE


def _with_plain_scheme(source: URLSource) -> URLSource:
    """The scheme in lower case (RFC 3986, 6.2.2.1), as servers and SDKs compare it."""
    scheme, rest = source.url[: len(source.scheme)], source.url[len(source.scheme) :]
    return source if scheme == source.scheme else replace(source, url=source.scheme + rest)


def _settle(source: Base64Source) -> Base64Source | str:
    """The source with a canonical media type, if its data is base64 text: looked at once in its life."""
    if source._settled is None:  # pyright: ignore[reportPrivateUsage]
        media_type = canonical_media_type(source.media_type)
        sound = is_base64(source.data)
        data = source.data if sound else "".join(source.data.split())  # some encoders break lines
        settled: object = sound and media_type == source.media_type
        if not settled:
            settled = _sound(media_type, data) if sound or is_base64(data) else _NO_BASE64
        _set_settled(source, settled)
    settled = source._settled  # pyright: ignore[reportPrivateUsage]
    return source if settled is True else cast("Base64Source | str", settled)


_NO_BASE64 = "its data is not base64 text"
_set_settled = Base64Source.__dict__["_settled"].__set__


def _sound(media_type: str, data: str) -> Base64Source:
    """A source whose data is known to be base64 text."""
    source = Base64Source(media_type, data)
    _set_settled(source, True)
    return source


def is_base64(data: str) -> bool:
    if data.endswith("==="):
        return False  # strict mode lets whole groups of padding through
    try:
        return bool(binascii.a2b_base64(data, strict_mode=True))
    except (binascii.Error, ValueError):
        return False


OUTSIDE = "a local file outside the media roots"
_NO_TYPE = "a file whose name tells no media type"

_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.IGNORECASE)


def _from_data_url(source: URLSource) -> Base64Source | str:
    """RFC 2397: an optional type and parameters, `;base64` last, then the data, percent-encoded or base64."""
    head = _DATA_URL.match(source.url)
    if head is None:
        return "a malformed data URL"
    media_type = canonical_media_type(source.media_type or head[1] or "text/plain")
    if not is_media_type(media_type):
        return "a data URL with a malformed media type"
    if source._read is None:  # pyright: ignore[reportPrivateUsage]
        data = _decoded(source.url[head.end() :], head[2])
        _set_read(source, ("data", _sound(media_type, data) if data else _NO_DATA))
    return cast("Base64Source | str", cast("tuple[object, object]", source._read)[1])  # pyright: ignore[reportPrivateUsage]


_NO_DATA = "a data URL whose data is empty or not base64 text"


def _decoded(body: str, parameters: str) -> str:
    """The body of a data URL as base64 text; empty when it is none."""
    from urllib.parse import unquote, unquote_to_bytes

    if not parameters.lower().endswith(";base64"):
        return encode(unquote_to_bytes(body))
    data = "".join((unquote(body) if "%" in body else body).split())
    return data if is_base64(data) else ""


def check_roots(roots: Iterable[str | Path]) -> tuple[Path, ...]:
    """The folders that media may be read from, resolved. Raises OptionError for one that is no folder."""
    if isinstance(roots, str | Path):
        raise OptionError("media_roots", "it is one path", "Give a list of folders.")
    try:
        found = tuple(Path(root).resolve() for root in roots)
    except (TypeError, ValueError) as error:
        raise OptionError("media_roots", str(error), "Give a list of folders.") from None
    for at, root in enumerate(found):
        if not root.is_dir():
            raise OptionError(f"media_roots[{at}]", f"{root} is no folder", "Name an existing folder.")
    return found


async def load_media(msgs: Sequence[Msg], roots: Sequence[Path]) -> Shelf:
    """Read what the messages need and has to be read: local files, off the event loop, each once.

    A file outside all `roots` (symbolic links resolved first) is not read. What cannot be read is a reason
    on the shelf, never an exception. Large base64 text is checked off the loop as well.
    """
    files: dict[URLSource, None] = {}
    large: list[Source] = []
    for block in media_blocks(msgs):
        source = block.source
        if isinstance(source, URLSource) and source.scheme == "file":
            files[source] = None
        elif len(source.url if isinstance(source, URLSource) else source.data) > _THREADED:
            large.append(source)
    read: dict[URLSource, Base64Source | str] = {}
    if files or large:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as group:
            for file in files:
                group.start_soon(_read_into, read, file, roots, limiter)
            for source in large:
                group.start_soon(_resolve_apart, source, limiter)
    return Shelf(read)


async def _resolve_apart(source: Source, limiter: anyio.CapacityLimiter) -> None:
    """Check large base64 text in a thread; the source remembers what was found."""

    def resolve() -> None:
        found = Shelf().resolve(source)
        if isinstance(found, Base64Source):
            _warm(found)

    await anyio.to_thread.run_sync(resolve, limiter=limiter)


def _warm(source: Base64Source) -> None:
    """Work out in this thread what the event loop would have to otherwise."""
    _ = source.text if is_text_type(source.media_type) else source.data_url


async def _read_into(
    read: dict[URLSource, Base64Source | str],
    source: URLSource,
    roots: Sequence[Path],
    limiter: anyio.CapacityLimiter,
) -> None:
    read[source] = await anyio.to_thread.run_sync(_read_file, source, roots, limiter=limiter)


def _read_file(source: URLSource, roots: Sequence[Path]) -> Base64Source | str:
    """The file's content, if it lies under a root; read and encoded anew only when the file has changed."""
    media_type = source.guessed_type
    if media_type is None:
        return _NO_TYPE
    try:
        path = _path_of(source.url).resolve()
        if not any(path.is_relative_to(root) for root in roots):
            return OUTSIDE
        status = path.stat()
        if not S_ISREG(status.st_mode):
            return "a path that is no file"
        mark = (str(path), status.st_mtime_ns, status.st_size)
        if source._read and source._read[0] == mark:  # pyright: ignore[reportPrivateUsage]
            return cast("Base64Source", source._read[1])  # pyright: ignore[reportPrivateUsage]
        data = encode(path.read_bytes())
    except (OSError, ValueError, RuntimeError):  # links in a circle are a RuntimeError up to Python 3.12
        return "a local file that cannot be read"
    if not data:
        return "an empty file"
    read = _sound(media_type, data)
    _warm(read)
    _set_read(source, (mark, read))
    return read


_set_read = URLSource.__dict__["_read"].__set__


def _path_of(url: str) -> Path:
    if not url.lower().startswith("file:"):
        return Path(url)
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError("a file on another machine")
    return Path(unquote(parts.path))


def media_blocks(msgs: Sequence[Msg]) -> Iterable[MediaBlock]:
    """All media of the messages, inside tool results as well."""
    for msg in msgs:
        if msg.traits & (Trait.MEDIA | Trait.RESULT_MEDIA):
            for block in msg.blocks:
                if isinstance(block, ToolResultBlock):
                    for item in block.items:
                        if isinstance(item, MediaBlock):
                            yield item
                elif isinstance(block, MediaBlock):
                    yield block
