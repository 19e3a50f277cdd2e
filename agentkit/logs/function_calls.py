"""`parse_function_call`: parses logged tool calls that have the name and arguments in an object `function`."""

from __future__ import annotations

from agentkit.json_values import as_object, as_text, read_arguments
from agentkit.messages.blocks import InvalidBlock, ToolUseBlock
from agentkit.replies.missing_call_ids import derive_call_id

__all__ = ["parse_function_call"]


def parse_function_call(entry: object, place: str) -> ToolUseBlock | InvalidBlock:
    """Parses a tool call from a log. If the call has no id, an id is derived from the place and the tool name.

    Args:
        entry: Tool call, such as `{"id": "c1", "function": {"name": "add", "arguments": {}}}`.
        place: Place of the tool call in the log.

    Returns:
        The tool call, or an `InvalidBlock` if the entry has no object `function`.

    """
    call = as_object(entry)
    function = as_object(call.get("function"))
    if not function:
        return InvalidBlock(entry, "expected a `function` object in the tool call", place)
    name = as_text(function.get("name"))
    id = as_text(call.get("id")) or derive_call_id(f"{place}{name}")
    return ToolUseBlock(id, name, *read_arguments(function.get("arguments")))
