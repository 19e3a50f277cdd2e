"""`MessageView`, `IndexView` and `LoopPosition`: values that record each access of a template to the messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, overload

from jinja2 import Undefined

from agentkit.errors import AgentkitError
from agentkit.jinja_environments.limits import ITEM_SIZE, Unmeasured, count_read, count_steps

if TYPE_CHECKING:
    from agentkit.jinja_environments.loop_recorder import LoopRecorder

__all__ = ["IndexView", "LoopPosition", "MessageView", "RecordedItems"]


class RecordedItems(ABC, Unmeasured):
    """Items of a loop, one for each message of the current rendering from the index `start` on.

    Args:
        recorder: Recorder of the rendering.
        start: Index of the first message.
    """

    def __init__(self, recorder: LoopRecorder, start: int = 0) -> None:
        self.recorder = recorder
        self.start = start

    def has_item(self, index: int) -> bool:
        """Returns True if there is an item at `index`, and records this read. The index must not be negative."""
        return self.recorder.read_message(self.start + index)

    @abstractmethod
    def get_item(self, index: int) -> Any:
        """Returns the item at `index` without recording a read."""


class MessageView(RecordedItems, Sequence[Mapping[str, Any]]):
    """List of the messages of the current rendering from the index `start` on. The recorder records each read.

    A read that depends on the number of messages records this number. Examples are `length`, a negative index,
    `==` and a slice with an end. Other reads record only whether there is a message at an index.
    """

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def get_item(self, index: int) -> Mapping[str, Any]:
        """Returns the message at `index` without recording a read."""
        return self.recorder.messages[self.start + index]

    def _read_all(self) -> list[Mapping[str, Any]]:
        messages = [*self.recorder.messages[self.start : self.start + len(self)]]
        count_steps(ITEM_SIZE * len(messages))
        return messages

    def __bool__(self) -> bool:
        return self.has_item(0)

    def __len__(self) -> int:
        return max(self.recorder.read_length() - self.start, 0)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        index = 0
        while self.has_item(index):
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
                return MessageView(self.recorder, self.start + index.start)
            return self._read_all()[index]
        position = index if index >= 0 else len(self) + index
        if position < 0 or not self.has_item(position):
            raise IndexError(index)
        return self.get_item(position)

    def __eq__(self, other: object) -> bool:
        return bool(self._read_all() == count_read(other))

    def __repr__(self) -> str:
        return repr(self._read_all())


class IndexView(RecordedItems):
    """Indexes of the messages of a view, from the index `low` on: `range(low, messages | length)`."""

    def __init__(self, view: MessageView, low: int) -> None:
        super().__init__(view.recorder, view.start + low)
        self._low = low

    def get_item(self, index: int) -> int:
        """Returns the item at `index` without recording a read."""
        return self._low + index


class LoopPosition(Unmeasured):
    """Variable `loop` of an iteration. A rendering fails if it reads an attribute that this class does not have.

    Args:
        items: Items of the loop.
        index0: Index of the item.
    """

    __slots__ = ("_items", "index0")

    def __init__(self, items: RecordedItems, index0: int) -> None:
        self._items = items
        self.index0 = index0

    @property
    def index(self) -> int:
        """Number of the item, beginning with 1."""
        return self.index0 + 1

    @property
    def first(self) -> bool:
        """True for the first item."""
        return self.index0 == 0

    @property
    def last(self) -> bool:
        """True for the last item."""
        return not self._items.has_item(self.index)

    @property
    def previtem(self) -> Any:
        """Item before this item. Undefined for the first item."""
        return Undefined("there is no previous item") if self.first else self._items.get_item(self.index0 - 1)

    @property
    def nextitem(self) -> Any:
        """Item after this item. Undefined for the last item."""
        return Undefined("there is no next item") if self.last else self._items.get_item(self.index)

    def __getattr__(self, name: str) -> NoReturn:
        raise AgentkitError(f"the attribute loop.{name} cannot be recorded")
