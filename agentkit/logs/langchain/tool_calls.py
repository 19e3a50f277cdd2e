"""Loading of tool calls from LangChain messages. Most calls appear twice: in the content and in `tool_calls`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from agentkit.capabilities.name_rules import derive_call_id
from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, read_arguments
from agentkit.messages.blocks import OpaqueState, ToolUseBlock

__all__ = ["MessageCalls", "PendingCalls", "SIGNATURES"]

SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""Key in `additional_kwargs` under which langchain-google-genai stores the signatures of tool calls by call id."""

_CALL_TYPES: Final = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call", "tool_call_chunk"})
_ARGUMENT_KEYS: Final = ("args", "input", "arguments", "parameters")


class MessageCalls:
    """Tool calls that a LangChain message lists outside its content, such as in `tool_calls`.

    The ids of the calls need not be unique, and a call may have no id.

    Attributes:
        remaining: Calls that `match` has not returned yet.

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
        """Calls that `match` has not returned yet."""
        return [call for _, call in self._listed]

    def match(self, item: dict[str, Any], place: str) -> ToolUseBlock | None:
        """Returns the listed call that matches an item of the content, and removes this call from the list.

        If no listed call matches, the call is read from the item. Returns None if the item is not a tool call.
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
    """Tool calls of the messages that have been loaded. Used to find the tool call that a result answers."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._turns: list[list[ToolUseBlock]] = [[]]  # calls without a result, by turn; the newest turn is first

    def end_turn(self) -> None:
        """Ends the current assistant turn. Call this method before a message of another role is loaded."""
        if self._turns[0]:
            self._turns.insert(0, [])

    def add(self, calls: Iterable[ToolUseBlock]) -> None:
        """Adds the tool calls of an assistant message to the current turn."""
        for call in calls:
            self._names[call.id] = call.name
            self._turns[0].append(call)

    def resolve(self, id: str, name: str) -> tuple[str, str]:
        """Finds the call that a tool result answers. Returns the id of the call and the name of the tool.

        Calls of the newest turn are tried first. A result with an id answers the call with this id. A result
        without an id answers the first open call with its tool name. A result without both answers the first open
        call.

        Args:
            id: Id of the call in the result, or an empty string.
            name: Tool name in the result, or an empty string.

        Returns:
            Id of the call and name of the tool. If no open call matches, the id is the argument `id`. The name is
            empty if it is unknown.
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
    """Reads a tool call in the format of LangChain, Anthropic, OpenAI's Chat Completions or Responses API."""
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
