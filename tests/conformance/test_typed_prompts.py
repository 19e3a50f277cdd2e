"""Typed prompts against the server of llama.cpp, which forces the reply to match the schema of the outputs."""

from __future__ import annotations

from typing import Any, Final, Literal

import openai
import pytest

from agentkit import ChatModel
from agentkit.prompts import FieldEnd, InputField, JSONAdapter, OutputField, Signature, ask, stream
from tests.conformance.llama_cpp import LlamaServer
from tests.providers import user

pytestmark = pytest.mark.anyio

MODEL: Final = "tiny"
PROVIDERS: Final = ("llamacpp", "openai", "vllm", "compatible")


class Judge(Signature):
    """Is the answer grounded in the passages?"""

    passages: list[str] = InputField()
    answer: str = InputField()
    verdict: Literal["invented", "grounded"] = OutputField()
    score: int = OutputField(ge=0, le=10)
    reasons: list[str] = OutputField(min_length=1)


def create_model(llama: LlamaServer, provider: str) -> ChatModel:
    client: Any = openai.AsyncOpenAI(api_key="none", base_url=f"{llama.url}/v1", max_retries=0)
    return ChatModel(provider, MODEL, client=client, max_tokens=256)


def check_value(value: Any) -> None:
    """Checks the outputs. The model has equal scores for the two verdicts."""
    assert value.verdict in ("invented", "grounded")
    assert (value.score, value.reasons) == (7, ["hi"])


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_ask_returns_the_values_that_the_schema_allows(llama: LlamaServer, provider: str) -> None:
    model = create_model(llama, provider)
    prediction = await ask(model, Judge(passages=["The sea."], answer="Sea."), adapter=JSONAdapter())
    check_value(prediction.value)
    assert len(prediction.attempts) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_stream_returns_the_values_that_the_schema_allows(llama: LlamaServer, provider: str) -> None:
    request = Judge(passages=["The sea."], answer="Sea.")
    async with stream(create_model(llama, provider), request, adapter=JSONAdapter()) as events:
        ends = {event.name: event.value async for event in events if isinstance(event, FieldEnd)}
    check_value(events.prediction.value)
    assert ends == {name: getattr(events.prediction.value, name) for name in ("verdict", "score", "reasons")}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_generate_as_returns_a_value_of_a_type_that_is_no_object(llama: LlamaServer, provider: str) -> None:
    value = await create_model(llama, provider).generate_as(list[Literal["sea"]] | int, [user("Write.")])
    assert value == 7 or value == ["sea"] * len(value)
