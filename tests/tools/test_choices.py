"""Tests of errors about tool choices."""

from __future__ import annotations

import pytest

from agentkit import MessageError, OptionError, Tool, ToolChoice
from agentkit.tools.choices import as_tool_choice


def test_the_error_about_a_name_states_the_rule_of_the_mode() -> None:
    with pytest.raises(MessageError, match="mode 'tool' requires a name"):
        ToolChoice("tool")
    for mode in ("auto", "none", "required"):
        with pytest.raises(MessageError, match=f"mode '{mode}' cannot have a name"):
            ToolChoice(mode, "look")


@pytest.mark.parametrize(
    ("tools", "advice"),
    [([], "Pass tools."), ([Tool("look"), Tool("count")], "Use one of: look, count.")],
    ids=["no tools", "tools"],
)
def test_the_error_about_an_unknown_tool_lists_the_tools(tools: list[Tool], advice: str) -> None:
    with pytest.raises(OptionError) as caught:
        as_tool_choice("search", tools)
    assert caught.value.advice == advice


def test_a_choice_among_allowed_tools_without_a_mode_lets_the_model_decide() -> None:
    choice = {"type": "allowed_tools", "tools": [{"type": "function", "name": "look"}]}
    assert as_tool_choice(choice, [Tool("look")]) == ToolChoice("auto", names=("look",))
