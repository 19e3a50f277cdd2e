"""The one place that reads files, has URLs fetched and pictures made smaller: off the loop, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import sleep
from typing import TypeAlias, TypeVar

import anyio

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import Box, Kind, MediaLimits, excess
from agentkit.errors import OptionError
from agentkit.media.acceptance import rejection_reason
from agentkit.media.fetching import Fetch, fetch_media, recount
from agentkit.media.files import LARGEST, OUTSIDE, read_file, weigh_file
from agentkit.media.message_media import MessageMedia, all_media, is_fresh
from agentkit.media.resizing import can_resize, known_fit, needs_fitting, resize_to_fit
from agentkit.media.resolution import ResolvedMedia, needs_fetching, warm
from agentkit.messages.blocks import MediaBlock
from agentkit.messages.media_types import is_text_type
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source, Source, URLSource

__all__ = ["OUTSIDE", "check_roots", "load_media", "needs_loading", "settle_media", "weigh_texts"]

_AT_ONCE = 8  # files read at the same time
_RESIZED_AT_ONCE = 2  # a picture takes four bytes a pixel while it is resized
_THREADED = 1 << 16  # base64 texts of more than this many characters together are checked off the event loop

_Item = TypeVar("_Item")
_Found: TypeAlias = dict[URLSource, "Base64Source | str"]


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
) -> ResolvedMedia:
    """Read, fetch and shrink what the messages hold and the target needs so, off the event loop, each once.

    A file outside all `roots` (symbolic links resolved first) is not read, nor one that is far too large. A URL
    is fetched if there is a `fetch` and the target cannot open it by itself; `fetched` keeps the results, for
    callers who load more than once for one request. What cannot be had is a reason on the shelf, never an
    exception. Much base64 text is checked off the loop, and pictures beyond the target's limits are made
    smaller if Pillow is installed.
    """
    media = all_media(msgs)
    shelf = ResolvedMedia() if _are_ready(media) else await _read(media, form, roots, fetch, fetched)
    if form.media.image is not None and form.media.image.limits is not None:
        await _shrink(media, form, form.media.image.limits, shelf)
        if fetch is not None and shelf.fits:
            recount([url for url in shelf.files if url.scheme != "file"], fetch)
    return shelf


async def _read(
    media: Sequence[MessageMedia],
    form: Capabilities,
    roots: Sequence[Path],
    fetch: Fetch | None,
    fetched: _Found | None,
) -> ResolvedMedia:
    """What is at the files and addresses that are named; base64 text is looked at meanwhile."""
    wanted = _Wanted.of(media, form, fetch)
    found = {} if fetched is None else fetched
    read: _Found = {}
    urls = [url for url in wanted.urls if url not in found]
    if wanted.fresh or urls:
        async with anyio.create_task_group() as group:
            group.start_soon(_read_files, read, wanted.files, roots)
            group.start_soon(_settle, wanted.fresh)
            if fetch is not None:
                group.start_soon(_fetch_all, found, urls, fetch)
    elif wanted.files:
        await _read_files(read, wanted.files, roots)
    read.update((url, found[url]) for url in wanted.urls)
    return ResolvedMedia(read)


async def settle_media(msgs: Sequence[Msg]) -> None:
    """Check much base64 text off the event loop, and nothing else: each source remembers what was found."""
    media = all_media(msgs)
    if not _are_ready(media):
        await _settle([block.source for one in media for block in one.blocks if is_fresh(block.source)])


async def weigh_texts(msgs: Sequence[Msg], form: Capabilities, roots: Sequence[Path]) -> _Found:
    """What stands in for the text files of the messages until they are read: texts of their sizes, or reasons.

    Other media are taken for what media cost that nothing is known of.
    """
    files = _Wanted.of(all_media(msgs), form, None).files
    texts = {source: most for source, most in files.items() if is_text_type(source.guessed_type or "")}
    found: _Found = {}
    if texts:
        await anyio.to_thread.run_sync(partial(_weigh_in_turn, found, texts, roots))
    return found


def _weigh_in_turn(found: _Found, sources: Mapping[URLSource, int], roots: Sequence[Path]) -> None:
    for source, most in sources.items():
        found[source] = weigh_file(source, roots, most)


def needs_loading(msgs: Sequence[Msg], form: Capabilities, fetch: Fetch | None) -> bool:
    """Whether the target needs anything of the messages read, fetched or made smaller."""
    media = all_media(msgs)
    if not _are_ready(media) and ((wanted := _Wanted.of(media, form, fetch)).files or wanted.urls):
        return True
    limits = form.media.image.limits if form.media.image is not None else None
    return limits is not None and not _fit_all(media, _box(media, limits))


def _are_ready(media: Sequence[MessageMedia]) -> bool:
    return not [one for one in media if not one.ready]


def _box(media: Sequence[MessageMedia], limits: MediaLimits) -> Box:
    """What each picture must fit in, where they are all together in one request."""
    return limits.box(sum([one.pictures for one in media]))


def _fit_all(media: Sequence[MessageMedia], box: Box) -> bool:
    return not [one for one in media if not one.fits(box)]


@dataclass(slots=True)
class _Wanted:
    """What has to be read, fetched, or checked; each once."""

    files: dict[URLSource, int] = field(default_factory=dict[URLSource, int])
    urls: dict[URLSource, None] = field(default_factory=dict[URLSource, None])
    fresh: list[Source] = field(default_factory=list[Source])

    @classmethod
    def of(cls, media: Sequence[MessageMedia], form: Capabilities, fetch: Fetch | None) -> _Wanted:
        """What is to be done for the media of some messages."""
        wanted = cls()
        for block in [block for one in media if not one.ready for block in one.blocks]:
            wanted.add(block, form, fetch)
        return wanted

    def add(self, block: MediaBlock, form: Capabilities, fetch: Fetch | None) -> None:
        """Look at one block; nothing to do for data that were looked at before."""
        source = block.source
        if is_fresh(source):
            self.fresh.append(source)
        elif not isinstance(source, URLSource):
            return
        elif source.scheme == "file":
            self.files[source] = max(self.files.get(source, 0), _most(form, block.type))
        elif fetch is not None and needs_fetching(form, block.type, source):
            self.urls[source] = None


def _most(form: Capabilities, kind: Kind) -> int:
    """The largest file that is read for a target, in bytes; a picture may be made smaller."""
    rule = form.media.rules[kind]
    own = rule.limits.data // 4 * 3 if rule and rule.limits else 0
    return min(own, LARGEST) if own and not (kind == "image" and can_resize()) else LARGEST


async def _settle(sources: Sequence[Source]) -> None:
    """Look at fresh sources in one thread, if they are much together: each remembers what was found."""
    if sum(len(one.data if isinstance(one, Base64Source) else one.url) for one in sources) > _THREADED:
        await anyio.to_thread.run_sync(_settle_in_turn, sources)


def _settle_in_turn(sources: Sequence[Source]) -> None:
    for source in sources:
        found = ResolvedMedia().resolve(source)
        if isinstance(found, Base64Source):
            warm(found)
        sleep(0)  # whoever waits for the interpreter gets it now, not when this thread's share is over


async def _in_thread(work: Callable[[_Item], object], item: _Item, limiter: anyio.CapacityLimiter) -> None:
    await anyio.to_thread.run_sync(work, item, limiter=limiter)


async def _fetch_all(found: _Found, urls: Sequence[URLSource], fetch: Fetch) -> None:
    limiter = anyio.CapacityLimiter(fetch.max_concurrency)

    async def one(url: URLSource) -> None:
        async with limiter:
            found[url] = await fetch_media(url, fetch)

    async with anyio.create_task_group() as group:
        for url in urls:
            group.start_soon(one, url)


async def _shrink(
    media: Sequence[MessageMedia], form: Capabilities, limits: MediaLimits, shelf: ResolvedMedia
) -> None:
    """Put smaller copies of pictures on the shelf that may be too large for a request that holds them all."""
    box = _box(media, limits)
    if not [one for one in media if not (one.closed and one.fits(box))]:
        return
    pictures = _taken(media, form, shelf)
    pictures = pictures[excess(len(pictures), limits.count) :]  # `limit_media` leaves out the oldest
    box = limits.box(len(pictures))
    found = {id(source): source for source in pictures if isinstance(source, Base64Source)}
    wanted = [source for source in found.values() if needs_fitting(source, box)]
    if not wanted or not can_resize():
        return
    limiter = anyio.CapacityLimiter(_RESIZED_AT_ONCE)
    async with anyio.create_task_group() as group:
        for source in wanted:
            if known_fit(source, box) is None:
                group.start_soon(_in_thread, partial(resize_to_fit, source), box, limiter)
    made = ((source, known_fit(source, box)) for source in wanted)
    fits = {id(source): known[0] for source, known in made if known is not None and known[0] is not None}
    # Some of them may go yet: what fits a crowd fits where there is none.
    shelf.fits = {(source, each): fit for source, fit in fits.items() for each in (box, limits.box(1))}


def _taken(
    media: Sequence[MessageMedia], form: Capabilities, shelf: ResolvedMedia
) -> list[Base64Source | URLSource]:
    """The pictures that the target takes, one by one and in their order."""
    blocks = [block for one in media for block in one.blocks if block.type == "image"]
    found = [shelf.resolve_for(form, "image", block.source) for block in blocks]
    return [one for one in found if not isinstance(one, str) and rejection_reason(form, "image", one) is None]


async def _read_files(read: _Found, sources: Mapping[URLSource, int], roots: Sequence[Path]) -> None:
    """Files that were read before in one thread, as most have not changed; then the others side by side."""
    limiter = anyio.CapacityLimiter(_AT_ONCE)
    known = {source: most for source, most in sources.items() if source.cached_content is not None}
    work = partial(_read_in_turn, read, roots=roots)
    if known:
        await anyio.to_thread.run_sync(work, known, limiter=limiter)
    if len(known) < len(sources):
        async with anyio.create_task_group() as group:
            for source, most in sources.items():
                if source not in read:
                    group.start_soon(_in_thread, work, {source: most}, limiter)


def _read_in_turn(read: _Found, sources: Mapping[URLSource, int], roots: Sequence[Path]) -> None:
    for source, most in sources.items():
        read[source] = read_file(source, roots, most)
