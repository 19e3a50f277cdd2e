"""Conversion of the arguments of google-genai's methods to the JSON body of Gemini's REST API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from agentkit.provider_kit import native_to_json
from agentkit_gemini._part_reader import as_content, to_camel_case

__all__ = ["build_rest_body"]

_TOP_LEVEL_KEYS = frozenset({"safety_settings", "labels", "cached_content", "service_tier", "store"})
"""Keys of `config` that are at the top level of the body instead of in `generationConfig`.

Source: Gemini docs, api/generate-content.
"""

_SDK_ONLY = frozenset(
    {"automatic_function_calling", "automatic_continuation", "http_options", "should_return_http_response"}
)
_TEXT_KEYS = {"text"}  # most parts have only this key, which is equal in snake_case and camelCase
_CONVERTED_KEYS = frozenset({"system_instruction", "tools", "tool_config"})

_FREE = frozenset(
    {"args", "response", "part_metadata", "labels", "headers", "parameters_json_schema", "response_json_schema"}
)
"""Keys whose values are objects of the application or of a tool. The keys of these objects are not converted."""

_SCHEMAS = frozenset({"parameters", "response_schema"})
"""Keys whose values are a `Schema` of the API. The property names in a `Schema` are not converted."""

_SCHEMAS_BY_NAME = frozenset({"properties", "defs", "$defs"})  # the values of these keys map names to schemas


def build_rest_body(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON body of `POST models/MODEL:generateContent` for `generate_content(**request)`.

    The keys that the API defines are in camelCase, also in nested objects. The API also accepts snake_case, but a
    proxy can omit keys in snake_case. Base64 data keeps the standard alphabet, which the API accepts.
    """
    config: Mapping[str, Any] = request.get("config") or {}
    body: dict[str, Any] = {"contents": [_convert_content(content) for content in request["contents"]]}
    system = config.get("system_instruction")
    if system is not None:
        body["systemInstruction"] = _convert_content(as_content(system))
    if config.get("tools"):
        body["tools"] = _convert_tools(config["tools"])
    if config.get("tool_config"):
        body["toolConfig"] = _convert_keys(config["tool_config"])
    body |= _convert_keys({name: config[name] for name in _TOP_LEVEL_KEYS if config.get(name) is not None})
    other_keys = config.keys() - _TOP_LEVEL_KEYS - _SDK_ONLY - _CONVERTED_KEYS
    generation = {name: item for name, item in config.items() if name in other_keys}
    if generation:
        body["generationConfig"] = _convert_keys(generation)
    return body


def _convert_keys(value: Any) -> Any:
    """Returns a JSON value in which the API's keys are in camelCase. Converts SDK objects to JSON values."""
    if isinstance(value, list | tuple):
        return [_convert_keys(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {to_camel_case(key): _convert_item(key, item) for key, item in pairs}
    return _dump(value)


def _convert_item(key: str, item: Any) -> Any:
    if key in _FREE:
        return _dump(item)
    return _convert_schema(item) if key in _SCHEMAS else _convert_keys(item)


def _dump(value: Any) -> Any:
    return native_to_json(value) if hasattr(value, "model_dump") else value


def _convert_schema(value: Any) -> Any:
    """Returns a `Schema` with camelCase keys. Property names do not change."""
    if isinstance(value, list):
        return [_convert_schema(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return _dump(value)
    schema: dict[str, Any] = {}
    for key, item in cast("dict[str, Any]", value).items():
        if key in _SCHEMAS_BY_NAME and isinstance(item, dict):
            pairs = cast("dict[str, Any]", item).items()
            item = {name: _convert_schema(inner) for name, inner in pairs}
        elif key not in ("default", "example", "enum", "required"):
            item = _convert_schema(item)
        schema[to_camel_case(key)] = item
    return schema


def _convert_content(content: dict[str, Any]) -> dict[str, Any]:
    """Returns a `Content` object with camelCase keys in its parts."""
    parts: list[dict[str, Any]] | None = content.get("parts")
    if parts is None or (len(parts) == 1 and parts[0].keys() == _TEXT_KEYS):
        return content
    return {**content, "parts": [part if part.keys() == _TEXT_KEYS else _convert_keys(part) for part in parts]}


def _convert_tools(tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the tools with camelCase keys. All function declarations are merged into one tool at the end."""
    declarations: list[Any] = []
    others: list[dict[str, Any]] = []
    for tool in tools:
        fields: dict[str, Any] = _convert_keys(tool)
        declarations += fields.pop("functionDeclarations", None) or []
        if fields:
            others.append(fields)
    return [*others, {"functionDeclarations": declarations}] if declarations else others
