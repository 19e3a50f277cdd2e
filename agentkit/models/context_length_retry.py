"""Retry of a model call with a shorter prompt, after the provider refused the prompt as too long.

`ModelCall.replan` uses the retry at most once for each call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from agentkit.budget.budget import Budget
from agentkit.errors import BudgetError, ContextLengthError
from agentkit.formatting.formatter import FormatterOptions, RequestOptions
from agentkit.ledger.plan import Plan
from agentkit.loggers import get_logger
from agentkit.models.registry import Provider
from agentkit.tokens.counters import TokenCount

__all__ = ["ContextLengthRetry"]

_log = get_logger("models")

_SHORTENED_SHARE = 0.75
"""Maximum size of the shorter prompt, as a share of the refused prompt.

The share is used unless the provider's error contains a token count of the prompt that exceeds the token limit.
"""
_SAFE_SHARE = 0.97
"""Maximum size of the shorter prompt, as a share of the provider's token limit.

The share is below 1, because the local token count only approximates the provider's token count.
"""


@dataclass(frozen=True, slots=True)
class ContextLengthRetry:
    """Builder of a plan with a shorter prompt, for one model call.

    Attributes:
        provider: Provider of the model.
        model: Name of the model.
        budget: Budget of the refused prompt. None without a budget.
        formatter_options: Options of the formatter that built the refused prompt.
        request_options: Tools, tool choice and response format of the call.
        count: Function that returns the local token count of a plan.
    """

    provider: Provider
    model: str
    budget: Budget | None
    formatter_options: Mapping[str, Any]
    request_options: RequestOptions
    count: Callable[[Plan], Awaitable[TokenCount]]

    async def shorten(self, plan: Plan, error: ContextLengthError) -> Plan | None:
        """Returns a plan of the same conversation within a smaller budget, or None if no request fits."""
        tokens = int(await self.count(plan)) if plan.tokens is None else plan.tokens
        limit = _next_limit(tokens, self.provider.error_patterns.parse_sizes(error.provider_message))
        if limit <= 0:
            return None
        smaller = replace(self.budget, max_tokens=limit + self.budget.reserve) if self.budget else Budget(limit)
        options = cast("FormatterOptions", {**self.formatter_options, "budget": smaller})
        formatter = self.provider.chat_formatter(self.model, **options)
        names = self.provider.name, self.model
        try:
            shorter = await formatter.plan(tuple(plan.ledger.msgs), **self.request_options)
        except BudgetError:
            _log.info("%s:%s: the prompt is too long, and cannot be shortened to %d tokens", *names, limit)
            return None
        _log.info("%s:%s: the prompt is too long; shortened to at most %d tokens", *names, limit)
        return shorter


def _next_limit(tokens: int, sizes: tuple[int, int | None] | None) -> int:
    """Returns the token limit of the shorter prompt.

    Args:
        tokens: Local token count of the refused prompt.
        sizes: Maximum size and actual size of the prompt in tokens, from the provider's error (see
            `ErrorPatterns.parse_sizes`). None if the error text names no sizes.
    """
    if sizes is None:
        return int(tokens * _SHORTENED_SHARE)
    limit, count = sizes
    if count and count > limit:
        return int(tokens * limit / count * _SAFE_SHARE)
    return min(int(limit * _SAFE_SHARE), int(tokens * _SHORTENED_SHARE))
