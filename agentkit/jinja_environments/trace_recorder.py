"""`TraceRecorder`: records the values that a part of a template, or an iteration of a loop, reads and sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from jinja2 import Undefined
from jinja2.runtime import Macro

from agentkit.errors import AgentkitError
from agentkit.jinja_environments.loop_records import Attribute, Trace, ValueRange, find_range
from agentkit.jinja_environments.namespaces import MISSING, RecordedNamespace, get_index, list_attributes
from agentkit.jinja_environments.recorded_messages import MessageView, RecordedItems

__all__ = ["COMPARISONS", "TraceRecorder"]

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": eq,
    "ne": ne,
    "gt": gt,
    "gteq": ge,
    "lt": lt,
    "lteq": le,
}
"""Maps jinja's name of each comparison operator that the recorder supports to the function of the operator."""

_SCALARS: Final[Any] = (str, int, float, bool, type(None))


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
        namespaces: Namespaces that the parts created.
        trace: Trace of the current part or iteration.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.messages = messages
        self.prepare_rendering(len(messages), [])
        self.start_part()

    def prepare_rendering(self, length: int, namespaces: list[RecordedNamespace]) -> None:
        """Prepares a rendering of the first `length` messages. Removes all attributes of the namespaces."""
        self.length, self.namespaces = length, namespaces
        for namespace in namespaces:
            list_attributes(namespace).clear()
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
        self.trace.limit_message_counts(ValueRange(index + 1, inf) if is_message else ValueRange(-inf, index))
        return is_message

    def read_length(self) -> int:
        """Returns the number of messages, and records this read."""
        self.trace.limit_message_counts(ValueRange(self.length, self.length))
        return self.length

    def iterate_items(self, items: RecordedItems) -> Iterator[Any]:
        """Yields the items of an inner loop.

        When the loop ends, adds a condition to the trace: the numbers of messages for which the loop prints and
        sets the same.
        """
        index = changed = 0
        self._inner_loops += 1
        while items.start + index < self.length:
            changes = self._changes
            yield items.get_item(index)
            index += 1
            if self._changes != changes:
                changed = index
        self._inner_loops -= 1
        low = items.start + changed if changed else -inf
        self.trace.limit_message_counts(ValueRange(low, max(self.length, items.start)))

    def count_change(self) -> None:
        """Counts that an inner loop printed a text."""
        self._changes += 1

    # -- attributes of namespaces ------------------------------------------------------------------------------

    def add_namespace(self, namespace: RecordedNamespace) -> int | None:
        """Adds a new namespace. Returns its index, or None if an iteration created the namespace."""
        if self._is_in_loop:
            return None
        index = len(self.namespaces)
        self.namespaces.append(namespace)
        self.trace.writes.update({(index, name): item for name, item in list_attributes(namespace).items()})
        return index

    def read_attribute(self, namespace_index: int | None, name: str, value: Any) -> None:
        """Records that the template reads an attribute of a namespace."""
        if namespace_index is not None:
            self.trace.add_condition((namespace_index, name), self.as_comparable(value))

    def write_attribute(self, namespace_index: int | None, name: str, old: Any, value: Any) -> None:
        """Records that the template sets an attribute of a namespace from the value `old` to `value`.

        Raises:
            AgentkitError: An iteration sets the attribute to a value of a type that cannot be recorded, such as a
                list.
        """
        if self._inner_loops and type(old) is type(value) and type(value) in _SCALARS and old == value:
            self.read_attribute(namespace_index, name, old)
        else:
            self._changes += 1
        if namespace_index is None:
            return
        if self._is_in_loop and not isinstance(value, (*_SCALARS, dict, MessageView)):
            raise AgentkitError(f"the attribute {name!r} has a value that cannot be recorded")
        self.trace.writes[namespace_index, name] = value

    def compare_attribute(self, namespace: RecordedNamespace, name: str, operator: str, other: Any) -> bool:
        """Compares an attribute of a namespace with a value.

        For two integers, the trace stores a range instead of the exact value of the attribute. The comparison has
        the same result for all values in the range.
        """
        value = list_attributes(namespace).get(name)
        if type(value) is not int or type(other) is not int:
            return COMPARISONS[operator](getattr(namespace, name), other)
        if (index := get_index(namespace)) is not None:
            self.trace.add_condition((index, name), find_range(value, other))
        return COMPARISONS[operator](value, other)

    # -- earlier traces ----------------------------------------------------------------------------------------

    def are_satisfied(self, message_counts: ValueRange, conditions: Mapping[Attribute, Any]) -> bool:
        """Returns True if the number of messages and the attributes satisfy all conditions. See `Trace`."""
        if not message_counts.low <= self.length <= message_counts.high:
            return False
        for (index, name), condition in conditions.items():
            if index >= len(self.namespaces):
                return False
            value = list_attributes(self.namespaces[index]).get(name, MISSING)
            if type(condition) is not ValueRange:
                is_true = self.as_comparable(value) == condition
            else:
                is_true = type(value) is int and condition.low <= value <= condition.high
            if not is_true:
                return False
        return True

    def set_attributes(self, writes: Mapping[Attribute, Any]) -> None:
        """Sets attributes of namespaces to the values that a part or a loop set in an earlier rendering."""
        for (index, name), value in writes.items():
            list_attributes(self.namespaces[index])[name] = value

    def as_comparable(self, value: Any) -> Any:
        """Returns an object that stands for a value when the recorder compares values of two renderings.

        Two such objects are equal only if templates cannot distinguish the values.
        """
        if type(value) in _SCALARS:
            return type(value), value
        if type(value) is MessageView:
            return MessageView, value.start
        if type(value) is RecordedNamespace:
            index = get_index(value)
            return _Identity(value) if index is None else (RecordedNamespace, index)
        if type(value) is Undefined:
            return Undefined, value._undefined_name  # pyright: ignore[reportPrivateUsage] - no public attribute
        if type(value) is Macro:
            return Macro, value._func.__code__  # pyright: ignore[reportPrivateUsage] - no public attribute
        return _Identity(value)
