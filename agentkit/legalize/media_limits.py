"""Limits of a target for the media of a whole request.

First each by itself: a picture that is too large goes out smaller where that was prepared, else not. Then all
together: the oldest go, in steps of a fifth of the limit. Between two steps the same ones stay away, so that
the request's beginning stands still and prompt caches keep hitting. The same history gives the same choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import (
    LIMIT_STEPS,
    Box,
    Kind,
    MediaLimits,
    MediaRule,
    excess,
    round_up_to_step,
)
from agentkit.ledger.places import BlockPath
from agentkit.legalize.legal_message import Changes, LegalMessage
from agentkit.media.resizing import is_resizable, needs_fitting
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.sniffing import image_size
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["limit_media"]


@dataclass(frozen=True, slots=True, eq=False)
class Native:
    """Media item that the target accepts: the index of its message, its path and its source."""

    message: int
    path: BlockPath
    kind: Kind
    source: Base64Source | URLSource

    @property
    def data(self) -> int:
        """The length of its base64 text in the request, in characters."""
        return len(self.source.data) if isinstance(self.source, Base64Source) else 0


def limit_media(
    tidied: Mapping[int, LegalMessage], form: Capabilities, shelf: ResolvedMedia
) -> dict[int, Changes]:
    """Returns the changes, by message index, that keep all media of a request within the limits.

    `tidied` are the messages that have media, by number, in the order of the request.
    """
    if _are_within(tidied.values(), form):
        return {}
    natives = [Native(number, *medium) for number, found in tidied.items() for medium in found.media]
    limiting = _Limiting(form, shelf, natives)
    for kind, rule in form.media.rules.items():
        if rule is not None and rule.limits is not None and any(one.kind == kind for one in natives):
            limiting.keep(kind, rule.limits)
    limiting.keep_total(limiting.left, form.media.total, "media")
    return limiting.by_message()


def _are_within(tidied: Collection[LegalMessage], form: Capabilities) -> bool:
    """Returns True if no change is needed, from sums that are cached with the messages."""
    loads: dict[str, tuple[int, int]] = {}
    for found in tidied:
        for kind, (count, data) in found.sizes.items():
            before = loads.get(kind, (0, 0))
            loads[kind] = (before[0] + count, before[1] + data)
    if form.media.total and sum(data for _, data in loads.values()) > form.media.total:
        return False
    return all(_is_within(tidied, form.media.rules[kind], kind, *load) for kind, load in loads.items())


def _is_within(tidied: Collection[LegalMessage], rule: MediaRule | None, kind: str, count: int, data: int) -> bool:
    """Returns True if `count` media of a kind with `data` characters need no change."""
    if rule is None or rule.limits is None:
        return True
    limits = rule.limits
    if (limits.count and count > limits.count) or (limits.total and data > limits.total):
        return False
    box = limits.box(count if kind == "image" else 0)
    return all(_holds(found, kind, box) for found in tidied)


def _holds(found: LegalMessage, kind: str, box: Box) -> bool:
    """Returns True if each media item of a kind in a message is small enough."""
    known = found.box_checks.get((kind, box))
    if known is None:
        data = [source for _, one, source in found.media if one == kind and isinstance(source, Base64Source)]
        known = found.box_checks[kind, box] = not any(needs_fitting(source, box) for source in data)
    return known


@dataclass(slots=True)
class _Limiting:
    """State for one request: the remaining media and the changes."""

    form: Capabilities
    shelf: ResolvedMedia
    left: list[Native]
    changes: dict[tuple[int, BlockPath], str | Base64Source] = field(default_factory=dict[Any, Any])

    def by_message(self) -> dict[int, Changes]:
        """Returns the changes by message index."""
        found: dict[int, dict[BlockPath, str | Base64Source]] = {}
        for (message, path), change in self.changes.items():
            found.setdefault(message, {})[path] = change
        return {**found}

    def keep(self, kind: str, limits: MediaLimits) -> None:
        """Applies the limits of one kind."""
        chosen = self._of(kind)
        too_many = f"{self.form.name} takes no more than {limits.count} of the kind in one request"
        self._leave_out(chosen[: excess(len(chosen), limits.count)], too_many)
        box = limits.box(len(self._of(kind)) if kind == "image" else 0)
        self.left = [one for old in self.left for one in ([old] if old.kind != kind else self._fitted(old, box))]
        self.keep_total(self._of(kind), limits.total, f"the kind {kind}")

    def keep_total(self, chosen: Sequence[Native], total: int, what: str) -> None:
        """Omits the oldest media until the others have at most `total` characters."""
        over = sum(one.data for one in chosen) - total if total else 0
        if over <= 0:
            return
        wanted = round_up_to_step(over, max(total // LIMIT_STEPS, 1))
        sums = accumulate((one.data for one in chosen), initial=0)
        gone = [one for one, before in zip(chosen, sums, strict=False) if before < wanted and one.data]
        self._leave_out(gone, f"{self.form.name} takes no more data of {what} in one request")

    def _of(self, kind: str) -> list[Native]:
        return [one for one in self.left if one.kind == kind]

    def _fitted(self, one: Native, box: Box) -> Iterator[Native]:
        """Yields the media item unchanged or resized, or nothing if it is too large."""
        source = one.source
        if isinstance(source, URLSource) or not needs_fitting(source, box):
            yield one
            return
        smaller = self.shelf.fits.get((id(source), box))
        if smaller is None and self.shelf.resizes and is_resizable(source):
            yield replace(one, source=Base64Source(source.media_type, ""))  # of a size that nobody knows yet
            return
        self.changes[one.message, one.path] = smaller or self._too_large(source)
        if smaller is not None:
            yield replace(one, source=smaller)

    def _too_large(self, source: Base64Source) -> str:
        size = image_size(source)
        shown = f" ({size[0]} x {size[1]} pixels)" if size else ""
        return f"it is larger than {self.form.name} takes{shown}"

    def _leave_out(self, gone: Sequence[Native], reason: str) -> None:
        self.changes.update({(one.message, one.path): reason for one in gone})
        absent = {id(one) for one in gone}
        self.left = [one for one in self.left if id(one) not in absent]
