"""Base class of messages, blocks, sources and tools, which are immutable pydantic dataclasses.

pydantic validates and copies the arguments of each constructor. `ValidatedType` converts pydantic's errors to
`MessageError`, which has the path of the invalid value. A string is invalid if UTF-8 cannot encode the string, and
a JSON value is invalid if it contains such a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar, cast, dataclass_transform

from pydantic import AfterValidator, ConfigDict, JsonValue, Strict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import to_json

from agentkit.json_values import is_encodable
from agentkit.messages.validation_errors import to_message_error
from agentkit.reprs import bounded_repr

__all__ = [
    "Json",
    "JsonObject",
    "ORDINARY_BUILDERS",
    "SEQUENCE_TYPES",
    "Text",
    "UncheckedJsonObject",
    "Validated",
    "ValidatedType",
    "copy_object",
    "is_text",
    "same_json",
    "slot_setter",
    "validated_dataclass",
]

_Class = TypeVar("_Class", bound=type[Any])

# With `defer_build`, pydantic builds the schema of a class on first use, so that importing agentkit is fast.
_CONFIG: Final = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)


# -- field types ----------------------------------------------------------------------------------------------


def _check_encodable(text: str) -> str:
    """Raises ValueError if a string has a lone surrogate, because no API accepts such a string."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the string has a lone surrogate at character {error.start}") from None
    return text


Text = Annotated[str, Strict(), AfterValidator(_check_encodable)]
"""A string that UTF-8 can encode."""


def is_text(value: object) -> bool:
    """Returns True if the type of a value is exactly `str` and UTF-8 can encode the value."""
    return type(value) is str and (value.isascii() or is_encodable(value))


def _check_writable(value: Any) -> Any:
    """Raises ValueError if a string in a JSON value has a lone surrogate, which UTF-8 cannot encode."""
    try:
        to_json(value)
    except ValueError as error:
        raise ValueError(f"the value cannot be written as JSON: {error}") from None
    return value


# pydantic copies the lists and dicts in a JSON value, so that later changes by the application have no effect.
if TYPE_CHECKING:
    Json: TypeAlias = Any
    JsonObject: TypeAlias = dict[str, Any]
    UncheckedJsonObject: TypeAlias = dict[str, Any]
else:
    Json = Annotated[JsonValue, AfterValidator(_check_writable)]
    """Any JSON value."""
    JsonObject = Annotated[dict[str, JsonValue], AfterValidator(_check_writable)]
    """A JSON object."""
    UncheckedJsonObject = dict[str, JsonValue]
    """A JSON object. The check for lone surrogates is in `ToolUseBlock.__post_init__`, and not in this type."""


_object_reader: TypeAdapter[JsonObject] = TypeAdapter(
    JsonObject, config=ConfigDict(allow_inf_nan=False, defer_build=True)
)


def copy_object(value: object) -> JsonObject | None:
    """Returns a deep copy of a JSON object. Returns None if the value is not a valid `JsonObject`."""
    try:
        return _object_reader.validate_python(value)
    except ValidationError:
        return None


# -- classes --------------------------------------------------------------------------------------------------

ORDINARY_BUILDERS: Final[dict[type, Callable[..., Any]]] = {}
"""Maps some classes to functions that create an instance without pydantic, because pydantic is slower.

A function returns None or raises TypeError if an argument is invalid, or has a type that only pydantic checks.
pydantic then validates the arguments.
"""

SEQUENCE_TYPES: Final = frozenset({list, tuple})
"""Types of block sequences that the functions in `ORDINARY_BUILDERS` accept."""

if TYPE_CHECKING:
    ValidatedType = type
else:

    class ValidatedType(type):
        """Metaclass of validated classes, which converts pydantic's errors to `MessageError`.

        A wrapper around `__init__` would not work, because pydantic replaces the method when it builds the schema.
        """

        @property
        def __signature__(cls) -> Signature:
            """Signature of the constructor. Its parameters have the types that callers may pass."""
            declared = getattr(cls, "_declared_init", None)
            return _field_signature(cls) if declared is None else _declared_signature(declared)

        @__signature__.setter
        def __signature__(cls, value: Signature) -> None:
            """Ignores the signature that pydantic assigns, so that the computed signature remains."""

        def __setattr__(cls, name: str, value: Any) -> None:
            """Sets an attribute. A new `__init__` gets the signature of the class, for documentation tools."""
            if name == "__init__" and not hasattr(value, "__signature__"):
                this = Parameter("self", Parameter.POSITIONAL_ONLY)
                value.__signature__ = Signature([this, *signature(cls).parameters.values()])
                value.__module__ = cls.__module__
            super().__setattr__(name, value)

        def __call__(cls, *args: object, **kwargs: object) -> object:  # noqa: D102
            build = ORDINARY_BUILDERS.get(cls)
            if build is not None:
                try:
                    value = build(*args, **kwargs)
                except TypeError:
                    value = None
                if value is not None:
                    return value
            try:
                return type.__call__(cls, *args, **kwargs)
            except ValidationError as error:
                return _convert_or_raise(cls, error, args, kwargs)


class Validated(metaclass=ValidatedType):
    """Base class of validated dataclasses.

    A subclass may have slots that are not fields, for results computed from its fields. Equality, `repr`, JSON,
    copies, pickles and `dataclasses.asdict` ignore these slots.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        """Returns the state for copies and pickles. The state contains the fields but no computed results."""
        values = {field.name: getattr(self, field.name) for field in fields(cast("Any", self)) if field.init}
        return (_rebuild, (type(self), values))


def _rebuild(cls: type[Any], values: dict[str, Any]) -> Any:
    return cls(**values)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def validated_dataclass(cls: _Class) -> _Class:
    """Converts a subclass of `Validated` to a frozen pydantic dataclass with slots and a repr of limited length.

    A class may declare `__init__` without a body if its constructor accepts more types than its fields have.
    pydantic replaces the method, but `inspect.signature` and `help` show the declared parameters.
    """
    declared: Callable[..., None] | None = cls.__dict__.get("__init__")
    cast("Any", cls).__repr__ = bounded_repr
    if declared is not None:
        cls._declared_init = staticmethod(declared)
    return cast("_Class", dataclass(frozen=True, slots=True, repr=False, config=_CONFIG)(cls))


def slot_setter(cls: type[Any], name: str) -> Callable[[Any, Any], None]:
    """Returns a function that sets a slot of a frozen instance."""
    setter: Callable[[Any, Any], None] = cls.__dict__[name].__set__
    return setter


def _declared_signature(declared: Callable[..., None]) -> Signature:
    _, *parameters = signature(declared).parameters.values()
    return Signature(parameters)


def _field_signature(cls: type[Any]) -> Signature:
    declared: dict[str, Field[Any]] = getattr(cls, "__dataclass_fields__", {})
    initial = [field for field in declared.values() if field.init]
    return Signature([_parameter(field) for field in sorted(initial, key=lambda field: field.kw_only is True)])


def _parameter(field: Field[Any]) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
    default = Parameter.empty if field.default is MISSING else field.default
    if callable(field.default_factory):
        default = ...
    annotation = _ALIAS.sub(lambda match: _ALIASES[match[0]], str(field.type))
    return Parameter(field.name, kind, default=default, annotation=annotation)


_ALIASES: Final = {
    "Text": "str",
    "Json": "object",
    "JsonObject": "dict[str, object]",
    "UncheckedJsonObject": "dict[str, object]",
}
"""Maps the internal names of field types to the type names that signatures show."""
_ALIAS: Final = re.compile(rf"\b({'|'.join(_ALIASES)})\b")


def _convert_or_raise(cls: Any, error: ValidationError, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Creates an instance from arguments that pydantic refused, if the class can convert the arguments.

    Raises:
        MessageError: If the class cannot convert the arguments.
    """
    positional = [field.name for field in fields(cls) if field.init and not field.kw_only]
    convert = getattr(cls, "_convert_refused", None)
    values = convert and convert({**dict(zip(positional, args, strict=False)), **kwargs})
    if values:
        return cls(**values)
    raise to_message_error(cls.__name__, error, positional) from None


# -- JSON -----------------------------------------------------------------------------------------------------


def same_json(first: Any, second: Any) -> bool:
    """Returns True if two JSON values are equal, in any order of keys. `1`, `1.0` and `true` are not equal."""
    if isinstance(first, dict):
        pairs = cast("dict[str, Any]", first).items()
        if not isinstance(second, dict) or first.keys() != cast("dict[str, Any]", second).keys():
            return False
        return all(same_json(item, second[key]) for key, item in pairs)
    if isinstance(first, list):
        items = cast("list[Any]", first)
        if not isinstance(second, list) or len(items) != len(cast("list[Any]", second)):
            return False
        return all(same_json(*pair) for pair in zip(items, cast("list[Any]", second), strict=True))
    return bool(first == second) and _number_type(first) is _number_type(second)


def _number_type(value: Any) -> type | None:
    return next((number for number in (bool, int, float) if isinstance(value, number)), None)
