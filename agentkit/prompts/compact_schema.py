"""`compact_type`: writes a type as a short listing for the model, such as `{ name: string }`.

The listing takes fewer tokens than a JSON schema. Docstrings of pydantic models and descriptions of their fields
become comments. The listings are those of DSPy 3.4.1, which calls this style BAML.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from agentkit.errors import OptionError
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.type_names import is_tool_calls

__all__ = ["compact_type"]

_INDENT: Final = "  "
_NAMES: Final[dict[Any, str]] = {
    str: "string",
    int: "int",
    float: "float",
    bool: "boolean",
    Reasoning: "{\n  content: string,\n}",
}
_CODE: Final = "{\n  code: string,\n}"
_TOOL_CALLS: Final = """{
  tool_calls: [
    {
      id: string or null,
      name: string,
      args: dict[string, Any],
    }
  ],
  tool_call_results: Any or null,
}"""


def compact_type(annotation: Any, place: str = "type") -> str:
    """Returns a short listing of a type for the model, such as `{ name: string }`.

    Args:
        annotation: The type.
        place: Name of the field, for errors.

    Raises:
        OptionError: A pydantic model contains itself.

    Example:
        >>> class Stop(BaseModel):
        ...     city: str
        ...     days: int | None
        >>> print(compact_type(list[Stop]))
        [
          {
            city: string,
            days: int or null,
          }
        ]
    """
    return _write(annotation, 0, (), place)


def _write(annotation: Any, depth: int, models: tuple[type, ...], place: str) -> str:
    """Returns the listing of a type. `models` are the pydantic models that contain the type."""
    special = _write_special(annotation)
    if special:
        return special
    if _is_model(annotation):
        return _write_model(annotation, depth, models, place)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        options = [_write(item, depth, models, place) for item in arguments if item is not NoneType]
        return " or ".join(options + (["null"] if NoneType in arguments else []))
    if origin is Literal:
        return " or ".join(map(_write_member, arguments))
    if origin is list and arguments and _is_model(arguments[0]):
        items = _write(arguments[0], depth + 1, models, place)
        return f"[\n{items}\n{_INDENT * depth}]"
    if origin is list and arguments:
        return f"{_write(arguments[0], depth, models, place)}[]"
    if origin is dict and arguments:
        return f"dict[{', '.join(_write(item, depth, models, place) for item in arguments)}]"
    return str(getattr(annotation, "__name__", annotation))


def _write_special(annotation: Any) -> str:
    """Returns the listing of a special type, such as `Code`. Returns an empty string for any other type."""
    if is_tool_calls(annotation):
        return _TOOL_CALLS
    if isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, Code):
        return _CODE
    return _NAMES.get(annotation, "") if isinstance(annotation, type) else ""


def _write_member(member: object) -> str:
    """Returns a member of a `Literal` as the JSON value that the reply must contain."""
    if isinstance(member, str):
        return f'"{member}"'
    constants: dict[object, str] = {None: "null", True: "true", False: "false"}
    return constants[member] if member is None or isinstance(member, bool) else str(member)


# -- models ---------------------------------------------------------------------------------------------------


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None and issubclass(annotation, BaseModel)


def _write_model(model: type[BaseModel], depth: int, models: tuple[type, ...], place: str) -> str:
    if model in models:
        reason = f"the pydantic model {model.__name__} contains itself, and a compact schema cannot show this"
        raise OptionError(place, reason, 'Pass schema_style="json".')
    outer, inner = _INDENT * depth, _INDENT * (depth + 1)
    lines = [f"{outer}# {line}" for line in _list_doc_lines(model)] if depth == 0 else []
    lines.append(f"{outer}{{")
    if not model.model_fields:
        lines.append(f"{inner}# No fields defined")
    for name, field in model.model_fields.items():
        lines += [f"{inner}# {line}" for line in _list_comments(name, field)]
        lines.append(f"{inner}{name}: {_write(field.annotation, depth + 1, (*models, model), place)},")
    return "\n".join((*lines, f"{outer}}}"))


def _list_comments(name: str, field: FieldInfo) -> Iterator[str]:
    """Yields the comments on a field.

    The comments are the description or the alias of the field. If the type of the field is a pydantic model, the
    lines of the model's docstring follow. The type may also allow None.
    """
    if field.description:
        yield field.description
    elif field.alias and field.alias != name:
        yield f"alias: {field.alias}"
    options = [option for option in get_args(field.annotation) if option is not NoneType]
    is_union = get_origin(field.annotation) in (Union, UnionType)
    expected = options[0] if is_union and len(options) == 1 else field.annotation
    if isinstance(expected, type) and _is_model(expected):
        yield from _list_doc_lines(expected)


def _list_doc_lines(model: type) -> Iterator[str]:
    lines = map(str.strip, (model.__doc__ or "").strip().split("\n"))
    return filter(None, lines)
