"""`MessageView` and `LoopPosition`: the variables `messages` and `loop` of renderings whose loops are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from agentkit.errors import AgentkitError

if TYPE_CHECKING:
    from agentkit.jinja_environments.loop_recorder import LoopRecorder

__all__ = ["LoopPosition", "MessageView"]


class MessageView(Sequence[Mapping[str, Any]]):
    """List of the messages of the current rendering from the index `start` on. The recorder records each read.

    An operation that depends on the number of messages counts as a read of the end of the list.
    """

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def __init__(self, recorder: LoopRecorder, start: int = 0) -> None:
        self.start = start
        self._recorder = recorder

    def has(self, index: int) -> bool:
        """Returns True if the list has a message at `index`. The index must not be negative."""
        self._recorder.read_message(self.start + index)
        return self.start + index < self._recorder.length

    def _read_all(self) -> list[Mapping[str, Any]]:
        return list(self._recorder.messages[self.start : self.start + len(self)])

    def __bool__(self) -> bool:
        return self.has(0)

    def __len__(self) -> int:
        self._recorder.read_message(self._recorder.length)
        return max(self._recorder.length - self.start, 0)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        index = 0
        while self.has(index):
            yield self._recorder.messages[self.start + index]
            index += 1

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(index, slice):
            is_tail = index.stop is None and index.step is None and isinstance(index.start, int)
            if is_tail and index.start >= 0:
                return MessageView(self._recorder, self.start + index.start)
            return self._read_all()[index]
        position = index if index >= 0 else len(self) + index
        if position < 0 or not self.has(position):
            raise IndexError(index)
        return self._recorder.messages[self.start + position]

    def __eq__(self, other: object) -> bool:
        return self._read_all() == other

    def __repr__(self) -> str:
        return repr(self._read_all())


class LoopPosition:
    """Variable `loop` of an iteration. A rendering fails if it reads an attribute that this class does not have.

    Args:
        items: Items of the loop.
        index0: Index of the item.
    """

    __slots__ = ("_items", "index0")

    def __init__(self, items: Sequence[Any], index0: int) -> None:
        self._items = items
        self.index0 = index0

    @property
    def index(self) -> int:
        """Number of the item, from 1 on."""
        return self.index0 + 1

    @property
    def first(self) -> bool:
        """True for the first item."""
        return self.index0 == 0

    @property
    def last(self) -> bool:
        """True for the last item."""
        items = self._items
        return not (items.has(self.index) if isinstance(items, MessageView) else self.index < len(items))

    @property
    def previtem(self) -> Any:
        """Item before this item. Undefined for the first item."""
        return _undefine("previous") if self.first else self._items[self.index0 - 1]

    @property
    def nextitem(self) -> Any:
        """Item after this item. Undefined for the last item."""
        return _undefine("next") if self.last else self._items[self.index]

    def __getattr__(self, name: str) -> NoReturn:
        raise AgentkitError(f"loop.{name} is not recorded")


def _undefine(name: str) -> Any:
    from jinja2 import Undefined

    return Undefined(f"there is no {name} item")
