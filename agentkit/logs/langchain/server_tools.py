"""Tools that a provider ran itself, out of LangChain's standard blocks of version 1, in Anthropic's own words.

The other way round is langchain-anthropic's `_convert_from_v1_to_anthropic`. OpenAI's items lose their status and
their results in LangChain's form: they stay LangChain's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.json_values import as_object, as_text

__all__ = ["anthropic_block"]


def anthropic_block(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """A `server_tool_call` or a `server_tool_result` as the block that it was; None for one that does not tell."""
    extras = as_object(block.get("extras"))
    if block.get("type") == "server_tool_call":
        return _call(block, extras)
    kind = as_text(extras.get("block_type"))
    if not kind or "output" not in block:
        return None
    failed = {"is_error": block.get("status") == "error"} if kind == "mcp_tool_result" else {}
    return {"type": kind, "tool_use_id": block.get("tool_call_id"), "content": block["output"], **failed}


def _call(block: Mapping[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    made = {
        "type": "server_tool_use",
        "id": block.get("id"),
        "name": block.get("name"),
        "input": block.get("args"),
    }
    if block.get("name") == "code_interpreter":
        return {**made, "name": "code_execution"}
    if block.get("name") == "remote_mcp":
        served = {"server_name": extras["server_name"]} if "server_name" in extras else {}
        return {**made, "type": "mcp_tool_use", "name": extras.get("tool_name"), **served}
    return made
