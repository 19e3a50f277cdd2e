"""Outputs that a reply has outside its text: thinking, tool calls and citations."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Msg, OptionError, ParseError, TextBlock, ThinkingBlock, Tool, ToolUseBlock
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
from tests.cases import each_case

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


@each_case("name", [*ADAPTERS])
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


# -- tool calls -----------------------------------------------------------------------------------------------


class Router(Signature):
    """Choose the next tool calls."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: list[ToolUseBlock] = OutputField(min_length=1, max_length=1)


CALL = ToolUseBlock("c1", "look", {})
ONE_CALL = Msg("F", [CALL], "assistant")
TWO_CALLS = Msg("F", [CALL, ToolUseBlock("c2", "look", {})], "assistant")


@each_case("kind", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_a_missing_section_for_tool_calls_is_no_empty_list(kind: type[Adapter]) -> None:
    adapter = kind(native_tools=False)
    with pytest.raises(ParseError) as caught:
        adapter.parse(Router, "I would look.")
    assert caught.value.failure == "no_structure"
    assert adapter.parse(Router, ONE_CALL) == {"calls": [CALL]}
    optional = Router.with_updated_fields("calls", default_factory=lambda: [CALL])
    reply = "{}" if kind is JSONAdapter else "I would look."
    assert adapter.parse(optional, reply) == {"calls": [CALL]}


@each_case("kind", [ChatAdapter, JSONAdapter, XMLAdapter, PromptAdapter])
@each_case(("reply", "count"), [(Msg("F", "{}", "assistant"), 0), (TWO_CALLS, 2)])
def test_tool_calls_obey_the_constraints_of_their_output(kind: type[Adapter], reply: Msg, count: int) -> None:
    adapter = kind(native_tools=True)
    assert adapter.parse(Router, ONE_CALL) == {"calls": [CALL]}
    with pytest.raises(ParseError, match=f"not {count}") as caught:
        adapter.parse(Router, reply)
    error = caught.value
    assert (error.failure, error.place, error.message) == ("wrong_value", "calls", reply)


def test_tool_calls_in_a_text_obey_the_constraints_of_their_output() -> None:
    section = '[[ ## calls ## ]]\n[{"name": "look", "args": {}}'
    assert ChatAdapter().parse(Router, f"{section}]")["calls"][0].name == "look"
    with pytest.raises(ParseError, match="not 2"):
        ChatAdapter().parse(Router, f'{section}, {{"name": "look", "args": {{}}}}]')


def test_a_reply_without_tool_calls_has_the_default_of_their_output() -> None:
    signature = Router.with_updated_fields("calls", default_factory=list)
    assert ChatAdapter(native_tools=True).parse(signature, "No.") == {"calls": []}


def test_a_constraint_does_not_hide_that_a_reply_was_cut_off() -> None:
    ended = Msg("F", TWO_CALLS.content, "assistant", metadata={"reply": {"finish_reason": "length"}})
    with pytest.raises(ParseError) as caught:
        ChatAdapter(native_tools=True).parse(Router, ended)
    assert caught.value.failure == "cut_off"


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


@each_case("name", [*CITING])
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


@each_case("kind", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_without_the_option_the_prompt_has_citations(kind: type[Adapter]) -> None:
    assert "sources" in kind().format(Report, {"question": "Weather?"})[0].text


@each_case("kind", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_a_missing_section_for_citations_is_no_empty_list(kind: type[Adapter]) -> None:
    text: str = next(text for adapter, text in CITING.values() if type(adapter) is kind)
    with pytest.raises(ParseError) as caught:
        kind().parse(Report, text)
    assert (caught.value.failure, caught.value.place) == ("no_structure", "sources")
    assert kind().parse(Report, cite(text))["sources"] == [Citation(cited_text="Rain all day.")]


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
