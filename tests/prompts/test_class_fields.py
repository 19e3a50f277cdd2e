"""Fields of a class body: their order, and types that are defined later or locally."""

from __future__ import annotations

import gc
import weakref
from enum import Enum
from typing import ClassVar

import pytest

from agentkit import OptionError
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.signature import Signature


def test_a_class_declares_fields_in_order_inputs_first() -> None:
    class Mixed(Signature):
        total: int = OutputField()
        text = InputField()  # pyright: ignore[reportGeneralTypeIssues]
        note = OutputField()  # pyright: ignore[reportGeneralTypeIssues]
        count: int = InputField()

    assert list(Mixed.fields) == ["text", "count", "total", "note"]
    assert list(Mixed.input_fields) == ["text", "count"]
    assert list(Mixed.output_fields) == ["total", "note"]
    assert [field.type for field in Mixed.fields.values()] == [str, int, int, str]
    assert Mixed.signature == "text, count -> total, note"


class Early(Signature):
    later: Later = InputField()
    laters: list[Later] = OutputField()


def test_a_type_that_is_defined_later_in_the_module_is_resolved_at_the_first_use() -> None:
    assert Early.input_fields["later"].type is Later
    assert Early.output_fields["laters"].type == list[Later]


class Later(Enum):
    NOON = "noon"


def test_a_type_that_is_never_defined_is_an_error_with_its_name() -> None:
    class Lost(Signature):
        place: Nowhere = InputField()  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore

    with pytest.raises(OptionError) as caught:
        _ = Lost.fields
    expected = "Lost: the type 'Nowhere' is not defined. Define or import the type before the first use of Lost."
    assert str(caught.value) == expected
    assert repr(Lost) == "<signature Lost>"


def test_a_local_class_may_use_local_types() -> None:
    class Size(Enum):
        SMALL = 1

    class Measure(Signature):
        size: Size = OutputField()

    assert Measure.choices() == (Size.SMALL,)


def test_class_variables_and_plain_attributes_are_not_fields() -> None:
    class Marked(Signature):
        limit: ClassVar[int] = 3
        style = "short"
        text: str = InputField()

    assert list(Marked.fields) == ["text"]
    assert (Marked.limit, Marked.style) == (3, "short")


class _Payload:
    pass


def _declare_beside(payload: _Payload) -> type[Signature]:
    class Local(Signature):
        text: str = InputField()

    return Local


def test_a_class_keeps_no_local_variables_after_its_types_are_resolved() -> None:
    payload = _Payload()
    alive = weakref.ref(payload)
    task = _declare_beside(payload)
    del payload
    gc.collect()
    assert alive() is None
    assert list(task.fields) == ["text"]


class Question(Signature):
    """Answer the question."""

    question: str = InputField()
    answer: str = OutputField()


class Sources(Signature):
    """Cite the sources."""

    style: str = InputField()
    sources: list[str] = OutputField()


def test_an_edited_signature_that_would_hide_fields_of_another_base_class_is_an_error() -> None:
    with pytest.raises(OptionError, match="signature Question hides the fields style, sources"):

        class Joined(Question.append("hint", InputField()), Sources):  # type: ignore[misc]
            pass


def test_an_edited_signature_after_another_base_class_adds_its_fields() -> None:
    class Joined(Sources, Question.delete("question")):  # type: ignore[misc]
        pass

    class Child(Joined):
        score: int = OutputField()

    assert Joined.signature == "style -> answer, sources"
    assert Child.signature == "style -> answer, sources, score"
    assert Child.append("note", OutputField()).delete("style").signature == " -> answer, sources, score, note"
