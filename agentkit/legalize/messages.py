"""Rewrites messages so that they obey the rules of a target.

`legalize_content` rewrites all messages of a request. `legalize_message` rewrites one message, and caches the
result on the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.provenance import FrameOrigins, TracedConversation, TracedMessage
from agentkit.legalize.blocks import BlockLegalizer, list_features
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.legal_message import Changes, LegalMessage
from agentkit.legalize.media import OnLoss, accepted_key
from agentkit.legalize.media_limits import limit_media
from agentkit.legalize.opaque_pairs import omit_half_pairs
from agentkit.legalize.promotion import TracedMedia, build_media_turn
from agentkit.media.message_media import get_media
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import MediaBlock, TextBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role
from agentkit.messages.message_cache import get_cached, set_cached
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["legalize_content", "legalize_message"]


def legalize_content(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Rewrites each message to obey the target's rules. This is a pipeline stage.

    The stage first applies the media limits of the whole request, then the rules for single blocks. Media that the
    target accepts only from the user move to a separate user turn.
    """
    return _Legalizing(context).run(conversation)


class _Legalizing:
    """Working state of `legalize_content`.

    Attributes:
        features: The bits of `Feature` that mark messages which the rules may change.
        promoted: The media that the next separate user turn will contain.
        call_ids: The call ids of the last assistant turn with tool calls.
        legal_messages: Maps message indexes to rewritten messages with media. The media limits of the whole
            request are not applied to these messages.
        changes: Maps message indexes to the changes that the media limits of the whole request require.
    """

    def __init__(self, context: StageContext) -> None:
        self.context = context
        self.target = context.target
        self.features = list_features(self.target)
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
        if self.has_promoted:  # the added user turn may separate a request of a provider tool from its response
            return omit_half_pairs(self.legal, self.context)
        return self.legal

    def _limit_media(self, system: TracedConversation, turns: TracedConversation) -> None:
        media, facts = Feature.MEDIA | Feature.RESULT_MEDIA, turns.normal_form
        has_media = facts is None or facts.features & media or any(msg.features & media for msg in system.msgs)
        if not has_media or not self.target.media.has_limits:
            return
        for start, part in (0, system), (len(system.msgs), turns):
            for index, msg in enumerate(part.msgs):
                if msg.features & media:
                    self.legal_messages[start + index] = self._legalize_alone(part.get(index))
        self.changes = limit_media(self.legal_messages, self.target, self.context.media)

    def _legalize_turns(self, turns: TracedConversation, start: int) -> None:
        count = self._count_unchanged(turns, start)
        if count == len(turns.msgs) and not self.promoted:
            self.legal.turns = turns
            return
        out = self.legal.turns = turns.part(0, count)
        self.call_ids = next((msg.tool_ids for msg in reversed(out.msgs) if msg.features & Feature.CALL), ())
        self._promote()
        relevant = self.features | Feature.CALL
        for index, msg in enumerate(turns.msgs[count:], count):
            if self.promoted and not msg.features & Feature.RESULT:
                self._promote()
            if not msg.features & relevant:
                out.msgs.append(msg)
                out.origins.append(turns.origins[index])
                continue
            legal = self._legalize(turns.get(index), start + index)
            if legal is None:
                continue
            if legal.msg.features & Feature.CALL:
                self.call_ids = legal.msg.tool_ids
            out.add(*legal)
        self._promote()
        # The rewritten calls and results are in the same order, so the order is not checked again.
        out.normal_form = turns.normal_form.for_messages(out.msgs) if turns.normal_form else None

    def _count_unchanged(self, turns: TracedConversation, start: int) -> int:
        """Returns the number of messages before the first message that changes or needs a note in the ledger."""
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

    def _legalize_alone(self, traced: TracedMessage, changes: Changes | None = None) -> LegalMessage:
        tag = traced.frame_tag
        return legalize_message(traced.msg, self.target, self.context.on_loss, self.context.media, changes, tag)

    def _legalize(self, traced: TracedMessage, index: int) -> TracedMessage | None:
        """Returns the rewritten message, or None if no block remains.

        The ledger receives the notes about the message. Media that must move are added to `promoted`.
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
                self.context.ledger.note(origin + path[1:] if len(origin) == 2 else origin, note)
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
        if self.target.tools.results_in_order:
            positions = {call_id: position for position, call_id in enumerate(self.call_ids)}
            self.promoted.sort(key=lambda pair: positions.get(pair[0].call_id, -1))
        self.legal.turns.add(*build_media_turn(self.promoted, self.context.ledger))
        self.promoted, self.has_promoted = [], True


# -- one message ----------------------------------------------------------------------------------------------


def legalize_message(
    msg: Msg,
    capabilities: Capabilities,
    on_loss: OnLoss,
    media: ResolvedMedia,
    changes: Changes | None = None,
    frame_tag: str = "",
) -> LegalMessage:
    """Returns a message rewritten to obey the target's rules for single messages.

    The result is cached on the message if it depends only on the message and its files. `changes` are the changes
    that the media limits of the whole request require. `frame_tag` is the tag name of a history frame, or empty
    for any other message.
    """
    key = _cache_key(capabilities, on_loss)
    cached = None if changes else cast("_CachedMessage | None", get_cached(msg, key))
    if cached is not None and cached.is_self_contained:
        return cached.legal
    role: Role = "assistant" if msg.features & Feature.CALL else msg.role
    files = None if changes or frame_tag else _list_files(msg, media)
    if files is None:
        accepted = None if changes else _find_accepted(msg, capabilities, role)
        return accepted or BlockLegalizer(capabilities, on_loss, media, changes or {}, role, frame_tag).run(msg)
    if cached is None or len(cached.files) != len(files) or not all(map(is_, cached.files, files)):
        legal = BlockLegalizer(capabilities, on_loss, media, {}, role, frame_tag).run(msg)
        cached = _CachedMessage(legal, files, get_media(msg).closed)
        set_cached(msg, key, cached)
    return cached.legal


@lru_cache(512)
def _cache_key(capabilities: Capabilities, on_loss: OnLoss) -> object:
    """Returns the key under which a message caches its rewritten form.

    Equal arguments return the same object, which makes cache lookups fast.
    """
    return object()


@dataclass(frozen=True, slots=True)
class _CachedMessage:
    """Rewritten message in the cache of the original message.

    Attributes:
        files: The content of the files that the message refers to. After a change of a file, the cached message is
            not used.
        is_self_contained: True if the message contains the data of all its media.
    """

    legal: LegalMessage
    files: Sequence[object]
    is_self_contained: bool


def _list_files(msg: Msg, media: ResolvedMedia) -> list[object] | None:
    """Returns the content of the files that a message refers to.

    Returns None if the message also needs a download, or if its files were not read yet.
    """
    contents: list[object] = []
    for block in get_media(msg).blocks:
        if isinstance(block.source, URLSource) and (scheme := block.source.scheme) != "data":
            is_fetched = scheme != "file" and (media.fetches or block.source in media.files)
            if is_fetched or (scheme == "file" and media.assume):
                return None
            if scheme == "file":
                contents.append(media.resolve(block.source))
    return contents


def _find_accepted(msg: Msg, capabilities: Capabilities, role: Role) -> LegalMessage | None:
    """Returns the message unchanged if each block is a text, or a media item that the target accepted before.

    Returns None if the message has any other block.
    """
    key, legal = accepted_key(capabilities, role), LegalMessage(msg)
    for index, block in enumerate(msg.blocks):
        if type(block) is TextBlock:
            if block.state is not None or not block.text or block.text.isspace():
                return None
            continue
        source: object = getattr(block, "source", None)
        if type(source) is not Base64Source or source.cache.get(key) != block.type:
            return None
        media_block = cast("MediaBlock", block)
        if media_block.state is not None:
            return None
        legal.add_media((index,), media_block.type, source)
    legal.origins = tuple(range(len(msg.blocks)))
    return legal if legal.media else None
