"""Prefix binding: thinking that is sent back only while the prefix that produced it is unchanged.

Idea. Some models accept their signed thinking only after exactly the prefix that produced it: system prompt, tools
and every earlier turn (Anthropic, build-with-claude/preserved-thinking/prefix-checks). Cache markers, the tool
choice and the order of JSON keys do not count. A parsed reply has a digest of the prefix of its request. For a new
request, this module walks over the turns with a chained digest. Before each reply, the digest so far must equal
the digest of the reply. Otherwise the thinking of the reply is stale. The caller lowers the conversation again
without stale thinking.

Example: `system, user 1, reply 1 (digest a), user 2, reply 2 (digest b)`.

- The user text in `user 1` changes. The chain before `reply 1` is not `a`: its thinking is stale. The chain
  continues without that thinking, so that it is not `b` before `reply 2` either: both are stale.
- Only a new turn follows `reply 2`. Both digests match, and all thinking is sent.

Invariants. Thinking with a digest depends only on the digest. Thinking without a digest is stale if the cut
changed a message before it, or if earlier thinking is stale. Parts that need thinking are left out of the chain
with it. Lowering again without stale thinking makes no other thinking stale.

Cost. Each turn is hashed once, so the walk is linear in the size of the request. It runs only for targets that
bind thinking, and only if a message has thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.capabilities.prefix_digest import PrefixDigest
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.json_values import as_object
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import TracedConversation, block_origins
from agentkit.messages.blocks import OpaqueState, ThinkingBlock
from agentkit.messages.features import Feature

__all__ = ["find_stale_thinking"]


def find_stale_thinking(
    request: Mapping[str, Any],
    layout: WireLayout,
    turns: TracedConversation,
    changed: int | None,
    needs_thinking: Callable[[Mapping[str, Any]], bool] | None = None,
) -> set[BlockPath]:
    """Returns the paths of thinking whose prefix is no longer the one that it was issued for.

    Thinking with a digest goes by it. Thinking without one goes back unless this call changed something
    before it: the message `changed`, or earlier thinking that went. What remains is prefix-closed. An item that
    needs thinking goes with it (see `Capabilities.needs_thinking`).
    """
    issued = _issued(turns)
    stale: set[BlockPath] = set()
    chain, before, in_reply, is_orphan = PrefixDigest(request, layout), "", False, False
    for turn in layout.read_turns(request):
        was_reply, in_reply = in_reply, layout.is_reply(turn)
        if in_reply and not was_reply:
            before = chain.value
        gone: set[str] = set()
        for part in (turn, *layout.read_parts(turn)):
            found = issued.get(_proof(part, layout))
            if found and found.is_stale(before, changed, bool(stale)):
                gone.add(_proof(part, layout))
                stale.update(found.paths)
            is_orphan = bool(gone) if found else is_orphan and in_reply
        if is_orphan and needs_thinking and needs_thinking(turn):
            continue
        kept = _without(turn, gone, layout) if gone else turn
        if kept:
            chain.add_turn(kept)
    return stale


@dataclass(slots=True)
class _Issued:
    """Thinking that a request carries: its state, where it comes from, and whether another reply stands right
    before it: between the two there was a turn once, which nobody said.
    """

    state: OpaqueState
    follows: bool
    paths: list[BlockPath] = field(default_factory=list[BlockPath])

    def is_stale(self, before: str, changed: int | None, broken: bool) -> bool:
        if self.state.prefix is not None:
            return self.state.prefix != before
        return broken or self.follows or (changed is not None and self.paths[0][0] > changed)


def _issued(turns: TracedConversation) -> dict[str, _Issued]:
    """Returns all thinking of the turns, by its proof."""
    found: dict[str, _Issued] = {}
    reply = -1  # the number of the message that the assistant's run of turns begins with
    for msg, whole in zip(turns.msgs, turns.origins, strict=True):
        if not msg.features & Feature.ASSISTANT:
            reply = -1
            continue
        for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True):
            if isinstance(origin, str):
                continue
            reply = origin[0] if reply < 0 else reply
            if isinstance(block, ThinkingBlock) and block.state:
                state = block.state
                proof = state.signature or state.redacted_data or state.encrypted_content or ""
                found.setdefault(proof, _Issued(state, origin[0] != reply)).paths.append(origin)
    return found


def _proof(part: Any, layout: WireLayout) -> str:
    """Returns the proof of thinking that a part or a turn carries; an empty string if it carries none."""
    fields: dict[str, Any] = as_object(part)
    label: object = fields.get("type")
    return str(fields.get(layout.proofs.get(label, ""), "")) if isinstance(label, str) else ""


def _without(turn: dict[str, Any], stale: set[str], layout: WireLayout) -> dict[str, Any]:
    """Returns the turn without some thinking. Returns an empty turn if nothing else remains."""
    if _proof(turn, layout) in stale:
        return {}
    key = next(key for key in layout.parts if isinstance(turn.get(key), list))
    parts = [part for part in turn[key] if _proof(part, layout) not in stale]
    return {**turn, key: parts} if parts else {}
