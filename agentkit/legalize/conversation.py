"""`LegalConversation`, the conversation in the pipeline, and `StageContext`, the context of one request.

A stage is a function `stage(conversation, context) -> conversation`. If nothing changes, the stage returns the
same object. All stages of one request receive the same context. The other modules of this package contain stages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation
from agentkit.legalize.media import OnLoss
from agentkit.legalize.request_spec import RequestSpec
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.reprs import bounded_repr

__all__ = ["LegalConversation", "StageContext", "split_results"]


@dataclass(slots=True)
class LegalConversation:
    """Conversation that the pipeline stages rewrite until the conversation obeys the rules of the target.

    Before the stage `split_system_prompt`, `turns` has all messages and `system` is empty.

    In a turn with tool results, the results come before all other blocks. A turn with tool calls is treated as an
    assistant turn, even if the role of its message is not `assistant`.

    Attributes:
        system: The system prompt.
        turns: The messages after the system prompt.
        call_ids: Maps each new call id to the call id that it replaces.
        tool_names: Maps each new tool name to the tool name that it replaces.
        speakers: Maps each refused speaker name to the name that replaces it in the request.
        notes: Notes that the formatter's `convert` appends, each with the origin of a block
            (`TracedMessage.block_origins`), or with a name for content that `convert` adds. The pipeline adds the
            notes to the ledger.
    """

    system: TracedConversation
    turns: TracedConversation
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])
    speakers: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[tuple[Provenance, Note]] = field(default_factory=list[tuple[Provenance, Note]])

    __repr__ = bounded_repr

    def with_turns(self, turns: TracedConversation) -> LegalConversation:
        """Returns a copy with other turns. Returns `self` if `turns` is the turns object of this conversation."""
        if turns is self.turns:
            return self
        return LegalConversation(self.system, turns, self.call_ids, self.tool_names, self.speakers, self.notes)


def split_results(msg: Msg) -> tuple[tuple[ToolResultBlock, ...], Msg | None]:
    """Splits a turn into its tool results and a user message with all other blocks.

    The user message is None if the turn has only results.
    """
    if not msg.features & (Feature.OTHER | Feature.CALL):
        return cast("tuple[ToolResultBlock, ...]", msg.content), None
    others = tuple(block for block in msg.blocks if not isinstance(block, ToolResultBlock))
    return msg.tool_results, build_trusted(msg.name, others, "user")


@dataclass(slots=True)
class StageContext:
    """Options, ledger and media of one request. Every pipeline stage receives a conversation and the context.

    Attributes:
        spec: The target, tools, tool choice and output schema. A stage may replace all of these except the target.
        ledger: The ledger of the request, to which the stages add notes.
    """

    spec: RequestSpec
    history: HistoryPolicy
    on_loss: OnLoss
    ledger: Ledger
    media: ResolvedMedia
