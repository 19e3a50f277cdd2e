"""Replies that begin with their own speaker's name, as models do that were shown `NAME: TEXT` lines."""

from __future__ import annotations

import re
from dataclasses import replace

from agentkit.errors import check_option, check_text
from agentkit.history.transcript import safe_name
from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg

__all__ = ["strip_echo"]


def strip_echo(msg: Msg, name: str | None = None) -> Msg:
    """The message without the `NAME:` that its first text begins with, if that is its own speaker's.

    Any other text, and any other name, is untouched; so is a text that is nothing but the name, and one that
    the provider signed. `name` is the viewer's, the message's own speaker unless given.
    """
    check_option("msg", msg, Msg, "Pass the message of a reply.")
    check_text("name", name)
    speaker = msg.name if name is None else name
    if not speaker.strip():
        return msg
    for at, block in enumerate(msg.blocks):
        if isinstance(block, TextBlock) and block.text.strip():
            text = _without(block.text, speaker)
            if text is None or (block.state and block.state.thought_signature):
                return msg
            if isinstance(msg.content, str):
                return replace(msg, content=text)
            kept = replace(block, text=text)
            return replace(msg, content=(*msg.content[:at], kept, *msg.content[at + 1 :]))
    return msg


def _without(text: str, name: str) -> str | None:
    for spelling in (name, safe_name(name, "history")):
        found = re.match(rf"\s*{re.escape(spelling)}[ \t]*[:：][ \t]*\n?(?=.*\S)", text, re.DOTALL)
        if found:
            return text[found.end() :]
    return None
