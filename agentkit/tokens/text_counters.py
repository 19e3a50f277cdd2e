"""Counters that add up the texts of a request: their base class, and the estimate by characters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from agentkit.capabilities.wire_layout import LayoutSource
from agentkit.errors import OptionError
from agentkit.messages.blocks import (
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.tokens.counters import LocalTokenCounter, TokenCount, find_layout, prepare_counter, weight_key
from agentkit.tokens.estimate import TextCounts, estimate_text
from agentkit.tokens.request_parts import RequestParts, compact_json

__all__ = ["CharacterTokenCounter", "ESTIMATE", "Overheads", "TextTokenCounter"]


class Overheads(NamedTuple):
    """Costs beside the texts of a message, in the unit of the counter.

    Attributes:
        message: Cost of each message.
        call: Cost of each tool call and opaque block.
        result: Cost of each tool result.
        text: Cost of each text.
        line: Cost of each line break in a text.
        invalid: Cost of each invalid block.

    """

    message: int
    call: int
    result: int
    text: int
    line: int
    invalid: int


class TextTokenCounter(LocalTokenCounter):
    """Base class of local counters that add up the counts of texts. Each text is counted once."""

    needs_layout: ClassVar[bool] = True
    overheads: ClassVar[Overheads]
    _texts: TextCounts

    @abstractmethod
    def measure(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns the tokens of a request.

        Args:
            request: Keyword arguments of the SDK's call.
            provider: Provider, formatter or layout that the request is for. A budget passes the layout.

        Raises:
            OptionError: `provider` is missing.

        """

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns `measure(request, provider)`, after the counter is prepared."""
        await prepare_counter(self)
        return self.measure(request, provider)

    @abstractmethod
    def price(self, block: MediaBlock) -> int:
        """Returns the cost of a media block, in the unit of the counter."""

    def weigh_texts(self, msg: Msg) -> int:
        """Returns the cost of a message with its speaker, without its thinking, in the unit of the counter."""
        content = msg.content
        total = self.overheads.message + self._texts[msg.name]
        return total + (self._weigh_text(content) if isinstance(content, str) else sum(map(self._weigh, content)))

    def _weigh(self, block: object) -> int:
        if isinstance(block, TextBlock):
            return self._weigh_text(block.text)
        if isinstance(block, ToolUseBlock):
            return self.overheads.call + self._texts[block.name] + self._texts[block.arguments]
        if isinstance(block, ToolResultBlock):
            output = block.output
            total = self._weigh_text(output) if isinstance(output, str) else sum(map(self._weigh, output))
            return self.overheads.result + self._texts[block.name] + total
        if isinstance(block, MediaBlock):
            return self.price(block)
        if isinstance(block, OpaqueBlock):
            return self.overheads.call + self._texts[compact_json(block.data)]
        return self.overheads.invalid if isinstance(block, InvalidBlock) else 0

    def _weigh_text(self, text: str) -> int:
        return self._texts[text] + self.overheads.text + self.overheads.line * text.count("\n")


# Hundredths of a token.
_TURN: Final = 300  # role and separators of a message (OpenAI's cookbook)
_NAME: Final = 100  # field of a speaker name
_CALL: Final = 400  # around the name and the arguments of a call
_FIELD: Final = 200  # quotes, colon and comma around a key
_REASONS: Final = ("estimated by characters",)


class CharacterTokenCounter(TextTokenCounter):
    """Estimate by the kinds of characters. Needs no tokenizer.

    The estimate is within 10 % of o200k_base for English prose, JSON and code, and within 25 % for Chinese and
    text mixed with Chinese; more often too high than too low. Tools and schemas count as their JSON text.

    Attributes:
        media_tokens: Tokens of each media item, whatever its size.

    """

    overheads: ClassVar[Overheads] = Overheads(_TURN + _NAME, _CALL, _CALL, 0, 50, 1_000)

    def __init__(self, media_tokens: int = 1_000) -> None:
        """Creates the counter.

        Args:
            media_tokens: Tokens to count for each media item.

        Raises:
            OptionError: `media_tokens` is not a number of at least 0.

        """
        if type(media_tokens) is not int or media_tokens < 0:
            reason = f"must be a number of tokens, got {shorten_repr(media_tokens, 60)}"
            raise OptionError("media_tokens", reason, "Pass an int of at least 0.")
        self.media_tokens = media_tokens
        self._texts = TextCounts(estimate_text)

    @property
    def key(self) -> object:
        """Cache key of the weights: equal for counters with equal `media_tokens`."""
        return weight_key(type(self), self.media_tokens)

    def measure(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns an estimate of the tokens of a request (see `TextTokenCounter.measure`)."""
        parts, count = RequestParts.of(request, find_layout(self, provider)), self._texts.__getitem__
        total = _TURN * parts.turns + _NAME * parts.speakers + _CALL * parts.calls + _FIELD * parts.fields
        total += sum(map(count, parts.texts)) + 100 * self.media_tokens * len(parts.media)
        total += sum(map(count, map(compact_json, (*parts.tools, *parts.settings))))
        total += sum(map(_estimate_sealed, parts.sealed))
        return TokenCount(-(-total // 100), _REASONS)

    def weigh(self, msg: Msg) -> int:
        """Returns an estimate of the tokens of a message with its speaker, without its thinking."""
        return -(-self.weigh_texts(msg) // 100)

    def price(self, block: MediaBlock) -> int:
        """Returns the cost of any media block, in hundredths of a token."""
        return self.media_tokens * 100


def _estimate_sealed(sealed: str) -> int:
    """Returns hundredths of a token of encrypted text in base64: four characters of base64 for three of text."""
    return 100 * len(sealed) * 3 // 16


ESTIMATE: Final = CharacterTokenCounter()
"""Local counter of counters that have none of their own."""
