"""Units: the smallest parts of a conversation that a cut drops, with their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NewType, cast

import anyio
import anyio.lowlevel

from agentkit.ledger.provenance import starts_with
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.repair.unmatched_results import UNMATCHED_MARK
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import LocalTokenCounter
from agentkit.tokens.estimate import estimate_text

__all__ = [
    "EditCount",
    "MessageNumber",
    "SUMMARY_MARK",
    "TokenWeight",
    "UnitNumber",
    "Units",
    "Weigher",
    "calls_any",
]

UnitNumber = NewType("UnitNumber", int)
"""Position of a unit in its conversation, from 0."""

MessageNumber = NewType("MessageNumber", int)
"""Position of a message in the repaired conversation, from 0."""

TokenWeight = NewType("TokenWeight", int)
"""Tokens by the local counter."""

EditCount = NewType("EditCount", int)
"""Number of edits, counted from the start of a cut plan. Each cut is such a number."""

SUMMARY_MARK = "agentkit_summary"
"""Metadata key of the messages that `Summarize` wrote. The value is a digest of the replaced messages."""

# at most this many messages are weighed without letting other tasks run
_FEW_MESSAGES, _FEW_CHARACTERS = 16, 50_000
_MESSAGES_PER_TURN = 200  # messages that are weighed before other tasks may run


@dataclass(slots=True)
class Units:
    """A repaired conversation as units: single messages, and exchanges with all their results.

    A system message after the system prompt belongs to the unit before it.

    Attributes:
        msgs: All messages of the conversation.
        starts: First message of each unit. Unit `n` is `msgs[starts[n]:starts[n + 1]]`.
        sums: Running weights: `sums[n]` is the weight of all units before unit `n`.
        pinned: Units with a pinned message, or with a call of a tool in `Budget.never_cut`.
        system: Number of units in the system prompt, which comes first.
        newest_visible: Newest unit that the viewer sees. None if the viewer sees the newest unit of all.
        known_too_large: Cuts that did not fit, by the counter that measured them. A value has the conditions of
            the measurement, the length of the conversation, and the cut.

    """

    msgs: list[Msg] = field(default_factory=list[Msg])
    starts: list[MessageNumber] = field(default_factory=list[MessageNumber])
    sums: list[TokenWeight] = field(default_factory=lambda: [TokenWeight(0)])
    pinned: list[UnitNumber] = field(default_factory=list[UnitNumber])
    system: int = 0
    newest_visible: UnitNumber | None = None
    known_too_large: dict[str, tuple[object, int, EditCount]] = field(
        default_factory=dict[str, "tuple[object, int, EditCount]"], repr=False, compare=False
    )

    __repr__ = bounded_repr

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def numbers(self) -> Sequence[UnitNumber]:
        """Numbers of all units, in order."""
        return cast("Sequence[UnitNumber]", range(len(self.starts)))

    def copy(self) -> Units:
        """Returns equal units with separate lists. `newest_visible` is None in the copy."""
        lists = (self.msgs.copy(), self.starts.copy(), self.sums.copy(), self.pinned.copy())
        return Units(*lists, self.system, None, self.known_too_large)

    def span(self, number: int) -> tuple[MessageNumber, MessageNumber]:
        """Returns the first message of a unit, and the message after its last one."""
        is_last = number + 1 == len(self.starts)
        return self.starts[number], MessageNumber(len(self.msgs)) if is_last else self.starts[number + 1]

    def unit(self, number: int) -> list[Msg]:
        """Returns the messages of a unit."""
        start, stop = self.span(number)
        return self.msgs[start:stop]

    def weight(self, number: int) -> TokenWeight:
        """Returns the weight of a unit."""
        return TokenWeight(self.sums[number + 1] - self.sums[number])

    def start(self, number: int) -> TokenWeight:
        """Returns the weight of the history before a unit. The system prompt does not count."""
        return TokenWeight(self.sums[number] - self.sums[self.system])

    def end(self, number: int) -> TokenWeight:
        """Returns the weight of the history up to and including a unit. The cut grid lies on this scale."""
        return TokenWeight(self.sums[number + 1] - self.sums[self.system])

    def protected(self, keep_task: bool = False) -> set[UnitNumber]:
        """Returns the units that every cut keeps.

        Args:
            keep_task: True also protects the unit of the first user message.

        Returns:
            The units of the system prompt, the pinned units, the newest unit, and the newest visible unit.

        """
        numbers = self.numbers
        protected = {*numbers[: self.system], *self.pinned, *numbers[-1:]}
        if self.newest_visible is not None:
            protected.add(self.newest_visible)
        if keep_task and (task := self.task) is not None:
            protected.add(task)
        return protected

    @property
    def summaries(self) -> list[UnitNumber]:
        """Units that are summaries written by `Summarize`."""
        return [
            number
            for number in self.pinned
            if len(unit := self.unit(number)) == 1 and SUMMARY_MARK in (unit[0].metadata or {})
        ]

    @property
    def task(self) -> UnitNumber | None:
        """Unit of the first user message. None if there is no user message."""
        return next(
            (
                number
                for number, start in zip(self.numbers, self.starts, strict=True)
                if self.msgs[start].role == "user"
                and not self.msgs[start].features & Feature.TOOL
                and UNMATCHED_MARK not in (self.msgs[start].metadata or {})
            ),
            None,
        )

    def extend(self, msgs: Sequence[Msg], weigh: Callable[[Msg], int], never_cut: frozenset[str]) -> None:
        """Appends messages to the conversation.

        Args:
            msgs: New messages, repaired together with the previous ones.
            weigh: Function that returns the weight of a message, in tokens.
            never_cut: Names of tools whose exchanges become pinned units.

        """
        starts, sums = cast("list[int]", self.starts), cast("list[int]", self.sums)
        total = sums[-1]
        for index, msg in enumerate(msgs, len(self.msgs)):
            total += weigh(msg)
            # A late system message joins the unit before it. A cut could otherwise move it to the system prompt.
            is_late = msg.features & Feature.SYSTEM and self.system < len(starts)
            if starts and (is_late or msg.features & Feature.RESULT):
                sums[-1] = total
            else:
                if msg.features & Feature.SYSTEM:
                    self.system += 1
                starts.append(index)
                sums.append(total)
            if msg.pinned or (never_cut and calls_any(msg, never_cut)):
                self._pin(UnitNumber(len(starts) - 1))
        self.msgs.extend(msgs)

    def _pin(self, number: UnitNumber) -> None:
        if not self.pinned or self.pinned[-1] != number:
            self.pinned.append(number)


def calls_any(msg: Msg, tools: frozenset[str]) -> bool:
    """Returns True if a message calls at least one of the tools."""
    return bool(msg.features & Feature.CALL) and any(block.name in tools for block in msg.tool_uses)


class Weigher:
    """Incremental weigher of conversations.

    The weigher remembers the units of the last conversation. A longer version of that conversation costs only the
    weights of its new messages. Units that were returned never change.
    """

    def __init__(self, counter: LocalTokenCounter, never_cut: frozenset[str] = frozenset()) -> None:
        self._counter = counter
        self._never_cut = never_cut
        self._last: dict[bool, Units] = {}  # units with thinking counted (True) and without (False)

    def units(self, msgs: list[Msg], thinking: bool = False) -> Units:
        """Returns the units of a conversation.

        Args:
            msgs: Repaired messages. Their identity decides if they continue the last conversation. The caller must
                not change the list later.
            thinking: True if thinking blocks count, because the target takes them back.

        """
        last = self._last.get(thinking)
        if last is None or not starts_with(msgs, last.msgs):
            last = Units()
        if len(last.msgs) < len(msgs):
            last = last.copy()
            last.extend(msgs[len(last.msgs) :], self.get_weigh(thinking), self._never_cut)
        last.msgs = msgs  # the repair keeps the same list; equal messages may be new objects
        self._last[thinking] = last
        return last

    async def weigh_units(self, msgs: list[Msg], thinking: bool) -> Units:
        """Returns the same as `units`. Other tasks run while many new messages are weighed."""
        last = self._last.get(thinking)
        new = msgs[len(last.msgs) :] if last and starts_with(msgs, last.msgs) else msgs
        if len(new) > _FEW_MESSAGES or sum(len(msg.text) for msg in new) > _FEW_CHARACTERS:
            await self._weigh_ahead(new, self.get_weigh(thinking))
        return self.units(msgs, thinking)

    async def _weigh_ahead(self, new: list[Msg], weigh: Callable[[Msg], int]) -> None:
        """Weighs messages, which cache their weights: in a thread if the counter is slow, else in portions."""
        if self._counter.slow:
            await anyio.to_thread.run_sync(lambda: [*map(weigh, new)])
            return
        for start in range(0, len(new), _MESSAGES_PER_TURN):
            for msg in new[start : start + _MESSAGES_PER_TURN]:
                weigh(msg)
            await anyio.lowlevel.checkpoint()

    def get_weigh(self, thinking: bool) -> Callable[[Msg], int]:
        """Returns the function that weighs a message, with or without its thinking blocks."""
        return self._weigh_with_thinking if thinking else self._counter.weight

    def _weigh_with_thinking(self, msg: Msg) -> int:
        weight = self._counter.weight(msg)
        return weight + -(-estimate_text(msg.thinking) // 100) if msg.features & Feature.THINKING else weight
