"""Contents of a ledger: dispositions, notes, entries, and syntheses (parts that the pipeline adds to requests)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from agentkit.reprs import bounded_repr

__all__ = ["Disposition", "FRAME_LINE", "LedgerEntry", "Note", "SYSTEM_LINE", "Synthesis"]


class Disposition(IntEnum):
    """Outcome of an input block. If several outcomes apply, the lowest value is the main outcome.

    Attributes:
        DROPPED: The request omits the block.
        DESCRIBED: A text in the request replaces the block.
        SHRUNK: The request contains a smaller copy of the block.
        REPAIRED: The block was invalid, and the request contains a corrected copy.
        MOVED: The request contains the block in another position.
        MERGED: The request contains the block as a part of another turn or message.
        CARRIED: The request contains the block, unchanged or with the change that the reason names.
    """

    DROPPED = 0
    DESCRIBED = 1
    SHRUNK = 2
    REPAIRED = 3
    MOVED = 4
    MERGED = 5
    CARRIED = 6

    @property
    def word(self) -> str:
        """The name of the disposition in lower case."""
        return self.name.lower()

    def __str__(self) -> str:
        return self.word

    def __format__(self, spec: str) -> str:
        return format(self.word, spec)

    def __repr__(self) -> str:
        return f"Disposition.{self.name}"


@dataclass(frozen=True, slots=True)
class Note:
    """Record that a pipeline stage writes about one block.

    Attributes:
        disposition: The outcome of the block.
        reason: The cause of the outcome.
        lost: True if user content did not reach the request.
    """

    disposition: Disposition
    reason: str
    lost: bool = False


FRAME_LINE = Note(Disposition.MERGED, "written as a line `NAME: TEXT` in the user turn that contains the history")
SYSTEM_LINE = Note(
    Disposition.CARRIED,
    "system message after the start of the conversation, sent as user text that begins with the speaker name",
)
"""Notes about blocks whose text in the request starts with the speaker's name."""


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Outcome of one input block.

    Attributes:
        place: The path of the block in the caller's messages, such as `msgs[3].content[1]`.
        kind: The type of the block, such as `tool_result`.
        disposition: The main outcome.
        reason: The cause of the main outcome.
        lost: True if user content did not reach the request.
        details: The reasons for all other changes to the block.
    """

    place: str
    kind: str
    disposition: Disposition
    reason: str
    lost: bool = False
    details: tuple[str, ...] = ()

    __repr__ = bounded_repr

    def to_dict(self) -> dict[str, Any]:
        """Converts the entry to a dict of JSON values."""
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
    """Part of a request that comes from no input block.

    Attributes:
        name: The kind of the added part, such as `frame`.
        reason: The reason why the part was added.
    """

    name: str
    reason: str

    __repr__ = bounded_repr
