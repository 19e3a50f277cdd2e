"""Output schemas as Anthropic's grammar compiler takes them."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from agentkit.provider_kit import StrictRules

__all__ = ["STRICT", "in_subset"]

STRICT = StrictRules(
    keywords=frozenset(
        [
            *("type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const"),
            *("$ref", "$defs", "definitions", "default", "title", "description", "format"),
        ]
    ),
    formats=frozenset(
        ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"],
    ),
    can_omit_properties=True,
    can_recurse=False,
)
"""build-with-claude/structured-outputs, strict tools. Keywords that are supported only in part are not listed."""

# build-with-claude/structured-outputs: keywords that the grammar compiler refuses.
_REFUSED = frozenset(
    [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "unevaluatedItems",
        "if",
        "then",
        "else",
        "not",
        "$schema",
    ]
)


def in_subset(schema: dict[str, Any]) -> dict[str, Any]:
    """A subschema within the supported keywords; what it loses is told in its description."""
    refused = {key: item for key, item in schema.items() if key in _REFUSED}
    if schema.get("minItems", 0) not in (0, 1):
        refused["minItems"] = schema["minItems"]
    kept = {key: item for key, item in schema.items() if key not in refused}
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    if kept.get("type") == "object":
        if isinstance(kept.get("additionalProperties"), dict):
            refused["additionalProperties"] = kept["additionalProperties"]
        kept["additionalProperties"] = False
    told = ", ".join(f"{key}: {to_json(item).decode()}" for key, item in refused.items() if key != "$schema")
    if told:
        kept["description"] = f"{kept['description']} ({told})" if kept.get("description") else told
    return kept
