"""The blocks of a reply in the making: what came of each so far, and which events tell of it."""

from __future__ import annotations

from typing import Any, ClassVar

from agentkit.json_values import text_of
from agentkit.messages.blocks import MediaBlock, OpaqueBlock, ToolUseBlock
from agentkit.replies.arguments import Arguments
from agentkit.replies.events import (
    MediaEvent,
    OpaqueEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
)

__all__ = ["CallDraft", "Draft", "SaidDraft", "TextDraft", "ThinkingDraft", "WholeDraft"]


class Draft:
    """A block in the making."""

    __slots__ = ("closed", "half", "index", "metadata", "state")

    def __init__(self, index: int) -> None:
        self.index = index
        self.state: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.closed = False
        self.half = ""  # the first half of a character that was cut in two

    def take(self, piece: str) -> str:
        """A piece as UTF-8 can carry it: half a character at its end waits for the other half."""
        if piece.isascii() and not self.half:
            return piece
        piece, self.half = self.half + piece, ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            piece, self.half = piece[:-1], piece[-1]
        return text_of(piece, f"reply.content[{self.index}]") if not piece.isascii() else piece

    def take_whole(self, text: str) -> str:
        """A text that replaces all pieces so far, as UTF-8 can carry it: half a character at its end waits."""
        self.half = ""
        return self.take(text)

    def take_rest(self) -> str:
        """The replacement of half a character that never got its other half; empty if there is none."""
        half, self.half = self.half, ""
        return text_of(half, f"reply.content[{self.index}]")


class SaidDraft(Draft):
    """A text, or thinking, in pieces."""

    __slots__ = ("pieces",)

    start: ClassVar[type[TextStart | ThinkingStart]]
    delta: ClassVar[type[TextDelta | ThinkingDelta]]
    end: ClassVar[type[TextEnd | ThinkingEnd]]

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)


class TextDraft(SaidDraft):
    """A block of text."""

    __slots__ = ()
    start = TextStart
    delta = TextDelta
    end = TextEnd


class ThinkingDraft(SaidDraft):
    """A block of thinking."""

    __slots__ = ()
    start = ThinkingStart
    delta = ThinkingDelta
    end = ThinkingEnd


class CallDraft(Draft):
    """A call: its argument text in pieces, or its input as an object. `blocks` are made when it is complete."""

    __slots__ = ("arguments", "blocks", "id", "input", "name")

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.id = ""
        self.name = ""
        self.arguments = Arguments()
        self.input: dict[str, Any] | None = None
        self.blocks: list[ToolUseBlock] = []


class WholeDraft(Draft):
    """A block that came whole; what is said of it may come later."""

    __slots__ = ("block",)

    def __init__(self, index: int, block: MediaBlock | OpaqueBlock) -> None:
        super().__init__(index)
        self.block = block
        self.closed = True

    @property
    def event(self) -> MediaEvent | OpaqueEvent:
        """What tells of it."""
        if isinstance(self.block, OpaqueBlock):
            return OpaqueEvent(self.index, self.block)
        return MediaEvent(self.index, self.block)
