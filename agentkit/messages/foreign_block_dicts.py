"""Conversion of block dicts from other libraries to block dicts with agentkit's keys."""

from __future__ import annotations

from typing import Any, cast, get_args

from agentkit.json_values import parse_arguments
from agentkit.messages.blocks import Block

__all__ = ["adopt_block", "adopt_extra", "adopt_state"]

_BLOCK_KEYS: dict[str, frozenset[str]] = {
    block_class.__dataclass_fields__["type"].default: frozenset(block_class.__dataclass_fields__)
    for block_class in get_args(get_args(Block)[0])
}
"""Maps each block type to the keys of its block dicts, which are the field names of the block class."""


def adopt_block(value: object) -> object:
    """Returns a copy of a block dict with agentkit's keys. Returns any other value unchanged.

    Unknown keys are moved to `metadata`, which is never sent to a provider. In a tool result, a missing or null
    `output` or `name` becomes an empty string. In a tool call, a missing or null `input` becomes `{}`. An `input`
    that is a string is parsed as JSON, and the string is stored as `raw_input`. If the string is not a JSON
    object, `input` becomes `{}`.
    """
    if not isinstance(value, dict):
        return value
    block = dict(cast("dict[str, Any]", value))
    block_type = block.get("type")
    keys = _BLOCK_KEYS.get(block_type) if isinstance(block_type, str) else None
    if keys is None:
        return block
    adopt_state(block)
    extra = {key: block.pop(key) for key in list(block) if key not in keys}
    adopt_extra(block, extra)
    if block["type"] == "tool_use":
        _adopt_call(block)
    elif block["type"] == "tool_result":
        _adopt_result(block)
    return block


def adopt_state(block: dict[str, Any]) -> None:
    """Moves the signature in a block dict from AgentScope's key to the key `state`.

    The key `signature` of a thinking block contains Anthropic's signature. The key `thought_signature` contains
    Gemini's signature. A block dict that already has a `state` is unchanged.
    """
    block_type = block["type"]
    if block.get("state") is not None:
        return
    if block_type == "thinking" and isinstance(block.get("signature"), str):
        block["state"] = {"issuer": "anthropic", "signature": block.pop("signature")}
    elif block_type in {"text", "thinking", "tool_use"} and isinstance(block.get("thought_signature"), str):
        block["state"] = {"issuer": "gemini", "thought_signature": block.pop("thought_signature")}


def adopt_extra(holder: dict[str, Any], extra: dict[str, Any]) -> None:
    """Adds the keys in `extra` to the metadata of a message dict or block dict.

    Existing keys keep their values. Metadata of an invalid type remains unchanged and later fails validation.
    """
    metadata = holder.get("metadata")
    if extra and (metadata is None or isinstance(metadata, dict)):
        holder["metadata"] = {**extra, **cast("dict[str, Any]", metadata or {})}


def _adopt_call(block: dict[str, Any]) -> None:
    arguments = block.get("input")
    if isinstance(arguments, str):
        block["raw_input"] = arguments
        block["input"] = parse_arguments(arguments) or {}
    elif arguments is None:
        block["input"] = {}


def _adopt_result(block: dict[str, Any]) -> None:
    output = block.get("output")
    if output is None:
        block["output"] = ""
    elif isinstance(output, list):
        block["output"] = [_adopt_item(item) for item in cast("list[object]", output)]
    if block.get("name") is None:
        block["name"] = ""


def _adopt_item(item: object) -> object:
    """Converts an item of a tool result. A nested tool result remains unchanged and later fails validation."""
    block_type: object = cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None
    return cast("object", item) if block_type == "tool_result" else adopt_block(cast("object", item))
