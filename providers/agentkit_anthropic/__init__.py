"""Anthropic Messages."""

from agentkit import Provider
from agentkit_anthropic.counting import AnthropicTokenCounter
from agentkit_anthropic.endpoint import AnthropicEndpoint
from agentkit_anthropic.messages import AnthropicChatFormatter, AnthropicMultiAgentFormatter

__all__ = [
    "AnthropicChatFormatter",
    "AnthropicEndpoint",
    "AnthropicMultiAgentFormatter",
    "AnthropicTokenCounter",
    "PROVIDER",
]

PROVIDER = Provider("anthropic", AnthropicChatFormatter, AnthropicMultiAgentFormatter, endpoint=AnthropicEndpoint)
