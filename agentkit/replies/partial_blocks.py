"""`PartialBlock` and its subclasses: blocks of a reply whose pieces are still arriving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from agentkit.json_values import as_text
from agentkit.messages.blocks import MediaBlock, OpaqueBlock, ToolUseBlock
from agentkit.replies.arguments import ArgumentBuffer
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

__all__ = [
    "CompleteBlock",
    "PartialBlock",
    "PartialPlainText",
    "PartialText",
    "PartialThinking",
    "PartialToolCall",
]


_EMPTY: Final[Mapping[str, Any]] = {}


class PartialBlock:
    """Block of a reply that may be incomplete.

    Attributes:
        index: Number of the block, in the order in which the blocks of the reply began.
        state: Opaque state of the block. The keys are names of fields of `OpaqueState`.
        metadata: Metadata of the block, such as `citations`.
        closed: True if the block accepts no more pieces.
        half: First half of a surrogate pair that was split between two pieces. Empty if there is no such half.
    """

    __slots__ = ("closed", "half", "index", "metadata", "state")

    def __init__(self, index: int) -> None:
        self.index = index
        self.state = _EMPTY
        self.metadata = _EMPTY
        self.closed = False
        self.half = ""

    def clean(self, piece: str) -> str:
        """Returns a piece of text in a form that UTF-8 can encode.

        If the piece ends with the first half of a surrogate pair, this half is stored and added to the next piece.
        """
        piece, self.half = self.half + piece, ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            piece, self.half = piece[:-1], piece[-1]
        return as_text(piece, f"reply.content[{self.index}]") if not piece.isascii() else piece

    def clean_all(self, text: str) -> str:
        """Returns a complete text in a form that UTF-8 can encode.

        The caller replaces all earlier pieces with this text. Therefore, a stored half of a surrogate pair is
        discarded.
        """
        self.half = ""
        return self.clean(text)

    def take_half(self) -> str:
        """Discards the stored half of a surrogate pair, and returns the replacement character U+FFFD."""
        half, self.half = self.half, ""
        return as_text(half, f"reply.content[{self.index}]")


class PartialText(PartialBlock):
    """Text or thinking block that may be incomplete.

    The class attributes `start`, `delta` and `end` are the types of the events that report the block.
    """

    __slots__ = ("pieces",)

    start: ClassVar[type[TextStart | ThinkingStart]]
    delta: ClassVar[type[TextDelta | ThinkingDelta]]
    end: ClassVar[type[TextEnd | ThinkingEnd]]

    def __init__(self, index: int) -> None:
        PartialBlock.__init__(self, index)  # faster than `super()`
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """The part of the text that has arrived."""
        return "".join(self.pieces)


class PartialPlainText(PartialText):
    """Text block that may be incomplete."""

    __slots__ = ()
    start = TextStart
    delta = TextDelta
    end = TextEnd


class PartialThinking(PartialText):
    """Thinking block that may be incomplete."""

    __slots__ = ()
    start = ThinkingStart
    delta = ThinkingDelta
    end = ThinkingEnd


class PartialToolCall(PartialBlock):
    """Tool call that may be incomplete.

    Attributes:
        input: Arguments as an object. None if the provider sends the arguments as text.
        blocks: Tool calls that the argument text contains, usually one. Empty until the blocks are built.
    """

    __slots__ = ("arguments", "blocks", "id", "input", "name")

    def __init__(self, index: int) -> None:
        PartialBlock.__init__(self, index)
        self.id = ""
        self.name = ""
        self.arguments = ArgumentBuffer()
        self.input: dict[str, Any] | None = None
        self.blocks: list[ToolUseBlock] = []


class CompleteBlock(PartialBlock):
    """Media or opaque block, which arrives in one piece. Its opaque state and metadata can arrive later."""

    __slots__ = ("block",)

    def __init__(self, index: int, block: MediaBlock | OpaqueBlock) -> None:
        super().__init__(index)
        self.block = block
        self.closed = True

    @property
    def event(self) -> MediaEvent | OpaqueEvent:
        """Stream event that contains the block."""
        if isinstance(self.block, OpaqueBlock):
            return OpaqueEvent(self.index, self.block)
        return MediaEvent(self.index, self.block)
