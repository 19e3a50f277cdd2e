"""Providers, found through the entry-point group `agentkit.providers`: built in and installed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from agentkit.argument_checks import check_option, find_closest
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import OptionError, ProviderError
from agentkit.formatting.formatter import FormatterBase
from agentkit.messages.message import Msg
from agentkit.models.endpoint import EndpointBase
from agentkit.models.error_patterns import ErrorPatterns
from agentkit.replies.parser import StreamParserBase
from agentkit.reprs import bounded_repr, shorten_repr

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["Provider", "available_providers", "iter_providers", "load_provider"]

GROUP = "agentkit.providers"
DISTRIBUTION = "agentkit-middleware"
"""Distribution of the built-in providers, which no other distribution can replace."""


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider's package offers.

    name         what it is called, in `load_provider` and in `ChatModel("NAME:MODEL")`
    chat_formatter  its formatter for a chat, and `multi_agent_formatter` the one for many agents
    parser       reads its replies, whole and streamed; None: they cannot be read
    endpoint     calls its models through the official SDK; None: they cannot be called
    load_native  its own messages, or a whole request, as messages; None: they cannot be loaded
    models       a regular expression for the beginning of its models' names: whoever writes `gpt-4o` alone is told
                 to write `openai:gpt-4o`
    error_patterns  codes and texts of the API's errors; by default, the HTTP status alone decides the error class
    testing      dotted name of the module with its fake services, whose `ROUTES` a LoopbackServer serves; imported
                 by test servers alone. None: the loopback server does not serve the provider
    """

    name: str
    chat_formatter: type[FormatterBase]
    multi_agent_formatter: type[FormatterBase]
    parser: type[StreamParserBase] | None = None
    endpoint: type[EndpointBase] | None = None
    load_native: Callable[[object], list[Msg]] | None = None
    models: str | None = None
    testing: str | None = None
    error_patterns: ErrorPatterns = field(default_factory=ErrorPatterns)

    __repr__ = bounded_repr

    @property
    def layout(self) -> WireLayout:
        """The keys of the provider's requests."""
        return self.chat_formatter.base.layout

    def __post_init__(self) -> None:
        check_option("provider.name", self.name, str)
        check_option("provider.load_native", self.load_native, Callable | None)
        check_option("provider.models", self.models, str | None)
        check_option("provider.testing", self.testing, str | None)
        check_option("provider.error_patterns", self.error_patterns, ErrorPatterns)
        for name, base, is_needed in _CLASSES:
            given: object = getattr(self, name)
            if is_needed or given is not None:
                _check_class(f"provider.{name}", given, base)


_CLASSES = (
    ("chat_formatter", FormatterBase, True),
    ("multi_agent_formatter", FormatterBase, True),
    ("parser", StreamParserBase, False),
    ("endpoint", EndpointBase, False),
)
"""The fields of a Provider that are classes, the base of each, and whether a provider must have one."""


def _check_class(place: str, given: object, base: type) -> None:
    if not isinstance(given, type) or not issubclass(given, base):
        reason = f"expected a subclass of {base.__name__}, got {shorten_repr(given, 60)}"
        raise OptionError(place, reason, "Pass the class itself.")


def available_providers() -> list[str]:
    """The names of all installed providers, sorted."""
    return sorted(_claims())


def _claims() -> dict[str, list[EntryPoint]]:
    """Returns the entry points of all installed distributions, by provider name."""
    from importlib.metadata import entry_points  # slow to import, and only needed to look up a name

    claims: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        claims.setdefault(point.name, []).append(point)
    return claims


@cache
def load_provider(name: str) -> Provider:
    """Returns the provider of that name.

    An entry point of another distribution with the name of a built-in provider is ignored with a warning. Raises
    ProviderError for an unknown name, for a name that two other distributions claim, and for a provider that does
    not load, whatever its module raises.
    """
    check_option("provider", name, str)
    claims = _claims().get(name)
    if not claims:
        raise ProviderError(name, f"no such provider{_meant(name)}", available_providers())
    point = _rightful(name, claims)
    try:
        loaded: object = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may raise anything when it is imported
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        reason = f"its package does not load ({told})"
        raise ProviderError(name, reason, available_providers()) from error
    if not isinstance(loaded, Provider):
        raise ProviderError(name, f"{point.value} is no Provider", available_providers())
    return loaded


def _rightful(name: str, claims: list[EntryPoint]) -> EntryPoint:
    """Returns the entry point of a name, of all that claim the name."""
    own = next((point for point in claims if _distribution_of(point) == DISTRIBUTION), None)
    others = [point for point in claims if point is not own]
    if own is not None:
        for other in others:
            told = f"the claim of the distribution {_distribution_of(other)!r} to the provider {name!r} is ignored"
            warnings.warn(f"agentkit: {told}. The built-in provider is used.", stacklevel=3)
        return own
    if len(others) > 1:
        names = " and ".join(repr(_distribution_of(other)) for other in others)
        reason = f"the distributions {names} claim this name. Uninstall all but one of them"
        raise ProviderError(name, reason, available_providers())
    return others[0]


def _distribution_of(point: EntryPoint) -> str:
    """Returns the normalized name of an entry point's distribution (PyPA: names and normalization)."""
    name: object = None
    with suppress(Exception):  # the metadata of a damaged installation may be missing, or not be text
        name = point.dist.name if point.dist is not None else None
    return re.sub(r"[-_.]+", "-", name).lower() if isinstance(name, str) else f"unknown, with {point.value}"


def _meant(name: str) -> str:
    """Returns what an unknown name probably means: a model without its provider, or a misspelled provider."""
    for provider in iter_providers():
        if provider.models and _matches(provider.models, name):
            return f". For a model, write '{provider.name}:{name}'"
    near = find_closest(name.strip().lower(), available_providers())
    return f". Did you mean {near!r}?" if near else ""


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.match(pattern, name) is not None
    except re.error:  # of another package
        return False


def iter_providers() -> Iterator[Provider]:
    """Yields the installed providers, sorted by name, without those that do not load."""
    for known in available_providers():
        with suppress(ProviderError, Warning):
            yield load_provider(known)
