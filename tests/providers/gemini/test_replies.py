"""Replies of Gemini: complete and streamed, and any chunks compared with the complete reply."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ErrorEvent,
    FinishReason,
    ImageBlock,
    MediaEvent,
    MessageEnd,
    MessageError,
    MessageStart,
    Msg,
    OpaqueBlock,
    OpaqueEvent,
    OpaqueState,
    StreamEvent,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingBlock,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolUseBlock,
    ToolUseEnd,
    ToolUseStart,
    URLSource,
    Usage,
    UsageEvent,
    VideoBlock,
    load_provider,
)
from agentkit_gemini import PROVIDER, GeminiChatFormatter, GeminiStreamParser, parse_response
from tests.cases import each_case
from tests.profiles import examples
from tests.providers import PNG, WAV, problems, result, system, user
from tests.providers.calling import RawServer, write_answer
from tests.providers.mangling import mangled
from tests.providers.streams import cut, cuts, encode_events, parse_stream

MODEL: Final = "gemini-3-pro"
URL_SAFE: Final = base64.urlsafe_b64encode(b"\xff\xfe\xfb\xff").decode()
STANDARD: Final = base64.b64encode(b"\xff\xfe\xfb\xff").decode()
CODE: Final[dict[str, Any]] = {"executableCode": {"language": "PYTHON", "code": "print(2)"}}
OUTCOME: Final[dict[str, Any]] = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2\n"}}
PARTS: Final[list[dict[str, Any]]] = [
    {"text": "I think ", "thought": True},
    {"text": "of 漢字.", "thought": True},
    {"text": "Hello "},
    {"text": "you 🙂"},
    {**CODE, "thoughtSignature": URL_SAFE},
    OUTCOME,
    {"functionCall": {"id": "a1", "name": "look", "args": {"placeName": "hière"}}, "thoughtSignature": "AAAA"},
    {"functionCall": {"id": "a2", "name": "wait", "args": {}}},
    {"text": "", "thoughtSignature": URL_SAFE},
]
USAGE: Final[dict[str, Any]] = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 7,
    "toolUsePromptTokenCount": 5,
    "totalTokenCount": 132,
}
RATINGS: Final = [{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}]


def create_reply(*parts: dict[str, Any], reason: str | None = "STOP", **candidate: Any) -> dict[str, Any]:
    """Returns a complete reply with these parts."""
    finish = {"finishReason": reason} if reason else {}
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, **finish, "index": 0, **candidate}],
        "usageMetadata": USAGE,
        "modelVersion": MODEL,
        "responseId": "r1",
    }


REPLY: Final = create_reply(*PARTS, safetyRatings=RATINGS, groundingMetadata={"webSearchQueries": ["cats"]})


def as_sdk_object(value: dict[str, Any]) -> Any:
    from google.genai import types

    return types.GenerateContentResponse.model_validate(json.loads(json.dumps(value)))


def in_snake_case(value: Any) -> Any:
    """Returns a reply with its keys in snake_case, except for the arguments of tools."""
    return as_sdk_object(value).model_dump(exclude_none=True)


def read_stream(chunks: list[Any]) -> tuple[Msg, list[StreamEvent]]:
    return parse_stream(GeminiStreamParser(), chunks)


def get_reply(msg: Msg) -> dict[str, Any]:
    return cast("dict[str, Any]", (msg.metadata or {})["reply"])


def create_state(signature: str | None = STANDARD, **fields: Any) -> OpaqueState:
    return OpaqueState("gemini", thought_signature=signature, model=MODEL, fields=fields or None)


def next_parts(reply: Msg, *following: Msg) -> list[dict[str, Any]]:
    """Returns the parts of a reply in the next request, which the SDK validates."""
    from google.genai import types

    request = GeminiChatFormatter(MODEL).lower([user("Look."), reply, *(following or (user("Go on."),))]).request
    assert problems("gemini", request) == []
    content = types.Content.model_validate(request["contents"][1])
    assert content.role == "model"
    return list(request["contents"][1]["parts"])


# -- complete replies ------------------------------------------------------------------------------------------


def test_a_complete_reply_becomes_a_message() -> None:
    assert parse_response(REPLY) == Msg(
        "assistant",
        [
            ThinkingBlock("I think of 漢字.", OpaqueState("gemini", model=MODEL)),
            TextBlock("Hello you 🙂"),
            OpaqueBlock(
                "gemini",
                {"executable_code": {"language": "PYTHON", "code": "print(2)"}, "thought_signature": STANDARD},
            ),
            OpaqueBlock("gemini", {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "2\n"}}),
            ToolUseBlock("a1", "look", {"placeName": "hière"}, state=create_state("AAAA")),
            ToolUseBlock("a2", "wait", {}),
            TextBlock("", state=create_state()),
        ],
        "assistant",
        metadata={
            "reply": {
                "provider": "gemini",
                "finish_reason": "tool_use",
                "native_finish_reason": "STOP",
                "id": "r1",
                "model": MODEL,
                "usage": {
                    "input_tokens": 105,
                    "output_tokens": 27,
                    "cache_read_tokens": 60,
                    "cache_write_tokens": 0,
                    "reasoning_tokens": 7,
                },
                "safety_ratings": RATINGS,
                "grounding_metadata": {"web_search_queries": ["cats"]},
            }
        },
    )


def test_an_sdk_object_its_dicts_and_json_text_give_the_same_message() -> None:
    sdk_object, expected = as_sdk_object(REPLY), parse_response(REPLY)
    assert parse_response(sdk_object) == expected
    assert parse_response(sdk_object.model_dump()) == expected
    assert parse_response(in_snake_case(REPLY)) == expected
    assert parse_response(sdk_object.model_dump(mode="json", by_alias=True)) == expected
    assert parse_response(sdk_object.model_dump_json()) == expected
    assert parse_response(json.dumps(REPLY)) == expected


def test_signatures_of_both_alphabets_become_standard_base64() -> None:
    for spelling in (URL_SAFE, STANDARD, URL_SAFE.rstrip("="), f" {STANDARD}\n"):
        msg = parse_response(create_reply({"text": "Hi.", "thoughtSignature": spelling}))
        assert msg.blocks == (TextBlock("Hi.", state=create_state()),)


def test_a_signature_stays_with_its_part() -> None:
    parts = [{"text": "a"}, {"text": "b", "thoughtSignature": "AAAA"}, {"text": "c"}, {"text": "d"}]
    msg = parse_response(create_reply(*parts))
    assert msg.blocks == (TextBlock("a"), TextBlock("b", state=create_state("AAAA")), TextBlock("cd"))
    assert next_parts(msg) == [{"text": "a"}, {"text": "b", "thought_signature": "AAAA"}, {"text": "cd"}]


def test_two_texts_with_signatures_are_not_joined() -> None:
    part = {"text": "a", "thoughtSignature": "AAAA"}
    assert len(parse_response(create_reply(part, part)).blocks) == 2


def test_a_signature_without_text_becomes_an_empty_text() -> None:
    reply = parse_response(create_reply({"thoughtSignature": STANDARD}))
    assert reply.content == (TextBlock("", state=create_state()),)


def test_thinking_keeps_its_signature() -> None:
    msg = parse_response(
        create_reply({"text": "Hm.", "thought": True, "thoughtSignature": "AAAA"}, {"text": "Hi."})
    )
    assert msg.blocks == (ThinkingBlock("Hm.", create_state("AAAA")), TextBlock("Hi."))
    assert next_parts(msg)[0] == {"text": "Hm.", "thought": True, "thought_signature": "AAAA"}


def test_texts_around_another_part_are_separate_blocks() -> None:
    msg = parse_response(create_reply({"text": "a"}, CODE, OUTCOME, {"text": "b"}))
    assert [block.type for block in msg.blocks] == ["text", "opaque", "opaque", "text"]


def test_a_call_without_an_id_always_gets_the_same_id() -> None:
    call = {"functionCall": {"name": "look", "args": {"a": 1}}}
    first, second = parse_response(create_reply(call, call)).tool_uses
    assert first.id != second.id
    assert (first.id, second.id) == tuple(block.id for block in parse_response(create_reply(call, call)).tool_uses)
    results = system(result(first.id, "A cat."), result(second.id, "A dog."))
    assert [
        part["function_call"]["id"] for part in next_parts(parse_response(create_reply(call, call)), results)
    ] == [
        first.id,
        second.id,
    ]


def test_a_generated_image_is_sent_back_with_its_signature() -> None:
    blob = {"mimeType": "image/png", "data": PNG.replace("+", "-").replace("/", "_")}
    msg = parse_response(create_reply({"text": "Here."}, {"inlineData": blob, "thoughtSignature": URL_SAFE}))
    picture = ImageBlock(Base64Source("image/png", PNG), state=create_state())
    assert msg.blocks == (TextBlock("Here."), picture)
    assert Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) == msg
    data = {"mime_type": "image/png", "data": PNG}
    assert next_parts(msg)[1] == {"inline_data": data, "thought_signature": STANDARD}


def test_another_provider_gets_an_image_without_its_signature_and_a_ledger_entry() -> None:
    msg = parse_response(
        create_reply({"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "AAAA"})
    )
    plan = load_provider("openai-responses").chat_formatter().lower([user("Draw."), msg, user("Nice.")])
    assert "AAAA" not in json.dumps(plan.request)
    assert PNG in json.dumps(plan.request)


def test_an_image_from_thinking_is_sent_back_as_a_thought() -> None:
    blob = {"mimeType": "image/png", "data": PNG}
    msg = parse_response(create_reply({"inlineData": blob, "thought": True}, {"text": "Done."}))
    assert msg.media[0].state == create_state(None, thought=True)
    assert next_parts(msg)[0] == {"inline_data": {"mime_type": "image/png", "data": PNG}, "thought": True}


def test_the_media_type_decides_the_kind_of_media() -> None:
    msg = parse_response(
        create_reply(
            {"inlineData": {"mimeType": "audio/L16;codec=pcm;rate=24000", "data": WAV}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://example.com/a"}},
            {"inlineData": {"mimeType": "application/pdf", "data": WAV, "displayName": "a.pdf"}},
        )
    )
    assert msg.blocks == (
        AudioBlock(Base64Source("audio/L16;codec=pcm;rate=24000", WAV)),
        VideoBlock(URLSource("https://example.com/a", "video/mp4")),
        DocumentBlock(Base64Source("application/pdf", WAV), title="a.pdf"),
    )


def test_unreadable_parts_become_notes() -> None:
    broken = {"inlineData": {"mimeType": "image/png", "data": "%%%"}}
    msg = parse_response(create_reply({"hologram": {"depthMap": 1}}, broken, {}, {"text": "Hi."}))
    assert msg.blocks == (TextBlock("Hi."),)
    assert [sorted(part) for part in get_reply(msg)["unread_parts"]] == [["hologram"], ["inline_data"]]


def test_only_complete_pairs_of_server_tool_parts_are_sent_back() -> None:
    args = {"searchQuery": "cats"}
    asked = {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": args}, "thoughtSignature": "AAAA"}
    tool_response = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"hitCount": 2}}}
    call = {"id": "t1", "tool_type": "GOOGLE_SEARCH_WEB", "args": args}
    answer = {"id": "t1", "tool_type": "GOOGLE_SEARCH_WEB", "response": {"hitCount": 2}}
    assert next_parts(parse_response(create_reply(asked, tool_response, {"text": "Cats."}))) == [
        {"tool_call": call, "thought_signature": "AAAA"},
        {"tool_response": answer},
        {"text": "Cats."},
    ]
    assert next_parts(parse_response(create_reply(asked, {"text": "Cats."}))) == [{"text": "Cats."}]
    assert next_parts(parse_response(create_reply(tool_response, {"text": "Cats."}))) == [{"text": "Cats."}]
    assert next_parts(parse_response(create_reply(CODE, {"text": "Cats."}))) == [{"text": "Cats."}]


# -- how it ends -----------------------------------------------------------------------------------------------


@each_case(
    ("native", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("IMAGE_SAFETY", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("OTHER", "other"),
        ("CONTINUATION", "pause"),
        ("SOMETHING_NEW", "other"),
    ],
)
def test_each_finish_reason_is_mapped_and_the_native_reason_is_recorded(native: str, reason: str) -> None:
    msg = parse_response(create_reply({"text": "Well."}, reason=native))
    assert msg.finish_reason == FinishReason(reason)
    assert get_reply(msg)["native_finish_reason"] == native


def test_a_reply_with_calls_and_stop_in_each_chunk_ends_for_tool_use() -> None:
    chunks = [
        create_reply({"text": "I look."}),
        create_reply({"functionCall": {"id": "a", "name": "look", "args": {}}}),
    ]
    assert read_stream(chunks)[0].finish_reason is FinishReason.TOOL_USE


def test_a_malformed_call_is_an_error_without_content() -> None:
    candidate: dict[str, Any] = {
        "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": "print(look(",
        "content": {},
    }
    contents: list[dict[str, Any]] = [
        {},
        {"content": None},
        {"content": {"parts": None}},
        {"content": {"role": "model"}},
    ]
    for content in contents:
        msg = parse_response({"candidates": [{**candidate, **content}]})
        assert (msg.finish_reason, msg.blocks) == (FinishReason.ERROR, ())
        assert get_reply(msg)["finish_message"] == "print(look("


def test_a_blocked_prompt_has_no_candidates() -> None:
    reply = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}
    for variant in (reply, as_sdk_object(reply), json.dumps(reply)):
        msg = parse_response(variant)
        assert (msg.finish_reason, msg.blocks) == (FinishReason.CONTENT_FILTER, ())
        assert get_reply(msg)["prompt_feedback"] == {"block_reason": "PROHIBITED_CONTENT"}
        assert msg.usage == Usage(4)
    assert read_stream([reply])[0] == parse_response(reply)


def test_only_the_first_of_several_candidates_is_read() -> None:
    other = {"content": {"parts": [{"text": "Ho."}]}, "finishReason": "STOP", "index": 1}
    reply = create_reply({"text": "Hi."})
    msg = parse_response({**reply, "candidates": [*reply["candidates"], other]})
    assert msg.text == "Hi."
    assert get_reply(msg)["other_candidates"] is True


def test_an_error_body_raises_with_the_text_of_the_provider() -> None:
    body = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}
    with pytest.raises(MessageError, match=r"API key not valid. \(INVALID_ARGUMENT\)"):
        parse_response(body)


@each_case("value", [{}, {"choices": []}, {"content": []}, [], "[]", "no JSON", 3, None])
def test_a_value_that_is_not_a_reply_is_refused(value: object) -> None:
    with pytest.raises(MessageError, match="reply"):
        parse_response(value)


# -- streams ---------------------------------------------------------------------------------------------------


def create_chunk(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}],
        "modelVersion": MODEL,
        "responseId": "r1",
        **fields,
    }


def as_chunks(reply: dict[str, Any], places: list[int], borders: list[int]) -> list[dict[str, Any]]:
    """Returns a complete reply in chunks: its texts in pieces, and a new chunk after each border."""
    (candidate,) = reply["candidates"]
    pieces: list[dict[str, Any]] = []
    for part in candidate["content"]["parts"]:
        if "text" in part and "thoughtSignature" not in part:
            pieces += [{**part, "text": piece} for piece in cut(part["text"], places)]
        else:
            pieces.append(part)
    starts = [0, *sorted(border % (len(pieces) + 1) for border in borders), len(pieces)]
    usage = reply["usageMetadata"]
    first = {"promptTokenCount": usage["promptTokenCount"], "cachedContentTokenCount": 60, "totalTokenCount": 1}
    chunks = [create_chunk(*pieces[start:stop], usageMetadata=first) for start, stop in pairwise(starts)]
    end = {key: item for key, item in candidate.items() if key != "content"}
    late = {key: item for key, item in usage.items() if key != "cachedContentTokenCount"}
    last: dict[str, Any] = {"candidates": [end], "usageMetadata": late}
    return [*chunks, {**last, "modelVersion": MODEL, "responseId": "r1"}]


def test_each_chunk_has_its_events() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    call: dict[str, Any] = {"functionCall": {"id": "a", "name": "look", "args": {}}}
    reply = create_reply({"text": "Hm.", "thought": True}, {"text": "Hi."}, CODE, picture, call)
    kinds = [type(event) for event in read_stream(as_chunks(reply, [2], [1, 2, 3]))[1]]
    assert kinds == [
        MessageStart,
        ThinkingStart, ThinkingDelta, UsageEvent, ThinkingDelta, ThinkingEnd,
        TextStart, TextDelta, TextDelta, TextEnd,
        OpaqueEvent, MediaEvent,
        ToolUseStart, ToolUseEnd,
        MessageEnd, UsageEvent,
    ]  # fmt: skip


def test_an_error_in_an_array_is_the_error_of_the_provider() -> None:
    error = {"error": {"code": 429, "message": "Too many.", "status": "RESOURCE_EXHAUSTED"}}
    reply, events = parse_stream(GeminiStreamParser(), [json.dumps([error]).encode()])
    assert reply.finish_reason is FinishReason.ERROR
    assert [event.message for event in events if isinstance(event, ErrorEvent)] == ["Too many."]


def test_usage_that_a_later_chunk_omits_does_not_change() -> None:
    chunks = as_chunks(REPLY, [], [3])
    assert "cachedContentTokenCount" not in chunks[-1]["usageMetadata"]
    assert read_stream(chunks)[0].usage == Usage(105, 27, 60, 0, 7)


def test_an_empty_last_chunk_changes_nothing() -> None:
    chunks = [create_chunk({"text": "Hi."}), create_reply({"text": ""}), {"usageMetadata": USAGE}]
    assert read_stream(chunks)[0] == parse_response(create_reply({"text": "Hi."}))


def test_each_citation_of_a_long_stream_is_recorded_once() -> None:
    """20,000 citations: a comparison of each citation with all earlier ones would not end in time."""
    parser = GeminiStreamParser()
    for start in range(0, 20_000, 10):
        citations = [{"startIndex": start + index, "uri": "https://example.com"} for index in range(10)]
        parser.feed(
            create_reply({"text": "a"}, reason=None, citationMetadata={"citations": [*citations, *citations]})
        )
    assert len(get_reply(parser.finish())["citation_metadata"]["citations"]) == 20_000


def test_citations_of_several_chunks_add_up() -> None:
    first, second = {"startIndex": 1, "uri": "https://a"}, {"startIndex": 5, "uri": "https://b"}
    chunks = [
        create_reply({"text": "a"}, reason=None, citationMetadata={"citations": [first]}),
        create_reply({"text": "b"}, citationMetadata={"citations": [first, second]}),
    ]
    citations = get_reply(read_stream(chunks)[0])["citation_metadata"]["citations"]
    assert citations == [{"start_index": 1, "uri": "https://a"}, {"start_index": 5, "uri": "https://b"}]


def test_an_error_in_the_stream_does_not_remove_the_blocks_before_it() -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    msg, events = read_stream([create_chunk({"text": "Hel"}), error])
    assert (msg.text, msg.finish_reason) == ("Hel", FinishReason.ERROR)
    assert ErrorEvent("The model is overloaded.", "UNAVAILABLE") in events
    raw = encode_events([create_chunk({"text": "Hel"}), error])
    assert read_stream([raw])[0] == msg


def test_an_interrupted_stream_has_the_blocks_before_the_interruption() -> None:
    msg = read_stream([create_chunk({"text": "Hel"})])[0]
    assert (msg.text, msg.finish_reason) == ("Hel", FinishReason.INTERRUPTED)


def partial_call(*pieces: dict[str, Any], goes_on: bool, **call: Any) -> dict[str, Any]:
    return create_chunk({"functionCall": {**call, "partialArgs": list(pieces), "willContinue": goes_on}})


STREAMED_CALL: Final = [
    partial_call(goes_on=True, name="book", id="a1"),
    partial_call({"jsonPath": "$.city", "stringValue": "New ", "willContinue": True}, goes_on=True),
    partial_call({"jsonPath": "$.city", "stringValue": "York"}, goes_on=True),
    partial_call({"jsonPath": "$.rooms[1].beds", "numberValue": 2}, goes_on=True),
    partial_call({"jsonPath": "$['is late']", "boolValue": True}, goes_on=True),
    partial_call({"jsonPath": "$.x", "nullValue": "NULL_VALUE"}, goes_on=True),
]


def test_arguments_that_vertex_streams_by_path_are_joined() -> None:
    msg = read_stream([*STREAMED_CALL, create_chunk({"functionCall": {}}), create_reply()])[0]
    (call,) = msg.tool_uses
    assert call.input == {"city": "New York", "rooms": [None, {"beds": 2}], "is late": True, "x": None}
    assert (call.id, call.name, call.metadata) == ("a1", "book", None)


def test_truncated_arguments_are_incomplete() -> None:
    for end in ([], [create_reply(reason="MAX_TOKENS")]):
        (call,) = read_stream([*STREAMED_CALL[:3], *end])[0].tool_uses
        assert (call.input, call.metadata) == ({}, {"incomplete": True})
        assert call.raw_input == '{"city":"New York"'


@each_case("path", ["$", "", "city", "$..a", "$[0]", "$.a[99999999999999999999]", "$.city.b", "$."])
def test_an_invalid_path_is_ignored(path: str) -> None:
    msg = read_stream([*STREAMED_CALL[:3], partial_call({"jsonPath": path, "numberValue": 1}, goes_on=False)])[0]
    assert msg.tool_uses[0].input["city"] == "New York"


# -- the round trip --------------------------------------------------------------------------------------------


def test_a_parsed_reply_is_sent_back_part_by_part() -> None:
    results = system(result("a1", "A cat."), result("a2", "Done.", name="wait"))
    assert next_parts(parse_response(REPLY), results) == [
        {"text": "I think of 漢字.", "thought": True},
        {"text": "Hello you 🙂"},
        {"executable_code": CODE["executableCode"], "thought_signature": STANDARD},
        {"code_execution_result": OUTCOME["codeExecutionResult"]},
        {
            "function_call": {"id": "a1", "name": "look", "args": {"placeName": "hière"}},
            "thought_signature": "AAAA",
        },
        {"function_call": {"id": "a2", "name": "wait", "args": {}}},
        {"text": "", "thought_signature": STANDARD},
    ]


# -- through the SDK -------------------------------------------------------------------------------------------


async def _through_the_sdk(url: str, *, stream: bool) -> list[Any]:
    import httpx2
    from google import genai
    from google.genai import types

    transport = httpx2.AsyncHTTPTransport()  # so that the SDK does not use aiohttp
    options = types.HttpOptions(base_url=url, api_version="v1beta", async_client_args={"transport": transport})
    client = genai.Client(api_key="k", http_options=options)
    models: Any = client.aio.models
    try:
        if not stream:
            return [await models.generate_content(model=MODEL, contents="Hi.")]
        chunks: Any = await models.generate_content_stream(model=MODEL, contents="Hi.")
        return [chunk async for chunk in chunks]
    finally:
        await client.aio.aclose()
        client.close()


@pytest.mark.anyio
async def test_chunks_decoded_by_the_sdk_give_the_complete_message() -> None:
    with RawServer(
        write_answer(200, encode_events(as_chunks(REPLY, [3], [1, 4, 6])), "content-type: text/event-stream")
    ) as server:
        chunks = await _through_the_sdk(server.address, stream=True)
    assert len(chunks) > 2
    assert read_stream(chunks)[0] == parse_response(REPLY)
    with RawServer(write_answer(200, json.dumps(REPLY).encode(), "content-type: application/json")) as server:
        (reply,) = await _through_the_sdk(server.address, stream=False)
    assert parse_response(reply) == parse_response(REPLY)


def test_the_provider_has_a_parser() -> None:
    assert PROVIDER.parser is GeminiStreamParser


# -- any chunking ----------------------------------------------------------------------------------------------

_texts = st.text(st.sampled_from('aé漢🙂 \n"\\{}:\r'), min_size=1, max_size=12)
_args = st.dictionaries(_texts, st.one_of(_texts, st.integers(), st.booleans(), st.none(), st.lists(_texts)))
_signature: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    ({}, {}, {"thoughtSignature": URL_SAFE}, {"thoughtSignature": "AAAA"})
)


def _part(signature: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**fields, **signature}


def _call(signature: dict[str, Any], **call: Any) -> dict[str, Any]:
    return {"functionCall": call, **signature}


_parts: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(_part, st.just({}), text=_texts),
    st.builds(_part, st.just({}), text=_texts, thought=st.just(True)),
    st.builds(_part, _signature, text=_texts),
    st.builds(_part, _signature, text=_texts, thought=st.just(True)),
    st.just(_part({"thoughtSignature": URL_SAFE}, text="")),
    st.builds(_call, _signature, name=st.just("look"), args=_args),
    st.builds(_call, _signature, id=st.just("a1"), name=st.just("look"), args=_args),
    st.builds(_part, _signature, inlineData=st.just({"mimeType": "image/png", "data": PNG})),
    st.builds(_part, _signature, executableCode=st.just(CODE["executableCode"])),
    st.just(OUTCOME),
)


@st.composite
def complete_replies(draw: DrawFn) -> dict[str, Any]:
    reason = draw(st.sampled_from(("STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL")))
    return create_reply(*draw(st.lists(_parts, max_size=7)), reason=reason, safetyRatings=RATINGS)


@examples(150)
@given(
    complete_replies(), cuts, st.lists(st.integers(0, 60), max_size=6), cuts,
    st.sampled_from(("dicts", "objects", "snake", "bytes")),
)  # fmt: skip
def test_any_chunks_of_a_stream_give_the_message_of_the_complete_reply(
    reply: dict[str, Any], places: list[int], starts: list[int], borders: list[int], encoding: str
) -> None:
    chunks: list[Any] = as_chunks(reply, places, starts)
    if encoding == "objects":
        chunks = [as_sdk_object(chunk) for chunk in chunks]
    elif encoding == "snake":
        chunks = [in_snake_case(chunk) for chunk in chunks]
    elif encoding == "bytes":
        chunks = cut(encode_events(chunks), borders)
    assert read_stream(chunks)[0] == parse_response(reply)


@examples(200)
@given(st.data())
def test_mangled_chunks_and_replies_raise_only_message_errors(data: st.DataObject) -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": "AAAA"}
    original = create_reply(*PARTS, picture, safetyRatings=RATINGS, citationMetadata={"citations": [{"uri": "x"}]})
    try:
        msg = parse_response(data.draw(mangled(original)))
    except MessageError:
        pass
    else:
        GeminiChatFormatter().lower([user("Hi."), msg, user("Go on.")])
    chunks = [*as_chunks(original, [3], [1, 3, 5]), *STREAMED_CALL]
    broken = [data.draw(mangled(chunk)) if data.draw(st.integers(0, 3)) == 0 else chunk for chunk in chunks]
    parser = GeminiStreamParser()
    for chunk in broken:
        if isinstance(chunk, dict):
            parser.feed(cast("dict[str, Any]", chunk))
    msg = parser.finish()
    assert Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) == msg
    GeminiChatFormatter().lower([user("Hi."), msg, user("Go on.")])
