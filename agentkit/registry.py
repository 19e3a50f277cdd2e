"""Providers, found through the entry-point group `agentkit.providers`: ours and anybody's alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from agentkit.errors import ProviderError
from agentkit.formatting import FormatterBase

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Provider", "available_providers", "load_provider"]

GROUP = "agentkit.providers"


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider's package offers: its name, and a formatter for a chat and for many agents."""

    name: str
    chat: type[FormatterBase]
    multi_agent: type[FormatterBase]


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
        raise ProviderError(name, "it is not installed", available_providers())
    try:
        loaded: object = point.load()
    except (ImportError, AttributeError) as error:
        raise ProviderError(name, f"its package does not load ({error})", available_providers()) from error
    if not isinstance(loaded, Provider):
        raise ProviderError(name, f"{point.value} is no Provider", available_providers())
    return loaded
