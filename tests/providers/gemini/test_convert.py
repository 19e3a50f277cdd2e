"""Requests of Gemini generateContent."""

import base64
from typing import Any, Final

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
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from agentkit_gemini import GeminiChatFormatter, GeminiMultiAgentFormatter
from tests.providers import (
    JPEG,
    LOOK,
    MP3,
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

OLD: Final = "gemini-2.5-pro"
NEW: Final = "gemini-3-pro-preview"
SKIP: Final = base64.b64encode(b"skip_thought_signature_validator").decode("ascii")
SIGNED: Final = OpaqueState("gemini", thought_signature="c2ln")


def _request(msgs: list[Msg], model: str | None = None, **asked: Any) -> dict[str, Any]:
    request = GeminiChatFormatter(model).lower(msgs, **asked).request
    violations = problems("gemini", request)
    # Signatures are optional before Gemini 3 (2.4); the checker knows the current models' rule alone.
    assert [text for text in violations if model != OLD or "thought_signature" not in text] == []
    return request


def _contents(msgs: list[Msg], model: str | None = None) -> list[dict[str, Any]]:
    return list(_request(msgs, model)["contents"])


def _call(call_id: str, name: str = "look", **arguments: Any) -> dict[str, Any]:
    return {"function_call": {"id": call_id, "name": name, "args": arguments}}


def _response(call_id: str, output: str, key: str = "output") -> dict[str, Any]:
    return {"function_response": {"id": call_id, "name": "look", "response": {key: output}}}


def _inline(data: str = PNG, media_type: str = "image/png") -> dict[str, Any]:
    return {"inline_data": {"mime_type": media_type, "data": data}}


TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call_1", place="here")),
    system(result("call_1", "A cat.")),
]


def test_a_request_with_a_tool() -> None:
    assert _request([*TOOL_TALK, assistant("A cat is here."), user("Thanks.")]) == {
        "contents": [
            {"role": "user", "parts": [{"text": "Look, please."}]},
            {
                "role": "model",
                "parts": [{"text": "I look."}, {**_call("call_1", place="here"), "thought_signature": SKIP}],
            },
            {"role": "user", "parts": [_response("call_1", "A cat.")]},
            {"role": "model", "parts": [{"text": "A cat is here."}]},
            {"role": "user", "parts": [{"text": "Thanks."}]},
        ],
        "config": {"system_instruction": {"parts": [{"text": "You are Friday."}]}},
    }


def test_many_speakers_are_parts_of_one_content() -> None:
    msgs = [*TOOL_TALK, assistant("A cat is here."), user("Thanks.", name="Alice")]
    request = GeminiMultiAgentFormatter().lower(msgs).request
    assert problems("gemini", request) == []
    assert request["contents"] == [
        {
            "role": "user",
            "parts": [
                {"text": f"{PREAMBLE}<history>"},
                {"text": "\nBob: Look, please."},
                {"text": "\n</history>"},
            ],
        },
        {
            "role": "model",
            "parts": [{"text": "I look."}, {**_call("call_1", place="here"), "thought_signature": SKIP}],
        },
        {"role": "user", "parts": [_response("call_1", "A cat.")]},
        {
            "role": "user",
            "parts": [
                {"text": "<history>"},
                {"text": "\nFriday: A cat is here."},
                {"text": "\nAlice: Thanks."},
                {"text": "\n</history>"},
            ],
        },
    ]


def test_turns_of_the_viewer_have_the_role_model() -> None:
    formatter = GeminiMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    request = formatter.lower([user("Hi."), assistant("Ho."), user("Ha.", name="Friday")]).request
    assert problems("gemini", request) == []
    assert [content["role"] for content in request["contents"]] == ["user", "model", "user"]
    assert text_of(request["contents"][2]) == "<history>\nFriday: Ha.\n</history>"


# --- turns and pairing (2.2) ---


def test_parallel_results_are_responses_of_one_content_in_call_order() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1"), call("c2"), call("c3")),
        system(result("c3", "C")),
        user("Hurry."),
        system(result("c1", "A")),
        system(result("c2", "B")),
    ]
    contents = _contents(msgs)
    assert contents[2]["parts"] == [_response("c1", "A"), _response("c2", "B"), _response("c3", "C")]
    assert contents[3] == {"role": "user", "parts": [{"text": "Hurry."}]}


def test_a_missing_result_gets_a_response() -> None:
    contents = _contents([user("Go."), assistant(call("c1"), call("c2")), system(result("c2", "B")), user("On.")])
    answers = [part["function_response"] for part in contents[2]["parts"]]
    assert [answer["id"] for answer in answers] == ["c1", "c2"]
    assert list(answers[0]["response"]) == ["error"]


def test_a_history_that_begins_with_a_call_gets_a_user_turn_first() -> None:
    contents = _contents([assistant(call("c1")), system(result("c1", "A"))])
    assert [content["role"] for content in contents] == ["user", "model", "user"]
    assert text_of(contents[0]).strip()


def test_a_conversation_that_ends_with_the_model_gets_a_last_user_turn() -> None:
    assert [content["role"] for content in _contents([user("Hi."), assistant("Ho.")])] == ["user", "model", "user"]


def test_a_late_system_message_becomes_a_user_line() -> None:
    request = _request([system("A."), user("Hi."), system("Be brief."), assistant("Ho."), user("X.")])
    assert request["config"] == {"system_instruction": {"parts": [{"text": "A."}]}}
    assert request["contents"][1] == {"role": "user", "parts": [{"text": "system: Be brief."}]}


@pytest.mark.parametrize("output", ["", "plain text", '{"a": 1}', "[1, 2]", "null"])
def test_a_response_is_always_an_object(output: str) -> None:
    contents = _contents([user("Go."), assistant(call("c1")), system(result("c1", output))])
    assert contents[2]["parts"] == [_response("c1", output)]


def test_the_text_of_a_failed_result_is_under_error() -> None:
    contents = _contents([user("Go."), assistant(call("c1")), system(result("c1", "No.", is_error=True))])
    assert contents[2]["parts"] == [_response("c1", "No.", "error")]


def test_a_result_without_a_name_gets_the_name_of_its_call() -> None:
    contents = _contents([user("Go."), assistant(call("c1")), system(ToolResultBlock("c1", "", "A"))])
    assert contents[2]["parts"] == [_response("c1", "A")]


@pytest.mark.parametrize("name", ["1look", "a.b", "n" * 64, "查找", "-x"])
def test_a_refused_tool_name_is_replaced_in_call_response_and_declaration(name: str) -> None:
    plan = GeminiChatFormatter().lower(
        [user("Go."), assistant(call("c1", name)), system(result("c1", "A", name=name))], tools=[Tool(name)]
    )
    assert problems("gemini", plan.request) == []
    (declared,) = plan.request["config"]["tools"][0]["function_declarations"]
    asked = plan.request["contents"][1]["parts"][0]["function_call"]["name"]
    answered = plan.request["contents"][2]["parts"][0]["function_response"]["name"]
    assert asked == answered == declared["name"]
    assert plan.tool_names[asked] == name


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_a_blank_text_has_no_part(blank: str) -> None:
    contents = _contents([user(blank, "Go."), assistant(blank), user("On.")])
    assert contents == [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "user", "parts": [{"text": "On."}]},
    ]


# --- signatures and thoughts (2.4) ---


def test_a_signature_is_sent_with_its_part() -> None:
    turn = assistant(
        ThinkingBlock("Hm.", OpaqueState("gemini", thought_signature="dGhvdWdodA==")),
        TextBlock("I look.", state=OpaqueState("gemini", thought_signature="dGV4dA==")),
        ToolUseBlock("c1", "look", {}, state=OpaqueState("gemini", thought_signature="Y2FsbA==")),
        call("c2"),
    )
    contents = _contents([user("Go."), turn, system(result("c1", "A"), result("c2", "B"))], NEW)
    assert contents[1]["parts"] == [
        {"text": "Hm.", "thought": True, "thought_signature": "dGhvdWdodA=="},
        {"text": "I look.", "thought_signature": "dGV4dA=="},
        {**_call("c1"), "thought_signature": "Y2FsbA=="},
        _call("c2"),
    ]


def test_an_empty_text_with_a_signature_is_sent() -> None:
    contents = _contents([user("Go."), assistant("Done.", TextBlock("", state=SIGNED)), user("On.")])
    assert contents[1]["parts"] == [{"text": "Done."}, {"text": "", "thought_signature": "c2ln"}]


@pytest.mark.parametrize("state", [OpaqueState("gemini"), OpaqueState("anthropic", signature="x")])
def test_an_empty_text_without_a_signature_is_omitted(state: OpaqueState) -> None:
    contents = _contents([user("Go."), assistant(TextBlock("", state=state), "Done."), user("On.")])
    assert contents[1]["parts"] == [{"text": "Done."}]


def test_empty_thinking_without_a_signature_is_omitted() -> None:
    turn = assistant(ThinkingBlock("", OpaqueState("gemini")), "Done.")
    assert _contents([user("Go."), turn, user("On.")])[1]["parts"] == [{"text": "Done."}]


def test_a_user_turn_has_no_signature() -> None:
    assert _contents([user(TextBlock("Hi.", state=SIGNED))]) == [{"role": "user", "parts": [{"text": "Hi."}]}]


def test_only_the_first_call_of_a_step_gets_the_placeholder_signature() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1"), call("c2")),
        system(result("c1", "A"), result("c2", "B")),
        assistant("Then.", call("c3"), call("c4")),
        system(result("c3", "C"), result("c4", "D")),
    ]
    calls = [part for content in _contents(msgs, NEW) for part in content["parts"] if "function_call" in part]
    assert [part.get("thought_signature") for part in calls] == [SKIP, None, SKIP, None]


def test_the_placeholder_does_not_replace_a_real_signature() -> None:
    turn = assistant(ToolUseBlock("c1", "look", {}, state=SIGNED))
    contents = _contents([user("Go."), turn, system(result("c1", "A"))])
    assert contents[1]["parts"] == [{**_call("c1"), "thought_signature": "c2ln"}]


def test_the_placeholder_replaces_a_signature_of_another_provider() -> None:
    foreign = OpaqueState("vertex-of-another", thought_signature="Zm9yZWlnbg==")
    turn = assistant(ToolUseBlock("c1", "look", {}, state=foreign))
    contents = _contents([user("Go."), turn, system(result("c1", "A"))])
    assert contents[1]["parts"] == [{**_call("c1"), "thought_signature": SKIP}]


def test_models_before_gemini_3_get_no_placeholder_signature() -> None:
    contents = _contents([user("Go."), assistant(call("c1")), system(result("c1", "A"))], OLD)
    assert contents[1]["parts"] == [_call("c1")]


@pytest.mark.parametrize(
    "state", [None, OpaqueState("anthropic", signature="s"), OpaqueState("openai", encrypted_content="e")]
)
def test_thinking_of_another_provider_is_dropped(state: OpaqueState | None) -> None:
    contents = _contents([user("Go."), assistant(ThinkingBlock("Hm.", state), "Done."), user("On.")])
    assert contents[1]["parts"] == [{"text": "Done."}]


def test_parts_of_a_history_frame_have_no_signature() -> None:
    request = GeminiMultiAgentFormatter().lower([assistant(TextBlock("Hi.", state=SIGNED))]).request
    assert problems("gemini", request) == []
    assert text_of(request["contents"][0]) == f"{PREAMBLE}<history>\nFriday: Hi.\n</history>"


# --- media (2.2) ---


def _picture_result(model: str | None, block: Block) -> list[dict[str, Any]]:
    result = ToolResultBlock("c1", "look", (TextBlock("See."), block))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return _contents([user("Go."), assistant(call("c1")), system(result)], model)


def test_a_function_response_for_gemini_3_contains_images() -> None:
    contents = _picture_result(NEW, picture())
    inner = contents[2]["parts"][0]["function_response"]
    assert inner["parts"] == [_inline()]
    assert inner["response"] == {"output": "See."}
    assert len(contents) == 3


@pytest.mark.parametrize("model", [None, OLD])
def test_older_and_unknown_models_get_an_image_in_a_separate_content(model: str | None) -> None:
    contents = _picture_result(model, picture())
    assert "parts" not in contents[2]["parts"][0]["function_response"]
    assert [content["role"] for content in contents[2:]] == ["user", "user"]
    assert _inline() in contents[3]["parts"]


@pytest.mark.parametrize(
    "block",
    [
        AudioBlock(Base64Source("audio/wav", WAV)),
        VideoBlock(Base64Source("video/mp4", MP4)),
        picture(base64.b64encode(b"\0\0\0\x18ftypheic").decode(), "image/heic"),
        DocumentBlock(Base64Source("text/csv", TEXT)),
    ],
)
def test_media_that_function_responses_refuse_follow_them(block: Block) -> None:
    contents = _picture_result(NEW, block)
    assert "parts" not in contents[2]["parts"][0]["function_response"]
    assert any("inline_data" in part for part in contents[3]["parts"])


def test_moved_images_have_the_order_of_their_responses() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1"), call("c2")),
        system(result("c2", picture(OTHER_PNG))),
        system(result("c1", picture(PNG))),
    ]
    contents = _contents(msgs, OLD)
    shown = [part["inline_data"]["data"] for part in contents[3]["parts"] if "inline_data" in part]
    assert [part["function_response"]["id"] for part in contents[2]["parts"]] == ["c1", "c2"]
    assert shown == [PNG, OTHER_PNG]


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (picture(), _inline()),
        (picture(JPEG, "image/jpg"), _inline(JPEG, "image/jpeg")),
        (AudioBlock(Base64Source("audio/mp3", MP3)), _inline(MP3, "audio/mpeg")),
        (VideoBlock(Base64Source("video/mp4", MP4)), _inline(MP4, "video/mp4")),
        (DocumentBlock(Base64Source("application/pdf", PDF)), _inline(PDF, "application/pdf")),
        (
            ImageBlock(URLSource("https://example.org/a.png?x=1")),
            {"file_data": {"file_uri": "https://example.org/a.png?x=1", "mime_type": "image/png"}},
        ),
        (
            VideoBlock(URLSource("gs://bucket/a.mp4")),
            {"file_data": {"file_uri": "gs://bucket/a.mp4", "mime_type": "video/mp4"}},
        ),
        (ImageBlock(URLSource(f"data:image/png;base64,{PNG}")), _inline()),
    ],
)
def test_accepted_media_become_parts(block: Block, part: dict[str, Any]) -> None:
    assert _contents([user("See.", block)])[0]["parts"] == [{"text": "See."}, part]


def test_a_gif_is_described() -> None:
    assert text_of(_contents([user(picture(UNKNOWN, "image/gif"))])[0]).startswith("[image left out because")


def test_generated_media_stay_in_the_model_turn_unless_they_are_urls() -> None:
    drawn = _contents([user("Draw."), assistant("Here.", picture()), user("Nice.")])
    assert drawn[1]["parts"] == [{"text": "Here."}, _inline()]
    linked = _contents(
        [user("Draw."), assistant("Here.", ImageBlock(URLSource("https://x.org/a.png"))), user("Ok.")]
    )
    mark = {"text": "(image shown in the user turn after this one)"}
    assert linked[1] == {"role": "model", "parts": [{"text": "Here."}, mark]}
    assert any("file_data" in part for part in linked[2]["parts"])


# --- tools, choice, output (2.3) ---


def test_a_tool_is_declared_with_its_json_schema_and_not_run_by_the_sdk() -> None:
    config = _request([user("Go.")], tools=[LOOK])["config"]
    assert config == {
        "tools": [
            {
                "function_declarations": [
                    {
                        "name": "look",
                        "description": "Look at a place.",
                        "parameters_json_schema": LOOK.parameters,
                    }
                ]
            }
        ],
        "automatic_function_calling": {"disable": True},
    }


def test_a_tool_without_parameters_has_no_schema() -> None:
    config = _request([user("Go.")], tools=[Tool("stop", "Stop.")])["config"]
    assert config["tools"][0]["function_declarations"] == [{"name": "stop", "description": "Stop."}]


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("look", {"mode": "ANY", "allowed_function_names": ["look"]}),
    ],
)
def test_each_tool_choice_has_a_mode(choice: str, wire: dict[str, Any]) -> None:
    config = _request([user("Go.")], tools=[LOOK], tool_choice=choice)["config"]
    assert config["tool_config"] == {"function_calling_config": wire}


def test_an_output_schema_is_sent_with_the_json_media_type() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    config = _request([user("Go.")], response_format=schema)["config"]
    assert config == {"response_mime_type": "application/json", "response_json_schema": schema}


def test_a_request_without_options_has_no_config() -> None:
    assert set(_request([user("Go.")])) == {"contents"}
