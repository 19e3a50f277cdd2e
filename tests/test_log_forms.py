"""A log of another form is never read as nothing: each form against each reader."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import pytest

from agentkit import AgentkitError, LossError, MessageError, Msg, dump_messages, load_native, load_provider
from tests.foreign_logs import FOREIGN_LOGS, WORDS
from tests.native_logs import LOGS, SAID
from tests.providers import PROVIDERS
from tests.rich_logs import RICH_LOGS

READERS: Final = (*PROVIDERS, "agentscope", "langchain", "agentkit")

_SAID: Final = {name: (log, SAID) for name, log in LOGS.items()}
_FOREIGN: Final = {name: (log, WORDS) for name, log in FOREIGN_LOGS.items()}
CASES: Final[dict[str, tuple[Any, tuple[str, ...]]]] = {**_SAID, **_FOREIGN}


def _content(msgs: list[Msg]) -> str:
    """All that messages say, and what their unreadable and opaque blocks hold."""
    return json.dumps(dump_messages(msgs), ensure_ascii=False)


def _missing(reader: str, log: Any, words: tuple[str, ...]) -> list[str]:
    """The words of a log that a reader loses: they are in no message, or silently in no request.

    Words of a request are looked for where nothing is reported as lost.
    """
    try:
        msgs = load_native(reader, log)
    except AgentkitError:
        return []
    text = _content(msgs)
    missing = [word for word in words if word not in text]
    formatter = load_provider(reader if reader in PROVIDERS else "openai").chat(on_loss="raise")
    try:
        request = json.dumps(formatter.lower(msgs).request, ensure_ascii=False)
    except LossError:
        return missing
    return missing + [word for word in words if word not in request]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", CASES)
def test_all_words_of_a_log_arrive_or_an_error_is_raised(form: str, reader: str) -> None:
    log, words = CASES[form]
    assert _missing(reader, log, words) == []


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", CASES)
def test_messages_of_another_form_among_those_of_the_reader_are_not_lost(form: str, reader: str) -> None:
    own = _messages(CASES.get(reader, ([{"name": "Bob", "role": "user", "content": "Hello"}], ()))[0])
    other = _messages(CASES[form][0])
    said = tuple(word for word in CASES[form][1] if word in json.dumps(other, ensure_ascii=False))
    assert _missing(reader, [*own, *other], said) == []
    assert _missing(reader, [*other, *own], said) == []


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("key", ["messages", "contents", "input", "prompt", "history", "items"])
@pytest.mark.parametrize("form", CASES)
def test_messages_under_any_key_of_a_request_are_not_lost(form: str, key: str, reader: str) -> None:
    log, words = CASES[form]
    messages = _messages(log)
    said = tuple(word for word in words if word in json.dumps(messages, ensure_ascii=False))
    assert _missing(reader, {"model": "m", key: messages}, said) == []


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", RICH_LOGS)
def test_a_request_keeps_the_content_of_every_key_or_an_error_is_raised(form: str, reader: str) -> None:
    request: dict[str, Any] = (
        RICH_LOGS[form] if isinstance(RICH_LOGS[form], dict) else {"messages": RICH_LOGS[form]}
    )
    said = tuple(
        word
        for word in ("Text of the system.", "Bob asks.", "I look.", "Bob thanks.", "Result text.")
        if word in json.dumps(request)
    )
    assert _missing(reader, request, said) == []


def _messages(log: Any) -> list[Any]:
    """The messages of a log of any form."""
    if isinstance(log, list):
        return cast("list[Any]", log)
    return _messages(next(log[key] for key in ("messages", "contents", "input") if key in log))


RECOGNIZED: Final = {
    "pydantic-ai": "pydantic-ai",
    "OpenTelemetry GenAI": "OpenTelemetry GenAI",
    "Vercel AI SDK UI messages": "Vercel AI SDK",
    "Google ADK": "Google ADK",
    "A2A": "A2A",
    "ShareGPT": "ShareGPT",
    "LlamaIndex": "LlamaIndex",
    "Haystack": "Haystack",
    "OpenInference": "OpenInference",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", RECOGNIZED)
def test_the_error_names_the_form_that_the_log_looks_like(form: str, reader: str) -> None:
    with pytest.raises(MessageError, match=RECOGNIZED[form]):
        load_native(reader, FOREIGN_LOGS[form])


@pytest.mark.parametrize(
    ("reader", "log", "loader"),
    cast(
        "list[Any]",
        [
            ("openai", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}, "gemini"),
            ("openai", [{"role": "user", "parts": [{"text": "hi"}]}], "gemini"),
            ("anthropic", [{"role": "assistant", "content": None, "tool_calls": [{"function": {}}]}], "openai"),
            ("openai", {"system": "Be brief.", "messages": [{"role": "user", "content": "hi"}]}, "anthropic"),
            ("openai", [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}], "anthropic"),
            ("gemini", [{"role": "user", "content": "hi"}], "openai"),
            ("openai", [{"type": "human", "data": {"content": "hi"}}], "langchain"),
            ("anthropic", {"input": {"messages": [{"role": "user", "content": "hi"}]}}, "dashscope"),
            ("openai", {"input": "hi", "instructions": "Be brief."}, "openai-responses"),
            ("agentkit", [{"role": "user", "content": "hi"}], "openai"),
            ("anthropic", [{"role": "user", "content": "hi", "images": ["AAAA"]}], "ollama"),
        ],
    ),
)
def test_the_error_names_the_loader_of_the_form(reader: str, log: Any, loader: str) -> None:
    with pytest.raises(MessageError, match=rf"load_native\('{loader}'"):
        load_native(reader, log)


@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("agentscope", "agentkit")])
@pytest.mark.parametrize("message", [{"role": "user"}, {"role": "user", "text": "hi"}, {"role": "user", "x": 1}])
def test_a_message_without_content_is_refused_with_its_keys(message: dict[str, Any], reader: str) -> None:
    with pytest.raises(MessageError) as caught:
        load_native(reader, [message])
    assert all(repr(key) in str(caught.value) for key in message)
    assert "[0]" in caught.value.place


@pytest.mark.parametrize("reader", ["openai", "deepseek", "vllm", "ollama", "dashscope", "anthropic", "langchain"])
def test_an_empty_reply_of_a_model_is_no_error(reader: str) -> None:
    load_native(reader, [{"role": "user", "content": "hi"}, {"role": "assistant"}])
    load_native("gemini", [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model"}])
