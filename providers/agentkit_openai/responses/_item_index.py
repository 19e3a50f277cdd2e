"""Index that finds the item to which an event of a Responses stream belongs."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

from agentkit.provider_kit import as_object, as_text

__all__ = ["ItemIndex", "ItemKey"]

ItemKey: TypeAlias = tuple[int, int]
"""`output_index` of an item, and the number of earlier items with the same index.

The number distinguishes items of gateways that always send the index 0.
"""


class ItemIndex:
    """Index of the items in one reply.

    An event with an `output_index` belongs to the item with the same `output_index`. Any other event belongs to
    the item with the same id, or to the latest item if the id is unknown. `output_index` takes precedence over the
    id, because some gateways send a different item id in each event.

    Attributes:
        keys: Keys of all items, in order of arrival.
        complete: Keys of the complete items.
    """

    def __init__(self) -> None:
        self.keys: list[ItemKey] = []
        self.complete: set[ItemKey] = set()
        self._by_index: dict[int, ItemKey] = {}
        self._by_id: dict[str, ItemKey] = {}
        self._counts: Counter[int] = Counter()
        self._next_index = 0
        self._latest: ItemKey | None = None

    def begin(self, event: dict[str, Any]) -> ItemKey:
        """Adds the item of an event to the index, and returns the key of the item.

        If the index contains an incomplete item with the same `output_index` or id, no item is added. The method
        then returns the key of the incomplete item.
        """
        output_index, id = event.get("output_index"), _get_id(event)
        number = output_index if type(output_index) is int else None
        key = self._by_index.get(number) if number is not None else self._by_id.get(id)
        if key is not None and key not in self.complete:
            return key
        index = self._next_index if number is None else number
        key = (index, self._counts[index])
        self._counts[index] += 1
        self._next_index = max(self._next_index, index + 1)
        self.keys.append(key)
        if number is not None:
            self._by_index[number] = key
        if id:
            self._by_id[id] = key
        self._latest = key
        return key

    def find(self, event: dict[str, Any]) -> ItemKey:
        """Returns the key of the item to which an event belongs.

        If the index does not contain the item, the method adds the item.
        """
        key = self._find(event, self._latest)
        return self.begin(event) if key is None else key

    def end(self, event: dict[str, Any]) -> ItemKey | None:
        """Marks the item of an event as complete.

        Returns the key of the item, or None if the item was already complete.
        """
        key = self._find(event, None if self._latest in self.complete else self._latest)
        if key is None:
            key = self.begin(event)
        if key in self.complete:
            return None
        self.complete.add(key)
        return key

    def _find(self, event: dict[str, Any], default: ItemKey | None) -> ItemKey | None:
        index = event.get("output_index")
        return self._by_index.get(index) if type(index) is int else self._by_id.get(_get_id(event), default)


def _get_id(event: dict[str, Any]) -> str:
    return as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id"))
