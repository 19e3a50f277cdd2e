"""Remote token counters: rules that all of them follow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentkit import (
    CharacterTokenCounter,
    ModelError,
    OptionError,
    TokenCounterBase,
)
from agentkit_anthropic import AnthropicTokenCounter
from agentkit_gemini import GeminiTokenCounter
from agentkit_openai import OpenAITokenCounter
from agentkit_vllm import VLLMTokenCounter
from tests.cases import each_case
from tests.providers.counting import MODEL

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", [AnthropicTokenCounter, GeminiTokenCounter, OpenAITokenCounter])
async def test_bad_options_are_refused_by_the_constructor(kind: Any) -> None:
    for bad in ({"call": "no"}, {"call": print, "model": None}, {"call": print, "local": TokenCounterBase}):
        with pytest.raises(OptionError):
            kind(**{"model": MODEL, **bad})


async def test_a_synchronous_client_is_refused() -> None:
    counter = AnthropicTokenCounter(dict, model=MODEL)
    with pytest.raises(OptionError, match="async client"):
        await counter.count({"messages": []})


ANSWERS: Any = [{}, None, "text", -1, True, "5", 1e308, float("nan"), float("inf"), [5], {"tokens": 5}]


@each_case("value", ANSWERS)
@pytest.mark.parametrize("kind", [AnthropicTokenCounter, GeminiTokenCounter, OpenAITokenCounter, VLLMTokenCounter])
async def test_a_count_that_is_not_a_number_is_an_error(kind: Any, value: Any) -> None:
    """The SDKs check no types: an answer contains any value that the server sent."""
    names = ("input_tokens", "total_tokens", "count")

    async def call(*_args: object, **_named: object) -> Any:
        named: dict[str, Any] = dict.fromkeys(names, value)
        return named if kind is VLLMTokenCounter else SimpleNamespace(**named) if value != {} else value

    options: dict[str, Any] = {"url": "http://host/tokenize"} if kind is VLLMTokenCounter else {}
    counter = kind(call, model=MODEL, **options)
    with pytest.raises(ModelError, match=f"^{kind.__name__}: the endpoint returned .* expected a number"):
        await counter.count({"messages": [], "contents": [], "input": []})


async def test_a_remote_counter_places_cuts_with_its_local_one() -> None:
    local = CharacterTokenCounter(5)
    assert AnthropicTokenCounter(print, model=MODEL, local=local).local_counter is local
    assert isinstance(GeminiTokenCounter(print, model=MODEL).local_counter, CharacterTokenCounter)
