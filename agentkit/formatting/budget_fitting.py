"""Budget fitting: finds the smallest cut after which the request of a conversation fits the budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from agentkit.budget.budget import Budget
from agentkit.budget.cut_plan import NO_EDITS, CutPlan, search_cut
from agentkit.budget.edits import EditedConversation
from agentkit.budget.summaries import Summarize
from agentkit.budget.units import EditCount, Units, Weigher
from agentkit.errors import BudgetError
from agentkit.formatting.cut_search import CutSearch
from agentkit.formatting.lowering import Lowered, Lowering, has_media
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import format_place
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import MessageOrigin, TracedConversation
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.tokens.counters import LocalTokenCounter, TokenCounterBase, count_request
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["BudgetFitter"]

_SLACK = 64  # tokens by which a request may shrink although messages are added, because fillers or tags vanish

_NONE_TOO_LARGE = EditCount(-1)  # no position is known to be too large

_MAX_LIMITS = 8  # limits that are tried for a BudgetError, before the size of the whole conversation is used

_Sizes: TypeAlias = dict[EditCount, tuple[Lowered, int]]
"""Requests and their numbers of tokens, by the number of edits of the cut."""


@dataclass(slots=True)
class BudgetFitter:
    """Search for the smallest cut after which the request of one conversation fits the budget.

    A cut plan lists the edits in order. A position in the plan is a number of edits at which a cut may end.
    Weights are estimates that only guide the search. The decision comes from the size of complete requests.

    A request that is too large stays too large when messages are added. So the units remember positions that were
    too large. If the budget's counter needs I/O, a local counter searches first. Media are loaded only for
    messages that remain after the cut.

    Attributes:
        conversation: The repaired conversation before the cut.
        local: The token counter that needs no I/O.
        summarize: The strategy that writes summaries. None if the budget has no such strategy.
        needs_loading: True if media must be read, fetched or resized.
        counter_ratio: Number of tokens that the budget's counter counts for each token of the local counter. At
            least 1.
        sizes: The requests measured by the budget's counter.
        summarized: The conversations with summaries, by the number of edits.
        local_sizes: The requests as far as they are known without I/O, measured by the local counter.
    """

    lowering: Lowering
    budget: Budget
    conversation: TracedConversation
    ledger: Ledger
    units: Units
    cuts: CutPlan
    local: LocalTokenCounter
    summarize: Summarize | None
    needs_loading: bool
    counter_ratio: float = 1.0
    sizes: _Sizes = field(default_factory=dict[EditCount, "tuple[Lowered, int]"])
    summarized: dict[EditCount, TracedConversation] = field(default_factory=dict[EditCount, TracedConversation])
    local_sizes: _Sizes = field(default_factory=dict[EditCount, "tuple[Lowered, int]"])

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
        needs_loading = lowering.needs_loading(conversation)
        local = budget.counter.local_counter
        return cls(lowering, budget, conversation, ledger, units, cuts, local, summarize, needs_loading)

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
        if self.needs_loading:
            await self._measure_text_files()
        has_remote_counter = self.budget.counter is not self.local
        if self.cuts.is_exact and has_remote_counter and not self.needs_loading:
            await self._raise_on_certain_loss(self.cuts.end)
            return await self._find_fewest()
        if self.needs_loading and has_remote_counter:
            await self._compare_counters()
        count = await self._search("local", self.local_sizes, self._fits_locally)
        await self._raise_on_certain_loss(self.cuts.end if has_remote_counter else count)
        if has_remote_counter or self.needs_loading:
            # Media that the cut drops are never loaded.
            too_large = self.cuts.position_before(count) if self.needs_loading else _NONE_TOO_LARGE
            count = await self._search("counter", self.sizes, self._fits, too_large, count)
        return count

    async def _measure_text_files(self) -> None:
        """Measures text files before any file is loaded, so that files in dropped messages are never loaded."""
        await self._raise_on_certain_loss(self.cuts.end)
        if await self.lowering.measure_text_files(self.conversation, self.ledger):
            self.local_sizes.clear()

    async def _compare_counters(self) -> None:
        """Sets `counter_ratio` from the smallest request.

        Without the ratio, media would be loaded for messages that the cut then drops, because the local counter
        may count fewer tokens than the budget's counter.
        """
        end = self.cuts.end
        if 2 * self.units.sums[-1] > self.budget.limit:
            counted, local = (await self._measure(end))[1], (await self._measure_locally(end))[1]
            self.counter_ratio = max(1.0, counted / max(local, 1))

    async def _search(
        self,
        counter: str,
        sizes: _Sizes,
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
        free = self._get_limit(EditCount(1)) - (await self._measure_locally(end))[1]
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

    def _remember(self, counter: str, count: EditCount, sizes: _Sizes) -> None:
        """Remembers that the request at a position is too large, unless more messages could make it smaller."""
        is_deterministic = sizes is self.local_sizes or self.budget.counter.deterministic
        is_lasting = (
            is_deterministic
            and self.cuts.order_is_stable
            and self.lowering.history.shows_everything
            and not has_media(self.conversation)
        )
        if is_lasting and count in sizes and sizes[count][1] > self._get_limit(count) + _SLACK:
            self.units.known_too_large[counter] = (self._conditions, len(self.units.msgs), count)

    # -- sizes ---------------------------------------------------------------------------------------------

    def _get_limit(self, count: EditCount) -> int:
        return self.budget.limit - (self.summarize.max_tokens if self.summarize and count else 0)

    async def _fits_locally(self, count: EditCount) -> bool:
        return (await self._measure_locally(count))[1] * self.counter_ratio <= self._get_limit(count)

    async def _fits(self, count: EditCount) -> bool:
        return (await self._measure(count))[1] <= self._get_limit(count)

    async def _measure_locally(self, count: EditCount) -> tuple[Lowered, int]:
        if count not in self.local_sizes:
            edited = self._edit(count)
            lowered = self.lowering.lower_without_io(edited.apply(), self.ledger, edited.first_change)
            self.local_sizes[count] = (lowered, await self._count(self.local, lowered))
        return self.local_sizes[count]

    async def _measure(self, count: EditCount) -> tuple[Lowered, int]:
        if count not in self.sizes:
            edited = self._edit(count)
            conversation = edited.apply()
            needs_loading = self.needs_loading and self.lowering.needs_loading(conversation)
            if self.local is self.budget.counter and not needs_loading:
                self.sizes[count] = await self._measure_locally(count)
            else:
                self.sizes[count] = await self._load_and_count(conversation, self.ledger.copy(), edited)
        return self.sizes[count]

    async def _load_and_count(
        self, conversation: TracedConversation, ledger: Ledger, edited: EditedConversation
    ) -> tuple[Lowered, int]:
        lowered = await self.lowering.load_and_lower(conversation, ledger, edited.first_change)
        return lowered, await self._count(self.budget.counter, lowered)

    async def _count(self, counter: TokenCounterBase, lowered: Lowered) -> int:
        return await count_request(counter, lowered.request, self.lowering.spec.capabilities.layout)

    # -- the cut conversation --------------------------------------------------------------------------------

    def _edit(self, count: EditCount) -> EditedConversation:
        return EditedConversation(self.conversation, self.units, self.cuts.changes(count) if count else ())

    async def _fits_with_summaries(self, summarize: Summarize, count: EditCount) -> bool:
        numbers = self.cuts.dropped_by(count, summarize)
        if not numbers:
            return True
        dropped = [msg for number in numbers for msg in self.units.unit(number)]
        edited = self._edit(count)
        conversation = edited.apply(await summarize.summaries(dropped), numbers[0])
        self.summarized[count] = conversation
        ledger = self.ledger.copy()
        noun = "message that was" if len(dropped) == 1 else "messages that were"
        ledger.add_synthesis("summary", f"replaces {len(dropped)} {noun} cut to fit the budget")
        self.sizes[count] = await self._load_and_count(conversation, ledger, edited)
        return self.sizes[count][1] <= self.budget.limit

    async def _raise_on_certain_loss(self, count: EditCount) -> None:
        """Raises LossError if content is already known to be lost before any file or URL is read."""
        if self.lowering.on_loss == "raise":
            ledger = (await self._measure_locally(count))[0].ledger.copy()
            self._edit(count).record(ledger)  # a cut is no loss
            self.lowering.raise_on_loss(ledger)

    async def _create_plan(self, count: EditCount) -> Plan:
        lowered, tokens = await self._measure(count)
        edited = self._edit(count)
        edited.record(lowered.ledger)
        self.lowering.raise_on_loss(lowered.ledger)
        if not edited.changes:
            return lowered.plan(tuple(self.ledger.msgs), tokens)
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
            needed = max(needed, (await self._measure(NO_EDITS))[1])
        origins = fitter._edit(fitter.cuts.end).apply().origins
        indexes = sorted({index for origin in origins if (index := _find_message_index(origin)) is not None})
        raise BudgetError(self.budget.limit, needed, [format_place((index,)) for index in indexes])

    async def _measure_smallest(self) -> int:
        """Returns the tokens of the request after all edits, plus the tokens that summaries may need."""
        lowered, size = await self._measure(self.cuts.end)
        if self.summarize is None or not self.cuts.end:
            return size
        layout = self.lowering.spec.capabilities.layout
        estimate = max(CharacterTokenCounter().measure(lowered.request, layout), 1)  # the unit of `max_tokens`
        return size + -(-self.summarize.max_tokens * max(size, estimate) // estimate)

    def _with_limit(self, limit: int) -> BudgetFitter:
        budget, cuts = replace(self.budget, max_tokens=limit + self.budget.reserve), self.cuts.with_limit(limit)
        return replace(self, budget=budget, cuts=cuts, sizes={}, summarized={}, local_sizes={})


def _find_message_index(origin: MessageOrigin) -> int | None:
    """Returns the index of the input message. Returns None for a message that has no input block."""
    if isinstance(origin, int):
        return origin
    return next((path[0] for path in origin if not isinstance(path, str)), None)
