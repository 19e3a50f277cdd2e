"""Counting by what the provider reported last, and an estimate of what came since."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, cast

from agentkit.argument_checks import check_option
from agentkit.capabilities.wire_layout import CACHE_MARKERS
from agentkit.errors import OptionError
from agentkit.tokens.counters import (
    CharacterTokenCounter,
    LocalTokenCounter,
    TokenCount,
    TokenCounterBase,
    prepare_counter,
)

__all__ = ["UsageAnchoredCounter"]

_CLOSING = re.compile(r"\n</[\w.-]+>")
_TURN_LISTS = ("messages", "contents", "input")


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

    def __init__(self, local: LocalTokenCounter | None = None) -> None:
        check_option("local", local, LocalTokenCounter | None)
        self.local: LocalTokenCounter = CharacterTokenCounter() if local is None else local
        self._anchor: _Anchor | None = None

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The local counter."""
        return self.local

    def anchor(self, request: Mapping[str, Any], tokens: int) -> None:
        """Remember what the provider said that this request took."""
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 1:
            reason = f"{tokens!r} is no number of tokens that a request took"
            raise OptionError("tokens", reason, "Give what the reply's usage says; without one, anchor nothing.")
        head, parts = _digests(request)
        self._anchor = _Anchor(head, parts, tokens, self.local.measure(request))

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """The tokens of the whole request; exact only for the anchored request itself."""
        await prepare_counter(self.local)
        measured, last = self.local.measure(request), self._anchor
        if last is None:
            return TokenCount(measured, ("no usage was reported yet: a local estimate",))
        head, parts = _digests(request)
        if head == last.head and parts == last.parts:
            return TokenCount(last.tokens)
        if head == last.head and parts[: len(last.parts)] == last.parts:
            since = max(0, measured - last.measured)
            return TokenCount(last.tokens + since, ("what came since the last usage is a local estimate",))
        scaled = ceil(measured * last.tokens / last.measured) if last.measured else measured
        return TokenCount(scaled, ("a local estimate, scaled by the last usage",))


def _digests(request: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
    """A digest of all but the turns, and one of each part of the turns. Good in this process only."""
    name = next((name for name in _TURN_LISTS if isinstance(request.get(name), list)), "")
    parts = [part for turn in cast("list[Any]", request[name] if name else []) for part in _parts(turn)]
    if parts and isinstance(parts[-1], dict):
        last = cast("dict[str, Any]", parts[-1])
        if _CLOSING.fullmatch(str(last.get("text"))):
            parts.pop()  # what is said next stands before it
    return _digest({key: part for key, part in request.items() if key != name}), tuple(map(_digest, parts))


def _parts(turn: Any) -> list[Any]:
    """A turn less its parts, and each of them: a turn may grow."""
    if isinstance(turn, dict):
        whole = cast("dict[str, Any]", turn)
        for key in ("content", "parts"):
            if isinstance(whole.get(key), list):
                return [{other: item for other, item in whole.items() if other != key}, *whole[key]]
    return [turn]


def _digest(item: Any) -> int:
    """Python's own hash, which a string keeps: a request of known strings is digested without reading them."""
    if isinstance(item, dict):
        pairs = cast("dict[str, Any]", item).items()
        return hash(tuple([(key, _digest(inner)) for key, inner in pairs if key not in CACHE_MARKERS]))
    if isinstance(item, list):
        return hash(tuple(map(_digest, cast("list[Any]", item))))
    leaf: object = item
    return hash((type(leaf), leaf))
