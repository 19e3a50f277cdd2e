"""Reasoning items of OpenAI Responses: their text, and what of their form is kept to go back."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import ThinkingBlock, as_list, as_object, as_text, copy_json, make_json_safe
from agentkit_openai.responses._item_ids import FOLLOWED_BY

__all__ = ["BETWEEN", "reasoning_item", "reasoning_state", "reasoning_text"]

BETWEEN = "\n\n"
"""What parts the parts of a summary in the block's text."""


def reasoning_text(item: dict[str, Any]) -> str:
    """The summary; where there is none, the reasoning itself, which open models show."""
    return BETWEEN.join(_texts(item.get("summary"))) or BETWEEN.join(_texts(item.get("content")))


def _texts(parts: object) -> list[str]:
    return [text for part in as_list(parts) if (text := as_text(as_object(part).get("text")))]


def reasoning_state(item: dict[str, Any], follower: object = None) -> dict[str, Any]:
    """The opaque state of an item, as fields of OpaqueState.

    `fields` hold the parts of an item that is more than one summary text, so that it goes back part for part, and
    the id of its follower: of the item that the model produced after it.
    """
    proof = as_text(item.get("encrypted_content")) or None
    fields: dict[str, Any] = {FOLLOWED_BY: as_text(follower)} if proof and as_text(follower) else {}
    summary, content = as_list(item.get("summary")), as_list(item.get("content"))
    if summary != _summary(reasoning_text(item)):
        fields["summary"] = make_json_safe(summary)
    if content:
        fields["content"] = make_json_safe(content)
    return {
        "encrypted_content": proof,
        "item_id": as_text(item.get("id")) or None,
        "fields": fields or None,
    }


def reasoning_item(block: ThinkingBlock, id: str) -> dict[str, Any]:
    """A reasoning item (SDK: ResponseReasoningItemParam); `summary` is required and may be empty.

    The parts that it came with, as long as they say what the block says. `id` is empty where it is sent without:
    the service then reads the encrypted content alone and asks for no particular item after it.
    """
    state = block.state
    assert state is not None
    kept = state.fields or {}
    if kept and reasoning_text({"summary": _summary(block.thinking), **kept}) != block.thinking:
        kept = {}
    item: dict[str, Any] = {
        "type": "reasoning",
        "summary": copy_json(kept.get("summary", _summary(block.thinking))),
        "encrypted_content": state.encrypted_content,
    }
    if "content" in kept:
        item["content"] = copy_json(kept["content"])
    return {**item, "id": id} if id else item


def _summary(text: str) -> list[dict[str, Any]]:
    return [{"type": "summary_text", "text": text}] if text else []
