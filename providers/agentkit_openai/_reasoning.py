"""Reasoning in chat messages of vendors: a key with text, content parts, or a list of opaque details.

A ThinkingBlock has the readable text. Its state has further values that the vendor requires in later requests: the
`signature` of a content part (Mistral), or `reasoning_details` in its `fields` (OpenRouter).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agentkit.provider_kit import (
    OpaqueState,
    ThinkingBlock,
    as_list,
    as_object,
    as_text,
    copy_json,
    get_state_fields,
    make_json_safe,
)

if TYPE_CHECKING:
    from agentkit_openai.compatible import OpenAICompatible

__all__ = ["DETAILS", "ReasoningDetails", "details_text", "part_text", "read_thinking_part", "write_reasoning"]

DETAILS = "reasoning_details"
"""Key of OpenRouter's details (openrouter.ai/docs: reasoning-tokens), in messages and in `OpaqueState.fields`."""

_JOINED = ("text", "summary", "data")
"""Keys of a detail with text, whose fragments in a stream are joined."""


def write_reasoning(
    item: dict[str, Any], thoughts: Sequence[ThinkingBlock], vendor: OpenAICompatible, *, always: bool
) -> None:
    """Adds reasoning to an assistant message, as the vendor expects it.

    Args:
        item: Native message; changed in place.
        thoughts: Thinking blocks of the turn.
        vendor: Row of the vendor, which says where reasoning is written.
        always: True if the vendor requires the key of the reasoning, even without text.
    """
    details = [detail for block in thoughts for detail in _details(block)] if vendor.reasoning_details else []
    if details:
        item[DETAILS] = details
    elif vendor.reasoning_parts:
        item["content"] = [*map(_part, thoughts), *_as_parts(item.get("content"))]
    elif vendor.reasoning_field and (always or any(block.thinking for block in thoughts)):
        item[vendor.reasoning_field] = "\n".join(block.thinking for block in thoughts)


def _details(block: ThinkingBlock) -> list[Any]:
    details: list[Any] = copy_json(as_list(get_state_fields(block.state).get(DETAILS)))
    return details


def _part(block: ThinkingBlock) -> dict[str, Any]:
    """Returns a content part of the type `thinking` (mistralai SDK 3.7: ThinkChunk)."""
    part: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": block.thinking}]}
    if block.state and block.state.signature:
        part["signature"] = block.state.signature
    return {**part, "closed": True}


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def part_text(part: dict[str, Any]) -> str:
    """Returns the text of a content part of the type `thinking`. Its inner parts are texts or references."""
    inner = part.get("thinking")
    if isinstance(inner, str):
        return as_text(inner)
    return "".join(as_text(as_object(item).get("text")) for item in as_list(inner))


def read_thinking_part(part: dict[str, Any], issuer: str) -> ThinkingBlock:
    """Returns the thinking block for a content part of the type `thinking`."""
    return ThinkingBlock(part_text(part), OpaqueState(issuer, signature=as_text(part.get("signature")) or None))


def details_text(details: Iterable[Any]) -> str:
    """Returns the readable text of reasoning details."""
    texts = (as_text(detail.get("text")) or as_text(detail.get("summary")) for detail in map(as_object, details))
    return "\n".join(filter(None, texts))


class ReasoningDetails:
    """Reasoning details of one reply, joined from the fragments of a stream.

    Fragments of the same `type` and `index` belong together. A fragment may have a signature and no text.
    Fragments without an index are not joined. Sending separate fragments back led to the error "Invalid
    `signature` in `thinking` block" (agno-agi/agno#8794, 2026-07-07).

    Attributes:
        items: Details so far.
    """

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self._by_index: dict[tuple[str, int], dict[str, Any]] = {}

    def add(self, fragments: object) -> None:
        """Adds details of a complete reply, or fragments of a stream."""
        for fragment in map(as_object, as_list(make_json_safe(fragments))):
            index = fragment.get("index")
            key = (as_text(fragment.get("type")), index) if type(index) is int else None
            detail = self._by_index.get(key) if key else None
            if detail is not None:
                _join(detail, fragment)
            elif fragment:
                self.items.append(fragment)
                if key:
                    self._by_index[key] = fragment


def _join(detail: dict[str, Any], fragment: dict[str, Any]) -> None:
    for name, value in fragment.items():
        if name in _JOINED and isinstance(value, str) and isinstance(detail.get(name), str):
            detail[name] += value
        elif value is not None:
            detail[name] = value
