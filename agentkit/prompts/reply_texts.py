"""`read_reply_text`: the text of a complete reply, or an error with the reason why there is none."""

from __future__ import annotations

from typing import Final, TypeAlias

from agentkit.errors import ParseError, ParseFailure
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.reprs import shorten

__all__ = ["Reply", "check_reply_end", "get_reply_text", "read_reply_text"]

Reply: TypeAlias = Msg | str
"""Message of a model, or only its text."""

_ENDINGS: Final[dict[FinishReason | None, tuple[ParseFailure, str]]] = {
    FinishReason.LENGTH: ("cut_off", "the reply reached the maximum number of tokens"),
    FinishReason.INTERRUPTED: ("cut_off", "the stream ended before the reply was complete"),
    FinishReason.ERROR: ("cut_off", "the provider reported an error inside the reply"),
    FinishReason.PAUSE: ("cut_off", "the provider paused the turn before the reply was complete"),
    FinishReason.REFUSAL: ("refused", "the model refused to answer"),
    FinishReason.CONTENT_FILTER: ("filtered", "a filter of the provider withheld or truncated the reply"),
}
"""Failure and description of replies that are not parsed, by finish reason."""


def check_reply_end(reply: Reply) -> None:
    """Checks that a reply is complete.

    Raises:
        ParseError: The reply was cut off, refused or filtered.
    """
    ending = _ENDINGS.get(reply.finish_reason) if isinstance(reply, Msg) else None
    if ending is not None:
        failure, description = ending
        raise ParseError(description, failure=failure, text=get_reply_text(reply), message=reply)


def get_reply_text(reply: Reply) -> str:
    """Returns the text of a reply. Media and tool calls have no text."""
    return reply if isinstance(reply, str) else reply.text


def read_reply_text(reply: Reply) -> str:
    """Returns the text of a complete reply without tool calls.

    Raises:
        ParseError: The reply was cut off, refused or filtered, or calls a tool.
    """
    check_reply_end(reply)
    calls = reply.tool_uses if isinstance(reply, Msg) else ()
    if calls:
        names = ", ".join(dict.fromkeys(call.name for call in calls))
        raise ParseError(f"expected a text, got a call of the tool {shorten(names, 200)}", failure="no_structure")
    return get_reply_text(reply)
