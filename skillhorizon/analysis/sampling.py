"""How much a success rate depends on which tasks were drawn (paper 4.5, D.2; Figure 6).

Outcomes are fixed; tasks are put in 1,000 random orders. In each, every family is shuffled by itself and the families
take turns, so that in every prefix the families' counts differ by at most one as long as none has run out. The curve
is the mean success of prefixes and, size by size, its 5th and 95th percentile, interpolated linearly. It speaks of
samples of this pool and this mix of families; prefixes share tasks, and the last one is the whole pool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from skillhorizon.core.errors import InputError

ORDERS = 1000
SEED = 0
POINTS = 10
"""The sizes of prefixes are this many equal steps."""


def orders(outcomes: Mapping[str, Sequence[bool]], rng: np.random.Generator) -> np.ndarray:
    """One random order of the outcomes, families by turns."""
    columns = [rng.permutation(np.asarray(own, dtype=float)) for own in outcomes.values()]
    turns = np.concatenate([np.arange(len(own)) for own in columns])
    shuffled: np.ndarray = np.concatenate(columns)[np.argsort(turns, kind="stable")]
    return shuffled


def curve(outcomes: Mapping[str, Sequence[bool]], sizes: Sequence[int] | None = None) -> pd.DataFrame:
    """Columns sampled_tasks, statistic (``mean``, ``p5``, ``p95``; ``full_set_ts`` at the end), value_pct."""
    total = sum(map(len, outcomes.values()))
    if not total:
        raise InputError("no executions to sample from")
    sizes = sizes or sorted({round(total * step / POINTS) for step in range(1, POINTS + 1)} - {0})
    rng = np.random.default_rng(SEED)
    drawn = np.stack([orders(outcomes, rng) for _ in range(ORDERS)]).cumsum(axis=1)
    rates = 100 * drawn[:, np.asarray(sizes) - 1] / np.asarray(sizes)
    p5, p95 = np.percentile(rates, (5, 95), axis=0)
    rows = [
        (size, statistic, value)
        for place, size in enumerate(sizes)
        for statistic, value in (("mean", rates[:, place].mean()), ("p5", p5[place]), ("p95", p95[place]))
    ]
    full = 100 * sum(map(sum, outcomes.values())) / total
    return pd.DataFrame([*rows, (total, "full_set_ts", full)], columns=["sampled_tasks", "statistic", "value_pct"])


def figure6(
    runs: pd.DataFrame, model: str | None = None, environment: str = "FinanceOps", band: str = "128K"
) -> pd.DataFrame:
    """Figure 6 of one agent on the tasks that the set has in one environment and band.

    The paper's pool is 500 tasks beside the set; this is the set's own. By default the agent whose TS is nearest to
    one half, where a sample says least.
    """
    pool = runs[(runs["environment"] == environment) & (runs["band"] == band)]
    if pool.empty:
        raise InputError(f"no executions in {environment} at {band}")
    rates = pool.groupby("model", observed=True)["success"].mean()
    model = model or str((rates - 0.5).abs().idxmin())
    own = pool[pool["model"] == model]
    outcomes = {str(family): list(group) for family, group in own.groupby("family")["success"]}
    return curve(outcomes).assign(model=model, environment=environment, band=band)
