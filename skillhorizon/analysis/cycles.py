"""Goal cycles and their checks (paper C.2, E.3), which recovery and visibility both count.

A check is an attempt of a business operation that the business judged against a goal: it passed or failed. A goal's
cycle begins with the goal, goes on through changed parameters and replaced artifacts, and ends when a check passes or
the run does; what happens to a goal after it was accepted belongs to no cycle until an invalidation opens the next.
A refusal for the form of a call, or for naming what does not exist, judges no goal and is no check here. Reads, other
goals' work and edits without verification are none either.
"""

from __future__ import annotations

import pandas as pd

COLUMNS = ("run_id", "decision", "tool", "charged", "goal", "cycle", "check", "reason")
"""Columns of ``events`` that the checks are read from, whose rows are in the order of the calls."""
FORMAL = frozenset({"schema", "bad_argument", "unknown_id", "unknown_post"})


def checks(events: pd.DataFrame) -> pd.DataFrame:
    """One row per check that belongs to a cycle: run_id, decision, tool, goal, cycle, passed, attempt.

    ``attempt`` is the number of charged attempts up to and including the check.
    """
    attempt = events["charged"].astype("int64").groupby(events["run_id"], observed=True, sort=False).cumsum()
    kept = events["check"].notna() & ~events["reason"].isin(FORMAL)
    judged = events.loc[kept, ["run_id", "decision", "tool", "goal", "cycle"]].assign(attempt=attempt[kept])
    judged["passed"] = events.loc[kept, "check"].astype(bool)
    passed = judged["passed"].astype("int64")
    before = passed.groupby([judged[k] for k in ("run_id", "goal", "cycle")], observed=True, sort=False).cumsum()
    return judged[before == passed].reset_index(drop=True)


def cycles(checked: pd.DataFrame) -> pd.DataFrame:
    """One row per cycle that was checked.

    run_id, goal, cycle
    tool, decision, attempt    of its first check
    first_passed               whether that check passed
    passed                     whether any did
    retries                    checks after the first; where one passed, it is the last of them
    passed_at                  charged attempts up to the check that passed, else empty
    """
    groups = checked.groupby(["run_id", "goal", "cycle"], observed=True, sort=False)
    table = groups.agg(
        tool=("tool", "first"),
        decision=("decision", "first"),
        attempt=("attempt", "first"),
        first_passed=("passed", "first"),
        passed=("passed", "last"),
        retries=("passed", "size"),
        passed_at=("attempt", "last"),
    ).reset_index()
    table["retries"] -= 1
    table["passed_at"] = table["passed_at"].where(table["passed"]).astype("Int64")
    return table
