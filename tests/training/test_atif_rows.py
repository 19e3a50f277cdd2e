"""Trajectories of ATIF: fields without an attribute are kept, and invalid fields are errors."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from agentkit import MessageError
from agentkit.training import dump_rows, load_rows
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
        ({"reasoning_content": "Hm."}, r"steps\[0\].reasoning_content: only steps with the source 'agent'"),
    ],
)
def test_an_invalid_field_of_a_step_is_an_error(step: dict[str, Any], text: str) -> None:
    row = {**ROW, "steps": [{**ROW["steps"][0], **step}]}
    with pytest.raises(MessageError, match=f"line 1, {text}"):
        next(load_rows("atif", [row]))


def test_values_of_tools_that_json_cannot_represent_are_replaced() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "integer", "maximum": 10**5_000}}}
    tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
    row = {**ROW, "agent": {**ROW["agent"], "tool_definitions": [tool]}}
    (written,) = dump_rows("atif", load_rows("atif", [row]))
    (definition,) = json.loads(json.dumps(written))["agent"]["tool_definitions"]
    assert definition["function"]["parameters"]["properties"]["q"].get("maximum") is None
