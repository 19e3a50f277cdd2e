"""Markers for DashScope's explicit context cache (model-studio/context-cache)."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import LegalConversation, place_cache_breakpoints
from agentkit_openai import chat_places

__all__ = ["mark"]

_MARKERS = 4
_REACH = 20  # "looks back up to 20 content blocks" from each marker


def mark(messages: list[dict[str, Any]], legal: LegalConversation) -> None:
    """Mark finished messages: the end of the system prompt, and in the turns where the next request finds it.

    `breakpoints` says where that is, and why. Strings and calls count as positions here, as the service may count
    them: at worst a marker stands closer to the next than it needs to.
    """
    places = chat_places(messages, legal)
    system = places.parts[0][-1:]
    candidates = [at for at, part in enumerate(places.turns) if part]
    chosen = place_cache_breakpoints(candidates, _MARKERS - len(system), reach=_REACH, turn=places.turn)
    for part in (*system, *(places.turns[at] for at in chosen)):
        assert part is not None
        part["cache_control"] = {"type": "ephemeral"}
