"""Whether required artifacts were still in the context when they were needed, and outcomes with and without
compaction (paper 4.4, E.4; Tables 2, 17 and 18).

Targets. A target is a goal cycle whose first check comes from a request after an adopted summary. Its operation is
that check's tool, its kind is first work (cycle 1) or update (any later cycle). Targets that are never checked are
none. What a target requires is read from the reference's run of the same task, hence from the task and not from what
the agent submitted: the roles of the artifacts that the reference handed to the same operation for the same goal, in a
cycle of the same kind, or of the other where it had none of this one. A role is a kind of artifact about one subject;
its candidates are all artifacts of that kind and subject, each in the newest version that the run had shown before the
request. A target of which the reference names no role is out of scope.

Visibility. A request sees what the steps after the last evicted one returned. An artifact was shown where it was
published, and where a later query returned it beside its whole content (table ``sightings``); it is retained where its
newest showing was not evicted before the consuming request. Calls of the consuming response itself come too late to be
seen. Retained: every candidate of every role is visible. Removed: some role has candidates and none of them is visible.
All else is left out: roles without a candidate, and roles of which only some candidates are visible.

Weights. Only cells (execution, operation, kind of cycle) with targets in both groups count. Targets are averaged within
cell and group, cells within executions, executions within an environment, and environments equally. The intervals
resample executions within each environment. Coverage is partial: amounts, times and rows of queries are no artifacts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from skillhorizon.analysis import intervals
from skillhorizon.analysis.cycles import COLUMNS, checks, cycles
from skillhorizon.analysis.populations import OVERALL, Traces, plain

MEASURES = {
    "first_pass_pct": "first_check_acceptance_pct",
    "ever_accepted_pct": "ever_accepted_pct",
    "additional_checks": "additional_checks",
}
"""Names in Table 17 -> names in Table 2."""
GROUPS = ("retained", "removed")
_TASK_OUTCOMES = {"lgc_pct": "lgc_pct", "ts_pct": "ts_pct", "mean_tool_calls": "mean_tool_calls"}
_CELL = ["run_id", "environment", "tool", "update", "group"]


def targets(traces: Traces) -> pd.DataFrame:
    """The targets of all traces that are in one of the two groups, as ``classified`` gives them."""
    roles: dict[str, pd.DataFrame] = {}
    found = []
    evictions = traces.parts("compactions", ("run_id", "decision", "evicted_steps", "adopted"))
    shown = traces.parts("sightings", ("run_id", "step", "refs"), optional=True)
    for events, compactions, sightings in zip(
        traces.parts("events", (*COLUMNS, "step", "produced")), evictions, shown, strict=True
    ):
        if not compactions.table["adopted"].any():
            continue
        env = str(events.runs["env"].iloc[0])
        if env not in roles:
            reference = traces.reference(env, ("tool", "goal", "cycle", "check", "consumed"))
            roles[env] = required_roles(reference)
        found.append(classified(events.table, compactions.table, sightings.table, events.runs, roles[env]))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*_CELL, *MEASURES, "goal"])


def required_roles(reference: pd.DataFrame) -> pd.DataFrame:
    """Columns task_id, tool, goal, update, role: what the reference's checked operations were handed.

    ``reference`` has columns task_id, tool, goal, cycle, check, consumed.
    """
    checked = reference[reference["check"].notna()]
    checked = checked.assign(update=checked["cycle"] > 1).explode("consumed").dropna(subset="consumed")
    checked["role"] = _parsed(checked["consumed"])["role"].to_numpy()
    columns = ["task_id", "tool", "goal", "update", "role"]
    kept = checked[columns].astype({"tool": "str", "goal": "str"}).drop_duplicates()
    # where the reference had no cycle of one kind, that of the other says what the goal needs
    other = kept.assign(update=~kept["update"])
    known = pd.MultiIndex.from_frame(kept[columns[:-1]])
    return pd.concat([kept, other[~pd.MultiIndex.from_frame(other[columns[:-1]]).isin(known)]], ignore_index=True)


def classified(
    events: pd.DataFrame,
    compactions: pd.DataFrame,
    sightings: pd.DataFrame,
    runs: pd.DataFrame,
    roles: pd.DataFrame,
) -> pd.DataFrame:
    """The targets of some runs of one environment: one row each with run_id, environment, tool, goal, update, group
    and the columns ``MEASURES``."""
    adopted = compactions[compactions["adopted"].astype(bool)]
    adopted = adopted[adopted["evicted_steps"].map(len) > 0]
    evicted = pd.DataFrame(
        {
            "run_id": adopted["run_id"].astype(str),
            "decision": adopted["decision"].astype("int64"),
            "evicted": adopted["evicted_steps"].map(max).astype("int64"),
        }
    )
    work = cycles(checks(events[events["run_id"].isin(set(evicted["run_id"]))]))
    work = work.astype({"run_id": "str", "goal": "str", "tool": "str", "decision": "int64"})
    work = work.assign(update=work["cycle"] > 1, target=range(len(work)))
    work = work.merge(runs[["run_id", "task_id", "environment"]], on="run_id")
    last = evicted.sort_values(["decision", "evicted"], kind="stable")
    work = pd.merge_asof(work.sort_values("decision", kind="stable"), last, on="decision", by="run_id").dropna(
        subset="evicted"
    )
    needs = work[["target", "run_id", "task_id", "tool", "goal", "update", "decision", "evicted"]].merge(
        roles, on=["task_id", "tool", "goal", "update"]
    )
    group = _grouped(needs, _showings(events, sightings, set(needs["run_id"])))
    kept = work.set_index("target").join(group, how="inner").rename_axis(None)
    kept["first_pass_pct"] = 100.0 * kept["first_passed"].astype(float)
    kept["ever_accepted_pct"] = 100.0 * kept["passed"].astype(float)
    kept["additional_checks"] = kept["retries"].astype(float)
    return kept[[*_CELL, "goal", *MEASURES]].sort_index()


def _showings(events: pd.DataFrame, sightings: pd.DataFrame, run_ids: set[str]) -> pd.DataFrame:
    """One row per artifact version that a step showed: run_id, role, id, version, step, decision."""
    own = events[events["run_id"].isin(run_ids)]
    produced = own.loc[own["produced"].map(len) > 0, ["run_id", "step", "decision", "produced"]]
    reads = sightings[sightings["run_id"].isin(run_ids)].astype({"run_id": "str"})
    places = own[["run_id", "step", "decision"]].astype({"run_id": "str"})
    reads = reads.merge(places, on=["run_id", "step"]).rename(columns={"refs": "produced"})
    shown = pd.concat([produced.astype({"run_id": "str"}), reads]).explode("produced").dropna(subset="produced")
    named = _parsed(shown["produced"])
    return named.assign(
        run_id=shown["run_id"].to_numpy(),
        version=named["version"].astype("int64"),
        step=shown["step"].to_numpy("int64"),
        shown_in=shown["decision"].to_numpy("int64"),
    )


def _grouped(needs: pd.DataFrame, showings: pd.DataFrame) -> pd.Series:
    """``retained`` or ``removed`` by target; what is neither is absent. ``needs`` has a row per target and role."""
    rows = needs.merge(showings, on=["run_id", "role"])
    rows = rows[rows["shown_in"] < rows["decision"]]
    rows = rows.sort_values(["target", "role", "id", "version", "step"], kind="stable")
    # of each candidate the newest version, and of that the newest showing
    candidates = rows.drop_duplicates(["target", "role", "id"], keep="last")
    visible = (candidates["step"] > candidates["evicted"]).groupby([candidates["target"], candidates["role"]])
    by_role = pd.DataFrame({"all": visible.all(), "any": visible.any()})
    states = by_role.groupby("target").agg(whole=("all", "all"), none_gone=("any", "all"))
    named = needs.groupby("target")["role"].nunique()
    resolved = by_role.groupby("target").size().reindex(named.index, fill_value=0) == named
    states = states[resolved.reindex(states.index)]
    chosen = np.select([states["whole"], ~states["none_gone"]], GROUPS, "")
    group = pd.Series(chosen, index=states.index, name="group", dtype=object)
    return group[group != ""]


def _parsed(refs: pd.Series) -> pd.DataFrame:
    """The parts of references: ``sgn-kcbg2-1@2`` is version 2 of ``sgn-kcbg2-1``, in the role ``sgn-kcbg2``."""
    texts = pa.array(refs.to_numpy(object), pa.string())
    parts = pc.extract_regex(texts, r"^(?P<id>(?P<role>[a-z]+-[0-9a-z]+)[^@]*)@(?P<version>[0-9]+)$")
    frame: pd.DataFrame = pa.Table.from_struct_array(parts).to_pandas()
    return frame


def paired(found: pd.DataFrame) -> pd.DataFrame:
    """Means of cells that have both groups: one row per cell and group."""
    cells = found.groupby(_CELL, observed=True)[list(MEASURES)].mean().reset_index()
    both = cells.groupby(_CELL[:-1], observed=True)["group"].transform("nunique") == len(GROUPS)
    return cells[both]


def by_execution(found: pd.DataFrame) -> pd.DataFrame:
    """The paired cells averaged within executions: run_id, environment, group and the measures."""
    cells = paired(found)
    return cells.groupby(["run_id", "environment", "group"], observed=True)[list(MEASURES)].mean().reset_index()


def table17(found: pd.DataFrame) -> pd.DataFrame:
    """Table 17: the measures of both groups by environment, and with equal weight for each environment."""
    if found.empty or paired(found).empty:
        return _no_rows("environment", "executions", "metric", "group")
    wide = by_execution(found).pivot(index=["environment", "run_id"], columns="group", values=list(MEASURES))
    samples = {str(env): own for env, own in wide.groupby(level="environment", observed=True)}
    rows = []
    for env, own in samples.items():
        rows += _rows(env, len(own), own.mean(), {env: own})
    if samples:
        overall = pd.concat([own.mean() for own in samples.values()], axis=1).mean(axis=1)
        rows += _rows(OVERALL, len(wide), overall, samples)
    return pd.DataFrame(rows)


def _rows(
    name: str, executions: int, values: pd.Series, samples: Mapping[str, pd.DataFrame]
) -> list[dict[str, object]]:
    """The rows of one environment, or of several with equal weight, with intervals over resampled executions."""
    drawn: np.ndarray = np.mean([_resampled_means(own.to_numpy(float)) for own in samples.values()], axis=0)
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    columns: list[object] = [*next(iter(samples.values())).columns]
    rows = []
    for metric in MEASURES:
        for group in GROUPS:
            place = columns.index((metric, group))
            row = {"environment": name, "executions": executions, "metric": metric, "group": group}
            rows.append({**row, "value": values[metric, group], "value_low": low[place], "value_high": high[place]})
    return rows


def _resampled_means(values: np.ndarray) -> np.ndarray:
    """Means of the columns in 1,000 samples of the rows with replacement."""
    n = len(values)
    weights = np.random.default_rng([intervals.SEED, n]).multinomial(n, np.full(n, 1 / n), intervals.DRAWS)
    means: np.ndarray = weights @ values / n
    return means


def pairs(found: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """How many executions, base tasks and cells the comparison rests on (E.4)."""
    cells = paired(found).drop_duplicates(_CELL[:-1])
    tasks = runs.set_index("run_id")["task_id"].reindex(cells["run_id"].unique()).nunique()
    return pd.DataFrame([{"executions": cells["run_id"].nunique(), "base_tasks": tasks, "cells": len(cells)}])


def table18(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 18: outcomes of executions without and with an adopted summary, with equal weight for each stratum
    (environment, band, model) that has both."""
    keys = ["environment", "band", "model"]
    compacted = np.where(runs["compactions"] > 0, "At least one", "None")
    rows = runs.assign(
        compaction=compacted,
        lgc_pct=100.0 * runs["goals_met"] / runs["goals_required"],
        ts_pct=100.0 * runs["success"],
        mean_tool_calls=runs["tool_calls"].astype(float),
    )
    shared = rows[rows.groupby(keys, observed=True)["compaction"].transform("nunique") == 2]
    if shared.empty:
        return _no_rows("compaction", "executions", *_TASK_OUTCOMES, "strata")
    table = []
    for name in ("None", "At least one"):
        own = shared[shared["compaction"] == name]
        strata = [group.to_numpy(float) for _, group in own.groupby(keys, observed=True)[list(_TASK_OUTCOMES)]]
        mean = np.mean([values.mean(axis=0) for values in strata], axis=0)
        drawn: np.ndarray = np.mean([_resampled_means(values) for values in strata], axis=0)
        low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
        row: dict[str, object] = {"compaction": name, "executions": len(own)}
        row |= dict(zip(_TASK_OUTCOMES, mean, strict=True))
        row["strata"] = len(strata)
        for place, measure in enumerate(_TASK_OUTCOMES):
            row |= {f"{measure}_low": low[place], f"{measure}_high": high[place]}
        table.append(row)
    return pd.DataFrame(table)


def table02(found: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Table 2: the overall rows of Table 17, and Table 18."""
    local = table17(found)
    local = local[local["environment"] == OVERALL]
    first = local.assign(section="dependency_continuity", metric=local["metric"].map(MEASURES))
    columns = ["section", "metric", "group", "value", "value_low", "value_high"]
    whole = table18(runs)
    names = {"None": "without_compaction", "At least one": "with_compaction"}
    second = [
        {
            "section": "task_outcomes",
            "metric": measure,
            "group": names[row["compaction"]],
            "value": row[measure],
            "value_low": row[f"{measure}_low"],
            "value_high": row[f"{measure}_high"],
        }
        for measure in _TASK_OUTCOMES
        for row in whole.to_dict("records")
    ]
    return plain(pd.concat([first[columns], pd.DataFrame(second, columns=columns)]))


def _no_rows(*columns: str) -> pd.DataFrame:
    return pd.DataFrame(columns=[*columns, *(() if "strata" in columns else ("value", "value_low", "value_high"))])
