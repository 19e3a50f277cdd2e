"""Results of a benchmark: tables to print, measurements with goals, and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Aim", "Report", "Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """Table with a title and column headings. The first cell of each row is its name."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __str__(self) -> str:
        """Returns the table as plain text, with the first column aligned left and the others aligned right."""
        cells = [list(self.head), *([_format_cell(item) for item in row] for row in self.rows)]
        widths = [max(len(row[at]) for row in cells) for at in range(len(self.head))]
        lines = [
            "  ".join(cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(pairs))
            for pairs in (list(zip(row, widths, strict=True)) for row in cells)
        ]
        return "\n".join([self.title, lines[0], "-" * len(lines[0]), *lines[1:], ""])

    @property
    def markdown(self) -> str:
        """Table in Markdown, without the title."""
        rule = ["---", *("---:" for _ in self.head[1:])]
        rows = [list(self.head), rule, *([_format_cell(item) for item in row] for row in self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@dataclass(frozen=True, slots=True)
class Aim:
    """Measurement with a goal, and True in `is_met` if the result meets the goal."""

    measurement: str
    goal: str
    result: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Results of one benchmark.

    Attributes:
        tables: Tables to print.
        page_tables: Tables for RESULTS.md.
        aims: Measurements with goals.
        plots: SVG drawings by file name.
        notes: Libraries that were not measured, with the reasons.
    """

    tables: Sequence[Table]
    page_tables: Sequence[Table] = ()
    aims: Sequence[Aim] = ()
    plots: dict[str, str] = field(default_factory=dict[str, str])
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        """Returns the tables, goals and notes as plain text."""
        rows = [[aim.measurement, aim.goal, aim.result, "met" if aim.is_met else "MISSED"] for aim in self.aims]
        aims = [Table("Goals", ["measurement", "goal", "result", ""], rows)] if rows else []
        return "\n".join([*map(str, [*self.tables, *aims]), *(f"not measured: {note}" for note in self.notes)])


def _format_cell(item: object) -> str:
    if isinstance(item, float):
        return "-" if math.isnan(item) else f"{item:.0f}" if item >= 100 else f"{item:.2f}"
    return str(item)
