"""Tests of the rewriting of messages: moved media, the origins of blocks, and messages that a cache has."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from agentkit import (
    Base64Source,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ToolResultBlock,
    URLSource,
)
from agentkit.history.policies import ChatHistory
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import FrameOrigins, TracedConversation
from agentkit.legalize.block_rules import BlockLegalizer
from agentkit.legalize.legal_message import LegalMessage
from agentkit.provider_kit import Capabilities, MediaLimits, MediaRule
from tests.cases import each_case
from tests.conftest import call, get_turns, ledger_lines, legalize, lower, result, target, text_msg, turn_lines

PNG: Final = Base64Source("image/png", "iVBORw0KGgo=")
IMAGE: Final = ImageBlock(PNG)
BOB: Final = text_msg("Bob", "hi")
NOTE: Final = "(image shown in the user turn after this one)"


def promoted(name: str, count: int = 1) -> str:
    """Returns the line of a user turn with images that moved out of a message."""
    items = "\n- The image:  | <image> | " * count
    label = f"<system-info>The following are the image contents from the message of '{name}':"
    return f"user user: {label} | {items}</system-info>"


# -- moved media -------------------------------------------------------------------------------------------------


@each_case(
    ("msgs", "lines"),
    [
        ([], []),
        ([BOB], ["user Bob: hi"]),
        (
            [text_msg("Friday", "yes?", "assistant"), BOB],
            ["assistant Friday: yes?", "user Bob: hi"],
        ),
        (
            [Msg("Bob", (TextBlock(" "), TextBlock("hi")), "user"), BOB],
            ["user Bob: hi", "user Bob: hi"],
        ),
    ],
)
def test_media_of_the_system_prompt_move_to_the_first_turn(msgs: list[Msg], lines: list[str]) -> None:
    prompt = Msg("Guide", (IMAGE,), "system")
    assert turn_lines(lower([prompt, *msgs])) == [f"system Guide: {NOTE}", promoted("Guide"), *lines]


def test_moved_media_follow_their_turn_and_its_results() -> None:
    msgs = [
        Msg("Friday", (IMAGE, *call("c").blocks), "assistant"),
        result("c"),
        Msg("Friday", (IMAGE, TextBlock("see")), "assistant"),
        Msg("Friday", (IMAGE, IMAGE), "assistant"),
    ]
    assert turn_lines(lower(msgs)) == [
        f"assistant Friday: {NOTE} | call c",
        "system system: result c=found",
        promoted("Friday"),
        f"assistant Friday: {NOTE} | see",
        promoted("Friday"),
        f"assistant Friday: {NOTE} | {NOTE}",
        promoted("Friday", 2),
    ]


def test_media_of_a_turn_come_before_those_of_its_results_in_the_order_of_the_calls() -> None:
    msgs = [
        Msg("Friday", (IMAGE, *call("a", "b").blocks), "assistant"),
        Msg("system", tuple(ToolResultBlock(id, id, (IMAGE,)) for id in ("b", "a")), "system"),
    ]
    *_, turn = get_turns(lower(msgs, media__result_kinds=frozenset(), tools__results_in_order=True))
    labels = [block["text"] for block in turn["content"] if "contents" in block.get("text", "")]
    assert [label.rpartition(" from ")[2] for label in labels] == [
        "the message of 'Friday':",
        "the tool result of 'a', call a:",
        "the tool result of 'b', call b:",
    ]


def find_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    return ("request", str(data["ask"])) if "ask" in data else None


def test_a_request_that_no_longer_ends_the_conversation_is_half_a_pair() -> None:
    reply = Msg("Friday", (IMAGE, OpaqueBlock("echo", {"ask": 1})), "assistant")
    changes: dict[str, Any] = {"wire": "echo", "opaque__pair_key": find_pair, "turns__resumable": True}
    assert turn_lines(lower([BOB, reply], media__roles=frozenset({"assistant"}), **changes)) == [
        "user Bob: hi",
        "assistant Friday: <image> | <opaque>",
    ]
    assert turn_lines(lower([BOB, reply], **changes)) == [
        "user Bob: hi",
        f"assistant Friday: {NOTE}",
        promoted("Friday"),
    ]


# -- limits ------------------------------------------------------------------------------------------------------


def test_the_images_of_the_system_prompt_are_limited_before_turns_without_images() -> None:
    prompt = Msg("Guide", (TextBlock("Look."), IMAGE, IMAGE), "system")
    rule = MediaRule(limits=MediaLimits(count=1))
    plan = lower([prompt, BOB], media__image=rule, media__roles=frozenset({"system"}))
    reason = "Echo accepts at most 1 media items of this kind in one request"
    assert turn_lines(plan) == [
        f"system Guide: Look. | [image left out because {reason}] | <image>",
        "user Bob: hi",
    ]


def test_each_message_gets_its_own_changes_after_a_system_prompt() -> None:
    prompt = [Msg("Guide", (TextBlock("Look."), IMAGE), "system"), Msg("Guide", (IMAGE,), "system")]
    msgs = [*prompt, *(Msg("Bob", (TextBlock(str(n)), IMAGE), "user") for n in range(3))]
    rule = MediaRule(limits=MediaLimits(count=2))
    plan = lower(msgs, media__image=rule, media__roles=frozenset({"system", "user"}))
    assert [line.count("<image>") for line in turn_lines(plan)] == [0, 0, 0, 1, 1]
    assert [line.count("left out") for line in turn_lines(plan)] == [1, 1, 1, 0, 0]


# -- cached messages ---------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a"
    msgs = [Msg("Bob", (TextBlock(" "), ImageBlock(URLSource(str(path)))), "user")]
    formatter = target()(media_roots=[tmp_path])
    for data in (b"\x89PNG\r\n\x1a\n", b"GIF89a1", b"GIF89a22"):
        path.write_bytes(data)
        for _ in range(2):
            (turn,) = get_turns(await formatter.plan(msgs))
            assert turn["content"][0]["source"]["data"] == base64.b64encode(data).decode()
    (turn,) = get_turns(formatter.lower(msgs))
    assert turn["content"][0]["text"] == "[image left out because the source is a file that was not read]"


class LogFrame(ChatHistory):
    """History policy that writes all blocks into one history frame."""

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        pairs = [pair for traced in conversation for pair in traced.traced_blocks]
        frame = Msg("user", tuple(block for block, _ in pairs), "user")
        return TracedConversation([frame], [FrameOrigins((origin for _, origin in pairs), "log")])


@each_case(
    ("block", "reason"),
    [
        (TextBlock(""), "dropped: the text is empty or has only white space"),
        (TextBlock(" "), "dropped: the text is empty or has only white space"),
        (
            TextBlock("x", state=OpaqueState("other")),
            "carried: data issued by other, such as a signature, was omitted",
        ),
        (
            ImageBlock(PNG, state=OpaqueState("other")),
            "carried: data issued by other, such as a signature, was omitted",
        ),
        (ImageBlock(URLSource("a.png")), "described!: the source is a file that was not read"),
        (OpaqueBlock("other", {}), "described!: block in a format that only other accepts"),
    ],
)
def test_the_blocks_of_a_frame_have_the_same_rules_in_each_request(block: Any, reason: str) -> None:
    formatter = target()(history=LogFrame())
    for _ in range(2):
        plan = formatter.lower([Msg("Bob", (TextBlock("see"), IMAGE, block), "user")])
        assert ledger_lines(plan) == [
            "0.0 carried: sent unchanged",
            "0.1 carried: sent unchanged",
            f"0.2 {reason}",
        ]


def test_the_images_of_a_frame_are_limited_in_each_request() -> None:
    formatter = target(media__image=MediaRule(limits=MediaLimits(count=1)))(history=MultiAgentHistory())
    for count in (1, 2, 2):
        plan = formatter.lower([Msg("Bob", (TextBlock("see"), *[IMAGE] * count), "user"), BOB])
        assert [line.count("<image>") for line in turn_lines(plan)] == [1]


# -- work that is done once --------------------------------------------------------------------------------------


@pytest.fixture
def rewritten(monkeypatch: pytest.MonkeyPatch) -> list[Msg]:
    """Returns a list of the messages whose blocks are rewritten during the test."""
    msgs: list[Msg] = []
    run = BlockLegalizer.run

    def record(self: BlockLegalizer, msg: Msg) -> LegalMessage:
        msgs.append(msg)
        return run(self, msg)

    monkeypatch.setattr(BlockLegalizer, "run", record)
    return msgs


@pytest.mark.parametrize(
    "source",
    [PNG, URLSource("https://a/b.png"), URLSource(f"data:image/png;base64,{PNG.data}"), URLSource("a.png")],
)
def test_a_message_is_rewritten_once_for_a_target(source: Any, rewritten: list[Msg]) -> None:
    msg = Msg("Bob", (TextBlock("see"), ImageBlock(source)), "user")
    for formatter in (target()(), target(media__image=MediaRule(limits=MediaLimits(count=1)))()):
        rewritten.clear()
        for _ in range(3):
            formatter.lower([BOB, msg, BOB])
        assert rewritten == [msg]


def test_a_frame_with_accepted_media_is_not_rewritten(rewritten: list[Msg]) -> None:
    formatter = target()(history=MultiAgentHistory())
    msg = Msg("Bob", (TextBlock("see"), ImageBlock(Base64Source("image/png", PNG.data))), "user")
    formatter.lower([msg, BOB])
    rewritten.clear()
    formatter.lower([msg, BOB])
    assert rewritten == []


def test_a_frame_is_rewritten_once_in_a_request_with_limits(rewritten: list[Msg]) -> None:
    rule = MediaRule(limits=MediaLimits(count=2))
    formatter = target(media__image=rule)(history=MultiAgentHistory(viewer="Friday"))
    image = ImageBlock(Base64Source("image/x-png", PNG.data))
    formatter.lower([text_msg("Guide", "Look.", "system"), Msg("Bob", (TextBlock("see"), image), "user"), BOB])
    assert len(rewritten) == 1


def test_a_rewritten_frame_is_still_a_frame() -> None:
    blank = Msg("Bob", (TextBlock("see"), TextBlock(" ")), "user")
    (frame,) = legalize([blank], LogFrame()).turns
    assert (frame.frame_tag, frame.block_origins) == ("log", ((0, 0),))
    (turn,) = legalize([blank]).turns
    assert (turn.frame_tag, turn.block_origins) == ("", ((0, 0),))
