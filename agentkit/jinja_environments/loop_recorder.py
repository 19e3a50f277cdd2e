"""`LoopRecorder`: records the loops over messages, so that renderings of fewer messages can skip iterations.

A run of a template consists of steps and loops: the part before the first loop, the first loop, the part between
the loops, and so on. The recorder stores what each step reads, prints and sets. A later rendering repeats the run.
For a loop, it skips the iterations that would do the same again, and calls the body of the loop for the others.

Inner loops
    An iteration can have a loop over all later messages, for example to search for the next reply. The iteration
    then depends on the number of messages only if the number changes what the inner loop does. If the last items
    of the inner loop print nothing and set nothing, the iteration is the same without these items.
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

from agentkit.errors import AgentkitError
from agentkit.jinja_environments.functions import get_namespace_class
from agentkit.jinja_environments.limits import end_rendering, start_rendering
from agentkit.jinja_environments.loop_records import (
    LENGTH,
    Attribute,
    LoopRecord,
    LoopText,
    Step,
    ValueRange,
    find_range,
)
from agentkit.jinja_environments.message_views import IndexView, LoopPosition, MessageView

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
_NO_STEP: Final = Step({})
_MAX_TAIL: Final = 3  # number of iterations that run again without a new record

Piece: TypeAlias = str | LoopText
"""Piece of a rendered text."""


class _Loop(NamedTuple):
    """Loop over messages in a run of the template.

    Attributes:
        items: Items of the loop.
        number: Index of the loop among the recorded loops of the template.
        body: Function that runs the body of the loop, and returns the text.
        values: Values of the variables that the body can read and whose values can differ between runs.
        described: `values` as `_describe` returns them, with the type and the first index of the items.
    """

    items: MessageView | IndexView
    number: int
    body: Callable[..., str]
    values: tuple[Any, ...]
    described: tuple[Any, ...]


class _Run(NamedTuple):
    """Run of the template.

    Attributes:
        length: Number of messages.
        parts: Steps and loops in order.
        namespaces: Namespaces that the steps created.
    """

    length: int
    parts: list[Step | _Loop]
    namespaces: list[Namespace]


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
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.messages = messages
        self.length = len(messages)
        self._records = defaultdict[int, list[LoopRecord]](list)
        self._runs: dict[bool, _Run] = {}
        self._start(self.length, _Run(self.length, [], []))

    def _start(self, length: int, run: _Run) -> None:
        self.length, self._run, self._is_inside = length, run, False
        self._pieces: list[Piece] = []
        self._step = _NO_STEP
        self._inner_loops = self._changes = 0

    def record(self, length: int, add_generation_prompt: bool, run: Callable[[], Iterable[str]]) -> list[Piece]:
        """Runs the template for the first `length` messages, and returns the pieces of the text.

        For each value of `add_generation_prompt`, the recorder keeps only the run with the most messages.

        Args:
            length: Number of messages.
            add_generation_prompt: Value of the variable of the template.
            run: Function that runs the template, and yields the texts outside of loops.
        """
        self._start(length, _Run(length, [], []))
        self._add_step()
        self._call(self._add_texts, run)
        stored = self._runs.get(add_generation_prompt)
        if stored is None or stored.length < length:
            self._runs[add_generation_prompt] = self._run
        return self._pieces

    def _add_step(self) -> None:
        self._step = Step({})
        self._run.parts.append(self._step)

    def _add_texts(self, run: Callable[[], Iterable[str]]) -> None:
        for text in run():
            self._step.text += text
            self._pieces.append(text)

    def _call(self, function: Callable[..., None], *values: Any) -> None:
        """Calls a function that runs code of the template."""
        limits, token = start_rendering(self.length), current_recorder.set(self)
        try:
            function(*values)
        finally:
            current_recorder.reset(token)
            end_rendering(limits)

    def repeat(self, length: int, add_generation_prompt: bool) -> list[Piece] | None:
        """Returns the pieces of the text of the first `length` messages, from an earlier run.

        Returns None if there is no such run, or if a part outside of loops would do something else.
        """
        run = self._runs.get(add_generation_prompt)
        if run is None:
            return None
        self._start(length, run)
        for namespace in run.namespaces:
            _list_attributes(namespace).clear()
        pieces: list[Piece] = []
        for part in run.parts:
            if isinstance(part, _Loop):
                pieces.append(self._run_loop(part))
            elif part.conditions and not self._are_true(part.conditions):
                return None
            else:
                self._set(part.writes)
                pieces.append(part.text)
        return pieces

    # -- loops -------------------------------------------------------------------------------------------------

    def add_loop(self, items: MessageView | IndexView, number: int, body: Any, values: tuple[Any, ...]) -> None:
        """Runs a loop over messages. See `_Loop` for the arguments."""
        described = (type(items), items.first, *map(self._describe, values))
        loop = _Loop(items, number, body, values, described)
        self._pieces.append(self._run_loop(loop))
        self._run.parts.append(loop)
        self._add_step()

    def _run_loop(self, loop: _Loop) -> LoopText:
        first = loop.items.first
        needed = self.length - first if self.length > first else 0
        record, count = self._choose_record(loop, needed)
        self._set(record.writes[count])
        if count == needed:
            return LoopText(record, first, count)
        indexes, texts = range(count, needed), list[str]()
        if needed - count <= _MAX_TAIL and record.text:
            self._call(self._run_iterations, loop, indexes, texts, None)
            return LoopText(record, first, count, tuple(texts))
        record = record.copy_start(count)
        self._call(self._run_iterations, loop, indexes, texts, record)
        record.text += "".join(texts)
        records = self._records[loop.number]
        records.append(record)
        del records[1:-2]  # the first record has all messages, the last ones have the last values of the prompt
        return LoopText(record, first, needed)

    def _choose_record(self, loop: _Loop, needed: int) -> tuple[LoopRecord, int]:
        """Returns the record with the most iterations that the rendering can skip, and their number.

        Returns an empty record and 0 if the rendering can skip no iteration.
        """
        best, most = LoopRecord(loop.described), 0
        for record in self._records[loop.number]:
            if record.values == loop.described:
                count = self._count_true(record.conditions, min(needed, len(record.ends) - 1))
                if count >= most:
                    best, most = record, count
                if count == needed:
                    break
        return best, most

    def _count_true(self, conditions: Sequence[Mapping[Attribute, Any]], count: int) -> int:
        """Returns the number of iterations, at most `count`, whose conditions are true."""
        for end in (count, count - 1, count - 2):  # often, only the last iteration is different
            if end <= 0 or self._are_true(conditions[end]):
                return max(end, 0)
        return bisect_left(conditions, True, 0, count, key=lambda item: not self._are_true(item)) - 1

    def _run_iterations(
        self, loop: _Loop, indexes: Iterable[int], texts: list[str], record: LoopRecord | None
    ) -> None:
        """Runs iterations, and adds their texts to `texts` and the iterations to `record`."""
        items, body, values = loop.items, loop.body, loop.values
        self._is_inside = True
        for index in indexes:
            self._step = step = Step(record.writes[-1] if record else {})
            texts.append(body(items.get_item(index), LoopPosition(items, index), *values))
            if record:
                record.add(step, len(texts[-1]))
        self._is_inside = False

    def walk(self, items: MessageView | IndexView) -> Iterator[Any]:
        """Yields the items of an inner loop.

        The condition on the number of messages allows all numbers for which the inner loop does the same.
        """
        index = changed = 0
        self._inner_loops += 1
        while items.first + index < self.length:
            changes = self._changes
            yield items.get_item(index)
            index += 1
            if self._changes != changes:
                changed = index
        self._inner_loops -= 1
        low = items.first + changed if changed else -inf
        self._step.add_condition(LENGTH, ValueRange(low, max(self.length, items.first)))

    def count_change(self) -> None:
        """Counts that an inner loop printed a text."""
        self._changes += 1

    # -- conditions --------------------------------------------------------------------------------------------

    def _are_true(self, conditions: Mapping[Attribute, Any]) -> bool:
        """Returns True if the number of messages and the attributes satisfy all conditions."""
        namespaces = self._run.namespaces
        for (number, name), condition in conditions.items():
            if number < 0:
                value: Any = self.length
            elif number < len(namespaces):
                value = _list_attributes(namespaces[number]).get(name, _MISSING)
            else:
                return False
            if type(condition) is not ValueRange:
                is_true = self._describe(value) == condition
            else:
                is_true = type(value) is int and condition.low <= value <= condition.high
            if not is_true:
                return False
        return True

    def _set(self, writes: Mapping[Attribute, Any]) -> None:
        for (number, name), value in writes.items():
            _list_attributes(self._run.namespaces[number])[name] = value

    def _describe(self, value: Any) -> Any:
        """Returns an object that stands for a value when the recorder compares values of two renderings.

        Two such objects are equal only if templates cannot distinguish the values.
        """
        if type(value) in _PLAIN:
            return type(value), value
        if type(value) is MessageView:
            return MessageView, value.first
        if type(value) is get_recorded_namespace():
            number = _get_number(value)
            return _Identity(value) if number < 0 else (get_recorded_namespace(), number)
        undefined, macro = _get_types()
        if type(value) is undefined:
            return undefined, value._undefined_name
        return (macro, value._func.__code__) if type(value) is macro else _Identity(value)

    # -- reads and writes --------------------------------------------------------------------------------------

    def read_message(self, index: int) -> bool:
        """Returns True if there is a message at `index`, and records this read."""
        is_message = index < self.length
        self._step.add_condition(LENGTH, ValueRange(index + 1, inf) if is_message else ValueRange(-inf, index))
        return is_message

    def read_length(self) -> int:
        """Returns the number of messages, and records this read."""
        self._step.add_condition(LENGTH, ValueRange(self.length, self.length))
        return self.length

    def add_namespace(self, namespace: Namespace) -> int:
        """Adds a new namespace. Returns its number, or -1 if an iteration created the namespace."""
        if self._is_inside:
            return -1
        number = len(self._run.namespaces)
        self._run.namespaces.append(namespace)
        self._step.writes.update({(number, name): item for name, item in _list_attributes(namespace).items()})
        return number

    def read_attribute(self, number: int, name: str, value: Any) -> None:
        """Records that the template reads an attribute of a namespace."""
        if number >= 0:
            self._step.add_condition((number, name), self._describe(value))

    def write_attribute(self, number: int, name: str, old: Any, value: Any) -> None:
        """Records that the template sets an attribute of a namespace from the value `old` to `value`.

        Raises:
            AgentkitError: Other renderings cannot set the attribute to this value.
        """
        if self._inner_loops and type(old) is type(value) and type(value) in _PLAIN and old == value:
            self.read_attribute(number, name, old)
        else:
            self._changes += 1
        if number < 0:
            return
        if self._is_inside and not isinstance(value, (*_PLAIN, dict, MessageView)):
            raise AgentkitError(f"the attribute {name!r} has a value that cannot be recorded")
        self._step.writes[number, name] = value

    def compare_attribute(self, namespace: Any, name: str, operator: str, other: Any) -> bool:
        """Compares an attribute of a namespace with a value.

        For two integers, the recorder stores a range of attribute values for which the result is the same, and not
        the value of the attribute.
        """
        value = _list_attributes(namespace).get(name)
        if type(value) is not int or type(other) is not int:
            return COMPARISONS[operator](getattr(namespace, name), other)
        if (number := _get_number(namespace)) >= 0:
            self._step.add_condition((number, name), find_range(value, other))
        return COMPARISONS[operator](value, other)


current_recorder: Final[ContextVar[LoopRecorder]] = ContextVar("agentkit_loop_recorder")
"""Recorder of the current rendering."""


@cache
def _get_types() -> tuple[Any, Any]:
    from jinja2 import Undefined
    from jinja2.runtime import Macro

    return Undefined, Macro


_get: Final = object.__getattribute__


def _list_attributes(namespace: Namespace) -> dict[str, Any]:
    return cast("dict[str, Any]", _get(namespace, "_Namespace__attrs"))


def _get_number(namespace: Namespace) -> int:
    return cast("int", _get(namespace, "_number"))


@cache
def get_recorded_namespace() -> type[Namespace]:
    """Returns the class `namespace` of recorded renderings."""
    base: Any = get_namespace_class()

    class RecordedNamespace(base):  # type: ignore[misc]  # the base class is created at run time
        def __init__(*args: Any, **kwargs: Any) -> None:
            base.__init__(*args, **kwargs)
            recorder = current_recorder.get()
            object.__setattr__(args[0], "_recorder", recorder)
            object.__setattr__(args[0], "_number", recorder.add_namespace(args[0]))

        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("_"):
                value = _list_attributes(self).get(name, _MISSING)
                _get(self, "_recorder").read_attribute(_get_number(self), name, value)
                if value is not _MISSING:
                    return value
            return base.__getattribute__(self, name)

        def __setitem__(self, name: str, value: Any) -> None:
            old = _list_attributes(self).get(name, _MISSING)
            base.__setitem__(self, name, value)
            _get(self, "_recorder").write_attribute(_get_number(self), name, old, value)

    return RecordedNamespace
