"""Provider for Anthropic's Messages API, which is also available through Bedrock, Vertex and Foundry.

The formatters need no SDK. Model calls need the extra `anthropic`. Read `convert` first.
"""

from agentkit.provider_kit import Provider
from agentkit_anthropic.convert import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from agentkit_anthropic.counting import AnthropicTokenCounter
from agentkit_anthropic.endpoint import ERROR_PATTERNS, AnthropicEndpoint
from agentkit_anthropic.logs import load_native
from agentkit_anthropic.replies import AnthropicStreamParser

__all__ = [
    "AnthropicChatFormatter",
    "AnthropicEndpoint",
    "AnthropicMultiAgentFormatter",
    "AnthropicStreamParser",
    "AnthropicTokenCounter",
    "ERROR_PATTERNS",
    "PROVIDER",
    "load_native",
    "parse_response",
]

parse_response = AnthropicStreamParser.parse_response

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
