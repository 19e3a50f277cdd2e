"""Outputs that a reply has outside its text: thinking, tool calls and citations."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Msg, OptionError, TextBlock, ThinkingBlock
from agentkit.prompts import (
    Adapter,
    ChatAdapter,
    Citation,
    InputField,
    JSONAdapter,
    OutputField,
    PromptAdapter,
    Reasoning,
    Signature,
    TwoStepAdapter,
    XMLAdapter,
    ask,
    stream,
)
from agentkit.testing import ScriptedModel
from agentkit_openai import OpenAIChatFormatter

pytestmark = pytest.mark.anyio


class Sum(Signature):
    """Add the numbers."""

    numbers: list[int] = InputField()
    why: Reasoning = OutputField()
    total: int = OutputField()


ADAPTERS: dict[str, tuple[Any, str]] = {
    "chat": (ChatAdapter(native_reasoning=True), "[[ ## total ## ]]\n3"),
    "json": (JSONAdapter(native_reasoning=True), '{"total": 3}'),
    "xml": (XMLAdapter(native_reasoning=True), "<total>3</total>"),
    "prompt": (PromptAdapter(native_reasoning=True), "3"),
}


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_prompt_omits_reasoning_and_the_thinking_is_the_output(name: str) -> None:
    adapter: Adapter = ADAPTERS[name][0]
    text: str = ADAPTERS[name][1]
    prompt = "".join(msg.text for msg in adapter.format(Sum, {"numbers": [1, 2]}))
    assert "why" not in prompt
    reply = Msg("F", [ThinkingBlock("One and two."), TextBlock(text)], "assistant")
    assert adapter.parse(Sum, reply) == {"why": "One and two.", "total": 3}
    assert isinstance(adapter.parse(Sum, reply)["why"], Reasoning)
    assert adapter.parse(Sum, text) == {"why": "", "total": 3}


def test_the_schema_omits_reasoning() -> None:
    capabilities = OpenAIChatFormatter(model="gpt-6").capabilities()
    options: Any = JSONAdapter(native_reasoning=True).request_options(Sum, capabilities)
    assert [*options["response_format"].schema["properties"]] == ["total"]


async def test_calls_and_streams_return_the_thinking() -> None:
    adapter, text = ADAPTERS["chat"]
    reply = Msg("F", [ThinkingBlock("One and two."), TextBlock(text)], "assistant")
    model = ScriptedModel([reply, reply])
    prediction = await ask(model, Sum(numbers=[1, 2]), adapter=adapter)
    assert (prediction.value.why, prediction.value.total) == ("One and two.", 3)
    async with stream(model, Sum(numbers=[1, 2]), adapter=adapter) as events:
        assert (await events.finish()).value == prediction.value


async def test_a_two_step_adapter_does_not_extract_reasoning() -> None:
    adapter = TwoStepAdapter(ScriptedModel(["[[ ## total ## ]]\n3"]), native_reasoning=True)
    reply = Msg("F", [ThinkingBlock("One and two."), TextBlock("It is three.")], "assistant")
    assert await adapter.extract(Sum, reply) == {"why": "One and two.", "total": 3}


def test_reasoning_with_a_default_gets_the_default_without_thinking() -> None:
    signature = Signature("q -> a", types={}).append("why", OutputField(default=Reasoning("none")), Reasoning)
    assert ChatAdapter(native_reasoning=True).parse(signature, "[[ ## a ## ]]\nx") == {"a": "x", "why": "none"}


def test_the_option_is_a_boolean_of_the_outer_adapter() -> None:
    with pytest.raises(OptionError, match="native_reasoning"):
        ChatAdapter(native_reasoning=1)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"modes\['short'\]\.native_reasoning"):
        PromptAdapter(modes={"short": PromptAdapter(native_reasoning=True)})


# -- citations ------------------------------------------------------------------------------------------------


class Report(Signature):
    """Answer from the documents."""

    question: str = InputField()
    answer: str = OutputField()
    sources: list[Citation] = OutputField()


CITING: dict[str, tuple[Any, str]] = {
    "chat": (ChatAdapter(native_citations=True), "[[ ## answer ## ]]\nIt rains."),
    "json": (JSONAdapter(native_citations=True), '{"answer": "It rains."}'),
    "xml": (XMLAdapter(native_citations=True), "<answer>It rains.</answer>"),
    "prompt": (PromptAdapter(native_citations=True), '{"value": "It rains."}'),
}


def cite(text: str) -> Msg:
    return Msg("F", [TextBlock(text, metadata={"citations": [{"cited_text": "Rain all day."}]})], "assistant")


@pytest.mark.parametrize("name", CITING)
def test_the_prompt_omits_citations_and_the_citations_of_the_reply_are_the_output(name: str) -> None:
    adapter: Adapter = CITING[name][0]
    text: str = CITING[name][1]
    prompt = "".join(msg.text for msg in adapter.format(Report, {"question": "Weather?"}))
    assert "sources" not in prompt
    assert adapter.parse(Report, cite(text)) == {
        "answer": "It rains.",
        "sources": [Citation(cited_text="Rain all day.")],
    }
    assert adapter.parse(Report, Msg("F", text, "assistant")) == {"answer": "It rains.", "sources": []}
    assert adapter.parse(Report, text) == {"answer": "It rains.", "sources": []}


@pytest.mark.parametrize("kind", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_without_the_option_the_prompt_has_citations(kind: type[Adapter]) -> None:
    assert "sources" in kind().format(Report, {"question": "Weather?"})[0].text


def test_the_schema_omits_citations() -> None:
    capabilities = OpenAIChatFormatter(model="gpt-6").capabilities()
    options: Any = JSONAdapter(native_citations=True).request_options(Report, capabilities)
    assert [*options["response_format"].schema["properties"]] == ["answer"]


def test_reasoning_and_citations_can_be_native_together() -> None:
    signature = Report.append("why", OutputField(), Reasoning)
    adapter = ChatAdapter(native_reasoning=True, native_citations=True)
    assert [*adapter.select_fields(signature).output_fields] == ["answer"]
    assert [*ChatAdapter(native_citations=True).select_fields(signature).output_fields] == ["answer", "why"]
    reply = cite("[[ ## answer ## ]]\nIt rains.")
    assert [*adapter.parse(signature, reply)] == ["answer", "sources", "why"]


async def test_calls_and_streams_return_the_citations() -> None:
    adapter, text = CITING["chat"]
    model = ScriptedModel([cite(text), cite(text)])
    prediction = await ask(model, Report(question="Weather?"), adapter=adapter)
    assert prediction.value.sources == [Citation(cited_text="Rain all day.")]
    async with stream(model, Report(question="Weather?"), adapter=adapter) as events:
        assert (await events.finish()).value == prediction.value


async def test_a_two_step_adapter_does_not_extract_citations() -> None:
    adapter = TwoStepAdapter(ScriptedModel(["[[ ## answer ## ]]\nIt rains."]), native_citations=True)
    assert "sources" not in adapter.format(Report, {"question": "Weather?"})[0].text
    outputs = await adapter.extract(Report, cite("It rains."))
    assert outputs == {"answer": "It rains.", "sources": [Citation(cited_text="Rain all day.")]}


def test_native_citations_are_a_boolean_of_the_outer_adapter() -> None:
    with pytest.raises(OptionError, match="native_citations"):
        ChatAdapter(native_citations=1)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"modes\['short'\]\.native_citations"):
        PromptAdapter(modes={"short": PromptAdapter(native_citations=True)})
