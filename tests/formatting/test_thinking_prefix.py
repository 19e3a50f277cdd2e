"""Tests of prefix binding: some models accept thinking only after the prefix that produced it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest

from agentkit import (
    Budget,
    Disposition,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    OpaqueState,
    Plan,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    load_provider,
    prefix_digest,
)
from agentkit.formatting.thinking_prefix import find_stale_thinking
from agentkit.ledger.provenance import TracedConversation
from agentkit.provider_kit import FormatterBase, WireLayout
from agentkit_anthropic import AnthropicChatFormatter
from tests.cases import each_case
from tests.wire.shapes import check_request

SYSTEM = Msg("system", "Be brief.", "system")
TASK = Msg("Bob", "Find the library.", "user")
LOOK = Tool("look", "Look at a place.", {"type": "object", "properties": {"place": {"type": "string"}}})
BINDING = each_case(
    ("provider", "model"),
    [
        ("anthropic", "claude-opus-5-5"),
        ("anthropic", None),
        ("openai-responses", "gpt-6.2"),
        ("openai-responses", None),
    ],
)
FREE = each_case(
    ("provider", "model"),
    [("anthropic", "claude-opus-4-1"), ("anthropic", "claude-sonnet-5"), ("openai-responses", "gpt-6")],
)


def proof(provider: str, number: int) -> dict[str, Any]:
    return {"signature" if provider == "anthropic" else "encrypted_content": f"proof-{number}"}


def thinking_reply(provider: str, number: int, request: dict[str, Any] | None) -> Msg:
    """Returns the reply to a request: thinking with its state, and a call."""
    digest = None if request is None else prefix_digest(request, load_provider(provider))
    issuer = "anthropic" if provider == "anthropic" else "openai"
    state = OpaqueState(issuer, prefix=digest, **proof(provider, number))
    call = ToolUseBlock(f"call_{number}", "look", {"place": str(number)})
    return Msg("Friday", [ThinkingBlock(f"thought {number}", state), call], "assistant")


def result_message(number: int, text: str = "A quiet place.") -> Msg:
    return Msg("system", [ToolResultBlock(f"call_{number}", "look", text)], "system")


def loop(formatter: FormatterBase, provider: str, steps: int, digests: bool = True) -> list[Msg]:
    """Returns a ReAct loop in which each reply has the digest of its request."""
    msgs = [SYSTEM, TASK]
    for number in range(steps):
        request = plan(formatter, msgs).request if digests else None
        msgs += [thinking_reply(provider, number, request), result_message(number)]
    return msgs


def plan(formatter: FormatterBase, msgs: Sequence[Msg], tools: Sequence[Tool] = (LOOK,)) -> Plan:
    async def create_plan() -> Plan:
        return await formatter.plan(msgs, tools=tools)

    return anyio.run(create_plan)


def list_sent_thinking(request: dict[str, Any]) -> list[int]:
    text = json.dumps(request)
    return [number for number in range(100) if f'"proof-{number}"' in text]


@BINDING
def test_thinking_is_sent_if_only_new_messages_follow(provider: str, model: str | None) -> None:
    formatter = load_provider(provider).chat_formatter(model)
    outcome = plan(formatter, loop(formatter, provider, 4))
    assert list_sent_thinking(outcome.request) == [0, 1, 2, 3]


@BINDING
@each_case("change", ["system", "tools", "task", "an earlier result"])
def test_a_changed_prefix_drops_all_thinking_after_it(provider: str, model: str | None, change: str) -> None:
    formatter = load_provider(provider).chat_formatter(model)
    msgs, tools = loop(formatter, provider, 3), [LOOK]
    if change == "system":
        msgs[0] = Msg("system", "Be verbose.", "system")
    elif change == "tools":
        tools = [LOOK, Tool("walk")]
    elif change == "task":
        msgs[1] = Msg("Bob", "Find the station.", "user")
    else:
        msgs[5] = result_message(1, "A loud place.")
    outcome = plan(formatter, msgs, tools=tools)
    remaining = [0, 1] if change == "an earlier result" else []
    assert list_sent_thinking(outcome.request) == remaining
    dropped = [entry for entry in outcome.ledger.entries if entry.disposition is Disposition.DROPPED]
    assert [entry.place for entry in dropped] == [
        f"msgs[{2 + 2 * position}].content[0]" for position in range(3) if position not in remaining
    ]
    assert {entry.reason for entry in dropped} == {
        "the API refuses this thinking because the tools or earlier messages changed"
    }
    assert not any(entry.lost for entry in dropped)
    assert not check_request(provider, outcome.request)


@FREE
def test_models_without_prefix_binding_get_all_thinking(provider: str, model: str) -> None:
    formatter = load_provider(provider).chat_formatter(model)
    msgs = loop(formatter, provider, 3)
    msgs[0] = Msg("system", "Be verbose.", "system")
    assert list_sent_thinking(plan(formatter, msgs).request) == [0, 1, 2]


@BINDING
@each_case("digests", [True, False])
@each_case("strategy", [OldestFirstInSteps(), OldestFirst()])
def test_a_cut_drops_the_thinking_after_it_and_lists_the_paths(
    provider: str, model: str | None, digests: bool, strategy: Any
) -> None:
    free = load_provider(provider).chat_formatter(model)
    msgs = loop(free, provider, 20, digests)
    outcome = plan(load_provider(provider).chat_formatter(model, budget=Budget(250, strategy=strategy)), msgs)
    assert outcome.cut is not None
    assert list_sent_thinking(outcome.request) == []
    remaining = len(msgs) - len(outcome.cut.numbers) - (2 if isinstance(strategy, OldestFirstInSteps) else 1)
    assert len(outcome.cut.thinking) == remaining // 2
    assert outcome.cut.thinking[-1] == f"msgs[{len(msgs) - 2}].content[0]"
    assert not check_request(provider, outcome.request)


def test_thinking_of_a_reply_that_starts_the_conversation_is_sent() -> None:
    msgs = [SYSTEM, thinking_reply("openai-responses", 0, None), result_message(0), Msg("Bob", "And now?", "user")]
    formatter = load_provider("openai-responses").chat_formatter("gpt-6.2")
    assert list_sent_thinking(plan(formatter, msgs).request) == [0]


def test_thinking_before_a_dropped_result_without_a_call_is_sent() -> None:
    call, orphan = (
        thinking_reply("anthropic", 0, None),
        Msg("tool", [ToolResultBlock("lost", "look", "x " * 600)], "system"),
    )
    msgs = [SYSTEM, TASK, replace(call, pinned=True), result_message(0), orphan, Msg("Bob", "And now?", "user")]
    cut = plan(
        AnthropicChatFormatter("claude-opus-5-5", budget=Budget(300, strategy=OldestFirst(keep_task=True))), msgs
    )
    assert cut.cut is not None
    assert (cut.cut.numbers, cut.cut.thinking) == ([4], ())
    assert list_sent_thinking(cut.request) == [0]


@BINDING
def test_thinking_that_was_issued_after_a_cut_is_sent(provider: str, model: str | None) -> None:
    """The digest is that of the shortened request. New thinking is valid until the cut moves."""
    formatter = load_provider(provider).chat_formatter(model, budget=Budget(400))
    msgs, remaining = [SYSTEM, TASK], 0
    for number in range(30):
        outcome = plan(formatter, msgs)
        thinking = list_sent_thinking(outcome.request)
        assert thinking == list(range(number - len(thinking), number)), "all thinking after the cut"
        if outcome.cut:
            remaining = max(remaining, len(thinking))
        msgs += [thinking_reply(provider, number, outcome.request), result_message(number)]
    assert remaining >= 2


@BINDING
def test_no_thinking_is_sent_after_stale_thinking(provider: str, model: str | None) -> None:
    """After stale thinking, later thinking without a digest is stale, too."""
    formatter = load_provider(provider).chat_formatter(model)
    msgs = loop(formatter, provider, 2, digests=False)
    state = OpaqueState(
        "anthropic" if provider == "anthropic" else "openai", prefix="0" * 32, **proof(provider, 7)
    )
    msgs.insert(2, Msg("Friday", [ThinkingBlock("x", state), TextBlock("Hm.")], "assistant"))
    msgs.insert(3, Msg("Bob", "Go on.", "user"))
    assert list_sent_thinking(plan(formatter, msgs).request) == []


def test_a_turn_of_only_stale_thinking_gives_a_valid_request() -> None:
    formatter = AnthropicChatFormatter("claude-opus-5-5", budget=Budget(400))
    state = OpaqueState("anthropic", signature="proof-0", prefix="no such prefix")
    msgs = [TASK, Msg("Friday", [ThinkingBlock("hm", state)], "assistant"), Msg("Bob", "Well?", "user")]
    outcome = plan(formatter, msgs)
    assert list_sent_thinking(outcome.request) == []
    assert not check_request("anthropic", outcome.request)
    assert len(outcome.request["messages"]) == 1


def test_the_digest_depends_only_on_parts_that_the_provider_checks() -> None:
    msgs = [SYSTEM, TASK]
    formatter = AnthropicChatFormatter()
    request = plan(formatter, msgs).request
    same = prefix_digest(request, formatter)
    marked = plan(AnthropicChatFormatter(cache_breakpoints="auto"), msgs).request
    assert marked != request
    assert prefix_digest(marked, formatter) == same
    assert prefix_digest({**request, "tool_choice": {"type": "auto"}, "max_tokens": 5}, formatter) == same
    turned = json.loads(json.dumps(request, sort_keys=True))
    assert prefix_digest(turned, formatter) == same
    for path in ("system", "tools", "messages"):
        other = copy.deepcopy(request)
        other[path] = other[path][:-1]
        assert prefix_digest(other, formatter) != same
    assert len(same) == 32


def test_the_digest_of_a_large_image_depends_on_its_content() -> None:
    first, second = (
        ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes([position]) * 50_000, "image/png")
        for position in (1, 2)
    )
    digests = [
        prefix_digest(
            plan(AnthropicChatFormatter(), [Msg("Bob", [outcome], "user")]).request, AnthropicChatFormatter()
        )
        for outcome in (first, second)
    ]
    assert digests[0] != digests[1]


@pytest.mark.parametrize("viewer", [None, "Friday"])
def test_the_prefix_contains_frames(viewer: str | None) -> None:
    formatter = AnthropicChatFormatter(history=MultiAgentHistory(viewer=viewer))
    msgs = [SYSTEM, TASK, Msg("Al", "Please.", "user")]
    msgs += [thinking_reply("anthropic", 0, plan(formatter, msgs).request), result_message(0)]
    assert list_sent_thinking(plan(formatter, msgs).request) == [0]
    msgs.insert(2, Msg("Eve", "I was here before.", "user"))
    assert list_sent_thinking(plan(formatter, msgs).request) == []


def test_the_digest_of_a_prefix_is_the_same_after_json() -> None:
    state = OpaqueState("anthropic", signature="s", prefix="f" * 32)
    msg = Msg("Friday", [ThinkingBlock("hm", state), TextBlock("Yes.")], "assistant")
    assert Msg.from_dict(msg.to_dict()) == msg


LAYOUT = WireLayout(proofs={"thinking": "signature", "redacted": "data"})


def find_stale(
    messages: Sequence[tuple[Msg, Any]],
    parts: Sequence[Sequence[dict[str, Any]]],
    changed: int | None = None,
    needs_thinking: Callable[[Mapping[str, Any]], bool] | None = None,
) -> set[Any]:
    """Returns the paths of stale thinking. Each item of `parts` is the content of an assistant turn."""
    turns = TracedConversation([msg for msg, _ in messages], [origin for _, origin in messages])
    user = {"role": "user", "content": "hi"}
    contents = [turn for content in parts for turn in (user, {"role": "assistant", "content": [*content]})]
    return find_stale_thinking({"messages": contents}, LAYOUT, turns, changed, needs_thinking)


def think(prefix: str | None = None, **proof: Any) -> ThinkingBlock:
    return ThinkingBlock("hm", OpaqueState("echo", prefix=prefix, **proof))


SIGNED = {"type": "thinking", "signature": "a"}
ONE = Msg("Friday", [think(signature="a")], "assistant")


@each_case(("changed", "is_stale"), [(None, False), (2, False), (1, False), (0, True)])
def test_thinking_without_a_digest_is_stale_after_the_first_changed_message(
    changed: int | None, *, is_stale: bool
) -> None:
    assert find_stale([(TASK, 0), (ONE, 1)], [[SIGNED]], changed) == ({(1, 0)} if is_stale else set())


def test_thinking_without_a_digest_is_stale_directly_after_another_reply() -> None:
    reply = Msg("Friday", "Hi.", "assistant")
    assert find_stale([(reply, 0), (ONE, 1)], [[SIGNED]]) == {(1, 0)}
    assert find_stale([(reply, 0), (TASK, 1), (ONE, 2)], [[], [SIGNED]]) == set()


def test_added_texts_of_a_reply_are_ignored() -> None:
    msg = Msg("Friday", [TextBlock("[interrupted]"), *ONE.blocks], "assistant")
    assert find_stale([(TASK, 0), (msg, ("interrupted", (1, 0)))], [[SIGNED]]) == set()


def test_redacted_thinking_is_found_by_its_data() -> None:
    blocks = [think("0" * 32, redacted_data="b"), think(redacted_data="c")]
    parts = [{"type": "redacted", "data": data} for data in "bc"]
    msg = Msg("Friday", blocks, "assistant")
    assert find_stale([(TASK, 0), (msg, 1)], [parts]) == {(1, 0), (1, 1)}
    assert find_stale([(TASK, 0), (msg, 1)], [parts[1:]]) == set()


def test_a_reply_without_thinking_is_part_of_the_prefix_even_if_such_replies_need_thinking() -> None:
    searches = [{"type": "search"}]
    user, reply = {"role": "user", "content": "hi"}, {"role": "assistant", "content": searches}
    prefix = prefix_digest({"messages": [user, reply, user]}, LAYOUT)
    msg = Msg("Friday", [think(prefix, signature="a")], "assistant")
    searched = Msg("Friday", "Searched.", "assistant")
    messages = [(TASK, 0), (searched, 1), (TASK, 2), (msg, 3)]
    stale = find_stale(messages, [searches, [SIGNED]], None, lambda turn: turn["role"] == "assistant")
    assert stale == set()
