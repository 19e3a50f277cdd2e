"""Complete requests of all conversations, for each provider."""

import json
from difflib import unified_diff
from typing import Any, Final

import pytest

from agentkit import Msg
from tests.cases import each_case
from tests.providers import LOOK, PROVIDERS, call, chat, problems, result, system, user
from tests.providers.conversations import CONVERSATIONS
from tests.providers.request_tables import build_request, load_table, write_as_lines

_RULES_OF_OTHER_MODELS: Final = {
    "chat with claude-sonnet-4-5": "the last message has role 'assistant'",
    "chat with gemini-2.5-pro": "no thought_signature",
}
"""Rules that the checkers apply to all models, but that these models do not have."""


def _show_difference(section: str, request: dict[str, Any], expected: dict[str, Any]) -> str:
    lines = [*write_as_lines(expected)], [*write_as_lines(request)]
    return "\n".join(unified_diff(*lines, "expected", section, lineterm=""))


@each_case("name", [*CONVERSATIONS])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_conversation_becomes_the_expected_request(provider: str, name: str) -> None:
    sections = [section for section, requests in load_table(provider).items() if name in requests]
    assert "chat" in sections
    for section in sections:
        request = build_request(provider, section, name)
        expected = load_table(provider)[section][name]
        assert json.dumps(request) == json.dumps(expected), _show_difference(section, request, expected)
        rule = _RULES_OF_OTHER_MODELS.get(section)
        assert [text for text in problems(provider, request) if not (rule and rule in text)] == []


@each_case("role", ["user", "system"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_message_with_tool_calls_is_an_assistant_turn_whatever_its_role(provider: str, role: Any) -> None:
    as_assistant, as_role = (
        [user("Look."), Msg("Friday", [call("c1")], role), system(result("c1", "A cat."))]
        for role in ("assistant", role)
    )
    formatter = chat(provider)
    expected = formatter.lower(as_assistant, tools=[LOOK]).request
    assert formatter.lower(as_role, tools=[LOOK]).request == expected
