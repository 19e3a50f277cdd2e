"""Repair of a conversation in which tool calls and tool results do not match.

The repaired conversation has exactly one result for each tool call, directly after the assistant turn with the
call. Such a conversation is in normal form (see `normal_form`). The input messages are never changed.

Read `pairing` first.
"""

from __future__ import annotations

__all__: list[str] = []
