"""Converts the return value or the exception of a tool's function to a `ToolResultBlock`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from traceback import format_exception
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from agentkit.json_values import as_text, replace_surrogates
from agentkit.loggers import get_logger
from agentkit.messages.blocks import InvalidBlock, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.mcp_results import read_mcp_item, read_mcp_result
from agentkit.messages.validation import Validated
from agentkit.reprs import shorten
from agentkit.tools.error_texts import MAX_ERROR_CHARACTERS, error_text, unsendable_value_text

__all__ = ["as_failure", "as_refusal", "as_result"]

_log = get_logger("tools")

MAX_TRACEBACK_CHARACTERS = 20_000
"""Maximum length of a traceback in the metadata of a tool result, in characters."""


def as_result(block: ToolUseBlock, value: object) -> ToolResultBlock:
    """Converts the return value of a tool's function to the result of a tool call.

    Blocks, MCP results and strings become the output of the result. In a `ToolResultBlock`, the id and the name of
    the call replace the original id and name. Any other value becomes JSON text. For a value that cannot be sent,
    the result has `is_error=True` and a text that says why.
    """
    if isinstance(value, ToolResultBlock):
        return replace(value, id=block.id, name=block.name)
    try:
        fields = None if isinstance(value, str) else read_mcp_result(value)
        return ToolResultBlock(block.id, block.name, **(fields or {"output": _write_output(block, value)}))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        type_name = type(value).__name__
        _log.warning("tool %r: result of type %s cannot be sent (%s)", block.name, type_name, type(error).__name__)
        return as_refusal(block, unsendable_value_text(type_name, error))


def _write_output(
    block: ToolUseBlock, value: object
) -> str | Sequence[TextBlock | MediaBlock | InvalidBlock | Mapping[str, Any]]:
    items: Sequence[object] = cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]
    parts = [*map(_as_block, items)]
    if not any(parts):
        return _write_text(block, cast("object", value))
    pairs = zip(items, parts, strict=True)
    return [TextBlock(_write_text(block, item)) if part is None else part for item, part in pairs]


def _as_block(value: object) -> TextBlock | MediaBlock | Mapping[str, Any] | None:
    return value if isinstance(value, TextBlock | MediaBlock) else read_mcp_item(value)


def _write_text(block: ToolUseBlock, value: object) -> str:
    """Returns a string, or the JSON text of any other value. Replaces lone surrogates with U+FFFD."""
    place = f"result of tool {block.name!r}"
    return as_text(value, place) if isinstance(value, str) else _write_json(value, place)


def _write_json(value: object, place: str) -> str:
    if _contains_block(value):
        advice = "Return a JSON value, a text block, a media block, or a list of such blocks"
        raise ValueError(f"messages, and blocks inside other values, cannot be sent. {advice}")
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except ValueError as error:
        if "surrogates" not in str(error):
            raise
        values = to_jsonable_python(replace_surrogates(value, place))
        return to_json(replace_surrogates(values, place), inf_nan_mode="strings").decode()


def _contains_block(value: object) -> bool:
    """Returns True if a value contains a message or block at any depth. Such a value must not be sent as JSON."""
    if isinstance(value, Mapping):
        return any(map(_contains_block, cast("Mapping[Any, object]", value).values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(_contains_block, cast("Iterable[object]", value)))
    return isinstance(value, Validated)


def as_failure(block: ToolUseBlock, error: BaseException) -> ToolResultBlock:
    """Returns the result for a tool call whose function raised an error.

    The metadata of the result contains the traceback. Requests never contain this metadata.
    """
    _log.warning("tool %r: raised %s", block.name, type(error).__name__, exc_info=error)
    traceback = shorten(as_text("".join(format_exception(error))), MAX_TRACEBACK_CHARACTERS)
    return replace(as_refusal(block, error_text(error)), metadata={"traceback": traceback})


def as_refusal(block: ToolUseBlock, reason: str) -> ToolResultBlock:
    """Returns a result with `is_error=True`, whose text is `reason`, shortened if necessary."""
    return ToolResultBlock(block.id, block.name, as_text(shorten(reason, MAX_ERROR_CHARACTERS)), is_error=True)
