"""Pairs of opaque blocks, a request and its response: half a pair is not sent.

A provider that ran a tool by itself refuses the result without the call, and the call without the result. A cut,
a broken stream or a change of wire can take one of them; the reply that answers may be a later one.
"""

from __future__ import annotations

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import TracedConversation, block_origins
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_part

__all__ = ["drop_half_pairs", "ends_asking"]


def drop_half_pairs(draft: TracedConversation, ledger: Ledger, form: Capabilities) -> TracedConversation:
    """Returns the turns without half pairs; the same object if there are none.

    What a reply asks and nothing answers may stay where the target goes on with it (`resumes`): at the very end,
    or with nothing but results behind its turn.
    """
    if form.opaque.pair_key is None:
        return draft
    gone = _halves(draft, form)
    if not gone:
        return draft
    out = TracedConversation([], [])
    for number, (msg, whole) in enumerate(zip(draft.msgs, draft.origins, strict=True)):
        lost = {at for place, at in gone if place == number}
        if not lost:
            out.add(msg, whole)
            continue
        origins = block_origins(msg, whole)
        for at in sorted(lost):
            if not isinstance(origin := origins[at], str):
                ledger.note(
                    origin,
                    Note(Disposition.DROPPED, "the other half of this request and response pair is missing"),
                )
        kept = [at for at in range(len(origins)) if at not in lost]
        if kept:
            out.add(
                build_part(msg, tuple(msg.blocks[at] for at in kept), msg.role), tuple(origins[at] for at in kept)
            )
    return out


def _holds(msg: Msg) -> bool:
    return bool(msg.features & Feature.OPAQUE and msg.features & Feature.ASSISTANT)


def _halves(draft: TracedConversation, form: Capabilities) -> set[BlockPath]:
    """Returns the indexes (message, block) of requests without response and of responses without request."""
    asked: dict[str, list[BlockPath]] = {}
    halves: set[BlockPath] = set()
    for number, msg in enumerate(draft.msgs):
        for at, block in enumerate(msg.blocks if _holds(msg) else ()):
            role, name = form.find_pair(block)
            if role == "request":
                asked.setdefault(name, []).append((number, at))
            elif role and asked.get(name):
                asked[name].pop(0)
            elif role:
                halves.add((number, at))
    open_from = _open_from(draft.msgs, form) if form.turns.resumable else len(draft.msgs)
    return halves | {place for places in asked.values() for place in places if place[0] < open_from}


def _open_from(msgs: list[Msg], form: Capabilities) -> int:
    """Returns the index from which the last assistant turn is open: only results follow it."""
    at = len(msgs)
    while (
        at
        and msgs[at - 1].features & Feature.RESULT
        and not msgs[at - 1].features & (Feature.OTHER | Feature.CALL)
    ):
        at -= 1
    if not at or not msgs[at - 1].features & Feature.ASSISTANT:
        return len(msgs)
    if at == len(msgs) and not ends_asking(msgs[-1], form):
        return at  # a user's turn will be put behind it
    while at and msgs[at - 1].features & Feature.ASSISTANT:
        at -= 1
    return at


def ends_asking(msg: Msg, form: Capabilities) -> bool:
    """Returns True if a message ends in a request of the target that has no response yet."""
    return bool(msg.blocks) and form.find_pair(msg.blocks[-1])[0] == "request"
