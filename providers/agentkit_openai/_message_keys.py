"""Keys of native messages that no block or message field represents.

The log loader stores these keys in the opaque state of a block. The formatter sends them back, but only to the API
that the log came from.
"""

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

__all__ = ["KEY_PREFIX", "MESSAGE_KEYS", "attach_keys", "get_attached_keys", "get_extra_keys", "get_last_keys"]

KEY_PREFIX = "message."
"""Prefix that marks a field of a block's opaque state as a key of the message.

A field without this prefix is a key of the content part.
"""

MESSAGE_KEYS = f"{KEY_PREFIX}*"
"""Pattern for all state fields with `KEY_PREFIX`, used in `passthrough_keys` of capabilities."""

_KEYS_READ = frozenset(
    # openai-python: ChatCompletionMessageParam, ChatCompletionMessage. The SDK creates `parsed` from `content`.
    {"role", "content", "name", "refusal", "audio", "annotations", "parsed"}
    | {"tool_calls", "tool_call_id", "function_call"}
    | {"cache_control", "prompt_cache_breakpoint"}
)


def get_extra_keys(message: Mapping[str, Any], keys_read: Collection[str]) -> dict[str, Any]:
    """Returns the keys of a native message that the log loader does not read, except keys whose value is null.

    Args:
        message: Native message.
        keys_read: Keys that the loader reads in addition to the standard keys.
    """
    if message.keys() <= _KEYS_READ:
        return {}
    return {
        key: value
        for key, value in message.items()
        if key not in _KEYS_READ and key not in keys_read and value is not None
    }


def attach_keys(
    blocks: Sequence[Block], keys: Mapping[str, Any], issuer: str, unprefixed: Collection[str] = ()
) -> list[Any] | None:
    """Stores keys of a message in the opaque state of one of its blocks.

    The keys are stored in the last text. If there is no text, they are stored in the last tool call or media
    block.

    Args:
        blocks: Blocks of the message.
        keys: Keys of the message, with their values.
        issuer: System that accepts the keys in later requests.
        unprefixed: Keys that other APIs of the vendor also accept. A text stores such keys without `KEY_PREFIX`.

    Returns:
        The blocks with the stored keys, or None if no block can store the keys.
    """
    texts = [index for index, block in enumerate(blocks) if isinstance(block, TextBlock)]
    others = [index for index, block in enumerate(blocks) if isinstance(block, ToolUseBlock | MediaBlock)]
    if not texts and not others:
        return None
    index = (texts or others)[-1]
    block: Any = blocks[index]
    attached = {key if texts and key in unprefixed else f"{KEY_PREFIX}{key}": item for key, item in keys.items()}
    fields = {**get_state_fields(block.state), **attached}
    state = replace(block.state, fields=fields) if block.state else OpaqueState(issuer, fields=fields)
    return [*blocks[:index], replace(block, state=state), *blocks[index + 1 :]]


def get_attached_keys(blocks: Iterable[object]) -> dict[str, Any]:
    """Returns the message keys that blocks store in their opaque state, without `KEY_PREFIX`."""
    return {
        key.removeprefix(KEY_PREFIX): copy_json(value)
        for fields in _list_fields(blocks)
        for key, value in fields.items()
        if key.startswith(KEY_PREFIX)
    }


def get_last_keys(blocks: Iterable[object], names: Collection[str]) -> dict[str, Any]:
    """Returns the keys of a logged message that ask the model to continue its text, from the blocks' opaque state.

    Args:
        blocks: Blocks of the last message.
        names: Names of the keys that only the last message may have.
    """
    return {
        key: copy_json(value) for fields in _list_fields(blocks) for key, value in fields.items() if key in names
    }


def _list_fields(blocks: Iterable[Any]) -> list[Mapping[str, Any]]:
    """Returns the fields of the opaque state of each block that has a state and may store keys of a message."""
    return [
        get_state_fields(block.state)
        for block in blocks
        if getattr(block, "state", None) and isinstance(block, TextBlock | ToolUseBlock | MediaBlock)
    ]
