"""Cache markers of Anthropic Messages."""

from typing import Any, Final, cast

import pytest

from agentkit import Msg, OpaqueState, OptionError, ThinkingBlock, Tool
from agentkit_anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from tests.providers import LOOK, assistant, call, problems, result, system, user

SIGNED: Final = ThinkingBlock("Hm.", OpaqueState("anthropic", signature="EsQC"))


def _list_marked_places(request: dict[str, Any]) -> list[str]:
    places = [f"tools[{index}]" for index, tool in enumerate(request.get("tools", [])) if "cache_control" in tool]
    prompt: Any = request.get("system")
    system_blocks = cast("list[dict[str, Any]]", prompt if isinstance(prompt, list) else [])
    places += [f"system[{index}]" for index, block in enumerate(system_blocks) if "cache_control" in block]
    for number, message in enumerate(request["messages"]):
        for index, block in enumerate(message["content"]):
            if "cache_control" in block:
                places.append(f"messages[{number}][{index}]")
    return places


def test_no_marker_is_set_by_default() -> None:
    msgs = [system("S."), user("Go."), assistant(call("c1")), system(result("c1", "A")), user("On.")]
    assert _list_marked_places(AnthropicChatFormatter().lower(msgs, tools=[LOOK]).request) == []


def test_no_marker_is_set_for_a_target_that_accepts_none() -> None:
    class Formatter(AnthropicChatFormatter):
        base = AnthropicChatFormatter.base.override({"cache_breakpoints": False})

    msgs = [system("S."), user("Go.")]
    assert _list_marked_places(Formatter(cache_breakpoints="auto").lower(msgs).request) == []


def test_automatic_markers_follow_tools_or_system_the_last_message_and_the_end_of_the_previous_request() -> None:
    msgs = [
        system("A."),
        system("B."),
        *[m for n in range(5) for m in (user(f"Q{n}."), assistant(f"A{n}."))],
        user("Q."),
    ]
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower(msgs, tools=[LOOK, Tool("stop")]).request
    assert problems("anthropic", request) == []
    assert _list_marked_places(request) == ["system[1]", "messages[8][0]", "messages[10][0]"]
    bare = formatter.lower(msgs[2:], tools=[LOOK, Tool("stop")]).request
    assert _list_marked_places(bare) == ["tools[1]", "messages[8][0]", "messages[10][0]"]


def test_many_parallel_calls_have_a_marker_before_them_and_between_their_results() -> None:
    calls = [call(f"c{n}") for n in range(30)]
    results = [result(f"c{n}", f"R{n}.") for n in range(30)]
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower([user("Go."), assistant(*calls), system(*results)], tools=[LOOK]).request
    assert problems("anthropic", request) == []
    assert _list_marked_places(request) == ["tools[0]", "messages[0][0]", "messages[2][9]", "messages[2][29]"]


def test_without_tools_and_system_all_four_markers_go_to_the_messages() -> None:
    formatter = AnthropicMultiAgentFormatter(cache_breakpoints="auto")
    request = formatter.lower([user(f"Line {n}.") for n in range(90)]).request
    assert _list_marked_places(request) == [
        "messages[0][30]",
        "messages[0][50]",
        "messages[0][70]",
        "messages[0][90]",
    ]


def test_every_marker_asks_for_an_hour() -> None:
    formatter = AnthropicChatFormatter(cache_breakpoints="auto-1h")
    request = formatter.lower([system("S."), user("Go.")]).request
    assert problems("anthropic", request) == []
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert [request["system"][0]["cache_control"], request["messages"][0]["content"][0]["cache_control"]] == [
        hour,
        hour,
    ]


def test_an_unknown_kind_of_cache_breakpoints_is_refused() -> None:
    with pytest.raises(OptionError, match="Use off, auto or auto-1h"):
        AnthropicChatFormatter(cache_breakpoints=cast("Any", "always"))


@pytest.mark.parametrize(
    ("last", "asked", "expected"),
    [
        (assistant("Done. "), {}, "messages[1][0]"),
        (user("And?"), {"tool_choice": "required"}, "messages[2][0]"),
        (assistant(call("c1")), {}, "messages[1][0]"),
    ],
    ids=["a filler turn", "a tool choice as text", "an added result"],
)
def test_a_block_that_the_next_request_does_not_contain_is_not_marked(
    last: Msg, asked: dict[str, Any], expected: str
) -> None:
    msgs = [user("Go."), *([] if last.role == "assistant" else [assistant("Ok.")]), last]
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower(msgs, tools=[LOOK], **asked).request
    assert _list_marked_places(request)[-1] == expected


def test_a_prefill_that_loses_its_trailing_blanks_is_not_marked() -> None:
    formatter = AnthropicChatFormatter("claude-opus-4-1", cache_breakpoints="auto")
    request = formatter.lower([user("Go."), assistant("The answer is ")]).request
    assert _list_marked_places(request) == ["messages[0][0]"]


def test_a_marker_is_on_the_last_line_of_a_frame_and_not_on_its_closing_tag() -> None:
    formatter = AnthropicMultiAgentFormatter(cache_breakpoints="auto")
    request = formatter.lower([user("Hi."), user("Ho.", name="Ann")]).request
    marked = [block["text"] for block in request["messages"][0]["content"] if "cache_control" in block]
    assert marked == ["\nAnn: Ho."]


def test_a_text_that_looks_like_a_closing_tag_is_still_marked() -> None:
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower([user("First."), assistant("Ok."), user("\n</b>")]).request
    assert _list_marked_places(request) == ["messages[0][0]", "messages[2][0]"]


def test_thinking_is_never_marked_and_each_marker_is_a_separate_object() -> None:
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    msgs = [system("S."), user("Go."), assistant(SIGNED, call("c1")), system(result("c1", "A"))]
    request = formatter.lower(msgs, tools=[LOOK]).request
    assert problems("anthropic", request) == []
    request["messages"][0]["content"][0]["cache_control"]["ttl"] = "1h"
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert formatter.lower(msgs, tools=[LOOK]).request["messages"][0]["content"][0]["cache_control"] == {
        "type": "ephemeral"
    }
