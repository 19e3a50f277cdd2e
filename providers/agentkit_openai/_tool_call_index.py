"""Which call a piece of a streamed `tool_calls` list belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.provider_kit import ReplyBuilder

__all__ = ["ToolCallIndex"]


class ToolCallIndex:
    """The calls of one reply, and the keys they have in its assembly.

    The wire numbers them by `index` (SDK: ChoiceDeltaToolCall). Servers leave it out, begin it at 1, leave gaps,
    or send 0 for all: then a new id begins a new call. An id counts once; an empty or a repeated one says nothing.
    Another tool's name behind arguments that are complete begins a new call too.
    """

    def __init__(self, reply: ReplyBuilder, kind: int) -> None:
        self._reply = reply
        self._kind = kind
        self._count = 0
        self._latest: tuple[int, ...] | None = None
        self._by_index: dict[int, tuple[int, ...]] = {}
        self._by_id: dict[tuple[int | None, str], tuple[int, ...]] = {}
        self._all: list[tuple[int, ...]] = []
        self._names: dict[tuple[int, ...], str] = {}

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return iter(sorted(self._all))

    def begin(self, index: object = None) -> tuple[int, ...]:
        """A call of its own."""
        number = index if type(index) is int else None
        at = number if number is not None else self._latest[1] if self._latest else 0
        key = (self._kind, at, self._count)
        self._count += 1
        self._all.append(key)
        self._latest = key
        if number is not None:
            self._by_index[number] = key
        return key

    def at(self, index: object) -> tuple[int, ...] | None:
        """The call that a piece without id and name goes on with; None if none has begun."""
        return self._by_index.get(index) if type(index) is int else self._latest

    def find(self, index: object, id: str, name: str, taken: set[tuple[int, ...]]) -> tuple[int, ...]:
        """The call that a piece belongs to; `taken` are those that had a piece in the same list."""
        key = self._find(index, id, name, taken)
        if name:
            self._names.setdefault(key, name)
        return key

    def _find(self, index: object, id: str, name: str, taken: set[tuple[int, ...]]) -> tuple[int, ...]:
        number = index if type(index) is int else None
        key = self.at(index)
        if not id and not name and key is not None:
            return key
        if id:
            known = self._by_id.get((number, id))
            if known is not None and not self._is_another(known, name):
                return known
            if known is not None or (key is not None and self._reply.get_call_id(key)):
                key = None
        if key is not None and self._is_another(key, name):
            key = None
        if key is None or (key in taken and name and self._is_whole(key)):
            key = self.begin(index)
        if id:
            self._by_id[number, id] = key
            self._by_id.setdefault((None, id), key)
        return key

    def _is_another(self, key: tuple[int, ...], name: str) -> bool:
        """Whether a name is that of another call than one whose arguments are an object already."""
        return bool(name) and self._names.get(key, name) != name and self._reply.has_complete_arguments(key)

    def _is_whole(self, key: tuple[int, ...]) -> bool:
        """Whether a call's arguments are at their end: what follows in the same list is another call."""
        text = self._reply.get_arguments(key).rstrip()
        return not text or text.endswith("}")
