"""Repair of a conversation in which tool calls and tool results do not match.

Input: any conversation. Output: a conversation in which each tool call has exactly one result, directly after the
assistant turn with the call. The package calls this the normal form (see `normal_form`). The caller's messages
never change.

Read `pairing` first.
"""

from __future__ import annotations

__all__: list[str] = []
