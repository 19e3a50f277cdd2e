"""`demo_reply`: a rule-based model for examples and tests of agents. It needs no API key and no network.

If the request has tools and does not end with a tool result, the model calls the first tool that the tool choice
allows. Otherwise the model answers with a text that quotes the tool result or the last turn. A tool loop therefore
ends after one call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from agentkit.json_values import as_list
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.testing.replies import hash_text
from agentkit.tools.choices import read_allowed_tools

__all__ = ["demo_reply"]

_Object: TypeAlias = Mapping[str, Any]


def demo_reply(body: Mapping[str, Any]) -> Msg:
    """Returns the reply of the rule-based model to a request in any provider's wire format."""
    turns = _turns(body)
    last: _Object = turns[-1] if turns else {}
    result = _result(last)
    tools = _tools(body)
    if result is not None:
        return Msg("assistant", f"The tool says: {result}", "assistant")
    if tools and not _is_forbidden(body):
        return _call(tools[0], _text(last), len(turns))
    return Msg("assistant", f"You said: {_text(last)}", "assistant")


def _call(tool: _Object, text: str, turn_count: int) -> Msg:
    name = str(tool.get("name"))
    schema = _object(tool.get("parameters") or tool.get("input_schema"))
    schema = schema or _object(tool.get("parametersJsonSchema") or tool.get("parameters_json_schema"))
    arguments = {key: _value(_object(inner), text) for key, inner in _required_parameters(schema)}
    id = f"call_{hash_text(json.dumps([name, arguments, turn_count]), 24)}"
    return Msg("assistant", [ToolUseBlock(id, name, arguments)], "assistant")


def _required_parameters(schema: _Object) -> Iterator[tuple[str, Any]]:
    """Yields the name and schema of each required parameter. If none is required, yields the first parameter."""
    properties = _object(schema.get("properties"))
    required = schema.get("required")
    names = [str(name) for name in cast("list[object]", required)] if isinstance(required, list) else []
    return ((name, properties.get(name)) for name in names or list(properties)[:1])


def _value(schema: _Object, text: str) -> Any:
    """Returns a value that a schema accepts. For a string schema, returns the text of the last turn."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return cast("list[Any]", choices)[0]
    if "default" in schema:
        return schema["default"]
    value_type = str(schema.get("type", "string")).lower()
    if value_type == "object":
        return {key: _value(_object(inner), text) for key, inner in _required_parameters(schema)}
    defaults: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "null": None}
    return defaults.get(value_type, text)


# -- parts of a request, in any wire format -----------------------------------------------------------------------


def _object(value: object) -> _Object:
    return cast("_Object", value) if isinstance(value, Mapping) else {}


def _objects(value: object) -> list[_Object]:
    return [_object(item) for item in as_list(value)]


def _turns(body: _Object) -> list[_Object]:
    items = body.get("input")
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    for turns in (body.get("messages"), body.get("contents"), items, _object(items).get("messages")):
        if isinstance(turns, list):
            return _objects(cast("object", turns))
    return []


def _tools(body: _Object) -> list[_Object]:
    """Returns the tools as flat objects with a name."""
    entries = _objects(body.get("tools") or _object(body.get("parameters")).get("tools"))
    keys = ("functionDeclarations", "function_declarations")
    declared = [tool for entry in entries for key in keys for tool in _objects(entry.get(key))]
    tools = declared or [_object(entry.get("function")) or entry for entry in entries]
    names = _allowed_names(body)
    return [tool for tool in tools if not names or tool.get("name") in names]


def _allowed_names(body: _Object) -> list[object]:
    """Returns the names of the tools that the tool choice allows. An empty list means that all are allowed."""
    choice = _object(body.get("tool_choice") or _object(body.get("parameters")).get("tool_choice"))
    limited = read_allowed_tools(choice)
    if limited is not None:
        return limited[1]
    calling = _calling(body)
    allowed = calling.get("allowedFunctionNames") or calling.get("allowed_function_names")
    if isinstance(allowed, list):
        return cast("list[object]", allowed)
    name = _object(choice.get("function")).get("name") or choice.get("name")
    return [name] if name else []


def _calling(body: _Object) -> _Object:
    config = _object(body.get("toolConfig") or body.get("tool_config"))
    return _object(config.get("functionCallingConfig") or config.get("function_calling_config"))


def _is_forbidden(body: _Object) -> bool:
    """Returns True if the request forbids tool calls."""
    choice = body.get("tool_choice") or _object(body.get("parameters")).get("tool_choice")
    calling = _calling(body)
    return choice == "none" or _object(choice).get("type") == "none" or calling.get("mode") == "NONE"


def _result(turn: _Object) -> str | None:
    """Returns the text of the tool result in a turn, or None if the turn has no tool result."""
    if turn.get("role") == "tool":
        return _text(turn)
    if str(turn.get("type")).endswith("_call_output"):
        return _content_text(turn.get("output"))
    for part in _objects(turn.get("content") or turn.get("parts")):
        if part.get("type") == "tool_result":
            return _content_text(part.get("content"))
        response = part.get("functionResponse") or part.get("function_response")
        if response is not None:
            result = _object(_object(response).get("response"))
            return _content_text(result.get("output", result.get("error", dict(result))))
    return None


def _text(turn: _Object) -> str:
    return _content_text(turn.get("content") or turn.get("parts"))


def _content_text(content: object) -> str:
    """Returns the content of a turn as text. Joins the texts of parts, and serializes any other value as JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [part.get("text") for part in _objects(cast("object", content))]
        return "\n".join(text for text in texts if isinstance(text, str)).strip()
    return "" if content is None else json.dumps(content, ensure_ascii=False)
