"""Random changes of JSON values, for input that no service and no program would write."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final, cast

__all__ = ["mutate_items", "mutate_value"]

_ODD: Final[tuple[Any, ...]] = (
    None, "", " ", "x", 0, -1, 1.5, True, [], {}, [None], {"type": "unheard-of"}, [[]], "\ud7ff\u2028", 10**20,
)  # fmt: skip


def mutate_value(rng: Random, value: Any) -> Any:
    """Returns a copy of a JSON value with one of its parts replaced, removed, doubled or renamed."""
    copy = _copy(value)
    places = list(_list_places(copy))
    if not places:
        return rng.choice(_ODD)
    holder, key = rng.choice(places)
    change = rng.choice(("replace", "replace", "remove", "double", "rename"))
    if change == "replace":
        holder[key] = _copy(rng.choice(_ODD))
    elif change == "remove":
        del holder[key]
    elif isinstance(holder, list):
        items = cast("list[Any]", holder)
        items.insert(rng.randint(0, len(items)), _copy(items[key]))
    else:
        holder[f"{key}x" if change == "rename" else "extra"] = holder.pop(key)
    return copy


def mutate_items(rng: Random, items: list[Any]) -> list[Any]:
    """Returns a list with items dropped, doubled, exchanged, cut off, or changed inside."""
    found = list(items)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not found:
            return [_copy(rng.choice(_ODD))]
        at, other = rng.randrange(len(found)), rng.randrange(len(found))
        change = rng.choice(("drop", "double", "exchange", "end", "value", "value", "value", "odd"))
        if change == "drop":
            del found[at]
        elif change == "double":
            found.insert(other, found[at])
        elif change == "exchange":
            found[at], found[other] = found[other], found[at]
        elif change == "end":
            del found[at:]
        elif change == "value":
            found[at] = mutate_value(rng, found[at])
        else:
            found.insert(at, _copy(rng.choice(_ODD)))
    return found


def _list_places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yields each container in a JSON value with each of its keys."""
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        pairs = enumerate(cast("list[Any]", value))
    for key, item in pairs:
        yield value, key
        yield from _list_places(item)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_copy(item) for item in cast("list[Any]", value)]
    return value
