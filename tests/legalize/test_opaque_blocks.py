"""Tests of opaque blocks: they are sent unchanged in their wire format, and are losses in others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from agentkit import (
    Disposition,
    ImageBlock,
    LossError,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    dump_messages,
    load_messages,
)
from tests.cases import each_case
from tests.conftest import dispositions, target
from tests.providers import PNG_URL, chat

FILE: Final = {"type": "container_upload", "file_id": "file_1"}
PART: Final = OpaqueBlock("anthropic", FILE)
TOOL_REFERENCE: Final = OpaqueBlock("anthropic", {"type": "tool_reference", "tool_name": "look"})


def user_message(*blocks: Any) -> Msg:
    return Msg("Bob", blocks, "user")


def create_exchange(*items: Any, is_error: bool = False) -> list[Msg]:
    """Returns a conversation with a tool result."""
    call = Msg("Friday", (ToolUseBlock("c1", "search", {}),), "assistant")
    return [
        user_message(TextBlock("Look.")),
        call,
        Msg("tool", (ToolResultBlock("c1", "search", items, is_error),), "system"),
    ]


def test_an_opaque_block_of_a_user_stays_in_its_own_wire_format() -> None:
    plan = chat("anthropic", on_loss="raise").lower([user_message(TextBlock("See"), PART, TextBlock("this."))])
    (turn,) = plan.request["messages"]
    assert turn["content"] == [{"type": "text", "text": "See"}, FILE, {"type": "text", "text": "this."}]
    assert turn["content"][1] is not FILE


def test_an_opaque_item_of_a_result_stays_in_its_own_wire_format() -> None:
    plan = chat("anthropic", on_loss="raise").lower(create_exchange(TextBlock("Found:"), TOOL_REFERENCE))
    (result,) = plan.request["messages"][-1]["content"]
    assert result["content"] == [{"type": "text", "text": "Found:"}, TOOL_REFERENCE.data]


@each_case("provider", ["openai", "openai-responses", "gemini", "ollama", "dashscope", "vllm"])
def test_in_another_wire_format_an_opaque_block_is_described_dropped_or_raises(provider: str) -> None:
    for msgs in (
        [user_message(TextBlock("See"), PART)],
        create_exchange(TOOL_REFERENCE),
        [Msg("system", (PART,), "system"), user_message(TextBlock("x"))],
    ):
        described = chat(provider).lower(msgs)
        assert [reason for _, reason in described.ledger.losses] == [
            "block in a format that only anthropic accepts"
        ]
        assert "[part left out because only anthropic accepts its format]" in str(described.request)
        dropped = chat(provider, on_loss="drop").lower(msgs)
        assert [entry.disposition for entry in dropped.ledger.entries if entry.lost] == [Disposition.DROPPED]
        with pytest.raises(LossError):
            chat(provider, on_loss="raise").lower(msgs)


def test_an_opaque_block_of_a_reply_is_dropped_elsewhere_without_loss() -> None:
    msgs = [
        user_message(TextBlock("Hi.")),
        Msg("Friday", (PART, TextBlock("Yes.")), "assistant"),
        user_message(TextBlock("And?")),
    ]
    plan = chat("openai", on_loss="raise").lower(msgs)
    assert plan.ledger.losses == []
    assert [turn["content"] for turn in plan.request["messages"]] == ["Hi.", "Yes.", "And?"]


def test_an_opaque_block_of_a_reply_is_dropped_from_a_user_turn() -> None:
    search = OpaqueBlock("openai-responses", {"type": "web_search_call", "id": "ws_1", "status": "completed"})
    plan = chat("openai-responses", on_loss="raise").lower([user_message(search, TextBlock("Hi."))])
    assert plan.request["input"] == [{"type": "message", "role": "user", "content": "Hi."}]


def test_a_failed_result_has_no_opaque_block_if_the_target_accepts_only_text() -> None:
    plan = chat("anthropic").lower(create_exchange(TOOL_REFERENCE, is_error=True))
    assert [reason for _, reason in plan.ledger.losses] == [
        "the API accepts only text in a tool result that reports an error"
    ]


def test_a_frame_has_opaque_blocks_of_users_and_omits_those_of_replies() -> None:
    msgs = [
        user_message(TextBlock("See"), PART, TextBlock("this.")),
        Msg("Friday", (PART, TextBlock("Yes.")), "assistant"),
    ]
    plan = chat("anthropic", history=MultiAgentHistory()).lower(msgs)
    (turn,) = plan.request["messages"]
    assert [part.get("text", part) for part in turn["content"]][1:] == [
        "\nBob: See", FILE, "\nBob: this.", "\nFriday: Yes.", "\n</history>"
    ]  # fmt: skip


def test_opaque_blocks_are_stored_and_loaded() -> None:
    msgs = [user_message(PART), *create_exchange(TOOL_REFERENCE)]
    assert load_messages(dump_messages(msgs)) == msgs


# -- keys that came with a block ------------------------------------------------------------------------------

DETAIL: Final = OpaqueState("openai", fields={"detail": "low"})


def test_keys_of_an_image_are_sent_to_their_issuer_in_any_turn_and_result() -> None:
    picture = ImageBlock(URLSource(PNG_URL), state=DETAIL)
    plan = chat("openai-responses").lower([user_message(picture), *create_exchange(picture)])
    parts = [plan.request["input"][0]["content"][0], plan.request["input"][-1]["output"][0]]
    assert [part["detail"] for part in parts] == ["low", "low"]
    moved = chat("openai").lower(create_exchange(picture)).request["messages"][-1]["content"]
    assert [part["image_url"]["detail"] for part in moved if part["type"] == "image_url"] == ["low"]


def test_keys_of_another_issuer_are_omitted_with_a_note_and_without_loss() -> None:
    plan = chat("anthropic", on_loss="raise").lower([user_message(ImageBlock(URLSource(PNG_URL), state=DETAIL))])
    (entry,) = plan.ledger.entries
    assert (entry.reason, entry.lost) == ("data issued by openai, such as a signature, was omitted", False)


def test_a_proof_is_sent_only_in_assistant_turns() -> None:
    signed = OpaqueState("gemini", thought_signature="c2ln", fields={"media_resolution": "x"})
    plan = chat("gemini").lower(
        [user_message(TextBlock("Hi.", state=signed), ImageBlock(URLSource(PNG_URL), state=signed))]
    )
    assert "c2ln" not in str(plan.request)


def test_the_state_of_a_text_in_a_result_is_sent_to_its_issuer() -> None:
    fields = {"response": {"seen": 1}, "scheduling": "SILENT"}
    described = TextBlock('{"seen":1}', state=OpaqueState("gemini", fields=fields))
    for provider, times in (("gemini", 1), ("openai", 0), ("anthropic", 0)):
        assert str(chat(provider).lower(create_exchange(described)).request).count("SILENT") == times


def test_the_state_of_a_text_in_a_result_is_sent_to_no_other_issuer() -> None:
    cited = TextBlock("Cats.", state=OpaqueState("openai", fields={"citations": [{"type": "x"}]}))
    for provider in ("anthropic", "gemini"):
        assert "citations" not in str(chat(provider).lower(create_exchange(cited)).request)


NO_PLACE: Final = "Anthropic Messages does not accept this type of block in a message of role 'user'"


def test_an_opaque_item_of_a_result_is_a_loss_in_a_turn() -> None:
    exchange = [
        msg if msg.role != "assistant" else replace(msg, name="Eve") for msg in create_exchange(TOOL_REFERENCE)
    ]
    history = MultiAgentHistory(viewer="Friday")
    plan = chat("anthropic", history=history).lower([user_message(TOOL_REFERENCE), *exchange[1:]])
    assert "tool_reference" not in json.dumps(plan.request)
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", NO_PLACE),
        ("msgs[2].content[0].output[0]", NO_PLACE),
    ]
    native = chat("anthropic").lower(exchange)
    assert native.ledger.losses == []
    assert "tool_reference" in json.dumps(native.request)


# -- parts where their own API has no place for them -------------------------------------------------------------

MISPLACED: Final[list[tuple[str, str | None, dict[str, Any], set[str]]]] = [
    # Provider, model, data of a part, and the places that its API has for it.
    ("anthropic", None, {"type": "redacted_thinking", "data": "PART"}, {"assistant"}),
    ("anthropic", None, {"type": "compaction", "content": "PART"}, {"assistant"}),
    ("anthropic", None, {"type": "document", "source": {"type": "file", "file_id": "PART"}}, {"user", "result"}),
    ("anthropic", None, {"type": "image", "source": {"type": "file", "file_id": "PART"}}, {"user", "result"}),
    ("anthropic", None, {"type": "container_upload", "file_id": "PART"}, {"user"}),
    ("anthropic", None, {"type": "tool_reference", "tool_name": "PART"}, {"result"}),
    ("openai-responses", None, {"type": "input_image", "file_id": "PART", "detail": "auto"}, {"user", "result"}),
    ("openai-responses", None, {"type": "input_file", "file_id": "PART"}, {"user", "result"}),
    ("openai-responses", None, {"type": "web_search_call", "id": "PART"}, {"assistant"}),
    ("openai-responses", None, {"type": "output_audio", "data": "PART"}, set()),
    ("openai", None, {"type": "file", "file": {"file_id": "PART"}}, {"user"}),
    ("openai", None, {"audio": {"id": "PART"}}, {"assistant"}),
    ("gemini", None, {"function_call": {"name": "PART", "args": {}}}, {"assistant"}),
    ("gemini", None, {"function_response": {"name": "PART", "response": {}}}, {"user"}),
    ("gemini", None, {"file_data": {"file_uri": "files/PART"}}, {"assistant", "user"}),
    ("gemini", "gemini-3-pro", {"file_data": {"file_uri": "files/PART"}}, {"assistant", "user", "result"}),
    ("dashscope", None, {"image": "PART"}, {"user"}),
]


def _place_block(place: str, block: OpaqueBlock) -> list[Msg]:
    beside = TextBlock("Hi.")
    start = Msg("Bob", "Go.", "user")
    if place == "result":
        call = Msg("Friday", [ToolUseBlock("call_1", "look", {})], "assistant")
        return [start, call, Msg("tool", [ToolResultBlock("call_1", "look", [beside, block])], "system")]
    if place == "assistant":
        return [start, Msg("Friday", [beside, block], "assistant"), start]
    if place == "system":
        return [Msg("system", [beside, block], "system"), start]
    return [Msg("Bob", [beside, block], "user")]


@each_case("place", ["assistant", "user", "system", "result"])
@each_case(("provider", "model", "data", "places"), MISPLACED)
def test_an_opaque_block_is_sent_only_in_turns_that_its_api_accepts(
    provider: str, model: str | None, data: dict[str, Any], places: set[str], place: str
) -> None:
    wire = str(chat(provider).capabilities(model).wire)
    plan = chat(provider, model).lower(_place_block(place, OpaqueBlock(wire, data)))
    assert ("PART" in str(plan.request)) is (place in places)
    named = [entry for entry in plan.ledger.entries if entry.disposition is not Disposition.CARRIED]
    assert bool(named) is (place not in places)


@pytest.mark.parametrize(("role", "outcome"), [("user", "carried"), ("assistant", "dropped")])
def test_only_blocks_of_a_reply_need_the_thinking_before_them(role: Any, outcome: str) -> None:
    blocks: list[Any] = [
        ThinkingBlock("Hm.", OpaqueState("echo")),
        OpaqueBlock("echo", {"type": "item"}),
        TextBlock("x"),
    ]

    def needs_thinking(data: object) -> bool:
        return True

    formatter = target(wire="echo", thinking__mode="never", opaque__needs_thinking=needs_thinking)()
    assert dispositions(formatter.lower([Msg("Bob", blocks, role)]))["msgs[0].content[1]"] == outcome
