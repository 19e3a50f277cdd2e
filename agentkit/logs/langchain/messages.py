"""`load_langchain`: loads LangChain messages from objects, plain dicts, `dumpd` or `messages_to_dict`."""

from __future__ import annotations

from typing import Any, Final, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, make_json_safe
from agentkit.logs.langchain.blocks import read_block
from agentkit.logs.langchain.content import read_content
from agentkit.messages.blocks import InvalidBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.log_checks import check_log_message, check_log_request, describe_log_format
from agentkit.messages.message import Msg, Role
from agentkit.messages.usage import FinishReason, Usage, as_token_count
from agentkit.replies.missing_call_ids import derive_call_id
from agentkit.reprs import shorten_repr

__all__ = ["load_langchain"]

_ROLES: Final[dict[str, Role]] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_CONTENT_KEYS: Final = ("content", "tool_calls", "invalid_tool_calls", "tool_call_chunks", "additional_kwargs")
_FORMATS: Final = "langchain anthropic openai openai-responses"
"""Log formats that `load_langchain` accepts for the content blocks of a message."""
_READ_KEYS: Final = frozenset(
    {"type", "role", "content", "name", "id", "tool_calls", "invalid_tool_calls", "tool_call_id", "status"}
    | {"usage_metadata", "tool_call_chunks", "additional_kwargs"}
)


def load_langchain(log: object) -> list[Msg]:
    """Returns the messages of a LangChain log.

    Each message becomes one `Msg`. Tool calls are read from `tool_calls`. A tool call that is also in the content
    keeps its position in the content. If the arguments of a call are invalid JSON, `raw_input` has their text. A
    `ToolMessage` becomes a message with a tool result. The `status` of the `ToolMessage` determines `is_error`.

    `metadata["reply"]` has the model, the usage and the finish reason. Keys that agentkit does not know, such as
    `artifact`, become metadata. A block that only one provider understands becomes an `OpaqueBlock`. A block that
    cannot be read becomes an `InvalidBlock`.

    Args:
        log: LangChain objects or their JSON dump: a list of messages, one message, or an object with `messages`,
            such as the state of a graph.

    Raises:
        MessageError: The log is not a LangChain log, or a message has blocks in an unsupported format.
    """
    state = make_json_safe(log, "log", _dump_object)
    items = cast("list[Any]", state) if isinstance(state, list) else _find_messages(as_object(state))
    calls = _OpenCalls()
    return [_load_message(item, calls, f"messages[{index}]") for index, item in enumerate(items)]


def _dump_object(value: Any) -> Any:
    """Converts a LangChain object to a dict that includes fields with default values, such as `type`."""
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def _find_messages(state: dict[str, Any]) -> list[Any]:
    """Returns the list of messages in a graph state or a prompt value, or a list with a single message."""
    for inner in (state, *(as_object(state.get(key)) for key in ("kwargs", "values", "data"))):
        if isinstance(inner.get("messages"), list):
            # Only the key `system` is checked, because a graph state may have any other key.
            check_log_request({"system": inner.get("system")}, ())
            return cast("list[Any]", inner["messages"])
    if _unwrap(state):
        return [state]
    reason = f"expected a list of messages, got {shorten_repr(state, 60)}"
    raise MessageError("messages", reason, describe_log_format(state))


def _unwrap(item: Any) -> dict[str, Any]:
    """Converts a message in any of LangChain's formats to a flat dict. Returns `{}` for any other value."""
    if isinstance(item, str):
        return {"type": "human", "content": item}
    if isinstance(item, list):
        pair = cast("list[Any]", item)
        return {"type": pair[0], "content": pair[1]} if len(pair) == 2 and isinstance(pair[0], str) else {}
    message = as_object(item)
    if message.get("lc") and isinstance(message.get("kwargs"), dict):
        class_name = as_text(next(reversed(as_list(message.get("id"))), ""))
        return {"type": class_name, **message["kwargs"]}
    data = as_object(message.get("data"))
    if "content" in data:
        return {**data, "type": message.get("type") or data.get("type")}
    has_type = "type" in message or "role" in message
    is_message = ("content" in message and has_type) or ("tool_calls" in message and "role" in message)
    return message if is_message else {}


def _message_type(message: dict[str, Any]) -> str:
    """Returns the type of a message in short form, such as `ai` for `AIMessage` and for `AIMessageChunk`.

    For a `ChatMessage`, returns the role of the message instead.
    """
    name = as_text(message.get("type")) or as_text(message.get("role"))
    message_type = name.removesuffix("Chunk").removesuffix("Message").lower()
    return as_text(message.get("role")) if message_type == "chat" else message_type


def _load_message(item: Any, calls: _OpenCalls, place: str) -> Msg:
    message = _unwrap(item)
    message_type = _message_type(message)
    if checked := message or as_object(item):
        check_log_message(checked, place, _CONTENT_KEYS, (), _FORMATS, "type")
    if not message or message_type == "remove":
        reason = "expected a message, got a RemoveMessage" if message else "expected a message object"
        return Msg("user", (InvalidBlock(item, reason, place),), "user")
    is_result = message_type in ("tool", "function")  # the content of a result message is the output of the tool
    fields = {"additional_kwargs": message.get("additional_kwargs")} if is_result else message
    blocks, unread = read_content(fields, place)
    id, metadata = as_text(message.get("id")) or None, _metadata(message, unread)
    role = _ROLES.get(message_type, "user")
    if role != "assistant":
        calls.end_turn()
    if is_result:
        return Msg("system", (_read_result(message, calls, place),), "system", id=id, metadata=metadata)
    name = as_text(message.get("name")) or (role if message_type in _ROLES else message_type) or role
    content = message.get("content")
    if isinstance(content, str) and (role != "assistant" or blocks == (TextBlock(content),)):
        return Msg(name, content, role, id=id, metadata=metadata)
    for block in blocks:
        if isinstance(block, ToolUseBlock):
            calls.add(block)
    return Msg(name, blocks, role, id=id, metadata=metadata)


def _read_result(message: dict[str, Any], calls: _OpenCalls, place: str) -> ToolResultBlock:
    id, name = calls.match(as_text(message.get("tool_call_id")), as_text(message.get("name")))
    result = read_block({"type": "tool_result", "content": message.get("content")}, "", f"{place}.content")
    output: Any = result.output if isinstance(result, ToolResultBlock) else ""
    return ToolResultBlock(id or derive_call_id(place), name, output, message.get("status") == "error")


class _OpenCalls:
    """Tool calls whose results are not loaded yet."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._calls: list[ToolUseBlock] = []  # the calls of the newest turn come first
        self._turn_size = 0

    def end_turn(self) -> None:
        self._turn_size = 0

    def add(self, call: ToolUseBlock) -> None:
        self._names[call.id] = call.name
        self._calls.insert(self._turn_size, call)
        self._turn_size += 1

    def match(self, id: str, name: str) -> tuple[str, str]:
        """Finds the open call for a tool result. Returns the id of the call and the name of the tool.

        If the result has an id, the call with this id matches. If the result has only a name, the first open call
        of this tool matches. If the result has neither, the first open call matches. The search begins with the
        first call of the newest turn. If no open call matches, returns the argument `id`. The returned name is
        empty if the tool is unknown.

        Args:
            id: Call id in the tool result. Empty if the result has no id.
            name: Tool name in the tool result. Empty if the result has no name.
        """
        for index, call in enumerate(self._calls):
            if call.id == id if id else not name or call.name == name:
                del self._calls[index]
                return call.id, name or call.name
        return id, name or self._names.get(id, "")


# -- metadata -----------------------------------------------------------------------------------------------------

_REASON_KEYS: Final = ("finish_reason", "stop_reason", "done_reason")
_REASONS: Final = {
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
"""Maps providers' finish reasons, in lower case, to `FinishReason`. LangChain stores the original spelling."""


def _metadata(message: dict[str, Any], additional: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the metadata of a message.

    The key `reply` has the model, usage and finish reason. All keys that are not converted become metadata too.
    """
    empty: tuple[Any, ...] = (None, {}, [], False)
    metadata = {key: value for key, value in message.items() if key not in _READ_KEYS and value not in empty}
    if additional:
        metadata["additional_kwargs"] = additional
    if reply := _reply_metadata(message):
        metadata["reply"] = reply
    return metadata or None


def _reply_metadata(message: dict[str, Any]) -> dict[str, Any]:
    response = as_object(message.get("response_metadata"))
    reply: dict[str, Any] = {}
    if native_reason := next((text for key in _REASON_KEYS if (text := as_text(response.get(key)))), ""):
        reply["finish_reason"] = str(_REASONS.get(native_reason.lower(), FinishReason.OTHER))
        reply["native_finish_reason"] = native_reason
    if model := as_text(response.get("model_name") or response.get("model")):
        reply["model"] = model
    if usage := as_object(message.get("usage_metadata")):
        reply["usage"] = _read_usage(usage)
    return reply


def _read_usage(usage: dict[str, Any]) -> dict[str, Any]:
    prompt, output = as_object(usage.get("input_token_details")), as_object(usage.get("output_token_details"))
    return Usage(
        as_token_count(usage.get("input_tokens")),
        as_token_count(usage.get("output_tokens")),
        as_token_count(prompt.get("cache_read")),
        as_token_count(prompt.get("cache_creation")),
        as_token_count(output.get("reasoning")),
    ).to_dict()
