"""Functions that read files and standard input, check blocks, and write JSON to standard output."""

from __future__ import annotations

import codecs
import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic_core import from_json, to_json

from agentkit.errors import MessageError, OptionError
from agentkit.messages.blocks import InvalidBlock, ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import as_one_line, shorten
from agentkit.tokens.tokenizer_file import read_tokenizer

__all__ = [
    "check_blocks",
    "encode",
    "encode_row",
    "find_tokenizer",
    "parse_input",
    "read",
    "read_lines",
    "write_bytes",
    "write_output",
]


def read(file: Path | None) -> bytes:
    """Returns the content of a file, or of standard input if `file` is None or `-`.

    Raises:
        OptionError: The input cannot be read, or is also the output.
    """
    return b"".join(read_lines(file))


def read_lines(file: Path | None) -> Iterator[bytes]:
    """Yields the lines of a file, or of standard input if `file` is None or `-`.

    Raises:
        OptionError: The input cannot be read, or is also the output.
    """
    if file is None or str(file) == "-":
        lines = _stdin()
        _check_output(lines, "standard input")
        yield from lines
        return
    try:
        with file.open("rb") as opened:
            _check_output(opened, str(file))
            yield from opened
    except OSError as error:
        raise OptionError(str(file), f"read failed ({error.strerror})", "Pass a readable file.") from None


def _check_output(lines: BinaryIO, place: str) -> None:
    """Raises OptionError if the input is also the output, because a command would then read its own output."""
    try:
        stats = [os.fstat(stream.fileno()) for stream in (lines, sys.stdout)]
    except (OSError, ValueError, AttributeError):  # a stream is closed, or has no file descriptor
        return
    if stat.S_ISREG(stats[0].st_mode) and os.path.samestat(*stats):
        raise OptionError(place, "the file is also the output", "Redirect standard output to another file.")


def _stdin() -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - a shell can close standard input
        raise OptionError("standard input", "the stream is closed", "Pass a file.")
    return sys.stdin.buffer


def find_tokenizer(folder: Path, place: str) -> Any:
    """Returns the `tokenizers.Tokenizer` of a model. Returns None if there is no `tokenizer.json`.

    Args:
        folder: Folder with a `tokenizer.json`, or the path of this file.
        place: Name of the option in errors.

    Raises:
        MissingExtraError: The package tokenizers is not installed.
        OptionError: The file of the tokenizer is damaged.
    """
    file = folder / "tokenizer.json" if os.path.isdir(folder) else folder
    if file.name != "tokenizer.json" or not os.path.isfile(file):
        return None
    return read_tokenizer(file, place)


def parse_input(text: bytes) -> Any:
    """Parses JSON text, which may begin with a byte order mark.

    Raises:
        MessageError: The text is not JSON.
    """
    text = text.removeprefix(codecs.BOM_UTF8)
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:  # not JSON, or JSON that only `json` parses, such as texts with lone surrogates
        pass
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise MessageError("input", f"the text is not JSON ({error})", "Pass valid JSON.") from None


def write_output(value: Any, indent: int | None = None) -> None:
    """Writes a value as JSON to standard output. If `indent` is None, the JSON is on one line.

    Raises:
        MessageError: The value cannot be written as JSON.
        OptionError: Standard output is closed, or writing fails.
    """
    write_bytes(encode(value, indent))


def encode(value: Any, indent: int | None = None) -> bytes:
    """Returns a value as JSON text in UTF-8, with a line break at the end.

    Raises:
        MessageError: The value cannot be written as JSON.
    """
    try:
        encoder = (
            _ENCODER if indent is None else json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=indent)
        )
        return encoder.encode(value).encode() + b"\n"
    except (ValueError, RecursionError) as error:
        reason = f"a value cannot be written as JSON ({error})"
        raise MessageError("output", reason, "Remove values such as NaN or Infinity from the input.") from None


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
"""Encoder of one-line JSON. `json.dumps` would create an encoder for each value."""


def encode_row(row: Any) -> bytes:
    """Returns a row as compact JSON text in UTF-8, with a line break at the end.

    Raises:
        MessageError: The row cannot be written as JSON.
    """
    try:
        line = to_json(row, inf_nan_mode="constants") + b"\n"  # faster than `json`
    except ValueError:
        return encode(row)  # raises the error
    return encode(row) if b"NaN" in line or b"Infinity" in line else line


def write_bytes(text: bytes) -> None:
    """Writes bytes to standard output.

    Raises:
        OptionError: Standard output is closed, or writing fails.
    """
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - a shell can close standard output
        raise OptionError("standard output", "the stream is closed", "Redirect the output to a file or a command.")
    try:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OptionError(
            "standard output",
            f"write failed ({error.strerror})",
            "Free some space, or redirect standard output to another file.",
        ) from None


def check_blocks(msgs: Sequence[Msg], keep_invalid: bool, ledger: object = None) -> None:
    """Checks that messages have no invalid blocks.

    If `keep_invalid` is True, the function prints the invalid blocks to stderr instead of raising an error. If
    `ledger` is not None, the function prints nothing, because the ledger lists the invalid blocks.

    Raises:
        MessageError: There are invalid blocks. The error names the place of each block and the reason.
    """
    faults = [f"{block.place}: invalid block: {block.reason}" for block in _list_invalid_blocks(msgs)]
    if not faults:
        return
    if not keep_invalid:
        place, _, first = faults[0].partition(": ")
        reason = "; ".join(as_one_line(text) for text in (first, *faults[1:]))
        raise MessageError(place, reason, "Correct the input, or pass --keep-invalid.")
    if ledger is None:
        sys.stderr.writelines(f"agentkit: {shorten(as_one_line(text), 1_000)}\n" for text in faults)


_MAY_BE_INVALID: Final = Feature.INVALID | Feature.RESULT_MEDIA


def _list_invalid_blocks(msgs: Sequence[Msg]) -> list[InvalidBlock]:
    blocks = [block for msg in msgs if msg.features & _MAY_BE_INVALID for block in msg.blocks]
    items = [
        item for block in blocks for item in (block.items if isinstance(block, ToolResultBlock) else (block,))
    ]
    return [item for item in items if isinstance(item, InvalidBlock)]
