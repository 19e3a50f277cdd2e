"""What is known of Claude models, as rows over what all of them take."""

from __future__ import annotations

from dataclasses import replace

from agentkit.provider_kit import MediaLimits, MediaRule, ModelFact, media_types

__all__ = ["FACTS", "IMAGES"]

_DATE = "2026-11-20"

# build-with-claude/vision: 100 images for models with a context window of 200k tokens, 600 for others; 8000 px a
# side, 2000 px with more than 20 images ("… for many-image requests: 2000 pixels"); 10 MB of base64 text each.
_LIMITS = MediaLimits(count=100, side=8_000, crowd=(20, 2_000), data=10_000_000)
IMAGES = MediaRule(
    types=media_types("image", "png jpeg gif webp"), schemes=frozenset({"http", "https"}), limits=_LIMITS
)
"""Images as all models take them."""

_FAMILY = r"(opus|sonnet|haiku|fable|mythos)"
# Also claude-3-opus, claude-4-opus and Bedrock's claude-v2:1.
_UP_TO_4 = rf"claude-(instant|v?[1-3](?!\d)|4(?!\d)|{_FAMILY}-4(?!\d))"
_FIVE = r"5(?![.-]?\d)"  # 5 and no later version

FACTS = (
    ModelFact(
        rf"{_UP_TO_4}|claude-{_FAMILY}-{_FIVE}",
        {"binds_thinking": False},
        "the prefix check is run by 5.1 and later models (preserved-thinking/prefix-checks)",
        _DATE,
    ),
    ModelFact(
        # Refused by Mythos Preview, Opus 5.5, Fable 5.1 and Mythos 5.1 (the error text's documentation), and by
        # Sonnet 5.5 (models/sonnet-5-5/whats-new); that page of Fable 5.2 takes nothing back. Accepted by Fable 5
        # (anthropics/claude-cookbooks#854) and Haiku 5.5 (its migration guide lists what it refuses).
        rf"{_UP_TO_4}|claude-{_FAMILY}-{_FIVE}|claude-haiku-5[.-]5",
        {"tool_choices": frozenset({"auto", "none", "required", "tool"})},
        'tool_choice: type "tool" and "any" are not supported for this model',
        _DATE,
    ),
    ModelFact(
        rf"claude-(instant|v?[1-3](?!\d)|4(?![.-]?[6-9])|{_FAMILY}-4(?![.-]?[6-9]|\d|[.-]\d\d))",
        {"last_user": False},
        "prefill was removed with 4.6 (api/errors#prefill-not-supported)",
        _DATE,
    ),
    ModelFact(
        rf"claude-{_FAMILY}-(4[.-]([6-9]|\d\d)|[5-9]|\d\d)",
        {"image": replace(IMAGES, limits=replace(_LIMITS, count=600))},
        "a context window of 1M tokens: 4.6 and later, Haiku from 5.5 (models overview)",
        _DATE,
    ),
)
