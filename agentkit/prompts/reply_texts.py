"""`read_reply_text`: returns the text of a complete reply, or raises an error that says why there is no text."""

from __future__ import annotations

from typing import TypeAlias

from agentkit.errors import ParseError
from agentkit.messages.message import Msg
from agentkit.messages.parsed_reply import EARLY_ENDS, read_text
from agentkit.prompts.value_escapes import MARKER_START
from agentkit.reprs import shorten

__all__ = ["Reply", "check_reply_end", "get_reply_text", "read_reply_text"]

Reply: TypeAlias = Msg | str
"""Reply of a model: the message, or only the text of the message."""


def check_reply_end(reply: Reply) -> None:
    """Checks that a reply is complete.

    Raises:
        ParseError: The reply was cut off, refused or filtered.
    """
    ending = EARLY_ENDS.get(reply.finish_reason) if isinstance(reply, Msg) else None
    if ending is not None:
        failure, description = ending
        raise ParseError(description, failure=failure, text=get_reply_text(reply), message=reply)


def get_reply_text(reply: Reply) -> str:
    """Returns the text of a reply, without media and tool calls.

    A text block that begins with a section marker starts a new line. The reason: in the block before the marker,
    OpenAI's models may write a comment without a line break at its end.
    """
    return reply if isinstance(reply, str) else read_text(reply, MARKER_START)


def read_reply_text(reply: Reply) -> str:
    """Returns the text of a complete reply without tool calls.

    Raises:
        ParseError: The reply was cut off, refused or filtered, or calls a tool.
    """
    check_reply_end(reply)
    calls = reply.tool_uses if isinstance(reply, Msg) else ()
    if calls:
        names = ", ".join(dict.fromkeys(call.name for call in calls))
        raise ParseError(f"expected text, got tool calls: {shorten(names, 200)}", failure="no_structure")
    return get_reply_text(reply)
