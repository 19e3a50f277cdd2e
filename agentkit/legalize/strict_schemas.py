"""Strict mode: changes a JSON schema so that an API accepts the schema together with `strict: true`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentkit.capabilities.groups import StrictRules
from agentkit.tools.json_schema import find_definition, has_type

__all__ = ["close_for_strict", "find_open_object"]


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
        The copy and an empty string. If the schema is refused, None and the reason.
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

    Closing such an object would change which values are valid. An object schema without `additionalProperties`
    counts only if it defines no properties, because the closed object could only be `{}`. Returns an empty string
    if there is no such object.
    """
    pending: list[tuple[str, object]] = [("", schema)]
    while pending:
        place, part = pending.pop()
        if not isinstance(part, Mapping):
            continue
        keywords = cast("Mapping[str, Any]", part)
        if has_type(keywords, "object") or "properties" in keywords:
            is_defined = any(keywords.get(key) for key in _DEFINING)
            if keywords.get("additionalProperties", not is_defined) is not False:
                return _schema_at(place)
        pending += reversed([*_list_inner(keywords, f"{place}." if place else "")])
    return ""


def _list_inner(schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    """Yields the place and the content of each schema directly inside a schema."""
    for key, item in schema.items():
        if key in _NAMED and isinstance(item, Mapping):
            yield from ((f"{prefix}{name}", inner) for name, inner in cast("Mapping[str, object]", item).items())
        elif key in _LISTED and isinstance(item, list):
            inners = enumerate(cast("list[object]", item))
            yield from ((f"{prefix}{key}[{index}]", inner) for index, inner in inners)
        elif key == "items":
            yield f"{prefix}items", item


# Keywords that can be removed, because they do not affect which values are valid (JSON Schema 2020-12:
# Validation, section 9; Core, section 8).
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
_DEFINING = ("properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
"""Keywords that can define the properties of an object."""


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

        APIs refuse annotations next to a reference ("$ref cannot have keywords"), but not next to an `anyOf`.
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
            raise _NotStrictError(f"the {_schema_at(place)} has the keyword {keyword!r} next to a reference")
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


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    """Returns True if a schema is recursive.

    A schema is recursive if the part that a reference points to contains the same reference, directly or through
    other references. The part can be a definition, a property, or the root.
    """
    reached = {pointer: set(_references(find_definition(pointer, schema))) for pointer in set(_references(schema))}
    for middle, beyond in reached.items():
        for pointers in reached.values():
            if middle in pointers:
                pointers |= beyond
    return any(pointer in pointers for pointer, pointers in reached.items())


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
