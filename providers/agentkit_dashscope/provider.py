"""`PROVIDER`, the entry point for DashScope's native API."""

from __future__ import annotations

from typing import Unpack

from agentkit.provider_kit import Msg, ParserOptions, Provider, as_object, native_to_json
from agentkit_dashscope.compatible import DashScopeCompatibleChatStreamParser
from agentkit_dashscope.convert import DashScopeChatFormatter, DashScopeMultiAgentFormatter
from agentkit_dashscope.endpoint import DashScopeEndpoint
from agentkit_dashscope.logs import load_native
from agentkit_dashscope.replies import DashScopeStreamParser
from agentkit_openai import CHAT_ERRORS

__all__ = ["PROVIDER", "parse_response"]

PROVIDER = Provider(
    "dashscope",
    DashScopeChatFormatter,
    DashScopeMultiAgentFormatter,
    parser=DashScopeStreamParser,
    endpoint=DashScopeEndpoint,
    load_native=load_native,
    models=r"qwen|qwq-|qvq-",
    testing="agentkit_dashscope.testing",
    error_patterns=CHAT_ERRORS,
)


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """Parses a complete reply of DashScope's native API or of its OpenAI-compatible mode.

    A reply with the field `object` is from the compatible mode. Replies of the native API do not have this field.

    Raises:
        MessageError: The value is not a reply of DashScope, or the reply is an error.
    """
    fields = native_to_json(reply)
    if "object" in as_object(fields):
        return DashScopeCompatibleChatStreamParser.parse_response(fields, **options)
    return DashScopeStreamParser.parse_response(fields, **options)
