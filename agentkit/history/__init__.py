"""History policies, which convert a conversation of many speakers to a conversation of two roles.

Input: a conversation in which each tool call has one result. Output: the conversation that one model gets.
`ChatHistory` keeps the role of each message. `MultiAgentHistory` writes consecutive messages as a history frame:
one user turn of `NAME: TEXT` lines between tags. `read_history` parses such frames.

Read `policies` first, then `frame_escaping`.
"""

from __future__ import annotations

__all__: list[str] = []
