"""Removal of a speaker's own name from the start of a reply: models often copy the `NAME:` of history frames."""

from __future__ import annotations

import re
from dataclasses import replace

from agentkit.argument_checks import check_option, check_text
from agentkit.history.safe_frame import safe_name
from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg

__all__ = ["strip_speaker_prefix"]


def strip_speaker_prefix(msg: Msg, name: str | None = None) -> Msg:
    """Returns the message without the `NAME:` at the start of its first text, if NAME is its speaker's name.

    A text without this prefix, a text that consists of the prefix only, and a text with a provider's signature are
    unchanged.

    Args:
        msg: The reply.
        name: The name to remove; None: the name of the message's speaker.

    Raises:
        OptionError: `msg` is not a Msg, or `name` is not a string.

    """
    check_option("msg", msg, Msg, "Pass the message of a reply.")
    check_text("name", name)
    speaker = msg.name if name is None else name
    if not speaker.strip():
        return msg
    for index, block in enumerate(msg.blocks):
        if isinstance(block, TextBlock) and block.text.strip():
            text = _find_text_after(block.text, speaker)
            if text is None or (block.state and block.state.thought_signature):
                return msg
            if isinstance(msg.content, str):
                return replace(msg, content=text)
            stripped = replace(block, text=text)
            return replace(msg, content=(*msg.content[:index], stripped, *msg.content[index + 1 :]))
    return msg


def _find_text_after(text: str, name: str) -> str | None:
    """Returns the text after the prefix. Returns None if there is no prefix, or no text after the prefix."""
    for spelling in (name, safe_name(name, "history")):
        match = re.match(rf"\s*{re.escape(spelling)}[ \t]*[:：][ \t]*\n?(?=.*\S)", text, re.DOTALL)
        if match:
            return text[match.end() :]
    return None
