"""A conversation brought within a budget: where to cut, and the plan that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.blocks import Block, ToolResultBlock
from agentkit.budget import Budget
from agentkit.errors import BudgetError, OptionError
from agentkit.exchanges import Draft, Origin, block_origins, prompt_length
from agentkit.ledger import BlockPath, Cut, Disposition, Ledger, Note, Plan, place_of
from agentkit.lowering import Lowered, Lowering, needs_reading
from agentkit.messages import Msg, Trait
from agentkit.schedule import Schedule, search_cut
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
    smallest: int = 0  # the size of the smallest request, where it was measured
    found: dict[int, tuple[Lowered, int]] = field(default_factory=dict[int, "tuple[Lowered, int]"])
    guessed: dict[int, tuple[Lowered, int]] = field(default_factory=dict[int, "tuple[Lowered, int]"])

    @classmethod
    def of(cls, lowering: Lowering, budget: Budget, weigher: Weigher, whole: Draft, ledger: Ledger) -> Cutting:
        """The cutting of a conversation in normal form."""
        units = weigher.units(whole.msgs)
        local = budget.counter.weigher
        first = frozenset(budget.cut_first)
        schedule = Schedule(budget.strategies, units, budget.limit, local.weight, first)
        return cls(lowering, budget, whole, ledger, units, schedule, local)

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
        return await self._plan(await self._from(count))

    # -- where cuts lie on a grid --------------------------------------------------------------------------

    async def _first_stop(self) -> int:
        """The first stop at which the request fits by the local counter."""
        limit = self.budget.limit
        sure = self._weights_hold()
        if not (sure and self.units.sums[-1] > _FAR * limit) and await self._seems_to_fit(0):
            return 0
        if sure:
            return self.schedule.stop(max(1, self.schedule.place(limit - self._head())))
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
                self._refuse((await self._size(count))[1])
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
            lowered = self.lowering.foresee(self._draft(count), self.ledger)
            self.guessed[count] = (lowered, self.local.measure(lowered.request))
        return self.guessed[count]

    async def _seems_to_fit(self, count: int) -> bool:
        return self._foreseen(count)[1] <= self.budget.limit

    async def _fits(self, count: int) -> bool:
        return (await self._size(count))[1] <= self.budget.limit

    async def _size(self, count: int) -> tuple[Lowered, int]:
        """The very request after so many edits, and its tokens by the budget's counter."""
        if count not in self.found:
            self.found[count] = await self._measured(count)
        return self.found[count]

    async def _measured(self, count: int) -> tuple[Lowered, int]:
        draft = self._draft(count)
        if self.local is self.budget.counter and not needs_reading(draft.msgs):
            return self._foreseen(count)
        lowered = await self.lowering.read_and_lower(draft, self.ledger.copy())
        return lowered, await self._count(lowered.request)

    async def _count(self, request: dict[str, Any]) -> int:
        tokens: object = await self.budget.counter.count(request)
        if not isinstance(tokens, int):
            reason = f"it counted {tokens!r}, which is no whole number"
            raise OptionError("budget.counter", reason, "Return an int.")
        return tokens

    # -- the cut conversation --------------------------------------------------------------------------------

    def _draft(self, count: int) -> Draft:
        """The conversation after so many edits; what is left of a message keeps the places of its blocks."""
        if not count:
            return self.whole
        units, whole = self.units, self.whole
        msgs: list[Msg] = []
        origins: list[int | tuple[Origin, ...]] = []
        done = 0
        for first, last, left in self.schedule.changes(count):
            start, stop = units.span(first)[0], units.span(last - 1)[1]
            msgs += [*whole.msgs[done:start], *left]
            origins += whole.origins[done:start]
            if left:
                origins += map(_edited_origin, whole.msgs[start:stop], left, whole.origins[start:stop])
            done = stop
        return Draft([*msgs, *whole.msgs[done:]], [*origins, *whole.origins[done:]])

    def _foresee_loss(self, count: int) -> None:
        """Loss that needs no I/O to be known, before there is any."""
        if self.lowering.on_loss == "raise":
            self.lowering.refuse_loss(self.lowering.foresee(self._draft(count), self.ledger).ledger)

    def _refuse(self, needed: int) -> None:
        places = {_place(origin) for origin in self._draft(len(self.schedule)).origins}
        raise BudgetError(self.budget.limit, needed, sorted(places - {""}, key=_by_number))

    async def _plan(self, count: int) -> Plan:
        lowered, tokens = await self._size(count)
        self.lowering.refuse_loss(lowered.ledger)
        if not count:
            return lowered.plan(tuple(self.ledger.msgs), tokens)
        runs = self.schedule.changes(count)
        account = _Account(self, lowered.ledger, runs)
        account.write()
        weight = self.schedule.weight(count)
        whole = self.found.get(0) or self.guessed.get(0)
        saved = whole[1] - tokens if whole else self.schedule.weight(0) - weight
        first = runs[0][0]
        behind = weight - self.units.end(first) + self.units.weight(first)
        cut = Cut(account.numbers, account.units, saved, tuple(account.altered), behind)
        return lowered.plan(tuple(self._draft(count).msgs), tokens, cut)


_KINDS = (Trait.IMAGE, Trait.AUDIO, Trait.VIDEO, Trait.DOCUMENT)


@dataclass(slots=True)
class _Account:
    """What a cut did, written into the ledger."""

    cutting: Cutting
    ledger: Ledger
    runs: list[tuple[int, int, tuple[Msg, ...]]]
    numbers: Sequence[int] = ()
    units: int = 0
    altered: list[str] = field(default_factory=list[str])

    def write(self) -> None:
        """Note every unit that was dropped, and every block that something was taken from."""
        whole, units = self.cutting.whole, self.cutting.units
        gone: list[int] = []
        for first, last, left in self.runs:
            start, stop = units.span(first)[0], units.span(last - 1)[1]
            if left:
                for at, msg in zip(range(start, stop), left, strict=True):
                    self._compare(whole.msgs[at], msg, block_origins(whole.msgs[at], whole.origins[at]))
            else:
                self.units += last - first
                gone.extend(range(start, stop))
        self._note_dropped(whole, gone)

    def _note_dropped(self, whole: Draft, gone: Sequence[int]) -> None:
        note = Note(Disposition.DROPPED, "cut to keep the request within the budget")
        numbers: list[int] = []
        parts: set[int] = set()
        for at in gone:
            origin = whole.origins[at]
            if isinstance(origin, int):
                numbers.append(origin)
                continue
            for path in block_origins(whole.msgs[at], origin):
                if not isinstance(path, str):
                    self.ledger.note(path, note)
                    parts.add(path[0])
        self.ledger.note_messages(numbers, note)
        self.numbers = sorted({*numbers, *parts})

    def _compare(self, before: Msg, after: Msg, origins: Sequence[Origin]) -> None:
        if after is before:
            return
        for old, new, origin in zip(before.blocks, after.blocks, origins, strict=True):
            if new is not old and not isinstance(origin, str):
                self._note_edited(old, new, origin)

    def _note_edited(self, old: Block, new: Block, path: BlockPath) -> None:
        """One block that was edited; of a result's list of items, those that were."""
        if isinstance(old, ToolResultBlock) and isinstance(new, ToolResultBlock):
            pairs = list(zip(old.items, new.items, strict=False))
            if len(old.items) == len(new.items) and not isinstance(old.output, str):
                for at, (before, after) in enumerate(pairs):
                    if before is not after:
                        self._note(before.type, after.type, (*path, at))
                return
        self._note(old.type, new.type, path)

    def _note(self, before: str, after: str, path: BlockPath) -> None:
        kind = Disposition.SHRUNK if before == after else Disposition.DESCRIBED
        self.ledger.note(path, Note(kind, "changed to keep the request within the budget"))
        self.altered.append(place_of(path))


def _edited_origin(before: Msg, after: Msg, origin: int | tuple[Origin, ...]) -> int | tuple[Origin, ...]:
    """Where the blocks of an edited message come from."""
    if len(before.blocks) == len(after.blocks):
        return origin
    known = {id(block): path for block, path in zip(before.blocks, block_origins(before, origin), strict=True)}
    return tuple(known.get(id(block), "cut strategy") for block in after.blocks)


def _place(origin: int | tuple[Origin, ...]) -> str:
    if isinstance(origin, int):
        return place_of((origin,))
    paths = [path for path in origin if not isinstance(path, str)]
    return place_of((paths[0][0],)) if paths else ""


def _by_number(place: str) -> int:
    return int(place[5:-1])
