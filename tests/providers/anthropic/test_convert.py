"""Anthropic Messages: the request side, rule by rule."""

from typing import Any, Final, cast

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    OptionError,
    TextBlock,
    ThinkingBlock,
    Tool,
    URLSource,
    VideoBlock,
)
from agentkit_anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from tests.providers import (
    JPEG,
    LOOK,
    MP4,
    OTHER_PNG,
    PDF,
    PNG,
    PREAMBLE,
    TEXT,
    UNKNOWN,
    WAV,
    assistant,
    call,
    picture,
    problems,
    result,
    system,
    text_of,
    user,
)


def _request(msgs: list[Msg], model: str | None = None, **asked: Any) -> dict[str, Any]:
    request = AnthropicChatFormatter(model).lower(msgs, **asked).request
    assert problems("anthropic", request) == []
    return request


def _messages(msgs: list[Msg], **asked: Any) -> list[dict[str, Any]]:
    return list(_request(msgs, **asked)["messages"])


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": arguments}


def _image(data: str = PNG) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


SIGNED: Final = ThinkingBlock("Hm.", OpaqueState("anthropic", signature="EsQC"))
TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call_1", place="here")),
    system(result("call_1", "A cat.")),
]


def test_a_chat_with_a_tool_is_exactly_this() -> None:
    assert _request([*TOOL_TALK, assistant("A cat is here."), user("Thanks.")], tools=[LOOK]) == {
        "system": "You are Friday.",
        "messages": [
            {"role": "user", "content": [_text("Look, please.")]},
            {"role": "assistant", "content": [_text("I look."), _use("call_1", place="here")]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "A cat."}],
            },
            {"role": "assistant", "content": [_text("A cat is here.")]},
            {"role": "user", "content": [_text("Thanks.")]},
        ],
        "tools": [{"name": "look", "description": "Look at a place.", "input_schema": LOOK.parameters}],
    }


def test_many_speakers_are_exactly_this_with_results_before_the_next_frame() -> None:
    msgs = [*TOOL_TALK, assistant("A cat is here."), user("Thanks.", name="Alice")]
    request = AnthropicMultiAgentFormatter().lower(msgs, tools=[LOOK]).request
    assert problems("anthropic", request) == []
    assert request["messages"] == [
        {
            "role": "user",
            "content": [_text(f"{PREAMBLE}<history>"), _text("\nBob: Look, please."), _text("\n</history>")],
        },
        {"role": "assistant", "content": [_text("I look."), _use("call_1", place="here")]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": "A cat."},
                _text("<history>"),
                _text("\nFriday: A cat is here."),
                _text("\nAlice: Thanks."),
                _text("\n</history>"),
            ],
        },
    ]


def test_a_viewer_speaks_as_the_assistant_with_its_thinking() -> None:
    msgs = [user("Hi."), assistant(SIGNED, "Ho."), assistant(SIGNED, "Ha.", name="Max"), user("Friday?")]
    formatter = AnthropicMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    request = formatter.lower(msgs).request
    assert problems("anthropic", request) == []
    roles = [message["role"] for message in request["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert [block["type"] for block in request["messages"][1]["content"]] == ["thinking", "text"]
    assert text_of(request["messages"][2]) == "<history>\nMax: Ha.\nBob: Friday?\n</history>"


# --- pairing (1.4) ---


def test_parallel_results_are_one_user_turn_in_call_order_results_first() -> None:
    messages = _messages(
        [
            user("Go."),
            assistant(call("c1"), call("c2")),
            system(result("c2", "B")),
            user("Hurry."),
            system(result("c1", "A")),
        ]
    )
    assert len(messages) == 3
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "A"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "B"},
        _text("Hurry."),
    ]


def test_a_result_keeps_its_pictures() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", "See.", picture()))])
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [_text("See."), _image()]}
    ]


def test_a_failed_result_is_text_alone_and_its_picture_stands_behind_the_results() -> None:
    messages = _messages(
        [
            user("Go."),
            assistant(call("c1"), call("c2")),
            system(result("c1", "Broken.", picture(), is_error=True), result("c2", picture(OTHER_PNG))),
        ]
    )
    first, second, *behind = messages[2]["content"]
    assert first["is_error"] is True
    assert {block["type"] for block in first["content"]} == {"text"}
    assert second["content"] == [_image(OTHER_PNG)]
    assert [block for block in behind if block["type"] == "image"] == [_image()]


def test_a_failed_result_without_words_gets_some() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", "", is_error=True))])
    assert messages[2]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "is_error": True,
            "content": "The tool failed without a message.",
        }
    ]


@pytest.mark.parametrize("output", [("",), (" \n",), ("", " ")])
def test_an_empty_result_leaves_its_content_out(output: tuple[str, ...]) -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", *output))])
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c1"}]


@pytest.mark.parametrize("call_id", ["call|fc_1", "Bash:12", "functions.name:0", "张三", "a b", ""])
def test_a_foreign_id_is_mapped_alike_on_both_sides_and_back(call_id: str) -> None:
    plan = AnthropicChatFormatter().lower([user("Go."), assistant(call(call_id)), system(result(call_id, "A"))])
    assert problems("anthropic", plan.request) == []
    asked = plan.request["messages"][1]["content"][0]["id"]
    assert plan.request["messages"][2]["content"][0]["tool_use_id"] == asked
    assert plan.call_ids == {asked: call_id}


def test_ids_that_a_plain_sanitiser_would_make_one_stay_two() -> None:
    msgs = [user("Go."), assistant(call("a:1"), call("a|1")), system(result("a|1", "B"), result("a:1", "A"))]
    messages = _messages(msgs)
    ids = [block["id"] for block in messages[1]["content"]]
    assert len(set(ids)) == 2
    assert [(block["tool_use_id"], block["content"]) for block in messages[2]["content"]] == [
        (ids[0], "A"),
        (ids[1], "B"),
    ]


def test_one_id_used_in_two_turns_pairs_within_each() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1", place="a")),
        system(result("c1", "A")),
        user("Again."),
        assistant(call("c1", place="b")),
        system(result("c1", "B")),
    ]
    assert [m["content"][0].get("content") for m in _messages(msgs)[2::2]] == ["A", "B"]


# --- emptiness and order of turns (1.3) ---


@pytest.mark.parametrize("blank", ["", " ", "\n", "\u3000", "\u00a0\t"])
def test_a_blank_text_is_left_out_wherever_it_stands(blank: str) -> None:
    messages = _messages(
        [
            system(blank),
            user(blank, "Go."),
            assistant(blank, call("c1")),
            system(result("c1", TextBlock(blank), "A")),
            assistant(blank),
            user("On."),
        ]
    )
    assert messages == [
        {"role": "user", "content": [_text("Go.")]},
        {"role": "assistant", "content": [_use("c1")]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [_text("A")]}, _text("On.")],
        },
    ]


def test_a_blank_system_prompt_is_no_system_prompt() -> None:
    assert "system" not in _request([system(" "), user("Go.")])


def test_a_blank_text_with_state_is_left_out_too() -> None:
    block = TextBlock("", state=OpaqueState("anthropic"))
    assert _messages([user("Go."), assistant(block, "Done."), user("On.")])[1]["content"] == [_text("Done.")]


def test_turns_of_one_side_are_one_turn() -> None:
    messages = _messages([user("A."), user("B.", name="Ann"), assistant("C."), assistant("D."), user("E.")])
    assert [len(message["content"]) for message in messages] == [2, 2, 1]


def test_a_conversation_that_begins_with_the_assistant_gets_a_user_turn_that_says_something() -> None:
    messages = _messages([assistant("Hello."), user("Hi.")])
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert text_of(messages[0]).strip()


def test_a_conversation_that_ends_on_the_assistant_gets_a_user_turn_behind_it() -> None:
    messages = _messages([user("Hi."), assistant("Hello.")])
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert text_of(messages[-1]).strip()


def test_models_that_take_a_prefill_get_it_without_trailing_white_space() -> None:
    formatter = AnthropicChatFormatter("claude-sonnet-4-5")
    messages = formatter.lower([user("Say A."), assistant("The answer is ")]).request["messages"]
    assert messages[-1] == {"role": "assistant", "content": [_text("The answer is")]}


@pytest.mark.parametrize(
    "model", [None, "claude-sonnet-4-6", "claude-opus-4-7", "claude-opus-5-5", "claude-fable-5-1"]
)
def test_no_newer_or_unknown_model_gets_a_prefill(model: str | None) -> None:
    assert _request([user("Hi."), assistant("Hello.")], model)["messages"][-1]["role"] == "user"


def test_a_late_system_message_is_a_named_line_and_never_hoisted() -> None:
    request = _request([system("You are Friday."), user("Hi."), system("Be brief."), assistant("Ho."), user("X.")])
    assert request["system"] == "You are Friday."
    assert request["messages"][0]["content"] == [_text("Hi."), _text("system: Be brief.")]


def test_leading_system_messages_are_blocks_of_the_prompt() -> None:
    assert _request([system("A."), system("B."), user("Hi.")])["system"] == [_text("A."), _text("B.")]


# --- thinking (1.6) ---


@pytest.mark.parametrize(
    ("block", "wire"),
    [
        (SIGNED, {"type": "thinking", "thinking": "Hm.", "signature": "EsQC"}),
        (
            ThinkingBlock("", OpaqueState("anthropic", signature="EsQC")),
            {"type": "thinking", "thinking": "", "signature": "EsQC"},
        ),
        (
            ThinkingBlock("", OpaqueState("anthropic", redacted_data="EmwK")),
            {"type": "redacted_thinking", "data": "EmwK"},
        ),
    ],
)
def test_its_own_thinking_goes_back_byte_for_byte(block: ThinkingBlock, wire: dict[str, Any]) -> None:
    messages = _messages([user("Go."), assistant(block, call("c1")), system(result("c1", "A"))])
    assert messages[1]["content"] == [wire, _use("c1")]


@pytest.mark.parametrize(
    "state",
    [
        None,
        OpaqueState("anthropic"),
        OpaqueState("anthropic", signature=""),
        OpaqueState("openai", encrypted_content="x"),
        OpaqueState("gemini", thought_signature="c2ln"),
        OpaqueState("bedrock", signature="EsQC"),
    ],
)
def test_thinking_without_its_own_proof_is_dropped_and_never_becomes_text(state: OpaqueState | None) -> None:
    messages = _messages([user("Go."), assistant(ThinkingBlock("Hm.", state), "Done."), user("On.")])
    assert messages[1]["content"] == [_text("Done.")]


def test_a_users_thinking_is_dropped() -> None:
    assert _messages([user(SIGNED, "Go.")]) == [{"role": "user", "content": [_text("Go.")]}]


def test_thinking_that_nothing_follows_is_dropped() -> None:
    messages = _messages([user("Go."), assistant("Half.", SIGNED), user("On.")])
    assert messages[1]["content"] == [_text("Half.")]


def test_a_turn_of_thinking_alone_is_no_turn() -> None:
    assert _messages([user("Go."), assistant(SIGNED), user("On.")]) == [
        {"role": "user", "content": [_text("Go."), _text("On.")]}
    ]


# --- media (1.4) ---


@pytest.mark.parametrize(
    ("block", "wire"),
    [
        (picture(), _image()),
        (
            picture(JPEG, "image/jpg"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": JPEG}},
        ),
        (ImageBlock(URLSource(f"data:image/png;base64,{PNG}")), _image()),
        (
            ImageBlock(URLSource("https://example.org/a.png?x=1")),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png?x=1"}},
        ),
        (
            DocumentBlock(Base64Source("application/pdf", PDF), title="bill.pdf"),
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                "title": "bill.pdf",
            },
        ),
        (
            DocumentBlock(Base64Source("text/markdown", TEXT)),
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "Milk, bread."},
            },
        ),
    ],
)
def test_media_that_the_wire_takes_become_this_block(block: Block, wire: dict[str, Any]) -> None:
    assert _messages([user("See.", block)])[0]["content"] == [_text("See."), wire]


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (AudioBlock(Base64Source("audio/wav", WAV)), "audio"),
        (VideoBlock(Base64Source("video/mp4", MP4)), "video"),
        (picture(UNKNOWN, "image/bmp"), "image"),
        (DocumentBlock(URLSource("https://example.org/a.docx")), "document"),
    ],
)
def test_media_that_the_wire_refuses_are_described_never_an_empty_block(block: Block, kind: str) -> None:
    assert text_of(_messages([user(block)])[0]).startswith(f"[{kind} left out because")


def test_an_assistants_picture_moves_into_a_user_turn() -> None:
    messages = _messages([user("Draw."), assistant("Here.", picture()), user("Nice.")])
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert _image() in messages[2]["content"]


# --- tools, choice, output (1.4, 1.5) ---


def test_calls_in_history_without_tools_declare_them_bare_and_forbid_their_use() -> None:
    request = _request(TOOL_TALK)
    assert [tool["name"] for tool in request["tools"]] == ["look"]
    assert request["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("model", "choice", "wire"),
    [
        (None, "auto", {"type": "auto"}),
        (None, "none", {"type": "none"}),
        ("claude-sonnet-4-5", "required", {"type": "any"}),
        ("claude-sonnet-4-5", "look", {"type": "tool", "name": "look"}),
        ("claude-opus-5", "required", {"type": "any"}),
        (None, "required", None),
        ("claude-opus-5-5", "look", None),
        ("claude-fable-5-1", "required", None),
        ("claude-mythos-preview", "look", None),
    ],
)
def test_a_choice_is_sent_where_the_model_takes_it(
    model: str | None, choice: str, wire: dict[str, Any] | None
) -> None:
    request = _request([user("Go.")], model, tools=[LOOK], tool_choice=choice)
    assert request.get("tool_choice") in ([wire] if wire else [None, {"type": "auto"}])
    assert request["tools"]


def test_a_downgraded_choice_is_in_the_ledger() -> None:
    plan = AnthropicChatFormatter().lower([user("Go.")], tools=[LOOK], tool_choice="required")
    assert "tool choice" in [made.name for made in plan.ledger.syntheses]


def test_an_output_schema_is_closed_and_within_the_grammar() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "deep": {"type": "object", "properties": {"s": {"type": "string", "maxLength": 3}}},
        },
    }
    sent = _request([user("Go.")], response_format=schema)["output_config"]["format"]["schema"]
    assert sent["additionalProperties"] is False
    assert sent["properties"]["deep"]["additionalProperties"] is False
    assert "minimum" not in sent["properties"]["n"]
    assert "minimum: 1" in sent["properties"]["n"]["description"]


def test_a_tool_without_parameters_has_a_schema_of_type_object() -> None:
    sent = _request([user("Go.")], tools=[Tool("stop", parameters={})])["tools"][0]["input_schema"]
    assert sent == {"type": "object", "properties": {}}


# --- cache markers (1.9) ---


def _marked(request: dict[str, Any]) -> list[str]:
    places = [f"tools[{at}]" for at, tool in enumerate(request.get("tools", [])) if "cache_control" in tool]
    prompt: Any = request.get("system")
    system_blocks = cast("list[dict[str, Any]]", prompt if isinstance(prompt, list) else [])
    places += [f"system[{at}]" for at, block in enumerate(system_blocks) if "cache_control" in block]
    for number, message in enumerate(request["messages"]):
        for at, block in enumerate(message["content"]):
            if "cache_control" in block:
                places.append(f"messages[{number}][{at}]")
    return places


def test_no_marker_is_set_unless_asked_for() -> None:
    assert _marked(_request([*TOOL_TALK, user("X.")], tools=[LOOK])) == []


def test_automatic_markers_lie_behind_tools_and_system_at_the_end_and_where_the_last_request_ended() -> None:
    msgs = [
        system("A."),
        system("B."),
        *[m for n in range(5) for m in (user(f"Q{n}."), assistant(f"A{n}."))],
        user("Q."),
    ]
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower(msgs, tools=[LOOK, Tool("stop")]).request
    assert problems("anthropic", request) == []
    assert _marked(request) == ["system[1]", "messages[8][0]", "messages[10][0]"]
    bare = formatter.lower(msgs[2:], tools=[LOOK, Tool("stop")]).request
    assert _marked(bare) == ["tools[1]", "messages[8][0]", "messages[10][0]"]


def test_a_step_of_many_parallel_calls_is_marked_before_it_and_within_it() -> None:
    calls = [call(f"c{n}") for n in range(30)]
    results = [result(f"c{n}", f"R{n}.") for n in range(30)]
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower([user("Go."), assistant(*calls), system(*results)], tools=[LOOK]).request
    assert problems("anthropic", request) == []
    assert _marked(request) == ["tools[0]", "messages[0][0]", "messages[2][9]", "messages[2][29]"]


def test_without_tools_and_system_all_four_markers_go_to_the_messages() -> None:
    formatter = AnthropicMultiAgentFormatter(cache_breakpoints="auto")
    request = formatter.lower([user(f"Line {n}.") for n in range(90)]).request
    assert _marked(request) == ["messages[0][30]", "messages[0][50]", "messages[0][70]", "messages[0][90]"]


def test_an_hour_is_asked_for_on_every_marker() -> None:
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
    ids=["a filler turn", "a choice of tool in words", "the stand-in for a result"],
)
def test_what_the_next_request_has_not_is_not_marked(last: Msg, asked: dict[str, Any], expected: str) -> None:
    msgs = [user("Go."), *([] if last.role == "assistant" else [assistant("Ok.")]), last]
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower(msgs, tools=[LOOK], **asked).request
    assert _marked(request)[-1] == expected


def test_a_prefill_that_loses_its_trailing_blanks_is_not_marked() -> None:
    formatter = AnthropicChatFormatter("claude-opus-4-1", cache_breakpoints="auto")
    request = formatter.lower([user("Go."), assistant("The answer is ")]).request
    assert _marked(request) == ["messages[0][0]"]


def test_a_marker_lies_on_the_last_line_of_a_frame_not_on_its_closing_tag() -> None:
    formatter = AnthropicMultiAgentFormatter(cache_breakpoints="auto")
    request = formatter.lower([user("Hi."), user("Ho.", name="Ann")]).request
    marked = [block["text"] for block in request["messages"][0]["content"] if "cache_control" in block]
    assert marked == ["\nAnn: Ho."]


def test_a_text_that_looks_like_a_closing_tag_is_still_marked() -> None:
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    request = formatter.lower([user("First."), assistant("Ok."), user("\n</b>")]).request
    assert _marked(request) == ["messages[0][0]", "messages[2][0]"]


def test_thinking_is_never_marked_and_markers_share_nothing() -> None:
    formatter = AnthropicChatFormatter(cache_breakpoints="auto")
    msgs = [system("S."), user("Go."), assistant(SIGNED, call("c1")), system(result("c1", "A"))]
    request = formatter.lower(msgs, tools=[LOOK]).request
    assert problems("anthropic", request) == []
    request["messages"][0]["content"][0]["cache_control"]["ttl"] = "1h"
    assert request["system"][0]["cache_control"] == {"type": "ephemeral"}
    assert formatter.lower(msgs, tools=[LOOK]).request["messages"][0]["content"][0]["cache_control"] == {
        "type": "ephemeral"
    }
