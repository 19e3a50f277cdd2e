"""Gemini requests of agentkit are parsed with the strictest public parser: the protobuf messages of the service.

`json_format.ParseDict` refuses unknown keys, wrong types, and two kinds of data in one part. It does not check the
order of turns or parts. The tests parse the bodies that the SDK and `ChatModel` send.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, Tool
from agentkit.testing.conversations import CONVERSATIONS
from agentkit_gemini._rest_body import build_rest_body
from tests.cases import each_case
from tests.conversations import histories
from tests.profiles import examples
from tests.providers import LOOK, chat, multi_agent, user
from tests.wire.loopback import get_expected_body

json_format: Any = import_module("google.protobuf.json_format")
service: Any = import_module("google.ai.generativelanguage_v1beta")

MODELS: Final = (None, "gemini-2.5-pro", "gemini-3-pro")
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "kind": {"enum": ["a", "b"]},
        "any": {"anyOf": [{"type": "null"}]},
    },
    "required": ["title"],
    "additionalProperties": False,
}


def parse(body: dict[str, Any]) -> Any:
    """Returns a request as a protobuf message of the service. Raises ParseError for values outside its schema."""
    message: Any = service.GenerateContentRequest.pb(service.GenerateContentRequest())
    return json_format.ParseDict({"model": "models/m", **body}, message)


def build_sdk_body(model: str | None, msgs: list[Msg], *, multi: bool = False, **options: Any) -> dict[str, Any]:
    formatter = (multi_agent if multi else chat)("gemini", model)
    return get_expected_body("gemini", formatter.lower(msgs, **options).request)


def build_rest_request(
    model: str | None, msgs: list[Msg], *, multi: bool = False, **options: Any
) -> dict[str, Any]:
    """Returns the body that `ChatModel` sends without the SDK."""
    return build_rest_body((multi_agent if multi else chat)("gemini", model).lower(msgs, **options).request)


@pytest.mark.parametrize("multi", [False, True], ids=["chat", "multi-agent"])
@pytest.mark.parametrize("model", MODELS)
@each_case("name", [*CONVERSATIONS])
def test_the_schema_of_the_service_accepts_every_conversation(name: str, model: str | None, multi: bool) -> None:
    for write in (build_sdk_body, build_rest_request):
        body = write(model, CONVERSATIONS[name], multi=multi, tools=[LOOK])
        assert len(parse(body).contents) == len(body["contents"])


@pytest.mark.parametrize("model", MODELS)
def test_the_schema_of_the_service_accepts_tools_a_choice_and_an_output_schema(model: str | None) -> None:
    tool = Tool("odd", "Odd.", SCHEMA)
    assert parse(build_sdk_body(model, [user("Hi.")], tools=[LOOK, tool], tool_choice="look")).tools
    assert parse(build_sdk_body(model, [user("Hi.")], response_format=SCHEMA)).generation_config.response_mime_type


@examples(40)
@given(msgs=histories(6), model=st.sampled_from(MODELS), multi=st.booleans())
def test_the_schema_of_the_service_accepts_any_generated_conversation(
    msgs: list[Msg], model: str | None, multi: bool
) -> None:
    for write in (build_sdk_body, build_rest_request):
        body = write(model, msgs, multi=multi, tools=[LOOK])
        assert len(parse(body).contents) == len(body["contents"])


@pytest.mark.parametrize(
    "part",
    [
        {"text": "a", "inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        {"txt": "a"},
        {"functionCall": {"name": "look", "args": "text"}},
    ],
)
def test_the_schema_of_the_service_refuses_wrong_requests(part: dict[str, Any]) -> None:
    with pytest.raises(json_format.ParseError):
        parse({"contents": [{"role": "user", "parts": [part]}]})
