"""A log of another format never becomes an empty conversation: tests of each format with each loader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, cast

import pytest

from agentkit import AgentkitError, LossError, MessageError, Msg, dump_messages, load_native, load_provider
from tests.cases import each_case
from tests.logs.foreign_logs import FOREIGN_LOGS, WORDS
from tests.logs.native_logs import LOGS, TEXTS
from tests.logs.rich_logs import RICH_LOGS
from tests.providers import PROVIDERS

READERS: Final = (*PROVIDERS, "agentscope", "langchain", "agentkit")

_NATIVE_CASES: Final = {name: (log, TEXTS) for name, log in LOGS.items()}
_FOREIGN_CASES: Final = {name: (log, WORDS) for name, log in FOREIGN_LOGS.items()}
CASES: Final[dict[str, tuple[Any, tuple[str, ...]]]] = {**_NATIVE_CASES, **_FOREIGN_CASES}


def _content(msgs: list[Msg]) -> str:
    """Returns the content of messages as JSON text, with the data of invalid and opaque blocks."""
    return json.dumps(dump_messages(msgs), ensure_ascii=False)


def _list_lost_words(reader: str, log: Any, words: tuple[str, ...]) -> list[str]:
    """Returns the words of a log that are in no message, or in no request although no loss is reported."""
    try:
        msgs = load_native(reader, log)
    except AgentkitError:
        return []
    text = _content(msgs)
    missing = [word for word in words if word not in text]
    formatter = load_provider(reader if reader in PROVIDERS else "openai").chat_formatter(on_loss="raise")
    try:
        request = json.dumps(formatter.lower(msgs).request, ensure_ascii=False)
    except LossError:
        return missing
    return missing + [word for word in words if word not in request]


@each_case("log_format", [*CASES])
def test_a_log_loads_completely_or_raises_an_error(log_format: str) -> None:
    log, words = CASES[log_format]
    lost = {reader: _list_lost_words(reader, log, words) for reader in READERS}
    assert not any(lost.values()), lost


@each_case("log_format", [*CASES])
def test_messages_of_another_format_in_a_log_are_not_lost(log_format: str) -> None:
    other = _messages(CASES[log_format][0])
    expected_words = tuple(word for word in CASES[log_format][1] if word in json.dumps(other, ensure_ascii=False))
    for reader in READERS:
        own = _messages(CASES.get(reader, ([{"name": "Bob", "role": "user", "content": "Hello"}], ()))[0])
        assert _list_lost_words(reader, [*own, *other], expected_words) == [], reader
        assert _list_lost_words(reader, [*other, *own], expected_words) == [], reader


@each_case("log_format", [*CASES])
def test_messages_under_any_key_of_a_request_are_not_lost(log_format: str) -> None:
    log, words = CASES[log_format]
    messages = _messages(log)
    expected_words = tuple(word for word in words if word in json.dumps(messages, ensure_ascii=False))
    lost = {
        (reader, key): _list_lost_words(reader, {"model": "m", key: messages}, expected_words)
        for reader in READERS
        for key in ("messages", "contents", "input", "prompt", "history", "items")
    }
    assert not any(lost.values()), lost


@each_case("log_format", [*RICH_LOGS])
def test_a_request_loads_completely_or_raises_an_error(log_format: str) -> None:
    request: dict[str, Any] = (
        RICH_LOGS[log_format] if isinstance(RICH_LOGS[log_format], dict) else {"messages": RICH_LOGS[log_format]}
    )
    expected_words = tuple(
        word
        for word in ("Text of the system.", "Bob asks.", "I look.", "Bob thanks.", "Result text.")
        if word in json.dumps(request)
    )
    lost = {reader: _list_lost_words(reader, request, expected_words) for reader in READERS}
    assert not any(lost.values()), lost


def _messages(log: Any) -> list[Any]:
    """Returns the messages of a log of any format."""
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


@each_case("log_format", [*RECOGNIZED])
def test_the_error_names_the_format_of_the_log(log_format: str) -> None:
    for reader in READERS:
        with pytest.raises(MessageError, match=RECOGNIZED[log_format]):
            load_native(reader, FOREIGN_LOGS[log_format])


@each_case(
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
            ("anthropic", [{"role": "user", "content": [{"text": "hi"}]}], "dashscope"),
            ("ollama", [{"role": "user", "content": [{"text": "hi"}]}], "dashscope"),
            ("langchain", [{"role": "user", "content": [{"text": "hi"}]}], "dashscope"),
            ("agentscope", [{"role": "user", "content": [{"text": "hi"}]}], "dashscope"),
            ("ollama", [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "openai"),
            ("ollama", [{"role": "tool", "content": [{"type": "text", "text": "hi"}]}], "openai"),
            (
                "agentscope",
                [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
                "openai-responses",
            ),
        ],
    ),
)
def test_the_error_names_the_loader_of_the_format(reader: str, log: Any, loader: str) -> None:
    with pytest.raises(MessageError, match=rf"load_native\('{loader}'"):
        load_native(reader, log)


@each_case("reader", ["anthropic", "ollama", "langchain", "agentscope"])
def test_the_error_for_bedrock_content_names_bedrock_converse(reader: str) -> None:
    image = {"image": {"format": "png", "source": {"bytes": "AAAA"}}}
    with pytest.raises(MessageError, match="looks like Bedrock Converse"):
        load_native(reader, [{"role": "user", "content": [{"text": "hi"}, image]}])


_CALL: Final = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
_CHAT: Final[dict[str, Any]] = {
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "", "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c", "tool_name": "look", "content": "calm"},
    ]
}
_ANTHROPIC_CALL: Final[dict[str, Any]] = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
_WITH_CALLS: Final[dict[str, Any]] = {
    **dict.fromkeys(("openai", "deepseek", "vllm", "ollama", "dashscope", "langchain"), _CHAT),
    "openai-responses": {
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "calm"},
        ]
    },
    "anthropic": {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, _ANTHROPIC_CALL]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "calm"}]},
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"output": "calm"}}}]},
        ]
    },
}
_CONTENT_KEYS: Final = {
    "content",
    "parts",
    "text",
    "thinking",
    "tool_calls",
    "arguments",
    "args",
    "input",
    "output",
}
_WORD: Final = "A-WORD"
_ODD_VALUES: Final[list[Any]] = [_WORD, [_WORD], {"z": _WORD}, {"type": "text", "text": _WORD}]


def _with_odd_content(value: Any, odd: Any) -> Iterator[Any]:
    """Yields copies of a value. In each copy, `odd` replaces the value of another content key."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        for key in mapping:
            if key in _CONTENT_KEYS:
                yield {**mapping, key: odd}
            yield from ({**mapping, key: item} for item in _with_odd_content(mapping[key], odd))
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for index, inner in enumerate(items):
            yield from ([*items[:index], item, *items[index + 1 :]] for item in _with_odd_content(inner, odd))


@each_case("reader", [*_WITH_CALLS])
def test_content_of_another_type_is_kept_or_raises_an_error(reader: str) -> None:
    lost: list[Any] = []
    for log in [log for odd in _ODD_VALUES for log in _with_odd_content(_WITH_CALLS[reader], odd)]:
        with suppress(AgentkitError):
            if _WORD not in _content(load_native(reader, log)):
                lost.append(log)
    assert lost == []


def test_the_text_of_a_block_that_results_cannot_contain_is_kept() -> None:
    for content in ([{"type": "thinking", "thinking": _WORD}], [{"type": "reasoning", "reasoning": _WORD}]):
        for reader in ("langchain", "anthropic"):
            result = {"type": "tool_result", "tool_use_id": "c", "content": content}
            assert _WORD in _content(load_native(reader, [{"role": "user", "content": [result]}]))


@each_case("reader", [name for name in READERS if name not in ("agentscope", "agentkit")])
@each_case("message", [{"role": "user"}, {"role": "user", "text": "hi"}, {"role": "user", "x": 1}])
def test_the_error_for_a_message_without_content_lists_its_keys(message: dict[str, Any], reader: str) -> None:
    with pytest.raises(MessageError) as caught:
        load_native(reader, [message])
    assert all(repr(key) in str(caught.value) for key in message)
    assert "[0]" in caught.value.place


@each_case("reader", ["openai", "deepseek", "vllm", "ollama", "dashscope", "anthropic", "langchain"])
def test_an_empty_reply_of_a_model_loads(reader: str) -> None:
    load_native(reader, [{"role": "user", "content": "hi"}, {"role": "assistant"}])
    load_native("gemini", [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model"}])


def _empty_containers(value: Any) -> None:
    """Empties all lists and dicts in a value."""
    if isinstance(value, dict | list):
        items = cast("list[Any] | dict[str, Any]", value)
        for item in items.values() if isinstance(items, dict) else items:
            _empty_containers(item)
        items.clear()


@each_case("reader", [*LOGS])
def test_a_log_and_its_messages_share_no_data_that_can_change(reader: str) -> None:
    for original in (LOGS[reader], RICH_LOGS.get(reader, LOGS[reader])):
        log = json.loads(json.dumps(original))
        msgs = load_native(reader, log)
        content = _content(msgs)
        assert log == json.loads(json.dumps(original))
        _empty_containers(log)
        assert _content(msgs) == content
