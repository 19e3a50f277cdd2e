"""Hostile input is converted or raises an error of agentkit."""

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    AgentkitError,
    Base64Source,
    Budget,
    ImageBlock,
    InvalidBlock,
    LossError,
    MessageError,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    OptionError,
    TextBlock,
    ThinkingBlock,
    TokenCounterBase,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    load_messages,
    load_native,
    load_provider,
    read_history,
)
from agentkit.capabilities.name_rules import legal_speaker_name, legal_speaker_names
from agentkit.provider_kit import FormatterBase, OutputSchema
from tests.cases import each_case
from tests.conversations import API_PROVIDERS
from tests.profiles import examples
from tests.wire.rules import check_order
from tests.wire.shapes import check_request

USER = Msg("Bob", "hi", "user")


def create_formatters() -> list[tuple[str, FormatterBase]]:
    return [(name, load_provider(name).chat_formatter()) for name in API_PROVIDERS]


def create_msgs(ids: list[str]) -> list[Msg]:
    """Returns a message with calls that have these ids, and a message with their results."""
    return [
        USER,
        Msg("Friday", [ToolUseBlock(call_id, "look", {}) for call_id in ids], "assistant"),
        Msg(
            "system",
            [ToolResultBlock(call_id, "look", f"result {index}") for index, call_id in enumerate(ids)],
            "system",
        ),
    ]


def find_problems(name: str, request: dict[str, Any]) -> list[str]:
    return check_request(name, request) or check_order(name, request)


@each_case(
    "ids",
    [
        ["a", "a", "a#2"],
        ["a", "a", "call_" + sha256(b"a#2").hexdigest()[:24]],
        ["", "", ""],
        ["x y", "x_y", "x y"],
        ["a" * 200, "a" * 201, "a" * 200],
    ],
)
def test_ids_that_look_like_generated_ids_stay_distinct(ids: list[str]) -> None:
    for name, formatter in create_formatters():
        plan = formatter.lower(create_msgs(ids))
        assert find_problems(name, plan.request) == []
        assert "result 2" in json.dumps(plan.request)


def test_two_tools_with_the_same_rewritten_name_are_refused() -> None:
    for name, formatter in create_formatters():
        capabilities = formatter.capabilities()
        forged = capabilities.tools.names.fit("my tool") if capabilities.tools.names else "my tool"
        if forged != "my tool":
            with pytest.raises(MessageError, match="would both become"):
                formatter.lower([USER], tools=[Tool("my tool"), Tool(forged)])
        else:
            assert name == "ollama"


def test_two_speakers_never_get_the_same_rewritten_name() -> None:
    for name, formatter in create_formatters():
        if formatter.capabilities().turns.speaker_names:
            smith = Msg("Mr Smith", "hi", "user")
            first = formatter.lower([smith])
            (create_msgs,) = first.request["messages"]
            assert create_msgs["name"] in first.ledger.entries[0].reason
            forger = Msg(create_msgs["name"], "hi", "user")
            for msgs in ([smith, forger], [forger, smith], [forger, smith, smith, forger]):
                plan = formatter.lower(msgs)
                names = [message["name"] for message in plan.request["messages"]]
                assert names[0] == create_msgs["name"]
                assert [name_ == names[0] for name_ in names] == [msg.name == msgs[0].name for msg in msgs], name
                assert names[1] in plan.ledger.entries[1].reason


def test_a_rewritten_name_does_not_change_when_its_log_is_loaded() -> None:
    for name, formatter in create_formatters():
        if formatter.capabilities().turns.speaker_names:
            msgs = [Msg("Mr Smith", "hi", "user"), Msg("x" * 80, "ho", "user"), Msg("An agent", "so", "assistant")]
            request = formatter.lower(msgs).request
            again = formatter.lower(load_native(name, request)).request
            assert again == request
            assert formatter.lower(load_native(name, again)).request == request


@given(st.lists(st.text("ab_0/ ", max_size=70), max_size=6), st.data())
@examples(100)
def test_speakers_stay_distinct_and_the_names_of_the_first_speakers_do_not_change(
    names: list[str], data: st.DataObject
) -> None:
    refused = r"\s<|\\/>"
    legal = [legal_speaker_name(name, refused) for name in names]
    spoken = data.draw(st.lists(st.sampled_from([*names, *legal]), max_size=8)) if names else []
    fitted = legal_speaker_names(spoken, refused)
    sent = [fitted.get(name, name) for name in spoken]
    assert len({*sent}) == len({*spoken})
    assert all(len(name) <= 64 and not re.search(f"[{refused}]", name) for name in sent)
    before = legal_speaker_names(spoken[:-1], refused)
    assert [before.get(name, name) for name in spoken[:-1]] == sent[:-1]


def create_nested(depth: int) -> Any:
    create_nested: Any = {}
    for _ in range(depth):
        create_nested = {"a": create_nested}
    return create_nested


@pytest.mark.parametrize(
    "build",
    [
        lambda: (
            load_provider("openai").chat_formatter().lower([USER], tools=[Tool("t")], tool_choice={"mode": ["x"]})
        ),
        lambda: load_provider("openai").chat_formatter().lower([USER], response_format={"properties": 5}),
        lambda: load_provider("openai").chat_formatter().lower([USER], response_format=threading.Thread),
        lambda: load_provider("openai").chat_formatter().lower([USER], response_format={"type": "text"}),
        lambda: Tool("t", parameters=create_nested(3000)),
        lambda: Msg("a", "x", "user", metadata=create_nested(3000)),
        lambda: Msg("a", 10**5000, "user"),  # type: ignore[arg-type]
        lambda: load_messages({"agentkit": 10**5000, "messages": []}),
        lambda: MultiAgentHistory(viewer="\udcff"),
        lambda: ImageBlock.from_path("a\0.png"),
        lambda: Base64Source("data:image/png;base64,xx", "image/png"),
        lambda: URLSource("file:///x.png", media_type="a/b/c"),
    ],
)
def test_a_hostile_value_raises_an_agentkit_error(build: Callable[[], object]) -> None:
    with pytest.raises(AgentkitError):
        build()


def test_an_invalid_item_of_a_result_does_not_affect_the_other_items() -> None:
    bad: list[Any] = [{"type": "thinking", "thinking": "x"}, {"type": "tool_use", "id": "b"}, 3]
    output = [{"type": "text", "text": "good"}, *bad]
    stored = {"type": "tool_result", "id": "a", "name": "t", "output": output}
    (msg,) = load_messages([{"name": "t", "role": "system", "content": [stored]}])
    items = msg.tool_results[0].items
    assert items[0] == TextBlock("good")
    assert all(isinstance(item, InvalidBlock) for item in items[1:])


def test_a_result_inside_a_result_becomes_an_invalid_block() -> None:
    stored: dict[str, Any] = {"type": "text", "text": "x"}
    for _ in range(400):
        stored = {"type": "tool_result", "id": "a", "name": "t", "output": [stored]}
    (msg,) = load_messages([{"name": "t", "role": "system", "content": [stored]}])
    assert isinstance(msg.tool_results[0].items[0], InvalidBlock)


def test_nan_and_infinity_are_never_in_a_request() -> None:
    stored = {"type": "tool_use", "id": "a", "name": "t", "input": {"a": float("nan")}}
    (msg,) = load_messages([{"name": "F", "role": "assistant", "content": [stored]}])
    assert isinstance(msg.blocks[0], InvalidBlock)


@each_case("url", ["data:a/b/c;base64,AAAA", "data:,", "data:x", "http:", "http:/etc/passwd", "https://"])
def test_an_odd_url_has_a_single_disposition(url: str) -> None:
    for name, formatter in create_formatters():
        plan = formatter.lower([Msg("Bob", [TextBlock("see"), ImageBlock(URLSource(url))], "user")])
        assert [place for place, _ in plan.ledger.losses] == ["msgs[0].content[1]"], name
        assert find_problems(name, plan.request) == []


def test_reasoning_stays_directly_before_the_block_that_it_led_to() -> None:
    proof = OpaqueState("openai", encrypted_content="e", item_id="rs_1")
    msg = Msg("F", [ToolUseBlock("a", "t", {}), ThinkingBlock("x", proof), TextBlock("y")], "assistant")
    formatter = load_provider("openai-responses").chat_formatter()
    request = formatter.lower([USER, msg, Msg("s", [ToolResultBlock("a", "t", "r")], "system")]).request
    assert find_problems("openai-responses", request) == []
    kinds = [item.get("role", item["type"]) for item in request["input"]]
    assert kinds == ["user", "reasoning", "assistant", "function_call", "function_call_output"]


def test_a_signature_that_is_not_base64_is_omitted() -> None:
    call = ToolUseBlock("a", "t", {}, state=OpaqueState("gemini", thought_signature="!!!"))
    plan = load_provider("gemini").chat_formatter().lower([USER, Msg("F", [call], "assistant")])
    assert "!!!" not in json.dumps(plan.request)
    assert "not base64" in str(plan.ledger.entries[1])


def test_a_schema_is_closed_for_any_order_of_required() -> None:
    properties: dict[str, Any] = {"a": {}, "b": {}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    assert OutputSchema({**schema, "required": ["b", "a"]}).closed


def test_a_root_reference_of_a_schema_is_replaced_by_its_definition() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    asked = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    request = load_provider("openai").chat_formatter().lower([USER], response_format=asked).request
    assert request["response_format"]["json_schema"]["schema"] == {**node, "$defs": {"Node": node}}


def test_no_lossy_request_is_sent_to_a_counter() -> None:
    class Remote(TokenCounterBase):
        asked = 0

        async def count(self, request: Any) -> int:
            self.asked += 1
            return 1

    counter = Remote()
    broken = Msg("Bob", [ImageBlock(Base64Source("image/png", "%%%"))], "user")
    formatter = load_provider("openai").chat_formatter(budget=Budget(10, counter), on_loss="raise")
    with pytest.raises(LossError):
        anyio.run(formatter.format, [broken])
    assert counter.asked == 0


def test_unclosed_frames_are_read_in_linear_time() -> None:
    started = time.process_time()
    assert read_history("<history>\n" * 50_000) == []
    assert time.process_time() - started < 5


def create_histories(count: int) -> list[list[Msg]]:
    """Returns histories with many parallel calls, whose results are in unusual places."""
    calls = [ToolUseBlock(f"c{index}", "t", {}) for index in range(count)]
    results = [ToolResultBlock(f"c{index}", "t", "r") for index in range(count)]
    turns = Msg("F", calls, "assistant")
    separate = [Msg("s", [result], "system") for result in reversed(results)]
    mixed = [block for pair in zip(calls, results, strict=True) for block in (pair[0], TextBlock("x"), pair[1])]
    same = [ToolUseBlock("c", "t", {}) for _ in range(count)]
    answers = [ToolResultBlock("c", "t", "r") for _ in range(count)]
    return [
        [USER, Msg("F", same, "assistant"), Msg("s", answers, "system")],
        [USER, turns, Msg("s", results[::-1], "system")],
        [USER, turns, *separate],
        [USER, turns, *separate[1:]],
        [USER, Msg("F", [*results, *calls], "assistant")],
        [USER, Msg("F", mixed, "assistant")],
    ]


@pytest.mark.parametrize("shape", range(6))
def test_work_does_not_grow_as_the_square_of_parallel_calls(shape: int) -> None:
    # The test counts function calls and returns, because times vary.

    def count_steps(count: int) -> int:
        total = 0

        def look(*_: object) -> None:
            nonlocal total
            total += 1

        msgs = create_histories(count)[shape]
        sys.setprofile(look)
        try:
            load_provider("gemini").chat_formatter().lower(msgs)
        finally:
            sys.setprofile(None)
        return total

    count_steps(50)
    assert count_steps(400) < 2.5 * count_steps(200)


def test_an_error_names_the_place_and_the_advice() -> None:
    with pytest.raises(OptionError) as caught:
        load_provider("openai").chat_formatter().lower([USER], response_format="json")
    assert caught.value.place == "response_format"
    assert caught.value.advice
