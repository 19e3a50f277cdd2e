"""The result of a tool call: what the function returned, or raised, as a `ToolResultBlock`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from traceback import format_exception
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from agentkit.blocks import InvalidBlock, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.errors import AgentkitError
from agentkit.loggers import get_logger
from agentkit.mcp_results import read_mcp_item, read_mcp_result
from agentkit.native import plain_values, text_of
from agentkit.values import Checked

__all__ = ["as_failure", "as_refusal", "as_result", "find_leaves"]

_log = get_logger("tools")

MAX_ERROR_CHARACTERS = 4_000
"""Length of an error text that goes to the model."""

MAX_TRACEBACK_CHARACTERS = 20_000
"""Length of a traceback in a result's metadata."""


def as_result(block: ToolUseBlock, found: object) -> ToolResultBlock:
    """Converts what a function returned: blocks, an MCP result, text, or any other value as JSON."""
    if isinstance(found, ToolResultBlock):
        return replace(found, id=block.id, name=block.name)
    try:
        fields = None if isinstance(found, str) else read_mcp_result(found)
        return ToolResultBlock(block.id, block.name, **(fields or {"output": _output(block, found)}))
    except (AgentkitError, PydanticSerializationError, ValueError, RecursionError) as error:
        kind = type(found).__name__
        _log.warning("tool %r: its result, a %s, cannot be sent (%s)", block.name, kind, type(error).__name__)
        said = (
            _said(error)
            if isinstance(error, AgentkitError)
            else f"The tool gave a {kind}, which is no JSON: {error}"
        )
        return as_refusal(block, said)


def _output(
    block: ToolUseBlock, found: object
) -> str | Sequence[TextBlock | MediaBlock | InvalidBlock | Mapping[str, Any]]:
    items: Sequence[object] = cast("Sequence[object]", found) if isinstance(found, list | tuple) else [found]
    blocks = [*map(_block, items)]
    if not any(blocks):
        return _text(block, cast("object", found))
    pairs = zip(items, blocks, strict=True)
    return [TextBlock(_text(block, item)) if known is None else known for item, known in pairs]


def _block(found: object) -> TextBlock | MediaBlock | Mapping[str, Any] | None:
    """A block, or an item of an MCP result as one; None for any other value."""
    return found if isinstance(found, TextBlock | MediaBlock) else read_mcp_item(found)


def _text(block: ToolUseBlock, found: object) -> str:
    """A value as text: strings as they are, anything else as JSON; lone surrogates are replaced."""
    place = f"tool {block.name!r}: its result"
    return text_of(found, place) if isinstance(found, str) else _json(found, place)


def _json(found: object, place: str) -> str:
    if _holds_ours(found):
        raise ValueError("a message or a block stands within it: give blocks alone, or a list of them")
    try:
        return to_json(found, inf_nan_mode="strings").decode()
    except ValueError as error:
        if "surrogates" not in str(error):
            raise
        values = to_jsonable_python(_with_clean_texts(found, place), inf_nan_mode="strings")
        return to_json(plain_values(values, place)).decode()


def _with_clean_texts(found: object, place: str) -> object:
    """A value whose texts UTF-8 can carry. Keys are content: `place` names the whole result."""
    if isinstance(found, str):
        return text_of(found, place)
    if isinstance(found, Mapping):
        pairs = cast("Mapping[Any, object]", found).items()
        clean = ((text_of(key, place) if isinstance(key, str) else key, item) for key, item in pairs)
        return {key: _with_clean_texts(item, place) for key, item in clean}
    if isinstance(found, list | tuple):
        return [_with_clean_texts(item, place) for item in cast("Iterable[object]", found)]
    return found


def _holds_ours(found: object) -> bool:
    """Whether a message or a block of ours stands anywhere in a result: nobody wants them as JSON."""
    if isinstance(found, Mapping):
        return any(map(_holds_ours, cast("Mapping[Any, object]", found).values()))
    if isinstance(found, list | tuple | set | frozenset):
        return any(map(_holds_ours, cast("Iterable[object]", found)))
    return type(type(found)) is Checked


def as_failure(block: ToolUseBlock, error: BaseException) -> ToolResultBlock:
    """The result of a call whose function raised. Its metadata has the traceback: no provider gets metadata."""
    _log.warning("tool %r: raised %s", block.name, type(error).__name__, exc_info=error)
    traceback = _bounded(text_of("".join(format_exception(error))), MAX_TRACEBACK_CHARACTERS)
    return replace(as_refusal(block, _said(error)), metadata={"traceback": traceback})


def as_refusal(block: ToolUseBlock, said: str) -> ToolResultBlock:
    """The result of a call that cannot be run, or whose result cannot be sent."""
    return ToolResultBlock(block.id, block.name, text_of(_bounded(said, MAX_ERROR_CHARACTERS)), is_error=True)


def _bounded(text: str, limit: int) -> str:
    """A text without its middle, if it is longer than the limit."""
    if len(text) <= limit:
        return text
    head, tail = limit * 3 // 4, limit // 4
    return f"{text[:head]}\n… ({len(text) - head - tail} characters left out) …\n{text[-tail:]}"


def _said(error: BaseException) -> str:
    """The class and the sentence of an error; of a group, those of its errors too."""
    lines = [_sentence(error)]
    if isinstance(error, BaseExceptionGroup):
        lines += [
            f"- {_sentence(leaf)}" for leaf in islice(find_leaves(cast("BaseException", error)), _MAX_LEAVES)
        ]
    return "\n".join(lines)


_MAX_LEAVES = 20  # errors of a group in one text


def _sentence(error: BaseException) -> str:
    try:
        said = str(error)
    except BaseException:  # an error whose own sentence fails
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def find_leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, however deep; an error that is no group is its own leaf."""
    pending = [error]
    while pending:
        last = pending.pop()
        if isinstance(last, BaseExceptionGroup):
            pending += reversed(cast("BaseExceptionGroup[BaseException]", last).exceptions)
        else:
            yield last
