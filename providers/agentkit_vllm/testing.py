"""Fake vLLM service for `agentkit.testing.LoopbackServer`."""

from __future__ import annotations

from typing import Final

from agentkit_openai.testing import FakeChatCompletions, chat_route

__all__ = ["ROUTES"]

# The arguments describe how vLLM's replies differ from OpenAI's (vLLM, docs/features/reasoning_outputs.md).
ROUTES: Final = (chat_route("vllm", FakeChatCompletions(reasoning_field="reasoning", has_numeric_code=True)),)
