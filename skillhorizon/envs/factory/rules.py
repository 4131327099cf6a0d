"""Arithmetic of the plant: pure functions over values.

Ticks are quarters of an hour, 96 a day; lengths are integer µm.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillhorizon.envs.factory.records import Deviations, Verdict

SKILLS = Path(__file__).parent / "skills"


def run_ticks(units: int, setup_ticks: int, feed_pct: int, cycle_ms: int) -> int:
    """Rule 4: set-up, and the cycles at the programmed feed in whole ticks."""
    return setup_ticks - (-units * cycle_ms * 100 // (feed_pct * 900_000))


def graded(
    dimensions: Sequence[Any], deviations: Deviations, reworkable: frozenset[str]
) -> tuple[Verdict, str | None, int]:
    """Rule 9: verdict, defect code of the worst failing dimension, and by how much it exceeds its tolerance (µm)."""
    pairs = list(zip(dimensions, deviations, strict=True))
    failing = [(c, d) for c, d in pairs if abs(d) > c.tolerance_um]
    if not failing:
        return ("A" if all(2 * abs(d) <= c.tolerance_um for c, d in pairs) else "B"), None, 0
    worst, deviation = max(failing, key=lambda pair: abs(pair[1]) - pair[0].tolerance_um)
    code = worst.over_code if deviation > 0 else worst.under_code
    mendable = all(0 < d <= c.rework_limit_um and c.over_code in reworkable for c, d in failing)
    return ("rework" if mendable else "scrap"), code, abs(deviation) - worst.tolerance_um


def after_rework(dimensions: Sequence[Any], deviations: Deviations, reworkable: frozenset[str]) -> Deviations:
    """Rule 10: what the bench makes of a unit. A good one is spoilt to the edge of its first tolerance."""
    verdict = graded(dimensions, deviations, reworkable)[0]
    if verdict == "rework":
        return tuple(min(d, c.tolerance_um) for c, d in zip(dimensions, deviations, strict=True))
    return deviations if verdict == "scrap" else (-dimensions[0].tolerance_um, *deviations[1:])
