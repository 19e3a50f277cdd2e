"""Converts and copies the values of templates. A template gets JSON values, and no access to Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Final, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from agentkit.errors import OptionError
from agentkit.jinja_environments import TemplateRecord
from agentkit.json_values import copy_json, dump_model
from agentkit.reprs import describe_value, shorten

__all__ = ["as_template_value", "copy_values"]

_MAX_DEPTH: Final = 100
"""Maximum number of nested levels in a value of a template."""
_FEWER_LEVELS: Final = "Pass a value with fewer levels and without references to itself."


def copy_values(values: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Returns a deep copy of a dict of JSON values.

    Args:
        values: Values by name. Objects other than dicts and lists are not copied.
        place: Place of the values in errors.

    Raises:
        OptionError: A value is nested too deeply.
    """
    copied: dict[str, Any] = {}
    for name, value in values.items():
        try:
            copied[name] = copy_json(value)
        except RecursionError:
            reason = "the value is nested too deeply"
            raise OptionError(f"{place}.{name}", reason, _FEWER_LEVELS) from None
    return copied


def as_template_value(value: object, place: str) -> Any:
    """Converts a value to JSON values and records. The result shares no list or dict with the value.

    Pydantic models and dataclasses become a `TemplateRecord`, and a set becomes a sorted list. Any other object is
    converted as pydantic writes it in JSON: an enum becomes its value, and a date becomes its ISO text.

    Args:
        value: JSON value, pydantic model, dataclass, or a container of these.
        place: Place of the value in errors.

    Raises:
        OptionError: The value contains a part that pydantic cannot convert, such as a function. Or the value is
            nested more than 100 levels deep.
    """
    return _convert(value, place, 0)


def _convert(value: object, place: str, depth: int) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if depth > _MAX_DEPTH:
        reason = f"the value is nested more than {_MAX_DEPTH} levels deep"
        raise OptionError(shorten(place, 200), reason, _FEWER_LEVELS)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {_convert_key(key, place): _convert(item, f"{place}.{key}", depth + 1) for key, item in pairs}
    if isinstance(value, list | tuple):
        items = enumerate(cast("Iterable[object]", value))
        return [_convert(item, f"{place}[{index}]", depth + 1) for index, item in items]
    if isinstance(value, AbstractSet):
        converted = [_convert(item, place, depth + 1) for item in cast("AbstractSet[object]", value)]
        return sorted(converted, key=repr)  # the order of a set differs between processes
    if isinstance(value, BaseModel):
        return _convert_model(value, place, depth)
    if is_dataclass(value) and not isinstance(value, type):
        return _convert_dataclass(value, place, depth)
    return _convert_leaf(value, place)


def _convert_key(key: object, place: str) -> Any:
    return key if type(key) in (str, int, float, bool) or key is None else str(_convert_leaf(key, place))


def _convert_leaf(value: object, place: str) -> Any:
    try:
        if not isinstance(value, Iterator):  # pydantic would consume the iterator, which may have no end
            return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, RecursionError):
        pass
    reason = f"{describe_value(cast('object', value))} cannot be written as JSON"
    raise OptionError(place, reason, "Pass JSON values, pydantic models or dataclasses.")


def _convert_model(model: BaseModel, place: str, depth: int) -> Any:
    """Converts a pydantic model. If a serializer changes the value of a field, the changed value is used."""
    try:
        dumped = dump_model(model)
        non_defaults = dump_model(model, exclude_defaults=True)
    except (ValueError, RecursionError) as error:
        reason = f"the pydantic model {type(model).__name__} cannot be written as JSON ({error})"
        raise OptionError(place, reason, "Pass JSON values, pydantic models or dataclasses.") from None
    if not isinstance(dumped, dict):
        return dumped
    values = cast("dict[str, Any]", dumped)
    for name in type(model).model_fields.keys() & values.keys():
        converted = _convert(getattr(model, name), f"{place}.{name}", depth + 1)
        values[name] = converted if converted == values[name] else values[name]
    return TemplateRecord(values, values.keys() - non_defaults.keys() if isinstance(non_defaults, dict) else ())


def _convert_dataclass(value: Any, place: str, depth: int) -> TemplateRecord:
    public_fields = [field for field in fields(value) if not field.name.startswith("_")]
    values = {
        field.name: _convert(getattr(value, field.name), f"{place}.{field.name}", depth + 1)
        for field in public_fields
    }
    return TemplateRecord(values, [field.name for field in public_fields if _has_default(value, field)])


def _has_default(value: Any, field: Field[Any]) -> bool:
    if field.default is not MISSING:
        return bool(getattr(value, field.name) == field.default)
    return field.default_factory is not MISSING and bool(getattr(value, field.name) == field.default_factory())
