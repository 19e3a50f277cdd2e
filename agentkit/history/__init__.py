"""History policies: how a conversation of many speakers becomes one of two roles.

Input: a conversation in normal form. Output: the conversation that one model gets. `ChatHistory` keeps each
message in its own role. `MultiAgentHistory` writes runs of messages as history frames, which `read_history` can
parse again.

Read `policies` first, then `safe_frame`.
"""

from __future__ import annotations

__all__: list[str] = []
