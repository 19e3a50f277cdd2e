"""Fake vLLM service for `agentkit.testing.LoopbackServer`, based on `FakeChatCompletions`."""

from __future__ import annotations

from typing import Final

from agentkit.testing import Route
from agentkit_openai.testing import ChatVariant, FakeChatCompletions

__all__ = ["ROUTES"]

_VARIANT: Final = ChatVariant(reasoning_field="reasoning", has_numeric_code=True)
"""Differences between vLLM's replies and OpenAI's (vLLM: docs/features/reasoning_outputs.md)."""

ROUTES: Final = (Route("vllm", r"/vllm/v1/chat/completions", FakeChatCompletions(_VARIANT), base="/vllm/v1"),)
