"""Trajectories of ATIF: fields without an attribute are kept, and invalid fields are errors."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import ImageBlock, MessageError, Msg, URLSource
from agentkit.training import Sample, dump_rows, load_rows
from tests.cases import each_case

CALL: Final = {"tool_call_id": "c1", "function_name": "look", "arguments": {}, "extra": {"retries": 1}}
RESULTS: Final = [
    {"source_call_id": "c1", "content": "there", "subagent_trajectory_ref": [{"session_id": "s2"}]},
    {"content": "done", "extra": {"seconds": 2}},
]
ROW: Final[dict[str, Any]] = {
    "schema_version": "ATIF-v1.7",
    "agent": {"name": "agent", "version": "unknown"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Where?", "extra": {"mood": "good"}},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [CALL],
            "observation": {"results": RESULTS},
            "llm_call_count": 2,
        },
    ],
}


def test_fields_of_steps_calls_and_results_survive() -> None:
    assert list(dump_rows("atif", load_rows("atif", [ROW]))) == [ROW]


@each_case(
    ("step", "text"),
    [
        ({"observation": "done"}, r"steps\[0\].observation: expected a JSON object"),
        ({"extra": "good"}, r"steps\[0\].extra: expected a JSON object"),
        ({"tool_calls": [CALL]}, r"steps\[0\].tool_calls: only steps with the source 'agent' can have this field"),
        ({"message": None}, r"steps\[0\].message: the step has no message"),
        (
            {"message": [{"type": "image", "source": {"url": "a"}}]},
            r"steps\[0\].message\[0\]: the image has no path",
        ),
        ({"extra": {"weight": 5}}, r"steps\[0\].extra.weight: expected 0 or 1, got 5"),
        *(
            (
                {"source": "agent", "metrics": {"completion_token_ids": ids}},
                r"steps\[0\].metrics.completion_token_ids: expected ",
            )
            for ids in ("7", [-1], [True])
        ),
        ({"reasoning_content": "Hm."}, r"steps\[0\].reasoning_content: only steps with the source 'agent'"),
    ],
)
def test_an_invalid_field_of_a_step_is_an_error(step: dict[str, Any], text: str) -> None:
    row = {**ROW, "steps": [{**ROW["steps"][0], **step}]}
    with pytest.raises(MessageError, match=f"line 1, {text}"):
        next(load_rows("atif", [row]))


def test_a_tool_with_a_value_that_json_cannot_represent_is_an_error() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "integer", "maximum": 10**5_000}}}
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    row = {**ROW, "agent": {**ROW["agent"], "tool_definitions": [tool]}}
    place = r"agent.tool_definitions\[0\].function.parameters.properties.q.maximum"
    with pytest.raises(MessageError, match=f"line 1, {place}: JSON cannot represent the value"):
        next(load_rows("atif", [row]))


@each_case(
    ("tools", "text"),
    [
        ("look", ": expected a list"),
        ([{"name": "look", "maximum": b"x"}], r"\[0\].maximum: JSON cannot represent the value"),
        ([{"name": "look", "description": 0}], r"\[0\].description: "),
        ([{"name": "look"}, {"name": "look"}], r"\[1\].name: another tool has the name"),
    ],
)
def test_an_invalid_tool_is_an_error_with_its_place(tools: Any, text: str) -> None:
    row = {**ROW, "agent": {**ROW["agent"], "tool_definitions": tools}}
    with pytest.raises(MessageError, match=f"^line 1, agent.tool_definitions{text}"):
        next(load_rows("atif", [row]))


def test_samples_with_recorded_tokens_survive() -> None:
    msgs = [Msg("user", "Where?", "user"), Msg("assistant", "There.", "assistant")]
    sample = Sample(msgs, tokens={1: [5, 6]})
    assert [*load_rows("atif", dump_rows("atif", [sample]))] == [sample]


def _load_step(**fields: Any) -> Sample:
    return next(load_rows("atif", [{**ROW, "steps": [ROW["steps"][0], {"step_id": 2, **fields}]}]))


def test_images_keep_their_media_types() -> None:
    cases: dict[tuple[str, str | None], str | None] = {
        ("a.jpg", "image/jpeg"): None,
        ("a.jpg", "image/webp"): "image/webp",
        ("a", "image/webp"): "image/webp",
        ("a", "image/png"): None,
        ("a", None): None,
    }
    for (path, media_type), expected in cases.items():
        part = {"type": "image", "source": {"path": path, "media_type": media_type, "sha": "1"}, "id": 2}
        sample = _load_step(source="user", message=[part])
        source, metadata = URLSource(path, expected), {"id": 2, "source": {"sha": "1"}}
        assert sample.msgs[1].content == (ImageBlock(source, metadata=metadata),)
        assert next(load_rows("atif", dump_rows("atif", [sample]))).msgs[1].media[0].source == source
    losses: list[str] = []
    image = Msg("user", [ImageBlock(URLSource("a.jpg", "image/jpeg"))], "user")
    next(dump_rows("atif", [Sample([image])], on_loss=lambda place, reason: losses.append(place)))
    assert losses == ["samples[0].msgs[0]"]


def test_other_fields_of_an_observation_are_kept() -> None:
    sample = _load_step(source="agent", message="Hm.", observation={"results": [], "note": "n"})
    assert sample.msgs[1].metadata == {"atif": {"observation": {"note": "n"}}}


def test_a_weight_of_a_user_is_kept() -> None:
    assert _load_step(source="user", message="Hm.", extra={"weight": 0}).weights == (None, 0)
