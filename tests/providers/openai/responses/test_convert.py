"""Requests of OpenAI Responses."""

from itertools import pairwise
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
    URLSource,
    VideoBlock,
)
from agentkit_openai import OpenAIResponsesFormatter, OpenAIResponsesMultiAgentFormatter
from tests.providers import (
    LOOK,
    MP4,
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
    user,
)


def _items(msgs: list[Msg]) -> list[dict[str, Any]]:
    request = OpenAIResponsesFormatter().lower(msgs).request
    assert problems("openai-responses", request) == []
    return list(request["input"])


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _function_call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments}


def _reasoned(text: str = "", item_id: str | None = "rs_1", issuer: str = "openai") -> ThinkingBlock:
    return ThinkingBlock(text, OpaqueState(issuer, encrypted_content="gAAA==", item_id=item_id))


def _said(text: str, item_id: str) -> TextBlock:
    return TextBlock(text, state=OpaqueState("openai", item_id=item_id))


TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call_1", place="here")),
    system(result("call_1", "A cat.")),
    assistant("A cat is here."),
]


def test_a_chat_with_a_tool_gives_the_expected_request() -> None:
    assert _items(TOOL_TALK) == [
        {"type": "message", "role": "system", "content": "You are Friday."},
        {"type": "message", "role": "user", "content": "Look, please."},
        {"type": "message", "role": "assistant", "content": "I look."},
        _function_call("call_1", '{"place":"here"}'),
        {"type": "function_call_output", "call_id": "call_1", "output": "A cat."},
        {"type": "message", "role": "assistant", "content": "A cat is here."},
    ]


def test_many_speakers_give_the_expected_request() -> None:
    request = OpenAIResponsesMultiAgentFormatter().lower([*TOOL_TALK, user("Thanks.", name="Alice")]).request
    assert problems("openai-responses", request) == []
    assert request["input"] == [
        {"type": "message", "role": "system", "content": "You are Friday."},
        {
            "type": "message",
            "role": "user",
            "content": [_text(f"{PREAMBLE}<history>"), _text("\nBob: Look, please."), _text("\n</history>")],
        },
        {"type": "message", "role": "assistant", "content": "I look."},
        _function_call("call_1", '{"place":"here"}'),
        {"type": "function_call_output", "call_id": "call_1", "output": "A cat."},
        {
            "type": "message",
            "role": "user",
            "content": [
                _text("<history>"),
                _text("\nFriday: A cat is here."),
                _text("\nAlice: Thanks."),
                _text("\n</history>"),
            ],
        },
    ]


def test_only_reasoning_of_the_viewer_is_sent_back() -> None:
    msgs = [
        user("Who looks?"),
        assistant(_reasoned("mine", "rs_1"), _said("I do.", "msg_1")),
        assistant(_reasoned("Max's", "rs_2"), _said("Good.", "msg_2"), name="Max"),
    ]
    formatter = OpenAIResponsesMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    request = formatter.lower(msgs).request
    assert problems("openai-responses", request) == []
    assert [item.get("id") for item in request["input"] if item.get("type") == "reasoning"] == ["rs_1"]


def test_only_calls_have_names_and_items_without_reasoning_have_no_ids() -> None:
    said = TextBlock("I look.", state=OpaqueState("openai", item_id="msg_1"))
    for item in _items([*TOOL_TALK[:2], assistant(said, call("c1")), system(result("c1", "A cat."))]):
        assert item["type"] == "function_call" or "name" not in item
        assert "id" not in item


# --- reasoning (4.4) ---


def test_reasoning_is_sent_with_its_proof_right_before_its_next_item() -> None:
    items = _items(
        [
            user("Go."),
            assistant(_reasoned("Hm."), _said("I look.", "msg_1"), call("c1")),
            system(result("c1", "A cat.")),
        ]
    )
    assert items[1:4] == [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "gAAA==",
            "id": "rs_1",
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        _function_call("c1"),
    ]


def test_reasoning_without_readable_text_keeps_its_required_empty_summary() -> None:
    item = _items([user("Go."), assistant(_reasoned(item_id=None), "Done.")])[1]
    assert item == {"type": "reasoning", "summary": [], "encrypted_content": "gAAA=="}


FOREIGN: Final = (
    ThinkingBlock("Unsigned."),
    ThinkingBlock("Claude's.", OpaqueState("anthropic", signature="sig")),
    ThinkingBlock("Gemini's.", OpaqueState("gemini", thought_signature="c2ln")),
    ThinkingBlock("DeepSeek's.", OpaqueState("deepseek")),
    ThinkingBlock("An id alone is a 404 when nothing is stored.", OpaqueState("openai", item_id="rs_9")),
    ThinkingBlock("Another's proof.", OpaqueState("vllm", encrypted_content="gAAA==")),
)


@pytest.mark.parametrize("block", FOREIGN, ids=lambda block: block.thinking)
def test_thinking_of_another_issuer_or_without_proof_is_never_a_reasoning_item(block: ThinkingBlock) -> None:
    assert _items([user("Go."), assistant(block, "Done.")]) == [
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "message", "role": "assistant", "content": "Done."},
    ]


def test_reasoning_without_a_next_item_is_omitted() -> None:
    items = _items([user("Go."), assistant("Half.", _reasoned()), user("Go on.")])
    assert [item.get("type", "message") for item in items] == ["message"] * 3


def test_reasoning_before_a_blank_turn_is_omitted() -> None:
    assert _items([user("Go."), assistant(_reasoned(), "  "), user("Go on.")]) == [
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "message", "role": "user", "content": "Go on."},
    ]


def test_each_reasoning_item_of_an_interleaved_turn_keeps_its_next_item() -> None:
    turn = assistant(_reasoned("a", "rs_1"), call("c1"), _reasoned("b", "rs_2"), call("c2"))
    items = _items([user("Go."), turn, system(result("c1", "A"), result("c2", "B"))])
    kinds = [item.get("type") for item in items[1:5]]
    assert kinds == ["reasoning", "function_call", "reasoning", "function_call"]
    for item, following in pairwise(items):
        if item.get("type") == "reasoning":
            assert following.get("type") == "function_call"


# --- items and pairing (4.2 to 4.4) ---


def test_text_precedes_the_calls_of_its_turn() -> None:
    items = _items([user("Go."), assistant(call("c1"), "Meanwhile."), system(result("c1", "A"))])
    assert [item.get("type", "message") for item in items] == [
        *("message", "message", "function_call", "function_call_output")
    ]


def test_assistant_text_is_a_plain_string_since_input_text_is_refused_there() -> None:
    items = _items([user("Go."), assistant("One.", "Two.")])
    assert items[1:] == [
        {"type": "message", "role": "assistant", "content": "One."},
        {"type": "message", "role": "assistant", "content": "Two."},
    ]


def test_parallel_results_are_adjacent_items() -> None:
    msgs = [user("Go."), assistant(call("c1"), call("c2")), system(result("c2", "B")), system(result("c1", "A"))]
    assert [(item["call_id"], item["output"]) for item in _items(msgs)[3:]] == [("c2", "B"), ("c1", "A")]


def test_images_and_files_stay_in_their_results() -> None:
    document = DocumentBlock(Base64Source("application/pdf", PDF), title="bill.pdf")
    output = result("c1", "See.", picture()).items
    block = type(result("c1"))("c1", "look", (*output, document))
    items = _items([user("Go."), assistant(call("c1")), system(block)])
    assert items[2]["output"] == [
        _text("See."),
        {"type": "input_image", "image_url": PNG_URL, "detail": "auto"},
        {"type": "input_file", "filename": "bill.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
    ]


def test_a_failed_result_has_an_error_mark_in_text_and_in_a_list() -> None:
    items = _items(
        [
            user("Go."),
            assistant(call("c1"), call("c2")),
            system(result("c1", "No.", is_error=True), result("c2", picture(), is_error=True)),
        ]
    )
    assert items[3]["output"] == "[error] No."
    assert items[4]["output"][0] == _text("[error]")


def test_an_empty_result_is_an_empty_text() -> None:
    items = _items([user("Go."), assistant(call("c1"), call("c2")), system(result("c1", ""), result("c2", " "))])
    assert items[3]["output"] == ""
    block = type(result("c1"))("c1", "look", ())
    assert _items([user("Go."), assistant(call("c1")), system(block)])[2]["output"] == ""


@pytest.mark.parametrize("call_id", ["", "x" * 65, "call|1", "张三"])
def test_an_illegal_call_id_is_replaced_in_call_and_result_and_restored_in_replies(call_id: str) -> None:
    plan = OpenAIResponsesFormatter().lower([user("Go."), assistant(call(call_id)), system(result(call_id, "A"))])
    assert problems("openai-responses", plan.request) == []
    asked, answered = plan.request["input"][1]["call_id"], plan.request["input"][2]["call_id"]
    assert asked == answered
    assert plan.call_ids[asked] == call_id


# --- parts (4.2) ---


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (picture(), {"type": "input_image", "image_url": PNG_URL, "detail": "auto"}),
        (
            ImageBlock(URLSource("https://example.org/a.png")),
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        ),
        (
            DocumentBlock(URLSource("https://example.org/a.pdf")),
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
        ),
        (
            DocumentBlock(Base64Source("text/plain", TEXT), title="list.txt"),
            {"type": "input_file", "filename": "list.txt", "file_data": f"data:text/plain;base64,{TEXT}"},
        ),
    ],
)
def test_accepted_media_become_the_expected_part(block: Block, part: dict[str, Any]) -> None:
    assert _items([user("See.", block)])[0]["content"] == [_text("See."), part]


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        (AudioBlock(Base64Source("audio/wav", WAV)), "audio"),
        (VideoBlock(Base64Source("video/mp4", MP4)), "video"),
        (picture(UNKNOWN, "image/tiff"), "image"),
    ],
)
def test_media_that_the_api_refuses_are_described(block: Block, kind: str) -> None:
    told = _items([user("See.", block)])[0]["content"][1]
    assert told["type"] == "input_text"
    assert told["text"].startswith(f"[{kind} left out because")


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_text_is_neither_a_part_nor_an_item(blank: str) -> None:
    assert _items([user(blank, "Go."), assistant(blank), user("On.")]) == [
        {"type": "message", "role": "user", "content": "Go."},
        {"type": "message", "role": "user", "content": "On."},
    ]


@pytest.mark.parametrize(
    "msgs", [[user("")], [assistant(ThinkingBlock("Hm."))], [system(result("c1", "Orphan."))]]
)
def test_the_input_is_never_an_empty_list(msgs: list[Msg]) -> None:
    assert _items(msgs)


def test_a_blank_text_with_state_is_not_an_item() -> None:
    state = OpaqueState("openai", item_id="msg_1")
    items = _items([user("Go."), assistant(TextBlock("", state=state), "Done.")])
    assert items[1:] == [{"type": "message", "role": "assistant", "content": "Done."}]


# --- tools, choice, output (4.5) ---


def test_a_tool_is_flat_and_has_the_field_strict() -> None:
    assert OpenAIResponsesFormatter().lower([user("Go.")], tools=[LOOK]).request["tools"] == [
        {
            "type": "function",
            "name": "look",
            "parameters": LOOK.parameters,
            "strict": False,
            "description": "Look at a place.",
        }
    ]


@pytest.mark.parametrize(
    ("choice", "wire"),
    [("auto", "auto"), ("none", "none"), ("required", "required"), ("look", {"type": "function", "name": "look"})],
)
def test_each_tool_choice_has_the_expected_form(choice: str, wire: object) -> None:
    request = OpenAIResponsesFormatter().lower([user("Go.")], tools=[LOOK], tool_choice=choice).request
    assert request["tool_choice"] == wire


def test_the_output_schema_is_flat_under_text_format() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = OpenAIResponsesFormatter().lower([user("Go.")], response_format=schema).request
    assert request["text"] == {
        "format": {"type": "json_schema", "name": "output", "schema": schema, "strict": False}
    }
    assert problems("openai-responses", request) == []
