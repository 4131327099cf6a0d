"""Required and completed local goals in their native units (paper 4.1, E.1, Figures 3a and 7).

Units differ between environments, so counts are never added across them. All executions count with the same weight.
"""

from __future__ import annotations

import pandas as pd

from skillhorizon.analysis.populations import means, plain


def figure7(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean completed goals by environment, model and band, beside the mean required, which is the tasks' own."""
    keys = ["environment", "model", "band"]
    table = means(runs, keys, completed="goals_met")
    return plain(table.assign(required=runs.groupby(keys, observed=True)["goals_required"].mean()).reset_index())


def figure3a(runs: pd.DataFrame) -> pd.DataFrame:
    """Required and completed goals, averaged over the models, and each as a multiple of the environment's first band.

    Each model has the same weight. An environment that completes nothing in its first band has no multiple.
    """
    keys = ["environment", "band"]
    goals = ["goals_required", "goals_met"]
    models = runs.groupby([*keys, "model"], observed=True)[goals].mean().groupby(level=keys, observed=True).mean()
    table = models.rename(columns={"goals_required": "required", "goals_met": "completed"}).reset_index()
    first = table.groupby("environment", observed=True)[["required", "completed"]].transform("first")
    ratios = table[["required", "completed"]] / first.where(first > 0)
    return plain(table.assign(required_ratio=ratios["required"], completed_ratio=ratios["completed"]))
