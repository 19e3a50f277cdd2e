"""Messages of rows: results belong to their calls, and unknown keys are kept."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from agentkit import MessageError, Tool, ToolResultBlock, ToolUseBlock
from agentkit.training import Sample, dump_rows, load_rows
from tests.cases import each_case

USER: Final = {"role": "user", "content": "Where?"}


def load(format: Any, *messages: Any) -> Sample:
    column = "conversations" if format == "sharegpt" else "messages"
    (sample,) = load_rows(format, [{column: list(messages)}])
    return sample


def _call(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "look", "arguments": {"q": number}}, **fields}


def _list_ids(sample: Sample) -> list[str]:
    return [
        block.id
        for msg in sample.msgs
        for block in msg.blocks
        if isinstance(block, ToolUseBlock | ToolResultBlock)
    ]


def test_results_with_names_and_without_ids_belong_to_calls_in_their_order() -> None:
    results = [{"role": "tool", "name": "look", "content": text} for text in "abc"]
    calls = {"role": "assistant", "tool_calls": [_call(1), _call(2)]}
    sample = load("trl", USER, calls, *results[:2], {"role": "assistant", "tool_calls": [_call(3)]}, results[2])
    assert _list_ids(sample) == ["call_1", "call_2", "call_1", "call_2", "call_3", "call_3"]


def test_a_result_without_an_id_never_belongs_to_an_answered_call() -> None:
    answered = {"role": "tool", "name": "look", "tool_call_id": "c1", "content": "a"}
    calls = [{"role": "assistant", "tool_calls": [call]} for call in (_call(1, id="c1"), _call(2))]
    sample = load("openai", USER, calls[0], answered, calls[1], {"role": "tool", "content": "b"})
    assert _list_ids(sample) == ["c1", "c1", "call_2", "call_2"]


def test_a_call_without_an_id_gets_an_id_that_no_open_call_has() -> None:
    sample = load("openai", USER, {"role": "assistant", "tool_calls": [_call(1, id="call_2"), _call(2)]})
    assert _list_ids(sample) == ["call_2", "call_3"]


def test_keys_that_the_role_does_not_have_become_metadata() -> None:
    calls = [_call(1, id="c1")]
    sample = load(
        "openai",
        {**USER, "tool_calls": calls, "reasoning_content": "Hm.", "tool_call_id": None},
        {"role": "assistant", "tool_calls": calls, "tool_call_id": "c9"},
        {"role": "tool", "tool_call_id": "c1", "content": "there", "refusal": "No."},
    )
    assert [msg.metadata for msg in sample.msgs] == [
        {"tool_calls": calls, "reasoning_content": "Hm."},
        {"tool_call_id": "c9"},
        {"refusal": "No."},
    ]


def test_unknown_keys_of_a_call_become_metadata() -> None:
    function = {"name": "look", "arguments": {"q": 1}, "parsed": {"a": 1}}
    calls = [
        {"id": "c1", "type": "function", "function": function, "index": 0},
        {"name": "look", "parameters": {"q": 1}, "index": 0},
    ]
    expected = [
        ToolUseBlock("c1", "look", {"q": 1}, metadata={"index": 0, "function": {"parsed": {"a": 1}}}),
        ToolUseBlock("call_2", "look", {"q": 1}, metadata={"index": 0}),
    ]
    assert load("openai", {"role": "assistant", "tool_calls": calls}).msgs[0].content == tuple(expected)
    turn = {"from": "function_call", "value": json.dumps(calls)}
    assert load("sharegpt", turn).msgs[0].content == tuple(expected)


def test_unknown_keys_of_tools_are_written_back() -> None:
    tool: dict[str, Any] = {
        "name": "look",
        "parameters": {"type": "object", "properties": {}},
        "return": {"type": "string"},
    }
    row = {"messages": [USER], "tools": [{"type": "function", "function": tool, "strict": None}]}
    (sample,) = load_rows("openai", [row])
    assert sample.tools == (Tool("look"),)
    assert next(dump_rows("openai", [sample]))["tools"] == [{"type": "function", "function": tool}]


def test_all_thinking_of_a_reply_is_kept() -> None:
    keys = {"reasoning_content": "a", "reasoning": "b", "thinking": "a"}
    (msg,) = load("openai", {"role": "assistant", "content": "There.", **keys}).msgs
    assert (msg.thinking, msg.metadata) == ("a", {"reasoning": "b"})


@each_case("content", ["f(1)", '{"a": 1}', [{"type": "text", "content": "f(1)"}]])
def test_code_of_ipython_is_a_call_of_the_code_interpreter(content: Any) -> None:
    code = content if isinstance(content, str) else "f(1)"
    call = {"role": "assistant", "content": content, "ipython": True, "eot": False}
    sample = load("openai", {"role": "user", "content": "Run."}, call, {"role": "ipython", "content": "R"})
    assert sample.msgs[1].content == (ToolUseBlock("call_1", "code_interpreter", {"code": code}),)
    assert sample.msgs[2].content == (ToolResultBlock("call_1", "code_interpreter", "R"),)
    assert list(load_rows("openai", dump_rows("openai", [sample]))) == [sample]


def test_ipython_of_a_message_without_a_call_is_kept() -> None:
    fields: dict[str, Any] = {"role": "assistant", "ipython": True}
    image = [{"type": "image_url", "image_url": {"url": "a.png"}}]
    odd = {**fields, "content": "f(1)", "ipython": "yes"}
    msgs = load("openai", {**fields, "content": " "}, {**fields, "content": image}, odd).msgs
    assert [msg.metadata for msg in msgs] == [{"ipython": True}, {"ipython": True}, {"ipython": "yes"}]
    assert msgs[2].text == "f(1)"


@each_case(
    ("fields", "weight"),
    {
        "a weight": ({"weight": 1.0}, 1),
        "a mask": ({"masked": False, "weight": None}, 1),
        "both": ({"masked": True, "weight": 0}, 0),
        "a contradiction": ({"masked": True, "weight": 1}, "masked: the value True contradicts the weight 1"),
        "a mask that is a text": ({"masked": "false"}, "masked: expected true or false, got 'false'"),
        "a large weight": ({"weight": 10**400}, "weight: expected 0 or 1, got 1000"),
        "no number": ({"weight": float("nan")}, "weight: expected 0 or 1, got nan"),
    },
)
def test_weights(fields: dict[str, Any], weight: object) -> None:
    if isinstance(weight, int):
        assert load("openai", {**USER, **fields}).weights == (weight,)
    else:
        with pytest.raises(MessageError, match=rf"line 1, messages\[0\].{weight}"):
            load("openai", {**USER, **fields})


def test_unknown_keys_of_a_turn_become_metadata() -> None:
    call = '{"name": "look", "arguments": {}}'
    turns = [("human", "Where?"), ("function_call", call), ("observation", "there"), ("gpt", "There.")]
    sample = load("sharegpt", *({"from": name, "value": text, "loss": False} for name, text in turns))
    assert [msg.metadata for msg in sample.msgs] == [{"loss": False}] * 4


def test_a_text_that_is_empty_is_no_loss_in_sharegpt() -> None:
    turns = [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "", "weight": 0}]
    assert next(dump_rows("sharegpt", [load("sharegpt", *turns)])) == {"conversations": turns}


def test_a_system_turn_of_sharegpt_has_precedence_over_the_column() -> None:
    turns = [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "Hm."}]
    (sample,) = load_rows("sharegpt", [{"conversations": turns, "system": "Be long."}])
    assert ([msg.text for msg in sample.msgs], sample.extra) == (["Be brief.", "Hm."], {"system": "Be long."})
    (replaced,) = load_rows("sharegpt", [{"conversations": turns, "system": "Be long."}], system="Hm?")
    assert ([msg.text for msg in replaced.msgs], replaced.extra) == (["Hm?", "Hm."], {})
