"""Reading takes time in proportion to what a server sends, also where it sends what no good server would.

Each case is read at two sizes, the second eight times the first. Linear work takes eight times as long, quadratic
work sixty-four: the goal lies between, and the best of several runs counts.
"""

# ruff: noqa: E501 - a case is a line
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
GOAL: Final = 28.0


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
    "many ends": ("openai", lambda n: [*[_chat_call(arguments='{"a": "b"}')] * n, *[_chat_end()] * n]),
    "an event and line breaks": ("openai", lambda n: [b"{}", *[b"\n" * 50] * n]),
    "an error and line breaks": ("ollama", lambda n: [b'{"error": "e"}\n', *[b"\n" * 50] * n]),
    "a line in pieces": ("openai", lambda n: [b"data: {", *[b"a" * 50] * n]),
    "returns": ("openai", lambda n: [b"data: {}", *[b"\r"] * n * 10]),
    "another name with each piece": (
        "openai",
        lambda n: [_chat_call(name="ab"[k % 2], arguments='{"a": "' + "b" * 50) for k in range(n)],
    ),
    "another id with each piece": ("dashscope", lambda n: [_dashscope_call(str(k), "a", "b" * 50) for k in range(n)]),
    "another name of one id": ("dashscope", lambda n: [_dashscope_call("c", "ab"[k % 2], '{"a": "b') for k in range(n)]),
    "increments where whole texts are asked for": (
        "dashscope",
        lambda n: [_dashscope(content="a"), _dashscope(content="ab"), _dashscope(content="abc"), _dashscope(content="abcd"), *[_dashscope(content="xy" * 25)] * n],
    ),
    "a sound after the end": (
        "openai",
        lambda n: [_chat(audio={"data": "AAAA", "transcript": "a"}), _chat_end(), *[_chat(audio={"transcript": "b" * 50})] * n],
    ),
    "text and whole arguments by turns": (
        "gemini",
        lambda n: [_gemini({"functionCall": {"name": "a", "partialArgs": [{"jsonPath": "$.a", "stringValue": "b", "willContinue": True}], "willContinue": True}})]
        + [_gemini({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "b" * 50, "willContinue": True}], "args": {"c": 1}, "willContinue": True}})] * n,
    ),
    "arguments and empty ends by turns": (
        "openai-responses",
        lambda n: [_responses("function_call_arguments.delta", delta="b" * 50), _responses("function_call_arguments.done", arguments="")] * n,
    ),
    "citations": (
        "anthropic",
        lambda n: [_sse({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})]
        + [_sse({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"a": 1}}})] * n,
    ),
    "calls without an end": ("openai", lambda n: [_chat_call(name="a", arguments='{}{}{}{}{}'), *[_chat_call(arguments="{}" * 25)] * n, _chat_end()]),
}  # fmt: skip


def _read(provider: str, chunks: list[bytes]) -> None:
    parser = load_provider(provider).parser
    assert parser is not None
    reader = parser()
    for chunk in chunks:
        reader.feed(chunk)
    reader.finish()


PATTERNS: Final = load_provider("openai").error_patterns

TEXTS: Final = {
    "sizes": "maximum context length is 1 tokens ",
    "quotes": "“a ",
    "paths": "messages.0.content.1 ",
    "digits": "1,000,",
    "words": "exceed ",
}


def _search(text: str) -> None:
    msgs = [Msg("Bob", f"text {number}", "user") for number in range(50)]
    request = {"messages": [{"role": "user", "content": msg.text} for msg in msgs]}
    _ = (
        get_error_class(Failure(text, 400), PATTERNS),
        PATTERNS.parse_sizes(text),
        locate_block(text, request, WireLayout(), msgs),
    )


def _seconds(work: Callable[[], Any], runs: int) -> float:
    def once() -> float:
        began = process_time()
        work()
        return process_time() - began

    return min(once() for _ in range(runs))


def _growth(work: Callable[[int], Callable[[], Any]], size: int, runs: int) -> float:
    """How many times as long the work takes at a size that is FACTOR times as large."""
    few, many = work(size), work(size * FACTOR)
    few()
    return _seconds(many, runs) / max(_seconds(few, runs), 1e-6)


def _reading(case: str) -> Callable[[int], Callable[[], Any]]:
    provider, chunks = CASES[case]
    return lambda size: partial(_read, provider, chunks(size))


def _searching(text: str) -> Callable[[int], Callable[[], Any]]:
    return lambda size: partial(_search, text * size)


def run(quick: bool) -> Report:
    """How the time to read grows with what a server sends."""
    runs, size = (1, 10) if quick else (3, 1_500)
    found = {case: _growth(_reading(case), size, runs) for case in CASES}
    found |= {
        f"an error text of {name}": _growth(_searching(text), size // 3, runs) for name, text in TEXTS.items()
    }
    rows = [[name, growth] for name, growth in found.items()]
    table = Table(f"Reading {FACTOR} times as much", ["", "× time"], rows)
    worst = max(found.values())
    aim = Aim(f"Reading {FACTOR} times as much, worst", f"≤ {GOAL:.0f} ×", f"{worst:.1f} ×", worst <= GOAL)
    return Report([table], aims=[aim])
