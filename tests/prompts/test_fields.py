"""Declarations of fields, constraints, and the validation of one value."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final

import pytest
from pydantic import BaseModel, Field

from agentkit import ImageBlock, MessageError, OptionError, ParseError, Tool, URLSource
from agentkit.prompts.fields import InputField, OutputField, SignatureField
from tests.cases import each_case


def _output(type: Any, **options: Any) -> SignatureField:
    field: SignatureField = OutputField(**options).with_type("score", type)
    return field


INVALID_OPTIONS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"gte": 3}, "gte: OutputField has no such option. Did you mean 'gt'?"),
    (
        {"prefix": "x"},
        "prefix: OutputField has no such option, and DSPy would ignore it without an error. Remove this option.",
    ),
    ({"desc": 3}, "desc: expected str, got int 3. Pass a value of type str, or omit the option."),
    (
        {"default": 1, "default_factory": int},
        "default: cannot be combined with `default_factory`. Pass one of them.",
    ),
    (
        {"default_factory": 3},
        "default_factory: expected a function, got 3. Pass a function without parameters.",
    ),
]


@each_case(("options", "text"), INVALID_OPTIONS)
def test_an_invalid_option_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        OutputField(**options)
    assert str(caught.value) == text


@each_case("name", ["two words", "", "a-b", "1a", 3, "__class__", "__init__", "__dict__"])
def test_an_invalid_name_is_refused(name: Any) -> None:
    with pytest.raises(OptionError) as caught:
        InputField().with_type(name, str)
    assert caught.value.place == "name"


VIOLATIONS: Final[list[tuple[Any, dict[str, Any], object, object]]] = [
    (int, {"gt": 0}, 1, 0),
    (int, {"ge": 0, "le": 10}, 10, 11),
    (float, {"lt": 1.5}, 1.0, 1.5),
    (int, {"multiple_of": 3}, 9, 10),
    (float, {"allow_inf_nan": False}, 1.0, float("nan")),
    (str, {"min_length": 1, "max_length": 2}, "ab", "abc"),
    (list[int], {"max_length": 1}, [1], [1, 2]),
    (str, {"pattern": "^a+$"}, "aa", "ab"),
    (int, {"strict": True}, 1, "1"),
    (Decimal, {"max_digits": 3, "decimal_places": 1}, Decimal("12.3"), Decimal("1.23")),
    (Annotated[int, Field(ge=3)], {"le": 5}, 4, 2),
    (Annotated[int, Field(ge=3)], {"le": 5}, 4, 6),
]


@each_case(("type", "options", "valid", "invalid"), VIOLATIONS)
def test_a_value_that_violates_a_constraint_is_refused(
    type: Any, options: dict[str, Any], valid: object, invalid: object
) -> None:
    field = _output(type, **options)
    assert field.validate(valid) == valid
    with pytest.raises(ParseError) as caught:
        field.validate(invalid)
    assert (caught.value.failure, caught.value.place) == ("wrong_value", "score")


def test_the_error_about_an_output_is_a_parse_error_with_the_place_and_the_text() -> None:
    with pytest.raises(ParseError) as caught:
        _output(dict[str, list[int]]).validate({"low": [1, "x"]})
    assert caught.value.place == "score.low[1]"
    assert caught.value.text == "x"


def test_the_error_about_an_input_is_a_message_error_with_the_name_of_the_signature() -> None:
    with pytest.raises(MessageError) as caught:
        InputField().with_type("passages", list[str]).validate(["a", 3], "Judge")
    expected = "Judge.passages[1]: Input should be a valid string (got int 3). Pass a valid value."
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("annotation", "options", "text"),
    [
        (list[str], {"ge": 3}, "score: pydantic cannot validate ['a'] (Unable to apply constraint"),
        (type("Handle", (), {"__get_pydantic_core_schema__": 3}), {}, "score: pydantic does not support the type"),
    ],
)
def test_constraints_that_do_not_fit_the_type_are_refused(
    annotation: Any, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(OptionError) as caught:
        _output(annotation, **options).validate(["a"])
    assert str(caught.value).startswith(text)


@each_case(
    ("annotation", "options"),
    [(str, {"pattern": "("}), (int, {"multiple_of": 0}), (dict[int], {"max_length": 3})],  # type: ignore[misc]
)
def test_a_constraint_that_pydantic_refuses_is_an_error_at_the_declaration(
    annotation: Any, options: dict[str, Any]
) -> None:
    expected = "^score: pydantic does not support the type or a constraint"
    with pytest.raises(OptionError, match=expected):
        _output(annotation, **options)
    with pytest.raises(OptionError, match=expected):
        _output(annotation).with_options(options)


def test_a_type_that_is_not_complete_may_have_constraints() -> None:
    class Later(BaseModel):
        items: list[Missing]  # type: ignore[name-defined]  # noqa: F821

    assert _output(list[Later], max_length=3).constraint_text == "maximum length: 3"


def test_a_constraint_that_does_not_fit_a_loaded_value_is_an_option_error() -> None:
    with pytest.raises(OptionError, match=r"^score: pydantic cannot validate \[1\] \(Unable to apply constraint"):
        _output(list[int], ge=3).load([1])


def test_a_default_is_a_new_copy_at_each_call() -> None:
    field = _output(list[int], default=[1])
    field.get_default().append(2)
    assert field.get_default() == [1]
    assert _output(dict[str, int], default_factory=dict).get_default() == {}
    assert not field.is_required


def test_a_field_without_default_has_none_to_return() -> None:
    field = _output(int)
    assert field.is_required
    with pytest.raises(OptionError, match=r"^score: the field has no default"):
        field.get_default()


def test_new_options_replace_options_of_the_same_name_and_keep_the_others() -> None:
    field = _output(int, desc="points", le=10, ge=0)
    changed = field.with_options({"le": 5, "gt": 1, "default": 3}, float)
    assert changed.constraint_text == ("less than or equal to: 5, greater than or equal to: 0, greater than: 1")
    assert (changed.description, changed.type, changed.default) == ("points", float, 3)
    assert field == _output(int, desc="points", le=10, ge=0)


def test_constraints_cannot_be_changed_in_place() -> None:
    constraints: Any = _output(int, ge=0).constraints
    with pytest.raises(TypeError):
        constraints["ge"] = 5


JSON_VALUES: Final[list[tuple[Any, object, object]]] = [
    (date, date(2026, 1, 2), "2026-01-02"),
    (bytes, b"\xff\x00", "_wA="),
    (set[int], {1}, [1]),
    (tuple[int, str], (1, "a"), [1, "a"]),
    (dict[int, float], {1: 0.5}, {"1": 0.5}),
    (Any, {"a": [None, True]}, {"a": [None, True]}),
]


@each_case(("annotation", "value", "dumped"), JSON_VALUES)
def test_a_value_becomes_json_and_loads_again(annotation: Any, value: object, dumped: object) -> None:
    field = InputField().with_type("value", annotation)
    assert field.dump(value) == dumped
    assert field.load(dumped) == value


def test_blocks_become_json_and_load_again() -> None:
    field = InputField().with_type("images", list[ImageBlock])
    images = [ImageBlock(URLSource("https://example.com/a.png"))]
    assert json.loads(json.dumps(field.dump(images))) == field.dump(images)
    assert field.load(field.dump(images)) == images


def test_the_function_of_a_tool_is_not_part_of_the_json() -> None:
    def look(place: str) -> str:
        """Looks at a place."""
        return place

    field = InputField().with_type("tool", Tool)
    tool = Tool.from_function(look)
    loaded = field.load(field.dump(tool))
    assert loaded == tool
    assert loaded.function is None


def test_a_value_that_json_cannot_represent_is_refused() -> None:
    class Handle:
        pass

    field = InputField().with_type("handle", Handle)
    handle = Handle()
    assert field.validate(handle) is handle
    with pytest.raises(MessageError, match=r"^Task\.handle: JSON cannot represent"):
        field.dump(handle, "Task")
    with pytest.raises(MessageError, match="expected a JSON value"):
        InputField().with_type("value", Any).load(handle)


def test_a_field_of_a_class_without_schema_accepts_its_instances_only() -> None:
    field = _output(Callable[[int], str])
    assert field.validate(str) is str
    with pytest.raises(ParseError):
        field.validate(3)


def test_a_required_field_stays_required_after_pickling_its_default() -> None:
    assert pickle.loads(pickle.dumps(_output(int).default)) is _output(int).default
