"""Conversion between tool results and Gemini's function responses.

A function response contains the result as a JSON object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from agentkit.provider_kit import (
    MessageError,
    OpaqueState,
    TextBlock,
    ToolResultBlock,
    as_object,
    copy_json,
    describe_value,
)

__all__ = ["build_response_fields", "parse_tool_response"]

_RESULT_KEYS = frozenset({"id", "name", "parts"})
"""Keys of a function response that become fields of a ToolResultBlock."""


def parse_tool_response(function_response: Mapping[str, Any]) -> tuple[TextBlock, bool]:
    """Returns the text of a function response as a TextBlock, and True if the function response is an error.

    The text of `{"output": text}` and `{"error": text}` is `text` (google-genai: FunctionResponse.response). Any
    other object becomes JSON text, and the opaque state of the text block stores the object. The opaque state also
    stores other fields of the function response (`scheduling`, `will_continue`).

    Raises:
        MessageError: The required field `response` is missing or is not an object.
    """
    response = function_response.get("response")
    if not isinstance(response, dict):
        reason = f"expected an object, got {describe_value(response)}"
        raise MessageError("function_response.response", reason, "Pass an object.")
    response = as_object(function_response["response"])
    text, is_error = _parse_text(response)
    is_plain = len(response) == 1 and text in response.values()
    fields = {key: item for key, item in function_response.items() if key not in _RESULT_KEYS}
    state = None if is_plain and fields.keys() == {"response"} else OpaqueState("gemini", fields=fields or None)
    return TextBlock(text, state=state if fields else None), is_error


def build_response_fields(block: ToolResultBlock) -> dict[str, Any]:
    """Returns the fields of the function response for a tool result, except `id`, `name` and `parts`.

    The field `response` is `{"output": text}` or `{"error": text}`. If the tool result was loaded from a function
    response, the other fields of this function response are included, such as `scheduling`. If the tool result is
    also unchanged, `response` is the original object.
    """
    text_fields = {"response": {"error" if block.is_error else "output": block.listing}}
    if isinstance(block.output, str):
        return text_fields
    texts = [item for item in block.output if isinstance(item, TextBlock)]
    first = texts[0] if texts else None
    if first is None or first.state is None or first.state.issuer != "gemini" or not first.state.fields:
        return text_fields
    original: dict[str, Any] = copy_json(first.state.fields)
    response = as_object(original.get("response"))
    is_unchanged = len(texts) == 1 and _parse_text(response) == (first.text, block.is_error)
    return original if is_unchanged else {**original, **text_fields}


def _parse_text(response: Mapping[str, Any]) -> tuple[str, bool]:
    """Returns the text of the object `response`, and True if the object reports an error."""
    key = next(iter(response)) if len(response) == 1 else None
    value = response[key] if key in ("output", "error") else response
    return (value if isinstance(value, str) else to_json(value).decode()), key == "error"
