"""Gemini generateContent."""

from agentkit import Provider
from agentkit_gemini.contents import GeminiChatFormatter, GeminiMultiAgentFormatter

__all__ = ["GeminiChatFormatter", "GeminiMultiAgentFormatter", "PROVIDER"]

PROVIDER = Provider("gemini", GeminiChatFormatter, GeminiMultiAgentFormatter)
