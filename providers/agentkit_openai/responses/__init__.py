"""OpenAI Responses: requests, replies and logs of this API.

A request is a list of items: messages, reasoning, tool calls, and items of tools that OpenAI runs. A message of an
assistant becomes several items, and the items of a reply become the blocks of one message. Items are tied to each
other by ids, and OpenAI refuses some items without the others. `_item_ids` and `_item_pairs` have these rules.

Read `convert` first, then `_turn_items`. `capabilities` and `logs` have the same roles as in `agentkit_openai`.
"""

from __future__ import annotations

__all__: list[str] = []
