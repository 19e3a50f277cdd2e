"""`Budget`: a limit on prompt tokens, who counts them, and what goes when a conversation is over it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentkit.argument_checks import check_option
from agentkit.budget.strategies import CutStrategy, OldestFirstInSteps
from agentkit.budget.summaries import Summarize
from agentkit.errors import OptionError
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import CharacterTokenCounter, TokenCounterBase

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """A limit on the tokens of a prompt, tools and output schema included.

    max_tokens  the limit, and `reserve`, how much of it is kept free for the answer
    counter     who counts (by default an estimate by characters)
    strategy    what goes when the conversation is over the limit: one strategy, or several, the next when the
                one before has nothing left to take
    never_cut   the names of tools whose exchanges are left as they are, and `cut_first`, of those whose
                exchanges go before others
    """

    max_tokens: int
    counter: TokenCounterBase = field(default_factory=CharacterTokenCounter)
    reserve: int = 0
    strategy: CutStrategy | Sequence[CutStrategy] = field(default_factory=OldestFirstInSteps)
    never_cut: Collection[str] = frozenset()
    cut_first: Collection[str] = frozenset()

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for name, given in (("max_tokens", self.max_tokens), ("reserve", self.reserve)):
            if not isinstance(given, int) or isinstance(given, bool) or given < 0:
                raise OptionError(f"budget.{name}", f"{given!r} is no number of tokens", "Give a whole number.")
        check_option("budget.counter", self.counter, TokenCounterBase)
        if isinstance(self.strategy, str) or not isinstance(self.strategy, Sequence):
            check_option("budget.strategy", self.strategy, CutStrategy)
        else:
            object.__setattr__(self, "strategy", tuple(self.strategy))
        for at, strategy in enumerate(self.strategies):
            check_option(f"budget.strategy[{at}]", strategy, CutStrategy)
        if not self.strategies:
            raise OptionError("budget.strategy", "there is none", "Give at least one, as Stepped().")
        if sum(isinstance(strategy, Summarize) for strategy in self.strategies) > 1:
            raise OptionError("budget.strategy", "two of them write summaries", "Keep one Summarise.")
        for name in ("never_cut", "cut_first"):
            tools: object = getattr(self, name)
            if isinstance(tools, str) or not isinstance(tools, Iterable):
                raise OptionError(f"budget.{name}", "it is no collection of names", "Give tools by name.")
            names = list(cast("Iterable[object]", tools))
            if not all(isinstance(tool, str) for tool in names):
                raise OptionError(f"budget.{name}", "it holds something else than names", "Give tools by name.")
            object.__setattr__(self, name, frozenset(cast("list[str]", names)))
        if self.limit <= 0:
            reason = f"max_tokens {self.max_tokens} less reserve {self.reserve} leaves nothing"
            raise OptionError("budget.max_tokens", reason, "Raise max_tokens or lower reserve.")

    @property
    def limit(self) -> int:
        """What is left for the prompt."""
        return self.max_tokens - self.reserve

    @property
    def strategies(self) -> tuple[CutStrategy, ...]:
        """The strategies, in the order in which they are tried."""
        return (self.strategy,) if isinstance(self.strategy, CutStrategy) else tuple(self.strategy)
