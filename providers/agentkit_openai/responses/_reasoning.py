"""Conversion between reasoning items of OpenAI Responses and thinking blocks, and the ids of reasoning.

OpenAI uses ids to connect reasoning with the item after the reasoning. OpenAI refuses reasoning that is sent with
its id but without the next item ("was provided without its required following item"). OpenAI also refuses an item
that is sent with its id but without the preceding reasoning ("was provided without its required 'reasoning'
item"). Therefore, reasoning and the next item are either both sent with their ids, or both sent without ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentkit.provider_kit import (
    Block,
    ThinkingBlock,
    as_list,
    as_object,
    as_text,
    copy_json,
    get_state_fields,
    make_json_safe,
)

__all__ = ["PART_SEPARATOR", "pair_ids", "reasoning_item", "reasoning_state", "reasoning_text"]

_FOLLOWED_BY = "followed_by"
"""Key in the opaque state of a thinking block.

The value is the id of the item that the model produced after the reasoning in this block.
"""

PART_SEPARATOR = "\n\n"
"""Separator between the parts of a reasoning summary in the text of a thinking block."""


def reasoning_text(item: dict[str, Any]) -> str:
    """Returns the summary of a reasoning item, or the full reasoning text if there is no summary."""
    return _join_texts(item.get("summary")) or _join_texts(item.get("content"))


def _join_texts(parts: object) -> str:
    return PART_SEPARATOR.join(filter(None, (as_text(as_object(part).get("text")) for part in as_list(parts))))


def reasoning_state(item: dict[str, Any], next_id: object = None) -> dict[str, Any]:
    """Returns the opaque state for the thinking block of a reasoning item, as keyword arguments of `OpaqueState`.

    `fields` contains the parts of the item that cannot be restored from the text of the block. `next_id` is the id
    of the item that the model produced after the reasoning.
    """
    proof = as_text(item.get("encrypted_content")) or None
    fields: dict[str, Any] = {_FOLLOWED_BY: as_text(next_id)} if proof and as_text(next_id) else {}
    summary, content = as_list(item.get("summary")), as_list(item.get("content"))
    if summary != _write_summary(reasoning_text(item)):
        fields["summary"] = make_json_safe(summary)
    if content:
        fields["content"] = make_json_safe(content)
    return {"encrypted_content": proof, "item_id": as_text(item.get("id")) or None, "fields": fields or None}


def reasoning_item(block: ThinkingBlock, id: str) -> dict[str, Any]:
    """Writes a thinking block as a reasoning item (openai-python: ResponseReasoningItemParam).

    The item always has the key `summary`, because the API requires the key even if the list is empty. The parts of
    the original item are restored if the text of the block has not changed.

    If `id` is empty, the item is sent without an id. OpenAI then reads only the encrypted content, and does not
    require the item after the reasoning.
    """
    state = block.state
    assert state is not None
    fields: Mapping[str, Any] = get_state_fields(state)
    if fields and reasoning_text({"summary": _write_summary(block.thinking), **fields}) != block.thinking:
        fields = {}
    item: dict[str, Any] = {
        "type": "reasoning",
        "summary": copy_json(fields.get("summary", _write_summary(block.thinking))),
        "encrypted_content": state.encrypted_content,
    }
    if "content" in fields:
        item["content"] = copy_json(fields["content"])
    return {**item, "id": id} if id else item


def pair_ids(blocks: Sequence[Block], ids: Sequence[str]) -> list[str]:
    """Returns one id for each item of a turn. The id is empty if the item is sent without its id.

    Reasoning is sent with its id if the next item has an id and is the item that the model produced after the
    reasoning. If the item that the model produced is unknown, any next item with an id is sufficient. The items
    after such reasoning are also sent with their ids.

    Args:
        blocks: First block of each item.
        ids: Id of each item. Empty if the id is unknown or must not be sent.
    """
    sent = [""] * len(blocks)
    for index in reversed(range(len(blocks) - 1)):
        block, next_block = blocks[index], blocks[index + 1]
        if isinstance(block, ThinkingBlock):
            next_id = sent[index + 1] if isinstance(next_block, ThinkingBlock) else ids[index + 1]
            native_id = get_state_fields(block.state).get(_FOLLOWED_BY)  # None if the id is unknown
            sent[index] = ids[index] if next_id and native_id in (None, next_id) else ""
    is_paired = False
    for index, block in enumerate(blocks):
        if isinstance(block, ThinkingBlock):
            is_paired = bool(sent[index])
        elif is_paired:
            sent[index] = ids[index]
    return sent


def _write_summary(text: str) -> list[dict[str, Any]]:
    return [{"type": "summary_text", "text": text}] if text else []
