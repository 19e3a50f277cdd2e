"""`LoopRecorder`: records loops over messages, so that renderings of more or fewer messages can skip iterations.

An iteration of a loop depends on the messages, the variables and the attributes of namespaces that the iteration
reads. The recorder stores these values, the text that the iteration prints, and the attributes that the iteration
sets. If a later rendering has the same values, the iteration would do the same again. So the recorder copies the
text and sets the attributes, and the iteration does not run.

Templates compare positions, for example `loop.index0 > ns.last_user`. The value of `ns.last_user` differs between
renderings, but most results do not. So the recorder stores the range of values for which the result is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast, overload

from agentkit.jinja_environments.functions import get_namespace_class

if TYPE_CHECKING:
    from jinja2.utils import Namespace

__all__ = [
    "COMPARISONS",
    "LoopPosition",
    "LoopRecorder",
    "MessageView",
    "RepeatedText",
    "current_recorder",
    "get_recorded_namespace",
]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "gt": gt,
    "gteq": ge,
    "lt": lt,
    "lteq": le,
}
"""Functions of the comparisons whose results the recorder stores, by the names of jinja."""

_MAX_RECORDS: Final = 6  # maximum number of records of a loop

_PLAIN: Final[Any] = (str, int, float, bool, type(None))
_MISSING: Final = object()

_Attribute: TypeAlias = tuple[int, str]
"""Number of a namespace, and the name of one of its attributes."""


class _Range(NamedTuple):
    """Range of integers, which includes both limits."""

    low: float
    high: float


class _Identity:
    """Wrapper of an object that is equal only to a wrapper of the same object."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


@dataclass(slots=True)
class _Iteration:
    """Iteration of a loop in the current rendering.

    Attributes:
        known: Attributes that earlier iterations of the loop set.
        last_read: Index of the last message that was read. Infinity after a read of the end of the list.
        conditions: For each attribute that was read, the value that the attribute must have at the start of the
            loop, or a range of such values.
        writes: Attributes that were set, and their values.
        is_repeatable: False if the iteration set an attribute to a value that only this rendering can use.
    """

    known: Mapping[_Attribute, Any]
    last_read: float = -1
    conditions: dict[_Attribute, Any] = field(default_factory=dict[_Attribute, Any])
    writes: dict[_Attribute, Any] = field(default_factory=dict[_Attribute, Any])
    is_repeatable: bool = True


@dataclass(slots=True)
class _LoopRecord:
    """Iterations of a loop. The item with index `n` of each list describes the first `n` iterations together.

    Attributes:
        values: Values that the loop can read, as `_describe` returns them.
        length: Number of messages of the rendering.
        text: Text of all iterations.
        ends: Length of the text that these iterations print.
        last_reads: Index of the last message that was read, as in `_Iteration`.
        conditions: Conditions on the attributes at the start of the loop.
        writes: Attributes that were set, and their values.
    """

    values: tuple[Any, ...]
    length: int
    text: str
    ends: list[int]
    last_reads: list[float]
    conditions: list[dict[_Attribute, Any]]
    writes: list[dict[_Attribute, Any]]

    def copy_start(self, count: int, length: int) -> _LoopRecord:
        """Returns a record of the first `count` iterations, for a rendering of `length` messages."""
        end = count + 1
        lists = self.ends[:end], self.last_reads[:end], self.conditions[:end], self.writes[:end]
        return _LoopRecord(self.values, length, self.text[: self.ends[count]], *lists)

    def add(self, iteration: _Iteration, size: int) -> None:
        """Adds the next iteration, which printed `size` characters."""
        conditions, writes = self.conditions[-1], self.writes[-1]
        for key, condition in iteration.conditions.items():
            merged = _merge(conditions.get(key), condition)
            if merged != conditions.get(key):
                conditions = {**conditions, key: merged}
        self.ends.append(self.ends[-1] + size)
        self.last_reads.append(max(self.last_reads[-1], iteration.last_read))
        self.conditions.append(conditions)
        self.writes.append({**writes, **iteration.writes} if iteration.writes else writes)


def _merge(condition: Any, other: Any) -> Any:
    """Returns a condition that is true if both conditions are true."""
    if isinstance(condition, _Range) and isinstance(other, _Range):
        return _Range(max(condition.low, other.low), min(condition.high, other.high))
    return other if condition is None or isinstance(condition, _Range) else condition


class _Loop(NamedTuple):
    """Loop of the current rendering.

    Attributes:
        first: Index of the first message.
        position: Index in the rendered text at which the text of the loop starts.
        record: Record whose first iterations are those of the loop.
        steps: Number of iterations.
    """

    first: int
    position: int
    record: _LoopRecord
    steps: int


class RepeatedText:
    """Text of the first iterations of a loop: the start of the text of a record, which is not copied.

    Attributes:
        text: Text of all iterations of the record.
    """

    __slots__ = ("_first", "_length", "_record", "text")

    def __init__(self, record: _LoopRecord, first: int, count: int) -> None:
        self.text = record.text
        self._record = record
        self._first = first
        self._length = record.ends[count]

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return self.text[: self._length]

    def change_length(self, length: int) -> RepeatedText | None:
        """Returns the text for another number of messages. Returns None if namespaces can change this text."""
        record, count = self._record, length - self._first
        if not 0 < count < len(record.ends) or record.last_reads[count] >= length:
            return None
        return (
            None if record.conditions[count] or record.writes[count] else RepeatedText(record, self._first, count)
        )


class LoopRecorder:
    """Recorder of the renderings of one conversation.

    Attributes:
        messages: All messages.
        length: Number of messages of the current rendering, which reads only the first messages.
        pieces: Pieces of the text of the current rendering.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.messages = messages
        self._records: dict[int, list[_LoopRecord]] = {}
        self._renderings: dict[bool, tuple[float, list[str | RepeatedText]]] = {}
        self.start(len(messages))

    def start(self, length: int) -> None:
        """Starts the rendering of the first `length` messages."""
        self.length = length
        self.pieces: list[str | RepeatedText] = []
        self._last_read: float = -1  # index of the last message that was read outside of loops
        self._loops: list[_Loop] = []
        self._is_repeated = True  # True if no iteration ran
        self._namespaces: list[Namespace] = []
        self._numbers: dict[int, int] = {}
        self._iteration: _Iteration | None = None

    def end(self, add_generation_prompt: bool) -> None:
        """Ends a rendering. If no iteration ran, `repeat` can use the text of the rendering."""
        repeated = sum(isinstance(piece, RepeatedText) for piece in self.pieces)
        if self._is_repeated and repeated == len(self._loops):
            self._renderings[add_generation_prompt] = self._last_read, self.pieces

    def repeat(self, length: int, add_generation_prompt: bool) -> list[str | RepeatedText] | None:
        """Returns the text of the first `length` messages if it follows from an earlier rendering, or None.

        The earlier rendering read the same messages outside of its loops, and the loops change no namespaces. The
        two texts then differ only in the number of iterations.
        """
        last_read, earlier = self._renderings.get(add_generation_prompt, (inf, []))
        if last_read >= length:
            return None
        pieces: list[str | RepeatedText] = []
        for piece in earlier:
            changed = piece if isinstance(piece, str) else piece.change_length(length)
            if changed is None:
                return None
            pieces.append(changed)
        return pieces

    # -- loops -------------------------------------------------------------------------------------------------

    def walk(
        self, messages: MessageView, loop: int, values: Iterable[Any]
    ) -> Iterator[tuple[Mapping[str, Any], LoopPosition]]:
        """Yields each message whose iteration must run, with the position of the message in the loop.

        First, the recorder adds the text of the skipped iterations to `pieces`.

        Args:
            messages: Messages of the loop.
            loop: Number of the loop in the template.
            values: Values of all variables that the loop can read.
        """
        pieces, position = self.pieces, sum(map(len, self.pieces))
        described = (messages.start, *map(self._describe, values))
        records = self._records.setdefault(loop, [])
        record, count = self._choose_record(records, described)
        if count:
            self._repeat(record, messages.start, count)
        self._loops.append(_Loop(messages.start, position, record, count))
        if messages.start + count >= self.length:
            return
        self._is_repeated = False
        record = record.copy_start(count, self.length)
        first_piece, is_recorded = len(pieces), True
        try:
            while True:
                start = len(pieces)
                self._iteration = iteration = _Iteration(record.writes[-1])
                if not messages.has(count):
                    break
                yield self.messages[messages.start + count], LoopPosition(messages, count)
                is_recorded = is_recorded and iteration.is_repeatable
                if is_recorded:
                    record.add(iteration, sum(map(len, pieces[start:])))
                count += 1
        finally:
            self._iteration = None
            record.text += "".join(map(str, pieces[first_piece:]))
            self._loops[-1] = _Loop(messages.start, position, record, len(record.ends) - 1)
            _keep_best(records, record)

    def list_spans(self) -> dict[int, tuple[int, int]]:
        """Returns the start and end of the text that the current rendering printed for each message.

        The result is empty if no loop printed a text, or if several loops did.
        """
        printed = [loop for loop in self._loops if loop.record.ends[loop.steps]]
        spans = dict[int, tuple[int, int]]()
        for loop in printed if len(printed) == 1 else ():
            for index, (start, end) in enumerate(pairwise(loop.record.ends[: loop.steps + 1])):
                spans[loop.first + index] = loop.position + start, loop.position + end
        return spans

    def _choose_record(self, records: Sequence[_LoopRecord], values: tuple[Any, ...]) -> tuple[_LoopRecord, int]:
        """Returns the record with the most iterations that the current rendering can skip, and their number."""
        best, most = _LoopRecord(values, self.length, "", [0], [-1], [{}], [{}]), 0
        for record in records:
            count = self._count_repeated(record) if record.values == values else 0
            if count > most:
                best, most = record, count
        return best, most

    def _count_repeated(self, record: _LoopRecord) -> int:
        is_same_length = record.length == self.length
        count = len(record.ends) if is_same_length else bisect_left(record.last_reads, self.length)
        if self._are_true(record.conditions[count - 1]):
            return count - 1
        return bisect_left(record.conditions[:count], True, key=lambda item: not self._are_true(item)) - 1

    def _are_true(self, conditions: Mapping[_Attribute, Any]) -> bool:
        return all(self._is_true(key, condition) for key, condition in conditions.items())

    def _is_true(self, key: _Attribute, condition: Any) -> bool:
        number, name = key
        if number >= len(self._namespaces):
            return False
        value = _list_attributes(self._namespaces[number]).get(name, _MISSING)
        if isinstance(condition, _Range):
            return type(value) is int and condition.low <= value <= condition.high
        return bool(self._describe(value) == condition)

    def _repeat(self, record: _LoopRecord, first: int, count: int) -> None:
        self.pieces.append(RepeatedText(record, first, count))
        for (number, name), value in record.writes[count].items():
            _list_attributes(self._namespaces[number])[name] = value

    def _describe(self, value: Any) -> Any:
        """Returns an object for the comparison of a value with a value of another rendering.

        Two such objects are equal if templates cannot distinguish the values.
        """
        if type(value) in _PLAIN:
            return type(value), value
        if type(value) is MessageView:
            return MessageView, value.start
        undefined, macro = _get_types()
        if type(value) is undefined:
            return undefined, value._undefined_name
        if type(value) is macro:
            return macro, value._func.__code__
        number = self._numbers.get(id(value))
        return _Identity(value) if number is None else (get_recorded_namespace(), number)

    # -- reads and writes --------------------------------------------------------------------------------------

    def read_message(self, index: int) -> None:
        """Records that the template reads a message, or the end of the list."""
        position = index if index < self.length else inf
        if self._iteration is None:
            self._last_read = max(self._last_read, position)
        else:
            self._iteration.last_read = max(self._iteration.last_read, position)

    def add_namespace(self, namespace: Namespace) -> None:
        """Adds a new namespace. Namespaces that an iteration creates are not recorded."""
        if self._iteration is None:
            self._numbers[id(namespace)] = len(self._namespaces)
            self._namespaces.append(namespace)

    def read_attribute(self, namespace: Namespace, name: str) -> None:
        """Records that the template reads an attribute of a namespace."""
        iteration, key = self._iteration, (self._numbers.get(id(namespace), -1), name)
        if iteration is None or key[0] < 0 or key in iteration.writes or key in iteration.known:
            return
        value = self._describe(_list_attributes(namespace).get(name, _MISSING))
        iteration.conditions[key] = _merge(iteration.conditions.get(key), value)

    def write_attribute(self, namespace: Namespace, name: str, value: Any) -> None:
        """Records that the template sets an attribute of a namespace."""
        iteration, number = self._iteration, self._numbers.get(id(namespace), -1)
        if iteration is not None and number >= 0:
            iteration.writes[number, name] = value
            iteration.is_repeatable = iteration.is_repeatable and _is_repeatable(value)

    def compare_attribute(self, namespace: Namespace, name: str, operator: str, other: Any) -> bool:
        """Compares an attribute of a namespace with a value. Only the result of the comparison is recorded."""
        iteration, key = self._iteration, (self._numbers.get(id(namespace), -1), name)
        value = _list_attributes(namespace).get(name)
        is_recorded = iteration is not None and key[0] >= 0
        if not is_recorded or type(value) is not int or type(other) is not int:
            return COMPARISONS[operator](getattr(namespace, name), other)
        result = COMPARISONS[operator](value, other)
        if iteration is not None and key not in iteration.writes and key not in iteration.known:
            condition = _find_range(value, other)
            iteration.conditions[key] = _merge(iteration.conditions.get(key), condition)
        return result


def _keep_best(records: list[_LoopRecord], record: _LoopRecord) -> None:
    """Adds a record. Of the records with the same values, the longest and the last are kept."""
    same = [item for item in records if item.values == record.values]
    longest = max([record, *same], key=lambda item: len(item.ends))
    others = [item for item in records if item.values != record.values]
    kept = [record] if longest is record else [longest, record]
    records[:] = [*others, *kept][-_MAX_RECORDS:]


current_recorder: Final[ContextVar[LoopRecorder]] = ContextVar("agentkit_loop_recorder")
"""Recorder of the current rendering."""


def _find_range(value: int, other: int) -> _Range:
    """Returns the range of all integers that are greater than, equal to or less than `other`, as `value` is."""
    if value == other:
        return _Range(other, other)
    return _Range(other + 1, inf) if value > other else _Range(-inf, other - 1)


def _is_repeatable(value: Any) -> bool:
    """Returns True if other renderings can use a value."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, (*_PLAIN, dict)) for item in cast("Iterable[Any]", value))
    return isinstance(value, (*_PLAIN, dict, MessageView))


# -- values of templates ---------------------------------------------------------------------------------------


class MessageView(Sequence[Mapping[str, Any]]):
    """List of the messages of the current rendering from the index `start` on. The recorder records each read.

    An operation that depends on the number of messages counts as a read of the end of the list.
    """

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def __init__(self, recorder: LoopRecorder, start: int = 0) -> None:
        self.start = start
        self._recorder = recorder

    def has(self, index: int) -> bool:
        """Returns True if the list has a message with an index, which must not be negative."""
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
    """Variable `loop` of an iteration.

    Args:
        items: Items of the loop.
        index0: Index of the item.
    """

    depth, depth0 = 1, 0
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
    def length(self) -> int:
        """Number of items."""
        return len(self._items)

    @property
    def revindex(self) -> int:
        """Number of items from this item to the end."""
        return len(self._items) - self.index0

    @property
    def revindex0(self) -> int:
        """Number of items after this item."""
        return len(self._items) - self.index

    @property
    def previtem(self) -> Any:
        """Item before this item."""
        return _undefine("previous") if self.first else self._items[self.index0 - 1]

    @property
    def nextitem(self) -> Any:
        """Item after this item."""
        return _undefine("next") if self.last else self._items[self.index]


def _undefine(name: str) -> Any:
    from jinja2 import Undefined

    return Undefined(f"there is no {name} item")


@cache
def _get_types() -> tuple[Any, Any]:
    from jinja2 import Undefined
    from jinja2.runtime import Macro

    return Undefined, Macro


def _list_attributes(namespace: Namespace) -> dict[str, Any]:
    return cast("dict[str, Any]", object.__getattribute__(namespace, "_Namespace__attrs"))


@cache
def get_recorded_namespace() -> type[Namespace]:
    """Returns the class `namespace` of recorded renderings."""
    base: Any = get_namespace_class()

    class RecordedNamespace(base):  # type: ignore[misc]  # the base class is created at run time
        def __init__(*args: Any, **kwargs: Any) -> None:
            base.__init__(*args, **kwargs)
            current_recorder.get().add_namespace(args[0])

        def __getattribute__(self, name: str) -> Any:
            if name not in ("_Namespace__attrs", "__class__"):
                current_recorder.get().read_attribute(self, name)
            return base.__getattribute__(self, name)

        def __setitem__(self, name: str, value: Any) -> None:
            base.__setitem__(self, name, value)
            current_recorder.get().write_attribute(self, name, value)

    return RecordedNamespace
