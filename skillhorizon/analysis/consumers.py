"""Whether what a script computed is accepted where it is handed on (paper 4.2, E.2, Table 14).

The consumer is SocialOps' ``publish_post``. A matched attempt is one whose post, list of past publications (repeats
kept) and audience loads (types kept) are those that a successful script run of an earlier response had returned; the
table ``matches`` says which (``core.links``). Each attempt counts once, however many runs it matches. It was rejected
when the business refused it. Rejection rates are formed within each execution that has a matched attempt and averaged
over those executions. A match says that values agree, not where the agent had them from.
"""

from __future__ import annotations

import pandas as pd

from skillhorizon.analysis import intervals
from skillhorizon.analysis.populations import Traces, plain

ENVIRONMENT = "social"
CONSUMER = "publish_post"
REASONS = {
    "required_historical_sources": "Required historical source identities",
    "current_audience_loads": "Current decayed audience loads",
    "due_post_state": "Due-post time or status",
    "schema": "Schema",
    "unknown_post": "Post lookup",
    "approval_void": "Approval no longer valid",
    "load_cap": "Audience load cap",
}
"""Public code of a refusal -> its name in the table; the first five are the paper's."""
_COLUMNS = ("run_id", "step", "tool", "ok", "code")


def matched_attempts(traces: Traces) -> pd.DataFrame:
    """The matched attempts of all traces: run_id, model, band, code (empty where accepted) and rejected."""
    found = []
    links = traces.parts("matches", ("run_id", "step"), optional=True)
    for events, matches in zip(traces.parts("events", _COLUMNS), links, strict=True):
        if (events.runs["env"] == ENVIRONMENT).all():
            found.append(matched(events.table, matches.table, events.runs))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["run_id", "model", "band", "code"])


def matched(events: pd.DataFrame, matches: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The matched attempts of some runs."""
    own = events[events["tool"] == CONSUMER].astype({"run_id": "str"})
    known = matches[["run_id", "step"]].drop_duplicates().astype({"run_id": "str", "step": own["step"].dtype})
    attempts = own.merge(known, on=["run_id", "step"]).merge(runs[["run_id", "model", "band"]], on="run_id")
    return attempts.assign(rejected=~attempts["ok"].astype(bool))[["run_id", "model", "band", "code", "rejected"]]


def table14(attempts: pd.DataFrame) -> pd.DataFrame:
    """Table 14: rejections by public reason, totals, and by band the executions and their mean rejection rate."""
    if attempts.empty:
        return pd.DataFrame(columns=["section", "key", "metric", "value", "value_low", "value_high"])
    rejected = attempts[attempts["rejected"]]
    counts = rejected["code"].value_counts()
    rows: list[tuple[str, str, str, float]] = [
        ("reason", REASONS.get(code, code), "attempts", int(counts.get(code, 0)))
        for code in [*REASONS, *sorted(set(counts.index) - set(REASONS))]
    ]
    rows += [("total", "Rejected", "attempts", len(rejected)), ("total", "Matched", "attempts", len(attempts))]
    table = pd.DataFrame(rows, columns=["section", "key", "metric", "value"])
    rates = attempts.groupby(["run_id", "band"], observed=True)["rejected"].mean().mul(100.0).reset_index()
    sizes = rates.groupby("band", observed=True).size().rename("value").reset_index()
    means = intervals.bootstrapped(rates, ["band"], "rejected", "value").reset_index()
    parts = [
        part.assign(section="band", metric=metric)
        for part, metric in ((sizes, "eligible_executions"), (means, "mean_rejection_rate_pct"))
    ]
    bands = plain(pd.concat(parts).rename(columns={"band": "key"}))
    whole = pd.concat([table, bands], ignore_index=True)
    return whole[["section", "key", "metric", "value", "value_low", "value_high"]]
