"""Requests of OpenAI Chat Completions."""

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
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from agentkit_openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from tests.providers import (
    JPEG,
    LOOK,
    MP3,
    MP4,
    OTHER_PNG,
    PDF,
    PNG_URL,
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


def _messages(msgs: list[Msg], model: str | None = None, **asked: Any) -> list[dict[str, Any]]:
    request = OpenAIChatFormatter(model).lower(msgs, **asked).request
    assert problems("openai", request) == []
    return list(request["messages"])


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _native_call(call_id: str, arguments: str = "{}", name: str = "look") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call_1", place="here")),
    system(result("call_1", "A cat.")),
    assistant("A cat is here."),
]


def test_a_chat_with_a_tool_gives_the_expected_request() -> None:
    assert _messages(TOOL_TALK) == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "Look, please.", "name": "Bob"},
        {
            "role": "assistant",
            "content": "I look.",
            "name": "Friday",
            "tool_calls": [_native_call("call_1", '{"place":"here"}')],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "A cat."},
        {"role": "assistant", "content": "A cat is here.", "name": "Friday"},
    ]


def test_many_speakers_without_a_viewer_give_the_expected_request() -> None:
    request = OpenAIMultiAgentFormatter().lower([*TOOL_TALK, user("Thanks.", name="Alice")]).request
    assert problems("openai", request) == []
    assert request["messages"] == [
        {"role": "system", "content": "You are Friday."},
        {
            "role": "user",
            "content": [
                _text(f"{PREAMBLE}<history>"),
                _text("\nBob: Look, please."),
                _text("\n</history>"),
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "name": "Friday",
            "tool_calls": [_native_call("call_1", '{"place":"here"}')],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "A cat."},
        {
            "role": "user",
            "content": [
                _text("<history>"),
                _text("\nFriday: A cat is here."),
                _text("\nAlice: Thanks."),
                _text("\n</history>"),
            ],
        },
    ]


def test_turns_of_the_viewer_stay_native_and_tools_of_others_become_lines() -> None:
    msgs = [
        user("Who looks?"),
        assistant(call("c1", place="there"), name="Max"),
        system(result("c1", "Nothing.")),
        assistant("I will.", call("c2", place="here")),
        system(result("c2", "A cat.")),
        assistant("A cat."),
        assistant("Good.", name="Max"),
    ]
    formatter = OpenAIMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    request = formatter.lower(msgs).request
    assert problems("openai", request) == []
    assert [message["role"] for message in request["messages"]] == [
        *("user", "assistant", "tool", "assistant", "user")
    ]
    assert text_of(request["messages"][0]) == (
        f"{PREAMBLE}You are Friday.\n<history>\nBob: Who looks?\n"
        'Max: (calls look with {"place":"there"})\nMax: (result of look) Nothing.\n</history>'
    )
    assert text_of(request["messages"][-1]) == "<history>\nMax: Good.\n</history>"


# --- calls and results (1, 3.3, 3.4) ---


def test_a_call_without_text_has_the_content_null() -> None:
    message = _messages([user("Go."), assistant(call("c1")), system(result("c1", "Done."))])[1]
    assert message["content"] is None


def test_a_call_without_arguments_has_an_empty_object() -> None:
    message = _messages([user("Go."), assistant(call("c1")), system(result("c1", "Done."))])[1]
    assert message["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_are_sent_back_byte_for_byte() -> None:
    written = '{ "place" : "caf\\u00e9" }'
    block = ToolUseBlock("c1", "look", {"place": "café"}, raw_input=written)
    message = _messages([user("Go."), assistant(block), system(result("c1", "Done."))])[1]
    assert message["tool_calls"][0]["function"]["arguments"] == written


def test_truncated_arguments_do_not_break_the_conversation() -> None:
    block = ToolUseBlock("c1", "look", {}, raw_input='{"place": "her')
    message = _messages([user("Go."), assistant(block), system(result("c1", "Done."))])[1]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"raw_input":"{\\"place\\": \\"her"}'


def test_a_long_id_is_replaced_in_call_and_result_and_restored_in_replies() -> None:
    long = f"chatcmpl-tool-{'0123456789abcdef' * 2}"
    plan = OpenAIChatFormatter().lower([user("Go."), assistant(call(long)), system(result(long, "Done."))])
    asked = plan.request["messages"][1]["tool_calls"][0]["id"]
    assert len(asked) <= 40
    assert plan.request["messages"][2]["tool_call_id"] == asked
    assert plan.call_ids == {asked: long}


def test_two_long_ids_that_differ_at_the_end_stay_different() -> None:
    first, second = "x" * 60 + "1", "x" * 60 + "2"
    msgs = [user("Go."), assistant(call(first), call(second)), system(result(second, "B"), result(first, "A"))]
    plan = OpenAIChatFormatter().lower(msgs)
    said = {message.get("tool_call_id"): message["content"] for message in plan.request["messages"][2:]}
    asked = [one["id"] for one in plan.request["messages"][1]["tool_calls"]]
    assert [said[one] for one in asked] == ["A", "B"]
    assert [plan.call_ids[one] for one in asked] == [first, second]


FOREIGN_NAMES: Final = ("functions.look", "a/b", "n" * 100, "查找", "multi tool", "")


@pytest.mark.parametrize("name", FOREIGN_NAMES)
def test_an_illegal_tool_name_is_replaced_and_restored_in_replies(name: str) -> None:
    plan = OpenAIChatFormatter().lower(
        [user("Go."), assistant(call("c1", name)), system(result("c1", "Done.", name=name))]
    )
    assert problems("openai", plan.request) == []
    wire = plan.request["messages"][1]["tool_calls"][0]["function"]["name"]
    assert plan.tool_names[wire] == name


def test_a_declared_tool_and_its_calls_get_the_same_name() -> None:
    tool = Tool("files.read", "Read.")
    plan = OpenAIChatFormatter().lower(
        [user("Go."), assistant(call("c1", "files.read")), system(result("c1", "Done."))],
        tools=[tool],
        tool_choice="files.read",
    )
    wire = plan.request["messages"][1]["tool_calls"][0]["function"]["name"]
    assert plan.request["tools"][0]["function"]["name"] == wire
    assert plan.request["tool_choice"] == {"type": "function", "function": {"name": wire}}
    assert plan.tool_names == {wire: "files.read"}


def test_a_history_with_calls_needs_no_tools_in_the_request() -> None:
    assert set(OpenAIChatFormatter().lower(TOOL_TALK).request) == {"messages"}


def test_a_failed_result_has_an_error_mark_in_its_text() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", "No way.", is_error=True))])
    assert messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "[error] No way."}


# --- media (1.1, 3.2) ---


def test_media_of_parallel_results_follow_all_tool_messages() -> None:
    messages = _messages(
        [
            user("Go."),
            assistant(call("c1", "left"), call("c2", "right")),
            system(result("c1", "One.", picture(), name="left")),
            system(result("c2", picture(OTHER_PNG), name="right")),
            assistant("Seen."),
        ]
    )
    assert [message["role"] for message in messages] == [
        *("user", "assistant", "tool", "tool", "user", "assistant")
    ]
    assert messages[4]["content"] == [
        _text("<system-info>The following are the image contents from the tool result of 'left', call c1:"),
        _text("\n- The image: "),
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        _text("</system-info>"),
        _text("<system-info>The following are the image contents from the tool result of 'right', call c2:"),
        _text("\n- The image: "),
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{OTHER_PNG}"}},
        _text("</system-info>"),
    ]


def test_a_tool_message_names_the_place_of_its_moved_image() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", "One.", picture()))])
    assert messages[2]["content"] == "- One.\n- (image shown in the user turn after the results)"


def test_an_image_of_the_assistant_moves_into_a_user_turn() -> None:
    messages = _messages([user("Draw."), assistant("Here.", picture()), user("Nice.")])
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "user"]
    assert messages[1]["content"] == [_text("Here."), _text("(image shown in the user turn after this one)")]
    assert messages[2]["content"][2]["type"] == "image_url"


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (picture(), {"type": "image_url", "image_url": {"url": PNG_URL}}),
        (
            picture(JPEG, "image/jpg"),
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{JPEG}"}},
        ),
        (
            ImageBlock(URLSource("https://example.org/a?width=3")),
            {"type": "image_url", "image_url": {"url": "https://example.org/a?width=3"}},
        ),
        (ImageBlock(URLSource(PNG_URL)), {"type": "image_url", "image_url": {"url": PNG_URL}}),
        (
            DocumentBlock(Base64Source("application/pdf", PDF), title="bill.pdf"),
            {"type": "file", "file": {"filename": "bill.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        ),
    ],
)
def test_accepted_media_become_the_expected_part(block: Block, part: dict[str, Any]) -> None:
    assert _messages([user("See.", block)])[0]["content"] == [_text("See."), part]


@pytest.mark.parametrize(
    ("media_type", "data", "audio_format"),
    [
        ("audio/wav", WAV, "wav"),
        ("audio/x-wav", WAV, "wav"),
        ("audio/mpeg", MP3, "mp3"),
        ("audio/mp3", MP3, "mp3"),
    ],
)
def test_audio_models_get_raw_base64_without_a_data_prefix(media_type: str, data: str, audio_format: str) -> None:
    sound = AudioBlock(Base64Source(media_type, data))
    part = _messages([user("Hear.", sound)], "gpt-audio-mini")[0]["content"][1]
    assert part == {"type": "input_audio", "input_audio": {"data": data, "format": audio_format}}


@pytest.mark.parametrize(
    ("block", "description"),
    [
        (AudioBlock(Base64Source("audio/wav", WAV)), "[audio left out because"),
        (VideoBlock(Base64Source("video/mp4", MP4)), "[video left out because"),
        (DocumentBlock(Base64Source("application/msword", UNKNOWN)), "[document left out because"),
        (DocumentBlock(URLSource("https://example.org/a.pdf")), "[document left out because"),
        (picture(UNKNOWN, "image/svg+xml"), "[image left out because"),
        (ImageBlock(URLSource("ftp://example.org/a.png")), "[image left out because"),
    ],
)
def test_media_that_the_api_refuses_are_described_in_their_place(block: Block, description: str) -> None:
    before, told, after = _messages([user("Before.", block, "After.")])[0]["content"]
    assert (before, after) == (_text("Before."), _text("After."))
    assert told["text"].startswith(description)


def test_a_text_document_is_sent_as_text_since_files_are_pdf_only() -> None:
    content = _messages([user("Read.", DocumentBlock(Base64Source("text/plain", TEXT)))])[0]["content"]
    assert content == [_text("Read."), _text("[document, as text]\nMilk, bread.")]


# --- names, blanks, thinking (3.1, 3.3, 3.6) ---


@pytest.mark.parametrize(
    "name", ["Mr Smith 张三", "a<b>", "c|d", "e\\f", "g/h", "line\nbreak", "x" * 80, "\u2003"]
)
def test_a_speaker_name_matches_the_pattern_of_the_api(name: str) -> None:
    message = _messages([user("Hi.", name=name)])[0]
    assert 1 <= len(message["name"]) <= 64


def test_two_speakers_never_get_the_same_name() -> None:
    messages = _messages([user("Hi.", name="Ann Lee"), user("Ho.", name="Ann/Lee"), user("Ha.", name="Ann_Lee")])
    assert len({message["name"] for message in messages}) == 3


def test_a_name_in_another_script_is_unchanged() -> None:
    assert _messages([user("Hi.", name="张三")])[0]["name"] == "张三"


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_blank_text_is_omitted(blank: str) -> None:
    assert _messages([user("Hi.", blank)])[0]["content"] == "Hi."
    assert len(_messages([user("Hi."), assistant(blank), user("Ho.")])) == 2


def test_thinking_is_omitted() -> None:
    messages = _messages([user("Hi."), assistant(ThinkingBlock("Hm."), "Ho.")])
    assert messages[1] == {"role": "assistant", "content": "Ho.", "name": "Friday"}


def test_a_late_system_message_keeps_its_position() -> None:
    messages = _messages([system("One."), user("Hi."), system("Be brief."), assistant("Ho.")])
    assert [message["role"] for message in messages] == ["system", "user", "system", "assistant"]


@pytest.mark.parametrize(
    "msgs", [[user("")], [assistant(ThinkingBlock("Hm."))], [system(result("c1", "An orphan."))]]
)
def test_a_request_is_never_empty(msgs: list[Msg]) -> None:
    assert _messages(msgs)


# --- tools, choice, output (3.5, 3.6) ---


def test_a_tool_is_nested_under_function() -> None:
    assert OpenAIChatFormatter().lower([user("Go.")], tools=[LOOK]).request["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "Look at a place.", "parameters": LOOK.parameters},
        }
    ]


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("any", "required"),
        ("look", {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_each_tool_choice_has_the_expected_form(choice: str, wire: object) -> None:
    assert (
        OpenAIChatFormatter().lower([user("Go.")], tools=[LOOK], tool_choice=choice).request["tool_choice"] == wire
    )


def test_a_request_without_tools_has_neither_tools_nor_tool_choice() -> None:
    request = OpenAIChatFormatter().lower([user("Go.")], tools=[], tool_choice="auto").request
    assert set(request) == {"messages"}


CLOSED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
OPEN: Final[dict[str, Any]] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(("schema", "strict"), [(CLOSED, True), (OPEN, False)])
def test_only_a_closed_schema_is_strict(schema: dict[str, Any], strict: bool) -> None:
    given = {"name": "my answer", "schema": schema}
    wire = OpenAIChatFormatter().lower([user("Go.")], response_format=given).request["response_format"]
    assert wire["type"] == "json_schema"
    assert wire["json_schema"]["schema"] == schema
    assert wire["json_schema"]["strict"] is strict
    assert " " not in wire["json_schema"]["name"]


def test_several_texts_of_a_user_stay_separate_parts() -> None:
    blocks = (TextBlock("One."), TextBlock("Two."))
    assert _messages([user(*blocks)])[0]["content"] == [_text("One."), _text("Two.")]
