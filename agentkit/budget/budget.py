"""`Budget`: a limit on prompt tokens, a token counter, and the strategies that cut a conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentkit.argument_checks import check_option
from agentkit.budget.strategies import CutStrategy, OldestFirstInSteps
from agentkit.budget.summaries import Summarize
from agentkit.errors import OptionError
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import TokenCounterBase
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """Limit on the tokens of a prompt, including its tools and output schema.

    Attributes:
        max_tokens: Limit in tokens, for the prompt and the reserve together.
        counter: Token counter. The default estimates tokens from characters.
        reserve: Tokens of `max_tokens` that stay free for the reply.
        strategy: Strategy that cuts a conversation above the limit, or several. The next strategy starts when
            the previous one has nothing left to cut.
        never_cut: Names of tools whose exchanges no strategy changes.
        cut_first: Names of tools whose exchanges each strategy cuts before all others.

    Raises:
        OptionError: If a value is invalid, or if `reserve` uses up `max_tokens`.

    Example:
        >>> Budget(100_000, reserve=8_000).limit
        92000

    """

    max_tokens: int
    counter: TokenCounterBase = field(default_factory=CharacterTokenCounter)
    reserve: int = 0
    strategy: CutStrategy | Sequence[CutStrategy] = field(default_factory=OldestFirstInSteps)
    never_cut: Collection[str] = frozenset()
    cut_first: Collection[str] = frozenset()

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        _check_tokens("budget.max_tokens", self.max_tokens)
        _check_tokens("budget.reserve", self.reserve)
        check_option("budget.counter", self.counter, TokenCounterBase)
        if isinstance(self.strategy, str) or not isinstance(self.strategy, Sequence):
            check_option("budget.strategy", self.strategy, CutStrategy)
        else:
            object.__setattr__(self, "strategy", tuple(self.strategy))
        _check_strategies(self.strategies)
        object.__setattr__(self, "never_cut", _tool_names("budget.never_cut", self.never_cut))
        object.__setattr__(self, "cut_first", _tool_names("budget.cut_first", self.cut_first))
        if self.limit <= 0:
            reason = f"must be greater than reserve, got max_tokens {self.max_tokens} and reserve {self.reserve}"
            raise OptionError("budget.max_tokens", reason, "Pass a larger max_tokens or a smaller reserve.")

    @property
    def limit(self) -> int:
        """Tokens that the prompt may have: `max_tokens` less `reserve`."""
        return self.max_tokens - self.reserve

    @property
    def strategies(self) -> tuple[CutStrategy, ...]:
        """Strategies in the order in which they cut."""
        return (self.strategy,) if isinstance(self.strategy, CutStrategy) else tuple(self.strategy)


def _check_tokens(place: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise OptionError(place, f"must be a non-negative integer, got {value!r}", "Pass a number of tokens.")


def _check_strategies(strategies: Sequence[CutStrategy]) -> None:
    for index, strategy in enumerate(strategies):
        check_option(f"budget.strategy[{index}]", strategy, CutStrategy)
    if not strategies:
        reason = "expected at least one strategy, got an empty sequence"
        raise OptionError("budget.strategy", reason, "Pass a strategy, such as OldestFirstInSteps().")
    writers = sum(isinstance(strategy, Summarize) for strategy in strategies)
    if writers > 1:
        reason = f"expected at most one Summarize, got {writers}"
        raise OptionError("budget.strategy", reason, "Pass one Summarize.")


def _tool_names(place: str, value: object) -> frozenset[str]:
    """Returns the tool names of an option as a frozen set. Raises OptionError for other values."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise OptionError(place, f"expected tool names, got {type(value).__name__}", "Pass a list of names.")
    names = list(cast("Iterable[object]", value))
    invalid = [name for name in names if not isinstance(name, str)]
    if invalid:
        reason = f"expected tool names (str), got {type(invalid[0]).__name__} {invalid[0]!r}"
        raise OptionError(place, reason, "Pass a list of names.")
    return frozenset(cast("list[str]", names))
