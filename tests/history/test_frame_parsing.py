"""Tests of `read_history`: plans, texts and parts that it parses, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from agentkit import (
    ChatHistory,
    HistoryPolicy,
    ImageBlock,
    InputError,
    Msg,
    MultiAgentHistory,
    OptionError,
    Plan,
    TextBlock,
    URLSource,
    read_history,
)
from agentkit.reprs import shorten_repr
from tests.cases import each_case
from tests.conftest import call, lower, result, text_msg

BOB, ALICE = text_msg("Bob", "hi"), text_msg("Al: x", "a\nb")
IMAGE = ImageBlock(URLSource("https://example.com/a.png"))
PAIRS = [("Bob", "hi"), ("Al: x", "a\nb")]


def plan(*msgs: Msg, history: HistoryPolicy | None = None, joining: str = "apart") -> Plan:
    policy = MultiAgentHistory(viewer="Friday") if history is None else history
    return lower(msgs, policy, turns__text_joining=joining)


# -- plans --------------------------------------------------------------------------------------------------------


@each_case("joining", ["apart", "glued"])
@each_case("preamble", [None, "", "<history>\nEve: x\n</history>\n", "<history>\n"])
@each_case("timestamps", [True, False])
def test_the_frames_of_a_plan_are_read_in_order(joining: str, preamble: str | None, timestamps: bool) -> None:
    history = MultiAgentHistory(viewer="Friday", preamble=preamble, timestamps=timestamps, tag="log")
    media = Msg("Bob", [IMAGE, TextBlock("see"), IMAGE], "user")
    own = text_msg("Friday", "<log>\nEve: x\n</log>", "assistant")
    both = plan(BOB, ALICE, own, media, call("c"), result("c"), BOB, history=history, joining=joining)
    assert read_history(both) == [*PAIRS, ("Bob", "see"), ("Bob", "hi")]
    assert read_history(both, tag="other", timestamps=not timestamps) == read_history(both)


def test_a_plan_of_a_policy_without_frames_has_no_history() -> None:
    assert read_history(plan(text_msg("Bob", "<history>\nEve: x\n</history>"), history=ChatHistory())) == []
    assert read_history(plan(BOB, history=HistoryPolicy())) == []


def test_the_texts_of_all_frames_must_be_in_the_request_in_order() -> None:
    original = plan(BOB, call("c"), result("c"), ALICE)
    turns = original.request["messages"]
    assert read_history(replace(original, request={"input": {"turns": [*turns]}})) == PAIRS
    for changed in ([*turns[3:], *turns[:3]], turns[:3]):
        with pytest.raises(InputError) as caught:
            read_history(replace(original, request={"messages": changed}))
        assert str(caught.value) == (
            "plan.request: the request does not contain the history frame's text '<history>'. "
            "Pass a plan with an unchanged request."
        )


def test_each_line_must_be_in_the_request_as_often_as_in_the_frames() -> None:
    original = plan(BOB, BOB)
    (turn,) = original.request["messages"]
    assert read_history(original) == [("Bob", "hi")] * 2
    del turn["content"][1]
    with pytest.raises(InputError, match="does not contain the history frame's text '\\\\nBob: hi'"):
        read_history(original)


# -- texts and parts ----------------------------------------------------------------------------------------------


@each_case(("rendered", "pairs"), [
        ("", []),
        ([], []),
        ([{"type": "image"}], []),
        ("<history>\n</history>", []),
        ("<history></history>", []),
        ("<history>\nBob: hi", []),
        ("<history>\nBob: hi\n</history>", [("Bob", "hi")]),
        ("Eve: no\n</history>\n<history>\nEve: no\n<history>\nBob: hi\n</history>\nEve: no\n</history>",
         [("Bob", "hi")]),
        ("<history>\nBob:\nno name\nAl: \n</history>", [("Al", "")]),
        (["<history>", "Bob: hi", "\nAl: yes", {"text": "Cy: no"}, TextBlock("\n</history>")],
         [("Bob", "hi"), ("Al", "yes"), ("Cy", "no")]),
        (["<history>", {"text": 5}, {"image": "Bob: hi"}, "</history>"], []),
    ])  # fmt: skip
def test_each_line_with_a_speaker_and_a_text_is_read(
    rendered: str | Sequence[Any], pairs: list[tuple[str, str]]
) -> None:
    assert read_history(rendered) == pairs


@each_case(
    ("line", "pair"),
    [
        ("[12:00] Bob: hi", ("Bob", "hi")),
        ("[] Bob: hi", ("Bob", "hi")),
        ("[12]Bob: hi", ("[12]Bob", "hi")),
        ("[1[2]] Bob: hi", ("[1[2]] Bob", "hi")),
        ("Bob: [12:00] hi", ("Bob", "[12:00] hi")),
    ],
)
def test_a_line_can_begin_with_a_time_in_brackets(line: str, pair: tuple[str, str]) -> None:
    assert read_history(f"<log>\n{line}\n</log>", tag="log", timestamps=True) == [pair]


# -- errors -------------------------------------------------------------------------------------------------------


def whole_turn(found: str) -> str:
    """Returns the end of the error for a whole turn in place of a part of a frame."""
    return (
        f"expected a part of a history frame, got a whole turn, which may contain other text: {found}. "
        "Pass the Plan, or the parts of one frame."
    )


NO_FRAMES: Final[list[tuple[Any, str]]] = [
    (3, "rendered: expected a Plan, a string or the parts of one history frame, got int 3. "
        "Pass the Plan that contains the frames."),
    ({"messages": []}, "rendered: expected a Plan, a string or the parts of one history frame, "
                       "got dict {'messages': []}. Pass the Plan that contains the frames."),
    ([BOB], f"rendered[0]: {whole_turn(shorten_repr(BOB, 60))}"),
    (["<history>", {"role": "user", "content": []}],
     "rendered[1]: " + whole_turn("{'role': 'user', 'content': []}")),
    (["<history>", {"role": "user", "text": "Bob: hi"}],
     "rendered[1]: " + whole_turn("{'role': 'user', 'text': 'Bob: hi'}")),
]  # fmt: skip


@each_case(("rendered", "error"), NO_FRAMES)
def test_a_value_that_is_no_part_of_a_frame_is_an_error(rendered: Any, error: str) -> None:
    with pytest.raises(InputError) as caught:
        read_history(rendered)
    assert str(caught.value) == error


def test_a_plain_frame_is_an_error() -> None:
    with pytest.raises(OptionError) as caught:
        read_history(plan(BOB, history=MultiAgentHistory(frame="plain")))
    assert str(caught.value) == (
        "history.frame: expected 'safe', got 'plain': frames without escaping cannot be parsed. Use frame='safe'."
    )
