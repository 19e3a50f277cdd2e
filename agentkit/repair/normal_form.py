"""Normal form: the conversations that need no repair.

In normal form, every message has no tool blocks, or is a turn of calls, or has results only. Exactly one result
for each call follows each turn of calls at once.
"""

from __future__ import annotations

from collections import Counter

from agentkit.ledger.provenance import NormalForm, TracedConversation, prompt_length
from agentkit.messages.features import Feature

__all__ = ["find_normal_form"]


def find_normal_form(
    conversation: TracedConversation, start: int | None = None, prefix: NormalForm | None = None
) -> NormalForm | None:
    """Returns the facts of a conversation in normal form. Returns None if it needs repair.

    Args:
        conversation: The conversation to check.
        start: The index of the first message to check. None: the first message after the system prompt.
        prefix: The facts of the messages before `start`, which are in normal form; None to check all messages.

    """
    msgs = conversation.msgs
    tool, assistant = Feature.TOOL, Feature.ASSISTANT
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
        elif not calls.accept(features, msg.tool_ids):
            return None
    return None if calls.ids else NormalForm(all_features, calls.in_order, alternating)


class _OpenCalls:
    """Calls of the current turn that have no result yet."""

    __slots__ = ("counts", "ids", "in_order", "missing")

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ()
        # number of open calls by id, after a message with some of the results
        self.counts: Counter[str] = Counter()
        self.missing = 0  # number of results still expected, after a message with some of the results
        self.in_order = True

    def accept(self, features: int, ids: tuple[str, ...]) -> bool:
        """Returns True if a conversation in normal form can continue with this message of calls or results."""
        if features & Feature.CALL:
            if self.ids or features & Feature.RESULT:
                return False
            self.ids = ids
            return True
        if features & Feature.OTHER:
            return False
        if not self.missing and ids == self.ids:
            self.ids = ()
            return True
        self.in_order = False
        return self._accept_some(ids)

    def _accept_some(self, ids: tuple[str, ...]) -> bool:
        """Returns True if each result of the message belongs to an open call."""
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
