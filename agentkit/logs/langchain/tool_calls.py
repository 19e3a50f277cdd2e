"""The calls of LangChain's messages, which name most of them twice: in the content, and in `tool_calls`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from agentkit.capabilities.name_rules import short_hash
from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, read_arguments
from agentkit.messages.blocks import OpaqueState, ToolUseBlock

__all__ = ["Calls", "PendingCalls", "SIGNATURES"]

SIGNATURES = "__gemini_function_call_thought_signatures__"
"""langchain-google-genai: the signatures of calls, by id, in `additional_kwargs`."""

_KINDS = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call", "tool_call_chunk"})
"""Types of content blocks that are calls."""

_ARGUMENTS = ("args", "input", "arguments", "parameters")


class Calls:
    """The calls that one message lists, those included that only the provider's raw form names.

    `left` has those that the content has not named so far. Two may have one id, and some have none.
    """

    def __init__(self, message: dict[str, Any], place: str) -> None:
        signatures = as_object(as_object(message.get("additional_kwargs")).get(SIGNATURES))
        self._left: list[tuple[str, ToolUseBlock]] = []
        for at, found in enumerate(_listed(message)):
            if not isinstance(found, dict):
                reason = f"expected an object, got {type(found).__name__}"
                raise MessageError(f"{place}.tool_calls[{at}]", reason, "Pass LangChain's tool calls.")
            call = cast("dict[str, Any]", found)
            self._left.append((_id(call), _call(call, f"{place}.tool_calls[{at}]", signatures)))

    @property
    def left(self) -> list[ToolUseBlock]:
        """Those that the content has not named."""
        return [call for _, call in self._left]

    def named(self, item: dict[str, Any], place: str) -> ToolUseBlock | None:
        """The call that an item of the content is, taken out of the list; one that the list lacks is read here."""
        if as_text(item.get("type")) not in _KINDS:
            return None
        ids = [id for key in ("call_id", "id") if (id := as_text(item.get(key)))]
        for at, (id, call) in enumerate(self._left):
            if id in ids or (not id and not ids and call.name == _name(item)):
                del self._left[at]
                return call
        return _call(item, place, {})


class PendingCalls:
    """What a conversation asked of tools so far: the names of the calls, and which of them wait for results."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._waiting: list[list[ToolUseBlock]] = []  # by turns, the last one first
        self._between_turns = True

    def end_turn(self) -> None:
        """Another speaks, or a tool: what is asked from now on is of a new turn."""
        self._between_turns = True

    def ask(self, calls: Iterable[ToolUseBlock]) -> None:
        """The calls of one more message; messages of a model in a row are one turn."""
        if self._between_turns:
            self._waiting.insert(0, [])
            self._between_turns = False
        for call in calls:
            self._names[call.id] = call.name
            self._waiting[0].append(call)

    def answer(self, id: str, name: str) -> tuple[str, str]:
        """The id and the name of the call that a result is of, as far as they can be told.

        By the result's id. Without one it answers the first call of its name that waits, or if it has no name
        either, the first; the last turn's go before those that an earlier one left open.
        """
        for turn in self._waiting:
            for at, call in enumerate(turn):
                if call.id == id if id else not name or call.name == name:
                    del turn[at]
                    return call.id, name or call.name
        return id, name or self._names.get(id, "")


def _listed(message: dict[str, Any]) -> list[Any]:
    listed = [*as_list(message.get("tool_calls")), *as_list(message.get("invalid_tool_calls"))]
    listed = listed or as_list(message.get("tool_call_chunks"))
    if listed:
        return listed
    extra = as_object(message.get("additional_kwargs"))
    legacy = [{"function": extra["function_call"]}] if extra.get("function_call") else []
    return [*as_list(extra.get("tool_calls")), *legacy]


def _call(found: dict[str, Any], place: str, signatures: dict[str, Any]) -> ToolUseBlock:
    """A call in any spelling: langchain's, Anthropic's, OpenAI's two."""
    inner, name = _inner(found), _name(found)
    id = _id(found) or f"call_{short_hash(f'{place}{name}', 24)}"
    given: object = next((inner[key] for key in _ARGUMENTS if inner.get(key) is not None), None)
    signature = as_text(signatures.get(id)) or None
    state = OpaqueState("gemini", thought_signature=signature) if signature else None
    error = {"error": found["error"]} if found.get("error") else None
    return ToolUseBlock(id, name, *read_arguments(given), state, metadata=error)


def _id(found: dict[str, Any]) -> str:
    return as_text(found.get("call_id") or found.get("id"))


def _name(found: dict[str, Any]) -> str:
    return as_text(_inner(found).get("name"))


def _inner(found: dict[str, Any]) -> dict[str, Any]:
    return as_object(found.get("function")) or found
