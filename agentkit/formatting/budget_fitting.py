"""Budget fitting: finds the smallest cut with which the request of a conversation fits a budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from agentkit.budget.budget import Budget
from agentkit.budget.cut_plan import NO_EDITS, CutPlan, search_cut
from agentkit.budget.edits import EditedConversation
from agentkit.budget.summaries import Summarize
from agentkit.budget.units import EditCount, Units, Weigher
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import BudgetError
from agentkit.formatting.lowering import Lowered, Lowering, has_media
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import format_place
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import Provenance, TracedConversation
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.tokens.counters import LocalTokenCounter, count_request
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["BudgetFitter"]

_SLACK = 64  # tokens by which a longer conversation may measure less: fillers, tags, joined turns

_NO_LOW = EditCount(-1)  # no cut is known that is too small

_TRIES = 8  # limits that are tried for a BudgetError: then the size of the whole conversation is named

_Fits: TypeAlias = Callable[[EditCount], Awaitable[bool]]
_Sizes: TypeAlias = dict[EditCount, tuple[Lowered, int]]
"""Requests by the number of edits, with their tokens."""


@dataclass(slots=True)
class BudgetFitter:
    """One conversation, one budget: the first stop in the schedule of edits at which the request fits.

    Weights say where to look, what fits is measured on the request itself: the same cut comes out whatever the
    weights say. What did not fit before will not fit with more said; that is remembered with the units. A
    counter that needs I/O has the last word, from the stop on that a local one found. Media are read for what
    is kept alone.
    """

    lowering: Lowering
    budget: Budget
    whole: TracedConversation
    ledger: Ledger
    units: Units
    schedule: CutPlan
    local: LocalTokenCounter
    writer: Summarize | None
    loads: bool  # whether there are media to be read, fetched or made smaller
    more: float = 1.0  # how many times the local count the counter's is
    found: _Sizes = field(default_factory=dict[EditCount, "tuple[Lowered, int]"])
    summed: dict[EditCount, TracedConversation] = field(default_factory=dict[EditCount, TracedConversation])
    guessed: _Sizes = field(default_factory=dict[EditCount, "tuple[Lowered, int]"])

    @classmethod
    async def of(
        cls, lowering: Lowering, budget: Budget, weigher: Weigher, whole: TracedConversation, ledger: Ledger
    ) -> BudgetFitter:
        """Returns the fitter of a conversation in normal form."""
        thinking = lowering.spec.capabilities.thinking.mode != "never"
        units = await weigher.weigh_units(whole.msgs, thinking)
        if not lowering.history.shows_everything:
            is_visible = lowering.history.is_visible
            visible = (number for number in reversed(units.numbers) if is_visible(units.unit(number)))
            units = replace(units, newest_visible=next(visible, None))
        local = budget.counter.local_counter
        first = frozenset(budget.cut_first)
        schedule = CutPlan(budget.strategies, units, budget.limit, weigher.get_weigh(thinking), first)
        writer = next((found for found in budget.strategies if isinstance(found, Summarize)), None)
        return cls(lowering, budget, whole, ledger, units, schedule, local, writer, lowering.needs_loading(whole))

    async def plan(self) -> Plan:
        """Returns the plan within the budget. Raises BudgetError if the smallest request does not fit."""
        if self.loads:
            await self._weigh_texts()
        if self.schedule.is_exact and self.budget.counter is not self.local and not self.loads:
            await self._foresee_loss(self.schedule.end)
            count = await self._fewest()
        else:
            if self.loads and self.budget.counter is not self.local:
                await self._compare_counters()
            count = await self._first_fitting(self.guessed, self._seems_to_fit, self._guess)
            await self._foresee_loss(count if self.budget.counter is self.local else self.schedule.end)
            if self.budget.counter is not self.local or self.loads:
                # Media that the cut drops are never read.
                low = self.schedule.position_before(count) if self.loads else _NO_LOW
                count = await self._first_fitting(self.found, self._fits, partial(_given, count), low)
        if not await self._fits(count):
            await self._refuse()
        while count and self.writer and not await self._summed_up(self.writer, count):
            if count >= self.schedule.end:
                await self._refuse()
            count = self.schedule.position_after(count)
        return await self._plan(count)

    async def _weigh_texts(self) -> None:
        """Know what text files weigh before any is read: else one would be read that the cut then drops.

        Loss that is sure without any I/O comes first.
        """
        await self._foresee_loss(self.schedule.end)
        if await self.lowering.measure_text_files(self.whole, self.ledger):
            self.guessed.clear()

    async def _compare_counters(self) -> None:
        """How much more the counter counts than the local one, learnt from what every cut keeps.

        Else media would be read for what the counter then wants dropped.
        """
        most = self.schedule.end
        if 2 * self.units.sums[-1] > self.budget.limit:
            counted, local = (await self._size(most))[1], (await self._foreseen(most))[1]
            self.more = max(1.0, counted / max(local, 1))

    # -- where to cut ----------------------------------------------------------------------------------------

    async def _first_fitting(
        self,
        sizes: _Sizes,
        fits: _Fits,
        guess: Callable[[], Awaitable[EditCount]],
        low: EditCount = _NO_LOW,
    ) -> EditCount:
        """The first stop behind `low` at which the request fits, looked for from a guess outwards; all if none.

        Asks about two stops when the guess is right, one when the stop before is known not to fit, and
        O(log n) at worst.
        """
        who = "local" if sizes is self.guessed else "counter"
        low = max(low, self._known_low(who))
        count = await guess() if low < 0 else self._next(low)
        low, high = await self._upwards(count, low, sizes, fits)
        if low == high:
            return high
        low, high = await self._downwards(high, low, sizes, fits)
        stops = [low, *self._stops(low, high)]

        async def fits_at(at: int) -> bool:
            return await fits(stops[at])

        found = stops[await search_cut(fits_at, 0, len(stops) - 1)]
        self._remember(who, self.schedule.position_before(found), sizes)
        return found

    async def _upwards(
        self, count: EditCount, low: EditCount, sizes: _Sizes, fits: _Fits
    ) -> tuple[EditCount, EditCount]:
        """From a guess on: the last stop asked about that does not fit, and one that does; all edits if none."""
        hops = 1
        while not await fits(count):
            low = count
            if count >= self.schedule.end:
                return count, count
            count = max(self._next(count, hops), self._estimate(count, sizes))
            hops *= 4
        return low, count

    async def _downwards(
        self, high: EditCount, low: EditCount, sizes: _Sizes, fits: _Fits
    ) -> tuple[EditCount, EditCount]:
        """From a stop that fits back: one that does not fit, and one behind it that does."""
        hops = 1
        while self.schedule.position_before(high) > low:
            tried = max(min(self._estimate(high, sizes), self._back(high, hops)), self._next(low))
            if tried >= high:
                break
            if not await fits(tried):
                return tried, high
            high, hops = tried, hops * 4
        return low, high

    async def _fewest(self) -> EditCount:
        """The fewest edits with which the request fits, by a counter that alone knows: O(log n) counts."""
        most = self.schedule.end
        if await self._fits(NO_EDITS):
            return NO_EDITS
        return await search_cut(self._fits, 0, most) if await self._fits(most) else most

    async def _guess(self) -> EditCount:
        """Returns an estimate from the weights of the units and the size of the smallest request."""
        if self.units.sums[-1] <= self.budget.limit:
            return NO_EDITS
        most = self.schedule.end
        room = self._room(1) - (await self._foreseen(most))[1]
        if room < 0:
            return most
        return self.schedule.position_from(self.schedule.count_for(self.schedule.weight(most) + room))

    def _estimate(self, count: EditCount, sizes: _Sizes) -> EditCount:
        """The stop that fits by what a token of weight has measured so far; `count` itself if nobody knows."""
        most = self.schedule.end
        if count not in sizes or most not in sizes:
            return count
        tokens, smallest = sizes[count][1], sizes[most][1]
        least, weight = self.schedule.weight(most), self.schedule.weight(count)
        if tokens <= smallest or weight <= least:
            return count
        room = (self._room(1) - tokens) * (weight - least) // (tokens - smallest)
        return self.schedule.position_from(self.schedule.count_for(weight + room))

    def _next(self, count: EditCount, hops: int = 1) -> EditCount:
        """So many stops behind a count."""
        for _ in range(hops):
            count = self.schedule.position_after(count)
        return count

    def _back(self, count: EditCount, hops: int) -> EditCount:
        """So many stops before a count; -1 before all."""
        while hops and count >= 0:
            count = self.schedule.position_before(count)
            hops -= 1
        return count

    def _stops(self, after: EditCount, last: EditCount) -> list[EditCount]:
        """The stops behind `after`, up to `last`."""
        found: list[EditCount] = []
        while after < last:
            after = min(self._next(after), last)
            found.append(after)
        return found

    def _known_low(self, who: str) -> EditCount:
        """Returns the greatest count that did not fit when the conversation was shorter."""
        terms, length, low = self.units.known_too_large.get(who, (None, 0, _NO_LOW))
        return low if length <= len(self.units.msgs) and terms == self._terms else _NO_LOW

    @property
    def _terms(self) -> object:
        """The key of everything that affects sizes besides the conversation and the cut."""
        return (self.lowering.spec, self.lowering.history, self.budget)

    def _remember(self, who: str, low: EditCount, sizes: _Sizes) -> None:
        """Keep it with the units that a stop does not fit, where more said can only make it larger."""
        steady = sizes is self.guessed or self.budget.counter.deterministic
        lasting = (
            steady
            and self.schedule.order_is_stable
            and self.lowering.history.shows_everything
            and not has_media(self.whole)
        )
        if lasting and low in sizes and sizes[low][1] > self._room(low) + _SLACK:
            self.units.known_too_large[who] = (self._terms, len(self.units.msgs), low)

    # -- sizes ---------------------------------------------------------------------------------------------

    async def _foreseen(self, count: EditCount) -> tuple[Lowered, int]:
        """The request as far as it is known without I/O, and its size by the local counter."""
        if count not in self.guessed:
            edition = self._edition(count)
            lowered = self.lowering.lower_without_io(edition.apply(), self.ledger, edition.first_change)
            self.guessed[count] = (lowered, await count_request(self.local, lowered.request, self.layout))
        return self.guessed[count]

    def _room(self, count: int) -> int:
        """The limit, less what is kept free for summaries of what so many edits drop."""
        return self.budget.limit - (self.writer.max_tokens if self.writer and count else 0)

    async def _seems_to_fit(self, count: EditCount) -> bool:
        return (await self._foreseen(count))[1] * self.more <= self._room(count)

    async def _fits(self, count: EditCount) -> bool:
        return (await self._size(count))[1] <= self._room(count)

    async def _size(self, count: EditCount) -> tuple[Lowered, int]:
        """Returns the final request after so many edits, and its tokens by the budget's counter."""
        if count not in self.found:
            self.found[count] = await self._measured(count)
        return self.found[count]

    async def _measured(self, count: EditCount) -> tuple[Lowered, int]:
        edition = self._edition(count)
        draft = edition.apply()
        if self.local is self.budget.counter and not (self.loads and self.lowering.needs_loading(draft)):
            return await self._foreseen(count)
        lowered = await self.lowering.load_and_lower(draft, self.ledger.copy(), edition.first_change)
        return lowered, await count_request(self.budget.counter, lowered.request, self.layout)

    @property
    def layout(self) -> WireLayout:
        """The layout of the request."""
        return self.lowering.spec.capabilities.layout

    # -- the cut conversation --------------------------------------------------------------------------------

    def _edition(self, count: EditCount) -> EditedConversation:
        return EditedConversation(self.whole, self.units, self.schedule.changes(count) if count else ())

    async def _summed_up(self, writer: Summarize, count: EditCount) -> bool:
        """Put summaries in the place of what the writer dropped; whether the request still fits."""
        numbers = self.schedule.dropped_by(count, writer)
        if not numbers:
            return True
        gone = [msg for number in numbers for msg in self.units.unit(number)]
        edition = self._edition(count)
        draft = self.summed[count] = edition.apply(await writer.summaries(gone), numbers[0])
        ledger = self.ledger.copy()
        ledger.add_synthesis("summary", f"stands for {len(gone)} messages that were cut")
        lowered = await self.lowering.load_and_lower(draft, ledger, edition.first_change)
        self.found[count] = (lowered, await count_request(self.budget.counter, lowered.request, self.layout))
        return self.found[count][1] <= self.budget.limit

    async def _foresee_loss(self, count: EditCount) -> None:
        """Raises LossError for losses that are certain without I/O, before any I/O."""
        if self.lowering.on_loss == "raise":
            ledger = (await self._foreseen(count))[0].ledger.copy()
            self._edition(count).record(ledger)  # what is cut is no loss
            self.lowering.raise_on_loss(ledger)

    async def _refuse(self) -> None:
        """Raise BudgetError with a size at which the same call succeeds.

        The steps of a schedule may be a share of the limit: with a larger limit, strategies may take less.
        """
        least, needed = self, await self._least()
        for _ in range(_TRIES):
            larger = least._at(needed)
            if larger.schedule.steps == least.schedule.steps:
                break
            least, size = larger, await larger._least()
            if size <= needed:
                break
            needed = size
        else:
            needed = max(needed, (await self._size(NO_EDITS))[1])
        places = {_place(origin) for origin in least._edition(least.schedule.end).apply().origins}
        raise BudgetError(self.budget.limit, needed, sorted(places - {""}, key=_by_number))

    async def _least(self) -> int:
        """The limit that leaves room for the request after all edits, and for summaries by the counter."""
        lowered, size = await self._size(self.schedule.end)
        if self.writer is None or not self.schedule.end:
            return size
        estimate = CharacterTokenCounter().measure(
            lowered.request, self.layout
        )  # what limits the length of summaries
        return size + -(-self.writer.max_tokens * max(size, estimate) // max(estimate, 1))

    def _at(self, limit: int) -> BudgetFitter:
        """Returns the fitter for another limit."""
        budget = replace(self.budget, max_tokens=limit + self.budget.reserve)
        return replace(
            self, budget=budget, schedule=self.schedule.with_limit(limit), found={}, summed={}, guessed={}
        )

    async def _plan(self, count: EditCount) -> Plan:
        lowered, tokens = await self._size(count)
        edition = self._edition(count)
        edition.record(lowered.ledger)
        self.lowering.raise_on_loss(lowered.ledger)
        if not edition.changes:
            return lowered.plan(tuple(self.ledger.msgs), tokens)
        weight = self.schedule.weight(count)
        saved = self.schedule.weight(NO_EDITS) - weight
        behind = weight - edition.weight_before()
        altered = tuple(edition.changed_places)
        stale = tuple(map(format_place, sorted(lowered.stale)))
        cut = Cut(edition.dropped_messages, edition.dropped_units, saved, altered, behind, stale)
        history = without_blocks(self.summed.get(count) or edition.apply(), lowered.stale)
        return lowered.plan(tuple(history.msgs), tokens, cut)


async def _given(count: EditCount) -> EditCount:
    return count


def _place(origin: int | tuple[Provenance, ...]) -> str:
    if isinstance(origin, int):
        return format_place((origin,))
    paths = [path for path in origin if not isinstance(path, str)]
    return format_place((paths[0][0],)) if paths else ""


def _by_number(place: str) -> int:
    return int(place[5:-1])
