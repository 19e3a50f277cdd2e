"""Check that a conversation is in normal form, so that its tool calls and results need no repair.

In normal form, a message contains either only tool results or no tool results. After each message with tool calls,
the next messages have exactly one result for each call.
"""

from __future__ import annotations

from collections import Counter

from agentkit.ledger.provenance import NormalForm, TracedConversation
from agentkit.messages.features import Feature
from agentkit.messages.system_prompt import prompt_length

__all__ = ["find_normal_form"]


def find_normal_form(
    conversation: TracedConversation, start: int | None = None, prefix: NormalForm | None = None
) -> NormalForm | None:
    """Returns a `NormalForm` that describes the conversation, or None if the conversation needs repair.

    In normal form, each tool call has exactly one result directly after the assistant turn with the call.

    Args:
        conversation: Conversation to check.
        start: Index of the first message to check. None: the first message after the system prompt.
        prefix: Properties of the messages before `start`, which must be in normal form. None if `start` is None.
    """
    msgs = conversation.msgs
    tool, call, assistant = Feature.TOOL, Feature.CALL, Feature.ASSISTANT
    calls = _OpenCalls()
    all_features, previous_side, alternating = 0, -1, True
    if prefix and start:
        all_features, alternating, calls.in_order = prefix.features, prefix.alternating, prefix.ordered
        previous_side = msgs[start - 1].features & assistant
    for msg in msgs[prompt_length(msgs) if start is None else start :]:
        features = msg.features
        all_features |= features
        side = features & assistant
        if side == previous_side:
            alternating = False
        previous_side = side
        if not features & tool:
            if calls.ids:
                return None
        elif features & call:
            if calls.ids or features & Feature.RESULT:
                return None
            calls.ids = msg.tool_ids
        elif features & Feature.OTHER or not calls.accept(msg.tool_ids):
            return None
    return None if calls.ids else NormalForm(all_features, calls.in_order, alternating)


class _OpenCalls:
    """Tool calls of the current assistant turn that still need a result."""

    __slots__ = ("counts", "ids", "in_order", "missing")

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ()
        # To save time, `counts` and `missing` are used only if needed.
        # `counts` and `missing` are not needed if one message has all results, in the order of the calls.
        self.counts: Counter[str] = Counter()  # maps each call id to the number of calls that need a result
        self.missing = 0  # total number of calls that need a result
        self.in_order = True

    def accept(self, ids: tuple[str, ...]) -> bool:
        """Matches the results in a message with open calls by id. Returns False if a result matches no call."""
        if not self.missing and ids == self.ids:
            self.ids = ()
            return True
        self.in_order = False
        return self._accept_some(ids)

    def _accept_some(self, ids: tuple[str, ...]) -> bool:
        if not self.missing:
            self.counts, self.missing = Counter(self.ids), len(self.ids)
        for call_id in ids:
            if self.counts[call_id] <= 0:
                return False
            self.counts[call_id] -= 1
        self.missing -= len(ids)
        if not self.missing:
            self.ids = ()
        return True
