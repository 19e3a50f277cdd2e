"""Bodies that an endpoint passes to the client of an SDK."""

import json

import pytest
from pydantic import BaseModel, Field

from agentkit.provider_kit import OutgoingRequest, dump_body


class Effort(BaseModel):
    """A parameter as an object of the SDK."""

    level: str = Field("low", alias="effort")
    summary: str | None = None


def test_a_body_is_dumped_as_json_text() -> None:
    body = {"model": "m", "messages": [{"content": "Zoë \u2028 \U0001f600 \x00", "n": [1, 2.5, None, True]}]}
    assert json.loads(dump_body(body) or b"") == body


def test_objects_of_the_sdk_are_dumped_as_the_sdk_dumps_them() -> None:
    assert json.loads(dump_body({"reasoning": Effort(effort="high")}) or b"") == {"reasoning": {"effort": "high"}}


@pytest.mark.parametrize("value", [object(), "\ud800"])
def test_values_that_are_not_json_are_left_to_the_sdk(value: object) -> None:
    assert dump_body({"value": value}) is None


def test_the_repr_of_a_call_does_not_contain_its_headers() -> None:
    text = repr(
        OutgoingRequest("/x", {"model": "m"}, stream=False, options={"headers": {"X-Gateway": "sk-canary"}})
    )
    assert "'model': 'm'" in text
    assert "canary" not in text
