"""Functions that load tools, tool choice and output schema from a native request, and find cache markers.

`WireLayout` and `OptionLayout` declare the keys of these values in the requests of each provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout
from agentkit.errors import MessageError, OptionError
from agentkit.formatting.formatter import RequestOptions
from agentkit.json_values import as_list, as_object, as_text, find_value, make_json_safe, parse_arguments
from agentkit.logs.parsing import parse_log_text
from agentkit.models.registry import load_provider
from agentkit.reprs import shorten_repr
from agentkit.tools.choices import ToolChoice, read_allowed_tools, read_tool_choice
from agentkit.tools.json_schema import OutputSchema, as_output_schema
from agentkit.tools.tool import Tool

__all__ = ["LIBRARY_FORMATS", "list_cache_markers", "list_server_tools", "load_request_options"]

LIBRARY_FORMATS = frozenset({"agentkit", "agentscope", "langchain"})
"""Names of log formats that belong to a library, not to a provider."""

_MAX_DEPTH = 20
"""Maximum number of nested levels that are searched for cache markers."""


def load_request_options(provider: str | LayoutSource, request: object) -> RequestOptions:
    """Returns the `tools`, `tool_choice` and `response_format` of a native request.

    Pass the result to `format` or `plan` as keyword arguments. Tools that the provider itself runs are omitted,
    because no other provider can run these tools. `list_server_tools` lists the omitted tools. An output format
    that is not a schema, such as `{"type": "text"}`, is also omitted.

    Args:
        provider: Provider of the request, as a name, a `Provider`, a formatter or a `WireLayout`. Also accepts
            `agentkit`, `agentscope` or `langchain`.
        request: Arguments of the SDK call, or the request body, as values or as JSON text. For a list of messages,
            the result is empty.

    Raises:
        MessageError: The name of a tool is missing, or the name or the schema of a tool is invalid.
        ProviderError: No provider has this name.
        OptionError: `provider` is not a string, a `Provider`, a formatter or a `WireLayout`.

    """
    layout = _find_layout(provider)
    items = _read_items(request, layout)
    logged = _list_tools(items, layout)
    tools = [_read_tool(tool, place, layout) for tool, place, server_type in logged if server_type is None]
    options: RequestOptions = {}
    if tools:
        options["tools"] = tools
        choice = _find_choice(items, layout, {tool.name for tool in tools})
        if choice is not None:
            options["tool_choice"] = choice
    output = _find_output(items, layout)
    if output is not None:
        options["response_format"] = output
    return options


def list_server_tools(provider: str | LayoutSource, request: object) -> list[tuple[str, str]]:
    """Returns the place and the type of each tool that the provider itself runs.

    `load_request_options` omits these tools.

    Args:
        provider: Provider of the request, as in `load_request_options`.
        request: Native request, as in `load_request_options`.

    Raises:
        MessageError: The tools of the request are neither a list nor an object.
        ProviderError: No provider has this name.
        OptionError: `provider` is not a string, a `Provider`, a formatter or a `WireLayout`.

    """
    layout = _find_layout(provider)
    tools = _list_tools(_read_items(request, layout), layout)
    return [(place, server_type) for _, place, server_type in tools if server_type is not None]


def list_cache_markers(provider: str | LayoutSource, request: object) -> list[str]:
    """Returns the places of all blocks, messages and tools that have a marker for the provider's prompt cache.

    `load_native` and `load_request_options` omit the markers. To set new markers, pass `cache_breakpoints` to a
    formatter.

    Args:
        provider: Provider of the request, as in `load_request_options`.
        request: Native request, or a list of messages.

    Raises:
        ProviderError: No provider has this name.
        OptionError: `provider` is not a string, a `Provider`, a formatter or a `WireLayout`.

    """
    layout = _find_layout(provider)
    log = parse_log_text(request)
    return [*_find_markers(log, "", layout)] if _has_marker_keys(log, layout.cache_markers) else []


def _find_layout(provider: str | LayoutSource) -> WireLayout:
    if not isinstance(provider, str):
        return as_layout(provider)
    return WireLayout() if provider in LIBRARY_FORMATS else load_provider(provider).layout


def _read_items(request: object, layout: WireLayout) -> dict[str, Any]:
    """Returns the values of a request by key, including values in nested objects such as `extra_body`.

    If a key is both at the top level of the request and in a nested object, the top-level value is returned.
    """
    body: dict[str, Any] = as_object(make_json_safe(parse_log_text(request)))
    items = {key: value for key, value in layout.read_items(body) if value is not None}
    return items | {key: value for key, value in body.items() if value is not None}


# -- tools ----------------------------------------------------------------------------------------------------


class _LoggedTool(NamedTuple):
    """Tool that a logged request declares.

    Attributes:
        declaration: Native JSON object of the tool, without keys whose value is null.
        place: Place of the tool in the request.
        server_type: Type of a tool that the provider itself runs. None for a function of the application.

    """

    declaration: dict[str, Any]
    place: str
    server_type: str | None = None


def _list_tools(items: Mapping[str, Any], layout: WireLayout) -> Iterator[_LoggedTool]:
    for tool, place in _list_objects(items, layout.tools):
        for key in layout.tool_lists:
            for declaration, inner_place in _list_objects(tool, key, f"{place}."):
                yield _LoggedTool(declaration, inner_place)
        separate = layout.cache_markers.union(layout.tool_lists)
        single = {key: value for key, value in tool.items() if key not in separate}
        if single or not tool:
            yield from (_LoggedTool(single, place, kind) for kind in _server_types(single, layout))
    for key in layout.options.functions:
        yield from (_LoggedTool(tool, place) for tool, place in _list_objects(items, key))


def _list_objects(fields: Mapping[str, Any], key: str, prefix: str = "") -> Iterator[tuple[dict[str, Any], str]]:
    """Yields the objects under a key, each with its place. Fields with the value null are omitted.

    The value under the key is a list of objects or a single object.
    """
    value, place = fields.get(key), f"{prefix}{key}"
    if not isinstance(value, list | dict | None):
        raise MessageError(
            place,
            f"expected a list of tools or a tool object, got {shorten_repr(cast('object', value), 60)}",
            "Pass a list of tools.",
        )
    tools: list[Any] = [value] if isinstance(value, dict) else as_list(cast("object", value))
    for index, item in enumerate(tools):
        tool = {key: field for key, field in as_object(item).items() if field is not None}
        yield tool, f"{place}[{index}]"


def _server_types(tool: Mapping[str, Any], layout: WireLayout) -> Iterable[str | None]:
    """Returns the types of the tools in one declaration. A function of the application has the type None.

    A declaration without a name and a type can declare several tools that the provider itself runs. The keys of
    such a declaration are the types of its tools.
    """
    tool_type = as_text(tool.get(layout.type))
    if tool_type:
        return (None if tool_type in layout.options.function_types else tool_type,)
    return (None,) if layout.name in tool or layout.tool_wrapper in tool else (tool.keys() or ("unknown",))


def _read_tool(tool: Mapping[str, Any], place: str, layout: WireLayout) -> Tool:
    fields: Mapping[str, Any] = as_object(tool.get(layout.tool_wrapper)) or tool
    path, schema = layout.find_schema(fields)
    declaration = {"name": fields.get(layout.name), "parameters": _read_schema(schema, path, layout)}
    return Tool.from_dict({**fields, **declaration, "type": "function"}, place)


def _read_schema(schema: Any, path: str, layout: WireLayout) -> Any:
    read = layout.options.read_schemas.get(path.rpartition(".")[2])
    return read(schema) if read is not None and isinstance(schema, dict) else schema


# -- tool choice and output -----------------------------------------------------------------------------------


def _find_choice(items: Mapping[str, Any], layout: WireLayout, tools: AbstractSet[str]) -> ToolChoice | None:
    """Returns the tool choice of a request, limited to the names in `tools`.

    Returns None if the request has no valid tool choice, or if the choice names only other tools.
    """
    values = [find_value(items, path) for path in layout.options.choices]
    value: Any = next((value for value in values if value), None)
    if layout.options.read_choice is not None:
        value = layout.options.read_choice(value)
    allowed = read_allowed_tools(as_object(value))
    if allowed is not None:
        mode, listed = allowed
        allowed_names = [name for name in listed if isinstance(name, str)]
        value = {"mode": mode, "names": allowed_names} if allowed_names else mode
    try:
        choice = read_tool_choice(value)
    except (OptionError, MessageError):
        return None
    names = tuple(name for name in choice.names if name in tools)
    is_missing = (choice.names and not names) or (choice.name is not None and choice.name not in tools)
    return None if is_missing else replace(choice, names=names)


def _find_output(items: Mapping[str, Any], layout: WireLayout) -> OutputSchema | None:
    """Returns the output schema of a request. Returns None if the request has no valid schema."""
    for path in layout.options.outputs:
        value = find_value(items, path)
        if isinstance(value, str):
            value = "json_object" if value in layout.options.object_formats else parse_arguments(value)
        schema = _read_schema(value, path, layout)
        if schema and isinstance(schema, dict | str):
            with suppress(OptionError, MessageError):
                return as_output_schema(cast("dict[str, Any] | str", schema))
    return None


# -- cache markers --------------------------------------------------------------------------------------------


def _has_marker_keys(value: object, markers: frozenset[str]) -> bool:
    """Returns True if any object in a value has a key of a cache marker.

    If the result is False, the slower search for the places of the markers is not necessary.
    """
    level: list[Any] = [value] if markers else []
    for _ in range(_MAX_DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if item.__class__ is dict:
                if not markers.isdisjoint(item):
                    return True
                inner += item.values()
            elif item.__class__ is list:
                inner += item
        level = inner
    return False


def _find_markers(value: object, place: str, layout: WireLayout, depth: int = 0) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        return
    fields: dict[str, Any] = as_object(value)
    if any(fields.get(key) is not None for key in layout.cache_markers):
        yield place or "request"
    schema_keys = (path.partition(".")[0] for path in layout.tool_schemas)
    json_keys = layout.json.union(schema_keys) if layout.name in fields else ()
    for key, item in fields.items():
        if isinstance(item, dict | list) and key not in json_keys:
            yield from _find_markers(cast("object", item), f"{place}.{key}" if place else key, layout, depth + 1)
    for index, item in enumerate(as_list(value)):
        yield from _find_markers(item, f"{place}[{index}]", layout, depth + 1)
