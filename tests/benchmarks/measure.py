"""Interleaved CPU samples, their medians and ratios."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import process_time_ns
from typing import Any

__all__ = ["Case", "Samples", "fit_exponent", "interleave", "format_seconds", "get_step_exponents"]


@dataclass(frozen=True, slots=True)
class Case:
    """Something to time: `prepare` makes a fresh input outside the clock, `run` is what is timed."""

    prepare: Callable[[], Any]
    run: Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Samples:
    """CPU seconds per call, one a round."""

    seconds: list[float]

    @property
    def median(self) -> float:
        """The median of all rounds."""
        return median(self.seconds)

    def over(self, base: Samples) -> float:
        """How many times `base` this takes: the median of the ratios within one round."""
        return median(mine / its for mine, its in zip(self.seconds, base.seconds, strict=True))


def interleave(
    cases: Mapping[str, Case], rounds: int, batch: int = 1, collector: bool = False, warm: bool = True
) -> dict[str, Samples]:
    """Time every case once a round, so that all share whatever else the machine does.

    `batch` inputs are run through within one sample (for cases near the clock's own cost). The cyclic
    collector is off within samples unless `collector`; it runs before each. One more round warms up, unless
    `warm` is false: for what takes seconds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()  # what the process held before is nobody's bill: peers bring large libraries
    try:
        for turn in range(rounds + warm):
            for name, case in cases.items():
                taken = _sample(case, batch, collector)
                if turn >= warm:
                    seconds[name].append(taken)
    finally:
        gc.unfreeze()
        (gc.enable if was_on else gc.disable)()
    return {name: Samples(found) for name, found in seconds.items()}


def _sample(case: Case, batch: int, collector: bool) -> float:
    gc.collect()
    gc.disable()
    given = [case.prepare() for _ in range(batch)]
    if collector:
        gc.enable()
    run = case.run
    began = process_time_ns()
    for one in given:
        run(one)
    taken = process_time_ns() - began
    gc.disable()
    return max(taken, 1) / batch / 1e9


def fit_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of time over size in a log-log plot, by least squares."""
    points = [(math.log(size), math.log(taken)) for size, taken in zip(sizes, seconds, strict=True)]
    x = sum(point[0] for point in points) / len(points)
    y = sum(point[1] for point in points) / len(points)
    spread = sum((point[0] - x) ** 2 for point in points)
    return sum((point[0] - x) * (point[1] - y) for point in points) / spread if spread else math.nan


def format_seconds(seconds: float) -> str:
    """Seconds as people read them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def get_step_exponents(sizes: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """The exponent of each step from one size to the next."""
    steps = pairwise(zip(sizes, seconds, strict=True))
    return [math.log(after[1] / before[1]) / math.log(after[0] / before[0]) for before, after in steps]
