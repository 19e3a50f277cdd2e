"""Messages and conversations in the pipeline, with the origins of their blocks.

The origin of a block is the path of the block in the caller's messages, or a name if the pipeline added the block.
A `TracedMessage` is a message with its origin. A `TracedConversation` stores messages and origins in two lists
instead of one object for each message, so that long conversations are created and sliced quickly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

from agentkit.ledger.places import BlockPath
from agentkit.messages.blocks import Block
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.system_prompt import prompt_length
from agentkit.reprs import bounded_repr

__all__ = [
    "FrameOrigins",
    "MessageOrigin",
    "NormalForm",
    "Provenance",
    "TracedConversation",
    "TracedMessage",
    "block_origins",
    "starts_with",
]

Provenance: TypeAlias = BlockPath | str
"""Origin of a block: the path of an input block, or a name such as `frame` if the pipeline added the block."""


class FrameOrigins(tuple[Provenance, ...]):
    """Origins of the blocks of a history frame, which is one turn of `NAME: TEXT` lines between tags."""

    tag: str

    def __new__(cls, origins: Iterable[Provenance], tag: str) -> Self:
        """Creates the tuple. `tag` is the name of the tags around the history frame."""
        frame = super().__new__(cls, origins)
        frame.tag = tag
        return frame


MessageOrigin: TypeAlias = int | tuple[Provenance, ...]
"""Origin of a message: the index of an unchanged input message, or a tuple with the origin of each block."""


class TracedMessage(NamedTuple):
    """Message in the pipeline, with the input message or the input blocks that it comes from."""

    msg: Msg
    origin: MessageOrigin

    @property
    def block_origins(self) -> tuple[Provenance, ...]:
        """The origin of each block of the message."""
        return block_origins(self.msg, self.origin)

    @property
    def frame_tag(self) -> str:
        """The name of the tags if the message is a history frame. Empty for any other message."""
        return self.origin.tag if isinstance(self.origin, FrameOrigins) else ""

    @property
    def traced_blocks(self) -> Iterator[tuple[Block, Provenance]]:
        """Iterator over the blocks of the message, each with its origin."""
        return zip(self.msg.blocks, self.block_origins, strict=True)


@dataclass(frozen=True, slots=True)
class NormalForm:
    """Properties of the messages after the system prompt, in a conversation in normal form.

    In normal form, each tool call has exactly one result directly after the assistant turn with the call (see
    `agentkit.repair`).

    Attributes:
        features: The `Feature` bits that at least one message has.
        ordered: True if the results of each assistant turn are in one message, in the order of the tool calls.
        alternating: True if turns of the assistant alternate with other turns.
    """

    features: int
    ordered: bool
    alternating: bool

    def for_messages(self, msgs: Sequence[Msg]) -> NormalForm:
        """Returns the properties of rewritten messages. The rewriting must not change tool calls and results.

        The method does not check the tool calls and results of `msgs` again, so it is faster than the functions of
        `agentkit.repair`. `msgs` must not contain a system prompt.
        """
        features, previous_side, alternating = 0, -1, True
        for msg in msgs:
            features |= msg.features
            side = msg.features & Feature.ASSISTANT
            if side == previous_side:
                alternating = False
            previous_side = side
        return NormalForm(features, self.ordered, alternating)


@dataclass(slots=True)
class TracedConversation:
    """Conversation in the pipeline, with the origin of each message.

    Attributes:
        normal_form: The properties of the conversation if it needs no repair. None if the conversation needs
            repair or was not checked.
    """

    msgs: list[Msg]
    origins: list[MessageOrigin]
    normal_form: NormalForm | None = None

    __repr__ = bounded_repr

    @classmethod
    def of(cls, msgs: Sequence[Msg]) -> TracedConversation:
        """Returns a conversation of the caller's messages. The origin of each message is its index."""
        return cls(list(msgs), list(range(len(msgs))))

    def __iter__(self) -> Iterator[TracedMessage]:
        return map(TracedMessage, self.msgs, self.origins)

    def get(self, index: int) -> TracedMessage:
        """Returns one message with its origin."""
        return TracedMessage(self.msgs[index], self.origins[index])

    def add(self, msg: Msg, origin: MessageOrigin) -> None:
        """Appends one message with its origin."""
        self.msgs.append(msg)
        self.origins.append(origin)

    def extend(self, other: TracedConversation) -> None:
        """Appends all messages of another conversation with their origins."""
        self.msgs += other.msgs
        self.origins += other.origins

    def insert(self, index: int, msg: Msg, origin: MessageOrigin) -> None:
        """Inserts one message with its origin before the message at `index`."""
        self.msgs.insert(index, msg)
        self.origins.insert(index, origin)

    def part(self, start: int, stop: int | None = None) -> TracedConversation:
        """Returns the messages from `start` up to, but not including, `stop`. None means the end."""
        return TracedConversation(self.msgs[start:stop], self.origins[start:stop])

    def has_feature(self, mask: int) -> bool:
        """Returns True if any message has at least one of the `Feature` bits in `mask`."""
        if self.normal_form is None:
            return any(msg.features & mask for msg in self.msgs)
        if self.normal_form.features & mask:
            return True
        return any(msg.features & mask for msg in self.msgs[: prompt_length(self.msgs)])


def block_origins(msg: Msg, origin: MessageOrigin) -> tuple[Provenance, ...]:
    """Returns the origin of each block of a message. `origin` is the origin of the whole message."""
    if isinstance(origin, int):
        count = 1 if isinstance(msg.content, str) else len(msg.content)
        return tuple((origin, index) for index in range(count))
    return origin


def starts_with(msgs: Sequence[Msg], prefix: Sequence[Msg]) -> bool:
    """Returns True if `msgs` starts with the messages of `prefix`.

    The first and the last message of `prefix` must be the same objects as in `msgs`. Otherwise, the result is
    False, without a slow comparison of all texts.
    """
    count = len(prefix)
    if not count or count > len(msgs):
        return not count
    if msgs[0] is not prefix[0] or msgs[count - 1] is not prefix[-1]:
        return False
    return (msgs if count == len(msgs) else msgs[:count]) == prefix  # without a slice, the comparison is faster
