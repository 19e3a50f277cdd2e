"""DashScope: its native wire, and its OpenAI-compatible mode."""

from agentkit import Provider
from agentkit_dashscope.compatible import (
    DashScopeCompatibleChatFormatter,
    DashScopeCompatibleChatStreamParser,
    DashScopeCompatibleMultiAgentFormatter,
)
from agentkit_dashscope.endpoint import DashScopeCompatibleEndpoint, DashScopeEndpoint
from agentkit_dashscope.native import DashScopeChatFormatter, DashScopeMultiAgentFormatter
from agentkit_dashscope.replies import DashScopeStreamParser

__all__ = [
    "COMPATIBLE_PROVIDER",
    "DashScopeChatFormatter",
    "DashScopeCompatibleChatFormatter",
    "DashScopeCompatibleChatStreamParser",
    "DashScopeCompatibleEndpoint",
    "DashScopeCompatibleMultiAgentFormatter",
    "DashScopeEndpoint",
    "DashScopeMultiAgentFormatter",
    "DashScopeStreamParser",
    "PROVIDER",
]

PROVIDER = Provider(
    "dashscope",
    DashScopeChatFormatter,
    DashScopeMultiAgentFormatter,
    parser=DashScopeStreamParser,
    endpoint=DashScopeEndpoint,
)
COMPATIBLE_PROVIDER = Provider(
    "dashscope-compatible",
    DashScopeCompatibleChatFormatter,
    DashScopeCompatibleMultiAgentFormatter,
    parser=DashScopeCompatibleChatStreamParser,
    endpoint=DashScopeCompatibleEndpoint,
)
