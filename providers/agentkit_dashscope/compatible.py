"""DashScope's compatible mode: rows of facts over OpenAI Chat Completions."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

from agentkit.provider_kit import Capabilities, LegalConversation, MediaBlock, MediaRule, Msg, MultiAgentHistory
from agentkit_dashscope._prompt_cache import mark
from agentkit_dashscope.capabilities import LIMITS, MULTIMODAL, NAMED_CHOICE, TOOL_NAMES
from agentkit_openai import (
    CHAT,
    VENDORS_SAY,
    OpenAIChatFormatter,
    OpenAIChatStreamParser,
    beside,
    detail_of,
    load_chat,
    open_contents,
    wire_url,
)

__all__ = [
    "DashScopeCompatibleChatFormatter",
    "DashScopeCompatibleChatStreamParser",
    "DashScopeCompatibleMultiAgentFormatter",
    "load_compatible",
]

_WEB = frozenset({"http", "https"})

_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}

_LAST = frozenset({"partial"})  # model-studio, partial mode

COMPATIBLE = CHAT.override(
    {
        "name": "DashScope compatible mode",
        "issuer": "dashscope",
        "wire": "dashscope-compatible",
        "thinking.mode": "text",
        "media.image": replace(MULTIMODAL.media.image or MediaRule(), schemes=_WEB),
        "media.audio": MediaRule(types=frozenset(_SOUNDS), schemes=_WEB, limits=LIMITS),
        "media.video": MediaRule(schemes=_WEB, limits=LIMITS),
        "media.total": 0,
        "media.document": None,
        "turns.text_joining": "string",  # text models take strings alone; lists go where media is
        "turns.needs_user": True,
        "turns.speaker_names": False,
        "media.audio_by_id": False,
        "opaque.passthrough_keys": {**VENDORS_SAY, "text": VENDORS_SAY["text"] | _LAST},
        "tools.call_ids": None,
        "tools.names": TOOL_NAMES,
        "tools.choices": frozenset({"auto", "none"}),
        "tools.allowed": frozenset(),
        "output": "object",
        "cache_breakpoints": True,
    }
)


class DashScopeCompatibleChatFormatter(OpenAIChatFormatter):
    """The openai SDK with `base_url=".../compatible-mode/v1"`: `chat.completions.create(model=…, **request)`.

    cache_breakpoints    `"auto"` marks at most four content parts for the explicit context cache (see
                         `agentkit_dashscope._prompt_cache`). Texts are lists then, and each message in a frame is
                         a separate part: ask for it with models that have that cache, which take lists
    """

    base: ClassVar[Capabilities] = COMPATIBLE
    facts = (NAMED_CHOICE,)
    reasoning_field = "reasoning_content"
    empty_content = ""
    custom_calls = False
    developers = False
    last_keys = _LAST

    def capabilities(self, model: str | None = None) -> Capabilities:
        """The form of the target; with markers, texts of a turn are apart: a frame only grows by parts."""
        form = super().capabilities(model)
        return _apart(form) if self.cache_breakpoints == "auto" else form

    def mark(self, messages: list[dict[str, Any]], legal: LegalConversation) -> None:
        """`cache_control` on content parts (model-studio)."""
        open_contents(messages, lambda text: {"type": "text", "text": text})
        mark(messages, legal)

    def media_part(self, block: MediaBlock) -> dict[str, Any]:
        """`input_audio.data` is a URL or a data URL here, unlike OpenAI's raw base64 (model-studio)."""
        if block.type == "document":
            return super().media_part(block)
        url = wire_url(block.source)
        if block.type != "audio":
            kind = f"{block.type}_url"
            return {kind: {"url": url, **detail_of(block)}, "type": kind, **beside(block)}
        media_type = block.source.media_type or getattr(block.source, "guessed_type", None)
        audio = {"data": url, "format": _SOUNDS.get(media_type or "", "wav")}
        return {"type": "input_audio", "input_audio": audio, **beside(block)}


class DashScopeCompatibleMultiAgentFormatter(DashScopeCompatibleChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


class DashScopeCompatibleChatStreamParser(OpenAIChatStreamParser):
    """Reads its replies: reasoning stands in `reasoning_content` beside the text."""

    provider: ClassVar[str] = "dashscope-compatible"
    issuer: ClassVar[str] = "dashscope"
    reasoning_fields: ClassVar[tuple[str, ...]] = ("reasoning_content",)
    last_keys: ClassVar[frozenset[str]] = _LAST


def load_compatible(found: object) -> list[Msg]:
    """The messages of a log: its list of messages, or a whole request. Raises MessageError for what is none."""
    return load_chat(found, DashScopeCompatibleChatStreamParser)


@lru_cache(256)
def _apart(form: Capabilities) -> Capabilities:
    return form.override({"turns.text_joining": "apart"})
