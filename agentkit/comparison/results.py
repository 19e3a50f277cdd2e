"""`ComparisonResult`, the outcome of one model in a comparison, and `Price`, the price of a model's tokens."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any

from agentkit.errors import AgentkitError, OptionError
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_message
from agentkit.messages.usage import Usage
from agentkit.reprs import bounded_repr, shorten_repr
from agentkit.tokens.counters import TokenCount

__all__ = ["ComparisonResult", "Price"]


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model for one million tokens, in any currency.

    Example:
        >>> Price(input=2.0, output=10.0).cost(Usage(1_000, 100))
        0.003

    Attributes:
        input: Price of prompt tokens.
        output: Price of reply tokens.
        cache_read: Price of prompt tokens that are read from a cache. If None, the price is `input`.
        cache_write: Price of prompt tokens that are written to a cache. If None, the price is `input`.

    Raises:
        OptionError: A price is not a finite number of at least 0.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for field in fields(self):
            amount: object = getattr(self, field.name)
            is_optional = field.name.startswith("cache_")
            if not (is_optional and amount is None) and not _is_amount(amount):
                reason = f"expected a number of at least 0, got {shorten_repr(amount, 60)}"
                raise OptionError(f"price.{field.name}", reason, "Pass the price of one million tokens.")

    def cost(self, usage: Usage) -> float:
        """Returns the cost of a model call, in the currency of the prices."""
        uncached = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = uncached * self.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
        return (total + usage.output_tokens * self.output) / 1_000_000


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Outcome of one model in a comparison.

    Attributes:
        label: Label of the model in the comparison.
        provider: Name of the provider.
        model: Name of the model.
        plan: Plan of the call, with the request and the ledger. None if no request could be built.
        tokens: Tokens of the prompt, counted before the call. None if no request could be built.
        reply: Reply of the model. None if the call failed.
        error: Error that prevented the request, the reply or the recording. None if there was no error.
        first_token: Seconds from the request to the first text, thinking, tool call or media. None if the reply
            has none of them.
        total: Seconds from the request to the end of the call. None if unknown.
        price: Cost of the call, in the currency of the model's `Price`. None if the model has no `Price`, or if
            the provider reported no usage.
        fingerprint: Identifier of the call in a recording. Empty if no request could be built.
        replayed: True if reply, error and times are from a recording.
    """

    label: str
    provider: str
    model: str
    plan: Plan | None = None
    tokens: TokenCount | None = None
    reply: Msg | None = None
    error: AgentkitError | None = None
    first_token: float | None = None
    total: float | None = None
    price: float | None = None
    fingerprint: str = ""
    replayed: bool = False

    __repr__ = bounded_repr

    def to_dict(self) -> dict[str, Any]:
        """Converts the result to a dict of JSON values."""
        error, usage = self.error, self.reply.usage if self.reply else None
        return {
            "label": self.label,
            "provider": self.provider,
            "model": self.model,
            "request": self.plan.request if self.plan else None,
            "ledger": self.plan.ledger.to_dict() if self.plan else None,
            "tokens": self.tokens,
            "tokens_estimated": bool(self.tokens is not None and self.tokens.estimated),
            "reply": dump_message(self.reply) if self.reply else None,
            "finish_reason": self.reply.finish_reason if self.reply else None,
            "usage": usage.to_dict() if usage else None,
            "error": {"class": type(error).__name__, "sentence": str(error)} if error else None,
            "first_token": self.first_token,
            "total": self.total,
            "price": self.price,
            "fingerprint": self.fingerprint or None,
            "replayed": self.replayed,
        }
