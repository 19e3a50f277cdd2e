"""The wire of OpenAI's Responses. Shapes and the order of events: `openai.types.responses`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, ClassVar, Final

from agentkit.messages.blocks import (
    Block,
    ImageBlock,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from agentkit.messages.sources import Base64Source
from agentkit.messages.usage import FinishReason, Usage
from agentkit.testing import pairing
from agentkit.testing.chat_completions import CREATED, openai_error
from agentkit.testing.replies import (
    LoopbackError,
    NormalizedReply,
    ReceivedCall,
    digest,
    is_refusal,
    notes_of,
    pieces,
    unsayable,
)
from agentkit.testing.wire import Wire, named_event

__all__ = ["Responses"]

INCOMPLETE: Final[dict[str, str]] = {
    FinishReason.LENGTH: "max_output_tokens",
    FinishReason.CONTENT_FILTER: "content_filter",
}
"""The reasons for which a response is incomplete. There is no finish reason beside them."""

Event = dict[str, Any]


class Responses(Wire):
    """Replies of `POST /responses`."""

    prompt_keys: ClassVar[tuple[str, ...]] = ("instructions", "input", "tools")

    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        return _ended(said, call, list(_items(said)))

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[Event]:
        for number, event in enumerate(self._unnumbered(said, call)):
            yield {"type": event.pop("type"), "sequence_number": number, **event}

    def _unnumbered(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[Event]:
        begun = _response(said, call)
        yield {"type": "response.created", "response": begun}
        yield {"type": "response.in_progress", "response": begun}
        items = list(_items(said))
        for index, item in enumerate(items):
            yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
            place = {"item_id": item.get("id"), "output_index": index}
            for event in _INSIDE.get(str(item.get("type")), _nothing)(item, said.piece):
                yield {"type": event.pop("type"), **place, **event}
            yield {"type": "response.output_item.done", "output_index": index, "item": item}
        ended = _ended(said, call, items)
        yield {"type": f"response.{ended['status']}", "response": ended}

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        return named_event(event)

    def error(self, error: LoopbackError) -> dict[str, Any]:
        return openai_error(error)

    def error_event(self, error: LoopbackError) -> Event:
        return {"type": "error", "code": error.code, "message": error.message, "param": None}

    def refusal(self, call: ReceivedCall) -> str | None:
        return pairing.of_responses(call.body)

    def count(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"object": "response.input_tokens", "input_tokens": self.counted(body)}


# -- the response -----------------------------------------------------------------------------------------------


def _response(said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
    body = call.body
    return {
        "id": f"resp_{said.id}",
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


def _ended(said: NormalizedReply, call: ReceivedCall, items: list[dict[str, Any]]) -> dict[str, Any]:
    word = INCOMPLETE.get(said.reason)
    ended = {"status": "incomplete", "incomplete_details": {"reason": word}} if word else {"status": "completed"}
    if said.reason == FinishReason.ERROR:
        ended = {"status": "failed", "error": {"code": "server_error", "message": "The model failed."}}
    return {**_response(said, call), **ended, "output": items, "usage": _usage(said.usage)}


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


def _items(said: NormalizedReply) -> Iterator[dict[str, Any]]:
    """The items of the output: texts that stand together are the parts of one message."""
    for at, ((is_text, _), blocks) in enumerate(groupby(said.msg.blocks, _key)):
        name = digest(f"{said.id} {at}", 32)
        if is_text:
            yield _message(list(blocks), name)
        else:
            yield from (_item(block, f"{name}{number or ''}") for number, block in enumerate(blocks))


def _key(block: Block) -> tuple[bool, OpaqueState | None]:
    return isinstance(block, TextBlock), getattr(block, "state", None)


def _message(blocks: list[Block], name: str) -> dict[str, Any]:
    parts = [_part(block) for block in blocks if isinstance(block, TextBlock)]
    state = getattr(blocks[0], "state", None)
    item = {"id": _id_of(state, f"msg_{name}"), "type": "message", "status": "completed", "role": "assistant"}
    return {**item, **_fields(state), "content": parts}


def _part(block: TextBlock) -> dict[str, Any]:
    if is_refusal(block):
        return {"type": "refusal", "refusal": block.text}
    return {"type": "output_text", "text": block.text, "annotations": notes_of(block), "logprobs": []}


def _item(block: Block, name: str) -> dict[str, Any]:
    if isinstance(block, ThinkingBlock):
        return _reasoning(block, name)
    if isinstance(block, ToolUseBlock):
        item = {"id": _id_of(block.state, f"fc_{name}"), "type": "function_call", "status": "completed"}
        said = {"arguments": block.arguments, "call_id": block.id, "name": block.name}
        return {**item, **_fields(block.state), **said}
    if isinstance(block, OpaqueBlock):
        return dict(block.data)
    if isinstance(block, ImageBlock) and isinstance(block.source, Base64Source):
        made = {"type": "image_generation_call", "status": "completed", "result": block.source.data}
        return {"id": f"ig_{name}", **made, "output_format": block.source.media_type.rpartition("/")[2]}
    raise unsayable("Responses", block.type)


def _reasoning(block: ThinkingBlock, name: str) -> dict[str, Any]:
    state = block.state
    summary = [{"type": "summary_text", "text": block.thinking}] if block.thinking else []
    sealed = state.encrypted_content if state and state.encrypted_content else f"gAAAA{digest(name, 40)}"
    item = {"id": _id_of(state, f"rs_{name}"), "type": "reasoning", "summary": summary}
    return {**item, **_fields(state), "encrypted_content": sealed}


def _id_of(state: OpaqueState | None, made_up: str) -> str:
    return state.item_id if state and state.item_id else made_up


def _fields(state: OpaqueState | None) -> dict[str, Any]:
    return dict(state.fields) if state and state.fields else {}


# -- the events inside an item ----------------------------------------------------------------------------------


_EMPTY: Final[dict[str, Any]] = {
    "content": [],
    "summary": [],
    "arguments": "",
    "result": None,
    "status": "in_progress",
}
"""What an item holds when it is announced."""


def _begun(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as it is announced: still empty, and with no more than the beginning of what is sealed."""
    begun = {key: _EMPTY.get(key, value) for key, value in item.items()}
    if "encrypted_content" in begun:
        begun["encrypted_content"] = str(begun["encrypted_content"])[:8]
    return begun


def _in_message(item: Mapping[str, Any], size: int) -> Iterator[Event]:
    for index, part in enumerate(item["content"]):
        place = {"content_index": index}
        kind = "refusal" if part["type"] == "refusal" else "text"
        empty: dict[str, Any] = {**part, kind: ""}
        if kind == "text":
            empty["annotations"] = []
        yield {"type": "response.content_part.added", **place, "part": empty}
        yield from ({**event, **place} for event in _in_part(part, kind, size))
        yield {"type": "response.content_part.done", **place, "part": part}


def _in_part(part: Mapping[str, Any], kind: str, size: int) -> Iterator[Event]:
    name = "response.refusal" if kind == "refusal" else "response.output_text"
    beside: dict[str, Any] = {} if kind == "refusal" else {"logprobs": []}
    for piece in pieces(part[kind], size):
        yield {"type": f"{name}.delta", "delta": piece, **beside}
    for number, note in enumerate(part.get("annotations", ())):
        yield {"type": "response.output_text.annotation.added", "annotation_index": number, "annotation": note}
    yield {"type": f"{name}.done", kind: part[kind], **beside}


def _in_reasoning(item: Mapping[str, Any], size: int) -> Iterator[Event]:
    name = "response.reasoning_summary"
    for index, part in enumerate(item["summary"]):
        place = {"summary_index": index}
        yield {"type": f"{name}_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces(part["text"], size):
            yield {"type": f"{name}_text.delta", **place, "delta": piece}
        yield {"type": f"{name}_text.done", **place, "text": part["text"]}
        yield {"type": f"{name}_part.done", **place, "part": part}


def _in_call(item: Mapping[str, Any], size: int) -> Iterator[Event]:
    for piece in pieces(item["arguments"], size):
        yield {"type": "response.function_call_arguments.delta", "delta": piece}
    done = "response.function_call_arguments.done"
    yield {"type": done, "arguments": item["arguments"], "name": item["name"]}


def _in_picture(item: Mapping[str, Any], size: int) -> Iterator[Event]:
    for step in ("in_progress", "generating", "completed"):
        yield {"type": f"response.image_generation_call.{step}"}


def _nothing(item: Mapping[str, Any], size: int) -> Iterator[Event]:
    yield from ()


_INSIDE: Final = {
    "message": _in_message,
    "reasoning": _in_reasoning,
    "function_call": _in_call,
    "image_generation_call": _in_picture,
}
