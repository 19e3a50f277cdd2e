"""`LoopRecorder`: records loops over messages, so that renderings of more or fewer messages can skip iterations.

An iteration of a loop depends on the messages, the variables and the attributes of namespaces that the iteration
reads. A namespace is an object that a template creates with jinja's `namespace()`. The recorder stores these
values, the text that the iteration prints, and the attributes that the iteration sets. If a later rendering has
the same values, the iteration would do the same again. So the recorder copies the text and sets the attributes,
and the iteration does not run.

Templates compare positions, for example `loop.index0 > ns.last_user`. The value of `ns.last_user` differs between
renderings, but the results of most comparisons do not. So the recorder stores a range of values for which the
result is the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from agentkit.jinja_environments.functions import get_namespace_class
from agentkit.jinja_environments.loop_records import (
    Attribute,
    Iteration,
    LoopRecord,
    LoopText,
    ReadAttribute,
    ValueRange,
    find_range,
)
from agentkit.jinja_environments.message_views import LoopPosition, MessageView

if TYPE_CHECKING:
    from jinja2.utils import Namespace

__all__ = ["COMPARISONS", "LoopRecorder", "Piece", "current_recorder", "get_recorded_namespace"]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "gt": gt,
    "gteq": ge,
    "lt": lt,
    "lteq": le,
}
"""Functions of the comparison operators that the recorder supports, by jinja's names of the operators."""

_PLAIN: Final[Any] = (str, int, float, bool, type(None))
_MISSING: Final = object()
_MAX_NEW_RECORDS: Final = 3  # number of records that are kept for each loop, besides the first record


Piece: TypeAlias = str | LoopText | ReadAttribute
"""Piece of a rendered text."""


class _Rendering(NamedTuple):
    """Rendering that `LoopRecorder.repeat` can use.

    Attributes:
        length: Number of messages.
        last_read: Index of the last message that was read outside of loops. Infinity after a read of the end of
            the list.
        pieces: Pieces of the text.
        attributes: Attributes of each namespace at the start of the first loop that could read them.
    """

    length: int
    last_read: float
    pieces: list[Piece]
    attributes: list[dict[str, Any]]


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
        length: Number of messages of the current rendering, which reads only `messages[:length]`.
        pieces: Pieces of the text of the current rendering.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.messages = messages
        self._records = defaultdict[int, list[LoopRecord]](list)
        self._renderings: dict[bool, _Rendering] = {}
        self.start(len(messages))

    def start(self, length: int) -> None:
        """Starts the rendering of the first `length` messages."""
        self.length = length
        self.pieces: list[Piece] = []
        self._last_read: float = -1  # index of the last message that was read outside of loops
        # False if parts outside of loops set an attribute that a loop can read, or if not all iterations of a loop
        # were recorded
        self._is_repeatable = True
        # attributes of each namespace, at the start of the first loop that could read them
        self._attributes: list[dict[str, Any]] = []
        self._namespaces: list[Namespace] = []
        self._numbers: dict[int, int] = {}
        self._iteration: Iteration | None = None

    def end(self, add_generation_prompt: bool) -> None:
        """Ends the current rendering.

        For each value of `add_generation_prompt`, the recorder keeps only the longest rendering that `repeat` can
        use.
        """
        stored = self._renderings.get(add_generation_prompt)
        if self._is_repeatable and (stored is None or stored.length < self.length):
            rendering = _Rendering(self.length, self._last_read, self.pieces, self._attributes)
            self._renderings[add_generation_prompt] = rendering

    def repeat(self, length: int, add_generation_prompt: bool) -> list[Piece] | None:
        """Returns the pieces of the text of the first `length` messages without running the template.

        The pieces are those of an earlier rendering, with another number of iterations for each loop. Returns None
        if there is no such rendering, or if an iteration is not recorded. Also returns None if the template would
        read other messages outside of its loops, or other values of attributes.
        """
        rendering = self._renderings.get(add_generation_prompt)
        if rendering is None or rendering.last_read >= length:
            return None
        pieces: list[Piece] = []
        attributes = [{**item} for item in rendering.attributes]
        for piece in rendering.pieces:
            changed = piece.change_length(length) if isinstance(piece, LoopText) else piece
            if changed is None:
                return None
            pieces.append(changed)
            if not isinstance(changed, str) and not self._are_true(changed.conditions, attributes):
                return None
            if isinstance(changed, LoopText):
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
            loop: Index of the loop among the recorded loops of the template.
            values: Values of the variables that the loop can read and whose values can differ between renderings.
        """
        pieces, first_piece = self.pieces, len(self.pieces)
        self._attributes += [{**_list_attributes(item)} for item in self._namespaces[len(self._attributes) :]]
        described = tuple(map(self._describe, values))
        record, count = self._choose_record(loop, (messages.start, *described))
        pieces.append(LoopText(record, messages.start, count))
        for (number, name), value in record.writes[count].items():
            _list_attributes(self._namespaces[number])[name] = value
        if messages.start + count >= self.length:
            return
        record, start, texts = record.copy_start(count, self.length), len(pieces), list[str]()
        is_repeatable, is_complete = True, False
        try:
            while True:
                self._iteration = iteration = Iteration(record.writes[-1])
                if not messages.has(count):
                    is_complete = is_repeatable
                    break
                yield self.messages[messages.start + count], LoopPosition(messages, count)
                is_repeatable = is_repeatable and iteration.is_repeatable
                if is_repeatable:
                    texts.append("".join(map(str, pieces[start:])))
                    record.add(iteration, len(texts[-1]))
                    start = len(pieces)
                count += 1
        finally:
            self._iteration = None
            self._is_repeatable = self._is_repeatable and is_complete
            record.text += "".join(texts)
            self._records[loop].append(record)
            del self._records[loop][1:-_MAX_NEW_RECORDS]  # the first record has the iterations for all messages
            pieces[first_piece:start] = [LoopText(record, messages.start, len(record.ends) - 1)]

    def _choose_record(self, loop: int, values: tuple[Any, ...]) -> tuple[LoopRecord, int]:
        """Returns the record with the most iterations that the current rendering can skip, and their number.

        Returns an empty record and 0 if the rendering can skip no iteration.
        """
        best, most = LoopRecord(values, self.length, "", [0], [-1], [{}], [{}]), 0
        for record in self._records[loop]:
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

    def _describe(self, value: Any) -> Any:
        """Returns an object that stands for a value when the recorder compares values of two renderings.

        Two such objects are equal only if templates cannot distinguish the values.
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
        """Records that the template reads the message at `index`, or the end of the list if there is none."""
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
        value = self._describe(_list_attributes(namespace).get(name, _MISSING))
        if iteration is None:
            if key[0] < len(self._attributes):  # a loop can change the attribute
                self.pieces.append(ReadAttribute(key, value))
        elif key[0] >= 0 and key not in iteration.writes and key not in iteration.known:
            iteration.add_condition(key, value)

    def write_attribute(self, namespace: Namespace, name: str, value: Any) -> None:
        """Records that the template sets an attribute of a namespace."""
        iteration, number = self._iteration, self._numbers.get(id(namespace), -1)
        if iteration is None:
            self._is_repeatable = self._is_repeatable and number >= len(self._attributes)
        elif number >= 0:
            iteration.writes[number, name] = value
            iteration.is_repeatable = iteration.is_repeatable and _is_repeatable(value)

    def compare_attribute(self, namespace: Namespace, name: str, operator: str, other: Any) -> bool:
        """Compares an attribute of a namespace with a value.

        For two integers, the recorder stores a range of attribute values for which the result is the same, and not
        the value of the attribute.
        """
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
    """Returns True if other renderings can set an attribute to a recorded value."""
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
