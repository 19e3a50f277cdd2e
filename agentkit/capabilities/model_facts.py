"""Facts about models. Each fact is a row that changes a provider's `Capabilities` for some of its models.

A model that matches no row gets the provider's own capabilities, which suit all current models of the provider.
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
    """Row with a pattern of model names, the new values of capabilities, and the source of the fact.

    Example:
        >>> fact = ModelFact("gpt-4o-audio", {"media.audio": None}, "guides/audio", "2026-11-20")

    Attributes:
        pattern: Regular expression that matches the start of the normalized model name (`normalize_model_name`),
            which has no vendor prefix, no cloud prefix and no date.
        changes: New values by field of `Capabilities`, such as `{"media.image": None}` for a field of a group.
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
    """Returns `base` with the changes of every row that matches the model name, in the order of the rows.

    Returns `base` itself if `model` is None or matches no row.
    """
    if model is None:
        return base
    name = normalize_model_name(model)
    changes: dict[str, Any] = {}
    for fact in facts:
        if re.match(fact.pattern, name):
            changes.update(fact.changes)
    return base.override(changes) if changes else base
