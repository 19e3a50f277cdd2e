"""Checks the order of messages with the rules of LangChain's chat templates, or with those of torchtune."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.errors import MessageError
from agentkit.formatting.formatter import check_messages
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg

__all__ = ["check_roles", "validate_messages"]


def check_roles(msgs: Sequence[Msg]) -> None:
    """Checks the order of roles as `LangChain.Utils.ChatTemplates` (Elixir, 0.9) does.

    The first message must be a system message or a message of a user. A message of a user must directly follow the
    system message. No later message may be a system message.

    Raises:
        MessageError: The order is wrong. The attribute `reason` is the text of LangChain's error, without a final
            period.
    """
    first = _role(msgs[0])
    if first == "system" and (len(msgs) < 2 or _role(msgs[1]) != "user"):
        _refuse(
            1 if len(msgs) > 1 else 0,
            "Messages must include a user prompt after a system message",
            "Add a message of a user after the system message.",
        )
    if first not in ("system", "user"):
        _refuse(
            0,
            "Messages must start with either a system or user message",
            "Add a system message or a message of a user at the start.",
        )
    for index, msg in enumerate(msgs[1:], 1):
        if _role(msg) == "system":
            _refuse(
                index,
                "Only a single system message is expected and it must be first",
                "Pass one system message, as the first message.",
            )


def validate_messages(msgs: Sequence[Msg]) -> None:
    """Checks the order of messages as `torchtune.data.validate_messages` does.

    There must be at least two messages. Only the first message may be a system message. Messages of a user and of
    an assistant must alternate. A tool result must directly follow a message with tool calls. agentkit also
    accepts several tool results in a row, which torchtune refuses.

    Raises:
        EmptyConversationError: There are no messages.
        MessageError: The order is wrong, or there is only one message.
    """
    checked = check_messages(msgs)
    if len(checked) < 2:
        _refuse(0, f"expected at least two messages, got {len(checked)}", "Pass a message and a reply.")
    previous = ""
    for index, role in enumerate(_list_roles(checked)):
        if role == "system" and index:
            _refuse(index, "a system message must be the first message")
        if role == "user" and previous == "user":
            _refuse(index, "a message of a user follows another message of a user")
        if role in ("assistant", "calls") and previous not in ("user", "tool"):
            _refuse(index, "a message of an assistant must follow a message of a user, or a tool result")
        if role == "tool" and previous not in ("calls", "tool"):
            _refuse(index, "a tool result must follow a message with tool calls")
        previous = role


def _list_roles(msgs: Sequence[Msg]) -> Iterator[str]:
    for msg in msgs:
        yield "calls" if msg.features & Feature.CALL else _role(msg)


def _role(msg: Msg) -> str:
    return "tool" if msg.features & Feature.RESULT else msg.role


def _refuse(index: int, reason: str, advice: str = "Change the order of the messages.") -> None:
    raise MessageError(f"msgs[{index}]", reason, advice)
