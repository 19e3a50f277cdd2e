"""What a reply says of itself besides its words: why it ended, and how many tokens it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, cast

from agentkit.reprs import bounded_repr

__all__ = ["FinishReason", "Usage", "as_token_count"]


class FinishReason(StrEnum):
    """Why a reply ended, in one set of words for all providers. The provider's own word stands beside it.

    A reply with calls that was neither cut nor filtered ends in `tool_use`, whatever the provider says.
    """

    STOP = "stop"
    LENGTH = "length"
    """The limit of output tokens, or of the context, was reached."""
    TOOL_USE = "tool_use"
    CONTENT_FILTER = "content_filter"
    """A filter of the provider's withheld the reply, or cut it."""
    REFUSAL = "refusal"
    """The model refused."""
    PAUSE = "pause"
    """The provider wants the turn sent again as it is, to go on with it."""
    ERROR = "error"
    """The provider reported an error within the reply."""
    INTERRUPTED = "interrupted"
    """The stream ended before the reply did."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call, with one meaning whatever the provider's own.

    input_tokens        the whole prompt, what was read from a cache and written to one included
    output_tokens       the whole reply, its reasoning included
    cache_read_tokens   the part of the prompt that came from a cache
    cache_write_tokens  the part of the prompt that was written to a cache
    reasoning_tokens    the part of the reply that was reasoning

    What a provider does not report is 0. OpenAI counts so itself; Anthropic reports the prompt without the
    tokens of its cache, Gemini the reply without its thoughts: both are added up here.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    __repr__ = bounded_repr

    @property
    def total_tokens(self) -> int:
        """Prompt and reply together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Usage)))

    def to_dict(self) -> dict[str, int]:
        """The five figures as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, found: object) -> Usage | None:
        """The figures from their JSON form; None for what is none."""
        if not isinstance(found, dict):
            return None
        held = cast("dict[str, Any]", found)
        return cls(*(as_token_count(held.get(one.name)) for one in fields(cls)))


def as_token_count(found: object) -> int:
    """A number of tokens as a provider reports it: 0 for what is missing, null, negative or no number."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return 0
    return int(found) if 0 <= found < 1e15 else 0
