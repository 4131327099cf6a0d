"""Outcomes, scale, stopping, costs and sampling on executions whose right values fit in a comment."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skillhorizon.analysis import costs, intervals, outcomes, sampling, scale, stopping
from skillhorizon.analysis.populations import endpoints, family_name
from skillhorizon.core.errors import InputError
from tests.analysis.handmade import PUBLISHED, runs


def test_a_continued_run_is_one_execution_and_no_end_leaves_the_denominator():
    rows = [
        {"run_id": "a", "success": True, "goals_met": 10},
        {"run_id": "a", "success": True, "goals_met": 10},  # its continuation
        {"run_id": "b", "success": True, "goals_met": 10, "end": "exhausted"},  # the last attempt completed the task: S
        {"run_id": "c", "end": "exhausted"},  # B
        {"run_id": "d", "end": "failed"},  # F
        {"run_id": "e", "end": "stopped"},  # F
        {"run_id": "f"},  # F
    ]
    table = endpoints(runs(*rows))
    assert table.to_dict("records") == [{"model": "hasty", "S": 2, "F": 3, "B": 1, "executions": 6}]


def test_lgc_averages_fractions_and_not_goals():
    # 1/2 and 4/4: the mean fraction is 75 %, though 5 of 6 goals are met
    frame = runs({"goals_met": 1, "goals_required": 2}, {"goals_met": 4, "goals_required": 4, "success": True})
    row = outcomes.table09(frame).iloc[0]
    assert (row["environment"], row["model"], row["band"], row["n"]) == ("DocOps", "hasty", "64K", 2)
    assert (row["lgc"], row["ts"]) == (75.0, 50.0)
    assert row["lgc_low"] == 50.0
    assert row["lgc_high"] == 100.0
    # Wilson for 1 of 2: centre 1/2, half width z / (2 sqrt(2 + z^2)) = 1.96 / (2 * 2.4166) = 0.4055
    assert row["ts_low"] == pytest.approx(9.45, abs=0.01)
    assert row["ts_high"] == pytest.approx(90.55, abs=0.01)


def test_table_1_is_long_and_overall_weighs_executions_and_not_bands():
    # 64K: 100, 100, 100; 128K: 0. Overall is 75, not 50.
    whole = {"goals_met": 10, "success": True}
    table = outcomes.table01(runs(whole, whole, whole, {"band": "128K", "goals_met": 0}, {**whole, "agent": "steady"}))
    assert list(table.columns[:4]) == ["model", "metric", "band", "value"]
    got = {tuple(row[:3]): row[3] for row in table.itertuples(index=False, name=None)}
    assert got[("hasty", "LGC", "64K")] == 100.0
    assert got[("hasty", "LGC", "128K")] == 0.0
    assert got[("hasty", "LGC", "Overall")] == 75.0
    assert got[("hasty", "TS", "Overall")] == 75.0
    assert [key for key in got if key[0] == "hasty"] == [
        ("hasty", m, b) for m in ("LGC", "TS") for b in ("64K", "128K", "Overall")
    ]


def test_families_are_named_as_the_paper_prints_them():
    frame = runs({"family": "overlap-reactivation", "env": "social"}, {"family": "expiring-reservations"})
    table = outcomes.table10(frame)
    assert list(zip(table["environment"], table["family"], strict=True)) == [
        ("SocialOps", "Overlap + reactivation"),
        ("DocOps", "Expiring reservations"),
    ]
    paper = pd.read_csv(PUBLISHED / "table10_family_results.csv")["family"].unique()
    slugs = [name.lower().replace(" + ", "-").replace(" ", "-") for name in paper]
    assert [family_name(slug) for slug in slugs] == list(paper)


def test_figure_2_pools_environments_with_equal_weight_for_tasks():
    table = outcomes.figure2(runs({"success": True}, {"success": True}, {"env": "social"}))
    assert dict(zip(table["environment"], table["ts"], strict=True)) == {
        "SocialOps": 0.0,
        "DocOps": 100.0,
        "Overall": pytest.approx(200 / 3),
    }


def test_joint_outcomes_compare_whole_numbers():
    # G = 3: two of three is 66.7 %, so 100 g >= 75 G fails (200 < 225); G = 4: three of four is exactly 75 %
    frame = runs(
        {"success": True, "goals_met": 10},
        {"goals_met": 10},
        {"goals_met": 3, "goals_required": 4},
        {"goals_met": 2, "goals_required": 3},
        {"goals_met": 0},
    )
    table = outcomes.figure4a(frame)
    assert list(table["outcome"]) == list(outcomes.OUTCOMES)
    assert list(table["pct"]) == [20.0, 20.0, 20.0, 40.0]
    assert table["pct"].sum() == 100.0


def test_delivery_given_completion_keeps_all_successes_as_the_threshold_rises():
    # eligible at 75: a b c; at 80 and 90: a b; at 100: a b. The success is a in all.
    frame = runs(
        {"success": True, "goals_met": 10},
        {"goals_met": 10},
        {"goals_met": 3, "goals_required": 4},
        {"goals_met": 1, "band": "128K"},  # never eligible: its band has no row
    )
    table = outcomes.table13(frame)
    assert list(zip(table["band"], table["q_pct"], table["successes"], table["eligible"], strict=True)) == [
        ("64K", 75, 1, 3),
        ("64K", 80, 1, 2),
        ("64K", 90, 1, 2),
        ("64K", 100, 1, 2),
    ]
    assert list(table["task_success_pct"]) == [pytest.approx(100 / 3), 50.0, 50.0, 50.0]


def test_interfaces_are_compared_on_the_tasks_that_all_of_them_have():
    rows = [
        {"task_id": "t1", "agent": "hasty", "success": True},
        {"task_id": "t2", "agent": "hasty", "end": "exhausted"},
        {"task_id": "t3", "agent": "hasty", "success": True},  # the other never worked on it
        {"task_id": "t1", "agent": "steady"},
        {"task_id": "t2", "agent": "steady", "success": True},
    ]
    table = outcomes.table20(runs(*rows)).set_index("configuration")
    counts = ["success", "final_failure", "budget_exhausted", "ts_pct"]
    assert list(table.loc["hasty", counts]) == [1, 0, 1, 50.0]
    assert list(table.loc["steady", counts]) == [1, 1, 0, 50.0]


def test_high_completion_without_delivery_is_that_of_the_largest_band():
    # hasty at 128K: 8 of 10 and 7 of 10 failed, 75 % or more in one; steady: none
    frame = runs(
        {"goals_met": 9},
        {"band": "128K", "goals_met": 8},
        {"band": "128K", "goals_met": 7},
        {"band": "128K", "goals_met": 10, "success": True, "agent": "steady"},
    )
    row = outcomes.table21(frame).iloc[0]
    assert (row["model"], row["band"], row["high_completion_failures"], row["lgc"]) == ("hasty", "128K", 1, 75.0)


def test_goals_grow_by_environment_and_models_weigh_the_same():
    # hasty completes 2, 4 (mean 3), steady 5: completed at 64K is (3 + 5) / 2 = 4 of 10; at 128K 10 of 40
    frame = runs(
        {"goals_met": 2},
        {"goals_met": 4},
        {"goals_met": 5, "agent": "steady"},
        {"goals_met": 10, "goals_required": 40, "band": "128K"},
        {"goals_met": 10, "goals_required": 40, "band": "128K", "agent": "steady"},
    )
    table = scale.figure3a(frame).set_index("band")
    assert list(table["required"]) == [10.0, 40.0]
    assert list(table["completed"]) == [4.0, 10.0]
    assert list(table["required_ratio"]) == [1.0, 4.0]
    assert list(table["completed_ratio"]) == [1.0, 2.5]
    by_model = scale.figure7(frame)
    assert list(by_model["completed"]) == [3.0, 10.0, 5.0, 10.0]
    nothing = scale.figure3a(runs({"goals_met": 0}, {"goals_met": 3, "band": "128K"}))
    assert nothing["completed_ratio"].isna().all()


def stopped() -> pd.DataFrame:
    """Failed finals around the thresholds: LGC 25 % is not below a quarter, 50 % unused is not above half."""
    return runs(
        {"goals_met": 2, "attempts": 49},  # event: 20 %, 51 %
        {"goals_met": 2, "attempts": 50},  # 50 % unused
        {"goals_met": 2, "attempts": 39},  # event: 61 %
        {"goals_met": 5, "goals_required": 20, "attempts": 10},  # exactly 25 %
        {"goals_met": 2, "attempts": 10, "B": None},  # a final that was not measured
        {"goals_met": 0, "attempts": 0, "end": "failed"},  # no final
        {"goals_met": 0, "attempts": 100, "end": "exhausted"},  # no final
        {"goals_met": 10, "attempts": 10, "success": True},  # no failure
    )


def test_stopping_counts_measured_failed_finals_with_both_conditions():
    row = stopping.table12(stopped()).iloc[0]
    assert (row["band"], row["measured"], row["all_finals"], row["events"]) == ("64K", 4, 5, 2)
    assert (row["measured_rate_pct"], row["all_assigned_pct"]) == (50.0, 25.0)
    figure = stopping.figure3b(stopped()).iloc[0]
    assert (figure["n"], figure["joint_event_pct"]) == (4, 50.0)


def test_stopping_thresholds_of_unused_allowance():
    # above 40 %: 51, 50, 61; above 50 %: 51, 61; above 60 %: 61
    table = stopping.sensitivity(stopped())
    assert list(zip(table["unused_above_pct"], table["events"], strict=True)) == [(40, 3), (50, 2), (60, 1)]


def test_stopping_by_model_gives_medians_of_the_measured():
    # LGC 20, 20, 20, 25; unused 51, 50, 61, 90
    row = stopping.table19(stopped()).iloc[0]
    assert (row["n"], row["median_lgc_pct"], row["median_unused_allowance_pct"]) == (4, 20.0, 56.0)
    assert row["low_progress_high_allowance_pct"] == 50.0


def test_a_band_without_failed_finals_has_an_empty_rate():
    row = stopping.table12(runs({"success": True})).iloc[0]
    assert (row["measured"], row["events"], row["all_assigned_pct"]) == (0, 0, 0.0)
    assert np.isnan(row["measured_rate_pct"])


def test_costs_count_shared_prefixes_once_and_compare_successes_with_the_reference():
    frame = runs(
        {"run_id": "a", "attempts": 88, "success": True, "compactions": 2},
        {"run_id": "a", "attempts": 88, "success": True, "compactions": 2},
        {"run_id": "b", "attempts": 96, "success": True, "B": 120},
        {"run_id": "c", "attempts": 10, "compactions": 1},
    )
    # attempts 88 + 96 + 10; utilisation 88, 80, 10; U/R of successes 1.1 and 1.2, 90th percentile 1.1 + 0.9 * 0.1
    row = costs.table11(frame).iloc[0]
    assert (row["attempts"], row["compactions"], row["median_utilization_pct"], row["n_success"]) == (194, 3, 80.0, 2)
    assert row["success_median_u_over_r"] == pytest.approx(1.15)
    assert row["success_p90_u_over_r"] == pytest.approx(1.19)


def test_orders_keep_families_within_one_task_of_each_other():
    # each outcome names its family, so a prefix shows the counts
    rng = np.random.default_rng(3)
    order = sampling.orders({"a": [1] * 5, "b": [100] * 5, "c": [10_000] * 4}, rng)
    for size in range(1, 13):
        counts = [int((order[:size] == value).sum()) for value in (1, 100, 10_000)]
        assert max(counts) - min(counts) <= 1
    assert sorted(order) == [1] * 5 + [100] * 5 + [10_000] * 4


def test_sampling_gives_the_published_range_from_the_published_counts():
    # D.2 gives the pool: 50 of 167, 1 of 167, 162 of 166. Figure 6: 36.0 to 48.0 at 50 tasks, 41.0 to 44.3 at 300.
    pool = {"integration": (50, 167), "receivables": (1, 167), "maintenance": (162, 166)}
    table = sampling.curve({k: [True] * hit + [False] * (n - hit) for k, (hit, n) in pool.items()}, [50, 300, 500])
    got = {(row[0], row[1]): row[2] for row in table.itertuples(index=False, name=None)}
    assert got[50, "p5"] == pytest.approx(36.0)
    assert got[50, "p95"] == pytest.approx(48.0)
    assert got[300, "p5"] == pytest.approx(41.0, abs=0.05)
    assert got[300, "p95"] == pytest.approx(44.3, abs=0.05)
    assert got[500, "p5"] == got[500, "p95"] == got[500, "full_set_ts"] == pytest.approx(42.6)


def test_figure_6_takes_one_agent_in_one_environment_and_band():
    rows = [{"env": "finance", "band": "128K", "family": f, "success": f == "a"} for f in ("a", "b") for _ in range(5)]
    table = sampling.figure6(runs(*rows, {"success": True}))
    assert table["sampled_tasks"].max() == 10
    assert set(table["model"]) == {"hasty"}
    # families take turns, so every even prefix has success in exactly one half
    even = table[(table["sampled_tasks"] % 2 == 0) & (table["statistic"] != "mean")]
    assert (even["value_pct"] == 50.0).all()
    with pytest.raises(InputError, match="no executions in FinanceOps at 128K"):
        sampling.figure6(runs({}))


def test_intervals_repeat_and_end_where_a_share_cannot_go_beyond():
    low, high = intervals.wilson(np.array([0.0, 10.0]), np.array([10, 10]))
    # Wilson for 0 of n: from 0 to z^2 / (n + z^2) = 3.8415 / 13.8415
    assert (low[0], high[1]) == (0.0, 1.0)
    assert high[0] == pytest.approx(0.27754, abs=1e-5)
    assert low[1] == pytest.approx(1 - 0.27754, abs=1e-5)
    values = np.array([0.0, 1.0, 1.0, 1.0])
    assert intervals.bootstrap(values) == intervals.bootstrap(values)
    assert intervals.bootstrap(np.array([3.0, 3.0])) == (3.0, 3.0)
