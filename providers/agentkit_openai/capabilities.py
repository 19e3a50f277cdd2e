"""Capabilities of OpenAI Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
    MediaLimits,
    MediaRule,
    ModelFact,
    NameRule,
    OpaqueCapabilities,
    OptionLayout,
    StrictRules,
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
    WireLayout,
    media_types,
)
from agentkit_openai._message_keys import MESSAGE_KEYS

__all__ = [
    "ALLOWED_TOOLS",
    "AUDIO_FORMATS",
    "BREAKPOINTS",
    "CHAT",
    "CHAT_FACTS",
    "FILE_LIMITS",
    "IMAGE_LIMITS",
    "LAYOUT",
    "MEDIA_TOTAL",
    "STRICT",
]

_WEB = frozenset({"http", "https"})

IMAGE_LIMITS = MediaLimits(count=1_500, pixels=29_000_000, data=20_971_000)
"""Limits for images in a request to OpenAI.

A request can have at most 1,500 images, and 512 MB in total (guides/images-vision). The newest models refuse
images of more than 30,000 patches of 32 x 32 pixels. The OpenAPI specification limits an `image_url` to 20,971,520
characters.
"""
FILE_LIMITS = MediaLimits(data=66_000_000, total=66_000_000)
"""Limits for files in a request to OpenAI, in characters of base64 text.

OpenAI accepts at most 50 MB for each file, and at most 50 MB for all files together (guides/file-inputs).
"""
MEDIA_TOTAL = 500_000_000
"""Maximum number of base64 characters of the media in a request.

OpenAI's limit is 512 MB for a request (guides/images-vision).
"""

STRICT = StrictRules(
    keywords=frozenset(
        [
            *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"),
            *("$ref", "$defs", "definitions", "title", "description", "pattern", "format", "minItems", "maxItems"),
            *("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        ]
    ),
    formats=frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    max_depth=10,
    has_output_flag=True,
)
"""JSON Schema features that OpenAI's strict mode accepts (guides/structured-outputs#supported-schemas).

The API refuses schemas with other keywords, such as `maxLength`.
"""

ALLOWED_TOOLS = frozenset({"auto", "required"})
"""Modes that a tool choice with a list of allowed tools can have.

Source: openai-python, ToolChoiceAllowed and ChatCompletionAllowedTools.
"""

_PLACES = {
    # Maps the type of a content part to the kinds of turns that can contain the part. Error text: "Image URLs are
    # only allowed for messages with role 'user'". The same rule applies to other media. Source: openai-python,
    # ChatCompletionAssistantMessageParam and ChatCompletionToolMessageParam.
    **dict.fromkeys(("image_url", "input_audio", "file", "video_url", "video"), frozenset({"user"})),
    "refusal": frozenset({"assistant"}),
}


def _part_places(data: Mapping[str, Any]) -> frozenset[str]:
    """Returns the kinds of turns that can contain an opaque part, such as `user` and `assistant`.

    A tool result has the kind `result`. A part of an unknown type can be in turns of any kind.
    """
    return _PLACES.get(str(data.get("type")), frozenset({"assistant", "user", "system", "result"}))


LAYOUT = WireLayout(
    turns="messages",
    tool_wrapper="function",
    silent=frozenset({"id", "call_id", "tool_call_id", "index", "detail", "format", "filename", "document_name"}),
    json=frozenset({"arguments", "input"}),
    media={
        **dict.fromkeys(("image_url", "image", "images"), "image"),
        **dict.fromkeys(("input_audio", "audio_url", "audio"), "audio"),
        **dict.fromkeys(("video_url", "video"), "video"),
        **dict.fromkeys(("file", "file_data", "document_url"), "document"),
    },
    media_data=("url", "data", "file_data"),
    containers=("extra_body",),
    error_paths=frozenset({"message"}),
    options=OptionLayout(functions=("functions",), choices=("tool_choice", "function_call")),
    cache_markers=frozenset({"cache_control", "prompt_cache_breakpoint"}),
)
"""Keys of chat messages (openai-python: ChatCompletionMessageParam), including keys that vendors have added.

vLLM has added the content parts `audio_url` and `video_url`. Mistral has added `document_url`. DashScope has added
the content part `video` and the key `cache_control`.
"""

CHAT = Capabilities(
    name="OpenAI Chat Completions",
    issuer="openai",
    wire="openai",
    json_object="stated",  # API error: "'messages' must contain the word 'json' in some form"
    layout=LAYOUT,
    turns=TurnCapabilities(speaker_names=True),
    tools=ToolCapabilities(
        call_ids=NameRule(limit=40, prefix="call_"),  # error text: "maximum length 40"
        names=NameRule(limit=64),
        allowed=ALLOWED_TOOLS,
        strict=STRICT,
    ),
    media=MediaCapabilities(
        image=MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB, limits=IMAGE_LIMITS),
        audio_by_id=True,  # OpenAI docs, guides/audio: requests refer to "a previous audio response" by its id
        # Chat Completions accepts only PDF files, as data and not by URL (guides/file-inputs).
        document=MediaRule(types=frozenset({"application/pdf"}), limits=FILE_LIMITS),
        total=MEDIA_TOTAL,
    ),
    # Requests and replies have no field for reasoning (API reference).
    thinking=ThinkingCapabilities(mode="never"),
    opaque=OpaqueCapabilities(
        is_reply_data=lambda data: "type" not in data,  # data without `type` are keys of an assistant message
        places=_part_places,
        passthrough_keys={
            # agentkit 0.3.0 stored the key `message.role` as `role`. Both keys are accepted.
            "text": frozenset({"role", "refusal", "type", MESSAGE_KEYS}),
            "tool_use": frozenset({"type", MESSAGE_KEYS}),
            "image": frozenset({"*"}),
            "audio": frozenset({"*"}),
            "video": frozenset({"*", "-detail"}),
            "document": frozenset({"title", "filename", MESSAGE_KEYS}),
        },
    ),
)
"""Capabilities that all current models of api.openai.com have.

Audio is excluded, because only audio models accept audio (recorded error).
"""

AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""Values of `input_audio.format` by media type (openai-python: ChatCompletionContentPartInputAudioParam)."""

BREAKPOINTS = ModelFact(
    r"gpt-(5\.([6-9]|[1-9]\d)|[6-9])(?!\d)(?!.*-terra)",
    {"cache_breakpoints": True},
    "gpt-5.6 and later models accept cache markers (openai-python: `prompt_cache_options`), except terra models "
    "(Kilo-Org/kilocode#13052)",
    "2026-11-21",
)

CHAT_FACTS = (
    ModelFact(
        r"(gpt-audio|gpt-4o(-mini)?-audio|gpt-realtime)",
        {"media.audio": MediaRule(types=frozenset(AUDIO_FORMATS))},
        "only audio models accept `input_audio` (guides/audio; openai-python: ChatModel)",
        "2026-11-20",
    ),
    BREAKPOINTS,
)
