"""`FrameTexts`: the texts of the history frames in a request."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.blocks import TextBlock

__all__ = ["FrameTexts"]


_FRAME_ORIGINS = frozenset({"frame", "line", "speaker"})
"""Origins of the texts of a frame. A description of media has the origin of its block instead."""


class FrameTexts:
    """Texts of the frames of a request, as the history policy wrote them. They are found on first access.

    Attributes:
        tag: The name of the frame's tag.
        opening: The text before the first frame.
        timestamps: True if lines begin with a timestamp.
        is_safe: True if names and texts are escaped.

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
                continue  # the message was sent unchanged
            for block, origin in traced.traced_blocks:
                if isinstance(block, TextBlock) and isinstance(origin, str) and origin in _FRAME_ORIGINS:
                    texts.append(block.text)
                    # only the last text of a safe frame ends with the closing tag
                    if block.text.endswith(f"</{self.tag}>"):
                        yield tuple(texts)
                        texts = []

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles have the texts, not the turns."""
        return (_create_frame_texts, (self.frames, self.tag, self.opening, self.timestamps, self.is_safe))


def _create_frame_texts(
    frames: tuple[tuple[str, ...], ...], tag: str, opening: str, timestamps: bool, is_safe: bool
) -> FrameTexts:
    return FrameTexts(frames, tag, opening, timestamps=timestamps, is_safe=is_safe)
