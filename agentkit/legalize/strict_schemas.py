"""Rules of APIs for enforced JSON schemas: changes a schema for strict mode, and finds refused output schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.groups import StrictRules
from agentkit.tools.json_schema import find_definition, has_type, map_schema

__all__ = ["close_for_strict", "explain_refusal", "find_open_object"]


class _NotStrictError(Exception):
    """Error for a schema that strict mode refuses. The text of the error is the reason."""


def close_for_strict(schema: Mapping[str, Any], rules: StrictRules) -> tuple[dict[str, Any] | None, str]:
    """Changes a copy of a schema so that strict mode accepts the copy.

    An object schema without `additionalProperties` gets `"additionalProperties": false`. Annotations that the
    target does not support, such as `title`, are removed.

    A schema is refused if it has other unsupported keywords, allows additional properties, or has optional
    properties that the target does not accept. Removing these parts would change which values are valid. A nested
    object schema with neither `properties` nor `additionalProperties` allows additional properties.

    Returns:
        A pair of the copy and an empty string. If the schema is refused, a pair of None and the reason.
    """
    walk = _Walk(rules, schema)
    try:
        closed = walk.schema(schema, "", 1)
        if not rules.can_recurse and _is_recursive(closed):
            raise _NotStrictError("a definition in the schema refers to itself")
    except _NotStrictError as error:
        return None, str(error)
    return closed, ""


def find_open_object(schema: Mapping[str, Any]) -> str:
    """Returns the name of the first object schema that allows additional properties, such as `schema at items`.

    Closing such an object would forbid properties that the schema describes. An object schema without
    `additionalProperties` counts in these cases:

    - The object schema has no `properties`. The closed object could only be `{}`.
    - The object schema is combined with other schemas (`allOf`, `anyOf`, `oneOf`, `$ref`).
      `"additionalProperties": false` would forbid the properties of these schemas.

    An object schema with `patternProperties` always counts. Returns an empty string if there is no such object.
    """
    pending: list[tuple[str, object, bool]] = [("", schema, False)]
    while pending:
        place, part, is_combined = pending.pop()
        if not isinstance(part, Mapping):
            continue
        keywords = cast("Mapping[str, Any]", part)
        target = find_definition(keywords.get("$ref"), schema) if is_combined else None
        described = keywords if target is None else target
        is_object = has_type(described, "object") or not described.keys().isdisjoint(_PROPERTIES)
        if is_object and _is_open(described, is_combined):
            return _schema_at(place)
        combines = is_object or is_combined or "allOf" in keywords
        inners = _list_inner(keywords, f"{place}." if place else "")
        pending += reversed([(name, inner, combines and key in _COMBINING) for key, name, inner in inners])
    return ""


def _is_open(schema: Mapping[str, Any], is_combined: bool) -> bool:
    if schema.get("patternProperties"):
        return True
    is_defined = bool(schema.get("properties")) and not is_combined
    is_open = not is_defined or any(key in schema for key in _COMBINING)
    return schema.get("additionalProperties", is_open) is not False


def explain_refusal(schema: Mapping[str, Any], capabilities: Capabilities) -> str:
    """Returns the condition under which the target refuses an output schema, such as `the schema is recursive`.

    Returns an empty string if the target accepts the schema.
    """
    open_object = find_open_object(schema) if capabilities.needs_closed_output else ""
    if open_object:
        return f"the {open_object} allows additional properties"
    recursion = capabilities.output_recursion
    if recursion == "none" and _is_recursive(schema):
        return "the schema is recursive"
    if recursion == "optional" and _is_recursive(schema, _remove_optional):
        return "a required property of the schema is recursive"
    return ""


def _list_inner(schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str, object]]:
    """Yields the keyword, the place and the content of each schema directly inside a schema."""
    for key, item in schema.items():
        if key in _NAMED and isinstance(item, Mapping):
            named = cast("Mapping[str, object]", item).items()
            yield from ((key, f"{prefix}{name}", inner) for name, inner in named)
        elif key in _LISTED and isinstance(item, list):
            inners = enumerate(cast("list[object]", item))
            yield from ((key, f"{prefix}{key}[{index}]", inner) for index, inner in inners)
        elif key == "items":
            yield key, f"{prefix}items", item


# Keywords that can be removed, because they do not affect which values are valid.
# Sources: JSON Schema 2020-12 Validation, section 9, and JSON Schema 2020-12 Core, section 8.
_ANNOTATIONS = frozenset(
    [
        *("default", "example", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$anchor", "$comment"),
        *("title", "description"),
    ]
)
_TYPED = ("type", "anyOf", "enum", "const", "$ref", "allOf")
_NAMED = ("properties", "$defs", "definitions")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_PROPERTIES = ("properties", "patternProperties")
_COMBINING = ("$ref", "anyOf", "oneOf", "allOf")
"""Keywords that combine a schema with other schemas."""


@dataclass(frozen=True, slots=True)
class _Walk:
    rules: StrictRules
    root: Mapping[str, Any]

    def schema(self, part: object, place: str, depth: int) -> dict[str, Any]:
        if not isinstance(part, Mapping):
            raise _NotStrictError(f"the {_schema_at(place)} is not a JSON object")
        items = cast("Mapping[str, Any]", part).items()
        keywords = {key: item for key, item in items if self._is_allowed(key, place)}
        if place and not any(key in keywords for key in _TYPED):
            raise _NotStrictError(f"the {_schema_at(place)} has no type")
        self._check(keywords, place, depth)
        if "$ref" in keywords:
            return self._reference(keywords, place)
        if has_type(keywords, "object") or "properties" in keywords:
            keywords = self._object(keywords, place)
        return {key: self._inner(key, item, place, depth) for key, item in keywords.items()}

    def _is_allowed(self, key: str, place: str) -> bool:
        if key in self.rules.keywords:
            return True
        if key in _ANNOTATIONS:
            return False
        raise _NotStrictError(f"the {_schema_at(place)} has the unsupported keyword {key!r}")

    def _check(self, part: Mapping[str, Any], place: str, depth: int) -> None:
        if part.get("format", "") not in {"", *self.rules.formats}:
            raise _NotStrictError(f"the {_schema_at(place)} has the unsupported format {part['format']!r}")
        if has_type(part, "array") and "items" not in part:
            raise _NotStrictError(f"the {_schema_at(place)} has type array, but no `items`")
        nests = has_type(part, "object") or has_type(part, "array")
        if nests and self.rules.max_depth and depth > self.rules.max_depth:
            raise _NotStrictError(f"the {_schema_at(place)} is nested deeper than {self.rules.max_depth} levels")

    def _reference(self, part: dict[str, Any], place: str) -> dict[str, Any]:
        """Returns a reference. A reference with annotations, such as a title, is put into an `anyOf`.

        APIs refuse annotations in a schema with `$ref` ("$ref cannot have keywords"), but not with `anyOf`.
        """
        target = part["$ref"]
        if find_definition(target, self.root) is None:
            raise _NotStrictError(
                f"the {_schema_at(place)} refers to {target!r}, which the root schema does not contain"
            )
        others = {key: item for key, item in part.items() if key != "$ref"}
        if not place:
            raise _NotStrictError("strict mode does not accept a reference at the schema root")
        if others.keys() - _ANNOTATIONS:
            keyword = min(others.keys() - _ANNOTATIONS)
            raise _NotStrictError(f"the {_schema_at(place)} combines the keyword {keyword!r} with `$ref`")
        return {"anyOf": [{"$ref": target}], **others} if others else {"$ref": target}

    def _object(self, part: dict[str, Any], place: str) -> dict[str, Any]:
        properties = part.get("properties")
        names = [*cast("dict[str, Any]", properties)] if isinstance(properties, dict) else []
        listed = part.get("required")
        required = cast("list[Any]", listed) if isinstance(listed, list) else []
        if part.get("additionalProperties", False) is not False or (
            "additionalProperties" not in part and not names and place
        ):
            raise _NotStrictError(f"the {_schema_at(place)} allows additional properties")
        if any(name not in names for name in required):
            raise _NotStrictError(f"the {_schema_at(place)} requires a property that it does not define")
        optional = [name for name in names if name not in required]
        if optional and not self.rules.can_omit_properties:
            name = f"{place}.{optional[0]}" if place else optional[0]
            raise _NotStrictError(f"the optional property {name} is not allowed in strict mode")
        return {**part, "properties": properties or {}, "required": required, "additionalProperties": False}

    def _inner(self, key: str, item: Any, place: str, depth: int) -> Any:
        prefix = f"{place}." if place else ""
        if key in _NAMED and isinstance(item, dict):
            deeper = depth + (key == "properties")
            named = cast("dict[str, Any]", item).items()
            return {name: self.schema(inner, f"{prefix}{name}", deeper) for name, inner in named}
        if key in _LISTED and isinstance(item, list):
            inners = cast("list[Any]", item)
            return [self.schema(inner, f"{prefix}{key}[{index}]", depth) for index, inner in enumerate(inners)]
        return self.schema(item, f"{prefix}items", depth + 1) if key == "items" else item


def _schema_at(place: str) -> str:
    return f"schema at {place}" if place else "schema root"


def _is_recursive(
    schema: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> bool:
    """Returns True if a schema is recursive.

    A schema is recursive if the part that a reference points to contains the same reference, directly or through
    other references. The part can be a definition, a property, or the root. `change` replaces each subschema of
    a part before the references in the part are listed.
    """
    parts = {pointer: find_definition(pointer, schema) for pointer in set(_references(schema))}
    reached = {
        pointer: set(_references(map_schema(part, change) if change else part)) for pointer, part in parts.items()
    }
    for middle, beyond in reached.items():
        for pointers in reached.values():
            if middle in pointers:
                pointers |= beyond
    return any(pointer in pointers for pointer, pointers in reached.items())


def _remove_optional(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema without the properties that `required` does not list."""
    if "properties" not in schema:
        return schema
    listed = schema.get("required")
    required = cast("list[Any]", listed) if isinstance(listed, list) else []
    properties = cast("dict[str, Any]", schema["properties"]).items()
    return {**schema, "properties": {name: inner for name, inner in properties if name in required}}


def _references(part: object) -> list[str]:
    references: list[str] = []
    pending: list[object] = [part]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            schema = cast("dict[str, Any]", item)
            references += [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
            pending.extend(schema.values())
        elif isinstance(item, list):
            pending.extend(cast("list[object]", item))
    return references
