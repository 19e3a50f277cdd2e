"""Messages round-trip through JSON, and every stored history loads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VersionError,
    VideoBlock,
    dump_messages,
    load_messages,
)
from tests.cases import each_case
from tests.conftest import AnyMsg, EchoFormatter, turn_lines

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"

EVERYTHING = [
    Msg("system", "You are Friday.", "system", pinned=True),
    Msg("Bob", (), "user"),
    Msg("Bob", "", "user", "id-1", "2026-01-01T00:00:00Z", {"a": [1, 2.5, None, True, {"b": "ü"}]}),
    Msg(
        "Friday",
        (
            ThinkingBlock("hm", OpaqueState("anthropic", signature="sig", model="m")),
            ThinkingBlock("", OpaqueState("openai", encrypted_content="x", item_id="rs_1")),
            TextBlock("text", state=OpaqueState("gemini", thought_signature="c2ln")),
            ToolUseBlock("c1", "search", {"q": [1, "😀"]}, '{"q": [1, "😀"]}', metadata={"k": 1}),
            ToolUseBlock("c2", "search", {}, '{"cut'),
        ),
        "assistant",
    ),
    Msg(
        "system",
        (
            ToolResultBlock("c1", "search", "found"),
            ToolResultBlock(
                "c2",
                "search",
                (
                    TextBlock("a"),
                    ImageBlock(URLSource("https://a/b.png")),
                    InvalidBlock({"x": 1}, "why", "there"),
                ),
                True,
            ),
        ),
        "system",
    ),
    Msg(
        "Bob",
        (
            ImageBlock(Base64Source("image/png", "aGk=")),
            AudioBlock(URLSource("file:///a.wav", "audio/wav")),
            VideoBlock(URLSource("https://a/b")),
            DocumentBlock(Base64Source("text/plain", "aGk="), title="note.txt"),
            InvalidBlock([1], "why", "messages[0].content[0]"),
        ),
        "user",
    ),
]


def test_dumped_messages_load_equal() -> None:
    assert load_messages(dump_messages(EVERYTHING)) == EVERYTHING


@each_case("stored_format", ["text", "bytes", "object", "bare list", "tuple"])
def test_a_conversation_loads_from_each_stored_format(stored_format: str) -> None:
    data = dump_messages(EVERYTHING)
    text = json.dumps(data, allow_nan=False)
    forms: dict[str, object] = {
        "text": text,
        "bytes": text.encode(),
        "object": json.loads(text),
        "bare list": json.loads(text)["messages"],
        "tuple": tuple(json.loads(text)["messages"]),
    }
    assert load_messages(forms[stored_format]) == EVERYTHING


@each_case("msg", EVERYTHING)
def test_a_single_message_round_trips(msg: Msg) -> None:
    assert Msg.from_dict(msg.to_dict()) == msg
    assert Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) == msg


@each_case("msgs", [None, 3, "text", {"messages": []}, Msg("Bob", "hi", "user")])
def test_only_a_list_of_messages_is_dumped(msgs: Any) -> None:
    with pytest.raises(MessageError, match=r"^msgs: expected a list of Msg, got "):
        dump_messages(msgs)


@each_case("other", [None, 3, "text", {"name": "Bob", "content": "hi", "role": "user"}, []])
def test_dumping_any_other_item_is_an_error(other: Any) -> None:
    with pytest.raises(MessageError, match=r"^msgs\[1\]: expected a Msg, got "):
        dump_messages([Msg("Bob", "hi", "user"), other])


def test_the_stored_format_has_a_version_and_omits_defaults() -> None:
    assert dump_messages([Msg("Bob", (TextBlock("hi"),), "user")]) == {
        "agentkit": 1,
        "messages": [{"name": "Bob", "content": [{"type": "text", "text": "hi"}], "role": "user"}],
    }


def test_the_stored_format_shares_no_container_with_the_message() -> None:
    msg = AnyMsg("Bob", [ToolUseBlock("c", "n", {"a": {"b": [1]}})], "assistant", metadata={"k": [1]})
    stored = dump_messages([msg])["messages"][0]
    stored["metadata"]["k"].append(2)
    stored["content"][0]["input"]["a"]["b"].append(2)
    assert msg.metadata == {"k": [1]}
    assert msg.tool_uses[0].input == {"a": {"b": [1]}}


@each_case("name", sorted(path.name for path in EXAMPLES.glob("*.json")))
def test_the_examples_load_and_round_trip(name: str) -> None:
    msgs = load_messages((EXAMPLES / name).read_bytes())
    assert msgs
    assert load_messages(json.dumps(dump_messages(msgs))) == msgs


@each_case("data", [[], {"agentkit": 1, "messages": []}, {"messages": []}, "[]", {"agentkit": 0, "messages": []}])
def test_an_empty_conversation_loads(data: object) -> None:
    assert load_messages(data) == []


def test_msg_objects_load_unchanged() -> None:
    assert load_messages(EVERYTHING)[0] is EVERYTHING[0]


@each_case(
    ("data", "place", "reason"),
    [
        ("{", "input", "expected JSON"),
        (b"\xff", "input", "expected JSON"),
        ("[" * 100_000, "input", "expected JSON"),
        ("5", "messages", "expected a list, got int"),
        (None, "messages", "got None"),
        ({"agentkit": 1}, "messages", "the key 'messages', got {'agentkit': 1}"),
        ({"agentkit": 1, "messages": "hi"}, "messages", "got str"),
        ({"agentkit": "1", "messages": []}, "agentkit", "'1'"),
        ({"agentkit": True, "messages": []}, "agentkit", "True"),
        ({"agentkit": -1, "messages": []}, "agentkit", "-1"),
        ([5], "messages[0]", "expected a message dict, got int"),
        (
            [{"name": "a", "content": "x", "role": "user"}, {"content": "x", "role": "user"}],
            "messages[1].name",
            "missing",
        ),
        ([{"name": "a", "content": "x"}], "messages[0].role", "missing"),
        ([{"name": "a", "role": "user"}], "messages[0].content", "missing"),
        ([{"name": "a", "content": "x", "role": "tool"}], "messages[0].role", "'tool'"),
        ([{"name": 5, "content": "x", "role": "user"}], "messages[0].name", "int 5"),
        (
            [{"name": "a", "content": "x", "role": "user", "foo": 1, "metadata": [1]}],
            "messages[0].metadata",
            "list",
        ),
        ([{"name": "a", "content": "x", "role": "user", "metadata": [1]}], "messages[0].metadata", "dict"),
    ],
)
def test_any_other_value_is_an_error(data: object, place: str, reason: str) -> None:
    with pytest.raises(MessageError) as caught:
        load_messages(data)
    assert caught.value.place == place
    assert reason in caught.value.reason
    assert caught.value.advice


def test_data_of_a_newer_version_is_an_error() -> None:
    with pytest.raises(VersionError) as caught:
        load_messages({"agentkit": 2, "messages": [], "something": "new"})
    assert (caught.value.version, caught.value.supported) == (2, 1)


def test_a_message_that_is_built_directly_equals_a_message_that_is_checked() -> None:
    state = OpaqueState("anthropic", signature="s")
    call = ToolUseBlock("c1", "search", {"q": [1.5]}, '{"q": [1.5]}')
    msgs = [
        Msg("Bob", "Hi.", "user", "id-1", "2026-01-01T00:00:00Z", {"a": [{"b": None}]}, pinned=True),
        Msg("Friday", [ThinkingBlock("hm", state), TextBlock("text"), call], "assistant"),
        Msg("system", [ToolResultBlock("c1", "search", [TextBlock("a")], is_error=True)], "system"),
    ]
    odd_values = [None, 5, float("nan"), "", "\ud800", [], {"a": 1}, [{"type": "text", "text": "a"}]]
    for index, msg in enumerate(msgs):
        for path in list_paths(msg.to_dict()):
            for value in [*odd_values, KeyError]:
                stored = msg.to_dict()
                *parents, last = path
                holder: Any = stored
                for step in parents:
                    holder = holder[step]
                holder[last] = value
                if value is KeyError:
                    del holder[last]
                direct, checked = describe_loading(stored), describe_loading(MappingProxyType(stored))
                assert direct == checked, (index, path, value)


def list_paths(value: dict[str, Any] | list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields the paths of all values inside a JSON value, and of a key and an item that are missing."""
    keys: list[Any] = [*range(len(value))] if isinstance(value, list) else [*value, "extra"]
    for key in keys:
        yield (key,)
        inner: Any = None if key == "extra" else cast("Any", value)[key]
        if isinstance(inner, dict | list):
            yield from ((key, *path) for path in list_paths(cast("Any", inner)))


def describe_loading(stored: Any) -> Any:
    """Returns the message with its features, or the error. Only a dict can be built directly."""
    try:
        msg = Msg.from_dict(stored)
    except MessageError as error:
        return str(error)
    return repr(msg.to_dict()), msg.features


def test_keys_without_a_field_become_metadata() -> None:
    stored = {"name": "a", "content": "x", "role": "user", "url": "u", "metadata": {"k": 1}, "finished": True}
    assert Msg.from_dict(stored).metadata == {"url": "u", "finished": True, "k": 1}


def test_null_content_is_empty() -> None:
    assert Msg.from_dict({"name": "a", "content": None, "role": "user"}).content == ()


UNREADABLE: list[tuple[str, Any, str]] = [
    ("not a block", 5, ""),
    ("null", None, ""),
    ("a string", "hi", ""),
    ("without type", {"text": "x"}, "type"),
    ("of an unknown type", {"type": "poem", "verse": "x"}, "poem"),
    ("whose type is a list", {"type": []}, ""),
    ("whose type is an object", {"type": {"a": 1}}, ""),
    ("without its text", {"type": "text"}, "text"),
    ("with a number as text", {"type": "text", "text": 5}, "text"),
    ("with NaN", {"type": "tool_use", "id": "c", "name": "n", "input": {"x": float("nan")}}, "finite"),
    ("with a bad source", {"type": "image", "source": {"type": "url", "url": ""}}, "blank"),
    ("without a source", {"type": "image"}, "source"),
    ("with text as metadata", {"type": "text", "text": "x", "metadata": "q"}, "metadata"),
    (
        "with text as metadata beside a foreign key",
        {"type": "text", "text": "x", "foo": 1, "metadata": "q"},
        "metadata",
    ),
]


@each_case(("block", "reason"), {row[0]: row[1:] for row in UNREADABLE})
def test_an_unreadable_block_becomes_an_invalid_block_with_place_and_reason(block: Any, reason: str) -> None:
    good = {"type": "text", "text": "still here"}
    (first, second) = load_messages(
        [
            {"name": "a", "content": "x", "role": "user"},
            {"name": "b", "content": [good, block], "role": "user"},
        ]
    )
    assert first.text == "x"
    assert second.text == "still here"
    loaded_block = second.blocks[1]
    assert isinstance(loaded_block, InvalidBlock)
    assert loaded_block.place == "messages[1].content[1]"
    assert reason in loaded_block.reason
    json.dumps(dump_messages([second]), allow_nan=False).encode()
    assert load_messages(dump_messages([second])) == [second]


def test_an_invalid_block_has_the_stored_data_unchanged() -> None:
    (msg,) = load_messages([{"name": "a", "content": [{"type": "poem", "verse": ["x"]}], "role": "user"}])
    loaded_block = msg.blocks[0]
    assert isinstance(loaded_block, InvalidBlock)
    assert loaded_block.data == {"type": "poem", "verse": ["x"]}


def test_an_invalid_item_of_a_result_does_not_affect_others() -> None:
    items = [{"type": "text", "text": "a"}, {"type": "poem"}, {"type": "text", "text": "b"}]
    block = {"type": "tool_result", "id": "c", "name": "n", "output": items}
    (msg,) = load_messages([{"name": "system", "content": [block], "role": "system"}])
    tool_result = msg.tool_results[0]
    assert tool_result.text == "a\nb"
    bad = tool_result.items[1]
    assert isinstance(bad, InvalidBlock)
    assert bad.place == "messages[0].content[0].output[1]"


def test_a_lone_surrogate_in_a_text_does_not_prevent_loading() -> None:
    text = (
        '[{"name": "a", "content": "cut \\ud83d", "role": "user"}, {"name": "b", "content": "ok", "role": "user"}]'
    )
    first, second = load_messages(text)
    assert second.text == "ok"
    assert first.text == "cut \ufffd"


def test_lone_surrogates_are_replaced_in_every_text_and_their_places_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = {"type": "tool_use", "id": "c", "name": "n", "input": '{"q": "cut \ud83d"}'}
    escaped = {"type": "tool_use", "id": "d", "name": "n", "input": '{"q": "cut \\ud83d"}'}
    result = {"type": "tool_result", "id": "c", "output": [{"type": "text", "text": "\udc00 result"}]}
    stored = [
        {"name": "a\ud83d", "content": [call, escaped], "role": "assistant", "metadata": {"k": ["\ud83d"]}},
        {"name": "s", "content": [result], "role": "system"},
    ]
    first, second = load_messages(stored)
    assert first.name == "a\ufffd"
    assert [use.input for use in first.tool_uses] == [{"q": "cut \ufffd"}] * 2
    assert first.metadata == {"k": ["\ufffd"]}
    assert second.tool_results[0].text == "\ufffd result"
    places = [record.getMessage().partition(": ")[0] for record in caplog.records]
    assert "messages[0].content[0].input" in places
    assert "messages[1].content[0].output[0].text" in places
    assert all("cut" not in record.getMessage() for record in caplog.records)
    assert {record.name for record in caplog.records} == {"agentkit"}


@pytest.mark.parametrize(
    "data",
    [
        {"type": "text", "text": "x"},
        {"type": "tool_use", "id": "c", "name": "n", "input": {}},
        {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
    ],
)
def test_an_invalid_block_loads_in_a_version_that_knows_the_block(data: dict[str, Any]) -> None:
    (now,) = Msg.from_dict({"name": "a", "role": "user", "content": [data]}).blocks
    before = Msg("a", (InvalidBlock(data, "unknown type", "messages[0].content[0]"),), "user")
    assert load_messages(dump_messages([before]))[0].blocks == (now,)


def test_an_invalid_item_of_a_result_loads_in_a_version_that_knows_it() -> None:
    item = InvalidBlock({"type": "text", "text": "x"}, "unknown type", "messages[0].content[0].output[0]")
    result = Msg("s", (ToolResultBlock("c", "n", (item,)),), "system")
    assert load_messages(dump_messages([result]))[0].tool_results[0].items == (TextBlock("x"),)
    thought = InvalidBlock({"type": "thinking", "thinking": "x"}, "no item of a result", "there")
    result = Msg("s", (ToolResultBlock("c", "n", (thought,)),), "system")
    assert load_messages(dump_messages([result])) == [result]


def test_data_nested_too_deeply_does_not_prevent_loading() -> None:
    deep = "[" * 900 + "]" * 900
    block = f'{{"type": "tool_use", "id": "a", "name": "b", "input": {{"a": {deep}}}}}'
    (msg,) = load_messages(f'[{{"name": "a", "role": "assistant", "content": [{block}]}}]')
    assert len(msg.blocks) == 1


def test_a_history_with_unreadable_blocks_can_be_formatted() -> None:
    msgs = load_messages(
        [{"name": "a", "content": [{"type": "text", "text": "hi"}, {"type": "poem"}], "role": "user"}]
    )
    plan = EchoFormatter().lower(msgs)
    assert turn_lines(plan) == [
        "user a: hi | [block left out because it could not be read when the history was loaded]"
    ]
    ((place, reason),) = plan.ledger.losses
    assert place == "msgs[0].content[1]"
    assert reason.startswith("invalid block: Input tag 'poem' found using 'type' does not match")


def test_a_signature_in_agentscopes_key_is_moved_to_the_state_or_kept_as_metadata() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "old"}
    (moved,) = load_messages([{"name": "Friday", "role": "assistant", "content": [block]}])[0].blocks
    assert moved == ThinkingBlock("hm", OpaqueState("anthropic", signature="old"))
    block_with_state = {**block, "state": {"issuer": "openai", "signature": "new"}}
    (kept,) = load_messages([{"name": "Friday", "role": "assistant", "content": [block_with_state]}])[0].blocks
    assert kept == ThinkingBlock("hm", OpaqueState("openai", signature="new"), metadata={"signature": "old"})
