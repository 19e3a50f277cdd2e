"""Removal of opaque blocks whose counterpart is missing.

If the provider runs a tool, such as a web search, a reply has a request block and a response block for the tool.
The response block may be in a later reply than the request block. The provider refuses each of the two blocks
without the other. A cut, a broken stream or a change of the wire format can remove one of the two blocks.
"""

from __future__ import annotations

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_part

__all__ = ["ends_with_request", "omit_half_pairs"]


_HALF = Note(Disposition.DROPPED, "the matching request or response of the provider's tool is missing")


def omit_half_pairs(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Omits a request block or response block of a provider tool if the other block of the pair is missing.

    This is a pipeline stage. If the target can continue an unfinished reply (`TurnCapabilities.resumable`), a
    request block in the last assistant turn needs no response block. This exception applies only if the turn ends
    with a request block, or if only tool results follow the turn.
    """
    turns, target = conversation.turns, context.spec.capabilities
    halves = _find_halves(turns, target) if target.opaque.pair_key is not None else set[BlockPath]()
    if not halves:
        return conversation
    out = TracedConversation([], [])
    for message_index, traced in enumerate(turns):
        dropped = sorted(index for half_message, index in halves if half_message == message_index)
        if not dropped:
            out.add(*traced)
            continue
        msg, origins = traced.msg, traced.block_origins
        context.ledger.note_origins([origins[index] for index in dropped], _HALF)
        remaining = [index for index in range(len(origins)) if index not in dropped]
        if remaining:
            part = build_part(msg, tuple(msg.blocks[index] for index in remaining), msg.role)
            out.add(part, tuple(origins[index] for index in remaining))
    return conversation.with_turns(out)


def _may_have_pairs(msg: Msg) -> bool:
    return bool(msg.features & Feature.OPAQUE and msg.features & Feature.ASSISTANT)


def _find_halves(turns: TracedConversation, target: Capabilities) -> set[BlockPath]:
    """Returns the (message, block) indexes of the request blocks and response blocks without a counterpart."""
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
    """Returns the index of the first message that may have request blocks without response blocks.

    Returns the number of messages if there is no such message. `omit_half_pairs` explains the rule.
    """
    index = len(msgs)
    while index and msgs[index - 1].features & Feature.RESULT:
        index -= 1
    if not index or not msgs[index - 1].features & Feature.ASSISTANT:
        return len(msgs)
    if index == len(msgs) and not ends_with_request(msgs[-1], target):
        return index  # a later stage adds a user turn after this reply, so the reply cannot be continued
    while index and msgs[index - 1].features & Feature.ASSISTANT:
        index -= 1
    return index


def ends_with_request(msg: Msg, target: Capabilities) -> bool:
    """Returns True if the last block of a message is the request block of a tool that the provider runs."""
    return bool(msg.blocks) and target.find_pair(msg.blocks[-1])[0] == "request"
