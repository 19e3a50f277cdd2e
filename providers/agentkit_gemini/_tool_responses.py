"""Function responses as text, and back: the wire has an object where a result of ours has a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from agentkit.provider_kit import MessageError, OpaqueState, TextBlock, ToolResultBlock, as_object, copy_json

__all__ = ["response_fields", "told_response"]

_OURS = frozenset({"id", "name", "parts"})


def told_response(found: Mapping[str, Any]) -> tuple[TextBlock, bool]:
    """What a function response says, and whether it failed.

    `{"output": text}` and `{"error": text}` are their text (SDK: FunctionResponse.response). Any other object is
    its JSON text, and goes back as it came, with what else the response had (`scheduling`, `will_continue`).
    Raises MessageError where there is none: the service requires it.
    """
    if not isinstance(found.get("response"), dict):
        said = "it is missing" if found.get("response") is None else "it is no object"
        raise MessageError("function_response.response", said, "Give an object.")
    response = as_object(found["response"])
    text, failed = _said(response)
    plain = len(response) == 1 and text in response.values()
    fields = {key: item for key, item in found.items() if key not in _OURS}
    state = None if plain and fields.keys() == {"response"} else OpaqueState("gemini", fields=fields or None)
    return TextBlock(text, state=state if fields else None), failed


def response_fields(block: ToolResultBlock) -> dict[str, Any]:
    """The object that a result came as, and what stood beside it; else one with its text as `output`, or `error`.

    One that says something else by now, or more, is its text; what stood beside it stays.
    """
    said = {"response": {"error" if block.is_error else "output": block.listing}}
    if isinstance(block.output, str):
        return said
    texts = [item for item in block.output if isinstance(item, TextBlock)]
    first = texts[0] if texts else None
    if first is None or first.state is None or first.state.issuer != "gemini" or not first.state.fields:
        return said
    kept: dict[str, Any] = copy_json(first.state.fields)
    same = len(texts) == 1 and _said(as_object(kept.get("response"))) == (first.text, block.is_error)
    return kept if same else {**kept, **said}


def _said(response: Mapping[str, Any]) -> tuple[str, bool]:
    """An object as text, and whether it is an error's."""
    only = next(iter(response)) if len(response) == 1 else None
    told = response[only] if only in ("output", "error") else response
    return (told if isinstance(told, str) else to_json(told).decode()), only == "error"
