"""Conversations in the pipeline: messages with the origins of their blocks.

A `TracedMessage` is a message with its origin. A `TracedConversation` stores messages and origins in two columns,
so that a conversation of many unchanged messages is created and sliced without an object for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

from agentkit.ledger.places import BlockPath
from agentkit.messages.blocks import Block
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr

__all__ = [
    "FrameOrigins",
    "MessageOrigin",
    "NormalForm",
    "Provenance",
    "TracedConversation",
    "TracedMessage",
    "block_origins",
    "prompt_length",
    "starts_with",
]

Provenance: TypeAlias = BlockPath | str
"""Origin of a block: the path of an input block, or the name of a synthesis."""


class FrameOrigins(tuple[Provenance, ...]):
    """Origins of the blocks of a history frame.

    Attributes:
        tag: The name of the frame's tag.

    """

    tag: str

    def __new__(cls, origins: Iterable[Provenance], tag: str) -> Self:
        """Returns the origins with the tag."""
        frame = super().__new__(cls, origins)
        frame.tag = tag
        return frame


MessageOrigin: TypeAlias = int | tuple[Provenance, ...]
"""Origin of a message: the index of an input message that is unchanged, or the origin of each block."""


class TracedMessage(NamedTuple):
    """Message of the pipeline with its origin."""

    msg: Msg
    origin: MessageOrigin

    @property
    def block_origins(self) -> tuple[Provenance, ...]:
        """The origin of each block."""
        return block_origins(self.msg, self.origin)

    @property
    def frame_tag(self) -> str:
        """The name of the tag if the message is a history frame. Otherwise empty."""
        return self.origin.tag if isinstance(self.origin, FrameOrigins) else ""

    @property
    def traced_blocks(self) -> Iterator[tuple[Block, Provenance]]:
        """The blocks with their origins."""
        return zip(self.msg.blocks, self.block_origins, strict=True)


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Facts about the messages after the system prompt, for a conversation in normal form (see `repair`).

    Attributes:
        features: The features of all messages together.
        ordered: True if one message of results follows each turn of calls, in the order of the calls.
        alternating: True if turns of the assistant and of others alternate.

    """

    features: int
    ordered: bool
    alternating: bool


@dataclass(slots=True)
class TracedConversation:
    """Messages of the pipeline with their origins.

    Attributes:
        msgs: The messages.
        origins: The origin of each message.
        normal_form: The facts of the normal form. None if the facts are unknown, or if the conversation is not in
            normal form.

    """

    msgs: list[Msg]
    origins: list[MessageOrigin]
    normal_form: NormalForm | None = None

    __repr__ = bounded_repr

    @classmethod
    def of(cls, msgs: Sequence[Msg]) -> TracedConversation:
        """Returns the conversation of the caller's messages, unchanged."""
        return cls(list(msgs), list(range(len(msgs))))

    def __iter__(self) -> Iterator[TracedMessage]:
        return map(TracedMessage, self.msgs, self.origins)

    def get(self, index: int) -> TracedMessage:
        """Returns one message with its origin."""
        return TracedMessage(self.msgs[index], self.origins[index])

    def add(self, msg: Msg, origin: MessageOrigin) -> None:
        """Appends one message."""
        self.msgs.append(msg)
        self.origins.append(origin)

    def extend(self, other: TracedConversation) -> None:
        """Appends all messages of another conversation."""
        self.msgs += other.msgs
        self.origins += other.origins

    def insert(self, index: int, msg: Msg, origin: MessageOrigin) -> None:
        """Inserts one message before the message with this index."""
        self.msgs.insert(index, msg)
        self.origins.insert(index, origin)

    def part(self, start: int, stop: int | None = None) -> TracedConversation:
        """Returns the conversation of the messages from `start` up to `stop`; None: up to the end."""
        return TracedConversation(self.msgs[start:stop], self.origins[start:stop])

    def has_feature(self, mask: int) -> bool:
        """Returns True if any message has one of the features."""
        if self.normal_form is None:
            return any(msg.features & mask for msg in self.msgs)
        if self.normal_form.features & mask:
            return True
        return any(msg.features & mask for msg in self.msgs[: prompt_length(self.msgs)])


def block_origins(msg: Msg, origin: MessageOrigin) -> tuple[Provenance, ...]:
    """Returns one origin for each block of a message."""
    if isinstance(origin, int):
        count = 1 if isinstance(msg.content, str) else len(msg.content)
        return tuple((origin, index) for index in range(count))
    return origin


def prompt_length(msgs: Sequence[Msg]) -> int:
    """Returns the number of messages of the system prompt.

    The system prompt is the leading run of role-system messages without tool blocks.
    """
    for index, msg in enumerate(msgs):
        if not msg.features & Feature.SYSTEM:
            return index
    return len(msgs)


def starts_with(msgs: Sequence[Msg], prefix: Sequence[Msg]) -> bool:
    """Returns True if a conversation starts with another one.

    Comparing lists of identical objects is fast. The result is False if the first or the last messages are
    different objects, even if they are equal: comparing the texts of a conversation that was loaded again is slow.
    """
    count = len(prefix)
    if not count or count > len(msgs):
        return not count
    if msgs[0] is not prefix[0] or msgs[count - 1] is not prefix[-1]:
        return False
    return (msgs if count == len(msgs) else msgs[:count]) == prefix  # slicing would touch every message
