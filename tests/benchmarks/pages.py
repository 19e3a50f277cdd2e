"""Pages on performance, written from the reports of one run: RESULTS.md, and a summary in the README."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.report import Aim, Report, Table

__all__ = ["BEGIN", "END", "SUMMARY", "build_results", "build_summary", "write_pages"]

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
_HERE = Path(__file__).parent
_RESULTS = _HERE / "RESULTS.md"
_README = _HERE.parents[1] / "README.md"

SUMMARY: Final = {
    "Loop of N steps, OpenAI": (
        "time to format 500 steps of a ReAct loop within a budget, relative to copying prebuilt request dicts"
    ),
    "Prompt reuse at the budget, byte and block, worst API": (
        "share of each prompt that a prompt cache can reuse while the budget drops messages, lowest of all APIs"
    ),
    "Text delta to event, OpenAI Chat, N deltas": (
        "time to convert a streamed text delta to a typed event, relative to the OpenAI SDK"
    ),
    "History of N new messages to a reply, OpenAI Chat, relative to the fastest other library": (
        "time from 1,000 messages to a reply without network delays, relative to the fastest other library"
    ),
}
"""Row label in the README by measurement of a report, with N in place of each number."""

_INTRO = """\
# Benchmark results

`python -m tests.benchmarks --write` (extra `bench`) writes this page, its plots, and the summary in the
README. Read the ratios: one run measured both sides of each ratio in turn, as CPU time on two shared cores
with CPython 3.11. A floor is a hand-written loop over slotted dataclasses without checks, repairs or a
ledger. The copy loop starts from finished native dicts. It copies the ones within the budget into new dicts
and lists, since a request belongs to its caller. Prompt reuse is simulated on the real requests, with bytes
instead of tokens."""

_INTRODUCTIONS = {
    "loop": (
        "**A ReAct loop within a budget** of a fifth of the final history: the cost of formatting over all steps, "
        "with the default strategy and counter."
    ),
    "caching": (
        "**Prompt cache hits.** A cut that moves at every step makes each prompt new; a cut on a grid "
        "keeps the prefix. A token read from the cache costs 0.1; a token written to an explicit cache costs 1.25."
    ),
    "cutting": "**The cut** is arithmetic on running sums of weights; each message is weighed once.",
    "conversion": "**Cold conversion** of a ReAct loop: no message was formatted before.",
    "streams": (
        "**From a streamed delta to a typed event**, one event per transport chunk. Rows marked bytes are the "
        "parsers alone; `ChatModel.stream` and the other libraries use the client of the SDK, with a transport in "
        "memory."
    ),
    "calling": (
        "**From a history to a reply**, not streamed, with the client of the SDK and a transport in memory: "
        "messages to request, the work of the SDK, reply to message. The SDK alone starts from a finished request."
    ),
    "concurrent_replies": "**Many conversations at once**, and how long one of them blocks the event loop.",
    "imports": "**Imports**, in new interpreters.",
    "prompts": (
        "**Typed prompts**: the same signatures, values and replies in agentkit and in DSPy, which runs in a "
        "process of its own environment."
    ),
    "rendering": (
        "**Chat templates**: a conversation to the text of its prompt, with `ChatTemplate.render` and with "
        "`apply_chat_template` of transformers. Most of a first render is the compilation by Jinja and Python."
    ),
    "responses": "**Replies of local models**: the text of a reply to events, one event per delta of its text.",
    "training": (
        "**Training data**: token ids and loss mask relative to the tokenizer alone, and rows relative to reading "
        "and writing them with `json`."
    ),
}


def build_results(reports: Mapping[str, Report]) -> str:
    """Returns the text of RESULTS.md."""
    return "\n\n".join(_paragraphs(reports)) + "\n"


def build_summary(reports: Mapping[str, Report]) -> str:
    """Returns the section of the README, with its markers."""
    aims = {re.sub(r"\d[\d,]*", "N", aim.measurement): aim for report in reports.values() for aim in report.aims}
    rows = [[label, aims[measurement].result] for measurement, label in SUMMARY.items()]
    plot = "![Formatting a ReAct loop within a budget](tests/benchmarks/plots/loop.svg)"
    return "\n".join([BEGIN, "", Table("", ["measurement", "result"], rows).markdown, "", plot, "", END])


def _paragraphs(reports: Mapping[str, Report]) -> Iterator[str]:
    yield _INTRO
    yield _build_aim_table([aim for report in reports.values() for aim in report.aims])
    for name, introduction in _INTRODUCTIONS.items():
        report = reports[name]
        yield introduction
        for file in report.plots:
            yield f"![{introduction.split('**')[1]}](plots/{file})"
        for table in report.page_tables:
            yield table.markdown
    notes = dict.fromkeys(note.partition(" (")[0] for report in reports.values() for note in report.notes)
    if notes:
        yield f"Not measured, because they cannot be installed together with the others: {', '.join(notes)}."


def _build_aim_table(aims: Sequence[Aim]) -> str:
    rows = [[aim.measurement, aim.goal, aim.result, "✓" if aim.is_met else "**missed**"] for aim in aims]
    return Table("", ["measurement", "goal", "result", ""], rows).markdown


def write_pages(reports: Mapping[str, Report]) -> None:
    """Writes RESULTS.md, the plots, and the section between the markers in the README."""
    _RESULTS.write_text(build_results(reports))
    before, _, after = _README.read_text().partition(BEGIN)
    _README.write_text(before + build_summary(reports) + after.partition(END)[2])
    for report in reports.values():
        for name, drawing in report.plots.items():
            (_HERE / "plots").mkdir(exist_ok=True)
            (_HERE / "plots" / name).write_text(drawing)
