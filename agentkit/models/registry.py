"""`Provider`, and functions that load installed providers from the entry-point group `agentkit.providers`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from agentkit.argument_checks import check_option, check_text, find_closest
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

__all__ = ["Provider", "available_providers", "iter_providers", "load_provider", "resolve_model"]

GROUP = "agentkit.providers"
DISTRIBUTION = "agentkit-middleware"
"""Name of the distribution with the built-in providers. Other distributions cannot replace these providers."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Formatters, parser and endpoint of a provider.

    A provider package declares its `Provider` as an entry point in the group `agentkit.providers`.

    Attributes:
        name: Name of the provider, as in `load_provider(NAME)` and `ChatModel("NAME:MODEL")`.
        chat_formatter: Formatter class for one agent.
        multi_agent_formatter: Formatter class for many agents.
        parser: Parser class for replies. None if the package cannot parse replies.
        endpoint: Endpoint class. None if the package cannot call models.
        load_native: Function that converts native messages, or a complete request, to a list of `Msg`. The
            function ignores cache markers. None if the package cannot load logs.
        models: Regular expression for the start of the provider's model names. If a user passes a matching name
            such as `gpt-4o` as the provider, the error suggests `openai:gpt-4o`.
        testing: Dotted name of the module whose `ROUTES` lists fake services for tests. None if `LoopbackServer`
            cannot imitate the provider.
        error_patterns: Codes and texts of the API's errors. By default, only the HTTP status selects the error
            class.

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
        """Names of the keys in the provider's requests."""
        return self.chat_formatter.base.layout

    def __post_init__(self) -> None:
        check_option("provider.name", self.name, str)
        check_option("provider.load_native", self.load_native, Callable | None)
        check_option("provider.models", self.models, str | None)
        check_option("provider.testing", self.testing, str | None)
        check_option("provider.error_patterns", self.error_patterns, ErrorPatterns)
        for name, base, is_required in _CLASSES:
            value: object = getattr(self, name)
            if is_required or value is not None:
                _check_class(f"provider.{name}", value, base)


_CLASSES = (
    ("chat_formatter", FormatterBase, True),
    ("multi_agent_formatter", FormatterBase, True),
    ("parser", StreamParserBase, False),
    ("endpoint", EndpointBase, False),
)
"""Fields of `Provider` whose values are classes.

Each tuple has the name of the field, the base class of the value, and True if the field is required.
"""


def _check_class(place: str, value: object, base: type) -> None:
    if not isinstance(value, type) or not issubclass(value, base):
        reason = f"expected a subclass of {base.__name__}, got {shorten_repr(value, 60)}"
        raise OptionError(place, reason, f"Pass a class that is derived from {base.__name__}.")


def available_providers() -> list[str]:
    """Returns the names of all installed providers, sorted."""
    return sorted(_find_entry_points())


def _find_entry_points() -> dict[str, list[EntryPoint]]:
    """Returns the entry points of all installed distributions, by provider name."""
    from importlib.metadata import entry_points  # imported here, because the import is slow

    by_name: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        by_name.setdefault(point.name, []).append(point)
    return by_name


@cache
def load_provider(name: str) -> Provider:
    """Returns the installed provider with the given name.

    If another distribution uses the name of a built-in provider, issues a warning and returns the built-in
    provider.

    Raises:
        ProviderError: If the name is unknown, if two distributions use the name, if the import fails, or if the
            entry point is not a `Provider`.

    """
    check_option("provider", name, str)
    points = _find_entry_points().get(name)
    if not points:
        raise ProviderError(name, f"no such provider{_suggest(name)}", available_providers())
    point = _select(name, points)
    try:
        loaded: object = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the import of a module can raise any exception
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        reason = f"the package cannot be imported ({cause})"
        raise ProviderError(name, reason, available_providers()) from error
    if not isinstance(loaded, Provider):
        reason = f"the entry point {point.value!r} must be a Provider, got {shorten_repr(loaded, 60)}"
        raise ProviderError(name, reason, available_providers())
    return loaded


def resolve_model(provider: str | Provider, model: str | None) -> tuple[Provider, str]:
    """Returns the provider and the model name.

    `provider` can have the format "PROVIDER:MODEL". Raises OptionError if `model` and `provider` both name a
    model, or if neither of them names a model.
    """
    check_option("provider", provider, str | Provider)
    check_text("model", model)
    if isinstance(provider, str):
        name, _, suffix = provider.partition(":")
        if suffix and model is not None:
            reason = f"cannot be combined with {provider!r}, which names a model"
            raise OptionError("model", reason, "Pass the name of the model once.")
        model = model if model is not None else suffix or None
        provider = load_provider(name)
    if not model:
        advice = f"Pass '{provider.name}:MODEL' as the provider, or pass the name as `model`."
        raise OptionError("model", "no model name was passed", advice)
    return provider, model


def _select(name: str, points: list[EntryPoint]) -> EntryPoint:
    """Returns the entry point of the built-in provider, or else the only entry point with the name.

    Raises ProviderError if several distributions use the name, and none of them is built-in.
    """
    built_in = next((point for point in points if _get_distribution(point) == DISTRIBUTION), None)
    others = [point for point in points if point is not built_in]
    if built_in is not None:
        for other in others:
            reason = f"distribution {_get_distribution(other)!r} cannot replace the built-in provider {name!r}"
            warnings.warn(f"agentkit: {reason}. The built-in provider is used.", stacklevel=3)
        return built_in
    if len(others) > 1:
        names = " and ".join(repr(_get_distribution(other)) for other in others)
        reason = f"the distributions {names} each have a provider with this name. Uninstall all except one"
        raise ProviderError(name, reason, available_providers())
    return others[0]


def _get_distribution(point: EntryPoint) -> str:
    """Returns the normalized name of an entry point's distribution (PyPA specification of names).

    If the name is unknown, returns `unknown (VALUE)` with the value of the entry point.
    """
    name: object = None
    with suppress(Exception):  # in a damaged installation, metadata can be missing or have a wrong type
        if point.dist is not None and "Name" in point.dist.metadata:  # the name of `dist` warns if it is missing
            name = point.dist.name
    return re.sub(r"[-_.]+", "-", name).lower() if isinstance(name, str) else f"unknown ({point.value})"


def _suggest(name: str) -> str:
    """Returns advice for an unknown provider name.

    For the name of a model, the advice is `PROVIDER:MODEL`. For other names, the advice is a similar provider
    name, or an empty string.
    """
    for provider in iter_providers():
        if provider.models and _matches(provider.models, name):
            return f". For a model, write '{provider.name}:{name}'"
    similar = find_closest(name.strip().lower(), available_providers())
    return f". Did you mean {similar!r}?" if similar else ""


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.match(pattern, name) is not None
    except re.error:  # the pattern of a third-party provider can be invalid
        return False


def iter_providers() -> Iterator[Provider]:
    """Yields the installed providers, sorted by name. Skips providers that fail to load."""
    for name in available_providers():
        with suppress(ProviderError, Warning):
            yield load_provider(name)
