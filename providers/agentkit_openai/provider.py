"""`PROVIDER`, `RESPONSES_PROVIDER` and `COMPLETIONS_PROVIDER`, the entry points for OpenAI's three APIs."""

from __future__ import annotations

from typing import Unpack

from agentkit.provider_kit import Msg, ParserOptions, Provider, as_object, native_to_json
from agentkit_openai._error_patterns import CHAT_ERRORS
from agentkit_openai.compatible import OPENAI
from agentkit_openai.completions.convert import (
    OpenAICompletionsFormatter,
    OpenAICompletionsMultiAgentFormatter,
)
from agentkit_openai.completions.replies import OpenAICompletionsParser
from agentkit_openai.convert import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from agentkit_openai.endpoint import OpenAIChatEndpoint, OpenAICompletionsEndpoint, OpenAIResponsesEndpoint
from agentkit_openai.logs import load_chat
from agentkit_openai.replies import OpenAIChatStreamParser
from agentkit_openai.responses.convert import OpenAIResponsesFormatter, OpenAIResponsesMultiAgentFormatter
from agentkit_openai.responses.logs import load_responses
from agentkit_openai.responses.replies import OpenAIResponsesStreamParser

__all__ = ["COMPLETIONS_PROVIDER", "PROVIDER", "RESPONSES_PROVIDER", "parse_response"]

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
COMPLETIONS_PROVIDER = Provider(
    OpenAICompletionsEndpoint.provider,
    OpenAICompletionsFormatter,
    OpenAICompletionsMultiAgentFormatter,
    parser=OpenAICompletionsParser,
    endpoint=OpenAICompletionsEndpoint,
    testing="agentkit_openai.completions.testing",
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
