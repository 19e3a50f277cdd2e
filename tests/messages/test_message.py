"""`Msg`: construction, validation, dicts of other libraries, and cached results."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, cast

import anyio
import pytest

from agentkit import (
    Budget,
    ImageBlock,
    LocalTokenCounter,
    MessageError,
    Msg,
    MultiAgentHistory,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.messages.message import build_part, build_trusted, cache_result, get_cached, set_cached
from agentkit.provider_kit import Feature
from tests.cases import each_case
from tests.conftest import AnyMsg, EchoFormatter

IMAGE = ImageBlock(URLSource("https://example.com/a.png"))
FULL = Msg(
    "Friday",
    (
        ThinkingBlock("hm"),
        TextBlock("one"),
        TextBlock("two"),
        IMAGE,
        ToolUseBlock("c1", "search", {"q": 1}),
        ToolResultBlock("c1", "search", "found"),
    ),
    "assistant",
)


def test_arguments_are_positional_or_by_keyword() -> None:
    assert Msg("Bob", "hi", "user") == Msg(name="Bob", content="hi", role="user")
    assert Msg("Bob", "hi", "user").pinned is False
    full = Msg("Bob", "hi", "user", "id-1", "2026-01-01", {"k": 1}, True)
    assert (full.id, full.timestamp, full.metadata, full.pinned) == ("id-1", "2026-01-01", {"k": 1}, True)


def test_ids_and_times_default_to_none() -> None:
    msg = Msg("Bob", "hi", "user")
    assert (msg.id, msg.timestamp, msg.metadata) == (None, None, None)


def test_content_is_stored_as_a_tuple() -> None:
    for value in ([TextBlock("a")], (TextBlock("a"),)):
        assert AnyMsg("Bob", value, "user").content == (TextBlock("a"),)
    assert AnyMsg("Bob", [], "user").content == ()


def test_type_checkers_accept_lists() -> None:
    msg = Msg("Bob", [TextBlock("a"), IMAGE], "user", metadata={"to": ["Ann"]})
    result = ToolResultBlock("c", "n", [TextBlock("a")])
    assert (len(msg.content), len(result.output)) == (2, 1)


def test_blocks_may_be_dicts() -> None:
    msg = AnyMsg(
        "Bob",
        [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "n", "input": {}}],
        "user",
    )
    assert msg.content == (TextBlock("a"), ToolUseBlock("c", "n", {}))


def test_properties_select_blocks_by_type() -> None:
    assert FULL.text == "one\ntwo"
    assert FULL.thinking == "hm"
    assert [use.id for use in FULL.tool_uses] == ["c1"]
    assert [item.output for item in FULL.tool_results] == ["found"]
    assert FULL.media == (IMAGE,)
    assert Msg("Bob", "hi", "user").blocks == (TextBlock("hi"),)
    assert Msg("Bob", "hi", "user").text == "hi"
    assert Msg("Bob", "hi", "user").media == ()


@each_case("name", [field.name for field in dataclasses.fields(Msg)])
def test_a_message_is_immutable(name: str) -> None:
    msg = Msg("Bob", "hi", "user")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(msg, name, "other")
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(msg, name)


def test_a_message_has_no_other_attributes() -> None:
    with pytest.raises((AttributeError, TypeError)):
        AnyMsg("Bob", "hi", "user").colour = "red"


def test_replace_returns_a_new_message() -> None:
    msg = Msg("Bob", "hi", "user")
    pinned = dataclasses.replace(msg, pinned=True)
    assert (msg.pinned, pinned.pinned) == (False, True)
    assert dataclasses.replace(msg, content=[TextBlock("x")]).content == (TextBlock("x"),)  # type: ignore[arg-type]


def test_metadata_is_copied() -> None:
    value: dict[str, Any] = {"a": [1, {"b": 2}]}
    msg = AnyMsg("Bob", "hi", "user", metadata=value)
    value["a"][1]["b"] = "changed"
    assert msg.metadata == {"a": [1, {"b": 2}]}


def test_a_change_of_the_passed_list_does_not_affect_the_message() -> None:
    blocks = [TextBlock("a")]
    msg = AnyMsg("Bob", blocks, "user")
    blocks.append(TextBlock("b"))
    assert msg.text == "a"


REFUSED: list[tuple[str, Callable[[], object], str, str]] = [
    ("an unknown role", lambda: AnyMsg("Bob", "hi", "tool"), "Msg.role", "'user', 'assistant' or 'system'"),
    ("a null name", lambda: AnyMsg(None, "hi", "user"), "Msg.name", "string"),
    ("a number as name", lambda: AnyMsg(5, "hi", "user"), "Msg.name", "string"),
    ("null content", lambda: AnyMsg("Bob", None, "user"), "Msg.content", "None"),
    ("a block instead of a list", lambda: AnyMsg("Bob", TextBlock("a"), "user"), "Msg.content", "TextBlock"),
    ("bytes", lambda: AnyMsg("Bob", b"hi", "user"), "Msg.content", "bytes"),
    ("no role", lambda: AnyMsg("Bob", "hi"), "Msg.role", "got nothing"),
    ("an unknown field", lambda: AnyMsg("Bob", "hi", "user", colour=1), "Msg.colour", "nexpected"),
    (
        "a lone surrogate",
        lambda: Msg("Bob", "ab\ud800", "user"),
        "Msg.content",
        "lone surrogate at character 2",
    ),
    ("a lone surrogate in the name", lambda: Msg("\udc00", "hi", "user"), "Msg.name", "lone surrogate"),
    ("a string as block", lambda: AnyMsg("Bob", ["hi"], "user"), "Msg.content[0]", "str 'hi'"),
    ("an unknown block", lambda: AnyMsg("Bob", [{"type": "poem"}], "user"), "Msg.content[0]", "poem"),
    ("a block without type", lambda: AnyMsg("Bob", [{"text": "x"}], "user"), "Msg.content[0]", "type"),
    ("a list as type", lambda: AnyMsg("Bob", [{"type": []}], "user"), "Msg.content[0]", "type"),
    (
        "text metadata",
        lambda: AnyMsg("Bob", [{"type": "text", "text": "x", "foo": 1, "metadata": "q"}], "user"),
        "Msg.content[0].metadata",
        "q",
    ),
    (
        "a bad block among good ones",
        lambda: AnyMsg("Bob", [TextBlock("a"), {"type": "text", "text": 5}], "user"),
        "Msg.content[1].text",
        "int 5",
    ),
    (
        "a bad item in a result",
        lambda: AnyMsg(
            "s", [{"type": "tool_result", "id": "c", "output": [{"type": "text", "text": 5}]}], "system"
        ),
        "Msg.content[0].output[0].text",
        "int 5",
    ),
    (
        "a bad source",
        lambda: AnyMsg(
            "Bob", [{"type": "image", "source": {"type": "base64", "media_type": "png", "data": ""}}], "user"
        ),
        "Msg.content[0].source",
        "expected a media type",
    ),
    (
        "NaN in metadata",
        lambda: AnyMsg("Bob", "hi", "user", metadata={"k": [float("nan")]}),
        "Msg.metadata.k[0]",
        "finite",
    ),
    (
        "a lone surrogate in metadata",
        lambda: AnyMsg("Bob", "hi", "user", metadata={"k": ["a\ud800"]}),
        "Msg.metadata",
        "surrogate",
    ),
    (
        "a lone surrogate in a key",
        lambda: AnyMsg("Bob", "hi", "user", metadata={"\ud800": 1}),
        "Msg.metadata",
        "surrogate",
    ),
    ("a cycle in metadata", lambda: AnyMsg("Bob", "hi", "user", metadata=_cycle()), "Msg.metadata.k", "ecursi"),
    ("a number key", lambda: AnyMsg("Bob", "hi", "user", metadata={5: 1}), "Msg.metadata", "string"),
    ("a string as pinned", lambda: AnyMsg("Bob", "hi", "user", pinned="no way"), "Msg.pinned", "bool"),
]


def _cycle() -> dict[str, Any]:
    round_and_round: dict[str, Any] = {}
    round_and_round["k"] = round_and_round
    return round_and_round


@each_case(("make", "place", "reason"), {row[0]: row[1:] for row in REFUSED})
def test_an_error_names_the_place_and_the_reason(make: Callable[[], object], place: str, reason: str) -> None:
    with pytest.raises(MessageError) as caught:
        make()
    assert caught.value.place.startswith(place)
    assert reason in caught.value.reason
    assert caught.value.advice.endswith(".")


ADOPTED: list[tuple[str, Mapping[str, Any], Any]] = [
    (
        "a text with an id",
        {"type": "text", "text": "a", "id": "b1"},
        TextBlock("a", metadata={"id": "b1"}),
    ),
    (
        "extra keys beside metadata",
        {"type": "text", "text": "a", "x": 1, "metadata": {"y": 2}},
        TextBlock("a", metadata={"x": 1, "y": 2}),
    ),
    (
        "metadata wins over an extra key",
        {"type": "text", "text": "a", "x": 1, "metadata": {"x": 2}},
        TextBlock("a", metadata={"x": 2}),
    ),
    (
        "input as text",
        {"type": "tool_use", "id": "c", "name": "n", "input": '{"q": 1}'},
        ToolUseBlock("c", "n", {"q": 1}, '{"q": 1}'),
    ),
    (
        "truncated input",
        {"type": "tool_use", "id": "c", "name": "n", "input": '{"q": '},
        ToolUseBlock("c", "n", {}, '{"q": '),
    ),
    (
        "the JSON text of a list as input",
        {"type": "tool_use", "id": "c", "name": "n", "input": "[1]"},
        ToolUseBlock("c", "n", {}, "[1]"),
    ),
    ("null input", {"type": "tool_use", "id": "c", "name": "n", "input": None}, ToolUseBlock("c", "n", {})),
    ("no input", {"type": "tool_use", "id": "c", "name": "n"}, ToolUseBlock("c", "n", {})),
    (
        "null output",
        {"type": "tool_result", "id": "c", "name": "n", "output": None},
        ToolResultBlock("c", "n", ""),
    ),
    (
        "null name",
        {"type": "tool_result", "id": "c", "name": None, "output": "x"},
        ToolResultBlock("c", "", "x"),
    ),
    (
        "items with extra keys",
        {"type": "tool_result", "id": "c", "output": [{"type": "text", "text": "a", "annotations": []}]},
        ToolResultBlock("c", "", (TextBlock("a", metadata={"annotations": []}),)),
    ),
    ("null metadata", {"type": "text", "text": "a", "metadata": None}, TextBlock("a")),
]


@each_case(("value", "expected"), {row[0]: row[1:] for row in ADOPTED})
def test_blocks_of_agentscope_are_converted(value: Mapping[str, Any], expected: Any) -> None:
    before = copy.deepcopy(value)
    assert AnyMsg("a", [value], "user").content == (expected,)
    assert value == before


_KINDS = (
    Feature.BLANK | Feature.EMPTY | Feature.THINKING | Feature.TOOL | Feature.MEDIA | Feature.RESULT_PARTS
    | Feature.RESULT_MEDIA | Feature.RESULT_ERROR | Feature.RESULT_BLANK | Feature.RESULT_NAMELESS | Feature.ODD_ID
    | Feature.ODD_NAME | Feature.ODD_ARGUMENTS | Feature.TEXT
)  # fmt: skip


@each_case(
    ("content", "features"),
    [
        ("hi", Feature.TEXT),
        ("", Feature.BLANK),
        (" \n", Feature.BLANK),
        ([], Feature.EMPTY),
        ([TextBlock("")], Feature.BLANK),
        ([IMAGE], Feature.IMAGE),
        ([ThinkingBlock("x")], Feature.THINKING),
        ([ToolUseBlock("c", "n", {})], Feature.CALL),
        ([ToolUseBlock("c d", "n", {})], Feature.CALL | Feature.ODD_ID),
        ([ToolUseBlock("c", "n m", {})], Feature.CALL | Feature.ODD_NAME),
        ([ToolUseBlock("c", "n", {}, "{")], Feature.CALL | Feature.ODD_ARGUMENTS),
        ([ToolResultBlock("c", "n", "x")], Feature.RESULT),
        ([ToolResultBlock("c", "", "x")], Feature.RESULT | Feature.RESULT_NAMELESS),
        ([ToolResultBlock("c", "n", "")], Feature.RESULT | Feature.RESULT_BLANK),
        ([ToolResultBlock("c", "n", (IMAGE,))], Feature.RESULT | Feature.RESULT_PARTS | Feature.RESULT_MEDIA),
        ([ToolResultBlock("c", "n", "x", True)], Feature.RESULT | Feature.RESULT_ERROR),
    ],
)
def test_a_message_has_the_features_of_its_content(content: Any, features: int) -> None:
    item = Msg("a", content, "assistant" if features & Feature.CALL else "user").features
    assert item & _KINDS == features


class _Locked(LocalTokenCounter):
    """Counter with a lock, which can be neither pickled nor copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def measure(self, request: Mapping[str, Any]) -> int:
        return 1

    def weigh(self, msg: Msg) -> int:
        return 1


def test_cached_results_are_not_part_of_a_message() -> None:
    used, fresh = Msg("Bob", "a < b\nc", "user"), Msg("Bob", "a < b\nc", "user")
    formatter = EchoFormatter(history=MultiAgentHistory(), budget=Budget(10, _Locked()))
    anyio.run(formatter.format, [used])
    assert used == fresh
    assert repr(used) == repr(fresh)
    assert hash(used) == hash(fresh)
    assert used.to_dict() == fresh.to_dict()


def _through_pickle(msg: Msg) -> Msg:
    return cast("Msg", pickle.loads(pickle.dumps(msg)))


AGAIN: list[tuple[str, Callable[[Msg], Msg]]] = [
    ("pickle", _through_pickle),
    ("copy", copy.copy),
    ("deepcopy", copy.deepcopy),
]


@pytest.mark.parametrize("again", [row[1] for row in AGAIN], ids=[row[0] for row in AGAIN])
def test_a_formatted_message_can_be_pickled_and_copied(again: Callable[[Msg], Msg]) -> None:
    msg = AnyMsg("Bob", [TextBlock("hi"), IMAGE], "user", metadata={"k": 1})
    anyio.run(EchoFormatter(budget=Budget(10, _Locked())).format, [msg])
    assert again(msg) == msg
    assert again(msg).features == msg.features


# -- construction with and without pydantic -------------------------------------------------------------------


class _Subclass(Msg):
    """Subclass, which pydantic always validates."""


ORDINARY: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("text", ("Bob", "hi", "user"), {}),
    ("text that is not ASCII", ("Zoë", "你好", "assistant"), {}),
    ("blank text", ("Bob", " \n", "system"), {}),
    ("keywords", (), {"name": "Bob", "content": "hi", "role": "user", "pinned": True}),
    ("a list of blocks", ("Bob", [TextBlock("a"), IMAGE], "user"), {}),
    ("a tuple of tool blocks", ("Bob", (ToolUseBlock("c", "n", {}), ToolResultBlock("c")), "assistant"), {}),
    ("no blocks", ("Bob", [], "user"), {}),
    ("id and time", ("Bob", "hi", "user", "id-1", "2026-01-01"), {}),
    ("flat metadata", ("Bob", "hi", "user"), {"metadata": {"a": 1, "ü": "é", "b": None, "c": True}}),
    ("empty metadata", ("Bob", "hi", "user"), {"metadata": {}}),
    ("nested metadata", ("Bob", "hi", "user"), {"metadata": {"a": [1.5, {"b": "c"}]}}),
]


@each_case(("args", "kwargs"), {row[0]: row[1:] for row in ORDINARY})
def test_a_message_is_the_same_with_and_without_pydantic(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    fast, validated = AnyMsg(*args, **kwargs), cast("Any", _Subclass)(*args, **kwargs)
    assert dataclasses.asdict(fast) == dataclasses.asdict(validated)
    assert repr(fast) == repr(validated).replace("_Subclass(", "Msg(", 1)
    assert (fast.features, fast.tool_ids) == (validated.features, validated.tool_ids)
    assert fast.metadata is None or fast.metadata is not kwargs["metadata"]


def test_as_dict_works_for_messages_of_every_constructor() -> None:
    trusted = build_trusted("Bob", (TextBlock("a"), ToolUseBlock("c", "n", {})), "assistant")
    part = build_part(Msg("Bob", "hi", "user", "id-1", None, {"k": 1}, True), (IMAGE,), "user", "mark")
    for msg in (Msg("Bob", "hi", "user"), FULL, trusted, part):
        set_cached(msg, "key", threading.Lock())
        fields = dataclasses.asdict(msg)
        assert list(fields) == ["name", "content", "role", "id", "timestamp", "metadata", "pinned"]
        assert dataclasses.replace(msg) == msg
    assert part == Msg("Bob", (IMAGE,), "user", "id-1", None, {"k": 1, "mark": True}, True)
    assert dataclasses.asdict(trusted)["content"][1] == {
        "metadata": None,
        "id": "c",
        "name": "n",
        "input": {},
        "raw_input": None,
        "state": None,
        "type": "tool_use",
    }


def test_a_message_caches_the_last_sixteen_results() -> None:
    msg = Msg("Bob", "hi", "user")
    for number in range(20):
        assert set_cached(msg, number, number * 2) == number * 2
    assert [get_cached(msg, number) for number in (3, 4, 19)] == [None, 8, 38]
    assert cache_result(msg, 19, lambda _: 0) == 38


def test_signatures_show_the_types_that_callers_may_pass() -> None:
    parameters = signature(Msg).parameters
    assert list(parameters) == ["name", "content", "role", "id", "timestamp", "metadata", "pinned"]
    assert parameters["content"].annotation == "str | Sequence[Block | Mapping[str, Any]]"
    assert str(signature(TextBlock)) == (
        "(text: 'str', type: \"Literal['text']\" = 'text', state: 'OpaqueState | None' = None, *, "
        "metadata: 'dict[str, object] | None' = None)"
    )
    assert signature(ToolResultBlock).parameters["name"].annotation == "str"
    assert signature(ToolUseBlock).parameters["input"].annotation == "dict[str, object]"
