"""`TraceRecorder`: records the values that a part of a template, or an iteration of a loop, reads and sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.errors import AgentkitError
from agentkit.jinja_environments.functions import get_namespace_class
from agentkit.jinja_environments.loop_records import Attribute, Trace, ValueRange, find_range
from agentkit.jinja_environments.message_views import IndexView, MessageView

if TYPE_CHECKING:
    from jinja2.utils import Namespace

__all__ = ["COMPARISONS", "TraceRecorder", "current_recorder", "get_recorded_namespace"]

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


class _Identity:
    """Wrapper of an object that is equal only to a wrapper of the same object."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


class TraceRecorder:
    """Recorder of the values that the current part or iteration reads and sets.

    Attributes:
        messages: All messages.
        length: Number of messages of the current rendering, which reads only `messages[:length]`.
        namespaces: Namespaces that the parts created. The number of a namespace is its index in this list.
        trace: Trace of the current part or iteration.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.messages = messages
        self.prepare_rendering(len(messages), [])
        self.start_part()

    def prepare_rendering(self, length: int, namespaces: list[Namespace]) -> None:
        """Prepares a rendering of the first `length` messages. Removes all attributes of the namespaces."""
        self.length, self.namespaces = length, namespaces
        for namespace in namespaces:
            _list_attributes(namespace).clear()
        self._inner_loops = self._changes = 0

    def start_part(self) -> Trace:
        """Starts the trace of a part."""
        self.trace, self._is_in_loop = Trace({}), False
        return self.trace

    def start_iteration(self, earlier_writes: Mapping[Attribute, Any]) -> Trace:
        """Starts the trace of an iteration. See `Trace` for `earlier_writes`."""
        self.trace, self._is_in_loop = Trace(earlier_writes), True
        return self.trace

    # -- messages ----------------------------------------------------------------------------------------------

    def read_message(self, index: int) -> bool:
        """Returns True if there is a message at `index`, and records this read."""
        is_message = index < self.length
        self.trace.limit_length(ValueRange(index + 1, inf) if is_message else ValueRange(-inf, index))
        return is_message

    def read_length(self) -> int:
        """Returns the number of messages, and records this read."""
        self.trace.limit_length(ValueRange(self.length, self.length))
        return self.length

    def walk(self, items: MessageView | IndexView) -> Iterator[Any]:
        """Yields the items of an inner loop.

        The trace allows all numbers of messages for which the inner loop does the same.
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
        self.trace.limit_length(ValueRange(low, max(self.length, items.first)))

    def count_change(self) -> None:
        """Counts that an inner loop printed a text."""
        self._changes += 1

    # -- attributes of namespaces ------------------------------------------------------------------------------

    def add_namespace(self, namespace: Namespace) -> int | None:
        """Adds a new namespace. Returns its number, or None if an iteration created the namespace."""
        if self._is_in_loop:
            return None
        number = len(self.namespaces)
        self.namespaces.append(namespace)
        self.trace.writes.update({(number, name): item for name, item in _list_attributes(namespace).items()})
        return number

    def read_attribute(self, number: int | None, name: str, value: Any) -> None:
        """Records that the template reads an attribute of a namespace."""
        if number is not None:
            self.trace.add_condition((number, name), self.as_comparable(value))

    def write_attribute(self, number: int | None, name: str, old: Any, value: Any) -> None:
        """Records that the template sets an attribute of a namespace from the value `old` to `value`.

        Raises:
            AgentkitError: An iteration sets the attribute to a value of a type that cannot be recorded, such as a
                list.
        """
        if self._inner_loops and type(old) is type(value) and type(value) in _PLAIN and old == value:
            self.read_attribute(number, name, old)
        else:
            self._changes += 1
        if number is None:
            return
        if self._is_in_loop and not isinstance(value, (*_PLAIN, dict, MessageView)):
            raise AgentkitError(f"the attribute {name!r} has a value that cannot be recorded")
        self.trace.writes[number, name] = value

    def compare_attribute(self, namespace: Any, name: str, operator: str, other: Any) -> bool:
        """Compares an attribute of a namespace with a value.

        For two integers, the trace has a range of attribute values for which the result is the same, and not the
        value of the attribute.
        """
        value = _list_attributes(namespace).get(name)
        if type(value) is not int or type(other) is not int:
            return COMPARISONS[operator](getattr(namespace, name), other)
        if (number := _get_number(namespace)) is not None:
            self.trace.add_condition((number, name), find_range(value, other))
        return COMPARISONS[operator](value, other)

    # -- earlier traces ----------------------------------------------------------------------------------------

    def are_true(self, length: ValueRange, conditions: Mapping[Attribute, Any]) -> bool:
        """Returns True if the number of messages and the attributes satisfy all conditions. See `Trace`."""
        if not length.low <= self.length <= length.high:
            return False
        for (number, name), condition in conditions.items():
            if number >= len(self.namespaces):
                return False
            value = _list_attributes(self.namespaces[number]).get(name, _MISSING)
            if type(condition) is not ValueRange:
                is_true = self.as_comparable(value) == condition
            else:
                is_true = type(value) is int and condition.low <= value <= condition.high
            if not is_true:
                return False
        return True

    def set_attributes(self, writes: Mapping[Attribute, Any]) -> None:
        """Sets the attributes that a part or iterations set in an earlier rendering."""
        for (number, name), value in writes.items():
            _list_attributes(self.namespaces[number])[name] = value

    def as_comparable(self, value: Any) -> Any:
        """Returns an object that stands for a value when the recorder compares values of two renderings.

        Two such objects are equal only if templates cannot distinguish the values.
        """
        if type(value) in _PLAIN:
            return type(value), value
        if type(value) is MessageView:
            return MessageView, value.first
        if type(value) is get_recorded_namespace():
            number = _get_number(value)
            return _Identity(value) if number is None else (get_recorded_namespace(), number)
        undefined, macro = _get_types()
        if type(value) is undefined:
            return undefined, value._undefined_name
        return (macro, value._func.__code__) if type(value) is macro else _Identity(value)


current_recorder: Final[ContextVar[TraceRecorder]] = ContextVar("agentkit_trace_recorder")
"""Recorder of the current rendering."""


@cache
def _get_types() -> tuple[Any, Any]:
    from jinja2 import Undefined
    from jinja2.runtime import Macro

    return Undefined, Macro


_get: Final = object.__getattribute__


def _list_attributes(namespace: Namespace) -> dict[str, Any]:
    return cast("dict[str, Any]", _get(namespace, "_Namespace__attrs"))


def _get_number(namespace: Namespace) -> int | None:
    return cast("int | None", _get(namespace, "_number"))


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
