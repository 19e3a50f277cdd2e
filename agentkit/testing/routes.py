"""Routes that assign URL paths to the fake services of the providers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import cast

from agentkit.argument_checks import check_option
from agentkit.models.registry import Provider, iter_providers
from agentkit.reprs import bounded_repr
from agentkit.testing.service import FakeService

__all__ = ["Route", "RouteMatch", "find_provider", "find_route", "load_routes"]


@dataclass(frozen=True, slots=True)
class Route:
    """Assignment of a URL path to a fake service.

    Attributes:
        provider: Name of the provider or cloud, as passed to `LoopbackServer.url`.
        path: Regular expression that matches the complete path. The path is percent-decoded before matching. The
            optional group `model` matches the name of the model. The optional group `verb` matches the part of the
            path that names the operation.
        service: Fake service that answers requests to the path.
        base: Path of the base URL for the provider's SDK client.
    """

    provider: str
    path: str
    service: FakeService
    base: str = ""

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """Route that matches the path of a request.

    Attributes:
        provider: Name of the provider or cloud.
        service: Fake service of the route.
        model: Model name in the path. Empty if the path has no model name.
        verb: Name of the operation in the path. Empty if the path names no operation.
    """

    provider: str
    service: FakeService
    model: str
    verb: str


def load_routes() -> tuple[Route, ...]:
    """Returns the routes of all installed providers.

    The routes are the constant `ROUTES` of the module that `Provider.testing` names. Providers without such a
    module are skipped.

    Raises:
        OptionError: If the `ROUTES` of a provider is not a tuple of `Route` objects.
    """
    modules = dict.fromkeys(module for _, module in _find_services(tuple(sys.path)))
    return tuple(route for name in modules for route in _load_module_routes(name))


@lru_cache(maxsize=8)
def _find_services(_path: tuple[str, ...]) -> list[tuple[Provider, str]]:
    """Returns each provider that has fake services, with the name of the module that contains these services.

    The result is cached for each value of `sys.path`, because reading all installed distributions takes 15 ms.
    """
    return [(provider, provider.testing) for provider in iter_providers() if provider.testing]


def _load_module_routes(name: str) -> tuple[Route, ...]:
    routes: object = import_module(name).ROUTES
    check_option(f"{name}.ROUTES", routes, tuple)
    for index, route in enumerate(cast("tuple[object, ...]", routes)):
        check_option(f"{name}.ROUTES[{index}]", route, Route)
    return cast("tuple[Route, ...]", routes)


def find_provider(name: str) -> Provider:
    """Returns the provider whose wire format a fake service uses.

    Args:
        name: Value of `Route.provider`: name of a provider or of a cloud, such as `bedrock`. For a cloud, the
            result is the provider whose `ROUTES` contain a route of the cloud.
    """
    providers = [
        provider
        for provider, module in _find_services(tuple(sys.path))
        if any(route.provider == name for route in _load_module_routes(module))
    ]
    return next((provider for provider in providers if provider.name == name), providers[0])


def find_route(path: str, routes: Iterable[Route] | None = None) -> RouteMatch | None:
    """Finds the first route that matches a path. Returns None if no route matches.

    Args:
        path: Percent-decoded path of a request, without the query.
        routes: Routes to search, in order. None means the routes of all installed providers.
    """
    for route in load_routes() if routes is None else routes:
        if match := re.fullmatch(route.path, path):
            groups = match.groupdict()
            return RouteMatch(route.provider, route.service, groups.get("model") or "", groups.get("verb") or "")
    return None
