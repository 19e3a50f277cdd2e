"""A conversation brought within a budget: where to cut, and the plan that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentkit.budget import Budget, Units, Weigher, checked_order, place_cut, search_cut, weight_left
from agentkit.errors import BudgetError, OptionError
from agentkit.exchanges import Draft, Origin, block_origins
from agentkit.ledger import Cut, Disposition, Ledger, Note, Plan, place_of
from agentkit.lowering import Lowered, Lowering, needs_reading
from agentkit.tokens import LocalTokenCounter

__all__ = ["Cutting"]

# A conversation that weighs more than so many times the limit is cut without being measured whole. Media may
# weigh a thousand tokens and be described in twenty.
_FAR, _FAR_WITH_MEDIA = 1.3, 4


@dataclass(slots=True)
class Cutting:
    """One conversation, one budget: the fewest units of the strategy's order go that make the request fit.

    With a counter that weighs messages, the weights say where to begin to look; what fits is always measured
    on the request itself. Other counters are asked O(log n) times.
    """

    lowering: Lowering
    budget: Budget
    whole: Draft
    ledger: Ledger
    units: Units
    order: Sequence[int]
    smallest: int = 0  # the size of the smallest request, where a local counter measured it
    found: dict[int, tuple[Lowered, int]] = field(default_factory=dict[int, "tuple[Lowered, int]"])

    @classmethod
    def of(cls, lowering: Lowering, budget: Budget, weigher: Weigher, whole: Draft, ledger: Ledger) -> Cutting:
        """The cutting of a conversation in normal form."""
        units = weigher.units(whole.msgs)
        return cls(lowering, budget, whole, ledger, units, checked_order(budget.strategy, units))

    async def plan(self) -> Plan:
        """The plan within the budget. Raises BudgetError if not even the smallest request fits."""
        counter = self.budget.counter
        if isinstance(counter, LocalTokenCounter):
            guess = self._guess(counter)
            if self.lowering.on_loss == "raise":
                self._foresee_loss(guess)
            drop = await self._fewest_near(guess)
        else:
            if self.lowering.on_loss == "raise":
                self._foresee_loss(len(self.order))
            drop = 0 if await self._fits(0) else await self._fewest_between(0, len(self.order))
        return await self._plan(drop)

    def _guess(self, counter: LocalTokenCounter) -> int:
        """By the weights of the units and the measured size of the smallest request: how many must go."""
        most = len(self.order)
        smallest = self.lowering.foresee(self.whole.part(self._kept(most)), self.ledger)
        self.smallest = counter.measure(smallest.request)
        room = self.budget.limit - self.smallest
        return most if room < 0 else place_cut(self.units, self.order, room)

    async def _fewest_near(self, guess: int) -> int:
        """The fewest units that must go, looked for from a guess outwards; weights err upwards."""
        far = _FAR_WITH_MEDIA if needs_reading(self.whole.msgs) else _FAR
        if guess and self.units.sums[-1] < far * self.budget.limit and await self._fits(0):
            return 0
        if not await self._fits(guess):
            return await self._fewest_between(guess, len(self.order))
        fits = guess
        while fits:
            fewer = min(await self._estimate(fits), fits - 1)
            if not await self._fits(fewer):
                return await search_cut(self._fits, fewer, fits)
            fits = fewer
        return 0

    async def _estimate(self, fits: int) -> int:
        """From a cut that fits: how few units may have to go, by what a token of weight has measured so far."""
        tokens = (await self._size(fits))[1]
        weight = weight_left(self.units, self.order, fits)
        measured = max(tokens - self.smallest, 1)
        return place_cut(self.units, self.order, weight + (self.budget.limit - tokens) * weight // measured)

    async def _fewest_between(self, low: int, high: int) -> int:
        """The same, given that `low` does not fit."""
        if not await self._fits(high):
            self._refuse((await self._size(high))[1])
        return await search_cut(self._fits, low, high)

    async def _fits(self, drop: int) -> bool:
        return (await self._size(drop))[1] <= self.budget.limit

    async def _size(self, drop: int) -> tuple[Lowered, int]:
        """The request without the first `drop` units of the order, and its tokens."""
        if drop not in self.found:
            draft = self.whole.part(self._kept(drop)) if drop else self.whole
            lowered = await self.lowering.read_and_lower(draft, self.ledger.copy())
            tokens: object = await self.budget.counter.count(lowered.request)
            if not isinstance(tokens, int):
                reason = f"it counted {tokens!r}, which is no whole number"
                raise OptionError("budget.counter", reason, "Return an int.")
            self.found[drop] = (lowered, tokens)
        return self.found[drop]

    def _kept(self, drop: int) -> list[int]:
        """The numbers of the messages that stay when the first `drop` units of the order go."""
        gone = set(self.order[:drop])
        ends = [*self.units.starts[1:], len(self.whole.msgs)][: len(self.units)]
        spans = enumerate(zip(self.units.starts, ends, strict=True))
        return [at for unit, (start, end) in spans if unit not in gone for at in range(start, end)]

    def _foresee_loss(self, drop: int) -> None:
        """Loss that needs no file to be known, before any is read."""
        lowered = self.lowering.foresee(self.whole.part(self._kept(drop)), self.ledger)
        self.lowering.refuse_loss(lowered.ledger)

    def _refuse(self, needed: int) -> None:
        places = {_place(self.whole.origins[at]) for at in self._kept(len(self.order))}
        raise BudgetError(self.budget.limit, needed, sorted(places - {""}, key=_by_number))

    async def _plan(self, drop: int) -> Plan:
        lowered, tokens = await self._size(drop)
        self.lowering.refuse_loss(lowered.ledger)
        if not drop:
            return lowered.plan(tuple(self.ledger.msgs), tokens)
        kept = self._kept(drop)
        numbers = self._note_dropped(lowered.ledger, sorted({*range(len(self.whole.msgs))} - {*kept}))
        weight = sum(self.units.weight(unit) for unit in self.order[:drop])
        saved = self.found[0][1] - tokens if 0 in self.found else weight
        cut = Cut(tuple(place_of((number,)) for number in numbers), drop, saved)
        return lowered.plan(tuple(self.whole.msgs[at] for at in kept), tokens, cut)

    def _note_dropped(self, ledger: Ledger, gone: Sequence[int]) -> list[int]:
        """Write down what was cut; give the numbers of the input messages that it was part of."""
        note = Note(Disposition.DROPPED, "cut to keep the request within the budget")
        numbers = [whole for at in gone if isinstance(whole := self.whole.origins[at], int)]
        ledger.note_messages(numbers, note)
        parts: set[int] = set()
        for at in gone:
            whole = self.whole.origins[at]
            for origin in () if isinstance(whole, int) else block_origins(self.whole.msgs[at], whole):
                if not isinstance(origin, str):
                    ledger.note(origin, note)
                    parts.add(origin[0])
        return sorted({*numbers, *parts})


def _place(origin: int | tuple[Origin, ...]) -> str:
    if isinstance(origin, int):
        return place_of((origin,))
    paths = [path for path in origin if not isinstance(path, str)]
    return place_of((paths[0][0],)) if paths else ""


def _by_number(place: str) -> int:
    return int(place[5:-1])
