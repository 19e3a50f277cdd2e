"""Runs the function of a tool with validated arguments. If the function fails, the tool result names the error."""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from typing import Any, TypeAlias, cast

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from pydantic import ConfigDict, ValidationError, validate_call

from agentkit.argument_checks import check_option
from agentkit.event_loop import is_being_canceled
from agentkit.messages.blocks import MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.tools.error_texts import find_leaves, invalid_arguments_text, not_run_text
from agentkit.tools.results import as_failure, as_refusal, as_result

__all__ = ["run_tool", "validate_arguments"]

MAX_ITEMS = 100_000
"""Maximum number of items that are read from a generator. Unlimited reading could fill the memory."""


async def run_tool(name: str, function: Callable[..., Any] | None, block: ToolUseBlock) -> ToolResultBlock:
    """Runs the function of a tool for a tool call (see `Tool.run`)."""
    check_option("block", block, ToolUseBlock)
    refusal = not_run_text(name, function, block)
    if refusal or function is None:
        return as_refusal(block, refusal)
    try:
        return await _run(function, block)
    except BaseException as error:
        if _is_interruption(error):
            raise
        return as_failure(block, error)


async def _run(function: Callable[..., Any], block: ToolUseBlock) -> ToolResultBlock:
    try:
        args, kwargs = validate_arguments(function, block)
    except ValidationError as error:
        return as_refusal(block, invalid_arguments_text(block.name, error))
    call = partial(function, *args, **kwargs)
    if _is_async(function):
        value = await call()
    else:
        value = await _run_in_thread(call)
    while inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        value = await _collect_async(cast("AsyncGenerator[Any, Any]", value))
    if isinstance(value, str | TextBlock | MediaBlock | ToolResultBlock):
        return as_result(block, value)
    return cast("ToolResultBlock", await _run_in_thread(partial(as_result, block, value), CapacityLimiter(1)))


def validate_arguments(
    function: Callable[..., Any], block: ToolUseBlock
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Validates and converts the arguments of a tool call according to the parameter types of the function.

    Returns:
        The positional arguments and the keyword arguments of the function.

    Raises:
        ValidationError: An argument is missing, unknown, or does not match its type.
    """
    return _argument_check(function)(**block.copy_input())


async def _run_in_thread(call: Callable[[], Any], limiter: CapacityLimiter | None = None) -> Any:
    """Runs a function in a worker thread and returns its value. A cancellation does not wait for the thread.

    If `limiter` is None, the function waits for a free thread among the worker threads that all tools share.
    """
    is_abandoned = threading.Event()
    try:
        outcome = await anyio.to_thread.run_sync(
            _run_to_outcome, call, is_abandoned, abandon_on_cancel=True, limiter=limiter
        )
    finally:
        is_abandoned.set()
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _is_interruption(error: BaseException) -> bool:
    """Returns True if an error is or contains a keyboard interrupt, or a cancellation of the current task.

    On asyncio, a tool also raises a cancellation error if it awaits another task that is canceled. If the current
    task is not being canceled, this error is an ordinary failure of the tool.
    """
    try:
        canceled = anyio.get_cancelled_exc_class()
    except Exception:  # no event loop is running, because the coroutine is being closed
        return True
    leaves = [*find_leaves(error)]
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return True
    return any(isinstance(leaf, canceled) for leaf in leaves) and is_being_canceled()


@dataclass(slots=True)
class _Outcome:
    """Value or exception of a function that ran in a worker thread.

    The exception is stored, because a worker thread cannot pass StopIteration to the event loop.
    """

    value: Any = None
    error: BaseException | None = None


def _run_to_outcome(call: Callable[[], Any], is_abandoned: threading.Event) -> _Outcome:
    try:
        value = call()
        return _Outcome(_collect(value, is_abandoned) if inspect.isgenerator(value) else value)
    except BaseException as error:
        return _Outcome(error=error)


def _collect(generator: Generator[Any, Any, Any], is_abandoned: threading.Event) -> list[Any]:
    """Returns the items of a generator. If the tool call is canceled, closes the generator."""
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
    method = getattr(function, "__call__", None)  # noqa: B004 - the method of a callable object
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(method)


_Check: TypeAlias = Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]


def _argument_check(function: Callable[..., Any]) -> _Check:
    try:
        return _cached_check(function)
    except TypeError:  # the function is not hashable, so its check is not cached
        return _build_check(function)


def _build_check(function: Callable[..., Any]) -> _Check:
    """Returns a function that validates and converts arguments according to the parameter types of `function`.

    The returned function does not call `function`, so each ValidationError is about invalid arguments.
    """
    inner = function.func if isinstance(function, partial) else function
    if hasattr(inner, "cache_info"):
        inner = cast("Callable[..., Any]", getattr(inner, "__wrapped__", inner))
    documented = inner if inspect.isroutine(inner) else cast("Any", inner).__call__

    def collect(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    collect = wraps(documented)(collect)
    if inner is not function:
        collect.__wrapped__ = function
    return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(collect)


_cached_check = lru_cache(512)(_build_check)
