"""Tool parameters as every API takes them: a JSON schema whose root says `"type": "object"` and has properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agentkit.schemas import find_definition
from agentkit.values import copied

__all__ = ["as_object_schema"]

# OpenAI: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level";
# Anthropic: "input_schema does not support oneOf, allOf, or anyOf at the top level".
_REFUSED = frozenset({"anyOf", "oneOf", "allOf", "enum", "const", "not"})
_CHOICES = ("anyOf", "oneOf")
_MOST = 50  # schemas that are merged into one root


def as_object_schema(schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Returns the schema with an object at its root, and the keywords of the root that could not be kept.

    A missing type is object, since arguments are one, and so is a list of types. A reference at the root is
    replaced by what it refers to, `allOf` and a choice with one object in it are merged into the root. Of several
    choices the properties of all are kept and those required that all require: this loses which belong together.
    A schema that is an object already is returned itself.
    """
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict) and not _is_combined(schema):
        return schema, ()
    merge = _Merge(schema)
    made = merge.merged(schema)
    root: dict[str, Any] = {"type": "object", "properties": {}}
    return root | {key: item for key, item in made.items() if key != "type"}, tuple(merge.lost)


def _is_combined(schema: Mapping[str, Any]) -> bool:
    return "$ref" in schema or not _REFUSED.isdisjoint(schema)


@dataclass(slots=True)
class _Merge:
    """References and combinations of a schema's root, merged into it; `lost` are the keywords that were lost."""

    root: Mapping[str, Any]
    lost: dict[str, None] = field(default_factory=dict[str, None])
    seen: int = 0

    def merged(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """One schema with its reference and its combinations merged into it."""
        self.seen += 1
        if self.seen > _MOST:  # definitions that refer to each other have no end
            self.lost["$ref"] = None
            return {}
        made: dict[str, Any] = {
            key: copied(item) for key, item in part.items() if key not in _REFUSED and key != "$ref"
        }
        target = find_definition(part.get("$ref"), self.root)
        if target is not None:
            made = _both(made, self.merged(target))
        elif "$ref" in part:
            self.lost["$ref"] = None
        for one in _branches(part, "allOf"):
            made = _both(made, self.merged(one))
        for key in _CHOICES:
            objects = [self.merged(one) for one in _branches(part, key) if _may_be_object(one, self.root)]
            if len(objects) > 1:
                self.lost[key] = None
            if objects:
                made = _both(made, _any(objects))
        self.lost.update(dict.fromkeys(sorted(part.keys() & {"enum", "const", "not"})))
        return made


def _branches(part: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = part.get(key)
    branches = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("Mapping[str, Any]", one) for one in branches if isinstance(one, Mapping)]


def _may_be_object(part: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """True if an object can be valid: what has another type, such as null, is no choice for arguments."""
    target = find_definition(part.get("$ref"), root)
    kind = part.get("type", None if target is None else target.get("type"))
    return kind is None or kind == "object" or (isinstance(kind, list) and "object" in cast("list[Any]", kind))


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """An object that both schemas allow; where they say something else of a keyword, the first is kept."""
    made = {**one, **other, **one}
    for key in ("properties", "$defs", "definitions"):
        if key in one and key in other:
            made[key] = {**one[key], **other[key], **one[key]}
    required = [*dict.fromkeys([*one.get("required", ()), *other.get("required", ())])]
    return {**made, "required": required} if required else made


def _any(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """An object that has the properties of all schemas, and requires what each requires."""
    made: dict[str, Any] = objects[0]
    for other in objects[1:]:
        ours: dict[str, Any] = made.get("properties", {})
        theirs: dict[str, Any] = other.get("properties", {})
        shared = {
            name: {"anyOf": [*_alternatives(ours[name]), theirs[name]]}
            for name in ours
            if name in theirs and ours[name] != theirs[name]
        }
        required: list[Any] = [name for name in made.get("required", ()) if name in other.get("required", ())]
        closed = made.get("additionalProperties") is other.get("additionalProperties") is False
        both: dict[str, Any] = _both(made, other) | {
            "properties": {**ours, **theirs, **ours, **shared},
            "required": required,
        }
        made = {key: item for key, item in both.items() if key != "additionalProperties" or closed}
    return made if made.get("required") else {key: item for key, item in made.items() if key != "required"}


def _alternatives(schema: Any) -> list[Any]:
    """The choices of a schema that is nothing but a choice; else the schema."""
    held = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    return cast("list[Any]", held["anyOf"]) if held.keys() == {"anyOf"} else [schema]
