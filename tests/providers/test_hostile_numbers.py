"""Every index, size and count of a server is bounded: no number costs memory or time, for any API."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import pytest

from agentkit import Msg, ToolUseBlock, dump_messages, load_provider
from agentkit.models.error_location import locate_block
from agentkit.models.failures import as_model_error, get_error_class
from agentkit.models.response_headers import parse_retry_after
from agentkit.provider_kit import Failure, StreamParserBase, WireLayout
from agentkit.replies.error_bodies import parse_failure
from tests.cases import each_case
from tests.providers import PROVIDERS

NUMBERS: Final = (
    0, -1, 1, 9_999, 10_000, 10**9, 10**12, 10**18, 10**30, -(10**30), 2**63, 1.5, 1e308, -0.0,
    float("nan"), float("inf"), True, False, None, "7", "1" * 5_000, "-1", [10**9], {"a": 10**9},
)  # fmt: skip
BYTES: Final = 3_000_000
CALLS: Final = 30_000
PATTERNS: Final = load_provider("openai").error_patterns


def _chat(n: Any) -> list[dict[str, Any]]:
    call = {"index": n, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{"}}
    more = {"index": n, "function": {"arguments": '"a": 1}'}}
    usage = {
        "prompt_tokens": n,
        "completion_tokens": n,
        "total_tokens": n,
        "prompt_tokens_details": {"cached_tokens": n},
    }
    return [
        {"id": "r", "created": n, "choices": [{"index": n, "delta": {"content": "a"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call, call]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [more]}}]},
        {"choices": [{"index": 0, "delta": {"audio": {"id": "a", "data": "AAAA", "expires_at": n}}}]},
        {"choices": [{"index": n, "delta": {}, "finish_reason": "tool_calls"}], "usage": usage},
        {"error": {"message": "m", "code": n, "status": n, "param": n}},
    ]


def _responses(n: Any) -> list[dict[str, Any]]:
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": "i"}
    fields = {"output_index": n, "content_index": n, "summary_index": n, "sequence_number": n, "item_id": "i"}
    usage = {
        "input_tokens": n,
        "output_tokens": n,
        "total_tokens": n,
        "output_tokens_details": {"reasoning_tokens": n},
    }
    return [
        {"type": "response.created", "response": {"id": "r", "created_at": n}, **fields},
        {"type": "response.output_item.added", "item": {**call, "arguments": ""}, **fields},
        {"type": "response.function_call_arguments.delta", "delta": "{}", **fields},
        {"type": "response.output_text.delta", "delta": "a", "logprobs": n, **fields},
        {
            "type": "response.output_text.annotation.added",
            "annotation": {"start_index": n},
            "annotation_index": n,
            **fields,
        },
        {"type": "response.reasoning_summary_text.delta", "delta": "a", **fields},
        {"type": "response.reasoning_text.delta", "delta": "a", **fields},
        {"type": "response.output_item.done", "item": call, **fields},
        {"type": "response.completed", "response": {"status": "completed", "output": [call], "usage": usage}},
        {"type": "error", "message": "m", "code": n, "param": n},
    ]


def _anthropic(n: Any) -> list[dict[str, Any]]:
    usage = {"input_tokens": n, "output_tokens": n, "cache_read_input_tokens": n}
    return [
        {"type": "message_start", "message": {"id": "r", "usage": usage}},
        {
            "type": "content_block_start",
            "index": n,
            "content_block": {"type": "tool_use", "id": "c", "name": "look"},
        },
        {"type": "content_block_delta", "index": n, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": n},
        {"type": "content_block_delta", "index": n, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]


def _gemini(n: Any) -> list[dict[str, Any]]:
    pieces = [
        {"jsonPath": path, "stringValue": "x", "numberValue": n, "willContinue": True}
        for path in (f"$.a[{n}]", f"$[{n}]", f"$.b[{n}][{n}].c[{n}]", f"$.{n}", f"$['{n}']", f"$.a[000000000{n}]")
    ]
    call = {"name": "look", "partialArgs": pieces, "willContinue": True}
    counts = {"promptTokenCount": n, "candidatesTokenCount": n, "thoughtsTokenCount": n, "totalTokenCount": n}
    stored = {"fileUri": "gs://a/b", "mimeType": "video/mp4"}
    video = {"startOffset": n, "endOffset": n, "fps": n}
    citation = {"citations": [{"startIndex": n, "endIndex": n}]}
    return [
        {"candidates": [{"index": n, "content": {"parts": [{"text": "a"}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"partialArgs": pieces[:1]}}]}}]},
        {"candidates": [{"content": {"parts": [{"fileData": stored, "videoMetadata": video}]}}]},
        {"candidates": [{"finishReason": "STOP", "citationMetadata": citation, "tokenCount": n}]},
        {"usageMetadata": counts},
        {"error": {"code": n, "message": "m", "details": [{"retryDelay": f"{n}s"}]}},
    ]


def _ollama(n: Any) -> list[dict[str, Any]]:
    call = {"function": {"index": n, "name": "look", "arguments": {"a": n}}}
    counts = {"eval_count": n, "prompt_eval_count": n, "total_duration": n, "load_duration": n}
    return [
        {"model": "m", "message": {"role": "assistant", "content": "a", "tool_calls": [call, call]}},
        {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", **counts},
        {"error": "m", "status": n},
    ]


def _dashscope(n: Any) -> list[dict[str, Any]]:
    call = {"index": n, "id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    usage = {"input_tokens": n, "output_tokens": n, "total_tokens": n, "image_tokens": n}
    message = {"role": "assistant", "content": [{"text": "a"}], "tool_calls": [call, call]}
    sound = {"data": "AAAA", "expires_at": n, "id": "s"}
    return [
        {"output": {"choices": [{"index": n, "message": message, "finish_reason": "null"}], "audio": sound}},
        {"output": {"choices": [{"message": message, "finish_reason": "stop"}]}, "usage": usage},
        {"status_code": n, "code": "c", "message": "m"},
    ]


WIRES: Final[dict[str, Callable[[Any], list[dict[str, Any]]]]] = {
    "anthropic": _anthropic,
    "dashscope": _dashscope,
    "dashscope-compatible": _chat,
    "deepseek": _chat,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai": _chat,
    "openai-responses": _responses,
    "vllm": _chat,
}


def _parser(provider: str) -> StreamParserBase:
    parser = load_provider(provider).parser
    assert parser is not None
    return parser()


def _read(provider: str, chunks: list[Any]) -> Msg:
    parser = _parser(provider)
    for chunk in chunks:
        parser.feed(chunk)
    return parser.finish()


def _measure(work: Callable[[], Any]) -> tuple[int, int]:
    """Returns the peak of memory in bytes and the number of function calls of a function."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    tracemalloc.start()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, calls


def _is_json(chunk: object) -> bool:
    try:
        json.dumps(chunk)
    except ValueError:
        return False
    return True


def test_every_api_is_in_the_table() -> None:
    assert sorted(WIRES) == sorted(PROVIDERS)


@pytest.mark.parametrize("provider", WIRES)
def test_no_number_of_an_event_costs_memory_or_time(provider: str) -> None:
    for number in NUMBERS:
        events = WIRES[provider](number)
        _read(provider, events)  # imports and caches are not counted
        lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events if _is_json(event)]
        for chunks in (events, lines):
            read: list[Msg] = []
            peak, calls = _measure(partial(_collect, read, provider, chunks))
            assert peak < BYTES, number
            assert calls < CALLS, number
            assert len(dump_messages(read)) < BYTES, number


def _collect(read: list[Msg], provider: str, chunks: list[Any]) -> None:
    read.append(_read(provider, chunks))


@each_case(
    "path",
    [
        "$.a[000000000100000000]",
        "$.a[100000000]",
        "$.a[9999][9999][9999]",
        "$.a" + "[0]" * 100_000,
        "$" + ".a" * 100_000,
        "$.a[" + "9" * 100_000 + "]",
    ],
)
def test_no_path_of_a_partial_argument_creates_a_large_value(path: str) -> None:
    call = {"name": "look", "partialArgs": [{"jsonPath": path, "numberValue": 1}]}
    events = [{"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}]
    peak, _ = _measure(lambda: dump_messages([_read("gemini", events)]))
    assert peak < BYTES


def test_many_paths_together_create_no_large_value() -> None:
    pieces = [{"jsonPath": f"$.a{number}[900]", "numberValue": 1} for number in range(2_000)]
    events = [
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "look", "partialArgs": pieces}}]}}]}
    ]
    assert len(dump_messages([_read("gemini", events)])) < 20_000


def test_the_items_of_a_long_list_are_all_read() -> None:
    pieces = [{"jsonPath": f"$.a[{number}]", "numberValue": number} for number in range(12_000)]
    events = [
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "look", "partialArgs": pieces}}]}}]}
    ]
    (block,) = _read("gemini", events).blocks
    assert isinstance(block, ToolUseBlock)
    assert block.input == {"a": list(range(12_000))}


# -- errors ---------------------------------------------------------------------------------------------------


@each_case("number", NUMBERS)
def test_the_numbers_of_an_error_are_in_range_or_none(number: Any) -> None:
    failure = parse_failure({"error": {"message": "m", "code": number, "status": number}}, 400)
    assert failure is not None
    error = as_model_error(failure, "openai", PATTERNS)
    assert error.status in (400, None)
    for name in ("retry-after", "retry-after-ms"):
        wait = parse_retry_after({name: number})
        assert wait is None or 0 <= wait < 1e9
    wait = Failure("m", retry_after=number if isinstance(number, int | float) else None).retry_after
    assert wait is None or 0 <= wait < 1e9
    status = Failure("m", status=cast("Any", number)).status
    assert status is None or 100 <= status < 1_000


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 400, "0", "1"])
def test_sizes_in_the_text_of_an_error_are_bounded(number: str) -> None:
    sizes = PATTERNS.parse_sizes(f"prompt is too long: {number} tokens > {number} maximum")
    assert sizes is None or all(size < 10**12 for size in sizes if size is not None)
    assert locate_block(
        f"messages.{number}.content.{number}", {"messages": ["hi"]}, WireLayout(), [Msg("Bob", "hi", "user")]
    ) in (
        "",
        "msgs[0].content[0]",
    )


def test_only_the_start_of_a_long_error_text_is_searched() -> None:
    message = "“" * 50_000 + "messages.0 " * 50_000 + "maximum context length is 1 tokens " * 3_000
    msgs = [Msg("Bob", f"text {number}", "user") for number in range(100)]
    request = {"messages": [{"role": "user", "content": msg.text} for msg in msgs]}
    _, calls = _measure(
        lambda: (
            get_error_class(Failure(message, 400), PATTERNS),
            PATTERNS.parse_sizes(message),
            locate_block(message, request, WireLayout(), msgs),
        )
    )
    assert calls < 300_000
