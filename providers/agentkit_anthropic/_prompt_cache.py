"""Placement of cache markers in requests, for Anthropic's prompt cache (Anthropic docs: prompt-caching)."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from agentkit.provider_kit import LegalConversation, Request, place_cache_breakpoints, stable_blocks

__all__ = ["mark"]

_MAX_MARKERS = 4  # API error: "A maximum of 4 blocks with cache_control may be provided."
_REACH = 20  # from a marked block, the API searches at most 20 blocks backward for a cache entry
_UNMARKED = frozenset({"thinking", "redacted_thinking"})  # the SDK's types for these blocks lack `cache_control`


def mark(request: Request, legal: LegalConversation, marker: dict[str, str]) -> None:
    """Adds cache markers to a request: one for the tools and the system prompt, and the others in the messages.

    The API caches the tools first, then the system prompt, then the messages. A marker on the last block of the
    system prompt therefore covers the tools too, and stays valid when a budget drops messages. Without a system
    prompt, the last tool gets the marker. `place_cache_breakpoints` selects the marked blocks in the messages.
    """
    head = _find_head(request)
    if head is not None:
        head["cache_control"] = dict(marker)
    messages: list[dict[str, Any]] = request["messages"]
    blocks = [block for message in messages for block in message["content"]]
    flags = [flag for _, block_flags in stable_blocks(legal.turns) for flag in block_flags]
    if messages and messages[-1]["role"] == "assistant":
        # The request omits the whitespace at the end of a final assistant turn, but later requests contain this
        # whitespace. The last block changes between the requests, and is therefore not marked.
        flags[-1] = False
    pairs = enumerate(zip(blocks, flags, strict=True))
    candidates = [index for index, (block, flag) in pairs if flag and block["type"] not in _UNMARKED]
    starts = accumulate((len(message["content"]) for message in messages), initial=0)
    turns = [start for start, message in zip(starts, messages, strict=False) if message["role"] == "assistant"]
    max_markers = _MAX_MARKERS - (head is not None)
    last_turn = turns[-1] if turns else None
    for index in place_cache_breakpoints(candidates, max_markers, reach=_REACH, turn=last_turn):
        blocks[index]["cache_control"] = dict(marker)


def _find_head(request: Request) -> dict[str, Any] | None:
    """Returns the last block of the system prompt.

    Without a system prompt, returns the last tool, or None if there are no tools. If the system prompt is a
    string, the function replaces the string with a list of one block.
    """
    if isinstance(request.get("system"), str):
        request["system"] = [{"type": "text", "text": request["system"]}]
    blocks: list[dict[str, Any]] = request.get("system") or request.get("tools") or []
    return blocks[-1] if blocks else None
