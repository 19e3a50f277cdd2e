"""`EditedConversation`: a conversation after the edits of a cut, and the ledger entries about the edits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from agentkit.budget.cut_plan import UnitChange
from agentkit.budget.units import MessageNumber, UnitNumber, Units
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath, format_place
from agentkit.ledger.provenance import (
    NormalForm,
    Provenance,
    TracedConversation,
    block_origins,
)
from agentkit.messages.blocks import Block, ToolResultBlock
from agentkit.messages.message import Msg
from agentkit.messages.system_prompt import prompt_length

__all__ = ["EditedConversation"]

_DROPPED = Note(Disposition.DROPPED, "cut to keep the request within the budget")
_CHANGED = "shortened or replaced by a note to keep the request within the budget"

_Origin: TypeAlias = int | tuple[Provenance, ...]


@dataclass(slots=True)
class EditedConversation:
    """Conversation before a cut, and the changes of the cut. `apply` returns the changed conversation.

    Attributes:
        conversation: The conversation before the cut.
        units: The units of this conversation. A unit is the smallest part that a cut can drop.
        changes: The changed units, in the order of the conversation.
        dropped_messages: Indexes of the input messages that lose at least one block. `record` sets this list.
        dropped_units: Number of dropped units. `record` sets this number.
        changed_places: Paths of the edited blocks, such as `msgs[3].content[1]`. `record` sets this list.
    """

    conversation: TracedConversation
    units: Units
    changes: Sequence[UnitChange]
    dropped_messages: list[int] = field(default_factory=list[int])
    dropped_units: int = 0
    changed_places: list[str] = field(default_factory=list[str])

    def apply(self, summaries: Iterable[Msg] = (), replaced: UnitNumber | None = None) -> TracedConversation:
        """Returns the conversation after the cut, with the origins of the remaining blocks.

        An origin is the path of a block in the caller's messages, or a name such as `summary` for an added block.

        Args:
            summaries: Summary messages to insert.
            replaced: Index of a dropped unit. The summaries are inserted at the position of this unit. None
                inserts no summaries.
        """
        before = self.conversation
        if not self.changes:
            return before
        msgs: list[Msg] = []
        origins: list[_Origin] = []
        position = 0
        for change in self.changes:
            start, stop = self._span(change)
            msgs += before.msgs[position:start]
            origins += before.origins[position:start]
            if change.remainder:
                msgs += change.remainder
                origins += map(
                    _edited_origin, before.msgs[start:stop], change.remainder, before.origins[start:stop]
                )
            elif replaced in range(change.first, change.stop):
                added = list(summaries)
                msgs += added
                origins += [("summary",)] * len(added)
            position = stop
        msgs += before.msgs[position:]
        origins += before.origins[position:]
        return TracedConversation(msgs, origins, self._find_normal_form(msgs, replaced))

    def _find_normal_form(self, msgs: list[Msg], replaced: UnitNumber | None) -> NormalForm | None:
        """Returns the properties of the edited conversation if it is known to be in normal form.

        Returns None otherwise. In normal form, each tool call has one result directly after the turn with the
        call. A unit contains its tool calls with all their results. A conversation in normal form therefore stays
        in normal form if the cut only drops complete units.
        """
        normal_form = self.conversation.normal_form
        if normal_form is None or replaced is not None or any(change.remainder for change in self.changes):
            return None
        return normal_form.for_messages(msgs[prompt_length(msgs) :])

    @property
    def first_change(self) -> int | None:
        """Index of the first input message that the cut drops or edits. None if the cut changes nothing."""
        if not self.changes:
            return None
        origin = self.conversation.origins[self.units.starts[self.changes[0].first]]
        paths = [(origin,)] if isinstance(origin, int) else [path for path in origin if not isinstance(path, str)]
        return min(path[0] for path in paths)

    def record(self, ledger: Ledger) -> None:
        """Records every dropped unit and every edited block in the ledger."""
        dropped: list[_Origin] = []
        for change in self.changes:
            start, stop = self._span(change)
            if change.remainder:
                for index, msg in enumerate(change.remainder, start):
                    self._record_edits(index, msg, ledger)
            else:
                self.dropped_units += change.stop - change.first
                dropped += self.conversation.origins[start:stop]
        self.dropped_messages = sorted(_record_dropped(dropped, ledger))

    def _span(self, change: UnitChange) -> tuple[MessageNumber, MessageNumber]:
        return self.units.span(change.first)[0], self.units.span(change.stop - 1)[1]

    def _record_edits(self, index: int, after: Msg, ledger: Ledger) -> None:
        before = self.conversation.msgs[index]
        if after is before:
            return
        origins = block_origins(before, self.conversation.origins[index])
        for old, new, origin in zip(before.blocks, after.blocks, origins, strict=False):
            for path, disposition in () if isinstance(origin, str) else _find_edits(old, new, origin):
                ledger.note(path, Note(disposition, _CHANGED))
                self.changed_places.append(format_place(path))


def _record_dropped(origins: list[_Origin], ledger: Ledger) -> Collection[int]:
    """Records dropped messages in the ledger. Returns the indexes of the input messages that lose blocks."""
    if {*map(type, origins)} <= {int}:  # fast path for the usual case: all messages are unchanged input messages
        numbers = cast("list[int]", origins)
    else:
        numbers = [origin for origin in origins if isinstance(origin, int)]
    ledger.note_messages(numbers, _DROPPED)
    if len(numbers) == len(origins):
        return numbers
    affected = {*numbers}
    for origin in origins:
        for path in () if isinstance(origin, int) else origin:
            if not isinstance(path, str):
                ledger.note(path, _DROPPED)
                affected.add(path[0])
    return affected


def _find_edits(old: Block, new: Block, path: BlockPath) -> Iterator[tuple[BlockPath, Disposition]]:
    """Yields the path and ledger disposition of an edited block, or of each edited item of a tool result."""
    if new is old:
        return
    if isinstance(old, ToolResultBlock) and isinstance(new, ToolResultBlock) and not isinstance(new.output, str):
        for index, (before, after) in enumerate(zip(old.items, new.items, strict=False)):
            if before is not after:
                yield (*path, index), _disposition(before.type, after.type)
    else:
        yield path, _disposition(old.type, new.type)


def _disposition(before: str, after: str) -> Disposition:
    return Disposition.SHRUNK if before == after else Disposition.DESCRIBED


def _edited_origin(before: Msg, after: Msg, origin: _Origin) -> _Origin:
    if len(before.blocks) == len(after.blocks):
        return origin
    origins = {id(block): path for block, path in zip(before.blocks, block_origins(before, origin), strict=True)}
    return tuple(origins.get(id(block), "cut strategy") for block in after.blocks)
