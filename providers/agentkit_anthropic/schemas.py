"""Output schemas as Anthropic's grammar compiler takes them."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

__all__ = ["in_subset"]

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
