"""`PROVIDER`, the entry point of this package."""

from __future__ import annotations

from agentkit.provider_kit import Provider
from agentkit_anthropic.convert import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from agentkit_anthropic.endpoint import ERROR_PATTERNS, AnthropicEndpoint
from agentkit_anthropic.logs import load_native
from agentkit_anthropic.replies import AnthropicStreamParser

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    "anthropic",
    AnthropicChatFormatter,
    AnthropicMultiAgentFormatter,
    parser=AnthropicStreamParser,
    endpoint=AnthropicEndpoint,
    load_native=load_native,
    models="claude-",
    testing="agentkit_anthropic.testing",
    error_patterns=ERROR_PATTERNS,
)
