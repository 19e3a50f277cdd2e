"""Counting by what the provider reported last, and an estimate of what came since."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, cast

from agentkit.argument_checks import check_option
from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout
from agentkit.errors import OptionError
from agentkit.tokens.counters import (
    CharacterTokenCounter,
    LocalTokenCounter,
    TokenCount,
    TokenCounterBase,
    find_layout,
    measure_request,
    prepare_counter,
)

__all__ = ["UsageAnchoredCounter"]

_CLOSING = re.compile(r"\n</[\w.-]+>")


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A request in digests, what the provider said that it took, and what the local counter says."""

    head: int
    parts: tuple[int, ...]
    tokens: int
    measured: int


class UsageAnchoredCounter(TokenCounterBase):
    """The provider's last reported usage, plus a local estimate of what the request has beyond it.

    local   who estimates; by default an estimate by characters

    After each reply: `counter.anchor(request, usage)`, with the prompt tokens that the reply reports, cached ones
    included. A request that begins with the anchored one (same tools, settings and system prompt, same parts
    first; cache markers and the closing tag of a frame aside) costs the reported tokens and the estimate of the
    rest. Any other is the local estimate, scaled by how the last usage stood to it. Keeps digests, and nothing
    of the request.
    """

    needs_layout: ClassVar[bool] = True

    def __init__(self, local: LocalTokenCounter | None = None) -> None:
        check_option("local", local, LocalTokenCounter | None)
        self.local: LocalTokenCounter = CharacterTokenCounter() if local is None else local
        self._anchor: _Anchor | None = None

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The local counter."""
        return self.local

    def anchor(self, request: Mapping[str, Any], tokens: int, provider: LayoutSource) -> None:
        """Stores the tokens that the provider reported for a request.

        Args:
            request: Request that was sent: `plan.request`.
            tokens: Prompt tokens of the reply's usage, cached tokens included.
            provider: Provider, formatter or layout that the request is for.

        Raises:
            OptionError: `tokens` is not a positive integer, or `provider` has no layout.

        """
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            reason = f"{tokens!r} is no number of tokens that a request took"
            raise OptionError("tokens", reason, "Give what the reply's usage says; without one, anchor nothing.")
        layout = as_layout(provider)
        head, parts = _digest_request(request, layout)
        self._anchor = _Anchor(head, parts, tokens, measure_request(self.local, request, layout))

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns the tokens of a request; the count is exact only for the anchored request itself.

        Args:
            request: Keyword arguments of the SDK's call.
            provider: Provider, formatter or layout that the request is for. A budget passes the layout.

        Raises:
            OptionError: `provider` is missing.

        """
        layout = find_layout(self, provider)
        await prepare_counter(self.local)
        measured, last = measure_request(self.local, request, layout), self._anchor
        if last is None:
            return TokenCount(measured, ("no usage was reported yet: a local estimate",))
        head, parts = _digest_request(request, layout)
        if head == last.head and parts == last.parts:
            return TokenCount(last.tokens)
        if head == last.head and parts[: len(last.parts)] == last.parts:
            since = max(0, measured - last.measured)
            return TokenCount(last.tokens + since, ("what came since the last usage is a local estimate",))
        scaled = ceil(measured * last.tokens / last.measured) if last.measured else measured
        return TokenCount(scaled, ("a local estimate, scaled by the last usage",))


def _digest_request(request: Mapping[str, Any], layout: WireLayout) -> tuple[int, tuple[int, ...]]:
    """Returns a digest of everything but the turns, and a digest of each part of the turns.

    Python randomizes hashes, so the digests are valid in this process only.
    """
    parts = [part for turn in layout.read_turns(request) for part in _split_turn(turn, layout)]
    if parts and isinstance(parts[-1], dict):
        last = cast("dict[str, Any]", parts[-1])
        if _CLOSING.fullmatch(str(last.get("text"))):
            parts.pop()  # the next request has new lines before this closing tag
    others = {key: part for key, part in request.items() if key != layout.turns}
    markers = layout.cache_markers
    return _digest(others, markers), tuple([_digest(part, markers) for part in parts])


def _split_turn(turn: Any, layout: WireLayout) -> list[Any]:
    """Returns a turn without its parts, and each of the parts: a turn may grow."""
    if isinstance(turn, dict):
        fields = cast("dict[str, Any]", turn)
        for key in layout.parts:
            if isinstance(fields.get(key), list):
                return [{other: item for other, item in fields.items() if other != key}, *fields[key]]
    return [turn]


def _digest(item: Any, markers: frozenset[str]) -> int:
    """Returns Python's own hash, which a string caches: known strings are not read again."""
    if isinstance(item, dict):
        pairs = cast("dict[str, Any]", item).items()
        return hash(tuple([(key, _digest(inner, markers)) for key, inner in pairs if key not in markers]))
    if isinstance(item, list):
        return hash(tuple([_digest(inner, markers) for inner in cast("list[Any]", item)]))
    leaf: object = item
    return hash((type(leaf), leaf))
