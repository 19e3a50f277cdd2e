"""Checks for log loaders. Each loader runs the checks on messages and requests, so that no content is lost.

Without these checks, the result for a log in a different format could be an empty conversation. Each loader passes
the names of the keys that the loader reads. If the format of a refused message is known, the error names this
format.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object
from agentkit.messages.log_recognition import FIRST_KEYS, LOADERS, LogFormat, find_log_format, may_match
from agentkit.reprs import describe_value, list_keys, shorten_repr

__all__ = ["check_log_format", "check_log_message", "check_log_request", "describe_log_format"]

_CONTENT_KEYS = frozenset(
    {"content", "parts", "tool_calls", "function_call", "refusal", "images", "toolInvocations"}
    | {"reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", "additional_kwargs"}
)
"""Message keys under which known log formats store content."""

_REQUEST_KEYS = frozenset(
    {"messages", "contents", "input", "prompt", "system", "instructions", "systemInstruction"}
    | {"system_instruction", "history", "chat_history"}
)
"""Request keys under which known APIs expect messages or a system prompt."""

_EMPTY_KEYS = frozenset({"id", "name", "role"})
"""Keys that an empty reply of a model may have."""
_MODEL_ROLES = ("assistant", "model")


def check_log_message(
    message: Mapping[str, Any],
    place: str,
    content_keys: tuple[str, ...] | frozenset[str],
    opaque_keys: tuple[str, ...] | frozenset[str] = (),
    loaders: str = "",
    block_key: str | None = None,
) -> None:
    """Raises MessageError if a loader would lose content of a message.

    The error occurs if the message is clearly in a format that is not in `loaders`. The error also occurs if the
    message has no key in `content_keys`, or has content under a key that the loader does not read. An empty reply
    of a model is accepted. Such a reply has no keys other than `id`, `name` and `role`.

    Args:
        message: Message from a log.
        place: Path of the message for error texts, such as `messages[3]`.
        content_keys: Keys under which the loader reads content.
        opaque_keys: Keys whose values the loader stores as opaque state.
        loaders: Names of the formats that the loader reads (see `load_native`), separated by spaces.
        block_key: Key that every content block of the format has. If no block in a list has the key, the list is
            in another format. None if blocks have no common key. An empty string if content is never a list of
            objects.

    """
    content = message.get("content", message)
    if content is None or type(content) is str:
        keys = _KNOWN_KEYS.intersection(message)
        typed_keys = _list_typed_keys(keys, content_keys, opaque_keys, loaders)
        if typed_keys == [] or (typed_keys and all(type(message[key]) is _TYPES[key] for key in typed_keys)):
            return
    check_log_format(message, place, loaders)
    if not any(key in message for key in content_keys):
        if message.keys() <= _EMPTY_KEYS and message.get("role") in _MODEL_ROLES:
            return
        reason = f"expected content under the key {_join_names(content_keys)}, got {list_keys(message)}"
        raise MessageError(place, reason, _advice(find_log_format(message)))
    foreign_keys = _CONTENT_KEYS.intersection(message).difference(content_keys, opaque_keys)
    for key in sorted(foreign_keys) if foreign_keys else ():
        if message[key]:
            reason = f"the loader reads content only under the key {_join_names(content_keys)}, not under {key!r}"
            raise MessageError(f"{place}.{key}", reason, _advice(find_log_format({key: message[key], "role": ""})))
    _check_types(message, place, content_keys)
    _check_blocks(message, f"{place}.content", block_key)


def _check_types(message: Mapping[str, Any], place: str, content_keys: Collection[str]) -> None:
    for key, expected in _TYPES.items():
        value = message.get(key)
        if value and not isinstance(value, expected) and key in content_keys:
            expected_name = "string" if expected is str else "list"
            reason = f"expected a {expected_name}, got {describe_value(value)}"
            raise MessageError(f"{place}.{key}", reason, f"Pass a {expected_name}.")


@lru_cache(512)
def _list_typed_keys(
    keys: frozenset[str],
    content_keys: tuple[str, ...] | frozenset[str],
    opaque_keys: tuple[str, ...] | frozenset[str],
    loaders: str,
) -> list[str] | None:
    """Returns the content keys for which the type of the value must be checked (see `_TYPES`).

    The function is only for messages whose `content` is a string or null. Returns None if the message may be in
    a format that the loader does not read, because all checks are then necessary.

    Args:
        keys: Keys of the message that are in `_KNOWN_KEYS`.
        content_keys: Keys under which the loader reads content.
        opaque_keys: Keys whose values the loader stores as opaque state.
        loaders: Names of the formats that the loader reads (see `load_native`), separated by spaces.

    """
    foreign_keys = _CONTENT_KEYS.intersection(keys).difference(content_keys, opaque_keys)
    if "content" not in content_keys or foreign_keys or may_match(keys, keys - {"content"}, True):
        return None
    return [key for key in content_keys if key in keys and key in _TYPES]


_TYPES: dict[str, type] = {
    "images": list,
    "invalid_tool_calls": list,
    "reasoning": str,
    "reasoning_content": str,
    "refusal": str,
    "thinking": str,
    "tool_calls": list,
}
"""Required type of the value under each content key."""
_KNOWN_KEYS = FIRST_KEYS.union(_CONTENT_KEYS, _TYPES)
"""Message keys that affect the result of `_list_typed_keys`."""


def _check_blocks(message: Mapping[str, Any], place: str, key: str | None) -> None:
    """Raises MessageError if `content` is an object, or a list of objects that all lack the key `key`."""
    content = message.get("content")
    blocks = as_list(content)
    if isinstance(content, dict):
        keys = list_keys(cast("dict[str, Any]", content))
        reason = f"expected a string or a list of content blocks, got an object with {keys}"
        advice = "Pass a string or a list. If the object is a content block, pass [object]."
        raise MessageError(place, reason, advice)
    if key is not None and blocks and all(as_object(block) and key not in block for block in blocks):
        reason = f"expected content blocks with the key {key!r}, got {list_keys(as_object(blocks[0]))}"
        raise MessageError(place, reason, _advice(find_log_format({"role": "", "content": content})))


def check_log_format(message: Mapping[str, Any], place: str, loaders: str) -> None:
    """Raises MessageError if a message is clearly in a format that none of the loaders reads.

    Raises no error if `loaders` has only names that agentkit does not know, because the formats of these loaders
    are then unknown.

    Args:
        message: Message from a log.
        place: Path of the message for error texts, such as `messages[3]`.
        loaders: Names of the loaders that may read the log (see `load_native`), separated by spaces. If empty,
            every known format is refused.

    """
    log_format = find_log_format(message, certain=True)
    names = loaders.split()
    is_known = not names or not LOADERS.isdisjoint(names)
    if log_format is not None and is_known and log_format.loader not in names:
        reason = f"expected a message in a format that the loader reads, got {list_keys(message)}"
        raise MessageError(place, reason, _advice(log_format))


def check_log_request(
    request: Mapping[str, Any], message_keys: Collection[str], stored_keys: Collection[str] = ()
) -> None:
    """Raises MessageError if a loader cannot load all messages of a request.

    The loader would lose messages under keys that the loader does not read. Messages that are stored on the server
    cannot be loaded, because the request contains only an id for them.

    Args:
        request: Request in a provider's format.
        message_keys: Keys under which the loader reads messages and the system prompt.
        stored_keys: Keys whose values identify messages that are stored on the server.

    """
    for key in stored_keys:
        if request.get(key):
            value = shorten_repr(request[key], 60)
            reason = f"the value {value} identifies messages that are stored on the server and cannot be loaded"
            advice = "Pass a list of all messages, including the messages that are stored on the server."
            raise MessageError(key, reason, advice)
    for key in sorted(_REQUEST_KEYS.intersection(request).difference(message_keys)):
        if request[key]:
            reason = f"the loader does not read the request key {key!r}, so the value of the key would be lost"
            raise MessageError(key, reason, _advice(find_log_format(request)))


def describe_log_format(log: object) -> str:
    """Returns advice for an error text. If the format of a log is recognized, the advice names it and its loader.

    Args:
        log: List of messages, a single message, or a request.

    """
    for item in as_list(log) or [log]:
        message: dict[str, Any] = as_object(item)
        if message:
            return _advice(find_log_format(message))
    return _advice(None)


def _advice(log_format: LogFormat | None) -> str:
    if log_format is None:
        return "Pass messages in the expected format, or use the loader for their format."
    if not log_format.loader:
        advice = "Convert the messages to one of the formats that load_native reads."
    else:
        advice = f"Use load_native({log_format.loader!r}, …), or --from {log_format.loader} on the command line."
    return f"The log looks like {log_format.name}. {advice}"


def _join_names(keys: Collection[str]) -> str:
    return " or ".join(map(repr, sorted(keys)))
