"""Entries of streamed tool calls, assigned to the calls of a reply."""

from __future__ import annotations

import pytest

from agentkit.provider_kit import BlockKey, ReplyBuilder, ToolCallIndex, WireLayout
from tests.cases import each_case


class _Reply:
    """Reply whose tool calls arrive in entries."""

    def __init__(self) -> None:
        self.builder = ReplyBuilder(
            name="Friday",
            provider="demo",
            issuer="demo",
            request=None,
            tool_names={},
            raw_arguments=True,
            layout=WireLayout(),
        )
        self.index = ToolCallIndex(self.builder, 5)

    def add(self, index: object = None, id: str = "", name: str = "", piece: str = "") -> BlockKey:
        """Adds an event with one entry."""
        return self.add_all((index, id, name, piece))[0]

    def add_all(self, *entries: tuple[object, str, str, str]) -> list[BlockKey]:
        """Adds an event with several entries."""
        keys: list[BlockKey] = []
        for index, id, name, piece in entries:
            key = self.index.find(index, id, name, {*keys})
            self.builder.add_tool_call(key, id, name, piece)
            keys.append(key)
        return keys


@each_case("indexes", [(0, 1), (1, 2), (0, 0), (None, None)])
def test_a_new_id_begins_a_call(indexes: tuple[int | None, int | None]) -> None:
    reply = _Reply()
    first = reply.add(indexes[0], "a", "look")
    assert reply.add(indexes[0], piece='{"x": 1}') == first
    second = reply.add(indexes[1], "b", "look")
    assert [*reply.index] == [first, second]
    assert reply.index.last == second


@pytest.mark.parametrize("index", [0, None])
def test_an_id_may_arrive_after_the_name(index: int | None) -> None:
    reply = _Reply()
    assert reply.add(index, name="look") == reply.add(index, id="a")


def test_a_repeated_id_continues_its_call() -> None:
    reply = _Reply()
    first, second = reply.add(0, "a", "look"), reply.add(0, "b", "look")
    assert (reply.add(0, "a"), reply.add(0, "b")) == (first, second)


def test_another_name_begins_a_call_only_after_complete_arguments() -> None:
    reply = _Reply()
    first = reply.add(0, "a", "read", '{"x"')
    assert reply.add(0, "a", "delete", ": 1}") == first
    second = reply.add(0, "a", "delete")
    assert second != first
    assert (reply.index.is_first_with_id(first, "a"), reply.index.is_first_with_id(second, "a")) == (True, False)


def test_another_name_begins_a_call_after_arguments_in_an_object() -> None:
    reply = _Reply()
    first = reply.add(0, name="read")
    reply.builder.replace_arguments(first, {"x": 1})
    assert reply.add(0, name="delete") != first


def test_entries_of_one_event_with_the_same_index_and_a_name_are_separate() -> None:
    assert len({*_Reply().add_all((0, "", "look", "{}"), (0, "", "look", "{}"))}) == 2
    assert len({*_Reply().add_all((0, "", "look", '{"x"'), (0, "", "", ": 1}"))}) == 1


def test_calls_are_in_the_order_of_their_indexes() -> None:
    reply = _Reply()
    second, first = reply.add(7, "b", "look"), reply.add(2, "a", "look")
    assert [*reply.index] == [first, second]


def test_an_index_without_entries_has_no_calls() -> None:
    index = _Reply().index
    assert ([*index], index.last, index.get_latest(0), index.get_latest(None)) == ([], None, None, None)
