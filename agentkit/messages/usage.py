"""Finish reason and token usage of a reply."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, cast

from agentkit.reprs import bounded_repr

__all__ = ["FinishReason", "Usage", "as_token_count"]


class FinishReason(StrEnum):
    """Reason why a reply ended, with the same values for all providers.

    A reply with tool calls has the reason `tool_use`, unless the reply ended early, for example because it was
    truncated or filtered. The provider's original reason is in `metadata["reply"]` of the message.
    """

    STOP = "stop"
    LENGTH = "length"
    """The reply reached the maximum number of output tokens, or the end of the model's context window."""
    TOOL_USE = "tool_use"
    CONTENT_FILTER = "content_filter"
    """A filter of the provider withheld or truncated the reply."""
    REFUSAL = "refusal"
    """The model refused to answer."""
    PAUSE = "pause"
    """The provider paused the turn. To continue the turn, the next request must contain the reply unchanged."""
    ERROR = "error"
    """The provider reported an error inside the reply."""
    INTERRUPTED = "interrupted"
    """The stream ended before the reply was complete."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """Token usage of one model call, with the same meaning for all providers.

    Prompt tokens include cache tokens, and reply tokens include reasoning tokens, as OpenAI counts them. Anthropic
    does not include cache tokens, and Gemini does not include thinking tokens, so agentkit adds them. A number
    that the provider does not report is 0.

    Attributes:
        input_tokens: Number of prompt tokens, including tokens read from a cache and tokens written to a cache.
        output_tokens: Number of reply tokens, including reasoning tokens.
        cache_read_tokens: Number of prompt tokens that were read from a cache.
        cache_write_tokens: Number of prompt tokens that were written to a cache.
        reasoning_tokens: Number of reply tokens that the model used for reasoning.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    __repr__ = bounded_repr

    @property
    def total_tokens(self) -> int:
        """Number of prompt tokens and reply tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Usage)))

    def to_dict(self) -> dict[str, int]:
        """Converts the usage to a dict of its five numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Usage | None:
        """Loads usage from a dict that `to_dict` returned. Returns None if the value is not a dict."""
        if not isinstance(data, dict):
            return None
        counts = cast("dict[str, Any]", data)
        return cls(*(as_token_count(counts.get(field.name)) for field in fields(cls)))


def as_token_count(value: object) -> int:
    """Converts a token count from a provider's reply to an integer.

    Returns 0 for negative numbers, numbers of at least 10**15, and values that are not numbers, such as null.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 1e15 else 0
