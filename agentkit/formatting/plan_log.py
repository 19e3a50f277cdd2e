"""Log records about a plan: the cut, each loss, each repair and each added text."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Final

from agentkit.ledger.entries import Disposition
from agentkit.ledger.plan import Cut, Plan
from agentkit.loggers import get_logger

__all__ = ["log_plan"]

_budget: Final = get_logger("budget")
_losses: Final = get_logger("losses")
_repairs: Final = get_logger("repairs")

_QUOTED: Final = re.compile(r"""\s*('[^']*'|"[^"]*"|`[^`]*`|\([^()]*\)|: .*)""", re.DOTALL)
"""Pattern for parts of a ledger reason that may quote the conversation, such as names, ids and URLs.

Log records omit these parts, because log records must not contain text of the conversation.
"""


def log_plan(plan: Plan) -> Plan:
    """Logs the cut and the losses at level INFO, and repairs and added texts at DEBUG. Returns the plan."""
    if plan.cut is not None and _budget.isEnabledFor(logging.INFO):
        _budget.info("%s", _describe_cut(plan.cut, plan.tokens))
    if _losses.isEnabledFor(logging.INFO):
        for place, reason in plan.ledger.losses:
            _losses.info("%s: lost: %s", place, _without_quotes(reason))
    if _repairs.isEnabledFor(logging.DEBUG):
        for place, disposition, reason in plan.ledger.notes(Disposition.REPAIRED, Disposition.MOVED):
            _repairs.debug("%s: %s: %s", place, disposition, _without_quotes(reason))
        for synthesis in plan.ledger.syntheses:
            _repairs.debug("added: %s: %s", synthesis.name, _without_quotes(synthesis.reason))
    return plan


def _describe_cut(cut: Cut, tokens: int | None) -> str:
    dropped = cut.dropped
    span = f" from {dropped[0]} to {dropped[-1]}" if dropped else ""
    parts = [f"cut to fit the budget: {_count(dropped, 'message')} dropped{span}"]
    if cut.altered:
        parts.append(f"{_count(cut.altered, 'block')} altered, the first at {cut.altered[0]}")
    parts.append(f"{cut.tokens:,} tokens saved, {tokens or 0:,} tokens remain")
    return "; ".join(parts)


def _count(places: Sequence[str], noun: str) -> str:
    return f"{len(places)} {noun}" if len(places) == 1 else f"{len(places)} {noun}s"


def _without_quotes(reason: str) -> str:
    return _QUOTED.sub(" …", reason).strip()
