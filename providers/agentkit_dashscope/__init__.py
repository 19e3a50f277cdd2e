"""DashScope: its native wire, and its OpenAI-compatible mode."""

from __future__ import annotations

from typing import Unpack

from agentkit.provider_kit import Msg, ParserOptions, Provider, as_object, native_to_json
from agentkit_dashscope.compatible import (
    COMPATIBLE_PROVIDER,
    DashScopeCompatibleChatFormatter,
    DashScopeCompatibleChatStreamParser,
    DashScopeCompatibleMultiAgentFormatter,
    load_compatible,
)
from agentkit_dashscope.convert import DashScopeChatFormatter, DashScopeMultiAgentFormatter
from agentkit_dashscope.endpoint import DashScopeEndpoint
from agentkit_dashscope.logs import load_native
from agentkit_dashscope.replies import DashScopeStreamParser

__all__ = [
    "COMPATIBLE_PROVIDER",
    "DashScopeChatFormatter",
    "DashScopeCompatibleChatFormatter",
    "DashScopeCompatibleChatStreamParser",
    "DashScopeCompatibleMultiAgentFormatter",
    "DashScopeEndpoint",
    "DashScopeMultiAgentFormatter",
    "DashScopeStreamParser",
    "PROVIDER",
    "load_compatible",
    "load_native",
    "parse_response",
]

PROVIDER = Provider(
    "dashscope",
    DashScopeChatFormatter,
    DashScopeMultiAgentFormatter,
    parser=DashScopeStreamParser,
    endpoint=DashScopeEndpoint,
    load_native=load_native,
    models=r"qwen|qwq-|qvq-",
    testing="agentkit_dashscope.testing",
)


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """A whole reply of DashScope's own wire or of its compatible mode, told apart by its shape, as a message.

    The compatible mode names its kind in `object`. Raises MessageError for what is no reply of DashScope.
    """
    found = native_to_json(reply)
    if "object" in as_object(found):
        return DashScopeCompatibleChatStreamParser.parse_response(found, **options)
    return DashScopeStreamParser.parse_response(found, **options)
