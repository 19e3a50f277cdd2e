"""Gemini generateContent."""

from agentkit import Provider
from agentkit_gemini.contents import GeminiChatFormatter, GeminiMultiAgentFormatter
from agentkit_gemini.counting import GeminiTokenCounter

__all__ = ["GeminiChatFormatter", "GeminiMultiAgentFormatter", "GeminiTokenCounter", "PROVIDER"]

PROVIDER = Provider("gemini", GeminiChatFormatter, GeminiMultiAgentFormatter)
