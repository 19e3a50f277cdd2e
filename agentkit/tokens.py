"""Token counters: what a request costs, by estimate here, exactly elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, cast

from agentkit.blocks import InvalidBlock, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.errors import OptionError
from agentkit.messages import Msg, memo_of

__all__ = ["CharacterTokenCounter", "LocalTokenCounter", "TokenCounterBase"]


class TokenCounterBase(ABC):
    """Counts a request: the keyword arguments of the SDK's call, tools and schemas included.

    A counter of your own implements `count` and leaves the request as it is. It is asked O(log n) times
    for one cut. `LocalTokenCounter` makes cuts cheaper for counters that need no I/O.
    """

    @abstractmethod
    async def count(self, request: Mapping[str, Any]) -> int:
        """The tokens of the whole request."""


class LocalTokenCounter(TokenCounterBase):
    """A counter that needs no I/O and can weigh one message by itself.

    `weigh` places the cut; `measure` has the last word on whether a request fits. The nearer the sum of
    the weights is to the measure, the fewer requests are built on the way.
    """

    @abstractmethod
    def measure(self, request: Mapping[str, Any]) -> int:
        """The tokens of the whole request."""

    @abstractmethod
    def weigh(self, msg: Msg) -> int:
        """About what one message adds to a request, whatever stands around it."""

    @property
    def key(self) -> object:
        """What the weights kept with messages are kept under: equal keys must mean equal weights."""
        return self

    async def count(self, request: Mapping[str, Any]) -> int:
        """`measure`, for callers that wait."""
        return self.measure(request)

    def weight(self, msg: Msg) -> int:
        """`weigh`, worked out once in the message's life."""
        memo = memo_of(msg)
        found = memo.get(self.key)
        if found is None:
            found = memo[self.key] = self.weigh(msg)
        return cast("int", found)


_TURN_LISTS = ("messages", "contents", "input")
_MEDIA_KEYS = frozenset(
    {
        *("data", "file_data", "image", "audio", "video", "images"),
        *("url", "image_url", "audio_url", "video_url", "file_url", "file_uri"),
    }
)
_JSON_KEYS = frozenset({"input", "args", "arguments", "response"})  # a caller's own JSON: its keys are no wire's
_TEXT_TYPES = frozenset({"text", "redacted_thinking"})  # whose `data` is no medium
_OVERHEAD = 12  # quarter tokens a message: role and separators (OpenAI's cookbook says 3 tokens)


class CharacterTokenCounter(LocalTokenCounter):
    """An estimate by characters: four of ASCII a token, about one token a CJK character, two for three others.

    Media counts `media_tokens` each, never by the length of its base64 text; tools and schemas count as
    their JSON text. Without a tokenizer this is about right for prose, JSON and code.
    """

    def __init__(self, media_tokens: int = 1_000) -> None:
        if media_tokens < 0:
            raise OptionError("media_tokens", f"{media_tokens} is negative", "Give 0 or more.")
        self.media_tokens = media_tokens

    @property
    def key(self) -> object:
        """Counters with the same price for media weigh alike."""
        return ("characters", self.media_tokens)

    def measure(self, request: Mapping[str, Any]) -> int:
        """The estimate for a whole request."""
        total = 0
        for name, part in request.items():
            if name in _TURN_LISTS and isinstance(part, list):
                turns = cast("list[Any]", part)
                total += _OVERHEAD * len(turns) + sum(map(self._quarters, turns))
            else:
                total += self._quarters(part, as_json=True)
        return -(-total // 4)

    def weigh(self, msg: Msg) -> int:
        """The estimate for one message, thinking left out (few targets take it back)."""
        if isinstance(msg.content, str):
            return (_OVERHEAD + quarter_tokens(msg.content)) // 4
        return (_OVERHEAD + sum(map(self._block, msg.content))) // 4

    def _block(self, block: object) -> int:
        if isinstance(block, TextBlock):
            return quarter_tokens(block.text)
        if isinstance(block, ToolUseBlock):
            return quarter_tokens(block.name) + quarter_tokens(block.arguments)
        if isinstance(block, ToolResultBlock):
            if isinstance(block.output, str):
                return quarter_tokens(block.output)
            return sum(map(self._block, block.output))
        return self.media_tokens * 4 if isinstance(block, MediaBlock) else 40 * isinstance(block, InvalidBlock)

    def _quarters(self, part: Any, key: str = "", as_json: bool = False) -> int:
        """Quarter tokens of a JSON value: its strings, media at its price, and keys where they are text."""
        if isinstance(part, str):
            return self.media_tokens * 4 if key in _MEDIA_KEYS and not as_json else quarter_tokens(part)
        if isinstance(part, dict):
            found = cast("dict[str, Any]", part)
            total = sum(len(name) + 4 for name in found) if as_json else 0
            for name, item in found.items():
                shown = "" if found.get("type") in _TEXT_TYPES else name
                total += self._quarters(item, shown, as_json or name in _JSON_KEYS)
            return total
        if isinstance(part, list):
            return sum(self._quarters(item, key, as_json) for item in cast("Iterable[Any]", part))
        return 4 if as_json else 0


def quarter_tokens(text: str) -> int:
    """Quarters of a token, so that sums stay whole: 1 an ASCII character, 4 a CJK one, 2 to 5 others.

    From measured densities (cl100k, o200k): words 4.7, JSON 4.0, Chinese 0.9 to 1.3 characters a token.
    """
    length = len(text)
    return length if text.isascii() else length + 3 * (len(text.encode()) - length) // 2
