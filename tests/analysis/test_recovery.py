"""Recovery within goal cycles and along budget prefixes, on traces whose right values are counted in the comments."""

from __future__ import annotations

from typing import Any

import pandas as pd

from skillhorizon.analysis import recovery
from skillhorizon.analysis.cycles import checks, cycles
from tests.analysis.handmade import PUBLISHED, check, events, runs


def found(*rows: dict[str, Any]) -> pd.DataFrame:
    return cycles(checks(events(*rows))).astype({"goal": str}).set_index(["goal", "cycle"])


def test_a_cycle_runs_from_its_first_check_to_acceptance_and_an_invalidation_opens_the_next():
    table = found(
        check("page:a", False),  # attempt 1
        {"kind": "query", "tool": "read"},  # 2: no check
        check("page:b", True),  # 3: other work
        {"tool": "edit", "goal": "page:a"},  # 4: an edit without verification
        check("page:a", False),  # 5: retry 1
        {"tool": "declare", "charged": False},  # exempt
        check("page:a", True),  # 6: retry 2, accepted
        check("page:a", False),  # 7: after acceptance, without invalidation: in no cycle
        check("page:a", False, cycle=2),  # 8: the update cycle
        check("page:a", True, cycle=2),  # 9
        check("page:c", False),  # 10: never checked again
    )
    assert list(table.index) == [("page:a", 1), ("page:b", 1), ("page:a", 2), ("page:c", 1)]
    assert list(table["first_passed"]) == [False, True, False, False]
    assert list(table["passed"]) == [True, True, True, False]
    assert list(table["retries"]) == [2, 0, 1, 0]
    assert list(table["attempt"]) == [1, 3, 8, 10]
    assert list(table["passed_at"].fillna(0)) == [6, 3, 9, 0]


def test_refusals_for_the_form_of_a_call_are_no_checks():
    table = found(
        check("page:a", False, reason="schema"),
        check("page:x", False, reason="unknown_post"),
        check("page:a", True),
    )
    assert list(table.index) == [("page:a", 1)]
    assert bool(table["first_passed"].iloc[0])
    assert table["retries"].iloc[0] == 0


def three_runs() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run r1: goals recovered at retry 3 and 5, one never rechecked, one rechecked seven times in vain.
    Run r2: one goal recovered at retry 1, a second fails after R. Run r3 has no failure; r4 has no allowance."""
    rows = []
    for goal, fails, passes in (("a", 3, 1), ("b", 5, 1), ("c", 1, 0), ("d", 8, 0)):
        rows += [check(goal, False)] * fails + [check(goal, True)] * passes
    rows += [check("a", False, run_id="r2"), check("a", True, run_id="r2"), *[{"run_id": "r2"}] * 3]
    rows += [check("b", False, run_id="r2"), check("a", True, run_id="r3"), check("a", False, run_id="r4")]
    frame = runs(
        {"R": 19, "A": 2, "attempts": 19},
        {"R": 4, "A": 4, "attempts": 6},
        {},
        {"B": None},
    )
    return events(*rows), frame


def failed() -> pd.DataFrame:
    told, frame = three_runs()
    return recovery.eligible(cycles(checks(told)), frame)


def test_eligibility_is_fixed_at_the_first_failure_and_includes_goals_never_checked_again():
    table = recovery.table15(failed())
    assert table.to_dict("records") == [
        {"model": "hasty", "band": "64K", "eligible_executions": 2, "first_failure_cycles": 6}
    ]


def test_recovery_within_k_averages_within_executions_first():
    # r1: a passes at its 3rd retry, b at its 5th, of 4 cycles: 1/4 at k = 3 and 4, 2/4 from 5. r2: 1 of 2 at every k.
    table = recovery.figure5a(failed()).set_index("x")["value_pct"]
    assert table.to_dict() == {3: 37.5, 4: 37.5, 5: 50.0, 6: 50.0, 7: 50.0}
    assert set(recovery.figure5a(failed())["executions"]) == {2}


def test_what_became_of_failed_goals_adds_up():
    # r1: 2/4 recovered, d rechecked in vain 1/4, c dropped 1/4; r2: 1/2, 0, 1/2
    row = recovery.table16(failed()).iloc[0]
    assert (row["executions"], row["failed_goals"]) == (2, 6)
    outcome = [row["recovered_pct"], row["rechecked_no_pass_pct"], row["no_recheck_pct"]]
    assert outcome == [50.0, 12.5, 37.5]
    assert sum(outcome) == 100.0


def test_unresolved_goals_are_told_apart_by_their_retries():
    # k = 7: r1: c has 0 retries (fewer), d has 7 (reached); r2: b has 0
    row = recovery.unresolved(failed()).iloc[0]
    assert (row["fewer_checks_pct"], row["reached_pct"]) == (37.5, 12.5)
    # k = 4: b of r1 passes only at its 5th retry, so it reached 4 without a pass
    assert recovery.unresolved(failed(), 4).iloc[0]["reached_pct"] == 25.0


def test_budget_prefixes_keep_one_cohort_and_earlier_ends():
    # r1 fails a to d at attempts 1, 5, 11, 12 (R = 19): all in the cohort. r2 fails a at 1, b at 6 > R = 4: a only.
    told, frame = three_runs()
    all_failed = recovery.eligible(cycles(checks(told)), frame)
    sizes = recovery.cohort_size(all_failed).iloc[0]
    assert (sizes["executions"], sizes["cycles"]) == (2, 5)
    prefixes = pd.DataFrame(
        [
            ("r1", 0.0, 8, 1, False),
            ("r1", 0.5, 19, 6, False),
            ("r2", 0.0, 1, 0, False),
            ("r2", 0.5, 6, 10, True),
            ("r3", 0.0, 9, 10, True),  # no failure: not in the cohort
        ],
        columns=["run_id", "factor", "attempts", "goals_met", "success"],
    )
    table = recovery.figure5bcd(all_failed, prefixes, frame).set_index(["panel", "x"])["value_pct"]
    # LGC: (1 + 0) / 20 and (6 + 10) / 20; TS: 0 and 1/2
    assert (table["b", 0.0], table["b", 0.5]) == (5.0, 80.0)
    assert (table["c", 0.0], table["c", 0.5]) == (0.0, 50.0)
    # recovery: r1 passes a at attempt 4 and b at 10: within 8 attempts 1/4, within 19 2/4.
    # r2 passes a at 2: not within 1, but within 6. Means: (1/4 + 0) / 2 and (1/2 + 1) / 2.
    assert (table["d", 0.0], table["d", 0.5]) == (12.5, 75.0)


def test_the_figure_has_the_published_columns():
    _told, frame = three_runs()
    prefixes = pd.DataFrame(
        [("r1", 0.0, 8, 1, False)], columns=["run_id", "factor", "attempts", "goals_met", "success"]
    )
    table = recovery.figure5(failed(), prefixes, frame)
    published = pd.read_csv(PUBLISHED / "figure5.csv")
    assert list(table.columns[: len(published.columns)]) == list(published.columns)
    assert set(zip(published["panel"], published["metric"], published["x_name"], strict=True)) <= set(
        zip(table["panel"], table["metric"], table["x_name"], strict=True)
    )


def test_every_limit_of_retries_sees_the_same_executions():
    by_limit = recovery.figure5a(failed()).set_index("x")["executions"]
    populations = recovery.table15(failed())["eligible_executions"].sum()
    assert by_limit.to_dict() == dict.fromkeys(recovery.RETRIES, populations)
