"""What the loopback server is to say: a reply, an error, and how a stream of it goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias, cast

from agentkit.errors import OptionError
from agentkit.messages.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason, Usage
from agentkit.reprs import bounded_repr

__all__ = [
    "LoopbackError",
    "NormalizedReply",
    "PlayableReply",
    "ReceivedCall",
    "Reply",
    "digest",
    "is_refusal",
    "notes_of",
    "pieces",
    "tokens_in",
    "unsayable",
]


def unsayable(wire: str, what: str) -> OptionError:
    """A reply that a wire has no words for: a picture on a wire of texts."""
    reason = f"a reply of {wire} cannot hold {what}"
    return OptionError("replies", reason, "Leave it out, or give the native reply.")


class LoopbackError(Exception):
    """An error that the server answers with, in the wire's own shape.

    status       the HTTP status; within a stream, the one that the event names where the wire has a place for it
    message      the provider's sentence
    code         the provider's own code or type; the usual one of that status unless given
    retry_after  seconds, sent as the `retry-after` header
    """

    def __init__(
        self, status: int, message: str, *, code: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.message = message
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with all that can be said of it.

    said           the message; or the native reply as a dict or bytes; or the native events as a list of both
    usage          the tokens to report; counted as a quarter of the characters unless given
    finish_reason  a `FinishReason`, or the provider's own word; what the message suggests unless given
    piece          how many characters of text or arguments go into one event
    delay          seconds before each event, and before a whole reply
    error          an error in the stream, behind `error_after` events
    cut_after      events after which the connection breaks; `cut_after_bytes` the same in bytes of the body
    headers        further headers
    """

    said: Msg | str | Mapping[str, Any] | bytes | Sequence[Mapping[str, Any] | bytes]
    usage: Usage | None = None
    finish_reason: FinishReason | str | None = None
    piece: int = 6
    delay: float = 0.0
    error: LoopbackError | None = None
    error_after: int = 0
    cut_after: int | None = None
    cut_after_bytes: int | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)

    __repr__ = bounded_repr


PlayableReply: TypeAlias = (
    "Msg | str | Mapping[str, Any] | bytes | Reply | LoopbackError | Callable[[dict[str, Any]], PlayableReply]"
)
"""What the server can be given: a message or its text, a native reply, a `Reply`, an error, or a function of the
decoded request that gives one of them.
"""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """A request as its wire understands it."""

    provider: str
    model: str
    body: Mapping[str, Any]
    streamed: bool


@dataclass(frozen=True)
class NormalizedReply:
    """A message to be said on a wire, with its figures. `id` depends on the message alone: whole and streamed
    replies of one message are the same reply.
    """

    msg: Msg
    usage: Usage
    reason: FinishReason | str
    piece: int = 6

    @cached_property
    def id(self) -> str:
        """The name of the reply, to which a wire adds its prefix."""
        return digest(json.dumps([self.msg.to_dict()["content"], str(self.reason)]), 24)

    @classmethod
    def of(cls, msg: Msg, reply: Reply, prompt: object) -> NormalizedReply:
        """The message with what was not given worked out."""
        usage = reply.usage or msg.usage or _counted(msg, prompt)
        return cls(msg, usage, reply.finish_reason or msg.finish_reason or _reason(msg), reply.piece)


def digest(text: str, length: int) -> str:
    """A short name for a text, the same in every process."""
    return sha256(text.encode()).hexdigest()[:length]


def tokens_in(text: str) -> int:
    """The count that the server reports: a token for every four characters begun."""
    return -(-len(text) // 4)


def pieces(text: str, size: int) -> list[str]:
    """A text cut into pieces of so many characters; none for an empty one."""
    return [text[start : start + size] for start in range(0, len(text), max(size, 1))]


def is_refusal(block: object) -> bool:
    """Whether a block is the text of a refusal."""
    return isinstance(block, TextBlock) and (block.metadata or {}).get("refusal") is True


def notes_of(block: TextBlock) -> list[Any]:
    """The citations of a text, which its metadata holds as the wire has them."""
    found = (block.metadata or {}).get("citations")
    return list(cast("list[Any]", found)) if isinstance(found, list) else []


def _reason(msg: Msg) -> FinishReason:
    if msg.tool_uses:
        return FinishReason.TOOL_USE
    return FinishReason.REFUSAL if any(map(is_refusal, msg.blocks)) else FinishReason.STOP


def _counted(msg: Msg, prompt: object) -> Usage:
    thoughts = sum(tokens_in(block.thinking) for block in msg.blocks if isinstance(block, ThinkingBlock))
    words = sum(tokens_in(block.text) for block in msg.blocks if isinstance(block, TextBlock))
    calls = sum(tokens_in(use.name + use.arguments) for use in msg.blocks if isinstance(use, ToolUseBlock))
    asked = tokens_in(json.dumps(prompt, ensure_ascii=False))
    return Usage(asked, thoughts + words + calls, reasoning_tokens=thoughts)
