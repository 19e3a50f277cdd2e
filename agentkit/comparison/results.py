"""`ComparisonResult`, the outcome of one model in a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentkit.errors import AgentkitError
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_message
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import TokenCount

__all__ = ["ComparisonResult"]


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Outcome of one model in a comparison.

    Attributes:
        label: Label of the model in the comparison.
        provider: Name of the provider.
        model: Name of the model.
        plan: Plan of the model call, with the request and the ledger. None if no request could be built.
        tokens: Number of prompt tokens, counted before the model call. None if no request could be built.
        reply: Reply of the model. None if no request could be built, or if the model call failed.
        error: Error that prevented the request, the reply or the recording. None if there was no error.
        first_token: Seconds from the request to the first text, thinking, tool call or media. None if the reply
            has no such content, or if a recording does not contain the time.
        total: Seconds from the request to the end of the model call. None if unknown.
        price: Cost of the model call, in the currency of the model's `Price`. None if the model has no `Price`, or
            if the provider reported no usage.
        fingerprint: Identifier of the model call in a recording. Empty if no request could be built.
        replayed: True if the reply, the error and the times come from a recording.
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
