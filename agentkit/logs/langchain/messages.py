"""Messages as LangChain dumps them: `dumpd`, `messages_to_dict`, or plain dicts with a type or a role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from agentkit.capabilities.name_rules import short_hash
from agentkit.errors import MessageError
from agentkit.json_values import items_of, mapping_of, plain_values, text_of
from agentkit.logs.langchain.additional_kwargs import Besides
from agentkit.logs.langchain.blocks import read_block
from agentkit.logs.langchain.reasoning import joined, with_item_id
from agentkit.logs.langchain.tool_calls import Asked, Calls
from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.log_formats import check_log_message, check_log_request, describe_log_form
from agentkit.messages.message import Msg, Role
from agentkit.messages.usage import FinishReason, Usage, token_count

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
    state = plain_values(found, "log", _dumped)
    messages = cast("list[Any]", state) if isinstance(state, list) else _inside(mapping_of(state))
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
        mapping_of(held.get("kwargs")),
        mapping_of(held.get("values")),
        mapping_of(held.get("data")),
    ):
        if isinstance(inner.get("messages"), list):
            check_log_request({"system": inner.get("system")}, ())  # a graph's state may have any other key
            return cast("list[Any]", inner["messages"])
    if _unfolded(held):
        return [held]
    raise MessageError("messages", "there is no list of messages", describe_log_form(held))


def _unfolded(found: Any) -> dict[str, Any]:
    """A message in one dict with `type`; an empty one for what is none."""
    if isinstance(found, str):
        return {"type": "human", "content": found}
    if isinstance(found, list):
        pair = cast("list[Any]", found)
        return {"type": pair[0], "content": pair[1]} if len(pair) == 2 and isinstance(pair[0], str) else {}
    held = mapping_of(found)
    if held.get("lc") and isinstance(held.get("kwargs"), dict):
        named = text_of(next(reversed(items_of(held.get("id"))), ""))
        return {"type": named, **held["kwargs"]}
    if isinstance(held.get("data"), dict) and "content" in held["data"]:
        return {**held["data"], "type": held.get("type") or held["data"].get("type")}
    if ("content" in held and ("type" in held or "role" in held)) or ("tool_calls" in held and "role" in held):
        return held
    return {}


def _kind(message: dict[str, Any]) -> str:
    """`AIMessageChunk`, `AIMessage` and `ai` are one; a chat message has a role of its own."""
    named = text_of(message.get("type")) or text_of(message.get("role"))
    kind = named.removesuffix("Chunk").removesuffix("Message").lower()
    return text_of(message.get("role")) if kind == "chat" else kind


class _Log:
    """One conversation as it is read."""

    def __init__(self) -> None:
        self.asked = Asked()

    def message(self, message: dict[str, Any], found: Any, place: str) -> Msg:
        """One message: none is left out, and none becomes two."""
        kind = _kind(message)
        if held := message or mapping_of(found):
            check_log_message(held, place, _CONTENT, (), _FORMS, "type")
        if not message or kind == "remove":
            reason = "an order to take a message away" if message else "it is no message"
            return Msg("user", (InvalidBlock(found, reason, place),), "user")
        id, metadata = text_of(message.get("id")) or None, _metadata(message)
        role = _ROLES.get(kind, "user")
        if role != "assistant":
            self.asked.end_turn()
        if kind in ("tool", "function"):
            return Msg("system", (self._result(message, place),), "system", id=id, metadata=metadata)
        name = text_of(message.get("name")) or (role if kind in _ROLES else kind) or role
        content = message.get("content")
        if isinstance(content, str) and role != "assistant":
            return Msg(name, content, role, id=id, metadata=metadata)
        blocks = tuple(_blocks(message, place))
        self.asked.ask(block for block in blocks if isinstance(block, ToolUseBlock))
        if isinstance(content, str) and blocks == (TextBlock(content),):
            return Msg(name, content, role, id=id, metadata=metadata)
        return Msg(name, blocks, role, id=id, metadata=metadata)

    def _result(self, message: dict[str, Any], place: str) -> ToolResultBlock:
        id, name = self.asked.answer(text_of(message.get("tool_call_id")), text_of(message.get("name")))
        id = id or f"call_{short_hash(place, 24)}"
        content = message.get("content")
        read = read_block({"type": "tool_result", "tool_use_id": id, "content": content}, "", f"{place}.content")
        output: Any = read.output if isinstance(read, ToolResultBlock) else ""
        return ToolResultBlock(id, name, output, message.get("status") == "error")


def _blocks(message: dict[str, Any], place: str) -> Iterator[Block]:
    provider = text_of(mapping_of(message.get("response_metadata")).get("model_provider"))
    besides, calls = Besides(message, place), Calls(message, place)
    yield from besides.before()
    content = message.get("content")
    if content is not None and not isinstance(content, str | list):
        yield InvalidBlock(content, "it is neither text nor a list of blocks", f"{place}.content")
    items = [content] if isinstance(content, str) and content else items_of(cast("object", content))
    for at, item, id in joined(items, provider):
        call = calls.named(mapping_of(item), f"{place}.content[{at}]")
        yield with_item_id(call or read_block(item, provider, f"{place}.content[{at}]"), id)
    yield from besides.behind()
    yield from calls.left
    yield from besides.asked()


def _metadata(message: dict[str, Any]) -> dict[str, Any] | None:
    """What else a message says: further keys, and what its reply said of itself, in our words."""
    rest = {key: item for key, item in message.items() if key not in _FIELDS and item not in (None, {}, [], False)}
    if unread := Besides(message, "").unread:
        rest["additional_kwargs"] = unread
    reply = _reply(message)
    return ({**rest, "reply": reply} if reply else rest) or None


def _reply(message: dict[str, Any]) -> dict[str, Any]:
    said = mapping_of(message.get("response_metadata"))
    usage = mapping_of(message.get("usage_metadata"))
    native = next((text_of(said[key]) for key in _REASON_KEYS if text_of(said.get(key))), "")
    reply: dict[str, Any] = {}
    if native:
        reply = {
            "finish_reason": str(_REASONS.get(native.lower(), FinishReason.OTHER)),
            "native_finish_reason": native,
        }
    if text_of(said.get("model_name") or said.get("model")):
        reply["model"] = text_of(said.get("model_name") or said.get("model"))
    if usage:
        read, written = mapping_of(usage.get("input_token_details")), mapping_of(usage.get("output_token_details"))
        reply["usage"] = Usage(
            token_count(usage.get("input_tokens")),
            token_count(usage.get("output_tokens")),
            token_count(read.get("cache_read")),
            token_count(read.get("cache_creation")),
            token_count(written.get("reasoning")),
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
