"""What a native request asks for besides its messages: tools, the choice among them, the form of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, cast

from agentkit.errors import MessageError, OptionError
from agentkit.formatting.formatter import RequestOptions
from agentkit.json_values import as_list, as_object, as_text, make_json_safe
from agentkit.tools.choices import ToolChoice, read_allowed_tools
from agentkit.tools.json_schema import OutputSchema, as_output_schema, map_schema
from agentkit.tools.tool import Tool

__all__ = ["list_cache_markers", "list_server_tools", "load_request_options"]

_CACHE_MARKERS = frozenset({"cache_control", "prompt_cache_breakpoint"})
_HOLDERS = ("extra_body", "parameters", "config", "generationConfig", "generation_config")
"""Where requests keep what they ask for: the SDKs' further body, DashScope's body, Gemini's call and body."""

_OWN = frozenset({"function", "custom"})
"""Types of the tools that the caller runs; a tool of another type runs at the provider."""


def load_request_options(request: object) -> RequestOptions:
    """The tools, tool_choice and response_format of a native request of any wire, for `format` and `plan`.

    A list of messages asks for nothing. What cannot be said for another provider is left out: tools that run at
    the provider (`tools_left_out` names them), a form of answer without a schema or whose root is no object.
    Raises MessageError for a tool whose name or schema nobody could follow.
    """
    held = _held(request)
    tools = [_tool(found, place) for found, place, kind in _declared(held) if kind in _OWN]
    asked: RequestOptions = {}
    if tools:
        asked["tools"] = tools
        choice = _among(_choice(held), {tool.name for tool in tools})
        if choice is not None:
            asked["tool_choice"] = choice
    output = _output(held)
    if output is not None:
        asked["response_format"] = output
    return asked


def list_server_tools(request: object) -> list[tuple[str, str]]:
    """The place and type of each tool that `load_tools` leaves out, because it runs at the provider."""
    return [(place, kind) for _, place, kind in _declared(_held(request)) if kind not in _OWN]


def list_cache_markers(request: object) -> list[str]:
    """Returns the places in a native request of blocks, messages and tools with a marker for a prompt cache.

    `load_native` and `load_tools` leave these markers out: a formatter's `cache_breakpoints` places new ones.
    """
    return [*_marked(request, "", 0)]


def _marked(found: object, path: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    held: dict[str, Any] = as_object(found)
    if not held.keys().isdisjoint(_CACHE_MARKERS) and any(held.get(key) is not None for key in _CACHE_MARKERS):
        yield path or "request"
    for key, item in held.items():
        if isinstance(item, dict | list) and not ("name" in held and key in _ARGUMENTS):
            yield from _marked(cast("object", item), f"{path}.{key}" if path else str(key), depth + 1)
    for at, item in enumerate(as_list(found)):
        yield from _marked(item, f"{path}[{at}]", depth + 1)


_DEEPEST = 20
"""Levels of nesting that blocks may have in a request."""
_ARGUMENTS = frozenset({"input_schema", "parameters", "input", "arguments", "args"})
"""Keys of a tool or a call whose values are the tool's own."""


def _held(request: object) -> dict[str, Any]:
    """The request with what its holders hold beside its own keys."""
    found = as_object(make_json_safe(request))
    held = dict(found)
    for name in _HOLDERS:
        held |= {key: item for key, item in as_object(found.get(name)).items() if held.get(key) is None}
    return held


# -- tools ----------------------------------------------------------------------------------------------------


def _declared(held: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Each tool with its place and its type. Gemini declares several in one, functions and its own."""
    for at, found in enumerate(_as_list(held.get("tools"), "tools")):
        tool, place = {key: item for key, item in as_object(found).items() if item is not None}, f"tools[{at}]"
        for key in ("functionDeclarations", "function_declarations"):
            for number, one in enumerate(_as_list(tool.get(key), f"{place}.{key}")):
                yield _from_gemini(as_object(one)), f"{place}.functionDeclarations[{number}]", "function"
        rest = {key: item for key, item in tool.items() if key not in _DECLARATIONS}
        if rest or not tool:
            yield from ((rest, place, kind) for kind in _types_of(rest))
    for at, found in enumerate(_as_list(held.get("functions"), "functions")):  # OpenAI's, before there were tools
        yield as_object(found), f"functions[{at}]", "function"


_DECLARATIONS = frozenset({"functionDeclarations", "function_declarations"})


def _as_list(found: object, place: str) -> list[Any]:
    """Returns a list of tools; a single tool may come without a list."""
    tool: dict[str, Any] = as_object(found)
    listed: list[Any] = as_list(found)
    if found is not None and found is not tool and found is not listed:
        raise MessageError(place, f"expected a list of tools, got {type(found).__name__}", "Pass a list.")
    return [tool] if found is tool else listed


def _types_of(tool: Mapping[str, Any]) -> Iterable[str]:
    """Returns the types of a tool. Without a type, one with a name is a function; else its keys are its types."""
    if tool.get("type") == "custom" and not tool.keys() & {"input_schema", "inputSchema"}:
        return ("custom text",)  # OpenAI's: its input is no object (SDK: CustomTool)
    if named := as_text(tool.get("type")):
        return (named,)
    return ("function",) if "name" in tool or "function" in tool else (tool.keys() or ("unknown",))


def _tool(found: Mapping[str, Any], place: str) -> Tool:
    return Tool.from_dict(found, place)


def _from_gemini(found: dict[str, Any]) -> dict[str, Any]:
    """A declaration with a JSON schema (google-genai: FunctionDeclaration, Schema)."""
    schema = found.get("parametersJsonSchema") or found.get("parameters_json_schema")
    if schema is None and isinstance(found.get("parameters"), dict):
        schema = map_schema(found["parameters"], _as_json_schema)
    return {**{key: found.get(key) for key in ("name", "description")}, "parameters": schema}


_SPELLED = {"any_of": "anyOf", "min_items": "minItems", "max_items": "maxItems", "min_length": "minLength"} | {
    "max_length": "maxLength", "property_ordering": "propertyOrdering", "min_properties": "minProperties",
    "max_properties": "maxProperties", "additional_properties": "additionalProperties", "defs": "$defs",
    "ref": "$ref",
}  # fmt: skip


def _as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """One level of Gemini's `Schema` (OpenAPI 3.0): types in capitals, `nullable` beside them."""
    made = {_SPELLED.get(key, key): item for key, item in schema.items() if key not in ("nullable", "type")}
    for key in ("default", "example"):
        if made.get(key, 0) is None:  # the SDK's dump of a schema without one
            del made[key]
    kind = _schema_type(schema.get("type"))
    if kind and kind != "type_unspecified":
        made["type"] = [kind, "null"] if schema.get("nullable") is True else kind
    return made


_TYPES = ("type_unspecified", "string", "number", "integer", "boolean", "array", "object", "null")
"""Names by number (google.cloud.aiplatform_v1: Type); protobuf tools write numbers."""


def _schema_type(found: object) -> str:
    return _enum_name(found, _TYPES).lower()


def _enum_name(found: object, names: Sequence[str]) -> str:
    if type(found) is int:
        return names[found] if 0 <= found < len(names) else ""
    return as_text(found)


# -- the choice -----------------------------------------------------------------------------------------------

_MODES = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",
    "validated": "auto",  # Gemini: free to answer in words, but calls obey their schemas
}


def _choice(held: Mapping[str, Any]) -> ToolChoice | None:
    config = as_object(held.get("toolConfig") or held.get("tool_config"))
    calling = as_object(config.get("functionCallingConfig") or config.get("function_calling_config"))
    if calling:
        allowed = as_list(calling.get("allowedFunctionNames") or calling.get("allowed_function_names"))
        mode = _mode(_enum_name(calling.get("mode"), _CALLING_MODES))
        if len(allowed) == 1 and mode is not None and mode.mode == "required":
            return _named(allowed[0])
        return _limited(mode, allowed)
    found = held.get("tool_choice") or held.get("function_call")
    if not isinstance(found, dict):
        return _mode(found)
    choice = cast("dict[str, Any]", found)
    limited = read_allowed_tools(choice)
    if limited is not None:
        return _limited(_mode(limited[0]), limited[1])
    inner = as_object(choice.get("function")) or choice
    return _named(inner.get("name")) or _mode(choice.get("mode") or choice.get("type"))


def _limited(mode: ToolChoice | None, names: Sequence[object]) -> ToolChoice | None:
    """Returns the mode, limited to some tools if there are names."""
    known = tuple(dict.fromkeys(name for name in names if isinstance(name, str)))
    return replace(mode, names=known) if mode is not None and mode.mode in ("auto", "required") else mode


def _among(choice: ToolChoice | None, tools: AbstractSet[str]) -> ToolChoice | None:
    """Returns the choice, limited to the loaded tools. Returns None if the choice names none of these."""
    if choice is None or not choice.names:
        return choice if choice is None or choice.name is None or choice.name in tools else None
    names = tuple(name for name in choice.names if name in tools)
    return replace(choice, names=names) if names else None


_CALLING_MODES = ("", "auto", "any", "none", "validated")
"""Names by number (google.cloud.aiplatform_v1: FunctionCallingConfig.Mode)."""


def _mode(found: object) -> ToolChoice | None:
    mode = _MODES.get(as_text(found).lower())
    return ToolChoice(cast("Any", mode)) if mode else None


def _named(found: object) -> ToolChoice | None:
    return ToolChoice("tool", as_text(found)) if as_text(found) else None


# -- the form of the answer -----------------------------------------------------------------------------------

_FORMS = ("response_format", "output_format", "format")
_SCHEMAS = ("responseJsonSchema", "response_json_schema", "responseSchema", "response_schema")


def _output(held: Mapping[str, Any]) -> OutputSchema | None:
    found = _form(held)
    if not found:
        return None
    try:
        return as_output_schema(found)
    except (OptionError, MessageError):
        return None


def _form(held: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema, by itself or under a name: OpenAI's two, Anthropic's, Ollama's and DashScope's, Gemini's."""
    for name in _SCHEMAS:
        schema = as_object(held.get(name))
        if schema:
            return (
                schema if "json" in name.lower() else cast("dict[str, Any]", map_schema(schema, _as_json_schema))
            )
    inner = (as_object(held.get(name)).get("format") for name in ("text", "output_config"))
    for found in map(as_object, (*(held.get(name) for name in _FORMS), *inner)):
        if found.get("type") == "json_schema":
            return found
        if found and found.get("type") not in ("text", "json_object"):
            return found  # Ollama: the schema itself
    return None
