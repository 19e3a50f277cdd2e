"""Tools, tool choices and output schemas are rewritten to what a target accepts."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import Msg, MultiAgentHistory, Synthesis, Tool, ToolChoice
from agentkit.provider_kit import FormatterBase, LegalConversation, Request, RequestSpec, StrictRules, copy_json
from tests.cases import each_case
from tests.conftest import ECHO, EchoFormatter, call, result, target, text_msg

BOB: Final = text_msg("Bob", "hi")
MSGS: Final = [Msg("system", "Be brief.", "system"), Msg("Bob", "Hi.", "user")]
ANSWER: Final[dict[str, Any]] = {"type": "object", "properties": {"verdict": {"type": "string"}}}
FREE: Final[dict[str, Any]] = {"type": "object", "properties": {}}
OPEN: Final[dict[str, Any]] = {"type": "object", "properties": {"x": {"type": "string"}}}
CLOSED: Final[dict[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": False}
WIDE: Final = StrictRules(
    keywords=frozenset({"type", "properties", "required", "additionalProperties"}),
    formats=frozenset(),
    is_request_wide=True,
)


def reasons(plan: Any) -> list[str]:
    return [synthesis.reason for synthesis in plan.ledger.syntheses]


# -- an output schema beside tools --------------------------------------------------------------------------------


@each_case("output", ["schema", "object"])
@each_case("system_role", [True, False])
def test_a_schema_that_cannot_be_combined_with_tools_is_stated_in_the_prompt(
    output: str, *, system_role: bool
) -> None:
    formatter = target(output=output, can_combine_output=False, turns__system_role=system_role)()
    plan = formatter.lower(MSGS, tools=[Tool("look")], response_format=ANSWER)
    assert "schema" not in plan.request
    assert plan.request["tools"]
    assert str(plan.request["messages"]).count("verdict") == 1
    reason = "the API cannot enforce a JSON schema together with tools"
    assert reasons(plan) == [f"{reason}, so a text asks the model to follow the schema"]


@pytest.mark.parametrize("options", [{"response_format": ANSWER}, {"tools": [Tool("look")]}])
def test_a_schema_alone_and_tools_alone_are_sent_as_usual(options: dict[str, Any]) -> None:
    exclusive, usual = target(can_combine_output=False)(), EchoFormatter()
    plan = exclusive.lower(MSGS, **options)
    assert plan.request == usual.lower(MSGS, **options).request
    assert not plan.ledger.syntheses


@pytest.mark.anyio
async def test_the_schema_is_stated_in_multi_agent_requests_and_whole_plans() -> None:
    formatter = target(can_combine_output=False)(history=MultiAgentHistory())
    plan = await formatter.plan(MSGS, tools=[Tool("look")], response_format=ANSWER)
    assert "schema" not in plan.request
    assert str(plan.request["messages"]).count("verdict") == 1


# -- a choice of one tool -----------------------------------------------------------------------------------------


def test_a_chosen_tool_is_the_only_tool_where_the_target_accepts_only_required() -> None:
    formatter = target(tools__choices=frozenset({"auto", "required"}))()
    plan = formatter.lower(MSGS, tools=[Tool("look"), Tool("count")], tool_choice="look")
    assert [tool["name"] for tool in plan.request["tools"]] == ["look"]
    assert plan.request["tool_choice"] == "required"
    assert len(plan.request["messages"]) == len(MSGS)
    assert reasons(plan) == [
        "Echo cannot limit the choice to some of the tools, so the request declares only 'look'"
    ]


def test_a_chosen_tool_that_is_the_only_tool_is_required_without_a_note() -> None:
    formatter = target(tools__choices=frozenset({"auto", "required"}))()
    plan = formatter.lower(MSGS, tools=[Tool("look")], tool_choice="look")
    assert plan.request["tool_choice"] == "required"
    assert not plan.ledger.syntheses


def test_a_chosen_tool_is_the_allowed_subset_where_the_target_has_subsets() -> None:
    choices: list[ToolChoice | None] = []

    class Listing(EchoFormatter):
        base = ECHO.override(
            {"tools.choices": frozenset({"auto", "required"}), "tools.allowed": frozenset({"required"})}
        )

        def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
            choices.append(task.tool_choice)
            return super().convert(legal, task)

    plan = Listing().lower(MSGS, tools=[Tool("look"), Tool("count")], tool_choice="look")
    assert choices == [ToolChoice("required", names=("look",))]
    assert len(plan.request["tools"]) == 2
    assert not plan.ledger.syntheses


# -- one strict mode for all tools --------------------------------------------------------------------------------


class OneFlag(EchoFormatter):
    """Formatter of an API with one flag for the strict mode of all tools."""

    base = ECHO.override({"tools.strict": WIDE})

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        flag = {"strict_tools": True} if any(tool.strict for tool in task.tools) else {}
        tools = [{"name": tool.name, "parameters": copy_json(tool.parameters)} for tool in task.tools]
        return {**super().convert(legal, task), "tools": tools, **flag}


def tool(name: str, parameters: dict[str, Any], *, strict: bool | None = True) -> Tool:
    return Tool(name, "", parameters, strict=strict)


def test_one_flag_makes_all_tools_strict() -> None:
    formatter: FormatterBase = OneFlag()
    plan = formatter.lower(MSGS, tools=[tool("a", CLOSED), tool("b", FREE)])
    assert plan.request["strict_tools"] is True
    assert all(declared["parameters"]["additionalProperties"] is False for declared in plan.request["tools"])
    assert not plan.ledger.syntheses


@pytest.mark.parametrize("strict", [None, False])
def test_no_tool_is_strict_if_one_of_them_is_not(strict: bool | None) -> None:
    formatter: FormatterBase = OneFlag()
    plan = formatter.lower(MSGS, tools=[tool("a", FREE), tool("b", FREE, strict=strict)])
    assert "strict_tools" not in plan.request
    assert all("additionalProperties" not in declared["parameters"] for declared in plan.request["tools"])
    assert reasons(plan) == [
        "tool 'a' sent without strict mode, because Echo has one strict mode for all tools, "
        "and the tool 'b' is not strict"
    ]


def test_no_tool_is_strict_if_the_schema_of_one_of_them_cannot_be() -> None:
    formatter: FormatterBase = OneFlag()
    plan = formatter.lower(MSGS, tools=[tool("a", CLOSED), tool("b", OPEN)])
    assert "strict_tools" not in plan.request
    assert reasons(plan) == [
        "tool 'b' sent without strict mode, because the optional property x is not allowed in strict mode",
        "tool 'a' sent without strict mode, because Echo has one strict mode for all tools, "
        "and the tool 'b' is not strict",
    ]


# -- declarations -------------------------------------------------------------------------------------------------


def test_the_tools_of_earlier_calls_are_declared_once_and_may_not_be_called() -> None:
    formatter = target(tools__needs_declarations=True)()
    msgs = [BOB, call("a", "b", tool="look"), result("a", "b"), call("c"), result("c")]
    plan = formatter.lower(msgs)
    assert [tool["name"] for tool in plan.request["tools"]] == ["look", "search"]
    assert plan.request["tool_choice"] == "none"
    reason = "the API requires declarations of all tools that were called; tool_choice 'none' forbids new calls"
    assert plan.ledger.syntheses == [Synthesis("declared tools", reason)]
    assert [tool["name"] for tool in formatter.lower(msgs, tools=[Tool("walk")]).request["tools"]] == ["walk"]


def test_declared_tools_have_no_tool_choice_if_the_api_has_no_choice_none() -> None:
    formatter = target(tools__needs_declarations=True, tools__choices=frozenset({"auto"}))()
    plan = formatter.lower([BOB, call("a"), result("a")])
    assert "tool_choice" not in plan.request
    reason = "the API requires declarations of all tools that were called"
    assert plan.ledger.syntheses == [Synthesis("declared tools", reason)]


def test_no_tool_is_declared_if_none_was_called() -> None:
    plan = target(tools__needs_declarations=True, turns__merge=True)().lower([BOB, BOB])
    assert plan.ledger.syntheses == []
    assert plan.request.keys() == {"messages"}
