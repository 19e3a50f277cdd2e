"""Gemini generateContent."""

from agentkit import Provider
from agentkit_gemini.contents import GeminiChatFormatter, GeminiMultiAgentFormatter
from agentkit_gemini.counting import GeminiTokenCounter
from agentkit_gemini.endpoint import GeminiEndpoint

__all__ = [
    "GeminiChatFormatter",
    "GeminiEndpoint",
    "GeminiMultiAgentFormatter",
    "GeminiTokenCounter",
    "PROVIDER",
]

PROVIDER = Provider("gemini", GeminiChatFormatter, GeminiMultiAgentFormatter, endpoint=GeminiEndpoint)
