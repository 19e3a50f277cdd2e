"""`ValueType`: a type with the rules for writing its values in prompts and reading them from replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import to_jsonable_python

from agentkit.errors import OptionError
from agentkit.json_values import as_object
from agentkit.messages.validation import same_json
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.lenient_json import read_strict_json

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
    def has_constraints(self) -> bool:
        """True for any type except `str`. pydantic must then validate a value even if it is a text."""
        return self.annotation is not str

    @cached_property
    def json_members(self) -> tuple[tuple[Any, Any], ...]:
        """Pairs `(JSON value, member)`, one for each member of the enum or `Literal`."""
        return tuple((as_json_value(member), member) for member in self.members)

    @cached_property
    def members_by_text(self) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
        """Members by the text of their JSON value, in two orders.

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
            OptionError: pydantic does not support the type.
        """
        try:
            return TypeAdapter(self.annotation)
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise OptionError("type", reason, "Use a type that pydantic supports.") from None

    @cached_property
    def _validate(self) -> Callable[..., Any]:
        return self.adapter.validator.validate_python

    def validate(self, value: object) -> Any:
        """Validates a Python or JSON value. Keys for the fields of models may be names or aliases.

        Raises:
            ValidationError: The value does not fit the type.
        """
        return self._validate(value, by_alias=True, by_name=True)

    def is_special(self, text: str) -> bool:
        """Returns True if a parser would read a text of this type as another value, unless the text is escaped."""
        if self.category == "text":
            return self.base is Reasoning and [*as_object(read_strict_json(text))] == ["content"]
        return text == "None" or (self.category == "mixed_text" and self.find_value(text) is not None)

    def find_value(self, text: str) -> Any:
        """Returns the value of a text that is strict JSON, or `True` or `False`, for a `mixed_text` type.

        Returns None for any other text. Also returns None if the value is a string or null, or does not fit the
        type.
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


def _has_same_json(parsed: object, value: object) -> bool:
    if isinstance(value, dict | list):  # defaults of a model may add fields to an object
        return True
    return same_json(as_json_value(parsed), value) or value != value


def as_json_value(value: object) -> Any:
    """Converts a value to the JSON values that prompts show. NaN and infinity stay numbers.

    Parts that JSON cannot represent are converted with `str()`. If a part cannot be converted, the complete value
    is converted with `str()`.

    Raises:
        OptionError: The value is nested too deeply.
    """
    try:
        return to_jsonable_python(value, by_alias=False, inf_nan_mode="constants", fallback=str)
    except (ValueError, TypeError, RecursionError) as error:  # such as bytes that are not UTF-8
        if type(error) in (ValueError, RecursionError):  # pydantic writes at most 254 levels
            reason = "the value is nested too deeply, or refers to itself"
            raise OptionError("value", reason, "Pass a value with fewer levels.") from None
        return str(value)


# -- categories -----------------------------------------------------------------------------------------------


_MAX_CACHED: Final = 1_024
_cached: dict[int, ValueType] = {}
"""Cached types by `id()`, because the equal types `int | str` and `str | int` are read differently by pydantic."""


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
