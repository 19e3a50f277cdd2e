"""Tests of the block that an error text of a provider is about."""

from typing import Any

from agentkit import ImageBlock, Msg, TextBlock, ToolResultBlock, ToolUseBlock, URLSource
from agentkit.models.error_location import locate_block
from agentkit.provider_kit import WireLayout
from tests.cases import each_case
from tests.providers import PNG, chat, picture

LAYOUT = chat("openai").layout
MSGS = [
    Msg("system", "You are Friday, a patient assistant.", "system"),
    Msg("Bob", "Look at this, please.", "user"),
    Msg(
        "Bob",
        [TextBlock("It is the sea."), picture(PNG), ImageBlock(URLSource("https://x.example/y.png"))],
        "user",
    ),
    Msg("Friday", [TextBlock("I look it up."), ToolUseBlock("call_abc", "look", {"place": "sea"})], "assistant"),
    Msg("system", [ToolResultBlock("call_abc", "look", "It is calm.")], "system"),
    Msg("Bob", "Thank you.", "user"),
]


def _place(provider: str, error_text: str) -> str:
    formatter = chat(provider)
    plan = formatter.lower(MSGS)
    return locate_block(error_text, plan.request, formatter.layout, MSGS, call_ids=plan.call_ids)


@each_case(
    ("provider", "error_text", "place"),
    [
        ("anthropic", "messages.0.content.1: text content blocks must be non-empty", "msgs[2].content[0]"),
        ("anthropic", "messages.0.content.2.image.source.base64: invalid base64 data", "msgs[2].content[1]"),
        ("anthropic", "messages.2: unexpected tool results", "msgs[4].content[0]"),
        (
            "anthropic",
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: call_abc",
            "msgs[3].content[1]",
        ),
        (
            "anthropic",
            "messages.2.content.0: unexpected `tool_use_id` found in `tool_result`",
            "msgs[4].content[0]",
        ),
        ("openai", "Invalid type for 'messages[1].content': expected a string", "msgs[1].content[0]"),
        ("openai", "Invalid 'messages[2].content[1].image_url': bad", "msgs[2].content[1]"),
        ("openai", "Invalid parameter: messages with role 'tool' … 'messages.[4].role'", "msgs[4].content[0]"),
        ("openai", "tool_call_ids did not have response messages: call_abc", "msgs[4].content[0]"),
        ("openai-responses", "Invalid 'input[4].call_id': string too long", "msgs[3].content[1]"),
        ("openai-responses", "No tool output found for function call call_abc.", "msgs[4].content[0]"),
        ("gemini", "Invalid value at 'contents[1].parts[0].text'", "msgs[2].content[0]"),
        ("dashscope", "The tool_calls are wrong: message[5].role", "msgs[5].content[0]"),
        ("ollama", "messages[1].content: bad", "msgs[1].content[0]"),
        ("ollama", "messages[3].content: bad", "msgs[3].content[0]"),
        ("gemini", "Invalid 'contents[3].parts[0].function_response.response.output'", "msgs[4].content[0]"),
        ("gemini", "Invalid 'contents[3].parts[0].function_response.id'", "msgs[4].content[0]"),
    ],
)
def test_a_path_or_an_id_leads_to_the_block(provider: str, error_text: str, place: str) -> None:
    assert _place(provider, error_text) == place


REPEATED = [
    Msg("Bob", [TextBlock("Look."), TextBlock("Please.")], "user"),
    Msg("Friday", "Look.", "assistant"),
    Msg("Bob", "Look.", "user"),
]


@each_case("path", ["messages.0.content.2", "messages.0.content.9.text", "messages[0].content[3]"])
def test_a_path_to_a_part_without_an_input_block_names_no_block(path: str) -> None:
    layout = WireLayout(cache_markers=frozenset({"cachePoint"}))
    request: dict[str, Any] = {
        "messages": [
            {
                "role": "user",
                "content": [{"text": "Look."}, {"text": "Please."}, {"cachePoint": {"kind": "Look."}}],
            },
            {"role": "assistant", "content": [{"text": "Look."}]},
            {"role": "user", "content": [{"text": "Look."}]},
        ]
    }
    assert locate_block(f"{path}: bad", request, layout, REPEATED) == ""
    assert locate_block("messages.0.content.1: bad", request, layout, REPEATED) == "msgs[0].content[1]"
    assert locate_block(f"{path} and messages.2.content: bad", request, layout, REPEATED) == "msgs[2].content[0]"


@each_case(
    "error_text",
    ["Something is wrong.", "messages.99.content.1: too far", "tools.0.name: bad", "messages", "input[x]", ""],
)
def test_an_error_without_a_path_or_an_id_names_no_block(error_text: str) -> None:
    assert _place("openai", error_text) == ""


def test_an_id_that_was_rewritten_leads_to_the_id_of_the_caller() -> None:
    long = "call/" + "x" * 60
    msgs = [
        Msg("Bob", "Look.", "user"),
        Msg("Friday", [ToolUseBlock(long, "look", {"place": "sea"})], "assistant"),
        Msg("system", [ToolResultBlock(long, "look", "Calm.")], "system"),
    ]
    plan = chat("openai").lower(msgs)
    sent = plan.request["messages"][1]["tool_calls"][0]["id"]
    assert sent != long
    error_text = f"No answer to the call {sent}."
    assert locate_block(error_text, plan.request, LAYOUT, msgs, call_ids=plan.call_ids) == "msgs[2].content[0]"


def test_the_path_selects_one_of_several_equal_texts() -> None:
    msgs = [
        Msg("Bob" if number % 2 == 0 else "Friday", "ok", "user" if number % 2 == 0 else "assistant")
        for number in range(7)
    ]
    plan = chat("openai").lower(msgs)
    assert locate_block("messages[2].content: bad", plan.request, LAYOUT, msgs) == "msgs[2].content[0]"


@each_case("request_", [{}, {"messages": None}, {"messages": "x"}, {"messages": [None, 3, "hello"]}])
def test_locating_an_error_in_any_request_raises_nothing(request_: dict[str, Any]) -> None:
    assert locate_block("messages[1].content[0] and messages.2", request_, LAYOUT, MSGS) == ""


def test_a_text_that_the_request_starts_with_a_line_break_is_located() -> None:
    msgs = [
        Msg("Bob", [TextBlock("look"), picture(PNG)], "user"),
        Msg("Friday", "yes", "assistant"),
        Msg("Bob", "yes", "user"),
    ]
    plan = chat("dashscope").lower(msgs)
    assert locate_block("messages[1]: bad", plan.request, LAYOUT, msgs) == "msgs[1].content[0]"
    assert locate_block("messages[2]: bad", plan.request, LAYOUT, msgs) == "msgs[2].content[0]"
