"""Lists the tool calls that LangChain stores outside the content of a message, and finds copies in the content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text
from agentkit.logs.langchain.blocks import SIGNATURE, get_call_name, is_call

__all__ = ["SIGNATURES", "list_calls", "take_call", "unwrap_calls"]

_Object: TypeAlias = dict[str, Any]
_Call: TypeAlias = tuple[_Object, str]
"""Tool call with its place in the log."""

SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""Key in `additional_kwargs` for signatures of tool calls, by call id. langchain-google-genai adds this key."""


def list_calls(message: _Object, place: str) -> list[_Call]:
    """Returns the tool calls that a message lists outside its content, each with its place.

    Raises:
        MessageError: If a listed call is not an object.
    """
    additional = as_object(message.get("additional_kwargs"))
    signatures = as_object(additional.get(SIGNATURES))
    listed = [*as_list(message.get("tool_calls")), *as_list(message.get("invalid_tool_calls"))]
    listed = listed or as_list(message.get("tool_call_chunks"))
    if not listed:
        legacy = [{"function": additional["function_call"]}] if additional.get("function_call") else []
        listed = [*as_list(additional.get("tool_calls")), *legacy]
    calls: list[_Call] = []
    for index, call in enumerate(listed):
        call_place = f"{place}.tool_calls[{index}]"
        if not isinstance(call, dict):
            reason = f"expected an object, got {type(call).__name__}"
            raise MessageError(call_place, reason, "Pass each tool call as a dict.")
        fields = cast("_Object", call)
        signature = signatures.get(as_text(fields.get("id")))
        calls.append(({**fields, "type": "tool_call", SIGNATURE: signature}, call_place))
    return calls


def take_call(item: Any, calls: list[_Call]) -> _Call | None:
    """Returns the call in `calls` that matches the content block `item`, and removes the call from `calls`.

    Most calls are both in `calls` and in the content. Two calls match if they have a common id, or if both have no
    id and the same name. Returns None if no call matches.
    """
    if not is_call(item):
        return None
    ids, name = _call_ids(item), get_call_name(item)
    for index, (call, place) in enumerate(calls):
        call_ids = _call_ids(call)
        if ids & call_ids or (not ids | call_ids and get_call_name(call) == name):
            del calls[index]
            return call, place
    return None


def unwrap_calls(items: list[tuple[Any, str]]) -> Iterator[tuple[Any, str]]:
    """Yields all items. If a `non_standard` block contains a tool call, yields the call instead of the block.

    If another item is the same call, the `non_standard` block is omitted. For a provider that langchain-core does
    not know, the property `content_blocks` of a message has both the `non_standard` block and the call.
    """
    ids = {id for item, _ in items if is_call(item) for id in _call_ids(item)}
    for item, place in items:
        block = as_object(item)
        value = block.get("value") if block.get("type") == "non_standard" else None
        if not is_call(value):
            yield item, place
        elif ids.isdisjoint(_call_ids(as_object(value))):
            yield value, place


def _call_ids(call: _Object) -> set[str]:
    return {id for key in ("call_id", "id") if (id := as_text(call.get(key)))}
