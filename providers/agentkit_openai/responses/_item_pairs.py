"""Rules of OpenAI Responses: pairs of items, and the kinds of turns that can contain an item.

In a pair, the request is an item in which the model asks for an action, such as `computer_call`. The response is
the item with the outcome of the action.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from agentkit.provider_kit import as_object

__all__ = ["is_reply_item", "needs_thinking", "part_pair", "part_places", "split_stored_item"]

_REQUEST_ID_KEYS = {
    # Key of the id that both items of a pair share, by type of the request item (openai-python:
    # ResponseInputItemParam).
    "computer_call": "call_id",
    "local_shell_call": "call_id",
    "shell_call": "call_id",
    "apply_patch_call": "call_id",
    "tool_search_call": "call_id",  # the id is null if OpenAI runs the search
    "mcp_approval_request": "id",
    "function_call": "call_id",  # an opaque block only if a program on OpenAI's servers made the call
    "custom_tool_call": "call_id",
}
_RESPONSE_ID_KEYS = {
    # Key of the id that both items of a pair share, by type of the response item.
    "computer_call_output": "call_id",
    "local_shell_call_output": "id",  # "the unique ID of the local shell tool call" (openai-python)
    "shell_call_output": "call_id",
    "apply_patch_call_output": "call_id",
    "tool_search_output": "call_id",
    "mcp_approval_response": "approval_request_id",
    "function_call_output": "call_id",
    "custom_tool_call_output": "call_id",
}


def part_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Returns `("request", ID)` or `("response", ID)` for an item of a pair, and None for any other item.

    Both items of a pair have the same ID. OpenAI refuses an input that contains only one of the items.
    """
    item_type = str(data.get("type"))
    id = data.get(_REQUEST_ID_KEYS.get(item_type, ""))
    if isinstance(id, str):
        return "request", id
    id = data.get(_RESPONSE_ID_KEYS.get(item_type, ""))
    return ("response", id) if isinstance(id, str) else None


def needs_thinking(data: Mapping[str, Any]) -> bool:
    """Returns True if OpenAI refuses an item without the reasoning that preceded the item in the reply.

    Error text: "Item 'ws_…' of type 'web_search_call' was provided without its required 'reasoning' item". Calls
    of functions and custom tools do not need the reasoning, because they can be sent without their ids.
    """
    item_type = str(data.get("type"))
    if item_type == "tool_search_output":
        return data.get("execution") == "server"
    return item_type == "mcp_approval_request" or (item_type.endswith("_call") and item_type not in _CALLS)


_CALLS = frozenset({"function_call", "custom_tool_call"})

_PARTS = frozenset({"output_text", "output_audio", "output_image", "refusal", "summary_text", "reasoning_text"})
"""Types of content parts inside the items of a reply. These types are not types of items."""


def part_places(data: Mapping[str, Any]) -> frozenset[str]:
    """Returns the kinds of turns that can contain an opaque content part or item, such as `user`.

    User turns, system messages and tool results (`result`) can contain content parts. Only assistant turns can
    contain items.

    Source: openai-python, ResponseInputContentParam, ResponseFunctionCallOutputItemParam and
    ResponseInputItemParam.
    """
    part_type = str(data.get("type"))
    if part_type.startswith("input_"):
        return frozenset({"user", "system", "result"} if part_type == "input_text" else {"user", "result"})
    return frozenset() if part_type in _PARTS else frozenset({"assistant"})


_REPLY_TYPES = frozenset(
    {"reasoning", "program", "program_output", "compaction", "mcp_list_tools", "mcp_approval_request"}
)
"""Types of reply items that do not end in `_call` (openai-python: ResponseOutputItem)."""


def is_reply_item(item: Mapping[str, Any]) -> bool:
    """Returns True if an item without a role belongs to a reply of the model."""
    item_type = str(item.get("type", ""))
    if item_type == "tool_search_output":
        return item.get("execution") == "server"
    return item_type in _REPLY_TYPES or item_type.endswith("_call")


_STORED_TYPES = frozenset({"message", "function_call", "custom_tool_call"})


def split_stored_item(item: Any) -> Iterator[Any]:
    """Yields the content of an item without its id and status.

    Each text of an assistant message is yielded separately. Digests of prompts use this content, because the id
    does not change the prompt.
    """
    fields: dict[str, Any] = as_object(item)
    if fields.get("type") not in _STORED_TYPES:
        yield item
        return
    content = {key: value for key, value in fields.items() if key not in ("id", "status")}
    if content.pop("type") != "message":
        yield {**content, "type": fields["type"]}
    elif fields.get("role") == "assistant" and isinstance(fields.get("content"), list):
        for part in cast("list[dict[str, Any]]", fields["content"]):
            is_text = as_object(part).get("type") == "output_text"
            yield {**content, "content": part.get("text") if is_text else [part]}
    else:
        yield content
