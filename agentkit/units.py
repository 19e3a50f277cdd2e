"""Units: what a cut may drop, with their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import is_

from agentkit.messages import Msg, Trait
from agentkit.tokens import LocalTokenCounter

__all__ = ["Units", "Weigher"]


@dataclass(slots=True)
class Units:
    """A conversation in normal form as units: single messages, and exchanges whole; a late system message
    belongs to the unit before it.

    Unit `u` is `msgs[starts[u]:starts[u + 1]]` (the last one to the end). `sums[u]` is the weight of all
    units before `u`, in tokens by the local counter. `pinned` are the units that hold a pinned message, or
    a call of a tool that is never to be cut.
    """

    msgs: list[Msg] = field(default_factory=list[Msg])
    starts: list[int] = field(default_factory=list[int])
    sums: list[int] = field(default_factory=lambda: [0])
    pinned: list[int] = field(default_factory=list[int])
    system: int = 0

    def __len__(self) -> int:
        return len(self.starts)

    def copy(self) -> Units:
        """The same units in lists of their own."""
        return Units(self.msgs.copy(), self.starts.copy(), self.sums.copy(), self.pinned.copy(), self.system)

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

    def end(self, number: int) -> int:
        """Where one unit ends on the scale that a cut's grid lies on: tokens from the start of the history."""
        return self.sums[number + 1] - self.sums[self.system]

    def protected(self, keep_task: bool = False) -> set[int]:
        """The units that every cut keeps: system prompt, pins, the newest, and the task if asked."""
        kept = {*range(self.system), *self.pinned, *range(len(self))[-1:]}
        if keep_task and (task := self.task) is not None:
            kept.add(task)
        return kept

    @property
    def task(self) -> int | None:
        """The unit of the first user message."""
        spoken = (
            number
            for number, start in enumerate(self.starts)
            if self.msgs[start].role == "user" and not self.msgs[start].traits & Trait.TOOL
        )
        return next(spoken, None)

    def extend(self, msgs: Sequence[Msg], weigh: Callable[[Msg], int], never_cut: frozenset[str]) -> None:
        """Append messages and their weights."""
        starts, sums, total = self.starts, self.sums, self.sums[-1]
        for at, msg in enumerate(msgs, len(self.msgs)):
            total += weigh(msg)
            # A late system message goes with what stands before it: else a cut would make it a system prompt.
            late = msg.traits & Trait.SYSTEM and self.system < len(starts)
            if starts and (late or msg.traits & Trait.RESULT):
                sums[-1] = total
            else:
                if msg.traits & Trait.SYSTEM:
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
    return bool(msg.traits & Trait.CALL) and any(block.name in tools for block in msg.tool_uses)


class Weigher:
    """Units of the last conversation, kept so that the next call weighs only what was added to it.

    Units that were handed out never change: a conversation that goes on gets lists of its own.
    """

    def __init__(self, counter: LocalTokenCounter, never_cut: frozenset[str] = frozenset()) -> None:
        self._weigh = counter.weight
        self._never_cut = never_cut
        self._last = Units()

    def units(self, msgs: list[Msg]) -> Units:
        """The conversation's units. Recognised by the identity of its messages; never changes what comes out."""
        known = len(self._last.msgs)
        if known > len(msgs) or not all(map(is_, self._last.msgs, msgs)):
            self._last = Units()
            known = 0
        if known < len(msgs):
            self._last = self._last.copy()
            self._last.extend(msgs[known:], self._weigh, self._never_cut)
        return self._last
