"""`parse_value`: reads a value of a type from the text of a model, or from a JSON value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, overload

from pydantic import ValidationError

from agentkit.errors import ParseError
from agentkit.messages.validation_errors import describe_error
from agentkit.prompts.lenient_json import read_json
from agentkit.prompts.value_escapes import unescape_text
from agentkit.prompts.value_types import ValueCategory, ValueType, get_value_type
from agentkit.reprs import shorten_repr

__all__ = ["parse_value"]

T = TypeVar("T")


@overload
def parse_value(value: object, annotation: type[T], *, is_json: bool = False, place: str = "reply") -> T: ...


@overload
def parse_value(value: object, annotation: Any, *, is_json: bool = False, place: str = "reply") -> Any: ...


def parse_value(value: object, annotation: Any, *, is_json: bool = False, place: str = "reply") -> Any:
    """Converts a text or a JSON value to a type. pydantic validates the value with all constraints of the type.

    - If the type is not a text type, the text may contain JSON, damaged JSON, JSON between other words, or a
      Python literal. pydantic validates any other text directly.
    - A member of an enum is found by its value, then by its name.
    - A member of a `Literal` may be in quotes, in `Literal[…]` or in `str[…]`.
    - Escapes that `write_value` adds are removed (see `value_escapes`).

    Args:
        value: Text of a reply, or a JSON value.
        annotation: Type of the result.
        is_json: True if `value` is a JSON value. A string is then a JSON string without escapes, and stays a text
            if the type accepts texts. False if a string is a text from which the value is parsed.
        place: Name of the field, for errors.

    Raises:
        ParseError: The value does not fit the type. The attribute `failure` is `wrong_value`, `place` is the path
            of the invalid part, and `text` is empty if `value` is not a string.
        OptionError: pydantic does not support the type.
        MissingExtraError: The text is damaged JSON, and json-repair is not installed.

    Example:
        >>> parse_value("[1, 2", list[int]), parse_value("yes", bool), parse_value("Answer: [3]", list[int])
        ([1, 2], True, [3])
    """
    value_type = get_value_type(annotation)
    read = _READERS[value_type.category]
    try:
        return read(value, value_type, is_json)
    except ValidationError as error:
        path, reason = describe_error(error)
    except _NoMemberError:
        path, reason = "", f"expected one of {_list_options(value_type)}, got {shorten_repr(value, 60)}"
    raise ParseError(reason, place=_join(place, path), text=value if isinstance(value, str) else "")


def _join(place: str, path: str) -> str:
    return f"{place}{'.' if path and not path.startswith('[') else ''}{path}"


# -- texts ----------------------------------------------------------------------------------------------------


def _read_text(value: object, value_type: ValueType, is_json: bool) -> Any:
    if isinstance(value, str) and not is_json:
        is_special = value_type.is_special
        value = read_json(value) if is_special(value) else unescape_text(value, is_special)
    elif value_type.base is str and not isinstance(value, str):
        value = str(value)
    return value_type.validate(value) if value_type.needs_validation else value


def _read_code(value: object, value_type: ValueType, is_json: bool) -> Any:
    return value_type.validate(value)


def _read_nullable_text(value: object, value_type: ValueType, is_json: bool) -> Any:
    if isinstance(value, str) and not is_json:
        other = value_type.find_value(value) if value_type.category == "mixed_text" else None
        if other is not None:
            return other
        value = None if value == "None" else unescape_text(value, value_type.is_special)
    return value_type.validate(value)


# -- literals and enums ---------------------------------------------------------------------------------------


class _NoMemberError(Exception):
    """Error for a value that is not a member of a `Literal` or an enum."""


_WRAPPED: Final = re.compile(r"(?:Literal|str)\[(.*)\]", re.DOTALL)


def _read_literal(value: object, value_type: ValueType, is_json: bool) -> Any:
    if isinstance(value, str):
        members = _find_written(value, value_type, is_json) or _find_wrapped(value.strip(), value_type)
    else:
        members = _find_equal(value, value_type)
    return _validate_first(members, value_type)


def _find_wrapped(text: str, value_type: ValueType) -> Sequence[Any]:
    """Returns the members of a `Literal` that match a text, which may be in quotes, `Literal[…]` or `str[…]`."""
    wrapped = _WRAPPED.fullmatch(text)
    text = wrapped[1] if wrapped else text
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    inner = text[1:-1] if is_quoted else text
    return (
        _find_written(inner, value_type, is_quoted)
        or _find_equal(read_json(inner, inner), value_type)
        or _find_equal(read_json(text, text), value_type)
    )


def _read_enum(value: object, value_type: ValueType, is_json: bool) -> Any:
    """Reads a member of an enum by its value, then by its name, then by its value as JSON."""
    if isinstance(value, str):
        members = (
            _find_written(value, value_type, is_json)
            or [member for member in value_type.members if member.name == value]
            or _find_equal(read_json(value, value), value_type)
        )
    else:
        members = _find_equal(value, value_type)
    return _validate_first(members, value_type)


def _validate_first(members: Sequence[Any], value_type: ValueType) -> Any:
    if not members:
        raise _NoMemberError
    return value_type.validate(members[0])


def _find_written(text: str, value_type: ValueType, is_text: bool) -> Sequence[Any]:
    """Returns the members that are written as `text`. String members are first if `is_text`, else last."""
    # `[:]` converts a member of a string enum to a plain string. The two are equal, but have different hashes.
    orders = value_type.members_by_text.get(text[:])
    return orders[is_text] if orders else ()


def _find_equal(value: object, value_type: ValueType) -> Sequence[Any]:
    """Returns the members that equal a JSON value. Members with a JSON value of the same type are first."""
    matches = [match for match in value_type.json_members if value in match]
    return [match[1] for match in sorted(matches, key=lambda match: type(match[0]) is not type(value))]


def _list_options(value_type: ValueType) -> str:
    return shorten_repr([json_value for json_value, _ in value_type.json_members], 200)


# -- other types ----------------------------------------------------------------------------------------------


def _read_other(value: object, value_type: ValueType, is_json: bool) -> Any:
    """Reads a text as JSON. If the JSON value does not fit the type, pydantic validates the text directly.

    If `is_json` is True, the order is reversed: a string is first validated directly, and then read as JSON.
    """
    if not isinstance(value, str):
        return value_type.validate(value)
    if is_json:
        try:
            return value_type.validate(value)
        except ValidationError:
            pass
    json_value = read_json(value, value)
    try:
        return value_type.validate(json_value)
    except ValidationError as error:
        if json_value == value:
            raise
        try:
            return value_type.validate(value)
        except ValidationError:
            raise error from None


_READERS: Final[Mapping[ValueCategory, Callable[[object, ValueType, bool], Any]]] = {
    "text": _read_text,
    "code": _read_code,
    "nullable_text": _read_nullable_text,
    "mixed_text": _read_nullable_text,
    "literal": _read_literal,
    "enum": _read_enum,
    "other": _read_other,
}
