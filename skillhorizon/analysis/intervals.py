"""95 % intervals beside shares and means. The paper gives none; they say how much of a difference is sampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

Z = 1.959963984540054  # of the normal distribution, two-sided 95 %
DRAWS = 1000
SEED = 0
_TAILS = (2.5, 97.5)


def wilson(hits: Any, n: Any) -> tuple[Any, Any]:
    """Wilson's score interval of the share ``hits / n``, from 0 to 1; arrays or numbers, ``n`` above 0."""
    share = hits / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    # at the ends the bound is exact, and rounding would miss it
    return np.where(hits == 0, 0.0, middle - half), np.where(hits == n, 1.0, middle + half)


def bootstrap(values: np.ndarray) -> tuple[float, float]:
    """Percentile interval of the mean: 1,000 samples of the values with replacement.

    The draws depend on the number of values alone, so a group's interval does not change with its neighbours.
    """
    n = len(values)
    picked = np.random.default_rng([SEED, n]).integers(n, size=(DRAWS, n))
    low, high = np.percentile(values[picked].mean(axis=1), _TAILS)
    return float(low), float(high)


def share(frame: pd.DataFrame, keys: Sequence[str], column: str, name: str) -> pd.DataFrame:
    """Percent of rows where the column is true, by group, with Wilson's interval."""
    counts = frame.groupby(list(keys), observed=True)[column].agg(["sum", "size"])
    hits, n = counts["sum"].astype(float), counts["size"]
    low, high = wilson(hits, n)
    return pd.DataFrame({name: 100 * hits / n, f"{name}_low": 100 * low, f"{name}_high": 100 * high})


def bootstrapped(frame: pd.DataFrame, keys: Sequence[str], column: str, name: str) -> pd.DataFrame:
    """Mean of a column by group, with a bootstrap interval over the rows."""
    groups = frame.groupby(list(keys), observed=True)[column]
    means = groups.mean()
    ends = np.array([bootstrap(own.to_numpy(float)) for _, own in groups]).reshape(-1, 2)
    return pd.DataFrame({name: means, f"{name}_low": ends[:, 0], f"{name}_high": ends[:, 1]}, index=means.index)
