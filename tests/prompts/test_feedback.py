"""Feedback: the default template, and feedback on a reply that could not be parsed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from agentkit import OptionError, ParseError, TemplateError
from agentkit.prompts.feedback import FEEDBACK_TEMPLATE, Feedback
from agentkit.prompts.prompt_templates import PromptTemplates
from tests.cases import each_case

AnyFeedback: Any = Feedback


def write(feedback: Feedback) -> str:
    return PromptTemplates().render("Judge", "feedback", {"feedback": feedback}, default=FEEDBACK_TEMPLATE)


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("The score is 11.", 'Error. Please try again.\n\n"""\nThe score is 11.\n"""'),
        ("one\n\ntwo {{ x }}\n", 'Error. Please try again.\n\n"""\none\n\ntwo {{ x }}\n\n"""'),
    ],
)
def test_the_default_template_writes_the_description(description: str, text: str) -> None:
    assert write(Feedback("parse_error", description)) == text


def test_the_default_template_requires_a_description() -> None:
    with pytest.raises(TemplateError, match="the feedback has no description"):
        write(Feedback("parse_error"))


def test_a_template_reads_the_label_and_the_meta_values() -> None:
    feedback = Feedback("cheeky", meta={"tries": [1, 2]})
    source = "{{ feedback.label }}: {{ feedback.meta.tries[1] }}"
    assert PromptTemplates().render("Judge", "feedback", {"feedback": feedback}, default=source) == "cheeky: 2"


@each_case(
    ("error", "feedback"),
    [
        (ParseError("no JSON", label="bad", meta={"a": 1}), Feedback("bad", "no JSON", {"a": 1})),
        (ParseError("got 11", place="score"), Feedback("parse_error", "score: got 11")),
        (ParseError(label="cheeky"), Feedback("cheeky", "cheeky")),
        (ParseError(label="cheeky", place="answer[0]"), Feedback("cheeky", "answer[0]: cheeky")),
    ],
)
def test_an_error_becomes_feedback(error: ParseError, feedback: Feedback) -> None:
    assert Feedback.from_error(error) == feedback


def test_feedback_does_not_change_and_shares_no_values() -> None:
    meta = {"tries": [1]}
    feedback = Feedback("bad", "text", meta)
    meta["tries"].append(2)
    assert feedback.meta == {"tries": [1]}
    assert pickle.loads(pickle.dumps(feedback)) == feedback
    with pytest.raises(AttributeError):
        feedback.label = "x"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


@each_case(
    ("arguments", "reason"),
    [
        ((1,), "Feedback.label: expected str, got int"),
        (("a", None), "Feedback.description: expected str, got None"),
        (("a", "b", [1]), "Feedback.meta: expected Mapping, got list"),
    ],
)
def test_wrong_types_are_refused(arguments: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        AnyFeedback(*arguments)
