"""Recovery from failed business checks (paper 4.3, E.3; Figure 5, Tables 15 and 16).

A cycle is eligible when its first check fails in a run whose allowance is known; it stays so whatever follows, also
when the goal is never checked again. A retry is a later check of the same cycle. Recovered within k means that one of
the first k retries passes; all k look at the same cycles. A rate is formed within each execution that has an eligible
cycle, and those executions then weigh the same.

Budget prefixes: the cohort are executions with an eligible cycle that failed within the first R charged attempts, and
of their cycles those. The prefix of a factor ends after min(R + ceil(factor A), U) charged attempts; a run that ended
earlier keeps what it had reached. LGC and TS are those of the state there; recovery wants a pass within the prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from skillhorizon.analysis.cycles import COLUMNS, checks, cycles
from skillhorizon.analysis.populations import Traces, means, plain

RETRIES = (3, 4, 5, 6, 7)
_META = ["run_id", "model", "environment", "band", "R", "B", "attempts"]


def failed_cycles(traces: Traces) -> pd.DataFrame:
    """The eligible cycles of all traces, as ``eligible`` gives them."""
    parts = [eligible(cycles(checks(part.table)), part.runs) for part in traces.parts("events", COLUMNS)]
    return pd.concat(parts, ignore_index=True)


def eligible(found: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Of the cycles of some runs those whose first check failed, with the model, environment and band of their run.

    ``failed_at`` and ``passed_at`` count charged attempts, ``U`` is the run's.
    """
    failed = found[~found["first_passed"]].rename(columns={"attempt": "failed_at"})
    failed = failed.astype({"run_id": "str", "goal": "str", "tool": "str"})
    meta = runs.loc[runs["B"].notna(), _META].rename(columns={"attempts": "U"})
    return failed.drop(columns=["decision", "first_passed"]).merge(meta, on="run_id", how="inner")


def _within_executions(failed: pd.DataFrame, **flags: pd.Series) -> pd.DataFrame:
    """Percent of each execution's eligible cycles where a flag is true; one row per execution."""
    columns = {name: 100.0 * flag.astype(float) for name, flag in flags.items()}
    keys = ["run_id", "model", "band"]
    return failed.assign(**columns).groupby(keys, observed=True)[list(columns)].mean().reset_index()


def table15(failed: pd.DataFrame) -> pd.DataFrame:
    """Table 15: eligible executions and their cycles, by model and band: those of every limit of retries."""
    groups = failed.groupby(["model", "band"], observed=True)
    table = pd.DataFrame({"eligible_executions": groups["run_id"].nunique(), "first_failure_cycles": groups.size()})
    return plain(table.reset_index())


def table16(failed: pd.DataFrame) -> pd.DataFrame:
    """Table 16: what became of failed goals in the rest of their run, in percent, averaged within executions."""
    rates = _within_executions(
        failed,
        recovered=failed["passed"],
        rechecked=~failed["passed"] & (failed["retries"] > 0),
        dropped=~failed["passed"] & (failed["retries"] == 0),
    )
    table = means(
        rates, ["band"], recovered_pct="recovered", rechecked_no_pass_pct="rechecked", no_recheck_pct="dropped"
    )
    table.insert(0, "executions", rates.groupby("band", observed=True).size())
    table.insert(1, "failed_goals", failed.groupby("band", observed=True).size())
    return plain(table.reset_index())


def figure5a(failed: pd.DataFrame, by: Sequence[str] = ("model", "band")) -> pd.DataFrame:
    """Figure 5a: task-averaged recovery within 3 to 7 retries, by model and band; ``cycles`` are those looked at."""
    flags = {str(k): failed["passed"] & (failed["retries"] <= k) for k in RETRIES}
    rates = _within_executions(failed, **flags)
    long = rates.melt([*by], list(flags), "x", "value")
    long["x"] = long["x"].astype(int)
    table = means(long, [*by, "x"], value_pct="value")
    table["executions"] = long.groupby([*by, "x"], observed=True).size()
    judged = failed.assign(**flags).melt([*by], list(flags), "x", "passed_within").astype({"x": int})
    table["cycles"] = judged.groupby([*by, "x"], observed=True)["passed_within"].count()
    return _panel(plain(table.reset_index()), "a", "task_averaged_recovery", "retries")


def unresolved(failed: pd.DataFrame, k: int = 7) -> pd.DataFrame:
    """Of failed goals, the percent without a pass that had fewer than k retries, and that had k or more (E.3)."""
    no_pass = ~(failed["passed"] & (failed["retries"] <= k))
    rates = _within_executions(
        failed, fewer=no_pass & (failed["retries"] < k), reached=no_pass & (failed["retries"] >= k)
    )
    return plain(means(rates, ["band"], fewer_checks_pct="fewer", reached_pct="reached").reset_index())


def prefix_cohort(failed: pd.DataFrame) -> pd.DataFrame:
    """The eligible cycles that had failed when the charged attempts reached R."""
    return failed[failed["failed_at"] <= failed["R"]]


def cohort_size(failed: pd.DataFrame) -> pd.DataFrame:
    """Executions and cycles of the prefix cohort by band."""
    groups = prefix_cohort(failed).groupby("band", observed=True)
    return plain(pd.DataFrame({"executions": groups["run_id"].nunique(), "cycles": groups.size()}).reset_index())


def figure5bcd(failed: pd.DataFrame, prefixes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Figures 5b to 5d: LGC, TS and recovery of failed goals at the end of each budget prefix, by band."""
    cohort = prefix_cohort(failed)
    meta = runs.loc[runs["run_id"].isin(cohort["run_id"]), ["run_id", "band", "goals_required"]]
    states = prefixes.drop_duplicates(["run_id", "factor"]).merge(meta, on="run_id")
    states = states.assign(lgc=100.0 * states["goals_met"] / states["goals_required"])
    ends = cohort.merge(states[["run_id", "factor", "attempts"]], on="run_id")
    within = ends["passed_at"].notna() & (ends["passed_at"] <= ends["attempts"]).fillna(False).astype(bool)
    rates = ends.assign(recovered=100.0 * within).groupby(["run_id", "band", "factor"], observed=True)["recovered"]
    panels = []
    for panel, metric, frame, column in (
        ("b", "lgc", states, "lgc"),
        ("c", "ts", states.assign(success=states["success"].astype(bool)), "success"),
        ("d", "failed_goal_recovery", rates.mean().reset_index(), "recovered"),
    ):
        table = means(frame, ["band", "factor"], value_pct=column)
        table["executions"] = frame.groupby(["band", "factor"], observed=True).size()
        panels.append(_panel(plain(table.reset_index().rename(columns={"factor": "x"})), panel, metric, "lambda"))
    return pd.concat(panels, ignore_index=True)


def figure5(failed: pd.DataFrame, prefixes: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 5 in the columns of the published points: panel a over all models, and panels b to d."""
    return pd.concat([figure5a(failed, ["band"]), figure5bcd(failed, prefixes, runs)], ignore_index=True)


def _panel(table: pd.DataFrame, panel: str, metric: str, x_name: str) -> pd.DataFrame:
    table = table.assign(panel=panel, metric=metric, x_name=x_name)
    first = ["panel", "metric", *(c for c in ("model",) if c in table), "band", "x_name", "x"]
    return table[[*first, *(c for c in table if c not in first)]]
