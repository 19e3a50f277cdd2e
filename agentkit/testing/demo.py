"""A model of one rule, for examples and tests of agents: no key, no network, and a tool loop that ends.

It calls the first tool, of those that the choice names, when tools are given and the last thing in the
conversation is no result of one; else it answers, and quotes the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.testing.replies import hash_text
from agentkit.tools.choices import read_allowed_tools

__all__ = ["demo_reply"]

Object = Mapping[str, Any]


def demo_reply(body: Mapping[str, Any]) -> Msg:
    """The rule's answer to a request of any of the wires."""
    turns = _turns(body)
    last: Object = turns[-1] if turns else {}
    result = _result(last)
    tools = _tools(body)
    if result is not None:
        return Msg("assistant", f"The tool says: {result}", "assistant")
    if tools and not _forbidden(body):
        return _call(tools[0], _text(last), len(turns))
    return Msg("assistant", f"You said: {_text(last)}", "assistant")


def _call(tool: Object, said: str, at: int) -> Msg:
    name = str(tool.get("name"))
    given = _object(tool.get("parameters") or tool.get("input_schema"))
    schema = given or _object(tool.get("parametersJsonSchema") or tool.get("parameters_json_schema"))
    arguments = {key: _value(_object(one), said) for key, one in _wanted(schema)}
    id = f"call_{hash_text(json.dumps([name, arguments, at]), 24)}"
    return Msg("assistant", [ToolUseBlock(id, name, arguments)], "assistant")


def _wanted(schema: Object) -> Iterator[tuple[str, Any]]:
    """The required parameters, or the first one if none is."""
    known = _object(schema.get("properties"))
    required = schema.get("required")
    names = [str(name) for name in cast("list[object]", required)] if isinstance(required, list) else []
    return ((name, known.get(name)) for name in names or list(known)[:1])


def _value(schema: Object, said: str) -> Any:
    """A value that a schema takes; a string is what was said."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return cast("list[Any]", choices)[0]
    if "default" in schema:
        return schema["default"]
    kind = str(schema.get("type", "string")).lower()
    if kind == "object":
        return {key: _value(_object(one), said) for key, one in _wanted(schema)}
    plain: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "null": None}
    return plain.get(kind, said)


# -- what a request holds, on any wire --------------------------------------------------------------------------


def _object(found: object) -> Object:
    return cast("Object", found) if isinstance(found, Mapping) else {}


def _objects(found: object) -> list[Object]:
    items = cast("list[object]", found) if isinstance(found, list) else []
    return [_object(one) for one in items]


def _turns(body: Object) -> list[Object]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    for found in (body.get("messages"), body.get("contents"), given, _object(given).get("messages")):
        if isinstance(found, list):
            return _objects(cast("object", found))
    return []


def _tools(body: Object) -> list[Object]:
    """The tools as flat objects with a name, however deep a wire puts them."""
    found = _objects(body.get("tools") or _object(body.get("parameters")).get("tools"))
    declared = [
        one for tool in found for key in ("functionDeclarations", "function_declarations")
        for one in _objects(tool.get(key))
    ]  # fmt: skip
    tools = declared or [_object(tool.get("function")) or tool for tool in found]
    names = _named(body)
    return [tool for tool in tools if not names or tool.get("name") in names]


def _named(body: Object) -> list[object]:
    """The tools to which the choice is limited; none where it is not."""
    choice = _object(body.get("tool_choice") or _object(body.get("parameters")).get("tool_choice"))
    limited = read_allowed_tools(choice)
    if limited is not None:
        return limited[1]
    calling = _calling(body)
    allowed = calling.get("allowedFunctionNames") or calling.get("allowed_function_names")
    one = _object(choice.get("function")).get("name") or choice.get("name")
    return cast("list[object]", allowed) if isinstance(allowed, list) else [one] if one else []


def _calling(body: Object) -> Object:
    config = _object(body.get("toolConfig") or body.get("tool_config"))
    return _object(config.get("functionCallingConfig") or config.get("function_calling_config"))


def _forbidden(body: Object) -> bool:
    """Whether the request says that no tool may be called."""
    choice = body.get("tool_choice") or _object(body.get("parameters")).get("tool_choice")
    calling = _calling(body)
    return choice == "none" or _object(choice).get("type") == "none" or calling.get("mode") == "NONE"


def _result(turn: Object) -> str | None:
    """What a tool said, if the turn is its result."""
    if turn.get("role") == "tool":
        return _text(turn)
    if str(turn.get("type")).endswith("_call_output"):
        return _said(turn.get("output"))
    for part in _objects(turn.get("content") or turn.get("parts")):
        if part.get("type") == "tool_result":
            return _said(part.get("content"))
        response = part.get("functionResponse") or part.get("function_response")
        if response is not None:
            found = _object(_object(response).get("response"))
            return _said(found.get("output", found.get("error", dict(found))))
    return None


def _text(turn: Object) -> str:
    return _said(turn.get("content") or turn.get("parts"))


def _said(found: object) -> str:
    """The text of a content: a string, parts with text, or any other value as JSON."""
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        texts = [one.get("text") for one in _objects(cast("object", found))]
        return "\n".join(text for text in texts if isinstance(text, str)).strip()
    return "" if found is None else json.dumps(found, ensure_ascii=False)
