"""`Msg`: built by hand or from another library's dicts; what is wrong is refused by name and place."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable, Mapping
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
from agentkit.provider_kit import Feature
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


def test_a_message_is_made_by_position_or_by_keyword() -> None:
    assert Msg("Bob", "hi", "user") == Msg(name="Bob", content="hi", role="user")
    assert Msg("Bob", "hi", "user").pinned is False
    full = Msg("Bob", "hi", "user", "id-1", "2026-01-01", {"k": 1}, True)
    assert (full.id, full.timestamp, full.metadata, full.pinned) == ("id-1", "2026-01-01", {"k": 1}, True)


def test_nothing_is_made_up() -> None:
    msg = Msg("Bob", "hi", "user")
    assert (msg.id, msg.timestamp, msg.metadata) == (None, None, None)


def test_content_is_kept_as_a_tuple() -> None:
    for given in ([TextBlock("a")], (TextBlock("a"),)):
        assert AnyMsg("Bob", given, "user").content == (TextBlock("a"),)
    assert AnyMsg("Bob", [], "user").content == ()


def test_a_list_type_checks() -> None:
    msg = Msg("Bob", [TextBlock("a"), IMAGE], "user", metadata={"to": ["Ann"]})
    result = ToolResultBlock("c", "n", [TextBlock("a")])
    assert (len(msg.content), len(result.output)) == (2, 1)


def test_blocks_of_another_library_are_adopted() -> None:
    msg = AnyMsg(
        "Bob",
        [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "n", "input": {}}],
        "user",
    )
    assert msg.content == (TextBlock("a"), ToolUseBlock("c", "n", {}))


def test_the_views_of_a_message() -> None:
    assert FULL.text == "one\ntwo"
    assert FULL.thinking == "hm"
    assert [use.id for use in FULL.tool_uses] == ["c1"]
    assert [found.output for found in FULL.tool_results] == ["found"]
    assert FULL.media == (IMAGE,)
    assert Msg("Bob", "hi", "user").blocks == (TextBlock("hi"),)
    assert Msg("Bob", "hi", "user").text == "hi"
    assert Msg("Bob", "hi", "user").media == ()


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Msg)])
def test_a_message_never_changes(name: str) -> None:
    msg = Msg("Bob", "hi", "user")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(msg, name, "other")
    with pytest.raises(dataclasses.FrozenInstanceError):
        delattr(msg, name)


def test_a_message_takes_no_further_attribute() -> None:
    with pytest.raises((AttributeError, TypeError)):
        AnyMsg("Bob", "hi", "user").colour = "red"


def test_a_changed_copy_is_a_new_message() -> None:
    msg = Msg("Bob", "hi", "user")
    pinned = dataclasses.replace(msg, pinned=True)
    assert (msg.pinned, pinned.pinned) == (False, True)
    assert dataclasses.replace(msg, content=[TextBlock("x")]).content == (TextBlock("x"),)  # type: ignore[arg-type]


def test_metadata_is_copied_at_the_door() -> None:
    given: dict[str, Any] = {"a": [1, {"b": 2}]}
    msg = AnyMsg("Bob", "hi", "user", metadata=given)
    given["a"][1]["b"] = "changed"
    assert msg.metadata == {"a": [1, {"b": 2}]}


def test_the_list_that_was_given_may_change_afterwards() -> None:
    blocks = [TextBlock("a")]
    msg = AnyMsg("Bob", blocks, "user")
    blocks.append(TextBlock("b"))
    assert msg.text == "a"


REFUSED: list[tuple[str, Callable[[], object], str, str]] = [
    ("an unknown role", lambda: AnyMsg("Bob", "hi", "tool"), "Msg.role", "'user', 'assistant' or 'system'"),
    ("a null name", lambda: AnyMsg(None, "hi", "user"), "Msg.name", "string"),
    ("a number as name", lambda: AnyMsg(5, "hi", "user"), "Msg.name", "string"),
    ("null content", lambda: AnyMsg("Bob", None, "user"), "Msg.content", "None"),
    ("one bare block", lambda: AnyMsg("Bob", TextBlock("a"), "user"), "Msg.content", "TextBlock"),
    ("bytes", lambda: AnyMsg("Bob", b"hi", "user"), "Msg.content", "bytes"),
    ("no role", lambda: AnyMsg("Bob", "hi"), "Msg.role", "got nothing"),
    ("an unknown field", lambda: AnyMsg("Bob", "hi", "user", colour=1), "Msg.colour", "nexpected"),
    (
        "a lone surrogate",
        lambda: Msg("Bob", "ab\ud800", "user"),
        "Msg.content",
        "lone surrogate at character 2",
    ),
    ("a surrogate name", lambda: Msg("\udc00", "hi", "user"), "Msg.name", "lone surrogate"),
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
        "a surrogate in metadata",
        lambda: AnyMsg("Bob", "hi", "user", metadata={"k": ["a\ud800"]}),
        "Msg.metadata",
        "surrogate",
    ),
    (
        "a surrogate key",
        lambda: AnyMsg("Bob", "hi", "user", metadata={"\ud800": 1}),
        "Msg.metadata",
        "surrogate",
    ),
    ("a cycle in metadata", lambda: AnyMsg("Bob", "hi", "user", metadata=_cycle()), "Msg.metadata.k", "ecursi"),
    ("a number key", lambda: AnyMsg("Bob", "hi", "user", metadata={5: 1}), "Msg.metadata", "string"),
    ("a word as pin", lambda: AnyMsg("Bob", "hi", "user", pinned="no way"), "Msg.pinned", "bool"),
]


def _cycle() -> dict[str, Any]:
    round_and_round: dict[str, Any] = {}
    round_and_round["k"] = round_and_round
    return round_and_round


@pytest.mark.parametrize(
    ("make", "place", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_bad_message_is_refused_by_place_and_reason(make: Callable[[], object], place: str, reason: str) -> None:
    with pytest.raises(MessageError) as caught:
        make()
    assert caught.value.place.startswith(place)
    assert reason in caught.value.reason
    assert caught.value.advice.endswith(".")


ADOPTED: list[tuple[str, Mapping[str, Any], Any]] = [
    (
        "a text with an id of its own",
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
        "input cut off",
        {"type": "tool_use", "id": "c", "name": "n", "input": '{"q": '},
        ToolUseBlock("c", "n", {}, '{"q": '),
    ),
    (
        "input as a list's text",
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


@pytest.mark.parametrize(("given", "expected"), [row[1:] for row in ADOPTED], ids=[row[0] for row in ADOPTED])
def test_agentscopes_blocks_are_adopted(given: Mapping[str, Any], expected: Any) -> None:
    before = copy.deepcopy(given)
    assert AnyMsg("a", [given], "user").content == (expected,)
    assert given == before


_KINDS = (
    Feature.BLANK | Feature.EMPTY | Feature.THINKING | Feature.TOOL | Feature.MEDIA | Feature.RESULT_PARTS
    | Feature.RESULT_MEDIA | Feature.RESULT_ERROR | Feature.RESULT_BLANK | Feature.RESULT_NAMELESS | Feature.ODD_ID
    | Feature.ODD_NAME | Feature.ODD_ARGUMENTS | Feature.TEXT
)  # fmt: skip


@pytest.mark.parametrize(
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
def test_a_message_knows_what_it_holds(content: Any, features: int) -> None:
    found = Msg("a", content, "assistant" if features & Feature.CALL else "user").features
    assert found & _KINDS == features


class _Locked(LocalTokenCounter):
    """A counter that holds something which can be neither pickled nor copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def measure(self, request: Mapping[str, Any]) -> int:
        return 1

    def weigh(self, msg: Msg) -> int:
        return 1


def test_what_was_worked_out_of_a_message_is_never_part_of_it() -> None:
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
def test_a_message_that_was_formatted_can_be_pickled_and_copied(again: Callable[[Msg], Msg]) -> None:
    msg = AnyMsg("Bob", [TextBlock("hi"), IMAGE], "user", metadata={"k": 1})
    anyio.run(EchoFormatter(budget=Budget(10, _Locked())).format, [msg])
    assert again(msg) == msg
    assert again(msg).features == msg.features
