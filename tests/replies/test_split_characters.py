"""Characters that a stream splits over two pieces. Each half is a lone surrogate."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from agentkit import Msg, TextBlock, ThinkingBlock, ToolUseBlock, load_provider
from tests.cases import each_case

_Event = dict[str, Any]


def _chat(**delta: Any) -> _Event:
    return {"choices": [{"index": 0, "delta": delta}]}


def _chat_call(arguments: str) -> _Event:
    return _chat(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": arguments}}])


def _anthropic(block: _Event, name: str, pieces: list[str]) -> list[_Event]:
    kind = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}[name]
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": kind, name: p}} for p in pieces]
    return [{"type": "content_block_start", "index": 0, "content_block": block}, *deltas]


def _gemini(part: _Event) -> _Event:
    return {"candidates": [{"content": {"role": "model", "parts": [part]}}]}


def _gemini_call(pieces: list[str]) -> list[_Event]:
    pieces_of_call: list[_Event] = [
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": p, "willContinue": True}]} for p in pieces
    ]
    calls: list[_Event] = [{**call, "willContinue": True} for call in [{"name": "f"}, *pieces_of_call]]
    return [_gemini({"functionCall": call}) for call in [*calls, {}]]


def _ollama(**fields: str) -> _Event:
    return {"model": "m", "message": {"role": "assistant", "content": "", **fields}, "done": False}


def _dashscope(**fields: Any) -> _Event:
    return {
        "output": {
            "choices": [{"finish_reason": "null", "message": {"role": "assistant", "content": "", **fields}}]
        }
    }


def _dashscope_call(arguments: str) -> _Event:
    function = {"name": "f", "arguments": arguments}
    return _dashscope(tool_calls=[{"index": 0, "id": "c", "type": "function", "function": function}])


def _responses(item: _Event, kind: str, pieces: list[str]) -> list[_Event]:
    place = {"item_id": "i", "output_index": 0, "content_index": 0, "summary_index": 0}
    added = {"type": "response.output_item.added", "output_index": 0, "item": {"id": "i", **item}}
    return [added, *({"type": f"response.{kind}.delta", **place, "delta": piece} for piece in pieces)]


def _as_json(pieces: list[str]) -> list[str]:
    return ['{"a":"', *pieces, '"}']


STREAMS: Final[dict[str, Callable[[list[str]], list[_Event]]]] = {
    "openai text": lambda pieces: [_chat(content=piece) for piece in pieces],
    "openai refusal": lambda pieces: [_chat(refusal=piece) for piece in pieces],
    "openai call": lambda pieces: [_chat_call(piece) for piece in _as_json(pieces)],
    "deepseek thinking": lambda pieces: [_chat(reasoning_content=piece) for piece in pieces],
    "vllm thinking": lambda pieces: [_chat(reasoning=piece) for piece in pieces],
    "anthropic text": lambda pieces: _anthropic({"type": "text", "text": ""}, "text", pieces),
    "anthropic thinking": lambda pieces: _anthropic({"type": "thinking", "thinking": ""}, "thinking", pieces),
    "anthropic call": lambda pieces: _anthropic(
        {"type": "tool_use", "id": "c", "name": "f", "input": {}}, "partial_json", _as_json(pieces)
    ),
    "gemini text": lambda pieces: [_gemini({"text": piece}) for piece in pieces],
    "gemini thinking": lambda pieces: [_gemini({"text": piece, "thought": True}) for piece in pieces],
    "gemini call": _gemini_call,
    "openai-completions text": lambda pieces: [{"choices": [{"index": 0, "text": piece}]} for piece in pieces],
    "ollama-raw text": lambda pieces: [{"model": "m", "response": piece, "done": False} for piece in pieces],
    "ollama-raw thinking": lambda pieces: [{"model": "m", "thinking": piece, "done": False} for piece in pieces],
    "ollama text": lambda pieces: [_ollama(content=piece) for piece in pieces],
    "ollama thinking": lambda pieces: [_ollama(thinking=piece) for piece in pieces],
    "dashscope text": lambda pieces: [_dashscope(content=piece) for piece in pieces],
    "dashscope parts": lambda pieces: [_dashscope(content=[{"text": piece}]) for piece in pieces],
    "dashscope thinking": lambda pieces: [_dashscope(reasoning_content=piece) for piece in pieces],
    "dashscope call": lambda pieces: [_dashscope_call(piece) for piece in _as_json(pieces)],
    "openai-responses text": lambda pieces: _responses(
        {"type": "message", "role": "assistant", "content": []}, "output_text", pieces
    ),
    "openai-responses refusal": lambda pieces: _responses(
        {"type": "message", "role": "assistant", "content": []}, "refusal", pieces
    ),
    "openai-responses thinking": lambda pieces: _responses(
        {"type": "reasoning", "summary": []}, "reasoning_summary_text", pieces
    ),
    "openai-responses call": lambda pieces: _responses(
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": ""},
        "function_call_arguments",
        _as_json(pieces),
    ),
}

PIECES: Final = {
    "two halves": (["a\ud83d", "\ude00b"], "a\U0001f600b"),
    "two halves after a text": (["x", "a\ud83d", "\ude00b"], "xa\U0001f600b"),
    "an empty piece between": (["x", "a\ud83d", "", "\ude00b"], "xa\U0001f600b"),
    "one half and more text": (["x", "a\ud83d", "b"], "xa\ufffdb"),
    "one half at the end": (["x", "a\ud83d"], "xa\ufffd"),
    "the other half alone": (["x", "\ude00b"], "x\ufffdb"),
}


def _words(msg: Msg) -> str:
    (block,) = msg.blocks
    if isinstance(block, ToolUseBlock):
        return str(block.input["a"])
    if isinstance(block, ThinkingBlock):
        return block.thinking
    assert isinstance(block, TextBlock)
    return block.text


@each_case("is_bytes", {"bytes": True, "dicts": False})
@each_case("stream", [*STREAMS])
def test_halves_of_a_character_meet_or_are_replaced(stream: str, is_bytes: bool) -> None:
    parser = load_provider(stream.split(maxsplit=1)[0]).parser
    assert parser is not None
    for pieces, (texts, expected) in PIECES.items():
        reading = parser()
        for event in STREAMS[stream](texts):
            line = json.dumps(event) + "\n"
            sent = line if reading.json_lines else f"data: {line}\n"
            reading.feed(sent.encode() if is_bytes else event)
        assert _words(reading.finish()) == expected, pieces
