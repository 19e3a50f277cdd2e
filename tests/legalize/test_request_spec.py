"""Tests of tool names and tool choices that a target accepts."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import MessageError, Plan, Tool, ToolChoice
from agentkit.provider_kit import LegalConversation, NameRule, OptionLayout, Request, RequestSpec, WireLayout
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, target, text_msg

RULE: Final = NameRule()
LOOK_UP: Final = Tool("look up", "finds", parameters={"type": "object", "properties": {}})
SEARCH: Final = Tool("search", "searches", parameters={"type": "object", "properties": {}})


class SpecFormatter(EchoFormatter):
    """Formatter that records the spec and the conversation that `convert` receives."""

    legal: LegalConversation
    spec: RequestSpec

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        self.legal, self.spec = legal, task
        return super().convert(legal, task)


def lower(*tools: Tool, choice: Any = None, **changes: Any) -> tuple[SpecFormatter, Plan]:
    class Formatter(SpecFormatter):
        base = target(**{"tools__names": RULE, **changes}).base

    formatter = Formatter()
    return formatter, formatter.lower([text_msg("Bob", "hi")], tools=tools, tool_choice=choice)


def test_tools_have_legal_names_and_the_conversation_knows_the_originals() -> None:
    formatter, plan = lower(LOOK_UP, SEARCH)
    assert [tool["name"] for tool in plan.request["tools"]] == [RULE.fit("look up"), "search"]
    assert [tool["description"] for tool in plan.request["tools"]] == ["finds", "searches"]
    assert formatter.legal.tool_names == {RULE.fit("look up"): "look up"}
    assert formatter.spec.tool_choice is None
    assert lower(LOOK_UP, tools__names=None)[1].request["tools"][0]["name"] == "look up"


@each_case(
    ("choice", "expected"),
    [
        (ToolChoice("tool", "look up"), ToolChoice("tool", RULE.fit("look up"))),
        (
            ToolChoice("auto", names=("search", "look up")),
            ToolChoice("auto", names=("search", RULE.fit("look up"))),
        ),
        (ToolChoice("required"), ToolChoice("required")),
        (ToolChoice("none"), ToolChoice("none")),
    ],
)
def test_a_tool_choice_has_legal_names(choice: ToolChoice, expected: ToolChoice) -> None:
    third = Tool("third", "x", parameters=SEARCH.parameters)
    formatter, plan = lower(LOOK_UP, SEARCH, third, choice=choice, tools__allowed=frozenset({"auto"}))
    assert formatter.spec.tool_choice == expected
    assert len(plan.request["tools"]) == 3
    assert plan.ledger.syntheses == []


def test_the_choice_none_declares_no_tools_if_the_target_refuses_it() -> None:
    formatter, plan = lower(SEARCH, choice="none", tools__choices=frozenset({"auto"}))
    assert (formatter.spec.tools, formatter.spec.tool_choice) == ((), None)
    assert [(added.name, added.reason) for added in plan.ledger.syntheses] == [
        ("tool choice", "Echo does not accept tool_choice 'none', so the request declares no tools")
    ]


def test_two_tools_that_would_have_one_name_are_an_error() -> None:
    rule = NameRule(limit=4, pattern="[a-f0-9]+")
    twin = Tool(rule.fit("look up"), "x", parameters=SEARCH.parameters)
    with pytest.raises(MessageError) as caught:
        lower(SEARCH, LOOK_UP, twin, tools__names=rule)
    assert str(caught.value) == (
        f"tools[2].name: the names 'look up' and {twin.name!r} would both become {twin.name!r} for this API. "
        "Rename one of the tools."
    )


def test_the_tools_and_the_choice_are_written_with_the_keys_of_the_layout() -> None:
    options = OptionLayout(choices=("choice", "mode.of.the.choice"))
    capabilities = EchoFormatter.base.override({"layout": WireLayout(tools="functions", options=options)})

    def write(spec: RequestSpec) -> Request:
        return spec.write_tools(lambda tool: tool.name, lambda choice: choice.mode)

    assert write(RequestSpec(capabilities, tools=(SEARCH,), tool_choice=ToolChoice("auto"))) == {
        "functions": ["search"],
        "choice": "auto",
    }
    assert write(RequestSpec(capabilities, tools=(SEARCH,))) == {"functions": ["search"]}
    assert write(RequestSpec(capabilities, tool_choice=ToolChoice("auto"))) == {}


def test_calls_of_renamed_tools_keep_their_names() -> None:
    formatter, _ = lower(LOOK_UP)
    formatter.lower([call("c", tool="look up")], tools=[LOOK_UP])
    assert formatter.legal.tool_names == {RULE.fit("look up"): "look up"}
