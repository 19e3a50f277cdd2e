"""Which keys of a request hold what."""

from __future__ import annotations

__all__ = ["CACHE_MARKERS"]

CACHE_MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Where a wire marks what its prompt cache is to keep: no part of the prompt."""
