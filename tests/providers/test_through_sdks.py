"""Every example conversation through every real SDK: the server receives the request of the formatter."""

import asyncio
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, MultiAgentHistory, load_messages
from tests.cases import each_case
from tests.conversations import histories
from tests.profiles import examples
from tests.providers import LOOK, PROVIDERS, chat, multi_agent, problems, user
from tests.wire.loopback import Captured, get_expected_body, send

DATA: Final = Path(__file__).parents[2] / "examples" / "data"
EXAMPLES: Final = sorted(path.stem for path in DATA.glob("*.json"))
KINDS: Final = ("chat", "multi-agent", "viewer")
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}


@cache
def _example(name: str) -> list[Msg]:
    return load_messages((DATA / f"{name}.json").read_text())


def _request(provider: str, kind: str, msgs: list[Msg], model: str | None = None, **asked: Any) -> dict[str, Any]:
    if kind == "chat":
        formatter = chat(provider, model)
    elif kind == "multi-agent":
        formatter = multi_agent(provider, model)
    else:
        formatter = multi_agent(provider, model, history=MultiAgentHistory(viewer="Friday"))
    return asyncio.run(formatter.format(msgs, **asked))


def _assert_sent(provider: str, request: dict[str, Any], captured: Captured) -> None:
    assert captured.other_paths == []
    assert captured.body == get_expected_body(provider, request)


def test_every_kind_of_example_exists() -> None:
    assert EXAMPLES == ["debate", "extraction", "library", "poisoned", "react"]


@each_case("kind", KINDS)
@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("example", EXAMPLES)
def test_the_request_of_each_example_obeys_the_rules_of_its_api(example: str, provider: str, kind: str) -> None:
    assert problems(provider, _request(provider, kind, _example(example))) == []


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case(
    ("example", "kind"),
    [*((example, "chat") for example in EXAMPLES), ("debate", "multi-agent"), ("poisoned", "multi-agent")],
)
def test_the_real_sdk_sends_an_example_as_it_was_formatted(example: str, provider: str, kind: str) -> None:
    request = _request(provider, kind, _example(example))
    _assert_sent(provider, request, asyncio.run(send(provider, request)))


@each_case("kind", KINDS[:2])
@each_case("example", EXAMPLES)
def test_the_text_path_of_dashscope_accepts_the_examples_too(example: str, kind: str) -> None:
    request = _request("dashscope", kind, _example(example), "qwen-plus")
    assert problems("dashscope", request) == []
    _assert_sent("dashscope", request, asyncio.run(send("dashscope", request, path="text")))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tools_a_tool_choice_and_an_output_schema_are_sent(provider: str) -> None:
    request = _request(provider, "chat", [user("Look.")], tools=[LOOK], tool_choice="auto", response_format=SCHEMA)
    assert problems(provider, request) == []
    _assert_sent(provider, request, asyncio.run(send(provider, request)))


NATIVE_MODELS: Final = (
    ("anthropic", "claude-opus-5"),
    ("dashscope", "qwen3.5-plus"),
    ("deepseek", "deepseek-flash"),
    ("gemini", "gemini-3-pro"),
    ("openai", "gpt-audio-mini"),
    ("vllm", "mistralai/Mistral-Small"),
)


@each_case("kind", KINDS)
@pytest.mark.parametrize(("provider", "model"), NATIVE_MODELS)
@each_case("example", EXAMPLES)
def test_the_request_of_each_example_obeys_the_rules_of_special_models(
    example: str, provider: str, model: str, kind: str
) -> None:
    assert problems(provider, _request(provider, kind, _example(example), model)) == []


@pytest.mark.parametrize("provider", PROVIDERS)
@examples(6)
@given(msgs=histories(4), multi=st.booleans())
def test_the_real_sdk_sends_any_conversation_as_it_was_formatted(
    provider: str, msgs: list[Msg], multi: bool
) -> None:
    request = _request(provider, "multi-agent" if multi else "chat", msgs)
    _assert_sent(provider, request, asyncio.run(send(provider, request)))
