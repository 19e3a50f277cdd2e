"""Texts that tell the model why a tool call failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, cast

from pydantic import ValidationError

from agentkit.messages.blocks import ToolUseBlock

__all__ = [
    "CANCELED_TEXT",
    "MAX_ERROR_CHARACTERS",
    "error_text",
    "find_leaves",
    "invalid_arguments_text",
    "not_run_text",
    "unknown_tool_text",
    "unsendable_value_text",
]

MAX_ERROR_CHARACTERS = 4_000
"""Maximum length of an error text that is sent to the model, in characters."""

CANCELED_TEXT = "The call was canceled."
"""Text for a tool call that was canceled, if the other tool calls of the reply continue."""


def unknown_tool_text(name: str, tool_names: Iterable[str]) -> str:
    """Returns the text for a call of a tool that does not exist."""
    names = ", ".join(map(repr, tool_names))
    advice = f"The tools are: {names}. Call each tool separately, by its name." if names else "There are no tools."
    return f"There is no tool {name!r}. {advice}"


def not_run_text(name: str, function: Callable[..., Any] | None, block: ToolUseBlock) -> str:
    """Returns the text for a tool call that cannot run, or "" if the tool named `name` can run the call."""
    if block.name != name:
        return f"This call is for the tool {block.name!r}, not for {name!r}."
    if function is None:
        return f"The tool {name!r} has no function to run."
    if block.raw_is_broken or (block.metadata or {}).get("incomplete"):
        return "The arguments of this call were cut off, or are not a JSON object. Call the tool again."
    return ""


def invalid_arguments_text(name: str, error: ValidationError) -> str:
    """Returns the text for arguments that do not match the parameter types of the tool's function."""
    lines = [
        f"- {'.'.join(map(str, details['loc'])) or 'arguments'}: {details['msg']}" for details in error.errors()
    ]
    return "\n".join([f"The arguments of {name!r} are not valid:", *lines])


def unsendable_value_text(type_name: str, error: Exception) -> str:
    """Returns the text for a return value that cannot be converted to JSON."""
    return f"The tool returned a {type_name} that cannot be converted to JSON: {error}"


def error_text(error: BaseException) -> str:
    """Returns the class name and the text of an error.

    For an exception group, one line follows for each of at most 20 errors inside the group.
    """
    lines = [_sentence(error)]
    if isinstance(error, BaseExceptionGroup):
        lines += [
            f"- {_sentence(leaf)}" for leaf in islice(find_leaves(cast("BaseException", error)), _MAX_LEAVES)
        ]
    return "\n".join(lines)


_MAX_LEAVES = 20  # maximum number of errors from an ExceptionGroup in one text


def _sentence(error: BaseException) -> str:
    try:
        text = str(error)
    except BaseException:  # the `__str__` method of the error itself raised an error
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def find_leaves(error: BaseException) -> Iterator[BaseException]:
    """Yields the errors in an exception group at any depth. If `error` is not a group, yields `error` itself."""
    pending = [error]
    while pending:
        last = pending.pop()
        if isinstance(last, BaseExceptionGroup):
            pending += reversed(cast("BaseExceptionGroup[BaseException]", last).exceptions)
        else:
            yield last
