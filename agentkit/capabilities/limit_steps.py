"""Steps of media limits: if a request has too many media items, several items are omitted at once."""

from __future__ import annotations

__all__ = ["LIMIT_STEPS", "excess", "round_up_to_step"]

LIMIT_STEPS = 5
"""Number of equal parts into which a limit is divided. The amount of media to omit is rounded up to whole parts.

For example, with 101 to 120 images and a limit of 100 images, 20 images are omitted. Consecutive requests of a
growing conversation then mostly omit the same images.
"""


def excess(count: int, limit: int) -> int:
    """Returns the number of media items to omit from a request with `count` items, if at most `limit` are allowed.

    The number is rounded up to a multiple of one fifth of `limit`. A `limit` of 0 means that there is no limit.
    """
    return round_up_to_step(count - limit, max(limit // LIMIT_STEPS, 1)) if limit and count > limit else 0


def round_up_to_step(number: int, step: int) -> int:
    """Returns the smallest multiple of `step` that is at least `number`."""
    return -(-number // step) * step
