"""Rows of OpenAI-compatible vendors that need no package.

Each row is a provider: `ChatModel("mistral:mistral-large-latest")`. All requests go out through the openai SDK, so
the extra is `openai`. To add a vendor, add a row here and an entry point in pyproject.toml. Each fact has its
source and date in a comment. "Read" is the date of reading, for documents without a date.
"""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import (
    Base64Source,
    MediaBlock,
    MediaLimits,
    MediaRule,
    ModelFact,
    NameRule,
    media_types,
)
from agentkit_openai._media_parts import choose_file_name, source_url
from agentkit_openai._prompt_cache import mark_cache_control
from agentkit_openai.capabilities import AUDIO_FORMATS, CLOSED_KEYS, TEMPLATE_CHAT, VENDOR_CHAT
from agentkit_openai.compatible import OpenAICompatible

__all__ = [
    "AZURE",
    "AZURE_PROVIDER",
    "COMPATIBLE",
    "COMPATIBLE_PROVIDER",
    "LLAMA_CPP",
    "LLAMA_CPP_PROVIDER",
    "MISTRAL",
    "MISTRAL_PROVIDER",
    "OPENROUTER",
    "OPENROUTER_PROVIDER",
]

_WEB = frozenset({"http", "https"})
_PDF = frozenset({"application/pdf"})
_AUDIO_TYPES = frozenset(AUDIO_FORMATS)
_TESTING = "agentkit_openai.testing"

_NINE = NameRule(pattern=r"[A-Za-z0-9]{9}", limit=9)
"""mistral_common 1.13.1 (2026-11-02): "Tool call id was X but must be a-z, A-Z, 0-9, with a length of 9."."""
_MISTRAL_MODELS = r"(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral)"


# -- OpenRouter: openrouter.ai/docs (read 2026-11-22), and the SDK `openrouter` 1.3.84 (2026-10-27) ----------

OPENROUTER = OpenAICompatible(
    name="openrouter",
    title="OpenRouter",
    capabilities=VENDOR_CHAT.override(
        {
            "name": "OpenRouter",
            "issuer": "openrouter",
            "wire": "openrouter",
            "thinking.mode": "text",  # docs: reasoning-tokens; requests accept text or unchanged details
            "turns.speaker_names": True,  # docs: api-reference/overview has the field `name`
            "turns.speaker_refused": "^A-Za-z0-9_-",  # the portable characters: the docs have no rule
            "tools.call_ids": None,  # the docs have no rule for ids
            # docs: multimodal (image-understanding, audio, videos, pdfs); limits differ between models
            "media.image": MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB),
            "media.audio": MediaRule(types=_AUDIO_TYPES),
            "media.video": MediaRule(types=media_types("video", "mp4 mpeg quicktime webm"), schemes=_WEB),
            "media.document": MediaRule(types=_PDF, schemes=_WEB),
            "cache_breakpoints": True,  # docs: prompt-caching; models of Anthropic accept at most 4 markers
        }
    ),
    facts=(
        ModelFact(
            _MISTRAL_MODELS,
            {"tools.call_ids": _NINE},
            "error 3280 for other call ids: gptel#1203 (2026-01-07), ironclaw#1241 (2026-03-16)",
            "2026-11-22",
        ),
    ),
    address="https://openrouter.ai/api/v1",
    key="OPENROUTER_API_KEY",
    max_tokens="max_completion_tokens",  # SDK: `max_tokens` is deprecated
    reasoning_field="reasoning",
    reasoning_fields=("reasoning", "reasoning_content"),
    reasoning_details=True,  # docs: "unchanged and in the same sequence"; some models require it with tools
    mark_breakpoints=mark_cache_control,
    testing=_TESTING,
)


# -- Azure OpenAI in Foundry, v1: learn.microsoft.com/azure/foundry/openai (read 2026-11-22) -----------------

AZURE = OpenAICompatible(
    name="azure",
    title="Azure",
    capabilities=VENDOR_CHAT.override(
        {
            "name": "Azure OpenAI",
            "issuer": "azure",
            "wire": "azure",
            "turns.speaker_names": True,  # Azure uses OpenAI's schema of chat messages
            "tools.call_ids": NameRule(limit=40, prefix="call_"),  # error text in litellm#11392 (2025-06-04)
            # No documents: "This model does not support file content types" (openai-python#2826, 2026-01-19).
        }
    ),
    # The model in a request is the name of a deployment. Users choose it freely, so it does not show the model.
    address_variable="AZURE_OPENAI_ENDPOINT",
    address_path="/openai/v1/",
    needs_address=True,
    key="AZURE_OPENAI_API_KEY",
    max_tokens="max_completion_tokens",  # how-to/reasoning: the only parameter that reasoning models accept
    testing=_TESTING,
)


# -- Mistral: docs.mistral.ai (read 2026-11-22), and the SDK `mistralai` 3.7.0 -------------------------------


def _mistral_audio(block: MediaBlock) -> dict[str, Any]:
    """Writes audio as base64 text or a URL, without an object around it (SDK: AudioChunk)."""
    source = block.source
    return {"type": "input_audio", "input_audio": source.data if isinstance(source, Base64Source) else source.url}


def _mistral_document(block: MediaBlock) -> dict[str, Any]:
    """Writes a document as a URL or a data URL (SDK: DocumentURLChunk)."""
    return {
        "type": "document_url",
        "document_url": source_url(block.source),
        "document_name": choose_file_name(block),
    }


MISTRAL = OpenAICompatible(
    name="mistral",
    title="Mistral",
    capabilities=TEMPLATE_CHAT.override(
        {
            "name": "Mistral",
            "issuer": "mistral",
            "wire": "mistral",
            "turns.text_joining": "apart",  # SDK: messages with content parts
            # Turns alternate: "Unexpected role 'user' after role 'tool'" (datapizza#98, 2025-12-04). System
            # messages may not follow an assistant message or a tool result (mistral_common 1.13.1).
            "thinking.mode": "text",
            "media.image": MediaRule(  # docs: capabilities/vision
                types=media_types("image", "png jpeg webp gif"),
                schemes=_WEB,
                limits=MediaLimits(
                    count=8, side=10_000, data=13_900_000
                ),  # 10 MB for each image, here as base64 text
            ),
            "media.document": MediaRule(types=_PDF, schemes=_WEB),
            # Unknown keys lead to status 422, `extra_forbidden`: autogen#2457, openfox#220 (2026-08-07).
            "opaque.passthrough_keys": CLOSED_KEYS,
        }
    ),
    facts=(
        ModelFact(
            r"voxtral",
            {"media.audio": MediaRule(types=_AUDIO_TYPES, schemes=_WEB)},
            "SDK: AudioChunk; only Voxtral models take audio",
            "2026-11-22",
        ),
    ),
    models=_MISTRAL_MODELS,
    address="https://api.mistral.ai/v1",
    key="MISTRAL_API_KEY",
    max_tokens="max_tokens",  # `max_completion_tokens` leads to status 422: eca#231 (2025-12-12)
    # Streams always have usage. `stream_options` leads to status 422: litellm#8978 (2025-03-04), llxprt#114
    # (2025-08-07).
    stream_usage=False,
    reasoning_parts=True,  # docs: reasoning; thinking precedes other parts (mistral_common 1.13.1)
    reasoning_fields=(),
    # Error text: "Expected last role User or Tool (or Assistant with prefix True)" (smolagents#757).
    prefill={"prefix": True},
    media_parts={"audio": _mistral_audio, "document": _mistral_document},
    testing=_TESTING,
)


# -- llama.cpp's llama-server: ggml-org/llama.cpp, tools/server/README.md (read 2026-11-22) ------------------

LLAMA_CPP = OpenAICompatible(
    name="llamacpp",
    title="LlamaCpp",
    capabilities=TEMPLATE_CHAT.override(
        {
            "name": "llama.cpp",
            "issuer": "llamacpp",
            "wire": "llamacpp",
            "thinking.mode": "text",  # some chat templates use it, others ignore it: PR 18994 (2026-01)
            # The server silently treats an object as "auto": #26535 (2026-08-03).
            "tools.choices": frozenset({"auto", "none", "required"}),
            "media.image": MediaRule(types=media_types("image", "png jpeg gif bmp"), schemes=_WEB),
            "media.audio": MediaRule(types=_AUDIO_TYPES),
        }
    ),
    address="http://localhost:8080/v1",
    keyless="sk-no-key-required",  # servers require a key only with `--api-key`
    max_tokens="max_tokens",  # before PR 19831 (2026-02-23), the server ignored `max_completion_tokens`
    reasoning_field="reasoning_content",
    reasoning_fields=("reasoning_content",),
    testing=_TESTING,
)


# -- Any other server ----------------------------------------------------------------------------------------

COMPATIBLE = OpenAICompatible(
    name="compatible",
    title="Compatible",
    capabilities=TEMPLATE_CHAT.override(
        {
            "name": "the OpenAI-compatible server",
            "issuer": "compatible",
            "wire": "compatible",
            "media.image": MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB),
            "opaque.passthrough_keys": CLOSED_KEYS,  # some servers refuse unknown keys
        }
    ),
    needs_address=True,
    keyless="EMPTY",  # the variable OPENAI_API_KEY is not used: the server is not OpenAI's
    reasoning_parts=True,  # only for replies: these capabilities omit thinking from requests
    testing=_TESTING,
)
"""Row for any other server. Its requests satisfy the strictest servers.

Example: `ChatModel("compatible:MODEL", client_options={"base_url": "http://localhost:1234/v1"})`. Reasoning is
read from all keys and parts that servers use, and is never sent back. `model_rules` declares what the chat
template of a model accepts.
"""

AZURE_PROVIDER = AZURE.provider()
COMPATIBLE_PROVIDER = COMPATIBLE.provider()
LLAMA_CPP_PROVIDER = LLAMA_CPP.provider()
MISTRAL_PROVIDER = MISTRAL.provider()
OPENROUTER_PROVIDER = OPENROUTER.provider()
