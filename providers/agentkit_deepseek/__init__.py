"""DeepSeek's chat API, as a row of facts over OpenAI Chat Completions.

`DeepSeekChatFormatter` is for one agent, `DeepSeekMultiAgentFormatter` for many. Requests go out through the
openai SDK (extra `openai`), with the key in DEEPSEEK_API_KEY. Sources: the pages of api-docs.deepseek.com that the
comments name, read 2026-11-20 and 2026-11-22.
"""

from __future__ import annotations

from dataclasses import replace

from agentkit.provider_kit import MediaRule, ModelFact, MultiAgentHistory, media_types
from agentkit_openai import CHAT, STRICT, VENDOR_KEYS, OpenAIChatFormatter, OpenAICompatible

__all__ = [
    "DeepSeekChatFormatter",
    "DeepSeekChatStreamParser",
    "DeepSeekMultiAgentFormatter",
    "PROVIDER",
    "load_native",
    "parse_response",
]

_VISION = MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=frozenset({"http", "https"}))
_MEDIA_TOTAL = 46_000_000  # below the limit of 48 MiB for a request (guides/vision)

_LAST = frozenset({"prefix"})  # guides/chat_prefix_completion

# guides/function_calling, strict mode
_STRICT = replace(STRICT, keywords=STRICT.keywords - {"minItems", "maxItems"})

DEEPSEEK = CHAT.override(
    {
        "name": "DeepSeek",
        "issuer": "deepseek",
        "wire": "deepseek",
        "thinking.mode": "text",
        "media.image": None,  # models without vision accept only strings (api-docs.deepseek.com)
        "media.document": None,
        "media.total": _MEDIA_TOTAL,
        "turns.text_joining": "string",
        "turns.speaker_refused": "^A-Za-z0-9_-",  # the portable characters: DeepSeek documents no rule
        "media.audio_by_id": False,
        "opaque.passthrough_keys": {**VENDOR_KEYS, "text": VENDOR_KEYS["text"] | _LAST},
        "tools.call_ids": None,
        "tools.strict": _STRICT,
        "tools.allowed": frozenset(),
        "tools.choices": frozenset({"auto", "none"}),  # "deepseek-reasoner does not support this tool_choice"
        "output": "object",  # no json_schema in chat (api-docs.deepseek.com)
    }
)

_FACTS = (
    ModelFact(
        r"deepseek-(flash|v4-flash)",
        {"media.image": _VISION},
        "api-docs.deepseek.com/guides/vision",
        "2026-11-20",
    ),
    ModelFact(
        r"deepseek-chat",
        {"thinking.mode": "never", "tools.choices": CHAT.tools.choices},
        "api-docs.deepseek.com: thinking is off, and only thinking mode refuses a forced tool",
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
    reasoning_always=True,  # guides/thinking_mode: with tools, each assistant message must have it
    last_keys=_LAST,
    testing="agentkit_deepseek.testing",
)


class DeepSeekChatFormatter(OpenAIChatFormatter):
    """Formatter for `chat.completions.create(model=…, **request)`, with `base_url="https://api.deepseek.com"`.

    In thinking mode, the default, each assistant message of a conversation with tools must have
    `reasoning_content`, even with an empty text. Without tools, the API ignores this key. So the formatter writes
    the key for all assistant messages. Reasoning of other issuers is omitted.
    """

    vendor = ROW


class DeepSeekMultiAgentFormatter(DeepSeekChatFormatter):
    """`DeepSeekChatFormatter` for conversations of many agents."""

    default_history = MultiAgentHistory


PROVIDER = ROW.provider(DeepSeekChatFormatter, DeepSeekMultiAgentFormatter)
DeepSeekChatStreamParser = ROW.parser
load_native = ROW.load_native
parse_response = ROW.parse_response
