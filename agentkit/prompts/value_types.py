"""`ValueType`: a type with the rules for writing its values in prompts and reading them from replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticCustomError, SchemaError, to_json, to_jsonable_python

from agentkit.errors import OptionError
from agentkit.json_values import as_object
from agentkit.messages.validation import same_json
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.lenient_json import read_strict_json
from agentkit.reprs import as_one_line

__all__ = ["ValueCategory", "ValueType", "as_json_value", "get_value_type"]

ValueCategory: TypeAlias = Literal["text", "code", "nullable_text", "mixed_text", "literal", "enum", "other"]
"""Group of types whose values are written and read in the same way.

`nullable_text` is a union of text and None. `mixed_text` is a union of text, None and other types. A union of text
and other types without None is `other`.
"""


@dataclass(frozen=True)
class ValueType:
    """A type, with its category and its validator.

    Attributes:
        annotation: The type.
        base: The type without the metadata of `Annotated`.
        category: See `ValueCategory`.
        members: Members of a `Literal` or an enum. Empty for other types.
    """

    annotation: Any
    base: Any
    category: ValueCategory
    members: tuple[Any, ...] = ()

    @cached_property
    def needs_validation(self) -> bool:
        """True if the type is not plain `str`, so that pydantic must validate even a text."""
        return self.annotation is not str

    @cached_property
    def json_members(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs `(JSON value, member)`, one for each member of the enum or `Literal`."""
        return tuple((as_json_value(member), member) for member in self.members)

    @cached_property
    def members_by_text(self) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
        """Maps each text to the members whose JSON value has this text, in two orders.

        Members whose JSON value is a string are last in the first order, and first in the second order.
        """
        pairs: dict[str, list[tuple[Any, Any]]] = {}
        for pair in self.json_members:
            pairs.setdefault(str(pair[0]), []).append(pair)
        orders: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
        for text, matches in pairs.items():
            texts = [member for json_value, member in matches if isinstance(json_value, str)]
            others = [member for json_value, member in matches if not isinstance(json_value, str)]
            orders[text] = [*others, *texts], [*texts, *others]
        return orders

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Validator of the type.

        Raises:
            OptionError: pydantic does not support the type or a constraint.
        """
        try:
            return TypeAdapter(self.annotation)
        except (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError, RecursionError) as error:
            text = as_one_line(str(error)) if isinstance(error, SchemaError) else str(error)
            reason = text.partition("\n")[0].rstrip(".")
            raise OptionError("type", reason, "Use a type that pydantic supports.") from None

    @cached_property
    def _validate(self) -> Callable[..., Any]:
        return self.adapter.validator.validate_python

    def validate(self, value: object) -> Any:
        """Validates a Python or JSON value. In a dict for a pydantic model, keys may be field names or aliases.

        A strict type, such as a pydantic model with `ConfigDict(strict=True)`, also accepts the JSON form of a
        value: a string for a date, or a list for a set.

        Raises:
            ValidationError: The value does not fit the type, or a constraint cannot be applied to the value.
        """
        try:
            return self._validate(value, by_alias=True, by_name=True)
        except ValidationError:
            json_text = _write_json(value) if self._is_strict else None
            if json_text is None:
                raise
        except TypeError as error:  # for example, pydantic cannot apply `ge=0` to a text of the type `int | str`
            if not str(error).startswith("Unable to apply constraint"):
                raise
            details = PydanticCustomError("constraint", "{reason}", {"reason": str(error)})
            raise ValidationError.from_exception_data(
                "value", [{"type": details, "loc": (), "input": value}]
            ) from None
        return self.adapter.validator.validate_json(json_text, by_alias=True, by_name=True)

    @cached_property
    def _is_strict(self) -> bool:
        """True if the type or a part of the type is strict, and so accepts some values only in JSON text."""
        return _has_strict_part(self.adapter.core_schema)

    def is_special(self, text: str) -> bool:
        """Returns True if a parser would read a text of this type as another value, unless the text is escaped."""
        if self.category == "text":
            return self.base is Reasoning and [*as_object(read_strict_json(text))] == ["content"]
        return text == "None" or (self.category == "mixed_text" and self.find_value(text) is not None)

    def find_value(self, text: str) -> Any:
        """Returns the value of a text that is strict JSON, or `True` or `False`.

        This method is for types of the category `mixed_text`. Returns None for any other text, and if the value is
        a string or null, or does not fit the type.
        """
        constants: dict[str, object] = {"True": True, "False": False}
        value = constants.get(text, read_strict_json(text) if text == text.strip() else None)
        if value is None or isinstance(value, str):
            return None
        try:
            parsed = self.validate(value)
        except ValidationError:
            return None
        return None if isinstance(parsed, str) or not _has_same_json(parsed, value) else parsed


def _has_strict_part(schema: object) -> bool:
    if isinstance(schema, Mapping):
        parts = cast("Mapping[str, object]", schema)
        return parts.get("strict") is True or any(map(_has_strict_part, parts.values()))
    return isinstance(schema, list | tuple) and any(map(_has_strict_part, cast("Sequence[object]", schema)))


def _write_json(value: object) -> bytes | None:
    try:
        return to_json(value, inf_nan_mode="constants")
    except (ValueError, RecursionError):  # JSON cannot represent the value
        return None


def _has_same_json(parsed: object, value: object) -> bool:
    if isinstance(value, dict | list):  # validation may add fields with defaults to an object
        return True
    return same_json(as_json_value(parsed), value) or value != value


def as_json_value(value: object) -> Any:
    """Converts a value to the JSON values that prompts show. NaN and infinity stay numbers.

    Parts that JSON cannot represent are converted with `str()`. If a part cannot be converted, the complete value
    is converted with `str()`. The items of a set are sorted by their JSON text, except in a pydantic model that
    uses `field_serializer` or `model_serializer`.

    Raises:
        OptionError: The value is nested too deeply.
    """
    try:
        json_value = to_jsonable_python(value, by_alias=False, inf_nan_mode="constants", fallback=str)
    except (ValueError, TypeError, RecursionError) as error:  # for example, bytes that are not UTF-8
        if type(error) in (ValueError, RecursionError):  # pydantic refuses values with more than 254 levels
            reason = "the value is nested too deeply, or refers to itself"
            advice = "Pass a value with fewer levels and without references to itself."
            raise OptionError("value", reason, advice) from None
        return str(value)
    if type(json_value) in _CONTAINERS and not _is_equal(value, json_value):
        _sort_sets(value, json_value)
    return json_value


_CONTAINERS: Final = (dict, list)


def _is_equal(value: object, json_value: object) -> bool:
    """Returns True if a value equals its JSON value, and so contains no set. Faster than a search for sets."""
    try:
        return bool(value == json_value)
    except Exception:  # `__eq__` of a part may raise any error, for example in numpy
        return False


def _sort_sets(value: Any, json_value: Any) -> None:
    """Sorts the lists that represent sets in a JSON value, because the order of a set differs between processes.

    Args:
        value: Value that was converted.
        json_value: Result of the conversion. The function changes this value in place.
    """
    if isinstance(value, RootModel):
        _sort_sets(cast("RootModel[Any]", value).root, json_value)
    elif isinstance(json_value, list):
        if isinstance(value, list | tuple | set | frozenset):
            _sort_parts(cast("Iterable[Any]", value), cast("list[Any]", json_value))
        if isinstance(value, set | frozenset):
            cast("list[Any]", json_value).sort(key=lambda item: json.dumps(item, ensure_ascii=False))
    elif isinstance(value, dict):
        _sort_parts(cast("dict[Any, Any]", value).values(), json_value.values())
    elif not _has_serializers(value):
        for name, item in json_value.items():
            if type(item) in _CONTAINERS:
                _sort_sets(getattr(value, name, None), item)


def _sort_parts(values: Iterable[Any], json_values: Iterable[Any]) -> None:
    for value, json_value in zip(values, json_values, strict=False):
        if type(json_value) in _CONTAINERS:
            _sort_sets(value, json_value)


def _has_serializers(value: object) -> bool:
    """Returns True if a value is a pydantic model with its own serializers, which may write a set in any order."""
    if not isinstance(value, BaseModel):
        return False
    decorators = type(value).__pydantic_decorators__
    return bool(decorators.field_serializers or decorators.model_serializers)


# -- categories -----------------------------------------------------------------------------------------------


_MAX_CACHED: Final = 1_024
_cached: dict[int, ValueType] = {}
"""Maps the `id()` of a type to its `ValueType`.

The key is not the type itself, because pydantic reads the equal types `int | str` and `str | int` differently.
"""


def get_value_type(annotation: Any) -> ValueType:
    """Returns the `ValueType` of a type. The cached result keeps the type alive, so that its id stays unique."""
    found = _cached.get(id(annotation))
    if found is None:
        if len(_cached) >= _MAX_CACHED:
            _cached.clear()
        base = _unwrap(annotation)
        members = _list_members(base)
        found = _cached[id(annotation)] = ValueType(annotation, base, _categorize(base, members), members)
    return found


def _unwrap(annotation: Any) -> Any:
    """Returns a type without `Annotated`, type aliases and `NewType`."""
    for _ in range(_MAX_WRAPPERS):
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__value__"):
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            break
    return annotation


_MAX_WRAPPERS: Final = 20


def _list_members(base: Any) -> tuple[Any, ...]:
    if get_origin(base) is Literal:
        return get_args(base)
    return tuple(cast("Sequence[Any]", base)) if isinstance(base, type) and issubclass(base, Enum) else ()


def _categorize(base: Any, members: tuple[Any, ...]) -> ValueCategory:
    if base is str or base is Reasoning:
        return "text"
    if isinstance(base, type) and issubclass(base, Code):
        return "code"
    if get_origin(base) is Literal:
        return "literal"
    if members:
        return "enum"
    is_union = get_origin(base) in (Union, UnionType)
    options: set[Any] = set(map(_unwrap, get_args(base))) if is_union else set()
    if not (options & {str, Reasoning} and options & {None, NoneType}):
        return "other"
    return "mixed_text" if options - {str, Reasoning, None, NoneType} else "nullable_text"
