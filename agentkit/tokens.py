"""Token counters: what a request costs, by estimate here, exactly elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
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

    @property
    def weigher(self) -> LocalTokenCounter:
        """Who weighs single messages to place a cut, without any I/O."""
        return CharacterTokenCounter()


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """A key that only the same object has, hashable or not."""

    one: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.one is self.one

    def __hash__(self) -> int:
        return id(self.one)


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
        return _Same(self)

    @property
    def weigher(self) -> LocalTokenCounter:
        """Itself."""
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
_SILENT_KEYS = frozenset(
    {
        *("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "mime_type", "media_type", "detail"),
        *("format", "filename", "signature", "thought_signature"),
    }
)  # words of the wire, which the overhead of a message stands for
_PRICED = _MEDIA_KEYS | _SILENT_KEYS
_JSON_KEYS = frozenset({"input", "args", "arguments", "response"})  # a caller's own JSON: its keys are no wire's
_TEXT_TYPES = frozenset({"text", "redacted_thinking"})  # whose `data` is no medium
_OVERHEAD = 12  # quarter tokens a message: role and separators (OpenAI's cookbook says 3 tokens)


class CharacterTokenCounter(LocalTokenCounter):
    """An estimate by characters: four of ASCII a token, about one token a CJK character, two for three others.

    Media counts `media_tokens` each, never by the length of its base64 text; tools and schemas count as
    their JSON text. Without a tokenizer this is about right for prose, JSON and code.
    """

    def __init__(self, media_tokens: int = 1_000) -> None:
        if type(media_tokens) is not int or media_tokens < 0:
            raise OptionError("media_tokens", f"{media_tokens!r} is no number of tokens", "Give 0 or more.")
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
                turns = cast("list[dict[str, Any]]", part)
                total += _OVERHEAD * len(turns) + self._turns(turns)
            else:
                total += _json_quarters(part)
        return -(-total // 4)

    def _turns(self, turns: list[dict[str, Any]]) -> int:
        """Quarter tokens of native turns: texts, media at its price, and a caller's own JSON with its keys."""
        total = 0
        waiting = turns.copy()
        while waiting:
            part = waiting.pop()
            media = 0 if part.get("type") in _TEXT_TYPES else self.media_tokens * 4
            for key, item in part.items():
                if isinstance(item, str):
                    if key not in _PRICED or (not media and key in _MEDIA_KEYS):
                        total += len(item) if item.isascii() else quarter_tokens(item)
                    elif key in _MEDIA_KEYS:
                        total += media
                elif key in _JSON_KEYS:
                    total += _json_quarters(item)
                elif isinstance(item, dict):
                    waiting.append(cast("dict[str, Any]", item))
                elif isinstance(item, list):
                    for inner in cast("list[Any]", item):
                        if isinstance(inner, str):
                            total += media if key in _MEDIA_KEYS else quarter_tokens(inner)
                        else:
                            waiting.append(inner)
        return total

    def weigh(self, msg: Msg) -> int:
        """The estimate for one message, rather above than below: with its speaker, thinking left out."""
        total = _OVERHEAD + quarter_tokens(msg.name) + 4
        if isinstance(msg.content, str):
            return -(-(total + _framed(msg.content)) // 4)
        return -(-(total + sum(map(self._block, msg.content))) // 4)

    def _block(self, block: object) -> int:
        if isinstance(block, TextBlock):
            return _framed(block.text)
        if isinstance(block, ToolUseBlock):
            return quarter_tokens(block.name) + quarter_tokens(block.arguments)
        if isinstance(block, ToolResultBlock):
            text = _framed(block.output) if isinstance(block.output, str) else sum(map(self._block, block.output))
            return quarter_tokens(block.name) + 8 + text
        return self.media_tokens * 4 if isinstance(block, MediaBlock) else 40 * isinstance(block, InvalidBlock)


def _json_quarters(part: Any) -> int:
    """Quarter tokens of JSON as it is written out: keys, strings, punctuation."""
    if isinstance(part, str):
        return quarter_tokens(part)
    if isinstance(part, dict):
        pairs = cast("dict[str, Any]", part).items()
        return sum(len(name) + 4 + _json_quarters(item) for name, item in pairs)
    if isinstance(part, list):
        return sum(map(_json_quarters, cast("list[Any]", part)))
    return 4


def _framed(text: str) -> int:
    """A text's quarter tokens with what a frame adds to its lines."""
    return quarter_tokens(text) + 2 * text.count("\n")


def quarter_tokens(text: str) -> int:
    """Quarters of a token, so that sums stay whole: 1 an ASCII character, 4 a CJK one, 2 to 5 others.

    From measured densities (cl100k, o200k): words 4.7, JSON 4.0, Chinese 0.9 to 1.3 characters a token.
    """
    length = len(text)
    return length if text.isascii() else length + 3 * (len(text.encode()) - length) // 2
