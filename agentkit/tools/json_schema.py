"""Checks, closes and transforms the JSON schemas of tools and of structured output.

In a closed schema, each object requires all its properties and allows no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from agentkit.errors import MessageError, OptionError
from agentkit.json_values import copy_json
from agentkit.messages.parsed_reply import VALUE_KEY, create_adapter, find_root, has_object_root
from agentkit.messages.validation import JsonObject, Text, Validated, validated_dataclass
from agentkit.reprs import shorten_repr

__all__ = [
    "OutputLike",
    "OutputSchema",
    "as_output_schema",
    "check_schema",
    "close_schema",
    "find_definition",
    "has_type",
    "map_schema",
    "remove_titles",
]


@validated_dataclass
class OutputSchema(Validated):
    """Named JSON schema that a reply must match (structured output).

    Attributes:
        schema: JSON schema of an object.
        name: Name of the schema.
        description: Description for the model.
        strict: Value for the strict flag of APIs that have such a flag for structured output. True closes the
            schema (see `closed`) and sets the flag. If closing the schema would change its meaning, the schema is
            sent without the flag, and `Ledger.syntheses` has an entry. None sets the flag only if the schema is
            already closed.

    Raises:
        MessageError: The schema is malformed.
    """

    schema: JsonObject
    name: Text = "output"
    description: Text | None = None
    strict: bool | None = None

    def __post_init__(self) -> None:
        check_schema(self.schema, "schema")

    @property
    def is_any_object(self) -> bool:
        """True for `response_format="json_object"`, which asks for any JSON object.

        Such a request uses the JSON mode of the API, if the API has one, and contains no schema. False for a
        schema that the application passes, even if any object matches it. This schema is always sent, in the
        request or in the prompt.
        """
        return self.name == _JSON_OBJECT and self.schema == _ANY_OBJECT and self.strict is None

    @property
    def closed(self) -> bool:
        """True if the root is an object, and no object in the schema has optional or additional properties.

        APIs require such a schema in strict mode.
        """
        return _is_closed(self.schema)


OutputLike: TypeAlias = object
"""Any value that `as_output_schema` converts.

The alias is `object`, because Python has no annotation for a value that is a type such as `Answer | None`.
"""

_ANY_OBJECT: dict[str, Any] = {"type": "object"}
_JSON_OBJECT = "json_object"
_JSON_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_ADVICE = "Pass a type such as a pydantic model, a JSON schema, or 'json_object' for any JSON object."


def as_output_schema(output: object) -> OutputSchema | None:
    """Converts a `response_format` from the application to an `OutputSchema`.

    A schema whose root is not an object becomes the property `value` of an object, because APIs require an object.
    `Msg.parsed` reads the value from this object.

    Args:
        output: `OutputSchema`, type, dict, or `"json_object"`. For a type, pydantic derives a schema, which is
            then closed (see `OutputSchema.closed`). A dict is a JSON schema, `{"name": …, "schema": …}`, or
            OpenAI's `response_format`. `"json_object"` and `{"type": "json_object"}` ask for any JSON object. For
            None, the result is None.

    Raises:
        OptionError: The value is not a schema.
    """
    if output is None:
        return None
    output = output if isinstance(output, OutputSchema) else _read_output(output)
    schema = find_root(output.schema)
    if has_object_root(schema):
        schema = schema if "type" in schema else {"type": "object", **schema}
    else:
        _check_type(schema)
        schema = _wrap_schema(output.schema)
    return output if schema == output.schema else replace(output, schema=schema)


def _read_output(value: object) -> OutputSchema:
    if value == _JSON_OBJECT or value == {"type": _JSON_OBJECT}:
        return OutputSchema(_ANY_OBJECT, name=_JSON_OBJECT)
    if isinstance(value, Mapping):
        return _schema_from_dict(cast("Mapping[str, Any]", value))
    if isinstance(value, str):
        raise OptionError("response_format", f"expected a schema, got {shorten_repr(value, 60)}", _ADVICE)
    _, schema = create_adapter(value, "response_format")
    return OutputSchema(close_schema(remove_titles(schema)), getattr(value, "__name__", "output"))


def _check_type(schema: Mapping[str, Any]) -> None:
    """Raises OptionError if the root of a schema has a type that JSON Schema does not define."""
    declared: object = schema.get("type", [])
    types = cast("list[object]", declared) if isinstance(declared, list) else [declared]
    if not all(isinstance(name, str) and name in _JSON_TYPES for name in types):
        reason = f'the root type must be a JSON type such as "object", got {shorten_repr(schema["type"], 60)}'
        raise OptionError("response_format", reason, _ADVICE)


def _wrap_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of an object whose property `value` has the given schema.

    Definitions stay at the root, where references expect them.
    """
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inner = {key: item for key, item in schema.items() if key not in definitions}
    wrapped = {
        "type": "object",
        "properties": {VALUE_KEY: inner},
        "required": [VALUE_KEY],
        "additionalProperties": False,
        **definitions,
    }
    return cast("dict[str, Any]", map_schema(wrapped, _move_reference))


def _move_reference(part: dict[str, Any]) -> dict[str, Any]:
    """Updates a `$ref` that points into the old root schema. The old root is now the property `value`."""
    reference: object = part.get("$ref")
    if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
        return part
    if reference.startswith(("#/$defs/", "#/definitions/")):
        return part
    return {**part, "$ref": f"#/properties/{VALUE_KEY}{reference[1:]}"}


def find_definition(reference: object, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the part of `root` that a `$ref` such as `#/$defs/City` refers to (JSON pointer, RFC 6901).

    Returns None if the reference has another format, or if `root` has no such part.
    """
    if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
        return None
    definition: object = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        is_object = isinstance(definition, Mapping)
        definition = cast("Mapping[str, object]", definition).get(name) if is_object else None
    return cast("Mapping[str, Any]", definition) if isinstance(definition, Mapping) else None


def has_type(schema: Mapping[str, Any], name: str) -> bool:
    """Returns True if the `type` of a schema is `name`, or is a list that contains `name`."""
    types = schema.get("type")
    return types == name or (isinstance(types, list) and name in cast("list[Any]", types))


def _schema_from_dict(data: Mapping[str, Any]) -> OutputSchema:
    inner = data.get("json_schema")
    holder: Mapping[str, Any] = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else data
    has_name = isinstance(holder.get("schema"), Mapping)
    try:
        if has_name:
            name = holder.get("name") or "output"
            return OutputSchema(holder["schema"], name, holder.get("description"), holder.get("strict"))
        return OutputSchema(dict(data))
    except MessageError as error:
        path = error.place.removeprefix("OutputSchema").removeprefix("" if has_name else ".schema")
        raise OptionError(f"response_format{path}", error.reason, "Pass a JSON schema.") from None


def remove_titles(schema: Any) -> Any:
    """Returns a schema without the keyword `title`, which pydantic generates. A property named `title` remains."""
    return map_schema(schema, lambda part: {key: item for key, item in part.items() if key != "title"})


_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties"})
_NESTED = frozenset({"items", "anyOf", "oneOf", "allOf", "not", "prefixItems", "additionalProperties"})
_NULLABLE = frozenset({"const", "default", "example"})


def check_schema(schema: Any, place: str) -> bool:
    """Checks the structure of a schema. Returns True if `map_schema` would remove keywords with the value null.

    The names of the keywords are not checked, because each provider supports different keywords.

    Raises:
        MessageError: The value of a keyword such as `properties` is not an object.
    """
    has_nulls = False
    pending: list[tuple[Any, str]] = [(schema, place)]
    while pending:
        part, part_place = pending.pop()
        if isinstance(part, list):
            pending.extend((item, f"{part_place}[{index}]") for index, item in enumerate(cast("list[Any]", part)))
        elif isinstance(part, dict):
            for key, item in cast("dict[str, Any]", part).items():
                if item is None:
                    has_nulls = has_nulls or key not in _NULLABLE
                elif key in _NAMED:
                    if not isinstance(item, dict):
                        reason = f"expected an object, got {shorten_repr(item, 60)}"
                        raise MessageError(f"{part_place}.{key}", reason, "Pass a valid JSON schema.")
                    named = cast("dict[str, Any]", item).items()
                    pending.extend((inner, f"{part_place}.{key}.{name}") for name, inner in named)
                elif key in _NESTED:
                    pending.append((item, f"{part_place}.{key}"))
    return has_nulls


def close_schema(schema: Any) -> Any:
    """Returns a closed copy of a schema, without default values.

    In the copy, each object with properties requires all its properties and allows no others.
    """
    return map_schema(schema, _close_object)


def _close_object(schema: dict[str, Any]) -> dict[str, Any]:
    closed = {key: item for key, item in schema.items() if key != "default"}
    if "properties" in schema:
        closed |= {"additionalProperties": False, "required": list(schema["properties"])}
    return closed


def map_schema(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Returns a copy of a schema in which `change` replaces each subschema. Omits keywords with the value null.

    `change` takes a subschema and returns the replacement. The innermost subschemas are replaced first.
    """
    if isinstance(schema, list):
        return [map_schema(item, change) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    mapped: dict[str, Any] = {}
    for key, item in cast("dict[str, Any]", schema).items():
        if item is None and key not in _NULLABLE:
            continue
        if key in _NAMED:
            named = cast("dict[str, Any]", item).items()
            mapped[key] = {name: map_schema(inner, change) for name, inner in named}
        elif key in _NESTED:
            mapped[key] = map_schema(item, change)
        else:
            mapped[key] = copy_json(item)
    return change(mapped)


def _is_closed(schema: dict[str, Any]) -> bool:
    are_closed: list[bool] = []

    def inspect_object(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") == "object" or "properties" in part:
            names = list(part.get("properties", {}))
            required = sorted(part.get("required", []))
            are_closed.append(part.get("additionalProperties") is False and required == sorted(names))
        return part

    map_schema(schema, inspect_object)
    return schema.get("type") == "object" and all(are_closed)
