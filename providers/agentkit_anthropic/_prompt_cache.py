"""Markers for Anthropic's prompt cache (build-with-claude/prompt-caching)."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import LegalConversation, Request, place_cache_breakpoints, stable_blocks

__all__ = ["mark"]

_MARKERS = 4  # "A maximum of 4 blocks with cache_control may be provided."
_REACH = 20  # a read looks back at most 20 positions, the marker's own the first
_UNMARKED = frozenset({"thinking", "redacted_thinking"})  # SDK: their params have no cache_control


def mark(request: Request, legal: LegalConversation, marker: dict[str, str]) -> None:
    """Mark a finished request: one marker behind tools and system prompt, the others in the messages.

    The prefix order is tools, system, messages, so the marker on the last block of the system prompt (of the
    tools, where there is none) stands for both, and still hits when a cut took the front of the history. Where
    the others lie, and why the next request finds them, is in `breakpoints`. Distances between message blocks are
    the same whether positions are counted from the tools or from the first message.
    """
    head = _head(request)
    if head is not None:
        head["cache_control"] = dict(marker)
    blocks = [block for message in request["messages"] for block in message["content"]]
    for at in place_cache_breakpoints(
        _candidates(request, legal), _MARKERS - (head is not None), reach=_REACH, turn=_turn(request)
    ):
        blocks[at]["cache_control"] = dict(marker)


def _head(request: Request) -> dict[str, Any] | None:
    """The last block that every request of the conversation begins with; a system prompt becomes a list for it."""
    if isinstance(request.get("system"), str):
        request["system"] = [{"type": "text", "text": request["system"]}]
    blocks: list[dict[str, Any]] = request.get("system") or request.get("tools") or []
    return blocks[-1] if blocks else None


def _candidates(request: Request, legal: LegalConversation) -> list[int]:
    """The blocks that may be marked, counted through the messages: neither passing nor thinking nor a prefill.

    A prefill loses its trailing blanks, which it has again once something follows it.
    """
    messages: list[dict[str, Any]] = request["messages"]
    types = [block["type"] for message in messages for block in message["content"]]
    flags = [flag for _, whole in stable_blocks(legal.turns) for flag in whole]
    if messages and messages[-1]["role"] == "assistant":
        flags[-1] = False
    kept = zip(types, flags, strict=True)
    return [at for at, (kind, flag) in enumerate(kept) if flag and kind not in _UNMARKED]


def _turn(request: Request) -> int | None:
    """The position at which the assistant's last turn begins."""
    at, turn = 0, None
    for message in request["messages"]:
        if message["role"] == "assistant":
            turn = at
        at += len(message["content"])
    return turn
