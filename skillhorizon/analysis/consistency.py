"""Do the paper's numbers agree with each other? Every relation between its tables, figures and text that can be told.

A relation derives printed numbers from other printed ones. They agree when they differ by no more than the rounding of
both sides allows: half of the last printed digit of each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from skillhorizon.analysis import frames
from skillhorizon.analysis.frames import Frames

Pairs = pd.DataFrame
"""Columns ``printed`` and ``derived``, a row for each number that a relation speaks of."""

RELATIONS: list[tuple[str, float, Callable[[Frames], Pairs]]] = []
"""What is claimed, how far rounding may part the two sides, and both of them."""


def relation(claim: str, tolerance: float) -> Callable[[Callable[[Frames], Pairs]], Callable[[Frames], Pairs]]:
    def declare(pairs: Callable[[Frames], Pairs]) -> Callable[[Frames], Pairs]:
        RELATIONS.append((claim, tolerance, pairs))
        return pairs

    return declare


def checks(folder: str | Path) -> pd.DataFrame:
    """Every relation on the transcribed tables: claim, numbers compared, largest difference, tolerance, agrees."""
    paper = with_facts(folder)
    rows = []
    for claim, tolerance, pairs in RELATIONS:
        both = pairs(paper).astype(float)
        largest = (both["printed"] - both["derived"]).abs().max()
        rows.append((claim, len(both), largest, tolerance, bool(largest <= tolerance + 1e-9)))
    return pd.DataFrame(rows, columns=["claim", "numbers", "largest_difference", "tolerance", "agrees"])


def with_facts(folder: str | Path) -> dict[str, pd.DataFrame]:
    """The published frames, and the numbers of the running text under ``text_facts``."""
    return {**frames.published(folder), "text_facts": frames.read(Path(folder) / "text_facts.csv")}


def _pairs(printed: Any, derived: Any) -> Pairs:
    """Two series of numbers side by side, by their index; a printed number without a partner is a mistake."""
    both = pd.DataFrame({"printed": printed, "derived": derived.reindex(printed.index)})
    if both.empty or both.isna().any(axis=None):
        raise ValueError("a printed number has nothing to be derived from")
    return both


def _fact(paper: Frames, name: str) -> float:
    facts = paper["text_facts"].set_index("fact_id")["value"]
    return float(facts[name])


def _facts(paper: Frames, **derived: float) -> Pairs:
    printed = pd.Series({name: _fact(paper, name) for name in derived})
    return _pairs(printed, pd.Series(derived, dtype=float))


def _main(paper: Frames, metric: str) -> pd.Series:
    table = paper["table01"]
    return table[table["metric"] == metric].set_index(["model", "band"])["value"].astype(float)


def successes(paper: Frames) -> pd.DataFrame:
    """Table 9 with ``k``, the successes among the 30 executions of each cell: its TS can be nothing else."""
    table = paper["table09"]
    return table.assign(k=(30 * table["ts"].astype(float) / 100).round().astype(int))


def _failures(paper: Frames) -> pd.DataFrame:
    """Counts of 1,050 executions of each band by outcome, from the shares of Figure 4a."""
    wide = paper["figure4a"].pivot(index="band", columns="outcome", values="pct").astype(float)
    counts = (wide * 10.5).round()
    return counts.assign(task_success=successes(paper).groupby("band")["k"].sum())


@relation("Table 1, LGC of a band: mean of Table 9 over environments", 0.1)
def _lgc_of_bands(paper: Frames) -> Pairs:
    printed = _main(paper, "LGC").drop("Overall", level="band")
    return _pairs(printed, paper["table09"].groupby(["model", "band"])["lgc"].mean())


@relation("Table 1, TS of a band: successes of Table 9 among 210", 0.05)
def _ts_of_bands(paper: Frames) -> Pairs:
    printed = _main(paper, "TS").drop("Overall", level="band")
    return _pairs(printed, successes(paper).groupby(["model", "band"])["k"].sum() / 2.1)


@relation("Table 1, Overall LGC: mean of its bands", 0.1)
def _overall_lgc(paper: Frames) -> Pairs:
    lgc = _main(paper, "LGC")
    return _pairs(lgc.xs("Overall", level="band"), lgc.drop("Overall", level="band").groupby("model").mean())


@relation("Table 1, Overall TS: successes of Table 9 among 1,050", 0.05)
def _overall_ts(paper: Frames) -> Pairs:
    return _pairs(_main(paper, "TS").xs("Overall", level="band"), successes(paper).groupby("model")["k"].sum() / 10.5)


@relation("Table 9, TS: a whole number of 30 executions", 0.05)
def _whole_successes(paper: Frames) -> Pairs:
    cells = successes(paper).set_index(["environment", "model", "band"])
    return _pairs(cells["ts"], cells["k"] / 0.3)


@relation("Table 10, LGC pooled over families: mean of Table 9 over bands", 0.1)
def _families_lgc(paper: Frames) -> Pairs:
    table = paper["table10"]
    keys = ["environment", "model"]
    weighed = table.assign(sum=table["lgc"] * table["n"]).groupby(keys)[["sum", "n"]].sum()
    return _pairs(weighed["sum"] / weighed["n"], paper["table09"].groupby(keys)["lgc"].mean())


@relation("Table 10, successes over families: those of Table 9", 0)
def _families_ts(paper: Frames) -> Pairs:
    table = paper["table10"]
    keys = ["environment", "model"]
    counts = (table["ts"].astype(float) * table["n"] / 100).round()
    return _pairs(counts.groupby([table[k] for k in keys]).sum(), successes(paper).groupby(keys)["k"].sum())


@relation("Table 10: 150 executions of each model in each environment", 0)
def _families_n(paper: Frames) -> Pairs:
    counts = paper["table10"].groupby(["environment", "model"])["n"].sum()
    return _pairs(counts, pd.Series(150, index=counts.index))


@relation("Table 11, successes: those of Table 9", 0)
def _costs_n(paper: Frames) -> Pairs:
    return _pairs(paper["table11"].set_index("model")["n_success"], successes(paper).groupby("model")["k"].sum())


@relation("Table 12, measured rate: events among the measured", 0.05)
def _measured_rate(paper: Frames) -> Pairs:
    table = paper["table12"].set_index("band")
    return _pairs(table["measured_rate_pct"], 100 * table["events"] / table["measured"])


@relation("Table 12, rate of all: events among 1,050", 0.05)
def _assigned_rate(paper: Frames) -> Pairs:
    table = paper["table12"].set_index("band")
    return _pairs(table["all_assigned_pct"], table["events"] / 10.5)


@relation("Table 12, totals: failed finals and those measured, as in the text", 0)
def _finals(paper: Frames) -> Pairs:
    table = paper["table12"]
    return _facts(paper, failed_finals_all=table["all_finals"].sum(), failed_finals_measured=table["measured"].sum())


@relation("Figure 3b: Table 12", 0)
def _figure3b(paper: Frames) -> Pairs:
    figure, table = paper["figure3b"].set_index("band"), paper["table12"].set_index("band")
    printed = pd.concat([figure["n"].astype(float), figure["joint_event_pct"]], keys=["n", "rate"])
    return _pairs(printed, pd.concat([table["measured"].astype(float), table["measured_rate_pct"]], keys=["n", "rate"]))


@relation("Figure 4a, success: successes of Table 9 among 1,050", 0.05)
def _figure4a(paper: Frames) -> Pairs:
    figure = paper["figure4a"]
    printed = figure[figure["outcome"] == "task_success"].set_index("band")["pct"]
    return _pairs(printed, successes(paper).groupby("band")["k"].sum() / 10.5)


@relation("Figure 4a: the outcomes of a band make 100 %", 0.2)
def _figure4a_sum(paper: Frames) -> Pairs:
    total = paper["figure4a"].groupby("band")["pct"].sum()
    return _pairs(total, pd.Series(100.0, index=total.index))


@relation("Figure 4a, failures with 75 to 100 % and with 100 % LGC: the counts of the text", 0)
def _figure4a_failures(paper: Frames) -> Pairs:
    totals = _failures(paper).sum()
    return _facts(
        paper, failures_lgc_75_to_100=totals["failure_lgc_75_to_100"], failures_lgc_100=totals["failure_lgc_100"]
    )


@relation("Table 13, q = 75: successes among those that Figure 4a puts at 75 % or more", 0.05)
def _delivery_75(paper: Frames) -> Pairs:
    counts = _failures(paper)
    eligible = counts[["task_success", "failure_lgc_100", "failure_lgc_75_to_100"]].sum(axis=1)
    return _pairs(_delivery(paper, 75), 100 * counts["task_success"] / eligible)


@relation("Table 13, q = 100: successes among those that Figure 4a puts at 100 %", 0.05)
def _delivery_100(paper: Frames) -> Pairs:
    counts = _failures(paper)
    return _pairs(
        _delivery(paper, 100),
        100 * counts["task_success"] / (counts["task_success"] + counts["failure_lgc_100"]),
    )


def _delivery(paper: Frames, q: int) -> pd.Series:
    table = paper["table13"]
    return table[table["q_pct"] == q].set_index("band")["task_success_pct"]


@relation("Table 14, rejected: the sum of its reasons", 0)
def _rejected(paper: Frames) -> Pairs:
    table = paper["table14"]
    total = table[table["key"] == "Rejected"].set_index("key")["value"]
    reasons = table.loc[table["section"] == "reason", "value"].sum()
    return _pairs(total, pd.Series({"Rejected": reasons}))


@relation("Table 14, matched: accepted and rejected of the text; executions: its bands", 0)
def _matched(paper: Frames) -> Pairs:
    table = paper["table14"]
    rejected = table.loc[table["key"] == "Rejected", "value"].sum()
    executions = table.loc[table["metric"] == "eligible_executions", "value"].sum()
    matched = _fact(paper, "socialops_matched_accepted") + rejected
    return _facts(paper, socialops_matched_attempts=matched, socialops_matched_executions=executions)


@relation("Table 15, totals: executions and cycles of the text", 0)
def _recovery_totals(paper: Frames) -> Pairs:
    table = paper["table15"]
    return _facts(
        paper,
        recovery_executions=table["eligible_executions"].sum(),
        recovery_cycles=table["first_failure_cycles"].sum(),
    )


@relation("Table 16, executions and failed goals of a band: Table 15 over models", 0)
def _failed_goals(paper: Frames) -> Pairs:
    outcomes = paper["table16"].set_index("band")
    sums = paper["table15"].groupby("band")[["eligible_executions", "first_failure_cycles"]].sum()
    names = ["executions", "failed_goals"]
    return _pairs(outcomes[names].stack(), sums.set_axis(names, axis=1).stack())


@relation("Table 16: what became of failed goals makes 100 %", 0.15)
def _fates(paper: Frames) -> Pairs:
    total = paper["table16"].set_index("band")[["recovered_pct", "rechecked_no_pass_pct", "no_recheck_pct"]].sum(axis=1)
    return _pairs(total, pd.Series(100.0, index=total.index))


@relation("Figure 5a: recovery, and no pass under and at seven checks, make 100 %", 0.15)
def _seven(paper: Frames) -> Pairs:
    rest = {
        f"recovery_{band}_k7": 100
        - _fact(paper, f"nopass_under7checks_{band}")
        - _fact(paper, f"nopass_7checks_{band}")
        for band in ("64K", "1M")
    }
    return _facts(paper, **rest)


@relation("Figure 5b-d, cohort: the executions of its bands", 0)
def _cohort(paper: Frames) -> Pairs:
    bands = ("64K", "128K", "256K", "512K", "1M")
    return _facts(paper, prefix_executions=sum(_fact(paper, f"prefix_executions_{band}") for band in bands))


@relation("Table 17, Overall: mean of the environments", 0.1)
def _visibility(paper: Frames) -> Pairs:
    table = paper["table17"]
    keys = ["metric", "group"]
    overall = table[table["environment"] == "Overall"].set_index(keys)["value"]
    return _pairs(overall, table[table["environment"] != "Overall"].groupby(keys)["value"].mean())


@relation("Table 17, executions: the sum of the environments", 0)
def _visibility_n(paper: Frames) -> Pairs:
    counts = paper["table17"].drop_duplicates("environment").set_index("environment")["executions"]
    return _pairs(counts[["Overall"]], pd.Series({"Overall": counts.drop("Overall").sum()}))


@relation("Table 2, dependency checks: Table 17's Overall", 0)
def _continuity(paper: Frames) -> Pairs:
    short, full = paper["table02"], paper["table17"]
    printed = short[short["section"] == "dependency_continuity"].set_index(["metric", "group"])["value"]
    overall = full[full["environment"] == "Overall"].assign(
        metric=lambda t: t["metric"].replace("first_pass_pct", "first_check_acceptance_pct")
    )
    return _pairs(printed, overall.set_index(["metric", "group"])["value"])


@relation("Table 2, outcomes: Table 18", 0)
def _compaction(paper: Frames) -> Pairs:
    short = paper["table02"]
    printed = short[short["section"] == "task_outcomes"].set_index(["group", "metric"])["value"]
    full = paper["table18"].set_index("compaction")[["lgc_pct", "ts_pct", "mean_tool_calls"]]
    named = full.rename(index={"None": "without_compaction", "At least one": "with_compaction"})
    return _pairs(printed, named.stack())


@relation("Table 19, event rate: a whole number of its executions", 0.05)
def _stopping(paper: Frames) -> Pairs:
    table = paper["table19"].set_index(["model", "band"])
    rate, n = table["low_progress_high_allowance_pct"].astype(float), table["n"]
    return _pairs(rate, 100 * (rate * n / 100).round() / n)


@relation("Table 20: 50 tasks of each configuration, TS from its successes", 0)
def _interfaces(paper: Frames) -> Pairs:
    table = paper["table20"].set_index("configuration")
    counts = table[["success", "final_failure", "budget_exhausted"]].sum(axis=1).astype(float)
    printed = pd.concat([counts, table["ts_pct"]], keys=["n", "ts"])
    return _pairs(printed, pd.concat([counts * 0 + 50.0, table["success"] * 2.0], keys=["n", "ts"]))


@relation("Table 21: DeepSeek V4.1 Flash at 1M in Table 9", 0)
def _deepseek(paper: Frames) -> Pairs:
    table = paper["table09"]
    own = table[(table["model"] == "DeepSeek V4.1 Flash") & (table["band"] == "1M")].set_index("environment")
    return _pairs(paper["table21"].set_index("environment")[["lgc", "ts"]].stack(), own[["lgc", "ts"]].stack())


@relation("Text, endings: successes of Table 9; all endings make 5,250", 0)
def _endings(paper: Frames) -> Pairs:
    won = successes(paper)["k"].sum()
    rest = _fact(paper, "endpoint_failure_not_budget") + _fact(paper, "endpoint_failure_budget")
    return _facts(paper, endpoint_success=won, executions_total=won + rest)


@relation("Text, mean LGC at 64K and 1M: mean of Table 1 over models", 0.1)
def _mean_lgc(paper: Frames) -> Pairs:
    means = _main(paper, "LGC").groupby("band").mean()
    return _facts(paper, mean_lgc_64K=means["64K"], mean_lgc_1M=means["1M"])


@relation("Text, full set of Figure 6: successes of its three families among 500", 0.05)
def _sampling(paper: Frames) -> Pairs:
    families = ("heterogeneous_integration", "receivables_reconciliation", "release_maintenance")
    won = sum(_fact(paper, f"sampling_{family}_successes") for family in families)
    return _facts(paper, sampling_full_set_ts=won / 5)


@relation("Figure 6, 5th and 95th percentile at 50 and 300 tasks: orders drawn anew", 0.05)
def _percentiles(paper: Frames) -> Pairs:
    """The percentiles lie on whole tasks, so that a thousand other orders give the same ones."""
    keys = ["sampled_tasks", "statistic"]
    printed = paper["figure6_printed"].query("statistic != 'full_set_ts'").set_index(keys)["value_pct"]
    return _pairs(printed, paper["figure6"].set_index(keys)["value_pct"])


@relation("Table 5: each band begins where the one before it ends", 0)
def _bands(paper: Frames) -> Pairs:
    table = paper["table05"].set_index("band")
    return _pairs(table["lower_exclusive"], table["upper_inclusive"].shift(fill_value=0))
