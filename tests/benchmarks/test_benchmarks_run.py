"""All benchmarks run at tiny sizes. The tests do not check any duration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from xml.etree import ElementTree

import pytest

from agentkit import Budget
from agentkit_anthropic import AnthropicChatFormatter
from agentkit_openai import OpenAIChatFormatter
from tests.benchmarks import floor
from tests.benchmarks.__main__ import NAMES
from tests.benchmarks.conversion import create_formatters
from tests.benchmarks.histories import as_msgs, build_react_loop
from tests.benchmarks.loop import FORMATTERS, copy_requests, count_dropped
from tests.benchmarks.pages import BEGIN, END, SUMMARY, build_results, build_summary
from tests.benchmarks.peers import run_async
from tests.benchmarks.plots import draw_bars, draw_lines
from tests.benchmarks.report import Report
from tests.cases import each_case


@cache
def get_report(name: str) -> Report:
    """Returns the report of a benchmark at tiny size. Each benchmark runs once."""
    report = import_module(f"tests.benchmarks.{name}").run(True)
    assert isinstance(report, Report)
    return report


def test_every_benchmark_prints_tables_and_goals_that_are_on_the_pages() -> None:
    """One test, because the tests of a parallel run would run each benchmark in several processes."""
    _check_report()
    rows = get_report("conversion").tables[0].rows
    assert {f"{name} {policy} cold" for name, policy in create_formatters()} <= {row[0] for row in rows}
    _check_pages({name: get_report(name) for name in NAMES})


@each_case("name", NAMES)
def _check_report(name: str) -> None:
    report = get_report(name)
    assert all(table.rows for table in report.tables)
    assert report.aims
    assert "---" in str(report)


def _check_pages(reports: Mapping[str, Report]) -> None:
    text = build_results(reports)
    for report in reports.values():
        assert all(aim.measurement in text for aim in report.aims)
        assert all(f"plots/{name}" in text for name in report.plots)
    text_of_readme = build_summary(reports)
    assert text_of_readme.startswith(BEGIN)
    assert text_of_readme.endswith(END)
    assert all(label in text_of_readme for label in SUMMARY.values())


def test_the_floor_creates_the_same_messages_as_agentkit() -> None:
    plain = build_react_loop(60)
    msgs = as_msgs(plain)
    messages = OpenAIChatFormatter().lower(msgs).request["messages"]
    assert [_without_name(item) for item in messages] == floor.convert_openai(plain, False)
    messages = AnthropicChatFormatter().lower(msgs).request["messages"]
    assert messages == floor.convert_anthropic(plain, False)


@pytest.mark.parametrize("name", ["OpenAI", "Anthropic"])
def test_the_copy_loop_creates_the_same_request_as_a_formatter_with_a_budget(name: str) -> None:
    factory, loop = FORMATTERS[name]
    plain = build_react_loop(82)
    budgeted = partial(factory, budget=Budget(1_500))
    messages = run_async(budgeted().format(as_msgs(plain)))["messages"]
    copied = copy_requests(loop, count_dropped(budgeted, plain), plain)
    assert [_without_name(item) for item in messages] == copied


def test_plots_are_valid_svg() -> None:
    for drawing in (
        draw_bars("Bars", {"a <b>": 0.5, "c": 2.0}, str, log=True),
        draw_lines("Lines", [1, 10, 100], {"a": [1, 2, 3], "b": [4, 5]}, str, "x"),
    ):
        assert ElementTree.fromstring(drawing).tag.endswith("svg")


def _without_name(item: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in item.items() if key != "name"}
