"""Failed final submissions that leave work and allowance (paper 4.1, E.1, E.5; Figure 3b, Tables 12 and 19).

A failed final is an execution that its agent ended by a confirmed final answer and that fails business acceptance;
one that ran out of its allowance, or broke off, is none. It is measured where both its local completion and its
allowance are known: missing values are left out and never filled in. Unused allowance is (B - U) / B with U charged
attempts. The joint event is LGC below a quarter and unused allowance above a share of B, both strict, in whole
numbers. The second rate divides the same events by all executions of the band.
"""

from __future__ import annotations

import pandas as pd

from skillhorizon.analysis import intervals
from skillhorizon.analysis.populations import plain

LOW_LGC = 25
UNUSED = 50
SENSITIVITY = (40, 50, 60)


def failed_finals(runs: pd.DataFrame, unused: int = UNUSED) -> pd.DataFrame:
    """The failed finals, with ``measured``, ``event`` (of the measured), ``lgc_pct`` and ``unused_pct``."""
    finals = runs[(runs["end"] == "submitted") & ~runs["success"]]
    met, required = finals["goals_met"], finals["goals_required"]
    budget, left = finals["B"], finals["B"] - finals["attempts"]
    measured = met.notna() & (required > 0) & (budget > 0) & finals["attempts"].notna()
    event = (100 * met < LOW_LGC * required) & (100 * left > unused * budget)
    return finals.assign(
        measured=measured.astype(bool),
        event=(measured & event).astype(bool),
        lgc_pct=100.0 * met / required,
        unused_pct=100.0 * left / budget,
    )


def table12(runs: pd.DataFrame, unused: int = UNUSED) -> pd.DataFrame:
    """Table 12: by band, measured and all failed finals, events, and the events in percent of measured and of all
    executions. Without a measured final the first rate is empty."""
    finals = failed_finals(runs, unused)
    groups = finals.groupby("band", observed=False)
    present = runs["band"].value_counts(sort=False)
    table = pd.DataFrame(
        {"measured": groups["measured"].sum(), "all_finals": groups.size(), "events": groups["event"].sum()}
    )
    table = table.reindex([b for b in present.index if present[b]]).astype(int)
    assigned = present.reindex(table.index)
    for name, base in (("measured_rate_pct", table["measured"]), ("all_assigned_pct", assigned)):
        known = base.where(base > 0).astype(float)
        low, high = intervals.wilson(table["events"], known)
        table[name] = 100 * table["events"] / known
        table[f"{name}_low"], table[f"{name}_high"] = 100 * low, 100 * high
    return plain(table.rename_axis("band").reset_index())


def figure3b(runs: pd.DataFrame) -> pd.DataFrame:
    """Figure 3b: the joint event in percent of measured failed finals, ``n`` of them."""
    renamed = {f"measured_rate_pct{end}": f"joint_event_pct{end}" for end in ("", "_low", "_high")}
    table = table12(runs).rename(columns={"measured": "n", **renamed})
    return table[["band", "n", *renamed.values()]]


def sensitivity(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 12 at other thresholds of unused allowance, in the column ``unused_above_pct`` (E.1)."""
    return pd.concat([table12(runs, t).assign(unused_above_pct=t) for t in SENSITIVITY], ignore_index=True)


def table19(runs: pd.DataFrame) -> pd.DataFrame:
    """Table 19: by model and band, medians of the measured failed finals and the share of joint events."""
    finals = failed_finals(runs)
    measured = finals[finals["measured"]]
    keys = ["model", "band"]
    groups = measured.groupby(keys, observed=True)
    table = pd.DataFrame(
        {
            "n": groups.size(),
            "median_lgc_pct": groups["lgc_pct"].median(),
            "median_unused_allowance_pct": groups["unused_pct"].median(),
        }
    )
    shares = intervals.share(measured, keys, "event", "low_progress_high_allowance_pct")
    return plain(table.join(shares).reset_index())
