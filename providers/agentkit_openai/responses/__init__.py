"""Requests, replies and logs of the OpenAI Responses API.

A request is a list of items, such as messages, reasoning, tool calls, and calls of tools that OpenAI runs. An
assistant message becomes several items, and the items of a reply become the blocks of one message. Ids connect
items, and OpenAI refuses some items if a connected item is missing. `_reasoning` and `capabilities` implement the
rules for connected items.

Read `convert` first, then `_turn_items`. If a module has the same name as a module in `agentkit_openai`, the two
modules have the same purpose.
"""

from __future__ import annotations

__all__: list[str] = []
