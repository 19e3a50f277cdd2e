"""Capabilities of DashScope's native API for its text path and multimodal path, and facts about its models."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
    MediaLimits,
    MediaRule,
    ModelFact,
    NameRule,
    OpaqueCapabilities,
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
    WireLayout,
    media_types,
)
from agentkit_dashscope._upload_guard import guard_text

__all__ = ["FACTS", "LAYOUT", "LIMITS", "MULTIMODAL", "NAMED_CHOICE", "TEXT", "TEXT_PATH", "TOOL_NAMES"]

_URLS = frozenset({"http", "https", "oss"})

_IMAGES = media_types("image", "bmp png jpeg tiff webp heic")

LIMITS = MediaLimits(data=10_485_000)
"""Limit for media items: the maximum number of base64 characters.

The API limits the whole data URL, including its header: 'Exceeded limit on max bytes per data-uri item : 10485760'
(Model Studio docs: error codes).
"""

TOOL_NAMES = NameRule(limit=64, reserved=frozenset({"search"}))
"""Rule for tool names. API error: 'Tool names are not allowed to be [search]' (Model Studio docs)."""


def _note_guard(text: str, role: str) -> tuple[str, ...]:
    """Returns one note for the ledger if `guard_text` changes the text of a user message, otherwise no notes."""
    return (_GUARD_NOTE,) if role == "user" and guard_text(text) != text else ()


_GUARD_NOTE = (
    "line break added before the text: otherwise the SDK could treat the text as a path and upload the file"
)

_PASSTHROUGH = frozenset({"*", "-type", "-detail", "-refusal", "-role", "-message.*"})

_MEDIA_KEYS = frozenset({"image", "audio", "video"})  # only user messages can have media (Model Studio docs)

_ANYWHERE = frozenset({"assistant", "user", "system", "result"})

LAYOUT = WireLayout(
    turns="messages",
    tool_wrapper="function",
    silent=frozenset({"id", "tool_call_id", "index", "detail", "format"}),
    media={"image": "image", "audio": "audio", "video": "video", "file": "document"},
    containers=("parameters",),
    error_paths=frozenset({"message", "input"}),
    cache_markers=frozenset({"cache_control"}),
)
"""Keys of the messages in the field `input` of a request (Model Studio docs)."""

MULTIMODAL = Capabilities(
    name="DashScope",
    issuer="dashscope",
    wire="dashscope",
    output="object",  # only some newer models accept json_schema
    json_object="stated",  # the prompt must contain the word "json" (Model Studio docs, structured output)
    cache_breakpoints=True,
    layout=LAYOUT,
    turns=TurnCapabilities(
        text_notes=_note_guard,
        needs_user=True,  # API error: "The input messages do not contain elements with the role of user"
    ),
    tools=ToolCapabilities(
        names=TOOL_NAMES,
        # Newer models think by default, and thinking models refuse the choice of a named tool. API error: 'one of
        # the strings that should be ["none", "auto"]' (Model Studio docs).
        choices=frozenset({"auto", "none"}),
        needs_declarations=True,  # "Tools must be sent again with the results" (Model Studio docs)
    ),
    media=MediaCapabilities(
        image=MediaRule(types=_IMAGES, schemes=_URLS, limits=LIMITS),
        audio=MediaRule(schemes=_URLS, limits=LIMITS),
        video=MediaRule(schemes=_URLS, limits=LIMITS),
    ),
    thinking=ThinkingCapabilities(mode="text"),
    opaque=OpaqueCapabilities(
        places=lambda data: frozenset({"user"} if _MEDIA_KEYS & data.keys() else {*_ANYWHERE}),
        passthrough_keys={
            **dict.fromkeys(("image", "audio", "video"), _PASSTHROUGH),
            "text": _PASSTHROUGH | {"message.partial"},
        },
    ),
)

# Capabilities that are different on the text path. API error: "input content must be a string." (Model Studio
# docs). A string cannot have cache markers, because cache markers are keys of content parts.
TEXT_PATH: dict[str, Any] = {
    "wire": None,
    "cache_breakpoints": False,
    "turns.text_joining": "string",
    "turns.text_notes": None,
    "media.image": None,
    "media.audio": None,
    "media.video": None,
    # The name `partial` is included, because agentkit 0.3.0 stored the field `message.partial` as `partial`.
    "opaque.passthrough_keys": {"text": frozenset({"message.partial", "partial"})},
}
TEXT = MULTIMODAL.override(TEXT_PATH)

NAMED_CHOICE = ModelFact(
    r"qwen-(plus|max|turbo|flash|coder|math)|qwen3-(max|coder)|qwen(1\.5|2(\.5)?)-(?!vl|omni|audio)",
    {"tools.choices": frozenset({"auto", "none", "tool"})},
    "these models never think, or think only if a request asks for thinking (Model Studio docs)",
    "2026-11-20",
)

_TEXT_MODELS = ModelFact(
    r"qwen-(plus|max|turbo|flash|long|coder|math|mt|doc|deep-research|\d)|qwen3-(max|coder|next|\d)"
    r"|qwen(1\.5|2(\.5)?)-(?!vl|omni|audio)|qwq|deepseek|glm-(?![\d.]+v)|kimi|minimax",
    TEXT_PATH,
    "each model accepts only one path; Qwen3.5 and later, *-vl-*, *-omni-*, *-audio-* and glm-4.5v accept the"
    " multimodal path (Model Studio docs)",
    "2026-11-20",
)

FACTS = (_TEXT_MODELS, NAMED_CHOICE)
