"""Token counters: the estimate by characters, and custom counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    CharacterTokenCounter,
    ImageBlock,
    InvalidBlock,
    LocalTokenCounter,
    Msg,
    OptionError,
    TextBlock,
    ThinkingBlock,
    TokenCounterBase,
    ToolResultBlock,
    URLSource,
    load_provider,
)
from tests.cases import each_case
from tests.conftest import call, text_msg

COUNTER = CharacterTokenCounter()
OPENAI = load_provider("openai")
BIG = ImageBlock(Base64Source("image/png", "aGkh" * 50_000))


def weigh(*content: Any) -> int:
    return COUNTER.weigh(Msg("Bob", content, "user"))


@each_case(("text", "tokens"), [("", 5), ("abcd", 6), ("a" * 400, 105), ("漢" * 100, 105), ("é" * 300, 5 + 405)])
def test_a_text_is_weighed_by_its_characters(text: str, tokens: int) -> None:
    assert COUNTER.weigh(text_msg("Bob", text)) == pytest.approx(tokens, rel=0.35)  # pyright: ignore[reportUnknownMemberType]


def test_a_longer_text_never_weighs_less() -> None:
    for character in "a é漢😀\n":
        weights = [COUNTER.weigh(text_msg("Bob", character * length)) for length in range(100)]
        assert weights == sorted(weights)
        assert weights[-1] > weights[0]


def test_media_of_any_size_have_the_same_price() -> None:
    assert weigh(BIG) == weigh(ImageBlock(URLSource("https://a/b.png"))) == weigh() + 1000
    assert CharacterTokenCounter(50).weigh(Msg("Bob", (BIG, BIG), "user")) == weigh() + 100
    inside = Msg("s", (ToolResultBlock("c", "n", (TextBlock("here"), BIG)),), "system")
    assert weigh() + 1001 <= COUNTER.weigh(inside) <= weigh() + 1005


def test_every_kind_of_block_has_a_weight() -> None:
    assert weigh(InvalidBlock({"x": 1}, "why", "there")) > weigh()
    assert COUNTER.weigh(call("c")) > weigh()
    assert COUNTER.weigh(Msg("s", (ToolResultBlock("c", "n", "found " * 10),), "system")) > weigh() + 10
    assert weigh(ThinkingBlock("hm " * 1000)) == weigh()


@pytest.mark.parametrize("price", [-1, -1000])
def test_a_negative_price_is_refused(price: int) -> None:
    with pytest.raises(OptionError) as caught:
        CharacterTokenCounter(price)
    assert caught.value.place == "media_tokens"


def test_equal_prices_make_equal_keys() -> None:
    assert CharacterTokenCounter(5).key == CharacterTokenCounter(5).key != COUNTER.key


@each_case(
    "name",
    [
        "anthropic",
        "dashscope",
        "dashscope-compatible",
        "deepseek",
        "gemini",
        "ollama",
        "openai",
        "openai-responses",
        "vllm",
    ],
)
def test_the_measure_is_close_to_the_weights_for_every_provider(name: str) -> None:
    msgs = [
        text_msg(f"U{number % 3}", "lorem ipsum " * 30, ("user", "assistant")[number % 2]) for number in range(40)
    ]
    measured = COUNTER.measure(load_provider(name).chat_formatter().lower(msgs).request, load_provider(name))
    weighed = sum(map(COUNTER.weigh, msgs))
    assert measured == pytest.approx(weighed, rel=0.15)  # pyright: ignore[reportUnknownMemberType]


@each_case("name", ["anthropic", "gemini", "ollama", "openai", "openai-responses", "dashscope", "vllm"])
def test_base64_is_not_counted_as_text_for_any_provider(name: str) -> None:
    png = ImageBlock(Base64Source("image/png", "iVBORw0KGgoAAAAN" * 10_000))
    request = load_provider(name).chat_formatter().lower([Msg("Bob", (TextBlock("look"), png), "user")]).request
    assert 1000 <= COUNTER.measure(request, load_provider(name)) < 1100


def test_audio_is_not_counted_as_text() -> None:
    wav = AudioBlock(Base64Source("audio/wav", "UklGRiQAAABXQVZF" * 10_000))
    request = load_provider("openai").chat_formatter("gpt-audio").lower([Msg("Bob", (wav,), "user")]).request
    assert 1000 <= COUNTER.measure(request, OPENAI) < 1100


def test_tools_and_schemas_count() -> None:
    bare: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
    tools: list[Any] = [
        {"name": "search", "description": "x" * 400, "parameters": {"type": "object", "properties": {"q": {}}}}
    ]
    assert COUNTER.measure({**bare, "tools": tools}, OPENAI) > COUNTER.measure(bare, OPENAI) + 80


def test_counting_does_not_change_the_request() -> None:
    request = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "tools": [{"a": [1, None]}],
    }
    before = repr(request)
    assert COUNTER.measure(request, OPENAI) == anyio.run(COUNTER.count, request, OPENAI) > 0
    assert repr(request) == before


class WordCounter(LocalTokenCounter):
    """Custom counter of words."""

    def __init__(self) -> None:
        self.weighed = 0

    def measure(self, request: Mapping[str, Any]) -> int:
        return len(str(request).split())

    def weigh(self, msg: Msg) -> int:
        self.weighed += 1
        return len(msg.text.split())


def test_a_local_counter_weighs_a_message_once() -> None:
    counter, msg = WordCounter(), text_msg("Bob", "one two three")
    assert [counter.weight(msg) for _ in range(3)] == [3, 3, 3]
    assert counter.weighed == 1


def test_two_counters_have_separate_weights() -> None:
    msg = text_msg("Bob", "one two three")
    assert WordCounter().weight(msg) == 3
    assert COUNTER.weight(msg) == COUNTER.weigh(msg) != 3
    assert CharacterTokenCounter(5).weight(msg) == COUNTER.weight(msg)


def test_a_local_counter_also_counts_asynchronously() -> None:
    assert anyio.run(WordCounter().count, {"messages": ["a b"]}) == 3


@pytest.mark.parametrize("kind", [TokenCounterBase, LocalTokenCounter])
def test_the_base_classes_are_abstract(kind: type[Any]) -> None:
    with pytest.raises(TypeError, match="abstract"):
        kind()
