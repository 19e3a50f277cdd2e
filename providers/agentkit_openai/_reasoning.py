"""Functions that read and write reasoning in the chat messages of OpenAI-compatible vendors.

A vendor sends reasoning as text in a message key, as content parts, or as a list of opaque details. A
`ThinkingBlock` contains the readable text. The opaque state of the block stores values that the vendor requires in
later requests, such as Mistral's `signature` or OpenRouter's `reasoning_details`.
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
"""Key of OpenRouter's reasoning details in messages (openrouter.ai/docs: reasoning-tokens).

`OpaqueState.fields` stores the details under the same key.
"""

_JOINED = ("text", "summary", "data")
"""Keys of a reasoning detail that contain text. `ReasoningDetails` joins text that arrives in fragments."""


def write_reasoning(
    item: dict[str, Any], thoughts: Sequence[ThinkingBlock], vendor: OpenAICompatible, *, always: bool
) -> None:
    """Adds reasoning to an assistant message, in place.

    If `always` is True, the message gets the vendor's `reasoning_field` even if there is no reasoning.
    """
    details = [as_list(get_state_fields(block.state).get(DETAILS)) for block in thoughts]
    if vendor.reasoning_details and any(details):
        item[DETAILS] = [detail for block_details in details for detail in copy_json(block_details)]
    elif vendor.reasoning_parts:
        content: Any = item.get("content") or []
        texts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        item["content"] = [*map(_part, thoughts), *texts]
    elif vendor.reasoning_field and (always or any(block.thinking for block in thoughts)):
        item[vendor.reasoning_field] = "\n".join(block.thinking for block in thoughts)


def _part(block: ThinkingBlock) -> dict[str, Any]:
    """Writes a thinking block as a content part of the type `thinking` (mistralai SDK 3.7: ThinkChunk)."""
    part: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": block.thinking}]}
    if block.state and block.state.signature:
        part["signature"] = block.state.signature
    return {**part, "closed": True}


def part_text(part: dict[str, Any]) -> str:
    """Returns the text of a content part of the type `thinking`.

    The part can contain texts and references. References have no text and are skipped.
    """
    inner = part.get("thinking")
    if isinstance(inner, str):
        return as_text(inner)
    return "".join(as_text(as_object(item).get("text")) for item in as_list(inner))


def read_thinking_part(part: dict[str, Any], issuer: str) -> ThinkingBlock:
    """Reads a content part of the type `thinking` as a thinking block with opaque state from `issuer`."""
    return ThinkingBlock(part_text(part), OpaqueState(issuer, signature=as_text(part.get("signature")) or None))


def details_text(details: Iterable[Any]) -> str:
    """Returns the readable texts of reasoning details, joined by line breaks."""
    texts = (as_text(detail.get("text")) or as_text(detail.get("summary")) for detail in map(as_object, details))
    return "\n".join(filter(None, texts))


class ReasoningDetails:
    """Reasoning details of one reply, joined from the fragments of a stream.

    Fragments with the same `type` and `index` become one detail. A fragment without an index becomes a separate
    detail. A fragment can have a signature and no text. Requests to OpenRouter must contain the joined details,
    because separate fragments led to the error "Invalid `signature` in `thinking` block" (agno-agi/agno#8794,
    2026-07-07).

    Attributes:
        items: Details that have arrived.
    """

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self._by_index: dict[tuple[str, int], dict[str, Any]] = {}

    def add(self, fragments: object) -> None:
        """Adds the details of a complete reply, or the fragments of one stream event."""
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
