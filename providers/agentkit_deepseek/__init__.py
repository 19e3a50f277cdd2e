"""Provider package for DeepSeek, whose chat API follows OpenAI Chat Completions.

`DeepSeekChatFormatter` is for conversations of one agent, and `DeepSeekMultiAgentFormatter` for conversations of
many agents. Requests are sent through the openai SDK, which the extra `openai` installs. The API key comes from
the environment variable DEEPSEEK_API_KEY.

Comments name the page of api-docs.deepseek.com that documents a fact. The pages were read on 2026-11-20 and
2026-11-22.
"""

from __future__ import annotations

from dataclasses import replace

from agentkit.provider_kit import MediaRule, ModelFact, MultiAgentHistory, media_types
from agentkit_openai import CHAT, STRICT, VENDOR_CHAT, VENDOR_KEYS, OpenAIChatFormatter, OpenAICompatible

__all__ = [
    "DeepSeekChatFormatter",
    "DeepSeekChatStreamParser",
    "DeepSeekMultiAgentFormatter",
    "PROVIDER",
    "load_native",
    "parse_response",
]

_LAST = frozenset({"prefix"})  # `prefix` asks the model to continue the message (guides/chat_prefix_completion)

DEEPSEEK = VENDOR_CHAT.override(
    {
        "name": "DeepSeek",
        "thinking.mode": "text",
        "media.image": None,  # models without vision accept only text (api-docs.deepseek.com)
        "media.total": 46_000_000,  # base64 characters; a request can have at most 48 MiB (guides/vision)
        "turns.text_joining": "string",
        "turns.speaker_names": True,
        # DeepSeek documents no rule for speaker names. Most APIs accept letters, digits, "_" and "-".
        "turns.speaker_refused": "^A-Za-z0-9_-",
        # agentkit 0.3.0 stored the key `message.prefix` as `prefix`. Both keys are accepted.
        "opaque.passthrough_keys": {**VENDOR_KEYS, "text": VENDOR_KEYS["text"] | _LAST},
        "tools.call_ids": None,
        # DeepSeek's strict mode accepts fewer keywords than OpenAI's (guides/function_calling).
        "tools.strict": replace(STRICT, keywords=STRICT.keywords - {"minItems", "maxItems"}),
        # In thinking mode, DeepSeek refuses tool choices that force a tool call. Error text: "deepseek-reasoner
        # does not support this tool_choice".
        "tools.choices": frozenset({"auto", "none"}),
        "output": "object",  # `response_format` has no type `json_schema` (api-docs.deepseek.com)
    }
)

_FACTS = (
    ModelFact(
        r"deepseek-(flash|v4-flash)",
        {
            "media.image": MediaRule(
                types=media_types("image", "png jpeg webp gif"), schemes=frozenset({"http", "https"})
            )
        },
        "api-docs.deepseek.com/guides/vision",
        "2026-11-20",
    ),
    ModelFact(
        r"deepseek-chat",
        {"thinking.mode": "never", "tools.choices": CHAT.tools.choices},
        "api-docs.deepseek.com: this model has no thinking mode, so it accepts forced tool calls",
        "2026-11-20",
    ),
)

ROW = OpenAICompatible(
    name="deepseek",
    title="DeepSeek",
    capabilities=DEEPSEEK,
    facts=_FACTS,
    models="deepseek-",
    address="https://api.deepseek.com",
    key="DEEPSEEK_API_KEY",
    reasoning_field="reasoning_content",
    reasoning_fields=("reasoning_content",),
    reasoning_always=True,  # with tools, assistant messages need reasoning_content (guides/thinking_mode)
    last_keys=_LAST,
    testing="agentkit_deepseek.testing",
)


class DeepSeekChatFormatter(OpenAIChatFormatter):
    """Formatter for DeepSeek. Send a request with `chat.completions.create(model=…, **request)`.

    The `AsyncOpenAI` client needs `base_url="https://api.deepseek.com"`. The API has a thinking mode, which is on
    by default. In thinking mode, each assistant message of a conversation with tools must have the key
    `reasoning_content`, even if its value is empty. Without tools, the API ignores the key. The formatter
    therefore writes the key in all assistant messages, except for models without a thinking mode. Reasoning from
    models of other vendors is omitted.
    """

    vendor = ROW


class DeepSeekMultiAgentFormatter(DeepSeekChatFormatter):
    """Formatter for conversations of many agents, with the request format of `DeepSeekChatFormatter`."""

    default_history = MultiAgentHistory


PROVIDER = ROW.provider(DeepSeekChatFormatter, DeepSeekMultiAgentFormatter)
DeepSeekChatStreamParser = ROW.parser
load_native = ROW.load_native
parse_response = DeepSeekChatStreamParser.parse_response
