"""Units: what a cut may drop, with their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, starts_with
from agentkit.repair.unmatched_results import UNMATCHED_MARK
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import LocalTokenCounter
from agentkit.tokens.estimate import estimate_text

__all__ = ["Units", "Weigher"]

SUMMARY_MARK = "agentkit_summary"
"""The key under which the metadata of a summary of ours say what it stands for."""

_FEW, _SHORT = 16, 50_000  # messages and characters that are weighed at once
_AT_ONCE = 200  # so many messages are weighed before other tasks get their turn


@dataclass(slots=True)
class Units:
    """A conversation in normal form as units: single messages, and exchanges whole; a late system message
    belongs to the unit before it.

    Unit `u` is `msgs[starts[u]:starts[u + 1]]` (the last one to the end). `sums[u]` is the weight of all
    units before `u`, in tokens by the local counter. `pinned` are the units that hold a pinned message, or
    a call of a tool that is never to be cut. `known_too_large` maps a counter's key to its terms,
    the length of the conversation, and a cut that did not fit.
    """

    msgs: list[Msg] = field(default_factory=list[Msg])
    starts: list[int] = field(default_factory=list[int])
    sums: list[int] = field(default_factory=lambda: [0])
    pinned: list[int] = field(default_factory=list[int])
    system: int = 0
    newest_visible: int | None = None  # the newest unit that a viewer sees, if that is not the newest of all
    known_too_large: dict[str, tuple[object, int, int]] = field(
        default_factory=dict[str, "tuple[object, int, int]"], repr=False, compare=False
    )

    __repr__ = bounded_repr

    def __len__(self) -> int:
        return len(self.starts)

    def copy(self) -> Units:
        """The same units in lists of their own."""
        lists = (self.msgs.copy(), self.starts.copy(), self.sums.copy(), self.pinned.copy())
        return Units(*lists, self.system, None, self.known_too_large)

    def span(self, number: int) -> tuple[int, int]:
        """Where one unit's messages begin and end."""
        stop = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.msgs)
        return self.starts[number], stop

    def unit(self, number: int) -> list[Msg]:
        """The messages of one unit."""
        start, stop = self.span(number)
        return self.msgs[start:stop]

    def weight(self, number: int) -> int:
        """The weight of one unit."""
        return self.sums[number + 1] - self.sums[number]

    def start(self, number: int) -> int:
        """Where one unit begins on the same scale as `end`."""
        return self.sums[number] - self.sums[self.system]

    def end(self, number: int) -> int:
        """Where one unit ends on the scale that a cut's grid lies on: tokens from the start of the history."""
        return self.sums[number + 1] - self.sums[self.system]

    def protected(self, keep_task: bool = False) -> set[int]:
        """The units that every cut keeps: system prompt, pins, the newest, and the task if asked."""
        kept = {*range(self.system), *self.pinned, *range(len(self))[-1:]}
        if self.newest_visible is not None:
            kept.add(self.newest_visible)
        if keep_task and (task := self.task) is not None:
            kept.add(task)
        return kept

    @property
    def summaries(self) -> list[int]:
        """The units that are summaries of ours (see `Summarise`)."""
        return [
            number
            for number in self.pinned
            if len(unit := self.unit(number)) == 1 and SUMMARY_MARK in (unit[0].metadata or {})
        ]

    @property
    def task(self) -> int | None:
        """The unit of the first user message."""
        spoken = (
            number
            for number, start in enumerate(self.starts)
            if self.msgs[start].role == "user"
            and not self.msgs[start].features & Feature.TOOL
            and UNMATCHED_MARK not in (self.msgs[start].metadata or {})
        )
        return next(spoken, None)

    def extend(self, msgs: Sequence[Msg], weigh: Callable[[Msg], int], never_cut: frozenset[str]) -> None:
        """Append messages and their weights."""
        starts, sums, total = self.starts, self.sums, self.sums[-1]
        for at, msg in enumerate(msgs, len(self.msgs)):
            total += weigh(msg)
            # A late system message goes with what stands before it: else a cut would make it a system prompt.
            late = msg.features & Feature.SYSTEM and self.system < len(starts)
            if starts and (late or msg.features & Feature.RESULT):
                sums[-1] = total
            else:
                if msg.features & Feature.SYSTEM:
                    self.system += 1
                starts.append(at)
                sums.append(total)
            if msg.pinned or (never_cut and calls_any(msg, never_cut)):
                self._pin(len(starts) - 1)
        self.msgs.extend(msgs)

    def _pin(self, number: int) -> None:
        if not self.pinned or self.pinned[-1] != number:
            self.pinned.append(number)


def calls_any(msg: Msg, tools: frozenset[str]) -> bool:
    """Whether a message calls any of the tools."""
    return bool(msg.features & Feature.CALL) and any(block.name in tools for block in msg.tool_uses)


class Weigher:
    """Units of the last conversation, kept so that the next call weighs only what was added to it.

    Units that were handed out never change: a conversation that goes on gets lists of its own.
    """

    def __init__(self, counter: LocalTokenCounter, never_cut: frozenset[str] = frozenset()) -> None:
        self._counter = counter
        self._never_cut = never_cut
        self._last = {True: Units(), False: Units()}

    def units(self, msgs: list[Msg], thinking: bool = False) -> Units:
        """The conversation's units, thinking weighed too where a target takes it back.

        It is recognised by its messages; never changes what comes out.
        """
        last = self._last[thinking]
        if not starts_with(msgs, last.msgs):
            last = Units()
        if len(last.msgs) < len(msgs):
            last = last.copy()
            last.extend(msgs[len(last.msgs) :], self.weighing(thinking), self._never_cut)
        self._last[thinking] = last
        return last

    async def weighed(self, msgs: list[Msg], thinking: bool) -> Units:
        """The same, letting other tasks run while much that is new is weighed."""
        known = self._last[thinking].msgs
        new = msgs[len(known) :] if starts_with(msgs, known) else msgs
        if len(new) > _FEW or sum(len(msg.text) for msg in new) > _SHORT:
            await self._weigh_ahead(new, self.weighing(thinking))
        return self.units(msgs, thinking)

    async def _weigh_ahead(self, new: list[Msg], weigh: Callable[[Msg], int]) -> None:
        """Weigh messages, which keep their weight: in a thread if that is slow, else a few at a time."""
        if self._counter.slow:
            await anyio.to_thread.run_sync(lambda: [*map(weigh, new)])
            return
        for start in range(0, len(new), _AT_ONCE):
            for msg in new[start : start + _AT_ONCE]:
                weigh(msg)
            await anyio.lowlevel.checkpoint()

    def weighing(self, thinking: bool) -> Callable[[Msg], int]:
        """What weighs one message."""
        return self._with_thinking if thinking else self._counter.weight

    def _with_thinking(self, msg: Msg) -> int:
        weight = self._counter.weight(msg)
        return weight + -(-estimate_text(msg.thinking) // 100) if msg.features & Feature.THINKING else weight
