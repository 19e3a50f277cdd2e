"""`read_signature_text`: reads a signature such as `question, context: list[str] -> answer: int`.

The text is parsed with Python's parser but never executed. A type name refers to a type of the standard set or of
the argument `types`. A name in the text never causes an import.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import typing
import uuid
from collections import abc
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, Literal, Optional, Union, cast

from agentkit.argument_checks import find_closest
from agentkit.errors import OptionError
from agentkit.messages import blocks
from agentkit.prompts import field_types
from agentkit.prompts.fields import InputField, OutputField, SignatureField
from agentkit.reprs import describe_value, shorten_repr
from agentkit.tools.tool import Tool

__all__ = ["read_signature_text"]


def read_signature_text(text: str, types: Mapping[str, Any] | None = None) -> dict[str, SignatureField]:
    """Returns the fields of a signature text, inputs first. A field without a type has the type `str`.

    Args:
        text: The inputs, `->`, and the outputs. Commas separate the fields. A colon and a type may follow a name.
        types: Types by name, in addition to the standard set (`str`, `list`, `Literal`, `datetime`, `Tool` and so
            on). A name may contain dots.

    Raises:
        OptionError: The text is malformed, a type is unknown, or two fields have the same name.
    """
    if not isinstance(text, str):
        raise _error(f"expected a string, got {describe_value(text)}", 'Pass a text such as "question -> answer".')
    sides = text.split("->")
    if len(sides) != 2:
        reason = f"expected exactly one '->', got {len(sides) - 1} in {shorten_repr(text, 80)}"
        raise _error(reason, 'Pass a text such as "question -> answer".')
    fields: dict[str, SignatureField] = {}
    for side, declaration in zip(sides, (InputField(), OutputField()), strict=True):
        for name, annotation in _read_side(side, types or {}):
            if name in fields:
                raise _error(f"two fields have the name {name!r}", "Use a different name for each field.")
            fields[name] = declaration.with_type(name, annotation)
    return fields


def _read_side(side: str, types: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for parameter in _parse_parameters(side):
        if parameter.annotation is None:
            yield parameter.arg, str
            continue
        try:
            yield parameter.arg, _TypeReader(types).read(parameter.annotation)
        except RecursionError:
            reason = f"the type of {parameter.arg!r} is nested too deeply"
            raise _error(reason, "Use a name for the type, and pass types={'NAME': …}.") from None


def _parse_parameters(side: str) -> list[ast.arg]:
    """Parses one side of a signature as the parameters of a Python function."""
    advice = "Write NAME or NAME: TYPE for each field, separated by commas."
    shown = shorten_repr(side.strip(), 80)
    try:
        statements = ast.parse(f"def _(\n{side}\n): pass").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _error(f"cannot parse {shown}", advice) from None
    function = statements[0]
    if len(statements) != 1 or not isinstance(function, ast.FunctionDef) or function.returns is not None:
        raise _error(f"cannot parse {shown}", advice)
    parameters = function.args
    if parameters.defaults or any(parameters.kw_defaults):
        raise _error(f"{shown} has a default value", "Declare default values in a signature class.")
    if parameters.posonlyargs or parameters.vararg or parameters.kwonlyargs or parameters.kwarg:
        raise _error(f"{shown} contains '*' or '/'", advice)
    return parameters.args


class _TypeReader:
    """Reader of types in a signature text. The method `read` converts the syntax tree of a type to the type.

    Args:
        types: Types by name, in addition to the standard set.
    """

    def __init__(self, types: Mapping[str, Any]) -> None:
        self._types = types

    def read(self, node: ast.expr) -> Any:
        """Returns the type that a syntax tree names, such as `list[int]`.

        Raises:
            OptionError: The syntax tree does not name a type, or contains an unknown name.
        """
        match node:
            case ast.Name() | ast.Attribute():
                return self._find_type(ast.unparse(node))
            case ast.Constant(value=None):
                return None
            case ast.Subscript():
                return self._subscript(node)
            case ast.BinOp(op=ast.BitOr()):
                return Union[self.read(node.left), self.read(node.right)]  # noqa: UP007 - the operands may be None
            case _:
                raise _error(f"{_show(node)} is not a type", "Use names of types, [], | and None.")

    def _find_type(self, name: str) -> Any:
        if name in self._types:
            return self._types[name]
        standard = standard_types()
        short = name.removeprefix("typing.")
        if short in standard:
            return standard[short]
        closest = find_closest(name, [*self._types, *standard])
        hint = f"Did you mean {closest!r}? Otherwise, pass" if closest else "Pass"
        raise _error(f"unknown type {name!r}", f"{hint} types={{{name!r}: …}}.")

    def _subscript(self, node: ast.Subscript) -> Any:
        base = self.read(node.value)
        nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if base is Literal:
            arguments = [_read_constant(item) for item in nodes]
        elif base is Annotated:
            arguments = [self.read(nodes[0]), *map(_read_metadata, nodes[1:])]
        else:
            arguments = [self._read_argument(item, base) for item in nodes]
        if base is Optional and len(arguments) != 1:
            raise _error(f"{_show(node)} is not a type", "Pass one type to Optional.")
        try:
            return base[arguments[0] if len(arguments) == 1 else tuple(arguments)]
        except (TypeError, ValueError, AttributeError) as error:
            raise _error(f"{_show(node)} is not a type ({error})", "Use a type that accepts [].") from None

    def _read_argument(self, node: ast.expr, base: Any) -> Any:
        """Returns an argument in the brackets of a type: a type, `...` for a tuple, or a string for `Code`."""
        if isinstance(node, ast.Constant):
            if node.value is ... and base in (tuple, typing.Tuple):  # noqa: UP006 - the name Tuple is in the set
                return ...
            if isinstance(node.value, str) and base is standard_types().get("Code"):
                return node.value
        return self.read(node)


def _read_constant(node: ast.expr) -> Any:
    """Returns a member of a `Literal`."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        value = ...
    if value is not None and not isinstance(value, str | int | bytes):
        reason = f"{_show(node)} cannot be a member of a Literal"
        raise _error(reason, "Use strings, bytes, integers, True, False or None.")
    return value


def _read_metadata(node: ast.expr) -> Any:
    """Returns the metadata of an `Annotated` type: a constant, or `Field(…)` with constraints."""
    from pydantic import Field

    advice = "Use Field(NAME=CONSTANT, …) with pydantic's names of constraints."
    try:
        match node:
            case ast.Call(func=ast.Name(id="Field"), args=[]) if all(item.arg for item in node.keywords):
                options = {cast("str", item.arg): ast.literal_eval(item.value) for item in node.keywords}
                constraints = InputField(**options).constraints
                return Field(**constraints)
            case _:
                return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise _error(f"{_show(node)} cannot annotate a type ({error})", advice) from None


@cache
def standard_types() -> dict[str, Any]:
    """Returns the types that a signature text can name without `types=`."""
    plain = (str, int, float, bool, bytes, complex, object, list, dict, tuple, set, frozenset)
    named: dict[str, Any] = {
        "NoneType": NoneType,
        "datetime.date": datetime.date,
        "datetime.time": datetime.time,
        "datetime.datetime": datetime.datetime,
        "datetime.timedelta": datetime.timedelta,
        "datetime": datetime.datetime,
    }
    others = (datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID, Tool)
    return {
        **{name: getattr(typing, name) for name in _TYPING_NAMES},
        **{name: getattr(abc, name) for name in _ABSTRACT_NAMES},
        **{item.__name__: item for item in (*plain, *others)},
        **named,
        **{name: getattr(blocks, name) for name in _BLOCK_NAMES},
        **{name: getattr(field_types, name) for name in ("Citation", "Code", "History", "Reasoning")},
    }


_TYPING_NAMES: Final = (
    *("Annotated", "Any", "Literal", "Optional", "Union"),
    *("Dict", "FrozenSet", "List", "Set", "Tuple"),
)
_ABSTRACT_NAMES: Final = ("Collection", "Iterable", "Mapping", "MutableMapping", "Sequence")
_BLOCK_NAMES: Final = ("AudioBlock", "DocumentBlock", "ImageBlock", "TextBlock", "ToolUseBlock", "VideoBlock")


def _show(node: ast.expr) -> str:
    try:
        return shorten_repr(ast.unparse(node), 60)
    except RecursionError:
        return "the expression"


def _error(reason: str, advice: str) -> OptionError:
    return OptionError("signature", reason, advice)
