"""Units: the smallest parts of a conversation that a cut can drop, with their estimated tokens (weights).

A unit is one message, or one assistant turn with tool calls and all their results. The messages of one example of
the task are one unit, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NewType, cast

import anyio
import anyio.lowlevel

from agentkit.ledger.provenance import starts_with
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import LocalTokenCounter
from agentkit.tokens.estimate import estimate_text

__all__ = [
    "EXAMPLE_MARK",
    "EditCount",
    "MessageNumber",
    "SUMMARY_MARK",
    "TokenWeight",
    "UnitNumber",
    "Units",
    "Weigher",
    "calls_any",
    "get_example",
]

UnitNumber = NewType("UnitNumber", int)
"""Index of a unit in its conversation. A unit is one message, or tool calls with their results."""

MessageNumber = NewType("MessageNumber", int)
"""Index of a message in a conversation in which each tool call has one result."""

TokenWeight = NewType("TokenWeight", int)
"""Number of tokens that a local counter estimates."""

EditCount = NewType("EditCount", int)
"""Number of edits that a cut applies. A cut applies the first n edits of a cut plan, so n identifies the cut."""

SUMMARY_MARK = "agentkit_summary"
"""Metadata key that marks the messages written by `Summarize`. The value is a digest of the replaced messages."""

EXAMPLE_MARK = "agentkit_example"
"""Metadata key that marks the messages of an example of the task. The value is the number of the example."""

# If the new messages exceed neither of these limits, the estimation of their tokens is fast.
# The estimation then runs without a pause for other async tasks.
_FEW_MESSAGES, _FEW_CHARACTERS = 16, 50_000
_MESSAGES_PER_TURN = 200  # number of messages to estimate before other async tasks may run


@dataclass(slots=True)
class Units:
    """Conversation divided into units, with the estimated tokens (weight) of each unit.

    A unit is one message, or one assistant turn with tool calls and all their results. A system message after the
    system prompt belongs to the unit before it. The messages of one example of the task are one unit.

    Attributes:
        msgs: All messages of the conversation. Each tool call has one result.
        starts: Index of the first message of each unit. Unit `n` is `msgs[starts[n]:starts[n + 1]]`.
        sums: Running totals of the weights. `sums[n]` is the weight of all units before unit `n`.
        pinned: Indexes of the units with a pinned message, or with a call of a tool in `Budget.never_cut`.
        examples: Indexes of the units with an example of the task (see `EXAMPLE_MARK`).
        system: Number of units in the system prompt, which comes first.
        newest_visible: Index of the newest unit that the viewer (the agent that the request is for) sees. None if
            the viewer sees all units or no unit.
        known_too_large: Maps a token counter to the largest cut after which a request was still too large. The key
            is `local` or `counter` (the budget's counter). The value is a tuple: the request options, the number
            of messages in the conversation, and the number of edits of the cut.
    """

    msgs: list[Msg] = field(default_factory=list[Msg])
    starts: list[MessageNumber] = field(default_factory=list[MessageNumber])
    sums: list[TokenWeight] = field(default_factory=lambda: [TokenWeight(0)])
    pinned: list[UnitNumber] = field(default_factory=list[UnitNumber])
    examples: list[UnitNumber] = field(default_factory=list[UnitNumber])
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
        """Indexes of all units, in order."""
        return cast("Sequence[UnitNumber]", range(len(self.starts)))

    def copy(self) -> Units:
        """Returns a copy. Messages that are added to the copy do not change the original.

        In the copy, `newest_visible` is None.
        """
        lists = (self.msgs.copy(), self.starts.copy(), self.sums.copy(), self.pinned.copy(), self.examples.copy())
        return Units(*lists, self.system, None, self.known_too_large)

    def span(self, number: int) -> tuple[MessageNumber, MessageNumber]:
        """Returns the index of a unit's first message, and the index after its last message."""
        is_last = number + 1 == len(self.starts)
        return self.starts[number], MessageNumber(len(self.msgs)) if is_last else self.starts[number + 1]

    def unit(self, number: int) -> list[Msg]:
        """Returns the messages of a unit."""
        start, stop = self.span(number)
        return self.msgs[start:stop]

    def weight(self, number: int) -> TokenWeight:
        """Returns the estimated number of tokens of a unit."""
        return TokenWeight(self.sums[number + 1] - self.sums[number])

    def start(self, number: int) -> TokenWeight:
        """Returns the estimated number of tokens between the end of the system prompt and the start of a unit."""
        return TokenWeight(self.sums[number] - self.sums[self.system])

    def end(self, number: int) -> TokenWeight:
        """Returns the estimated number of tokens between the end of the system prompt and the end of a unit."""
        return TokenWeight(self.sums[number + 1] - self.sums[self.system])

    def extend(self, msgs: Sequence[Msg], weigh: Callable[[Msg], int], never_cut: frozenset[str]) -> None:
        """Appends messages to the conversation.

        In the extended conversation, each tool call must have one result. Calls and results of the tools in
        `never_cut` become pinned units. `weigh` estimates the number of tokens of a message.
        """
        starts, sums = cast("list[int]", self.starts), cast("list[int]", self.sums)
        total = sums[-1]
        previous = get_example(self.msgs[-1]) if self.msgs else None
        for index, msg in enumerate(msgs, len(self.msgs)):
            total += weigh(msg)
            example = get_example(msg)
            is_continued, previous = example is not None and example == previous, example
            # A system message after the start of the conversation joins the unit before the message.
            # If a cut dropped all units before the message, the message would become part of the system prompt.
            is_late = msg.features & Feature.SYSTEM and self.system < len(starts)
            if starts and (is_late or is_continued or msg.features & Feature.RESULT):
                sums[-1] = total
            else:
                if msg.features & Feature.SYSTEM:
                    self.system += 1
                if example is not None:
                    self.examples.append(UnitNumber(len(starts)))
                starts.append(index)
                sums.append(total)
            if msg.pinned or (never_cut and calls_any(msg, never_cut)):
                number = UnitNumber(len(starts) - 1)
                if self.pinned[-1:] != [number]:
                    self.pinned.append(number)
        self.msgs.extend(msgs)


def get_example(msg: Msg) -> object:
    """Returns the number of the example that contains a message, or None if no example contains the message."""
    return None if msg.metadata is None else msg.metadata.get(EXAMPLE_MARK)


def calls_any(msg: Msg, tools: frozenset[str]) -> bool:
    """Returns True if a message calls at least one of the tools whose names are in `tools`."""
    return bool(msg.features & Feature.CALL) and any(block.name in tools for block in msg.tool_uses)


class Weigher:
    """Estimator of tokens that processes only the new messages of a growing conversation.

    The weigher stores the units of the last conversation. If the next conversation starts with the same messages,
    the weigher estimates only the tokens of the new messages.
    """

    def __init__(self, counter: LocalTokenCounter, never_cut: frozenset[str] = frozenset()) -> None:
        self._counter = counter
        self._never_cut = never_cut
        self._last: dict[bool, Units] = {}  # the key is True if the estimates include thinking blocks

    def units(self, msgs: list[Msg], thinking: bool = False) -> Units:
        """Divides a conversation into units, and returns the units with an estimate of the tokens of each unit.

        If `msgs` starts with the message objects of the last conversation, only the tokens of the new messages are
        estimated. The caller must not change `msgs` later, because the weigher keeps the list for comparison.
        `thinking` is True if requests include thinking blocks.
        """
        last = self._last.get(thinking)
        if last is None or not starts_with(msgs, last.msgs):
            last = Units()
        if len(last.msgs) < len(msgs):
            last = last.copy()
            last.extend(msgs[len(last.msgs) :], self.get_weigh(thinking), self._never_cut)
        last.msgs = msgs  # the next comparison is faster if both lists have the same message objects
        self._last[thinking] = last
        return last

    async def weigh_units(self, msgs: list[Msg], thinking: bool) -> Units:
        """Returns the same value as `units`, but lets other async tasks run if there are many new messages."""
        last = self._last.get(thinking)
        new = msgs[len(last.msgs) :] if last and starts_with(msgs, last.msgs) else msgs
        if len(new) > _FEW_MESSAGES or sum(len(msg.text) for msg in new) > _FEW_CHARACTERS:
            await self._weigh_ahead(new, self.get_weigh(thinking))
        return self.units(msgs, thinking)

    async def _weigh_ahead(self, new: list[Msg], weigh: Callable[[Msg], int]) -> None:
        """Estimates the tokens of messages, so that each message caches its estimate.

        A slow counter runs in a worker thread.
        """
        if self._counter.slow:
            await anyio.to_thread.run_sync(lambda: [*map(weigh, new)])
            return
        for start in range(0, len(new), _MESSAGES_PER_TURN):
            for msg in new[start : start + _MESSAGES_PER_TURN]:
                weigh(msg)
            await anyio.lowlevel.checkpoint()

    def get_weigh(self, thinking: bool) -> Callable[[Msg], int]:
        """Returns the function that estimates the number of tokens of a message.

        `thinking` is True if the function must count thinking blocks.
        """
        return self._weigh_with_thinking if thinking else self._counter.weight

    def _weigh_with_thinking(self, msg: Msg) -> int:
        weight = self._counter.weight(msg)
        return weight + -(-estimate_text(msg.thinking) // 100) if msg.features & Feature.THINKING else weight
