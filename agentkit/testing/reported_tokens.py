"""Token counts that the loopback server reports: one token for every four characters."""

from __future__ import annotations

import json

from agentkit.messages.blocks import TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import Usage

__all__ = ["count_tokens", "estimate_usage"]


def count_tokens(text: str) -> int:
    """Returns the number of tokens that the server reports for a text."""
    return -(-len(text) // 4)


def estimate_usage(msg: Msg, prompt: object) -> Usage:
    """Returns the usage that the server reports for a reply. `prompt` is the JSON value of the prompt."""
    thinking = sum(count_tokens(block.thinking) for block in msg.blocks if isinstance(block, ThinkingBlock))
    text = sum(count_tokens(block.text) for block in msg.blocks if isinstance(block, TextBlock))
    calls = sum(count_tokens(use.name + use.arguments) for use in msg.tool_uses)
    prompt_tokens = count_tokens(json.dumps(prompt, ensure_ascii=False))
    return Usage(prompt_tokens, thinking + text + calls, reasoning_tokens=thinking)
