"""Where the calls of a reply stand: servers count them, repeat their ids, or do neither."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import ReplyBuilder, as_text

__all__ = ["Key", "ToolCallIndex"]

Key = tuple[int, ...]

_MANY = 10_000
"""More calls than a reply has: an index beyond is none."""


class ToolCallIndex:
    """The calls of one reply, and the keys they have in its assembly."""

    def __init__(self, reply: ReplyBuilder, kind: int) -> None:
        self._reply = reply
        self._kind = kind
        self._latest: dict[int, Key] = {}  # by their indexes
        self._names: dict[Key, str] = {}
        self._ids: dict[str, Key] = {}
        self._by_id: dict[tuple[int, str], Key] = {}  # by place and id
        self._counts: dict[int, int] = {}  # the calls of a place that have begun
        self.told: set[Key] = set()
        """The calls whose arguments came as an object."""

    @property
    def last(self) -> Key | None:
        """The call that stands last."""
        return max(self._latest.values(), default=None)

    def of_more(self, entry: dict[str, Any], name: object) -> Key | None:
        """The call that has begun at an entry's index, where the entry says no other id and no other name."""
        index, id = entry.get("index"), entry.get("id")
        key = self._latest.get(index) if type(index) is int else None
        if key is None or (name and name != self._names.get(key)):
            return None
        if id and (type(id) is not str or self._ids.get(id) != key):
            return None
        return key

    def find(self, entry: dict[str, Any], name: str, at: int, taken: set[Key]) -> tuple[Key, str]:
        """The key of an entry, the one at `at` in its event, and its id: none if that is another call's."""
        id = as_text(entry.get("id"))
        key = self._key(entry.get("index"), id, name, at, taken)
        if name:
            self._names.setdefault(key, name)
        if not id or self._ids.setdefault(id, key) != key:
            return key, ""
        self._by_id.setdefault((key[1], id), key)
        return key, id

    def _key(self, index: object, id: str, name: str, at: int, taken: set[Key]) -> Key:
        """Its index, or its place in the list; another id under the same is another call, and so is another name
        behind whole arguments.
        """
        place = index if isinstance(index, int) and 0 <= index < _MANY else at
        key = self._latest.get(place, (self._kind, place, 0))
        known = self._reply.get_call_id(key)
        renamed = name and name != self._names.get(key, name) and self._is_whole(key)
        if (known and id and id != known) or (key in taken and not id) or renamed:
            key = self._another(place, "" if renamed and id == known else id)
        self._latest[place] = key
        return key

    def _another(self, place: int, id: str) -> Key:
        """The first key of a place that is free, or has the id."""
        if known := self._by_id.get((place, id)):
            return known
        number = self._counts.get(place, 0)
        while self._reply.has_block((self._kind, place, number)):
            number += 1
        self._counts[place] = number
        return (self._kind, place, number)

    def _is_whole(self, key: Key) -> bool:
        """Whether the arguments of a call so far are an object."""
        return key in self.told or self._reply.has_complete_arguments(key)
