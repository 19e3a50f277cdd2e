"""Routes of the fake services: which path belongs to which provider, from each provider's `testing` module."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from agentkit.argument_checks import check_option
from agentkit.models.registry import iter_providers
from agentkit.reprs import bounded_repr
from agentkit.testing.service import FakeService

__all__ = ["Route", "RouteMatch", "find_route", "load_routes"]


@dataclass(frozen=True, slots=True)
class Route:
    """Path of a fake service.

    Attributes:
        provider: Name for `LoopbackServer.url`.
        path: Regular expression of the whole path. Its optional groups are `model`, the model's name, and `verb`,
            the part of the path that selects the operation.
        service: Fake service that answers.
        base: Path of the base URL for the provider's SDK client.
    """

    provider: str
    path: str
    service: FakeService
    base: str = ""

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """Result of matching a path with a route.

    Attributes:
        provider: Provider of the route.
        service: Fake service of the route.
        model: Model named by the path; an empty string if the body names it.
        verb: Operation named by the path; an empty string if the path names none.
    """

    provider: str
    service: FakeService
    model: str
    verb: str

    def is_streamed(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Returns True if the request asks for a stream."""
        return self.service.is_streamed(self.verb, body, headers)


def load_routes() -> tuple[Route, ...]:
    """Returns the routes of all installed providers.

    Imports the `testing` module of each provider that names one, and reads its `ROUTES`.

    Raises:
        OptionError: A provider's `ROUTES` are not Route objects.
    """
    modules = dict.fromkeys(provider.testing for provider in iter_providers() if provider.testing)
    return tuple(route for name in modules for route in _load_module_routes(name))


def _load_module_routes(name: str) -> tuple[Route, ...]:
    routes: object = import_module(name).ROUTES
    check_option(f"{name}.ROUTES", routes, tuple)
    for index, route in enumerate(cast("tuple[object, ...]", routes)):
        check_option(f"{name}.ROUTES[{index}]", route, Route)
    return cast("tuple[Route, ...]", routes)


def find_route(path: str, routes: Iterable[Route] | None = None) -> RouteMatch | None:
    """Returns the match of a path, without its query; None if no route has it.

    Args:
        path: Path of a request.
        routes: Routes to search, in order. None means those of all installed providers.
    """
    for route in load_routes() if routes is None else routes:
        if match := re.fullmatch(route.path, path):
            groups = match.groupdict()
            return RouteMatch(route.provider, route.service, groups.get("model") or "", groups.get("verb") or "")
    return None
