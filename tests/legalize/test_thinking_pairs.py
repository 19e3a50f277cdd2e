"""Tests of reply blocks that an API accepts only together with the thinking before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentkit import (
    Base64Source,
    HistoryPolicy,
    ImageBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    Plan,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from tests.conftest import call, get_turns, ledger_lines, lower, turn_lines

SIGNED: Final = ThinkingBlock("hm", OpaqueState("echo", signature="s"))
UNSIGNED: Final = ThinkingBlock("hm", OpaqueState("echo"))
FOREIGN: Final = ThinkingBlock("hm", OpaqueState("other", signature="s"))
UNMARKED: Final = ThinkingBlock("hm")
ITEM: Final = OpaqueBlock("echo", {"type": "item"})
NOTE: Final = OpaqueBlock("echo", {"type": "note"})
PNG: Final = Base64Source("image/png", "iVBORw0KGgo=")
TEXT: Final = TextBlock("x")

NO_PROOF: Final = "dropped: this thinking has no signature or encrypted data, but the API requires one of them"
ORPHAN: Final = "the API requires the thinking before this block, but the request omits that thinking"
SAME: Final = "carried: sent unchanged"


def reply(*blocks: Any) -> Msg:
    return Msg("Friday", blocks, "assistant")


def needs_thinking(data: Mapping[str, Any]) -> bool:
    return bool(data["type"] == "item")


def send(msgs: Sequence[Msg], history: HistoryPolicy | None = None, **changes: Any) -> Plan:
    options: dict[str, Any] = {
        "wire": "echo",
        "thinking__mode": "signed",
        "thinking__required_proof": frozenset({"signature"}),
        "opaque__needs_thinking": needs_thinking,
        "media__generated_by_id": True,
        "media__roles": frozenset({"assistant"}),
    }
    return lower(msgs, history, **{**options, **changes})


def test_a_block_is_omitted_if_the_last_thinking_of_its_issuer_is() -> None:
    msgs = [
        reply(TEXT, ITEM),
        reply(SIGNED, ITEM, FOREIGN, UNMARKED, ITEM, UNSIGNED, ITEM, NOTE, TEXT, FOREIGN, ITEM, SIGNED, ITEM),
        reply(UNSIGNED, ITEM),
        reply(ITEM, UNSIGNED, TEXT),
    ]
    plan = send(msgs)
    assert turn_lines(plan) == [
        "assistant Friday: x | <opaque>",
        "assistant Friday: hm | <opaque> | <opaque> | <opaque> | x | hm | <opaque>",
        "assistant Friday: <opaque> | x",
    ]
    issued = "dropped: the API does not accept thinking issued by other"
    assert ledger_lines(plan) == [
        f"0.0 {SAME}",
        f"0.1 {SAME}",
        f"1.0 {SAME}",
        f"1.1 {SAME}",
        f"1.2 {issued}",
        f"1.3 {NO_PROOF}",
        f"1.4 {SAME}",
        f"1.5 {NO_PROOF}",
        f"1.6 dropped: {ORPHAN}",
        f"1.7 {SAME}",
        f"1.8 {SAME}",
        f"1.9 {issued}",
        f"1.10 dropped: {ORPHAN}",
        f"1.11 {SAME}",
        f"1.12 {SAME}",
        f"2.0 {NO_PROOF}",
        f"2.1 dropped: {ORPHAN}",
        f"3.0 {SAME}",
        f"3.1 {NO_PROOF}",
        f"3.2 {SAME}",
    ]


def test_a_generated_image_without_its_thinking_is_sent_as_data() -> None:
    blocks = (
        UNSIGNED,
        ImageBlock(PNG, state=OpaqueState("echo", item_id="ig_1")),
        ImageBlock(PNG, state=OpaqueState("echo")),
        ImageBlock(PNG),
        TextBlock("x", state=OpaqueState("echo", item_id="msg_1")),
    )
    plan = send([reply(*blocks)])
    assert [block.get("state") for block in get_turns(plan)[0]["content"]] == [
        None,
        {"issuer": "echo"},
        None,
        {"issuer": "echo", "item_id": "msg_1"},
    ]
    assert [line.partition(";")[0] for line in ledger_lines(plan)] == [
        f"0.0 {NO_PROOF}",
        f"0.1 carried: {ORPHAN}",
        f"0.2 {SAME}",
        f"0.3 {SAME}",
        f"0.4 {SAME}",
    ]
    foreign = ImageBlock(PNG, state=OpaqueState("other", item_id="ig_1"))
    assert ORPHAN not in str(send([reply(UNSIGNED, foreign)]).ledger)
    by_data = send([reply(*blocks)], media__generated_by_id=False)
    assert ORPHAN not in str(by_data.ledger)


def test_a_block_in_another_wire_format_depends_on_no_thinking() -> None:
    plan = send([reply(UNSIGNED, OpaqueBlock("other", {"type": "item"}), TEXT)])
    assert ORPHAN not in str(plan.ledger)


def test_blocks_are_omitted_from_messages_that_repair_divided() -> None:
    msgs = [
        call("a", "b"),
        reply(ToolResultBlock("a", "search", "A"), UNSIGNED, ITEM, TEXT),
        reply(ToolResultBlock("b", "search", "B"), TEXT, NOTE),
    ]
    assert turn_lines(send(msgs)) == [
        "assistant Friday: call a | call b",
        "assistant Friday: result a=A",
        "assistant Friday: result b=B",
        "assistant Friday: x",
        "assistant Friday: x | <opaque>",
    ]


class Rewriting(HistoryPolicy):
    """History policy that copies the blocks of each message."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        return [Msg.from_dict(msg.to_dict()) for msg in msgs]


def test_blocks_that_a_policy_added_stay() -> None:
    plan = send([reply(UNSIGNED, ITEM, TEXT)], Rewriting())
    assert turn_lines(plan) == ["assistant Friday: <opaque> | x"]
