"""What is known of models, as data: rows that change a `Capabilities` for the models a pattern names.

A fact is yes, no, or not in the table: an unknown model keeps the form of its provider, which is the shape
that all the provider's current models accept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.capabilities import Capabilities

__all__ = ["ModelFact", "apply_facts"]


@dataclass(frozen=True, slots=True)
class ModelFact:
    """One row: models whose name matches `pattern` (from its start), what it changes, and who says so."""

    pattern: str
    changes: Mapping[str, Any]
    source: str
    date: str


def apply_facts(base: Capabilities, model: str | None, facts: Sequence[ModelFact]) -> Capabilities:
    """The form for one model: every row that names it, in order. Vendor prefixes (`openai/…`) are passed over."""
    if model is None:
        return base
    name = model.rpartition("/")[2].lower()
    changes: dict[str, Any] = {}
    for fact in facts:
        if re.match(fact.pattern, name):
            changes.update(fact.changes)
    return replace(base, **changes) if changes else base
