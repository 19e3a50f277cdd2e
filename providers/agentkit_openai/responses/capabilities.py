"""Capabilities of OpenAI Responses, and facts about its models."""

from __future__ import annotations

from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
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
from agentkit_openai._prompt_cache import BREAKPOINTS
from agentkit_openai.capabilities import ALLOWED_TOOLS, FILE_LIMITS, IMAGE_LIMITS, MEDIA_TOTAL, STRICT
from agentkit_openai.responses._item_pairs import (
    is_reply_item,
    needs_thinking,
    part_pair,
    part_places,
    split_stored_item,
)
from agentkit_openai.responses._turn_items import CALL_FIELDS, IMAGE_CALL

__all__ = ["LAYOUT", "OUTPUT_FIELDS", "RESPONSES", "RESPONSES_FACTS"]

_WEB = frozenset({"http", "https"})

OUTPUT_FIELDS = ("caller", "name", "namespace")
"""Additional keys of a tool result that are sent back (openai-python: FunctionCallOutput).

The opaque state of the first text in the result stores these keys.
"""

# OpenAI accepts PDF, office documents, text and code (guides/file-inputs, api-mode=responses).
_FILES = frozenset(
    {
        "application/pdf",
        "application/json",
        "application/xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    }
) | media_types("text", "plain markdown csv html")

LAYOUT = WireLayout(
    turns="input",
    prompt="instructions",
    silent=frozenset({"id", "call_id", "detail", "format", "filename"}),
    json=frozenset({"arguments", "input"}),
    media={
        "image_url": "image",
        "result": "image",
        "input_audio": "audio",
        "file_data": "document",
        "file_url": "document",
    },
    media_data=("url", "data"),
    sealed=frozenset({"encrypted_content"}),
    proofs={"reasoning": "encrypted_content"},
    is_reply_item=is_reply_item,
    result_labels=frozenset({("type", "function_call_output")}),
    containers=("extra_body",),
    options=OptionLayout(outputs=("text.format",)),
    cache_markers=frozenset({"prompt_cache_breakpoint"}),
    digest_turn=split_stored_item,
)
"""JSON layout of items (openai-python: ResponseInputItemParam).

In an `image_generation_call`, the key `result` contains the image.
"""

RESPONSES = Capabilities(
    name="OpenAI Responses",
    issuer="openai",
    wire="openai-responses",
    layout=LAYOUT,
    turns=TurnCapabilities(text_joining="apart", late_system="native"),
    tools=ToolCapabilities(
        results="each",
        call_ids=NameRule(limit=64, prefix="call_"),  # OpenAPI specification: 1 to 64 characters
        names=NameRule(limit=64),
        allowed=ALLOWED_TOOLS,
        strict=STRICT,
    ),
    media=MediaCapabilities(
        generated_by_id=True,  # generated images are sent as reply items (openai-python: ImageGenerationCall)
        image=MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB, limits=IMAGE_LIMITS),
        document=MediaRule(types=_FILES, schemes=_WEB, limits=FILE_LIMITS),
        total=MEDIA_TOTAL,
        # guides/file-inputs: tool results can contain images and files
        result_kinds=frozenset({"image", "document"}),
    ),
    thinking=ThinkingCapabilities(
        mode="signed",
        # If the content before reasoning changed, gpt-6.2 removes the reasoning and reports no error
        # (guides/reasoning).
        binds_prefix=True,
        # With store=false, the API refuses reasoning that has only an id (status 404; guides/reasoning).
        required_proof=frozenset({"encrypted_content"}),
    ),
    opaque=OpaqueCapabilities(
        # Content parts of requests have types that begin with `input_` (openai-python: ResponseInputContentParam).
        is_reply_data=lambda data: not str(data.get("type")).startswith("input_"),
        places=part_places,
        pair_key=part_pair,
        needs_thinking=needs_thinking,
        passthrough_keys={
            # agentkit 0.3.0 stored the key `message.role` as `role`. Both keys are accepted.
            "text": frozenset({"message.role", "role", "refusal", "type", "phase", *OUTPUT_FIELDS}),
            "tool_use": frozenset({"type", *CALL_FIELDS}),
            "image": frozenset({"detail", IMAGE_CALL}),
            "document": frozenset({"title", "detail", "filename"}),  # files with a URL are sent without a name
        },
    ),
)

RESPONSES_FACTS = (
    BREAKPOINTS,
    ModelFact(
        r"(chat)?gpt-([345]|oss)|gpt-6(?![.-]?[2-9])|codex-|o\d",
        {"thinking.binds_prefix": False},
        "only gpt-6.2 and later models refuse changed content before reasoning (guides/latest-model)",
        "2026-11-20",
    ),
)
