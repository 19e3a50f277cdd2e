"""DashScope: its native wire, and its OpenAI-compatible mode."""

from agentkit import Provider
from agentkit_dashscope.compatible import (
    DashScopeCompatibleChatFormatter,
    DashScopeCompatibleChatStreamParser,
    DashScopeCompatibleMultiAgentFormatter,
    load_compatible,
)
from agentkit_dashscope.native import DashScopeChatFormatter, DashScopeMultiAgentFormatter

__all__ = [
    "COMPATIBLE_PROVIDER",
    "DashScopeChatFormatter",
    "DashScopeCompatibleChatFormatter",
    "DashScopeCompatibleChatStreamParser",
    "DashScopeCompatibleMultiAgentFormatter",
    "DashScopeMultiAgentFormatter",
    "PROVIDER",
    "load_compatible",
]

PROVIDER = Provider("dashscope", DashScopeChatFormatter, DashScopeMultiAgentFormatter)
COMPATIBLE_PROVIDER = Provider(
    "dashscope-compatible",
    DashScopeCompatibleChatFormatter,
    DashScopeCompatibleMultiAgentFormatter,
    parser=DashScopeCompatibleChatStreamParser,
    load_native=load_compatible,
)
