"""vLLM's OpenAI-compatible server: rows of facts over OpenAI Chat Completions."""

from dataclasses import replace
from typing import Any, ClassVar, Unpack

from agentkit.provider_kit import (
    Capabilities,
    MediaBlock,
    MediaRule,
    ModelFact,
    Msg,
    MultiAgentHistory,
    NameRule,
    ParserOptions,
    Provider,
    media_types,
)
from agentkit_openai import (
    CHAT,
    VENDORS_SAY,
    OpenAIChatFormatter,
    OpenAIChatStreamParser,
    beside,
    detail_of,
    load_chat,
    wire_url,
)
from agentkit_vllm.counting import VLLMTokenCounter
from agentkit_vllm.endpoint import VLLMEndpoint

__all__ = [
    "PROVIDER",
    "VLLMChatFormatter",
    "VLLMChatStreamParser",
    "VLLMEndpoint",
    "VLLMMultiAgentFormatter",
    "VLLMTokenCounter",
    "load_native",
    "parse_response",
]

_ANY = MediaRule(schemes=frozenset({"http", "https"}))

VLLM = CHAT.override(
    {
        "name": "vLLM",
        "issuer": "vllm",
        "wire": "vllm",
        "thinking.mode": "text",
        # what the server's PIL opens
        "media.image": replace(_ANY, types=media_types("image", "png jpeg webp gif bmp tiff")),
        "media.audio": _ANY,
        "media.video": _ANY,
        "media.total": 0,  # what a server takes is its own setting: --limit-mm-per-prompt
        "media.document": None,  # "Unsupported chat content part type: 'file'"
        # a string template joins the parts of a message by line breaks (vLLM's docs)
        "turns.text_joining": "glued",
        "turns.late_system": "line",  # several templates take one system message, first
        "turns.one_system": True,
        "turns.merge": True,  # … and want the roles to alternate
        "turns.first_user": True,
        "turns.needs_user": True,
        "turns.speaker_names": False,
        "tools.allowed": frozenset(),
        "media.audio_by_id": False,
        "opaque.passthrough_keys": VENDORS_SAY,
        # Mistral's and Gemma's: "Conversation roles must alternate", results being no turn
        "turns.alternate": True,
        # Mistral's and the Hugging Face templates demand exactly nine letters or digits; the others take any id
        "tools.call_ids": NameRule(pattern=r"[A-Za-z0-9]{9}", limit=9),
    }
)


class VLLMChatFormatter(OpenAIChatFormatter):
    """The openai SDK with the server's `base_url`: `chat.completions.create(model=…, **request)`.

    Without a model's name the request has the shape that the strictest chat templates take: one system
    message, alternating turns (`RESULT_TURN` stands between a tool result and a user turn), the user first, call
    ids of nine letters or digits. `model_rules` declares what else a model's template refuses.
    """

    base: ClassVar[Capabilities] = VLLM
    facts: ClassVar[tuple[ModelFact, ...]] = (
        ModelFact(
            r".*kimi",
            {"tools.call_ids": None},
            "Kimi K2's template wants its `functions.name:0` back unchanged (Kimi-K2: tool_call_guidance.md)",
            "2026-11-22",
        ),
    )
    reasoning_field = "reasoning"  # the request's field in current source; older servers ignore it (vLLM's docs)
    custom_calls = False
    developers = False

    def media_part(self, block: MediaBlock) -> dict[str, Any]:
        """`image_url`, `audio_url` or `video_url`, each with a URL or a data URL."""
        if block.type == "document":
            return super().media_part(block)
        kind = f"{block.type}_url"
        return {"type": kind, kind: {"url": wire_url(block.source), **detail_of(block)}, **beside(block)}


class VLLMMultiAgentFormatter(VLLMChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


class VLLMChatStreamParser(OpenAIChatStreamParser):
    """Reads its replies: reasoning stands in `reasoning`; older servers call it `reasoning_content`, some both."""

    provider: ClassVar[str] = "vllm"
    issuer: ClassVar[str] = "vllm"
    reasoning_fields: ClassVar[tuple[str, ...]] = ("reasoning", "reasoning_content")


def load_native(found: object) -> list[Msg]:
    """The messages of a log: its list of messages, or a whole request. Raises MessageError for what is none."""
    return load_chat(found, VLLMChatStreamParser)


PROVIDER = Provider(
    "vllm",
    VLLMChatFormatter,
    VLLMMultiAgentFormatter,
    parser=VLLMChatStreamParser,
    endpoint=VLLMEndpoint,
    load_native=load_native,
    testing="agentkit_vllm.testing",
)


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """A whole reply, as the SDK's object, its dict or JSON text, as a message.

    Raises MessageError for what is none, an error of the server's included.
    """
    return VLLMChatStreamParser.parse_response(reply, **options)
