"""Providers, found through the entry-point group `agentkit.providers`: ours and anybody's alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from agentkit.endpoints import EndpointBase
from agentkit.errors import ProviderError
from agentkit.formatting import FormatterBase
from agentkit.messages import Msg
from agentkit.option_names import closest
from agentkit.reprs import bounded_repr
from agentkit.streaming import StreamParserBase

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Provider", "available_providers", "load_provider"]

GROUP = "agentkit.providers"


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider's package offers.

    name         what it is called, in `load_provider` and in `ChatModel("NAME:MODEL")`
    chat         its formatter for a chat, and `multi_agent` the one for many agents
    parser       reads its replies, whole and streamed; None: they cannot be read
    endpoint     calls its models through the official SDK; None: they cannot be called
    load_native  its own messages, or a whole request, as messages; None: they cannot be loaded
    models       a regular expression for the beginning of its models' names: whoever writes `gpt-4o` alone is told
                 to write `openai:gpt-4o`
    """

    name: str
    chat: type[FormatterBase]
    multi_agent: type[FormatterBase]
    parser: type[StreamParserBase] | None = None
    endpoint: type[EndpointBase] | None = None
    load_native: Callable[[object], list[Msg]] | None = None
    models: str | None = None

    __repr__ = bounded_repr


def available_providers() -> list[str]:
    """The names of all installed providers, sorted."""
    return sorted(_found())


def _found() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # slow to import, and only needed to look up a name

    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def load_provider(name: str) -> Provider:
    """The provider of that name. Raises ProviderError for an unknown one, or one that does not load."""
    point = _found().get(name)
    if point is None:
        raise ProviderError(name, f"no such provider{_meant(name)}", available_providers())
    try:
        loaded: object = point.load()
    except (ImportError, AttributeError) as error:
        raise ProviderError(name, f"its package does not load ({error})", available_providers()) from error
    if not isinstance(loaded, Provider):
        raise ProviderError(name, f"{point.value} is no Provider", available_providers())
    return loaded


def _meant(name: str) -> str:
    """Returns what an unknown name probably means: a model without its provider, or a misspelled provider."""
    for provider in _loadable():
        if provider.models and re.match(provider.models, name):
            return f". For a model, write '{provider.name}:{name}'"
    near = closest(name.strip().lower(), available_providers())
    return f". Did you mean {near!r}?" if near else ""


def _loadable() -> Iterator[Provider]:
    for known in available_providers():
        with suppress(ProviderError):
            yield load_provider(known)
