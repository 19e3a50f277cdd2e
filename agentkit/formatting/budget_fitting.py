"""Budget fitting: finds the smallest cut after which the request of a conversation fits the budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agentkit.budget.budget import Budget
from agentkit.budget.cut_plan import NO_EDITS, CutPlan
from agentkit.budget.summaries import Summarize
from agentkit.budget.units import EditCount, Units, Weigher
from agentkit.errors import BudgetError
from agentkit.formatting.cut_search import CutSearch, search_cut
from agentkit.formatting.request_builder import RequestBuilder, has_media
from agentkit.formatting.request_sizes import RequestSizes, Sizes
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import format_place
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import MessageOrigin, TracedConversation
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["BudgetFitter"]

# New messages can make a request smaller by up to this number of tokens.
# The reason is that added texts, such as a filler turn, can become unnecessary.
_SLACK = 64

_NONE_TOO_LARGE = EditCount(-1)  # no request is known to be too large

# A BudgetError names a token limit that is large enough. At most `_MAX_LIMITS` limits are tried.
# If none of these limits is large enough, the error names the size of the request without a cut.
_MAX_LIMITS = 8


@dataclass(slots=True)
class BudgetFitter:
    """Search for the smallest cut after which the request of one conversation fits the budget.

    An edit drops or shortens one part of the conversation. A cut plan lists all edits, and a cut applies the first
    n edits of the list. The search guesses n from the token estimates of single messages, and then counts the
    tokens of complete requests to check n.

    A request that is too large usually stays too large when messages are added. Cuts that were too small for a
    conversation are therefore not tried again for a longer conversation. If the budget's counter needs I/O, the
    search first uses a local counter. Media are loaded only for messages that remain after the cut.

    Attributes:
        summarize: The budget's strategy that writes summaries. None if the budget has no such strategy.
        counter_ratio: The count of the budget's counter, divided by the count of the local counter for the same
            request. At least 1.
        summarized: Maps the number of edits of a cut to the conversation after the cut, with the summaries
            inserted.
    """

    builder: RequestBuilder
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
        builder: RequestBuilder,
        budget: Budget,
        weigher: Weigher,
        conversation: TracedConversation,
        ledger: Ledger,
    ) -> BudgetFitter:
        """Estimates the tokens of a repaired conversation, and returns the fitter for the conversation."""
        thinking = builder.spec.capabilities.thinking.mode != "never"
        units = await weigher.weigh_units(conversation.msgs, thinking)
        if not builder.history.shows_everything:
            is_visible = builder.history.is_visible
            visible = (number for number in reversed(units.numbers) if is_visible(units.unit(number)))
            units = replace(units, newest_visible=next(visible, None))
        weigh, cut_first = weigher.get_weigh(thinking), frozenset(budget.cut_first)
        cuts = CutPlan(budget.strategies, units, budget.limit, weigh, cut_first)
        summarize = next((item for item in budget.strategies if isinstance(item, Summarize)), None)
        sizes = RequestSizes(builder, budget.counter, conversation, ledger, cuts)
        return cls(builder, budget, units, cuts, sizes, summarize)

    async def plan(self) -> Plan:
        """Returns a plan whose request fits the budget.

        Raises:
            BudgetError: If even the smallest request does not fit.
            LossError: If content would be lost and `on_loss` is `raise`.
        """
        count = await self._find_cut()
        if not await self._fits(count):
            await self._raise_budget_error()
        while not await self._fits_with_summaries(count):
            if count >= self.cuts.end:
                await self._raise_budget_error()
            count = self.cuts.position_after(count)
        return await self._create_plan(count)

    # -- the position of the cut -----------------------------------------------------------------------------

    async def _find_cut(self) -> EditCount:
        """Returns the smallest allowed number of edits after which the request fits the budget.

        Returns the number of all edits if the request never fits.
        """
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
            # If media must be loaded, no cut of fewer than `count` edits is tried.
            # Media that a cut of `count` edits drops are therefore never loaded.
            too_large = self.cuts.position_before(count) if self.sizes.needs_loading else _NONE_TOO_LARGE
            count = await self._search("counter", self.sizes.counted, self._fits, too_large, count)
        return count

    async def _measure_text_files(self) -> None:
        """Gets the sizes of text files without reading them.

        The search uses these sizes, so that text files in dropped messages are never read.
        """
        await self._raise_on_certain_loss(self.cuts.end)
        if await self.builder.measure_text_files(self.sizes.conversation, self.sizes.ledger):
            self.sizes.estimated.clear()

    async def _compare_counters(self) -> None:
        """Sets `counter_ratio` by counting the smallest request with the local counter and the budget's counter.

        The local counter may count fewer tokens than the budget's counter. Without the ratio, the search with the
        local counter could then find a cut that is too small. Media would be loaded for messages that the final
        cut drops.
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
        """Returns the smallest allowed number of edits after which the request fits according to `fits`.

        The method stores the largest number of edits that is not enough. The search in a longer conversation can
        then start after this number.
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
        elif too_large < NO_EDITS and await fits(NO_EDITS):
            return NO_EDITS  # a cut needs free tokens for its summaries, but an uncut request does not
        return count

    async def _find_fewest(self) -> EditCount:
        """Returns the smallest number of edits after which the request fits the budget.

        Returns the number of all edits if the request never fits. The search measures O(log n) requests.
        """
        end = self.cuts.end
        if await self._fits(NO_EDITS):
            return NO_EDITS
        return await search_cut(self._fits, 0, end) if await self._fits(end) else end

    async def _guess(self) -> EditCount:
        """Returns the number of edits at which the search starts.

        The number is estimated from the size of the smallest request and the token estimates of the messages.
        """
        if self.units.sums[-1] <= self.budget.limit:
            return NO_EDITS
        end = self.cuts.end
        free = self._get_limit(EditCount(1)) - (await self.sizes.estimate(end))[1]
        return self.cuts.position_from(self.cuts.count_for(self.cuts.weight(end) + free))

    def _find_known_too_large(self, counter: str) -> EditCount:
        """Returns the largest number of edits that was not enough for an earlier, shorter conversation.

        Returns -1 if there is no such number.
        """
        conditions, length, count = self.units.known_too_large.get(counter, (None, 0, _NONE_TOO_LARGE))
        is_valid = length <= len(self.units.msgs) and conditions == self._conditions
        return count if is_valid else _NONE_TOO_LARGE

    @property
    def _conditions(self) -> object:
        """Key with all values that affect the size of a request, except the conversation and the cut."""
        return (self.builder.spec, self.builder.history, self.budget)

    def _remember(self, counter: str, count: EditCount, sizes: Sizes) -> None:
        """Records that `count` edits are not enough, unless more messages could make the request smaller."""
        is_deterministic = sizes is self.sizes.estimated or self.budget.counter.deterministic
        is_lasting = (
            is_deterministic
            and self.cuts.order_is_stable
            and self.builder.history.shows_everything
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

    async def _fits_with_summaries(self, count: EditCount) -> bool:
        if self.summarize is None or not count:
            return True
        numbers = self.cuts.dropped_by(count, self.summarize)
        if not numbers:
            return True
        dropped = [msg for number in numbers for msg in self.units.unit(number)]
        edited = self.sizes.edit(count)
        conversation = edited.apply(await self.summarize.summaries(dropped), numbers[0])
        self.summarized[count] = conversation
        ledger = self.sizes.ledger.copy()
        noun = "message" if len(dropped) == 1 else "messages"
        ledger.add_synthesis(
            "summary", f"replaces {len(dropped)} {noun} dropped to keep the request within the budget"
        )
        self.sizes.counted[count] = await self.sizes.load_and_count(conversation, ledger, edited)
        return self.sizes.counted[count][1] <= self.budget.limit

    async def _raise_on_certain_loss(self, count: EditCount) -> None:
        """Raises LossError if a loss is certain and `on_loss` is `raise`, before any file or URL is read.

        `count` is the number of edits of the cut.
        """
        if self.builder.on_loss == "raise":
            ledger = (await self.sizes.estimate(count))[0].ledger.copy()
            self.sizes.edit(count).record(ledger)  # content that the cut drops is not a loss
            self.builder.raise_on_loss(ledger)

    async def _create_plan(self, count: EditCount) -> Plan:
        built, tokens = await self.sizes.measure(count)
        edited = self.sizes.edit(count)
        edited.record(built.ledger)
        self.builder.raise_on_loss(built.ledger)
        if not edited.changes:
            return built.plan(tuple(self.sizes.ledger.msgs), tokens)
        weight = self.cuts.weight(count)
        saved = self.cuts.weight(NO_EDITS) - weight
        uncached = weight - self.units.start(edited.changes[0].first)
        altered = tuple(edited.changed_places)
        stale = tuple(map(format_place, sorted(built.stale)))
        cut = Cut(edited.dropped_messages, edited.dropped_units, saved, altered, uncached, stale)
        history = without_blocks(self.summarized.get(count) or edited.apply(), built.stale)
        return built.plan(tuple(history.msgs), tokens, cut)

    # -- errors ----------------------------------------------------------------------------------------------

    async def _raise_budget_error(self) -> None:
        """Raises BudgetError, which names a token limit that is large enough for the conversation.

        A larger limit can increase the distance between the points at which a cut may end, and therefore the size
        of the smallest request. This method tries larger limits until one of them is large enough.
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
        """Returns the number of tokens of the request after all edits, plus the tokens that summaries may need."""
        built, size = await self.sizes.measure(self.cuts.end)
        if self.summarize is None or not self.cuts.end:
            return size
        layout = self.builder.spec.capabilities.layout
        # `summarize.max_tokens` is a limit in estimated tokens.
        # The ratio of `size` to `estimate` converts this limit to tokens of the budget's counter.
        estimate = max(CharacterTokenCounter().measure(built.request, layout), 1)
        return size + -(-self.summarize.max_tokens * max(size, estimate) // estimate)

    def _with_limit(self, limit: int) -> BudgetFitter:
        cuts = self.cuts.with_limit(limit)
        sizes = RequestSizes(self.builder, self.budget.counter, self.sizes.conversation, self.sizes.ledger, cuts)
        return replace(self, cuts=cuts, sizes=sizes)


def _find_message_index(origin: MessageOrigin) -> int | None:
    """Returns the index of the input message that an origin refers to.

    Returns None if the origin belongs to a message that the pipeline added.
    """
    if isinstance(origin, int):
        return origin
    return next((path[0] for path in origin if not isinstance(path, str)), None)
