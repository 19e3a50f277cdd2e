"""Ollama /api/chat."""

from agentkit import Provider
from agentkit_ollama.chat import OllamaChatFormatter, OllamaMultiAgentFormatter

__all__ = ["OllamaChatFormatter", "OllamaMultiAgentFormatter", "PROVIDER"]

PROVIDER = Provider("ollama", OllamaChatFormatter, OllamaMultiAgentFormatter)
