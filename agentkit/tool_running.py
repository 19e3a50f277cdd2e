"""Running a tool's function for a call: arguments checked, the result as a block, failures included."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from itertools import islice
from traceback import format_exception
from typing import Any, TypeAlias, cast

import anyio.to_thread
from pydantic import ConfigDict, ValidationError, validate_call
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from agentkit.blocks import InvalidBlock, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.errors import AgentkitError, check_option
from agentkit.loops import is_being_canceled
from agentkit.mcp_results import read_mcp_item, read_mcp_result
from agentkit.native import plain_values, text_of
from agentkit.values import Checked

__all__ = ["run_tool"]

_log = logging.getLogger("agentkit.tools")

MAX_ERROR_CHARACTERS = 4_000
"""Length of an error text that goes to the model."""

MAX_TRACEBACK_CHARACTERS = 20_000
"""Length of a traceback in a result's metadata."""

MAX_ITEMS = 100_000
"""Items that a generator may yield: one without an end would fill the memory."""


async def run_tool(name: str, function: Callable[..., Any] | None, block: ToolUseBlock) -> ToolResultBlock:
    """What a tool answers to a call: see `Tool.run`."""
    check_option("block", block, ToolUseBlock)
    refusal = _refusal(name, function, block)
    if refusal or function is None:
        return _failed(block, refusal)
    try:
        return await _run(function, block)
    except BaseException as error:
        if _is_interruption(error):
            raise
        return _raised(block, error)


async def _run(function: Callable[..., Any], block: ToolUseBlock) -> ToolResultBlock:
    try:
        given, named = _checked(function)(**block.copy_input())
    except ValidationError as error:
        return _failed(block, _invalid(block.name, error))
    call = partial(function, *given, **named)
    if _is_async(function):
        found = await call()
    else:
        found = await _in_thread(call)
    while inspect.isawaitable(found):
        found = await found
    if inspect.isasyncgen(found):
        found = await _collect_async(cast("AsyncGenerator[Any, Any]", found))
    if isinstance(found, str | TextBlock | MediaBlock | ToolResultBlock):
        return _result(block, found)
    return cast("ToolResultBlock", await _in_thread(partial(_result, block, found)))


async def _in_thread(call: Callable[[], Any]) -> Any:
    """What a function gives, run off the event loop; a thread that is given up ends by itself."""
    is_abandoned = threading.Event()
    try:
        outcome = await anyio.to_thread.run_sync(_outcome, call, is_abandoned, abandon_on_cancel=True)
    finally:
        is_abandoned.set()
    if outcome.error is not None:
        raise outcome.error
    return outcome.found


def _is_interruption(error: BaseException) -> bool:
    """True if an error is about the task and not about the tool: a cancellation, or an interrupt of the user's.

    On asyncio a tool may also meet the cancellation of some other task or future: that is an error like any other.
    """
    try:
        canceled = anyio.get_cancelled_exc_class()
    except Exception:  # no event loop runs: the coroutine is being closed
        return True
    leaves = [*_leaves(error)]
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return True
    return any(isinstance(leaf, canceled) for leaf in leaves) and is_being_canceled()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, however deep; an error that is no group is its own leaf."""
    pending = [error]
    while pending:
        last = pending.pop()
        if isinstance(last, BaseExceptionGroup):
            pending += reversed(cast("BaseExceptionGroup[BaseException]", last).exceptions)
        else:
            yield last


def _refusal(name: str, function: object, block: ToolUseBlock) -> str:
    """Why a call cannot be run; "" if it can."""
    if block.name != name:
        return f"This call is for the tool {block.name!r}, not for {name!r}."
    if function is None:
        return f"The tool {name!r} has no function to run."
    if block.raw_is_broken or (block.metadata or {}).get("incomplete"):
        return "The arguments of this call were cut off, or are no JSON object. Call the tool again."
    return ""


@dataclass(slots=True)
class _Outcome:
    """What a function gave, or raised, on its way out of a thread: StopIteration and coroutines cannot pass."""

    found: Any = None
    error: BaseException | None = None


def _outcome(call: Callable[[], Any], is_abandoned: threading.Event) -> _Outcome:
    try:
        found = call()
        return _Outcome(_collect(found, is_abandoned) if inspect.isgenerator(found) else found)
    except BaseException as error:
        return _Outcome(error=error)


def _collect(generator: Generator[Any, Any, Any], is_abandoned: threading.Event) -> list[Any]:
    """The items of a generator, unless the call is given up."""
    items: list[Any] = []
    for item in generator:
        items.append(item)
        if is_abandoned.is_set():
            generator.close()
        _check_count(items)
    return items


async def _collect_async(generator: AsyncGenerator[Any, Any]) -> list[Any]:
    items: list[Any] = []
    async with aclosing(generator):
        async for item in generator:
            items.append(item)
            _check_count(items)
    return items


def _check_count(items: list[Any]) -> None:
    if len(items) > MAX_ITEMS:
        raise ValueError(f"the tool yields more than {MAX_ITEMS} items")


def _is_async(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004 - a callable object's own method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


_Check: TypeAlias = Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]


def _checked(function: Callable[..., Any]) -> _Check:
    """What checks and converts a function's arguments, as pydantic's validate_call does; made once a function."""
    try:
        return _kept(function)
    except TypeError:
        return _made(function)  # no hash to keep it under


def _made(function: Callable[..., Any]) -> _Check:
    """The arguments alone: what the function itself raises is no matter of its arguments."""
    inner = function.func if isinstance(function, partial) else function
    if hasattr(inner, "cache_info"):
        inner = cast("Callable[..., Any]", getattr(inner, "__wrapped__", inner))
    told = inner if inspect.isroutine(inner) else cast("Any", inner).__call__

    def take(*given: Any, **named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return given, named

    take = wraps(told)(take)
    if inner is not function:
        take.__wrapped__ = function
    return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(take)


_kept = lru_cache(512)(_made)


# -- the result ---------------------------------------------------------------------------------------------------


def _result(block: ToolUseBlock, found: object) -> ToolResultBlock:
    """What a function gave, as the call's result."""
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
        return _failed(block, said)


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


def _raised(block: ToolUseBlock, error: BaseException) -> ToolResultBlock:
    """The result of a call whose function raised. Its metadata has the traceback: no provider gets metadata."""
    _log.warning("tool %r: raised %s", block.name, type(error).__name__, exc_info=error)
    traceback = _bounded(text_of("".join(format_exception(error))), MAX_TRACEBACK_CHARACTERS)
    return replace(_failed(block, _said(error)), metadata={"traceback": traceback})


def _failed(block: ToolUseBlock, said: str) -> ToolResultBlock:
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
        lines += [f"- {_sentence(leaf)}" for leaf in islice(_leaves(cast("BaseException", error)), _MAX_LEAVES)]
    return "\n".join(lines)


_MAX_LEAVES = 20  # errors of a group in one text


def _sentence(error: BaseException) -> str:
    try:
        said = str(error)
    except BaseException:  # an error whose own sentence fails
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _invalid(name: str, error: ValidationError) -> str:
    """What is wrong with the arguments, one a line, without pydantic's addresses of help."""
    lines = [
        f"- {'.'.join(map(str, found['loc'])) or 'arguments'}: {found['msg']}"
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return "\n".join([f"The arguments of {name!r} are not valid:", *lines])
