"""Limits of a target for the media of a whole request.

If a request has too many media of one kind, the oldest of them are omitted. Then each image that is too large is
replaced by a resized copy, or omitted if there is no copy. If the remaining data is still too long, the oldest
remaining media are omitted.

The amount to omit is rounded up to a multiple of a fifth of the limit. Therefore most requests of a growing
conversation omit the same media. These requests begin with the same content, so that the provider's prompt cache
stays valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.limit_steps import LIMIT_STEPS, excess, round_up_to_step
from agentkit.capabilities.media_rules import Box, Kind, MediaLimits, MediaRule
from agentkit.ledger.places import BlockPath
from agentkit.legalize.legal_message import Changes, LegalMessage
from agentkit.media.resizing import is_resizable, needs_fitting
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.sniffing import image_size
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["limit_media"]


@dataclass(frozen=True, slots=True, eq=False)
class AcceptedMedia:
    """Media item that the target accepts, with the index of its message, its path and its source."""

    message: int
    path: BlockPath
    kind: Kind
    source: Base64Source | URLSource

    @property
    def data_length(self) -> int:
        """The length of the base64 text of the media item in the request, in characters. 0 for a URL."""
        return len(self.source.data) if isinstance(self.source, Base64Source) else 0


def limit_media(
    messages: Mapping[int, LegalMessage], target: Capabilities, media: ResolvedMedia
) -> dict[int, Changes]:
    """Returns the changes that keep the media of a request within the target's limits.

    The keys of the returned dict are message indexes. `messages` maps message indexes to the messages with media,
    in the order of the request.
    """
    if _are_within(messages.values(), target):
        return {}
    items = [AcceptedMedia(index, *item) for index, legal in messages.items() for item in legal.media]
    limiting = _Limiting(target, media, items)
    for kind, rule in target.media.rules.items():
        if rule is not None and rule.limits is not None:
            limiting.limit_kind(kind, rule.limits)
    limiting.limit_total(limiting.remaining, target.media.total, "media items")
    return limiting.group_changes()


def _are_within(messages: Collection[LegalMessage], target: Capabilities) -> bool:
    sizes: dict[str, tuple[int, int]] = {}
    for legal in messages:
        for kind, (count, characters) in legal.sizes.items():
            previous = sizes.get(kind, (0, 0))
            sizes[kind] = (previous[0] + count, previous[1] + characters)
    if target.media.total and sum(characters for _, characters in sizes.values()) > target.media.total:
        return False
    return all(_is_within(messages, target.media.rules[kind], kind, *size) for kind, size in sizes.items())


def _is_within(
    messages: Collection[LegalMessage], rule: MediaRule | None, kind: str, count: int, characters: int
) -> bool:
    if rule is None or rule.limits is None:
        return True
    limits = rule.limits
    if (limits.count and count > limits.count) or (limits.total and characters > limits.total):
        return False
    box = limits.box(count)
    return all(_fits_box(legal, kind, box) for legal in messages)


def _fits_box(legal: LegalMessage, kind: str, box: Box) -> bool:
    fits = legal.box_checks.get((kind, box))
    if fits is None:
        items = [source for _, item_kind, source in legal.media if item_kind == kind]
        data = [source for source in items if isinstance(source, Base64Source)]
        fits = legal.box_checks[kind, box] = not any(needs_fitting(source, box) for source in data)
    return fits


@dataclass(slots=True)
class _Limiting:
    """Working state of `limit_media`: the remaining media, and the changes to the messages of a request."""

    target: Capabilities
    media: ResolvedMedia
    remaining: list[AcceptedMedia]
    changes: dict[tuple[int, BlockPath], str | Base64Source] = field(default_factory=dict[Any, Any])

    def group_changes(self) -> dict[int, Changes]:
        groups: dict[int, dict[BlockPath, str | Base64Source]] = {}
        for (message, path), change in self.changes.items():
            groups.setdefault(message, {})[path] = change
        return {**groups}

    def limit_kind(self, kind: str, limits: MediaLimits) -> None:
        """Omits or resizes media of one kind until they are within the limits."""
        items = self._list_kind(kind)
        reason = f"{self.target.name} accepts at most {limits.count} media items of this kind in one request"
        self._omit(items[: excess(len(items), limits.count)], reason)
        box = limits.box(len(self._list_kind(kind)))
        self.remaining = [
            fitted
            for item in self.remaining
            for fitted in (self._resize(item, box) if item.kind == kind else [item])
        ]
        self.limit_total(self._list_kind(kind), limits.total, f"{kind} items")

    def limit_total(self, items: Sequence[AcceptedMedia], total: int, noun: str) -> None:
        """Omits the oldest media until the remaining media have at most `total` characters of data.

        If `total` is 0, there is no limit.
        """
        if not total:
            return
        surplus = sum(item.data_length for item in items) - total
        wanted = round_up_to_step(surplus, max(total // LIMIT_STEPS, 1))
        sums = accumulate((item.data_length for item in items), initial=0)
        pairs = zip(items, sums, strict=False)
        omitted = [item for item, previous in pairs if previous < wanted and item.data_length]
        self._omit(omitted, f"{self.target.name} accepts no more data of {noun} in one request")

    def _list_kind(self, kind: str) -> list[AcceptedMedia]:
        return [item for item in self.remaining if item.kind == kind]

    def _resize(self, item: AcceptedMedia, box: Box) -> Iterator[AcceptedMedia]:
        """Yields the media item unchanged or resized.

        Yields nothing if the image is too large and cannot be resized, or if the image will be resized later. The
        length of a later copy is not known yet, so the copy does not count toward the limits.
        """
        source = item.source
        if isinstance(source, URLSource) or not needs_fitting(source, box):
            yield item
            return
        smaller = self.media.fits.get((id(source), box))
        if smaller is None and self.media.resizes and is_resizable(source):
            return
        self.changes[item.message, item.path] = smaller or self._describe_too_large(source)
        if smaller is not None:
            yield replace(item, source=smaller)

    def _describe_too_large(self, source: Base64Source) -> str:
        size = image_size(source)
        pixels = f" ({size[0]} x {size[1]} pixels)" if size else ""
        return f"the data is larger than {self.target.name} accepts{pixels}"

    def _omit(self, items: Sequence[AcceptedMedia], reason: str) -> None:
        self.changes.update({(item.message, item.path): reason for item in items})
        omitted = {id(item) for item in items}
        self.remaining = [item for item in self.remaining if id(item) not in omitted]
