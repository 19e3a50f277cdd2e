"""`LoopRecorder`: records the loops over messages, so that renderings of fewer messages can skip iterations.

A run of a template consists of parts and loops. A part is the code before, between or after the loops. The
recorder stores a trace of each part and of each iteration: the values that the code reads and sets, and the text
that the code prints. A later rendering reuses the run: the parts and the iterations that would do the same are
skipped. For the other iterations, the recorder calls the body of the loop.

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
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from agentkit.jinja_environments.chat_variables import ChatVariables, build_values
from agentkit.jinja_environments.limits import Counters, check_size, end_rendering, start_rendering
from agentkit.jinja_environments.loop_records import LoopRecord, LoopText, Piece, Trace
from agentkit.jinja_environments.namespaces import RecordedNamespace, current_recorder
from agentkit.jinja_environments.recorded_messages import LoopPosition, MessageView, RecordedItems
from agentkit.jinja_environments.recorded_template import compile_recorded
from agentkit.jinja_environments.trace_recorder import TraceRecorder

__all__ = ["LoopRecorder"]


class _Loop(NamedTuple):
    """Loop over messages in a run of the template.

    Attributes:
        items: Items of the loop.
        loop_index: Index of the loop among the recorded loops of the template.
        body: Function that runs the body of the loop, and returns the text.
        values: Values of the variables that the body can read and whose values can differ between runs.
        reuse_key: Type of the items, index of the first item, and `values` as `as_comparable` returns them. If two
            runs have equal keys, they can share iterations.
    """

    items: RecordedItems
    loop_index: int
    body: Callable[..., str]
    values: tuple[Any, ...]
    reuse_key: tuple[Any, ...]


class _Run(NamedTuple):
    """Run of the template.

    Attributes:
        length: Number of messages.
        parts: Traces of the parts, and the loops between the parts, in the order of the run.
        namespaces: Namespaces that the parts created.
    """

    length: int
    parts: list[Trace | _Loop]
    namespaces: list[RecordedNamespace]


class LoopRecorder(TraceRecorder):
    """Recorder of the renderings of one conversation.

    Args:
        source: Text of the template.
        chat: Variables of the template, with all messages.

    Raises:
        AgentkitError: The template has a part whose state the recorder cannot store, such as a `{% block %}`.
    """

    def __init__(self, source: str, chat: ChatVariables) -> None:
        super().__init__(build_values(chat)["messages"])
        self._template = compile_recorded(source)
        self._chat = chat
        self._records = defaultdict[int, list[LoopRecord]](list)
        self._runs: dict[bool, _Run] = {}
        self._parts: list[Trace | _Loop] = []
        self._pieces: list[Piece] = []
        self._texts: list[str] = []
        self._counters: Counters | None = None

    def render(self, length: int, add_generation_prompt: bool) -> list[Piece]:
        """Returns the pieces of the text of the first `length` messages.

        Raises an error of any type if the template refuses the messages, or uses the messages in a way that cannot
        be recorded.
        """
        pieces = self._reuse_run(length, add_generation_prompt)
        if pieces is None:
            pieces = self._run_template(length, add_generation_prompt)
        check_size(sum(map(len, pieces)))
        return pieces

    def _run_template(self, length: int, add_generation_prompt: bool) -> list[Piece]:
        """Runs the template. For each value of `add_generation_prompt`, keeps the run with the most messages."""
        self.prepare_rendering(length, [])
        self._parts, self._pieces, self._texts = [self.start_part()], [], []
        self._counters = None
        self._call(self._run_parts, add_generation_prompt)
        self._end_part()
        stored = self._runs.get(add_generation_prompt)
        if stored is None or stored.length < length:
            self._runs[add_generation_prompt] = _Run(length, self._parts, self.namespaces)
        return self._pieces

    def _run_parts(self, add_generation_prompt: bool) -> None:
        values = build_values(self._chat._replace(messages=(), add_generation_prompt=add_generation_prompt))
        values.update(messages=MessageView(self), namespace=RecordedNamespace)
        size = 0
        for text in self._template.root_render_func(self._template.new_context(values)):
            size += len(text)
            check_size(size)
            self._texts.append(text)

    def _end_part(self) -> None:
        self.trace.text = "".join(self._texts)
        self._pieces.append(self.trace.text)
        self._texts = []

    def _call(self, function: Callable[..., None], *values: Any) -> None:
        """Calls a function that runs code of the template. All calls of a rendering share the same counters."""
        self._counters = self._counters or Counters(self.length)
        limits, token = start_rendering(self._counters), current_recorder.set(self)
        try:
            function(*values)
        finally:
            current_recorder.reset(token)
            end_rendering(limits)

    def _reuse_run(self, length: int, add_generation_prompt: bool) -> list[Piece] | None:
        """Returns the pieces of the text of the first `length` messages, from an earlier run.

        Returns None if there is no such run, or if a part would now read other values.
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
            if not self.are_satisfied(part.message_counts, part.conditions):
                return None
            self.set_attributes(part.writes)
            pieces.append(part.text)
        return pieces

    def add_loop(self, items: RecordedItems, loop_index: int, body: Any, values: tuple[Any, ...]) -> None:
        """Runs a loop over messages. See `_Loop` for the arguments."""
        reuse_key = (type(items), items.start, *map(self.as_comparable, values))
        loop = _Loop(items, loop_index, body, values, reuse_key)
        self._end_part()
        self._pieces.append(self._run_loop(loop))
        self._parts += [loop, self.start_part()]

    def _run_loop(self, loop: _Loop) -> LoopText:
        start = loop.items.start
        needed = self.length - start if self.length > start else 0
        record, count = self._choose_record(loop, needed)
        self.set_attributes(record.writes[count])
        if count == needed:
            return LoopText(record, start, count)
        record = record.copy_start(count)
        self._call(self._run_iterations, loop, range(count, needed), record)
        records = self._records[loop.loop_index]
        records.append(record)
        # Keep the first record, which has the most messages, and the last two records.
        # There are two records because `add_generation_prompt` has two values.
        del records[1:-2]
        return LoopText(record, start, needed)

    def _choose_record(self, loop: _Loop, needed: int) -> tuple[LoopRecord, int]:
        """Returns the record with the most iterations that the rendering can skip, and their number.

        Returns an empty record and 0 if the rendering can skip no iteration.
        """
        best, most = None, 0
        for record in self._records[loop.loop_index]:
            if record.reuse_key == loop.reuse_key:
                count = self._count_skippable(record, min(needed, len(record.ends) - 1))
                if count >= most:
                    best, most = record, count
                if count == needed:
                    break
        return best or LoopRecord(loop.reuse_key), most

    def _count_skippable(self, record: LoopRecord, count: int) -> int:
        """Returns how many of the first `count` iterations of a record the rendering can skip."""
        for end in (count, count - 1, count - 2):  # often, only the last iteration is different
            if end <= 0 or self.are_satisfied(record.message_counts[end], record.conditions[end]):
                return max(end, 0)

        def is_different(end: int) -> bool:
            return not self.are_satisfied(record.message_counts[end], record.conditions[end])

        return bisect_left(range(count), True, key=is_different) - 1

    def _run_iterations(self, loop: _Loop, indexes: Iterable[int], record: LoopRecord) -> None:
        """Runs iterations, and adds them to `record`."""
        texts: list[str] = []
        for index in indexes:
            trace = self.start_iteration(record.writes[-1])
            texts.append(loop.body(loop.items.get_item(index), LoopPosition(loop.items, index), *loop.values))
            record.add(trace, len(texts[-1]))
        record.text += "".join(texts)
