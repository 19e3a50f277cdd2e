"""Conversations on their way to a request, each message with the origins of its blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.ledger.ledger import BlockPath
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr

__all__ = ["TracedConversation"]

Provenance: TypeAlias = BlockPath | str
"""Where a block of a draft comes from: an input block, or the name of a synthesis."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look over a conversation in normal form told of what stands behind its system prompt.

    features       everything that any message holds
    ordered      whether each turn of calls has one message of results behind it, in the order of the calls
    alternating  whether the assistant's turns and the others' take turns
    """

    features: int
    ordered: bool
    alternating: bool


@dataclass(slots=True)
class TracedConversation:
    """Messages on their way to a request, each with where it comes from.

    An origin is the number of an input message taken whole, or one origin a block.
    """

    msgs: list[Msg]
    origins: list[int | tuple[Provenance, ...]]
    look: Look | None = None

    __repr__ = bounded_repr

    @classmethod
    def of(cls, msgs: Sequence[Msg]) -> TracedConversation:
        """The draft in which nothing has happened yet."""
        return cls(list(msgs), list(range(len(msgs))))

    def add(self, msg: Msg, origin: int | tuple[Provenance, ...]) -> None:
        """Append one message."""
        self.msgs.append(msg)
        self.origins.append(origin)

    def part(self, numbers: Sequence[int]) -> TracedConversation:
        """The draft of some of its messages, by number."""
        return TracedConversation([self.msgs[at] for at in numbers], [self.origins[at] for at in numbers])


def block_origins(msg: Msg, origin: int | tuple[Provenance, ...]) -> tuple[Provenance, ...]:
    """One origin for each block of a draft's message."""
    if isinstance(origin, int):
        count = 1 if isinstance(msg.content, str) else len(msg.content)
        return tuple((origin, at) for at in range(count))
    return origin


def prompt_length(msgs: Sequence[Msg]) -> int:
    """How many messages the system prompt has: the leading run of role-system messages without tool blocks."""
    return next((at for at, msg in enumerate(msgs) if not msg.features & Feature.SYSTEM), len(msgs))
