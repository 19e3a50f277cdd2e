"""Loads the media of a request: reads files, fetches URLs, and resizes images.

`load_media` loads all media of one request and returns a `ResolvedMedia`. Slow work runs in worker threads, and
each media source is loaded once. The other functions check or measure media without loading everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import sleep
from typing import TypeAlias, TypeVar

import anyio

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.limit_steps import excess
from agentkit.capabilities.media_rules import Box, Kind, MediaLimits
from agentkit.errors import OptionError
from agentkit.media.acceptance import rejection_reason
from agentkit.media.fetching import Fetch, fetch_media, update_cache_sizes
from agentkit.media.files import OUTSIDE, measure_file, read_file
from agentkit.media.message_media import MessageMedia, get_all_media, is_fresh
from agentkit.media.resizing import can_resize, get_fit, needs_fitting, resize_to_fit
from agentkit.media.resolution import ResolvedMedia, fill_caches, needs_fetching
from agentkit.messages.blocks import MediaBlock
from agentkit.messages.media_types import is_text_type
from agentkit.messages.message import Msg
from agentkit.messages.sources import MAX_FILE_BYTES, Base64Source, Source, URLSource
from agentkit.reprs import shorten_repr

__all__ = ["OUTSIDE", "check_media", "check_roots", "load_media", "measure_texts", "needs_loading"]

_MAX_READS = 8  # maximum number of concurrent file reads
_MAX_RESIZES = 2  # maximum number of concurrent resizes, each of which needs four bytes per pixel
_MAX_INLINE = 1 << 16  # maximum length, in characters, of base64 text that is checked without a worker thread

_Item = TypeVar("_Item")
_Contents: TypeAlias = dict[URLSource, "Base64Source | str"]


def check_roots(roots: Iterable[str | Path]) -> tuple[Path, ...]:
    """Returns the folders from which media may be read, as absolute paths without symbolic links.

    Raises:
        OptionError: `roots` is not a list of existing folders.
    """
    advice = "Pass a list of folders."
    if isinstance(roots, str | Path):
        raise OptionError("media_roots", f"expected a list of folders, got {shorten_repr(str(roots), 80)}", advice)
    try:
        folders = tuple(Path(root).resolve() for root in roots)
    except (TypeError, ValueError) as error:
        reason = f"expected a list of folders, got {shorten_repr(roots, 80)} ({error})"
        raise OptionError("media_roots", reason, advice) from None
    for index, folder in enumerate(folders):
        if not folder.is_dir():
            reason = f"{shorten_repr(str(folder), 200)} is not a folder"
            raise OptionError(f"media_roots[{index}]", reason, "Pass an existing folder.")
    return folders


async def load_media(
    msgs: Sequence[Msg],
    capabilities: Capabilities,
    roots: Sequence[Path] = (),
    fetch: Fetch | None = None,
    fetched: dict[URLSource, Base64Source | str] | None = None,
) -> ResolvedMedia:
    """Loads the media that a target needs: reads files, fetches URLs and resizes images in messages.

    If a source cannot be loaded, no exception is raised. The result then has the reason instead of the content.

    Args:
        msgs: Messages of the request.
        capabilities: Rules of the target, which decide which URLs are fetched and which images are resized.
        roots: Folders from which files may be read, as paths without symbolic links.
        fetch: Options for downloads. If None, no URL is fetched.
        fetched: Downloads from earlier calls of `load_media` for the same request. New downloads are added to this
            dict. None means that there are no earlier downloads.
    """
    media = get_all_media(msgs)
    resolved = ResolvedMedia() if _are_ready(media) else await _read(media, capabilities, roots, fetch, fetched)
    rule = capabilities.media.image
    if rule is not None and rule.limits is not None:
        await _resize_images(media, capabilities, rule.limits, resolved)
        if fetch is not None and resolved.fits:
            update_cache_sizes([url for url in resolved.files if url.scheme != "file"], fetch)
    return resolved


async def _read(
    media: Sequence[MessageMedia],
    capabilities: Capabilities,
    roots: Sequence[Path],
    fetch: Fetch | None,
    fetched: _Contents | None,
) -> ResolvedMedia:
    """Reads files, fetches URLs and checks base64 text concurrently."""
    work = _Work.collect(media, capabilities, fetch)
    downloads = {} if fetched is None else fetched
    contents: _Contents = {}
    urls = [url for url in work.urls if url not in downloads]
    if work.unchecked or urls:
        async with anyio.create_task_group() as group:
            group.start_soon(_read_files, contents, work.files, roots)
            group.start_soon(_check_sources, work.unchecked)
            if fetch is not None:
                group.start_soon(_fetch_all, downloads, urls, fetch)
    elif work.files:
        await _read_files(contents, work.files, roots)
    contents.update((url, downloads[url]) for url in work.urls)
    return ResolvedMedia(contents)


async def check_media(msgs: Sequence[Msg]) -> None:
    """Checks the base64 data of media in messages. Each media source caches the result of the check."""
    media = get_all_media(msgs)
    if not _are_ready(media):
        await _check_sources([block.source for item in media for block in item.blocks if is_fresh(block.source)])


async def measure_texts(msgs: Sequence[Msg], capabilities: Capabilities, roots: Sequence[Path]) -> _Contents:
    """Measures the text files in messages without reading them.

    Returns:
        A dict that maps each text file to a placeholder of the same size, or to the reason why the file cannot be
        used. Other files are not measured, because their placeholders are always empty.
    """
    files = _Work.collect(get_all_media(msgs), capabilities, None).files
    texts = {source: limit for source, limit in files.items() if is_text_type(source.guessed_type or "")}
    contents: _Contents = {}
    if texts:
        await anyio.to_thread.run_sync(partial(_measure_in_turn, contents, texts, roots))
    return contents


def _measure_in_turn(contents: _Contents, limits: Mapping[URLSource, int], roots: Sequence[Path]) -> None:
    for source, limit in limits.items():
        contents[source] = measure_file(source, roots, limit)


def needs_loading(msgs: Sequence[Msg], capabilities: Capabilities, fetch: Fetch | None) -> bool:
    """Returns True if the target needs a file to be read, a URL to be fetched or an image to be resized."""
    media = get_all_media(msgs)
    if not _are_ready(media):
        work = _Work.collect(media, capabilities, fetch)
        if work.files or work.urls:
            return True
    limits = capabilities.media.image.limits if capabilities.media.image is not None else None
    return limits is not None and not _all_fit(media, _compute_box(media, limits))


def _are_ready(media: Sequence[MessageMedia]) -> bool:
    return not [item for item in media if not item.ready]


def _compute_box(media: Sequence[MessageMedia], limits: MediaLimits) -> Box:
    return limits.box(sum([item.image_count for item in media]))


def _all_fit(media: Sequence[MessageMedia], box: Box) -> bool:
    return not [item for item in media if not item.fits(box)]


@dataclass(slots=True)
class _Work:
    """Media sources of one request that must be loaded or checked.

    Attributes:
        files: Maps each file to read to the maximum size of the file, in bytes.
        urls: URLs to fetch, in the order of the messages. The dict serves as an ordered set; its values are None.
        unchecked: Sources whose base64 text must be checked.
    """

    files: dict[URLSource, int] = field(default_factory=dict[URLSource, int])
    urls: dict[URLSource, None] = field(default_factory=dict[URLSource, None])
    unchecked: list[Source] = field(default_factory=list[Source])

    @classmethod
    def collect(cls, media: Sequence[MessageMedia], capabilities: Capabilities, fetch: Fetch | None) -> _Work:
        work = cls()
        for block in [block for item in media if not item.ready for block in item.blocks]:
            work._add(block, capabilities, fetch)
        return work

    def _add(self, block: MediaBlock, capabilities: Capabilities, fetch: Fetch | None) -> None:
        source = block.source
        if is_fresh(source):
            self.unchecked.append(source)
        elif not isinstance(source, URLSource):
            return
        elif source.scheme == "file":
            limit = _file_limit(capabilities, block.type)
            self.files[source] = max(self.files.get(source, 0), limit)
        elif fetch is not None and needs_fetching(capabilities, block.type, source):
            self.urls[source] = None


def _file_limit(capabilities: Capabilities, kind: Kind) -> int:
    """Returns the maximum size, in bytes, of files of one media kind.

    The target's limit does not apply to images that can be resized, because resizing makes them smaller.
    """
    rule = capabilities.media.rules[kind]
    limit = rule.limits.data // 4 * 3 if rule and rule.limits else 0
    return min(limit, MAX_FILE_BYTES) if limit and not (kind == "image" and can_resize()) else MAX_FILE_BYTES


async def _check_sources(sources: Sequence[Source]) -> None:
    """Checks long base64 text in one worker thread. Short text is checked at its first use."""
    size = sum(len(source.data if isinstance(source, Base64Source) else source.url) for source in sources)
    if size > _MAX_INLINE:
        await anyio.to_thread.run_sync(_check_in_turn, sources)


def _check_in_turn(sources: Sequence[Source]) -> None:
    for source in sources:
        content = ResolvedMedia().resolve(source)
        if isinstance(content, Base64Source):
            fill_caches(content)
        sleep(0)  # lets other threads run before the next source is checked


async def _run_in_thread(work: Callable[[_Item], object], item: _Item, limiter: anyio.CapacityLimiter) -> None:
    await anyio.to_thread.run_sync(work, item, limiter=limiter)


async def _fetch_all(downloads: _Contents, urls: Sequence[URLSource], fetch: Fetch) -> None:
    limiter = anyio.CapacityLimiter(fetch.max_concurrency)

    async def fetch_url(url: URLSource) -> None:
        async with limiter:
            downloads[url] = await fetch_media(url, fetch)

    async with anyio.create_task_group() as group:
        for url in urls:
            group.start_soon(fetch_url, url)


async def _resize_images(
    media: Sequence[MessageMedia], capabilities: Capabilities, limits: MediaLimits, resolved: ResolvedMedia
) -> None:
    box = _compute_box(media, limits)
    if not [item for item in media if not (item.closed and item.fits(box))]:
        return
    images = _list_accepted(media, capabilities, resolved)
    # If there are too many images, the oldest are not resized, because `limit_media` omits them later.
    images = images[excess(len(images), limits.count) :]
    box = limits.box(len(images))
    sources = {id(source): source for source in images if isinstance(source, Base64Source)}
    too_large = [source for source in sources.values() if needs_fitting(source, box)]
    if not too_large or not can_resize():
        return
    limiter = anyio.CapacityLimiter(_MAX_RESIZES)
    async with anyio.create_task_group() as group:
        for source in too_large:
            if get_fit(source, box) is None:
                group.start_soon(_run_in_thread, partial(resize_to_fit, source), box, limiter)
    results = ((source, get_fit(source, box)) for source in too_large)
    fits = {id(source): result[0] for source, result in results if result is not None and result[0] is not None}
    # A budget may omit some images later, so that fewer images remain.
    # The size limits for few images are never stricter than the limits for many images.
    # Therefore a copy that is within the limits for many images is also within the limits for few images.
    resolved.fits = {(source, each): fit for source, fit in fits.items() for each in (box, limits.box(1))}


def _list_accepted(
    media: Sequence[MessageMedia], capabilities: Capabilities, resolved: ResolvedMedia
) -> list[Base64Source | URLSource]:
    """Returns the image sources that the target accepts. The limit on the number of images is not applied."""
    blocks = [block for item in media for block in item.blocks if block.type == "image"]
    sources = [resolved.resolve_for(capabilities, "image", block.source) for block in blocks]
    return [
        source
        for source in sources
        if not isinstance(source, str) and rejection_reason(capabilities, "image", source) is None
    ]


async def _read_files(contents: _Contents, limits: Mapping[URLSource, int], roots: Sequence[Path]) -> None:
    """Reads files in worker threads.

    One thread checks all files with cached content, because most of these files are unchanged and are not read
    again. Each other file is read in a separate thread.
    """
    limiter = anyio.CapacityLimiter(_MAX_READS)
    cached = {source: limit for source, limit in limits.items() if source.cached_content is not None}
    work = partial(_read_in_turn, contents, roots=roots)
    if cached:
        await anyio.to_thread.run_sync(work, cached, limiter=limiter)
    if len(cached) < len(limits):
        async with anyio.create_task_group() as group:
            for source, limit in limits.items():
                if source not in contents:
                    group.start_soon(_run_in_thread, work, {source: limit}, limiter)


def _read_in_turn(contents: _Contents, limits: Mapping[URLSource, int], roots: Sequence[Path]) -> None:
    for source, limit in limits.items():
        contents[source] = read_file(source, roots, limit)
