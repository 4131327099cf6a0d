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


_UPPER = {"64K": 64, "128K": 128, "256K": 256, "512K": 512, "1M": 1024, "2M": 2048, "4M": 4096}
"""Upper bounds in K; each band begins where the one before it ends."""
BANDS = {
    name: Band(name, lower * K, upper * K)
    for (name, upper), lower in zip(_UPPER.items(), [0, *_UPPER.values()], strict=False)
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
Point = tuple[int, int]
"""A size and its workload."""

_MARGIN = 0.25
"""Where in the target interval a step aims, from its upper end: far enough from it that an estimate may be off."""
_REACH = 4
"""A step goes up to so many times the size: a run that is far too large is dear."""


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

    Workload grows with the knob, nearly linearly, so each step interpolates between the nearest measured sizes towards
    an aim in the upper part of the target and keeps a bracket; the search ends with the landing nearest to the aim, or
    without one where a single step of the knob jumps over the target.
    """
    least, most = target
    aim = most - (most - least) * _MARGIN
    below: list[Point] = []
    above: list[Point] = []
    low, high = smallest, largest
    size = min(max(guess, low), high)
    landed: Calibration[T] | None = None
    runs = 0
    while low <= high:
        workload, result = measure(size)
        runs += 1
        if least <= workload <= most and (landed is None or abs(workload - aim) < abs(landed.workload - aim)):
            landed = Calibration(size, workload, result, runs)
        if workload < aim:
            low, below = size + 1, [(size, workload), *below]
        else:
            high, above = size - 1, [(size, workload), *above]
        nearest = _step(below, above, aim)
        if landed is not None and not (low <= nearest <= high):
            break
        if landed is None and below and above and runs % 3 == 0:
            nearest = (low + high) // 2  # halving now and then bounds the search, whatever the workload's shape
        size = min(max(nearest, low), high)
    return landed._replace(runs=runs) if landed else None


def _step(below: list[Point], above: list[Point], aim: float) -> int:
    """The size at which a line through two measured points meets the aim: the nearest ones on both sides of it or,
    while all lie on one side, the last two there (the origin stands in for a second one)."""
    known = [below[0], above[0]] if below and above else [*below, *above, (0, 0)][:2]
    (size, workload), (other, its_workload) = known
    slope = (workload - its_workload) / (size - other) if size != other else 0.0
    if slope <= 0:
        return size * _REACH if workload < aim else size // _REACH
    return min(round(size + (aim - workload) / slope), size * _REACH)
