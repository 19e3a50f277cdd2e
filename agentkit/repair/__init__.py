"""Repair: pairs tool calls with tool results, on the outgoing copy of a conversation.

Input: any conversation. Output: a conversation in normal form (see `normal_form`), in which each tool call has
exactly one result, right after the turn of its call. The caller's messages never change.

Read `pairing` first.
"""

from __future__ import annotations

__all__: list[str] = []
