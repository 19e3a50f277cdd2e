"""Logs of every API converted to every other API: the request is valid, and the ledger lists each loss."""

import asyncio
import copy
import json
from functools import cache
from typing import Any

import pytest

from agentkit import (
    Block,
    ImageBlock,
    Msg,
    Plan,
    RequestOptions,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    load_messages,
    load_native,
    load_request_options,
)
from tests.cases import each_case
from tests.logs.native_logs import LOGS, TEXTS
from tests.providers import PNG, PROVIDERS, assistant, call, chat, multi_agent, problems, result, system, user


@cache
def _load_log(source: str) -> tuple[list[Msg], RequestOptions]:
    return load_native(source, LOGS[source]), load_request_options(source, LOGS[source])


@cache
def _plan(source: str, target: str, multi: bool) -> tuple[list[Msg], Plan]:
    msgs, asked = _load_log(source)
    formatter = (multi_agent if multi else chat)(target)
    return msgs, asyncio.run(formatter.plan(msgs, **asked))


def _get_expected_text(block: Block) -> str:
    """Returns the JSON text that a request must contain for a block that was not lost."""
    match block:
        case TextBlock():
            return json.dumps(block.text)[1:-1]
        case ThinkingBlock():
            return json.dumps(block.thinking)[1:-1]
        case ToolUseBlock():
            return block.name
        case ToolResultBlock():
            return json.dumps(block.text)[1:-1]
        case ImageBlock():
            return PNG
        case _:
            raise AssertionError(block)


@each_case("source", [*LOGS])
def test_each_log_loads_as_the_same_conversation(source: str) -> None:
    msgs, asked = _load_log(source)
    texts = [msg.text or msg.tool_results[0].text for msg in msgs]
    assert texts == [*TEXTS, "Thanks."]
    assert [msg.role for msg in msgs if not msg.tool_results] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "user",
    ]
    (call,) = (call for msg in msgs for call in msg.tool_uses)
    (result,) = (result for msg in msgs for result in msg.tool_results)
    assert (call.name, call.input, result.id) == ("look", {"place": "here"}, call.id)
    assert [type(block) for block in msgs[1].media] == [ImageBlock]
    assert bool(msgs[2].thinking) is (source != "openai")
    assert [getattr(tool, "name", None) for tool in asked.get("tools") or []] == (
        ["look"] if source in PROVIDERS else []
    )


@each_case("source", [*LOGS])
def test_loading_does_not_change_the_log(source: str) -> None:
    before = copy.deepcopy(LOGS[source])
    load_native(source, LOGS[source])
    load_request_options(source, LOGS[source])
    assert before == LOGS[source]


@each_case("source", PROVIDERS)
def test_a_loaded_request_is_built_again_unchanged(source: str) -> None:
    msgs, asked = _load_log(source)
    request = chat(source).lower(msgs, **asked).request
    again = chat(source).lower(load_native(source, request), **load_request_options(source, request)).request
    assert again == request


@each_case("multi", [False, True])
@each_case("target", PROVIDERS)
@pytest.mark.parametrize("source", LOGS)
def test_the_request_is_valid_and_the_ledger_lists_each_loss(source: str, target: str, multi: bool) -> None:
    msgs, plan = _plan(source, target, multi)
    assert problems(target, plan.request) == []
    body = json.dumps(plan.request)
    fates = {entry.place: entry for entry in plan.ledger.entries}
    for index, msg in enumerate(msgs):
        for number, block in enumerate(msg.blocks):
            fate = fates[f"msgs[{index}].content[{number}]"]
            if fate.disposition.word in ("dropped", "described"):
                assert fate.reason
            else:
                assert _get_expected_text(block) in body


@each_case("target", PROVIDERS)
@pytest.mark.parametrize("source", PROVIDERS)
def test_thinking_is_dropped_for_other_issuers(source: str, target: str) -> None:
    msgs, plan = _plan(source, target, False)
    thinking = [
        f"msgs[{index}].content[{n}]"
        for index, m in enumerate(msgs)
        for n, b in enumerate(m.blocks)
        if b.type == "thinking"
    ]
    foreign = source.partition("-")[0] != target.partition("-")[0]
    for entry in plan.ledger.entries:
        if entry.place in thinking and foreign:
            assert entry.disposition.word == "dropped"


@each_case("source", [*LOGS])
def test_loaded_messages_can_be_stored(source: str) -> None:
    msgs, _ = _load_log(source)
    stored: Any = [msg.to_dict() for msg in msgs]
    assert load_messages(json.loads(json.dumps(stored))) == msgs


@each_case("provider", PROVIDERS)
@each_case("output", ["no net \n", "  no net", "no net"])
def test_the_whitespace_of_a_failed_result_does_not_change(provider: str, output: str) -> None:
    msgs = [user("Go."), assistant(call("c1")), system(result("c1", output, is_error=True))]
    request = chat(provider).lower(msgs).request
    assert json.dumps(output)[1:] in json.dumps(request)
    if provider in ("dashscope", "ollama"):  # the formatters mark errors in these logs
        (loaded,) = load_native(provider, request)[2].tool_results
        assert (loaded.text, loaded.is_error) == (output, True)
