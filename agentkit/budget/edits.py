"""`EditedConversation`: a conversation after a cut's edits, with the account of what they did to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentkit.budget.cut_plan import Left
from agentkit.budget.units import Units
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath, format_place
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.messages.blocks import Block, ToolResultBlock
from agentkit.messages.message import Msg

__all__ = ["EditedConversation"]

_DROPPED = Note(Disposition.DROPPED, "cut to keep the request within the budget")


@dataclass(slots=True)
class EditedConversation:
    """A conversation after some edits: `runs` of units (from, to), in order, each with what is left of it."""

    whole: TracedConversation
    units: Units
    runs: Sequence[tuple[int, int, Left]]
    numbers: list[int] = field(default_factory=list[int])  # of input messages dropped, whole or in part
    dropped: int = 0  # units
    altered: list[str] = field(default_factory=list[str])  # places

    def draft(self, summaries: Iterable[Msg] = (), replaced: int = -1) -> TracedConversation:
        """The conversation that is left, with summaries in the place of the run that holds the unit `replaced`.

        What is left of a message keeps the places of its blocks.
        """
        whole = self.whole
        if not self.runs:
            return whole
        msgs: list[Msg] = []
        origins: list[int | tuple[Provenance, ...]] = []
        done = 0
        for first, last, left in self.runs:
            start, stop = self._span(first, last)
            msgs += [*whole.msgs[done:start], *left]
            origins += whole.origins[done:start]
            if left:
                origins += map(_edited_origin, whole.msgs[start:stop], left, whole.origins[start:stop])
            elif first <= replaced < last:
                found = list(summaries)
                msgs += found
                origins += [("summary",)] * len(found)
            done = stop
        return TracedConversation([*msgs, *whole.msgs[done:]], [*origins, *whole.origins[done:]])

    @property
    def first_change(self) -> int | None:
        """The number of the first input message that is dropped or edited."""
        if not self.runs:
            return None
        origin = self.whole.origins[self.units.starts[self.runs[0][0]]]
        paths = [(origin,)] if isinstance(origin, int) else [path for path in origin if not isinstance(path, str)]
        return min((path[0] for path in paths), default=0)

    def weight_before(self) -> int:
        """The weight of the units before the first change."""
        first = self.runs[0][0]
        return self.units.end(first) - self.units.weight(first)

    def account(self, ledger: Ledger) -> None:
        """Write down every unit that was dropped, and every block that something was taken from."""
        gone: list[int] = []
        for first, last, left in self.runs:
            start, stop = self._span(first, last)
            if left:
                for at, msg in zip(range(start, stop), left, strict=True):
                    self._compare(self.whole.msgs[at], msg, self.whole.origins[at], ledger)
            else:
                self.dropped += last - first
                gone.extend(range(start, stop))
        self.numbers = sorted(self._note_dropped(gone, ledger))

    def _span(self, first: int, last: int) -> tuple[int, int]:
        return self.units.span(first)[0], self.units.span(last - 1)[1]

    def _note_dropped(self, gone: Sequence[int], ledger: Ledger) -> Collection[int]:
        """The numbers of the input messages that what is gone was part of."""
        origins = [self.whole.origins[at] for at in gone]
        if {*map(type, origins)} <= {int}:
            ledger.note_messages(cast("list[int]", origins), _DROPPED)
            return cast("list[int]", origins)
        numbers = [origin for origin in origins if isinstance(origin, int)]
        ledger.note_messages(numbers, _DROPPED)
        found = {*numbers}
        for at, whole in zip(gone, origins, strict=True):
            for origin in () if isinstance(whole, int) else block_origins(self.whole.msgs[at], whole):
                if not isinstance(origin, str):
                    ledger.note(origin, _DROPPED)
                    found.add(origin[0])
        return found

    def _compare(self, before: Msg, after: Msg, whole: int | tuple[Provenance, ...], ledger: Ledger) -> None:
        if after is before:
            return
        for old, new, origin in zip(before.blocks, after.blocks, block_origins(before, whole), strict=False):
            for path, kind in () if isinstance(origin, str) else _edits(old, new, origin):
                ledger.note(path, Note(kind, "changed to keep the request within the budget"))
                self.altered.append(format_place(path))


def _edits(old: Block, new: Block, path: BlockPath) -> Iterator[tuple[BlockPath, Disposition]]:
    """What happened to a block; of a result's list of items, to each of them."""
    if new is old:
        return
    if isinstance(old, ToolResultBlock) and isinstance(new, ToolResultBlock) and not isinstance(new.output, str):
        for at, (before, after) in enumerate(zip(old.items, new.items, strict=False)):
            if before is not after:
                yield (*path, at), _kind(before.type, after.type)
    else:
        yield path, _kind(old.type, new.type)


def _kind(before: str, after: str) -> Disposition:
    return Disposition.SHRUNK if before == after else Disposition.DESCRIBED


def _edited_origin(before: Msg, after: Msg, origin: int | tuple[Provenance, ...]) -> int | tuple[Provenance, ...]:
    """Where the blocks of an edited message come from."""
    if len(before.blocks) == len(after.blocks):
        return origin
    known = {id(block): path for block, path in zip(before.blocks, block_origins(before, origin), strict=True)}
    return tuple(known.get(id(block), "cut strategy") for block in after.blocks)
