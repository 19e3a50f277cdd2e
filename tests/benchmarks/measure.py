"""CPU time samples of several cases, measured in turn, with their medians and ratios."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import median
from time import process_time_ns
from typing import Any, Protocol

__all__ = ["Case", "Sampled", "Samples", "fit_exponent", "interleave", "format_seconds", "get_step_exponents"]


class Sampled(Protocol):
    """Work to time, in this process or in another one."""

    def sample(self, batch: int, collector: bool) -> float:
        """Returns the CPU seconds of one call, as the mean of `batch` calls. See `interleave`."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """Function to time. `prepare` creates a new input and is not timed; `run` is timed with this input."""

    prepare: Callable[[], Any]
    run: Callable[[Any], object]

    def sample(self, batch: int, collector: bool) -> float:
        """Returns the CPU seconds of one call, as the mean of `batch` calls."""
        gc.collect()
        gc.disable()
        inputs = [self.prepare() for _ in range(batch)]
        if collector:
            gc.enable()
        run = self.run
        began = process_time_ns()
        for value in inputs:
            run(value)
        duration = process_time_ns() - began
        gc.disable()
        return max(duration, 1) / batch / 1e9


@dataclass(frozen=True, slots=True)
class Samples:
    """CPU seconds per call, one sample for each round."""

    seconds: list[float]

    @property
    def median(self) -> float:
        return median(self.seconds)

    def ratio_to(self, base: Samples) -> float:
        """Returns the median of the ratios of these samples to the samples of `base` in the same rounds."""
        return median(sample / base_sample for sample, base_sample in zip(self.seconds, base.seconds, strict=True))


@cache
def _has_frozen_objects() -> bool:
    """Returns True in a test run, which freezes its objects. Counting these objects takes long."""
    return gc.get_freeze_count() > 0


def interleave(
    cases: Mapping[str, Sampled], rounds: int, batch: int = 1, collector: bool = False, warm: bool = True
) -> dict[str, Samples]:
    """Returns samples of all cases. Each round times every case once, so that other load affects all cases alike.

    Args:
        cases: Cases by name.
        rounds: Number of samples for each case.
        batch: Number of inputs in each sample. More than one is needed for very short cases.
        collector: True to enable the garbage collector during samples. It always runs before each sample.
        warm: True for one more round before the samples, without timing.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    was_on = gc.isenabled()
    gc.collect()
    has_frozen = _has_frozen_objects()
    gc.freeze()  # excludes objects of the imported libraries from later collections
    try:
        for number in range(rounds + warm):
            for name, case in cases.items():
                duration = case.sample(batch, collector)
                if number >= warm:
                    seconds[name].append(duration)
    finally:
        if not has_frozen:
            gc.unfreeze()
        (gc.enable if was_on else gc.disable)()
    return {name: Samples(samples) for name, samples in seconds.items()}


def fit_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Returns the least-squares slope of time over size in a log-log plot."""
    points = [(math.log(size), math.log(duration)) for size, duration in zip(sizes, seconds, strict=True)]
    x = sum(point[0] for point in points) / len(points)
    y = sum(point[1] for point in points) / len(points)
    spread = sum((point[0] - x) ** 2 for point in points)
    return sum((point[0] - x) * (point[1] - y) for point in points) / spread if spread else math.nan


def format_seconds(seconds: float) -> str:
    """Returns a duration with a suitable unit and three significant digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def get_step_exponents(sizes: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """Returns the growth exponent between each size and the next size."""
    steps = pairwise(zip(sizes, seconds, strict=True))
    return [math.log(after[1] / before[1]) / math.log(after[0] / before[0]) for before, after in steps]
