"""Reads local files as media.

Only files inside the allowed folders (roots) are read, even if another process replaces a folder with a link at
the same time. All functions block the calling thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import TypeAlias, cast

from agentkit.media.resolution import as_source, fill_caches, placeholder_source
from agentkit.messages.sources import (
    MAX_FILE_BYTES,
    Base64Source,
    URLSource,
    cache_file_content,
    encode_base64,
)

__all__ = ["OUTSIDE", "measure_file", "read_file"]

OUTSIDE = "a local file outside the media roots"
"""Ledger reason for a file that is outside all allowed folders."""


def read_file(source: URLSource, roots: Sequence[Path], max_bytes: int = MAX_FILE_BYTES) -> Base64Source | str:
    """Reads a local file. Returns its content, or the reason why the file cannot be used.

    The content is cached in `source`, so the file is read again only after the file changes. The function checks
    and reads the file through one file descriptor. So another process cannot replace the file after the checks.
    `roots` are the allowed folders, as paths without symbolic links. `max_bytes` is the maximum size of the file.
    """

    def read(descriptor: int, path: str, status: os.stat_result) -> Base64Source | str:
        version = (path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if source.cached_content and source.cached_content[0] == version:
            return cast("Base64Source | str", source.cached_content[1])
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(max_bytes + 1)
        if len(content) > max_bytes:  # the file has grown since its size was checked
            return _too_large(max_bytes)
        result = _as_source(content, source.media_type or source.guessed_type or "")
        cache_file_content(source, (version, result))
        return result

    return _open_checked(source, roots, max_bytes, read)


def measure_file(source: URLSource, roots: Sequence[Path], max_bytes: int = MAX_FILE_BYTES) -> Base64Source | str:
    """Returns a placeholder with the size of a text file, or the reason why the file cannot be used.

    The file is not read. If the file is not a text file, the placeholder is empty.
    """

    def measure(_: int, path: str, status: os.stat_result) -> Base64Source | str:
        if not status.st_size:
            return _EMPTY
        placeholder = placeholder_source(source.guessed_type or "", status.st_size)
        fill_caches(placeholder)
        return placeholder

    return _open_checked(source, roots, max_bytes, measure)


_Use: TypeAlias = Callable[[int, str, os.stat_result], "Base64Source | str"]


def _open_checked(source: URLSource, roots: Sequence[Path], max_bytes: int, use: _Use) -> Base64Source | str:
    """Opens and checks a file. Returns the result of `use`, or the reason why the file cannot be used.

    `use` is called with the descriptor, the path and the status of the file.
    """
    try:
        path = os.path.realpath(_as_path(source.url))
        root = next((root for root in map(str, roots) if _is_below(path, root)), None)
        if root is None:
            return OUTSIDE
        with _open(path, root) as descriptor:
            status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode):
                return "the path is not a file"
            return _too_large(max_bytes) if status.st_size > max_bytes else use(descriptor, path, status)
    except (OSError, ValueError, RuntimeError):  # Python 3.12 and older raise RuntimeError for circular links
        return "a local file that cannot be read"


def _too_large(max_bytes: int) -> str:
    return f"a local file larger than {max_bytes} bytes"


_EMPTY = "an empty file"


def _as_source(content: bytes, media_type: str) -> Base64Source | str:
    data = encode_base64(content)
    if not data:
        return _EMPTY
    result = as_source(data, media_type, "the content of the file")
    if isinstance(result, Base64Source):
        fill_caches(result)
    return result


_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# With O_NONBLOCK, opening a named pipe does not wait for a writer.
_NO_LINK = _FLAGS | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
# With O_PATH, a folder can be opened without permission to list its files.
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)


@contextmanager
def _open(path: str, root: str) -> Generator[int]:
    """Opens the file at a resolved path inside a root, yields the descriptor, and closes the file afterwards."""
    descriptor = _descend(path, root) if os.open in os.supports_dir_fd else _open_and_compare(path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _descend(path: str, root: str) -> int:
    """Opens the folders of a path one after the other, then the file. Does not follow symbolic links.

    The path is already resolved. Therefore the path contains a link only if another process added the link later.
    """
    *folders, name = path[len(root) :].strip(os.sep).split(os.sep)
    parent = os.open(root, _FLAGS | _FOLDER)
    try:
        for folder in folders:
            child = os.open(folder, _NO_LINK | _FOLDER, dir_fd=parent)
            os.close(parent)
            parent = child
        return os.open(name, _NO_LINK, dir_fd=parent)
    finally:
        os.close(parent)


def _open_and_compare(path: str) -> int:
    """Opens a file on a system without folder descriptors, such as Windows.

    The function compares the open file with the file at the path. This comparison is less safe than `_descend`,
    but sufficient on Windows, where creating a link requires a privilege.
    """
    descriptor = os.open(path, _NO_LINK)
    if os.path.realpath(path) == path and os.path.samestat(os.fstat(descriptor), os.lstat(path)):
        return descriptor
    os.close(descriptor)
    raise OSError("another process replaced the file or a part of its path")


def _is_below(path: str, root: str) -> bool:
    """Returns True if a resolved path is inside a resolved folder."""
    path, root = os.path.normcase(path), os.path.normcase(root)
    return path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _as_path(url: str) -> str:
    if url[:5].lower() != "file:":
        return url
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    # A file URL without a host, or with the host `localhost`, is on this machine (RFC 8089, section 2).
    if parts.netloc.lower() not in ("", "localhost"):
        raise ValueError("the host of a file URL must be empty or 'localhost'")
    return unquote(parts.path)
