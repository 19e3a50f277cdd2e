"""Strict mode: which schemas a target's `strict` flag accepts, and closing a schema where that changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentkit.schemas import find_definition

__all__ = ["StrictRules", "close_for_strict"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrictRules:
    """What a target demands of a schema under `strict: true`. Every object must be closed in any case.

    Attributes:
        keywords: The JSON schema keywords that it takes. Mere annotations besides these are left out.
        formats: The values of `format` that it takes.
        optional: Whether `required` may leave properties out.
        recursive: Whether a definition may refer to itself.
        depth: How deep objects and arrays may be nested; 0 is no known limit.
        outputs: Whether the schema of a response format has the flag too.

    """

    keywords: frozenset[str]
    formats: frozenset[str]
    optional: bool = False
    recursive: bool = True
    depth: int = 0
    outputs: bool = False


class _NotStrictError(Exception):
    """The schema cannot be strict; the message is the reason."""


def close_for_strict(schema: Mapping[str, Any], rules: StrictRules) -> tuple[dict[str, Any] | None, str]:
    """Returns the schema as strict mode takes it, or None and the reason why it would have to change its meaning.

    An object that requires all its properties and does not mention `additionalProperties` is closed. Further
    properties, optional properties and keywords that the target does not know are never taken away.
    """
    walk = _Walk(rules, schema)
    try:
        closed = walk.schema(schema, "", 1)
        if not rules.recursive and _is_recursive(closed):
            raise _NotStrictError("a definition refers to itself")
    except _NotStrictError as error:
        return None, str(error)
    return closed, ""


# What says nothing about which values are valid (JSON Schema 2020-12, validation, 9, and core, 8).
_ANNOTATIONS = frozenset(
    [
        *("default", "example", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$anchor", "$comment"),
        *("title", "description"),
    ]
)
_TYPED = ("type", "anyOf", "enum", "const", "$ref", "allOf")
_NAMED = ("properties", "$defs", "definitions")
_LISTED = ("anyOf", "allOf", "prefixItems")


@dataclass(frozen=True, slots=True)
class _Walk:
    rules: StrictRules
    root: Mapping[str, Any]

    def schema(self, part: object, place: str, depth: int) -> dict[str, Any]:
        """One subschema, closed. `place` is its path, "" at the root."""
        if not isinstance(part, Mapping):
            raise _NotStrictError(f"{place or 'the root'} is no object")
        found = cast("Mapping[str, Any]", part)
        kept = {key: item for key, item in found.items() if self._keeps(key, place)}
        if place and not any(key in kept for key in _TYPED):
            raise _NotStrictError(f"{place} has no type")
        self._check(kept, place, depth)
        if "$ref" in kept:
            return self._reference(kept, place)
        if _has_type(kept, "object") or "properties" in kept:
            kept = self._object(kept, place)
        return {key: self._inner(key, item, place, depth) for key, item in kept.items()}

    def _keeps(self, key: str, place: str) -> bool:
        if key in self.rules.keywords:
            return True
        if key in _ANNOTATIONS:
            return False
        raise _NotStrictError(f"{place or 'the root'} has the keyword {key!r}")

    def _check(self, part: Mapping[str, Any], place: str, depth: int) -> None:
        if part.get("format", "") not in {"", *self.rules.formats}:
            raise _NotStrictError(f"{place} has the format {part['format']!r}")
        if _has_type(part, "array") and "items" not in part:
            raise _NotStrictError(f"{place or 'the root'} is an array without items")
        nests = _has_type(part, "object") or _has_type(part, "array")
        if nests and self.rules.depth and depth > self.rules.depth:
            raise _NotStrictError(f"{place} is nested deeper than {self.rules.depth} levels")

    def _reference(self, part: dict[str, Any], place: str) -> dict[str, Any]:
        """A reference, which stands alone: "$ref cannot have keywords"; what stood beside it goes around it."""
        target = part["$ref"]
        if find_definition(target, self.root) is None:
            raise _NotStrictError(f"{place} refers to {target!r}, which is not in the schema")
        beside = {key: item for key, item in part.items() if key != "$ref"}
        if not place:
            raise _NotStrictError("the root is a reference")
        if beside.keys() - _ANNOTATIONS:
            raise _NotStrictError(f"{place} has {min(beside.keys() - _ANNOTATIONS)!r} beside a reference")
        return {"anyOf": [{"$ref": target}], **beside} if beside else {"$ref": target}

    def _object(self, part: dict[str, Any], place: str) -> dict[str, Any]:
        """An object, closed if it is meant to be complete."""
        properties = part.get("properties")
        names = [*cast("dict[str, Any]", properties)] if isinstance(properties, dict) else []
        listed = part.get("required")
        required = cast("list[Any]", listed) if isinstance(listed, list) else []
        if part.get("additionalProperties", False) is not False or (
            "additionalProperties" not in part and not names and place
        ):
            raise _NotStrictError(f"{place or 'the root'} allows further properties")
        if any(name not in names for name in required):
            raise _NotStrictError(f"{place or 'the root'} requires a property that it does not have")
        optional = [] if self.rules.optional else [name for name in names if name not in required]
        if optional:
            raise _NotStrictError(f"the property {place + '.' if place else ''}{optional[0]} is optional")
        return {**part, "properties": properties or {}, "required": required, "additionalProperties": False}

    def _inner(self, key: str, item: Any, place: str, depth: int) -> Any:
        """The value of a keyword, with the subschemas that it has."""
        prefix = f"{place}." if place else ""
        if key in _NAMED and isinstance(item, dict):
            deeper = depth + (key == "properties")
            named = cast("dict[str, Any]", item).items()
            return {name: self.schema(inner, f"{prefix}{name}", deeper) for name, inner in named}
        if key in _LISTED and isinstance(item, list):
            inners = cast("list[Any]", item)
            return [self.schema(inner, f"{prefix}{key}[{at}]", depth) for at, inner in enumerate(inners)]
        return self.schema(item, f"{prefix}items", depth + 1) if key == "items" else item


def _has_type(part: Mapping[str, Any], name: str) -> bool:
    found = part.get("type")
    return found == name or (isinstance(found, list) and name in cast("list[Any]", found))


def _is_recursive(schema: Mapping[str, Any]) -> bool:
    """Whether a definition reaches itself, or anything refers to the root."""
    holders = [
        (f"#/{holder}/{name}", item) for holder in _NAMED[1:] for name, item in schema.get(holder, {}).items()
    ]
    reached = {pointer: set(_references(item)) for pointer, item in holders}
    for middle, beyond in reached.items():
        for found in reached.values():
            if middle in found:
                found |= beyond
    return "#" in _references(schema) or any(pointer in found for pointer, found in reached.items())


def _references(part: object) -> list[str]:
    found: list[str] = []
    waiting: list[object] = [part]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            held = cast("dict[str, Any]", one)
            found += [held["$ref"]] if isinstance(held.get("$ref"), str) else []
            waiting.extend(held.values())
        elif isinstance(one, list):
            waiting.extend(cast("list[object]", one))
    return found
