"""Counting with an encoding: splintr against tiktoken, the choice between them, and requests of all providers."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from PIL import Image
from splintr import Tokenizer

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    MissingExtraError,
    Msg,
    OptionError,
    TextBlock,
    TiktokenCounter,
    TokenCount,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
    load_provider,
)
from agentkit.tokens.encodings import find_encoding_package
from agentkit.tokens.model_encodings import Encoding, find_encoding
from tests.cases import each_case
from tests.conftest import call, result, text_msg
from tests.tokens.corpus import CORPUS, OTHERS

OPENAI = load_provider("openai")

ENCODINGS = {
    "o200k_base": ("fb374d419588a4632f3f557e76b4b70aebbca790", 199_998),
    "cl100k_base": ("9b5ad71b2ce5302211f9c61530b329a4922fc6a4", 100_256),
}
NAMES = (
    *("anthropic", "dashscope", "dashscope-compatible", "deepseek", "gemini"),
    *("ollama", "openai", "openai-responses", "vllm"),
)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder of tiktoken, with vocabularies of splintr. tiktoken checks the SHA-256 of each file."""
    folder = tmp_path_factory.mktemp("ranks")
    for encoding, (name, size) in ENCODINGS.items():
        token = Tokenizer.from_pretrained(encoding).decode_token_bytes
        lines = (base64.b64encode(token(rank)) + b" %d\n" % rank for rank in range(size))
        (folder / name).write_bytes(b"".join(lines))
    return folder


@pytest.fixture
def cache(ranks: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder in the environment variable that tiktoken reads."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(ranks))
    return ranks


@pytest.fixture
def without_splintr(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without splintr."""
    monkeypatch.setitem(sys.modules, "splintr", None)


@pytest.fixture
def without_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder in the environment variable that tiktoken reads, and no network."""

    def refuse(*_: object) -> None:
        raise AssertionError("tiktoken downloads")

    monkeypatch.setattr("tiktoken.load.read_file", refuse)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    return tmp_path


def odd_texts() -> Iterator[str]:
    """Yields texts of all kinds of characters, some with special tokens."""
    chance = random.Random(7)
    pieces = [chr(code) for code in range(0x20, 0x7F)] + [
        "\n",
        "\r\n",
        "\t",
        "   ",
        "\u3000",
        "'s",
        "'LL",
        "\u200d",
    ]
    pieces += [chr(chance.randrange(0x80, 0xD7FF)) for _ in range(300)]
    pieces += [chr(chance.randrange(0xE000, 0x10FFFF)) for _ in range(300)]
    pieces += ["<|endoftext|>", "<|im_start|>", "<|think|>", "<|fim_prefix|>"]
    for _ in range(3_000):
        yield "".join(chance.choice(pieces) for _ in range(chance.randrange(1, 40)))
    yield from ("", "a" * 20_000, " " * 5_000, "\n" * 2_000, "漢" * 3_000, "é" * 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_splintr_agrees_with_tiktoken_on_every_text(
    encoding: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = tiktoken.get_encoding(encoding)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    counter = TiktokenCounter(encoding=encoding)
    assert counter.source == "splintr"
    texts = [*(text for texts in CORPUS.values() for text in texts), *OTHERS.values(), *odd_texts()]
    wrong = [
        text
        for text, count in zip(texts, _contents(counter, texts), strict=True)
        if count != len(reference.encode(text, disallowed_special=()))
    ]
    assert wrong == []


def _content(counter: TiktokenCounter, text: str) -> int:
    return _contents(counter, [text])[0]


def _contents(counter: TiktokenCounter, texts: Sequence[str]) -> list[int]:
    """Returns the number of tokens of each text, without those of its message."""
    empty, *counts = (
        counter.measure({"messages": [{"role": "user", "content": text}]}, OPENAI) for text in ("", *texts)
    )
    return [count - empty for count in counts]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tiktoken_is_first_if_its_cache_has_the_ranks(encoding: str, cache: Path) -> None:
    counter = TiktokenCounter(encoding=encoding)
    assert counter.source == "tiktoken"
    text = "hello <|endoftext|> world"
    assert _content(counter, text) == len(tiktoken.get_encoding(encoding).encode(text, disallowed_special=()))


def test_splintr_counts_if_the_cache_of_tiktoken_is_empty(without_ranks: Path) -> None:
    counter = TiktokenCounter("gpt-4o")
    assert counter.source == "splintr"
    assert _content(counter, "hello world") == 2
    assert [*without_ranks.iterdir()] == []


def test_splintr_counts_in_encodings_that_tiktoken_lacks(cache: Path) -> None:
    assert TiktokenCounter(encoding="qwen3").source == "splintr"


@pytest.mark.usefixtures("without_splintr")
def test_without_ranks_the_error_names_the_package_to_install(without_ranks: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'agentkit-middleware\[tokens\]'"):
        TiktokenCounter("gpt-4o")
    assert [*without_ranks.iterdir()] == []


@pytest.mark.usefixtures("without_splintr")
def test_damaged_ranks_are_neither_changed_nor_downloaded_again(without_ranks: Path) -> None:
    damaged = without_ranks / ENCODINGS["o200k_base"][0]
    damaged.write_bytes(b"IQ== 0\n")
    with pytest.raises(MissingExtraError):
        find_encoding_package("o200k_base")
    assert damaged.read_bytes() == b"IQ== 0\n"


def test_a_ranks_file_is_read_once_and_again_after_a_change(
    ranks: Path, without_ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []
    read_bytes = Path.read_bytes

    def record(path: Path) -> bytes:
        reads.append(path)
        return read_bytes(path)

    file = without_ranks / ENCODINGS["cl100k_base"][0]
    content = (ranks / file.name).read_bytes()
    file.write_bytes(content)
    monkeypatch.setattr(Path, "read_bytes", record)
    assert [find_encoding_package("cl100k_base") for _ in range(3)] == ["tiktoken"] * 3
    assert reads == [file]
    file.write_bytes(content + b"\n")
    assert find_encoding_package("cl100k_base") == "splintr"
    file.unlink()
    assert find_encoding_package("cl100k_base") == "splintr"
    assert reads == [file, file]


@pytest.mark.slow
@pytest.mark.parametrize("text", [" " * 1_000_000, " " * 1_000_001 + "x"], ids=["spaces", "spaces and a letter"])
def test_a_text_that_tiktoken_refuses_is_counted_in_pieces(
    text: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="stack"):
        tiktoken.get_encoding("o200k_base").encode(text)
    counter = TiktokenCounter("gpt-4o")
    assert counter.source == "tiktoken"
    counted = _content(counter, text)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert counted == pytest.approx(_content(TiktokenCounter("gpt-4o"), text), abs=4)  # pyright: ignore[reportUnknownMemberType]


@pytest.mark.usefixtures("without_splintr")
def test_an_encoding_without_ranks_is_replaced_with_a_note(cache: Path) -> None:
    counter = TiktokenCounter("qwen3-max")
    assert counter.encoding == "o200k_base"
    assert counter.measure({"messages": []}, OPENAI).estimated == (
        "the vocabulary of qwen3 is not available; tokens counted with o200k_base",
    )


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5.4-mini", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("ft:gpt-4o:org::id", "o200k_base"),
        ("gpt-oss-120b", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("Qwen/Qwen3-32B", "qwen3"),
        ("deepseek-ai/DeepSeek-V3.1", "deepseek_v3"),
        ("moonshotai/Kimi-K2-Instruct", "kimi_k2"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3"),
    ],
)
def test_a_model_has_the_encoding_of_its_family(model: str, encoding: str) -> None:
    assert find_encoding(model) == Encoding(encoding)
    assert (
        TiktokenCounter(model).measure({"messages": [{"role": "user", "content": "hi"}]}, OPENAI).estimated == ()
    )


@each_case("model", ["gpt-6-sol", "gpt-audio", "claude-opus-5", "gemini-4-pro", "qwen3.7-plus", "x", ""])
def test_an_unknown_encoding_is_an_estimate_with_a_single_reason(model: str) -> None:
    count = TiktokenCounter(model).measure({"messages": [{"role": "user", "content": "hello"}]}, OPENAI)
    assert count > 1
    assert len(count.estimated) == 1


def test_an_encoding_can_be_passed_and_an_unknown_encoding_is_refused() -> None:
    assert TiktokenCounter("my-model", encoding="llama3").measure({"messages": []}, OPENAI).estimated == ()
    with pytest.raises(OptionError, match="o200k_base"):
        TiktokenCounter(encoding="o300k")


def test_a_message_costs_three_tokens_and_its_name_one_more() -> None:
    counter = TiktokenCounter("gpt-4o")
    bare = counter.measure({"messages": [{"role": "user", "content": "hello world"}]}, OPENAI)
    assert bare == 3 + 3 + 2
    assert (
        counter.measure({"messages": [{"role": "user", "name": "Bob", "content": "hello world"}]}, OPENAI)
        == bare + 2
    )


def test_a_tool_is_counted_as_a_typescript_type() -> None:
    counter = TiktokenCounter("gpt-4o")
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Where"}},
        "required": ["city"],
    }
    chat = {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": schema}}
    flat = {"type": "function", "name": "weather", "description": "Tells it.", "parameters": schema}
    claude = {"name": "weather", "description": "Tells it.", "input_schema": schema}
    gemini = {"function_declarations": [{**claude, "parameters_json_schema": schema}]}
    forms = ((chat, OPENAI), (flat, load_provider("openai-responses")), (claude, load_provider("anthropic")))
    counts = {counter.measure({"messages": [], "tools": [tool]}, provider) for tool, provider in forms}
    assert len(counts) == 1
    text = "// Tells it.\ntype weather = (_: {\n// Where\ncity: string,\n}) => any;\n"
    assert counts == {3 + 9 + _content(counter, text)}
    assert counter.measure({"contents": [], "config": {"tools": [gemini]}}, load_provider("gemini")) in counts
    assert counter.measure({"messages": [], "tools": [chat]}, OPENAI).estimated


ODD_TOOLS: list[Any] = ["odd", {"type": "web_search"}, {"name": "x", "parameters": {"anyOf": [{}, True]}}, 3]


@each_case("tool", ODD_TOOLS)
def test_an_odd_tool_is_counted(tool: Any) -> None:
    assert TiktokenCounter("gpt-4o").measure({"input": [], "tools": [tool]}, OPENAI) > 12


def png(width: int, height: int, kind: str = "PNG") -> str:
    file = BytesIO()
    Image.new("RGB", (width, height)).save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


PICTURE = png(1000, 1000)
MEDIA = (
    ImageBlock(Base64Source("image/png", PICTURE)),
    ImageBlock(URLSource("https://example.com/a.png")),
    ImageBlock(Base64Source("image/png", "aGkh" * 20_000)),
    AudioBlock(Base64Source("audio/wav", "UklGRiQA" * 20_000)),
    VideoBlock(Base64Source("video/mp4", "UklGRiQA" * 20_000)),
    DocumentBlock(Base64Source("application/pdf", "JVBERi0x" * 20_000), title="Offer"),
)


@each_case("name", NAMES)
@each_case(
    "make",
    {
        "ranks": TiktokenCounter,
    },
)
def test_every_block_is_counted_for_every_provider_and_base64_is_not_text(
    name: str, make: Callable[[], TiktokenCounter]
) -> None:
    called = Msg("Friday", (TextBlock("I look."), ToolUseBlock("c1", "find", {"q": ["x", 1, None]})), "assistant")
    tool_msg = Msg("system", (ToolResultBlock("c1", "find", (TextBlock("found"), MEDIA[0])),), "system")
    msgs = [
        text_msg("system", "Be brief.", "system"),
        Msg("Bob", (TextBlock("Look"), *MEDIA), "user"),
        called,
        tool_msg,
    ]
    request = load_provider(name).multi_agent_formatter().lower([*msgs, text_msg("Bob", "Well?")]).request
    before = copy.deepcopy(request)
    counter = make()
    counted = counter.measure(request, load_provider(name))
    assert 100 < counted < 30_000
    assert request == before
    assert counter.measure(request, load_provider(name)) == counted


@each_case("name", NAMES)
def test_the_sum_of_the_weights_is_close_to_the_measure_for_every_provider(name: str) -> None:
    counter = TiktokenCounter("gpt-4o")
    msgs = [text_msg(f"U{n % 3}", "The quick brown fox. " * 20, ("user", "assistant")[n % 2]) for n in range(30)]
    msgs += [msg for n in range(20) for msg in (call(f"c{n}"), result(f"c{n}", output="found it " * 30))]
    measured = counter.measure(load_provider(name).chat_formatter().lower(msgs).request, load_provider(name))
    assert 0.85 < sum(map(counter.weight, msgs)) / measured < 1.25


@each_case(
    ("model", "tokens"),
    [("gpt-4o", 85 + 4 * 170), ("gpt-5", 70 + 4 * 140), ("gpt-6", 1_229), ("claude-sonnet-4-5", 1_296)],
)
def test_an_image_has_the_price_of_its_size(model: str, tokens: int) -> None:
    counter = TiktokenCounter(model)
    empty = counter.measure({"messages": [{"role": "user", "content": []}]}, OPENAI)
    url = f"data:image/png;base64,{PICTURE}"
    part = {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}
    assert counter.measure({"messages": [{"role": "user", "content": [part]}]}, OPENAI) - empty == tokens
    assert counter.weigh(Msg("", (MEDIA[0],), "user")) == tokens + 4


def test_an_image_of_unknown_size_is_an_estimate_with_a_single_reason() -> None:
    for data in ("", "https://example.com/x.png", "bm90IGEgcGljdHVyZQ=="):
        part = {"type": "image_url", "image_url": {"url": data}}
        count = TiktokenCounter("gpt-4o").measure({"messages": [{"role": "user", "content": [part]}]}, OPENAI)
        assert count == 1_500 + 6
        assert len(count.estimated) == 1


@pytest.mark.anyio
async def test_counting_in_a_worker_thread_returns_the_same_count() -> None:
    request = {"messages": [{"role": "user", "content": f"{n} some words " * 2_000} for n in range(20)]}
    counter = TiktokenCounter("gpt-4o")
    await counter.prepare()
    assert (
        await counter.count(request, OPENAI)
        == counter.measure(request, OPENAI)
        == await counter.count(request, OPENAI)
    )


def test_a_counter_and_its_counts_can_be_pickled() -> None:
    counter = TiktokenCounter("gpt-6")
    request = {"messages": [{"role": "user", "content": "hello"}]}
    again = pickle.loads(pickle.dumps(counter))
    counted = counter.measure(request, OPENAI)
    assert again.measure(request, OPENAI) == counted
    assert again.key == counter.key
    stored = pickle.loads(pickle.dumps(counted))
    assert (stored, stored.estimated) == (counted, counted.estimated)
    assert json.dumps({"tokens": counted}) == f'{{"tokens": {int(counted)}}}'
    assert f"{TokenCount(5, ['x', 'x'])}" == "5"


def test_the_local_counter_is_the_counter_itself() -> None:
    counter = TiktokenCounter("gpt-4o")
    assert counter.local_counter is counter
