"""`PROVIDER`, the entry point of this package."""

from __future__ import annotations

from agentkit.provider_kit import Provider
from agentkit_gemini._errors import ERROR_PATTERNS
from agentkit_gemini.convert import GeminiChatFormatter, GeminiMultiAgentFormatter
from agentkit_gemini.endpoint import GeminiEndpoint
from agentkit_gemini.logs import load_native
from agentkit_gemini.replies import GeminiStreamParser

__all__ = ["PROVIDER"]

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
