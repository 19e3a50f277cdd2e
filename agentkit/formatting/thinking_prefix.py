"""Prefix binding: the thinking of a reply is sent back only while the prefix of the reply is unchanged.

Idea. The prefix of a reply is the system prompt, the tools and every turn before the reply. Some models accept
their signed thinking only after exactly the same prefix (Anthropic,
build-with-claude/preserved-thinking/prefix-checks). Changes of cache markers, of the tool choice and of the order
of JSON keys are allowed. A parsed reply stores a digest of its prefix. For a new request, this module adds the
turns one by one to a digest (the chained digest). Before each reply, the chained digest must equal the stored
digest of the reply. Otherwise the thinking of the reply is stale. The caller then builds the request again without
stale thinking.

Example: `system, user 1, reply 1 (digest a), user 2, reply 2 (digest b)`.

- The user text in `user 1` changes. The chained digest before `reply 1` is then not `a`, so the thinking of
  `reply 1` is stale. The chained digest continues without that thinking. Before `reply 2`, the chained digest is
  therefore not `b`, and the thinking of `reply 2` is stale, too.
- A new turn follows `reply 2`, and nothing else changes. Both digests match, and all thinking is sent.

Invariants. Thinking with a stored digest is stale only if the chained digest differs. Thinking without a digest is
stale in three cases: the cut changed an earlier message, the turn between two replies is missing, or earlier
thinking is stale. The chained digest also omits parts that the API refuses after stale thinking is omitted. The
removal of stale thinking makes no other thinking stale.

Cost. Each turn is hashed once, so the time is linear in the size of the request. The check runs only for targets
that check the prefix of thinking, and only if a message has thinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.capabilities.prefix_digest import PrefixDigest
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.json_values import as_object
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import TracedConversation
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
    """Returns the paths of the thinking blocks whose prefix changed since the model produced them.

    `request` was converted from `turns` and contains all thinking. `changed` is the index of the first input
    message that a cut dropped or edited. None means that there is no such message. For `needs_thinking`, see
    `OpaqueCapabilities`.
    """
    issued = _find_issued(turns)
    stale: set[BlockPath] = set()
    chain, prefix, is_reply, is_orphan = PrefixDigest(request, layout), "", False, False
    for turn in layout.read_turns(request):
        follows_reply, is_reply = is_reply, layout.is_reply(turn)
        if is_reply and not follows_reply:
            prefix = chain.value
        stale_proofs: set[str] = set()
        for part in (turn, *layout.read_parts(turn)):
            thinking = issued.get(_get_proof(part, layout))
            if thinking and thinking.is_stale(prefix, changed, bool(stale)):
                stale_proofs.add(_get_proof(part, layout))
                stale.update(thinking.paths)
            is_orphan = bool(stale_proofs) if thinking else is_orphan and is_reply
        if is_orphan and needs_thinking and needs_thinking(turn):
            continue
        remaining = _without_thinking(turn, stale_proofs, layout) if stale_proofs else turn
        if remaining:
            chain.add_turn(remaining)
    return stale


@dataclass(slots=True)
class _IssuedThinking:
    """Thinking blocks with the same opaque state in one request.

    Attributes:
        state: The opaque state of the thinking.
        follows_reply: True if another reply comes directly before the reply with the thinking. A turn between the
            two replies is then missing.
        paths: The paths of the thinking blocks with this state.
    """

    state: OpaqueState
    follows_reply: bool
    paths: list[BlockPath] = field(default_factory=list[BlockPath])

    def is_stale(self, prefix: str, changed: int | None, has_stale: bool) -> bool:
        """Returns True if the prefix of the thinking changed. `has_stale` is True if earlier thinking is stale."""
        if self.state.prefix is not None:
            return self.state.prefix != prefix
        return has_stale or self.follows_reply or (changed is not None and self.paths[0][0] > changed)


def _find_issued(turns: TracedConversation) -> dict[str, _IssuedThinking]:
    """Returns a dict from each signature, or from encrypted data, to the thinking blocks with this proof."""
    issued: dict[str, _IssuedThinking] = {}
    first = -1  # index of the first input message of the current assistant turn; -1 outside assistant turns
    for traced in turns:
        if not traced.msg.features & Feature.ASSISTANT:
            first = -1
            continue
        for block, origin in traced.traced_blocks:
            if isinstance(origin, str):
                continue
            first = origin[0] if first < 0 else first
            if isinstance(block, ThinkingBlock) and block.state:
                state = block.state
                proof = state.signature or state.redacted_data or state.encrypted_content or ""
                issued.setdefault(proof, _IssuedThinking(state, origin[0] != first)).paths.append(origin)
    return issued


def _get_proof(part: Any, layout: WireLayout) -> str:
    """Returns the signature or encrypted data (the proof) of the thinking in a part or turn.

    Returns an empty string if the part or turn contains no thinking, or if the thinking has no proof.
    """
    fields: dict[str, Any] = as_object(part)
    label: object = fields.get(layout.type)
    return str(fields.get(layout.proofs.get(label, ""), "")) if isinstance(label, str) else ""


def _without_thinking(turn: dict[str, Any], proofs: set[str], layout: WireLayout) -> dict[str, Any]:
    """Returns the turn without the thinking whose signature or encrypted data is in `proofs`.

    Returns an empty dict if nothing remains.
    """
    if _get_proof(turn, layout) in proofs:
        return {}
    key = next(key for key in layout.parts if isinstance(turn.get(key), list))
    parts = [part for part in turn[key] if _get_proof(part, layout) not in proofs]
    return {**turn, key: parts} if parts else {}
