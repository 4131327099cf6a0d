"""LGC and TS of executions, and delivery given local completion (paper C.1, 3.2, 4.2, E.2, E.6).

LGC is the mean over executions of local goals met among those that the whole task requires, unattempted ones included;
TS is the share of executions that meet every final requirement. Both in percent, both over all executions, each with
the same weight. Thresholds on LGC compare whole numbers, ``100 g >= q G``, never rounded percentages.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from skillhorizon.analysis import intervals
from skillhorizon.analysis.populations import endpoints, means, plain, with_overall

THRESHOLDS = (75, 80, 90, 100)
CURVE = tuple(range(50, 101, 5))
OUTCOMES = ("task_success", "failure_lgc_100", "failure_lgc_75_to_100", "failure_lgc_below_75")


def by(runs: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """``lgc`` and ``ts`` by group with their intervals, and ``n`` executions."""
    percent = runs.assign(_lgc=100.0 * runs["goals_met"] / runs["goals_required"])
    table = means(percent, keys, lgc="_lgc", ts="success")
    return plain(table.assign(n=runs.groupby(list(keys), observed=True).size()).reset_index())


def table01(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 1: both metrics by model and band, and over all bands."""
    wide = by(with_overall(runs, "band"), "model", "band")
    parts = [
        wide[["model", "band"]].assign(
            metric=metric.upper(), **{f"value{end}": wide[f"{metric}{end}"] for end in ("", "_low", "_high")}
        )
        for metric in ("lgc", "ts")
    ]
    order = pd.concat(parts).assign(place=wide["model"].map({m: n for n, m in enumerate(wide["model"].unique())}))
    columns = ["model", "metric", "band", "value", "value_low", "value_high"]
    return order.sort_values(["place", "metric"], kind="stable")[columns].reset_index(drop=True)


def table09(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 9: by environment, model and band."""
    return by(runs, "environment", "model", "band")


def table10(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 10: by task family and model, all bands together."""
    return by(runs, "environment", "family", "model")


def figure2(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 2: TS by environment, model and band, and over all environments with the same weight for each task."""
    table = by(with_overall(runs, "environment"), "environment", "model", "band")
    return table[["environment", "model", "band", "ts", "ts_low", "ts_high", "n"]]


def figure4a(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 4a: success, and failure by local completion, in percent of all executions of a band."""
    met, required = runs["goals_met"], runs["goals_required"]
    kinds = np.select([runs["success"], met == required, 100 * met >= 75 * required], OUTCOMES[:3], default=OUTCOMES[3])
    flags = pd.DataFrame({name: kinds == name for name in OUTCOMES}, index=runs.index)
    long = flags.assign(band=runs["band"]).melt("band", var_name="outcome", value_name="hit")
    long["outcome"] = pd.Categorical(long["outcome"], OUTCOMES, ordered=True)
    table = intervals.share(long, ["band", "outcome"], "hit", "pct").reset_index()
    return plain(table.assign(basis="measured"))[["band", "outcome", "pct", "basis", "pct_low", "pct_high"]]


def table13(runs: pd.DataFrame, thresholds: Iterable[int] = THRESHOLDS) -> pd.DataFrame:
    """Table 13: TS among executions with LGC of at least q, by band, with both counts; a band without any is absent."""
    parts = []
    for q in thresholds:
        eligible = runs[100 * runs["goals_met"] >= q * runs["goals_required"]].assign(q_pct=q)
        groups = eligible.groupby(["band", "q_pct"], observed=True)["success"]
        table = intervals.share(eligible, ["band", "q_pct"], "success", "task_success_pct")
        parts.append(table.assign(successes=groups.sum().astype(int), eligible=groups.size()).reset_index())
    return plain(pd.concat(parts).sort_values(["band", "q_pct"], kind="stable"))


def figure4b(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 4b: Table 13 along thresholds from 50 to 100 %."""
    return table13(runs, CURVE)


def table20(runs: pd.DataFrame, configuration: str = "model") -> pd.DataFrame:
    """Table 20: configurations of an agent on the tasks that all of them worked on, in counts of executions."""
    groups = runs.groupby("task_id", observed=True)[configuration].nunique()
    shared = runs[runs["task_id"].isin(groups.index[groups == runs[configuration].nunique()])]
    counts = endpoints(shared, configuration)
    low, high = intervals.wilson(counts["S"], counts["executions"])
    return pd.DataFrame(
        {
            "configuration": counts[configuration],
            "success": counts["S"],
            "final_failure": counts["F"],
            "budget_exhausted": counts["B"],
            "ts_pct": 100 * counts["S"] / counts["executions"],
            "ts_pct_low": 100 * low,
            "ts_pct_high": 100 * high,
        }
    )


def table21(runs: pd.DataFrame, model: str | None = None, band: str | None = None) -> pd.DataFrame:
    """Table 21: one model at one band, with the failures that meet at least three quarters of their local goals.

    By default the largest band, and the model with most such failures there.
    """
    band = band or str(runs["band"].max())
    at_band = runs[runs["band"] == band]
    missed = ~at_band["success"] & (100 * at_band["goals_met"] >= 75 * at_band["goals_required"])
    at_band = at_band.assign(missed=missed)
    model = model or str(at_band.groupby("model", observed=True)["missed"].sum().idxmax())
    chosen = at_band[at_band["model"] == model]
    table = by(chosen, "environment")
    counts = chosen.groupby("environment", observed=True)["missed"].sum().astype(int)
    table.insert(3, "high_completion_failures", counts.to_numpy())
    return table.assign(model=model, band=band)


def low_completion(runs: pd.DataFrame, below: int = 25) -> pd.DataFrame:
    """Share of executions below a quarter of their local goals, by band (4.1)."""
    flagged = runs.assign(low=100 * runs["goals_met"] < below * runs["goals_required"])
    return plain(intervals.share(flagged, ["band"], "low", "low_completion_pct").reset_index())
