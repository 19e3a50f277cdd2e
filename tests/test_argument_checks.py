"""Unknown options: type checkers refuse them, and the error at run time suggests the right name.

Each `type: ignore` in this file is a test: mypy, which `.ci/run` calls for all files, reports each `type: ignore`
that suppresses no error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from agentkit import (
    Budget,
    ChatModel,
    Msg,
    OptionError,
    ProviderError,
    compare,
    load_provider,
)
from agentkit.testing import ScriptedModel
from agentkit_openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS

pytestmark = pytest.mark.anyio

HELLO: Final = [Msg("Bob", "hi", "user")]


async def _list_calls(model: ScriptedModel) -> list[Callable[[], object]]:
    """Returns calls that type checkers refuse."""
    return [
        lambda: ChatModel("openai:m", on_loss="rasie"),  # type: ignore[arg-type]
        lambda: ChatModel("openai:m", on_los="raise"),  # type: ignore[call-arg]
        lambda: ChatModel("openai:m", temperature=0),  # type: ignore[call-arg]
        lambda: ChatModel("openai:m", max_tokens="9"),  # type: ignore[arg-type]
        lambda: ScriptedModel([], replann=True),  # type: ignore[call-arg]
        lambda: OpenAIChatFormatter(on_loss="rasie"),  # type: ignore[arg-type]
        lambda: OpenAIChatFormatter(token_counter=3),  # type: ignore[call-arg]
        lambda: load_provider("openai").chat_formatter(on_loss="rasie"),  # type: ignore[arg-type]
        lambda: load_provider("openai").chat_formatter(histroy=None),  # type: ignore[call-arg]
        lambda: model.stream(HELLO, tool_chioce="auto"),  # type: ignore[call-arg]
    ]


async def _list_awaited_calls(model: ScriptedModel) -> list[Callable[[], Awaitable[object]]]:
    return [
        lambda: model.generate(HELLO, tool_chioce="auto"),  # type: ignore[call-arg]
        lambda: model.generate(HELLO, temperature=0),  # type: ignore[call-arg]
        lambda: model.plan(HELLO, tool_chioce="auto"),  # type: ignore[call-arg]
        lambda: model.count(HELLO, tool_chioce="auto"),  # type: ignore[call-arg]
        lambda: compare(HELLO, [model], tool_chioce="auto"),  # type: ignore[call-arg]
        lambda: OpenAIChatFormatter().format(HELLO, tool_chioce="auto"),  # type: ignore[call-arg]
        lambda: OpenAIChatFormatter().plan(HELLO, tool_chioce="auto"),  # type: ignore[call-arg]
    ]


async def test_a_call_that_type_checkers_refuse_raises_an_option_error() -> None:
    model = ScriptedModel(["Hello."])
    for call in await _list_calls(model):
        with pytest.raises(OptionError):
            call()
    for awaited in await _list_awaited_calls(model):
        with pytest.raises(OptionError):
            await awaited()
    assert model.calls == []


Case = tuple[Callable[..., object], dict[str, Any], str]


@each_case(
    ("make", "options", "sentence"),
    [
        (ChatModel, {"on_los": "raise"}, "on_los: ChatModel has no such option. Did you mean 'on_loss'?"),
        (ChatModel, {"cleint": 1}, "cleint: ChatModel has no such option. Did you mean 'client'?"),
        (ChatModel, {"replann": True}, "Did you mean 'replan'?"),
        (ChatModel, {"top_k": 1}, "Pass a parameter of the provider as parameters={'top_k': …}"),
        (ChatModel, {"formatter_options": {"spoken_replie": "id"}}, "Did you mean 'spoken_replies'?"),
        (OpenAIChatFormatter, {"cache_breakpoint": "auto"}, "Did you mean 'cache_breakpoints'?"),
        (OpenAIChatFormatter, {"media_root": "."}, "Did you mean 'media_roots'?"),
        (
            OpenAIChatFormatter,
            {"nonsense": 1},
            "nonsense: OpenAIChatFormatter has no such option. Remove this option.",
        ),
    ],
)
def test_an_unknown_option_is_refused_with_the_most_similar_one(
    make: Callable[..., object], options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(OptionError) as caught:
        make("openai:m", **options)
    assert sentence in str(caught.value)


@each_case(
    ("name", "advice"),
    [
        ("token_counter", "budget=Budget(max_tokens, counter=…)"),
        ("max_tokens", "budget=Budget(max_tokens, counter=…)"),
        ("conversation_history_prompt", "history=MultiAgentHistory(preamble=…)"),
        ("promote_tool_result_images", "Remove this option"),
        ("promote_tool_result_audios", "Remove this option"),
        ("promote_tool_result_videos", "Remove this option"),
    ],
)
@each_case("provider", MESSAGE_PROVIDERS)
def test_options_of_agentscopes_formatters_get_the_new_name(provider: str, name: str, advice: str) -> None:
    known = load_provider(provider)
    for make in (known.chat_formatter, known.multi_agent_formatter):
        with pytest.raises(OptionError, match=f"^{name}: {make.__name__} has no such option") as caught:
            make(**{name: 3})  # type: ignore[arg-type]
        assert advice in str(caught.value)


@each_case(
    ("name", "advice"),
    [
        ("model_name", "model="),
        ("api_key", "client_options={'api_key': …}"),
        ("base_url", "client_options={'base_url': …}"),
        ("client_args", "client_options="),
        ("client_kwargs", "client_options="),
        ("generate_kwargs", "parameters="),
        ("stream", "stream()"),
        ("formatter", "Remove this option"),
        ("token_counter", "budget="),
        ("reasoning_effort", "parameters={'reasoning_effort': …}"),
        ("enable_thinking", "parameters={'enable_thinking': …}"),
    ],
)
def test_options_of_agentscopes_models_get_the_new_name(name: str, advice: str) -> None:
    options: dict[str, Any] = {name: 3}
    with pytest.raises(OptionError, match=f"^{name}: ChatModel has no such option") as caught:
        ChatModel("openai:m", **options)
    assert advice in str(caught.value)


async def test_the_option_for_structured_output_gets_the_new_name() -> None:
    options: dict[str, Any] = {"structured_model": dict}
    with pytest.raises(OptionError, match="response_format"):
        await ScriptedModel(["Hello."]).generate(HELLO, **options)


@each_case("name", ["tool_chioce", "response_fromat", "toolchoice", "max_token", "tol_choice"])
async def test_a_misspelled_option_among_the_parameters_reaches_no_provider(name: str) -> None:
    model = ScriptedModel(["Hello."])
    with pytest.raises(OptionError, match=rf"^parameters\.{name}: .* Did you mean "):
        await model.generate(HELLO, parameters={name: "auto"})
    with pytest.raises(OptionError, match=rf"^parameters\.{name}: "):
        ChatModel("openai:m", parameters={name: "auto"})
    assert model.calls == []


PROVIDERS_OWN: Final = (
    "max_completion_tokens max_output_tokens min_tokens max_input_tokens tool_config parallel_tool_calls models "
    "response_mime_type response_json_schema response_modalities stream_options top_k max_tool_calls "
    "truncate_prompt_tokens thinking_budget_tokens reasoning_format tool_resources max_new_tokens"
)
"""Parameters of providers with names that are similar to options of a call."""


@each_case("name", PROVIDERS_OWN.split())
async def test_a_parameter_with_a_similar_name_is_sent(name: str) -> None:
    model = ScriptedModel(["Hello."])
    await model.generate(HELLO, parameters={name: 3})
    assert model.calls[0].parameters == {name: 3}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("o3", "openai:o3"),
        ("o4-mini", "openai:o4-mini"),
        ("chatgpt-4o-latest", "openai:chatgpt-4o-latest"),
        ("claude-opus-5", "anthropic:claude-opus-5"),
        ("gemini-3-pro", "gemini:gemini-3-pro"),
        ("deepseek-chat", "deepseek:deepseek-chat"),
        ("qwen3-max", "dashscope:qwen3-max"),
    ],
)
def test_the_error_for_a_model_name_without_a_provider_shows_the_full_name(name: str, meant: str) -> None:
    for make in (load_provider, ChatModel):
        with pytest.raises(ProviderError, match="no such provider") as caught:
            make(name)
        assert f"For a model, write '{meant}'." in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("opnai", "openai"), ("OpenAI", "openai"), ("antropic", "anthropic"), ("Gemini", "gemini")],
)
def test_the_error_for_a_misspelled_provider_suggests_the_right_name(name: str, meant: str) -> None:
    with pytest.raises(ProviderError, match=f"no such provider. Did you mean {meant!r}"):
        ChatModel(f"{name}:m")


async def test_an_option_of_the_formatter_can_be_passed_by_name() -> None:
    model = ChatModel("openai:m", formatter_options={"spoken_replies": "transcript"}, cache_breakpoints="auto")
    assert isinstance(model.formatter, OpenAIChatFormatter)
    assert (model.formatter.spoken_replies, model.formatter.cache_breakpoints) == ("transcript", "auto")


async def test_the_error_for_an_invalid_value_lists_the_valid_values() -> None:
    wrong: dict[str, Any] = {"on_loss": "rasie"}
    sentence = r"^on_loss: unknown value 'rasie'\. Use describe, drop or raise"
    with pytest.raises(OptionError, match=sentence):
        OpenAIMultiAgentFormatter(**wrong)
    with pytest.raises(OptionError, match=sentence):
        ChatModel("openai:m", **wrong)
    assert ChatModel("openai:m", budget=Budget(9)).replan
