"""`SignatureField`: an input or output of a signature. `InputField` and `OutputField` declare fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Final, Literal, TypedDict, Unpack, cast, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic_core import PydanticSerializationError, PydanticUndefined, SchemaError, to_json

from agentkit.argument_checks import check_names, check_option
from agentkit.errors import MessageError, OptionError, ParseError
from agentkit.messages.validation_errors import to_message_error
from agentkit.prompts.type_names import is_tool_calls
from agentkit.reprs import as_one_line, shorten_repr

__all__ = ["FieldDeclaration", "FieldOptions", "InputField", "OutputField", "SignatureField", "check_field_name"]


class FieldOptions(TypedDict, total=False):
    """Options of `InputField` and `OutputField`.

    An invalid constraint, such as the pattern `(`, causes an `OptionError` when the signature is created. Other
    constraints are checked only with values. For example, pydantic cannot apply `ge=0` to a text of the type
    `int | str`. Such a text in a reply causes a `ParseError`, and such a text in an input causes an `OptionError`.

    Attributes:
        desc: Description of the field for the model.
        description: Description of the field for the model. If `desc` is set, `description` is ignored.
        default: Value of an input that the caller does not pass, or of an output that the reply does not contain.
        default_factory: Function that returns the default.
        gt: Number that the value must be greater than.
        ge: Smallest allowed number.
        lt: Number that the value must be less than.
        le: Largest allowed number.
        min_length: Minimum number of characters or items.
        max_length: Maximum number of characters or items.
        multiple_of: Number that the value must be a multiple of.
        allow_inf_nan: False refuses infinite numbers and NaN.
        pattern: Regular expression that must match at least a part of the text. The prompt does not contain the
            expression.
        strict: True refuses values that need a conversion, such as "1" for an int.
        max_digits: Maximum number of digits of a Decimal.
        decimal_places: Maximum number of decimal places of a Decimal.
    """

    desc: str
    description: str
    default: Any
    default_factory: Callable[[], Any]
    gt: Any
    ge: Any
    lt: Any
    le: Any
    min_length: int
    max_length: int
    multiple_of: Any
    allow_inf_nan: bool
    pattern: str
    strict: bool
    max_digits: int
    decimal_places: int


_CONSTRAINTS: Final = tuple(
    name
    for name in FieldOptions.__annotations__
    if name not in ("desc", "description", "default", "default_factory")
)
_NO_EFFECT: Final = ("prefix", "format", "parser")  # options that have no effect in current versions of DSPy


def _no_constraints() -> Mapping[str, Any]:
    return MappingProxyType({})


def InputField(*, init: Literal[True] = True, **options: Unpack[FieldOptions]) -> Any:  # noqa: N802 - name in DSPy
    """Declares an input of a signature.

    Args:
        init: Not used at run time. Tells type checkers that an input is an argument of the signature.
        **options: See `FieldOptions`.

    Raises:
        OptionError: An option is unknown or invalid.
    """
    return _declare("InputField", False, cast("dict[str, Any]", options))


def OutputField(*, init: Literal[False] = False, **options: Unpack[FieldOptions]) -> Any:  # noqa: N802 - name in DSPy
    """Declares an output of a signature.

    Args:
        init: Not used at run time. Tells type checkers that an output is not an argument of the signature.
        **options: See `FieldOptions`.

    Raises:
        OptionError: An option is unknown or invalid.
    """
    return _declare("OutputField", True, cast("dict[str, Any]", options))


@dataclass(frozen=True)
class FieldDeclaration:
    """Result of `InputField` or `OutputField`: a field that has no name and no type yet.

    Attributes:
        is_output: True if the field is an output. False if it is an input.
        description: Description for the model. Empty if there is none.
        constraints: Maps the names of constraints in pydantic to their values. The prompt lists the constraints in
            this order.
        default: Default value. `PydanticUndefined` if there is none.
        default_factory: Function that returns the default. None if there is none.
    """

    is_output: bool
    description: str = ""
    constraints: Mapping[str, Any] = field(default_factory=_no_constraints, hash=False)
    default: Any = field(default=PydanticUndefined, hash=False)
    default_factory: Callable[[], Any] | None = None

    def with_type(self, name: str, type: Any) -> SignatureField:
        """Returns a field with a name and a type.

        Raises:
            OptionError: The name is not an identifier, or has two underscores at both ends. Or a constraint is
                invalid, such as a pattern that is not a regular expression.
        """
        check_field_name(name)
        is_annotated = get_origin(type) is Annotated
        plain, *metadata = get_args(type) if is_annotated else (type,)
        plain = NoneType if plain is None else plain
        field = SignatureField(
            name=name,
            type=plain,
            is_output=self.is_output,
            description=self.description,
            constraints=self.constraints,
            metadata=tuple(metadata),
            default=self.default,
            default_factory=self.default_factory,
        )
        field.check_constraints()
        return field


@dataclass(frozen=True)
class SignatureField:
    """Input or output of a signature.

    Attributes:
        name: Name of the field.
        type: Type of the value, without constraints and without `Annotated`.
        is_output: True if the field is an output. False if it is an input.
        description: Description for the model. Empty if there is none.
        constraints: Maps the names of constraints in pydantic to their values. The prompt lists the constraints in
            this order.
        metadata: Metadata of a type that was declared with `Annotated`.
        default: Default value. `PydanticUndefined` if there is none (see `is_required`).
        default_factory: Function that returns the default. None if there is none.
    """

    name: str
    type: Any = field(hash=False)
    is_output: bool
    description: str = ""
    constraints: Mapping[str, Any] = field(default_factory=_no_constraints, hash=False)
    metadata: tuple[Any, ...] = field(default=(), hash=False)
    default: Any = field(default=PydanticUndefined, hash=False)
    default_factory: Callable[[], Any] | None = None

    @property
    def is_required(self) -> bool:
        """True if the field has no default."""
        return self.default is PydanticUndefined and self.default_factory is None

    @property
    def constraint_text(self) -> str:
        """Text about the constraints in a prompt, such as `greater than: 0`.

        Some constraints, such as `pattern` and `strict`, are not in the text. The text is empty if the field has
        no other constraints.
        """
        return ", ".join(
            f"{_CONSTRAINT_TEXTS[name]}{value}"
            for name, value in self.constraints.items()
            if name in _CONSTRAINT_TEXTS
        )

    @cached_property
    def annotation(self) -> Any:
        """Type with all constraints, for pydantic."""
        metadata = (*self.metadata, *([Field(**self.constraints)] if self.constraints else ()))
        return Annotated[(self.type, *metadata)] if metadata else self.type

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Pydantic's validator of the type and its constraints.

        Raises:
            OptionError: pydantic does not support the type, or a constraint does not fit the type.
        """
        return _create_adapter(self.name, self.annotation, _CONFIG)

    def check_constraints(self) -> None:
        """Raises `OptionError` if a constraint is invalid, such as the pattern `(` (see `FieldOptions`)."""
        if not self.constraints:
            return
        try:
            TypeAdapter(self.annotation)
        except (SchemaError, TypeError):
            self.adapter  # noqa: B018 - raises OptionError
        except (PydanticUserError, PydanticUndefinedAnnotation, RuntimeError):
            pass  # the type may use a class that is defined later; the first use of the type raises the error

    @cached_property
    def convert(self) -> Callable[[object], Any]:
        """Function that validates and converts a value. Faster than `validate`, but raises pydantic's errors."""
        return self.adapter.validator.validate_python

    @cached_property
    def has_tool_calls(self) -> bool:
        """True if the type is `list[ToolUseBlock]`, the type of a field for tool calls."""
        return is_tool_calls(self.type)

    def json_schema(self) -> dict[str, Any]:
        """Returns the JSON schema of the type, without the constraints of the field.

        Raises:
            OptionError: pydantic does not support the type, or JSON cannot express the type.
        """
        try:
            return _create_adapter(self.name, self.type, _SCHEMA_CONFIG).json_schema()
        except PydanticInvalidForJsonSchema as error:
            reason = f"the type has no JSON schema ({error.message.partition(chr(10))[0]})"
            raise OptionError(self.name, reason, "Use a type that JSON can express.") from None

    def get_default(self) -> Any:
        """Returns the default. Each call returns a new copy.

        Raises:
            OptionError: The field has no default.
        """
        if self.default_factory is not None:
            return self.default_factory()
        if self.default is PydanticUndefined:
            raise OptionError(self.name, "the field has no default", "Declare the field with default=….")
        return deepcopy(self.default)

    def validate(self, value: object, owner: str = "") -> Any:
        """Validates and converts a value with pydantic.

        Args:
            value: Value of the field.
            owner: Name of the signature, for the place in errors about inputs.

        Raises:
            MessageError: The field is an input, and the value does not fit its type or a constraint.
            ParseError: The field is an output, and the value does not fit its type or a constraint.
            OptionError: pydantic does not support the type, or a constraint does not fit the type.
        """
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            raise self._convert_error(error, owner) from None
        except (TypeError, RecursionError) as error:
            reason = f"pydantic cannot validate {shorten_repr(value, 60)} ({error})"
            raise OptionError(self._place(owner), reason, "Use constraints that fit the type.") from None

    def load(self, value: object, owner: str = "") -> Any:
        """Validates a JSON value that `dump` returned, and returns the value of the field.

        Raises:
            MessageError: `value` is not a JSON value. Or the field is an input, and the value does not fit its
                type or a constraint.
            ParseError: The field is an output, and the value does not fit its type or a constraint.
            OptionError: pydantic does not support the type, or a constraint does not fit the type.
        """
        adapter = self.adapter
        try:
            return adapter.validate_json(to_json(value, inf_nan_mode="constants"))
        except ValidationError as error:
            raise self._convert_error(error, owner) from None
        except TypeError as error:
            reason = f"pydantic cannot validate {shorten_repr(value, 60)} ({error})"
            raise OptionError(self._place(owner), reason, "Use constraints that fit the type.") from None
        except (PydanticSerializationError, UnicodeError, ValueError, RecursionError) as error:
            reason = f"expected a JSON value, got {shorten_repr(value, 60)} ({error})"
            raise MessageError(self._place(owner), reason, "Pass the result of to_dict().") from None

    def dump(self, value: object, owner: str = "") -> Any:
        """Converts a value of the field to JSON values. Functions, such as the function of a `Tool`, become None.

        Raises:
            MessageError: pydantic cannot convert the value to JSON.
        """
        adapter = self.adapter
        try:
            return adapter.dump_python(value, mode="json", warnings=False, fallback=_omit_function)
        except (PydanticSerializationError, UnicodeError, ValueError, RecursionError) as error:
            reason = f"JSON cannot represent {shorten_repr(value, 60)} ({error})"
            raise MessageError(self._place(owner), reason, "Use a type that pydantic can serialize.") from None

    def _convert_error(self, error: ValidationError, owner: str = "") -> MessageError | ParseError:
        """Converts pydantic's error to a MessageError about an input, or to a ParseError about an output."""
        converted = to_message_error(self._place(owner), error, [])
        if not self.is_output:
            return converted
        value = error.errors(include_url=False)[0]["input"]
        text = value if isinstance(value, str) else shorten_repr(value, 400)
        return ParseError(converted.reason, failure="wrong_value", place=converted.place, text=text)

    def with_options(self, options: Mapping[str, Any], type: Any = None) -> SignatureField:
        """Returns a copy with other options and another type. If `type` is None, the type stays the same.

        Raises:
            OptionError: An option is unknown or invalid.
        """
        changes = _read_options(f"field {self.name!r}", options)
        changes["constraints"] = MappingProxyType({**self.constraints, **changes.get("constraints", {})})
        if type is not None:
            retyped = FieldDeclaration(self.is_output).with_type(self.name, type)
            changes.update(type=retyped.type, metadata=retyped.metadata)
        changed = replace(self, **changes)
        changed.check_constraints()
        return changed

    def with_name(self, name: str) -> SignatureField:
        """Returns a copy with another name.

        Raises:
            OptionError: The name is invalid.
        """
        check_field_name(name)
        return replace(self, name=name)

    def _place(self, owner: str) -> str:
        return f"{owner}.{self.name}" if owner else self.name


_CONSTRAINT_TEXTS: Final = {
    "gt": "greater than: ",
    "ge": "greater than or equal to: ",
    "lt": "less than: ",
    "le": "less than or equal to: ",
    "min_length": "minimum length: ",
    "max_length": "maximum length: ",
    "multiple_of": "a multiple of the given number: ",
    "allow_inf_nan": "allow 'inf', '-inf', 'nan' values: ",
}
"""Texts that precede the value of a constraint in a prompt. The keys are the names of constraints in pydantic."""


def check_field_name(name: object) -> None:
    """Raises `OptionError` if a name is not an identifier, or has two underscores at both ends like `__init__`."""
    if not isinstance(name, str) or not name.isidentifier():
        reason = f"expected an identifier, got {shorten_repr(name, 60)}"
        raise OptionError("name", reason, "Use letters, digits and underscores for the name of a field.")
    if len(name) > 4 and name.startswith("__") and name.endswith("__"):
        reason = f"Python reserves names such as {name!r}"
        raise OptionError("name", reason, "Use a name without two underscores at both ends.")


def _declare(owner: str, is_output: bool, options: Mapping[str, Any]) -> FieldDeclaration:
    return FieldDeclaration(is_output, **_read_options(owner, options))


def _read_options(owner: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the field attributes that the options set. Constraints that are None are omitted."""
    for name in _NO_EFFECT:
        if name in options:
            reason = f"{owner} has no such option, and DSPy would ignore it without an error"
            raise OptionError(name, reason, "Remove this option.")
    check_names(owner, options, FieldOptions.__annotations__)
    if "default" in options and "default_factory" in options:
        raise OptionError("default", "cannot be combined with `default_factory`", "Pass one of them.")
    changes: dict[str, Any] = {}
    for name in ("description", "desc"):
        if options.get(name) is not None:
            check_option(name, options[name], str)
            changes["description"] = options[name]
    constraints = {name: value for name, value in options.items() if name in _CONSTRAINTS and value is not None}
    if constraints:
        changes["constraints"] = MappingProxyType(constraints)
    if "default" in options:
        changes.update(default=options["default"], default_factory=None)
    if options.get("default_factory") is not None:
        if not callable(options["default_factory"]):
            reason = f"expected a function, got {shorten_repr(options['default_factory'], 60)}"
            raise OptionError("default_factory", reason, "Pass a function without parameters.")
        changes.update(default=PydanticUndefined, default_factory=options["default_factory"])
    return changes


_SCHEMA_CONFIG: Final = ConfigDict(arbitrary_types_allowed=True)
_CONFIG: Final = ConfigDict(arbitrary_types_allowed=True, ser_json_bytes="base64", val_json_bytes="base64")


def _create_adapter(name: str, annotation: Any, config: ConfigDict) -> TypeAdapter[Any]:
    try:
        try:
            return TypeAdapter(annotation, config=config)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":  # the type has its own configuration
                raise
            return TypeAdapter(annotation)
    except (
        PydanticSchemaGenerationError,
        PydanticUndefinedAnnotation,
        PydanticUserError,
        SchemaError,
        TypeError,
        RuntimeError,
    ) as error:
        text = as_one_line(str(error)) if isinstance(error, SchemaError) else str(error)
        reason = f"pydantic does not support the type or a constraint ({text.partition(chr(10))[0]})"
        raise OptionError(
            name, reason, "Use a type that pydantic supports, and constraints for this type."
        ) from None


def _omit_function(value: object) -> None:
    if not callable(value):
        raise ValueError(f"a value of type {type(value).__name__} is not a JSON value")
