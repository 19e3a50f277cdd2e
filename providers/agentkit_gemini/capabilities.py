"""Capabilities of Gemini's `generateContent` API, and facts about Gemini models."""

from __future__ import annotations

import base64
from functools import partial

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
from agentkit_gemini._logged_options import OPTIONS
from agentkit_gemini._part_reader import get_pair_key, get_part_places, is_stored_uri

__all__ = ["FACTS", "GENERATE", "LAYOUT", "SKIP_SIGNATURE"]

_URLS = frozenset({"http", "https", "gs"})

SKIP_SIGNATURE = base64.b64encode(b"skip_thought_signature_validator").decode("ascii")
"""Placeholder signature that Gemini accepts for tool calls of other models (Gemini docs: thought-signatures)."""

LAYOUT = WireLayout(
    turns="contents",
    prompt="system_instruction",
    tool_lists=("function_declarations", "functionDeclarations"),
    tool_schemas=("parameters_json_schema", "parametersJsonSchema", "parameters"),
    containers=("config", "generationConfig", "generation_config"),
    options=OPTIONS,
    parts=("parts",),
    labels=frozenset({"role", "type", "mime_type"}),
    silent=frozenset({"id", "thought_signature"}),
    json=frozenset({"args", "response"}),
    media={"inline_data": "document", "file_data": "document"},
    media_data=("data", "file_uri"),
    media_types=("mime_type",),
    media_details=("detail", "media_resolution.level", "media_resolution"),
    reply_roles=frozenset({"model"}),
    result_keys=frozenset({"function_response", "functionResponse"}),
    result_labels=frozenset(),
)
"""Keys of Gemini's requests (google-genai: Content, Part, GenerateContentConfig)."""

GENERATE = Capabilities(
    name="Gemini",
    issuer="gemini",
    wire="gemini",
    output_recursion="optional",  # google-genai: GenerateContentConfig.response_json_schema
    json_object="native",  # the field `response_mime_type` requests JSON (google-genai: GenerateContentConfig)
    layout=LAYOUT,
    turns=TurnCapabilities(
        late_system="line",  # API error for a turn with the role `system`: "Please use a valid role: user, model."
        first_user=True,  # the API accepts function calls only after a user turn
        last_user=True,
        needs_user=True,
    ),
    tools=ToolCapabilities(
        # API error: "Please ensure that the number of function response parts is equal to the number of function
        # call parts of the function call turn."
        results="together",
        results_in_order=True,
        names=NameRule(pattern=r"[A-Za-z_][A-Za-z0-9_-]*", limit=63),
        allowed=frozenset({"auto", "required"}),
    ),
    media=MediaCapabilities(
        image=MediaRule(
            types=media_types("image", "png jpeg webp heic heif"), schemes=_URLS, limits=MediaLimits(count=3_600)
        ),
        audio=MediaRule(types=media_types("audio", "wav mpeg aiff aac ogg flac"), schemes=_URLS),
        video=MediaRule(
            types=media_types("video", "mp4 mpeg quicktime x-msvideo x-flv mpg webm wmv 3gpp"), schemes=_URLS
        ),
        document=MediaRule(
            types=frozenset({"application/pdf"}) | media_types("text", "plain html markdown csv xml"),
            schemes=_URLS,
            limits=MediaLimits(data=66_000_000),  # in base64 characters; a PDF file can have at most 50 MB
        ),
        total=95_000_000,  # below the limit of 100 MB of inline data (Gemini docs: file-input-methods)
        roles=frozenset({"user", "assistant"}),  # model turns can contain media that the model generated
    ),
    # Only the thinking of Gemini models is sent. A signature is optional.
    thinking=ThinkingCapabilities(mode="signed"),
    opaque=OpaqueCapabilities(
        is_reply_data=lambda data: get_pair_key(data) is not None,
        places=get_part_places,
        pair_key=get_pair_key,
        passthrough_keys=dict.fromkeys(
            ("text", "tool_use", "image", "audio", "video", "document"), frozenset({"*"})
        ),
        signed_parts=True,
        placeholder_signature=SKIP_SIGNATURE,
    ),
)
"""Capabilities of all current Gemini models. `FACTS` also allows media in tool results, for Gemini 3 and later."""

_RESPONSE_TYPES = media_types("image", "png jpeg webp") | {"application/pdf", "text/plain"}

FACTS = (
    ModelFact(
        r"gemini-([3-9]|[1-9]\d)",
        # In function responses, only URIs of the Files API are sent. Other URIs seem to be unsupported: Protobuf
        # v1beta has no URI field in function responses, and the Kotlin SDK calls its URI field unsupported.
        {
            "media.result_kinds": frozenset({"image", "document"}),
            "media.result_types": _RESPONSE_TYPES,
            "media.result_urls": is_stored_uri,
            "opaque.places": partial(get_part_places, in_results=True),
        },
        "ai.google.dev/gemini-api/docs/function-calling#multimodal",
        "2026-11-20",
    ),
    ModelFact(
        r"gemini-[12](?!\d)",
        {"opaque.placeholder_signature": None},
        "before Gemini 3, tool calls need no signature (Gemini docs: thought-signatures)",
        "2026-11-20",
    ),
)
