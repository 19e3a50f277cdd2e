"""The events of a streamed reply, the same for every provider.

    MessageStart
    TextStart       TextDelta*       TextEnd        a block of text
    ThinkingStart   ThinkingDelta*   ThinkingEnd    a block of thinking
    ToolUseStart    ToolUseDelta*    ToolUseEnd     a call
    MediaEvent      OpaqueEvent                     a block that came whole
    UsageEvent                                      the tokens so far; the last one counts
    ErrorEvent                                      the provider reported an error
    MessageEnd                                      the reply is over; only a last UsageEvent may follow

`index` numbers the blocks in the order in which they began. Blocks may be open side by side. Each ends once, but
for a call that the stream broke off in; a call that turns out to be the service's own gets an OpaqueEvent for it.
The end is told as soon as it is sure: behind a reason that came with content, when no more comes.
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
    """The reply begins. `id` and `model` are the provider's, as far as it names them at once."""

    id: str | None = None
    model: str | None = None
    type: Literal["message-start"] = "message-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class TextStart:
    """A block of text begins."""

    index: int
    type: Literal["text-start"] = "text-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class TextDelta:
    """Text that came."""

    index: int
    text: str
    type: Literal["text-delta"] = "text-delta"

    __repr__ = bounded_repr


@dataclass(slots=True)
class TextEnd:
    """A block of text is complete: `text` is all of it."""

    index: int
    text: str
    type: Literal["text-end"] = "text-end"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ThinkingStart:
    """A block of thinking begins."""

    index: int
    type: Literal["thinking-start"] = "thinking-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ThinkingDelta:
    """Thinking that came."""

    index: int
    text: str
    type: Literal["thinking-delta"] = "thinking-delta"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ThinkingEnd:
    """A block of thinking is complete: `text` is all of it."""

    index: int
    text: str
    type: Literal["thinking-end"] = "thinking-end"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ToolUseStart:
    """A call begins. A server that sends them late may leave `id` or `name` empty: `ToolUseEnd` has them."""

    index: int
    id: str
    name: str
    type: Literal["tool-use-start"] = "tool-use-start"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ToolUseDelta:
    """Argument text that came."""

    index: int
    text: str
    arguments: ArgumentBuffer = field(repr=False)
    length: int
    type: Literal["tool-use-delta"] = "tool-use-delta"

    __repr__ = bounded_repr

    @property
    def input(self) -> dict[str, Any]:
        """The arguments as far as they can be read up to here. To look at, not to change.

        Long arguments are read anew only every so often: this may lag a percent or two behind.
        """
        return self.arguments.partial(self.length)


@dataclass(slots=True)
class ToolUseEnd:
    """A call is complete: `block` is what the message holds."""

    index: int
    block: ToolUseBlock
    type: Literal["tool-use-end"] = "tool-use-end"

    __repr__ = bounded_repr


@dataclass(slots=True)
class MediaEvent:
    """A picture, a sound or another medium that the model made."""

    index: int
    block: MediaBlock
    type: Literal["media"] = "media"

    __repr__ = bounded_repr


@dataclass(slots=True)
class OpaqueEvent:
    """A part that only the provider's wire knows: what it searched, ran, or found by itself."""

    index: int
    block: OpaqueBlock
    type: Literal["opaque"] = "opaque"

    __repr__ = bounded_repr


@dataclass(slots=True)
class UsageEvent:
    """The tokens that the provider has reported so far."""

    usage: Usage
    type: Literal["usage"] = "usage"

    __repr__ = bounded_repr


@dataclass(slots=True)
class ErrorEvent:
    """The provider reported an error within the stream. What came before it is kept."""

    message: str
    code: str | None = None
    type: Literal["error"] = "error"

    __repr__ = bounded_repr


@dataclass(slots=True)
class MessageEnd:
    """The reply is over. `native` is the provider's own word for the reason."""

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
