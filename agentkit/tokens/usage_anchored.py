"""`UsageAnchoredCounter`: adds an estimate of new content to the usage that the provider reported last.

The anchor is the last request with a reported usage. To compare a new request with the anchor, the counter
compares digests of the parts of both requests. The comparison is fast, because Python caches the hashes of
strings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, cast

from agentkit.argument_checks import check_int, check_option
from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout
from agentkit.tokens.counters import (
    LocalTokenCounter,
    TokenCount,
    TokenCounterBase,
    find_layout,
    measure_request,
    prepare_counter,
)
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["UsageAnchoredCounter"]

_CLOSING_TAG = re.compile(r"\n</[\w.-]+>")


@dataclass(frozen=True, slots=True)
class _Anchor:
    """Last request whose usage the provider reported.

    Attributes:
        head: Digest of the request without its turns.
        parts: Digests of the parts of all turns.
        tokens: Prompt tokens that the provider reported.
        measured: Tokens that the local counter counted for the same request.
    """

    head: int
    parts: tuple[int, ...]
    tokens: int
    measured: int


class UsageAnchoredCounter(TokenCounterBase):
    """Counter that adds a local estimate of new content to the usage that the provider reported last.

    Call `counter.anchor(request, tokens, provider)` after each reply. `ChatModel` calls `anchor` automatically.
    The request in the last `anchor` call is the anchored request.

    If a new request begins with the anchored request, the count is the reported number of tokens plus a local
    estimate of the new parts. The comparison ignores cache markers and the closing tag of a history frame.

    For any other request, the count is the local estimate, multiplied by a factor. The factor is the reported
    number of tokens of the anchored request, divided by the local estimate of the anchored request. The counter
    stores digests, not requests.

    Attributes:
        local: Local counter that estimates tokens.
    """

    needs_layout: ClassVar[bool] = True

    def __init__(self, local: LocalTokenCounter | None = None) -> None:
        """Creates the counter.

        Args:
            local: Local counter that estimates tokens. If None, a `CharacterTokenCounter` is used.

        Raises:
            OptionError: `local` is not a local counter.
        """
        check_option("local", local, LocalTokenCounter | None)
        self.local: LocalTokenCounter = CharacterTokenCounter() if local is None else local
        self._anchor: _Anchor | None = None

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The counter `local`, which a budget uses to decide how many messages to omit."""
        return self.local

    def anchor(self, request: Mapping[str, Any], tokens: int, provider: LayoutSource) -> None:
        """Stores the tokens that the provider reported for a request.

        Args:
            request: Request that was sent, such as `plan.request`.
            tokens: Prompt tokens of the reply's usage, cached tokens included.
            provider: Provider that the request is for, or its formatter or `WireLayout`.

        Raises:
            OptionError: `tokens` is not a positive integer, or `provider` has no layout.
        """
        check_int("tokens", tokens, 1, "Pass the prompt tokens of the reply's usage.")
        layout = as_layout(provider)
        head, parts = _digest_request(request, layout)
        self._anchor = _Anchor(head, parts, tokens, measure_request(self.local, request, layout))

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Counts the tokens of a request. The count is exact only for the last request passed to `anchor`.

        Args:
            request: Keyword arguments of the SDK's call.
            provider: Provider that the request is for, or its formatter or `WireLayout`.

        Raises:
            OptionError: `provider` is missing.
        """
        layout = find_layout(self, provider)
        await prepare_counter(self.local)
        measured, last = measure_request(self.local, request, layout), self._anchor
        if last is None:
            return TokenCount(measured, ("local estimate: no usage was reported yet",))
        head, parts = _digest_request(request, layout)
        if head == last.head and parts == last.parts:
            return TokenCount(last.tokens)
        if head == last.head and parts[: len(last.parts)] == last.parts:
            new = max(0, measured - last.measured)
            return TokenCount(last.tokens + new, ("tokens after the last reported usage are estimated locally",))
        scaled = ceil(measured * last.tokens / last.measured) if last.measured else measured
        return TokenCount(scaled, ("local estimate, scaled by the last reported usage",))


def _digest_request(request: Mapping[str, Any], layout: WireLayout) -> tuple[int, tuple[int, ...]]:
    """Returns a digest of the request without its turns, and a digest of each part of the turns.

    If a chat template wrote the request, the parts are the lines of its text. The digests are valid in this
    process only, because Python randomizes hashes.
    """
    if layout.is_rendered:
        parts: list[Any] = str(request.get(layout.turns, "")).splitlines(keepends=True)
    else:
        parts = [part for turn in layout.read_turns(request) for part in _split_turn(turn, layout)]
    if parts and isinstance(parts[-1], dict):
        last = cast("dict[str, Any]", parts[-1])
        if any(_CLOSING_TAG.fullmatch(str(last.get(key))) for key in layout.texts):
            parts.pop()  # the next request may contain more lines of the history before this tag
    others = {key: part for key, part in request.items() if key != layout.turns}
    markers = layout.cache_markers
    return _digest(others, markers), tuple([_digest(part, markers) for part in parts])


def _split_turn(turn: Any, layout: WireLayout) -> list[Any]:
    """Splits a turn into a list: the turn without its content parts, and then each content part.

    The parts are separate items, because a later request can add parts to the same turn.
    """
    if isinstance(turn, dict):
        fields = cast("dict[str, Any]", turn)
        for key in layout.parts:
            if isinstance(fields.get(key), list):
                return [{other: item for other, item in fields.items() if other != key}, *fields[key]]
    return [turn]


def _digest(item: Any, markers: frozenset[str]) -> int:
    """Returns a hash of a JSON value without its cache markers."""
    if isinstance(item, dict):
        pairs = cast("dict[str, Any]", item).items()
        return hash(tuple([(key, _digest(inner, markers)) for key, inner in pairs if key not in markers]))
    if isinstance(item, list):
        return hash(tuple([_digest(inner, markers) for inner in cast("list[Any]", item)]))
    leaf: object = item
    return hash((type(leaf), leaf))
