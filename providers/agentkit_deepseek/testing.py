"""Fake DeepSeek service for `agentkit.testing.LoopbackServer`."""

from __future__ import annotations

from typing import Final

from agentkit.testing import Route
from agentkit_openai.testing import FakeChatCompletions

__all__ = ["ROUTES"]

_SERVICE: Final = FakeChatCompletions(
    reasoning_field="reasoning_content", has_usage_in_last_choice=True, has_cache_hit_keys=True
)
ROUTES: Final = (Route("deepseek", r"/deepseek(?:/v1|/beta)?/chat/completions", _SERVICE, base="/deepseek"),)
