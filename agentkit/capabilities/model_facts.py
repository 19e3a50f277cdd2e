"""What is known of models, as data: rows that change a `Capabilities` for the models a pattern names.

A fact is yes, no, or not in the table: an unknown model keeps the form of its provider, which is the shape
that all the provider's current models accept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.model_names import normalize_model_name
from agentkit.reprs import bounded_repr

__all__ = ["ModelFact", "apply_facts"]


@dataclass(frozen=True, slots=True)
class ModelFact:
    """Row of facts: a pattern of model names, the capabilities that it changes, and the source of the fact.

    The pattern matches the start of the normalized name (`normalize_model_name`), which has no vendor or cloud
    prefix and no date.
    """

    pattern: str
    changes: Mapping[str, Any]
    source: str
    date: str

    __repr__ = bounded_repr


def apply_facts(base: Capabilities, model: str | None, facts: Sequence[ModelFact]) -> Capabilities:
    """Returns the capabilities of a model: `base`, changed by every row that matches its name, in order."""
    if model is None:
        return base
    name = normalize_model_name(model)
    changes: dict[str, Any] = {}
    for fact in facts:
        if re.match(fact.pattern, name):
            changes.update(fact.changes)
    return replace(base, **changes) if changes else base
