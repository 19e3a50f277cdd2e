"""Parsers for tool choices and schemas in logged requests.

A log can contain arguments of an SDK method, the JSON body of a request, or values of protobuf messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agentkit.provider_kit import OptionLayout, as_list, as_object, as_text, map_schema
from agentkit_gemini._part_reader import to_camel_case

__all__ = ["OPTIONS"]

_MODES = ("", "auto", "any", "none", "validated")
"""Names of function calling modes. A log can contain the index of a name instead.

Source: google.cloud.aiplatform_v1, FunctionCallingConfig.Mode.
"""
_TYPES = ("type_unspecified", "string", "number", "integer", "boolean", "array", "object", "null")
"""Names of schema types. A log can contain the index of a name instead.

Source: google.cloud.aiplatform_v1, Type.
"""
_RENAMED = (
    *("additional_properties", "any_of", "max_items", "max_length", "max_properties", "min_items", "min_length"),
    *("min_properties", "property_ordering"),
)
_KEYWORDS = {"defs": "$defs", "ref": "$ref", **{name: to_camel_case(name) for name in _RENAMED}}
"""Maps field names of the SDK's `Schema` to JSON Schema keywords that are spelled differently (google-genai)."""


def _convert_level(schema: dict[str, Any]) -> dict[str, Any]:
    """Converts the top level of a `Schema` (OpenAPI 3.0) to JSON Schema.

    `map_schema` calls this function for the root schema and for each nested schema. In a `Schema`, the names of
    types are in upper case, and `nullable` is a separate field.
    """
    converted = {_KEYWORDS.get(key, key): item for key, item in schema.items() if key not in ("nullable", "type")}
    for key in ("default", "example"):
        if converted.get(key, 0) is None:  # in a dumped SDK object, null means that the field is not set
            del converted[key]
    type_name = _enum_name(schema.get("type"), _TYPES)
    if type_name not in ("", "type_unspecified"):
        converted["type"] = [type_name, "null"] if schema.get("nullable") is True else type_name
    return converted


def _read_tool_choice(value: object) -> Any:
    """Converts a `FunctionCallingConfig` to a tool choice in agentkit's format, which is a dict."""
    config: dict[str, Any] = as_object(value)
    names = as_list(config.get("allowedFunctionNames") or config.get("allowed_function_names"))
    mode = _enum_name(config.get("mode"), _MODES)
    if mode == "validated":  # "validated" is "auto" with arguments that match the schema of the tool
        mode = "auto"
    if mode == "any" and len(names) == 1:
        return {"name": names[0]}
    return {"mode": mode, "names": names} if names and mode in ("auto", "any") else {"mode": mode}


def _enum_name(value: object, names: Sequence[str]) -> str:
    """Returns the name of an enum value in lower case. The value is a name, or an index into `names`.

    Returns an empty string for an unknown index, and for a value that is neither a string nor an integer.
    """
    if type(value) is int:
        return names[value] if 0 <= value < len(names) else ""
    return as_text(value).lower()


OPTIONS = OptionLayout(
    choices=tuple(
        f"{outer}.{inner}"
        for outer in ("toolConfig", "tool_config")
        for inner in ("functionCallingConfig", "function_calling_config")
    ),
    read_choice=_read_tool_choice,
    outputs=(
        *("responseJsonSchema", "response_json_schema", "responseSchema", "response_schema"),
        *("responseMimeType", "response_mime_type"),
    ),
    object_formats=frozenset({"application/json"}),
    read_schemas=dict.fromkeys(
        ("parameters", "responseSchema", "response_schema"), partial(map_schema, change=_convert_level)
    ),
)
"""Request fields for tool choices and schemas (google-genai: GenerateContentConfig, Tool)."""
