"""Ollama's `/api/generate` API in raw mode, which continues the text of a prompt.

agentkit writes the prompt with the chat template of the model, and parses the text of the reply with the
response template of the model. Read `convert` first.
"""

from __future__ import annotations

__all__: list[str] = []
