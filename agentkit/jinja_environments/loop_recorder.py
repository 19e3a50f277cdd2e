"""`LoopRecorder`: records loops over messages, so that renderings of more or fewer messages can skip iterations.

An iteration of a loop depends on the messages, the variables and the attributes of namespaces that the iteration
reads. The recorder stores these values, the text that the iteration prints, and the attributes that the iteration
sets. If a later rendering has the same values, the iteration would do the same again. So the recorder copies the
text and sets the attributes, and the iteration does not run.

Templates compare positions, for example `loop.index0 > ns.last_user`. The value of `ns.last_user` differs between
renderings, but the results of most comparisons do not. So the recorder stores the range of values for which the
result is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from agentkit.jinja_environments.functions import get_namespace_class
from agentkit.jinja_environments.loop_records import (
    Attribute,
    Iteration,
    LoopRecord,
    RepeatedText,
    ValueRange,
    find_range,
    keep_best,
)
from agentkit.jinja_environments.message_views import LoopPosition, MessageView

if TYPE_CHECKING:
    from jinja2.utils import Namespace

__all__ = ["COMPARISONS", "LoopRecorder", "current_recorder", "get_recorded_namespace"]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "gt": gt,
    "gteq": ge,
    "lt": lt,
    "lteq": le,
}
"""Functions of the comparisons whose results the recorder stores, by the names of jinja."""

_PLAIN: Final[Any] = (str, int, float, bool, type(None))
_MISSING: Final = object()


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
    record: LoopRecord
    steps: int


class _Identity:
    """Wrapper of an object that is equal only to a wrapper of the same object."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


class LoopRecorder:
    """Recorder of the renderings of one conversation.

    Attributes:
        messages: All messages.
        length: Number of messages of the current rendering, which reads only the first messages.
        pieces: Pieces of the text of the current rendering.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.messages = messages
        self._records: dict[int, list[LoopRecord]] = {}
        self._renderings: dict[bool, tuple[float, list[str | RepeatedText], list[dict[str, Any]]]] = {}
        self.start(len(messages))

    def start(self, length: int) -> None:
        """Starts the rendering of the first `length` messages."""
        self.length = length
        self.pieces: list[str | RepeatedText] = []
        self._last_read: float = -1  # index of the last message that was read outside of loops
        self._loops: list[_Loop] = []
        self._is_repeated = True  # False after an iteration, or a use of a value that a loop can change
        self._attributes: list[dict[str, Any]] = []  # of each namespace, at the start of the next loop
        self._namespaces: list[Namespace] = []
        self._numbers: dict[int, int] = {}
        self._iteration: Iteration | None = None

    def end(self, add_generation_prompt: bool) -> None:
        """Ends a rendering. Stores the text of the rendering if `repeat` can use this text."""
        repeated = sum(isinstance(piece, RepeatedText) for piece in self.pieces)
        if self._is_repeated and repeated == len(self._loops):
            self._renderings[add_generation_prompt] = self._last_read, self.pieces, self._attributes

    def repeat(self, length: int, add_generation_prompt: bool) -> list[str | RepeatedText] | None:
        """Returns the text of the first `length` messages if it follows from an earlier rendering, or None.

        The earlier rendering read the same messages outside of its loops, and no attribute that a loop can change.
        The two texts then differ only in the number of iterations.
        """
        last_read, earlier, initial = self._renderings.get(add_generation_prompt, (inf, [], []))
        if last_read >= length:
            return None
        pieces: list[str | RepeatedText] = []
        attributes = [{**item} for item in initial]
        for piece in earlier:
            if isinstance(piece, str):
                pieces.append(piece)
                continue
            changed = piece.change_length(length)
            if changed is None or not self._are_true(changed.conditions, attributes):
                return None
            pieces.append(changed)
            for (number, name), value in changed.writes.items():
                attributes[number][name] = value
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
        self._attributes += [{**_list_attributes(item)} for item in self._namespaces[len(self._attributes) :]]
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
                self._iteration = iteration = Iteration(record.writes[-1])
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
            keep_best(records, record)

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

    def _choose_record(self, records: Sequence[LoopRecord], values: tuple[Any, ...]) -> tuple[LoopRecord, int]:
        """Returns the record with the most iterations that the current rendering can skip, and their number."""
        best, most = LoopRecord(values, self.length, "", [0], [-1], [{}], [{}]), 0
        for record in records:
            count = self._count_repeated(record) if record.values == values else 0
            if count > most:
                best, most = record, count
        return best, most

    def _count_repeated(self, record: LoopRecord) -> int:
        is_same_length = record.length == self.length
        count = len(record.ends) if is_same_length else bisect_left(record.last_reads, self.length)
        attributes = list(map(_list_attributes, self._namespaces))
        if self._are_true(record.conditions[count - 1], attributes):
            return count - 1
        conditions = record.conditions[:count]
        return bisect_left(conditions, True, key=lambda item: not self._are_true(item, attributes)) - 1

    def _are_true(self, conditions: Mapping[Attribute, Any], attributes: Sequence[Mapping[str, Any]]) -> bool:
        """Returns True if the attributes of the namespaces satisfy all conditions."""
        return all(self._is_true(key, condition, attributes) for key, condition in conditions.items())

    def _is_true(self, key: Attribute, condition: Any, attributes: Sequence[Mapping[str, Any]]) -> bool:
        number, name = key
        if number >= len(attributes):
            return False
        value = attributes[number].get(name, _MISSING)
        if isinstance(condition, ValueRange):
            return type(value) is int and condition.low <= value <= condition.high
        return bool(self._describe(value) == condition)

    def _repeat(self, record: LoopRecord, first: int, count: int) -> None:
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
        if iteration is None:
            self._is_repeated = self._is_repeated and key[0] >= len(self._attributes)
            return
        if key[0] < 0 or key in iteration.writes or key in iteration.known:
            return
        value = self._describe(_list_attributes(namespace).get(name, _MISSING))
        iteration.add_condition(key, value)

    def write_attribute(self, namespace: Namespace, name: str, value: Any) -> None:
        """Records that the template sets an attribute of a namespace."""
        iteration, number = self._iteration, self._numbers.get(id(namespace), -1)
        if iteration is None:
            self._is_repeated = self._is_repeated and number >= len(self._attributes)
        elif number >= 0:
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
            iteration.add_condition(key, find_range(value, other))
        return result


current_recorder: Final[ContextVar[LoopRecorder]] = ContextVar("agentkit_loop_recorder")
"""Recorder of the current rendering."""


def _is_repeatable(value: Any) -> bool:
    """Returns True if other renderings can use a value."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, (*_PLAIN, dict)) for item in cast("Iterable[Any]", value))
    return isinstance(value, (*_PLAIN, dict, MessageView))


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
