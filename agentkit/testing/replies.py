"""Replies for the loopback server to play, with the faults of a stream, and the errors to answer with."""

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

__all__ = [
    "LoopbackError",
    "NormalizedReply",
    "PlayableReply",
    "ReceivedCall",
    "Reply",
    "count_tokens",
    "get_citations",
    "hash_text",
    "is_refusal",
    "unsupported_block",
]


class LoopbackError(Exception):
    """Error that the server answers with, in the provider's wire format.

    Attributes:
        status: HTTP status. Inside a stream, the status that the error event names, if its wire format has one.
        message: Error message.
        code: Provider's error code or type. None means the usual code of the status.
        retry_after: Seconds, sent as the `retry-after` header.
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
    """Reply of the loopback server, with its usage, its pace and its faults.

    Attributes:
        content: Message or its text, native reply as a dict or bytes, or its events as a list of them.
        usage: Tokens to report. None means a token for every four characters.
        finish_reason: Finish reason, or the provider's own value. None means the one that fits the message.
        piece_size: Characters of text or of arguments in one event.
        delay: Seconds before each event, and before a whole reply.
        error: Error inside the stream, after `error_after` events. A whole reply is the error itself.
        error_after: Events before the error.
        cut_after: Events after which the connection breaks. None means that it does not.
        cut_after_bytes: Bytes of the body after which the connection breaks.
        headers: Further headers.
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
"""Reply to play: a message or its text, a native reply, a `Reply`, a `LoopbackError`, or a function of the decoded
request that returns one of them.
"""


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """Model call, as the fake service receives it.

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
    """Reply with its defaults filled in, for a fake service to write in its wire format.

    Attributes:
        msg: Message of the reply.
        usage: Tokens to report.
        finish_reason: Finish reason, or the provider's own value.
        piece_size: Characters of text or of arguments in one event.
    """

    msg: Msg
    usage: Usage
    finish_reason: FinishReason | str
    piece_size: int = 6

    __repr__ = bounded_repr

    @classmethod
    def normalize(cls, msg: Msg, reply: Reply, prompt: object) -> NormalizedReply:
        """Returns the message with the options of the reply, or with the defaults of those that are None.

        Args:
            msg: Message of the reply.
            reply: Options of the reply.
            prompt: JSON value to count the input tokens of.
        """
        usage = reply.usage or msg.usage or _estimate_usage(msg, prompt)
        reason = reply.finish_reason or msg.finish_reason or _guess_finish_reason(msg)
        return cls(msg, usage, reason, reply.piece_size)

    @cached_property
    def id(self) -> str:
        """Id of the reply, without the API's prefix. A whole reply and a streamed one have the same id."""
        return hash_text(json.dumps([self.msg.to_dict()["content"], str(self.finish_reason)]), 24)

    @property
    def text(self) -> str:
        """Text of all text blocks."""
        return "".join(block.text for block in self.msg.blocks if isinstance(block, TextBlock))

    @property
    def thinking(self) -> str:
        """Text of all thinking blocks."""
        return "".join(block.thinking for block in self.msg.blocks if isinstance(block, ThinkingBlock))

    def split(self, text: str, size: int | None = None) -> list[str]:
        """Returns the pieces of a text, of `size` or else `piece_size` characters. An empty text has none."""
        size = max(size or self.piece_size, 1)
        return [text[start : start + size] for start in range(0, len(text), size)]

    def map_reason(self, reasons: Mapping[str, str]) -> str:
        """Returns the API's value of the finish reason; a reason that the table lacks is returned unchanged."""
        return reasons.get(self.finish_reason, str(self.finish_reason))

    def check_blocks(
        self, api: str, types: AbstractSet[str] = frozenset({"text", "thinking", "tool_use"})
    ) -> None:
        """Checks that the API's replies can contain every block.

        Raises:
            OptionError: The message has a block of another type.
        """
        for block in self.msg.blocks:
            if block.type not in types:
                raise unsupported_block(api, block.type)


def unsupported_block(api: str, block_type: str) -> OptionError:
    """Returns the error for a reply with a block that the API's replies cannot contain."""
    reason = f"a reply of {api} cannot contain {block_type}"
    return OptionError("replies", reason, "Remove the block, or pass the native reply.")


def hash_text(text: str, length: int) -> str:
    """Returns a short hash of a text, the same in every process."""
    return sha256(text.encode()).hexdigest()[:length]


def count_tokens(text: str) -> int:
    """Returns the tokens that the server reports for a text: a quarter of its characters, rounded up."""
    return -(-len(text) // 4)


def is_refusal(block: object) -> bool:
    """Returns True if a block is the text of a refusal."""
    return isinstance(block, TextBlock) and (block.metadata or {}).get("refusal") is True


def get_citations(block: TextBlock) -> list[Any]:
    """Returns the citations of a text, in the provider's wire format, from the block's metadata."""
    return list(as_list((block.metadata or {}).get("citations")))


def _guess_finish_reason(msg: Msg) -> FinishReason:
    if msg.tool_uses:
        return FinishReason.TOOL_USE
    return FinishReason.REFUSAL if any(map(is_refusal, msg.blocks)) else FinishReason.STOP


def _estimate_usage(msg: Msg, prompt: object) -> Usage:
    thinking = sum(count_tokens(block.thinking) for block in msg.blocks if isinstance(block, ThinkingBlock))
    text = sum(count_tokens(block.text) for block in msg.blocks if isinstance(block, TextBlock))
    calls = sum(count_tokens(use.name + use.arguments) for use in msg.tool_uses)
    prompt_tokens = count_tokens(json.dumps(prompt, ensure_ascii=False))
    return Usage(prompt_tokens, thinking + text + calls, reasoning_tokens=thinking)
