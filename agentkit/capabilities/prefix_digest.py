"""Digests of prefixes. The prefix of a reply is the system prompt, the tools and all turns before the reply.

Some models accept thinking in a later request only after the same prefix. The digest of the prefix is therefore
stored in each thinking block, and compared with the digest of the prefix in the later request. Cache markers, the
order of JSON keys and the tool choice do not change the digest. Digests of long texts are cached, because later
requests repeat these texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from agentkit.argument_checks import check_option
from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout

__all__ = ["PrefixDigest", "prefix_digest"]

_LONG = 4_096  # a text with at least this many characters is replaced by its digest, which is cached


def prefix_digest(request: Mapping[str, Any], provider: LayoutSource) -> str:
    """Returns the digest of a request as 32 hexadecimal digits. The request is the prefix of the reply.

    Store the digest in the state of a thinking block: `OpaqueState("anthropic", signature=…, prefix=digest)`. A
    formatter then sends the thinking back only after the same prefix. A parser to which you pass the request
    stores the digest automatically.

    Args:
        request: Request for the provider, such as `plan.request`.
        provider: Provider, formatter or request layout of the API that gets the request.

    Raises:
        OptionError: `request` is not a mapping, or `provider` has no layout.
    """
    check_option("request", request, Mapping, "Pass a request as a dict, such as plan.request.")
    layout = as_layout(provider)
    digest = PrefixDigest(request, layout)
    for turn in [request.get(layout.turns)] if layout.is_rendered else layout.read_turns(request):
        digest.add_turn(turn)
    return digest.value


class PrefixDigest:
    """Digest of a prefix: the system prompt, the tools, and the turns that `add_turn` adds."""

    def __init__(self, request: Mapping[str, Any], layout: WireLayout) -> None:
        self._layout = layout
        self._sum = sha256()
        items = dict(layout.read_items(request))
        prompt, tools = items.get(layout.prompt), items.get(layout.tools)
        if prompt:
            normal = layout.digest_prompt(prompt) if layout.digest_prompt else prompt
            self._add({layout.prompt: normal})
        if tools:
            self._add({layout.tools: tools})

    @property
    def value(self) -> str:
        """Digest of the system prompt, the tools and all added turns, as 32 hexadecimal digits."""
        return self._sum.hexdigest()[:32]

    def add_turn(self, turn: Any) -> None:
        """Adds a turn to the prefix."""
        split = self._layout.digest_turn
        parts: Iterable[Any] = (turn,) if split is None else split(turn)
        for part in parts:
            self._add(part)

    def _add(self, value: Any) -> None:
        normal = _shorten(value, self._layout.cache_markers)
        text = json.dumps(normal, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        self._sum.update(text.encode("utf-8", "surrogatepass") + b"\n")


def _shorten(value: Any, markers: frozenset[str]) -> Any:
    """Returns a copy of a JSON value without cache markers, and with digests in place of long texts."""
    if isinstance(value, str):
        return value if len(value) < _LONG else _digest(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _shorten(item, markers) for key, item in pairs if key not in markers}
    if isinstance(value, list):
        return [_shorten(item, markers) for item in cast("list[Any]", value)]
    return value


@lru_cache(64)
def _digest(text: str) -> str:
    """Returns the digest of a long text. Results are cached, because later requests contain the same texts."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
