"""Base classes of token counters, and `TokenCount`, the number of tokens that a counter returns.

Every counter counts the tokens of a request. A local counter needs no network and also estimates the tokens of
individual messages. A budget uses these estimates to decide how many messages to omit, without building many
requests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable, Mapping
from functools import lru_cache
from inspect import isawaitable
from typing import Any, ClassVar, Self

from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout
from agentkit.errors import OptionError
from agentkit.messages.message import Msg, get_cached, set_cached
from agentkit.reprs import shorten_repr

__all__ = [
    "LocalTokenCounter",
    "TokenCount",
    "TokenCounterBase",
    "count_request",
    "find_layout",
    "measure_request",
    "prepare_counter",
    "weight_key",
]


class TokenCount(int):
    """Number of tokens: an `int` with an additional attribute.

    Attributes:
        estimated: Short reasons why parts of the number are estimates. Empty if the number is exact.
    """

    estimated: tuple[str, ...]

    def __new__(cls, tokens: int, estimated: Iterable[str] = ()) -> Self:
        """Creates the token count. Removes duplicates from `estimated`."""
        count = super().__new__(cls, tokens)
        count.estimated = (estimated,) if isinstance(estimated, str) else tuple(dict.fromkeys(estimated))
        return count

    def __reduce__(self) -> tuple[type[TokenCount], tuple[int, tuple[str, ...]]]:
        return (type(self), (int(self), self.estimated))


class TokenCounterBase(ABC):
    """Base class of counters for the tokens of a request, including its tools and schemas.

    A subclass implements `count`. A budget calls `count` O(log n) times to fit n messages into its limit. A
    counter that needs no network should derive from `LocalTokenCounter`, which a budget uses more efficiently.
    """

    @abstractmethod
    async def count(self, request: Mapping[str, Any]) -> int:
        """Returns the number of tokens of a request.

        If parts of the number are estimates, the result should be a `TokenCount` with the reasons.

        Args:
            request: Keyword arguments of the SDK's call. The method must not change these arguments.
        """

    needs_layout: ClassVar[bool] = False
    """True if `count` and `measure` take the `WireLayout` of the request as a second argument."""
    deterministic: ClassVar[bool] = False
    """True if equal requests have equal counts. A request known to exceed the budget is then not counted again."""

    @property
    def local_counter(self) -> LocalTokenCounter:
        """Local counter that a budget uses to decide how many messages to omit.

        The default is a `CharacterTokenCounter`.
        """
        from agentkit.tokens.text_counters import ESTIMATE  # imported here to avoid an import cycle

        return ESTIMATE


async def count_request(counter: TokenCounterBase, request: Mapping[str, Any], layout: WireLayout) -> int:
    """Counts the tokens of a request with a counter of any kind, and checks the result.

    Raises:
        OptionError: `counter.count` is not asynchronous, or its result is not a number of tokens.
    """
    count: Any = counter.count
    result: object = count(request, layout) if counter.needs_layout else count(request)
    tokens = await _check_awaitable(counter, "count", result)
    return _check_tokens(tokens, f"{type(counter).__name__}.count")


def _check_awaitable(counter: TokenCounterBase, method: str, result: object) -> Awaitable[object]:
    if not isawaitable(result):
        reason = f"{type(counter).__name__}.{method} is not asynchronous"
        raise OptionError("budget.counter", reason, f"Define the method as `async def {method}`.")
    return result


def _check_tokens(tokens: object, method: str) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        reason = f"{method} returned {shorten_repr(tokens, 60)}, expected a number of tokens"
        raise OptionError("budget.counter", reason, "Return an int of at least 0.")
    return tokens


def measure_request(counter: LocalTokenCounter, request: Mapping[str, Any], layout: WireLayout) -> int:
    """Counts the tokens of a request with a local counter of any kind."""
    measure: Any = counter.measure
    tokens: int = measure(request, layout) if counter.needs_layout else measure(request)
    return tokens


def find_layout(counter: TokenCounterBase, provider: LayoutSource | None) -> WireLayout:
    """Returns the layout of a provider's requests. `counter` needs the layout to find the parts of a request.

    Raises:
        OptionError: `provider` is None or has no layout.
    """
    if provider is None:
        reason = f"missing, so {type(counter).__name__} cannot find the parts of the request"
        raise OptionError("provider", reason, "Pass load_provider(NAME) or a formatter as the second argument.")
    return as_layout(provider)


async def prepare_counter(counter: LocalTokenCounter) -> None:
    """Awaits `counter.prepare()`.

    Raises:
        OptionError: `counter.prepare` is not asynchronous.
    """
    await _check_awaitable(counter, "prepare", counter.prepare())


@lru_cache(256)
def weight_key(*terms: object) -> object:
    """Returns the key under which messages cache the token estimates of a counter.

    Calls with equal arguments return the same object, which makes cache lookups fast.
    """
    return terms


class LocalTokenCounter(TokenCounterBase):
    """Base class of counters that need no network and also estimate the tokens of individual messages.

    A budget uses `weigh` to decide how many messages to omit, and `measure` to check that the request fits. If the
    sum of all `weigh` results is close to the result of `measure`, the budget builds fewer requests.
    """

    deterministic: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    """True if `weigh` is so slow that it must run in a worker thread."""

    @abstractmethod
    def measure(self, request: Mapping[str, Any]) -> int:
        """Returns the number of tokens of a request.

        An implementation must not change the request.
        """

    @abstractmethod
    def weigh(self, msg: Msg) -> int:
        """Returns the approximate number of tokens that a message adds to a request."""

    @property
    def key(self) -> object:
        """Key under which messages cache the results of `weigh`.

        If two counters have equal keys, their `weigh` methods must return equal results.
        """
        return self

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The counter itself, because the counter is local."""
        return self

    async def prepare(self) -> None:
        """Loads the files of the counter in a worker thread. The default implementation does nothing.

        If `prepare` is not called, the first call of `measure` or `weigh` loads the files.
        """

    async def count(self, request: Mapping[str, Any]) -> int:
        """Prepares the counter, then returns `measure(request)`."""
        await prepare_counter(self)
        return self.measure(request)

    def weight(self, msg: Msg) -> int:
        """Returns `weigh(msg)`. The message caches the result.

        Raises:
            OptionError: The result of `weigh` is not a number of tokens.
        """
        key = self.key
        weight: int | None = get_cached(msg, key)
        return set_cached(msg, key, self._weigh_checked(msg)) if weight is None else weight

    def _weigh_checked(self, msg: Msg) -> int:
        tokens = self.weigh(msg)
        is_valid = type(tokens) is int and tokens >= 0
        return tokens if is_valid else _check_tokens(tokens, f"{type(self).__name__}.weigh")
