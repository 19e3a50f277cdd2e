"""How a finished request is handed to an SDK's client."""

import json

import pytest
from pydantic import BaseModel, Field

from agentkit.provider_kit import OutgoingRequest


class Effort(BaseModel):
    """A parameter in the SDK's own form."""

    level: str = Field("low", alias="effort")
    summary: str | None = None


def test_a_client_that_looks_into_the_body_gets_it_as_it_is() -> None:
    body = {"model": "m"}
    assert OutgoingRequest("/x", body, stream=False).payload(as_object=True) == {"body": body}


def test_any_other_client_gets_the_json_text() -> None:
    body = {"model": "m", "messages": [{"content": "Zoë \u2028 \U0001f600 \x00", "n": [1, 2.5, None, True]}]}
    payload = OutgoingRequest("/x", body, stream=False).payload(as_object=False)
    assert payload.keys() == {"content"}
    assert json.loads(payload["content"]) == body


def test_objects_of_the_sdk_are_written_as_it_writes_them() -> None:
    payload = OutgoingRequest("/x", {"reasoning": Effort(effort="high")}, stream=False).payload(as_object=False)
    assert json.loads(payload["content"]) == {"reasoning": {"effort": "high"}}


@pytest.mark.parametrize("found", [object(), "\ud800"])
def test_what_json_has_no_word_for_is_left_to_the_sdk(found: object) -> None:
    body = {"found": found}
    assert OutgoingRequest("/x", body, stream=False).payload(as_object=False) == {"body": body}


def test_the_headers_of_a_call_are_not_shown() -> None:
    shown = repr(
        OutgoingRequest("/x", {"model": "m"}, stream=False, options={"headers": {"X-Gateway": "sk-canary"}})
    )
    assert "'model': 'm'" in shown
    assert "canary" not in shown
