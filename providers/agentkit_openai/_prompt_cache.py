"""Markers for prompt caches in chat messages: those of OpenAI, and `cache_control` of other vendors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agentkit.provider_kit import Feature, LegalConversation, ModelFact, place_cache_breakpoints, stable_blocks

__all__ = [
    "BREAKPOINTS",
    "ChatPlaces",
    "chat_places",
    "mark_cache_control",
    "mark_chat",
    "mark_latest",
    "open_contents",
]

BREAKPOINTS = ModelFact(
    r"gpt-(5\.([6-9]|[1-9]\d)|[6-9])(?!\d)(?!.*-terra)",
    {"cache_breakpoints": True},
    "SDK `prompt_cache_options`: gpt-5.6 and later; Kilo-Org/kilocode#13052: a 400 of the terra models",
    "2026-11-21",
)

_ROLES = frozenset({"system", "developer", "user", "tool"})  # an assistant's texts take no marker in Responses
_LATEST = 50


@dataclass(slots=True)
class ChatPlaces:
    """The content parts of chat messages by position: of the system prompt, then of the turns.

    A part that no marker may lie on is None: it is not settled, or the assistant's, or no part but a string or a
    call. `turn` is the position in `turns` at which the assistant's last turn begins.
    """

    system: list[dict[str, Any] | None] = field(default_factory=list[dict[str, Any] | None])
    turns: list[dict[str, Any] | None] = field(default_factory=list[dict[str, Any] | None])
    turn: int | None = None

    @property
    def parts(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The parts that may be marked, of the system prompt and of the turns."""
        return [part for part in self.system if part], [part for part in self.turns if part]


def open_contents(messages: Iterable[dict[str, Any]], as_part: Callable[[str], dict[str, Any]]) -> None:
    """Make each text that may come to be marked a list of one part.

    Marked or not: a message keeps its form from one request to the next, whatever the markers do.
    """
    for message in messages:
        content = message.get("content")
        if message["role"] in _ROLES and isinstance(content, str) and content.strip():
            message["content"] = [as_part(content)]


def chat_places(messages: list[dict[str, Any]], legal: LegalConversation) -> ChatPlaces:
    """Where markers may lie in messages that were made of `legal`, one of each turn and of each result."""
    places = ChatPlaces()
    prompt = len(legal.system.msgs)
    for number, (message, flags) in enumerate(zip(messages, _flags(legal), strict=True)):
        out = places.system if number < prompt else places.turns
        if message["role"] == "assistant":
            places.turn = len(out)
        content: list[dict[str, Any]] | str | None = message.get("content")
        if isinstance(content, list) and message["role"] in _ROLES:
            if message["role"] == "tool":
                flags *= len(content)  # one block, several parts
            out.extend([part if flag else None for part, flag in zip(content, flags, strict=True)])
        else:
            out.extend([None] * (len(flags) or 1))
        out.extend([None] * len(message.get("tool_calls", ())))
    return places


def _flags(legal: LegalConversation) -> Iterator[tuple[bool, ...]]:
    """For each message on the wire: which of the texts and media in it are settled."""
    for draft in (legal.system, legal.turns):
        for msg, flags in stable_blocks(draft):
            if msg.features & Feature.RESULT:
                count = len(msg.tool_results)
                yield from ((flag,) for flag in flags[:count])
                if flags[count:]:
                    yield flags[count:]
            else:
                unsaid = ("tool_use", "thinking")
                yield tuple(
                    [flag for block, flag in zip(msg.blocks, flags, strict=True) if block.type not in unsaid]
                )


def mark_latest(system: list[dict[str, Any]], turns: list[dict[str, Any]]) -> None:
    """Mark the end of the system prompt and the latest parts that stay.

    The cache finds a prefix at a marker alone, not behind it: so what a request may have ended on is marked again
    by all that follow. "OpenAI creates one implicit breakpoint and writes up to the latest three explicit
    breakpoints"; "for cache matching, OpenAI considers up to the latest 80 breakpoints in the conversation,
    without a content-block lookback limit" (SDK: `prompt_cache_options`; the guide says 50). So the last part that
    the last request marked was written, and is found as long as fewer than 50 parts were added.
    """
    latest = [*system, *turns][-_LATEST:]
    for part in (*system[-1:], *latest):
        part["prompt_cache_breakpoint"] = {"mode": "explicit"}


def mark_chat(messages: list[dict[str, Any]], legal: LegalConversation) -> None:
    """Marks chat messages for OpenAI's prompt cache (see `mark_latest`)."""
    open_contents(messages, text_part)
    mark_latest(*chat_places(messages, legal).parts)


_MARKERS = 4
_REACH = 20  # content parts before a marker in which a cache looks for earlier markers


def text_part(text: str) -> dict[str, Any]:
    """Returns a text as a content part of Chat Completions."""
    return {"type": "text", "text": text}


def mark_cache_control(
    messages: list[dict[str, Any]],
    legal: LegalConversation,
    as_part: Callable[[str], dict[str, Any]] = text_part,
) -> None:
    """Marks at most four parts with `cache_control`: the end of the system prompt, and parts of the turns.

    `place_cache_breakpoints` chooses the parts of the turns, where the next request finds the markers. Strings and
    tool calls count as positions, as the vendor may count them: at worst a marker stands closer to the next
    marker than necessary.

    Args:
        messages: Finished messages, one for each turn and each tool result of `legal`; changed in place.
        legal: The conversation that the messages were made of.
        as_part: Writer of a text as a content part.
    """
    open_contents(messages, as_part)
    places = chat_places(messages, legal)
    system = places.parts[0][-1:]
    candidates = [index for index, part in enumerate(places.turns) if part]
    chosen = place_cache_breakpoints(candidates, _MARKERS - len(system), reach=_REACH, turn=places.turn)
    for part in (*system, *(places.turns[index] for index in chosen)):
        assert part is not None
        part["cache_control"] = {"type": "ephemeral"}
