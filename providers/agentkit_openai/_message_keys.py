"""Keys of a message that our blocks have no words for: a log's go back with it on the wire that they came from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.provider_kit import (
    Block,
    MediaBlock,
    OpaqueState,
    TextBlock,
    ToolUseBlock,
    copy_json,
    get_state_fields,
)

__all__ = ["MESSAGE", "MESSAGE_KEYS", "further_keys", "keys_in", "last_keys", "with_keys"]

MESSAGE = "message."
"""How they begin in the `fields` of a block's state, where its part and other wires of its issuer have theirs."""

MESSAGE_KEYS = f"{MESSAGE}*"
"""All of them, in `Capabilities.passthrough_keys`."""

_READ = frozenset(
    # SDK: ChatCompletionMessageParam, ChatCompletionMessage; `parsed` is the SDK's own reading of the content
    {"role", "content", "name", "refusal", "audio", "annotations", "parsed"}
    | {"tool_calls", "tool_call_id", "function_call"}
    | {"cache_control", "prompt_cache_breakpoint"}
)


def further_keys(held: Mapping[str, Any], read: Collection[str]) -> dict[str, Any]:
    """What a message has besides what is read of any, and of this wire's; null says nothing."""
    return {key: item for key, item in held.items() if key not in _READ and key not in read and item is not None}


def with_keys(
    blocks: Sequence[Block], keys: Mapping[str, Any], issuer: str, known: Collection[str] = ()
) -> list[Any] | None:
    """The blocks of a message, its keys with the last text, else the last call or medium; None if there is none.

    `known` are keys that the vendor has words for: other wires of its may know them too.
    """
    texts = [at for at, block in enumerate(blocks) if isinstance(block, TextBlock)]
    others = [at for at, block in enumerate(blocks) if isinstance(block, ToolUseBlock | MediaBlock)]
    if not texts and not others:
        return None
    at = (texts or others)[-1]
    holder: Any = blocks[at]
    more = {key if texts and key in known else f"{MESSAGE}{key}": item for key, item in keys.items()}
    fields = {**_fields(holder), **more}
    state = replace(holder.state, fields=fields) if holder.state else OpaqueState(issuer, fields=fields)
    return [*blocks[:at], replace(holder, state=state), *blocks[at + 1 :]]


def keys_in(blocks: Iterable[object]) -> dict[str, Any]:
    """The keys that a message came with, and goes back with."""
    return {
        key.removeprefix(MESSAGE): copy_json(item)
        for block in blocks
        for key, item in _fields(block).items()
        if key.startswith(MESSAGE)
    }


def last_keys(blocks: Iterable[object], known: Collection[str]) -> dict[str, Any]:
    """The keys that only the last message may have: the model is to go on with its text."""
    return {key: copy_json(item) for block in blocks for key, item in _fields(block).items() if key in known}


def _fields(block: object) -> Mapping[str, Any]:
    state = block.state if isinstance(block, TextBlock | ToolUseBlock | MediaBlock) else None
    return get_state_fields(state)
