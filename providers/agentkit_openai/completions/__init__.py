"""OpenAI's older Completions API (`/v1/completions`), which many servers of local models support.

agentkit writes the prompt with the chat template of the model, and parses the text of the reply with the response
template of the model. Servers with this API include vLLM, llama.cpp and text-generation-inference. Read `convert`
first.
"""

from __future__ import annotations

__all__: list[str] = []
