"""Events of a streamed reply, the same for every provider.

    MessageStart
    TextStart       TextDelta*       TextEnd        a text block
    ThinkingStart   ThinkingDelta*   ThinkingEnd    a thinking block
    ToolUseStart    ToolUseDelta*    ToolUseEnd     a tool call
    MediaEvent      OpaqueEvent                     a block that arrives in one piece
    UsageEvent                                      tokens so far; the last one counts
    ErrorEvent                                      an error that the provider reported
    MessageEnd                                      end of the reply; only a UsageEvent may follow

`index` numbers the blocks in the order in which they begin. Several blocks may be open at the same time. Each
block ends once, except a tool call in which the stream broke off. A tool call that the provider runs by itself
gets an OpaqueEvent. Where a finish reason arrives together with content, MessageEnd follows when no more content
comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agentkit.messages.blocks import MediaBlock, OpaqueBlock, ToolUseBlock
from agentkit.messages.usage import FinishReason, Usage
from agentkit.reprs import bounded_repr

if TYPE_CHECKING:
    from agentkit.replies.arguments import ArgumentBuffer

__all__ = [
    "ErrorEvent",
    "MediaEvent",
    "MessageEnd",
    "MessageStart",
    "OpaqueEvent",
    "StreamEvent",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "ToolUseDelta",
    "ToolUseEnd",
    "ToolUseStart",
    "UsageEvent",
]


@dataclass(slots=True)
class MessageStart:
    """Start of the reply. `id` and `model` are None if the provider reports them later."""

    id: str | None = None
    model: str | None = None
    type: Literal["message-start"] = "message-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class TextStart:
    """Start of a text block."""

    index: int
    type: Literal["text-start"] = "text-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class TextDelta:
    """Piece of a text block."""

    index: int
    text: str
    type: Literal["text-delta"] = "text-delta"

    __repr__ = bounded_repr


@dataclass(slots=True)
class TextEnd:
    """End of a text block, with its complete text."""

    index: int
    text: str
    type: Literal["text-end"] = "text-end"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ThinkingStart:
    """Start of a thinking block."""

    index: int
    type: Literal["thinking-start"] = "thinking-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ThinkingDelta:
    """Piece of a thinking block."""

    index: int
    text: str
    type: Literal["thinking-delta"] = "thinking-delta"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ThinkingEnd:
    """End of a thinking block, with its complete text."""

    index: int
    text: str
    type: Literal["thinking-end"] = "thinking-end"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ToolUseStart:
    """Start of a tool call. `id` or `name` is empty if it arrives later; `ToolUseEnd` has both."""

    index: int
    id: str
    name: str
    type: Literal["tool-use-start"] = "tool-use-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ToolUseDelta:
    """Piece of the argument text of a tool call. `length` is the length of the text so far."""

    index: int
    text: str
    arguments: ArgumentBuffer = field(repr=False)
    length: int
    type: Literal["tool-use-delta"] = "tool-use-delta"

    __repr__ = bounded_repr

    @property
    def input(self) -> dict[str, Any]:
        """Arguments so far, as far as they can be parsed. Do not change the object.

        Long arguments are parsed at intervals, so the last few percent of the text may be missing.
        """
        return self.arguments.partial(self.length)


@dataclass(slots=True)
class ToolUseEnd:
    """End of a tool call. `block` is the block of the message."""

    index: int
    block: ToolUseBlock
    type: Literal["tool-use-end"] = "tool-use-end"

    __repr__ = bounded_repr


@dataclass(slots=True)
class MediaEvent:
    """Image, audio or other media block that the model created."""

    index: int
    block: MediaBlock
    type: Literal["media"] = "media"

    __repr__ = bounded_repr


@dataclass(slots=True)
class OpaqueEvent:
    """Opaque block, such as a search that the provider ran by itself."""

    index: int
    block: OpaqueBlock
    type: Literal["opaque"] = "opaque"

    __repr__ = bounded_repr


@dataclass(slots=True)
class UsageEvent:
    """Tokens that the provider has reported so far."""

    usage: Usage
    type: Literal["usage"] = "usage"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ErrorEvent:
    """Error that the provider reported within the stream. Earlier blocks stay valid."""

    message: str
    code: str | None = None
    type: Literal["error"] = "error"

    __repr__ = bounded_repr


@dataclass(slots=True)
class MessageEnd:
    """End of the reply. `native` is the finish reason in the provider's words."""

    finish_reason: FinishReason
    native: str | None = None
    type: Literal["message-end"] = "message-end"

    __repr__ = bounded_repr


StreamEvent: TypeAlias = (
    MessageStart
    | TextStart
    | TextDelta
    | TextEnd
    | ThinkingStart
    | ThinkingDelta
    | ThinkingEnd
    | ToolUseStart
    | ToolUseDelta
    | ToolUseEnd
    | MediaEvent
    | OpaqueEvent
    | UsageEvent
    | ErrorEvent
    | MessageEnd
)
