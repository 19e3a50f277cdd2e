"""`load_rows` and `dump_rows`: each format, round trips, losses, and errors with their line."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import reduce
from itertools import product
from operator import getitem
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    Base64Source,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OptionError,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from agentkit.tools.tool import as_tools
from agentkit.training import Sample, dump_rows, load_rows, samples_from_log
from agentkit.training.rows.row_formats import FORMATS
from tests.cases import each_case
from tests.profiles import examples
from tests.providers.mangling import mangled

TOOL: Final = Tool("look", "Looks.", {"type": "object", "properties": {"q": {"type": "integer"}}})
TOOL_DICT: Final = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": TOOL.parameters},
}
USER: Final = Msg("user", "Where?", "user")
REPLY: Final = Msg("assistant", "There.", "assistant")
CALL: Final = Msg("assistant", [ToolUseBlock("call_1", "look", {"q": 1})], "assistant")
RESULT: Final = Msg("tool", [ToolResultBlock("call_1", "look", "found")], "system")
IMAGE: Final = ImageBlock(URLSource("https://example.org/a.png"))
ANY: Any = None
OnLoss: TypeAlias = Literal["raise"] | Callable[[str, str], object]


def load(format: Any, *rows: Any, **options: Any) -> list[Sample]:
    return list(load_rows(format, rows, **options))


def dump(format: Any, *samples: Sample, on_loss: OnLoss = "raise") -> list[dict[str, Any]]:
    return list(dump_rows(format, samples, on_loss=on_loss))


# -- formats -----------------------------------------------------------------------------------------------------


def test_openai_rows_have_tools_weights_and_other_columns() -> None:
    row = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hm?"}, *_image()], "name": "Bob"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "Hm.",
                "tool_calls": [_call("call_1", '{"q": 1}')],
                "weight": 0,
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "found", "name": "look"},
            {"role": "assistant", "content": "There.", "weight": 1},
        ],
        "tools": [TOOL_DICT],
        "parallel_tool_calls": False,
    }
    (sample,) = load("openai", row)
    call = ToolUseBlock("call_1", "look", {"q": 1}, '{"q": 1}')
    assert sample == Sample(
        [
            Msg("system", "Be brief.", "system"),
            Msg("Bob", [TextBlock("Hm?"), IMAGE], "user"),
            Msg("assistant", [ThinkingBlock("Hm."), call], "assistant"),
            RESULT,
            REPLY,
        ],
        [TOOL],
        [None, None, 0, None, 1],
        extra={"parallel_tool_calls": False},
    )
    assert dump("openai", sample) == [row]


def _image(url: str = "https://example.org/a.png") -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": url}}]


def _call(id: str, arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def test_rows_of_torchtune_are_read() -> None:
    row = {
        "messages": [
            {"role": "user", "content": "Where?", "masked": True, "eot": True},
            {
                "role": "assistant",
                "content": '{"name": "look", "parameters": {"q": 1}}',
                "ipython": True,
                "eot": False,
            },
            {"role": "ipython", "content": [{"type": "text", "content": "found"}], "masked": True, "eot": False},
            {"role": "assistant", "content": "There.", "masked": False},
        ]
    }
    assert load("openai", row) == [Sample([USER, CALL, RESULT, REPLY], weights=[0, None, 0, 1])]


def test_older_rows_of_openai_are_read() -> None:
    row = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "function_call": {"name": "look", "arguments": '{"q":1}'}},
            {"role": "function", "name": "look", "content": "found"},
            {"role": "assistant", "content": None, "refusal": "No."},
        ],
        "functions": [TOOL_DICT["function"]],
    }
    system = Msg("system", "Be brief.", "system")
    refusal = Msg("assistant", [TextBlock("No.", metadata={"refusal": True})], "assistant")
    assert load("openai", row) == [Sample([system, USER, CALL, RESULT, refusal], [TOOL])]


def test_a_refusal_survives_or_is_a_loss() -> None:
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    row: dict[str, Any] = {"messages": [{"role": "user", "content": "Where?"}, refusal]}
    (sample,) = load("openai", row)
    assert dump("openai", sample) == dump("dspy", sample) == [row]
    part = {"type": "refusal", "refusal": "No."}
    for parts in ([part], [{"type": "text", "text": "Well."}, part], [part, part]):
        samples = load("openai", {"messages": [{"role": "assistant", "content": parts}]})
        assert load("openai", *dump("openai", *samples)) == samples
    for format in ("trl", "sharegpt", "atif", "alpaca"):
        with pytest.raises(MessageError, match=r"msgs\[1\].content\[0\]: the format has no field for refusals"):
            dump(format, sample)
    (row,) = dump("trl", sample, on_loss=lambda place, reason: None)
    assert row["messages"][1] == {"role": "assistant", "content": "No."}


def test_trl_rows_have_objects_as_arguments_and_tools_as_text() -> None:
    sample = Sample(
        [USER, CALL, RESULT, REPLY], [TOOL], extra={"chat_template_kwargs": {"enable_thinking": False}}
    )
    (row,) = dump("trl", sample)
    assert row["messages"][1]["tool_calls"] == [_call("call_1", {"q": 1})]
    assert json.loads(row["tools"]) == [TOOL_DICT]
    assert load("trl", row) == [sample]
    assert sample.variables == {"enable_thinking": False}


def test_trl_rows_have_a_completion_for_each_trained_reply() -> None:
    samples = [
        Sample([USER, REPLY, USER, REPLY], weights=[None, 0, None, 1]),
        Sample([USER, CALL, RESULT, REPLY], weights=[None, 1, None, 1]),
        Sample([USER, REPLY]),
    ]
    rows = dump("trl", *samples)
    assert [(len(row["prompt"]), len(row["completion"])) for row in rows] == [(3, 1), (1, 1), (3, 1), (1, 1)]
    assert load("trl", *rows) == [
        samples[0],
        Sample([USER, CALL], weights=[None, 1]),
        Sample([USER, CALL, RESULT, REPLY], weights=[None, 0, None, 1]),
        Sample([USER, REPLY], weights=[None, 1]),
    ]
    rows[1]["prompt"][0]["content"] = "changed"
    assert rows[2]["prompt"][0]["content"] == "Where?"
    with pytest.raises(MessageError, match=r"samples\[1\].msgs\[1\]: the format has no weights, so the reply"):
        dump("trl", Sample([USER, REPLY]), samples[0])
    with pytest.raises(MessageError, match=r"samples\[1\].weights: .* no reply is trained"):
        dump("trl", samples[0], Sample([USER, REPLY], weights=[None, 0]))
    with pytest.raises(MessageError, match=r"msgs\[2\]: the message follows the last trained reply"):
        dump("trl", Sample([USER, REPLY, USER], weights=[None, 1, None]))
    with pytest.raises(MessageError, match=r"samples\[1\].msgs\[0\]: the reply has no prompt"):
        dump("trl", samples[0], Sample([REPLY, USER, REPLY]))


def test_all_forms_of_trl_are_read() -> None:
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."}]
    turns = [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "There."}]
    plain, trained = Sample([USER, REPLY]), Sample([USER, REPLY], weights=[None, 1])
    pair = Sample([USER, REPLY], rejected=[USER])
    cases: list[tuple[dict[str, Any], Sample]] = [
        ({"messages": messages, "tools": None}, plain),
        ({"prompt": messages[:1], "completion": messages[1:]}, trained),
        ({"prompt": "Where?", "completion": "There."}, trained),
        ({"prompt": messages[:1]}, Sample([USER])),
        ({"prompt": "Where?"}, Sample([USER])),
        ({"chosen": messages, "rejected": messages[:1]}, pair),
        ({"conversations": turns}, plain),
        (
            {"prompt": "Where?", "completion": "There.", "label": True},
            Sample([USER, REPLY], weights=[None, 1], extra={"label": True}),
        ),
    ]
    for row, sample in cases:
        assert load("trl", row) == [sample], row
    placeholder = {"messages": [{"role": "user", "content": [{"type": "image"}]}], "images": ["a.png"]}
    assert load("trl", placeholder) == [Sample([Msg("user", [ImageBlock(URLSource("a.png"))], "user")])]


def test_rows_of_dspy_are_those_of_openai() -> None:
    from agentkit.prompts import ChatAdapter, Signature

    row = ChatAdapter().format_finetune_data(Signature("question -> answer"), {"question": "a"}, {"answer": "b"})
    (sample,) = load("dspy", row)
    assert [msg.role for msg in sample.msgs] == ["system", "user", "assistant"]
    assert dump("dspy", sample) == [row]


def test_sharegpt_rows_have_calls_results_and_images() -> None:
    row = {
        "conversations": [
            {"from": "system", "value": "Be brief."},
            {"from": "human", "value": "<image>Where?"},
            {"from": "function_call", "value": '{"name": "look", "arguments": {"q": 1}}', "weight": 0},
            {"from": "observation", "value": "found"},
            {"from": "gpt", "value": "There.", "weight": 1},
        ],
        "tools": json.dumps([TOOL_DICT["function"]]),
        "images": ["https://example.org/a.png"],
        "id": "x",
    }
    system, user = Msg("system", "Be brief.", "system"), Msg("user", [IMAGE, TextBlock("Where?")], "user")
    sample = Sample([system, user, CALL, RESULT, REPLY], [TOOL], [None, None, 0, None, 1], extra={"id": "x"})
    assert load("sharegpt", row) == [sample]
    assert dump("sharegpt", sample) == [row]
    turns = [{"from": "human", "value": "Where?"}]
    prefixed = {"conversations": turns, "system": "Be brief.", "image": "https://example.org/a.png"}
    assert load("sharegpt", prefixed) == [Sample([system, user])]
    with pytest.raises(MessageError, match="line 1, images: the messages have places for 1 of the 2 images"):
        load("sharegpt", {"conversations": [{"from": "human", "value": "<image>"}], "images": ["a", "b"]})
    with pytest.raises(MessageError, match="expected the URL, path or bytes of an image"):
        load("sharegpt", {"conversations": [{"from": "human", "value": "<image>"}]})


def test_alpaca_rows_have_a_system_prompt_and_a_history() -> None:
    row = {
        "instruction": "Where?",
        "input": "",
        "output": "There.",
        "system": "Be brief.",
        "history": [["Hello.", "Hi."]],
    }
    system, hello = Msg("system", "Be brief.", "system"), Msg("user", "Hello.", "user")
    sample = Sample([system, hello, Msg("assistant", "Hi.", "assistant"), USER, REPLY])
    assert load("alpaca", row) == [sample]
    assert dump("alpaca", sample) == [row]
    both = {"instruction": "Translate.", "input": "Hund", "output": "dog"}
    assert load("alpaca", both)[0].msgs[0].text == "Translate.\nHund"


def test_rows_of_stanford_alpaca_have_prompt_texts() -> None:
    rows = [
        {"instruction": "Translate.", "input": "Hund", "output": "dog"},
        {"instruction": "Where?", "input": "", "output": "There."},
        {"instruction": "a\n\n### Input:\nb", "input": "", "output": "c"},
    ]
    samples = load("stanford_alpaca", *rows)
    assert (
        samples[0]
        .msgs[0]
        .text.endswith("request.\n\n### Instruction:\nTranslate.\n\n### Input:\nHund\n\n### Response:\n")
    )
    assert samples[1].msgs[0].text.endswith("request.\n\n### Instruction:\nWhere?\n\n### Response:\n")
    assert dump("stanford_alpaca", *samples) == rows
    with pytest.raises(MessageError, match="not one of the prompt texts of Alpaca"):
        dump("stanford_alpaca", Sample([USER, REPLY]))
    with pytest.raises(MessageError, match="expected pairs of a user message"):
        dump("stanford_alpaca", Sample([Msg("system", "Hm.", "system"), *samples[0].msgs]))


def test_pairs_of_texts() -> None:
    assert load("input_output", {"input": "Where?", "output": "There.", "id": 1}) == [
        Sample([USER, REPLY], extra={"id": 1})
    ]
    assert dump("input_output", Sample([USER, REPLY])) == [{"input": "Where?", "output": "There."}]
    assert dump("prompt_completion", Sample([USER, REPLY])) == [{"prompt": "Where?", "completion": "There."}]
    assert load("prompt_completion", {"prompt": "Where?"}) == [Sample([USER])]
    picture = load("input_output", {"input": "Where?", "output": "There.", "image": "https://example.org/a.png"})
    assert picture == [Sample([Msg("user", [IMAGE, TextBlock("Where?")], "user"), REPLY])]


def test_preference_pairs() -> None:
    user, good = {"role": "user", "content": "Where?"}, {"role": "assistant", "content": "There."}
    bad = {"role": "assistant", "content": "No."}
    sample = Sample([USER, REPLY], [TOOL], rejected=[USER, Msg("assistant", "No.", "assistant")])
    row = {"chosen": [user, good], "rejected": [user, bad], "tools": json.dumps([TOOL_DICT])}
    assert dump("preference", sample) == dump("trl", sample) == [row]
    rows: list[dict[str, Any]] = [
        row,
        {"prompt": [user], "chosen": [good], "rejected": [bad], "tools": [TOOL_DICT]},
        {"prompt": "Where?", "chosen": "There.", "rejected": "No.", "tools": [TOOL_DICT]},
        {
            "input": {"messages": [user], "tools": [TOOL_DICT]},
            "preferred_output": [good],
            "non_preferred_output": [bad],
        },
    ]
    assert load("preference", *rows) == [sample] * 4
    assert load("preference", rows[0], system="Hm.")[0].rejected[0] == Msg("system", "Hm.", "system")
    with pytest.raises(MessageError, match="the sample has no rejected conversation"):
        dump("preference", Sample([USER, REPLY]))


TRAJECTORY: Final[dict[str, Any]] = {
    "schema_version": "ATIF-v1.4",
    "session_id": "s1",
    "agent": {"name": "Friday", "version": "1.0", "tool_definitions": [TOOL_DICT]},
    "steps": [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "timestamp": "2026-01-01T00:00:00Z", "source": "user", "message": "Where?"},
        {
            "step_id": 3,
            "source": "agent",
            "model_name": "m",
            "message": "Wait.",
            "reasoning_content": "Hm.",
            "tool_calls": [{"tool_call_id": "call_1", "function_name": "look", "arguments": {"q": 1}}],
            "observation": {"results": [{"source_call_id": "call_1", "content": "found"}, {"content": "done"}]},
            "metrics": {"prompt_tokens": 5, "completion_token_ids": [7, 8]},
        },
        {"step_id": 4, "source": "agent", "message": "There.", "is_copied_context": True},
    ],
    "final_metrics": {"total_steps": 4},
}


def test_trajectories_have_recorded_tokens() -> None:
    (sample,) = load("atif", TRAJECTORY)
    call = [ThinkingBlock("Hm."), TextBlock("Wait."), *CALL.blocks]
    step = {"model_name": "m", "metrics": {"prompt_tokens": 5}}
    assert sample == Sample(
        [
            Msg("system", "Be brief.", "system"),
            Msg("user", "Where?", "user", timestamp="2026-01-01T00:00:00Z"),
            Msg("assistant", call, "assistant", metadata={"atif": step}),
            RESULT,
            Msg("environment", "done", "user"),
            Msg("assistant", "There.", "assistant", metadata={"atif": {"is_copied_context": True}}),
        ],
        [TOOL],
        [None, None, None, None, None, 0],
        tokens={2: [7, 8]},
        extra={
            "session_id": "s1",
            "agent": {"name": "Friday", "version": "1.0"},
            "final_metrics": {"total_steps": 4},
        },
    )
    (row,) = dump("atif", sample)
    assert load("atif", row) == [sample]
    assert row["steps"][2]["metrics"] == TRAJECTORY["steps"][2]["metrics"]
    assert {**row["steps"][3], "extra": None} == {**TRAJECTORY["steps"][3], "extra": None}
    (replaced,) = load("atif", TRAJECTORY, system="Hm.")
    assert (replaced.msgs[0].text, replaced.tokens, replaced.weights) == ("Hm.", {2: (7, 8)}, sample.weights)


def test_recordings_need_the_prompt() -> None:
    recorded = {"fingerprint": "f", "label": "a", "provider": "openai", "model": "m", "reply": REPLY.to_dict()}
    sample = Sample([USER, REPLY], weights=[None, 1], source="a")
    assert load("recording", {**recorded, "error": None}, prompt=[USER]) == [sample]
    request = {"messages": [{"role": "user", "content": "Where?"}], "tools": [TOOL_DICT]}
    result = {**recorded, "request": request, "usage": None, "price": 1.5}
    assert load("recording", result) == [Sample([USER, REPLY], [TOOL], [None, 1], source="a")]
    assert load("recording", *dump("recording", sample)) == [sample]
    with pytest.raises(MessageError, match="line 1, request: the row has no request"):
        load("recording", recorded)
    with pytest.raises(MessageError, match=r"the model call failed \(RateLimitError\)"):
        load("recording", {**recorded, "reply": None, "error": {"class": "RateLimitError"}}, prompt=[USER])
    with pytest.raises(OptionError, match="only the format 'recording' takes a prompt, got the format 'trl'"):
        load("trl", prompt=[USER])


# -- round trips -------------------------------------------------------------------------------------------------

_words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(
    lambda text: "<image>" not in text and not text.startswith("[error]")
)

_integers = st.integers(-(2**53), 2**53)


@st.composite
def _pairs(draw: st.DrawFn) -> Sample:
    return Sample([Msg("user", draw(_words), "user"), Msg("assistant", draw(_words), "assistant")])


@st.composite
def _chats(draw: st.DrawFn, names: bool = False, thinking: bool = False, weights: bool = False) -> Sample:
    """Conversations with tool calls, whose call ids are their positions."""
    msgs = [Msg("system", draw(_words), "system")] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(1, 3))):
        msgs.append(Msg(draw(_words) if names and draw(st.booleans()) else "user", draw(_words), "user"))
        if draw(st.booleans()):
            calls = draw(st.lists(st.dictionaries(_words, _integers | _words, max_size=2), min_size=1, max_size=2))
            blocks: list[Any] = [ThinkingBlock(draw(_words))] if thinking and draw(st.booleans()) else []
            ids = [f"call_{count + index}" for index in range(1, len(calls) + 1)]
            blocks += [ToolUseBlock(id, "look", values) for id, values in zip(ids, calls, strict=True)]
            count += len(calls)
            msgs.append(Msg("assistant", blocks, "assistant"))
            msgs += [Msg("tool", [ToolResultBlock(id, "look", draw(_words))], "system") for id in ids]
        msgs.append(Msg("assistant", draw(_words), "assistant"))
    weight = st.sampled_from([0, 1, None])
    values = [draw(weight) if msg.role == "assistant" else None for msg in msgs] if weights else None
    tools = [TOOL] if draw(st.booleans()) else []
    return Sample(msgs, tools, values, extra=draw(st.sampled_from([{}, {"parallel_tool_calls": True}])))


def _reject(sample: Sample, other: Sample) -> Sample:
    return Sample(sample.msgs, sample.tools, rejected=other.msgs)


def _train_last(sample: Sample) -> Sample:
    weights = [0 if msg.role == "assistant" else None for msg in sample.msgs[:-1]]
    return Sample(sample.msgs, sample.tools, [*weights, 1], extra=sample.extra)


@st.composite
def _prompt_texts(draw: st.DrawFn) -> Sample:
    row = {"instruction": draw(_words), "input": draw(st.just("") | _words), "output": draw(_words)}
    return next(load_rows("stanford_alpaca", [row]))


SAMPLES: Final[dict[str, st.SearchStrategy[Sample]]] = {
    "openai": _chats(names=True, thinking=True, weights=True),
    "dspy": _chats(names=True, thinking=True, weights=True),
    "trl": _chats(names=True, thinking=True),
    "sharegpt": _chats(weights=True),
    "alpaca": _pairs(),
    "stanford_alpaca": _prompt_texts(),
    "input_output": _pairs(),
    "prompt_completion": _pairs(),
    "preference": st.builds(
        _reject,
        _chats(names=True, thinking=True),
        _chats(names=True),
    ),
    "atif": _chats(names=True, thinking=True, weights=True),
    "recording": st.builds(
        _train_last,
        _chats(names=True, thinking=True),
    ),
}


def test_each_format_has_a_round_trip() -> None:
    assert set(SAMPLES) == set(FORMATS)


@pytest.mark.parametrize("format", FORMATS)
def test_a_sample_survives_a_round_trip(format: Any) -> None:
    @given(SAMPLES[format])
    @examples(60)
    def check(sample: Sample) -> None:
        rows = dump(format, sample)
        loaded = load(format, *(json.dumps(row) for row in rows))
        assert loaded == [sample]

    check()


# -- losses ------------------------------------------------------------------------------------------------------

VIDEO: Final = Msg("user", [VideoBlock(URLSource("https://example.org/a.mp4"))], "user")
LOSSES: Final[dict[str, tuple[str, Sample, str]]] = {
    "a video": ("openai", Sample([VIDEO]), r"msgs\[0\]: the format has no block of type video"),
    "an unreadable block": (
        "openai",
        Sample([Msg("user", [InvalidBlock(1, "r", "p")], "user")]),
        "no block of type invalid",
    ),
    "weights of blocks": (
        "openai",
        Sample([Msg("a", [TextBlock("a"), TextBlock("b")], "assistant")], weights=[[0, 1]]),
        "weights of blocks",
    ),
    "a trained user": ("openai", Sample([USER], weights=[1]), "no field for its weight 1"),
    "an untrained user": ("openai", Sample([USER], weights=[0]), "no field for its weight 0"),
    "an empty name": (
        "openai",
        Sample([Msg("", "Where?", "user")]),
        r"msgs\[0\].name: the format cannot represent an empty speaker name",
    ),
    "a text after a call": (
        "openai",
        Sample([USER, Msg("assistant", [*CALL.blocks, TextBlock("Wait.")], "assistant")]),
        r"msgs\[1\].content\[1\]: the order of the blocks changes",
    ),
    "two thinking blocks": (
        "trl",
        Sample([USER, Msg("assistant", [ThinkingBlock("a"), ThinkingBlock("b")], "assistant")]),
        r"msgs\[1\].content\[1\]: the order of the blocks changes",
    ),
    "a thinking after the text": (
        "atif",
        Sample([USER, Msg("assistant", [TextBlock("a"), ThinkingBlock("b")], "assistant")]),
        r"msgs\[1\].content\[1\]: the order of the blocks changes",
    ),
    "the replies of other agents": (
        "trl",
        Sample([USER, Msg("Eve", "Hm.", "assistant"), REPLY], viewer="assistant"),
        r"msgs\[1\]: the format has no weights, so the reply will be trained",
    ),
    "recorded tokens": ("openai", Sample([USER, REPLY], tokens={1: [1]}), "tokens: the format has no field"),
    "a rejected conversation": ("openai", Sample([USER, REPLY], rejected=[USER]), "rejected: the format has no"),
    "thinking": (
        "sharegpt",
        Sample([USER, Msg("assistant", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")]),
        "no block of type thinking",
    ),
    "a speaker": ("sharegpt", Sample([Msg("Bob", "Where?", "user")]), "no field for the name 'Bob'"),
    "results in another order": (
        "sharegpt",
        Sample(
            [
                Msg("assistant", [ToolUseBlock("a", "look", {}), ToolUseBlock("b", "look", {})], "assistant"),
                Msg("tool", [ToolResultBlock("b"), ToolResultBlock("a")], "system"),
            ]
        ),
        "the results are not in the order of the calls",
    ),
    "a tool": ("alpaca", Sample([USER, REPLY], [TOOL]), "tools: the format has no field"),
    "a weight": ("alpaca", Sample([USER, REPLY], weights=[None, 0]), r"msgs\[1\]: the format has no weights"),
    "an image": ("input_output", Sample([Msg("user", [IMAGE], "user"), REPLY]), "no block of type image"),
    "data of an image": (
        "atif",
        Sample([Msg("user", [ImageBlock(Base64Source("image/png", "aaaa"))], "user")]),
        "no block of type image",
    ),
    "a trained reply before the last": (
        "recording",
        Sample([USER, REPLY, USER, REPLY], weights=[None, 1, None, 1]),
        "only the last reply",
    ),
}


@each_case(("format", "sample", "text"), LOSSES)
def test_a_loss_is_reported(format: str, sample: Sample, text: str) -> None:
    with pytest.raises(MessageError, match=text) as error:
        dump(format, sample)
    assert error.value.place.startswith("samples[0].")
    losses: list[str] = []

    def add(place: str, reason: str) -> None:
        losses.append(f"{place}: {reason}")

    assert len(dump(format, sample, on_loss=add)) == 1
    assert losses


@each_case(
    ("format", "sample", "text"),
    {
        "two questions": (
            "input_output",
            Sample([USER, REPLY, USER, REPLY]),
            "expected one user message and one reply for a row",
        ),
        "only a question": ("alpaca", Sample([USER]), "expected pairs of a user message"),
        "no reply": ("recording", Sample([USER]), "the last message is not a reply"),
        "a text that stands for an image": (
            "sharegpt",
            Sample([Msg("user", "What does <image> mean?", "user"), REPLY]),
            r"msgs\[0\].content\[0\]: .* stands for an image",
        ),
        "a result without a call": ("sharegpt", Sample([RESULT]), "there is no open tool call before the result"),
        "a reply without its content": (
            "alpaca",
            Sample([USER, Msg("assistant", [TextBlock(" "), ToolUseBlock("a", "look", {})], "assistant")]),
            r"samples\[0\].msgs\[1\]: the format 'alpaca' has no field for the content of the trained reply",
        ),
        "a thought": (
            "sharegpt",
            Sample([USER, Msg("assistant", [ThinkingBlock("Hm.")], "assistant")]),
            r"samples\[0\].msgs\[1\]: the format 'sharegpt' has no field for the content",
        ),
        "a rejected reply without its content": (
            "preference",
            Sample([USER, REPLY], rejected=[USER, Msg("assistant", VIDEO.content, "assistant")]),
            r"samples\[0\].rejected\[1\]: the format 'preference' has no field for the content",
        ),
    },
)
def test_a_sample_that_no_row_can_represent_is_an_error(format: str, sample: Sample, text: str) -> None:
    losses: list[str] = []
    with pytest.raises(MessageError, match=text):
        dump(format, sample, on_loss=lambda place, reason: losses.append(place))
    assert not losses  # a refused sample has no losses


def test_a_reply_with_the_weight_0_can_lose_its_content() -> None:
    image = Msg("assistant", [VideoBlock(URLSource("https://e.x/v"))], "assistant")
    sample = Sample([USER, image, USER, REPLY], weights=[None, 0, None, 1])
    row, other = dump("openai", sample, Sample([USER, REPLY]), on_loss=lambda place, reason: None)
    assert [message["content"] for message in row["messages"]] == ["Where?", [], "Where?", "There."]
    assert [message["content"] for message in other["messages"]] == ["Where?", "There."]


def test_writing_continues_after_an_error() -> None:
    rows = dump_rows("input_output", [Sample([USER]), Sample([USER, REPLY])])
    with pytest.raises(MessageError, match=r"samples\[0\]"):
        next(rows)
    assert next(rows) == {"input": "Where?", "output": "There."}
    assert rows.index == 1


# -- errors ------------------------------------------------------------------------------------------------------

_MESSAGE: Final[dict[str, Any]] = {"role": "user", "content": "Where?"}

UNREADABLE: Final[dict[str, tuple[str, Any, str]]] = {
    "no JSON": ("openai", "{broken", "line 1, row: the line is not JSON"),
    "no object": ("openai", "[1]", r"line 1, row: expected a JSON object, got \[1\]"),
    "no messages": ("openai", {}, "line 1, messages: the row has no messages"),
    "messages as a text": ("openai", {"messages": "a"}, "line 1, messages: expected a list, got 'a'"),
    "a message": ("openai", {"messages": [1]}, r"messages\[0\]: expected a JSON object, got 1"),
    "a role": ("openai", {"messages": [{"role": "x"}]}, r"messages\[0\].role: expected a role"),
    "a content": (
        "openai",
        {"messages": [{"role": "user", "content": 1}]},
        r"messages\[0\].content: expected a string",
    ),
    "no content": (
        "openai",
        {"messages": [{"role": "user"}]},
        r"messages\[0\].content: the message has no content",
    ),
    "an empty reply": (
        "trl",
        {"messages": [{"role": "assistant", "content": None, "tool_calls": []}]},
        r"messages\[0\].content: the message has no content",
    ),
    "no text": (
        "sharegpt",
        {"conversations": [{"from": "gpt", "text": "a"}]},
        r"\[0\].content: the turn has no text",
    ),
    "no calls": (
        "sharegpt",
        {"conversations": [{"from": "function_call", "value": "[]"}]},
        r"conversations\[0\].value: the turn has no tool calls",
    ),
    "a part": (
        "openai",
        {"messages": [{"role": "user", "content": [{"type": "x"}]}]},
        r"messages\[0\].content\[0\]: expected a part with a text, an image or audio, got a part of type 'x'",
    ),
    "a weight": (
        "openai",
        {"messages": [{**_MESSAGE, "weight": 2}]},
        r"messages\[0\].weight: expected 0 or 1",
    ),
    "a call": (
        "openai",
        {"messages": [{"role": "assistant", "tool_calls": [{}]}]},
        r"messages\[0\].tool_calls\[0\]: the tool call has no name",
    ),
    "a result": (
        "openai",
        {"messages": [{"role": "tool", "content": "a"}]},
        "there is no open tool call before the result",
    ),
    "tools": ("openai", {"messages": [_MESSAGE], "tools": "{"}, "line 1, tools: expected JSON text, got"),
    "a tool": ("openai", {"messages": [_MESSAGE], "tools": [{}]}, "the name of the tool is empty"),
    "a speaker": ("sharegpt", {"conversations": [{"from": "x", "value": "a"}]}, "expected a speaker"),
    "no prompt": ("alpaca", {"output": "a"}, "instruction: the row has no text in this column"),
    "a number": ("alpaca", {"instruction": 1}, "instruction: expected a string, got 1"),
    "a history": (
        "alpaca",
        {"instruction": "a", "history": [["a"]]},
        r"history\[0\]: expected a list with a user text",
    ),
    "one side": ("preference", {"chosen": "a"}, "rejected: the row has no conversation in this column"),
    "a version": ("atif", {"schema_version": "2"}, "schema_version: expected a version"),
    "a step": (
        "atif",
        {"schema_version": "ATIF-v1.4", "agent": {}, "steps": [{"source": "x"}]},
        r"steps\[0\].source: expected 'system'",
    ),
    "deep nesting": ("openai", "[" * 100_000, "line 1, row: the line is not JSON"),
}


@each_case(("format", "row", "text"), UNREADABLE)
def test_an_unreadable_row_is_an_error_with_its_line(format: str, row: Any, text: str) -> None:
    with pytest.raises(MessageError, match=text):
        load(format, row)


def test_reading_continues_after_an_error() -> None:
    def lines() -> Iterator[str]:
        yield from ("", json.dumps({"input": "Where?", "output": "There."}), "{", "\n")
        yield json.dumps({"input": "a", "output": "b"})

    samples = load_rows("input_output", lines())
    assert next(samples) == Sample([USER, REPLY])
    with pytest.raises(MessageError, match="line 3"):
        next(samples)
    assert next(samples).msgs[0].text == "a"
    assert samples.line == 5
    errors: list[MessageError] = []
    assert len(list(load_rows("input_output", lines(), on_error=errors.append))) == 2
    assert [error.place for error in errors] == ["line 3, row"]


_LINE: Final = json.dumps({"input": "Où?", "output": "Là."}, ensure_ascii=False)
LINES: Final[dict[str, tuple[str | bytes, str]]] = {
    "a byte order mark": ("\ufeff" + _LINE, ""),
    "a byte order mark in bytes": (_LINE.encode("utf-8-sig"), ""),
    "Windows line ends": (_LINE.encode() + b"\r\n", ""),
    "a repeated key": ('{"input": "a", ' + _LINE[1:], ""),
    "a column NaN": (_LINE[:-1] + ', "score": NaN}', ""),
    "another encoding": (_LINE.encode("latin-1"), "line 1, row: the line is not JSON"),
    "a NUL after the row": (_LINE + "\0", "line 1, row: the line is not JSON"),
    "a NUL in a text": (_LINE.replace("Là", "a\0"), "line 1, row: the line is not JSON"),
    "two rows in a line": (_LINE + _LINE, "line 1, row: the line is not JSON"),
    "a large number": (_LINE[:-1] + f', "id": {"9" * 5_000}}}', "line 1, row: the line is not JSON"),
}


@each_case(("line", "text"), LINES)
def test_unusual_lines(line: str | bytes, text: str) -> None:
    errors: list[MessageError] = []
    samples = [*load_rows("input_output", [line, _LINE], on_error=errors.append)]
    assert samples == [Sample([Msg("user", "Où?", "user"), Msg("assistant", "Là.", "assistant")])] * len(samples)
    assert len(samples) == (1 if text else 2)
    assert [str(error)[: len(text)] for error in errors] == ([text] if text else [])


def test_a_row_of_ten_megabytes_is_read() -> None:
    text = "a" * 10_000_000
    (sample,) = load("openai", json.dumps({"messages": [{"role": "user", "content": text}]}))
    assert sample.msgs[0].text == text


def test_a_text_file_in_another_encoding_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(_LINE.encode("latin-1") + f"\n{_LINE}".encode() * 1_000)
    with path.open(encoding="utf-8") as file:
        rows = load_rows("input_output", file)
        with pytest.raises(MessageError, match=r"rows: a line after line 0 is not UTF-8 .* so reading ends"):
            next(rows)
        assert list(rows) == []


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_rows_are_errors_with_their_line(format: Any) -> None:
    @given(st.data())
    @examples(60)
    def check(data: st.DataObject) -> None:
        row = data.draw(SAMPLES[format].map(lambda sample: dump(format, sample)[0]))
        errors: list[MessageError] = []
        damaged = data.draw(mangled(row))
        *samples, last = load_rows(format, [damaged, json.dumps(row)], on_error=errors.append)
        assert last == load(format, row)[0]
        assert len(samples) + len(errors) == 1
        assert all(error.place.startswith("line 1, ") for error in errors)

    check()


def test_columns_are_renamed_and_system_messages_are_replaced() -> None:
    row = {"question": "Where?", "answer": "There."}
    sample = load("input_output", row, columns={"input": "question", "output": "answer"}, system="Hm.")
    assert sample == [Sample([Msg("system", "Hm.", "system"), USER, REPLY])]
    messages = [
        {"role": "system", "content": "a"},
        _MESSAGE,
        {"role": "assistant", "content": "There.", "weight": 0},
    ]
    (replaced,) = load("openai", {"messages": messages}, system="Hm.")
    assert replaced == Sample([Msg("system", "Hm.", "system"), USER, REPLY], weights=[None, None, 0])
    with pytest.raises(OptionError, match="columns: the format has no column 'question'"):
        load("input_output", columns={"question": "input"})


def test_invalid_arguments_are_errors() -> None:
    with pytest.raises(OptionError, match="format: unknown value 'csv'"):
        load("csv")
    with pytest.raises(OptionError, match="format: unknown value 'csv'"):
        dump("csv")
    with pytest.raises(OptionError, match="rows: expected an iterable of rows, got str"):
        load_rows("openai", "{}")
    with pytest.raises(OptionError, match="on_loss: unknown value 'drop'"):
        dump_rows("openai", [], on_loss=ANY or "drop")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"samples\[0\]: expected Sample"):
        dump("openai", {})  # type: ignore[arg-type]


def test_rows_and_samples_share_nothing() -> None:
    row = {
        "messages": [_MESSAGE, {"role": "assistant", "tool_calls": [_call("call_1", {"q": {"a": [1]}})]}],
        "tools": [TOOL_DICT],
        "chat_template_kwargs": {"a": [1]},
    }
    stored = json.dumps(row)
    (sample,) = load("openai", row)
    (written,) = dump("trl", sample)
    written["chat_template_kwargs"]["a"].append(2)
    written["messages"][1]["tool_calls"][0]["function"]["arguments"]["q"]["a"].append(2)
    assert json.dumps(row) == stored
    assert sample == load("openai", row)[0]
    assert sample.msgs[1].tool_uses[0].input == {"q": {"a": [1]}}
    sample.variables["b"] = 1
    assert sample.variables == {"a": [1]}


# -- losses that are easy to miss --------------------------------------------------------------------------------


def _dump_with_losses(format: Any, sample: Sample) -> tuple[dict[str, Any], list[str]]:
    places: list[str] = []
    row = next(dump_rows(format, [sample], on_loss=lambda place, reason: places.append(place)))
    return row, places


@each_case("format", ["openai", "trl", "dspy", "sharegpt", "alpaca", "input_output", "prompt_completion"])
def test_other_columns_do_not_replace_the_conversation(format: Any) -> None:
    names = ("messages", "conversations", "prompt", "completion", "instruction", "input", "output", "system")
    extra: dict[str, Any] = dict.fromkeys(names, "other")
    row, places = _dump_with_losses(format, Sample([USER, REPLY], extra=extra))
    (sample,) = load(format, json.dumps(row))
    assert [msg.text for msg in sample.msgs] == ["Where?", "There."]
    assert {f"samples[0].extra.{name}" for name in extra.keys() - sample.extra.keys()} == {*places}
    assert places


def test_a_prompt_column_does_not_replace_the_prompt_of_trl() -> None:
    row, places = _dump_with_losses("trl", Sample([USER, REPLY], weights=[None, 1], extra={"prompt": "other"}))
    assert row["prompt"] == [{"role": "user", "content": "Where?"}]
    assert places == ["samples[0].extra.prompt"]


def test_content_beside_tool_results_is_not_lost() -> None:
    mixed = Msg("user", [*RESULT.blocks, TextBlock("And now?")], "user")
    sample = Sample([USER, CALL, mixed, REPLY])
    for format in ("sharegpt", "atif"):
        assert _dump_with_losses(format, sample)[1] == ["samples[0].msgs[2].content[1]"]
    (row,) = dump("openai", sample)
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "user", "assistant"]


def test_a_text_beside_tool_results_does_not_become_a_trained_reply() -> None:
    mixed = Msg("assistant", [*RESULT.blocks, TextBlock("Hm.")], "assistant")
    (row,) = dump("openai", Sample([USER, CALL, mixed, REPLY]))
    assert row["messages"][3] == {"role": "assistant", "content": "Hm.", "weight": 0}


def test_weights_that_train_tool_results_or_users_are_losses() -> None:
    results = Sample([USER, CALL, RESULT, REPLY], weights=[None, 0, 1, 1])
    for format in ("openai", "trl", "sharegpt", "atif"):
        assert _dump_with_losses(format, results)[1] == ["samples[0].msgs[2]"]
    assert _dump_with_losses("trl", Sample([USER, REPLY], weights=[1, 1]))[1] == ["samples[0].msgs[0]"]


def test_a_reply_without_a_prompt_is_no_completion() -> None:
    (row,) = dump("trl", Sample([REPLY, USER, REPLY], weights=[1, None, 1]))
    assert [len(sample.msgs) for sample in load("trl", row)] == [3]


def test_sharegpt_rows_keep_arguments_that_are_none() -> None:
    call = Msg("assistant", [ToolUseBlock("call_1", "look", {"q": None, "é": [None, {"a": None}]})], "assistant")
    sample = Sample([USER, call, RESULT, REPLY])
    assert load("sharegpt", *dump("sharegpt", sample)) == [sample]


def test_recordings_do_not_train_earlier_replies() -> None:
    assert _dump_with_losses("recording", Sample([USER, REPLY, USER, REPLY]))[1] == ["samples[0].weights"]
    assert not _dump_with_losses("recording", Sample([USER, REPLY]))[1]


def test_recordings_of_calls_with_another_role_train_only_the_last_reply() -> None:
    called = Msg("Friday", CALL.blocks, "user")
    samples = [*samples_from_log([USER, called, RESULT, REPLY])]
    loaded = load("recording", *dump("recording", *samples))
    assert [sample.weights for sample in loaded] == [(None, 1), (None, 0, None, 1)]
    assert [sample.msgs for sample in loaded] == [sample.msgs for sample in samples]
    call_of_system = Sample([USER, replace(called, role="system")])
    (replaced,) = load("recording", *dump("recording", call_of_system), system="Hm.")
    assert replaced.msgs[1:] == call_of_system.msgs


def test_recordings_have_recorded_tokens() -> None:
    metadata: dict[str, Any] = {"reply": {"token_ids": [7, 8], "usage": {"output_tokens": 2}}}
    reply = Msg("assistant", "There.", "assistant", metadata=metadata)
    sample = Sample([USER, reply], weights=[None, 1], tokens={1: [7, 8]})
    (row,) = dump("recording", sample)
    assert load("recording", row) == [sample]
    recorded = {"label": "", "provider": "openai", "model": "m", "reply": reply.to_dict()}
    assert load("recording", recorded, prompt=[USER]) == [sample]
    for tokens in (None, {1: [9]}):
        assert _dump_with_losses("recording", replace(sample, tokens=tokens))[1] == ["samples[0].tokens"]
    recorded["reply"] = replace(reply, metadata={"reply": {**metadata["reply"], "token_ids": [7]}}).to_dict()
    with pytest.raises(MessageError, match="line 1, reply: the server returned 1 token ids"):
        load("recording", recorded, prompt=[USER])


def test_a_recording_of_an_unknown_provider_does_not_end_the_reading() -> None:
    row: dict[str, Any] = {
        "provider": "nowhere",
        "request": {"messages": []},
        "reply": {"role": "assistant", "content": "Hi."},
    }
    places: list[str] = []
    (row_of_agentkit,) = dump("recording", Sample([USER, REPLY]))
    reader = load_rows("recording", [row, row_of_agentkit], on_error=lambda error: places.append(error.place))
    assert [sample.msgs[-1].text for sample in reader] == ["There."]
    assert places == ["line 1, provider"]


def test_a_prompt_that_both_conversations_repeat_is_read_once() -> None:
    user = {"role": "user", "content": "Where?"}
    sides = {
        key: [user, {"role": "assistant", "content": text}]
        for key, text in (("chosen", "There."), ("rejected", "No."))
    }
    (sample,) = load("preference", {"prompt": "Where?", **sides})
    assert list(sample.msgs) == [USER, REPLY]
    assert [msg.text for msg in sample.rejected] == ["Where?", "No."]


def test_a_prompt_that_a_later_message_repeats_is_read() -> None:
    user = {"role": "user", "content": "Continue."}
    chosen, rejected = (
        [{"role": "assistant", "content": "Part 1."}, user, {"role": "assistant", "content": "Part 2."}],
        [{"role": "assistant", "content": "No."}],
    )
    (sample,) = load("preference", {"prompt": "Continue.", "chosen": chosen, "rejected": rejected})
    assert [msg.text for msg in sample.msgs] == ["Continue.", "Part 1.", "Continue.", "Part 2."]
    assert [msg.text for msg in sample.rejected] == ["Continue.", "No."]
    chosen = [{"role": "system", "content": "Be brief."}, user, *chosen]
    (sample,) = load("preference", {"prompt": "Continue.", "chosen": chosen, "rejected": rejected})
    assert [msg.text for msg in sample.msgs] == ["Be brief.", "Continue.", "Part 1.", "Continue.", "Part 2."]


# -- values of rows that are easy to lose ------------------------------------------------------------------------

_REPLY_DICT: Final = {"role": "assistant", "content": "There."}


def test_weights_of_preference_rows_are_kept() -> None:
    weighted = {**_REPLY_DICT, "weight": 0}
    for row in (
        {"prompt": [_MESSAGE], "chosen": [weighted], "rejected": [weighted]},
        {"chosen": [_MESSAGE, weighted], "rejected": [_MESSAGE, weighted]},
        {"prompt": [_MESSAGE], "chosen": [_MESSAGE, weighted], "rejected": [_MESSAGE, weighted]},
    ):
        (sample,) = load("preference", row)
        assert (sample.msgs, sample.weights) == ((USER, REPLY), (None, 0))
        assert [msg.metadata for msg in sample.rejected] == [None, {"weight": 0}]
        assert _dump_with_losses("preference", sample)[1] == ["samples[0].weights"]


def test_weights_in_a_completion_have_precedence() -> None:
    row = {
        "prompt": [_MESSAGE, {**_REPLY_DICT, "weight": 1}, _MESSAGE],
        "completion": [{**_REPLY_DICT, "weight": 0}],
    }
    assert load("trl", row)[0].weights == (None, 1, None, 0)


def test_two_columns_with_one_meaning_are_an_error() -> None:
    both = {"tools": [TOOL_DICT], "functions": [TOOL_DICT["function"]]}
    with pytest.raises(MessageError, match="line 1, functions: the row also has tools in the column 'tools'"):
        load("openai", {"messages": [_MESSAGE], **both})
    request = {"input": {"messages": [_MESSAGE], "id": 1}, "id": 2}
    with pytest.raises(MessageError, match="line 1, row: the row has two columns 'id', one of them in `input`"):
        load("preference", {**request, "preferred_output": [_REPLY_DICT], "non_preferred_output": [_REPLY_DICT]})


_VALUES: Final[dict[str, tuple[Any, Any]]] = {
    "NaN": (float("nan"), {}),
    "NaN in a list": ([float("nan"), 1], {"column": [None, 1]}),
    "bytes": ({1: (b"x",)}, {"column": {"1": ["eA=="]}}),
    "a date": (date(2026, 1, 2), {"column": "2026-01-02"}),
    "infinity": (float("inf"), "column: JSON cannot represent the value inf"),
    "a large number": ([10**400], r"column\[0\]: JSON cannot represent the value 1000"),
    "an object": (object(), r"column: JSON cannot represent the value \(Unable to serialize"),
    "deep nesting": (json.loads("[" * 300 + "]" * 300), r"column\[0\]\[0\].*: JSON cannot represent the value"),
}


@each_case(("value", "expected"), _VALUES)
def test_other_columns_and_keys_are_kept_or_refused(value: Any, expected: Any) -> None:
    rows = ({"messages": [_MESSAGE], "column": value}, {"messages": [{**_MESSAGE, "column": value}]})
    if isinstance(expected, dict):
        assert load("openai", rows[0])[0].extra == expected
        assert (load("openai", rows[1])[0].msgs[0].metadata or {}) == expected
    else:
        for row in rows:
            with pytest.raises(MessageError, match=f"line 1, .*{expected}"):
                load("openai", row)


def test_lone_surrogates_are_logged_with_their_line(caplog: pytest.LogCaptureFixture) -> None:
    row = {"messages": [{"role": "user", "content": "a\ud800", "id": "\udc00"}], "column": ["\ud800"]}
    for rows in ([row], [json.dumps(row)]):
        caplog.clear()
        (sample,) = load("openai", *rows)
        assert (sample.msgs[0].text, sample.msgs[0].metadata) == ("a\ufffd", {"id": "\ufffd"})
        assert sample.extra == {"column": ["\ufffd"]}
        assert [message.split(": ")[0] for message in caplog.messages] == [
            "line 1.messages[0].content",
            "line 1.messages[0].id",
            "line 1.column[0]",
        ]


def _list_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the path of each value in a JSON value, and of each key in `_KEYS` that an object does not have."""
    yield path
    if isinstance(value, dict):
        items: Any = cast("dict[str, Any]", value).items()
        yield from ((*path, key) for key in _KEYS if key not in value)
    else:
        items = enumerate(cast("list[Any]", value)) if isinstance(value, list) else ()
    for key, item in items:
        yield from _list_places(item, (*path, key))


_KEYS: Final = (
    *(
        "new",
        "type",
        "name",
        "description",
        "parameters",
        "input_schema",
        "strict",
        "function",
        "prompt",
        "chosen",
    ),
    *(
        "id",
        "content",
        "ipython",
        "eot",
        "reasoning",
        "tool_calls",
        "function_call",
        "refusal",
        "masked",
        "weight",
    ),
    *("tools", "functions", "messages", "input", "image", "text", "step_id", "extra", "system", "history"),
)


_ALL_PARTS: Final[list[dict[str, Any]]] = [
    {"role": "user", "content": [{"type": "text", "text": "a"}, *_image()], "name": "Bob"},
    {"role": "assistant", "reasoning_content": "Hm.", "content": "a", "tool_calls": [_call("c1", {"q": 1})]},
    {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}},
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "found"}]},
    {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]},
]
_ALL_ROWS: Final[dict[str, dict[str, Any]]] = {
    "openai": {"messages": _ALL_PARTS, "tools": [TOOL_DICT]},
    "trl": {"prompt": _ALL_PARTS[:1], "completion": _ALL_PARTS[1:], "tools": [TOOL_DICT]},
    "preference": {"prompt": _ALL_PARTS[:1], "chosen": _ALL_PARTS[1:], "rejected": _ALL_PARTS[1:]},
    "sharegpt": {"conversations": [{"from": "human", "value": "Where?"}, {"from": "gpt", "value": "There."}]},
    "alpaca": {"instruction": "Where?", "output": "There."},
    "atif": {**TRAJECTORY, "agent": {**TRAJECTORY["agent"], "tool_definitions": [TOOL_DICT]}},
    "OpenAI's preference": {
        "input": {"messages": [_MESSAGE], "tools": [TOOL_DICT]},
        "preferred_output": [_REPLY_DICT],
        "non_preferred_output": [_REPLY_DICT],
    },
}


def _list_values(sample: Sample) -> str:
    msgs = [msg.to_dict() for msg in (*sample.msgs, *sample.rejected)]
    tools = [(tool, tool.parameters, tool.metadata) for tool in as_tools(sample.tools)]
    return repr((msgs, tools, sample.extra))


@each_case(("format", "row"), [*_ALL_ROWS.items()])
def test_a_value_anywhere_in_a_row_is_kept_or_refused(format: Any, row: dict[str, Any]) -> None:
    format = "preference" if format not in FORMATS else format
    for (*parents, key), value in product([*_list_places(row)][1:], ("unique", ["unique"], {"unique": 1})):
        changed: Any = copy.deepcopy(row)
        reduce(getitem, parents, changed)[key] = value
        try:
            (sample,) = load(format, changed)
        except MessageError as error:
            assert error.place.startswith("line 1, "), error  # noqa: PT017 - most values are not errors
        else:
            assert "unique" in _list_values(sample), (*parents, key)


@each_case(
    ("row", "text"),
    [
        ({"tools": 0}, "line 1, tools: expected a list of tools, got 0"),
        ({"functions": False}, "line 1, functions: expected a list of tools, got False"),
        ({"tools": [{**TOOL_DICT, "function": {"name": "a", "description": 0}}]}, r"tools\[0\].description"),
        ({"functions": [{"name": "a", "description": 0}]}, r"line 1, functions\[0\].description"),
        (
            {"tools": [{"type": "function", "new": float("nan")}]},
            r"tools\[0\].new: JSON cannot represent the value nan",
        ),
        ({"tools": '[{"name": "a", "new": 1e999}]'}, r"tools\[0\].new: JSON cannot represent the value inf"),
        ({"tools": [{"name": "a", "new": [b"x"]}]}, r"tools\[0\].new\[0\]: JSON cannot represent the value b'x'"),
        ({"messages": [{"role": "assistant", "function_call": 0}]}, "the tool call has no name"),
        (
            {"messages": [{"role": "assistant", "function_call": {"name": "a", "arguments": [b"x"]}}]},
            r"tool_calls\[0\].arguments\[0\]: JSON cannot represent the value b'x'",
        ),
    ],
)
def test_values_that_are_false_or_not_json_are_errors(row: dict[str, Any], text: str) -> None:
    with pytest.raises(MessageError, match=text):
        load("openai", {"messages": [_MESSAGE], **row})


def test_unknown_keys_of_tools_are_written_at_their_place() -> None:
    wrapper: dict[str, Any] = {"type": "odd", "name": "another", "parameters": {"type": "array"}, "new": 1}
    function: Any = TOOL_DICT["function"]
    tools: Any = [{**wrapper, "function": {**function, "type": "odd", "inputSchema": {}, "new": 2}}]
    for format in ("openai", "trl", "atif"):
        (row,) = dump(format, *load("openai", {"messages": [_MESSAGE], "tools": tools}))
        written = row["agent"]["tool_definitions"] if format == "atif" else row["tools"]
        assert (json.loads(written) if format == "trl" else written) == tools
    (row,) = dump(
        "sharegpt", *load("openai", {"messages": [_MESSAGE], "tools": [*tools, {"name": "a", "new": 1}]})
    )
    flat: dict[str, Any] = {"name": "a", "parameters": {"type": "object", "properties": {}}}
    assert json.loads(row["tools"]) == [*tools, {"type": "function", "new": 1, "function": flat}]


def test_flags_of_torchtune_that_no_block_shows_are_kept() -> None:
    messages = [{**_MESSAGE, "ipython": True}, {**_MESSAGE, "eot": "no"}, {**_MESSAGE, "eot": False}]
    assert [msg.metadata for msg in load("openai", {"messages": messages})[0].msgs] == [
        {"ipython": True},
        {"eot": "no"},
        None,
    ]
