"""Workload bands and the search that brings a task into one (paper A.3.1, Table 5).

A band holds the reference workloads above its lower and up to its upper bound, in tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from skillhorizon.core.errors import InputError

K = 1024


class Band(NamedTuple):
    """``lower`` is exclusive, ``upper`` inclusive."""

    name: str
    lower: int
    upper: int

    def holds(self, tokens: int) -> bool:
        return self.lower < tokens <= self.upper

    @property
    def target(self) -> tuple[int, int]:
        """The interval that calibration aims at: from 85 to 100 % of the upper bound, both ends inclusive."""
        return -(-self.upper * 85 // 100), self.upper


_BOUNDS = {"64K": 64 * K, "128K": 128 * K, "256K": 256 * K, "512K": 512 * K, "1M": K * K, "2M": 2 * K * K, "4M": 4 * K * K}
BANDS = {
    name: Band(name, lower, upper)
    for (name, upper), lower in zip(_BOUNDS.items(), [0, *list(_BOUNDS.values())[:-1]], strict=True)
}
PAPER_BANDS = ("64K", "128K", "256K", "512K", "1M")


def band(name: str) -> Band:
    if name not in BANDS:
        raise InputError(f"unknown band {name!r}; the bands are {', '.join(BANDS)}")
    return BANDS[name]


def band_of(tokens: int) -> str | None:
    """The band that holds a workload, or None beyond the last."""
    return next((b.name for b in BANDS.values() if b.holds(tokens)), None)


T = TypeVar("T")


class Calibration(NamedTuple, Generic[T]):
    size: int
    workload: int
    result: T
    runs: int


def calibrate(
    measure: Callable[[int], tuple[int, T]], target: tuple[int, int], guess: int, smallest: int, largest: int
) -> Calibration[T] | None:
    """Search one integer knob until the workload lands in the target interval.

    measure    runs the reference at a size: (workload in tokens, whatever should be kept of the run)
    target     least and greatest accepted workload, inclusive
    returns    the size that landed, or None where no size between ``smallest`` and ``largest`` does

    Workload grows with the knob, nearly linearly, so each step interpolates towards the middle of the target between
    the nearest measured sizes and keeps a bracket; a step too coarse to land ends the search.
    """
    least, most = target
    aim = (least + most) / 2
    below: tuple[int, float] = (0, 0.0)
    above: tuple[int, float] | None = None
    low, high = smallest, largest
    size = min(max(guess, low), high)
    runs = 0
    while low <= high:
        workload, result = measure(size)
        runs += 1
        if least <= workload <= most:
            return Calibration(size, workload, result, runs)
        if workload < least:
            low, below = size + 1, (size, workload)
        else:
            high, above = size - 1, (size, workload)
        if above is None:
            slope = workload / size
        else:
            slope = (above[1] - below[1]) / (above[0] - below[0])
        step = round(below[0] + (aim - below[1]) / slope)
        size = min(max(step, low), high)
    return None
