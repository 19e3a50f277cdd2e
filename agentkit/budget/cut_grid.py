"""The cut grid: the points of a conversation at which a cut may end.

A cut drops or shortens messages so that a request stays within its token limit. The distance between
neighboring points is a fixed number of tokens, called a step. The first point is one step after the start of the
history. While a conversation grows, the cut ends at the same point until the request exceeds the limit. Until
then, the prefix of the prompt is unchanged, and the provider's prompt cache remains valid.
"""

from __future__ import annotations

from agentkit.budget.strategies import CutStrategy, check_number
from agentkit.budget.units import Units

__all__ = ["get_grid_step", "round_down", "round_up"]

# By default, the step is a quarter of the tokens that the budget leaves after the system prompt.
# With smaller steps, the cut would change more often. After each change, the next request misses the prompt cache.
_STEPS_PER_BUDGET = 4


def get_grid_step(strategy: CutStrategy, units: Units, limit: int) -> int:
    """Returns the distance in tokens between the points of the history at which a cut may end.

    0 means that a cut may end after any edit.
    """
    check_number("step", strategy.step)
    if strategy.step is not None:
        return strategy.step
    return max(1, (limit - units.sums[units.system]) // _STEPS_PER_BUDGET)


def round_down(tokens: int, step: int) -> int:
    """Returns the largest multiple of `step` that is at most `tokens`. `step` must not be 0."""
    return tokens // step * step


def round_up(tokens: int, step: int) -> int:
    """Returns the smallest multiple of `step` that is at least `tokens`. `step` must not be 0."""
    return -(-tokens // step) * step
