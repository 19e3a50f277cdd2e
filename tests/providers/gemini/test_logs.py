"""Logs of Gemini: loading them, and formatting loaded logs again."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentkit import (
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    LossError,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
    load_provider,
)
from agentkit.provider_kit import describe_value
from agentkit_gemini import PROVIDER, GeminiChatFormatter, load_native
from tests.cases import each_case
from tests.conversations import histories, valid_histories
from tests.profiles import examples
from tests.providers import PDF, PNG, picture

SIGNATURE: Final = base64.b64encode(b"\xff\xfe\xfb").decode()
# ai.google.dev: function-calling, thought-signatures, code-execution: a log as REST clients store it
LOG: Final[dict[str, Any]] = {
    "systemInstruction": {"parts": [{"text": "You are Friday."}]},
    "contents": [
        {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        {
            "role": "model",
            "parts": [
                {"text": "Hm.", "thought": True},
                {"text": "I look."},
                {
                    "functionCall": {"id": "a1", "name": "look", "args": {"atPlace": "cat"}},
                    "thoughtSignature": "__77",
                },
                {"functionCall": {"id": "a2", "name": "wait", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "a1",
                        "name": "look",
                        "response": {"output": "A cat."},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}],
                    }
                },
                {"functionResponse": {"id": "a2", "name": "wait", "response": {"error": "Too long."}}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "AAAA"},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"text": "Done.", "thoughtSignature": "BBBB"},
                {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "CCCC"},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"fileData": {"fileUri": "https://example.com/a", "mimeType": "application/pdf"}},
                {"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}},
                {"text": "And this?"},
            ],
        },
    ],
    "generationConfig": {"temperature": 1},
}


def create_state(signature: str, **fields: Any) -> OpaqueState:
    return OpaqueState("gemini", thought_signature=signature, fields=fields or None)


def test_a_log_becomes_these_messages() -> None:
    assert load_native(LOG) == [
        Msg("system", [TextBlock("You are Friday.")], "system"),
        Msg("user", [TextBlock("Look."), picture()], "user"),
        Msg(
            "assistant",
            [
                ThinkingBlock("Hm.", OpaqueState("gemini")),
                TextBlock("I look."),
                ToolUseBlock("a1", "look", {"atPlace": "cat"}, state=create_state("//77")),
                ToolUseBlock("a2", "wait", {}),
            ],
            "assistant",
        ),
        Msg(
            "system",
            [
                ToolResultBlock("a1", "look", [TextBlock("A cat."), picture()]),
                ToolResultBlock("a2", "wait", "Too long.", is_error=True),
            ],
            "system",
        ),
        Msg(
            "assistant",
            [
                OpaqueBlock(
                    "gemini",
                    {"executable_code": {"language": "PYTHON", "code": "1"}, "thought_signature": "AAAA"},
                ),
                OpaqueBlock("gemini", {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "1"}}),
                TextBlock("Done.", state=create_state("BBBB")),
                ImageBlock(Base64Source("image/png", PNG), state=create_state("CCCC")),
            ],
            "assistant",
        ),
        Msg(
            "user",
            [
                DocumentBlock(URLSource("https://example.com/a", "application/pdf")),
                VideoBlock(URLSource("https://www.youtube.com/watch?v=1")),
                TextBlock("And this?"),
            ],
            "user",
        ),
    ]


def test_rest_bodies_snake_case_and_sdk_objects_give_the_same_messages() -> None:
    from google.genai import types

    expected = load_native(LOG)
    contents = [types.Content.model_validate(content) for content in LOG["contents"]]
    config = types.GenerateContentConfig.model_validate({"system_instruction": "You are Friday."})
    assert load_native({"model": "m", "contents": contents, "config": config})[1:] == expected[1:]
    snake = [content.model_dump(exclude_none=True) for content in contents]
    instruction = {"parts": [{"text": "You are Friday."}]}
    assert load_native({"contents": snake, "config": {"system_instruction": instruction}}) == expected
    assert load_native(contents) == expected[1:]


@pytest.mark.parametrize(
    "system", ["Be brief.", ["Be brief."], {"text": "Be brief."}, {"parts": [{"text": "Be brief."}]}]
)
def test_a_system_instruction_may_be_text_parts_or_a_content(system: Any) -> None:
    expected = Msg("system", [TextBlock("Be brief.")], "system")
    assert load_native({"contents": "Hi.", "config": {"system_instruction": system}})[0] == expected
    assert load_native({"contents": "Hi.", "systemInstruction": system})[0] == expected


def test_texts_and_parts_outside_a_content_are_user_messages() -> None:
    call: dict[str, Any] = {"function_call": {"name": "look", "args": {}}}
    loaded = load_native({"contents": ["Hi.", {"text": "Look."}, call]})
    assert [(msg.role, len(msg.blocks)) for msg in loaded] == [("user", 2), ("assistant", 1)]


def test_a_loaded_log_is_written_in_snake_case() -> None:
    request = GeminiChatFormatter("gemini-3-pro").lower(load_native(LOG)).request
    assert load_native(request) == load_native(LOG)
    assert request["contents"][3]["parts"][0] == {
        "executable_code": {"language": "PYTHON", "code": "1"},
        "thought_signature": "AAAA",
    }
    assert request["contents"][3]["parts"][3]["thought_signature"] == "CCCC"


@pytest.mark.parametrize("word", ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"])
def test_a_placeholder_signature_does_not_become_state(word: str) -> None:
    spellings: list[Any] = [word, base64.b64encode(word.encode()).decode(), word.encode()]
    for spelling in spellings:
        call: dict[str, Any] = {
            "function_call": {"id": "a", "name": "look", "args": {}},
            "thought_signature": spelling,
        }
        (msg,) = load_native([{"role": "model", "parts": [call]}])
        assert msg.tool_uses[0].state is None


def test_calls_without_ids_are_matched_by_name_and_order() -> None:
    def call(name: str) -> dict[str, Any]:
        return {"functionCall": {"name": name, "args": {}}}

    def answer(name: str, output: str) -> dict[str, Any]:
        return {"functionResponse": {"name": name, "response": {"output": output}}}

    parts = [call("look"), call("wait"), call("look")]
    answers = [answer("wait", "w"), answer("look", "1"), answer("look", "2")]
    calls, results = load_native([{"role": "model", "parts": parts}, {"role": "user", "parts": answers}])
    first, wait, second = (block.id for block in calls.tool_uses)
    assert len({first, wait, second}) == 3
    assert [(block.id, block.output) for block in results.tool_results] == [
        (wait, "w"),
        (first, "1"),
        (second, "2"),
    ]


def _call_part(name: str, **id: str) -> dict[str, Any]:
    return {"function_call": {"name": name, "args": {}, **id}}


def _response_part(name: str, output: str, **id: str) -> dict[str, Any]:
    return {"function_response": {"name": name, "response": {"output": output}, **id}}


def _create_log(calls: list[Any], answers: list[Any]) -> list[Any]:
    return [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": answers},
    ]


def _pair_results(contents: list[Any]) -> list[tuple[str, str]]:
    """Returns the text of the result of each call, by id."""
    _, calls, results = load_native(contents)
    outputs = {block.id: block.text for block in results.tool_results}
    return [(call.name, outputs.get(call.id, "")) for call in calls.tool_uses]


def test_a_generated_id_differs_from_the_ids_in_the_log() -> None:
    calls = [
        _call_part("look"),
        _call_part("wait", id="call_1"),
        _call_part("look"),
        _call_part("hear", id="call_3"),
    ]
    answers = [
        _response_part("wait", "w", id="call_1"),
        _response_part("look", "1"),
        _response_part("hear", "h", id="call_3"),
        _response_part("look", "2"),
    ]
    assert _pair_results(_create_log(calls, answers)) == [
        ("look", "1"),
        ("wait", "w"),
        ("look", "2"),
        ("hear", "h"),
    ]
    request = GeminiChatFormatter().lower(load_native(_create_log(calls, answers))).request
    responses = [part["function_response"] for part in request["contents"][2]["parts"]]
    assert {(response["name"], response["response"]["output"]) for response in responses} == {
        ("look", "1"), ("wait", "w"), ("look", "2"), ("hear", "h"),
    }  # fmt: skip


def test_a_generated_id_differs_from_the_ids_of_responses() -> None:
    assert _pair_results(_create_log([_call_part("look")], [_response_part("wait", "w", id="call_1")])) == [
        ("look", "")
    ]


def test_a_response_without_an_id_answers_no_call_of_another_name() -> None:
    assert _pair_results(_create_log([_call_part("look")], [_response_part("wait", "w")])) == [("look", "")]
    assert _pair_results(_create_log([_call_part("look")], [_response_part("", "l")])) == [("look", "l")]


def test_a_response_answers_the_call_with_its_id_and_name() -> None:
    calls = [_call_part("look", id="a"), _call_part("wait", id="a")]
    *_, results = load_native(
        _create_log(calls, [_response_part("wait", "w", id="a"), _response_part("", "l", id="a")])
    )
    assert [(block.name, block.text) for block in results.tool_results] == [("wait", "w"), ("look", "l")]


def test_the_text_of_a_response_with_other_keys_is_its_json() -> None:
    answer = {"functionResponse": {"id": "a", "name": "look", "response": {"cat": True, "output": 1}}}
    (msg,) = load_native([{"role": "user", "parts": [answer]}])
    assert msg.tool_results[0].text == '{"cat":true,"output":1}'


def _log_with_response(response: dict[str, Any], **more: Any) -> list[Any]:
    call: dict[str, Any] = {
        "function_call": {"id": "a", "name": "look", "args": {}},
        "thought_signature": SIGNATURE,
    }
    answer = {"function_response": {"id": "a", "name": "look", "response": response, **more}}
    return [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [answer]},
    ]


@each_case(
    "response",
    [
        {"temperature": 12, "unit": "C"},
        {"result": "A cat."},
        {"output": {"deep": [1, None, {"aB": True}]}},
        {"output": "A cat."},
        {"error": {"code": 4}},
        {"error": "No."},
        {"output": ["a"], "error": "b"},
        {},
    ],
)
def test_the_object_of_a_response_is_sent_back_unchanged(response: dict[str, Any]) -> None:
    contents = _log_with_response(response)
    msgs = load_native(contents)
    assert GeminiChatFormatter().lower(msgs).request["contents"] == contents
    stored = [Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) for msg in msgs]
    assert GeminiChatFormatter().lower(stored).request["contents"] == contents


def test_further_fields_of_a_function_response_are_sent_back() -> None:
    contents = _log_with_response({"output": "A cat."}, scheduling="SILENT", will_continue=True)
    assert GeminiChatFormatter().lower(load_native(contents)).request["contents"] == contents


_NAMED: Final = {"inline_data": {"mime_type": "image/png", "data": PNG, "display_name": "cat.png"}}


def test_images_in_a_response_stay_there_with_their_names_for_gemini_3() -> None:
    pdf = {"inline_data": {"mime_type": "application/pdf", "data": PDF}}
    contents = _log_with_response({"picture": {"$ref": "cat.png"}}, parts=[_NAMED, pdf])
    plan = GeminiChatFormatter("gemini-3-pro", on_loss="raise").lower(load_native(contents))
    assert plan.request["contents"] == contents


@pytest.mark.parametrize(
    "part",
    [
        _NAMED,
        {
            "file_data": {"file_uri": "https://example.com/a.mp4", "mime_type": "video/mp4"},
            "video_metadata": {"fps": 2, "start_offset": "1s"},
        },
        {**_NAMED, "media_resolution": {"level": "MEDIA_RESOLUTION_HIGH"}},
        {"text": "Hi.", "part_metadata": {"aB": 1}},
    ],
)
def test_further_fields_of_a_user_part_are_sent_back(part: dict[str, Any]) -> None:
    contents = [{"role": "user", "parts": [part, {"text": "q"}]}]
    msgs = load_native(contents)
    assert GeminiChatFormatter(on_loss="raise").lower(msgs).request["contents"] == contents
    assert "media_resolution" not in json.dumps(load_provider("openai").chat_formatter().lower(msgs).request)


_FILE: Final = "https://generativelanguage.googleapis.com/v1beta/files/abc"


@pytest.mark.parametrize("uri", [_FILE, "files/abc"])
def test_a_file_of_the_files_api_is_sent_only_to_gemini(uri: str) -> None:
    part = {"file_data": {"file_uri": uri, "mime_type": "image/png"}, "media_resolution": {"level": "HIGH"}}
    for contents in (
        [{"role": "user", "parts": [{"text": "Look."}, part]}],
        _log_with_response({"output": "A cat."}, parts=[part]),
    ):
        msgs = load_native(contents)
        plan = GeminiChatFormatter("gemini-3-pro", on_loss="raise").lower(msgs)
        assert plan.request["contents"] == contents
        for provider in ("openai", "openai-responses", "anthropic", "dashscope", "ollama"):
            plan = load_provider(provider).chat_formatter().lower(msgs)
            assert uri not in json.dumps(plan.request)
            assert len(list(plan.ledger.losses)) == 1
            with pytest.raises(LossError):
                load_provider(provider).chat_formatter(on_loss="raise").lower(msgs)


@pytest.mark.parametrize("uri", ["https://example.com/files/abc", "gs://files/abc", "https://youtu.be/files/1"])
def test_a_file_at_a_public_url_becomes_media(uri: str) -> None:
    (msg,) = load_native([{"role": "user", "parts": [{"fileData": {"fileUri": uri, "mimeType": "image/png"}}]}])
    assert msg.blocks == (ImageBlock(URLSource(uri, "image/png")),)


def test_the_object_of_a_response_is_sent_back_only_if_its_text_is_unchanged() -> None:
    *head, last = load_native(_log_with_response({"temperature": 12}))
    (result,) = last.tool_results
    assert isinstance(result.output[0], TextBlock)
    changed = replace(result, output=(replace(result.output[0], text="cut"),))
    request = GeminiChatFormatter().lower([*head, replace(last, content=(changed,))]).request
    assert request["contents"][2]["parts"][0]["function_response"]["response"] == {"output": "cut"}


def test_other_providers_get_the_text_of_a_response_object() -> None:
    msgs = load_native(_log_with_response({"temperature": 12}))
    assert '"temperature' in json.dumps(load_provider("anthropic").chat_formatter().lower(msgs).request).replace(
        "\\", ""
    )
    results = [
        message
        for message in load_provider("openai").chat_formatter().lower(msgs).request["messages"]
        if message["role"] == "tool"
    ]
    assert results[0]["content"] == '{"temperature":12}'


def test_an_unreadable_part_becomes_an_invalid_block_and_affects_no_other() -> None:
    bad: list[Any] = [
        {"hologram": 1},
        {"inlineData": {"mimeType": "image/png", "data": "%%%"}},
        {"fileData": {}},
        {},
        7,
    ]
    (msg,) = load_native([{"role": "user", "parts": [*bad, {"text": "Hi."}]}])
    places = [block.place for block in msg.blocks if isinstance(block, InvalidBlock)]
    assert places == [f"contents[0].parts[{index}]" for index in range(5)]
    assert msg.blocks[-1] == TextBlock("Hi.")


@pytest.mark.parametrize("response", [None, "Sunny.", ["Sunny."], 3])
def test_a_response_without_an_object_becomes_an_invalid_block(response: Any) -> None:
    log = _log_with_response(response, parts=[{"inlineData": {"mimeType": "image/png", "data": PNG}}])
    if response is None:
        del log[2]["parts"][0]["function_response"]["response"]
    (block,) = load_native(log)[2].blocks
    assert isinstance(block, InvalidBlock)
    assert block.place == "contents[2].parts[0]"
    assert block.reason == f"function_response.response: expected an object, got {describe_value(response)}"
    assert block.data == log[2]["parts"][0]
    plan = GeminiChatFormatter().lower(load_native(log))
    assert [place for place, _ in plan.ledger.losses] == ["msgs[2].content[0]"]


@each_case(
    "value", [None, 3, {}, {"messages": []}, {"contents": None}, [3], [{"role": "tool", "parts": []}], [[]]]
)
def test_a_value_that_is_not_a_log_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="contents"):
        load_native(value)


def test_the_provider_has_a_loader() -> None:
    assert PROVIDER.load_native is load_native


# -- the round trip --------------------------------------------------------------------------------------------

_model: st.SearchStrategy[list[Block]] = st.sampled_from(
    (
        [
            OpaqueBlock(
                "gemini", {"executable_code": {"code": "1", "language": "PYTHON"}, "thought_signature": "AAAA"}
            ),
            OpaqueBlock("gemini", {"code_execution_result": {"outcome": "OUTCOME_OK"}}),
        ],
        [OpaqueBlock("gemini", {"tool_call": {"id": "t", "args": {"aB": 1}}})],
        [
            ImageBlock(Base64Source("image/png", PNG), state=create_state(SIGNATURE, thought=True)),
            TextBlock("Done."),
        ],
        [TextBlock("", state=create_state(SIGNATURE))],
        [ThinkingBlock("Hm.", create_state(SIGNATURE)), ToolUseBlock("c", "look", {"aB": {"cD": 1}})],
        [DocumentBlock(Base64Source("application/pdf", PDF))],
    )
)
logs = st.lists(
    st.one_of(
        histories(3), valid_histories(3), _model.map(lambda blocks: [Msg("Friday", tuple(blocks), "assistant")])
    ),
    min_size=1,
    max_size=4,
).map(lambda value: [msg for piece in value for msg in piece])


@examples(100)
@given(logs, st.sampled_from((None, "gemini-3-pro", "gemini-2.5-flash")))
def test_a_formatted_request_is_loaded_and_formatted_unchanged(msgs: list[Msg], model: str | None) -> None:
    formatter = load_provider("gemini").chat_formatter(model)
    request = formatter.lower(msgs).request
    again = load_native(request)
    assume(again)
    assert formatter.lower(again).request == request
