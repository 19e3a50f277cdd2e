"""`load_agentscope`: loads messages that AgentScope 1.x or 2.x stored as a list or in a state object."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Final, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, dump_model, make_json_safe
from agentkit.logs.embedded_items import EmbeddedItem
from agentkit.messages.blocks import InvalidBlock
from agentkit.messages.log_checks import (
    check_log_format,
    check_log_message,
    check_log_request,
    describe_log_format,
)
from agentkit.messages.message import Msg
from agentkit.messages.serialization import load_message
from agentkit.reprs import shorten_repr

__all__ = ["load_agentscope"]


def load_agentscope(log: object) -> list[Msg]:
    """Returns the messages of an AgentScope log.

    If the log has a summary of older messages, the summary becomes the first message, as in AgentScope. If one
    message has tool calls and their results, the calls and the results become separate messages. In logs of
    AgentScope 2.x, a `tool_call` block becomes a `ToolUseBlock`, and a `hint` block becomes a user message. A
    `data` block becomes an image, audio, video or document block, depending on its media type. Signatures and ids
    of thinking become opaque state. Keys that agentkit does not know become metadata.

    Args:
        log: List of message dicts or AgentScope objects, or a stored state that contains such a list. The state
            may belong to an agent (`{"memory": …}`, in 2.x `{"context": […]}`), to a memory (`{"content": […]}`),
            or to a session with one agent. In a memory, each list item may be a pair of a message and its marks.
            Marks are labels that the application chose.

    Raises:
        MessageError: The log is not an AgentScope log, or several agents in the log have messages.
    """
    state = make_json_safe(log, "log", _dump_object)
    messages, summary = _find_messages(state)
    loaded = list(_load_summary(summary))
    for index, item in enumerate(messages):
        place = f"messages[{index}]"
        message, marks = _split_marks(item)
        if not isinstance(message, dict):
            reason = f"expected a message object, got {shorten_repr(message, 60)}"
            raise MessageError(place, reason, "Pass a list of message dicts.")
        check_log_message(cast("dict[str, Any]", message), place, ("content",), (), _FORMATS, "type")
        msgs = list(_load(cast("dict[str, Any]", message), marks, place))
        if all(isinstance(block, InvalidBlock) for msg in msgs for block in msg.blocks):
            check_log_format(cast("dict[str, Any]", message), place, "agentscope anthropic")
        loaded += msgs
    return loaded


def _dump_object(value: Any) -> Any:
    """Converts an AgentScope object to a dict. Returns any other value unchanged.

    Objects of AgentScope 2.x are pydantic models. Objects of AgentScope 1.x have the method `to_dict` or
    `state_dict`.
    """
    if callable(getattr(value, "model_dump", None)):
        return dump_model(value)  # includes fields with default values, such as `type`
    dump = getattr(value, "to_dict", None) or getattr(value, "state_dict", None)
    return dump() if callable(dump) else value


def _find_messages(state: object) -> tuple[list[Any], object]:
    """Returns the messages in a stored state, and the summary of older messages (None if there is no summary)."""
    if isinstance(state, list):
        return cast("list[Any]", state), None
    inner = _find_state(as_object(state))
    if inner is None:
        reason = f"expected a list of messages, got {shorten_repr(state, 60)}"
        raise MessageError("messages", reason, describe_log_format(state))
    if "role" in inner:
        return [inner], None
    if isinstance(inner.get("messages"), list):
        check_log_request(inner, ("messages",))
    messages = next(as_list(inner[key]) for key in _MESSAGE_KEYS if isinstance(inner.get(key), list))
    return messages, inner.get("_compressed_summary") or inner.get("summary")


_FORMATS = "agentscope anthropic langchain openai openai-responses"
"""Log formats that `load_agentscope` accepts for the content blocks of a message."""

_MESSAGE_KEYS = ("content", "context", "messages", "observed_context")
"""Keys under which a stored state can contain its list of messages.

A memory uses `content`, and an agent of AgentScope 2.x uses `context`.
"""
_STATE_KEYS = ("memory", "state", "agent")
_MAX_DEPTH = 5
"""Maximum nesting depth of the search for messages. A typical session has three levels: agent, memory, content."""


def _find_state(state: dict[str, Any], depth: int = _MAX_DEPTH) -> dict[str, Any] | None:
    """Searches a state for a message, or for an object with a list of messages. Returns the match or None.

    Raises:
        MessageError: Several parts of the state have messages.
    """
    if not state or not depth:
        return None
    if ("role" in state and "name" in state) or any(isinstance(state.get(key), list) for key in _MESSAGE_KEYS):
        return state
    for key in _STATE_KEYS:
        inner = _find_state(as_object(state.get(key)), depth - 1)
        if inner is not None:
            return inner
    others = ((key, _find_state(as_object(item), depth - 1)) for key, item in state.items())
    matches = {key: inner for key, inner in others if inner is not None}
    if len(matches) > 1:
        reason = f"the states of several agents have messages: {', '.join(map(repr, matches))}"
        raise MessageError("messages", reason, "Pass the state of one agent.")
    return next(iter(matches.values()), None)


def _load_summary(summary: object) -> Iterator[Msg]:
    """Yields the summary as a user message, as AgentScope does. Yields nothing for an empty summary."""
    content = _convert_content(summary)
    if content:
        stored = {"name": "user", "role": "user", "content": content, "metadata": {"compressed_summary": True}}
        yield load_message(stored, "summary")


def _split_marks(item: Any) -> tuple[Any, list[Any]]:
    """Returns the message and the marks of a list item. The item is a message, or a pair of message and marks."""
    pair = as_list(item)
    if len(pair) == 2 and isinstance(pair[0], dict):
        return cast("Any", pair[0]), as_list(pair[1])
    return item, []


def _load(message: dict[str, Any], marks: list[Any], place: str) -> Iterator[Msg]:
    """Yields the messages for one AgentScope message. Tool results and hints become separate messages."""
    stored = {
        key: item for key, item in message.items() if item is not None and key not in ("usage", "created_at")
    }
    stored.setdefault("name", as_text(message.get("role")))
    stored.setdefault("content", message.get("content"))
    if not stored.get("metadata"):
        stored.pop("metadata", None)
    if as_text(message.get("created_at")):
        stored.setdefault("timestamp", message["created_at"])
    if marks:
        stored["marks"] = marks
    usage = _convert_usage(as_object(message.get("usage")))
    if usage:
        stored["metadata"] = {**as_object(stored.get("metadata")), "reply": {"usage": usage}}
    blocks = _convert_content(_drop_repeated_items(as_list(stored["content"])))
    if not blocks:
        yield load_message(stored, place)
    fields = stored
    for (run_type, _), run in groupby(enumerate(blocks), lambda entry: _run_key(*entry)):
        yield _load_run(fields, run_type, [block for _, block in run], place, is_first=fields is stored)
        fields = {"name": stored["name"], "role": stored.get("role")}


def _drop_repeated_items(content: list[Any]) -> list[Any]:
    """Removes repeated copies of OpenAI's reasoning items from the blocks of a message.

    AgentScope splits a reasoning item into several blocks, and stores the complete item in each of these blocks.
    Therefore, the result has only the first of these blocks for each item.
    """
    item_ids: set[str] = set()
    blocks: list[Any] = []
    for block in content:
        item_id = as_text(as_object(as_object(block).get(_ITEM)).get("id"))
        if not item_id or item_id not in item_ids:
            blocks.append(block)
        item_ids.add(item_id)
    return blocks


def _convert_usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Converts the usage of an AgentScope 2.x message to a dict with keys of `Usage.to_dict`.

    Returns an empty dict if the message has no usage.
    """
    if not usage:
        return {}
    names = {"cache_read_tokens": "cache_input_tokens", "cache_write_tokens": "cache_creation_input_tokens"}
    return {name: usage.get(names.get(name, name), 0) for name in ("input_tokens", "output_tokens", *names)}


def _run_key(index: int, block: Any) -> tuple[str, int]:
    """Returns a key for grouping blocks. Adjacent blocks with equal keys become one message.

    Each hint becomes a separate message. Adjacent tool results become one message. Adjacent blocks of all other
    types become one message.
    """
    block_type = as_text(as_object(block).get("type"))
    return (block_type, index if block_type == "hint" else 0) if block_type in ("tool_result", "hint") else ("", 0)


def _load_run(fields: dict[str, Any], run_type: str, run: list[Any], place: str, *, is_first: bool) -> Msg:
    """Converts a group of adjacent blocks of an AgentScope message to one message.

    Args:
        fields: Fields of the new message. For the first group, all fields of the AgentScope message. For later
            groups, only the name and the role.
        run_type: Type of the blocks: `tool_result`, `hint`, or an empty string for all other types.
        run: Blocks of the group.
        place: Place of the AgentScope message in the log.
        is_first: True for the first group of the AgentScope message.
    """
    stored = {**fields, "content": run}
    if run_type == "hint":
        hint = as_object(run[0])
        name = as_text(hint.get("source")) or "user"
        stored |= {"name": name, "role": "user", "content": _convert_content(hint.get("hint"))}
    elif run_type == "tool_result" and not is_first:
        stored |= {"name": "system", "role": "system"}
    elif run_type == "tool_result" and fields.get("role") == "assistant":
        stored["role"] = "system"
    return load_message(stored, place)


# -- blocks of AgentScope 2.x ---------------------------------------------------------------------------------

_FAILED_STATES = frozenset({"error", "interrupted", "denied"})
_ITEM = "reasoning_item_raw"
_GEMINI_PREFIX = "gemini_ts:"
"""Prefix of a tool call id that contains a Gemini signature. AgentScope 2.x stores such a signature as the id."""


def _convert_content(content: object) -> str | list[Any]:
    return content if isinstance(content, str) else [_convert_block(item) for item in as_list(content)]


def _convert_block(block: Any) -> Any:
    """Converts a block in AgentScope 2.x format to the 1.x format. Returns a block in 1.x format unchanged."""
    fields = as_object(block)
    converter = _CONVERTERS.get(as_text(fields.get("type")))
    return converter(fields) if converter else fields or block


def _convert_call(block: dict[str, Any]) -> dict[str, Any]:
    converted = {key: value for key, value in block.items() if key != "state"}
    converted |= {"type": "tool_use", "input": block.get("input") or {}, "call_state": block.get("state")}
    signature = as_text(block.get("id"))
    if signature.startswith(_GEMINI_PREFIX):
        converted["state"] = {"issuer": "gemini", "thought_signature": signature.removeprefix(_GEMINI_PREFIX)}
    return converted


_STATE_FIELDS = ("signature", "redacted_thinking_data", "reasoning_item_id", _ITEM)


def _convert_thinking(block: dict[str, Any]) -> Any:
    """Converts a thinking block. Moves the signatures and ids of Anthropic and OpenAI to the opaque state."""
    thinking = {key: value for key, value in block.items() if key not in _STATE_FIELDS}
    if as_text(as_object(block.get(_ITEM)).get("type")) == "reasoning":
        return EmbeddedItem("openai-responses", block[_ITEM]).read("reasoning_item_raw")
    if as_text(block.get("reasoning_item_id")):
        return {**thinking, "state": {"issuer": "openai", "item_id": block["reasoning_item_id"]}}
    if as_text(block.get("redacted_thinking_data")):
        return {**thinking, "state": {"issuer": "anthropic", "redacted_data": block["redacted_thinking_data"]}}
    signature = as_text(block.get("signature"))  # an empty string means no signature
    return {**thinking, "signature": signature} if signature else thinking


def _convert_result(block: dict[str, Any]) -> dict[str, Any]:
    output = block.get("output")
    converted = {key: value for key, value in block.items() if key != "metadata" or value}
    if isinstance(output, list):
        converted["output"] = _convert_content(cast("object", output))
    if as_text(block.get("state")) in _FAILED_STATES:
        converted["is_error"] = True
    return converted


def _convert_media(block: dict[str, Any]) -> dict[str, Any]:
    """Converts a `data` block to an image, audio or video block, or to a document for other media types."""
    source = as_object(block.get("source"))
    media_kind = as_text(source.get("media_type")).partition("/")[0]
    block_type = media_kind if media_kind in ("image", "audio", "video") else "document"
    converted = {key: value for key, value in block.items() if value is not None and key != "name"}
    title = {"title": block["name"]} if block_type == "document" and block.get("name") else {}
    return {**converted, **title, "type": block_type}


_CONVERTERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "tool_call": _convert_call,
    "data": _convert_media,
    "thinking": _convert_thinking,
    "tool_result": _convert_result,
}
"""Maps block types to converters. Blocks of other types have the same format in AgentScope 1.x and 2.x."""
