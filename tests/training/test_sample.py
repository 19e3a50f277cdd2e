"""`Sample`: its values, the weights of its messages, and its errors."""

from __future__ import annotations

import pickle
from typing import Any, Final

import pytest

from agentkit import Msg, OptionError, TextBlock, ToolUseBlock
from agentkit.training import Sample
from tests.cases import each_case

MSGS: Final = [
    Msg("Bob", "Hello.", "user"),
    Msg("Friday", [TextBlock("Hi."), ToolUseBlock("c1", "look", {})], "assistant"),
]


def look(place: str) -> str:
    """Looks."""
    return place


def test_a_sample_is_a_value() -> None:
    sample = Sample(MSGS, [look], [None, [1, 0]], "Friday", {1: [5, 6]}, "log")
    same = Sample(tuple(MSGS), sample.tools, (None, (1, 0)), "Friday", {1: (5, 6)}, "log")
    assert sample == same == pickle.loads(pickle.dumps(Sample(MSGS, [same.tools[0]], *_values(same))))
    assert sample != Sample(MSGS)
    assert "Friday" in repr(sample)


def _values(sample: Sample) -> tuple[Any, ...]:
    return sample.weights, sample.viewer, sample.tokens, sample.source


def test_weights_are_stored_in_one_form() -> None:
    assert Sample(MSGS, weights=[None, None]).weights is None
    assert Sample(MSGS, weights=[0, [1, 1]]).weights == (0, 1)
    assert Sample(MSGS, weights=[0, True]).get_weight(1) == 1
    assert Sample(MSGS).get_weight(1) is None


def test_a_reply_without_blocks_has_no_weights_of_blocks() -> None:
    msgs = [MSGS[0], Msg("Friday", [], "assistant")]
    assert Sample(msgs, weights=[None, []]).weights is None
    assert Sample(msgs, weights=[0, []]).weights == (0, None)


def test_replies_are_those_of_the_viewer() -> None:
    msgs = [*MSGS, Msg("Eve", "Hm.", "assistant")]
    assert Sample(msgs).replies == (1, 2)
    assert Sample(msgs, viewer="Eve").replies == (2,)


@each_case(
    ("options", "text"),
    {
        "too few weights": ({"weights": [1]}, "expected one weight for each of the 2 messages, got 1"),
        "a fraction": ({"weights": [1, 0.5]}, r"weights\[1\]: expected 0, 1 or None, got 0.5"),
        "too many block weights": ({"weights": [1, [1, 1, 1]]}, "each of the 2 blocks, got 3"),
        "a block weight": ({"weights": [1, ["a", 1]]}, r"weights\[1\]\[0\]: expected 0, 1 or None, got 'a'"),
        "tokens of a user": ({"tokens": {0: [1]}}, r"tokens\[0\]: `msgs` has no reply with this index"),
        "tokens that are texts": ({"tokens": {1: ["a"]}}, r"tokens\[1\]: expected token ids"),
        "tokens as a text": ({"tokens": {1: "ab"}}, r"tokens\[1\]: expected list"),
        "a viewer": ({"viewer": 1}, "viewer: expected str"),
        "other columns": ({"extra": [1]}, "extra: expected Mapping"),
    },
)
def test_an_error_names_the_value(options: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        Sample(MSGS, **options)
