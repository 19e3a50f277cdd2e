"""Functions that finish work despite a cancellation, and that identify event loops (asyncio and trio)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.lowlevel import current_token

__all__ = ["get_running_loop", "has_ended", "is_being_canceled", "run_to_completion"]


async def run_to_completion(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Runs `work` to completion. A cancellation ends the current task only after `work` has ended.

    If `work` takes longer than `seconds`, `work` is canceled. An anyio shield delays cancellations by cancel
    scopes of anyio and trio. The shield does not delay `asyncio.timeout`, which cancels the task directly.
    Therefore, on asyncio, `work` runs in a separate task.
    """
    with anyio.CancelScope(shield=True):
        if _on_asyncio():
            await _run_in_task(work, seconds)
        else:
            await _run_with_timeout(work, seconds)


async def _run_with_timeout(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await work()


async def _run_in_task(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    task = asyncio.ensure_future(_run_with_timeout(work, seconds))
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
    # asyncio logs an error if the exception of a task is never read, so this line reads the exception
    failure = None if task.cancelled() else task.exception()
    if cancellation is not None:
        raise cancellation
    if failure is not None:
        raise failure


def _on_asyncio() -> bool:
    """Returns True if the caller runs in an asyncio task. Returns False in trio, even in trio's guest mode."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def get_running_loop() -> Any:
    """Returns an object that identifies the running event loop."""
    token = current_token()
    return getattr(token, "native_token", token)


def has_ended(loop: Any) -> bool:
    """Returns True if an event loop has ended and will never run again."""
    is_closed = getattr(loop, "is_closed", None)
    if is_closed is not None:  # only event loops of asyncio have `is_closed()`
        return bool(is_closed())
    try:
        loop.run_sync_soon(_probe)
    except RuntimeError:  # trio raises RunFinishedError, which is a RuntimeError
        return True
    return False


def _probe() -> None:
    """Does nothing. `has_ended` schedules this function to test whether an event loop still accepts callbacks."""


def is_being_canceled() -> bool:
    """Returns True if the current task is being canceled.

    Call this function after catching a cancellation error. On asyncio, a cancellation error can also come from
    another task or future that the current task awaited. On trio, a cancellation error always means that the
    current task is being canceled.
    """
    task = asyncio.current_task() if _on_asyncio() else None
    return task is None or task.cancelling() > 0
