"""Capabilities of Anthropic's Messages API, and facts about Claude models."""

from __future__ import annotations

from dataclasses import replace
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
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
    WireLayout,
    media_types,
)
from agentkit_anthropic._output_schema import STRICT
from agentkit_anthropic._parts import CARRIED, part_pair, part_places

__all__ = ["DEFAULT_MAX_TOKENS", "FACTS", "LAYOUT", "MESSAGES"]

DEFAULT_MAX_TOKENS = 16_000
"""Default of `max_tokens`, which the API requires. All current models accept this value (Anthropic docs)."""

_DATE = "2026-11-20"
_WEB = frozenset({"http", "https"})

# Source: Anthropic docs, vision. A request can have at most 100 images if the context window has 200k tokens,
# otherwise 600. Each side of an image can have at most 8000 pixels, or 2000 if the request has more than 20
# images. An image can have at most 10 MB of base64 text.
_LIMITS = MediaLimits(count=100, side=8_000, crowd=(20, 2_000), data=10_000_000)
_IMAGES = MediaRule(types=media_types("image", "png jpeg gif webp"), schemes=_WEB, limits=_LIMITS)
"""Types and limits of images that all current models accept."""

_PDF = frozenset({"application/pdf"})


def prompt_as_parts(prompt: Any) -> Any:
    """Converts a system prompt to a list of parts, so that the string and the list form have the same hash."""
    return [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt


LAYOUT = WireLayout(
    turns="messages",
    prompt="system",
    tool_schemas=("input_schema",),
    labels=frozenset({"role", "type", "media_type"}),
    silent=frozenset({"id", "tool_use_id", "signature"}),
    json=frozenset({"input"}),
    media={"source": "document", "data": "document"},
    media_data=("url", "data"),
    media_types=("media_type",),
    media_texts={"text": "data", "content": "content"},
    sealed=frozenset({"encrypted_content"}),
    sealed_types=frozenset({"redacted_thinking"}),
    proofs={"thinking": "signature", "redacted_thinking": "data"},
    result_labels=frozenset({("type", "tool_result")}),
    error_paths=frozenset({"message"}),
    containers=("extra_body",),
    options=OptionLayout(function_types=frozenset({"custom"}), outputs=("output_config.format", "output_format")),
    cache_markers=frozenset({"cache_control"}),
    digest_prompt=prompt_as_parts,
)
"""Keys of Anthropic's requests (Anthropic SDK: MessageParam)."""

MESSAGES = Capabilities(
    name="Anthropic Messages",
    issuer="anthropic",
    wire="anthropic",
    output_recursion="none",  # Anthropic docs: structured-outputs
    needs_closed_output=True,  # "For 'object' type, 'additionalProperties' must be explicitly set to false"
    cache_breakpoints=True,
    layout=LAYOUT,
    turns=TurnCapabilities(
        resumable=True,  # after the stop reason pause_turn, the next request ends with the assistant's turn
        late_system="line",  # after the first turn, a system message must be between a user and an assistant turn
        merge=True,
        first_user=True,
        last_user=True,  # error of Claude 4.6 and later: "This model does not support assistant message prefill"
        needs_user=True,
    ),
    tools=ToolCapabilities(
        results="together",  # all tool results must be in the next user message, before other blocks
        # The API requires call ids that match '^[a-zA-Z0-9_-]+$'. The maximum length of an id is not documented.
        call_ids=NameRule(limit=128, prefix="toolu_"),
        names=NameRule(limit=64),
        strict=STRICT,
        # Error of the newest models: 'tool_choice: type "tool" and "any" are not supported for this model'.
        choices=frozenset({"auto", "none"}),
        needs_declarations=True,  # "Requests which include `tool_use` or `tool_result` blocks must define tools."
    ),
    media=MediaCapabilities(
        image=_IMAGES,
        document=MediaRule(
            types=_PDF | media_types("text", "plain markdown csv html") | {"application/json"},
            schemes=_WEB,
            url_types=_PDF,
        ),
        result_kinds=frozenset({"image", "document"}),
        total=30_000_000,  # a request can have at most 32 MB; 2 MB are reserved for texts and tools
        error_results=False,  # "all content must be type `text` if `is_error` is true"
    ),
    thinking=ThinkingCapabilities(
        mode="signed",
        binds_prefix=True,  # from Claude 5.1 on, the content before a thinking block must be unchanged
        required_proof=frozenset({"signature", "redacted_data"}),
    ),
    opaque=OpaqueCapabilities(
        is_reply_data=lambda data: part_pair(data) is not None,
        places=part_places,
        pair_key=part_pair,
        passthrough_keys={
            "text": frozenset({*CARRIED["text"], "search_result"}),
            "tool_use": frozenset(CARRIED["tool_use"]),
            "image": frozenset(CARRIED["image"]),
            "document": frozenset({*CARRIED["document"], "title", "title of a URL", "source"}),
        },
    ),
)
"""Rules that are valid for all current Claude models. Quotations in the comments are error texts from the API."""

_FAMILY = r"(opus|sonnet|haiku|fable|mythos)"
# The pattern also matches older forms of model names: claude-3-opus, claude-4-opus and Bedrock's claude-v2:1.
_UP_TO_4 = rf"claude-(instant|v?[1-3](?!\d)|4(?!\d)|{_FAMILY}-4(?!\d))"
_FIVE = r"5(?![.-]?\d)"  # version 5 without a minor version

FACTS = (
    ModelFact(
        rf"{_UP_TO_4}|claude-{_FAMILY}-{_FIVE}",
        {"thinking.binds_prefix": False},
        "models before 5.1 accept thinking blocks after changed content (Anthropic docs: prefix-checks)",
        _DATE,
    ),
    ModelFact(
        # Mythos Preview, Opus 5.5, Fable 5.1 and Mythos 5.1 refuse the tool_choice types "tool" and "any"
        # (Anthropic docs: api/errors). Sonnet 5.5 refuses both too (models/sonnet-5-5/whats-new). The page on
        # Fable 5.2 mentions no change from Fable 5.1. Fable 5 (anthropics/claude-cookbooks#854) and Haiku 5.5
        # (migration guide) accept both types.
        rf"{_UP_TO_4}|claude-{_FAMILY}-{_FIVE}|claude-haiku-5[.-]5",
        {"tools.choices": frozenset({"auto", "none", "required", "tool"})},
        'only the newest models refuse the tool_choice types "tool" and "any" (Anthropic docs: api/errors)',
        _DATE,
    ),
    ModelFact(
        rf"claude-(instant|v?[1-3](?!\d)|4(?![.-]?[6-9])|{_FAMILY}-4(?![.-]?[6-9]|\d|[.-]\d\d))",
        {"turns.last_user": False},
        "models before 4.6 can continue an assistant turn (Anthropic docs: api/errors#prefill-not-supported)",
        _DATE,
    ),
    ModelFact(
        rf"claude-{_FAMILY}-(4[.-]([6-9]|\d\d)|[5-9]|\d\d)",
        {"media.image": replace(_IMAGES, limits=replace(_LIMITS, count=600))},
        # These models have a context window of 1M tokens.
        "models from 4.6 on, and Haiku from 5.5 on, accept 600 images per request (Anthropic docs: vision)",
        _DATE,
    ),
)
