"""`PROVIDER` and `RAW_PROVIDER`, the entry points of this package."""

from __future__ import annotations

from agentkit.provider_kit import Provider
from agentkit_ollama.convert import OllamaChatFormatter, OllamaMultiAgentFormatter
from agentkit_ollama.endpoint import ERROR_PATTERNS, OllamaEndpoint, OllamaRawEndpoint
from agentkit_ollama.logs import load_native
from agentkit_ollama.raw.convert import OllamaRawFormatter, OllamaRawMultiAgentFormatter
from agentkit_ollama.raw.replies import OllamaRawParser
from agentkit_ollama.replies import OllamaStreamParser

__all__ = ["PROVIDER", "RAW_PROVIDER"]

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
RAW_PROVIDER = Provider(
    "ollama-raw",
    OllamaRawFormatter,
    OllamaRawMultiAgentFormatter,
    parser=OllamaRawParser,
    endpoint=OllamaRawEndpoint,
    testing="agentkit_ollama.raw.testing",
    error_patterns=ERROR_PATTERNS,
)
