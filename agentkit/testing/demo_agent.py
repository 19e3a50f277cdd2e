"""`demo_reply`, which creates replies by simple rules, for examples and tests without an API key or a network.

If the request has tools and does not end with a tool result, the reply calls the first tool that the tool choice
allows. Otherwise, the reply is a text that quotes the tool result or the last turn. The run of an agent therefore
ends after one tool call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.json_values import as_list, as_object
from agentkit.logs.native import load_native
from agentkit.logs.request_options import load_request_options
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.models.registry import Provider
from agentkit.testing.replies import hash_text
from agentkit.tools.choices import ToolChoice, as_tool_choice
from agentkit.tools.tool import Tool, as_tools

__all__ = ["demo_reply"]


def demo_reply(provider: str | Provider, body: Mapping[str, Any]) -> Msg:
    """Returns a reply to a request. The rules for the reply are in the docstring of the module `demo_agent`.

    Args:
        provider: Provider whose wire format the request uses, as a name or a `Provider`. The provider must have a
            `load_native` function.
        body: Body of the request.

    Raises:
        MessageError: If the request is not in the provider's wire format.
        ProviderError: If no provider has this name, or the provider has no `load_native` function.
    """
    msgs = load_native(provider, body)
    last = msgs[-1] if msgs else Msg("user", "", "user")
    if last.tool_results:
        return Msg("assistant", f"The tool says: {last.tool_results[-1].listing}", "assistant")
    options = load_request_options(provider, body)
    tools = as_tools(options.get("tools"))
    choice = as_tool_choice(options.get("tool_choice"), tools) or ToolChoice("auto")
    if tools and choice.mode != "none":
        names = choice.names or (choice.name or tools[0].name,)
        return _call(next(tool for tool in tools if tool.name in names), last.text, len(msgs))
    return Msg("assistant", f"You said: {last.text}", "assistant")


def _call(tool: Tool, text: str, msg_count: int) -> Msg:
    arguments = {key: _value(schema, text) for key, schema in _required_parameters(tool.parameters)}
    id = f"call_{hash_text(json.dumps([tool.name, arguments, msg_count]), 24)}"
    return Msg("assistant", [ToolUseBlock(id, tool.name, arguments)], "assistant")


def _required_parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name and schema of each required parameter, or of the first parameter if none is required."""
    properties = as_object(schema.get("properties"))
    names = as_list(schema.get("required")) or list(properties)[:1]
    return ((str(name), as_object(properties.get(name))) for name in names)


def _value(schema: Mapping[str, Any], text: str) -> Any:
    """Returns a value that matches a schema. For a string schema, returns `text`."""
    choices = as_list(schema.get("enum"))
    if choices:
        return choices[0]
    if "default" in schema:
        return schema["default"]
    value_type = str(schema.get("type", "string")).lower()
    if value_type == "object":
        return {key: _value(inner, text) for key, inner in _required_parameters(schema)}
    defaults: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "null": None}
    return defaults.get(value_type, text)
