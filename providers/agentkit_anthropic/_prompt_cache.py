"""Placement of markers for Anthropic's prompt cache (build-with-claude/prompt-caching)."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import LegalConversation, Request, place_cache_breakpoints, stable_blocks

__all__ = ["mark"]

_MAX_MARKERS = 4  # "A maximum of 4 blocks with cache_control may be provided."
_REACH = 20  # a cache read checks at most 20 blocks, counted back from the marked block
_UNMARKED = frozenset({"thinking", "redacted_thinking"})  # these block types have no cache_control in the SDK


def mark(request: Request, legal: LegalConversation, marker: dict[str, str]) -> None:
    """Adds cache markers to a request: one for the tools and the system prompt, and the others in the messages.

    The API caches tools, system prompt and messages in this order. A marker on the last block of the system prompt
    therefore covers the tools too, and stays valid when a budget drops messages. Without a system prompt, the
    last tool gets the marker. `place_cache_breakpoints` selects the positions in the messages.

    Args:
        request: Finished request, which is changed in place.
        legal: Conversation that the request was built from.
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
    """Returns the last block of the system prompt, or else the last tool. Converts a prompt string to a list."""
    if isinstance(request.get("system"), str):
        request["system"] = [{"type": "text", "text": request["system"]}]
    blocks: list[dict[str, Any]] = request.get("system") or request.get("tools") or []
    return blocks[-1] if blocks else None


def _list_candidates(request: Request, legal: LegalConversation) -> list[int]:
    """Returns the indexes of blocks that may be marked, counted over all messages.

    Excludes thinking, and blocks that later requests change. Also excludes an assistant turn at the end of the
    request (prefill). This request omits the trailing blanks of the prefill, but later requests contain them.
    """
    messages: list[dict[str, Any]] = request["messages"]
    types = [block["type"] for message in messages for block in message["content"]]
    flags = [flag for _, block_flags in stable_blocks(legal.turns) for flag in block_flags]
    if messages and messages[-1]["role"] == "assistant":
        flags[-1] = False
    pairs = zip(types, flags, strict=True)
    return [index for index, (block_type, flag) in enumerate(pairs) if flag and block_type not in _UNMARKED]


def _find_last_turn(request: Request) -> int | None:
    """Returns the index of the last assistant turn's first block, counted over all messages, or None."""
    index, turn = 0, None
    for message in request["messages"]:
        if message["role"] == "assistant":
            turn = index
        index += len(message["content"])
    return turn
