"""Fake Responses service for `agentkit.testing.LoopbackServer`.

Fake replies and the order of their events follow `openai.types.responses`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, Final, TypeAlias

from agentkit.provider_kit import (
    Base64Source,
    Block,
    FinishReason,
    ImageBlock,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    as_list,
    as_object,
    get_state_fields,
)
from agentkit.testing import (
    FakeService,
    LoopbackError,
    NormalizedReply,
    ReceivedCall,
    Route,
    get_citations,
    hash_text,
    is_refusal,
    unsupported_block,
)
from agentkit_openai.testing import CREATED, build_error

__all__ = ["FakeResponses", "ROUTES"]

_INCOMPLETE: Final[dict[str, str]] = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}
"""Values of `incomplete_details.reason` in a response, by finish reason. The API has only these two values."""

_Event: TypeAlias = dict[str, Any]


class FakeResponses(FakeService):
    """Fake service for `POST /responses`."""

    client_defaults: ClassVar[Mapping[str, Any]] = {"max_retries": 0}
    names_events = True
    prompt_keys = ("instructions", "input", "tools")

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        return _finished_response(reply, call, list(_items(reply)))

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[_Event]:
        for number, event in enumerate(_unnumbered_events(reply, call)):
            yield {"type": event.pop("type"), "sequence_number": number, **event}

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return build_error(error)

    def build_error_event(self, error: LoopbackError) -> _Event:
        return {"type": "error", "code": error.code, "message": error.message, "param": None}

    def find_fault(self, call: ReceivedCall) -> str | None:
        """Returns the API's error message if tool calls and outputs do not match. Returns None if all match.

        Each tool call requires one output after it, and each output requires its tool call before it.
        """
        if call.body.get("previous_response_id") or call.body.get("conversation"):
            return None  # the service stores earlier messages, which may contain the tool calls
        open_ids: list[str] = []
        for item in map(as_object, as_list(call.body.get("input"))):
            item_type, call_id = item.get("type"), str(item.get("call_id"))
            if item_type in {"function_call", "custom_tool_call"}:
                open_ids.append(call_id)
            elif item_type in {"function_call_output", "custom_tool_call_output"}:
                if call_id not in open_ids:
                    return f"No tool call found for function call output with call_id {call_id}."
                open_ids.remove(call_id)
        return f"No tool output found for function call {open_ids[0]}." if open_ids else None

    def count(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if verb != "input_tokens":
            return None
        return {"object": "response.input_tokens", "input_tokens": self.count_prompt(body)}


# -- the response -----------------------------------------------------------------------------------------------


def _new_response(reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
    body = call.body
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": call.model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "temperature": 1.0,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "top_p": 1.0,
        "text": body.get("text", {"format": {"type": "text"}}),
        "usage": None,
    }


def _finished_response(reply: NormalizedReply, call: ReceivedCall, items: list[dict[str, Any]]) -> dict[str, Any]:
    end: dict[str, Any] = {"status": "completed"}
    if reason := _INCOMPLETE.get(reply.finish_reason):
        end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
    if reply.finish_reason == FinishReason.ERROR:
        end = {"status": "failed", "error": {"code": "server_error", "message": "The model failed."}}
    return {**_new_response(reply, call), **end, "output": items, "usage": _usage(reply.usage)}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


# -- items ------------------------------------------------------------------------------------------------------


def _items(reply: NormalizedReply) -> Iterator[dict[str, Any]]:
    """Yields the items of a reply. Adjacent texts with the same opaque state become parts of one message."""
    groups = groupby(reply.msg.blocks, lambda block: (isinstance(block, TextBlock), getattr(block, "state", None)))
    for index, ((is_text, state), blocks) in enumerate(groups):
        name = hash_text(f"{reply.id} {index}", 32)
        if is_text:
            parts = [_part(block) for block in blocks if isinstance(block, TextBlock)]
            yield {**_head("message", "msg", name, state), "role": "assistant", "content": parts}
        else:
            yield from (_item(block, f"{name}{number or ''}") for number, block in enumerate(blocks))


def _head(item_type: str, prefix: str, name: str, state: OpaqueState | None) -> dict[str, Any]:
    """Returns the first keys of an item: its id, type and status, and the fields of its opaque state."""
    id = state.item_id if state and state.item_id else f"{prefix}_{name}"
    return {"id": id, "type": item_type, "status": "completed", **get_state_fields(state)}


def _part(block: TextBlock) -> dict[str, Any]:
    if is_refusal(block):
        return {"type": "refusal", "refusal": block.text}
    return {"type": "output_text", "text": block.text, "annotations": get_citations(block), "logprobs": []}


def _item(block: Block, name: str) -> dict[str, Any]:
    if isinstance(block, ThinkingBlock):
        proof = block.state.encrypted_content if block.state else None
        summary = [{"type": "summary_text", "text": block.thinking}] if block.thinking else []
        reasoning = {"summary": summary, **_head("reasoning", "rs", name, block.state)}
        return {**reasoning, "encrypted_content": proof or f"gAAAA{hash_text(name, 40)}"}
    if isinstance(block, ToolUseBlock):
        call = {"arguments": block.arguments, "call_id": block.id, "name": block.name}
        return {**_head("function_call", "fc", name, block.state), **call}
    if isinstance(block, OpaqueBlock):
        return dict(block.data)
    if isinstance(block, ImageBlock) and isinstance(block.source, Base64Source):
        image = {"result": block.source.data, "output_format": block.source.media_type.rpartition("/")[2]}
        return {**_head("image_generation_call", "ig", name, None), **image}
    raise unsupported_block("Responses", block.type)


# -- events -----------------------------------------------------------------------------------------------------


def _unnumbered_events(reply: NormalizedReply, call: ReceivedCall) -> Iterator[_Event]:
    response = _new_response(reply, call)
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    items = list(_items(reply))
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": _empty_item(item)}
        position = {"item_id": item.get("id"), "output_index": index}
        for event in _item_events(item, reply):
            yield {"type": event.pop("type"), **position, **event}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    finished = _finished_response(reply, call, items)
    yield {"type": f"response.{finished['status']}", "response": finished}


_EMPTY: Final[dict[str, Any]] = {
    "content": [],
    "summary": [],
    "arguments": "",
    "result": None,
    "status": "in_progress",
}
"""Maps keys of an item to the values that the keys have in the event that announces the item.

In this event, all other keys except `encrypted_content` already have their final values.
"""


def _empty_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an item as its first event contains it: without content, and with shortened encrypted content."""
    empty = {key: _EMPTY.get(key, value) for key, value in item.items()}
    if "encrypted_content" in empty:
        empty["encrypted_content"] = str(empty["encrypted_content"])[:8]
    return empty


def _item_events(item: Mapping[str, Any], reply: NormalizedReply) -> Iterator[_Event]:
    """Yields the events between the first and the last event of an item."""
    match item.get("type"):
        case "message":
            yield from _message_events(item, reply)
        case "reasoning":
            yield from _reasoning_events(item, reply)
        case "function_call":
            name = "response.function_call_arguments"
            yield from ({"type": f"{name}.delta", "delta": piece} for piece in reply.split(item["arguments"]))
            yield {"type": f"{name}.done", "arguments": item["arguments"], "name": item["name"]}
        case "image_generation_call":
            for step in ("in_progress", "generating", "completed"):
                yield {"type": f"response.image_generation_call.{step}"}
        case _:
            pass


def _message_events(item: Mapping[str, Any], reply: NormalizedReply) -> Iterator[_Event]:
    for index, part in enumerate(item["content"]):
        position = {"content_index": index}
        key = "refusal" if part["type"] == "refusal" else "text"
        empty: dict[str, Any] = {**part, key: ""}
        if key == "text":
            empty["annotations"] = []
        yield {"type": "response.content_part.added", **position, "part": empty}
        yield from ({**event, **position} for event in _part_events(part, key, reply))
        yield {"type": "response.content_part.done", **position, "part": part}


def _part_events(part: Mapping[str, Any], key: str, reply: NormalizedReply) -> Iterator[_Event]:
    name = "response.refusal" if key == "refusal" else "response.output_text"
    logprobs: dict[str, Any] = {} if key == "refusal" else {"logprobs": []}
    for piece in reply.split(part[key]):
        yield {"type": f"{name}.delta", "delta": piece, **logprobs}
    for index, citation in enumerate(part.get("annotations", ())):
        added = {"annotation_index": index, "annotation": citation}
        yield {"type": "response.output_text.annotation.added", **added}
    yield {"type": f"{name}.done", key: part[key], **logprobs}


def _reasoning_events(item: Mapping[str, Any], reply: NormalizedReply) -> Iterator[_Event]:
    name = "response.reasoning_summary"
    for index, part in enumerate(item["summary"]):
        position = {"summary_index": index}
        yield {"type": f"{name}_part.added", **position, "part": {**part, "text": ""}}
        for piece in reply.split(part["text"]):
            yield {"type": f"{name}_text.delta", **position, "delta": piece}
        yield {"type": f"{name}_text.done", **position, "text": part["text"]}
        yield {"type": f"{name}_part.done", **position, "part": part}


ROUTES: Final = (
    # Azure and compatible servers have the same API under a path prefix: /openai/v1, /vllm/v1,
    # /compatible-mode/v1.
    Route(
        "openai-responses", r"(?:/[a-z-]+)??(?:/v1)?/responses(?:/(?P<verb>input_tokens))?", FakeResponses(), "/v1"
    ),
)
