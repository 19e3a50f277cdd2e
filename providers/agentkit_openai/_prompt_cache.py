"""Cache markers in chat messages.

For each marker, the provider's prompt cache can store the part of the request that ends at the marker (a prefix).
OpenAI's marker is the key `prompt_cache_breakpoint`. Other vendors use the key `cache_control`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from agentkit.provider_kit import Feature, LegalConversation, place_cache_breakpoints, stable_blocks

__all__ = ["mark_cache_control", "mark_chat", "mark_latest"]

# OpenAI Responses accepts no markers in assistant messages.
_ROLES = frozenset({"system", "developer", "user", "tool"})
_MAX_LATEST = 50
_MAX_MARKERS = 4
# The cache looks for stored prefixes only near the markers of the new request. The cache finds a prefix that ends
# fewer than `_REACH` content parts before a marker.
_REACH = 20

_Part: TypeAlias = dict[str, Any]


def text_part(text: str) -> _Part:
    """Writes a text as a content part of Chat Completions."""
    return {"type": "text", "text": text}


def _open_parts(
    messages: list[dict[str, Any]], legal: LegalConversation, as_part: Callable[[str], _Part]
) -> tuple[list[_Part | None], int, int | None]:
    """Returns the content parts of the chat messages that were written from the conversation `legal`.

    If the content of a message is a string, the function replaces the string with a list of one part. Only parts
    can have markers. Strings that get no marker are also replaced, so that a message has the same content in
    later requests.

    Returns:
        The list of parts, the number of parts in the system prompt, and the index of the first part of the last
        assistant turn. The index is None if there is no assistant turn. The list has None in place of a part that
        cannot have a marker. Examples are tool calls, and parts that the next request omits or moves.
    """
    parts: list[_Part | None] = []
    system_count, last_turn = 0, None
    for number, (message, flags) in enumerate(zip(messages, _stable_flags(legal), strict=True), 1):
        content: list[_Part] | str | None = message.get("content")
        if message["role"] == "assistant":
            last_turn = len(parts)
        if message["role"] in _ROLES and isinstance(content, str) and content.strip():
            content = message["content"] = [as_part(content)]
        if message["role"] in _ROLES and isinstance(content, list):
            if message["role"] == "tool":
                flags *= len(content)  # a tool result has one flag, which applies to all its parts
            parts += [part if flag else None for part, flag in zip(content, flags, strict=True)]
        else:
            parts += [None] * (len(flags) or 1)
        parts += [None] * len(message.get("tool_calls", ()))
        if number == len(legal.system.msgs):
            system_count = len(parts)
    return parts, system_count, last_turn


def _stable_flags(legal: LegalConversation) -> Iterator[tuple[bool, ...]]:
    """Yields one tuple for each chat message of the request, with one flag for each text or media item.

    A flag is True if the next request repeats the text or media item. A tool result has only one flag.
    """
    for conversation in (legal.system, legal.turns):
        for msg, flags in stable_blocks(conversation):
            if msg.features & Feature.RESULT:
                count = len(msg.tool_results)
                yield from ((flag,) for flag in flags[:count])
                if flags[count:]:
                    yield flags[count:]
            else:
                not_content = ("tool_use", "thinking")
                yield tuple(
                    [flag for block, flag in zip(msg.blocks, flags, strict=True) if block.type not in not_content]
                )


def mark_latest(system: list[_Part], turns: list[_Part]) -> None:
    """Adds OpenAI's cache markers to the end of the system prompt and to the latest 50 content parts, in place.

    The cache finds a stored prefix only if the new request also has a marker at the end of this prefix. The
    previous request ended at one of the latest parts, so all of these parts get a marker. The cache finds the
    prefix of the previous request if the new request adds fewer than 50 parts.

    "OpenAI creates one implicit breakpoint and writes up to the latest three explicit breakpoints"; "for cache
    matching, OpenAI considers up to the latest 80 breakpoints in the conversation, without a content-block
    lookback limit" (openai-python: `prompt_cache_options`; OpenAI's guide names 50 instead of 80).
    """
    latest = [*system, *turns][-_MAX_LATEST:]
    for part in (*system[-1:], *latest):
        part["prompt_cache_breakpoint"] = {"mode": "explicit"}


def mark_chat(messages: list[dict[str, Any]], legal: LegalConversation) -> None:
    """Adds OpenAI's cache markers to chat messages, in place. `mark_latest` chooses the content parts."""
    parts, system_count, _ = _open_parts(messages, legal, text_part)
    mark_latest([part for part in parts[:system_count] if part], [part for part in parts[system_count:] if part])


def mark_cache_control(
    messages: list[dict[str, Any]], legal: LegalConversation, as_part: Callable[[str], _Part] = text_part
) -> None:
    """Adds the key `cache_control` to at most four content parts of chat messages, in place.

    One marker is at the end of the system prompt. The other markers are in the turns, at content parts where the
    next request can find the stored prefix. `place_cache_breakpoints` chooses these content parts.

    In the distance between two markers, tool calls and messages with a string as content count as content parts.
    If the vendor counts only content parts, the markers are closer together than necessary.
    """
    parts, system_count, last_turn = _open_parts(messages, legal, as_part)
    candidates = [index for index, part in enumerate(parts) if part]
    system = [index for index in candidates if index < system_count][-1:]
    turns = [index for index in candidates if index >= system_count]
    chosen = place_cache_breakpoints(turns, _MAX_MARKERS - len(system), reach=_REACH, turn=last_turn)
    for part in (parts[index] for index in (*system, *chosen)):
        assert part is not None
        part["cache_control"] = {"type": "ephemeral"}
