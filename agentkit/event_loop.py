"""The event loop: work that is finished whatever cancellation comes, and which loop is running."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.lowlevel import current_token

__all__ = ["get_running_loop", "has_ended", "is_being_canceled", "run_to_completion"]


async def run_to_completion(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Do some work to its end, in so many seconds at most, and let a cancellation wait for it.

    A shield of anyio's holds off the cancellations of anyio's scopes and of trio. On asyncio a task can be
    cancelled by itself, as `asyncio.timeout` does, and no shield holds: there the work has a task of its own.
    """
    with anyio.CancelScope(shield=True):
        if _on_asyncio():
            await _in_its_own_task(work, seconds)
        else:
            await _timed(work, seconds)


async def _timed(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await work()


async def _in_its_own_task(work: Callable[[], Awaitable[None]], seconds: float) -> None:
    task = asyncio.ensure_future(_timed(work, seconds))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    failed = None if task.cancelled() else task.exception()  # asked for, whatever comes of it
    if cancelled is not None:
        raise cancelled
    if failed is not None:
        raise failed


def _on_asyncio() -> bool:
    """Whether this is a task of asyncio's; trio may run as a guest in its loop, and then it is none."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


def get_running_loop() -> Any:
    """The loop that is running, as a thing that is equal to itself alone."""
    token = current_token()
    return getattr(token, "native_token", token)


def has_ended(loop: Any) -> bool:
    """Whether a loop has ended: it will never run again."""
    is_closed = getattr(loop, "is_closed", None)
    if is_closed is not None:  # asyncio's
        return bool(is_closed())
    try:
        loop.run_sync_soon(_nothing)
    except RuntimeError:  # trio's RunFinishedError
        return True
    return False


def _nothing() -> None:
    """What a loop that still runs does when it is asked whether it does."""


def is_being_canceled() -> bool:
    """True if a cancellation that this task meets is its own.

    On asyncio, awaiting a task or a future that was canceled raises the same error. On trio every one is its own.
    """
    task = asyncio.current_task() if _on_asyncio() else None
    return task is None or task.cancelling() > 0
