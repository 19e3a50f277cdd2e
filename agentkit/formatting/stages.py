"""`Stage`: one step of the pipeline, and the features of a conversation for which the step runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentkit.capabilities.capabilities import Capabilities
from agentkit.legalize.conversation import LegalConversation, StageContext

__all__ = [
    "ALL_CONTENT",
    "ANY",
    "NO_TURNS",
    "OUTPUT",
    "Stage",
    "TOOL_CHOICE",
    "UNCHECKED",
]

ANY: Final = 1 << 40
"""Feature bit that every request has."""

TOOL_CHOICE: Final = 1 << 41
"""Feature bit of requests with a tool choice."""

OUTPUT: Final = 1 << 42
"""Feature bit of requests with an output schema."""

NO_TURNS: Final = 1 << 43
"""Feature bit of requests without turns after the system prompt."""

UNCHECKED: Final = 1 << 44
"""Feature bit of conversations that may still need repair."""

ALL_CONTENT: Final = UNCHECKED | ANY - 1
"""All feature bits that a conversation may have before the repair check."""


def _any(target: Capabilities) -> int:
    return ANY


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline. `STAGES` lists all steps.

    Attributes:
        run: Function that takes a conversation and the context, and returns the changed conversation. If nothing
            changes, the function returns the same object.
        features: Function that takes the target and returns bits of `Feature`, or of the constants of this module.
            The pipeline calls `run` only for conversations with one of these features. 0 means that the target
            never needs the step.
    """

    run: Callable[[LegalConversation, StageContext], LegalConversation]
    features: Callable[[Capabilities], int] = _any
