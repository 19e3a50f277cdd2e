"""Base classes of token counters, and `TokenCount`, the number of tokens that a counter returns.

A counter reads a request. A local counter needs no I/O and also weighs single messages, so that a budget finds
the position of a cut without building requests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import isawaitable
from typing import Any, ClassVar, Self

from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout
from agentkit.errors import OptionError
from agentkit.messages.message import Msg, cache_result
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
    """Number of tokens with the reasons why it is an estimate, otherwise an ordinary `int`.

    Attributes:
        estimated: Short reasons why a part of the number is an estimate, without duplicates. Empty if the number
            is exact.

    """

    estimated: tuple[str, ...]

    def __new__(cls, tokens: int, estimated: Iterable[str] = ()) -> Self:
        """Creates the number. Duplicates in `estimated` are removed."""
        count = super().__new__(cls, tokens)
        count.estimated = (estimated,) if isinstance(estimated, str) else tuple(dict.fromkeys(estimated))
        return count

    def __reduce__(self) -> tuple[type[TokenCount], tuple[int, tuple[str, ...]]]:
        return (type(self), (int(self), self.estimated))


class TokenCounterBase(ABC):
    """Counter of the tokens of a request, tools and schemas included.

    A subclass implements `count`. One cut calls `count` O(log n) times for n messages. A counter that needs no I/O
    derives from `LocalTokenCounter`, which makes cuts cheaper.
    """

    @abstractmethod
    async def count(self, request: Mapping[str, Any]) -> int:
        """Returns the tokens of a request; a `TokenCount` if a part of the number is an estimate.

        Args:
            request: Keyword arguments of the SDK's call. The method must not change them.

        """

    needs_layout: ClassVar[bool] = False
    """True if `count` and `measure` take the `WireLayout` of the request as a second argument."""
    deterministic: ClassVar[bool] = False
    """True if equal requests have equal counts. A request known to exceed the budget is then not counted again."""

    @property
    def local_counter(self) -> LocalTokenCounter:
        """Counter that places cuts without I/O; by default an estimate by characters."""
        from agentkit.tokens.text_counters import ESTIMATE  # a subclass of this class, defined later

        return ESTIMATE


async def count_request(counter: TokenCounterBase, request: Mapping[str, Any], layout: WireLayout) -> int:
    """Returns the tokens of a request by any counter.

    Raises:
        OptionError: `count` of the counter is not asynchronous, or returns something else than a number of tokens.

    """
    count: Any = counter.count
    result: object = count(request, layout) if counter.needs_layout else count(request)
    if not isawaitable(result):
        reason = f"{type(counter).__name__}.count is not asynchronous"
        raise OptionError("budget.counter", reason, "Define the method as `async def count`.")
    return _check_tokens(await result, f"{type(counter).__name__}.count")


def _check_tokens(tokens: object, method: str) -> int:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        reason = f"{method} returned {shorten_repr(tokens, 60)}, expected a number of tokens"
        raise OptionError("budget.counter", reason, "Return an int of at least 0.")
    return tokens


def measure_request(counter: LocalTokenCounter, request: Mapping[str, Any], layout: WireLayout) -> int:
    """Returns the tokens of a request by any local counter."""
    measure: Any = counter.measure
    tokens: int = measure(request, layout) if counter.needs_layout else measure(request)
    return tokens


def find_layout(counter: TokenCounterBase, provider: LayoutSource | None) -> WireLayout:
    """Returns the layout of a provider, for a counter that reads the keys of requests.

    Raises:
        OptionError: There is no provider, so the keys of the request are unknown.

    """
    if provider is None:
        reason = f"{type(counter).__name__} does not know the keys of the request"
        raise OptionError("provider", reason, "Pass load_provider(NAME) or a formatter as the second argument.")
    return as_layout(provider)


async def prepare_counter(counter: LocalTokenCounter) -> None:
    """Awaits `counter.prepare()`.

    Raises:
        OptionError: `prepare` of the counter is not asynchronous.

    """
    result: object = counter.prepare()
    if not isawaitable(result):
        reason = f"{type(counter).__name__}.prepare is not asynchronous"
        raise OptionError("budget.counter", reason, "Define the method as `async def prepare`.")
    await result


@dataclass(frozen=True, slots=True, eq=False)
class _IdentityKey:
    """Cache key that equals only the key of the same object, hashable or not."""

    owner: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and other.owner is self.owner

    def __hash__(self) -> int:
        return id(self.owner)


@lru_cache(256)
def weight_key(*terms: object) -> object:
    """Returns the cache key for the weights of all counters with equal terms: one object, quick to look up."""
    return terms


class LocalTokenCounter(TokenCounterBase):
    """Counter that needs no I/O and weighs single messages.

    `weigh` places a cut; `measure` decides whether the request fits. The closer the sum of the weights is to the
    measure, the fewer requests a cut builds.
    """

    deterministic: ClassVar[bool] = True
    slow: ClassVar[bool] = False
    """True if weighing takes long enough to be done in a worker thread."""

    @abstractmethod
    def measure(self, request: Mapping[str, Any]) -> int:
        """Returns the tokens of a request.

        Args:
            request: Keyword arguments of the SDK's call. The method must not change them.

        """

    @abstractmethod
    def weigh(self, msg: Msg) -> int:
        """Returns the approximate number of tokens that a message adds to any request."""

    @property
    def key(self) -> object:
        """Key of the weights that messages cache. Counters with equal keys must return equal weights."""
        return _IdentityKey(self)

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The counter itself."""
        return self

    async def prepare(self) -> None:
        """Loads files in a worker thread. Otherwise `measure` and `weigh` load them at their first use."""

    async def count(self, request: Mapping[str, Any]) -> int:
        """Returns `measure(request)`, after the counter is prepared."""
        await prepare_counter(self)
        return self.measure(request)

    def weight(self, msg: Msg) -> int:
        """Returns `weigh(msg)`, computed once and cached on the message.

        Raises:
            OptionError: `weigh` returned something else than a number of tokens.

        """
        return cache_result(msg, self.key, self._weigh_checked)

    def _weigh_checked(self, msg: Msg) -> int:
        return _check_tokens(self.weigh(msg), f"{type(self).__name__}.weigh")
