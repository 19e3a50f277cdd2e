"""Hostile JSON: loaders and parsers raise only errors of agentkit, and lose no text because of lone surrogates."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

import pytest

from agentkit import (
    AgentkitError,
    Base64Source,
    DocumentBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    dump_messages,
    list_server_tools,
    load_messages,
    load_native,
    load_provider,
    load_request_options,
    run_tool_call,
)
from tests.cases import each_case
from tests.logs.native_logs import LOGS


def _create_nested(depth: int, key: str = "") -> Any:
    nested: Any = "innermost"
    for _ in range(depth):
        nested = {key: nested} if key else [nested]
    return nested


ODD: Final[dict[str, Any]] = {
    "surrogates": {"a\ud83d": "b\ud83d"},
    "lists within the limit": _create_nested(190),
    "objects beyond pydantic's limit": _create_nested(260, "a"),
    "500 lists": _create_nested(500),
    "500 objects": _create_nested(500, "a"),
    "text of 900 lists": "[" * 900 + "]" * 900,
    "text of 900 objects": '{"a":' * 900 + "1" + "}" * 900,
    "a number": 3,
    "a huge number": 10**400,
    "NaN": float("nan"),
    "an object": object(),
    "a set": {1},
    "bytes": b"\xff",
    "null": None,
    "a number key": {1: 2},
}


_DEEP: Final = ("objects beyond pydantic's limit", "900 lists", "900 objects")
"""Odd values that only the slow tests use."""

_ALIKE: Final = (
    ("null", "NaN", "a huge number"),
    ("bytes", "an object", "a set"),
    ("text of 900 lists", "text of 900 objects"),
    ("surrogates", "a number key"),
    ("a number",),
    ("lists within the limit",),
)
"""All other odd values, in groups. The values of a group become alike when agentkit converts a log to JSON."""

some_or_all: Final = pytest.mark.parametrize(
    "is_full", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.slow)]
)
"""Replaces each value by one odd value of each group, or by every odd value."""


def _list_paths(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yields the path of a value and of each inner value."""
    yield ()
    pairs: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        pairs = cast("dict[str | int, Any]", value).items()
    elif isinstance(value, list):
        pairs = enumerate(cast("list[Any]", value))
    for key, inner in pairs:
        yield from ((key, *path) for path in _list_paths(inner))


def _replace(value: Any, path: tuple[str | int, ...], odd: Any) -> Any:
    """Returns a copy of a value with `odd` in place of the inner value at a path."""
    if not path:
        return odd
    changed = copy.copy(value)
    changed[path[0]] = _replace(value[path[0]], path[1:], odd)
    return changed


def _choose(index: int, is_single: bool) -> list[str]:
    """Returns an odd value of each group, or of a single group. Neighbors get different values."""
    groups = _ALIKE[index % len(_ALIKE) :][:1] if is_single else _ALIKE
    return [group[(index + index // len(_ALIKE)) % len(group)] for group in groups]


def _find_failures(
    value: Any, is_full: bool, check: Callable[[Any, str], None], is_single: bool = False
) -> list[str]:
    """Replaces each inner value by odd values, and returns the errors of `check` for the changed values."""
    failures: list[str] = []
    for index, path in enumerate(_list_paths(value)):
        for odd in ODD if is_full else _choose(index, is_single):
            try:
                check(_replace(value, path, ODD[odd]), odd)
            except Exception as error:
                failures.append(f"{odd} at {path}: {error!r}")
    return failures


def _try_call(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except AgentkitError:
        return None


STORED_MESSAGES: Final = dump_messages(
    [msg for name in ("anthropic", "gemini") for msg in load_native(name, LOGS[name])]
)
ALL_LOGS: Final = {**LOGS, "agentkit": STORED_MESSAGES}
_VENDORS: Final = frozenset({"dashscope-compatible", "deepseek", "vllm"})
"""Formats that the loader of OpenAI's logs reads."""


@some_or_all
@pytest.mark.parametrize("name", ALL_LOGS)
def test_an_odd_value_anywhere_in_a_log_is_read_or_refused(name: str, is_full: bool) -> None:
    log = ALL_LOGS[name]

    def check(changed: Any, odd: str) -> None:
        msgs: list[Msg] = _try_call(lambda: load_native(name, changed)) or []
        stored = dump_messages(msgs)
        json.dumps(stored, ensure_ascii=False, allow_nan=False).encode()
        assert odd == "a number key" or load_messages(stored) == msgs
        if _has_other_options(log, changed):
            _try_call(lambda: load_request_options(name, changed))
            _try_call(lambda: list_server_tools(name, changed))

    assert _find_failures(log, is_full, check, is_single=name in _VENDORS) == []


def _has_other_options(log: Any, changed: Any) -> bool:
    """Returns False if two logs differ only inside lists of messages, from which no option is read."""
    if not isinstance(log, dict) or not isinstance(changed, dict):
        return not isinstance(changed, list)
    fields = cast("dict[str, Any]", changed)
    return any(
        fields[key] is not value and (key == "tools" or not isinstance(fields[key], list))
        for key, value in cast("dict[str, Any]", log).items()
        if key in fields
    )


@pytest.mark.parametrize("name", ALL_LOGS)
def test_no_text_of_a_log_is_lost_to_a_lone_surrogate(name: str, caplog: pytest.LogCaptureFixture) -> None:
    log = json.loads(json.dumps(ALL_LOGS[name]).replace("Thanks.", "Tha\\ud83dnks."))
    for native in (log, json.dumps(log)):
        caplog.clear()
        msgs = load_native(name, native)
        assert msgs[-1].text == "Tha\ufffdnks."
        assert caplog.records
        assert all("Tha" not in record.getMessage() for record in caplog.records)
        assert any("[" in record.getMessage() for record in caplog.records)


REPLIES: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "T", "signature": "c2ln"},
            {"type": "text", "text": "Thanks."},
            {"type": "tool_use", "id": "c", "name": "look", "input": {"a": "b"}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    "dashscope": {
        "request_id": "r",
        "output": {
            "choices": [
                {
                    "finish_reason": "stop",
                    "message": {
                        "role": "assistant",
                        "content": "Thanks.",
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                        ],
                    },
                }
            ]
        },
        "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Thanks."},
                        {"functionCall": {"name": "look", "args": {"a": "b"}}, "thoughtSignature": "c2ln"},
                    ],
                },
                "finishReason": "STOP",
                "safetyRatings": [{"category": "X"}],
            }
        ],
        "usageMetadata": {"promptTokenCount": 1},
        "modelVersion": "m",
    },
    "ollama": {
        "model": "m",
        "created_at": "2026-11-20T00:00:00Z",
        "message": {
            "role": "assistant",
            "content": "Thanks.",
            "thinking": "T",
            "tool_calls": [{"function": {"name": "look", "arguments": {"a": "b"}}}],
        },
        "done": True,
        "done_reason": "stop",
    },
    "openai": {
        "id": "r",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Thanks.",
                    "annotations": [{"type": "url_citation"}],
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": "b"}'}}
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    },
    "openai-responses": {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "T"}]},
            {
                "type": "message",
                "id": "m",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Thanks.", "annotations": []}],
            },
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"a": "b"}'},
            {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "q"}},
        ],
    },
}


@some_or_all
@pytest.mark.parametrize("name", REPLIES)
def test_an_odd_value_anywhere_in_a_reply_is_read_or_refused(name: str, is_full: bool) -> None:
    parser = load_provider(name).parser
    assert parser is not None

    def check(changed: Any, _: str) -> None:
        msg = _try_call(lambda: parser.parse_response(changed))
        if msg is not None:
            json.dumps(dump_messages([msg]), ensure_ascii=False, allow_nan=False).encode()
        if isinstance(changed, dict):
            reading = parser()
            if _try_call(lambda: reading.feed(cast("Any", changed))) is not None:
                reading.finish()

    assert _find_failures(REPLIES[name], is_full, check) == []


@pytest.mark.parametrize("name", REPLIES)
def test_no_text_of_a_reply_is_lost_to_a_lone_surrogate(name: str, caplog: pytest.LogCaptureFixture) -> None:
    parser = load_provider(name).parser
    assert parser is not None
    for text in ("Tha\\ud83dnks.", "Thanks\\ud83d"):
        caplog.clear()
        body = json.dumps(REPLIES[name]).replace("Thanks.", text)
        expected = json.loads(f'"{text}"').replace("\ud83d", "\ufffd")
        for reply in (body, json.loads(body)):
            assert parser.parse_response(reply).text == expected
        assert "reply." in caplog.text
        assert "Tha" not in "".join(record.getMessage() for record in caplog.records)


def test_a_character_split_over_two_pieces_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    parser = load_provider("openai").parser
    assert parser is not None
    reading = parser()
    for part in ("a\ud83d", "\ude00b"):
        reading.feed({"choices": [{"index": 0, "delta": {"content": part}}]})
    assert reading.finish().text == "a\U0001f600b"
    assert not caplog.records


def test_half_a_character_at_the_end_of_a_stream_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    parser = load_provider("openai").parser
    assert parser is not None
    ends: list[list[Any]] = [[], [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]]
    for end in ends:
        reading = parser()
        chunks: list[Any] = [
            {"choices": [{"index": 0, "delta": {"content": part}}]} for part in ("a\ud83d", "\ude00b\ud83d")
        ]
        events = [event for chunk in (*chunks, *end) for event in reading.feed(chunk)]
        msg = reading.finish()
        events += reading.drain()
        assert msg.text == "a\U0001f600b\ufffd"
        assert "".join(getattr(event, "text", "") for event in events if event.type == "text-delta") == msg.text


@pytest.mark.parametrize("name", ALL_LOGS)
def test_log_records_and_errors_about_a_log_are_short(name: str, caplog: pytest.LogCaptureFixture) -> None:
    nested: Any = "cut \ud83d"
    for key in range(80):
        nested = {"k" * 30: nested} if key % 2 else [nested]
    log = ALL_LOGS[name]
    for index, path in enumerate(_list_paths(log)):
        for odd in (nested, "x" * 5_000 if index % 2 else {"x" * 5_000: 1}):
            changed = _replace(log, path, odd)
            msgs: list[Msg] = _try_call(lambda changed=changed: load_native(name, changed)) or []  # type: ignore[misc]
            invalid = [block for msg in msgs for block in msg.blocks if isinstance(block, InvalidBlock)]
            assert max((len(block.place) + len(block.reason) for block in invalid), default=0) < 1_000
    assert max((len(record.getMessage()) for record in caplog.records), default=0) < 600


TEXT: Final = "cut \ud83d"
CONSTRUCTORS: Final[dict[str, Callable[[], Any]]] = {
    "Msg.content": lambda: Msg("Bob", TEXT, "user"),
    "Msg.name": lambda: Msg(TEXT, "", "user"),
    "Msg.metadata": lambda: Msg("Bob", "", "user", metadata={"a": TEXT}),
    "Msg with a block's dict": lambda: Msg("Bob", [{"type": "text", "text": TEXT}], "user"),
    "Msg with a call's argument text": lambda: Msg(
        "F", [{"type": "tool_use", "id": "c", "name": "n", "input": TEXT}], "assistant"
    ),
    "TextBlock": lambda: TextBlock(TEXT),
    "TextBlock.metadata": lambda: TextBlock("", metadata={"a": [TEXT]}),
    "ThinkingBlock": lambda: ThinkingBlock(TEXT),
    "ToolUseBlock.input": lambda: ToolUseBlock("c", "n", {"a": TEXT}),
    "ToolUseBlock.raw_input": lambda: ToolUseBlock("c", "n", {}, TEXT),
    "ToolResultBlock": lambda: ToolResultBlock("c", "n", TEXT),
    "URLSource": lambda: URLSource(TEXT),
    "Base64Source": lambda: Base64Source("image/png", TEXT),
    "DocumentBlock": lambda: DocumentBlock(URLSource("a.pdf"), title=TEXT),
    "OpaqueBlock": lambda: OpaqueBlock("openai", {"a": TEXT}),
    "OpaqueState": lambda: OpaqueState("openai", fields={"a": TEXT}),
    "InvalidBlock": lambda: InvalidBlock([TEXT], "", ""),
    "Tool.name": lambda: Tool(TEXT, "", {}),
    "Tool.description": lambda: Tool("n", TEXT, {}),
    "Tool.parameters": lambda: Tool("n", "", {"description": TEXT}),
}


@each_case("constructor", [*CONSTRUCTORS])
def test_constructors_refuse_lone_surrogates(constructor: str) -> None:
    with pytest.raises(MessageError):
        CONSTRUCTORS[constructor]()


DEEP_VALUES: Final[dict[str, Callable[[Any], Any]]] = {
    "ToolUseBlock": lambda value: ToolUseBlock("c", "n", {"a": value}),
    "OpaqueBlock": lambda value: OpaqueBlock("openai", {"a": value}),
    "InvalidBlock": lambda value: InvalidBlock(value, "", ""),
    "Msg.metadata": lambda value: Msg("Bob", "", "user", metadata={"a": value}),
    "Msg.content": lambda value: Msg("Bob", value, "user"),
    "Tool": lambda value: Tool("n", "", {"a": value}),
    "ToolResultBlock": lambda value: ToolResultBlock("c", "n", value),
}


@pytest.mark.parametrize("depth", [100, 230, 260, 900, 20_000])
@each_case("key", ["", "a"])
@each_case("constructor", [*DEEP_VALUES])
def test_constructors_accept_or_refuse_deep_values(constructor: str, key: str, depth: int) -> None:
    _try_call(lambda: DEEP_VALUES[constructor](_create_nested(depth, key)))


@pytest.mark.anyio
@pytest.mark.parametrize("value", [TEXT, {"a": [TEXT]}, [TEXT], [TextBlock("a"), TEXT], {TEXT: 1}])
async def test_lone_surrogates_of_a_tools_result_are_replaced(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def look() -> Any:
        return value

    tool = Tool.from_function(look)
    result = await run_tool_call(ToolUseBlock("c", "look", {}), [tool])
    assert "cut \ufffd" in result.text
    assert not result.is_error
    assert "look" in caplog.text


@pytest.mark.anyio
@each_case("depth", [230, 900, 20_000])
@each_case("key", ["", "a"])
async def test_a_deep_result_of_a_tool_is_a_result(key: str, depth: int) -> None:
    async def look() -> Any:
        return _create_nested(depth, key)

    assert (await run_tool_call(ToolUseBlock("c", "look", {}), [Tool.from_function(look)])).id == "c"
