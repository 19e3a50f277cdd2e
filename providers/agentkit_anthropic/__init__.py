"""Provider for Anthropic's Messages API, which is also available through Bedrock, Vertex and Foundry.

The formatters need no SDK. Model calls need the extra `anthropic`. Read the module `convert` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.provider_kit import import_on_first_use

if TYPE_CHECKING:
    from agentkit_anthropic.convert import AnthropicChatFormatter as AnthropicChatFormatter
    from agentkit_anthropic.convert import AnthropicMultiAgentFormatter as AnthropicMultiAgentFormatter
    from agentkit_anthropic.counting import AnthropicTokenCounter as AnthropicTokenCounter
    from agentkit_anthropic.endpoint import ERROR_PATTERNS as ERROR_PATTERNS
    from agentkit_anthropic.endpoint import AnthropicEndpoint as AnthropicEndpoint
    from agentkit_anthropic.logs import load_native as load_native
    from agentkit_anthropic.provider import PROVIDER as PROVIDER
    from agentkit_anthropic.replies import AnthropicStreamParser as AnthropicStreamParser
    from agentkit_anthropic.replies import parse_response as parse_response
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit_anthropic.convert": "AnthropicChatFormatter AnthropicMultiAgentFormatter",
            "agentkit_anthropic.counting": "AnthropicTokenCounter",
            "agentkit_anthropic.endpoint": "AnthropicEndpoint ERROR_PATTERNS",
            "agentkit_anthropic.logs": "load_native",
            "agentkit_anthropic.provider": "PROVIDER",
            "agentkit_anthropic.replies": "AnthropicStreamParser parse_response",
        },
    )
