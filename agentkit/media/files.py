"""A local file as media: read or weighed only where it really lies below a root, whatever is swapped. Blocking."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias, cast

from agentkit.media.resolution import as_source, placeholder_source, warm
from agentkit.messages.sources import (
    MAX_FILE_BYTES,
    Base64Source,
    URLSource,
    cache_file_content,
    encode_base64,
)

__all__ = ["LARGEST", "OUTSIDE", "read_file", "weigh_file"]

LARGEST = MAX_FILE_BYTES
"""Bytes: no larger file is read."""

OUTSIDE = "a local file outside the media roots"


def read_file(source: URLSource, roots: Sequence[Path], most: int = LARGEST) -> Base64Source | str:
    """The file's content, if it lies under a root; read and encoded anew only when the file has changed.

    What is judged is what is read: one descriptor, opened from the root downwards along no link. A file of
    more than `most` bytes, and whatever is no regular file, is a reason.
    """

    def read(descriptor: int, path: str, status: os.stat_result) -> Base64Source | str:
        mark = (path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if source.cached_content and source.cached_content[0] == mark:
            return cast("Base64Source | str", source.cached_content[1])
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(most + 1)
        if len(content) > most:  # it has grown meanwhile
            return _too_large(most)
        found = _as_source(content, source.media_type or source.guessed_type or "")
        cache_file_content(source, (mark, found))
        return found

    return _judged(source, roots, most, read)


def weigh_file(source: URLSource, roots: Sequence[Path], most: int = LARGEST) -> Base64Source | str:
    """What stands in for a text file of its size, or the reason why there will be none: nothing is read."""

    def weigh(_: int, path: str, status: os.stat_result) -> Base64Source | str:
        found = placeholder_source(source.guessed_type or "", status.st_size)
        warm(found)
        return found if status.st_size else _EMPTY

    return _judged(source, roots, most, weigh)


_Use: TypeAlias = Callable[[int, str, os.stat_result], "Base64Source | str"]


def _judged(source: URLSource, roots: Sequence[Path], most: int, use: _Use) -> Base64Source | str:
    """What comes of a file, given its descriptor, its path and its status; a reason if it may not be had."""
    try:
        path = os.path.realpath(_path_of(source.url))
        root = next((root for root in map(str, roots) if _is_under(path, root)), None)
        if root is None:
            return OUTSIDE
        with _opened(path, root) as descriptor:
            status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode):
                return "a path that is no file"
            return _too_large(most) if status.st_size > most else use(descriptor, path, status)
    except (OSError, ValueError, RuntimeError):  # links in a circle are a RuntimeError up to Python 3.12
        return "a local file that cannot be read"


def _too_large(most: int) -> str:
    return f"a local file larger than {most} bytes"


_EMPTY = "an empty file"


def _as_source(content: bytes, media_type: str) -> Base64Source | str:
    data = encode_base64(content)
    if not data:
        return _EMPTY
    found = as_source(data, media_type, "a local file whose content")
    if isinstance(found, Base64Source):
        warm(found)
    return found


_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = _FLAGS | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)  # to pass through, not to list


@contextmanager
def _opened(path: str, root: str) -> Generator[int]:
    """A descriptor of the file at a resolved path under a root. A pipe is not waited for."""
    descriptor = _descend(path, root) if os.open in os.supports_dir_fd else _open_and_check(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _descend(path: str, root: str) -> int:
    """Step by step from the root, each along no link: a resolved path has none, unless it was swapped since."""
    *folders, name = path[len(root) :].strip(os.sep).split(os.sep)
    at = os.open(root, _FLAGS | _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _NO_LINK | _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, _NO_LINK, dir_fd=at)
    finally:
        os.close(at)


def _open_and_check(path: str) -> int:
    """Where there are no descriptors of folders (Windows, where making a link is a privilege)."""
    descriptor = os.open(path, _NO_LINK)
    if os.path.realpath(path) == path and os.path.samestat(os.fstat(descriptor), os.lstat(path)):
        return descriptor
    os.close(descriptor)
    raise OSError("it was swapped")


def _is_under(path: str, root: str) -> bool:
    """Whether a path, both resolved, is in a folder."""
    path, root = os.path.normcase(path), os.path.normcase(root)
    return path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _path_of(url: str) -> str:
    if url[:5].lower() != "file:":
        return url
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.netloc.lower() not in ("", "localhost"):  # RFC 8089, 2; a host's case does not matter
        raise ValueError("a file on another machine")
    return unquote(parts.path)
