"""Messages as LangChain dumps them: `dumpd`, `messages_to_dict`, or plain dicts with a type or a role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from agentkit.capabilities.name_rules import short_hash
from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, make_json_safe
from agentkit.logs.langchain.additional_kwargs import AdditionalContent
from agentkit.logs.langchain.blocks import read_block
from agentkit.logs.langchain.reasoning import joined, with_item_id
from agentkit.logs.langchain.tool_calls import Calls, PendingCalls
from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.log_formats import check_log_message, check_log_request, describe_log_format
from agentkit.messages.message import Msg, Role
from agentkit.messages.usage import FinishReason, Usage, as_token_count

__all__ = ["load_langchain"]

_ROLES: dict[str, Role] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_CONTENT = ("content", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "additional_kwargs")
_FORMS = "langchain anthropic openai openai-responses"
"""Forms whose content blocks are read: LangChain passes on those of providers."""
_FIELDS = frozenset(
    {"type", "role", "content", "name", "id", "tool_calls", "invalid_tool_calls", "tool_call_id", "status"}
    | {"usage_metadata", "tool_call_chunks", "additional_kwargs"}
)


def load_langchain(found: object) -> list[Msg]:
    """A conversation from LangChain's messages: their dumps of any form, or the objects themselves.

    The list may stand by itself, or under `messages` in the state of a graph. Calls are those of `tool_calls`, in
    the places where the content names them; those that were no JSON keep their text. A tool's message has its
    call's name, its `status` as `is_error`, its `artifact` as metadata. Usage and finish reason are the reply's,
    other keys metadata. Blocks that only a provider knows are opaque, what cannot be read is kept as InvalidBlock.
    Raises MessageError for what is no dump.
    """
    state = make_json_safe(found, "log", _dumped)
    messages = cast("list[Any]", state) if isinstance(state, list) else _inside(as_object(state))
    log = _Log()
    return [log.message(_unfolded(one), one, f"messages[{at}]") for at, one in enumerate(messages)]


def _dumped(found: Any) -> Any:
    """A message object with all its fields: the type is a default."""
    dump = getattr(found, "model_dump", None)
    return dump() if callable(dump) else found


def _inside(held: dict[str, Any]) -> list[Any]:
    """The messages of one object: a state, a prompt value, or one message."""
    for inner in (
        held,
        as_object(held.get("kwargs")),
        as_object(held.get("values")),
        as_object(held.get("data")),
    ):
        if isinstance(inner.get("messages"), list):
            check_log_request({"system": inner.get("system")}, ())  # a graph's state may have any other key
            return cast("list[Any]", inner["messages"])
    if _unfolded(held):
        return [held]
    raise MessageError("messages", "there is no list of messages", describe_log_format(held))


def _unfolded(found: Any) -> dict[str, Any]:
    """A message in one dict with `type`; an empty one for what is none."""
    if isinstance(found, str):
        return {"type": "human", "content": found}
    if isinstance(found, list):
        pair = cast("list[Any]", found)
        return {"type": pair[0], "content": pair[1]} if len(pair) == 2 and isinstance(pair[0], str) else {}
    held = as_object(found)
    if held.get("lc") and isinstance(held.get("kwargs"), dict):
        named = as_text(next(reversed(as_list(held.get("id"))), ""))
        return {"type": named, **held["kwargs"]}
    if isinstance(held.get("data"), dict) and "content" in held["data"]:
        return {**held["data"], "type": held.get("type") or held["data"].get("type")}
    if ("content" in held and ("type" in held or "role" in held)) or ("tool_calls" in held and "role" in held):
        return held
    return {}


def _kind(message: dict[str, Any]) -> str:
    """`AIMessageChunk`, `AIMessage` and `ai` are one; a chat message has a role of its own."""
    named = as_text(message.get("type")) or as_text(message.get("role"))
    kind = named.removesuffix("Chunk").removesuffix("Message").lower()
    return as_text(message.get("role")) if kind == "chat" else kind


class _Log:
    """One conversation as it is read."""

    def __init__(self) -> None:
        self.asked = PendingCalls()

    def message(self, message: dict[str, Any], found: Any, place: str) -> Msg:
        """One message: none is left out, and none becomes two."""
        kind = _kind(message)
        if held := message or as_object(found):
            check_log_message(held, place, _CONTENT, (), _FORMS, "type")
        if not message or kind == "remove":
            reason = "an order to take a message away" if message else "it is no message"
            return Msg("user", (InvalidBlock(found, reason, place),), "user")
        id, metadata = as_text(message.get("id")) or None, _metadata(message)
        role = _ROLES.get(kind, "user")
        if role != "assistant":
            self.asked.end_turn()
        if kind in ("tool", "function"):
            return Msg("system", (self._result(message, place),), "system", id=id, metadata=metadata)
        name = as_text(message.get("name")) or (role if kind in _ROLES else kind) or role
        content = message.get("content")
        if isinstance(content, str) and role != "assistant":
            return Msg(name, content, role, id=id, metadata=metadata)
        blocks = tuple(_blocks(message, place))
        self.asked.ask(block for block in blocks if isinstance(block, ToolUseBlock))
        if isinstance(content, str) and blocks == (TextBlock(content),):
            return Msg(name, content, role, id=id, metadata=metadata)
        return Msg(name, blocks, role, id=id, metadata=metadata)

    def _result(self, message: dict[str, Any], place: str) -> ToolResultBlock:
        id, name = self.asked.answer(as_text(message.get("tool_call_id")), as_text(message.get("name")))
        id = id or f"call_{short_hash(place, 24)}"
        content = message.get("content")
        read = read_block({"type": "tool_result", "tool_use_id": id, "content": content}, "", f"{place}.content")
        output: Any = read.output if isinstance(read, ToolResultBlock) else ""
        return ToolResultBlock(id, name, output, message.get("status") == "error")


def _blocks(message: dict[str, Any], place: str) -> Iterator[Block]:
    provider = as_text(as_object(message.get("response_metadata")).get("model_provider"))
    besides, calls = AdditionalContent(message, place), Calls(message, place)
    yield from besides.before()
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        yield InvalidBlock(content, "it is neither text nor a list of blocks", f"{place}.content")
    items = [content] if isinstance(content, str) and content else as_list(cast("object", content))
    for at, item, id in joined(items, provider):
        call = calls.named(as_object(item), f"{place}.content[{at}]")
        yield with_item_id(call or read_block(item, provider, f"{place}.content[{at}]"), id)
    yield from besides.behind()
    yield from calls.left
    yield from besides.asked()


def _metadata(message: dict[str, Any]) -> dict[str, Any] | None:
    """What else a message says: further keys, and what its reply said of itself, in our words."""
    rest = {key: item for key, item in message.items() if key not in _FIELDS and item not in (None, {}, [], False)}
    if unread := AdditionalContent(message, "").unread:
        rest["additional_kwargs"] = unread
    reply = _reply(message)
    return ({**rest, "reply": reply} if reply else rest) or None


def _reply(message: dict[str, Any]) -> dict[str, Any]:
    said = as_object(message.get("response_metadata"))
    usage = as_object(message.get("usage_metadata"))
    native = next((as_text(said[key]) for key in _REASON_KEYS if as_text(said.get(key))), "")
    reply: dict[str, Any] = {}
    if native:
        reply = {
            "finish_reason": str(_REASONS.get(native.lower(), FinishReason.OTHER)),
            "native_finish_reason": native,
        }
    if as_text(said.get("model_name") or said.get("model")):
        reply["model"] = as_text(said.get("model_name") or said.get("model"))
    if usage:
        read, written = as_object(usage.get("input_token_details")), as_object(usage.get("output_token_details"))
        reply["usage"] = Usage(
            as_token_count(usage.get("input_tokens")),
            as_token_count(usage.get("output_tokens")),
            as_token_count(read.get("cache_read")),
            as_token_count(read.get("cache_creation")),
            as_token_count(written.get("reasoning")),
        ).to_dict()
    return reply


_REASON_KEYS = ("finish_reason", "stop_reason", "done_reason")
_REASONS = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_USE,
    "tool_use": FinishReason.TOOL_USE,
    "function_call": FinishReason.TOOL_USE,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.PAUSE,
}
"""The words of the providers' own documents, which langchain passes on."""
