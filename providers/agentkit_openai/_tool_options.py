"""Functions that write tools, tool choices and output schemas for Chat Completions.

OpenAI Responses uses the same JSON for output schemas (`write_schema`).
"""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import NameRule, OutputSchema, RequestSpec, Tool, ToolChoice, copy_json, declare_tool

__all__ = ["write_chat_options", "write_schema", "write_tool_choice"]

_SCHEMA_NAMES = NameRule(limit=64)


def write_chat_options(task: RequestSpec) -> dict[str, Any]:
    """Writes the tools and the output schema of a Chat Completions request.

    Returns a dict with the keys `tools`, `tool_choice` and `response_format`, without the keys that have no value.
    """
    options = task.write_tools(_chat_tool, write_tool_choice)
    if task.output and task.capabilities.output == "object":
        options["response_format"] = {"type": "json_object"}
    elif task.output and task.capabilities.output == "schema":
        options["response_format"] = {"type": "json_schema", "json_schema": write_schema(task.output)}
    return options


def _chat_tool(tool: Tool) -> dict[str, Any]:
    """Writes a tool for Chat Completions (openai-python: ChatCompletionFunctionToolParam)."""
    function = declare_tool(tool, "parameters")
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def write_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    """Writes a tool choice for Chat Completions (openai-python: ChatCompletionToolChoiceOptionParam)."""
    if choice.names:
        tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return {"type": "function", "function": {"name": choice.name}} if choice.mode == "tool" else choice.mode


def write_schema(output: OutputSchema) -> dict[str, Any]:
    """Returns the JSON object for an output schema. Changes the name if the API does not accept the name."""
    schema: dict[str, Any] = {
        "name": _SCHEMA_NAMES.fit(output.name),
        "schema": copy_json(output.schema),
        "strict": bool(output.strict),
    }
    if output.description:
        schema["description"] = output.description
    return schema
