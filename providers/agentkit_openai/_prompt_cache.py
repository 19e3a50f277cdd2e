"""Markers for prompt caches in chat messages: OpenAI's markers, and `cache_control` of other vendors."""

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

_ROLES = frozenset({"system", "developer", "user", "tool"})  # an assistant's texts take no marker in Responses
_MAX_LATEST = 50

_Part: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _ContentParts:
    """Content parts of chat messages by position.

    A part is None if it cannot have a marker: it is not stable, it belongs to the assistant, or it is a string or
    a tool call instead of a part.

    Attributes:
        system: Parts of the system prompt.
        turns: Parts of the turns.
        last_turn: Position in `turns` at which the assistant's last turn begins. None without such a turn.
    """

    system: list[_Part | None] = field(default_factory=list[_Part | None])
    turns: list[_Part | None] = field(default_factory=list[_Part | None])
    last_turn: int | None = None

    @property
    def markable(self) -> tuple[list[_Part], list[_Part]]:
        """Parts that can have a marker: those of the system prompt, and those of the turns."""
        return [part for part in self.system if part], [part for part in self.turns if part]


def _write_texts_as_parts(messages: Iterable[dict[str, Any]], as_part: Callable[[str], _Part]) -> None:
    """Replaces each string content that can get a marker by a list of one part, in place.

    A text without a marker is replaced too, so that a message is the same in later requests.
    """
    for message in messages:
        content = message.get("content")
        if message["role"] in _ROLES and isinstance(content, str) and content.strip():
            message["content"] = [as_part(content)]


def _collect_parts(messages: list[dict[str, Any]], legal: LegalConversation) -> _ContentParts:
    """Returns the content parts of messages. `legal` has a turn or a tool result for each message."""
    parts = _ContentParts()
    system_count = len(legal.system.msgs)
    for number, (message, flags) in enumerate(zip(messages, _stable_flags(legal), strict=True)):
        section = parts.system if number < system_count else parts.turns
        if message["role"] == "assistant":
            parts.last_turn = len(section)
        content: list[_Part] | str | None = message.get("content")
        if isinstance(content, list) and message["role"] in _ROLES:
            if message["role"] == "tool":
                flags *= len(content)  # one block, several parts
            section.extend([part if flag else None for part, flag in zip(content, flags, strict=True)])
        else:
            section.extend([None] * (len(flags) or 1))
        section.extend([None] * len(message.get("tool_calls", ())))
    return parts


def _stable_flags(legal: LegalConversation) -> Iterator[tuple[bool, ...]]:
    """Yields for each message of the request which of its texts and media are stable."""
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
    """Marks the last part of the system prompt and the latest stable parts, in place.

    The cache finds a prefix only at a marker. So each request marks the parts at which earlier requests ended.
    "OpenAI creates one implicit breakpoint and writes up to the latest three explicit breakpoints"; "for cache
    matching, OpenAI considers up to the latest 80 breakpoints in the conversation, without a content-block
    lookback limit" (openai-python: `prompt_cache_options`; the guide says 50). The cache thus finds the last
    marker of the last request if fewer than 50 parts are new.

    Args:
        system: Parts of the system prompt that can have a marker.
        turns: Parts of the turns that can have a marker.
    """
    latest = [*system, *turns][-_MAX_LATEST:]
    for part in (*system[-1:], *latest):
        part["prompt_cache_breakpoint"] = {"mode": "explicit"}


def mark_chat(messages: list[dict[str, Any]], legal: LegalConversation) -> None:
    """Marks chat messages for OpenAI's prompt cache, in place (see `mark_latest`)."""
    _write_texts_as_parts(messages, text_part)
    mark_latest(*_collect_parts(messages, legal).markable)


_MAX_MARKERS = 4
_REACH = 20  # content parts before a marker in which a cache looks for earlier markers


def text_part(text: str) -> _Part:
    """Returns a text as a content part of Chat Completions."""
    return {"type": "text", "text": text}


def mark_cache_control(
    messages: list[dict[str, Any]], legal: LegalConversation, as_part: Callable[[str], _Part] = text_part
) -> None:
    """Marks at most four parts with `cache_control`: the end of the system prompt, and parts of the turns.

    `place_cache_breakpoints` chooses the parts of the turns, where the next request finds the markers. Strings and
    tool calls count as positions, as the vendor may count them: at worst a marker is closer to the next marker
    than necessary.

    Args:
        messages: Finished messages, one for each turn and each tool result of `legal`; changed in place.
        legal: Conversation that the messages were made of.
        as_part: Writer of a text as a content part.
    """
    _write_texts_as_parts(messages, as_part)
    parts = _collect_parts(messages, legal)
    system = parts.markable[0][-1:]
    candidates = [index for index, part in enumerate(parts.turns) if part]
    chosen = place_cache_breakpoints(candidates, _MAX_MARKERS - len(system), reach=_REACH, turn=parts.last_turn)
    for part in (*system, *(parts.turns[index] for index in chosen)):
        assert part is not None
        part["cache_control"] = {"type": "ephemeral"}
