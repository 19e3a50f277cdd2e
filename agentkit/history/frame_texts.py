"""Texts of the history frames (turns of `NAME: TEXT` lines between tags), and of the preamble before them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.blocks import TextBlock

__all__ = ["FrameTexts", "closing_text", "opening_text"]

_PREAMBLE = "# Conversation History\nThe content between <{tag}></{tag}> tags contains your conversation history\n"


def opening_text(tag: str, preamble: str | None, viewer: str | None) -> str:
    """Returns the text before the first history frame: the preamble, and a line that names the viewer.

    The viewer is the agent that the request is for. None as `preamble` stands for the text that AgentScope uses.
    """
    text = _PREAMBLE.format(tag=tag) if preamble is None else preamble
    if viewer is None:
        return text
    lead = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{lead}You are {viewer}.\n"


def closing_text(tag: str) -> str:
    """Returns the text that closes a history frame: a line break and the closing tag."""
    return f"\n</{tag}>"


_FRAME_ORIGINS = frozenset({"frame", "line", "speaker"})
"""Origins that mark a text as part of a history frame. A text that describes media has another origin."""


class FrameTexts:
    """Texts of the history frames that a history policy wrote into a request.

    The texts are collected on first access.

    Attributes:
        is_safe: True if speaker names and texts are escaped.
    """

    def __init__(
        self,
        turns: TracedConversation | tuple[tuple[str, ...], ...],
        tag: str,
        opening: str,
        *,
        timestamps: bool,
        is_safe: bool,
    ) -> None:
        self.tag = tag
        self.opening = opening
        self.timestamps = timestamps
        self.is_safe = is_safe
        self._turns = turns

    @property
    def frames(self) -> tuple[tuple[str, ...], ...]:
        """The texts of each frame, in order."""
        if isinstance(self._turns, TracedConversation):
            self._turns = tuple(self._find_frames(self._turns))
        return self._turns

    def _find_frames(self, turns: TracedConversation) -> Iterator[tuple[str, ...]]:
        texts: list[str] = []
        for traced in turns:
            if isinstance(traced.origin, int):
                continue  # the origin is an index, so the message was sent unchanged
            for block, origin in traced.traced_blocks:
                if isinstance(block, TextBlock) and isinstance(origin, str) and origin in _FRAME_ORIGINS:
                    texts.append(block.text)
                    # only the last text of a safe frame ends with the closing tag
                    if block.text.endswith(f"</{self.tag}>"):
                        yield tuple(texts)
                        texts = []

    def __reduce__(self) -> tuple[object, ...]:
        """Returns the state for copies and pickles: the texts, without the conversation."""
        create = partial(FrameTexts, timestamps=self.timestamps, is_safe=self.is_safe)
        return (create, (self.frames, self.tag, self.opening))
