"""Items of Responses that belong together: what the model asks of your machine, and what you answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from agentkit.provider_kit import as_object

__all__ = ["is_reply_item", "needs_thinking", "part_pair", "part_places", "split_stored_item"]

_ASKS = {
    # By type: the key of the id under which it asks (SDK: ResponseInputItemParam).
    "computer_call": "call_id",
    "local_shell_call": "call_id",
    "shell_call": "call_id",
    "apply_patch_call": "call_id",
    "tool_search_call": "call_id",  # null where the service searches by itself
    "mcp_approval_request": "id",
    "function_call": "call_id",  # one that a program of the service made and ran
    "custom_tool_call": "call_id",
}
_ANSWERS = {
    "computer_call_output": "call_id",
    "local_shell_call_output": "id",  # "the unique ID of the local shell tool call"
    "shell_call_output": "call_id",
    "apply_patch_call_output": "call_id",
    "tool_search_output": "call_id",
    "mcp_approval_response": "approval_request_id",
    "function_call_output": "call_id",
    "custom_tool_call_output": "call_id",
}


def part_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """What an item belongs to: one half without the other is refused, as with calls of functions."""
    kind = str(data.get("type"))
    asked, answered = data.get(_ASKS.get(kind, "")), data.get(_ANSWERS.get(kind, ""))
    if isinstance(asked, str):
        return "request", asked
    return ("response", answered) if isinstance(answered, str) else None


def needs_thinking(data: Mapping[str, Any]) -> bool:
    """Returns True for an item that is refused without the reasoning before it in its reply.

    "Item 'ws_…' of type 'web_search_call' was provided without its required 'reasoning' item" (error text). Calls
    of functions and custom tools are sent without their ids instead.
    """
    kind = str(data.get("type"))
    if kind == "tool_search_output":
        return data.get("execution") == "server"
    return kind == "mcp_approval_request" or (kind.endswith("_call") and kind not in _SENT_WITHOUT_ID)


_SENT_WITHOUT_ID = frozenset({"function_call", "custom_tool_call"})

_PARTS = frozenset({"output_text", "output_audio", "output_image", "refusal", "summary_text", "reasoning_text"})
"""Parts of items of a reply: by themselves they are no items."""


def part_places(data: Mapping[str, Any]) -> frozenset[str]:
    """Returns where an item or a content part may stand: parts in messages and results, items in replies.

    SDK: ResponseInputContentParam, ResponseFunctionCallOutputItemParam, ResponseInputItemParam.
    """
    kind = str(data.get("type"))
    if kind.startswith("input_"):
        return frozenset({"user", "system", "result"} if kind == "input_text" else {"user", "result"})
    return frozenset() if kind in _PARTS else frozenset({"assistant"})


_REPLY_TYPES = frozenset(
    {"reasoning", "program", "program_output", "compaction", "mcp_list_tools", "mcp_approval_request"}
)
"""Types of the items of replies (SDK: ResponseOutputItem), beside those that end in `_call`."""


def is_reply_item(item: Mapping[str, Any]) -> bool:
    """Returns True for an item without a role that belongs to a reply."""
    item_type = str(item.get("type", ""))
    if item_type == "tool_search_output":
        return item.get("execution") == "server"
    return item_type in _REPLY_TYPES or item_type.endswith("_call")


_STORED_TYPES = frozenset({"message", "function_call", "custom_tool_call"})


def split_stored_item(item: Any) -> Iterator[Any]:
    """Yields the content of an item without the ids that tie the item to stored items.

    A message or call with the id of its item is the same prompt as one without. The texts of a message of the
    assistant come one by one.
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
