"""Additional message keys. These are keys of log messages that no field of `Msg` or of a block can store.

The log loader stores these keys in the opaque state of a block, with the prefix `KEY_PREFIX`. Examples are unknown
keys, the key `role` with the value `developer`, and the key `partial`, which asks the model to continue its text.
The formatter sends the keys back, but only to the API from which the log comes.

The opaque state fields `phase` and `refusal` have no prefix. `phase` is a key of an item in Responses, and
`refusal` marks a text as a refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.provider_kit import (
    Block,
    Feature,
    MediaBlock,
    Msg,
    OpaqueState,
    TextBlock,
    ToolUseBlock,
    copy_json,
    get_state_fields,
)

__all__ = ["KEY_PREFIX", "MESSAGE_KEYS", "attach_keys", "get_extra_keys", "get_message_keys", "get_role"]

KEY_PREFIX = "message."
"""Prefix of the opaque state fields that store keys of a message.

Fields without this prefix store keys of a content part.
"""

MESSAGE_KEYS = f"{KEY_PREFIX}*"
"""Entry of `passthrough_keys` in capabilities. The entry matches all fields with the prefix `KEY_PREFIX`."""

_UNPREFIXED = frozenset({"role", "partial", "prefix"})
"""Message keys that agentkit 0.3.0 stored without `KEY_PREFIX` in the opaque state of texts.

The formatter still sends these keys back.
"""

_KEYS_READ = frozenset(
    # Source: openai-python, ChatCompletionMessageParam and ChatCompletionMessage. The loader ignores `parsed`,
    # because the SDK creates this key from `content`.
    {"role", "content", "name", "refusal", "audio", "annotations", "parsed"}
    | {"tool_calls", "tool_call_id", "function_call"}
    | {"cache_control", "prompt_cache_breakpoint"}
)


def get_extra_keys(message: Mapping[str, Any], keys_read: Collection[str]) -> dict[str, Any]:
    """Returns a dict of the message keys that the log loader does not read.

    Keys with the value null are omitted.

    Args:
        message: Message from the log, as a JSON object.
        keys_read: Keys that the loader reads in addition to the standard keys.
    """
    if message.keys() <= _KEYS_READ:
        return {}
    return {
        key: value
        for key, value in message.items()
        if key not in _KEYS_READ and key not in keys_read and value is not None
    }


def attach_keys(blocks: Sequence[Block], keys: Mapping[str, Any], issuer: str) -> list[Any] | None:
    """Returns the blocks of a message, with additional message keys in the opaque state of one block.

    The keys are stored in the last text that is not blank, because requests contain no blank text. If all texts
    are blank, the keys are stored in the last text. If there is no text, the keys are stored in the last tool call
    or media block.

    Args:
        blocks: Blocks of the message.
        keys: Additional keys of the message, with their values.
        issuer: System that accepts the keys in later requests.

    Returns:
        The blocks with the stored keys, or None if no block can store the keys.
    """
    texts = [(index, block) for index, block in enumerate(blocks) if isinstance(block, TextBlock)]
    written = [index for index, text in texts if text.text.strip()] or [index for index, _ in texts]
    others = [index for index, block in enumerate(blocks) if isinstance(block, ToolUseBlock | MediaBlock)]
    if not written and not others:
        return None
    index = (written or others)[-1]
    block: Any = blocks[index]
    fields = {**get_state_fields(block.state), **{f"{KEY_PREFIX}{key}": item for key, item in keys.items()}}
    state = replace(block.state, fields=fields) if block.state else OpaqueState(issuer, fields=fields)
    return [*blocks[:index], replace(block, state=state), *blocks[index + 1 :]]


def get_message_keys(blocks: Iterable[object]) -> dict[str, Any]:
    """Returns a dict of the message keys that are stored in the opaque state of the blocks.

    The keys of the dict do not have the prefix `KEY_PREFIX`.
    """
    return {
        key.removeprefix(KEY_PREFIX): copy_json(value)
        for block in blocks
        if isinstance(block, TextBlock | ToolUseBlock | MediaBlock)
        for key, value in get_state_fields(block.state).items()
        if key.startswith(KEY_PREFIX) or (key in _UNPREFIXED and isinstance(block, TextBlock))
    }


def get_role(msg: Msg) -> str:
    """Returns the role of a message in a request.

    The role of a system message is `developer` if the opaque state of a block stores this role.

    Source: openai-python, ChatCompletionDeveloperMessageParam and EasyInputMessageParam.
    """
    if msg.role != "system" or not msg.features & Feature.STATE:
        return msg.role
    return "developer" if get_message_keys(msg.blocks).get("role") == "developer" else "system"
