"""`Ledger`: the record of what happened to every input block.

Each pipeline stage writes notes only about the blocks that it changes, moves or omits. The full list, with one
entry for each input block, is computed when the caller reads the ledger. If the caller never reads the ledger,
unchanged blocks therefore cost no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from agentkit.ledger.entries import Disposition, LedgerEntry, Note, Synthesis
from agentkit.ledger.places import BlockPath, format_place, list_paths
from agentkit.messages.blocks import Block
from agentkit.messages.message import Msg
from agentkit.reprs import as_one_line, shorten

__all__ = ["Ledger"]

Details: TypeAlias = Callable[[BlockPath, Msg, Block, Sequence[Note]], tuple[str, ...]]
"""Function that returns details about a block, such as a reason for each field that the request omits."""

LateNotes: TypeAlias = Callable[[], Mapping[BlockPath, Note]]
"""Function that computes at most one note for each block, when the ledger is read.

The notes are computed late because they are expensive, and because no pipeline stage needs them.
"""


@dataclass(slots=True)
class Ledger:
    """Record of what happened to every input block, and of the parts of the request that come from no input block.

    `print(ledger)` shows a table.

    Attributes:
        msgs: The caller's messages.
        syntheses: The parts of the request that come from no input block.
        details: Function that computes details about a block when the ledger is read. None means no details.
        late_notes: Function that computes expensive notes when the ledger is read. None means no notes.
    """

    msgs: Sequence[Msg]
    syntheses: list[Synthesis] = field(default_factory=list[Synthesis])
    _notes: dict[BlockPath, list[Note]] = field(default_factory=dict[BlockPath, list[Note]])
    _message_notes: list[tuple[Sequence[int], Note]] = field(default_factory=list[tuple[Sequence[int], Note]])
    details: Details | None = field(default=None, compare=False)
    late_notes: LateNotes | None = field(default=None, compare=False)

    # -- notes of the stages -------------------------------------------------------------------------------------

    def note(self, path: BlockPath, note: Note) -> None:
        """Adds a note about one block."""
        self._notes.setdefault(path, []).append(note)

    def note_origins(self, origins: Iterable[BlockPath | str], note: Note) -> None:
        """Adds the same note about several input blocks.

        An origin that is a string is skipped, because the string names an added part and not an input block.
        """
        for origin in origins:
            if not isinstance(origin, str):
                self.note(origin, note)

    def note_messages(self, indexes: Sequence[int], note: Note) -> None:
        """Adds the same note about every block of the messages at `indexes`."""
        self._message_notes.append((indexes, note))

    def add_synthesis(self, name: str, reason: str) -> None:
        """Records that the pipeline added a part to the request. `name` is the kind of the part."""
        self.syntheses.append(Synthesis(name, reason))

    def copy(self) -> Ledger:
        """Returns a ledger with the same notes. Notes added to the copy do not change this ledger."""
        notes = {path: list(block_notes) for path, block_notes in self._notes.items()}
        return Ledger(
            self.msgs, list(self.syntheses), notes, list(self._message_notes), self.details, self.late_notes
        )

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def entries(self) -> list[LedgerEntry]:
        """List of entries in input order, one for each block and for each item of a tool result's output list."""
        return [self._create_entry(path, block, notes) for path, block, notes in self._collect_notes()]

    @property
    def losses(self) -> list[tuple[str, str]]:
        """List of (place, reason) pairs for user content that did not reach the request, in input order.

        Content that the budget or the history policy omits on purpose is not included.
        """
        indexes = {index for indexes, note in self._message_notes if note.lost for index in indexes}
        indexes |= {path[0] for path, notes in self._notes.items() if any(note.lost for note in notes)}
        indexes |= {path[0] for path in (self.late_notes() if self.late_notes else ())}
        lost = ((path, notes) for path, _, notes in self._collect_notes(indexes) if not _is_omitted(notes))
        return [(format_place(path), note.reason) for path, notes in lost for note in notes if note.lost]

    def notes(self, *dispositions: Disposition) -> list[tuple[str, Disposition, str]]:
        """Returns the (place, disposition, reason) of each note about a single block, in input order.

        Only notes with one of the `dispositions` are returned. Notes about whole messages are not included.
        """
        return [
            (format_place(path), note.disposition, note.reason)
            for path, notes in sorted(self._notes.items())
            for note in notes
            if note.disposition in dispositions
        ]

    def to_dict(self) -> dict[str, Any]:
        """Converts the ledger to a dict of JSON values."""
        return {
            "blocks": [entry.to_dict() for entry in self.entries],
            "syntheses": [{"name": added.name, "reason": added.reason} for added in self.syntheses],
        }

    def __str__(self) -> str:
        """Returns a table with one row for each block, and one row for each different synthesis."""
        return _format_table([*map(_entry_row, self.entries), *_synthesis_rows(self.syntheses)])

    def __repr__(self) -> str:
        counts = Counter(
            min((note.disposition for note in notes), default=Disposition.CARRIED)
            for _, _, notes in self._collect_notes()
        )
        parts = [f"{count} {disposition}" for disposition, count in sorted(counts.items())]
        parts += [f"{len(self.losses)} lost"] if self.losses else []
        parts += [f"{len(self.syntheses)} syntheses"] if self.syntheses else []
        return f"<Ledger of {len(self.msgs)} messages: {', '.join(parts) or 'no blocks'}>"

    def __reduce__(self) -> tuple[object, ...]:
        """Returns the state for copies and pickles.

        The state contains the results of `details` and `late_notes` instead of these functions.
        """
        all_details = {
            path: self._find_details(path, block, notes) for path, block, notes in self._collect_notes()
        }
        details = partial(_look_up, {path: reasons for path, reasons in all_details.items() if reasons})
        late_notes = partial(dict[BlockPath, Note], self.late_notes()) if self.late_notes else None
        return (Ledger, (self.msgs, self.syntheses, self._notes, self._message_notes, details, late_notes))

    def _collect_notes(
        self, indexes: Collection[int] | None = None
    ) -> Iterator[tuple[BlockPath, Block, list[Note]]]:
        """Yields each block of the messages at `indexes`, with its path and notes.

        If `indexes` is None, the blocks of all messages are yielded.
        """
        late: Mapping[BlockPath, Note] = self.late_notes() if self.late_notes else {}
        by_message: dict[int, list[Note]] = {}
        for noted, note in self._message_notes if indexes is None or indexes else ():
            for index in noted:
                by_message.setdefault(index, []).append(note)
        for path, block in list_paths(self.msgs, range(len(self.msgs)) if indexes is None else sorted(indexes)):
            late_notes = [late[path]] if path in late else []
            yield path, block, [
                *self._notes.get(path, ()), *self._inherit_notes(path), *by_message.get(path[0], ()), *late_notes,
            ]  # fmt: skip

    def _inherit_notes(self, path: BlockPath) -> list[Note]:
        """Returns the notes about a tool result that also apply to an item of its output.

        Losses are excluded, because stages write a separate note about each lost item.
        """
        return [note for note in self._notes.get(path[:2], []) if not note.lost] if len(path) == 3 else []

    def _create_entry(self, path: BlockPath, block: Block, notes: list[Note]) -> LedgerEntry:
        further = self._find_details(path, block, notes)
        if not notes:
            return LedgerEntry(
                format_place(path), block.type, Disposition.CARRIED, "sent unchanged", details=further
            )
        primary = min(notes, key=lambda note: note.disposition)
        details = tuple(dict.fromkeys(note.reason for note in notes if note is not primary))
        lost = any(note.lost for note in notes) and not _is_omitted(notes)
        return LedgerEntry(
            format_place(path), block.type, primary.disposition, primary.reason, lost, details + further
        )

    def _find_details(self, path: BlockPath, block: Block, notes: list[Note]) -> tuple[str, ...]:
        return self.details(path, self.msgs[path[0]], block, notes) if self.details else ()


def _look_up(
    details: Mapping[BlockPath, tuple[str, ...]], path: BlockPath, msg: Msg, block: Block, notes: Sequence[Note]
) -> tuple[str, ...]:
    return details.get(path, ())


def _is_omitted(notes: Sequence[Note]) -> bool:
    return any(note.disposition is Disposition.DROPPED and not note.lost for note in notes)


# -- the table ---------------------------------------------------------------------------------------------------

_HEAD = ("place", "block", "disposition", "reason")
_MAX_CELL = 300  # maximum length of a table cell in characters


def _entry_row(entry: LedgerEntry) -> tuple[str, ...]:
    lost = ", content lost" if entry.lost else ""
    return (entry.place, entry.kind, f"{entry.disposition}{lost}", "; ".join((entry.reason, *entry.details)))


def _synthesis_rows(syntheses: Sequence[Synthesis]) -> Iterator[tuple[str, ...]]:
    for added, count in Counter(syntheses).items():
        yield "", added.name, "synthesis", added.reason + f" (×{count})" * (count > 1)


def _format_table(rows: Sequence[tuple[str, ...]]) -> str:
    cells = [[shorten(as_one_line(cell), _MAX_CELL) for cell in row] for row in (_HEAD, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
