"""Tests of history frames: which messages stay native turns, and the facts about the messages of the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pytest

from agentkit import (
    ChatHistory,
    HistoryPolicy,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    OptionError,
    Synthesis,
    TextBlock,
    ThinkingBlock,
    read_history,
)
from agentkit.history.frame_texts import FrameTexts
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import FrameOrigins, TracedConversation
from agentkit.provider_kit import LegalConversation, Request, RequestSpec
from tests.cases import each_case
from tests.conftest import ECHO, EchoFormatter, call, result, text_msg

IMAGE = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40), "image/png")


def find_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    if "ask" in data:
        return "request", str(data["ask"])
    return ("response", str(data["answer"])) if "answer" in data else None


PAIRED = ECHO.override({"wire": "echo", "opaque.pair_key": find_pair})


def reply(*parts: str, name: str = "Friday", tool: str = "") -> Msg:
    """Returns a reply: `ask 1` is a tool call that the provider ran, and `answer 1` is its response."""
    blocks: list[Any] = []
    for part in parts:
        word, _, key = part.partition(" ")
        blocks.append(OpaqueBlock("echo", {word: key}) if word in ("ask", "answer", "note") else TextBlock(part))
    return Msg(name, [*blocks, *(call(tool, name=name).blocks if tool else ())], "assistant")


def render(msgs: Sequence[Msg], **options: Any) -> TracedConversation:
    return MultiAgentHistory(**options).render(TracedConversation.of(msgs), Ledger(msgs), PAIRED)


def list_native(msgs: Sequence[Msg], **options: Any) -> list[int]:
    """Returns the indexes of the messages that stay turns of their own."""
    return [origin for origin in render(msgs, **options).origins if isinstance(origin, int)]


# -- responses of tools that the provider ran ---------------------------------------------------------------------

BOB = text_msg("Bob", "Hi.")
ASK = reply("ask 1", tool="c")
RESULT = result("c")


@each_case(
    ("later", "native"),
    [
        ([reply("answer 1", "done")], [1, 2, 3]),
        ([BOB, reply("answer 1", "done")], [1, 2, 4]),
        ([reply("answer 1"), reply("answer 1")], [1, 2, 3]),
        ([reply("answer 2", "done")], [1, 2]),
        ([reply("ask 1", "done")], [1, 2]),
        ([reply("note 1", "done"), reply("answer 1")], [1, 2, 4]),
        ([reply("done"), BOB], [1, 2]),
    ],
)
def test_a_reply_with_the_response_of_an_earlier_native_turn_is_native(
    later: Sequence[Msg], native: list[int]
) -> None:
    assert list_native([BOB, ASK, RESULT, *later]) == native
    assert list_native([BOB, ASK, RESULT, *later], other_agents_tools="native", viewer="Eve") == native


def test_a_response_without_a_native_request_is_a_line() -> None:
    assert list_native([BOB, reply("answer 1", "done")]) == []
    assert list_native([BOB, reply("ask 1", "wait"), reply("answer 1", "done")]) == []


def test_opaque_blocks_next_to_calls_of_another_agent_are_omitted() -> None:
    msgs = [BOB, reply("note 1", "Let me see.", tool="c"), RESULT]
    out = render(msgs, viewer="Eve")
    assert len(out.msgs) == 1
    assert {type(block) for block in out.msgs[0].blocks} == {TextBlock}


def test_a_blank_message_is_a_line() -> None:
    assert list_native([BOB, text_msg("Al", " ")]) == []
    capabilities = PAIRED.override({"turns.late_system": "line"})
    conversation = TracedConversation.of([text_msg("Al", " ")])
    out = MultiAgentHistory(viewer="Eve").render(conversation, Ledger(conversation.msgs), capabilities)
    assert [block.text for block in out.msgs[0].blocks if isinstance(block, TextBlock)][1] == "\nAl:  "


# -- facts about frames -------------------------------------------------------------------------------------------

THOUGHT = Msg("Al", [ThinkingBlock("hm"), TextBlock("Hi.")], "assistant")
SILENT = Msg("Al", [ThinkingBlock("hm")], "assistant")
PICTURE = Msg("Bob", [TextBlock("see"), IMAGE], "user")


@each_case(
    "msgs",
    [
        [BOB],
        [THOUGHT],
        [SILENT, BOB],
        [PICTURE],
        [PICTURE, call("c"), RESULT, BOB],
        [BOB, call("c"), RESULT, PICTURE, call("d"), result("d"), THOUGHT],
    ],
)
def test_a_frame_has_the_features_of_its_blocks(msgs: Sequence[Msg]) -> None:
    for msg in render(msgs).msgs:
        assert msg.features == Msg(msg.name, msg.blocks, msg.role).features


def test_texts_that_are_not_part_of_a_frame_are_not_read() -> None:
    frame, filler = "<history>\nBob: Hi.\n</history>", "Continue."
    turns = TracedConversation(
        [Msg("user", [TextBlock(filler)], "user"), Msg("user", [TextBlock(frame)], "user"), BOB],
        [("filler",), FrameOrigins(("frame",), "history"), 0],
    )
    texts = FrameTexts(turns, "history", "", timestamps=False, is_safe=True)
    assert texts.frames == ((frame,),)


# -- visibility ---------------------------------------------------------------------------------------------------


@each_case(
    ("options", "shows_everything"),
    [
        ({}, True),
        ({"viewer": "Eve"}, True),
        ({"other_agents_tools": "drop"}, True),
        ({"viewer": "Eve", "other_agents_tools": "native"}, True),
        ({"viewer": "Eve", "other_agents_tools": "drop"}, False),
        ({"visible": bool}, False),
        ({"viewer": "Eve", "visible": bool}, False),
    ],
)
def test_a_policy_shows_everything_unless_it_hides_messages_or_tools(
    options: dict[str, Any], *, shows_everything: bool
) -> None:
    assert MultiAgentHistory(**options).shows_everything == shows_everything


def test_a_custom_policy_shows_each_unit_by_default() -> None:
    assert HistoryPolicy().is_visible([BOB])
    assert not HistoryPolicy().shows_everything
    assert ChatHistory().shows_everything


def _hides_bob(msg: Msg) -> bool:
    return msg.name != "Bob"


def _shows_friday(msg: Msg) -> bool:
    return msg.name == "Friday"


EXCHANGE = [call("c"), RESULT]
OWN = [call("c", name="Eve"), RESULT]


@each_case(
    ("unit", "options", "is_visible"),
    [
        ([BOB], {"viewer": "Eve", "other_agents_tools": "drop"}, True),
        (EXCHANGE, {"viewer": "Eve", "other_agents_tools": "drop"}, False),
        (EXCHANGE, {"viewer": "Eve", "other_agents_tools": "text"}, True),
        (EXCHANGE, {"other_agents_tools": "drop"}, True),
        (OWN, {"viewer": "Eve", "other_agents_tools": "drop"}, True),
        ([reply("Let me see.", tool="c"), RESULT], {"viewer": "Eve", "other_agents_tools": "drop"}, True),
        ([Msg("Eve", RESULT.blocks, "user")], {"viewer": "Eve", "other_agents_tools": "drop"}, False),
        ([THOUGHT], {"viewer": "Eve", "other_agents_tools": "drop"}, True),
        (
            [call("c"), RESULT, text_msg("system", "Stop.", "system")],
            {"viewer": "Eve", "other_agents_tools": "drop"},
            True,
        ),
        ([BOB], {"visible": _hides_bob}, False),
        ([THOUGHT], {"visible": _hides_bob}, True),
        ([SILENT], {"viewer": "Eve", "other_agents_tools": "drop"}, True),
        ([*EXCHANGE, SILENT], {"viewer": "Eve", "other_agents_tools": "drop"}, False),
        (EXCHANGE, {"visible": _shows_friday}, False),
    ],
)
def test_a_unit_is_visible_if_the_viewer_gets_a_part_of_it(
    unit: Sequence[Msg], options: dict[str, Any], *, is_visible: bool
) -> None:
    assert MultiAgentHistory(**options).is_visible(unit) == is_visible


@pytest.mark.parametrize(
    ("preamble", "opening"),
    [("", "You are Eve.\n"), ("Read.", "Read.\nYou are Eve.\n"), ("Read.\n", "Read.\nYou are Eve.\n")],
)
def test_the_name_of_the_viewer_is_a_line_of_its_own(preamble: str, opening: str) -> None:
    assert MultiAgentHistory(viewer="Eve", preamble=preamble).opening == opening


@each_case("timestamp", [None, "", "[]", " | "])
def test_a_line_without_a_usable_time_begins_with_a_dash(timestamp: str | None) -> None:
    msg = Msg("Bob", "Hi.", "user", timestamp=timestamp)
    assert MultiAgentHistory(timestamps=True).format_speaker(msg) == "[-] Bob"


# -- reading ------------------------------------------------------------------------------------------------------


@each_case(
    ("text", "pairs"),
    [
        ("<history>\n</history>\n<history>\nBob: Hi.\n</history>", [("Bob", "Hi.")]),
        ("<history>\nBob: Hi.\n</history><history>\nAl: Yes.\n</history>", [("Bob", "Hi."), ("Al", "Yes.")]),
        ("<history>\nBob: Hi.\nAl: Yes.\n", []),
        ("\n</history>\n<history>\nBob: Hi.\n</history>", [("Bob", "Hi.")]),
    ],
)
def test_only_texts_between_both_tags_are_read(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read_history(text) == pairs


def test_a_plan_without_frames_has_no_lines_although_its_frame_is_plain() -> None:
    msgs = [call("c"), RESULT]
    history = MultiAgentHistory(frame="plain")
    assert read_history(EchoFormatter(history=history).lower(msgs)) == []
    with pytest.raises(OptionError):
        read_history(EchoFormatter(history=history).lower([BOB]))


class Texts(EchoFormatter):
    """Provider whose requests are lists of texts."""

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        return {"texts": [msg.text for msg in legal.turns.msgs]}


def test_a_frame_may_be_the_first_text_of_a_request() -> None:
    assert read_history(Texts(history=MultiAgentHistory()).lower([BOB])) == [("Bob", "Hi.")]


# -- texts and media of a frame -----------------------------------------------------------------------------------

SHOW = Msg("Bob", [IMAGE, TextBlock("see"), IMAGE, IMAGE], "user")
APART = [
    ("<history>", "frame"),
    ("\nBob: Hi.", "line"),
    ("\nBob:", "speaker"),
    (IMAGE, (1, 0)),
    ("\nBob: see", "line"),
    (IMAGE, (1, 2)),
    (IMAGE, (1, 3)),
    ("\nEve: Yes.", "line"),
    ("\n</history>", "frame"),
]
GLUED = [
    ("<history>\nBob: Hi.\nBob:", "frame"),
    (IMAGE, (1, 0)),
    ("Bob: see", "frame"),
    (IMAGE, (1, 2)),
    (IMAGE, (1, 3)),
    ("Eve: Yes.\n</history>", "frame"),
]


@pytest.mark.parametrize(("joining", "blocks"), [("apart", APART), ("glued", GLUED)])
def test_media_are_blocks_between_the_texts_of_a_frame(joining: Any, blocks: list[tuple[Any, Any]]) -> None:
    conversation = TracedConversation.of([BOB, SHOW, text_msg("Eve", "Yes.")])
    capabilities = PAIRED.override({"turns.text_joining": joining})
    ledger = Ledger(conversation.msgs)
    (frame,) = MultiAgentHistory(preamble="").render(conversation, ledger, capabilities)
    traced = [
        (block.text if isinstance(block, TextBlock) else block, origin) for block, origin in frame.traced_blocks
    ]
    assert traced == blocks
    assert frame.frame_tag == "history"
    assert ledger.syntheses == [
        Synthesis("preamble", "text that tells the model that the conversation history follows"),
        Synthesis("frame", "tags around the lines of the conversation history"),
    ]
