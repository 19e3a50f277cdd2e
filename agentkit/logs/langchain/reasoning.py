"""OpenAI's output items in LangChain's content: reasoning that version 1 parts, and the ids of items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from agentkit.json_values import as_object, as_text
from agentkit.messages.blocks import Block, OpaqueState, TextBlock, ToolUseBlock

__all__ = ["FOLLOWER", "joined", "with_item_id"]

FOLLOWER = "id_of_following_item"
"""Key under which `joined` adds to a reasoning item the id of the item after it."""

_OPENAI = frozenset({"openai", "azure_openai"})
_MADE_UP = "lc_"  # how the ids begin that langchain gives to blocks without one


def joined(items: list[Any], provider: str) -> Iterator[tuple[int, Any, str]]:
    """Yields the items of a content, each with its place and the id that it is sent back with.

    The parts of a reasoning item are one item, at the place of the first. It has the id of the item after it under
    `FOLLOWER`. Only items of OpenAI's that come after reasoning are sent back with their ids.
    """
    entries = list(_joined(items, provider))
    after_reasoning = False
    followers = [*(_output_id(item) for _, item in entries[1:]), ""]
    for (at, item), following in zip(entries, followers, strict=False):
        if as_object(item).get("type") == "reasoning" and "summary" in item:
            after_reasoning = True
            yield at, {**item, FOLLOWER: following}, ""
        else:
            yield at, item, _output_id(item) if after_reasoning else ""


def with_item_id(block: Block, id: str) -> Block:
    """Returns a text or a call with the id of its item, where `joined` gives one; any other block unchanged."""
    if not id or not isinstance(block, TextBlock | ToolUseBlock) or block.state is not None:
        return block
    return replace(block, state=OpaqueState("openai", item_id=id))


_CALLS = frozenset({"tool_call", "invalid_tool_call", "tool_call_chunk"})
"""Blocks whose `id` is the call's; the item's is in `extras` (langchain-core: `_convert_to_v1_from_responses`)."""


def _output_id(item: object) -> str:
    """Returns the id of the output item that a block came as; an empty string if it has none."""
    part = as_object(item)
    is_call = as_text(part.get("type")) in _CALLS
    id = as_object(part.get("extras")).get("item_id") if is_call else part.get("id")
    return "" if as_text(id).startswith(_MADE_UP) else as_text(id)


def _joined(items: list[Any], provider: str) -> Iterator[tuple[int, Any]]:
    """Yields the items of a content with their places; the parts of a reasoning item as one item.

    As langchain-openai puts them together (`_implode_reasoning_blocks`): all have its id, one what is sealed.
    """
    whole: dict[str, Any] = {}
    place = 0
    for at, item in enumerate(items):
        part = as_object(item)
        id = _item_id(part)
        if whole and id != whole["id"]:
            yield place, whole
            whole = {}
        if not id or not (whole or _sealed(part) or provider in _OPENAI):
            yield at, item
            continue
        if not whole:
            whole = {"type": "reasoning", "id": id, "summary": []}
            place = at
        _add(whole, part)
    if whole:
        yield place, whole


def _item_id(part: dict[str, Any]) -> str:
    """The id of the item that a block is a part of; empty for any other block."""
    id = as_text(part.get("id"))
    return id if part.get("type") == "reasoning" and "summary" not in part and not id.startswith(_MADE_UP) else ""


def _add(whole: dict[str, Any], part: dict[str, Any]) -> None:
    if sealed := _sealed(part):
        whole["encrypted_content"] = sealed
    if text := as_text(part.get("reasoning")):
        whole["summary"].append({"type": "summary_text", "text": text})


def _sealed(part: dict[str, Any]) -> str:
    return as_text(part.get("encrypted_content") or as_object(part.get("extras")).get("encrypted_content"))
