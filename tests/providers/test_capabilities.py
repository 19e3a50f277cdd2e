"""Capabilities: the row that each real model id matches, at the provider, in clouds and through gateways."""

import datetime as dt
from dataclasses import fields
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import MultiAgentHistory, load_provider
from agentkit.capabilities.model_names import normalize_model_name
from agentkit.provider_kit import Capabilities
from agentkit.tokens.media_tokens import find_image_rule
from agentkit.tokens.model_encodings import find_encoding
from tests.cases import each_case
from tests.profiles import examples

_MODES: Final = ("auto", "none", "required", "tool")
_FORCED: Final = frozenset(_MODES)
_FREE: Final = frozenset({"auto", "none"})


def _capabilities(provider: str, model: str | None) -> Capabilities:
    return load_provider(provider).chat_formatter(history=MultiAgentHistory()).capabilities(model)


def _facts(provider: str, model: str | None) -> dict[str, Any]:
    capabilities = _capabilities(provider, model)
    return {field.name: getattr(capabilities, field.name) for field in fields(capabilities)}


# -- Anthropic ---------------------------------------------------------------------------------------

# Per model: forced tools, thinking bound to its prefix, prefill, images in one request.
_CLAUDE: Final = {
    "claude-instant-1.2": (True, False, True, 100),
    "claude-2.1": (True, False, True, 100),
    "claude-3-haiku-20240307": (True, False, True, 100),
    "claude-3-5-sonnet-20241022": (True, False, True, 100),
    "claude-3-7-sonnet-latest": (True, False, True, 100),
    "claude-opus-4-20250514": (True, False, True, 100),
    "claude-4-opus-20250514": (True, False, True, 100),
    "claude-sonnet-4-0": (True, False, True, 100),
    "claude-opus-4-1-20250805": (True, False, True, 100),
    "claude-haiku-4-5": (True, False, True, 100),
    "claude-sonnet-4-5-20250929": (True, False, True, 100),
    "claude-opus-4-5-20251101": (True, False, True, 100),
    "claude-opus-4.5": (True, False, True, 100),
    "claude-opus-4-6": (True, False, False, 600),
    "claude-sonnet-4-6": (True, False, False, 600),
    "claude-opus-4.7": (True, False, False, 600),
    "claude-opus-4-8": (True, False, False, 600),
    "claude-sonnet-5": (True, False, False, 600),
    "claude-opus-5": (True, False, False, 600),
    "claude-fable-5": (True, False, False, 600),
    "claude-mythos-5": (True, False, False, 600),
    "claude-haiku-5-5": (True, True, False, 600),
    "claude-sonnet-5-5": (False, True, False, 600),
    "claude-opus-5-5": (False, True, False, 600),
    "claude-opus-5.5": (False, True, False, 600),
    "claude-fable-5-1": (False, True, False, 600),
    "claude-mythos-5-1": (False, True, False, 600),
    "claude-fable-5-2": (False, True, False, 600),
    "claude-mythos-5-2": (False, True, False, 600),
    "claude-mythos-preview": (False, True, False, 100),
    "claude-opus-6": (False, True, False, 600),
    "tomorrows-model": (False, True, False, 100),
}

_BEDROCK: Final = (
    "{}-v1:0",
    "anthropic.{}-v1:0",
    "us.anthropic.{}-v1:0",
    "us-gov.anthropic.{}-v1",
    "global.anthropic.{}",
    "bedrock/converse/eu.anthropic.{}-v1:0:200k",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/apac.anthropic.{}-v1:0",
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.{}-v1:0",
)
_GATEWAYS: Final = (
    "{}",
    "anthropic/{}",
    "openrouter/anthropic/{}",
    "azure_ai/{}",
    "vertex_ai/{}@default",
    "publishers/anthropic/models/{}@20260301",
    "projects/p/locations/global/publishers/anthropic/models/{}",
    "databricks-{}",
    "system.ai.{}",
    "{}[1m]",
    "{}-20260301",
    "{}@20260301",
)


@each_case("place", [*_GATEWAYS, *_BEDROCK])
def test_a_claude_model_has_its_row_in_every_cloud(place: str) -> None:
    for model, expected in _CLAUDE.items():
        capabilities = _capabilities("anthropic", place.format(model))
        assert capabilities.media.image is not None
        assert capabilities.media.image.limits is not None
        facts = (
            capabilities.tools.choices == _FORCED,
            capabilities.thinking.binds_prefix,
            not capabilities.turns.last_user,
            capabilities.media.image.limits.count,
        )
        assert facts == expected, model


@pytest.mark.parametrize("model", ["anthropic.claude-v2", "anthropic.claude-v2:1", "anthropic.claude-instant-v1"])
def test_the_first_claude_models_of_bedrock_have_a_row(model: str) -> None:
    capabilities = _capabilities("anthropic", model)
    assert (capabilities.tools.choices, capabilities.thinking.binds_prefix, capabilities.turns.last_user) == (
        _FORCED,
        False,
        False,
    )


def test_a_target_without_a_model_has_the_capabilities_of_all_current_models() -> None:
    capabilities = _capabilities("anthropic", None)
    assert (capabilities.tools.choices, capabilities.thinking.binds_prefix, capabilities.turns.last_user) == (
        _FREE,
        True,
        True,
    )
    assert capabilities.media.image is not None
    assert capabilities.media.image.limits is not None
    assert capabilities.media.image.limits.count == 100


# -- OpenAI ------------------------------------------------------------------------------------------

# Per model: whether reasoning is bound to its prefix, and whether content parts take cache markers.
_GPT: Final = {
    "gpt-4o-2024-11-20": (False, False),
    "gpt-4.1": (False, False),
    "gpt-4-0613": (False, False),
    "gpt-5": (False, False),
    "gpt-5-2025-08-07": (False, False),
    "gpt-5-mini-2025-08-07": (False, False),
    "gpt-5.2-2025-12-11": (False, False),
    "gpt-5.5-2026-04-23": (False, False),
    "gpt-5.6-sol": (False, True),
    "gpt-5.6-terra": (False, False),
    "gpt-6-sol": (False, True),
    "gpt-6-astra": (False, True),
    "gpt-6-2026-06-11": (False, True),
    "gpt-6-luna-2026-06-11": (False, True),
    "gpt-6.1-sol": (False, True),
    "gpt-6.1-sol-2026-10-02": (False, True),
    "gpt-6.1-terra": (False, False),
    "gpt-6.2-astra": (True, True),
    "gpt-6.2-sol-2026-11-17": (True, True),
    "gpt-7": (True, True),
    "o1": (False, False),
    "o3-2025-04-16": (False, False),
    "o4-mini": (False, False),
    "codex-mini-latest": (False, False),
    "chatgpt-4o-latest": (False, False),
    "gpt-oss-120b": (False, False),
    "tomorrows-model": (True, False),
}


@each_case(
    "place",
    [
        "{}",
        "openai/{}",
        "azure/{}",
        "openrouter/openai/{}",
        "ft:{}:acme:a:b",
        "openai.{}-v1:0",
        "{}-2026-12-24",
    ],
)
def test_a_gpt_model_has_its_row_through_every_gateway(place: str) -> None:
    for model, expected in _GPT.items():
        capabilities = _capabilities("openai-responses", place.format(model))
        assert (capabilities.thinking.binds_prefix, capabilities.cache_breakpoints) == expected, model


@each_case(
    ("model", "audio"),
    [
        ("gpt-audio-mini-2025-12-15", True),
        ("openai/gpt-4o-audio-preview-2025-06-03", True),
        ("gpt-4o-mini-audio-preview", True),
        ("gpt-4o", False),
        ("gpt-6-sol", False),
    ],
)
def test_audio_is_for_audio_models(model: str, audio: bool) -> None:
    assert (_capabilities("openai", model).media.audio is not None) is audio


# -- Gemini, DeepSeek, DashScope, vLLM ---------------------------------------------------------------


@each_case("place", ["{}", "models/{}", "google/{}", "vertex_ai/{}", "publishers/google/models/{}"])
@each_case(
    ("model", "media"),
    [
        ("gemini-1.5-pro-002", False),
        ("gemini-2.0-flash-001", False),
        ("gemini-2.5-pro-preview-05-06", False),
        ("gemini-2.5-flash-preview-09-2025", False),
        ("gemini-3-pro-preview", True),
        ("gemini-3.5-flash", True),
        ("gemini-4-argon", True),
        ("gemini-10-pro", True),
    ],
)
def test_results_can_contain_media_from_gemini_3_on(model: str, media: bool, place: str) -> None:
    capabilities = _capabilities("gemini", place.format(model))
    assert bool(capabilities.media.result_kinds) is media
    assert (capabilities.opaque.placeholder_signature is not None) is media


@each_case(
    ("model", "choices", "sees"),
    [
        ("deepseek-chat", _FORCED, False),
        ("deepseek/deepseek-chat", _FORCED, False),
        ("deepseek-chat-v3-0324", _FORCED, False),
        ("deepseek-reasoner", _FREE, False),
        ("deepseek-v4-pro", _FREE, False),
        ("deepseek-flash", _FREE, True),
        ("deepseek-v4-flash", _FREE, True),
        (None, _FREE, False),
    ],
)
def test_deepseek_accepts_a_forced_tool_without_thinking(
    model: str | None, choices: frozenset[str], sees: bool
) -> None:
    capabilities = _capabilities("deepseek", model)
    assert (capabilities.tools.choices, capabilities.media.image is not None) == (choices, sees)
    assert (capabilities.thinking.mode == "never") is (choices == _FORCED)


# Per model: its path, and if it accepts a named tool.
_QWEN: Final = {
    "qwen-plus": ("text", True),
    "qwen-plus-2025-07-28": ("text", True),
    "qwen-max-0428": ("text", True),
    "qwen-turbo-latest": ("text", True),
    "qwen-flash": ("text", True),
    "qwen-long": ("text", False),
    "qwen-coder-plus": ("text", True),
    "qwen-coder-turbo-0919": ("text", True),
    "qwen-math-plus": ("text", True),
    "qwen-mt-turbo": ("text", False),
    "qwen-7b-chat": ("text", False),
    "qwen1.5-72b-chat": ("text", True),
    "qwen2-7b-instruct": ("text", True),
    "qwen2-vl-7b-instruct": ("multimodal", False),
    "qwen2-audio-instruct": ("multimodal", False),
    "qwen2.5-72b-instruct": ("text", True),
    "qwen2.5-coder-32b-instruct": ("text", True),
    "qwen2.5-math-7b-instruct": ("text", True),
    "qwen2.5-vl-72b-instruct": ("multimodal", False),
    "qwen2.5-omni-7b": ("multimodal", False),
    "qwen3-max": ("text", True),
    "qwen3-max-2025-09-23": ("text", True),
    "qwen3-coder-plus": ("text", True),
    "qwen3-next-80b-a3b-thinking": ("text", False),
    "qwen3-235b-a22b-instruct-2507": ("text", False),
    "qwen3-vl-plus": ("multimodal", False),
    "qwen3-omni-flash": ("multimodal", False),
    "qwen3.5-plus": ("multimodal", False),
    "qwen3.7-plus": ("multimodal", False),
    "qwen3.8-max": ("multimodal", False),
    "qwen-vl-max": ("multimodal", False),
    "qwen-vl-ocr": ("multimodal", False),
    "qwen-omni-turbo": ("multimodal", False),
    "qwen-audio-turbo": ("multimodal", False),
    "qvq-max": ("multimodal", False),
    "qwq-plus": ("text", False),
    "deepseek-v3.2": ("text", False),
    "deepseek-r1-distill-qwen-7b": ("text", False),
    "glm-4.5": ("text", False),
    "glm-4.5-air": ("text", False),
    "glm-4.5v": ("multimodal", False),
    "glm-4.6v-flash": ("multimodal", False),
    "glm-5": ("text", False),
    "kimi-k2-thinking": ("text", False),
    "MiniMax-M2.5": ("text", False),
    "tomorrows-model": ("multimodal", False),
}


@pytest.mark.parametrize("place", ["{}", "dashscope/{}", "{}-2026-01-23"])
def test_a_model_of_dashscope_has_its_path(place: str) -> None:
    for model, (path, named) in _QWEN.items():
        capabilities = _capabilities("dashscope", place.format(model))
        compatible = _capabilities("dashscope-compatible", place.format(model))
        assert ("text" if capabilities.turns.text_joining == "string" else "multimodal") == path, model
        assert ("tool" in capabilities.tools.choices) is named, model
        assert ("tool" in compatible.tools.choices) is named, model


@pytest.mark.parametrize("path", ["text", "multimodal"])
def test_a_path_option_changes_no_other_capability_of_the_model(path: str) -> None:
    formatter = load_provider("dashscope").chat_formatter
    chosen: Any = formatter
    capabilities = chosen("qwen-plus", path=path).capabilities()
    assert ("text" if capabilities.turns.text_joining == "string" else "multimodal") == path
    assert "tool" in capabilities.tools.choices


@each_case(
    ("model", "opaque"),
    [
        ("moonshotai/Kimi-K2-Instruct-0905", True),
        ("kimi-k2-thinking", True),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", False),
        ("mistral-nemo.Q4_K_M.gguf", False),
        ("Qwen/Qwen3-8B", False),
    ],
)
def test_vllm_sends_call_ids_back_unchanged_for_these_model_names(model: str, opaque: bool) -> None:
    assert (_capabilities("vllm", model).tools.call_ids is None) is opaque


# -- names -------------------------------------------------------------------------------------------

_MODELS: Final = [
    *[("anthropic", model) for model in _CLAUDE],
    *[("openai-responses", model) for model in _GPT],
    *[("openai", model) for model in _GPT],
    *[("dashscope", model) for model in _QWEN],
    *[("dashscope-compatible", model) for model in _QWEN],
    *[("deepseek", model) for model in ("deepseek-chat", "deepseek-v4-flash", "deepseek-v4-pro")],
    *[("gemini", model) for model in ("gemini-2.5-flash", "gemini-3-pro", "gemini-4-argon")],
    *[("vllm", model) for model in ("mistral-large", "kimi-k2-instruct")],
    *[("ollama", model) for model in ("qwen3", "llama3.3:70b")],
]


_DATES: Final = ("-%Y-%m-%d", "-%Y%m%d", "@%Y%m%d", "-%m%d", "-%y%m", "-%y%m%d", "-%m-%Y")


@given(st.sampled_from(_MODELS), st.dates(dt.date(2023, 1, 1), dt.date(2099, 12, 31)), st.data())
@examples(100)
def test_a_date_is_no_version(row: tuple[str, str], date: dt.date, data: st.DataObject) -> None:
    provider, model = row
    spelled = data.draw(st.sampled_from(_DATES))
    dated = f"{model}{date.strftime(spelled)}"
    assert _facts(provider, dated) == _facts(provider, model), dated
    assert find_image_rule(dated) is find_image_rule(model)
    assert find_encoding(dated) == find_encoding(model) or find_encoding(model).note


@given(st.sampled_from(_MODELS))
@examples(100)
def test_a_normalized_name_does_not_change(row: tuple[str, str]) -> None:
    assert normalize_model_name(normalize_model_name(row[1])) == normalize_model_name(row[1])
