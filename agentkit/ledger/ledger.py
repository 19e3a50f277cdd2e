"""The account of what happened to every block, and the plan that a formatter makes of a request.

A stage writes down only what it did to a block that did not simply pass. The full account, one entry an
input block, is worked out when somebody asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

from agentkit.messages.blocks import Block, ToolResultBlock
from agentkit.messages.message import Msg
from agentkit.reprs import as_one_line, bounded_repr, shorten

__all__ = ["Disposition", "Ledger", "LedgerEntry", "Note", "Synthesis"]

BlockPath: TypeAlias = tuple[int, ...]
"""(message, block), or (message, block, item of a result's output)."""


class Disposition(IntEnum):
    """What became of an input block. A block's primary disposition is the first here that holds."""

    DROPPED = 0
    DESCRIBED = 1
    SHRUNK = 2
    REPAIRED = 3
    MOVED = 4
    MERGED = 5
    CARRIED = 6

    @property
    def word(self) -> str:
        """The disposition in lower case."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.word

    def __format__(self, spec: str) -> str:
        return format(self.word, spec)

    def __repr__(self) -> str:
        return f"Disposition.{self.name}"


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a stage did to one block."""

    disposition: Disposition
    reason: str
    lost: bool = False


FRAMED = Note(Disposition.MERGED, "a line of the history frame")
AS_LINE = Note(Disposition.CARRIED, "a late system message, as a line of the user's under its name")
"""What is noted of a block that a text says together with its speaker's name."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What became of one input block: `place` in the caller's list, and whether content was lost.

    `details` are the reasons of whatever else happened to it.
    """

    place: str
    kind: str
    disposition: Disposition
    reason: str
    lost: bool = False
    details: tuple[str, ...] = ()

    __repr__ = bounded_repr

    def to_dict(self) -> dict[str, Any]:
        """This entry as JSON values."""
        return {
            "place": self.place,
            "kind": self.kind,
            "disposition": self.disposition.word,
            "reason": self.reason,
            "lost": self.lost,
            "details": list(self.details),
        }


@dataclass(frozen=True, slots=True)
class Synthesis:
    """Something in the request that no input block says: its name, and why it had to be made."""

    name: str
    reason: str

    __repr__ = bounded_repr


Remarks: TypeAlias = Callable[[BlockPath, Msg, Block, Sequence[Note]], tuple[str, ...]]
"""What else is to be said of a block, given what was noted of it."""


LateNotes: TypeAlias = Callable[[], Mapping[BlockPath, Note]]
"""Function that computes expensive notes, which no stage needs."""


@dataclass(frozen=True, slots=True)
class _Noted:
    """Late notes that are already computed, for a pickled ledger."""

    found: Mapping[BlockPath, Note]

    def __call__(self) -> Mapping[BlockPath, Note]:
        return self.found


@dataclass(frozen=True, slots=True)
class _Remarked:
    """Remarks that were made, for a ledger that goes to another process: what makes them may not."""

    found: dict[BlockPath, tuple[str, ...]]

    def __call__(self, path: BlockPath, msg: Msg, block: Block, notes: Sequence[Note]) -> tuple[str, ...]:
        return self.found.get(path, ())


@dataclass(slots=True)
class Ledger:
    """Every input block's disposition, and what the formatter had to invent. `print(ledger)` shows it as a table.

    `remarks` says what a block has that its request has no place for: worked out when somebody asks, too. So are
    the `late` notes, one a block.
    """

    msgs: Sequence[Msg]
    syntheses: list[Synthesis] = field(default_factory=list[Synthesis])
    _notes: dict[BlockPath, list[Note]] = field(default_factory=dict[BlockPath, list[Note]])
    _runs: list[tuple[Sequence[int], Note]] = field(default_factory=list[tuple[Sequence[int], Note]])
    remarks: Remarks | None = field(default=None, repr=False, compare=False)
    late: LateNotes | None = field(default=None, repr=False, compare=False)

    def note(self, path: BlockPath, note: Note) -> None:
        """Write down what happened to one block."""
        self._notes.setdefault(path, []).append(note)

    def note_messages(self, numbers: Sequence[int], note: Note) -> None:
        """Write down what happened to every block of some messages."""
        self._runs.append((numbers, note))

    def add_synthesis(self, name: str, reason: str) -> None:
        """Write down something that the request says and no input block does."""
        self.syntheses.append(Synthesis(name, reason))

    def copy(self) -> Ledger:
        """A ledger that goes on from here without changing this one."""
        notes = {path: list(found) for path, found in self._notes.items()}
        return Ledger(self.msgs, list(self.syntheses), notes, list(self._runs), self.remarks, self.late)

    @property
    def entries(self) -> list[LedgerEntry]:
        """One entry an input block, in input order; a result's list output gives one an item as well."""
        return [self._entry(path, block, notes) for path, block, notes in self._account()]

    def _account(self, chosen: Collection[int] | None = None) -> Iterator[tuple[BlockPath, Block, list[Note]]]:
        """Every input block with what was noted of it; `chosen`: only those of some messages."""
        late: Mapping[BlockPath, Note] = self.late() if self.late else {}
        spread: dict[int, list[Note]] = {}
        for numbers, note in self._runs if chosen is None or chosen else ():
            for number in numbers:
                spread.setdefault(number, []).append(note)
        for path, block in _paths(self.msgs, range(len(self.msgs)) if chosen is None else sorted(chosen)):
            later = [late[path]] if path in late else []
            yield path, block, [
                *self._notes.get(path, ()), *self._inherited(path), *spread.get(path[0], ()), *later,
            ]  # fmt: skip

    def _entry(self, path: BlockPath, block: Block, notes: list[Note]) -> LedgerEntry:
        further = self._remarks_of(path, block, notes)
        if not notes:
            return LedgerEntry(place_of(path), block.type, Disposition.CARRIED, "as it is", details=further)
        primary = min(notes, key=lambda note: note.disposition)
        details = tuple(dict.fromkeys(note.reason for note in notes if note is not primary))
        lost = any(note.lost for note in notes) and not _is_left_out(notes)
        return LedgerEntry(
            place_of(path), block.type, primary.disposition, primary.reason, lost, details + further
        )

    def _remarks_of(self, path: BlockPath, block: Block, notes: list[Note]) -> tuple[str, ...]:
        return self.remarks(path, self.msgs[path[0]], block, notes) if self.remarks else ()

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles carry the remarks that were made."""
        found = {path: self._remarks_of(path, block, notes) for path, block, notes in self._account()}
        remarked = _Remarked({path: told for path, told in found.items() if told})
        late = _Noted(self.late()) if self.late else None
        return (Ledger, (self.msgs, self.syntheses, self._notes, self._runs, remarked, late))

    def _inherited(self, path: BlockPath) -> list[Note]:
        """An item of a result shares what happened to the result; a loss is noted of each item by itself."""
        return [note for note in self._notes.get(path[:2], []) if not note.lost] if len(path) == 3 else []

    @property
    def losses(self) -> list[tuple[str, str]]:
        """Place and reason of all user content that did not reach the request, in input order.

        What a cut or the history policy leaves out is no loss, whatever else happened to it.
        """
        lost = {number for numbers, note in self._runs if note.lost for number in numbers}
        lost |= {path[0] for path, notes in self._notes.items() if any(note.lost for note in notes)}
        lost |= {path[0] for path in (self.late() if self.late else ())}
        found = ((path, notes) for path, _, notes in self._account(lost) if not _is_left_out(notes))
        return [(place_of(path), note.reason) for path, notes in found for note in notes if note.lost]

    def notes(self, *dispositions: Disposition) -> list[tuple[str, Disposition, str]]:
        """Place, disposition and reason of what was noted of single blocks, in input order."""
        return [
            (place_of(path), note.disposition, note.reason)
            for path, notes in sorted(self._notes.items())
            for note in notes
            if note.disposition in dispositions
        ]

    def __str__(self) -> str:
        """Returns a table with a row for each block and for each synthesis."""
        rows = [_HEAD, *map(_row, self.entries)]
        for made, count in Counter(self.syntheses).items():
            rows.append(("", made.name, "synthesis", made.reason + f" (×{count})" * (count > 1)))
        shown = [[shorten(as_one_line(cell), _CELL) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in shown)

    def __repr__(self) -> str:
        counts = Counter(
            min((note.disposition for note in notes), default=Disposition.CARRIED)
            for _, _, notes in self._account()
        )
        parts = [f"{count} {disposition}" for disposition, count in sorted(counts.items())]
        parts += [f"{len(self.losses)} lost"] if self.losses else []
        parts += [f"{len(self.syntheses)} syntheses"] if self.syntheses else []
        return f"<Ledger of {len(self.msgs)} messages: {', '.join(parts) or 'no blocks'}>"

    def to_dict(self) -> dict[str, Any]:
        """The ledger as JSON values."""
        return {
            "blocks": [entry.to_dict() for entry in self.entries],
            "syntheses": [{"name": made.name, "reason": made.reason} for made in self.syntheses],
        }


_HEAD = ("place", "block", "disposition", "reason")
_CELL = 300  # characters


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    lost = ", content lost" if entry.lost else ""
    return (entry.place, entry.kind, f"{entry.disposition}{lost}", "; ".join((entry.reason, *entry.details)))


def place_of(path: BlockPath) -> str:
    """A block's place as errors and ledgers write it: `msgs[3].content[1].output[0]`."""
    steps = ("msgs", ".content", ".output")
    return "".join(f"{step}[{number}]" for step, number in zip(steps, path, strict=False))


def _is_left_out(notes: Sequence[Note]) -> bool:
    """Returns True if a cut or the history policy left a block out."""
    return any(note.disposition is Disposition.DROPPED and not note.lost for note in notes)


def _paths(msgs: Sequence[Msg], numbers: Iterable[int]) -> Iterator[tuple[BlockPath, Block]]:
    for number in numbers:
        for at, block in enumerate(msgs[number].blocks):
            yield (number, at), block
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                for item_at, item in enumerate(block.output):
                    yield (number, at, item_at), item
