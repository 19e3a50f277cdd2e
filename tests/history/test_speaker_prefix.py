"""Tests of replies that begin with the name of their speaker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from agentkit import Msg, OpaqueState, OptionError, TextBlock, ThinkingBlock, strip_speaker_prefix
from tests.cases import each_case
from tests.conversations import names, texts
from tests.profiles import examples


def friday(text: str) -> Msg:
    return Msg("Friday", text, "assistant")


@each_case("text", ["Friday: Hi.", "Friday:Hi.", "  Friday : Hi.", "\nFriday: Hi.", "Friday:\nHi.", "Friday：Hi."])
def test_the_name_of_the_viewer_and_its_colon_are_removed(text: str) -> None:
    assert strip_speaker_prefix(friday(text)).text == "Hi."


@each_case(
    "text",
    [
        "Hi.",
        "Bob: Hi.",
        "Friday is a day.",
        "friday: Hi.",
        "Friday:",
        "Friday:  \n",
        "On Friday: Hi.",
        "Fridays: x",
        "",
    ],
)
def test_any_other_text_is_unchanged(text: str) -> None:
    msg = friday(text)
    assert strip_speaker_prefix(msg) is msg


def test_only_one_speaker_prefix_is_removed_and_only_from_the_first_text() -> None:
    assert strip_speaker_prefix(friday("Friday: Friday: Hi.")).text == "Friday: Hi."
    first, second = TextBlock("Hm."), TextBlock("Friday: Hi.")
    msg = Msg("Friday", [first, second], "assistant")
    assert strip_speaker_prefix(msg) is msg
    thought = ThinkingBlock("Friday: I think")
    assert strip_speaker_prefix(Msg("Friday", [thought, second], "assistant")).content == (
        thought,
        TextBlock("Hi."),
    )


def test_the_name_is_an_option_and_a_signed_text_is_unchanged() -> None:
    assert strip_speaker_prefix(Msg("assistant", "Friday: Hi.", "assistant"), "Friday").text == "Hi."
    signed = TextBlock("Friday: Hi.", state=OpaqueState("gemini", thought_signature="c2ln"))
    msg = Msg("Friday", [signed], "assistant")
    assert strip_speaker_prefix(msg) is msg


def test_a_value_that_is_not_a_message_is_an_error() -> None:
    text: Any = "Friday: Hi."
    with pytest.raises(OptionError, match="Pass a Msg, such as the reply"):
        strip_speaker_prefix(text)


@given(names, texts)
@examples(100)
def test_the_text_after_the_removed_name_is_unchanged(name: str, text: str) -> None:
    msg = Msg(name, f"{name}: {text}", "assistant")
    remaining = strip_speaker_prefix(msg).text
    assert remaining in (msg.text, text.lstrip(" \t").removeprefix("\n")) or msg.text.endswith(remaining)
    assert remaining.rstrip().endswith(text.strip()[-1:])


def test_the_first_text_that_is_not_blank_loses_the_prefix_and_all_other_blocks_stay() -> None:
    blank, state = TextBlock(" \n"), OpaqueState("gemini")
    blocks = [blank, TextBlock("Friday: Hi.", state=state), TextBlock("Bye."), TextBlock("Friday: Bye.")]
    assert strip_speaker_prefix(Msg("Friday", blocks, "assistant")).content == (
        blank,
        TextBlock("Hi.", state=state),
        *blocks[2:],
    )


def test_a_name_that_is_not_a_string_is_an_error() -> None:
    invalid: Any = 5
    with pytest.raises(OptionError) as caught:
        strip_speaker_prefix(friday("Friday: Hi."), invalid)
    assert caught.value.place == "name"
