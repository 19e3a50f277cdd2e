"""What the commands read and write: files, standard input and output, one value or one a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import anyio

from agentkit.errors import AgentkitError, LossError, MessageError, OptionError
from agentkit.messages.blocks import InvalidBlock, ToolResultBlock
from agentkit.messages.message import Msg
from agentkit.reprs import as_one_line, shorten

__all__ = ["check_blocks", "each_line", "parsed", "read", "write"]


def read(file: Path | None) -> bytes:
    """All of a file; None: of standard input."""
    if file is None:
        return _stdin().read()
    try:
        return file.read_bytes()
    except OSError as error:
        raise OptionError(str(file), f"it cannot be read ({error.strerror})", "Name a file.") from None


def parsed(text: bytes) -> Any:
    """The value of a JSON text, with a byte order mark or without. Raises MessageError for what is none."""
    try:
        return json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise MessageError("input", f"this is not JSON ({error})", "Mend the JSON.") from None


def write(found: Any, indent: int | None = None) -> None:
    """A value as JSON text on standard output, on one line unless it is indented."""
    _put(_as_text(found, indent))


def _as_text(found: Any, indent: int | None = None) -> bytes:
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False, indent=indent).encode() + b"\n"
    except (ValueError, RecursionError) as error:
        raise MessageError("output", f"it cannot be written as JSON ({error})", "Mend the input.") from None


def _put(text: bytes) -> None:
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the shell
        raise OptionError("standard output", "it is closed", "Send it somewhere.")
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OptionError("standard output", f"it cannot be written ({error.strerror})", "Mend that.") from None


def check_blocks(msgs: Sequence[Msg], keep_invalid: bool, ledger: object = None) -> None:
    """Raises MessageError if messages have invalid blocks. With `keep_invalid`, prints them to stderr instead.

    Nothing is printed if a ledger is printed: the ledger has them. The error has the place and reason of each.
    """
    found = [f"{block.place}: invalid block: {block.reason}" for msg in msgs for block in _invalid_blocks(msg)]
    if found and not keep_invalid:
        place, _, first = found[0].partition(": ")
        reason = "; ".join(as_one_line(text) for text in (first, *found[1:]))
        raise MessageError(place, reason, "Correct the input, or use --keep-invalid.")
    if ledger is None:
        sys.stderr.writelines(f"agentkit: {shorten(as_one_line(text), 1_000)}\n" for text in found)


def _invalid_blocks(msg: Msg) -> Iterator[InvalidBlock]:
    for block in msg.blocks:
        items = block.items if isinstance(block, ToolResultBlock) else (block,)
        yield from (item for item in items if isinstance(item, InvalidBlock))


def each_line(file: Path | None, work: Callable[[bytes], Awaitable[Any]]) -> int:
    """Write what `work` makes of each line; a line that fails gives its error, blank ones nothing.

    The exit code is 2 if any line was bad input, else 1 if any was lossy under `raise`, else 0.
    """
    return anyio.run(_each_line, file, work)


async def _each_line(file: Path | None, work: Callable[[bytes], Awaitable[Any]]) -> int:
    worst = 0
    for line in _lines(file):
        if not line.strip():
            continue
        try:
            text = _as_text(await work(line))
        except AgentkitError as error:
            worst = max(worst, 1 if isinstance(error, LossError) else 2)
            place = getattr(error, "place", "")
            text = _as_text(
                {"error": {"class": type(error).__name__, "place": place, "sentence": as_one_line(str(error))}}
            )
        _put(text)
    return worst


def _stdin() -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the shell
        raise OptionError("standard input", "it is closed", "Name a file.")
    return sys.stdin.buffer


def _lines(file: Path | None) -> Iterator[bytes]:
    if file is None:
        yield from _stdin()
        return
    try:
        with file.open("rb") as opened:
            yield from opened
    except OSError as error:
        raise OptionError(str(file), f"it cannot be read ({error.strerror})", "Name a file.") from None
