"""Descriptions of OpenAI-compatible vendors that need no separate package.

Each description defines a provider, as in `ChatModel("mistral:mistral-large-latest")`. All requests are sent
through the openai SDK, so users install the extra `openai`. To add a vendor, add a description here and an entry
point in pyproject.toml. A comment names the source and the date of each fact. For a source without a date, the
comment gives the date on which the source was read.
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
from agentkit_openai.capabilities import AUDIO_FORMATS
from agentkit_openai.compatible import CLOSED_KEYS, TEMPLATE_CHAT, VENDOR_CHAT, OpenAICompatible

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
"""Rule for the tool call ids of Mistral's models.

Error text: "Tool call id was X but must be a-z, A-Z, 0-9, with a length of 9." (mistral_common 1.13.1,
2026-11-02).
"""
_MISTRAL_MODELS = r"(mistral|ministral|magistral|codestral|devstral|pixtral|voxtral)"


# -- OpenRouter: openrouter.ai/docs (read 2026-11-22), and the SDK `openrouter` 1.3.84 (2026-10-27) ----------

OPENROUTER = OpenAICompatible(
    name="openrouter",
    title="OpenRouter",
    capabilities=VENDOR_CHAT.override(
        {
            "name": "OpenRouter",
            # The API accepts reasoning as text, or as unchanged `reasoning_details` (docs: reasoning-tokens).
            "thinking.mode": "text",
            "turns.speaker_names": True,  # messages have the field `name` (docs: api-reference/overview)
            # OpenRouter documents no rule for speaker names. Most APIs accept letters, digits, "_" and "-".
            "turns.speaker_refused": "^A-Za-z0-9_-",
            "tools.call_ids": None,  # the docs have no rule for tool call ids
            # Source: docs, multimodal (image-understanding, audio, videos, pdfs). No limits are set, because each
            # model has different limits.
            "media.image": MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB),
            "media.audio": MediaRule(types=_AUDIO_TYPES),
            "media.video": MediaRule(types=media_types("video", "mp4 mpeg quicktime webm"), schemes=_WEB),
            "media.document": MediaRule(types=_PDF, schemes=_WEB),
            "cache_breakpoints": True,  # Anthropic's models accept at most 4 cache markers (docs: prompt-caching)
        }
    ),
    facts=(
        ModelFact(
            _MISTRAL_MODELS,
            {"tools.call_ids": _NINE},
            "other call ids cause error 3280: gptel#1203 (2026-01-07), ironclaw#1241 (2026-03-16)",
            "2026-11-22",
        ),
    ),
    address="https://openrouter.ai/api/v1",
    key="OPENROUTER_API_KEY",
    max_tokens="max_completion_tokens",  # OpenRouter's SDK: `max_tokens` is deprecated
    reasoning_field="reasoning",
    reasoning_fields=("reasoning", "reasoning_content"),
    # Requests must contain `reasoning_details` "unchanged and in the same sequence" (docs). Some models require
    # the key if a request has tools.
    reasoning_details=True,
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
            "turns.speaker_names": True,  # Azure uses OpenAI's schema for chat messages
            # An error text states the maximum length of a call id: litellm#11392 (2025-06-04).
            "tools.call_ids": NameRule(limit=40, prefix="call_"),
            # `media.document` stays None, because the API refuses documents: "This model does not support file
            # content types" (openai-python#2826, 2026-01-19).
        }
    ),
    # `models` and `facts` are not set, because a model name on Azure is a deployment name that the user chooses
    # freely.
    address_variable="AZURE_OPENAI_ENDPOINT",
    address_path="/openai/v1/",
    needs_address=True,
    key="AZURE_OPENAI_API_KEY",
    max_tokens="max_completion_tokens",  # reasoning models refuse `max_tokens` (how-to/reasoning)
    testing=_TESTING,
)


# -- Mistral: docs.mistral.ai (read 2026-11-22), and the SDK `mistralai` 3.7.0 -------------------------------


def _mistral_audio(block: MediaBlock) -> dict[str, Any]:
    """Writes an audio block as a content part for Mistral (mistralai SDK: AudioChunk).

    Unlike OpenAI's part, `input_audio` contains the base64 text or the URL directly, without an object.
    """
    source = block.source
    return {"type": "input_audio", "input_audio": source.data if isinstance(source, Base64Source) else source.url}


def _mistral_document(block: MediaBlock) -> dict[str, Any]:
    """Writes a document block as a content part for Mistral (mistralai SDK: DocumentURLChunk)."""
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
            "turns.text_joining": "apart",  # a message can have several content parts (mistralai SDK)
            # The API requires alternating turns: "Unexpected role 'user' after role 'tool'" (datapizza#98,
            # 2025-12-04). A system message must not follow an assistant message or a tool result (mistral_common
            # 1.13.1).
            "thinking.mode": "text",
            # An image can have at most 10 MB, which is about 13,900,000 characters of base64 text (docs:
            # capabilities/vision).
            "media.image": MediaRule(
                types=media_types("image", "png jpeg webp gif"),
                schemes=_WEB,
                limits=MediaLimits(count=8, side=10_000, data=13_900_000),
            ),
            "media.document": MediaRule(types=_PDF, schemes=_WEB),
            # The API refuses unknown keys with status 422 and the error `extra_forbidden`: autogen#2457,
            # openfox#220 (2026-08-07).
            "opaque.passthrough_keys": {**CLOSED_KEYS, "text": frozenset({"message.prefix"})},
        }
    ),
    facts=(
        ModelFact(
            r"voxtral",
            {"media.audio": MediaRule(types=_AUDIO_TYPES, schemes=_WEB)},
            "only Voxtral models accept audio (mistralai SDK: AudioChunk)",
            "2026-11-22",
        ),
    ),
    models=_MISTRAL_MODELS,
    address="https://api.mistral.ai/v1",
    key="MISTRAL_API_KEY",
    max_tokens="max_tokens",  # `max_completion_tokens` is refused with status 422: eca#231 (2025-12-12)
    # Streams always report usage. The API refuses `stream_options` with status 422: litellm#8978 (2025-03-04),
    # llxprt#114 (2025-08-07).
    stream_usage=False,
    reasoning_parts=True,  # thinking parts precede all other parts (docs: reasoning; mistral_common 1.13.1)
    reasoning_fields=(),
    # The last message can be an assistant message only with the key `prefix`. Error text: "Expected last role User
    # or Tool (or Assistant with prefix True)" (smolagents#757).
    last_keys=frozenset({"prefix"}),  # `prefix` asks the model to continue the message (mistralai SDK)
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
            # Some chat templates use reasoning, others ignore it: llama.cpp#18994 (2026-01).
            "thinking.mode": "text",
            # The server silently treats a `tool_choice` object as "auto": llama.cpp#26535 (2026-08-03).
            "tools.choices": frozenset({"auto", "none", "required"}),
            "media.image": MediaRule(types=media_types("image", "png jpeg gif bmp"), schemes=_WEB),
            "media.audio": MediaRule(types=_AUDIO_TYPES),
        }
    ),
    address="http://localhost:8080/v1",
    keyless="sk-no-key-required",  # a server requires a key only if it was started with `--api-key`
    max_tokens="max_tokens",  # llama.cpp ignored `max_completion_tokens` before PR 19831 (2026-02-23)
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
            "media.image": MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB),
            "opaque.passthrough_keys": CLOSED_KEYS,  # some servers refuse unknown keys in messages
        }
    ),
    needs_address=True,
    keyless="EMPTY",  # without this value, the SDK would send the user's OpenAI key to this server
    reasoning_parts=True,  # needed only for replies; requests to these servers contain no thinking
    testing=_TESTING,
)
"""Description of any OpenAI-compatible server for which this module has no other description.

Example: `ChatModel("compatible:MODEL", client_options={"base_url": "http://localhost:1234/v1"})`. Reasoning is
read from all keys and content parts in which servers send reasoning, but is never sent back. Requests use only
features that even strict servers accept. If the chat template of a model has other rules, pass the option
`model_rules`.
"""

AZURE_PROVIDER = AZURE.provider()
COMPATIBLE_PROVIDER = COMPATIBLE.provider()
LLAMA_CPP_PROVIDER = LLAMA_CPP.provider()
MISTRAL_PROVIDER = MISTRAL.provider()
OPENROUTER_PROVIDER = OPENROUTER.provider()
