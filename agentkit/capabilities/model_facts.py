"""Facts about models, as data: rows that change the `Capabilities` of a provider for some of its models.

A model that matches no row gets the capabilities of its provider, which all current models of the provider accept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.capabilities.capabilities import Capabilities, check_changes
from agentkit.capabilities.model_names import normalize_model_name
from agentkit.reprs import bounded_repr

__all__ = ["ModelFact", "apply_facts"]


@dataclass(frozen=True, slots=True)
class ModelFact:
    """Row of facts: a pattern of model names, the capabilities that the row changes, and the source.

    Example:
        >>> fact = ModelFact("gpt-4o-audio", {"media.audio": None}, "guides/audio", "2026-11-20")

    Attributes:
        pattern: Regular expression that matches the start of the normalized model name (`normalize_model_name`),
            which has no vendor prefix, no cloud prefix and no date.
        changes: New values by field of `Capabilities`. A dot leads into a group: `{"media.image": None}`.
        source: Document, type or issue that states the fact.
        date: Date of the source or of its last check, as YYYY-MM-DD.

    Raises:
        OptionError: `changes` names a field that does not exist.

    """

    pattern: str
    changes: Mapping[str, Any]
    source: str
    date: str

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_changes("ModelFact.changes", self.changes)


def apply_facts(base: Capabilities, model: str | None, facts: Sequence[ModelFact]) -> Capabilities:
    """Returns the capabilities of a model: `base`, changed by every row that matches the name, in order.

    Without a model, and for a model that no row matches, this is `base`.
    """
    if model is None:
        return base
    name = normalize_model_name(model)
    changes: dict[str, Any] = {}
    for fact in facts:
        if re.match(fact.pattern, name):
            changes.update(fact.changes)
    return base.override(changes) if changes else base
