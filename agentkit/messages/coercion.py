"""Blocks as other libraries store them, in our keys."""

from __future__ import annotations

from typing import Any, cast

from agentkit.json_values import parse_arguments

__all__ = ["adopt_block", "adopt_extra", "adopt_state"]

_BLOCK_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"text", "state"}),
    "thinking": frozenset({"thinking", "state"}),
    "tool_use": frozenset({"id", "name", "input", "raw_input", "state"}),
    "tool_result": frozenset({"id", "name", "output", "is_error"}),
    "image": frozenset({"source", "state"}),
    "audio": frozenset({"source", "state"}),
    "video": frozenset({"source", "state"}),
    "document": frozenset({"source", "title", "state"}),
    "opaque": frozenset({"wire", "data"}),
    "invalid": frozenset({"data", "reason", "place"}),
}


def adopt_block(found: object) -> object:
    """A block as another library stores it, in our keys; anything but a dict as it is.

    Keys that we have no field for go into `metadata`, where they never reach a provider (AgentScope D19).
    A null `output` is an empty one, a call's `input` may be the argument text alone.
    """
    if not isinstance(found, dict):
        return found
    block = dict(cast("dict[str, Any]", found))
    kind = block.get("type")
    known = _BLOCK_KEYS.get(kind) if isinstance(kind, str) else None
    if known is None:
        return block
    adopt_state(block)
    extra = {key: block.pop(key) for key in list(block) if key not in known and key not in _COMMON_KEYS}
    adopt_extra(block, extra)
    if block["type"] == "tool_use":
        _adopt_call(block)
    elif block["type"] == "tool_result":
        _adopt_result(block)
    return block


def adopt_state(block: dict[str, Any]) -> None:
    """The proofs that AgentScope keeps beside the text: a thinking block's `signature` is Anthropic's, a
    `thought_signature` Gemini's.
    """
    kind, found = block["type"], {}
    if kind == "thinking" and isinstance(block.get("signature"), str):
        found = {"issuer": "anthropic", "signature": block.pop("signature")}
    elif kind in {"text", "thinking", "tool_use"} and isinstance(block.get("thought_signature"), str):
        found = {"issuer": "gemini", "thought_signature": block.pop("thought_signature")}
    if found:
        block.setdefault("state", found)


def adopt_extra(holder: dict[str, Any], extra: dict[str, Any]) -> None:
    """Put keys without a field of their own into the metadata, unless that is broken and will be refused."""
    own = holder.get("metadata")
    if extra and (own is None or isinstance(own, dict)):
        holder["metadata"] = {**extra, **cast("dict[str, Any]", own or {})}


_COMMON_KEYS = frozenset({"type", "metadata"})


def _adopt_call(block: dict[str, Any]) -> None:
    given = block.get("input")
    if isinstance(given, str):
        block["raw_input"] = given
        block["input"] = parse_arguments(given) or {}
    elif given is None:
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
    """An item of a result; results do not nest."""
    kind: object = cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None
    return cast("object", item) if kind == "tool_result" else adopt_block(cast("object", item))
