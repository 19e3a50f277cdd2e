"""Published rules of APIs for tool schemas, and of OpenAI for schemas with `strict: true`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

__all__ = ["find_object_problems", "find_strict_problems"]

# "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (error text
# of both OpenAI APIs); "input_schema does not support oneOf, allOf, or anyOf at the top level" (Anthropic).
_FORBIDDEN_AT_ROOT: Final = ("oneOf", "anyOf", "allOf", "enum", "not", "const", "$ref")


def find_object_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the problems of a schema of tool arguments."""
    if schema.get("type") != "object":
        yield f"its type is {schema.get('type')!r}"
    if not isinstance(schema.get("properties"), dict):
        yield "object schema missing properties"
    for key in _FORBIDDEN_AT_ROOT:
        if key in schema:
            yield f"{key} at the top level"


# developers.openai.com/api/docs/guides/structured-outputs#supported-schemas
_TYPES: Final = ("string", "number", "boolean", "integer", "object", "array", "null")
_KEYWORDS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("pattern", "format"),
    "number": ("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    "array": ("items", "minItems", "maxItems"),
    "object": ("properties", "required", "additionalProperties"),
}
_COMMON_KEYWORDS: Final = (
    "type",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "definitions",
    "title",
    "description",
)
_FORMATS: Final = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
_MAX_DEPTH: Final = 10


def find_strict_problems(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yields the rules of strict mode that a schema breaks, with their places."""
    yield from find_object_problems(schema)
    yield from _find_problems(schema, schema, "schema", 1)
    for holder in ("$defs", "definitions"):
        for name, child in cast("dict[str, Any]", schema.get(holder, {})).items():
            yield from _find_problems(child, schema, f"schema.{holder}.{name}", 1)


def _find_problems(node: Any, root: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{place}: no object"
        return
    part = cast("dict[str, Any]", node)
    allowed = {*_COMMON_KEYWORDS, *(key for keys in _KEYWORDS.values() for key in keys)}
    yield from (f"{place}: {key!r} is not permitted" for key in part if key not in allowed)
    yield from (f"{place}: null {key}" for key, item in part.items() if item is None and key != "const")
    if "$ref" in part:
        yield from _find_reference_problems(part, root, place)
        return
    if not part.keys() & {"type", "anyOf", "enum", "const"}:
        yield f"{place}: schema must have a 'type' key"
    if part.get("format", _FORMATS[0]) not in _FORMATS:
        yield f"{place}: {part['format']!r} is not a valid format"
    for number, branch in enumerate(part.get("anyOf", [])):
        yield from _find_problems(branch, root, f"{place}.anyOf[{number}]", depth)
    kinds: Any = part.get("type", [])
    for kind in cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            yield f"{place}: type {kind!r}"
        if kind in ("object", "array") and depth > _MAX_DEPTH:
            yield f"{place}: nested deeper than {_MAX_DEPTH} levels"
        if kind == "object":
            yield from _find_object_problems(part, root, place, depth)
        if kind == "array":
            if "items" not in part:
                yield f"{place}: array schema missing items"
            yield from _find_problems(part.get("items", {"type": "null"}), root, f"{place}.items", depth + 1)


def _find_object_problems(part: dict[str, Any], root: Mapping[str, Any], place: str, depth: int) -> Iterator[str]:
    properties = cast("dict[str, Any]", part.get("properties", {}))
    required = cast("list[str]", part.get("required", []))
    if part.get("additionalProperties") is not False:
        yield f"{place}: 'additionalProperties' is required to be supplied and to be false"
    if "required" not in part or {*required} != {*properties}:
        yield f"{place}: 'required' must name every key in properties, and no other"
    for name, inner in properties.items():
        yield from _find_problems(inner, root, f"{place}.properties.{name}", depth + 1)


def _find_reference_problems(part: dict[str, Any], root: Mapping[str, Any], place: str) -> Iterator[str]:
    if len(part) > 1:
        yield f"{place}: $ref cannot have keywords {sorted(part.keys() - {'$ref'})}"
    target: object = root
    for step in part["$ref"].removeprefix("#").split("/")[1:]:
        target = cast("dict[str, object]", target).get(step) if isinstance(target, dict) else None
    if not part["$ref"].startswith("#") or target is None:
        yield f"{place}: reference to {part['$ref']!r} cannot be resolved"
