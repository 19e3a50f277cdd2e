"""Call ids in requests of vLLM: nine letters or digits, which the strictest chat templates accept."""

import re
from typing import Any, Final

import pytest

from agentkit import ModelRules, Msg
from agentkit_vllm import VLLMChatFormatter
from tests.cases import each_case
from tests.providers import assistant, call, problems, result, system, user

MISTRAL: Final = "mistralai/Mistral-Small-3.2-24B-Instruct"


def _messages(msgs: list[Msg], model: str | None = None) -> list[dict[str, Any]]:
    request = VLLMChatFormatter(model).lower(msgs).request
    assert problems("vllm", request) == []
    return list(request["messages"])


@pytest.mark.parametrize("call_id", ["functions.name:0", "chatcmpl-tool-" + "0" * 32])
def test_call_ids_of_kimi_are_unchanged(call_id: str) -> None:
    msgs = [user("Go."), assistant(call(call_id)), system(result(call_id, "A"))]
    named = _messages(msgs, "moonshotai/Kimi-K2-Instruct")
    declared = VLLMChatFormatter("mine", model_rules=ModelRules(call_ids="any")).lower(msgs).request["messages"]
    for messages in (named, declared):
        assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == call_id


@each_case("ids", [("call_1", "call_2"), ("same", "same"), ("", ""), ("abcdefghi", "abcdefgh")])
@each_case("model", [None, "served-under-an-alias", MISTRAL])
def test_call_ids_have_nine_letters_or_digits_for_any_model_name(ids: tuple[str, str], model: str | None) -> None:
    first, second = ids
    msgs = [user("Go."), assistant(call(first), call(second)), system(result(first, "A"), result(second, "B"))]
    plan = VLLMChatFormatter(model).lower(msgs)
    assert problems("vllm", plan.request) == []
    asked = [id["id"] for id in plan.request["messages"][1]["tool_calls"]]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in asked)
    assert [m["tool_call_id"] for m in plan.request["messages"][2:]] == asked
    assert [plan.call_ids.get(id, id) for id in asked] == [first, second]
