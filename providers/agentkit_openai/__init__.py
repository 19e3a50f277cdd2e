"""OpenAI: Chat Completions, Responses, and the frame for vendors that speak the former."""

from __future__ import annotations

from typing import Unpack

from agentkit.provider_kit import Msg, ParserOptions, Provider, as_object, native_to_json
from agentkit_openai._error_patterns import CHAT_ERRORS
from agentkit_openai._media_parts import detail_of, url_part, wire_url
from agentkit_openai._prompt_cache import mark_cache_control
from agentkit_openai.capabilities import CHAT, STRICT, TEMPLATE_CHAT, VENDOR_CHAT, VENDOR_KEYS
from agentkit_openai.compatible import OPENAI, OpenAICompatible
from agentkit_openai.convert import OpenAIChatFormatter, OpenAIMultiAgentFormatter, write_tool_choice
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
    "detail_of",
    "load_chat",
    "load_responses",
    "mark_cache_control",
    "parse_response",
    "url_part",
    "wire_url",
    "write_tool_choice",
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
    """A whole reply of Chat Completions or of Responses, told apart by its shape, as a message.

    Takes the SDK's object, its dict, or JSON text. Raises MessageError for what is neither, an error included.
    """
    found = native_to_json(reply)
    held = as_object(found)
    if held.get("object") == "response" or ("output" in held and "choices" not in held):
        return OpenAIResponsesStreamParser.parse_response(found, **options)
    return OpenAIChatStreamParser.parse_response(found, **options)
