"""Rewriting of one message to the rules of a target. The result is cached on the message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.legalize.blocks import BlockLegalizer
from agentkit.legalize.legal_message import Changes, LegalMessage
from agentkit.legalize.media import OnLoss, accepted_key
from agentkit.media.message_media import get_media
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import MediaBlock, TextBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, get_cached, set_cached
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["legalize_message"]


def legalize_message(
    msg: Msg,
    capabilities: Capabilities,
    on_loss: OnLoss,
    media: ResolvedMedia,
    changes: Changes | None = None,
    frame_tag: str = "",
) -> LegalMessage:
    """Returns a message rewritten to the rules of a target, without regard to other messages.

    The result is cached on the message if it depends only on the message and its files. `changes` keep the whole
    request within its media limits. `frame_tag` is the name of the tag if the message is a history frame.
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
    """Returns the cache key for rewritten messages.

    Equal arguments give the same object, so that cache lookups compare identities.
    """
    return object()


@dataclass(frozen=True, slots=True)
class _CachedMessage:
    """Rewritten message in the cache of the original message.

    Attributes:
        files: The content of the files that the message refers to. If a file changes, the entry is not used.
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
    """Returns the unchanged message if the target accepted all its texts and media before, else None."""
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
