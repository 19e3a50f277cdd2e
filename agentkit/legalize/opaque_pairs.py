"""Pairs of opaque blocks, a request and its response: half a pair is not sent.

A provider that ran a tool itself refuses the result without the call, and the call without the result. A cut, a
broken stream or another wire format can remove one of them. The response may be in a later reply.
"""

from __future__ import annotations

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_part

__all__ = ["drop_half_pairs", "ends_with_request"]


_HALF = Note(Disposition.DROPPED, "the other half of this request and response pair is missing")


def drop_half_pairs(turns: TracedConversation, ledger: Ledger, target: Capabilities) -> TracedConversation:
    """Returns the turns without half pairs. Returns the same object if there are none.

    A request without a response remains where the target can resume it (`resumable`): at the end of the
    conversation, or in a turn that only results follow.
    """
    halves = _find_halves(turns, target) if target.opaque.pair_key is not None else set[BlockPath]()
    if not halves:
        return turns
    out = TracedConversation([], [])
    for message_index, traced in enumerate(turns):
        dropped = sorted(index for half_message, index in halves if half_message == message_index)
        if not dropped:
            out.add(*traced)
            continue
        msg, origins = traced.msg, traced.block_origins
        ledger.note_origins([origins[index] for index in dropped], _HALF)
        remaining = [index for index in range(len(origins)) if index not in dropped]
        if remaining:
            part = build_part(msg, tuple(msg.blocks[index] for index in remaining), msg.role)
            out.add(part, tuple(origins[index] for index in remaining))
    return out


def _may_have_pairs(msg: Msg) -> bool:
    return bool(msg.features & Feature.OPAQUE and msg.features & Feature.ASSISTANT)


def _find_halves(turns: TracedConversation, target: Capabilities) -> set[BlockPath]:
    """Returns the indexes (message, block) of requests without response and of responses without request."""
    requests: dict[str, list[BlockPath]] = {}
    halves: set[BlockPath] = set()
    for message_index, msg in enumerate(turns.msgs):
        for block_index, block in enumerate(msg.blocks if _may_have_pairs(msg) else ()):
            role, key = target.find_pair(block)
            if role == "request":
                requests.setdefault(key, []).append((message_index, block_index))
            elif role and requests.get(key):
                requests[key].pop(0)
            elif role:
                halves.add((message_index, block_index))
    open_start = _find_open_start(turns.msgs, target) if target.turns.resumable else len(turns.msgs)
    return halves | {path for paths in requests.values() for path in paths if path[0] < open_start}


def _find_open_start(msgs: list[Msg], target: Capabilities) -> int:
    """Returns the index from which the last assistant turn is open: only results follow it."""
    other = Feature.OTHER | Feature.CALL
    index = len(msgs)
    while index and msgs[index - 1].features & Feature.RESULT and not msgs[index - 1].features & other:
        index -= 1
    if not index or not msgs[index - 1].features & Feature.ASSISTANT:
        return len(msgs)
    if index == len(msgs) and not ends_with_request(msgs[-1], target):
        return index  # a filler turn of the user will follow
    while index and msgs[index - 1].features & Feature.ASSISTANT:
        index -= 1
    return index


def ends_with_request(msg: Msg, target: Capabilities) -> bool:
    """Returns True if a message ends with a request of the target that has no response yet."""
    return bool(msg.blocks) and target.find_pair(msg.blocks[-1])[0] == "request"
