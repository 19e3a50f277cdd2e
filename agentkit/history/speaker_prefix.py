"""Removal of the speaker's name from the start of a reply.

Models often copy the `NAME:` prefix from the lines of history frames.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agentkit.argument_checks import check_option, check_text
from agentkit.history.frame_escaping import safe_name
from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg

__all__ = ["strip_speaker_prefix"]


def strip_speaker_prefix(msg: Msg, name: str | None = None) -> Msg:
    """Returns a reply without the prefix `NAME:` at the start of its first text.

    Returns the reply unchanged if the name is blank, or if the first text does not start with the prefix or ends
    after the prefix. Also returns the reply unchanged if the first text has a provider's signature, because a
    change of the text would invalidate the signature.

    Args:
        msg: The reply.
        name: The name to remove. None stands for the name of the message's speaker.

    Raises:
        OptionError: If `msg` is not a Msg, or `name` is neither a string nor None.
    """
    check_option("msg", msg, Msg, "Pass a Msg, such as the reply of a model.")
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
    """Returns the text after the prefix `NAME:`. Returns None if the prefix or the text after it is missing."""
    for spelling in (name, safe_name(name, "history")):
        match = re.match(rf"\s*{re.escape(spelling)}[ \t]*[:：][ \t]*\n?(?=.*\S)", text, re.DOTALL)
        if match:
            return text[match.end() :]
    return None
