"""Conversion of tool parameters to a schema that every API accepts, with `"type": "object"` and `properties`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkit.json_values import copy_json
from agentkit.tools.json_schema import find_definition, has_type

__all__ = ["as_object_schema"]

# Keywords that APIs refuse at the root of a schema.
# OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
# Anthropic: "input_schema does not support oneOf, allOf, or anyOf at the top level".
_REFUSED = frozenset({"anyOf", "oneOf", "allOf", "enum", "const", "not"})
_CHOICES = ("anyOf", "oneOf")
_MAX_MERGED = 50  # maximum number of merged schemas, because a recursive definition could be merged forever


def as_object_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns a schema with `"type": "object"` at its root, and the keywords that the schema no longer enforces.

    A missing type or a list of types becomes `object`, because tool arguments are always an object. A reference at
    the root is replaced by its definition, and `allOf` is merged into the root. The alternatives in `anyOf` or
    `oneOf` become one object with the properties of all alternatives. A property stays required only if every
    alternative requires the property. `enum`, `const` and `not` are removed from the root. Returns the schema
    unchanged if its type is `object`, and it has `properties` and none of these keywords.
    """
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not _is_combined(schema):
        return schema, ()
    merge = _Merge(schema)
    merged = merge.merge(schema)
    root: dict[str, Any] = {"type": "object", "properties": {}}
    return root | {key: item for key, item in merged.items() if key != "type"}, tuple(merge.lost)


def _is_combined(schema: Mapping[str, Any]) -> bool:
    return "$ref" in schema or not _REFUSED.isdisjoint(schema)


@dataclass(slots=True)
class _Merge:
    """Operation that merges references, `allOf`, `anyOf` and `oneOf` into the root of a schema.

    Attributes:
        root: Schema that contains the definitions.
        lost: Keywords that the merged schema no longer enforces. The dict serves as an ordered set; its values are
            None.
        count: Number of merged schemas.
    """

    root: Mapping[str, Any]
    lost: dict[str, None] = field(default_factory=dict[str, None])
    count: int = 0

    def merge(self, part: Mapping[str, Any]) -> dict[str, Any]:
        self.count += 1
        if self.count > _MAX_MERGED:
            self.lost["$ref"] = None
            return {}
        merged: dict[str, Any] = {
            key: copy_json(item) for key, item in part.items() if key not in _REFUSED and key != "$ref"
        }
        target = find_definition(part.get("$ref"), self.root)
        if target is not None:
            merged = _merge_both(merged, self.merge(target))
        elif "$ref" in part:
            self.lost["$ref"] = None
        for branch in _branches(part, "allOf"):
            merged = _merge_both(merged, self.merge(branch))
        for key in _CHOICES:
            objects = [self.merge(branch) for branch in _branches(part, key) if _may_be_object(branch, self.root)]
            if len(objects) > 1:
                self.lost[key] = None
            if objects:
                merged = _merge_both(merged, _merge_alternatives(objects))
        self.lost.update(dict.fromkeys(sorted(part.keys() & {"enum", "const", "not"})))
        return merged


def _branches(part: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = part.get(key)
    branches = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", branch) for branch in branches if isinstance(branch, Mapping)]


def _may_be_object(part: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Returns True if the schema can accept an object. A schema of type null, for example, cannot."""
    target = find_definition(part.get("$ref"), root)
    typed = part if "type" in part or target is None else target
    return typed.get("type") is None or has_type(typed, "object")


def _merge_both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Returns an object schema with the keywords, properties and definitions of both schemas.

    If the values of a key differ, the value in `first` is used. `required` lists the required properties of both
    schemas.
    """
    merged = {**first, **second, **first}
    for key in ("properties", "$defs", "definitions"):
        if key in first and key in second:
            merged[key] = {**first[key], **second[key], **first[key]}
    required = [*dict.fromkeys([*first.get("required", ()), *second.get("required", ())])]
    return {**merged, "required": required} if required else merged


def _merge_alternatives(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns an object schema with the properties of all schemas.

    The schema requires a property only if every schema in `objects` requires the property.
    """
    merged: dict[str, Any] = objects[0]
    for other in objects[1:]:
        first: dict[str, Any] = merged.get("properties", {})
        second: dict[str, Any] = other.get("properties", {})
        shared = {
            name: {"anyOf": [*_alternatives(first[name]), second[name]]}
            for name in first
            if name in second and first[name] != second[name]
        }
        required: list[Any] = [name for name in merged.get("required", ()) if name in other.get("required", ())]
        is_closed = merged.get("additionalProperties") is other.get("additionalProperties") is False
        both: dict[str, Any] = _merge_both(merged, other) | {
            "properties": {**first, **second, **first, **shared},
            "required": required,
        }
        merged = {key: item for key, item in both.items() if key != "additionalProperties" or is_closed}
    return merged if merged.get("required") else {key: item for key, item in merged.items() if key != "required"}


def _alternatives(schema: Any) -> list[Any]:
    """Returns the schemas in `anyOf` if `schema` has no other keyword. Otherwise, returns `[schema]`."""
    keywords = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    return cast("list[Any]", keywords["anyOf"]) if keywords.keys() == {"anyOf"} else [schema]
