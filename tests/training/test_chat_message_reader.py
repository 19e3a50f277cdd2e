"""Messages of rows: results belong to their calls, and unknown keys are kept."""

from __future__ import annotations

from typing import Any, Final

from agentkit import ToolResultBlock, ToolUseBlock
from agentkit.training import Sample, dump_rows, load_rows

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
