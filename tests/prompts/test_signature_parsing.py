"""Signatures as texts: names, types, and refused texts."""

# ruff: noqa: UP006, UP007, UP035, UP045 - the old spellings of types are test cases

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Dict, Final, List, Literal, Optional, Tuple, Union, get_args
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from agentkit import AgentkitError, ImageBlock, OptionError, Tool, ToolUseBlock
from agentkit.prompts.field_types import Code, History, Reasoning
from agentkit.prompts.signature_parsing import read_signature_text
from tests.cases import each_case
from tests.profiles import examples


class Point:
    x: int


def _read_type(text: str) -> Any:
    return read_signature_text(f"value: {text} ->", {"Point": Point, "geo.Point": Point})["value"].type


TYPES: Final[list[tuple[str, Any]]] = [
    ("str", str),
    ("None", type(None)),
    ("NoneType", type(None)),
    ("list[str]", list[str]),
    ("dict[str, list[int]]", dict[str, list[int]]),
    ("tuple[int, ...]", tuple[int, ...]),
    ("Tuple[int, ...]", Tuple[int, ...]),
    ("List[int]", List[int]),
    ("Dict[str, float]", Dict[str, float]),
    ("int | None", Optional[int]),
    ("None | int", Optional[int]),
    ("int | str | float", Union[int, str, float]),
    ("Optional[int]", Optional[int]),
    ("Union[int, str]", Union[int, str]),
    ("list[int | None]", list[Optional[int]]),
    ("typing.Any", Any),
    ("typing.Optional[typing.List[int]]", Optional[List[int]]),
    ("Sequence[int]", Sequence[int]),
    ("Mapping[str, Iterable[int]]", Mapping[str, Iterable[int]]),
    ("Literal['a', \"b\", 1, -2, True, b'x']", Literal["a", "b", 1, -2, True, b"x"]),
    ("Literal['a, b: c']", Literal["a, b: c"]),
    ("datetime", datetime),
    ("datetime.date", date),
    ("timedelta", timedelta),
    ("Decimal", Decimal),
    ("UUID", UUID),
    ("Tool", Tool),
    ("list[ToolUseBlock]", list[ToolUseBlock]),
    ("list[ImageBlock]", list[ImageBlock]),
    ("History", History),
    ("Reasoning", Reasoning),
    ("Code", Code),
    ("Code['sql']", Code["sql"]),
    ("Point", Point),
    ("list[geo.Point]", list[Point]),
]


@each_case(("text", "annotation"), TYPES)
def test_a_type_name_refers_to_the_standard_set_or_to_the_given_types(text: str, annotation: Any) -> None:
    assert _read_type(text) == annotation


def test_annotated_types_keep_their_constraints() -> None:
    field = read_signature_text("-> score: Annotated[int, Field(ge=0, le=10), 'points']")["score"]
    assert field.type is int
    constraints, note = field.metadata
    assert isinstance(constraints, FieldInfo)
    assert note == "points"
    assert field.validate(10) == 10
    with pytest.raises(AgentkitError):
        field.validate(11)
    assert get_args(Annotated[int, "points"])[1] == note


SHAPES: Final[list[tuple[str, list[tuple[str, bool]]]]] = [
    ("a -> b", [("a", False), ("b", True)]),
    ("a,b->c , d", [("a", False), ("b", False), ("c", True), ("d", True)]),
    ("->", []),
    ("a ->", [("a", False)]),
    ("-> b,", [("b", True)]),
    ("a,\n  b # note\n -> c", [("a", False), ("b", False), ("c", True)]),
    ("self, cls -> tags, replace", [("self", False), ("cls", False), ("tags", True), ("replace", True)]),
    ("größe -> _b", [("größe", False), ("_b", True)]),
]


@each_case(("text", "fields"), SHAPES)
def test_a_signature_text_lists_inputs_and_outputs(text: str, fields: list[tuple[str, bool]]) -> None:
    assert [(field.name, field.is_output) for field in read_signature_text(text).values()] == fields
    assert all(field.type is str for field in read_signature_text(text).values())


_WRITE: Final = "Write NAME or NAME: TYPE for each field, separated by commas."
_TYPES: Final = "Use names of types, [], | and None."

REFUSED: Final[list[tuple[Any, str]]] = [
    ("a", "expected exactly one '->', got 0 in 'a'. Pass a text such as \"question -> answer\"."),
    (
        "a -> b -> c",
        "expected exactly one '->', got 2 in 'a -> b -> c'. Pass a text such as \"question -> answer\".",
    ),
    (3, 'expected a string, got int 3. Pass a text such as "question -> answer".'),
    ("a b -> c", f"cannot parse 'a b'. {_WRITE}"),
    ("a): pass\nclass X: pass\ndef f(b -> c", rf"cannot parse 'a): pass\nclass X: pass\ndef f(b'. {_WRITE}"),
    ("a, /, b -> c", f"'a, /, b' contains '*' or '/'. {_WRITE}"),
    ("*a -> c", f"'*a' contains '*' or '/'. {_WRITE}"),
    ("a, *, b -> c", f"'a, *, b' contains '*' or '/'. {_WRITE}"),
    ("a = 3 -> c", "'a = 3' has a default value. Declare default values in a signature class."),
    ("a\0 -> c", rf"cannot parse 'a\x00'. {_WRITE}"),
    ("class -> c", f"cannot parse 'class'. {_WRITE}"),
    ("a, b -> a", "two fields have the name 'a'. Use a different name for each field."),
    ("a, b: int, b -> c", "two fields have the name 'b'. Use a different name for each field."),
    ("a: Poin -> c", "unknown type 'Poin'. Did you mean 'Point'? Otherwise, pass types={'Poin': …}."),
    ("a: Zz -> c", "unknown type 'Zz'. Pass types={'Zz': …}."),
    ("a: os.path -> c", "unknown type 'os.path'. Pass types={'os.path': …}."),
    ("a: Point.x -> c", "unknown type 'Point.x'. Did you mean 'Point'? Otherwise, pass types={'Point.x': …}."),
    ("a: 'int' -> c", f"\"'int'\" is not a type. {_TYPES}"),
    ("a: 3 -> c", f"'3' is not a type. {_TYPES}"),
    ("a: ... -> c", f"'...' is not a type. {_TYPES}"),
    ("a: list['int'] -> c", f"\"'int'\" is not a type. {_TYPES}"),
    ("a: (int, str) -> c", f"'(int, str)' is not a type. {_TYPES}"),
    ("a: __import__('os') -> c", f"\"__import__('os')\" is not a type. {_TYPES}"),
    ("a: int & str -> c", f"'int & str' is not a type. {_TYPES}"),
    (
        "a: Literal[b] -> c",
        "'b' cannot be a member of a Literal. Use strings, bytes, integers, True, False or None.",
    ),
    (
        "a: Literal[1.5] -> c",
        "'1.5' cannot be a member of a Literal. Use strings, bytes, integers, True, False or None.",
    ),
    ("a: Optional[int, str] -> c", "'Optional[int, str]' is not a type. Pass one type to Optional."),
    (
        "a: int[str] -> c",
        "'int[str]' is not a type (type 'int' is not subscriptable). Use a type that accepts [].",
    ),
]


@each_case(("text", "message"), REFUSED)
def test_an_invalid_signature_text_is_refused(text: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        read_signature_text(text, {"Point": Point})
    assert str(caught.value) == f"signature: {message}"


@each_case("depth", [80, 500, 20_000])
def test_a_deeply_nested_type_is_read_or_refused(depth: int) -> None:
    text = f"a: {'list[' * depth}int{']' * depth} -> b"
    with nullcontext() if depth < 90 else pytest.raises(OptionError, match=r"nested too deeply|cannot parse"):
        assert read_signature_text(text).keys() == {"a", "b"}


@each_case("metadata", ["Field(ge=open)", "Field(0)", "Field(**{})", "Field(wrong=1)", "print(1)", "x"])
def test_metadata_other_than_constants_and_constraints_is_refused(metadata: str) -> None:
    with pytest.raises(OptionError):
        read_signature_text(f"a: Annotated[int, {metadata}] -> b")


_PIECES: Final = st.sampled_from(
    [
        *"abc,:[]()|.*/= \n'\"",
        "->",
        "int",
        "list",
        "Literal",
        "antigravity",
        "os.path",
        "lambda: 0",
        "Field",
        "Annotated",
    ]
)


@given(st.lists(_PIECES, max_size=12).map("".join))
@examples(300)
def test_no_signature_text_imports_a_module_or_raises_another_error(text: str) -> None:
    loaded = set(sys.modules)
    with suppress(OptionError):
        read_signature_text(text)
    assert "antigravity" not in sys.modules
    assert set(sys.modules) <= loaded | {"difflib"}
