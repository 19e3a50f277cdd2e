"""The one place that reads files and has URLs fetched, and what a source says without either."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias, cast

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
from agentkit.capabilities import Box, Capabilities, Kind, MediaLimits
from agentkit.errors import OptionError
from agentkit.fetching import Fetch, fetch_media
from agentkit.messages import Msg, Trait
from agentkit.resizing import can_resize, fitted, known_fit, needs_fitting
from agentkit.sniffing import sniffed_type

__all__ = ["Shelf", "load_media", "needs_fetching"]

_AT_ONCE = 8  # files read or texts checked at the same time
_RESIZED_AT_ONCE = 2  # a picture takes four bytes a pixel while it is resized
_THREADED = 1 << 16  # base64 text longer than this many characters is checked off the event loop


@dataclass(slots=True)
class Shelf:
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
        found = self.resolve(source)
        if self.fetches and isinstance(found, URLSource) and needs_fetching(form, kind, found):
            return Base64Source(found.guessed_type or _USUAL[kind], "")
        return found

    def resolve(self, source: Source) -> Base64Source | URLSource | str:
        """The source as a wire can have it (base64, or a URL that is no file and no data), or a reason."""
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
        return Base64Source(source.guessed_type, "") if source.guessed_type else _NO_TYPE


_USUAL: Mapping[Kind, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "document": "application/pdf",
}
"""What media of unknown type are taken for until they were fetched."""


def needs_fetching(form: Capabilities, kind: Kind, source: URLSource) -> bool:
    """Whether a target takes media at an http or https URL in no other way than as data."""
    rule, known = form.media[kind], source.guessed_type
    if source.scheme not in _WEB:
        return False
    if kind == "document" and form.text_documents and known and is_text_type(known):
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
    if source._settled is None:  # pyright: ignore[reportPrivateUsage]
        _set_settled(source, _settled(source))
    settled = source._settled  # pyright: ignore[reportPrivateUsage]
    return source if settled is True else cast("Base64Source | str", settled)


def _settled(source: Base64Source) -> object:
    """True for a source that is as it should be, else one that is, or the reason why there is none."""
    data = source.data
    if not is_base64(data):
        data = "".join(data.split())  # some encoders break lines
        if not is_base64(data):
            return _NO_BASE64
    media_type = true_type(data, canonical_media_type(source.media_type))
    return (data is source.data and media_type == source.media_type) or _sound(media_type, data)


def true_type(data: str, declared: str) -> str:
    """The media type that the data's first bytes tell; the declared one where they tell none."""
    return sniffed_type(data, declared) or declared


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
        _set_read(source, ("data", _sound(true_type(data, media_type), data) if data else _NO_DATA))
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


async def load_media(
    msgs: Sequence[Msg],
    form: Capabilities,
    roots: Sequence[Path] = (),
    fetch: Fetch | None = None,
    fetched: dict[URLSource, Base64Source | str] | None = None,
) -> Shelf:
    """Read, fetch and shrink what the messages hold and the target needs so, off the event loop, each once.

    A file outside all `roots` (symbolic links resolved first) is not read. A URL is fetched if there is a
    `fetch` and the target cannot open it by itself; `fetched` keeps the results, for callers who load more
    than once for one request. What cannot be had is a reason on the shelf, never an exception. Large base64
    text is checked off the loop, and pictures beyond the target's limits are made smaller if Pillow is installed.
    """
    wanted = _Wanted()
    for block in media_blocks(msgs):
        wanted.add(block, form, fetch)
    found = {} if fetched is None else fetched
    read: dict[URLSource, Base64Source | str] = {}
    urls = [url for url in wanted.urls if url not in found]
    if wanted.files or wanted.large or urls:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        async with anyio.create_task_group() as group:
            if wanted.files:
                group.start_soon(_read_files, read, list(wanted.files), roots, limiter)
            for source in wanted.large:
                group.start_soon(_resolve_apart, source, limiter)
            if fetch is not None and urls:
                group.start_soon(_fetch_all, found, urls, fetch)
    read.update((url, found[url]) for url in wanted.urls)
    shelf = Shelf(read)
    if form.image is not None and form.image.limits is not None:
        await _shrink(msgs, form.image.limits, shelf)
    return shelf


@dataclass(slots=True)
class _Wanted:
    """What has to be read, fetched, or checked in a thread; each once."""

    files: dict[URLSource, None] = field(default_factory=dict[URLSource, None])
    urls: dict[URLSource, None] = field(default_factory=dict[URLSource, None])
    large: list[Source] = field(default_factory=list[Source])

    def add(self, block: MediaBlock, form: Capabilities, fetch: Fetch | None) -> None:
        """Look at one block; nothing to do for data that were looked at before."""
        source = block.source
        if isinstance(source, Base64Source):
            if source._settled is None and len(source.data) > _THREADED:  # pyright: ignore[reportPrivateUsage]
                self.large.append(source)
        elif (scheme := source.scheme) == "file":
            self.files[source] = None
        elif scheme == "data":
            if source._read is None and len(source.url) > _THREADED:  # pyright: ignore[reportPrivateUsage]
                self.large.append(source)
        elif fetch is not None and needs_fetching(form, block.type, source):
            self.urls[source] = None


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


_Found: TypeAlias = dict[URLSource, "Base64Source | str"]


async def _fetch_all(found: _Found, urls: Sequence[URLSource], fetch: Fetch) -> None:
    limiter = anyio.CapacityLimiter(fetch.at_once)

    async def one(url: URLSource) -> None:
        async with limiter:
            found[url] = await fetch_media(url, fetch)

    async with anyio.create_task_group() as group:
        for url in urls:
            group.start_soon(one, url)


async def _shrink(msgs: Sequence[Msg], limits: MediaLimits, shelf: Shelf) -> None:
    """Put smaller copies of pictures on the shelf that may be too large for a request that holds them all."""
    pictures = [shelf.resolve(block.source) for block in media_blocks(msgs) if block.type == "image"]
    boxes = {limits.box(1), limits.box(len(pictures))}
    found = {id(source): source for source in pictures if isinstance(source, Base64Source)}
    wanted = [(source, box) for source in found.values() for box in boxes if needs_fitting(source, box)]
    if not wanted or not can_resize():
        return
    limiter = anyio.CapacityLimiter(_RESIZED_AT_ONCE)
    async with anyio.create_task_group() as group:
        for source, box in wanted:
            if known_fit(source, box) is None:
                group.start_soon(_fit_apart, source, box, limiter)
    made = (((id(source), box), known_fit(source, box)) for source, box in wanted)
    shelf.fits = {key: known[0] for key, known in made if known is not None and known[0] is not None}


async def _fit_apart(source: Base64Source, box: Box, limiter: anyio.CapacityLimiter) -> None:
    await anyio.to_thread.run_sync(fitted, source, box, limiter=limiter)


async def _read_files(
    read: _Found, sources: Sequence[URLSource], roots: Sequence[Path], limiter: anyio.CapacityLimiter
) -> None:
    """Files that were read before in one thread, as most have not changed; then the others side by side."""
    known = [source for source in sources if source._read is not None]  # pyright: ignore[reportPrivateUsage]
    if known:
        read.update(await anyio.to_thread.run_sync(_read_in_turn, known, roots, limiter=limiter))
    async with anyio.create_task_group() as group:
        for source in sources:
            if source not in read:
                group.start_soon(_read_into, read, source, roots, limiter)


async def _read_into(
    read: _Found, source: URLSource, roots: Sequence[Path], limiter: anyio.CapacityLimiter
) -> None:
    read[source] = await anyio.to_thread.run_sync(_read_file, source, roots, limiter=limiter)


def _read_in_turn(sources: Sequence[URLSource], roots: Sequence[Path]) -> _Found:
    return {source: _read_file(source, roots) for source in sources}


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
    read = _sound(true_type(data, media_type), data)
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
