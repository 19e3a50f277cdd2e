"""`LoopRecorder`: records the loops over messages, so that renderings of fewer messages can skip iterations.

A run of a template consists of parts and loops. A part is the code before, between or after the loops. The
recorder stores a trace of each part and of each iteration: the values that it reads and sets, and the text that it
prints. A later rendering reuses the run: the parts and the iterations that would do the same are skipped. The body
of a loop is called for the other iterations.

Stored traces
    This template has two parts, which print nothing, and a loop:

        {% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endfor %}

    For two messages, the recorder stores:

    | trace | condition | sets | text |
    |---|---|---|---|
    | part before the loop | | `n` to 0 | |
    | first iteration | `n` is 0 | `n` to 1 | `1` |
    | second iteration | | `n` to 2 | `2` |
    | part after the loop | | | |

    The second iteration has no condition, because it reads the value that the first iteration set. The rendering
    of one message sets `n` to 0, copies the text `1` and sets `n` to 1.

Inner loops
    An iteration can have a loop over all later messages, for example to search for the next reply. The iteration
    then depends on the number of messages only if the number changes what the inner loop does. If the last items
    of the inner loop print nothing and set nothing, the iteration is the same without these items.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from agentkit.jinja_environments.limits import Counters, check_size, end_rendering, start_rendering
from agentkit.jinja_environments.loop_records import LoopRecord, LoopText, Trace
from agentkit.jinja_environments.message_views import IndexView, LoopPosition, MessageView
from agentkit.jinja_environments.trace_recorder import TraceRecorder, current_recorder

if TYPE_CHECKING:
    from jinja2.utils import Namespace

__all__ = ["LoopRecorder", "Piece"]

_MAX_UNRECORDED: Final = 3  # number of iterations that run again without a new record

Piece: TypeAlias = str | LoopText
"""Piece of a rendered text."""


class _Loop(NamedTuple):
    """Loop over messages in a run of the template.

    Attributes:
        items: Items of the loop.
        number: Index of the loop among the recorded loops of the template.
        body: Function that runs the body of the loop, and returns the text.
        values: Values of the variables that the body can read and whose values can differ between runs.
        comparable: `values` as `as_comparable` returns them, with the type and the first index of the items.
    """

    items: MessageView | IndexView
    number: int
    body: Callable[..., str]
    values: tuple[Any, ...]
    comparable: tuple[Any, ...]


class _Run(NamedTuple):
    """Run of the template.

    Attributes:
        length: Number of messages.
        parts: Traces of the parts, and loops, in order.
        namespaces: Namespaces that the parts created.
    """

    length: int
    parts: list[Trace | _Loop]
    namespaces: list[Namespace]


class LoopRecorder(TraceRecorder):
    """Recorder of the renderings of one conversation."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(messages)
        self._records = defaultdict[int, list[LoopRecord]](list)
        self._runs: dict[bool, _Run] = {}
        self._parts: list[Trace | _Loop] = []
        self._pieces: list[Piece] = []
        self._texts: list[str] = []
        self._counters: Counters | None = None

    def run_template(
        self, length: int, add_generation_prompt: bool, run: Callable[[], Iterable[str]]
    ) -> list[Piece]:
        """Runs the template for the first `length` messages, and returns the pieces of the text.

        For each value of `add_generation_prompt`, the recorder keeps only the run with the most messages.

        Args:
            length: Number of messages.
            add_generation_prompt: Value of the variable of the template.
            run: Function that runs the template, and yields the texts outside of loops.
        """
        self.prepare_rendering(length, [])
        self._parts, self._pieces, self._texts = [self.start_part()], [], []
        self._counters = None
        self._call(self._add_texts, run)
        self._end_part()
        stored = self._runs.get(add_generation_prompt)
        if stored is None or stored.length < length:
            self._runs[add_generation_prompt] = _Run(length, self._parts, self.namespaces)
        return self._pieces

    def _add_texts(self, run: Callable[[], Iterable[str]]) -> None:
        size = 0
        for text in run():
            size += len(text)
            check_size(size)
            self._texts.append(text)

    def _end_part(self) -> None:
        self.trace.text = "".join(self._texts)
        self._pieces.append(self.trace.text)
        self._texts = []

    def _call(self, function: Callable[..., None], *values: Any) -> None:
        """Calls a function that runs code of the template. All calls of a rendering have common counters."""
        self._counters = self._counters or Counters(self.length)
        limits, token = start_rendering(self._counters), current_recorder.set(self)
        try:
            function(*values)
        finally:
            current_recorder.reset(token)
            end_rendering(limits)

    def reuse_run(self, length: int, add_generation_prompt: bool) -> list[Piece] | None:
        """Returns the pieces of the text of the first `length` messages, from an earlier run.

        Returns None if there is no such run, or if a part would do something else.
        """
        run = self._runs.get(add_generation_prompt)
        if run is None:
            return None
        self.prepare_rendering(length, run.namespaces)
        self._counters = None
        pieces: list[Piece] = []
        for part in run.parts:
            if isinstance(part, _Loop):
                pieces.append(self._run_loop(part))
                continue
            if not self.are_true(part.length, part.conditions):
                return None
            self.set_attributes(part.writes)
            pieces.append(part.text)
        return pieces

    def add_loop(self, items: MessageView | IndexView, number: int, body: Any, values: tuple[Any, ...]) -> None:
        """Runs a loop over messages. See `_Loop` for the arguments."""
        comparable = (type(items), items.first, *map(self.as_comparable, values))
        loop = _Loop(items, number, body, values, comparable)
        self._end_part()
        self._pieces.append(self._run_loop(loop))
        self._parts += [loop, self.start_part()]

    def _run_loop(self, loop: _Loop) -> LoopText:
        first = loop.items.first
        needed = self.length - first if self.length > first else 0
        record, count = self._choose_record(loop, needed)
        self.set_attributes(record.writes[count])
        if count == needed:
            return LoopText(record, first, count)
        indexes, texts = range(count, needed), list[str]()
        if needed - count <= _MAX_UNRECORDED and record.text:
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
        best, most = None, 0
        for record in self._records[loop.number]:
            if record.comparable == loop.comparable:
                count = self._count_skippable(record, min(needed, len(record.ends) - 1))
                if count >= most:
                    best, most = record, count
                if count == needed:
                    break
        return best or LoopRecord(loop.comparable), most

    def _count_skippable(self, record: LoopRecord, count: int) -> int:
        """Returns the largest number of iterations, at most `count`, that can be skipped."""
        for end in (count, count - 1, count - 2):  # often, only the last iteration is different
            if end <= 0 or self.are_true(record.lengths[end], record.conditions[end]):
                return max(end, 0)

        def is_different(end: int) -> bool:
            return not self.are_true(record.lengths[end], record.conditions[end])

        return bisect_left(range(count), True, key=is_different) - 1

    def _run_iterations(
        self, loop: _Loop, indexes: Iterable[int], texts: list[str], record: LoopRecord | None
    ) -> None:
        """Runs iterations, and adds their texts to `texts` and the iterations to `record`."""
        items, body, values = loop.items, loop.body, loop.values
        for index in indexes:
            trace = self.start_iteration(record.writes[-1] if record else {})
            texts.append(body(items.get_item(index), LoopPosition(items, index), *values))
            if record:
                record.add(trace, len(texts[-1]))
