"""Facts about models. Each `ModelFact` changes a provider's `Capabilities` for some of its models.

Without a fact, a model has the unchanged capabilities of the provider. These capabilities allow only features that
all current models of the provider accept.
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
    """Fact about some models: a pattern of their names, changes of capabilities, and the source.

    Example:
        >>> fact = ModelFact("gpt-4o-audio", {"media.audio": None}, "guides/audio", "2026-11-20")

    Attributes:
        pattern: Regular expression that matches the start of a normalized model name. `normalize_model_name`
            removes the vendor prefix, the date and the cloud suffix of a name.
        changes: Maps the names of fields of `Capabilities` to new values, such as `{"media.image": None}`. The
            name of a field in a group is `GROUP.FIELD`.
        source: Document, type or issue that states the fact.
        date: Date of the source, or of the last check of the source, as YYYY-MM-DD.

    Raises:
        OptionError: `changes` is not a mapping, or names a field that does not exist.
    """

    pattern: str
    changes: Mapping[str, Any]
    source: str
    date: str

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_changes("ModelFact.changes", self.changes)


def apply_facts(base: Capabilities, model: str | None, facts: Sequence[ModelFact]) -> Capabilities:
    """Returns `base` with the changes of all facts whose pattern matches the model name.

    A later fact in `facts` takes precedence over an earlier fact. Returns `base` itself if no fact matches, or if
    `model` is None.
    """
    if model is None:
        return base
    name = normalize_model_name(model)
    changes: dict[str, Any] = {}
    for fact in facts:
        if re.match(fact.pattern, name):
            changes.update(fact.changes)
    return base.override(changes) if changes else base
