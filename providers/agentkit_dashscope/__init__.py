"""Providers for DashScope's native API and for its OpenAI-compatible mode.

The formatters need no SDK. Model calls need the extra `dashscope`, or `openai` for the compatible mode. Read the
module `convert` first. The module `compatible` defines the provider for the compatible mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.provider_kit import import_on_first_use

if TYPE_CHECKING:
    from agentkit_dashscope.compatible import COMPATIBLE_PROVIDER as COMPATIBLE_PROVIDER
    from agentkit_dashscope.compatible import DashScopeCompatibleChatFormatter as DashScopeCompatibleChatFormatter
    from agentkit_dashscope.compatible import (
        DashScopeCompatibleChatStreamParser as DashScopeCompatibleChatStreamParser,
    )
    from agentkit_dashscope.compatible import (
        DashScopeCompatibleMultiAgentFormatter as DashScopeCompatibleMultiAgentFormatter,
    )
    from agentkit_dashscope.compatible import load_compatible as load_compatible
    from agentkit_dashscope.convert import DashScopeChatFormatter as DashScopeChatFormatter
    from agentkit_dashscope.convert import DashScopeMultiAgentFormatter as DashScopeMultiAgentFormatter
    from agentkit_dashscope.endpoint import DashScopeEndpoint as DashScopeEndpoint
    from agentkit_dashscope.logs import load_native as load_native
    from agentkit_dashscope.provider import PROVIDER as PROVIDER
    from agentkit_dashscope.provider import parse_response as parse_response
    from agentkit_dashscope.replies import DashScopeStreamParser as DashScopeStreamParser
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit_dashscope.compatible": (
                "COMPATIBLE_PROVIDER DashScopeCompatibleChatFormatter DashScopeCompatibleChatStreamParser "
                "DashScopeCompatibleMultiAgentFormatter load_compatible"
            ),
            "agentkit_dashscope.convert": "DashScopeChatFormatter DashScopeMultiAgentFormatter",
            "agentkit_dashscope.endpoint": "DashScopeEndpoint",
            "agentkit_dashscope.logs": "load_native",
            "agentkit_dashscope.provider": "PROVIDER parse_response",
            "agentkit_dashscope.replies": "DashScopeStreamParser",
        },
    )
