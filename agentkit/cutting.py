"""A conversation brought within a budget: where to cut, and the plan that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentkit.budget import Budget
from agentkit.edition import Edition
from agentkit.errors import BudgetError, OptionError
from agentkit.exchanges import Draft, Origin, prompt_length
from agentkit.ledger import Cut, Ledger, Plan, place_of
from agentkit.lowering import Lowered, Lowering, needs_reading
from agentkit.messages import Trait
from agentkit.schedule import Schedule, search_cut
from agentkit.summaries import Summarise
from agentkit.tokens import LocalTokenCounter
from agentkit.units import Units, Weigher

__all__ = ["Cutting"]

# A conversation that weighs more than so many times the limit is cut without being measured whole. Media may
# weigh a thousand tokens and be described in twenty.
_FAR, _FAR_WITH_MEDIA = 1.3, 4


@dataclass(slots=True)
class Cutting:
    """One conversation, one budget: the first place in the schedule of edits at which the request fits.

    Weights say where to look, without any I/O; what fits is measured on the request itself. Where cuts lie on
    a grid, the place is arithmetic on the weights, and the counter only decides whether one more step goes.
    Where they may lie anywhere, the fewest edits are searched for. Media are read for what is kept alone.
    """

    lowering: Lowering
    budget: Budget
    whole: Draft
    ledger: Ledger
    units: Units
    schedule: Schedule
    local: LocalTokenCounter
    writer: Summarise | None
    smallest: int = 0  # the size of the smallest request, where it was measured
    found: dict[int, tuple[Lowered, int]] = field(default_factory=dict[int, "tuple[Lowered, int]"])
    summed: dict[int, Draft] = field(default_factory=dict[int, Draft])
    guessed: dict[int, tuple[Lowered, int]] = field(default_factory=dict[int, "tuple[Lowered, int]"])

    @classmethod
    async def of(
        cls, lowering: Lowering, budget: Budget, weigher: Weigher, whole: Draft, ledger: Ledger
    ) -> Cutting:
        """The cutting of a conversation in normal form."""
        thinking = lowering.task.capabilities.thinking != "never"
        units = await weigher.weighed(whole.msgs, thinking)
        local = budget.counter.weigher
        first = frozenset(budget.cut_first)
        schedule = Schedule(budget.strategies, units, budget.limit, weigher.weighing(thinking), first)
        writer = next((found for found in budget.strategies if isinstance(found, Summarise)), None)
        return cls(lowering, budget, whole, ledger, units, schedule, local, writer)

    async def plan(self) -> Plan:
        """The plan within the budget. Raises BudgetError if not even the smallest request fits."""
        if self.schedule.exact and isinstance(self.budget.counter, LocalTokenCounter):
            count = await self._fewest_near(self._guess())
        elif self.schedule.exact and not needs_reading(self.whole.msgs):
            self._foresee_loss(len(self.schedule))
            return await self._plan(
                0 if await self._fits(0) else await self._fewest_between(0, len(self.schedule))
            )
        else:
            count = await self._first_stop()
        self._foresee_loss(count)
        count = await self._from(count)
        while count and self.writer and not await self._summed_up(self.writer, count):
            count = await self._from(self.schedule.stop(count + 1))
        return await self._plan(count)

    # -- where cuts lie on a grid --------------------------------------------------------------------------

    async def _first_stop(self) -> int:
        """The first stop at which the request fits by the local counter."""
        limit = self.budget.limit
        sure = self._weights_hold()
        if not (sure and self.units.sums[-1] > _FAR * limit) and await self._seems_to_fit(0):
            return 0
        if sure:
            return self.schedule.stop(max(1, self.schedule.place(self._room(1) - self._head())))
        stops = self._stops(0, len(self.schedule))

        async def fits(at: int) -> bool:
            return await self._seems_to_fit(stops[at])

        return stops[await search_cut(fits, -1, len(stops) - 1)] if stops else 0

    def _weights_hold(self) -> bool:
        """Whether the units' weights say what the request will weigh: all of it is shown and carried."""
        form, look = self.lowering.task.capabilities, self.whole.look
        seen = look.traits if look else 0
        if seen & Trait.RESULT_MEDIA or not self.lowering.history.shows_all:
            return False
        return not any(
            seen & trait and rule is None for trait, rule in zip(_KINDS, form.media.values(), strict=True)
        )

    def _head(self) -> int:
        """The size of the request less its conversation."""
        prompt = self.whole.part(range(prompt_length(self.whole.msgs)))
        return self.local.measure(self.lowering.head(prompt))

    def _stops(self, after: int, last: int) -> list[int]:
        """The stops behind `after`, up to `last`."""
        found: list[int] = []
        while after < last:
            after = self.schedule.stop(after + 1)
            found.append(min(after, last))
        return found

    async def _from(self, count: int) -> int:
        """The first stop from `count` on at which the very request fits: in O(log n) counts."""
        most, failed, hops, fits = len(self.schedule), -1, 1, self._fits
        while not await fits(count):
            if count >= most:
                self._refuse((await self._size(count))[1] + self.budget.limit - self._room(count))
            failed = count
            for _ in range(hops):
                count = self.schedule.stop(count + 1)
            hops *= 2
        stops = [failed, *self._stops(failed, count)] if failed >= 0 else [count]

        async def fits_at(at: int) -> bool:
            return await fits(stops[at])

        return stops[await search_cut(fits_at, 0, len(stops) - 1)]

    # -- where cuts may lie anywhere -----------------------------------------------------------------------

    def _guess(self) -> int:
        """By the weights of the units and the measured size of the smallest request: how many edits it takes."""
        most = len(self.schedule)
        self.smallest = self._foreseen(most)[1]
        room = self.budget.limit - self.smallest
        return most if room < 0 else self.schedule.place(self.schedule.weight(most) + room)

    async def _fewest_near(self, guess: int) -> int:
        """The fewest edits that it takes, looked for from a guess outwards; weights err upwards."""
        far = _FAR_WITH_MEDIA if needs_reading(self.whole.msgs) else _FAR
        if guess and self.units.sums[-1] < far * self.budget.limit and await self._seems_to_fit(0):
            return 0
        if not await self._seems_to_fit(guess):
            most = len(self.schedule)
            if guess >= most or not await self._seems_to_fit(most):
                return most
            return await search_cut(self._seems_to_fit, guess, most)
        fits = guess
        while fits:
            fewer = min(self._estimate(fits), fits - 1)
            if not await self._seems_to_fit(fewer):
                return await search_cut(self._seems_to_fit, fewer, fits)
            fits = fewer
        return 0

    def _estimate(self, fits: int) -> int:
        """From a cut that fits: how few edits it may take, by what a token of weight has measured so far."""
        tokens = self._foreseen(fits)[1]
        least = self.schedule.weight(len(self.schedule))
        weight = self.schedule.weight(fits) - least
        measured = max(tokens - self.smallest, 1)
        return self.schedule.place(least + weight + (self.budget.limit - tokens) * weight // measured)

    async def _fewest_between(self, low: int, high: int) -> int:
        """The same by the budget's counter, given that `low` does not fit."""
        if not await self._fits(high):
            self._refuse((await self._size(high))[1])
        return await search_cut(self._fits, low, high)

    # -- sizes ---------------------------------------------------------------------------------------------

    def _foreseen(self, count: int) -> tuple[Lowered, int]:
        """The request as far as it is known without I/O, and its size by the local counter."""
        if count not in self.guessed:
            edition = self._edition(count)
            lowered = self.lowering.foresee(edition.draft(), self.ledger, edition.first_change)
            self.guessed[count] = (lowered, self.local.measure(lowered.request))
        return self.guessed[count]

    def _room(self, count: int) -> int:
        """The limit, less what is kept free for summaries of what so many edits drop."""
        return self.budget.limit - (self.writer.max_tokens if self.writer and count else 0)

    async def _seems_to_fit(self, count: int) -> bool:
        return self._foreseen(count)[1] <= self._room(count)

    async def _fits(self, count: int) -> bool:
        return (await self._size(count))[1] <= self._room(count)

    async def _size(self, count: int) -> tuple[Lowered, int]:
        """The very request after so many edits, and its tokens by the budget's counter."""
        if count not in self.found:
            self.found[count] = await self._measured(count)
        return self.found[count]

    async def _measured(self, count: int) -> tuple[Lowered, int]:
        edition = self._edition(count)
        draft = edition.draft()
        if self.local is self.budget.counter and not needs_reading(draft.msgs):
            return self._foreseen(count)
        lowered = await self.lowering.read_and_lower(draft, self.ledger.copy(), edition.first_change)
        return lowered, await self._count(lowered.request)

    async def _count(self, request: dict[str, Any]) -> int:
        tokens: object = await self.budget.counter.count(request)
        if not isinstance(tokens, int):
            reason = f"it counted {tokens!r}, which is no whole number"
            raise OptionError("budget.counter", reason, "Return an int.")
        return tokens

    # -- the cut conversation --------------------------------------------------------------------------------

    def _edition(self, count: int) -> Edition:
        return Edition(self.whole, self.units, self.schedule.changes(count) if count else ())

    async def _summed_up(self, writer: Summarise, count: int) -> bool:
        """Put summaries in the place of what the writer dropped; whether the request still fits."""
        numbers = self.schedule.dropped_by(count, writer)
        if not numbers:
            return True
        gone = [msg for number in numbers for msg in self.units.unit(number)]
        edition = self._edition(count)
        draft = self.summed[count] = edition.draft(await writer.summaries(gone), numbers[0])
        ledger = self.ledger.copy()
        ledger.invent("summary", f"stands for {len(gone)} messages that were cut")
        lowered = await self.lowering.read_and_lower(draft, ledger, edition.first_change)
        self.found[count] = (lowered, await self._count(lowered.request))
        return self.found[count][1] <= self.budget.limit

    def _foresee_loss(self, count: int) -> None:
        """Loss that needs no I/O to be known, before there is any."""
        if self.lowering.on_loss == "raise":
            self.lowering.refuse_loss(self._foreseen(count)[0].ledger)

    def _refuse(self, needed: int) -> None:
        places = {_place(origin) for origin in self._edition(len(self.schedule)).draft().origins}
        raise BudgetError(self.budget.limit, needed, sorted(places - {""}, key=_by_number))

    async def _plan(self, count: int) -> Plan:
        lowered, tokens = await self._size(count)
        self.lowering.refuse_loss(lowered.ledger)
        if not count:
            return lowered.plan(tuple(self.ledger.msgs), tokens)
        edition = self._edition(count)
        edition.account(lowered.ledger)
        weight = self.schedule.weight(count)
        whole = self.found.get(0) or self.guessed.get(0)
        saved = whole[1] - tokens if whole else self.schedule.weight(0) - weight
        behind = weight - edition.weight_before()
        altered = tuple(edition.altered)
        cut = Cut(edition.numbers, edition.dropped, saved, altered, behind, lowered.stale)
        history = self.summed.get(count) or edition.draft()
        return lowered.plan(tuple(history.msgs), tokens, cut)


_KINDS = (Trait.IMAGE, Trait.AUDIO, Trait.VIDEO, Trait.DOCUMENT)


def _place(origin: int | tuple[Origin, ...]) -> str:
    if isinstance(origin, int):
        return place_of((origin,))
    paths = [path for path in origin if not isinstance(path, str)]
    return place_of((paths[0][0],)) if paths else ""


def _by_number(place: str) -> int:
    return int(place[5:-1])
