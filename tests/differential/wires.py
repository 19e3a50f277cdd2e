"""Generated replies of each wire format: whole, as the events of a stream, and as the bytes of these events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any, Final, cast

from tests.differential.vocabulary import DATA, INPUTS, RAW_INPUTS, TEXTS

__all__ = ["Reply", "create_error", "create_events", "create_whole", "write_events"]

Reply = dict[str, Any]
"""A reply before a wire format is chosen: its `parts` in order, `reason`, `usage`, and `id`."""

_CHAT: Final = frozenset({"openai", "deepseek", "vllm", "dashscope-compatible"})
_REASONING: Final = {
    "deepseek": "reasoning_content",
    "dashscope-compatible": "reasoning_content",
    "vllm": "reasoning",
}


def create_reply(rng: Random) -> Reply:
    """Returns a reply of a few parts."""
    kinds = rng.choices(
        ("text", "thinking", "call", "refusal", "media", "opaque"), (8, 5, 6, 1, 1, 2), k=rng.randint(0, 5)
    )
    if rng.random() < 0.5:
        kinds.sort(key=("thinking", "media", "opaque", "refusal", "text", "call").index)
    return {
        "id": f"{rng.randrange(1 << 40):x}",
        "model": rng.choice(("m", "m-2", "")),
        "parts": [_create_part(rng, kind, number) for number, kind in enumerate(kinds)],
        "reason": rng.choice(("stop", "stop", "length", "filter", "tool", "odd", None)),
        "usage": rng.choice(
            ({}, {"in": 11, "out": 7}, {"in": 40, "out": 9, "read": 12, "written": 3, "thought": 5})
        ),
    }


def _create_part(rng: Random, kind: str, number: int) -> dict[str, Any]:
    text = "".join(rng.choices((*TEXTS, "A few words. ", "And more of them."), k=rng.randint(1, 3)))
    part: dict[str, Any] = {"kind": kind, "text": text}
    if kind == "call":
        given = rng.choice(INPUTS)
        written = rng.choice((json.dumps(given), json.dumps(given, ensure_ascii=False, separators=(",", ":"))))
        raw = rng.choice(RAW_INPUTS)
        part |= {
            "id": rng.choice((f"call_{number}", f"call_{number}", "", "same")),
            "name": rng.choice(("search", "look", "a.b", "")),
            "input": given,
            "arguments": raw if raw is not None and rng.random() < 0.25 else written,
        }
    if rng.random() < 0.5:
        part["signature"] = rng.choice(("c2lnbmVk", "RXVzX3NpZ25hdHVyZQ=="))
    if rng.random() < 0.2:
        part["citations"] = [{"type": "url_citation", "url": "https://x.org", "title": "T"}]
    return part


def create_whole(rng: Random, provider: str, reply: Reply) -> Any:
    """Returns the reply as one object of the provider's wire format."""
    return _WIRES[provider].whole(rng, provider, reply)


def create_events(rng: Random, provider: str, reply: Reply) -> list[Any]:
    """Returns the reply as the events of a stream."""
    return list(_WIRES[provider].events(rng, provider, reply))


def create_error(rng: Random, provider: str) -> Any:
    """Returns an error as an event or as the body of a response."""
    message = rng.choice(("The model is overloaded.", "messages.3.content.1: invalid", "", "Rate limit reached."))
    openai = {
        "error": {"message": message, "type": "server_error", "param": None, "code": rng.choice((None, "x", 400))}
    }
    errors: dict[str, Any] = {
        "openai-responses": {"type": "error", "code": "server_error", "message": message, "param": None},
        "anthropic": {
            "type": "error",
            "error": {"type": "overloaded_error", "message": message},
            "request_id": "r",
        },
        "gemini": {"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}},
        "dashscope": {"code": "Throttling", "message": message, "request_id": "r", "status_code": 429},
        "ollama": {"error": message},
    }
    return errors.get(provider, openai)


def write_events(provider: str, events: list[Any], *, is_complete: bool) -> bytes:
    """Returns the bytes of a stream with these events."""
    written = b"".join(_write_event(provider, event, number) for number, event in enumerate(events, 1))
    return written + (b"data: [DONE]\n\n" if is_complete and provider in _CHAT else b"")


def _write_event(provider: str, event: Any, number: int) -> bytes:
    body = json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if provider == "ollama":
        return body + b"\n"
    if provider == "gemini":
        return b"data: " + body + b"\r\n\r\n"
    if provider == "dashscope":
        return b"id:%d\nevent:result\n:HTTP_STATUS/200\ndata:" % number + body + b"\n\n"
    if provider in ("anthropic", "openai-responses"):
        name = cast("dict[str, Any]", event).get("type", "message") if isinstance(event, dict) else "message"
        return b"event: " + str(name).encode() + b"\ndata: " + body + b"\n\n"
    return b"data: " + body + b"\n\n"


def _cut(rng: Random, text: str) -> list[str]:
    """Returns the text in pieces of random sizes."""
    pieces: list[str] = []
    while text:
        size = rng.choice((1, 3, 7, 20, 200))
        pieces.append(text[:size])
        text = text[size:]
    return pieces


def _select(reply: Reply, *kinds: str) -> list[dict[str, Any]]:
    return [part for part in reply["parts"] if part["kind"] in kinds]


def _join(reply: Reply, kind: str) -> str:
    return "".join(part["text"] for part in _select(reply, kind))


# -- Chat Completions ------------------------------------------------------------------------------------------


class _ChatCompletions:
    """Wire format of OpenAI's Chat Completions, and of servers that follow it with differences of their own."""

    reasons: Final = {
        "stop": "stop",
        "length": "length",
        "filter": "content_filter",
        "tool": "tool_calls",
        "odd": "eos",
    }

    def whole(self, rng: Random, provider: str, reply: Reply) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": _join(reply, "text") or None}
        if refusal := _join(reply, "refusal"):
            message["refusal"] = refusal
        if thinking := _join(reply, "thinking"):
            message[_REASONING.get(provider, "reasoning")] = thinking
        if calls := [self._call(part, part["arguments"]) for part in _select(reply, "call")]:
            message["tool_calls"] = calls
        if _select(reply, "media"):
            message["audio"] = {"id": "audio_1", "data": DATA["audio/wav"], "transcript": "Yes.", "expires_at": 9}
        if notes := [note for part in reply["parts"] for note in part.get("citations", ())]:
            message["annotations"] = notes
        choice = {"index": 0, "message": message, "finish_reason": self.reasons.get(reply["reason"])}
        choices = [choice, {**choice, "index": 1}] if rng.random() < 0.05 else [choice]
        return {**self._head(reply, "chat.completion"), "choices": choices, "usage": self._usage(reply)}

    def events(self, rng: Random, provider: str, reply: Reply) -> Iterator[Any]:
        head = self._head(reply, "chat.completion.chunk")
        has_usage_inside = rng.random() < 0.4
        if rng.random() < 0.1:
            yield {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": []}
        for delta in self._deltas(rng, provider, reply):
            yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": self.reasons.get(reply["reason"])}
        usage = self._usage(reply)
        yield {**head, "choices": [last], **({"usage": usage} if has_usage_inside else {})}
        if not has_usage_inside and usage:
            yield {**head, "choices": [], "usage": usage}

    def _deltas(self, rng: Random, provider: str, reply: Reply) -> Iterator[dict[str, Any]]:
        yield {"role": "assistant", "content": rng.choice(("", None))}
        later_id = rng.choice(("absent", "", "same"))
        has_index = rng.random() < 0.85
        count = 0
        for part in reply["parts"]:
            key = {"text": "content", "refusal": "refusal"}.get(part["kind"])
            if part["kind"] == "thinking":
                key = _REASONING.get(provider, rng.choice(("reasoning", "reasoning_content")))
            if key:
                yield from ({key: piece} for piece in _cut(rng, part["text"]))
                if "citations" in part:
                    yield {"annotations": part["citations"]}
            elif part["kind"] == "media":
                yield {"audio": {"id": "audio_1", "transcript": "Ye"}}
                yield {"audio": {"data": DATA["audio/wav"], "transcript": "s."}}
                yield {"audio": {"expires_at": 9}}
            elif part["kind"] == "call":
                index = {"index": count} if has_index else {}
                count += 1
                yield {"tool_calls": [{**index, **self._call(part, "")}]}
                more: dict[str, Any] = {"absent": {}, "": {"id": ""}, "same": {"id": part["id"]}}[later_id]
                for piece in _cut(rng, part["arguments"]):
                    yield {"tool_calls": [{**index, **more, "function": {"arguments": piece}}]}

    def _call(self, part: dict[str, Any], arguments: str) -> dict[str, Any]:
        return {"id": part["id"], "type": "function", "function": {"name": part["name"], "arguments": arguments}}

    def _head(self, reply: Reply, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{reply['id']}", "object": kind, "created": 9, "model": reply["model"]}

    def _usage(self, reply: Reply) -> Any:
        usage = reply["usage"]
        if not usage:
            return None
        return {
            "prompt_tokens": usage["in"],
            "completion_tokens": usage["out"],
            "total_tokens": usage["in"] + usage["out"],
            "prompt_tokens_details": {"cached_tokens": usage.get("read", 0)},
            "completion_tokens_details": {"reasoning_tokens": usage.get("thought", 0)},
        }


# -- Responses -------------------------------------------------------------------------------------------------


class _Responses:
    """Wire format of OpenAI's Responses."""

    def whole(self, rng: Random, provider: str, reply: Reply) -> Any:
        return self._response(reply, self._items(reply), is_over=True)

    def events(self, rng: Random, provider: str, reply: Reply) -> Iterator[Any]:
        items = self._items(reply)
        yield {"type": "response.created", "response": self._response(reply, [], is_over=False)}
        for index, item in enumerate(items):
            place = {"item_id": item.get("id"), "output_index": index}
            begun = {key: self._empty.get(key, value) for key, value in item.items()}
            yield {"type": "response.output_item.added", "output_index": index, "item": begun}
            for event in self._inside(rng, item):
                yield {**place, **event}
            if rng.random() < 0.9:
                yield {"type": "response.output_item.done", "output_index": index, "item": item}
        ended = self._response(reply, items, is_over=True)
        yield {"type": f"response.{ended['status']}", "response": ended}

    _empty: Final[dict[str, Any]] = {
        "content": [],
        "summary": [],
        "arguments": "",
        "status": "in_progress",
        "result": None,
    }

    def _inside(self, rng: Random, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for number, part in enumerate(item.get("content", ())):
            key = "refusal" if part["type"] == "refusal" else "text"
            name, place = ("refusal" if key == "refusal" else "output_text"), {"content_index": number}
            yield {"type": "response.content_part.added", **place, "part": {**part, key: ""}}
            for piece in _cut(rng, part[key]):
                yield {"type": f"response.{name}.delta", **place, "delta": piece}
            for at, note in enumerate(part.get("annotations", ())):
                event = {
                    "type": "response.output_text.annotation.added",
                    "annotation_index": at,
                    "annotation": note,
                }
                yield {**event, **place}
            yield {"type": f"response.{name}.done", **place, key: part[key]}
        for number, part in enumerate(item.get("summary", ())):
            for piece in _cut(rng, part["text"]):
                yield {"type": "response.reasoning_summary_text.delta", "summary_index": number, "delta": piece}
        if item["type"] == "function_call":
            for piece in _cut(rng, item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}

    def _items(self, reply: Reply) -> list[dict[str, Any]]:
        return [self._item(part, f"{reply['id']}{number}") for number, part in enumerate(reply["parts"])]

    def _item(self, part: dict[str, Any], id: str) -> dict[str, Any]:
        kind = part["kind"]
        if kind == "thinking":
            item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{id}"}
            item["summary"] = [{"type": "summary_text", "text": part["text"]}]
            return {**item, "encrypted_content": part["signature"]} if "signature" in part else item
        if kind == "call":
            call = {"type": "function_call", "id": f"fc_{id}", "call_id": part["id"], "name": part["name"]}
            return {**call, "arguments": part["arguments"], "status": "completed"}
        if kind == "media":
            return {
                "type": "image_generation_call",
                "id": f"ig_{id}",
                "status": "completed",
                "result": DATA["image/png"],
            }
        if kind == "opaque":
            return {
                "type": "web_search_call",
                "id": f"ws_{id}",
                "status": "completed",
                "action": {"type": "search"},
            }
        content: dict[str, Any] = {
            "type": "output_text",
            "text": part["text"],
            "annotations": part.get("citations", []),
        }
        if kind == "refusal":
            content = {"type": "refusal", "refusal": part["text"]}
        phase = {"phase": "commentary"} if "signature" in part else {}
        return {
            "type": "message",
            "id": f"msg_{id}",
            "role": "assistant",
            "status": "completed",
            **phase,
            "content": [content],
        }

    def _response(self, reply: Reply, items: list[dict[str, Any]], *, is_over: bool) -> dict[str, Any]:
        found: dict[str, Any] = {
            "id": f"resp_{reply['id']}",
            "object": "response",
            "model": reply["model"],
            "output": items,
        }
        reason = {"length": "max_output_tokens", "filter": "content_filter"}.get(reply["reason"])
        found |= {"status": "in_progress", "error": None, "incomplete_details": None, "usage": None}
        if not is_over:
            return found
        found["usage"] = self._usage(reply["usage"])
        if reply["reason"] == "odd":
            return {**found, "status": "failed", "error": {"code": "server_error", "message": "The model failed."}}
        return {
            **found,
            **(
                {"status": "incomplete", "incomplete_details": {"reason": reason}}
                if reason
                else {"status": "completed"}
            ),
        }

    def _usage(self, usage: dict[str, Any]) -> Any:
        if not usage:
            return None
        details = {"cached_tokens": usage.get("read", 0), "cache_write_tokens": usage.get("written", 0)}
        return {
            "input_tokens": usage["in"],
            "input_tokens_details": details,
            "output_tokens": usage["out"],
            "output_tokens_details": {"reasoning_tokens": usage.get("thought", 0)},
            "total_tokens": usage["in"] + usage["out"],
        }


# -- Anthropic -------------------------------------------------------------------------------------------------


class _Anthropic:
    """Wire format of Anthropic's Messages."""

    reasons: Final = {
        "stop": "end_turn",
        "length": "max_tokens",
        "filter": "refusal",
        "tool": "tool_use",
        "odd": "new",
    }

    def whole(self, rng: Random, provider: str, reply: Reply) -> Any:
        content = [self._block(part) for part in reply["parts"]]
        ended = {"stop_reason": self.reasons.get(reply["reason"]), "stop_sequence": None}
        return {**self._head(reply), "content": content, **ended, "usage": self._usage(reply["usage"])}

    def events(self, rng: Random, provider: str, reply: Reply) -> Iterator[Any]:
        yield {"type": "message_start", "message": {**self._head(reply), "usage": self._usage(reply["usage"])}}
        for index, part in enumerate(reply["parts"]):
            whole = self._block(part)
            yield {"type": "content_block_start", "index": index, "content_block": {**whole, **self._empty(whole)}}
            for delta in self._deltas(rng, part, whole):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            if rng.random() < 0.95:
                yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": self.reasons.get(reply["reason"]), "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": self._usage(reply["usage"])}
        yield {"type": "message_stop"}

    def _head(self, reply: Reply) -> dict[str, Any]:
        head = {"id": f"msg_{reply['id']}", "type": "message", "role": "assistant", "model": reply["model"]}
        return {**head, "content": [], "stop_reason": None}

    def _block(self, part: dict[str, Any]) -> dict[str, Any]:
        kind = part["kind"]
        if kind == "thinking":
            if part["text"].isspace():
                return {"type": "redacted_thinking", "data": "Red/c2lnbmVk"}
            return {"type": "thinking", "thinking": part["text"], "signature": part.get("signature", "")}
        if kind == "call":
            return {"type": "tool_use", "id": part["id"], "name": part["name"], "input": part["input"]}
        if kind == "opaque":
            return {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
        if kind == "media":
            return {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        return {"type": "text", "text": part["text"], "citations": part.get("citations")}

    def _empty(self, block: dict[str, Any]) -> dict[str, Any]:
        kinds: dict[str, dict[str, Any]] = {
            "text": {"text": "", "citations": None},
            "thinking": {"thinking": "", "signature": ""},
            "tool_use": {"input": {}},
            "server_tool_use": {"input": {}},
        }
        return kinds.get(block["type"], {})

    def _deltas(self, rng: Random, part: dict[str, Any], block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        kind = block["type"]
        if kind == "text":
            yield from ({"type": "text_delta", "text": piece} for piece in _cut(rng, block["text"]))
            yield from ({"type": "citations_delta", "citation": note} for note in block["citations"] or ())
        elif kind == "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in _cut(rng, block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        elif kind in ("tool_use", "server_tool_use"):
            arguments = part["arguments"] if kind == "tool_use" else json.dumps(block["input"])
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in _cut(rng, arguments))

    def _usage(self, usage: dict[str, Any]) -> dict[str, Any]:
        read, written = usage.get("read", 0), usage.get("written", 0)
        return {
            "input_tokens": usage.get("in", 0),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": usage.get("out", 0),
        }


# -- Gemini, Ollama, DashScope ---------------------------------------------------------------------------------


class _Gemini:
    """Wire format of Gemini's generateContent."""

    reasons: Final = {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "filter": "SAFETY",
        "tool": "STOP",
        "odd": "NEW_REASON",
    }

    def whole(self, rng: Random, provider: str, reply: Reply) -> Any:
        parts = [self._part(part) for part in reply["parts"]]
        return self._chunk(reply, parts, is_last=True)

    def events(self, rng: Random, provider: str, reply: Reply) -> Iterator[Any]:
        for part in reply["parts"]:
            whole = self._part(part)
            if "text" in whole:
                kept = {key: value for key, value in whole.items() if key == "thought"}
                for piece in _cut(rng, whole["text"]):
                    yield self._chunk(reply, [{"text": piece, **kept}], is_last=False)
                if "thoughtSignature" in whole:
                    yield self._chunk(reply, [{**whole, "text": ""}], is_last=False)
            else:
                yield self._chunk(reply, [whole], is_last=False)
        yield self._chunk(reply, [], is_last=True)

    def _part(self, part: dict[str, Any]) -> dict[str, Any]:
        kind, signed = part["kind"], {"thoughtSignature": part["signature"]} if "signature" in part else {}
        if kind == "thinking":
            return {"text": part["text"], "thought": True, **signed}
        if kind == "call":
            call = {"name": part["name"], "args": part["input"]} | ({"id": part["id"]} if part["id"] else {})
            return {"functionCall": call, **signed}
        if kind == "media":
            return {"inlineData": {"mimeType": "image/png", "data": DATA["image/png"]}, **signed}
        if kind == "opaque":
            return {"executableCode": {"code": "1", "language": "PYTHON"}}
        return {"text": part["text"], **signed}

    def _chunk(self, reply: Reply, parts: list[dict[str, Any]], *, is_last: bool) -> dict[str, Any]:
        candidate: dict[str, Any] = {
            "content": {"role": "model", **({"parts": parts} if parts else {})},
            "index": 0,
        }
        if is_last and reply["reason"]:
            candidate["finishReason"] = self.reasons[reply["reason"]]
        usage = reply["usage"]
        counts = {
            "promptTokenCount": usage.get("in"),
            "candidatesTokenCount": usage.get("out") if is_last else None,
        }
        more = {"thoughtsTokenCount": usage.get("thought"), "cachedContentTokenCount": usage.get("read")}
        held = {key: value for key, value in (counts | more).items() if value is not None}
        return {
            "candidates": [candidate],
            "usageMetadata": held,
            "modelVersion": reply["model"],
            "responseId": reply["id"],
        }


class _Ollama:
    """Wire format of Ollama's chat."""

    reasons: Final = {"stop": "stop", "length": "length", "filter": "stop", "tool": "stop", "odd": "load"}

    def whole(self, rng: Random, provider: str, reply: Reply) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": _join(reply, "text")}
        if thinking := _join(reply, "thinking"):
            message["thinking"] = thinking
        if calls := [self._call(part) for part in _select(reply, "call")]:
            message["tool_calls"] = calls
        return {**self._head(reply), "message": message, **self._end(reply)}

    def events(self, rng: Random, provider: str, reply: Reply) -> Iterator[Any]:
        for part in reply["parts"]:
            if part["kind"] == "call":
                message = {"content": "", "tool_calls": [self._call(part)]}
                yield {**self._head(reply), "message": {"role": "assistant", **message}, "done": False}
            elif part["kind"] in ("text", "thinking"):
                for piece in _cut(rng, part["text"]):
                    said = {"content": piece} if part["kind"] == "text" else {"content": "", "thinking": piece}
                    yield {**self._head(reply), "message": {"role": "assistant", **said}, "done": False}
        yield {**self._head(reply), "message": {"role": "assistant", "content": ""}, **self._end(reply)}

    def _call(self, part: dict[str, Any]) -> dict[str, Any]:
        function = {"name": part["name"], "arguments": part["input"]}
        return {"id": part["id"], "function": function} if part["id"] else {"function": function}

    def _head(self, reply: Reply) -> dict[str, Any]:
        return {"model": reply["model"], "created_at": "2026-01-01T00:00:00Z"}

    def _end(self, reply: Reply) -> dict[str, Any]:
        usage = reply["usage"]
        counts = {"prompt_eval_count": usage["in"], "eval_count": usage["out"]} if usage else {}
        return {"done": True, "done_reason": self.reasons.get(reply["reason"]), "total_duration": 3, **counts}


class _DashScope:
    """Native wire format of DashScope."""

    reasons: Final = {"stop": "stop", "length": "length", "filter": "stop", "tool": "tool_calls", "odd": "new"}

    def whole(self, rng: Random, provider: str, reply: Reply) -> Any:
        message = {"content": _join(reply, "text"), "reasoning_content": _join(reply, "thinking")}
        calls = [self._call(part, number, part["arguments"]) for number, part in enumerate(_select(reply, "call"))]
        return self._reply(rng, reply, {**message, **({"tool_calls": calls} if calls else {})}, is_last=True)

    def events(self, rng: Random, provider: str, reply: Reply) -> Iterator[Any]:
        is_cumulative = rng.random() < 0.4
        known: dict[str, Any] = {"content": "", "reasoning_content": ""}
        for delta in self._deltas(rng, reply):
            for key in ("content", "reasoning_content"):
                known[key] += delta.get(key, "")
            if "tool_calls" in delta:
                known["tool_calls"] = _merge_calls(known.get("tool_calls", []), delta["tool_calls"][0])
            message = json.loads(json.dumps(known)) if is_cumulative else delta
            yield self._reply(rng, reply, message, is_last=False)
        yield self._reply(rng, reply, known if is_cumulative else {"content": ""}, is_last=True)

    def _deltas(self, rng: Random, reply: Reply) -> Iterator[dict[str, Any]]:
        for piece in _cut(rng, _join(reply, "thinking")):
            yield {"content": "", "reasoning_content": piece}
        for piece in _cut(rng, _join(reply, "text")):
            yield {"content": piece}
        for number, part in enumerate(_select(reply, "call")):
            yield {"content": "", "tool_calls": [self._call(part, number, "")]}
            for piece in _cut(rng, part["arguments"]):
                function = {"arguments": piece}
                yield {
                    "content": "",
                    "tool_calls": [{"index": number, "id": "", "type": "function", "function": function}],
                }

    def _call(self, part: dict[str, Any], number: int, arguments: str) -> dict[str, Any]:
        function = {"name": part["name"], "arguments": arguments}
        return {"index": number, "id": part["id"], "type": "function", "function": function}

    def _reply(self, rng: Random, reply: Reply, message: dict[str, Any], *, is_last: bool) -> dict[str, Any]:
        reason = self.reasons.get(reply["reason"], "null") if is_last else "null"
        usage = reply["usage"]
        counts = {"input_tokens": usage["in"], "output_tokens": usage["out"]} if usage else {}
        choice = {"finish_reason": reason, "message": {"role": "assistant", **message}}
        return {"output": {"choices": [choice]}, "usage": counts, "request_id": reply["id"]}


def _merge_calls(calls: list[Any], piece: dict[str, Any]) -> list[Any]:
    if piece["index"] == len(calls):
        return [*calls, piece]
    last = calls[-1]
    function = {**last["function"], "arguments": last["function"]["arguments"] + piece["function"]["arguments"]}
    return [*calls[:-1], {**last, "function": function}]


_WIRES: Final[dict[str, Any]] = {
    **dict.fromkeys(_CHAT, _ChatCompletions()),
    "openai-responses": _Responses(),
    "anthropic": _Anthropic(),
    "gemini": _Gemini(),
    "ollama": _Ollama(),
    "dashscope": _DashScope(),
}
