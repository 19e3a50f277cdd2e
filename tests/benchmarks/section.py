"""The README's section on performance, written from the reports of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.report import Aim, Report, Table

__all__ = ["section", "write"]

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
_HERE = Path(__file__).parent
_README = _HERE.parents[1] / "README.md"

_INTRO = """\
`python -m tests.benchmarks --write` (extra `bench`) makes this section and its plots anew. Read the ratios: both
sides of each were measured in one run, turn about, as CPU time on two shared cores with CPython 3.11. A floor is a
hand-written loop over slotted dataclasses that checks, repairs and accounts for nothing. The copy loop has all
native dicts ready and makes fresh dicts and lists of what the budget keeps, which any request costs that is its
caller's to change. Prompt reuse is simulated over the very requests, where a byte stands for its tokens."""

_WORDS = {
    "loop": (
        "**A ReAct loop within a budget** of a fifth of its history in the end: what formatting costs over all "
        "steps, with the default strategy and counter."
    ),
    "caching": (
        "**What a prompt cache serves.** A cut that moves at every step makes each prompt new; a cut on a grid "
        "leaves the prefix alone. A token read from the cache costs 0.1, a written one 1.25 with explicit caches."
    ),
    "cutting": "**The cut** is arithmetic on running sums of weights; each message is weighed once in its life.",
    "conversion": "**Cold conversion**: messages of a ReAct loop that were never seen before.",
    "streams": (
        "**A streamed delta on its way to a typed event**, one event a transport chunk. Our readers alone, from "
        "raw bytes; `ChatModel.stream` over the SDK's client with a transport in memory, as all the others are."
    ),
    "calling": (
        "**From a history to a reply**, whole, over the SDK's client with a transport in memory: messages to "
        "request, the SDK's own work, reply to message. The SDK by itself is given a request that is finished."
    ),
    "at_once": "**Many at once**, and how long one of them keeps the event loop from the others.",
    "imports": "**Imports**, in fresh interpreters.",
}


def section(reports: Mapping[str, Report]) -> str:
    """The section's text, markers included."""
    return "\n\n".join([BEGIN, *_paragraphs(reports), END])


def _paragraphs(reports: Mapping[str, Report]) -> Iterator[str]:
    yield _INTRO
    yield _aims([aim for report in reports.values() for aim in report.aims])
    for name, words in _WORDS.items():
        report = reports[name]
        yield words
        for file in report.plots:
            yield f"![{words.split('**')[1]}](tests/benchmarks/plots/{file})"
        for table in report.short:
            yield table.markdown
    notes = dict.fromkeys(note.partition(" (")[0] for report in reports.values() for note in report.notes)
    if notes:
        yield f"Left out, since they did not load beside the others: {', '.join(notes)}."


def _aims(aims: Sequence[Aim]) -> str:
    rows = [[aim.what, aim.goal, aim.found, "✓" if aim.holds else "**missed**"] for aim in aims]
    return Table("", ["", "aim", "found", ""], rows).markdown


def write(reports: Mapping[str, Report]) -> None:
    """Put the section between its markers in the README, and its plots beside the benchmarks."""
    before, _, rest = _README.read_text().partition(BEGIN)
    _README.write_text(before + section(reports) + rest.partition(END)[2])
    for report in reports.values():
        for name, drawing in report.plots.items():
            (_HERE / "plots").mkdir(exist_ok=True)
            (_HERE / "plots" / name).write_text(drawing)
