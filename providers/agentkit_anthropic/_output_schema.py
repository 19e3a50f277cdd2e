"""Removal of JSON Schema keywords that Anthropic's grammar compiler does not accept."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from agentkit.provider_kit import StrictRules

__all__ = ["STRICT", "restrict_schema"]

STRICT = StrictRules(
    keywords=frozenset(
        [
            *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"),
            *("$ref", "$defs", "definitions", "default", "title", "description", "format"),
        ]
    ),
    formats=frozenset(
        ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]
    ),
    can_omit_properties=True,
    can_recurse=False,
)
"""Keywords and formats that the API supports in the schemas of strict tools (Anthropic docs: structured-outputs).

Keywords that the API supports only partially are not listed.
"""

_REFUSED = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
        *("maxItems", "uniqueItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties"),
        *("patternProperties", "propertyNames", "dependentRequired", "dependentSchemas"),
        *("unevaluatedProperties", "unevaluatedItems", "if", "then", "else", "not", "$schema"),
    ]
)
"""JSON Schema keywords that Anthropic's grammar compiler does not accept (Anthropic docs: structured-outputs)."""


def restrict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a copy of a JSON schema without the keywords that Anthropic's grammar compiler does not accept.

    The `description` of the copy lists the removed keywords, except `$schema`, with their values. `oneOf` becomes
    `anyOf`. An object schema gets `"additionalProperties": false`. This keyword never forbids a property that the
    schema describes. Schemas in which the keyword would forbid such a property are not sent
    (`Capabilities.needs_closed_output`).

    The function changes only the top level of the schema. `map_schema` calls the function for each nested schema.
    """
    refused = {key: item for key, item in schema.items() if key in _REFUSED}
    if schema.get("minItems", 0) not in (0, 1):
        refused["minItems"] = schema["minItems"]
    result = {key: item for key, item in schema.items() if key not in refused}
    if "oneOf" in result:
        result["anyOf"] = result.pop("oneOf")
    if result.get("type") == "object" or "properties" in result:
        result["additionalProperties"] = False
    note = ", ".join(f"{key}: {to_json(item).decode()}" for key, item in refused.items() if key != "$schema")
    if note:
        result["description"] = f"{result['description']} ({note})" if result.get("description") else note
    return result
