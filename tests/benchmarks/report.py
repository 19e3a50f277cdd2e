"""What a benchmark hands back: tables to print, aims and whether they hold, and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Aim", "Report", "Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """Figures in rows: a title, the heads of the columns, and a name first in each row."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __str__(self) -> str:
        """In plain text: the first column to the left, the others to the right."""
        cells = [list(self.head), *([_cell(item) for item in row] for row in self.rows)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.head))]
        lines = [
            "  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(pairs))
            for pairs in (list(zip(row, widths, strict=True)) for row in cells)
        ]
        return "\n".join([self.title, lines[0], "-" * len(lines[0]), *lines[1:], ""])

    @property
    def markdown(self) -> str:
        """In Markdown, without the title."""
        rule = ["---", *("---:" for _ in self.head[1:])]
        rows = [list(self.head), rule, *([_cell(item) for item in row] for row in self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@dataclass(frozen=True, slots=True)
class Aim:
    """Something that was set out to be reached: what, how much of it, and what was found."""

    what: str
    goal: str
    found: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark's findings.

    tables  everything, to print
    short   those of them, or shorter ones, that the README shows
    aims    what was to be reached
    plots   SVG drawings by file name
    notes   what was left out, and why
    """

    tables: Sequence[Table]
    short: Sequence[Table] = ()
    aims: Sequence[Aim] = ()
    plots: dict[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """Tables, aims and notes in plain text."""
        rows = [[aim.what, aim.goal, aim.found, "holds" if aim.holds else "MISSED"] for aim in self.aims]
        aims = [Table("Aims", ["", "goal", "found", ""], rows)] if rows else []
        return "\n".join([*map(str, [*self.tables, *aims]), *(f"left out: {note}" for note in self.notes)])


def _cell(item: object) -> str:
    if isinstance(item, float):
        return "-" if math.isnan(item) else f"{item:.0f}" if item >= 100 else f"{item:.2f}"
    return str(item)
