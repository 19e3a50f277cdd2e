"""Provider package for OpenAI Chat Completions, OpenAI Responses, Completions, and OpenAI-compatible vendors.

The package converts conversations into requests for these APIs, and reads replies and logs. Model calls use the
openai SDK, which the extra `openai` installs. The modules `capabilities`, `convert`, `replies` and `logs` are for
Chat Completions. The package `responses` has modules with the same names for OpenAI Responses. The package
`completions` has the modules `convert` and `replies` for `/v1/completions`. Servers for local models offer this
API, which continues the text of a prompt.

An `OpenAICompatible` object describes a vendor by the differences between its API and OpenAI's API. The module
`vendors` describes the vendors that have no separate package.

Read `capabilities` first, then `convert`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.provider_kit import import_on_first_use

if TYPE_CHECKING:
    from agentkit_openai._error_patterns import CHAT_ERRORS as CHAT_ERRORS
    from agentkit_openai._media_parts import get_detail as get_detail
    from agentkit_openai._media_parts import source_url as source_url
    from agentkit_openai._media_parts import write_url_part as write_url_part
    from agentkit_openai._message_keys import attach_keys as attach_keys
    from agentkit_openai._message_keys import get_message_keys as get_message_keys
    from agentkit_openai._prompt_cache import mark_cache_control as mark_cache_control
    from agentkit_openai._reply_fields import parse_usage as parse_usage
    from agentkit_openai._tool_options import write_tool_choice as write_tool_choice
    from agentkit_openai.capabilities import CHAT as CHAT
    from agentkit_openai.capabilities import STRICT as STRICT
    from agentkit_openai.compatible import OPENAI as OPENAI
    from agentkit_openai.compatible import TEMPLATE_CHAT as TEMPLATE_CHAT
    from agentkit_openai.compatible import VENDOR_CHAT as VENDOR_CHAT
    from agentkit_openai.compatible import VENDOR_KEYS as VENDOR_KEYS
    from agentkit_openai.compatible import OpenAICompatible as OpenAICompatible
    from agentkit_openai.completions.convert import OpenAICompletionsFormatter as OpenAICompletionsFormatter
    from agentkit_openai.completions.convert import (
        OpenAICompletionsMultiAgentFormatter as OpenAICompletionsMultiAgentFormatter,
    )
    from agentkit_openai.completions.replies import OpenAICompletionsParser as OpenAICompletionsParser
    from agentkit_openai.convert import OpenAIChatFormatter as OpenAIChatFormatter
    from agentkit_openai.convert import OpenAIMultiAgentFormatter as OpenAIMultiAgentFormatter
    from agentkit_openai.counting import OpenAITokenCounter as OpenAITokenCounter
    from agentkit_openai.endpoint import OpenAIChatEndpoint as OpenAIChatEndpoint
    from agentkit_openai.endpoint import OpenAICompletionsEndpoint as OpenAICompletionsEndpoint
    from agentkit_openai.endpoint import OpenAIResponsesEndpoint as OpenAIResponsesEndpoint
    from agentkit_openai.logs import load_chat as load_chat
    from agentkit_openai.provider import COMPLETIONS_PROVIDER as COMPLETIONS_PROVIDER
    from agentkit_openai.provider import PROVIDER as PROVIDER
    from agentkit_openai.provider import RESPONSES_PROVIDER as RESPONSES_PROVIDER
    from agentkit_openai.provider import parse_response as parse_response
    from agentkit_openai.replies import OpenAIChatStreamParser as OpenAIChatStreamParser
    from agentkit_openai.responses.convert import OpenAIResponsesFormatter as OpenAIResponsesFormatter
    from agentkit_openai.responses.convert import (
        OpenAIResponsesMultiAgentFormatter as OpenAIResponsesMultiAgentFormatter,
    )
    from agentkit_openai.responses.logs import load_responses as load_responses
    from agentkit_openai.responses.replies import OpenAIResponsesStreamParser as OpenAIResponsesStreamParser
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit_openai._error_patterns": "CHAT_ERRORS",
            "agentkit_openai._media_parts": "get_detail source_url write_url_part",
            "agentkit_openai._message_keys": "attach_keys get_message_keys",
            "agentkit_openai._prompt_cache": "mark_cache_control",
            "agentkit_openai._reply_fields": "parse_usage",
            "agentkit_openai._tool_options": "write_tool_choice",
            "agentkit_openai.capabilities": "CHAT STRICT",
            "agentkit_openai.compatible": "OPENAI OpenAICompatible TEMPLATE_CHAT VENDOR_CHAT VENDOR_KEYS",
            "agentkit_openai.completions.convert": (
                "OpenAICompletionsFormatter OpenAICompletionsMultiAgentFormatter"
            ),
            "agentkit_openai.completions.replies": "OpenAICompletionsParser",
            "agentkit_openai.convert": "OpenAIChatFormatter OpenAIMultiAgentFormatter",
            "agentkit_openai.counting": "OpenAITokenCounter",
            "agentkit_openai.endpoint": "OpenAIChatEndpoint OpenAICompletionsEndpoint OpenAIResponsesEndpoint",
            "agentkit_openai.logs": "load_chat",
            "agentkit_openai.provider": "COMPLETIONS_PROVIDER PROVIDER RESPONSES_PROVIDER parse_response",
            "agentkit_openai.replies": "OpenAIChatStreamParser",
            "agentkit_openai.responses.convert": "OpenAIResponsesFormatter OpenAIResponsesMultiAgentFormatter",
            "agentkit_openai.responses.logs": "load_responses",
            "agentkit_openai.responses.replies": "OpenAIResponsesStreamParser",
        },
    )
