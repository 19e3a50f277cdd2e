"""Provider package for OpenAI Chat Completions, OpenAI Responses, and OpenAI-compatible vendors.

The package converts conversations into requests for both APIs of OpenAI, and reads replies and logs. It sends
requests through the openai SDK, which the extra `openai` installs. The modules `capabilities`, `convert`,
`replies` and `logs` are for Chat Completions. The package `responses` has modules with the same names for OpenAI
Responses.

An `OpenAICompatible` object describes a vendor by the differences between its API and OpenAI's API. The module
`vendors` describes the vendors that have no separate package.

Read `capabilities` first, then `convert`.
"""

from __future__ import annotations

from typing import Unpack

from agentkit.provider_kit import Msg, ParserOptions, Provider, as_object, native_to_json
from agentkit_openai._error_patterns import CHAT_ERRORS
from agentkit_openai._media_parts import get_detail, source_url, write_url_part
from agentkit_openai._message_keys import attach_keys, get_message_keys
from agentkit_openai._prompt_cache import mark_cache_control
from agentkit_openai._reply_fields import parse_usage
from agentkit_openai._tool_options import write_tool_choice
from agentkit_openai.capabilities import CHAT, STRICT
from agentkit_openai.compatible import OPENAI, TEMPLATE_CHAT, VENDOR_CHAT, VENDOR_KEYS, OpenAICompatible
from agentkit_openai.convert import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from agentkit_openai.counting import OpenAITokenCounter
from agentkit_openai.endpoint import OpenAIChatEndpoint, OpenAIResponsesEndpoint
from agentkit_openai.logs import load_chat
from agentkit_openai.replies import OpenAIChatStreamParser
from agentkit_openai.responses.convert import OpenAIResponsesFormatter, OpenAIResponsesMultiAgentFormatter
from agentkit_openai.responses.logs import load_responses
from agentkit_openai.responses.replies import OpenAIResponsesStreamParser

__all__ = [
    "CHAT",
    "CHAT_ERRORS",
    "OPENAI",
    "OpenAIChatEndpoint",
    "OpenAIChatFormatter",
    "OpenAIChatStreamParser",
    "OpenAICompatible",
    "OpenAIMultiAgentFormatter",
    "OpenAIResponsesEndpoint",
    "OpenAIResponsesFormatter",
    "OpenAIResponsesMultiAgentFormatter",
    "OpenAIResponsesStreamParser",
    "OpenAITokenCounter",
    "PROVIDER",
    "RESPONSES_PROVIDER",
    "STRICT",
    "TEMPLATE_CHAT",
    "VENDOR_CHAT",
    "VENDOR_KEYS",
    "attach_keys",
    "get_detail",
    "get_message_keys",
    "load_chat",
    "load_responses",
    "mark_cache_control",
    "parse_response",
    "parse_usage",
    "source_url",
    "write_tool_choice",
    "write_url_part",
]

PROVIDER = Provider(
    OPENAI.name,
    OpenAIChatFormatter,
    OpenAIMultiAgentFormatter,
    parser=OpenAIChatStreamParser,
    endpoint=OpenAIChatEndpoint,
    load_native=load_chat,
    models=OPENAI.models,
    testing=OPENAI.testing,
    error_patterns=CHAT_ERRORS,
)
RESPONSES_PROVIDER = Provider(
    "openai-responses",
    OpenAIResponsesFormatter,
    OpenAIResponsesMultiAgentFormatter,
    parser=OpenAIResponsesStreamParser,
    endpoint=OpenAIResponsesEndpoint,
    load_native=load_responses,
    testing="agentkit_openai.responses.testing",
    error_patterns=CHAT_ERRORS,
)


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """Parses a complete reply from Chat Completions or Responses into a message.

    Args:
        reply: Reply as an SDK object, a dict or JSON text. The parser recognizes the API by the reply's keys.
        options: Options of the parser (see `ParserOptions`).

    Raises:
        MessageError: `reply` is not a reply from either API, or the reply reports an error.
    """
    value = native_to_json(reply)
    fields = as_object(value)
    if fields.get("object") == "response" or ("output" in fields and "choices" not in fields):
        return OpenAIResponsesStreamParser.parse_response(value, **options)
    return OpenAIChatStreamParser.parse_response(value, **options)
