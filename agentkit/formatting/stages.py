"""`Stage`: a step of the pipeline, with the features of the conversations that it changes."""

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
"""Feature of conversations of which it is not known that they are in normal form."""

ALL_CONTENT: Final = UNCHECKED | ANY - 1
"""The features of an unchecked conversation, which may have any feature of messages."""

Conversation: TypeAlias = LegalConversation
"""Conversation of the pipeline. Before `split_system_prompt`, its turns are all messages and `system` is empty."""


@dataclass(slots=True)
class StageContext:
    """Everything besides the conversation that stages read, and the ledger that they write.

    Attributes:
        spec: The target, tools, tool choice and output schema. Stages may replace it, except for the target.
        history: The history policy.
        on_loss: The treatment of content that the target cannot carry.
        ledger: The ledger of the request.
        media: The loaded media.

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
    """One rule of the pipeline. A new rule for content is one more entry in `STAGES`.

    Attributes:
        run: The function. It returns the same conversation if it changes nothing.
        features: Function of the target. It returns the features of the conversations that `run` may change:
            bits of `Feature`, or of this module. 0 means that the rule does not exist for the target. The pipeline
            calls `run` only for conversations with one of these features.

    """

    run: Callable[[Conversation, StageContext], Conversation]
    features: Callable[[Capabilities], int] = _any
