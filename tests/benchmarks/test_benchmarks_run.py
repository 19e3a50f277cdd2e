"""The benchmarks run, at tiny size; how long anything takes is nobody's failure."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from xml.etree import ElementTree

import pytest

from agentkit import Budget
from agentkit_anthropic import AnthropicChatFormatter
from agentkit_openai import OpenAIChatFormatter
from tests.benchmarks import floor
from tests.benchmarks.__main__ import NAMES
from tests.benchmarks.conversion import formatters
from tests.benchmarks.histories import as_msgs, build_react_loop
from tests.benchmarks.loop import KINDS, copy_requests, count_dropped
from tests.benchmarks.pages import BEGIN, END, SUMMARY, results, summary
from tests.benchmarks.peers import run_async
from tests.benchmarks.plots import draw_bars, draw_lines
from tests.benchmarks.report import Report

_QUICK: dict[str, Report] = {}


def quick(name: str) -> Report:
    """One benchmark's report at tiny size, made once."""
    if name not in _QUICK:
        _QUICK[name] = import_module(f"tests.benchmarks.{name}").run(True)
    return _QUICK[name]


@pytest.mark.parametrize("name", NAMES)
def test_prints_tables_and_aims(name: str) -> None:
    report = quick(name)
    assert all(table.rows for table in report.tables)
    assert report.aims
    assert "---" in str(report)


def test_conversion_prints_every_provider() -> None:
    rows = quick("conversion").tables[0].rows
    assert {f"{name} {policy} cold" for name, policy in formatters()} <= {row[0] for row in rows}


def test_floor_builds_what_agentkit_builds() -> None:
    plain = build_react_loop(60)
    msgs = as_msgs(plain)
    made = OpenAIChatFormatter().lower(msgs).request["messages"]
    assert [_nameless(item) for item in made] == floor.convert_openai(plain, False)
    made = AnthropicChatFormatter().lower(msgs).request["messages"]
    assert made == floor.convert_anthropic(plain, False)


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_copy_loop_copies_what_the_budget_keeps(name: str) -> None:
    kind, loop = KINDS[name]
    plain = build_react_loop(82)
    budgeted = partial(kind, budget=Budget(1_500))
    made = run_async(budgeted().format(as_msgs(plain)))["messages"]
    copied = copy_requests(loop, count_dropped(budgeted, plain), plain)
    assert [_nameless(item) for item in made] == copied


def test_the_pages_name_every_aim_and_plot() -> None:
    reports = {name: quick(name) for name in NAMES}
    text = results(reports)
    for report in reports.values():
        assert all(aim.what in text for aim in report.aims)
        assert all(f"plots/{name}" in text for name in report.plots)
    short = summary(reports)
    assert short.startswith(BEGIN)
    assert short.endswith(END)
    assert all(label in short for label in SUMMARY.values())


def test_plots_are_drawings() -> None:
    for drawing in (
        draw_bars("Bars", {"a <b>": 0.5, "c": 2.0}, str, log=True),
        draw_lines("Lines", [1, 10, 100], {"a": [1, 2, 3], "b": [4, 5]}, str, "x"),
    ):
        assert ElementTree.fromstring(drawing).tag.endswith("svg")


def _nameless(item: dict[str, object]) -> dict[str, object]:
    return {key: found for key, found in item.items() if key != "name"}
