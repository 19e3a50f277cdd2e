"""Nested tags of JSON values: `write_tags` writes, `read_tags` reads, and `describe_tags` describes them.

The tags are those of DSPy 3.4.1. Each item of a list has the tag `<item>`, and each key of an object has a tag of
its own. A key that cannot be the name of a tag has the tag `<entry key="…">`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Union, cast, get_args, get_origin

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from agentkit.errors import OptionError
from agentkit.json_values import as_list, as_object
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.lenient_json import read_json, read_strict_json
from agentkit.prompts.value_types import get_value_type
from agentkit.prompts.xml_elements import Element
from agentkit.prompts.xml_references import escape_references

__all__ = ["describe_tags", "has_tags", "is_list", "is_text_field", "read_tags", "write_tags"]


def has_tags(annotation: Any) -> bool:
    """Returns True if the values of a type are written as nested tags.

    These types are `list[…]`, `dict[…]`, TypedDicts, pydantic models, and unions of one of these types and None.
    Values of types that agentkit defines, such as `list[Citation]`, are written as JSON.
    """
    options = [option for option in get_args(annotation) if option is not NoneType]
    if len(options) == 1 and get_origin(annotation) in (Union, UnionType):
        annotation = options[0]
    origin, arguments = get_origin(annotation), get_args(annotation)
    item = arguments[0] if origin is list and arguments else annotation
    if isinstance(item, type) and item.__module__.startswith("agentkit."):
        return False
    is_model = isinstance(annotation, type) and origin is None and issubclass(annotation, BaseModel)
    is_typed_dict = hasattr(annotation, "__required_keys__")
    return origin in (list, dict) or is_typed_dict or is_model


def is_text_field(field: SignatureField) -> bool:
    """Returns True if a field is written as plain text, so that tags in its section are part of the text."""
    return get_value_type(field.type).category not in ("mixed_text", "other")


# -- schemas --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Schema:
    """JSON schema of a type or of a part of a type, with the definitions that the schema refers to."""

    schema: Mapping[str, Any]
    definitions: Mapping[str, Any]

    def part(self, schema: object) -> _Schema:
        """Returns the schema of a part of the type. A reference is replaced with its definition."""
        found = as_object(schema)
        return _Schema(self.definitions.get(_get_reference(found), found), self.definitions)

    @property
    def choices(self) -> list[_Schema]:
        """Schemas of the members of a union. Empty if the type is not a union."""
        return [self.part(choice) for choice in as_list(self.schema.get("anyOf", self.schema.get("oneOf")))]

    @property
    def type(self) -> object:
        """Name of the JSON type. None if the schema names no type."""
        return self.schema.get("type")

    @property
    def is_nullable(self) -> bool:
        """True if the type is a union with None."""
        return any(choice.type == "null" for choice in self.choices)

    @property
    def is_open(self) -> bool:
        """True if the schema allows any value."""
        return not self.schema.keys() - {"title", "description", "default"}

    def child(self, name: str) -> _Schema:
        """Returns the schema of a property. For an unknown name, returns the schema of additional properties."""
        properties = as_object(self.schema.get("properties"))
        return self.part(properties.get(name, self.schema.get("additionalProperties")))

    def fits(self, names: set[str]) -> bool:
        """Returns True if the type is an array of elements `item`, or an object that may have these keys."""
        if self.type == "array":
            return names == {"item"}
        if self.type != "object":
            return False
        known = as_object(self.schema.get("properties"))
        return bool(self.schema.get("additionalProperties")) or names <= known.keys()

    def choose(self, names: set[str]) -> _Schema:
        """Returns the union member that fits a value with children of these names.

        A value without children is a text. For such a value, returns the first member other than None. If no
        member fits, returns the first member that is neither a text nor None.
        """
        choices = [choice for choice in self.choices if choice.type != "null"]
        if not names:
            return choices[0] if choices else self
        nested = [choice for choice in choices if choice.type != "string"]
        fitting = [choice for choice in nested if choice.fits(names)]
        return next(iter((*fitting, *nested, *choices)), self)


def is_list(annotation: Any) -> bool:
    """Returns True if all values of a type are JSON arrays or None.

    Raises:
        OptionError: The type has no JSON schema.
    """
    root = _get_schema(annotation)
    schema = root.part(root.schema)
    types = {choice.type for choice in schema.choices or [schema]}
    return "array" in types and types <= {"array", "null"}


def _get_reference(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


@dataclass(frozen=True, eq=False)
class _Identity:
    """Cache key that compares types by identity, because `int | str == str | int`, but their schemas differ."""

    annotation: Any

    def __hash__(self) -> int:
        return id(self.annotation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.annotation is other.annotation


def _get_schema(annotation: Any) -> _Schema:
    """Returns the schema of a type. The properties have the names of the fields, not their aliases.

    Raises:
        OptionError: The type has no JSON schema.
    """
    return _build_schema(_Identity(annotation))


@lru_cache(1_024)
def _build_schema(key: _Identity) -> _Schema:
    try:
        schema = get_value_type(key.annotation).adapter.json_schema(by_alias=False)
    except PydanticUserError as error:
        reason = f"the type has no JSON schema ({error.message.partition(chr(10))[0]})"
        raise OptionError("type", reason, "Use a type that JSON can express.") from None
    return _Schema(schema, as_object(schema.get("$defs")))


def describe_tags(tag: str, annotation: Any) -> str:
    """Returns the tags of a type with `...` in place of the values.

    If a type contains itself, its second occurrence is written as `...`.

    >>> describe_tags("stops", list[str])
    '<stops><item>...</item></stops>'

    Raises:
        OptionError: The type has no JSON schema.
    """
    root = _get_schema(annotation)
    return _describe(tag, root.schema, root.definitions, frozenset())


def _describe(tag: str, schema: Mapping[str, Any], definitions: Mapping[str, Any], seen: frozenset[str]) -> str:
    if reference := _get_reference(schema):
        if reference in seen:
            return f"<{tag}>...</{tag}>"
        return _describe(tag, as_object(definitions.get(reference)), definitions, seen | {reference})
    if choices := as_list(schema.get("anyOf")):
        choice = next((choice for choice in choices if as_object(choice).get("type") != "null"), choices[0])
        return _describe(tag, as_object(choice), definitions, seen)
    if schema.get("type") == "array":
        return f"<{tag}>{_describe('item', as_object(schema.get('items')), definitions, seen)}</{tag}>"
    properties = as_object(schema.get("properties")).items()
    children = (_describe(name, as_object(child), definitions, seen) for name, child in properties)
    return f"<{tag}>{''.join(children) or '...'}</{tag}>"


# -- writing --------------------------------------------------------------------------------------------------

_MAX_DEPTH: Final = 100
"""Maximum number of nested tags."""


def write_tags(value: object, tag: str) -> str:
    """Writes a JSON value as nested tags on one line. Values inside 100 other tags are written as texts.

    >>> write_tags({"name": "R&D", "sizes": [1, None], "a b": []}, "team")
    '<team><name>R&amp;D</name><sizes><item>1</item><item /></sizes><entry key="a b" /></team>'
    """
    return _write(value, tag, "", 0)


def _write(value: object, tag: str, attribute: str, depth: int) -> str:
    opening = f"{tag}{attribute}"
    if value is None or value == []:
        return f"<{opening} />"
    if isinstance(value, list) and depth < _MAX_DEPTH:
        text = "".join(_write(item, "item", "", depth + 1) for item in cast("list[object]", value))
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        items = cast("dict[object, object]", value).items()
        text = "".join(_write_entry(str(key), item, depth + 1) for key, item in items)
    else:
        text = escape_references(str(cast("object", value)))
    return f"<{opening}>{text}</{tag}>"


def _write_entry(key: str, value: object, depth: int) -> str:
    if (key[:1] + key[1:].replace("-", "_").replace(".", "_")).isidentifier():
        return _write(value, key, "", depth)
    return _write(value, "entry", f" key={_quote(key)}", depth)


_ATTRIBUTE_REFERENCES: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)


def _quote(key: str) -> str:
    text = key.translate(_ATTRIBUTE_REFERENCES)
    if '"' not in text:
        return f'"{text}"'
    return f"'{text}'" if "'" not in text else '"{}"'.format(text.replace('"', "&quot;"))


# -- reading --------------------------------------------------------------------------------------------------


def read_tags(elements: Sequence[Element], annotation: Any) -> Iterator[Any]:
    """Yields the possible JSON values of elements with the same name. The first value that fits the type counts.

    The first value is read by the schema of the complete type. If the type is a union, each further value is read
    by the schema of one member. A number may be yielded as a text, because pydantic converts such a text. Tags
    inside 100 other tags are text.

    Raises:
        OptionError: The type has no JSON schema.
    """
    root = _get_schema(annotation)
    schema = root.part(root.schema)
    for candidate in (schema, *schema.choices):
        yield _read(elements, candidate, 0)


def _read(elements: Sequence[Element], schema: _Schema, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return elements[0].text
    element = elements[0]
    if schema.choices:
        if schema.is_nullable and element.is_blank:
            return None
        chosen = schema.choose({child.name for child in element.children})
        return _read(elements, chosen, depth + 1)
    if schema.type == "array":
        return _read_list(elements, schema, depth)
    if not element.children or schema.type == "string":
        texts = [_read_text(element, schema) for element in elements]
        return texts[0] if len(texts) == 1 or schema.type == "string" else texts
    if schema.is_open and all(child.name == "item" for child in element.children):
        return _read_list(elements, schema, depth)
    groups: dict[str, list[Element]] = {}
    for child in element.children:
        groups.setdefault(child.name, []).append(child)
    return {name: _read(children, schema.child(name), depth + 1) for name, children in groups.items()}


def _read_list(elements: Sequence[Element], schema: _Schema, depth: int) -> Any:
    """Reads a list from the `<item>` children of one element, from a JSON array in its text, or from all elements.

    In the last case, each element is an item of the list.
    """
    element = elements[0]
    if len(elements) == 1:
        if element.is_blank:
            return []
        if not element.children and element.text.startswith("["):
            return read_json(element.text, element.text)
        elements = [child for child in element.children if child.name == "item"] or elements
    return [_read([item], schema.part(schema.schema.get("items")), depth + 1) for item in elements]


_CONSTANTS: Final = {"True": True, "true": True, "False": False, "false": False}


def _read_text(element: Element, schema: _Schema) -> Any:
    """Reads the value of an element without children, by the type in the schema.

    If the schema allows any value, a number or boolean is read as such, and an empty tag is read as None.
    """
    text = element.text
    members = as_list(schema.schema.get("enum"))
    if members:
        return next((member for member in members if str(member) == text), text)
    if schema.type == "object" and element.is_blank:
        return {}
    if schema.is_open and element.is_empty_tag:
        return None
    if (schema.type == "boolean" or schema.is_open) and text in _CONSTANTS:
        return _CONSTANTS[text]
    if schema.type == "integer" or schema.is_open:
        number = read_strict_json(text)
        return number if type(number) in (int, float) else text
    return text
