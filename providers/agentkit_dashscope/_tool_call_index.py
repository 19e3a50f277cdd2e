"""Assignment of the tool call entries in events to the calls of a reply.

Servers send an index with each entry, or the id of the call, or neither.
"""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import ReplyBuilder, as_text

__all__ = ["Key", "ToolCallIndex"]

Key = tuple[int, ...]

_MAX_INDEX = 10_000
"""Limit of indexes. A larger index is ignored."""


class ToolCallIndex:
    """Index of the calls of one reply: their keys in the reply builder.

    Attributes:
        complete: Keys of the calls whose arguments came as an object.
    """

    def __init__(self, reply: ReplyBuilder, kind: int) -> None:
        self._reply = reply
        self._kind = kind
        self._latest: dict[int, Key] = {}  # by index
        self._names: dict[Key, str] = {}
        self._ids: dict[str, Key] = {}
        self._by_id: dict[tuple[int, str], Key] = {}  # by index and id
        self._counts: dict[int, int] = {}  # number of calls by index
        self.complete: set[Key] = set()

    @property
    def last(self) -> Key | None:
        """Key of the call with the highest index, or None if there is no call."""
        return max(self._latest.values(), default=None)

    def find_open_call(self, entry: dict[str, Any], name: object) -> Key | None:
        """Returns the key of the call that an entry continues, or None if the entry has another id or name."""
        index, id = entry.get("index"), entry.get("id")
        key = self._latest.get(index) if type(index) is int else None
        if key is None or (name and name != self._names.get(key)):
            return None
        if id and (type(id) is not str or self._ids.get(id) != key):
            return None
        return key

    def find(self, entry: dict[str, Any], name: str, position: int, used: set[Key]) -> tuple[Key, str]:
        """Returns the key of an entry's call, and its id, which is empty if another call has that id.

        Args:
            entry: Tool call in an event.
            name: Name of the tool, or an empty string.
            position: Position of the entry in its event.
            used: Keys of the entries before it in the event.
        """
        id = as_text(entry.get("id"))
        key = self._choose_key(entry.get("index"), id, name, position, used)
        if name:
            self._names.setdefault(key, name)
        if not id or self._ids.setdefault(id, key) != key:
            return key, ""
        self._by_id.setdefault((key[1], id), key)
        return key, id

    def _choose_key(self, index: object, id: str, name: str, position: int, used: set[Key]) -> Key:
        """Returns the key for an index, or for the position of the entry if it has no index.

        Another id with the same index is another call. Another name is another call if the arguments are complete.
        """
        slot = index if isinstance(index, int) and 0 <= index < _MAX_INDEX else position
        key = self._latest.get(slot, (self._kind, slot, 0))
        call_id = self._reply.get_call_id(key)
        is_renamed = name and name != self._names.get(key, name) and self._is_complete(key)
        if (call_id and id and id != call_id) or (key in used and not id) or is_renamed:
            key = self._another_key(slot, "" if is_renamed and id == call_id else id)
        self._latest[slot] = key
        return key

    def _another_key(self, slot: int, id: str) -> Key:
        """Returns the key of the call with this index and id, or the next free key of the index."""
        if key := self._by_id.get((slot, id)):
            return key
        number = self._counts.get(slot, 0)
        while self._reply.has_block((self._kind, slot, number)):
            number += 1
        self._counts[slot] = number
        return (self._kind, slot, number)

    def _is_complete(self, key: Key) -> bool:
        """Returns True if the arguments of a call so far are an object."""
        return key in self.complete or self._reply.has_complete_arguments(key)
