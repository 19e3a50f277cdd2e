"""Rules for the order of messages: those of LangChain and of torchtune, each a row."""

from __future__ import annotations

from typing import Final

import pytest

from agentkit import EmptyConversationError, MessageError, Msg, ToolResultBlock, ToolUseBlock
from agentkit.chat_templates import ChatTemplate, validate_messages
from tests.cases import each_case

MSGS: Final = {
    "s": Msg("system", "s", "system"),
    "u": Msg("Bob", "u", "user"),
    "a": Msg("Friday", "a", "assistant"),
    "c": Msg("Friday", [ToolUseBlock("c1", "look", {})], "assistant"),
    "t": Msg("system", [ToolResultBlock("c1", "look", "t")], "system"),
}


def conversation(letters: str) -> list[Msg]:
    return [MSGS[letter] for letter in letters]


@each_case(
    ("letters", "place", "reason"),
    [
        ("s", 0, "Messages must include a user prompt after a system message"),
        ("sa", 1, "Messages must include a user prompt after a system message"),
        ("a", 0, "Messages must start with either a system or user message"),
        ("t", 0, "Messages must start with either a system or user message"),
        ("us", 1, "Only a single system message is expected and it must be first"),
        ("sus", 2, "Only a single system message is expected and it must be first"),
    ],
)
def test_a_wrong_order_of_roles_has_the_reason_of_langchain(letters: str, place: int, reason: str) -> None:
    template = ChatTemplate.builtin("zephyr")
    with pytest.raises(MessageError) as caught:
        template.render(conversation(letters))
    assert (caught.value.place, caught.value.reason) == (f"msgs[{place}]", reason)
    assert template.render(conversation(letters), validate=False).text


@each_case("letters", ["u", "su", "uu", "uaa", "suat", "uct"])
def test_an_order_of_roles_that_langchain_accepts(letters: str) -> None:
    assert ChatTemplate.builtin("zephyr").render(conversation(letters)).text
    with pytest.raises(EmptyConversationError):
        ChatTemplate.builtin("zephyr").render([])


@each_case(
    ("letters", "place"),
    [("u", 0), ("us", 1), ("uu", 1), ("uauu", 3), ("sa", 1), ("a", 0), ("uaa", 2), ("uat", 2), ("ut", 1)],
)
def test_torchtune_refuses_an_order(letters: str, place: int) -> None:
    with pytest.raises(MessageError) as caught:
        validate_messages(conversation(letters))
    assert caught.value.place == f"msgs[{place}]"


@each_case("letters", ["ua", "sua", "uaua", "ucta", "suctta", "su"])
def test_torchtune_accepts_an_order(letters: str) -> None:
    validate_messages(conversation(letters))


def test_an_empty_conversation_is_refused() -> None:
    with pytest.raises(EmptyConversationError):
        validate_messages([])
    with pytest.raises(MessageError, match="expected at least two messages"):
        validate_messages([MSGS["a"]])
