"""Provider for Ollama's `/api/chat` API.

The formatters need no SDK. Model calls need the extra `ollama`. Read the module `convert` first.
"""

from agentkit.provider_kit import Provider
from agentkit_ollama.convert import OllamaChatFormatter, OllamaMultiAgentFormatter
from agentkit_ollama.endpoint import ERROR_PATTERNS, OllamaEndpoint
from agentkit_ollama.logs import load_native
from agentkit_ollama.replies import OllamaStreamParser

__all__ = [
    "ERROR_PATTERNS",
    "OllamaChatFormatter",
    "OllamaEndpoint",
    "OllamaMultiAgentFormatter",
    "OllamaStreamParser",
    "PROVIDER",
    "load_native",
    "parse_response",
]

parse_response = OllamaStreamParser.parse_response

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
