"""`record_io`: records which files, sockets and processes the checked code uses."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["record_io"]

_IO_EVENTS = ("open", "os.listdir", "os.scandir", "os.system", "socket.", "subprocess.", "tempfile.", "urllib.")
_watched: dict[int, list[str]] = {}
_hooks: list[object] = []


@contextmanager
def record_io() -> Generator[list[str]]:
    """Records each access of the current thread to files, sockets or processes inside the `with` block.

    Yields a list. For each access, the name of Python's audit event (such as `open`) is added to the list.
    """
    if not _hooks:  # the audit hook is added only once, because Python cannot remove it
        sys.addaudithook(_note_event)
        _hooks.append(_note_event)
    events: list[str] = []
    _watched[threading.get_ident()] = events
    try:
        yield events
    finally:
        del _watched[threading.get_ident()]


def _note_event(event: str, arguments: tuple[object, ...]) -> None:
    if _watched and event.startswith(_IO_EVENTS):
        events = _watched.get(threading.get_ident())
        if events is not None:
            events.append(event)
