"""`MessageView`, `IndexView` and `LoopPosition`: values that record what a template reads of the messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from agentkit.errors import AgentkitError

if TYPE_CHECKING:
    from agentkit.jinja_environments.loop_recorder import LoopRecorder

__all__ = ["IndexView", "LoopPosition", "MessageView"]


class MessageView(Sequence[Mapping[str, Any]]):
    """List of the messages of the current rendering from the index `first` on. The recorder records each read.

    An operation that depends on the number of messages counts as a read of this number.
    """

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def __init__(self, recorder: LoopRecorder, first: int = 0) -> None:
        self.first = first
        self.recorder = recorder

    def has(self, index: int) -> bool:
        """Returns True if the list has a message at `index`. The index must not be negative."""
        return self.recorder.read_message(self.first + index)

    def get_item(self, index: int) -> Mapping[str, Any]:
        """Returns the message at `index` without recording a read."""
        return self.recorder.messages[self.first + index]

    def _read_all(self) -> list[Mapping[str, Any]]:
        return list(self.recorder.messages[self.first : self.first + len(self)])

    def __bool__(self) -> bool:
        return self.has(0)

    def __len__(self) -> int:
        return max(self.recorder.read_length() - self.first, 0)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        index = 0
        while self.has(index):
            yield self.get_item(index)
            index += 1

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(index, slice):
            is_tail = index.stop is None and index.step is None and isinstance(index.start, int)
            if is_tail and index.start >= 0:
                return MessageView(self.recorder, self.first + index.start)
            return self._read_all()[index]
        position = index if index >= 0 else len(self) + index
        if position < 0 or not self.has(position):
            raise IndexError(index)
        return self.get_item(position)

    def __eq__(self, other: object) -> bool:
        return self._read_all() == other

    def __repr__(self) -> str:
        return repr(self._read_all())


class IndexView:
    """Indexes of the messages of a view, from the index `start` on: `range(start, messages | length)`."""

    def __init__(self, view: MessageView, start: int) -> None:
        self.first = view.first + start
        self.recorder = view.recorder
        self._start = start

    def has(self, index: int) -> bool:
        """Returns True if there is an item at `index`. The index must not be negative."""
        return self.recorder.read_message(self.first + index)

    def get_item(self, index: int) -> int:
        """Returns the item at `index` without recording a read."""
        return self._start + index

    __getitem__ = get_item


class LoopPosition:
    """Variable `loop` of an iteration. A rendering fails if it reads an attribute that this class does not have.

    Args:
        items: Items of the loop.
        index0: Index of the item.
    """

    __slots__ = ("_items", "index0")

    def __init__(self, items: list[Any] | MessageView | IndexView, index0: int) -> None:
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
        return self.index >= len(items) if isinstance(items, list) else not items.has(self.index)

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
