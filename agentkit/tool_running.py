"""Running a tool's function for a call: arguments checked, the result as a block, failures included."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, wraps
from typing import Any, TypeAlias, cast

import anyio.to_thread
from pydantic import ConfigDict, ValidationError, validate_call
from pydantic_core import PydanticSerializationError, to_json

from agentkit.blocks import InvalidBlock, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.errors import AgentkitError, check_option
from agentkit.native import plain_values, text_of
from agentkit.values import Checked

__all__ = ["run_tool"]


async def run_tool(name: str, function: Callable[..., Any] | None, block: ToolUseBlock) -> ToolResultBlock:
    """What a tool answers to a call: see `Tool.run`."""
    check_option("block", block, ToolUseBlock)
    refusal = _refusal(name, function, block)
    if refusal or function is None:
        return _failed(block, refusal)
    try:
        given, named = _checked(function)(**block.copy_input())
    except ValidationError as error:
        return _failed(block, _invalid(name, error))
    except Exception as error:  # a signature that pydantic does not know, or a validator of the user's that fails
        return _failed(block, _said(error))
    call = partial(function, *given, **named)
    try:
        if _is_async(function):
            found = await call()
        else:
            found = await _in_thread(call)
            if inspect.isawaitable(found):
                found = await found
        if inspect.isasyncgen(found):
            found = [item async for item in found]
        if isinstance(found, str | TextBlock | MediaBlock | ToolResultBlock):
            return _result(block, found)
        return cast("ToolResultBlock", await _in_thread(partial(_result, block, found)))
    except (Exception, SystemExit) as error:
        return _failed(block, _said(error))


async def _in_thread(call: Callable[[], Any]) -> Any:
    """What a function gives, run off the event loop; a thread that is given up ends by itself."""
    outcome = await anyio.to_thread.run_sync(_outcome, call, abandon_on_cancel=True)
    if outcome.error is not None:
        raise outcome.error
    return outcome.found


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
    error: Exception | SystemExit | None = None


def _outcome(call: Callable[[], Any]) -> _Outcome:
    try:
        found = call()
        return _Outcome([*found] if inspect.isgenerator(found) else found)
    except (Exception, SystemExit) as error:
        return _Outcome(error=error)


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
        return ToolResultBlock(block.id, block.name, _output(found))
    except AgentkitError as error:
        return _failed(block, _said(error))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        return _failed(block, f"The tool gave a {type(found).__name__}, which is no JSON: {error}")


def _output(found: object) -> str | Sequence[TextBlock | MediaBlock | InvalidBlock]:
    if isinstance(found, str):
        return text_of(found)
    if isinstance(found, TextBlock | MediaBlock):
        return (found,)
    if isinstance(found, list | tuple):
        items = cast("Sequence[object]", found)
        if any(isinstance(item, TextBlock | MediaBlock) for item in items):
            return [_item(item) for item in items]
    return _json(cast("object", found))


def _item(found: object) -> TextBlock | MediaBlock:
    """One of several results, some of which are blocks."""
    if isinstance(found, TextBlock | MediaBlock):
        return found
    return TextBlock(text_of(found) if isinstance(found, str) else _json(found))


def _json(found: object) -> str:
    if _holds_ours(found):
        raise ValueError("a message or a block stands within it: give blocks alone, or a list of them")
    try:
        return to_json(found, inf_nan_mode="strings").decode()
    except ValueError as error:
        if "surrogates" not in str(error):
            raise
        return to_json(plain_values(found), inf_nan_mode="strings").decode()


def _holds_ours(found: object) -> bool:
    """Whether a message or a block of ours stands anywhere in a result: nobody wants them as JSON."""
    if isinstance(found, Mapping):
        return any(map(_holds_ours, cast("Mapping[Any, object]", found).values()))
    if isinstance(found, list | tuple | set | frozenset):
        return any(map(_holds_ours, cast("Iterable[object]", found)))
    return type(type(found)) is Checked


def _failed(block: ToolUseBlock, said: str) -> ToolResultBlock:
    return ToolResultBlock(block.id, block.name, text_of(said), is_error=True)


def _said(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # an error whose own sentence fails
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _invalid(name: str, error: ValidationError) -> str:
    """What is wrong with the arguments, one a line, without pydantic's addresses of help."""
    lines = [
        f"- {'.'.join(map(str, found['loc'])) or 'arguments'}: {found['msg']}"
        for found in error.errors(include_url=False, include_context=False)
    ]
    return "\n".join([f"The arguments of {name!r} are not valid:", *lines])
