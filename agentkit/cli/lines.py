"""`run_conversion`: converts the complete input of a command or, with `--lines`, each line of the input."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from agentkit.cli.exit_codes import choose_exit_code
from agentkit.cli.files import encode, read, read_lines, write_bytes, write_output
from agentkit.errors import AgentkitError
from agentkit.reprs import as_one_line

__all__ = ["run_conversion"]


def run_conversion(file: Path | None, convert: Callable[[bytes], Awaitable[Any]], *, lines: bool) -> int:
    """Converts the input of a command, and writes the result as indented JSON.

    If `lines` is True, the function converts each line of the input separately, and writes each result on one
    line. For a line that cannot be converted, the function writes an error object, and continues with the next
    line. Blank lines are skipped. If `file` is None or `-`, the input comes from standard input.

    Returns:
        The exit code: 2 if a line is invalid, else 1 if a line has a loss with `--on-loss raise`, else 0.
    """
    if lines:
        return anyio.run(_convert_lines, file, convert)
    write_output(anyio.run(convert, read(file)), indent=2)
    return 0


async def _convert_lines(file: Path | None, convert: Callable[[bytes], Awaitable[Any]]) -> int:
    exit_code = 0
    for line in read_lines(file):
        if not line.strip():
            continue
        try:
            text = encode(await convert(line))
        except AgentkitError as error:
            exit_code = max(exit_code, choose_exit_code(error))
            place = getattr(error, "place", "")
            fields = {"class": type(error).__name__, "place": place, "sentence": as_one_line(str(error))}
            text = encode({"error": fields})
        write_bytes(text)
    return exit_code
