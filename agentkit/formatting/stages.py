"""`Stage`: one step of the pipeline, and the context that all stages share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from agentkit.capabilities.capabilities import Capabilities
from agentkit.formatting.request_spec import RequestSpec
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.ledger import Ledger
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.media import OnLoss
from agentkit.media.resolution import ResolvedMedia

__all__ = [
    "ALL_CONTENT",
    "ANY",
    "Conversation",
    "NO_TURNS",
    "OUTPUT",
    "Stage",
    "StageContext",
    "TOOL_CHOICE",
    "UNCHECKED",
]

ANY: Final = 1 << 40
"""Feature of every request."""

TOOL_CHOICE: Final = 1 << 41
"""Feature of requests with a tool choice."""

OUTPUT: Final = 1 << 42
"""Feature of requests with an output schema."""

NO_TURNS: Final = 1 << 43
"""Feature of requests without turns after the system prompt."""

UNCHECKED: Final = 1 << 44
"""Feature of conversations that may still need repair."""

ALL_CONTENT: Final = UNCHECKED | ANY - 1
"""All features that an unchecked conversation may have."""

Conversation: TypeAlias = LegalConversation
"""Conversation in the pipeline. Until `split_system_prompt`, `turns` has all messages and `system` is empty."""


@dataclass(slots=True)
class StageContext:
    """Values besides the conversation that all stages use, and the ledger that stages write to.

    Attributes:
        spec: The target, tools, tool choice and output schema. Stages may replace it, except for the target.
        ledger: The ledger of the request.
    """

    spec: RequestSpec
    history: HistoryPolicy
    on_loss: OnLoss
    ledger: Ledger
    media: ResolvedMedia


def _any(target: Capabilities) -> int:
    return ANY


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline. `STAGES` lists all steps.

    Attributes:
        run: Function that takes a conversation and the context. It returns the same object if nothing changes.
        features: Function that takes the target and returns bits of `Feature`, or of the constants of this module.
            The pipeline calls `run` only for conversations with one of these features. 0 means that the target
            never needs the step.
    """

    run: Callable[[Conversation, StageContext], Conversation]
    features: Callable[[Capabilities], int] = _any
