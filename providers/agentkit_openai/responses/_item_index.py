"""Which item of a reply an event of a Responses stream belongs to."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

from agentkit.provider_kit import as_object, as_text

__all__ = ["ItemPlaces", "Place"]

Place: TypeAlias = tuple[int, int]
"""`output_index`, and how many items had that index before: some gateways send 0 for all."""


class ItemPlaces:
    """The items of one reply by `output_index`; where a server leaves it out, by item id, else in their order.

    Not by id where there is an index: some gateways give an item another id in each event.
    """

    def __init__(self) -> None:
        self.done: set[Place] = set()
        self.all: list[Place] = []
        self._by_index: dict[int, Place] = {}
        self._by_id: dict[str, Place] = {}
        self._counts: Counter[int] = Counter()
        self._next = 0
        self._latest: Place | None = None

    def begin(self, event: dict[str, Any]) -> Place:
        """The place of an item that is added."""
        index, id = _index(event), _id(event)
        known = self._by_index.get(index) if index is not None else self._by_id.get(id)
        if known is not None and known not in self.done:
            return known
        at = self._next if index is None else index
        place = (at, self._counts[at])
        self._counts[at] += 1
        self._next = max(self._next, at + 1)
        self.all.append(place)
        if index is not None:
            self._by_index[index] = place
        if id:
            self._by_id[id] = place
        self._latest = place
        return place

    def find(self, event: dict[str, Any]) -> Place:
        """The place of the item that an event goes on with; one that was not announced begins."""
        found = self._known(event, self._latest)
        return self.begin(event) if found is None else found

    def end(self, event: dict[str, Any]) -> Place | None:
        """The place of an item that is done; None if it was before."""
        place = self._known(event, None if self._latest in self.done else self._latest)
        if place is None:
            place = self.begin(event)
        if place in self.done:
            return None
        self.done.add(place)
        return place

    def _known(self, event: dict[str, Any], otherwise: Place | None) -> Place | None:
        index = event.get("output_index")
        return self._by_index.get(index) if type(index) is int else self._by_id.get(_id(event), otherwise)


def _index(event: dict[str, Any]) -> int | None:
    found = event.get("output_index")
    return found if type(found) is int else None


def _id(event: dict[str, Any]) -> str:
    return as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id"))
