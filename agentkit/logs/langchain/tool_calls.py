"""Tool calls of LangChain's messages, which name most calls twice: in the content, and in `tool_calls`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from agentkit.capabilities.name_rules import derive_call_id
from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, read_arguments
from agentkit.messages.blocks import OpaqueState, ToolUseBlock

__all__ = ["MessageCalls", "PendingCalls", "SIGNATURES"]

SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""Key of `additional_kwargs` for the signatures of calls, by call id (langchain-google-genai)."""

_CALL_TYPES: Final = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call", "tool_call_chunk"})
_ARGUMENT_KEYS: Final = ("args", "input", "arguments", "parameters")


class MessageCalls:
    """Calls that one message lists outside its content. Two calls may have the same id, or no id.

    Attributes:
        remaining: Calls that no item of the content has matched so far.

    Raises:
        MessageError: An entry of `tool_calls` is not an object.
    """

    def __init__(self, message: dict[str, Any], place: str) -> None:
        signatures = as_object(as_object(message.get("additional_kwargs")).get(SIGNATURES))
        self._listed: list[tuple[str, ToolUseBlock]] = []
        for index, entry in enumerate(_list_calls(message)):
            call_place = f"{place}.tool_calls[{index}]"
            if not isinstance(entry, dict):
                reason = f"expected an object, got {type(entry).__name__}"
                raise MessageError(call_place, reason, "Pass LangChain's tool calls.")
            call = cast("dict[str, Any]", entry)
            self._listed.append((_call_id(call), _read_call(call, call_place, signatures)))

    @property
    def remaining(self) -> list[ToolUseBlock]:
        """Calls that no item of the content has matched so far."""
        return [call for _, call in self._listed]

    def match(self, item: dict[str, Any], place: str) -> ToolUseBlock | None:
        """Returns the call that an item of the content names, and removes it from the list.

        A call that the list lacks is read from the item. Returns None if the item is not a call.
        """
        if as_text(item.get("type")) not in _CALL_TYPES:
            return None
        item_ids = [id for key in ("call_id", "id") if (id := as_text(item.get(key)))]
        for index, (id, call) in enumerate(self._listed):
            if id in item_ids or (not id and not item_ids and call.name == _call_name(item)):
                del self._listed[index]
                return call
        return _read_call(item, place, {})


class PendingCalls:
    """Tool calls of a conversation so far: their names, and which of them have no result yet."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._turns: list[list[ToolUseBlock]] = [[]]  # newest turn first

    def end_turn(self) -> None:
        """Starts a new turn: a message of a user or a tool follows."""
        if self._turns[0]:
            self._turns.insert(0, [])

    def add(self, calls: Iterable[ToolUseBlock]) -> None:
        """Adds the calls of one more assistant message. Adjacent assistant messages are one turn."""
        for call in calls:
            self._names[call.id] = call.name
            self._turns[0].append(call)

    def resolve(self, id: str, name: str) -> tuple[str, str]:
        """Returns the id and the tool name of the call that a result answers. An unknown name is empty.

        A result with an id answers the call with that id. Without an id it answers the first open call with its
        name, or without a name the first open call. The calls of the last turn come before those of earlier turns.
        """
        for turn in self._turns:
            for index, call in enumerate(turn):
                if call.id == id if id else not name or call.name == name:
                    del turn[index]
                    return call.id, name or call.name
        return id, name or self._names.get(id, "")


def _list_calls(message: dict[str, Any]) -> list[Any]:
    listed = [*as_list(message.get("tool_calls")), *as_list(message.get("invalid_tool_calls"))]
    listed = listed or as_list(message.get("tool_call_chunks"))
    if listed:
        return listed
    additional = as_object(message.get("additional_kwargs"))
    legacy = [{"function": additional["function_call"]}] if additional.get("function_call") else []
    return [*as_list(additional.get("tool_calls")), *legacy]


def _read_call(call: dict[str, Any], place: str, signatures: dict[str, Any]) -> ToolUseBlock:
    """Returns a call in the format of LangChain or Anthropic, or in one of the two formats of OpenAI."""
    inner, name = as_object(call.get("function")) or call, _call_name(call)
    id = _call_id(call) or derive_call_id(f"{place}{name}")
    arguments: object = next((inner[key] for key in _ARGUMENT_KEYS if inner.get(key) is not None), None)
    signature = as_text(signatures.get(id))
    state = OpaqueState("gemini", thought_signature=signature) if signature else None
    metadata = {"error": call["error"]} if call.get("error") else None
    return ToolUseBlock(id, name, *read_arguments(arguments), state, metadata=metadata)


def _call_id(call: dict[str, Any]) -> str:
    return as_text(call.get("call_id") or call.get("id"))


def _call_name(call: dict[str, Any]) -> str:
    return as_text((as_object(call.get("function")) or call).get("name"))
