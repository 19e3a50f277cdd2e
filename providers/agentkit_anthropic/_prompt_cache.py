"""Markers for Anthropic's prompt cache (build-with-claude/prompt-caching)."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import LegalConversation, Request, place_cache_breakpoints, stable_blocks

__all__ = ["mark"]

_MAX_MARKERS = 4  # "A maximum of 4 blocks with cache_control may be provided."
_REACH = 20  # a cache read checks at most 20 positions back, including the position of the marker
_UNMARKED = frozenset({"thinking", "redacted_thinking"})  # SDK: these params have no cache_control


def mark(request: Request, legal: LegalConversation, marker: dict[str, str]) -> None:
    """Marks a finished request: one marker after tools and system prompt, the others in the messages.

    The prefix order is tools, system prompt, messages. A marker on the last block of the system prompt therefore
    covers the tools too, and is still read after a cut of the history. Without a system prompt, the marker is on
    the last tool. `place_cache_breakpoints` selects the positions in the messages.

    Args:
        request: Finished request, which is changed.
        legal: Conversation of the request.
        marker: Value of `cache_control`.

    """
    head = _find_head(request)
    if head is not None:
        head["cache_control"] = dict(marker)
    blocks = [block for message in request["messages"] for block in message["content"]]
    max_markers = _MAX_MARKERS - (head is not None)
    for index in place_cache_breakpoints(
        _list_candidates(request, legal), max_markers, reach=_REACH, turn=_find_last_turn(request)
    ):
        blocks[index]["cache_control"] = dict(marker)


def _find_head(request: Request) -> dict[str, Any] | None:
    """Returns the last block of system prompt or tools. Turns a system prompt of text into a list."""
    if isinstance(request.get("system"), str):
        request["system"] = [{"type": "text", "text": request["system"]}]
    blocks: list[dict[str, Any]] = request.get("system") or request.get("tools") or []
    return blocks[-1] if blocks else None


def _list_candidates(request: Request, legal: LegalConversation) -> list[int]:
    """Returns the indexes of blocks that may be marked, counted over all messages.

    Excluded are thinking, blocks that later requests change, and a prefill: its trailing blanks are removed only
    while no message follows.
    """
    messages: list[dict[str, Any]] = request["messages"]
    types = [block["type"] for message in messages for block in message["content"]]
    flags = [flag for _, block_flags in stable_blocks(legal.turns) for flag in block_flags]
    if messages and messages[-1]["role"] == "assistant":
        flags[-1] = False
    pairs = zip(types, flags, strict=True)
    return [index for index, (block_type, flag) in enumerate(pairs) if flag and block_type not in _UNMARKED]


def _find_last_turn(request: Request) -> int | None:
    """Returns the index of the first block of the last assistant turn, counted over all messages."""
    index, turn = 0, None
    for message in request["messages"]:
        if message["role"] == "assistant":
            turn = index
        index += len(message["content"])
    return turn
