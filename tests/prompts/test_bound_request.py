"""Signatures bound to values: validation, immutability, JSON and operations."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from datetime import date
from enum import Enum
from keyword import iskeyword
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import AgentkitError, ImageBlock, MessageError, OptionError, URLSource
from agentkit.prompts import bound_request
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.signature import Signature, SignatureMeta
from tests.cases import each_case
from tests.profiles import examples


class Judge(Signature):
    """Is the answer grounded?"""

    passages: list[str] = InputField()
    answer: str = InputField(desc="what the agent said")
    limit: int = InputField(default=3, ge=1)
    notes: list[str] = InputField(default_factory=list)
    verdict: Literal["grounded", "invented"] = OutputField(default="invented")


class Clash(Signature):
    """Has fields with the names of operations."""

    tags: str = InputField()
    replace: int = InputField()  # type: ignore[assignment]  # pyright: ignore
    to_dict: list[int] = InputField()  # type: ignore[assignment]  # pyright: ignore
    from_dict: str = InputField()  # type: ignore[assignment]  # pyright: ignore
    choices: str = InputField()  # type: ignore[assignment]  # pyright: ignore
    default: str = InputField()  # type: ignore[assignment]  # pyright: ignore
    fields: str = InputField()
    instructions: str = InputField()
    model_config: str = InputField()
    verdict: bool = OutputField(default=False)


CLASH: Final[dict[str, Any]] = {
    "tags": "t",
    "replace": 1,
    "to_dict": [2],
    "from_dict": "f",
    "choices": "c",
    "default": "d",
    "fields": "x",
    "instructions": "i",
    "model_config": "m",
}


# -- binding --------------------------------------------------------------------------------------------------


def test_a_bound_request_has_its_values_and_its_defaults_as_attributes() -> None:
    bound = Judge(passages=("a", "b"), answer="c")  # type: ignore[arg-type]  # pyright: ignore
    assert (bound.passages, bound.answer, bound.limit, bound.notes) == (["a", "b"], "c", 3, [])
    assert bound_request.get_inputs(bound) == {"passages": ["a", "b"], "answer": "c", "limit": 3, "notes": []}


def test_a_bound_request_shares_no_list_with_its_arguments_and_its_defaults() -> None:
    passages = ["a"]
    first, second = Judge(passages=passages, answer="c"), Judge(passages=passages, answer="c")
    passages.append("b")
    first.notes.append("n")
    assert (first.passages, second.passages, second.notes) == (["a"], ["a"], [])


REFUSED: Final[list[tuple[dict[str, Any], str]]] = [
    ({"answer": "b"}, "Judge.passages: the input has no value. Pass a value for this input."),
    (
        {"passages": ["a", 3], "answer": "b"},
        "Judge.passages[1]: Input should be a valid string (got int 3). Pass a valid value.",
    ),
    (
        {"passages": [], "answer": "b", "limit": 0},
        "Judge.limit: Input should be greater than or equal to 1 (got int 0). Pass a valid value.",
    ),
    (
        {"passages": [], "answer": "b", "answr": "c"},
        "Judge.answr: Judge has no input of this name. Did you mean 'answer'?",
    ),
    (
        {"passages": [], "answer": "b", "zz": "c"},
        "Judge.zz: Judge has no input of this name. Use one of: passages, answer, limit, notes.",
    ),
    (
        {"passages": [], "answer": "b", "verdict": "invented"},
        "Judge.verdict: the field is an output. Pass values for inputs only.",
    ),
]


@each_case(("values", "text"), REFUSED)
def test_invalid_values_are_refused(values: dict[str, Any], text: str) -> None:
    binders: list[Callable[[], object]] = [lambda: Judge(**values), lambda: Judge.from_dict(values)]
    for bind in binders:
        with pytest.raises(MessageError) as caught:
            bind()
        assert str(caught.value) == text


def test_values_without_names_are_refused() -> None:
    signature: Any = Judge
    with pytest.raises(OptionError) as caught:
        signature(["a"], "b")
    assert str(caught.value) == "Judge: expected values by name, got ['a']. Pass keyword arguments."


def test_constraints_that_do_not_fit_the_type_are_reported_at_the_call() -> None:
    task = Signature("a -> b").with_updated_fields("a", list[str], ge=3)
    with pytest.raises(OptionError, match=r"^StringSignature\.a: pydantic cannot validate"):
        task(a=["x"])


def test_a_bound_request_is_immutable() -> None:
    bound = Judge(passages=[], answer="b")
    with pytest.raises(FrozenInstanceError, match="cannot assign to 'answer'"):
        bound.answer = "c"  # type: ignore[misc]  # pyright: ignore
    with pytest.raises(FrozenInstanceError, match="cannot delete 'answer'"):
        del bound.answer  # pyright: ignore[reportAttributeAccessIssue]
    assert bound.answer == "b"


def test_equal_values_of_one_signature_are_equal() -> None:
    first = Judge(passages=["a"], answer="b")
    assert first == Judge(passages=["a"], answer="b", limit=3)
    assert first != Judge(passages=["a"], answer="c")
    assert first != Judge.with_instructions("Other.")(passages=["a"], answer="b")
    assert first != "Judge"


def test_a_bound_request_has_a_hash_if_its_values_have_one() -> None:
    task = Signature("a, b: int -> c")
    assert {task(a="x", b=1): 2}[task(a="x", b=1)] == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Judge(passages=[], answer="b"))


def test_the_repr_shows_the_values_and_is_short() -> None:
    bound = Judge(passages=["a"], answer="b")
    assert repr(bound) == "Judge(passages=['a'], answer='b', limit=3, notes=[])"
    assert len(repr(Judge(passages=["x" * 10_000] * 100, answer="y" * 100_000))) < 2_500


def test_a_bound_request_can_be_copied_and_pickled() -> None:
    bound = Judge(passages=["a"], answer="b")
    for duplicate in (copy.copy(bound), copy.deepcopy(bound), pickle.loads(pickle.dumps(bound))):
        assert duplicate == bound
    assert copy.deepcopy(bound).passages is not bound.passages


# -- operations -----------------------------------------------------------------------------------------------


def test_replace_returns_a_validated_copy() -> None:
    bound = Judge(passages=["a"], answer="b")
    assert bound.replace(answer="c") == Judge(passages=["a"], answer="c")
    assert bound.answer == "b"
    with pytest.raises(MessageError, match=r"^Judge\.limit: Input should be greater"):
        bound.replace(limit=0)
    with pytest.raises(MessageError, match=r"^Judge\.zz: Judge has no input of this name"):
        bound.replace(zz=0)


def test_the_values_become_json_and_load_again() -> None:
    class Report(Signature):
        day: date = InputField()
        image: ImageBlock = InputField()
        places: dict[int, set[str]] = InputField()
        text: str = OutputField()

    bound = Report(
        day=date(2026, 1, 2), image=ImageBlock(URLSource("https://example.com/a.png")), places={1: {"a"}}
    )
    data = bound.to_dict()
    assert data["day"] == "2026-01-02"
    assert data["places"] == {"1": ["a"]}
    assert Report.from_dict(data) == bound


@each_case("data", [3, "x", [1], None, {1: 2}])
def test_data_that_is_no_object_with_names_is_refused(data: Any) -> None:
    with pytest.raises(MessageError, match=r"^Judge: expected"):
        Judge.from_dict(data)


class Color(Enum):
    RED = "red"
    BLUE = "blue"


CHOICES: Final[list[tuple[Any, tuple[Any, ...]]]] = [
    (Literal["a", 2], ("a", 2)),
    (Color, (Color.RED, Color.BLUE)),
    (bool, (True, False)),
]


@each_case(("annotation", "values"), CHOICES)
def test_choices_are_the_values_of_the_only_output(annotation: Any, values: tuple[Any, ...]) -> None:
    task = Signature("a ->").append("b", OutputField(), annotation)
    assert task.choices() == values
    assert task(a="x").choices() == values
    assert bound_request.choices(task(a="x")) == values


@each_case(
    ("text", "message"),
    [
        ("a -> b", "StringSignature.b: expected an output of the type Literal, Enum or bool, got the type str. "),
        ("a -> b: bool, c", "StringSignature: expected a signature with one output, got 2 outputs. "),
        ("a ->", "StringSignature: expected a signature with one output, got 0 outputs. "),
    ],
)
def test_other_signatures_have_no_choices(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        Signature(text).choices()
    assert str(caught.value).startswith(message)


def test_the_default_is_the_default_of_the_only_output() -> None:
    assert Judge.default() == "invented"
    assert Judge(passages=[], answer="b").default() == "invented"
    with pytest.raises(OptionError, match=r"^b: the field has no default"):
        Signature("a -> b").default()


def test_the_tags_are_the_name_of_the_class_or_its_attribute() -> None:
    class Marked(Judge):
        tags = ["one", "two"]  # noqa: RUF012

    assert Judge.tags == ("Judge",)
    assert Judge(passages=[], answer="b").tags == ("Judge",)
    signature: Any = Marked
    assert signature.tags == ("one", "two")
    assert bound_request.tags(Marked(passages=[], answer="b")) == ("one", "two")


def test_a_method_of_the_signature_may_replace_an_operation() -> None:
    class Flag(Signature[bool]):
        name: str

        @classmethod
        def default(cls) -> bool:
            return True

    assert Flag(name="x").default() is True


# -- any field name -------------------------------------------------------------------------------------------


def test_a_field_takes_precedence_over_an_operation_of_the_same_name() -> None:
    bound = Clash(**CLASH)
    for name, value in CLASH.items():
        assert getattr(bound, name) == value


def test_the_functions_work_if_a_field_has_the_name_of_an_operation() -> None:
    bound = Clash(**CLASH)
    assert bound_request.to_dict(bound) == CLASH
    assert bound_request.from_dict(Clash, CLASH) == bound
    assert bound_request.get_inputs(bound_request.replace(bound, replace=5)) == {**CLASH, "replace": 5}
    assert bound_request.choices(bound) == (True, False)
    assert bound_request.default(bound) is False
    assert bound_request.tags(bound) == ("Clash",)


def test_the_operations_of_the_class_work_if_a_field_has_their_name() -> None:
    signature: Any = Clash
    assert list(signature.fields) == [*CLASH, "verdict"]
    assert signature.instructions == "Has fields with the names of operations."
    assert signature.tags == ("Clash",)


def _is_reserved(name: str) -> bool:
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


_OPERATIONS: Final = sorted({*dir(Signature), *dir(SignatureMeta), "self", "cls", "args", "values"})
_NAMES: Final = st.one_of(
    st.sampled_from(_OPERATIONS),
    st.text("abc_AZ019äß文", min_size=1, max_size=6).filter(str.isidentifier),
    st.sampled_from(["model_config", "model_fields", "class", "None", "_own", "_resolved", "__", "___", "__x"]),
).filter(lambda name: not _is_reserved(name))


def _list_attributes(cls: type) -> dict[str, object]:
    return {name: value for name, value in cls.__dict__.items() if not name.startswith("__")}


@given(st.lists(_NAMES, min_size=1, max_size=5, unique=True), st.data())
@examples(100)
def test_any_identifier_can_be_the_name_of_a_field(names: list[str], data: st.DataObject) -> None:
    task: Any = Signature("->")
    for name in names:
        task = task.append(name, InputField(), int | str)
    before = _list_attributes(task)
    values = {name: data.draw(st.integers() | st.text(max_size=3)) for name in names}

    bound = task(**values)
    assert {name: getattr(bound, name) for name in names} == values
    assert bound_request.to_dict(bound) == values
    assert bound_request.from_dict(task, bound_request.to_dict(bound)) == bound
    assert bound_request.replace(bound, **values) == bound
    assert _list_attributes(task) == before
    assert list(task.fields) == names


@given(_NAMES.filter(lambda name: not iskeyword(name)))
@examples(100)
def test_a_class_may_declare_a_field_of_any_name(name: str) -> None:
    namespace = {"__module__": __name__, "__annotations__": {name: "int"}, name: InputField()}
    task: Any = SignatureMeta("Task", (Signature,), namespace)
    assert getattr(task(**{name: 3}), name) == 3
    assert task.signature == f"{name} -> "


@each_case("name", [name for name in _OPERATIONS if _is_reserved(name)])
def test_names_that_python_reserves_are_refused(name: str) -> None:
    binders: Sequence[Callable[[], object]] = [
        lambda: Signature("->").append(name, InputField()),
        lambda: Signature(f"{name} ->"),
        lambda: SignatureMeta("Task", (Signature,), {"__module__": __name__, name: OutputField()}),
    ][: 2 if name in ("__annotations__", "__orig_bases__") else 3]  # Python sets these two in each namespace
    for bind in binders:
        with pytest.raises(AgentkitError):
            bind()
