"""Gemini: media in function responses, parts with only metadata, spelling of the REST body, enums by number."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from agentkit import (
    Disposition,
    FinishReason,
    ImageBlock,
    MediaBlock,
    ModelRules,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    Tool,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    load_native,
    load_request_options,
)
from agentkit.messages.blocks import DocumentBlock
from agentkit_gemini import GeminiStreamParser
from agentkit_gemini._rest_body import build_rest_body
from tests.cases import each_case
from tests.providers import PNG, chat, picture, problems, user

Json = dict[str, Any]
STORED: Final = "https://generativelanguage.googleapis.com/v1beta/files/abc-123"


def _contents(*items: TextBlock | MediaBlock | OpaqueBlock, role: Any = "system", **options: Any) -> list[Json]:
    """Returns the contents of a conversation in which a tool result has these items."""
    msgs = [
        user("Look."),
        Msg("Friday", [ToolUseBlock("call_1", "look", {})], "assistant"),
        Msg("tool", [ToolResultBlock("call_1", "look", items)], role),
    ]
    plan = chat("gemini", "gemini-3-pro", **options).lower(msgs)
    assert problems("gemini", plan.request) == []
    return list(plan.request["contents"])


@each_case(
    "block",
    [
        ImageBlock(URLSource("https://x.org/a.png")),
        ImageBlock(URLSource("http://x.org/a.png")),
        ImageBlock(URLSource("gs://bucket/a.png", "image/png")),
        DocumentBlock(URLSource("https://x.org/a.pdf")),
        ImageBlock(URLSource("https://x.org/files/a.png")),
    ],
)
def test_media_at_a_public_url_in_a_result_move_to_a_user_turn(block: MediaBlock) -> None:
    answer, moved = _contents(TextBlock("See."), block, on_loss="raise")[2:4]
    assert "parts" not in answer["parts"][0]["function_response"]
    assert any("file_data" in part for part in moved["parts"])


def test_a_file_of_the_files_api_stays_in_its_result() -> None:
    contents = _contents(TextBlock("See."), ImageBlock(URLSource(STORED, "image/png")), on_loss="raise")
    assert len(contents) == 3
    (part,) = contents[2]["parts"][0]["function_response"]["parts"]
    assert part == {"file_data": {"file_uri": STORED, "mime_type": "image/png"}}


def test_results_are_a_content_of_their_own_even_if_user_turns_are_merged() -> None:
    msgs = [
        user("Look."),
        Msg("Friday", [ToolUseBlock("call_1", "look", {})], "assistant"),
        Msg("tool", [ToolResultBlock("call_1", "look", "A cat.")], "system"),
        user("Thanks."),
    ]
    plan = chat("gemini", model_rules=ModelRules(alternating_turns=True)).lower(msgs)
    response, thanks = plan.request["contents"][2:4]
    assert list(response["parts"][0]) == ["function_response"]
    assert thanks["parts"] == [{"text": "Thanks."}]


@pytest.mark.parametrize("role", ["system", "assistant", "user"])
def test_an_image_in_a_result_has_no_signature(role: Any) -> None:
    state = OpaqueState("gemini", thought_signature="c2ln")
    signed = ImageBlock(picture().source, state=state)
    (part,) = _contents(TextBlock("See."), signed, role=role)[2]["parts"][0]["function_response"]["parts"]
    assert part == {"inline_data": {"mime_type": "image/png", "data": PNG}}
    assert "c2ln" not in str(_contents(TextBlock("See.", state=state), role=role)[2])


# -- parts of metadata alone -------------------------------------------------------------------------------------

METADATA: Final[list[Json]] = [
    {"video_metadata": {"start_offset": "1s", "fps": 2}},
    {"media_resolution": {"level": "MEDIA_RESOLUTION_LOW"}},
    {"part_metadata": {"key": "value"}},
]


@pytest.mark.parametrize("part", METADATA)
def test_a_part_with_only_metadata_is_sent_back_unchanged(part: Json) -> None:
    log = [{"role": "user", "parts": [{"text": "See."}, part]}]
    plan = chat("gemini", on_loss="raise").lower(load_native("gemini", log))
    assert plan.request["contents"] == log
    (_, entry) = plan.ledger.entries
    assert entry.disposition is Disposition.CARRIED


@pytest.mark.parametrize("part", METADATA)
def test_a_part_with_only_metadata_in_a_reply_is_parsed(part: Json) -> None:
    reply = {"candidates": [{"content": {"parts": [{"text": "Hi."}, part]}, "finishReason": "STOP"}]}
    assert GeminiStreamParser.parse_response(reply).blocks[1] == OpaqueBlock("gemini", part)


# -- the REST body -----------------------------------------------------------------------------------------------


FREE: Final = ("args", "response", "parametersJsonSchema", "responseJsonSchema", "labels", "properties")


def _snake_keys(value: Any) -> list[str]:
    """Returns the keys in snake_case, except for the keys of the caller."""
    if isinstance(value, list):
        return [key for item in cast("list[Any]", value) for key in _snake_keys(item)]
    pairs = list(cast("Json", value).items()) if isinstance(value, dict) else []
    inner = [key for name, item in pairs if name not in FREE for key in _snake_keys(item)]
    return [key for key, _ in pairs if "_" in key] + inner


def test_all_keys_of_the_rest_body_are_in_camel_case() -> None:
    schema = {"type": "object", "properties": {"some_place": {"type": "string"}}}
    msgs = [
        Msg("system", "Be brief.", "system"),
        user("Look.", picture()),
        Msg("Friday", [ToolUseBlock("call_1", "look_at", {"some_place": {"of_all": 1}})], "assistant"),
        Msg("tool", [ToolResultBlock("call_1", "look_at", [TextBlock("See."), picture()])], "system"),
        *load_native(
            "gemini", [{"role": "user", "parts": [{"text": "a", "video_metadata": {"start_offset": "1s"}}]}]
        ),
    ]
    tool = {"name": "look_at", "parameters": schema}
    plan = chat("gemini", "gemini-3-pro").lower(msgs, tools=[tool], tool_choice="look_at", response_format=schema)
    config = {
        **plan.request["config"],
        "thinking_config": {"include_thoughts": True, "thinking_level": "LOW"},
        "safety_settings": [{"category": "X", "threshold": "Y", "some_method": 1}],
        "labels": {"my_team": "a_b"},
        "response_schema": {"any_of": [{"min_items": 1}], "properties": {"of_it": {"max_length": 2}}},
    }
    body = build_rest_body({**plan.request, "config": config})
    assert _snake_keys(body) == []
    (declaration,) = body["tools"][0]["functionDeclarations"]
    assert declaration["parametersJsonSchema"]["properties"] == schema["properties"]
    assert body["contents"][1]["parts"][0]["functionCall"]["args"] == {"some_place": {"of_all": 1}}
    assert body["labels"] == {"my_team": "a_b"}
    assert body["generationConfig"]["responseSchema"] == {
        "anyOf": [{"minItems": 1}],
        "properties": {"of_it": {"maxLength": 2}},
    }
    inner = body["contents"][2]["parts"][0]["functionResponse"]["parts"][0]["inlineData"]
    assert inner == {"mimeType": "image/png", "data": PNG}


# -- enums by number ---------------------------------------------------------------------------------------------

REASONS: Final = [
    (1, FinishReason.STOP, "STOP"),
    (2, FinishReason.LENGTH, "MAX_TOKENS"),
    (3, FinishReason.CONTENT_FILTER, "SAFETY"),
    (9, FinishReason.ERROR, "MALFORMED_FUNCTION_CALL"),
    (77, FinishReason.OTHER, "77"),
]


@each_case(("number", "reason", "name"), REASONS)
@each_case("key", ["finishReason", "finish_reason"])
@each_case("streamed", [False, True])
def test_a_finish_reason_may_be_a_number(
    key: str, number: int, reason: FinishReason, name: str, streamed: bool
) -> None:
    reply = {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, key: number}]}
    if streamed:
        parser = GeminiStreamParser()
        parser.feed({"candidates": [{"content": {"parts": [{"text": "Hi."}]}, key: 0}]})
        parser.feed({"candidates": [{key: number}]})
        msg = parser.finish()
    else:
        msg = GeminiStreamParser.parse_response(reply)
    assert (msg.finish_reason, msg.text) == (reason, "Hi.")
    assert msg.metadata is not None
    assert msg.metadata["reply"]["native_finish_reason"] == name


def test_a_block_reason_may_be_a_number() -> None:
    msg = GeminiStreamParser.parse_response({"promptFeedback": {"blockReason": 4}})
    assert msg.finish_reason is FinishReason.CONTENT_FILTER
    assert msg.metadata is not None
    assert msg.metadata["reply"]["native_finish_reason"] == "PROHIBITED_CONTENT"


def test_the_types_of_a_schema_and_the_mode_of_a_choice_may_be_numbers() -> None:
    parameters = {"type": 6, "properties": {"at": {"type": 1}, "all": {"type": 5, "items": {"type": 3}}}}
    request = {
        "contents": [],
        "tools": [{"functionDeclarations": [{"name": "look", "parameters": parameters}]}],
        "toolConfig": {"functionCallingConfig": {"mode": 2}},
    }
    asked = load_request_options("gemini", request)
    tool = next(iter(asked.get("tools") or ()))
    assert isinstance(tool, Tool)
    assert tool.parameters == {
        "type": "object",
        "properties": {"at": {"type": "string"}, "all": {"type": "array", "items": {"type": "integer"}}},
    }
    assert asked.get("tool_choice") == ToolChoice("required")
