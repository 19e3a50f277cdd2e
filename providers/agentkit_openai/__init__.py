"""OpenAI: Chat Completions, Responses, and the frame for vendors that speak the former."""

from agentkit import Provider
from agentkit_openai.caching import ChatPlaces, chat_places, open_contents
from agentkit_openai.chat import (
    CHAT,
    OpenAIChatFormatter,
    OpenAIMultiAgentFormatter,
    wire_url,
)
from agentkit_openai.counting import OpenAITokenCounter
from agentkit_openai.endpoint import OpenAIChatEndpoint, OpenAIResponsesEndpoint
from agentkit_openai.responses import OpenAIResponsesFormatter, OpenAIResponsesMultiAgentFormatter

__all__ = [
    "CHAT",
    "ChatPlaces",
    "OpenAIChatEndpoint",
    "OpenAIChatFormatter",
    "OpenAIMultiAgentFormatter",
    "OpenAIResponsesEndpoint",
    "OpenAIResponsesFormatter",
    "OpenAIResponsesMultiAgentFormatter",
    "OpenAITokenCounter",
    "PROVIDER",
    "RESPONSES_PROVIDER",
    "chat_places",
    "open_contents",
    "wire_url",
]

PROVIDER = Provider("openai", OpenAIChatFormatter, OpenAIMultiAgentFormatter, endpoint=OpenAIChatEndpoint)
RESPONSES_PROVIDER = Provider(
    "openai-responses",
    OpenAIResponsesFormatter,
    OpenAIResponsesMultiAgentFormatter,
    endpoint=OpenAIResponsesEndpoint,
)
