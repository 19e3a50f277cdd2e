"""DashScope's OpenAI-compatible mode, described as a variant of OpenAI Chat Completions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentkit.provider_kit import MediaBlock, MediaRule, MultiAgentHistory
from agentkit_dashscope.capabilities import LIMITS, MULTIMODAL, NAMED_CHOICE, TOOL_NAMES
from agentkit_openai import (
    VENDOR_CHAT,
    VENDOR_KEYS,
    OpenAIChatFormatter,
    OpenAICompatible,
    get_detail,
    mark_cache_control,
    source_url,
)

__all__ = [
    "COMPATIBLE_PROVIDER",
    "DashScopeCompatibleChatFormatter",
    "DashScopeCompatibleChatStreamParser",
    "DashScopeCompatibleMultiAgentFormatter",
    "load_compatible",
]

_WEB = frozenset({"http", "https"})

_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}

_LAST_KEYS = frozenset({"partial"})  # only the last message can have this key (Model Studio docs: partial mode)

COMPATIBLE = VENDOR_CHAT.override(
    {
        "name": "DashScope compatible mode",
        "issuer": "dashscope",
        "thinking.mode": "text",
        "media.image": replace(MULTIMODAL.media.image or MediaRule(), schemes=_WEB),
        "media.audio": MediaRule(types=frozenset(_AUDIO_FORMATS), schemes=_WEB, limits=LIMITS),
        "media.video": MediaRule(schemes=_WEB, limits=LIMITS),
        # Text models accept only strings as content. Only messages with media need a list of parts.
        "turns.text_joining": "string",
        "turns.needs_user": True,
        # The name `partial` is included, because agentkit 0.3.0 stored the field `message.partial` as `partial`.
        "opaque.passthrough_keys": {**VENDOR_KEYS, "text": VENDOR_KEYS["text"] | _LAST_KEYS},
        "tools.call_ids": None,
        "tools.names": TOOL_NAMES,
        "tools.choices": frozenset({"auto", "none"}),
        "output": "object",
        "cache_breakpoints": True,
    }
)


def _media_part(block: MediaBlock) -> dict[str, Any]:
    """Converts a media block to a content part.

    Unlike in OpenAI's API, `input_audio.data` is a URL or a data URL (Model Studio docs).
    """
    url = source_url(block.source)
    if block.type != "audio":
        key = f"{block.type}_url"
        return {key: {"url": url, **get_detail(block)}, "type": key}
    media_type = block.source.media_type or getattr(block.source, "guessed_type", None)
    return {
        "type": "input_audio",
        "input_audio": {"data": url, "format": _AUDIO_FORMATS.get(media_type or "", "wav")},
    }


# Sources: Model Studio docs (help.aliyun.com/zh/model-studio), pages "compatibility" (2026-10-13) and "base-url"
# (2026-10-11).
ROW = OpenAICompatible(
    name="dashscope-compatible",
    title="DashScopeCompatible",
    capabilities=COMPATIBLE,
    facts=(NAMED_CHOICE,),
    # This server is in the Beijing region. An API key is valid in only one region.
    address="https://dashscope.aliyuncs.com/compatible-mode/v1",
    key="DASHSCOPE_API_KEY",
    reasoning_field="reasoning_content",
    reasoning_fields=("reasoning_content",),
    empty_content="",
    last_keys=_LAST_KEYS,
    testing="agentkit_dashscope.testing",
    media_parts={"image": _media_part, "audio": _media_part, "video": _media_part},
    mark_breakpoints=mark_cache_control,
)


class DashScopeCompatibleChatFormatter(OpenAIChatFormatter):
    """Formatter for DashScope's OpenAI-compatible mode, for calls through the openai SDK.

    Send the request with `chat.completions.create(model=…, **request)`. The client needs the `base_url` of the
    compatible mode, such as `https://dashscope.aliyuncs.com/compatible-mode/v1`.

    `cache_breakpoints="auto"` marks at most four content parts for DashScope's explicit context cache. The content
    of messages is then a list of parts, which all models with this cache accept.
    """

    vendor = ROW


class DashScopeCompatibleMultiAgentFormatter(DashScopeCompatibleChatFormatter):
    """Formatter for DashScope's compatible mode. Writes the texts of several speakers into one user turn."""

    default_history = MultiAgentHistory


COMPATIBLE_PROVIDER = ROW.provider(DashScopeCompatibleChatFormatter, DashScopeCompatibleMultiAgentFormatter)
DashScopeCompatibleChatStreamParser = ROW.parser
load_compatible = ROW.load_native
