"""Chat messages of OpenAI and of vendors with unusual descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Msg, OpaqueState, TextBlock, ToolUseBlock
from agentkit.provider_kit import FormatterBase
from agentkit_openai import CHAT, TEMPLATE_CHAT, OpenAIChatFormatter, OpenAICompatible
from tests.providers import LOOK, assistant, call, chat, result, system, user


def create_formatter(capabilities: Any, **options: Any) -> FormatterBase:
    """Returns the formatter of a vendor named Demo."""
    capabilities = capabilities.override({"name": "Demo", "issuer": "demo", "wire": "demo"})
    return (
        OpenAICompatible(name="demo", title="Demo", capabilities=capabilities)
        .provider()
        .chat_formatter("demo-1", **options)
    )


def test_a_message_without_a_speaker_name_has_no_key_for_it() -> None:
    msgs = [user("Look.", name=""), assistant("I look.", call("c1"), name=""), system(result("c1", "A cat."))]
    messages = chat("openai").lower(msgs, tools=[LOOK]).request["messages"]
    assert [[*message] for message in messages] == [
        ["role", "content"],
        ["role", "content", "tool_calls"],
        ["role", "tool_call_id", "content"],
    ]


@pytest.mark.parametrize("provider", ["openai", "deepseek"])
def test_no_stored_key_replaces_the_role_or_the_content_of_the_last_message(provider: str) -> None:
    fields = {"message.role": "user", "message.content": "Stored.", "message.other": 1}
    last = Msg("assistant", [TextBlock("It is", state=OpaqueState(provider, fields=fields))], "assistant")
    (_, message) = chat(provider).lower([user("And?"), last]).request["messages"]
    assert {**message, "reasoning_content": ""} == {
        "role": "assistant",
        "content": "It is",
        "other": 1,
        "reasoning_content": "",
    }


def test_a_vendor_without_custom_tools_gets_function_calls_even_if_its_rules_are_those_of_openai() -> None:
    block = ToolUseBlock("c1", "sh", {"input": "ls"}, state=OpaqueState("demo", fields={"type": "custom"}))
    msgs = [user("List."), assistant(block), system(result("c1", "cat.png", name="sh"))]
    function = {"name": "sh", "arguments": '{"input":"ls"}'}
    assert create_formatter(CHAT).lower(msgs).request["messages"][1]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": function}
    ]


@pytest.mark.parametrize("joining", ["apart", "glued", "string"])
def test_texts_are_separate_parts_if_the_cache_of_a_vendor_has_markers(joining: str) -> None:
    capabilities = TEMPLATE_CHAT.override({"turns.text_joining": joining, "cache_breakpoints": True})
    (message,) = (
        create_formatter(capabilities, cache_breakpoints="auto").lower([user("One.", "Two.")]).request["messages"]
    )
    assert [part["text"] for part in message["content"]] == ["One.", "Two."]


def test_options_of_a_subclass_reach_its_other_base_classes() -> None:
    class Labeled:
        label = ""

        def __init_subclass__(cls, label: str = "", **options: Any) -> None:
            super().__init_subclass__(**options)
            cls.label = label

    class Formatter(OpenAIChatFormatter, Labeled, label="mine"):
        pass

    assert Formatter.label == "mine"
