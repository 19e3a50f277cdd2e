"""DeepSeek: rows of facts over OpenAI Chat Completions."""

from dataclasses import replace
from typing import ClassVar, Unpack

from agentkit.provider_kit import (
    Capabilities,
    MediaRule,
    ModelFact,
    Msg,
    MultiAgentHistory,
    ParserOptions,
    Provider,
    media_types,
)
from agentkit_deepseek.endpoint import DeepSeekEndpoint
from agentkit_openai import CHAT, STRICT, VENDORS_SAY, OpenAIChatFormatter, OpenAIChatStreamParser, load_chat

__all__ = [
    "DeepSeekChatFormatter",
    "DeepSeekChatStreamParser",
    "DeepSeekEndpoint",
    "DeepSeekMultiAgentFormatter",
    "PROVIDER",
    "load_native",
    "parse_response",
]

_SIGHT = MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=frozenset({"http", "https"}))
_MEDIA_TOTAL = 46_000_000  # of the 48 MiB that a request may have (guides/vision)

_LAST = frozenset({"prefix"})  # guides/chat_prefix_completion

# guides/function_calling, strict mode
_STRICT = replace(STRICT, keywords=STRICT.keywords - {"minItems", "maxItems"})

DEEPSEEK = CHAT.override(
    {
        "name": "DeepSeek",
        "issuer": "deepseek",
        "wire": "deepseek",
        "thinking.mode": "text",
        "media.image": None,  # text-only models take strings alone (api-docs.deepseek.com)
        "media.document": None,
        "media.total": _MEDIA_TOTAL,
        "turns.text_joining": "string",
        "turns.speaker_refused": "^A-Za-z0-9_-",  # the portable set: DeepSeek documents none
        "media.audio_by_id": False,
        "opaque.passthrough_keys": {**VENDORS_SAY, "text": VENDORS_SAY["text"] | _LAST},
        "tools.call_ids": None,
        "tools.strict": _STRICT,
        "tools.allowed": frozenset(),
        "tools.choices": frozenset({"auto", "none"}),  # "deepseek-reasoner does not support this tool_choice"
        "output": "object",  # no json_schema in chat (api-docs.deepseek.com)
    }
)


class DeepSeekChatFormatter(OpenAIChatFormatter):
    """The openai SDK with `base_url="https://api.deepseek.com"`: `chat.completions.create(model=…, **request)`.

    In thinking mode, the default, every assistant message of a conversation with tools must carry its
    `reasoning_content`, be it empty; without tools it is ignored. So all carry it. Reasoning that
    another system issued goes back to nobody.
    """

    base: ClassVar[Capabilities] = DEEPSEEK
    facts: ClassVar[tuple[ModelFact, ...]] = (
        ModelFact(
            r"deepseek-(flash|v4-flash)",
            {"media.image": _SIGHT},
            "api-docs.deepseek.com/guides/vision",
            "2026-11-20",
        ),
        ModelFact(
            r"deepseek-chat",
            {"thinking.mode": "never", "tools.choices": CHAT.tools.choices},
            "api-docs.deepseek.com: thinking is off, and only thinking refuses a forced tool",
            "2026-11-20",
        ),
    )
    reasoning_field = "reasoning_content"
    reasoning_always = True
    custom_calls = False
    developers = False
    last_keys = _LAST


class DeepSeekMultiAgentFormatter(DeepSeekChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


class DeepSeekChatStreamParser(OpenAIChatStreamParser):
    """Reads its replies: reasoning stands in `reasoning_content` beside the text."""

    provider: ClassVar[str] = "deepseek"
    issuer: ClassVar[str] = "deepseek"
    reasoning_fields: ClassVar[tuple[str, ...]] = ("reasoning_content",)
    last_keys: ClassVar[frozenset[str]] = _LAST


def load_native(found: object) -> list[Msg]:
    """The messages of a log: its list of messages, or a whole request. Raises MessageError for what is none."""
    return load_chat(found, DeepSeekChatStreamParser)


PROVIDER = Provider(
    "deepseek",
    DeepSeekChatFormatter,
    DeepSeekMultiAgentFormatter,
    parser=DeepSeekChatStreamParser,
    endpoint=DeepSeekEndpoint,
    load_native=load_native,
    models="deepseek-",
    testing="agentkit_deepseek.testing",
)


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """A whole reply, as the SDK's object, its dict or JSON text, as a message.

    Raises MessageError for what is none, an error of the server's included.
    """
    return DeepSeekChatStreamParser.parse_response(reply, **options)
