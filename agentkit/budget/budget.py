"""`Budget`: a limit on prompt tokens, a token counter, and the strategies that cut a conversation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentkit.argument_checks import check_option
from agentkit.budget.strategies import CutStrategy, OldestFirstInSteps
from agentkit.budget.summaries import Summarize
from agentkit.errors import OptionError
from agentkit.reprs import bounded_repr, describe_value, shorten_repr
from agentkit.tokens.counters import TokenCounterBase
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """Token limit for prompts, and the strategies that shorten a conversation above the limit.

    The prompt of a request includes the tools and the output schema.

    Attributes:
        max_tokens: Maximum number of tokens for the prompt and `reserve` together.
        counter: Token counter. The default estimates the number of tokens from the characters of the texts.
        reserve: Number of tokens kept free for the reply. The prompt may use `max_tokens` minus `reserve`.
        strategy: One cut strategy, or a sequence of cut strategies. Each strategy starts when the previous
            strategy cannot cut more.
        never_cut: Names of the tools whose calls and results no strategy changes.
        cut_first: Names of the tools whose calls and results each strategy cuts before all other messages.

    Raises:
        OptionError: If a value is invalid, or if `reserve` is not smaller than `max_tokens`.

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
            reason = f"must be greater than `reserve` ({self.reserve}), got {self.max_tokens}"
            raise OptionError("budget.max_tokens", reason, "Pass a larger max_tokens or a smaller reserve.")

    @property
    def limit(self) -> int:
        """Maximum number of prompt tokens, which is `max_tokens` minus `reserve`."""
        return self.max_tokens - self.reserve

    @property
    def strategies(self) -> tuple[CutStrategy, ...]:
        """Cut strategies, in the order in which they are applied."""
        return (self.strategy,) if isinstance(self.strategy, CutStrategy) else tuple(self.strategy)


def _check_tokens(place: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        reason = f"must be a non-negative integer, got {shorten_repr(value, 60)}"
        raise OptionError(place, reason, "Pass the number of tokens as an integer of at least 0.")


def _check_strategies(strategies: Sequence[CutStrategy]) -> None:
    for index, strategy in enumerate(strategies):
        check_option(f"budget.strategy[{index}]", strategy, CutStrategy)
    if not strategies:
        reason = "expected at least one strategy, got an empty sequence"
        raise OptionError("budget.strategy", reason, "Pass a strategy, such as OldestFirstInSteps().")
    writers = sum(isinstance(strategy, Summarize) for strategy in strategies)
    if writers > 1:
        reason = f"must contain at most one `Summarize` strategy, got {writers}"
        raise OptionError("budget.strategy", reason, "Pass only one `Summarize` strategy.")


def _tool_names(place: str, value: object) -> frozenset[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        reason = f"expected a list of tool names, got {describe_value(value)}"
        raise OptionError(place, reason, "Pass a list of tool names.")
    names = list(cast("Iterable[object]", value))
    invalid = [name for name in names if not isinstance(name, str)]
    if invalid:
        reason = f"expected tool names (str), got {describe_value(invalid[0])}"
        raise OptionError(place, reason, "Pass a list of tool names.")
    return frozenset(cast("list[str]", names))
