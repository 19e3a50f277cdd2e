"""`LegalConversation`: a conversation that obeys the rules of a target, and how its messages are rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import FrameOrigins, TracedConversation, TracedMessage
from agentkit.legalize.blocks import list_features
from agentkit.legalize.legal_message import Changes, LegalMessage
from agentkit.legalize.media import OnLoss
from agentkit.legalize.media_limits import limit_media
from agentkit.legalize.messages import legalize_message
from agentkit.legalize.opaque_pairs import drop_half_pairs
from agentkit.legalize.promotion import TracedMedia, build_media_turn
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.repair.normal_form import find_normal_form
from agentkit.reprs import bounded_repr

__all__ = ["LegalConversation", "legalize_messages", "split_results"]


@dataclass(slots=True)
class LegalConversation:
    """Conversation that obeys the rules of a target.

    In a turn with tool results, the results come before all other blocks. A turn with tool calls counts as an
    assistant turn, even if its message has another role.

    Attributes:
        system: The system prompt.
        turns: The messages after the system prompt.
        call_ids: The original id of each tool call whose id changed.
        tool_names: The original name of each tool whose name changed.
        speakers: For each speaker whose name the API refuses, the name in the request.
    """

    system: TracedConversation
    turns: TracedConversation
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])
    speakers: dict[str, str] = field(default_factory=dict[str, str])

    __repr__ = bounded_repr

    def with_turns(self, turns: TracedConversation) -> LegalConversation:
        """Returns a copy with other turns. Returns the same object if the turns are the same object."""
        if turns is self.turns:
            return self
        return LegalConversation(self.system, turns, self.call_ids, self.tool_names, self.speakers)


def split_results(msg: Msg) -> tuple[tuple[ToolResultBlock, ...], Msg | None]:
    """Splits a turn into its tool results and a user message with all other blocks.

    The user message is None if the turn has only results.
    """
    if not msg.features & (Feature.OTHER | Feature.CALL):
        return cast("tuple[ToolResultBlock, ...]", msg.content), None
    others = tuple(block for block in msg.blocks if not isinstance(block, ToolResultBlock))
    return msg.tool_results, build_trusted(msg.name, others, "user")


def legalize_messages(
    conversation: LegalConversation,
    ledger: Ledger,
    capabilities: Capabilities,
    on_loss: OnLoss,
    media: ResolvedMedia,
) -> LegalConversation:
    """Returns the conversation with each message rewritten to the target's rules.

    The function first applies the limits for all media of the request, then the rules for the blocks. Media that
    the target refuses in a message, but accepts from the user, move to a separate user turn.
    """
    return _Legalizing(ledger, capabilities, on_loss, media).run(conversation)


class _Legalizing:
    """State while one conversation is rewritten.

    Attributes:
        features: The bits of `Feature` that mark messages which the rules may change.
        promoted: The media that wait for the next separate user turn.
        has_promoted: True if any media were moved.
        call_ids: The call ids of the last assistant turn with tool calls.
        legal_messages: The messages with media, by index, before the limits for the whole request are applied.
        changes: The changes that these limits require, by index of the message.
        legal: The result, to which the messages are added one by one.
    """

    def __init__(self, ledger: Ledger, capabilities: Capabilities, on_loss: OnLoss, media: ResolvedMedia) -> None:
        self.ledger = ledger
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.media = media
        self.features = list_features(capabilities)
        self.promoted: list[TracedMedia] = []
        self.has_promoted = False
        self.call_ids: tuple[str, ...] = ()
        self.legal_messages: dict[int, LegalMessage] = {}
        self.changes: Mapping[int, Changes] = {}
        self.legal = LegalConversation(TracedConversation([], []), TracedConversation([], []))

    def run(self, conversation: LegalConversation) -> LegalConversation:
        system, turns = conversation.system, conversation.turns
        self._limit_media(system, turns)
        for index, traced in enumerate(system):
            legal = self._legalize(traced, index)
            if legal:
                self.legal.system.add(*legal)
        if self.promoted or turns.normal_form is None or turns.normal_form.features & self.features:
            self._legalize_turns(turns, len(system.msgs))
        else:
            self.legal.turns = turns
        if self.has_promoted:  # a turn of media may be inside a pair of opaque blocks
            self.legal.turns = drop_half_pairs(self.legal.turns, self.ledger, self.capabilities)
        return self.legal

    def _limit_media(self, system: TracedConversation, turns: TracedConversation) -> None:
        media, facts = Feature.MEDIA | Feature.RESULT_MEDIA, turns.normal_form
        has_media = facts is None or facts.features & media or any(msg.features & media for msg in system.msgs)
        if not has_media or not self.capabilities.media.has_limits:
            return
        for index, traced in enumerate(chain(system, turns)):
            if traced.msg.features & media:
                self.legal_messages[index] = self._legalize_alone(traced)
        self.changes = limit_media(self.legal_messages, self.capabilities, self.media)

    def _legalize_turns(self, turns: TracedConversation, start: int) -> None:
        count = self._count_unchanged(turns, start)
        if count == len(turns.msgs) and not self.promoted:
            self.legal.turns = turns
            return
        out = self.legal.turns = turns.part(0, count)
        self.call_ids = next((msg.tool_ids for msg in reversed(out.msgs) if msg.features & Feature.CALL), ())
        self._promote()
        for index, traced in enumerate(turns.part(count), start + count):
            if self.promoted and not traced.msg.features & Feature.RESULT:
                self._promote()
            legal = self._legalize(traced, index)
            if legal is None:
                continue
            if legal.msg.features & Feature.CALL:
                self.call_ids = legal.msg.tool_ids
            out.add(*legal)
        self._promote()
        out.normal_form = find_normal_form(out, 0)

    def _count_unchanged(self, turns: TracedConversation, start: int) -> int:
        """Returns the number of messages before the first one that changes or needs a note."""
        if self.promoted:
            return 0
        for index, msg in enumerate(turns.msgs):
            if not msg.features & self.features:
                continue
            if self.changes.get(start + index):
                return index
            legal = self.legal_messages.get(start + index) or self._legalize_alone(turns.get(index))
            if legal.msg is not msg or legal.notes or legal.promoted or legal.call_ids or legal.tool_names:
                return index
        return len(turns.msgs)

    # -- one message -------------------------------------------------------------------------------------------

    def _legalize_alone(self, traced: TracedMessage, changes: Changes | None = None) -> LegalMessage:
        tag = traced.frame_tag
        return legalize_message(traced.msg, self.capabilities, self.on_loss, self.media, changes, tag)

    def _legalize(self, traced: TracedMessage, index: int) -> TracedMessage | None:
        """Returns the rewritten message, or None if no block remains.

        The ledger gets the notes about the message. Media to move are added to `promoted`.
        """
        if not traced.msg.features & self.features:
            return traced
        legal = self.legal_messages.get(index)
        if legal is None or index in self.changes:
            legal = self._legalize_alone(traced, self.changes.get(index))
        self.legal.call_ids.update(legal.call_ids)
        self.legal.tool_names.update(legal.tool_names)
        if legal.msg is traced.msg and not legal.notes:
            return traced
        origins = traced.block_origins
        for path, note in legal.notes:
            origin = origins[path[0]]
            if not isinstance(origin, str):
                self.ledger.note(origin + path[1:] if len(origin) == 2 else origin, note)
        for item in legal.promoted:
            origin = origins[item.path[0]]
            self.promoted.append((item, origin if isinstance(origin, str) else origin + item.path[1:]))
        if legal.msg is None or legal.msg is traced.msg:
            return traced if legal.msg else None
        legal_origins = tuple(origins[index] for index in legal.origins)
        tag = traced.frame_tag
        return TracedMessage(legal.msg, FrameOrigins(legal_origins, tag) if tag else legal_origins)

    def _promote(self) -> None:
        if not self.promoted:
            return
        if self.capabilities.tools.results_in_order:
            positions = {call_id: position for position, call_id in enumerate(self.call_ids)}
            self.promoted.sort(key=lambda pair: positions.get(pair[0].call_id, -1))
        self.legal.turns.add(*build_media_turn(self.promoted, self.ledger))
        self.promoted, self.has_promoted = [], True
