"""Classes for the replies and errors that the loopback server sends, with delays and connection faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, TypeAlias

from agentkit.errors import OptionError
from agentkit.json_values import as_list
from agentkit.messages.blocks import TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason, Usage
from agentkit.reprs import bounded_repr
from agentkit.testing.reported_tokens import estimate_usage

__all__ = [
    "LoopbackError",
    "NormalizedReply",
    "PlayableReply",
    "ReceivedCall",
    "Reply",
    "get_citations",
    "hash_text",
    "is_refusal",
    "unsupported_block",
]


class LoopbackError(Exception):
    """Error response that the loopback server sends in the provider's wire format.

    Attributes:
        status: HTTP status. For an error inside a stream, the error event contains this status if the wire format
            has a field for the status.
        message: Error message.
        code: Error code or type as the provider spells it. None means the usual code for the status.
        retry_after: Value of the `retry-after` header in seconds. None means no header.
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
    """Reply that the loopback server sends, with its usage, delays and connection faults.

    Attributes:
        content: Message or text, or a reply in the provider's wire format: a dict, bytes, or a list of stream
            events.
        usage: Token counts to report. None means the usage of the message. If the message has no usage, the server
            counts one token for every four characters.
        finish_reason: Finish reason, as a `FinishReason` or as the provider spells it. None means the finish
            reason of the message, or a reason that fits the content, such as `TOOL_USE` for a tool call.
        piece_size: Number of characters of text or arguments in each stream event.
        delay: Seconds to wait before each stream event, or before a reply that is not streamed.
        error: Error to send inside the stream, after `error_after` events. If the reply is not streamed, only the
            error is sent. None means no error.
        error_after: Number of events to send before the error.
        cut_after: Number of events after which the server breaks the connection. None means never.
        cut_after_bytes: Number of bytes of the body after which the server breaks the connection. None means
            never.
        headers: Additional headers of the response.
    """

    content: Msg | str | Mapping[str, Any] | bytes | Sequence[Mapping[str, Any] | bytes]
    usage: Usage | None = None
    finish_reason: FinishReason | str | None = None
    piece_size: int = 6
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
"""Prepared reply of the loopback server: a message, a string, a native reply, a `Reply` or a `LoopbackError`.

A native reply has the provider's wire format. A function that takes the decoded request and returns a
`PlayableReply` is also accepted.
"""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """Model call that a fake service has received.

    Attributes:
        model: Requested model.
        body: Decoded body.
        is_streamed: True if the request asks for a stream.
    """

    model: str
    body: Mapping[str, Any]
    is_streamed: bool

    __repr__ = bounded_repr


_COMMON_TYPES: Final = frozenset({"text", "thinking", "tool_use"})


@dataclass(frozen=True)
class NormalizedReply:
    """Reply whose values are all set. A fake service writes this reply in the wire format of its API.

    Attributes:
        msg: Message of the reply.
        usage: Token counts to report.
        finish_reason: Finish reason, as a `FinishReason` or as the provider spells it.
        piece_size: Number of characters of text or arguments in each stream event.
    """

    msg: Msg
    usage: Usage
    finish_reason: FinishReason | str
    piece_size: int = 6

    __repr__ = bounded_repr

    @classmethod
    def normalize(cls, msg: Msg, reply: Reply, prompt: object) -> NormalizedReply:
        """Creates a normalized reply. If a field of `reply` is None, the message determines the value.

        Args:
            msg: Message of the reply.
            reply: Usage, finish reason and piece size of the reply.
            prompt: Prompt of the request as a JSON value. If the usage is estimated, the token count of the prompt
                becomes the input tokens.
        """
        usage = reply.usage or msg.usage or estimate_usage(msg, prompt)
        reason = reply.finish_reason or msg.finish_reason or _guess_finish_reason(msg)
        return cls(msg, usage, reason, reply.piece_size)

    @cached_property
    def id(self) -> str:
        """Id of the reply, without the API's prefix. The id is the same whether or not the reply is streamed."""
        return hash_text(json.dumps([self.msg.to_dict()["content"], str(self.finish_reason)]), 24)

    @property
    def text(self) -> str:
        """Joined text of all text blocks."""
        return "".join(block.text for block in self.msg.blocks if isinstance(block, TextBlock))

    @property
    def thinking(self) -> str:
        """Joined text of all thinking blocks."""
        return "".join(block.thinking for block in self.msg.blocks if isinstance(block, ThinkingBlock))

    def split(self, text: str, size: int | None = None) -> list[str]:
        """Splits a text into pieces of `size` characters. Returns an empty list for an empty text.

        If `size` is None, the pieces have `piece_size` characters.
        """
        size = max(size or self.piece_size, 1)
        return [text[start : start + size] for start in range(0, len(text), size)]

    def map_reason(self, reasons: Mapping[str, str]) -> str:
        """Returns the finish reason as the API spells it. Returns a reason that is not in `reasons` unchanged."""
        return reasons.get(self.finish_reason, str(self.finish_reason))

    def check_blocks(self, api: str, types: AbstractSet[str] = _COMMON_TYPES) -> None:
        """Checks that replies of the API can contain all blocks of the message.

        Raises:
            OptionError: If the message has a block of a type that replies of the API cannot contain.
        """
        for block in self.msg.blocks:
            if block.type not in types:
                raise unsupported_block(api, block.type)


def unsupported_block(api: str, block_type: str) -> OptionError:
    """Returns the error for a prepared reply with a block that replies of the API cannot contain."""
    reason = f"a reply of {api} cannot contain a block of type {block_type!r}"
    return OptionError("replies", reason, "Remove the block, or pass a reply in the API's wire format.")


def hash_text(text: str, length: int) -> str:
    """Returns the first `length` hexadecimal digits of a hash of a text. The hash is the same in every process."""
    return sha256(text.encode()).hexdigest()[:length]


def is_refusal(block: object) -> bool:
    """Returns True if a block is a text block with a refusal by the model."""
    return isinstance(block, TextBlock) and (block.metadata or {}).get("refusal") is True


def get_citations(block: TextBlock) -> list[Any]:
    """Returns the citations in the metadata of a text block, in a provider's wire format."""
    return list(as_list((block.metadata or {}).get("citations")))


def _guess_finish_reason(msg: Msg) -> FinishReason:
    if msg.tool_uses:
        return FinishReason.TOOL_USE
    return FinishReason.REFUSAL if any(map(is_refusal, msg.blocks)) else FinishReason.STOP
