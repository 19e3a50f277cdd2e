"""Events of a streamed reply. All providers' streams are converted to these events.

    MessageStart
    TextStart       TextDelta*       TextEnd        a text block
    ThinkingStart   ThinkingDelta*   ThinkingEnd    a thinking block
    ToolUseStart    ToolUseDelta*    ToolUseEnd     a tool call
    MediaEvent or OpaqueEvent                       a block that arrives in one piece
    UsageEvent                                      token counts; each event replaces the previous counts
    ErrorEvent                                      an error that the provider reported
    MessageEnd                                      end of the reply; only a UsageEvent may follow

`index` numbers the blocks in the order in which the blocks begin. Several blocks may be open at the same time.
Each block that has a start event also has one end event. The exception is a tool call that is incomplete when the
stream breaks off. A tool call that the provider itself runs, such as a web search, gets an `OpaqueEvent`.
`MessageEnd` comes after all content, even if the provider sends the finish reason earlier.
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


class _Event:
    __slots__ = ()
    __repr__ = bounded_repr


@dataclass(slots=True, repr=False)
class MessageStart(_Event):
    """Start of the reply. `id` or `model` is None if the provider has not sent this value yet."""

    id: str | None = None
    model: str | None = None
    type: Literal["message-start"] = "message-start"


@dataclass(slots=True, repr=False)
class TextStart(_Event):
    """Start of a text block."""

    index: int
    type: Literal["text-start"] = "text-start"


@dataclass(slots=True, repr=False)
class TextDelta(_Event):
    """Piece of a text block."""

    index: int
    text: str
    type: Literal["text-delta"] = "text-delta"


@dataclass(slots=True, repr=False)
class TextEnd(_Event):
    """End of a text block, with its complete text."""

    index: int
    text: str
    type: Literal["text-end"] = "text-end"


@dataclass(slots=True, repr=False)
class ThinkingStart(_Event):
    """Start of a thinking block."""

    index: int
    type: Literal["thinking-start"] = "thinking-start"


@dataclass(slots=True, repr=False)
class ThinkingDelta(_Event):
    """Piece of a thinking block."""

    index: int
    text: str
    type: Literal["thinking-delta"] = "thinking-delta"


@dataclass(slots=True, repr=False)
class ThinkingEnd(_Event):
    """End of a thinking block, with its complete text."""

    index: int
    text: str
    type: Literal["thinking-end"] = "thinking-end"


@dataclass(slots=True, repr=False)
class ToolUseStart(_Event):
    """Start of a tool call. `id` or `name` is empty if the value arrives later. `ToolUseEnd` has both values."""

    index: int
    id: str
    name: str
    type: Literal["tool-use-start"] = "tool-use-start"


@dataclass(slots=True, repr=False)
class ToolUseDelta(_Event):
    """Piece of a tool call's argument text. `length` is the length of the argument text including this piece."""

    index: int
    text: str
    arguments: ArgumentBuffer = field(repr=False)
    length: int
    type: Literal["tool-use-delta"] = "tool-use-delta"

    @property
    def input(self) -> dict[str, Any]:
        """Arguments that can be parsed from the argument text up to the end of this piece.

        A long argument text is parsed only at intervals, so the result may lack the end of the text. Do not modify
        the returned dict, because several events share the dict.
        """
        return self.arguments.partial(self.length)


@dataclass(slots=True, repr=False)
class ToolUseEnd(_Event):
    """End of a tool call. `block` is the complete tool call, as the message contains it."""

    index: int
    block: ToolUseBlock
    type: Literal["tool-use-end"] = "tool-use-end"


@dataclass(slots=True, repr=False)
class MediaEvent(_Event):
    """Image, audio or other media block that the model created."""

    index: int
    block: MediaBlock
    type: Literal["media"] = "media"


@dataclass(slots=True, repr=False)
class OpaqueEvent(_Event):
    """Block that only the provider's own wire format can express, such as a web search that the provider ran."""

    index: int
    block: OpaqueBlock
    type: Literal["opaque"] = "opaque"


@dataclass(slots=True, repr=False)
class UsageEvent(_Event):
    """Latest token counts from the provider."""

    usage: Usage
    type: Literal["usage"] = "usage"


@dataclass(slots=True, repr=False)
class ErrorEvent(_Event):
    """Error that the provider reported within the stream. Blocks that arrived before the error remain valid."""

    message: str
    code: str | None = None
    type: Literal["error"] = "error"


@dataclass(slots=True, repr=False)
class MessageEnd(_Event):
    """End of the reply. `native` is the finish reason as the provider spells it."""

    finish_reason: FinishReason
    native: str | None = None
    type: Literal["message-end"] = "message-end"


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
