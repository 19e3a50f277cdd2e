"""Keys of native messages that blocks do not represent.

A log's keys are stored in the opaque state of a block, and are sent back to the API that they came from.
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
"""Prefix of the keys in the state fields of a block. Fields without it belong to the content part."""

MESSAGE_KEYS = f"{KEY_PREFIX}*"
"""Pattern for all attached keys, for `passthrough_keys` of capabilities."""

_KEYS_READ = frozenset(
    # openai-python: ChatCompletionMessageParam, ChatCompletionMessage. The SDK parses `content` into `parsed`.
    {"role", "content", "name", "refusal", "audio", "annotations", "parsed"}
    | {"tool_calls", "tool_call_id", "function_call"}
    | {"cache_control", "prompt_cache_breakpoint"}
)


def get_extra_keys(message: Mapping[str, Any], keys_read: Collection[str]) -> dict[str, Any]:
    """Returns the keys of a native message that are not null and that the loader does not read.

    Args:
        message: Native message.
        keys_read: Keys that the loader reads besides the standard ones.
    """
    return {
        key: value
        for key, value in message.items()
        if key not in _KEYS_READ and key not in keys_read and value is not None
    }


def attach_keys(
    blocks: Sequence[Block], keys: Mapping[str, Any], issuer: str, unprefixed: Collection[str] = ()
) -> list[Any] | None:
    """Attaches keys of a message to its last text, or without a text to its last tool call or media block.

    Args:
        blocks: Blocks of the message.
        keys: Keys to attach, with their values.
        issuer: System that accepts the keys.
        unprefixed: Keys that other APIs of the vendor also accept. A text gets them without the prefix.

    Returns:
        The blocks with the keys, or None if no block can have them.
    """
    texts = [index for index, block in enumerate(blocks) if isinstance(block, TextBlock)]
    others = [index for index, block in enumerate(blocks) if isinstance(block, ToolUseBlock | MediaBlock)]
    if not texts and not others:
        return None
    index = (texts or others)[-1]
    block: Any = blocks[index]
    attached = {key if texts and key in unprefixed else f"{KEY_PREFIX}{key}": item for key, item in keys.items()}
    fields = {**_get_fields(block), **attached}
    state = replace(block.state, fields=fields) if block.state else OpaqueState(issuer, fields=fields)
    return [*blocks[:index], replace(block, state=state), *blocks[index + 1 :]]


def get_attached_keys(blocks: Iterable[object]) -> dict[str, Any]:
    """Returns the keys that are attached to the blocks of a message, without their prefix."""
    return {
        key.removeprefix(KEY_PREFIX): copy_json(value)
        for block in blocks
        for key, value in _get_fields(block).items()
        if key.startswith(KEY_PREFIX)
    }


def get_last_keys(blocks: Iterable[object], names: Collection[str]) -> dict[str, Any]:
    """Returns those attached keys that only the last message may have. They ask the model to continue its text."""
    return {key: copy_json(value) for block in blocks for key, value in _get_fields(block).items() if key in names}


def _get_fields(block: object) -> Mapping[str, Any]:
    state = block.state if isinstance(block, TextBlock | ToolUseBlock | MediaBlock) else None
    return get_state_fields(state)
