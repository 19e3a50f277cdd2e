"""Rewrites messages so that they obey the rules of a target.

`legalize_content` rewrites all messages of a request, and caches each rewritten message on the original message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import FrameOrigins, MessageOrigin, Provenance, TracedConversation
from agentkit.legalize.block_rules import BlockLegalizer, list_features
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.legal_message import Changes, LegalMessage
from agentkit.legalize.media import OnLoss, accepted_key
from agentkit.legalize.media_limits import limit_media
from agentkit.legalize.media_turns import TracedMedia, build_media_turn
from agentkit.legalize.opaque_pairs import omit_half_pairs
from agentkit.media.message_media import get_media
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import MediaBlock, TextBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, get_cached, set_cached
from agentkit.messages.sources import URLSource

__all__ = ["legalize_content"]

_MEDIA = Feature.MEDIA | Feature.RESULT_MEDIA


def legalize_content(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Rewrites each message to obey the target's rules. This is a pipeline stage.

    If the media of the whole request then exceed the target's limits, some media are omitted or resized. Media
    that the target accepts only from the user move to a separate user turn.
    """
    return _Legalizing(context).run(conversation)


class _Legalizing:
    """Working state of `legalize_content`.

    Attributes:
        features: Bits of `Feature`. The rules may change a message only if the message has one of these bits.
        cache_key: The key under which rewritten messages are cached on the original messages.
        promoted: Media that were removed from their messages. The next added user turn will contain these media.
        legal_messages: Maps message indexes to rewritten messages with media. The media limits of the whole
            request are not yet applied to these messages.
        changes: Maps message indexes to the changes that the media limits of the whole request require.
    """

    def __init__(self, context: StageContext) -> None:
        self.context = context
        self.target = context.spec.capabilities
        self.features = list_features(self.target)
        self.cache_key = _cache_key(self.target, context.on_loss)
        self.promoted: list[TracedMedia] = []
        self.has_promoted = False
        self.legal_messages: dict[int, LegalMessage] = {}
        self.changes: Mapping[int, Changes] = {}
        self.legal = LegalConversation(TracedConversation([], []), TracedConversation([], []))

    def run(self, conversation: LegalConversation) -> LegalConversation:
        system, turns = conversation.system, conversation.turns
        affected = self._list_affected(turns)
        if self.target.media.has_limits:
            self._limit_media(system, turns, affected)
        for index, (msg, origin) in enumerate(system):
            self._add(self.legal.system, msg, origin, index)
        if self.promoted or affected:
            self._legalize_turns(turns, affected, len(system.msgs))
        else:
            self.legal.turns = turns
        # A reply before an added user turn cannot be continued, so request blocks without a response are omitted.
        if self.has_promoted:
            return omit_half_pairs(self.legal, self.context)
        return self.legal

    def _list_affected(self, turns: TracedConversation) -> list[int]:
        """Returns the indexes of the turns that the rules may change."""
        features, facts = self.features, turns.normal_form
        if facts is not None and not facts.features & features:
            return []
        return [index for index, msg in enumerate(turns.msgs) if msg.features & features]

    def _limit_media(self, system: TracedConversation, turns: TracedConversation, affected: list[int]) -> None:
        for start, part, indexes in (0, system, range(len(system.msgs))), (len(system.msgs), turns, affected):
            for index in indexes:
                msg = part.msgs[index]
                if msg.features & _MEDIA:
                    self.legal_messages[start + index] = self._legalize(msg, part.origins[index])
        if self.legal_messages:
            self.changes = limit_media(self.legal_messages, self.target, self.context.media)

    def _legalize_turns(self, turns: TracedConversation, affected: list[int], start: int) -> None:
        count = self._count_unchanged(turns, affected, start)
        if count == len(turns.msgs) and not self.promoted:
            self.legal.turns = turns
            return
        out = self.legal.turns = turns.part(0, count)
        for index in range(count, len(turns.msgs)):
            msg = turns.msgs[index]
            if not msg.features & Feature.RESULT:
                self._promote()
            self._add(out, msg, turns.origins[index], start + index)
        self._promote()
        # Rewriting does not change the order of tool calls and results, so the order is not checked again.
        out.normal_form = turns.normal_form.for_messages(out.msgs) if turns.normal_form else None

    def _count_unchanged(self, turns: TracedConversation, affected: list[int], start: int) -> int:
        """Returns the number of messages before the first message that changes or needs a note in the ledger."""
        if self.promoted:
            return 0
        for index in affected:
            if self.changes.get(start + index):
                return index
            msg = turns.msgs[index]
            legal = self.legal_messages.get(start + index) or self._legalize(msg, turns.origins[index])
            if legal.msg is not msg or legal.notes:
                return index
        return len(turns.msgs)

    def _add(self, out: TracedConversation, msg: Msg, origin: MessageOrigin, index: int) -> None:
        """Rewrites a message to obey the target's rules, and adds the rewritten message to `out`.

        A message without remaining blocks is omitted. `index` is the index of the message among all messages,
        including the system prompt. The notes about the message are added to the ledger. Media that must move are
        added to `promoted`.
        """
        if not msg.features & self.features:
            out.add(msg, origin)
            return
        legal = self.legal_messages.get(index)
        if legal is None or index in self.changes:
            legal = self._legalize(msg, origin, self.changes.get(index))
        self.legal.call_ids.update(legal.call_ids)
        self.legal.tool_names.update(legal.tool_names)
        for path, note in legal.notes:
            block_origin = _find_origin(origin, path)
            if not isinstance(block_origin, str):
                self.context.ledger.note(block_origin, note)
        self.promoted += [(item, _find_origin(origin, item.path)) for item in legal.promoted]
        if legal.msg is msg:
            out.add(msg, origin)
        elif legal.msg is not None:
            origins = tuple([_find_origin(origin, (index,)) for index in legal.origins])
            tag = _find_frame_tag(origin)
            out.add(legal.msg, FrameOrigins(origins, tag) if tag else origins)

    def _promote(self) -> None:
        """Moves the media in `promoted` to a new user turn."""
        if not self.promoted:
            return
        if self.target.tools.results_in_order:
            msgs = self.legal.turns.msgs
            call_ids = next((msg.tool_ids for msg in reversed(msgs) if msg.features & Feature.CALL), ())
            positions = {call_id: position for position, call_id in enumerate(call_ids)}
            self.promoted.sort(key=lambda pair: positions.get(pair[0].call_id, -1))
        self.legal.turns.add(*build_media_turn(self.promoted, self.context.ledger))
        self.promoted, self.has_promoted = [], True

    def _legalize(self, msg: Msg, origin: MessageOrigin, changes: Changes | None = None) -> LegalMessage:
        """Returns a message rewritten to obey the target's rules for individual messages.

        The result is cached on the message if it depends only on the message and its files. `changes` are the
        changes that the media limits of the whole request require.
        """
        cached = None if changes else cast("_CachedMessage | None", get_cached(msg, self.cache_key))
        if cached is not None and cached.is_self_contained:
            return cached.legal
        target, on_loss, media = self.target, self.context.on_loss, self.context.media
        role: Role = "assistant" if msg.features & Feature.CALL else msg.role
        frame_tag = _find_frame_tag(origin)
        files = None if changes or frame_tag else _list_files(msg, media)
        if files is None:
            accepted = None if changes else _find_accepted(msg, target, role)
            return accepted or BlockLegalizer(target, on_loss, media, changes or {}, role, frame_tag).run(msg)
        if cached is None or not all(map(is_, cached.files, files)):
            legal = BlockLegalizer(target, on_loss, media, {}, role, frame_tag).run(msg)
            cached = _CachedMessage(legal, files, get_media(msg).closed)
            set_cached(msg, self.cache_key, cached)
        return cached.legal


def _find_origin(origin: MessageOrigin, path: BlockPath) -> Provenance:
    """Returns the origin of a block: the path of its input block, or a name for added content.

    `path` is the path of the block in its message. `origin` is the origin of the message.
    """
    if isinstance(origin, int):
        return (origin, *path)
    block_origin = origin[path[0]]
    return block_origin if isinstance(block_origin, str) else block_origin + path[1:]


def _find_frame_tag(origin: MessageOrigin) -> str:
    return origin.tag if isinstance(origin, FrameOrigins) else ""


@lru_cache(512)
def _cache_key(capabilities: Capabilities, on_loss: OnLoss) -> object:
    """Returns the key under which rewritten messages are cached on the original messages.

    Calls with equal arguments return the same object, which makes cache lookups fast.
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
    """Returns a `LegalMessage` with the unchanged message if no rule can change one of its blocks.

    Each block must be a text, or a media item that the target accepted before. Returns None if the message has any
    other block, a blank text, or opaque state.
    """
    if msg.features & (Feature.BLANK | Feature.STATE):
        return None
    key, legal = accepted_key(capabilities, role), LegalMessage(msg, tuple(range(len(msg.blocks))))
    for index, block in enumerate(msg.blocks):
        if isinstance(block, TextBlock):
            continue
        if not isinstance(block, MediaBlock) or block.state is not None:
            return None
        source = block.source
        if isinstance(source, URLSource) or source.cache.get(key) != block.type:
            return None
        legal.add_media((index,), block.type, source)
    return legal
