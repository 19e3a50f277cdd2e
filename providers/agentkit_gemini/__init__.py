"""Gemini generateContent."""

from agentkit.provider_kit import Provider
from agentkit_gemini.convert import GeminiChatFormatter, GeminiMultiAgentFormatter
from agentkit_gemini.counting import GeminiTokenCounter
from agentkit_gemini.endpoint import GeminiEndpoint
from agentkit_gemini.logs import load_native
from agentkit_gemini.replies import GeminiStreamParser, parse_response

__all__ = [
    "GeminiChatFormatter",
    "GeminiEndpoint",
    "GeminiMultiAgentFormatter",
    "GeminiStreamParser",
    "GeminiTokenCounter",
    "PROVIDER",
    "load_native",
    "parse_response",
]

PROVIDER = Provider(
    "gemini",
    GeminiChatFormatter,
    GeminiMultiAgentFormatter,
    parser=GeminiStreamParser,
    endpoint=GeminiEndpoint,
    load_native=load_native,
    models="gemini-",
    testing="agentkit_gemini.testing",
)
