"""The benchmarks run, at tiny size; what they find is nobody's failure."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["cutting", "loop", "memory", "imports"])
def test_prints_tables(name: str) -> None:
    assert import_module(f"tests.benchmarks.{name}").run(True).count("---") > 0


def test_conversion_prints_every_provider() -> None:
    from tests.benchmarks.conversion import at_size, formatters

    found = at_size("mixed", 20, 2)
    assert all(f"{name} {policy} cold" in found for name, policy in formatters())


def test_floor_builds_what_agentkit_builds() -> None:
    from agentkit_anthropic import AnthropicChatFormatter
    from agentkit_openai import OpenAIChatFormatter
    from tests.benchmarks import floor
    from tests.benchmarks.histories import as_msgs, react

    plain = react(60)
    msgs = as_msgs(plain)
    made = OpenAIChatFormatter().lower(msgs).request["messages"]
    assert [_nameless(item) for item in made] == floor.openai(plain, False)
    made = AnthropicChatFormatter().lower(msgs).request["messages"]
    assert made == floor.anthropic(plain, False)


def _nameless(item: dict[str, object]) -> dict[str, object]:
    return {key: found for key, found in item.items() if key != "name"}
