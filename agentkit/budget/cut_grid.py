"""The cut grid: the points of a conversation, in tokens from the start of the history, at which a cut may end.

The points are the multiples of a step. While a conversation grows, a cut on a grid stays at one point until the
request exceeds its limit, so that the prefix of the prompt and the provider's prompt cache remain valid.
"""

from __future__ import annotations

from agentkit.budget.strategies import CutStrategy, check_number
from agentkit.budget.units import Units

__all__ = ["get_grid_step", "round_down", "round_up"]

# By default, a cut may end only at multiples of a quarter of the budget. With smaller steps, the cut would change
# more often. After each change, the next request misses the provider's prompt cache.
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
    """Returns the last grid point at or before `tokens`. `step` must not be 0."""
    return tokens // step * step


def round_up(tokens: int, step: int) -> int:
    """Returns the first grid point at or after `tokens`. `step` must not be 0."""
    return -(-tokens // step) * step
