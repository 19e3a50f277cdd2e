"""OpenAI's reasoning items, which LangChain's version 1 parts by the texts of their summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentkit.native import mapping_of, text_of

__all__ = ["joined"]

_OPENAI = frozenset({"openai", "azure_openai"})
_MADE_UP = "lc_"  # how the ids begin that langchain gives to blocks without one


def joined(items: list[Any], provider: str) -> Iterator[tuple[int, Any]]:
    """The items of a content with their places; the parts of a reasoning item as the item, where the first is.

    As langchain-openai puts them together (`_implode_reasoning_blocks`): all have its id, one what is sealed.
    """
    whole: dict[str, Any] = {}
    place = 0
    for at, item in enumerate(items):
        part = mapping_of(item)
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
    id = text_of(part.get("id"))
    return id if part.get("type") == "reasoning" and "summary" not in part and not id.startswith(_MADE_UP) else ""


def _add(whole: dict[str, Any], part: dict[str, Any]) -> None:
    if sealed := _sealed(part):
        whole["encrypted_content"] = sealed
    if text := text_of(part.get("reasoning")):
        whole["summary"].append({"type": "summary_text", "text": text})


def _sealed(part: dict[str, Any]) -> str:
    return text_of(part.get("encrypted_content") or mapping_of(part.get("extras")).get("encrypted_content"))
