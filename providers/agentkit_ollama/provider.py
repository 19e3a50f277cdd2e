"""`PROVIDER`, the entry point of this package."""

from __future__ import annotations

from agentkit.provider_kit import Provider
from agentkit_ollama.convert import OllamaChatFormatter, OllamaMultiAgentFormatter
from agentkit_ollama.endpoint import ERROR_PATTERNS, OllamaEndpoint
from agentkit_ollama.logs import load_native
from agentkit_ollama.replies import OllamaStreamParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "ollama",
    OllamaChatFormatter,
    OllamaMultiAgentFormatter,
    parser=OllamaStreamParser,
    endpoint=OllamaEndpoint,
    load_native=load_native,
    testing="agentkit_ollama.testing",
    error_patterns=ERROR_PATTERNS,
)
