"""Finish reason and token usage of a reply."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, cast

from agentkit.reprs import bounded_repr

__all__ = ["FinishReason", "Usage", "as_token_count"]


class FinishReason(StrEnum):
    """Reason why a reply ended, the same for all providers. `metadata["reply"]` has the provider's own reason.

    A reply with tool calls has the reason `tool_use`, unless it was truncated or filtered.
    """

    STOP = "stop"
    LENGTH = "length"
    """The reply reached the limit of output tokens or of the context."""
    TOOL_USE = "tool_use"
    CONTENT_FILTER = "content_filter"
    """A filter of the provider withheld or truncated the reply."""
    REFUSAL = "refusal"
    """The model refused."""
    PAUSE = "pause"
    """The provider paused the turn. It continues the turn if the next request contains the reply unchanged."""
    ERROR = "error"
    """The provider reported an error inside the reply."""
    INTERRUPTED = "interrupted"
    """The stream ended before the reply was complete."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call, with the same meaning for all providers. An unreported number is 0.

    OpenAI reports these numbers. Anthropic excludes cache tokens from the prompt and Gemini excludes thoughts from
    the reply; agentkit adds them.

    Attributes:
        input_tokens: Tokens of the prompt, including tokens read from and written to a cache.
        output_tokens: Tokens of the reply, including tokens of its reasoning.
        cache_read_tokens: Tokens of the prompt that were read from a cache.
        cache_write_tokens: Tokens of the prompt that were written to a cache.
        reasoning_tokens: Tokens of the reasoning in the reply.

    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    __repr__ = bounded_repr

    @property
    def total_tokens(self) -> int:
        """Tokens of the prompt and the reply together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Usage)))

    def to_dict(self) -> dict[str, int]:
        """Returns the five numbers as a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Usage | None:
        """Parses usage from JSON. Returns None if the value is not an object."""
        if not isinstance(data, dict):
            return None
        counts = cast("dict[str, Any]", data)
        return cls(*(as_token_count(counts.get(field.name)) for field in fields(cls)))


def as_token_count(value: object) -> int:
    """Returns a token count that a provider reports. Returns 0 for null, negative numbers and other values."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 1e15 else 0
