"""Blocks and sources are immutable and validated; their arguments are positional or by keyword."""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MessageError,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from agentkit.messages.blocks import build_parsed_call
from agentkit.messages.media_types import guess_media_type
from agentkit.messages.validation import ORDINARY_BUILDERS
from tests.cases import each_case

URL = URLSource("https://example.com/a.png")
MEDIA: list[type[Any]] = [ImageBlock, AudioBlock, VideoBlock, DocumentBlock]

EQUAL_BLOCKS: list[tuple[Any, Any]] = [
    (TextBlock("hi"), TextBlock(text="hi")),
    (
        ThinkingBlock("hm", OpaqueState("echo")),
        ThinkingBlock(thinking="hm", state=OpaqueState(issuer="echo")),
    ),
    (ToolUseBlock("c1", "search", {"q": 1}), ToolUseBlock(id="c1", name="search", input={"q": 1})),
    (
        ToolUseBlock("c1", "search", {"q": 1}, '{"q": 1}'),
        ToolUseBlock(id="c1", name="search", input={"q": 1}, raw_input='{"q": 1}'),
    ),
    (
        ToolResultBlock("c1", "search", "found", True),
        ToolResultBlock(id="c1", name="search", output="found", is_error=True),
    ),
    (URLSource("https://a/b", "image/png"), URLSource(url="https://a/b", media_type="image/png")),
    (Base64Source("image/png", "aGk="), Base64Source(media_type="image/png", data="aGk=")),
    (
        InvalidBlock({"type": "?"}, "why", "msgs[0]"),
        InvalidBlock(data={"type": "?"}, reason="why", place="msgs[0]"),
    ),
    (OpaqueState("echo", "sig"), OpaqueState(issuer="echo", signature="sig")),
    *[(kind(URL), kind(source=URL)) for kind in MEDIA],
]


@each_case(("positional", "keyword"), EQUAL_BLOCKS)
def test_arguments_are_positional_or_by_keyword(positional: Any, keyword: Any) -> None:
    assert positional == keyword
    assert repr(positional) == repr(keyword)


@each_case("item", [item for item, _ in EQUAL_BLOCKS])
def test_a_block_is_immutable(item: Any) -> None:
    for name in (field.name for field in dataclasses.fields(item) if not field.name.startswith("_")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(item, name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(item, name)
    with pytest.raises((AttributeError, TypeError)):
        item.colour = "red"


@each_case("item", [item for item, _ in EQUAL_BLOCKS])
def test_a_block_can_be_pickled_and_copied(item: Any) -> None:
    assert pickle.loads(pickle.dumps(item)) == item
    assert copy.copy(item) == item
    assert copy.deepcopy(item) == item
    assert dataclasses.replace(item) == item


BLOCK_TYPES: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (TextBlock, ("x",), "text"),
    (ThinkingBlock, ("x",), "thinking"),
    (ToolUseBlock, ("i", "n", {}), "tool_use"),
    (ToolResultBlock, ("i",), "tool_result"),
    (ImageBlock, (URL,), "image"),
    (AudioBlock, (URL,), "audio"),
    (VideoBlock, (URL,), "video"),
    (DocumentBlock, (URL,), "document"),
    (InvalidBlock, (None, "r", "p"), "invalid"),
]


@pytest.mark.parametrize(("kind", "positional", "word"), BLOCK_TYPES, ids=[row[2] for row in BLOCK_TYPES])
def test_a_block_has_its_type(kind: Callable[..., Any], positional: tuple[Any, ...], word: str) -> None:
    assert kind(*positional).type == word
    assert kind(*positional).metadata is None
    assert kind(*positional, metadata={"k": 1}).metadata == {"k": 1}


REFUSED: list[tuple[str, Any, str, str]] = [
    ("a number as text", lambda: TextBlock(5), "TextBlock.text", "valid string"),  # type: ignore[arg-type]
    ("a missing text", TextBlock, "TextBlock.text", "got nothing"),
    ("bytes as text", lambda: TextBlock(b"hi"), "TextBlock.text", "valid string"),  # type: ignore[arg-type]
    ("an unknown field", lambda: TextBlock("x", colour=1), "TextBlock.colour", "nexpected"),  # type: ignore[call-arg]
    ("a lone surrogate", lambda: TextBlock("a\ud800"), "TextBlock.text", "lone surrogate at character 1"),
    ("a wrong type name", lambda: TextBlock("x", type="image"), "TextBlock.type", "'text'"),  # type: ignore[arg-type]
    ("a lone surrogate in thinking", lambda: ThinkingBlock("\udfff"), "ThinkingBlock.thinking", "lone surrogate"),
    ("a state without issuer", OpaqueState, "OpaqueState.issuer", "nothing"),
    ("a list as input", lambda: ToolUseBlock("i", "n", [1]), "ToolUseBlock.input", "dict"),  # type: ignore[arg-type]
    (
        "NaN in input",
        lambda: ToolUseBlock("i", "n", {"x": [float("nan")]}),
        "ToolUseBlock.input.x[0]",
        "finite",
    ),
    (
        "infinity in input",
        lambda: ToolUseBlock("i", "n", {"x": float("inf")}),
        "ToolUseBlock.input.x",
        "finite",
    ),
    ("an input that is not JSON", lambda: ToolUseBlock("i", "n", {"x": {1, 2}}), "ToolUseBlock.input.x", "JSON"),
    (
        "a lone surrogate in the input",
        lambda: ToolUseBlock("i", "n", {"x": "\ud800"}),
        "ToolUseBlock.input",
        "JSON",
    ),
    (
        "a lone surrogate in a key of the input",
        lambda: ToolUseBlock("i", "n", {"\ud800": 1}),
        "ToolUseBlock.input",
        "JSON",
    ),
    ("a null id", lambda: ToolUseBlock(None, "n", {}), "ToolUseBlock.id", "string"),  # type: ignore[arg-type]
    (
        "NaN in metadata",
        lambda: TextBlock("x", metadata={"k": float("nan")}),
        "TextBlock.metadata.k",
        "finite",
    ),
    ("a number as output", lambda: ToolResultBlock("i", "n", 5), "ToolResultBlock.output", "string"),  # type: ignore[arg-type]
    (
        "a tool call in a result",
        lambda: ToolResultBlock("i", "n", (ToolUseBlock("j", "n", {}),)),  # type: ignore[arg-type]
        "ToolResultBlock.output[0]",
        "tool_use",
    ),
    (
        "a bare URL",
        lambda: ImageBlock("https://a/b.png"),  # type: ignore[arg-type]
        "ImageBlock.source",
        "expected a URLSource or Base64Source, got str",
    ),
    ("a blank URL", lambda: URLSource(" "), "URLSource.url", "blank"),
    ("an empty URL", lambda: URLSource(""), "URLSource.url", "blank"),
    (
        "a bad media type",
        lambda: Base64Source("png", "aGk="),
        "Base64Source.media_type",
        "expected a media type, got 'png'",
    ),
    (
        "a data URL",
        lambda: Base64Source("image/png", "data:image/png;base64,aGk="),
        "Base64Source.data",
        "data: URL",
    ),
    ("data as bytes", lambda: Base64Source("image/png", b"aGk="), "Base64Source.data", "string"),  # type: ignore[arg-type]
]


@each_case(("make", "place", "reason"), {row[0]: row[1:] for row in REFUSED})
def test_an_error_names_the_place_and_the_reason(make: Callable[[], object], place: str, reason: str) -> None:
    with pytest.raises(MessageError) as caught:
        make()
    assert caught.value.place.startswith(place)
    assert reason in caught.value.reason
    assert caught.value.advice.endswith(".")
    assert caught.value.__cause__ is None


def test_an_error_shortens_a_long_value() -> None:
    with pytest.raises(MessageError) as caught:
        TextBlock(["x" * 10_000])  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


def test_json_values_are_copied_on_creation() -> None:
    value: dict[str, Any] = {"q": {"deep": [1, {"x": 2}]}}
    use = ToolUseBlock("i", "n", value, metadata=value)
    note = InvalidBlock(value, "why", "msgs[0]")
    value["q"]["deep"][1]["x"] = "changed"
    value["q"]["deep"].append(3)
    value["new"] = 1
    assert use.input == use.metadata == note.data == {"q": {"deep": [1, {"x": 2}]}}
    assert use.arguments == '{"q":{"deep":[1,{"x":2}]}}'


@each_case(
    ("input", "raw", "arguments", "broken"),
    [
        ({"q": 1}, None, '{"q":1}', False),
        ({"q": 1}, '{ "q" : 1 }', '{ "q" : 1 }', False),
        ({"q": "ü"}, '{"q": "\\u00fc"}', '{"q": "\\u00fc"}', False),
        ({"q": "ü"}, None, '{"q":"ü"}', False),
        ({"b": 1, "a": 2}, None, '{"b":1,"a":2}', False),
        ({}, "", "{}", True),
        ({}, '{"path": "READ', "{}", True),
        ({"q": 1}, '{"q": 2}', '{"q":1}', True),
        ({}, "[]", "{}", True),
        ({}, '{"x": NaN}', "{}", True),
    ],
)
def test_arguments_are_the_raw_text_if_it_matches_the_input(
    input: dict[str, Any], raw: str | None, arguments: str, broken: bool
) -> None:
    use = ToolUseBlock("i", "n", input, raw)
    assert use.arguments == arguments
    assert use.raw_is_broken is broken
    assert use.raw_input == raw


@each_case(
    ("output", "text", "kinds"),
    [
        ("found", "found", ["text"]),
        ("", "", ["text"]),
        ((), "", []),
        ((TextBlock("a"), ImageBlock(URL), TextBlock("b")), "a\nb", ["text", "image", "text"]),
        ([TextBlock("a")], "a", ["text"]),
        ([{"type": "text", "text": "a"}], "a", ["text"]),
    ],
)
def test_the_output_of_a_result_is_text_or_items(output: Any, text: str, kinds: list[str]) -> None:
    item = ToolResultBlock("i", "n", output)
    assert item.text == text
    assert [item.type for item in item.items] == kinds
    assert isinstance(item.output, str | tuple)


def test_a_result_requires_only_an_id() -> None:
    item = ToolResultBlock("i")
    assert (item.name, item.output, item.is_error) == ("", "", False)


@each_case(
    ("url", "scheme"),
    [
        ("https://a/b", "https"),
        ("HTTP://a/b", "http"),
        ("file:///a/b", "file"),
        ("data:,x", "data"),
        ("gs://bucket/x", "gs"),
        ("a/b.png", "file"),
        ("/a/b.png", "file"),
        ("C:\\pictures\\a.png", "file"),
        ("a b:c", "file"),
    ],
)
def test_a_source_has_a_scheme(url: str, scheme: str) -> None:
    assert URLSource(url).scheme == scheme


@each_case(
    ("url", "declared", "guessed"),
    [
        ("https://a/b.PNG", None, "image/png"),
        ("https://a/b.jpg?width=3#x", None, "image/jpeg"),
        ("https://a.png/b", None, None),
        ("https://a/b", None, None),
        ("https://a/b", "image/jpg", "image/jpeg"),
        ("https://a/b.png", "Image/WebP; q=1", "image/webp"),
        ("clip.mov", None, "video/quicktime"),
        ("DATA:text/plain;charset=utf-8,see report.pdf", None, "text/plain"),
        ("data: image/jpg ;base64,AAAA/a.pdf", None, "image/jpeg"),
        ("data:,see report.pdf", None, "text/plain"),
        ("data:nonsense,see report.pdf", None, None),
        ("song.mp3", None, "audio/mpeg"),
    ],
)
def test_a_source_guesses_its_media_type(url: str, declared: str | None, guessed: str | None) -> None:
    assert URLSource(url, declared).guessed_type == guessed


def _wrong_type(*_: object) -> tuple[str, None]:
    return ("image/wrong", None)


def test_the_guessed_type_does_not_depend_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimetypes.guess_type", _wrong_type)
    assert guess_media_type("a.png") == "image/png"


def test_a_data_url_is_computed_once() -> None:
    source = Base64Source("image/png", "aGk=")
    assert source.data_url == "data:image/png;base64,aGk="
    assert source.data_url is source.data_url


@pytest.mark.parametrize("kind", MEDIA)
def test_media_blocks_are_created_from_bytes_a_path_or_a_url(kind: type[Any], tmp_path: Path) -> None:
    path = tmp_path / "a b.png"
    path.write_bytes(b"\x89PNG")
    base64_source = Base64Source("image/png", base64.b64encode(b"\x89PNG").decode())
    assert kind.from_bytes(b"\x89PNG", "image/png") == kind(base64_source)
    assert kind.from_path(path) == kind.from_path(str(path)) == kind(base64_source)
    assert kind.from_path(path, "image/webp").source.media_type == "image/webp"
    assert kind.from_url("https://a/b", "image/png") == kind(URLSource("https://a/b", "image/png"))


@pytest.mark.parametrize(
    ("name", "reason"), [("missing.png", "cannot be read"), ("plain", "media type is unknown")]
)
def test_an_unreadable_path_is_an_error(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"in a format that nobody knows")
    with pytest.raises(MessageError, match=reason) as caught:
        ImageBlock.from_path(tmp_path / name)
    assert name in caught.value.place


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"type": "url", "url": "https://a/b"}, URLSource("https://a/b")),
        ({"type": "base64", "media_type": "image/png", "data": "aGk="}, Base64Source("image/png", "aGk=")),
    ],
)
def test_a_source_may_be_a_dict(source: Any, expected: object) -> None:
    assert ImageBlock(source).source == expected


def test_cached_results_do_not_affect_equality() -> None:
    used, fresh = Base64Source("image/png", "aGk="), Base64Source("image/png", "aGk=")
    assert used.data_url
    assert used == fresh
    assert repr(used) == repr(fresh)
    assert hash(used) == hash(fresh)


def test_the_arguments_are_strict_json() -> None:
    use = ToolUseBlock("i", "n", {"text": 'quote " slash \\ line\n\u2028 \x00 é 漢 😀', "n": 10**30})
    assert json.loads(use.arguments) == use.input


@each_case(
    ("raw", "expected_value"),
    [
        ('{"a":1}', {"a": True}),
        ('{"a":true}', {"a": 1}),
        ('{"a":0}', {"a": False}),
        ('{"a":1.0}', {"a": 1}),
        ('{"a":[{"b":[1]}]}', {"a": [{"b": [True]}]}),
        ('{"a":{"b":0}}', {"a": {"b": False}}),
    ],
)
def test_raw_arguments_with_other_number_types_are_broken(raw: str, expected_value: dict[str, Any]) -> None:
    block = ToolUseBlock("c1", "look", expected_value, raw)
    assert block.raw_is_broken
    assert block.arguments != raw


@pytest.mark.parametrize(
    "raw", ['{ "a" : [1, 1.5, true, null, "x"], "b": {} }', '{"b":{},"a":[1,1.5,true,null,"x"]}']
)
def test_equivalent_raw_arguments_are_sent(raw: str) -> None:
    block = ToolUseBlock("c1", "look", {"a": [1, 1.5, True, None, "x"], "b": {}}, raw)
    assert block.arguments == raw


ORDINARY_ARGUMENTS: list[tuple[type[Any], tuple[Any, ...]]] = [
    (ToolUseBlock, ("c1", "look", {})),
    (ToolUseBlock, ("c1", "look", {"a": 1, "b": "x", "c": None, "d": True}, '{"d":true,"a":1,"b":"x","c":null}')),
    (ToolUseBlock, ("c1", "look", {"a": 1}, '{"a":1}', OpaqueState("openai", item_id="fc_1"))),
    (ToolUseBlock, ("c1", "look", {}, '{"a": ')),
    (ToolUseBlock, ("c1", "look", {"a": 1.5})),
    (ToolUseBlock, ("c1", "look", {"a": [1]})),
    (ToolResultBlock, ("c1",)),
    (ToolResultBlock, ("c1", "look", "\u00e9", True)),
    (ToolResultBlock, ("c1", "look", [])),
    (ToolResultBlock, ("c1", "look", [TextBlock("a"), ImageBlock(URL)])),
    (ThinkingBlock, ("a",)),
    (ThinkingBlock, ("\u00e9", OpaqueState("anthropic", signature="s"))),
]


@pytest.mark.parametrize(("cls", "arguments"), ORDINARY_ARGUMENTS)
def test_a_block_is_the_same_with_and_without_pydantic(
    cls: type[Any], arguments: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    block, other = cls(*arguments), cls(*arguments, metadata=None)
    with_metadata = cls(*arguments, metadata={"a": 1})
    monkeypatch.delitem(ORDINARY_BUILDERS, cls)
    expected = cls(*arguments)
    assert block == other == expected
    assert with_metadata == cls(*arguments, metadata={"a": 1})
    assert repr(block) == repr(expected)
    assert dataclasses.asdict(block) == dataclasses.asdict(expected)
    if isinstance(block, ToolUseBlock):
        assert (block.arguments, block.raw_is_broken) == (expected.arguments, expected.raw_is_broken)
        assert block.copy_input() == expected.copy_input()
        assert block.input is not arguments[2]


@each_case(
    "raw",
    [
        "{}",
        ' {"a": 1, "b": "\\u00e9", "c": null, "d": true} ',
        '{"a": 1, "a": 2}',
        '{"a": 123456789012345678901234567890}',
    ],
)
def test_a_call_that_is_built_from_its_argument_text_is_the_same(raw: str) -> None:
    block, expected = build_parsed_call("c1", "look", raw), ToolUseBlock("c1", "look", json.loads(raw), raw)
    assert block is not None
    assert block == expected
    assert dataclasses.asdict(block) == dataclasses.asdict(expected)
    assert (block.arguments, block.raw_is_broken) == (expected.arguments, expected.raw_is_broken) == (raw, False)
    assert block.copy_input() == expected.copy_input()


@each_case(
    ("id", "raw"),
    [
        ("c1", '{"a": 1.5}'),
        ("c1", '{"a": NaN}'),
        ("c1", '{"a": [1]}'),
        ("c1", '{"a": "\\ud800"}'),
        ("c1", '{"a": "\ud800"}'),
        ("c1", '{"a": 1'),
        ("c1", "[1]"),
        ("c1", ""),
        ("\ud800", "{}"),
    ],
)
def test_a_call_is_not_built_from_other_argument_texts(id: str, raw: str) -> None:
    assert build_parsed_call(id, "look", raw) is None
