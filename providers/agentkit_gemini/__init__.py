"""Provider for Gemini's `generateContent` API, on the Gemini Developer API and on Vertex AI.

The formatters need no SDK. Model calls need the extra `gemini`. Read the module `convert` first.
"""

from agentkit.provider_kit import Provider
from agentkit_gemini._errors import ERROR_PATTERNS
from agentkit_gemini.convert import GeminiChatFormatter, GeminiMultiAgentFormatter
from agentkit_gemini.counting import GeminiTokenCounter
from agentkit_gemini.endpoint import GeminiEndpoint
from agentkit_gemini.logs import load_native
from agentkit_gemini.replies import GeminiStreamParser

__all__ = [
    "ERROR_PATTERNS",
    "GeminiChatFormatter",
    "GeminiEndpoint",
    "GeminiMultiAgentFormatter",
    "GeminiStreamParser",
    "GeminiTokenCounter",
    "PROVIDER",
    "load_native",
    "parse_response",
]

parse_response = GeminiStreamParser.parse_response

PROVIDER = Provider(
    "gemini",
    GeminiChatFormatter,
    GeminiMultiAgentFormatter,
    parser=GeminiStreamParser,
    endpoint=GeminiEndpoint,
    load_native=load_native,
    models="gemini-",
    testing="agentkit_gemini.testing",
    error_patterns=ERROR_PATTERNS,
)
