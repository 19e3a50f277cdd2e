"""Marks the text of a failed tool result, for APIs that have no field for errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, build_trusted_text

__all__ = ["ERROR_MARK", "split_error_mark", "write_output"]

_Part = TypeVar("_Part")

ERROR_MARK: Final = "[error]"
"""Text at the start of a failed tool result, for APIs that have no field for errors."""


def write_output(result: ToolResultBlock, write_block: Callable[[Block], _Part]) -> str | list[_Part]:
    """Converts the output of a tool result to the format of an API that has no field for errors.

    The output of a failed result begins with `ERROR_MARK`. `write_block` converts a block of the output to a part
    in the API's format.

    Returns:
        Text if the output has only text, else a list of parts.
    """
    output = result.output
    if isinstance(output, str) and not result.is_error:
        return output
    if isinstance(output, str) or all(isinstance(item, TextBlock) for item in output):
        text = result.listing
        if not result.is_error:
            return text
        return f"{ERROR_MARK} {text}" if text else ERROR_MARK
    mark = [write_block(build_trusted_text(ERROR_MARK))] if result.is_error else []
    return [*mark, *map(write_block, output)]


def split_error_mark(text: str) -> tuple[str, bool]:
    """Returns the text of a tool result without `ERROR_MARK`, and True if the text began with this mark."""
    mark, separator, message = text.partition(" ")
    if mark != ERROR_MARK or bool(separator) != bool(message):
        return text, False
    return message, True
