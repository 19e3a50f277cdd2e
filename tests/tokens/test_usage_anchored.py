"""Counting by the last reported usage, the parts of requests, and the cache of counts."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from agentkit import (
    CharacterTokenCounter,
    Msg,
    OptionError,
    TokenCount,
    TokenCounterBase,
    UsageAnchoredCounter,
    load_provider,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.provider_kit import MediaPart, RequestParts, WireLayout
from agentkit.tokens.estimate import TextCounts
from tests.cases import each_case
from tests.conftest import call, result, text_msg

pytestmark = pytest.mark.anyio

MESSAGES = [
    text_msg("system", "Be brief.", "system"),
    text_msg("Bob", "What is the weather in Lyon?"),
    call("c1"),
    result("c1", output="Sunny, 24 degrees. " * 20),
]
NEW = [text_msg("Friday", "It is sunny.", "assistant"), text_msg("Bob", "And tomorrow? " * 40)]
OPENAI, ANTHROPIC = load_provider("openai"), load_provider("anthropic")
NAMES = ("anthropic", "dashscope", "deepseek", "gemini", "ollama", "openai", "openai-responses", "vllm")


def request(name: str, msgs: list[Msg], **options: Any) -> dict[str, Any]:
    return load_provider(name).chat_formatter().lower(msgs, **options).request


async def test_the_prompt_of_a_chat_template_can_begin_with_the_anchored_prompt() -> None:
    template = ChatTemplate.builtin("zephyr")
    counter, formatter = UsageAnchoredCounter(), template.formatter()
    first, second = (formatter.lower(msgs).request for msgs in (MESSAGES, [*MESSAGES, *NEW]))
    counter.anchor(first, 5_000, formatter)
    assert await counter.count(first, formatter) == 5_000
    new = CharacterTokenCounter().measure(second, formatter) - CharacterTokenCounter().measure(first, formatter)
    assert new > 100
    assert await counter.count(second, formatter) == 5_000 + new
    other = await counter.count(formatter.lower(NEW).request, formatter)
    assert other.estimated == ("local estimate, scaled by the last reported usage",)


@each_case("name", NAMES)
async def test_the_estimate_of_new_content_is_added_to_the_last_usage(name: str) -> None:
    counter = UsageAnchoredCounter()
    first, second = request(name, MESSAGES), request(name, [*MESSAGES, *NEW])
    provider = load_provider(name)
    counter.anchor(first, 5_000, provider)
    assert await counter.count(first, provider) == 5_000
    counted = await counter.count(second, provider)
    new = CharacterTokenCounter().measure(second, provider) - CharacterTokenCounter().measure(first, provider)
    assert counted == 5_000 + new
    assert counted.estimated == ("tokens after the last reported usage are estimated locally",)


async def test_the_anchored_request_has_the_reported_usage() -> None:
    counter = UsageAnchoredCounter()
    counter.anchor(request("openai", MESSAGES), 321, OPENAI)
    again = await counter.count(request("openai", MESSAGES), OPENAI)
    assert (again, again.estimated) == (321, ())


@pytest.mark.parametrize(
    "other",
    [MESSAGES[:1] + MESSAGES[2:], [text_msg("system", "Be long.", "system"), *MESSAGES[1:]], MESSAGES[:2]],
    ids=["cut", "another system prompt", "shorter"],
)
async def test_the_estimate_of_another_request_is_scaled_by_the_last_usage(other: list[Msg]) -> None:
    counter, local = UsageAnchoredCounter(), CharacterTokenCounter()
    anchored = request("anthropic", MESSAGES)
    counter.anchor(anchored, 3 * local.measure(anchored, ANTHROPIC), ANTHROPIC)
    count = await counter.count(request("anthropic", other), ANTHROPIC)
    assert count == 3 * local.measure(request("anthropic", other), ANTHROPIC)
    assert count.estimated == ("local estimate, scaled by the last reported usage",)


async def test_a_request_with_other_tools_is_another_request() -> None:
    counter = UsageAnchoredCounter()
    counter.anchor(request("openai", MESSAGES), 5_000, OPENAI)
    tool: dict[str, Any] = {
        "name": "look",
        "description": "Looks.",
        "parameters": {"type": "object", "properties": {}},
    }
    count = await counter.count(request("openai", MESSAGES, tools=[tool]), OPENAI)
    assert count.estimated == ("local estimate, scaled by the last reported usage",)


async def test_without_a_usage_the_count_is_the_local_estimate() -> None:
    native = request("openai", MESSAGES)
    counted = await UsageAnchoredCounter().count(native, OPENAI)
    assert counted == CharacterTokenCounter().measure(native, OPENAI)
    assert counted.estimated == ("local estimate: no usage was reported yet",)


async def test_a_later_change_of_the_anchored_request_has_no_effect() -> None:
    counter, native = UsageAnchoredCounter(), request("openai", MESSAGES)
    same = copy.deepcopy(native)
    counter.anchor(native, 777, OPENAI)
    assert native == same
    native["messages"].clear()
    assert await counter.count(same, OPENAI) == 777


async def test_an_empty_request_can_be_anchored() -> None:
    counter = UsageAnchoredCounter()
    counter.anchor({}, 1, OPENAI)
    assert await counter.count(request("openai", MESSAGES), OPENAI) > 0


@each_case("tokens", [-1, 0, 1.5, None, "9", True])
async def test_a_usage_that_is_not_a_positive_integer_is_refused(tokens: Any) -> None:
    with pytest.raises(OptionError):
        UsageAnchoredCounter().anchor({}, tokens, OPENAI)


async def test_each_counter_has_a_local_counter() -> None:
    class Remote(TokenCounterBase):
        async def count(self, request: Mapping[str, Any]) -> int:
            return 0

    local = CharacterTokenCounter(7)
    assert UsageAnchoredCounter(local).local_counter is local
    assert local.local_counter is local
    assert isinstance(Remote().local_counter, CharacterTokenCounter)
    with pytest.raises(OptionError):
        UsageAnchoredCounter(Remote())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_the_estimate_by_characters_has_a_reason() -> None:
    count = CharacterTokenCounter().measure({"messages": []}, OPENAI)
    assert (count, count.estimated) == (0, ("all tokens are estimated from characters, without a tokenizer",))
    assert TokenCount(3) == 3
    assert TokenCount(3).estimated == ()


class TestTextCounts:
    def test_each_text_is_counted_once(self) -> None:
        counted: list[str] = []

        def count(text: str) -> int:
            counted.append(text)
            return len(text)

        counts = TextCounts(count)
        assert [counts["abc"], counts["".join("abc")], counts["d"]] == [3, 3, 1]
        assert counted == ["abc", "d"]

    def test_the_cache_stays_within_its_limit(self) -> None:
        counts = TextCounts(len, limit=1_000)
        for number in range(100):
            assert counts[f"{number:03}"] == 3
        assert len(counts) == 1_000 // 103
        assert "099" in counts
        assert counts["x" * 500] == 500
        assert "x" * 500 not in counts


class TestRequestParts:
    def test_a_chat_request_is_split_into_parts(self) -> None:
        parts = RequestParts.of(
            {
                "messages": [
                    {"role": "user", "name": "Bob", "content": "hi"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                        ],
                    },
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "low"}}],
                    },
                ],
                "tools": [{"type": "function"}],
                "tool_choice": {"type": "function"},
                "model": "m",
            },
            OPENAI,
        )
        assert sorted(parts.texts) == ["Bob", "f", "hi", "{}"]
        assert (parts.turns, parts.speakers, parts.calls) == (3, 1, 1)
        assert parts.media == [MediaPart("image", "u", "low")]
        assert len(parts.tools) == len(parts.settings) == 1

    @pytest.mark.parametrize(
        ("provider", "part", "media"),
        [
            (
                "openai-responses",
                {"type": "input_image", "image_url": "u", "detail": "high"},
                MediaPart("image", "u", "high"),
            ),
            (
                "openai-responses",
                {"type": "input_file", "filename": "a.pdf", "file_data": "d"},
                MediaPart("document", "d"),
            ),
            (
                "openai",
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "d"}},
                MediaPart("document", "d"),
            ),
            ("openai", {"type": "file", "file": {"file_id": "f"}}, MediaPart("document", "")),
            (
                "openai",
                {"type": "input_audio", "input_audio": {"data": "d", "format": "wav"}},
                MediaPart("audio", "d"),
            ),
            ("vllm", {"type": "video_url", "video_url": {"url": "u"}}, MediaPart("video", "u")),
            (
                "anthropic",
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "d"}},
                MediaPart("image", "d"),
            ),
            ("anthropic", {"type": "image", "source": {"type": "url", "url": "u"}}, MediaPart("image", "u")),
            (
                "anthropic",
                {"type": "document", "source": {"type": "file", "file_id": "f"}},
                MediaPart("document", ""),
            ),
            ("gemini", {"inline_data": {"mime_type": "audio/wav", "data": "d"}}, MediaPart("audio", "d")),
            ("gemini", {"inline_data": {"mime_type": "image/png", "data": b"bytes"}}, MediaPart("image", "")),
            ("gemini", {"file_data": {"mime_type": "video/mp4", "file_uri": "u"}}, MediaPart("video", "u")),
            ("gemini", {"file_data": {"file_uri": "u"}}, MediaPart("document", "u")),
            ("ollama", {"role": "user", "images": ["d"]}, MediaPart("image", "d")),
            ("dashscope", {"video": ["u"]}, MediaPart("image", "u")),
            ("dashscope", {"audio": "u"}, MediaPart("audio", "u")),
        ],
    )
    def test_media_of_every_api_are_recognized(
        self, provider: str, part: dict[str, Any], media: MediaPart
    ) -> None:
        layout = load_provider(provider).layout
        parts = RequestParts.of({layout.turns: [part]}, layout)
        assert parts.media == [media]
        assert parts.texts == []

    def test_text_documents_are_texts_and_encrypted_thinking_is_not(self) -> None:
        source = {"type": "text", "media_type": "text/plain", "data": "words"}
        blocks = [
            {"type": "document", "source": source},
            {"type": "redacted_thinking", "data": "c2VhbGVk"},
            {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"},
            {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "more"}]}},
        ]
        parts = RequestParts.of({"messages": [{"role": "user", "content": blocks}], "system": "S"}, ANTHROPIC)
        assert sorted(parts.texts) == ["S", "hm", "more", "words"]
        assert parts.sealed == ["c2VhbGVk"]
        item: dict[str, Any] = {"type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"}
        assert RequestParts.of({"input": [item]}, load_provider("openai-responses")).sealed == ["c2VhbGVk"]

    @each_case(
        "part",
        [
            {"document": {"format": "txt", "source": {"bytes": "d29yZHM="}}},
            {"document": {"format": "text/plain", "source": {"bytes": "d29yZHM="}}},
            {"document": {"source": {"bytes": "data:text/plain;base64,d29yZHM="}}},
            {"document": "data:text/plain;base64,d29yZHM="},
        ],
    )
    def test_base64_data_of_a_text_document_is_decoded(self, part: dict[str, Any]) -> None:
        layout = WireLayout(media={"document": "document"}, media_data=("source.bytes",), media_types=("format",))
        parts = RequestParts.of({"messages": [{"role": "user", "content": [part]}]}, layout)
        assert (parts.sealed, parts.media, parts.texts) == (["d29yZHM="], [], [])

    def test_a_list_under_a_silent_key_is_not_counted(self) -> None:
        layout = WireLayout(silent=frozenset({"failed"}))
        parts = RequestParts.of({"messages": [{"role": "user", "content": "hi", "failed": ["c1", "c2"]}]}, layout)
        assert parts.texts == ["hi"]

    def test_json_of_the_caller_has_no_media(self) -> None:
        call_block = {"type": "tool_use", "name": "f", "input": {"url": "u", "data": ["d", 1, {"image": "i"}]}}
        parts = RequestParts.of({"messages": [{"role": "assistant", "content": [call_block]}]}, ANTHROPIC)
        assert parts.media == []
        assert sorted(parts.texts) == ["f", '{"url":"u","data":["d",1,{"image":"i"}]}']

    def test_long_strings_in_json_of_the_caller_are_not_copied(self) -> None:
        text = "word " * 1_000
        call_block = {"type": "tool_use", "name": "f", "input": {"path": "a", "text": text}}
        parts = RequestParts.of({"messages": [{"role": "assistant", "content": [call_block]}]}, ANTHROPIC)
        assert any(item is text for item in parts.texts)
        assert parts.fields == 2

    @pytest.mark.parametrize(
        ("provider", "odd"),
        [
            ("openai-responses", {"input": "hi"}),
            ("openai-responses", {"instructions": "hi"}),
            ("gemini", {"contents": "hi"}),
            ("openai", {"messages": ["hi"]}),
        ],
    )
    def test_a_prompt_can_be_a_string(self, provider: str, odd: dict[str, Any]) -> None:
        assert RequestParts.of(odd, load_provider(provider)).texts == ["hi"]

    def test_the_config_of_a_gemini_request_is_read(self) -> None:
        config = {"system_instruction": {"parts": [{"text": "S"}]}, "tools": [{"x": 1}], "temperature": 0.5}
        parts = RequestParts.of({"contents": [], "config": config}, load_provider("gemini"))
        assert (parts.texts, parts.tools, parts.settings) == (["S"], [{"x": 1}], [])
