"""OpenAI's older Completions API (`/v1/completions`), which many servers of local models have.

agentkit writes the prompt with the chat template of the model, and reads the text of the reply with its response
template. The servers are vLLM, llama.cpp, text-generation-inference and others with the same API. Read `convert`
first.
"""

from __future__ import annotations

__all__: list[str] = []
