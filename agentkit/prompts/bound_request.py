"""Operations on bound requests: signatures that have been called with values for their inputs.

A bound request has each value as an attribute, and most operations of this module as methods. If a field has the
name of a method, the field hides the method. In this case, use the function of this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args, get_origin

from pydantic import ValidationError

from agentkit.argument_checks import find_closest
from agentkit.errors import MessageError, OptionError
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.type_names import type_name
from agentkit.reprs import describe_value, shorten, shorten_repr

if TYPE_CHECKING:
    from agentkit.prompts.signature import Signature

__all__ = ["bind", "choices", "default", "describe", "from_dict", "get_inputs", "replace", "tags", "to_dict"]

_Bound = TypeVar("_Bound", bound="Signature[Any]")


def bind(signature: type[_Bound], values: Mapping[str, Any]) -> _Bound:
    """Returns a bound request: a signature with values for its inputs. pydantic validates and converts the values.

    Args:
        signature: Signature class.
        values: Values of the inputs, by name. An input with a default is optional.

    Raises:
        MessageError: A value is missing or invalid, or the name of a value is not the name of an input.
        OptionError: pydantic does not support a type, or a constraint does not fit a type.
    """
    bound = object.__new__(signature)
    attributes = vars(bound)
    missing = 0
    for name, field in signature.input_fields.items():
        if name not in values:
            attributes[name] = _get_default(signature, field)
            missing += 1
            continue
        try:
            attributes[name] = field.convert(values[name])
        except (ValidationError, TypeError, RecursionError):
            # The value is validated again, to raise an error of agentkit instead of pydantic's error.
            attributes[name] = field.validate(values[name], signature.__name__)
    if len(values) > len(attributes) - missing:
        _refuse_unknown(signature, values)
    return bound


def _get_default(signature: type[Signature[Any]], field: SignatureField) -> Any:
    if field.is_required:
        place = f"{signature.__name__}.{field.name}"
        raise MessageError(place, "the input has no value", "Pass a value for this input.")
    return field.get_default()


def get_inputs(bound: Signature[Any]) -> dict[str, Any]:
    """Returns a dict that maps the names of the inputs of a bound request to their values."""
    attributes = vars(bound)
    return {name: attributes[name] for name in type(bound).input_fields}


def to_dict(bound: Signature[Any]) -> dict[str, Any]:
    """Returns the values of a bound request as JSON values. Functions in values become None.

    Raises:
        MessageError: pydantic cannot convert a value to JSON.
    """
    signature = type(bound)
    fields = signature.input_fields
    return {name: fields[name].dump(value, signature.__name__) for name, value in get_inputs(bound).items()}


def from_dict(signature: type[_Bound], data: Mapping[str, Any]) -> _Bound:
    """Creates a bound request from JSON values, such as the result of `to_dict`.

    Raises:
        MessageError: A value is missing or invalid, or the name of a value is not the name of an input.
    """
    owner = signature.__name__
    if not isinstance(data, Mapping):
        raise MessageError(owner, f"expected a dict, got {describe_value(data)}", "Pass the result of to_dict().")
    _refuse_unknown(signature, data)
    bound = object.__new__(signature)
    for name, field in signature.input_fields.items():
        value = field.load(data[name], owner) if name in data else _get_default(signature, field)
        vars(bound)[name] = value
    return bound


def replace(bound: _Bound, /, **changes: Any) -> _Bound:
    """Returns a copy of a bound request with other values.

    Args:
        bound: Bound request.
        **changes: New values. The keywords are the names of the inputs.

    Raises:
        MessageError: A value is invalid, or the name of a value is not the name of an input.
    """
    signature = type(bound)
    _refuse_unknown(signature, changes)
    copy = object.__new__(signature)
    fields = signature.input_fields
    changed = {name: fields[name].validate(value, signature.__name__) for name, value in changes.items()}
    vars(copy).update(get_inputs(bound), **changed)
    return copy


def choices(request: Signature[Any] | type[Signature[Any]]) -> tuple[Any, ...]:
    """Returns the possible values of the only output, whose type is a `Literal`, an Enum or `bool`.

    Args:
        request: Bound request or signature.

    Raises:
        OptionError: The signature does not have exactly one output, or the output has any other type.
    """
    field = _only_output(request)
    declared: Any = field.type
    if declared is bool:
        return (True, False)
    if get_origin(declared) is Literal:
        return get_args(declared)
    if isinstance(declared, type) and issubclass(declared, Enum):
        return tuple(declared)
    reason = f"expected an output of the type Literal, Enum or bool, got the type {type_name(field.type)}"
    advice = "Declare the output with one of these types."
    raise OptionError(f"{_signature(request).__name__}.{field.name}", reason, advice)


def default(request: Signature[Any] | type[Signature[Any]]) -> Any:
    """Returns the default of the only output.

    Args:
        request: Bound request or signature.

    Raises:
        OptionError: The signature does not have exactly one output, or the output has no default.
    """
    return _only_output(request).get_default()


def tags(request: Signature[Any] | type[Signature[Any]]) -> tuple[str, ...]:
    """Returns the tags of a signature: its attribute `tags`, or the name of the class if `tags` is not set.

    Args:
        request: Bound request or signature.
    """
    declared: tuple[str, ...] = _signature(request).tags
    return declared


def describe(bound: Signature[Any]) -> str:
    """Returns the repr of a bound request: the name of the signature and the values, shortened."""
    values = get_inputs(bound)
    limit = max(_MAX_REPR // (len(values) or 1), 12)
    parts = (f"{name}={shorten_repr(value, limit)}" for name, value in values.items())
    return shorten(f"{type(bound).__name__}({', '.join(parts)})", 2 * _MAX_REPR)


_MAX_REPR: Final = 1_000  # characters


def _signature(request: Signature[Any] | type[Signature[Any]]) -> type[Signature[Any]]:
    return request if isinstance(request, type) else type(request)


def _only_output(request: Signature[Any] | type[Signature[Any]]) -> SignatureField:
    signature = _signature(request)
    fields = tuple(signature.output_fields.values())
    if len(fields) != 1:
        reason = f"expected a signature with one output, got {len(fields)} outputs"
        raise OptionError(signature.__name__, reason, "Use a signature with one output.")
    return fields[0]


def _refuse_unknown(signature: type[Signature[Any]], names: Iterable[object]) -> None:
    """Raises `MessageError` for the first name that is not the name of an input."""
    fields = signature.fields
    for name in names:
        if name in signature.input_fields:
            continue
        owner = signature.__name__
        if not isinstance(name, str):
            reason = f"expected names of inputs (str), got {shorten_repr(name, 60)}"
            raise MessageError(owner, reason, "Pass a dict whose keys are the names of inputs.")
        if name in fields:
            raise MessageError(f"{owner}.{name}", "the field is an output", "Pass values for inputs only.")
        closest = find_closest(name, signature.input_fields)
        inputs = ", ".join(signature.input_fields)
        names = f"Use one of: {inputs}." if inputs else "Pass no values, because there are no inputs."
        advice = f"Did you mean {closest!r}?" if closest else names
        raise MessageError(f"{owner}.{name}", f"{owner} has no input of this name", advice)
