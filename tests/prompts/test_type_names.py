"""Names of types in prompts. The expected names are those of DSPy 3.4.1."""

# ruff: noqa: PYI061, UP006, UP007, UP035, UP045 - the old spellings of types are test cases

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Dict, Final, List, Literal, NewType, Optional, Union
from uuid import UUID

from pydantic import BaseModel
from typing_extensions import TypedDict

from agentkit import AudioBlock, DocumentBlock, ImageBlock, Tool, ToolUseBlock, VideoBlock
from agentkit.prompts.field_types import Code, History, Reasoning
from agentkit.prompts.type_names import is_tool_calls, type_name
from tests.cases import each_case


class Color(Enum):
    RED = "red"


class Level(Enum):
    LOW = 1


class Place(BaseModel):
    name: str


class Trip(TypedDict):
    day: date


NAMES: Final[list[tuple[Any, str]]] = [
    (str, "str"),
    (int, "int"),
    (float, "float"),
    (bool, "bool"),
    (bytes, "bytes"),
    (complex, "complex"),
    (list, "list"),
    (dict, "dict"),
    (tuple, "tuple"),
    (None, "None"),
    (object, "object"),
    (list[str], "list[str]"),
    (dict[str, int], "dict[str, int]"),
    (tuple[int, ...], "tuple[int, Ellipsis]"),
    (tuple[int, str], "tuple[int, str]"),
    (set[int], "set[int]"),
    (frozenset[str], "frozenset[str]"),
    (list[list[dict[str, float]]], "list[list[dict[str, float]]]"),
    (Optional[int], "Union[int, NoneType]"),
    (int | None, "Union[int, NoneType]"),
    (Union[int, str, None], "Union[int, str, NoneType]"),
    (list[int | None], "list[Union[int, NoneType]]"),
    (Any, "Any"),
    (dict[str, Any], "dict[str, Any]"),
    (Sequence[int], "Sequence[int]"),
    (Mapping[str, int], "Mapping[str, int]"),
    (List[int], "list[int]"),
    (Dict[str, int], "dict[str, int]"),
    (List, "list[]"),
    (Iterable[str], "Iterable[str]"),
    (Literal["a", "b"], "Literal['a', 'b']"),
    (Literal["it's"], 'Literal["it\'s"]'),
    (Literal['say "x"'], "Literal['say \"x\"']"),
    (Literal['it\'s "x"'], "Literal['it\\'s \"x\"']"),
    (Literal[1, -2, True, None], "Literal[1, -2, True, None]"),
    (Literal[b"x"], "Literal[b'x']"),
    (Literal[Color.RED], "Literal[Color.RED]"),
    (Literal["é", ""], "Literal['é', '']"),
    (Literal["back\\slash", "line\nbreak"], "Literal['back\\slash', 'line\nbreak']"),
    (Optional[Literal["a"]], "Union[Literal['a'], NoneType]"),
    (Color, "Color"),
    (Level, "Level"),
    (Place, "Place"),
    (Trip, "Trip"),
    (list[Place], "list[Place]"),
    (dict[Color, Place], "dict[Color, Place]"),
    (date, "date"),
    (datetime, "datetime"),
    (timedelta, "timedelta"),
    (Decimal, "Decimal"),
    (UUID, "UUID"),
    (Annotated[int, "x"], "Annotated[int, x]"),
    (list[Annotated[int, "x"]], "list[Annotated[int, x]]"),
    (Reasoning, "str"),
    (list[Reasoning], "list[str]"),
    (Code, "Code"),
    (Code["sql"], "Code_sql"),
    (GenericAlias(list, (Code["SQL"],)), "list[Code_SQL]"),
    (Tool, "Tool"),
    (list[Tool], "list[Tool]"),
    (History, "History"),
    (ImageBlock, "Image"),
    (list[ImageBlock], "list[Image]"),
    (AudioBlock, "Audio"),
    (DocumentBlock, "Document"),
    (list[ToolUseBlock], "ToolCalls"),
    (Optional[ImageBlock], "Union[Image, NoneType]"),
    (dict[str, list[DocumentBlock]], "dict[str, list[Document]]"),
    (NewType("UserId", int), "UserId"),
    (type(None), "NoneType"),
    (Callable[[int], str], "Callable[[<class 'int'>], str]"),
]


@each_case(("annotation", "name"), NAMES)
def test_a_type_has_the_name_that_dspy_writes(annotation: Any, name: str) -> None:
    assert type_name(annotation) == name


def test_a_video_block_has_the_name_of_its_media_kind() -> None:
    assert type_name(list[VideoBlock]) == "list[Video]"


def test_only_a_list_of_tool_use_blocks_is_the_type_of_tool_calls() -> None:
    assert is_tool_calls(list[ToolUseBlock])
    assert not any(map(is_tool_calls, (ToolUseBlock, list[Tool], tuple[ToolUseBlock], list)))
