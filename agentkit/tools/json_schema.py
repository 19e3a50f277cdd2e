"""JSON schemas: their checks and their closed form, and the form that an answer must have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from agentkit.errors import MessageError, OptionError
from agentkit.json_values import copy_json
from agentkit.messages.validation import JsonObject, Text, Validated, validated_dataclass

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
    """The form that the answer must have: a JSON schema under a name.

    `strict` is the flag of the APIs that have one for answers: True closes the schema if that changes nothing, and
    is left out otherwise (see `Ledger.syntheses`); None sets the flag for a schema that is closed already.

    `closed` is whether every object names all its properties as required and allows no other, which is
    what the providers' strict modes ask for.
    """

    schema: JsonObject
    name: Text = "output"
    description: Text | None = None
    strict: bool | None = None

    def __post_init__(self) -> None:
        check_schema(self.schema, "schema")

    @property
    def closed(self) -> bool:
        """Whether strict modes take the schema as it is."""
        return _is_closed(self.schema)


OutputLike: TypeAlias = OutputSchema | type[Any] | Mapping[str, Any]


def as_output_schema(found: OutputLike | None) -> OutputSchema | None:
    """A schema from what callers give: an OutputSchema, a pydantic model or any type pydantic knows, or a dict.

    A dict is a JSON schema, `{"name": …, "schema": …}`, or OpenAI's `response_format` object. A type's
    schema is closed (see `OutputSchema.closed`), since pydantic checks the answer anyway.
    """
    if found is None:
        return None
    output = found if isinstance(found, OutputSchema) else _read_output(found)
    schema = _rooted(output.schema)
    if schema.get("type", "object") != "object" or ("type" not in schema and schema.keys() & {"anyOf", "oneOf"}):
        raise OptionError("response_format", "the schema's root is no object", "Wrap it: {'answer': …}.")
    schema = schema if "type" in schema else {"type": "object", **schema}
    return output if schema == output.schema else replace(output, schema=schema)


def _read_output(found: type[Any] | Mapping[str, Any]) -> OutputSchema:
    if isinstance(found, Mapping):
        return _schema_from_dict(found)
    if isinstance(found, str):
        raise OptionError("response_format", f"{found!r} is no schema", "Give a pydantic model or a JSON schema.")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", found))
        schema = adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise OptionError("response_format", reason, "Give a pydantic model or a JSON schema.") from None
    return OutputSchema(close_schema(remove_titles(schema)), getattr(found, "__name__", "output"))


def _rooted(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what its root refers to in the root itself, where providers want it."""
    for holder in ("$defs", "definitions"):
        name = str(schema.get("$ref", "")).removeprefix(f"#/{holder}/")
        if name in schema.get(holder, {}):
            return {**schema[holder][name], holder: schema[holder]}
    return schema


def find_definition(reference: object, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns what a `$ref` within a schema refers to (a JSON pointer, RFC 6901); None for any other reference."""
    if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
        return None
    found: object = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None


def has_type(schema: Mapping[str, Any], name: str) -> bool:
    """Returns True if a schema names a type, alone or in a list of types."""
    types = schema.get("type")
    return types == name or (isinstance(types, list) and name in cast("list[Any]", types))


def _schema_from_dict(found: Mapping[str, Any]) -> OutputSchema:
    inner = found.get("json_schema")
    holder: Mapping[str, Any] = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else found
    named = isinstance(holder.get("schema"), Mapping)
    try:
        if named:
            name = holder.get("name") or "output"
            return OutputSchema(holder["schema"], name, holder.get("description"), holder.get("strict"))
        return OutputSchema(dict(found))
    except MessageError as error:
        raise OptionError("response_format", error.reason, "Give a JSON schema.") from None


def remove_titles(schema: Any, is_names: bool = False) -> Any:
    """The schema without pydantic's made-up titles; a property called `title` stays."""
    if isinstance(schema, list):
        return [remove_titles(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        key: remove_titles(item, is_names=not is_names and key in {"properties", "$defs"})
        for key, item in cast("dict[str, Any]", schema).items()
        if is_names or key != "title"
    }


_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties"})
_NESTED = frozenset({"items", "anyOf", "oneOf", "allOf", "not", "prefixItems", "additionalProperties"})


_NULLABLE = frozenset({"const", "default", "example"})


def check_schema(schema: Any, place: str) -> bool:
    """Returns True if some keyword is null, which says nothing (`map_schema` leaves it out).

    Raises MessageError for a schema whose shape nobody could follow; its keywords are the provider's to judge.
    """
    has_nulls = False
    waiting: list[tuple[Any, str]] = [(schema, place)]
    while waiting:
        part, where = waiting.pop()
        if isinstance(part, list):
            waiting.extend((item, f"{where}[{at}]") for at, item in enumerate(cast("list[Any]", part)))
        elif isinstance(part, dict):
            for key, item in cast("dict[str, Any]", part).items():
                if item is None:
                    has_nulls = has_nulls or key not in _NULLABLE
                elif key in _NAMED:
                    if not isinstance(item, dict):
                        reason = f"expected an object, got {type(item).__name__}"
                        raise MessageError(f"{where}.{key}", reason, "Mend the schema.")
                    named = cast("dict[str, Any]", item).items()
                    waiting.extend((inner, f"{where}.{key}.{name}") for name, inner in named)
                elif key in _NESTED:
                    waiting.append((item, f"{where}.{key}"))
    return has_nulls


def close_schema(schema: Any) -> Any:
    """The schema with every object closed: no further properties, all of them required."""
    return map_schema(schema, _close_object)


def _close_object(schema: dict[str, Any]) -> dict[str, Any]:
    closed = {key: item for key, item in schema.items() if key != "default"}
    if "properties" in schema:
        closed |= {"additionalProperties": False, "required": list(schema["properties"])}
    return closed


def map_schema(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a JSON schema with `change` applied to every subschema, innermost first, and no null keywords."""
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
    verdicts: list[bool] = []

    def look(part: dict[str, Any]) -> dict[str, Any]:
        if part.get("type") == "object" or "properties" in part:
            names = list(part.get("properties", {}))
            required = sorted(part.get("required", []))
            verdicts.append(part.get("additionalProperties") is False and required == sorted(names))
        return part

    map_schema(schema, look)
    return schema.get("type") == "object" and all(verdicts)
