"""Budget fitting: finds the smallest cut after which the request of a conversation fits the budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agentkit.budget.budget import Budget
from agentkit.budget.cut_plan import NO_EDITS, CutPlan, search_cut
from agentkit.budget.summaries import Summarize
from agentkit.budget.units import EditCount, Units, Weigher
from agentkit.errors import BudgetError
from agentkit.formatting.cut_search import CutSearch
from agentkit.formatting.lowering import Lowering, has_media
from agentkit.formatting.request_sizes import RequestSizes, Sizes
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import format_place
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import MessageOrigin, TracedConversation
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["BudgetFitter"]

_SLACK = 64  # tokens by which a request may shrink although messages are added, because fillers or tags vanish

_NONE_TOO_LARGE = EditCount(-1)  # no position is known to be too large

_MAX_LIMITS = 8  # limits that are tried for a BudgetError, before the size of the whole conversation is used


@dataclass(slots=True)
class BudgetFitter:
    """Search for the smallest cut after which the request of one conversation fits the budget.

    A cut plan lists the edits in order. A position in the plan is a number of edits at which a cut may end.
    Weights are estimates that only guide the search. The decision comes from the size of complete requests.

    A request that is too large stays too large when messages are added. So the units remember positions that were
    too large. If the budget's counter needs I/O, a local counter searches first. Media are loaded only for
    messages that remain after the cut.

    Attributes:
        summarize: The strategy that writes summaries. None if the budget has no such strategy.
        counter_ratio: Number of tokens that the budget's counter counts for each token of the local counter. At
            least 1.
        summarized: The conversations with summaries, by the number of edits.
    """

    lowering: Lowering
    budget: Budget
    units: Units
    cuts: CutPlan
    sizes: RequestSizes
    summarize: Summarize | None
    counter_ratio: float = 1.0
    summarized: dict[EditCount, TracedConversation] = field(default_factory=dict[EditCount, TracedConversation])

    @classmethod
    async def create(
        cls,
        lowering: Lowering,
        budget: Budget,
        weigher: Weigher,
        conversation: TracedConversation,
        ledger: Ledger,
    ) -> BudgetFitter:
        """Returns the fitter for a repaired conversation, with the weights of its units."""
        thinking = lowering.spec.capabilities.thinking.mode != "never"
        units = await weigher.weigh_units(conversation.msgs, thinking)
        if not lowering.history.shows_everything:
            is_visible = lowering.history.is_visible
            visible = (number for number in reversed(units.numbers) if is_visible(units.unit(number)))
            units = replace(units, newest_visible=next(visible, None))
        weigh, cut_first = weigher.get_weigh(thinking), frozenset(budget.cut_first)
        cuts = CutPlan(budget.strategies, units, budget.limit, weigh, cut_first)
        summarize = next((item for item in budget.strategies if isinstance(item, Summarize)), None)
        sizes = RequestSizes(lowering, budget.counter, conversation, ledger, cuts)
        return cls(lowering, budget, units, cuts, sizes, summarize)

    async def plan(self) -> Plan:
        """Returns the plan within the budget.

        Raises:
            BudgetError: The smallest request does not fit.
            LossError: Content would be lost, and `on_loss` is `raise`.
        """
        count = await self._find_cut()
        if not await self._fits(count):
            await self._raise_budget_error()
        while count and self.summarize and not await self._fits_with_summaries(self.summarize, count):
            if count >= self.cuts.end:
                await self._raise_budget_error()
            count = self.cuts.position_after(count)
        return await self._create_plan(count)

    # -- the position of the cut -----------------------------------------------------------------------------

    async def _find_cut(self) -> EditCount:
        """Returns the first position at which the request fits, or the end of the cut plan if there is none."""
        if self.sizes.needs_loading:
            await self._measure_text_files()
        has_remote_counter = self.sizes.has_remote_counter
        if self.cuts.is_exact and has_remote_counter and not self.sizes.needs_loading:
            await self._raise_on_certain_loss(self.cuts.end)
            return await self._find_fewest()
        if self.sizes.needs_loading and has_remote_counter:
            await self._compare_counters()
        count = await self._search("local", self.sizes.estimated, self._fits_locally)
        await self._raise_on_certain_loss(self.cuts.end if has_remote_counter else count)
        if has_remote_counter or self.sizes.needs_loading:
            # Media that the cut drops are never loaded.
            too_large = self.cuts.position_before(count) if self.sizes.needs_loading else _NONE_TOO_LARGE
            count = await self._search("counter", self.sizes.counted, self._fits, too_large, count)
        return count

    async def _measure_text_files(self) -> None:
        """Measures text files before any file is loaded, so that files in dropped messages are never loaded."""
        await self._raise_on_certain_loss(self.cuts.end)
        if await self.lowering.measure_text_files(self.sizes.conversation, self.sizes.ledger):
            self.sizes.estimated.clear()

    async def _compare_counters(self) -> None:
        """Sets `counter_ratio` from the smallest request.

        Without the ratio, media would be loaded for messages that the cut then drops, because the local counter
        may count fewer tokens than the budget's counter.
        """
        end = self.cuts.end
        if 2 * self.units.sums[-1] > self.budget.limit:
            counted, local = (await self.sizes.measure(end))[1], (await self.sizes.estimate(end))[1]
            self.counter_ratio = max(1.0, counted / max(local, 1))

    async def _search(
        self,
        counter: str,
        sizes: Sizes,
        fits: Callable[[EditCount], Awaitable[bool]],
        too_large: EditCount = _NONE_TOO_LARGE,
        guess: EditCount | None = None,
    ) -> EditCount:
        """Returns the first position at which the request fits by one counter.

        The units remember that the position before it is too large.
        """
        search = CutSearch(self.cuts, self._get_limit(EditCount(1)), fits, sizes)
        too_large = max(too_large, self._find_known_too_large(counter))
        if too_large >= 0:
            guess = search.move_on(too_large)
        elif guess is None:
            guess = await self._guess()
        count = await search.find_first(guess, too_large)
        if await fits(count):
            self._remember(counter, self.cuts.position_before(count), sizes)
        return count

    async def _find_fewest(self) -> EditCount:
        """Returns the fewest edits after which the request fits. Measures O(log n) requests."""
        end = self.cuts.end
        if await self._fits(NO_EDITS):
            return NO_EDITS
        return await search_cut(self._fits, 0, end) if await self._fits(end) else end

    async def _guess(self) -> EditCount:
        """Returns a position to start with, estimated from the weights of the units and the smallest request."""
        if self.units.sums[-1] <= self.budget.limit:
            return NO_EDITS
        end = self.cuts.end
        free = self._get_limit(EditCount(1)) - (await self.sizes.estimate(end))[1]
        if free < 0:
            return end
        return self.cuts.position_from(self.cuts.count_for(self.cuts.weight(end) + free))

    def _find_known_too_large(self, counter: str) -> EditCount:
        """Returns the last position at which the request of the shorter conversation did not fit, or -1."""
        conditions, length, count = self.units.known_too_large.get(counter, (None, 0, _NONE_TOO_LARGE))
        is_valid = length <= len(self.units.msgs) and conditions == self._conditions
        return count if is_valid else _NONE_TOO_LARGE

    @property
    def _conditions(self) -> object:
        """Everything besides the conversation and the cut that affects the size of a request, as a key."""
        return (self.lowering.spec, self.lowering.history, self.budget)

    def _remember(self, counter: str, count: EditCount, sizes: Sizes) -> None:
        """Remembers that the request at a position is too large, unless more messages could make it smaller."""
        is_deterministic = sizes is self.sizes.estimated or self.budget.counter.deterministic
        is_lasting = (
            is_deterministic
            and self.cuts.order_is_stable
            and self.lowering.history.shows_everything
            and not has_media(self.sizes.conversation)
        )
        if is_lasting and count in sizes and sizes[count][1] > self._get_limit(count) + _SLACK:
            self.units.known_too_large[counter] = (self._conditions, len(self.units.msgs), count)

    # -- sizes ---------------------------------------------------------------------------------------------

    def _get_limit(self, count: EditCount) -> int:
        return self.budget.limit - (self.summarize.max_tokens if self.summarize and count else 0)

    async def _fits_locally(self, count: EditCount) -> bool:
        return (await self.sizes.estimate(count))[1] * self.counter_ratio <= self._get_limit(count)

    async def _fits(self, count: EditCount) -> bool:
        return (await self.sizes.measure(count))[1] <= self._get_limit(count)

    # -- the cut conversation --------------------------------------------------------------------------------

    async def _fits_with_summaries(self, summarize: Summarize, count: EditCount) -> bool:
        numbers = self.cuts.dropped_by(count, summarize)
        if not numbers:
            return True
        dropped = [msg for number in numbers for msg in self.units.unit(number)]
        edited = self.sizes.edit(count)
        conversation = edited.apply(await summarize.summaries(dropped), numbers[0])
        self.summarized[count] = conversation
        ledger = self.sizes.ledger.copy()
        noun = "message that was" if len(dropped) == 1 else "messages that were"
        ledger.add_synthesis("summary", f"replaces {len(dropped)} {noun} cut to fit the budget")
        self.sizes.counted[count] = await self.sizes.load_and_count(conversation, ledger, edited)
        return self.sizes.counted[count][1] <= self.budget.limit

    async def _raise_on_certain_loss(self, count: EditCount) -> None:
        """Raises LossError if content is already known to be lost before any file or URL is read."""
        if self.lowering.on_loss == "raise":
            ledger = (await self.sizes.estimate(count))[0].ledger.copy()
            self.sizes.edit(count).record(ledger)  # a cut is no loss
            self.lowering.raise_on_loss(ledger)

    async def _create_plan(self, count: EditCount) -> Plan:
        lowered, tokens = await self.sizes.measure(count)
        edited = self.sizes.edit(count)
        edited.record(lowered.ledger)
        self.lowering.raise_on_loss(lowered.ledger)
        if not edited.changes:
            return lowered.plan(tuple(self.sizes.ledger.msgs), tokens)
        weight = self.cuts.weight(count)
        saved = self.cuts.weight(NO_EDITS) - weight
        uncached = weight - self.units.start(edited.changes[0].first)
        altered = tuple(edited.changed_places)
        stale = tuple(map(format_place, sorted(lowered.stale)))
        cut = Cut(edited.dropped_messages, edited.dropped_units, saved, altered, uncached, stale)
        history = without_blocks(self.summarized.get(count) or edited.apply(), lowered.stale)
        return lowered.plan(tuple(history.msgs), tokens, cut)

    # -- errors ----------------------------------------------------------------------------------------------

    async def _raise_budget_error(self) -> None:
        """Raises BudgetError with a limit under which the same call succeeds.

        This method tries larger limits until one succeeds, because the limit may also change where a cut lies.
        """
        fitter, needed = self, await self._measure_smallest()
        for _ in range(_MAX_LIMITS):
            larger = fitter._with_limit(needed)
            if larger.cuts.steps == fitter.cuts.steps:
                break
            fitter, size = larger, await larger._measure_smallest()
            if size <= needed:
                break
            needed = size
        else:
            needed = max(needed, (await self.sizes.measure(NO_EDITS))[1])
        origins = fitter.sizes.edit(fitter.cuts.end).apply().origins
        indexes = sorted({index for origin in origins if (index := _find_message_index(origin)) is not None})
        raise BudgetError(self.budget.limit, needed, [format_place((index,)) for index in indexes])

    async def _measure_smallest(self) -> int:
        """Returns the tokens of the request after all edits, plus the tokens that summaries may need."""
        lowered, size = await self.sizes.measure(self.cuts.end)
        if self.summarize is None or not self.cuts.end:
            return size
        layout = self.lowering.spec.capabilities.layout
        estimate = max(CharacterTokenCounter().measure(lowered.request, layout), 1)  # the unit of `max_tokens`
        return size + -(-self.summarize.max_tokens * max(size, estimate) // estimate)

    def _with_limit(self, limit: int) -> BudgetFitter:
        budget, cuts = replace(self.budget, max_tokens=limit + self.budget.reserve), self.cuts.with_limit(limit)
        sizes = RequestSizes(self.lowering, budget.counter, self.sizes.conversation, self.sizes.ledger, cuts)
        return replace(self, budget=budget, cuts=cuts, sizes=sizes, summarized={})


def _find_message_index(origin: MessageOrigin) -> int | None:
    """Returns the index of the input message that a message comes from, or None if there is none."""
    if isinstance(origin, int):
        return origin
    return next((path[0] for path in origin if not isinstance(path, str)), None)
