"""Budgets: a limit on prompt tokens, and which units go when a conversation is over it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import is_

from agentkit.errors import OptionError, check_option
from agentkit.messages import Msg, Trait
from agentkit.tokens import CharacterTokenCounter, LocalTokenCounter, TokenCounterBase

__all__ = ["Budget", "CutStrategy", "OldestFirst", "Units"]


@dataclass(slots=True)
class Units:
    """A conversation in normal form as units: single messages, and exchanges whole; a late system message
    belongs to the unit before it.

    Unit `u` is `msgs[starts[u]:starts[u + 1]]` (the last one to the end). `sums[u]` is the weight of all
    units before `u`, in tokens by the local counter (0 throughout when there is none).
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

    def unit(self, number: int) -> list[Msg]:
        """The messages of one unit."""
        stop = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.msgs)
        return self.msgs[self.starts[number] : stop]

    def weight(self, number: int) -> int:
        """The weight of one unit."""
        return self.sums[number + 1] - self.sums[number]

    def protected(self, keep_task: bool = False) -> set[int]:
        """The units that every cut keeps: system prompt, pins, the newest, and the task if asked."""
        kept = {*range(self.system), *self.pinned, *range(len(self))[-1:]}
        if keep_task:
            kept |= {number for number in [self._task()] if number is not None}
        return kept

    def _task(self) -> int | None:
        return next(
            (
                number
                for number, start in enumerate(self.starts)
                if self.msgs[start].role == "user" and not self.msgs[start].traits & Trait.TOOL
            ),
            None,
        )

    def extend(self, msgs: Sequence[Msg], weigh: Callable[[Msg], int]) -> None:
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
            if msg.pinned and (not self.pinned or self.pinned[-1] != len(starts) - 1):
                self.pinned.append(len(starts) - 1)
        self.msgs.extend(msgs)


class CutStrategy:
    """Which units go first. One of your own overrides `order`."""

    def order(self, units: Units) -> Sequence[int]:
        """The units that may go, by number, in the order in which they go: none of `units.protected()`."""
        protected = units.protected()
        return [number for number in range(len(units)) if number not in protected]


@dataclass(frozen=True)
class OldestFirst(CutStrategy):
    """Oldest units first, exchanges whole; the system prompt, pins and the newest unit stay.

    `keep_task` keeps the first user message too.
    """

    keep_task: bool = False

    def order(self, units: Units) -> Sequence[int]:
        """All that may go, from the oldest on."""
        if not units.pinned and not self.keep_task:
            return range(units.system, len(units) - 1)
        protected = units.protected(self.keep_task)
        return [number for number in range(len(units)) if number not in protected]


@dataclass(frozen=True)
class Budget:
    """A limit on the tokens of a prompt, tools and output schema included.

    max_tokens  the limit, and `reserve`, how much of it is kept free for the answer
    counter     who counts (by default an estimate by characters)
    strategy    which units go when the conversation is over the limit
    """

    max_tokens: int
    counter: TokenCounterBase = field(default_factory=CharacterTokenCounter)
    reserve: int = 0
    strategy: CutStrategy = field(default_factory=OldestFirst)

    def __post_init__(self) -> None:
        for name, given in (("max_tokens", self.max_tokens), ("reserve", self.reserve)):
            if not isinstance(given, int) or isinstance(given, bool) or given < 0:
                raise OptionError(f"budget.{name}", f"{given!r} is no number of tokens", "Give a whole number.")
        check_option("budget.counter", self.counter, TokenCounterBase)
        check_option("budget.strategy", self.strategy, CutStrategy)
        if self.limit <= 0:
            reason = f"max_tokens {self.max_tokens} less reserve {self.reserve} leaves nothing"
            raise OptionError("budget.max_tokens", reason, "Raise max_tokens or lower reserve.")

    @property
    def limit(self) -> int:
        """What is left for the prompt."""
        return self.max_tokens - self.reserve


def checked_order(strategy: CutStrategy, units: Units) -> Sequence[int]:
    """The order that a strategy gives, if it names units that may go, each once."""
    order = strategy.order(units)
    protected = units.protected()
    numbers: range | set[int] = order if isinstance(order, range) else {*order}
    broken = [number for number in protected if number in numbers]
    if len(numbers) < len(order) or broken or not all(0 <= number < len(units) for number in _ends(order)):
        reason = f"order() names a unit that is protected, unknown or there twice ({broken or list(order)[:5]})"
        raise OptionError("budget.strategy", reason, "Leave out units.protected(), and name each unit once.")
    return order


def _ends(order: Sequence[int]) -> Sequence[int]:
    if isinstance(order, range):
        return [order[0], order[-1]] if order else []
    return order


class Weigher:
    """Units of the last conversation, kept so that the next call weighs only what was added to it.

    Units that were handed out never change: a conversation that goes on gets lists of its own.
    """

    def __init__(self, counter: TokenCounterBase) -> None:
        self._weigh = counter.weight if isinstance(counter, LocalTokenCounter) else _weightless
        self._last = Units()

    def units(self, msgs: list[Msg]) -> Units:
        """The conversation's units. Recognised by the identity of its messages; never changes what comes out."""
        known = len(self._last.msgs)
        if known > len(msgs) or not all(map(is_, self._last.msgs, msgs)):
            self._last = Units()
            known = 0
        if known < len(msgs):
            self._last = self._last.copy()
            self._last.extend(msgs[known:], self._weigh)
        return self._last


def _weightless(msg: Msg) -> int:
    return 0


def place_cut(units: Units, order: Sequence[int], room: int) -> int:
    """How many units of `order` must go so that the weights of those left in it are at most `room`."""
    if isinstance(order, range):
        sums = units.sums
        if not order or sums[order[-1] + 1] - sums[order[0]] <= room:
            return 0
        at = bisect_left(sums, sums[order[-1] + 1] - room, order[0], order[-1] + 2)
        return min(at - order[0], len(order))
    gone = [0, *accumulate(units.weight(number) for number in order)]
    return min(bisect_left(gone, gone[-1] - room), len(order))


def weight_left(units: Units, order: Sequence[int], drop: int) -> int:
    """The weight of the units of `order` that stay when its first `drop` go."""
    if not isinstance(order, range):
        return sum(units.weight(number) for number in order[drop:])
    return units.sums[order[-1] + 1] - units.sums[order[drop]] if drop < len(order) else 0


async def search_cut(fits: Callable[[int], Awaitable[bool]], low: int, high: int) -> int:
    """The fewest units to drop in (low, high], given that `low` does not fit and `high` does: O(log n) calls.

    Halves a range that is the same for every limit, so that a larger limit never drops more.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if await fits(middle):
            high = middle
        else:
            low = middle
    return high
