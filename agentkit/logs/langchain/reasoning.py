"""Restores OpenAI's reasoning items, which LangChain splits into several blocks, and the ids of output items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from agentkit.json_values import as_object, as_text
from agentkit.messages.blocks import Block, OpaqueState, TextBlock, ToolUseBlock

__all__ = ["FOLLOWING_ID", "add_item_id", "join_reasoning"]

FOLLOWING_ID: Final = "id_of_following_item"
"""Key of a restored reasoning item under which the id of the next item is stored."""

_OPENAI: Final = frozenset({"openai", "azure_openai"})
_GENERATED_PREFIX: Final = "lc_"  # prefix of ids that LangChain creates for blocks without an id
_CALL_TYPES: Final = frozenset({"tool_call", "invalid_tool_call", "tool_call_chunk"})
"""Block types whose `id` is the id of the tool call.

These blocks have the id of OpenAI's output item in `extras` (langchain-core: `_convert_to_v1_from_responses`).
"""


def join_reasoning(items: Iterable[Any], provider: str) -> Iterator[tuple[int, Any, str]]:
    """Yields each item of a message's content with its index and the item id to send back to OpenAI.

    Version 1 of LangChain's content splits a reasoning item into several blocks with the same id. This function
    joins them into one item at the index of the first block. The joined item has the id of the next item under
    `FOLLOWING_ID`. Only items after a reasoning item have an id to send back, because OpenAI binds the reasoning
    to them. For any other item, the id is an empty string.
    """
    follows_reasoning = False
    entries = list(_join_parts(items, provider))
    following_items = [*(item for _, item in entries[1:]), None]
    for (index, item), following in zip(entries, following_items, strict=False):
        if as_object(item).get("type") == "reasoning" and "summary" in item:
            follows_reasoning = True
            yield index, {**item, FOLLOWING_ID: _item_id(following)}, ""
        else:
            yield index, item, _item_id(item) if follows_reasoning else ""


def add_item_id(block: Block, item_id: str) -> Block:
    """Adds the id of OpenAI's output item to a text block or tool call.

    Returns the block unchanged if `item_id` is empty, if the block already has opaque state, or if the block has
    neither of these types.
    """
    if not item_id or not isinstance(block, TextBlock | ToolUseBlock) or block.state is not None:
        return block
    return replace(block, state=OpaqueState("openai", item_id=item_id))


def _item_id(item: object) -> str:
    block = as_object(item)
    is_call = as_text(block.get("type")) in _CALL_TYPES
    item_id = as_text(as_object(block.get("extras")).get("item_id") if is_call else block.get("id"))
    return "" if item_id.startswith(_GENERATED_PREFIX) else item_id


def _join_parts(items: Iterable[Any], provider: str) -> Iterator[tuple[int, Any]]:
    """Yields the items with their indexes, after joining the parts of each reasoning item.

    All parts have the id of the reasoning item, and one part has its encrypted content. langchain-openai joins the
    parts in the same way (`_implode_reasoning_blocks`).
    """
    for item_id, group in groupby(enumerate(items), lambda entry: _reasoning_id(entry[1])):
        entries = list(group)
        encrypted = [text for _, part in entries if (text := _encrypted_content(as_object(part)))]
        if not item_id or not (encrypted or provider in _OPENAI):
            yield from entries
            continue
        texts = [text for _, part in entries if (text := as_text(part.get("reasoning")))]
        summary = [{"type": "summary_text", "text": text} for text in texts]
        item: dict[str, Any] = {"type": "reasoning", "id": item_id, "summary": summary}
        yield entries[0][0], {**item, "encrypted_content": encrypted[-1]} if encrypted else item


def _reasoning_id(item: object) -> str:
    """Returns the id of the reasoning item to which a block belongs, or an empty string for any other block."""
    part = as_object(item)
    is_part = part.get("type") == "reasoning" and "summary" not in part
    return _item_id(part) if is_part else ""


def _encrypted_content(part: dict[str, Any]) -> str:
    return as_text(part.get("encrypted_content") or as_object(part.get("extras")).get("encrypted_content"))
