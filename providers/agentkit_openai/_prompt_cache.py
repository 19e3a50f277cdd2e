"""Markers in chat messages that tell a prompt cache which prefixes to store.

OpenAI's marker is the key `prompt_cache_breakpoint`. Other vendors use the key `cache_control`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.provider_kit import Feature, LegalConversation, ModelFact, place_cache_breakpoints, stable_blocks

__all__ = ["BREAKPOINTS", "mark_cache_control", "mark_chat", "mark_latest"]

BREAKPOINTS = ModelFact(
    r"gpt-(5\.([6-9]|[1-9]\d)|[6-9])(?!\d)(?!.*-terra)",
    {"cache_breakpoints": True},
    "SDK `prompt_cache_options`: gpt-5.6 and later; Kilo-Org/kilocode#13052: a 400 of the terra models",
    "2026-11-21",
)

_ROLES = frozenset({"system", "developer", "user", "tool"})  # Responses accepts no markers in assistant messages
_MAX_LATEST = 50

_Part: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _ContentParts:
    """Content parts of chat messages, in the order of the request.

    An entry is None if there can be no marker at its position. Such entries are tool calls, strings, parts of
    assistant messages, and parts that may change in later requests.

    Attributes:
        system: Content parts of the system prompt.
        turns: Content parts of all turns.
        last_turn: Index in `turns` at which the last assistant turn begins. None if there is no assistant turn.
    """

    system: list[_Part | None] = field(default_factory=list[_Part | None])
    turns: list[_Part | None] = field(default_factory=list[_Part | None])
    last_turn: int | None = None

    @property
    def markable(self) -> tuple[list[_Part], list[_Part]]:
        """Parts that can have a marker, as a list for the system prompt and a list for the turns."""
        return [part for part in self.system if part], [part for part in self.turns if part]


def _write_texts_as_parts(messages: Iterable[dict[str, Any]], as_part: Callable[[str], _Part]) -> None:
    """Replaces strings by lists of one content part in place, because only content parts can have markers.

    Strings that get no marker are replaced too, so that a message has the same content in later requests.
    """
    for message in messages:
        content = message.get("content")
        if message["role"] in _ROLES and isinstance(content, str) and content.strip():
            message["content"] = [as_part(content)]


def _collect_parts(messages: list[dict[str, Any]], legal: LegalConversation) -> _ContentParts:
    """Returns the content parts of messages. Each message was written from a turn or a tool result in `legal`."""
    parts = _ContentParts()
    system_count = len(legal.system.msgs)
    for number, (message, flags) in enumerate(zip(messages, _stable_flags(legal), strict=True)):
        section = parts.system if number < system_count else parts.turns
        if message["role"] == "assistant":
            parts.last_turn = len(section)
        content: list[_Part] | str | None = message.get("content")
        if isinstance(content, list) and message["role"] in _ROLES:
            if message["role"] == "tool":
                flags *= len(content)  # all parts of a tool result share the flag of its block
            section.extend([part if flag else None for part, flag in zip(content, flags, strict=True)])
        else:
            section.extend([None] * (len(flags) or 1))
        section.extend([None] * len(message.get("tool_calls", ())))
    return parts


def _stable_flags(legal: LegalConversation) -> Iterator[tuple[bool, ...]]:
    """Yields one tuple of flags for each message, with one flag for each text or media item.

    A flag is True if the item has the same content in later requests.
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
    """Adds OpenAI's cache markers to the end of the system prompt and to the latest 50 parts, in place.

    The cache finds a stored prefix only at a marker. Each request therefore marks the parts at which earlier
    requests ended. The cache finds the last marker of the previous request if fewer than 50 parts are new.

    "OpenAI creates one implicit breakpoint and writes up to the latest three explicit breakpoints"; "for cache
    matching, OpenAI considers up to the latest 80 breakpoints in the conversation, without a content-block
    lookback limit" (openai-python: `prompt_cache_options`; OpenAI's guide names 50 instead of 80).

    Args:
        system: Parts of the system prompt that can have a marker.
        turns: Parts of the turns that can have a marker.
    """
    latest = [*system, *turns][-_MAX_LATEST:]
    for part in (*system[-1:], *latest):
        part["prompt_cache_breakpoint"] = {"mode": "explicit"}


def mark_chat(messages: list[dict[str, Any]], legal: LegalConversation) -> None:
    """Adds OpenAI's cache markers to chat messages, in place. `mark_latest` chooses the content parts."""
    _write_texts_as_parts(messages, text_part)
    mark_latest(*_collect_parts(messages, legal).markable)


_MAX_MARKERS = 4
_REACH = 20  # number of content parts before a marker in which the cache looks for an earlier marker


def text_part(text: str) -> _Part:
    """Writes a text as a content part of Chat Completions."""
    return {"type": "text", "text": text}


def mark_cache_control(
    messages: list[dict[str, Any]], legal: LegalConversation, as_part: Callable[[str], _Part] = text_part
) -> None:
    """Adds the key `cache_control` to at most four content parts of chat messages, in place.

    One marker is at the end of the system prompt. The other markers are in the turns, at content parts where the
    next request can find the stored prefix. `place_cache_breakpoints` chooses these content parts.

    Strings and tool calls count as content parts for the distance between markers, because the vendor may count
    them. If the vendor does not count them, markers are only closer together than necessary.

    Args:
        messages: Finished messages, one for each turn and each tool result in `legal`.
        legal: Conversation that the messages were written from.
        as_part: Function that writes a text as a content part.
    """
    _write_texts_as_parts(messages, as_part)
    parts = _collect_parts(messages, legal)
    system = parts.markable[0][-1:]
    candidates = [index for index, part in enumerate(parts.turns) if part]
    chosen = place_cache_breakpoints(candidates, _MAX_MARKERS - len(system), reach=_REACH, turn=parts.last_turn)
    for part in (*system, *(parts.turns[index] for index in chosen)):
        assert part is not None
        part["cache_control"] = {"type": "ephemeral"}
