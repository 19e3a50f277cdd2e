"""Rows of a history with tool calls: as text, as blocks, and through the request of a provider."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit import ImageBlock, Msg, OptionError, TextBlock, Tool, ToolResultBlock, ToolUseBlock
from agentkit.prompts import (
    ChatAdapter,
    History,
    InputField,
    OutputField,
    PromptAdapter,
    Signature,
    TwoStepAdapter,
)
from agentkit.prompts.history_rows import read_row
from agentkit.testing import ScriptedModel
from agentkit_openai import OpenAIChatFormatter
from tests.cases import each_case


class Agent(Signature):
    """Answer with tools."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    history: History = InputField()
    calls: list[ToolUseBlock] = OutputField()
    answer: str | None = OutputField()


CALLS = [ToolUseBlock("c1", "look", {"at": "sea"}), ToolUseBlock("c2", "look", {"at": "sky"})]
RESULTS = [ToolResultBlock("c1", "look", "waves"), ToolResultBlock("c2", "look", "fog", is_error=True)]
STORED = {
    "tool_calls": [{"id": "c1", "name": "look", "args": {"at": "sea"}}, {"name": "look", "args": {"at": "sky"}}],
    "tool_call_results": {
        "tool_call_results": [
            {"call_id": "c1", "name": "look", "value": {"height": 2}},
            {"call_id": None, "name": "look", "value": "fog", "is_error": True},
        ]
    },
}


def format_rows(adapter: ChatAdapter | PromptAdapter, *rows: dict[str, Any]) -> list[Msg]:
    """Returns the messages of a history, without the system message and the request."""
    inputs: dict[str, Any] = {"question": "Now?", "tools": [], "history": History(rows)}
    return adapter.format(Agent, inputs)[1:-1]


def test_calls_and_results_are_texts() -> None:
    request, reply, results = format_rows(ChatAdapter(), {"question": "One?", "calls": [*CALLS, *RESULTS]})
    assert request.text.startswith("[[ ## question ## ]]\nOne?\n\nRespond with")
    assert '{"tool_calls": [{"name": "look", "args": {"at": "sea"}}, {"name"' in reply.text
    header, _, text = results.text.partition("\n")
    assert (results.role, header) == ("user", "[[ ## tool_call_results ## ]]")
    assert json.loads(text)["tool_call_results"] == [
        {"call_id": "c1", "name": "look", "value": "waves", "is_error": False},
        {"call_id": "c2", "name": "look", "value": "fog", "is_error": True},
    ]


@pytest.mark.parametrize("adapter", [ChatAdapter(native_tools=True), PromptAdapter()], ids=["chat", "prompt"])
def test_calls_and_results_are_blocks(adapter: ChatAdapter | PromptAdapter) -> None:
    row = {"question": "One?", "calls": [*CALLS, *RESULTS], "answer": "I look."}
    request, reply, results = format_rows(adapter, row)
    assert request.role == "user"
    assert reply.tool_uses == tuple(CALLS)
    assert "I look." in reply.text
    assert results.tool_results == tuple(RESULTS)
    request_messages = OpenAIChatFormatter().lower([request, reply, results]).request["messages"]
    assert [message["role"] for message in request_messages] == ["user", "assistant", "tool", "tool"]


@pytest.mark.parametrize("adapter", [ChatAdapter(native_tools=True), PromptAdapter()], ids=["chat", "prompt"])
def test_stored_calls_without_ids_get_different_ids(adapter: ChatAdapter | PromptAdapter) -> None:
    row = {"question": "One?", "calls": STORED}
    _, first, results, _, second, _ = format_rows(adapter, row, row)
    assert [call.id for call in first.tool_uses] == [result.id for result in results.tool_results]
    assert first.tool_uses[0].id == "c1"
    assert first.tool_uses[1].id != second.tool_uses[1].id
    assert [result.output for result in results.tool_results] == ['{"height": 2}', "fog"]
    assert [result.is_error for result in results.tool_results] == [False, True]


def test_calls_without_results_are_sent_and_repaired() -> None:
    msgs = format_rows(ChatAdapter(native_tools=True), {"question": "One?", "calls": CALLS})
    assert [msg.role for msg in msgs] == ["user", "assistant"]
    plan = OpenAIChatFormatter().lower([*msgs, Msg("user", "Now?", "user")])
    assert [message["role"] for message in plan.request["messages"]] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]


def test_a_row_without_calls_is_unchanged() -> None:
    row = {"question": "One?", "answer": "Two."}
    assert read_row(row, "history[0]", Agent.fields).values is row
    assert format_rows(ChatAdapter(native_tools=True), row)[1].text.startswith("[[ ## answer ## ]]\nTwo.")


IMAGE = ToolResultBlock("c1", "look", [TextBlock("see"), ImageBlock.from_url("https://a.test/a.png")])
INVALID_ROWS: list[tuple[Any, str]] = [
    ({"tool_calls": [{"args": {}}]}, r"history\[0\]\.calls\[0\]"),
    ({"tool_calls": [3]}, r"history\[0\]\.calls\[0\]"),
    ({"tool_calls": [], "tool_call_results": [{"name": "look"}]}, r"calls\.tool_call_results\[0\]"),
    ({"tool_calls": [], "tool_call_results": 3}, r"calls\.tool_call_results\[0\]"),
    ([*CALLS, IMAGE], r"history\[0\]\.calls"),
]


@each_case(("value", "place"), INVALID_ROWS)
def test_an_invalid_row_is_an_error_with_its_place(value: object, place: str) -> None:
    with pytest.raises(OptionError, match=place):
        read_row({"calls": value}, "history[0]", Agent.fields)


@pytest.mark.parametrize("native_tools", [False, True])
def test_a_stored_request_has_the_same_messages(native_tools: bool) -> None:
    row = {"question": "One?", "calls": [*CALLS, *RESULTS]}
    request = Agent(question="Now?", tools=[], history=History([row]))
    loaded = Agent.from_dict(json.loads(json.dumps(request.to_dict())))
    adapter = ChatAdapter(native_tools=native_tools)
    assert adapter.format(Agent, loaded) == adapter.format(Agent, request)


@each_case(
    "value",
    [
        RESULTS,
        {"tool_calls": [], "tool_call_results": [{"name": "look", "value": "x"}]},
        [*CALLS, "text"],
        [*CALLS, TextBlock("text")],
        [{"type": "tool_use", "id": 3}],
    ],
)
@each_case("native_tools", [False, True])
def test_a_row_that_is_no_exchange_is_an_error(value: object, native_tools: bool) -> None:
    with pytest.raises(OptionError, match=r"^history\[0\]\.calls"):
        format_rows(ChatAdapter(native_tools=native_tools), {"question": "One?", "calls": value})


def test_a_result_without_an_id_gets_the_id_of_a_call_without_a_result() -> None:
    stored: dict[str, Any] = {
        "tool_calls": [{"id": "a", "name": "look", "args": {}}, {"id": "b", "name": "look", "args": {}}],
        "tool_call_results": [{"call_id": "b", "name": "look", "value": 1}, {"name": "look", "value": 2}],
    }
    row = read_row({"calls": stored}, "history[0]", Agent.fields)
    assert [(result.id, result.output) for result in row.results] == [("b", "1"), ("a", "2")]


def test_a_list_of_dicts_in_another_field_is_not_an_exchange() -> None:
    signature = Signature("history: History, question -> people: list[dict[str, Any]]", types={"History": History})
    row: dict[str, Any] = {"question": "Who?", "people": [{"name": "Ann", "args": {}}]}
    assert read_row(row, "history[0]", signature.fields).calls == ()


def test_a_two_step_adapter_writes_results_as_json() -> None:
    inputs: dict[str, Any] = {
        "question": "Now?",
        "tools": [],
        "history": History([{"question": "One?", "calls": STORED}]),
    }
    text = TwoStepAdapter(ScriptedModel([])).format(Agent, inputs)[3].text
    results = json.loads(text.removeprefix("tool_call_results: "))["tool_call_results"]
    assert [result["value"] for result in results] == [{"height": 2}, "fog"]
