"""`Price`: prices of a model's tokens, with a method that calculates the cost of a model call."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf

from agentkit.errors import OptionError
from agentkit.messages.usage import Usage
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["Price"]


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model for one million tokens, in any currency.

    Example:
        >>> Price(input=2.0, output=10.0).cost(Usage(1_000, 100))
        0.003

    Attributes:
        input: Price of prompt tokens that are neither read from a cache nor written to a cache.
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
                reason = f"expected a finite number of at least 0, got {shorten_repr(amount, 60)}"
                raise OptionError(f"price.{field.name}", reason, "Pass the price of one million tokens.")

    def cost(self, usage: Usage) -> float:
        """Returns the cost of a model call with the given token usage, in the currency of the prices."""
        uncached = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = uncached * self.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
        return (total + usage.output_tokens * self.output) / 1_000_000


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < inf
