"""Signature classes: declaration, instructions and edits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Generic, Literal, TypeVar, assert_type, cast

import pytest

from agentkit import OptionError
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.signature import Signature, SignatureMeta
from tests.cases import each_case


class Judge(Signature):
    """Is the answer grounded?

    Use the passages only.
    """

    passages: list[str] = InputField()
    answer: str = InputField(desc="what the agent said")
    verdict: Literal["grounded", "invented"] = OutputField()
    score: int = OutputField(ge=0, le=10)


class Tide(Signature[float]):
    """Tell the tide."""

    harbor: str
    hours: int = 3


# -- declaration ----------------------------------------------------------------------------------------------


def test_all_fields_of_a_subclass_of_a_parametrized_signature_are_inputs() -> None:
    assert Tide.signature == "harbor, hours -> answer"
    assert Tide.output_fields["answer"].type is float
    assert Tide.input_fields["hours"].get_default() == 3
    assert Tide.instructions == "Tell the tide."


def test_the_answer_of_a_parametrized_signature_may_have_options() -> None:
    class Depth(Signature[float]):
        harbor: str = InputField(desc="name of the harbor")
        answer = OutputField(ge=0, default=1.0)  # pyright: ignore[reportGeneralTypeIssues]

    assert Depth.output_fields["answer"].type is float
    assert Depth.output_fields["answer"].constraint_text == "greater than or equal to: 0"
    assert Depth.default() == 1.0


def test_a_subclass_inherits_the_instructions_and_the_fields_and_replaces_fields_in_place() -> None:
    class Strict(Judge):
        answer: int = InputField()  # type: ignore[assignment]  # pyright: ignore
        reason: str = OutputField()

    assert Strict.signature == "passages, answer -> verdict, score, reason"
    assert Strict.input_fields["answer"].type is int
    assert Strict.instructions == Judge.instructions
    assert Judge.signature == "passages, answer -> verdict, score"

    class LaterTide(Tide):
        day: str

    assert LaterTide.signature == "harbor, hours, day -> answer"
    assert LaterTide.output_fields["answer"].type is float


def test_a_field_without_a_type_keeps_the_type_of_the_inherited_field() -> None:
    class Described(Judge):
        passages = InputField(desc="sources")  # pyright: ignore[reportGeneralTypeIssues]

    assert Described.input_fields["passages"].type == list[str]
    assert Described.input_fields["passages"].description == "sources"


_T = TypeVar("_T")


def test_a_generic_signature_gets_its_answer_from_its_parameter() -> None:
    class Choose(Signature[_T], Generic[_T]):
        text: str

    class ChooseNumber(Choose[int]):
        limit: int

    assert Choose.signature == "text -> "
    assert ChooseNumber.signature == "text, limit -> answer"
    assert ChooseNumber.output_fields["answer"].type is int


def test_a_call_of_a_class_whose_output_has_no_type_is_an_error() -> None:
    class Extract(Signature[_T]):
        """Extract the value."""

        text: str

    class ExtractInt(Extract[int]):
        pass

    assert ExtractInt(text="x").text == "x"
    for signature in (Extract, Extract[int]):
        with pytest.raises(OptionError, match=r"Declare a class .*`class ExtractInt\(Extract\[int\]\)`"):
            signature(text="x")


def _declare_without_marker() -> object:
    class Wrong(Signature):
        text: str

    return Wrong


def _declare_second_output() -> object:
    class Wrong(Signature[int]):
        text: str = OutputField()

    return Wrong


def _declare_answer_as_input() -> object:
    class Wrong(Signature[int]):
        answer: str

    return Wrong


def _declare_reserved_name() -> object:
    return SignatureMeta("Wrong", (Signature,), {"__len__": InputField(), "__module__": __name__})


def _declare_wrong_tags() -> object:
    class Wrong(Signature):
        tags = "one"

    return Wrong


_ONE_OUTPUT: Final = "the only output of Signature[T] is 'answer', got the"
_NO_QUERY: Final = "Use Signature instead of Signature[T]."
REFUSED: Final[list[tuple[Callable[[], object], str]]] = [
    (
        _declare_without_marker,
        "Wrong.text: expected InputField() or OutputField() as the value of the attribute, got no value. "
        "Assign InputField() or OutputField().",
    ),
    (_declare_second_output, f"Wrong.text: {_ONE_OUTPUT} output 'text'. {_NO_QUERY}"),
    (_declare_answer_as_input, f"Wrong.answer: {_ONE_OUTPUT} input 'answer'. {_NO_QUERY}"),
    (
        _declare_reserved_name,
        "name: Python reserves names such as '__len__'. Use a name without two underscores at both ends.",
    ),
    (
        _declare_wrong_tags,
        "Wrong.tags: expected a tuple or list of strings, got 'one'. Assign a tuple of strings.",
    ),
    (
        Signature,
        "signature: expected a signature text, got ''. "
        "Pass a text such as 'question -> answer', or declare a subclass.",
    ),
    (
        partial(cast("Any", Signature), question="x"),
        "signature: expected a signature text, got {'question': 'x'}. "
        "Pass a text such as 'question -> answer', or declare a subclass.",
    ),
]


@each_case(("declare", "text"), REFUSED)
def test_an_invalid_declaration_is_refused(declare: Callable[[], object], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        declare()
    assert str(caught.value) == text


def test_a_signature_text_creates_a_signature_with_instructions_and_types() -> None:
    class Point:
        pass

    task = Signature("question, spot: Point -> answer: int", "  Be brief.\n    Be kind.", types={"Point": Point})
    assert task.signature == "question, spot -> answer"
    assert task.instructions == "Be brief.\nBe kind."
    assert task.input_fields["spot"].type is Point
    assert task.__name__ == "StringSignature"
    assert repr(task) == "<signature StringSignature: question, spot -> answer>"


def test_type_checkers_know_the_inputs_and_the_results_of_edits() -> None:
    bound = Judge(passages=["a"], answer="b")
    assert_type(bound, Judge)
    assert_type(bound.passages, list[str])
    assert_type(Judge.with_instructions("Be brief."), type[Judge])
    assert_type(Tide(harbor="Brest").replace(hours=1), Tide)
    assert_type(Signature("a -> b"), Any)


# -- instructions ---------------------------------------------------------------------------------------------


def test_the_docstring_has_the_instructions_without_its_indentation() -> None:
    assert Judge.instructions == "Is the answer grounded?\n\nUse the passages only."


DEFAULTS: Final = [
    ("a, b -> c", "Given the fields `a`, `b`, produce the fields `c`."),
    ("a -> c, d", "Given the fields `a`, produce the fields `c`, `d`."),
    ("-> c", "Given the fields , produce the fields `c`."),
]


@each_case(("text", "instructions"), DEFAULTS)
def test_default_instructions_name_the_fields(text: str, instructions: str) -> None:
    assert Signature(text).instructions == instructions
    assert Signature(text, "").instructions == instructions


def test_an_edit_of_the_fields_keeps_the_instructions() -> None:
    task = Signature("a, b -> c")
    assert (
        task.delete("b").instructions == task.instructions == "Given the fields `a`, `b`, produce the fields `c`."
    )
    assert task.append("d", OutputField()).instructions == task.instructions
    extended = task.append_instructions("Be brief.").delete("a")
    assert extended.instructions == f"{task.instructions}\n\nBe brief."
    assert extended.with_instructions("").instructions == "Given the fields `b`, produce the fields `c`."
    fixed = task.with_instructions("Add a to b.")
    assert fixed.delete("b").instructions == "Add a to b."
    assert fixed.with_instructions("").instructions == task.instructions


def test_appended_instructions_follow_a_blank_line() -> None:
    once = Judge.append_instructions("Be brief.")
    assert once.instructions == "Is the answer grounded?\n\nUse the passages only.\n\nBe brief."
    assert once.append_instructions("Be kind.").instructions == f"{once.instructions}\n\nBe kind."


@pytest.mark.parametrize("instructions", [3, "\ud800"])
def test_instructions_that_are_no_text_are_refused(instructions: Any) -> None:
    read: Callable[[str], object] = partial(cast("Any", Signature), "a -> b")
    edits: list[Callable[[str], object]] = [Judge.with_instructions, Judge.append_instructions, read]
    for edit in edits:
        with pytest.raises(OptionError, match=r"^signature\.instructions: "):
            edit(instructions)


# -- edits ----------------------------------------------------------------------------------------------------

EDITS: Final[list[tuple[Callable[[Any], Any], str]]] = [
    (lambda task: task.append("x", InputField()), "a, b, x -> c"),
    (lambda task: task.prepend("x", InputField()), "x, a, b -> c"),
    (lambda task: task.append("x", OutputField()), "a, b -> c, x"),
    (lambda task: task.prepend("x", OutputField()), "a, b -> x, c"),
    (lambda task: task.insert(1, "x", InputField()), "a, x, b -> c"),
    (lambda task: task.insert(2, "x", InputField()), "a, b, x -> c"),
    (lambda task: task.insert(-2, "x", InputField()), "a, x, b -> c"),
    (lambda task: task.insert(-3, "x", InputField()), "x, a, b -> c"),
    (lambda task: task.delete("a"), "b -> c"),
    (lambda task: task.delete("c"), "a, b -> "),
    (lambda task: task.delete("missing"), "a, b -> c"),
    (lambda task: task.append("x", InputField()).delete("x"), "a, b -> c"),
]


@each_case(("edit", "expected"), EDITS)
def test_an_edit_returns_a_new_signature_and_changes_nothing(edit: Callable[[Any], Any], expected: str) -> None:
    task = Signature("a, b -> c")
    before = dict(task.fields)
    edited = edit(task)
    assert edited is not task
    assert edited.signature == expected
    assert task.signature == "a, b -> c"
    assert task.fields == before


def test_an_edited_signature_stays_a_subclass_with_its_name_and_its_attributes() -> None:
    class Named(Judge):
        tags = ("judging",)

    edited = Named.append("x", InputField(), int).append("y", InputField()).delete("x").with_instructions("Go.")
    assert issubclass(edited, Named)
    assert (edited.__name__, edited.__qualname__) == (Named.__name__, Named.__qualname__)
    assert edited.tags == ("judging",)
    assert edited.__mro__[1] is Named


def test_a_subclass_of_an_edited_signature_has_the_edited_fields() -> None:
    edited: Any = Judge.delete("score")

    class Longer(edited):  # type: ignore[misc]
        reason: str = OutputField()

    assert Longer.signature == "passages, answer -> verdict, reason"


def test_the_type_of_a_new_field_is_the_given_type_or_the_type_of_the_field_or_str() -> None:
    task = Signature("a -> b")
    assert task.append("x", InputField(), list[int]).fields["x"].type == list[int]
    assert task.append("x", InputField()).fields["x"].type is str
    copied = task.append("points", Judge.output_fields["score"]).fields["points"]
    assert (copied.name, copied.type, copied.constraint_text) == (
        "points",
        int,
        "greater than or equal to: 0, less than or equal to: 10",
    )


def test_updated_fields_keep_their_position_and_their_other_options() -> None:
    updated = Judge.with_updated_fields("score", float, desc="points", le=5)
    field = updated.fields["score"]
    assert list(updated.fields) == list(Judge.fields)
    assert (field.type, field.description) == (float, "points")
    assert field.constraint_text == "greater than or equal to: 0, less than or equal to: 5"
    assert Judge.fields["score"].type is int


INVALID_EDITS: Final[list[tuple[Callable[[], object], str]]] = [
    (
        lambda: Judge.insert(5, "x", InputField()),
        "index: expected a position from -3 to 2, got 5. Pass -1 for the last position.",
    ),
    (
        lambda: Judge.insert(-4, "x", InputField()),
        "index: expected a position from -3 to 2, got -4. Pass -1 for the last position.",
    ),
    (
        lambda: Judge.append("score", InputField()),
        "name: Judge already has a field 'score'. Use another name, or call with_updated_fields().",
    ),
    (
        lambda: Judge.append("x", str),
        "field: expected InputField(…) or OutputField(…), got <class 'str'>. "
        "Pass InputField(…) or OutputField(…).",
    ),
    (
        lambda: Judge.append("x y", InputField()),
        "name: expected an identifier, got 'x y'. Use letters, digits and underscores for the name of a field.",
    ),
    (lambda: Judge.with_updated_fields("scoer"), "name: Judge has no field 'scoer'. Did you mean 'score'?"),
    (
        lambda: Judge.with_updated_fields("zz"),
        "name: Judge has no field 'zz'. Use one of: passages, answer, verdict, score.",
    ),
    (
        lambda: Judge.with_updated_fields("score", gte=3),
        "gte: field 'score' has no such option. Did you mean 'gt'?",
    ),
]


@each_case(("edit", "text"), INVALID_EDITS)
def test_an_invalid_edit_is_refused(edit: Callable[[], object], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        edit()
    assert str(caught.value) == text


def test_signatures_are_equal_if_their_instructions_and_fields_are_equal() -> None:
    task = Signature("a, b: int -> c", "Go.")
    assert task.equals(Signature("a, b: int -> c", "Go."))
    others = ["a, b -> c", "b: int, a -> c", "a, b: int -> d", "a, b: int, c ->", "a -> c"]
    assert not any(task.equals(Signature(text, "Go.")) for text in others)
    assert not task.equals(Signature("a, b: int -> c", "Stop."))
    assert not task.equals("a, b: int -> c")
    assert not task.equals(task.with_updated_fields("a", desc="first"))
