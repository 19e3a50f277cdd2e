"""Growth of the parsing time with the size of a response, also for responses that no correct server sends.

Each case is parsed at two sizes: the second is eight times the first. Linear work takes 8 times as long, and quadratic
work takes 64 times as long. The goal is between them. The fastest of several runs is used.
"""

# ruff: noqa: E501 - each case is one line
from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any, Final

from agentkit import Msg, load_provider
from agentkit.models.error_location import locate_block
from agentkit.models.failures import get_error_class
from agentkit.provider_kit import Failure, WireLayout
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["run"]

FACTOR: Final = 8
MAX_GROWTH: Final = 28.0


def _sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def _chat(**delta: Any) -> bytes:
    return _sse({"id": "r", "model": "m", "choices": [{"index": 0, "delta": delta}]})


def _chat_call(**function: Any) -> bytes:
    return _chat(tool_calls=[{"index": 0, **({"id": "c"} if "name" in function else {}), "function": function}])


def _chat_end(**more: Any) -> bytes:
    return _sse({"choices": [{"index": 0, "delta": more, "finish_reason": "stop"}]})


def _dashscope(**message: Any) -> bytes:
    return _sse({"output": {"choices": [{"message": message, "finish_reason": "null"}]}, "request_id": "r"})


def _dashscope_call(id: str, name: str, arguments: str) -> bytes:
    return _dashscope(tool_calls=[{"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}])


def _gemini(part: Any) -> bytes:
    return _sse({"candidates": [{"content": {"parts": [part]}}]})


def _responses(kind: str, **more: Any) -> bytes:
    return _sse({"type": f"response.{kind}", "output_index": 0, "item_id": "i", **more})


CASES: Final[dict[str, tuple[str, Callable[[int], list[bytes]]]]] = {
    "text after the end": ("openai", lambda n: [_chat(content="a"), _chat_end(), *[_chat(content="b" * 50)] * n]),
    "text after the end of a message": (
        "anthropic",
        lambda n: [_sse({"type": "message_stop"}), *[_sse({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "b" * 50}})] * n],
    ),
    "arguments after the end": ("openai", lambda n: [_chat_end(), *[_chat_call(name="a", arguments="b" * 50)] * n]),
    "many end events": ("openai", lambda n: [*[_chat_call(arguments='{"a": "b"}')] * n, *[_chat_end()] * n]),
    "an event, then line breaks": ("openai", lambda n: [b"{}", *[b"\n" * 50] * n]),
    "an error, then line breaks": ("ollama", lambda n: [b'{"error": "e"}\n', *[b"\n" * 50] * n]),
    "a line in many chunks": ("openai", lambda n: [b"data: {", *[b"a" * 50] * n]),
    "carriage returns": ("openai", lambda n: [b"data: {}", *[b"\r"] * n * 10]),
    "another function name in each delta": (
        "openai",
        lambda n: [_chat_call(name="ab"[k % 2], arguments='{"a": "' + "b" * 50) for k in range(n)],
    ),
    "another call id in each delta": ("dashscope", lambda n: [_dashscope_call(str(k), "a", "b" * 50) for k in range(n)]),
    "another function name of the same call id in each delta": ("dashscope", lambda n: [_dashscope_call("c", "ab"[k % 2], '{"a": "b') for k in range(n)]),
    "text increments instead of complete texts": (
        "dashscope",
        lambda n: [_dashscope(content="a"), _dashscope(content="ab"), _dashscope(content="abc"), _dashscope(content="abcd"), *[_dashscope(content="xy" * 25)] * n],
    ),
    "audio after the end": (
        "openai",
        lambda n: [_chat(audio={"data": "AAAA", "transcript": "a"}), _chat_end(), *[_chat(audio={"transcript": "b" * 50})] * n],
    ),
    "partial and complete arguments alternate": (
        "gemini",
        lambda n: [_gemini({"functionCall": {"name": "a", "partialArgs": [{"jsonPath": "$.a", "stringValue": "b", "willContinue": True}], "willContinue": True}})]
        + [_gemini({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "b" * 50, "willContinue": True}], "args": {"c": 1}, "willContinue": True}})] * n,
    ),
    "argument deltas and empty ends alternate": (
        "openai-responses",
        lambda n: [_responses("function_call_arguments.delta", delta="b" * 50), _responses("function_call_arguments.done", arguments="")] * n,
    ),
    "citations": (
        "anthropic",
        lambda n: [_sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})]
        + [_sse({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"a": 1}}})] * n,
    ),
    "several JSON objects in the arguments of a call": ("openai", lambda n: [_chat_call(name="a", arguments='{}{}{}{}{}'), *[_chat_call(arguments="{}" * 25)] * n, _chat_end()]),
}  # fmt: skip


def _parse(provider: str, chunks: list[bytes]) -> None:
    parser = load_provider(provider).parser
    assert parser is not None
    reader = parser()
    for chunk in chunks:
        reader.feed(chunk)
    reader.finish()


ERROR_PATTERNS: Final = load_provider("openai").error_patterns

ERROR_TEXTS: Final = {
    "sizes": "maximum context length is 1 tokens ",
    "quotes": "“a ",
    "paths": "messages.0.content.1 ",
    "digits": "1,000,",
    "words": "exceed ",
}


def _search_error(text: str) -> None:
    msgs = [Msg("Bob", f"text {number}", "user") for number in range(50)]
    request = {"messages": [{"role": "user", "content": msg.text} for msg in msgs]}
    _ = (
        get_error_class(Failure(text, 400), ERROR_PATTERNS),
        ERROR_PATTERNS.parse_sizes(text),
        locate_block(text, request, WireLayout(), msgs),
    )


def _measure_seconds(work: Callable[[], Any], runs: int) -> float:
    def once() -> float:
        began = process_time()
        work()
        return process_time() - began

    return min(once() for _ in range(runs))


def _measure_growth(work: Callable[[int], Callable[[], Any]], size: int, runs: int) -> float:
    """Returns the ratio of the times at `FACTOR * size` and at `size`."""
    few, many = work(size), work(size * FACTOR)
    few()
    return _measure_seconds(many, runs) / max(_measure_seconds(few, runs), 1e-6)


def _create_parse(case: str) -> Callable[[int], Callable[[], Any]]:
    provider, chunks = CASES[case]
    return lambda size: partial(_parse, provider, chunks(size))


def _create_search(text: str) -> Callable[[int], Callable[[], Any]]:
    return lambda size: partial(_search_error, text * size)


def run(quick: bool) -> Report:
    """Measures the growth of parsing and of the search in error texts."""
    runs, size = (1, 10) if quick else (3, 1_500)
    growths = {case: _measure_growth(_create_parse(case), size, runs) for case in CASES}
    growths |= {
        f"an error text of {name}": _measure_growth(_create_search(text), size // 3, runs)
        for name, text in ERROR_TEXTS.items()
    }
    rows = [[name, growth] for name, growth in growths.items()]
    table = Table(f"Parsing {FACTOR} times as much", ["", "× time"], rows)
    worst = max(growths.values())
    aim = Aim(
        f"Parsing {FACTOR} times as much, worst case",
        f"≤ {MAX_GROWTH:.0f} ×",
        f"{worst:.1f} ×",
        worst <= MAX_GROWTH,
    )
    return Report([table], aims=[aim])
