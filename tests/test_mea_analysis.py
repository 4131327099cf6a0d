"""Tables and figures of the comparison, on figures that are easily worked out by hand; and the comparison itself."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pandas as pd
import pytest

from skillhorizon import comparison
from skillhorizon.analysis import mea
from skillhorizon.core.errors import InputError
from skillhorizon.params import Params

PUBLISHED = Path(__file__).parents[1] / "data" / "published"


def runs() -> pd.DataFrame:
    """Two environments, two bands, two conditions. MEA is better in `a` and worse in `b` at 1M."""
    rows = []
    for env, band, condition, success, lgc, attempts in [
        ("a", "1M", mea.SINGLE, False, 0.5, 90),
        ("a", "1M", mea.MEA, True, 1.0, 110),
        ("b", "1M", mea.SINGLE, True, 1.0, 100),
        ("b", "1M", mea.MEA, False, 0.25, 120),
        ("a", "64K", mea.SINGLE, True, 1.0, 100),
        ("a", "64K", mea.MEA, True, 1.0, 104),
    ]:
        spent = {f"{role}_{what}": 0 for role in mea.ROLES for what in ("tokens_in", "tokens_out")}
        spent |= {"executor_tokens_in": 7000, "executor_tokens_out": 1000}
        if condition == mea.MEA:
            spent |= {"manager_tokens_in": 500, "auditor_tokens_in": 1000, "auditor_tokens_out": 500}
        rows.append(
            {
                "env": env,
                "task_id": f"{env}-{band}",
                "seed": 0,
                "band": band,
                "condition": condition,
                "agent_profile": "steady",
                "success": success,
                "lgc": lgc,
                "R": 100,
                "B": 200,
                "attempts": attempts,
                "rounds": 4 if condition == mea.MEA else 0,
                "end": "submitted" if success or env == "b" else "exhausted",
                **spent,
            }
        )
    return pd.DataFrame(rows)


def test_the_summary_is_means_over_runs_in_the_order_of_bands():
    table = mea.summary(runs())
    assert list(table.index.get_level_values("band")) == ["64K", "64K", "1M", "1M"]
    single, kept = table.loc[("1M", mea.SINGLE)], table.loc[("1M", mea.MEA)]
    assert (single["runs"], single["TS"], single["LGC"], single["attempts_of_B"]) == (2, 50.0, 75.0, 0.475)
    assert (kept["TS"], kept["LGC"], kept["rounds"]) == (50.0, 62.5, 4)
    assert (kept["manager_ktok"], kept["auditor_ktok"], kept["executor_ktok"]) == (0.5, 1.5, 8.0)
    assert (single["audit_share"], kept["audit_share"]) == (0.0, 20.0)


def test_intervals_stand_beside_means():
    """One success of two has Wilson's interval 1/2 -+ z / (2 sqrt(2 + z^2)); two draws of two reach both ends."""
    row = mea.summary(runs()).loc[("1M", mea.SINGLE)]
    half = 50 * 1.959964 / (2 + 1.959964**2) ** 0.5
    assert (row["TS_low"], row["TS_high"]) == pytest.approx((50 - half, 50 + half), abs=1e-3)
    assert (row["LGC_low"], row["LGC_high"]) == (50.0, 100.0)


def test_gains_are_paired_by_task():
    """At 1M +100 and -100 points of TS; of LGC +50 and -75, mean -12.5."""
    table = mea.paired_gain(runs())
    assert list(table.index) == ["64K", "1M"]
    assert table.loc["1M", ["pairs", "TS", "TS_low", "TS_high"]].tolist() == [2, 0.0, -100.0, 100.0]
    assert table.loc["1M", ["LGC", "LGC_low", "LGC_high"]].tolist() == [-12.5, -75.0, 50.0]
    assert table.loc["64K", ["pairs", "TS", "TS_low", "TS_high"]].tolist() == [1, 0.0, 0.0, 0.0]


def test_overhead_is_counted_from_the_reference():
    table = mea.overhead(runs()[lambda r: r["condition"] == mea.MEA])
    assert list(table["calls_over_reference"]) == pytest.approx([4.0, 10.0, 20.0])
    assert set(table["audit_share"]) == {20.0}


def test_a_gain_is_a_difference_in_points_with_its_sign():
    table = mea.gain(runs())
    assert table.loc["a", "1M"] == 100.0
    assert table.loc["b", "1M"] == -100.0
    assert table.loc["a", "64K"] == 0.0
    assert mea.gain(runs(), of="lgc").loc["b", "1M"] == -75.0
    with pytest.raises(InputError, match="MEA"):
        mea.gain(runs()[lambda r: r["condition"] == mea.SINGLE])


def test_where_it_pays_counts_both_ways():
    table = mea.where_it_pays(runs())
    assert table.loc["a"].to_dict() == {"higher": 1, "same": 0, "lower": 0}
    assert table.loc["b"].to_dict() == {"higher": 0, "same": 0, "lower": 1}
    assert mea.where_it_pays(runs(), ("256K",)).empty


def test_ends_tell_success_from_a_submission_in_vain():
    table = mea.ends(runs())
    assert table.loc[mea.MEA, "succeeded"] == pytest.approx(200 / 3)
    assert table.loc[mea.MEA, "submitted in vain"] == pytest.approx(100 / 3)
    assert table.loc[mea.SINGLE, "exhausted"] == pytest.approx(100 / 3)


def test_published_results_are_labelled_as_another_benchmark_s():
    table = mea.published(PUBLISHED)
    assert set(table.index.get_level_values("source")) == {"published, another benchmark"}
    assert table.xs("WeaveBench", level="benchmark")["gain"].iloc[0] == pytest.approx(28.9)
    assert table.xs("Terminal-Bench 2.1", level="benchmark")[["baseline", "harness"]].iloc[0].tolist() == [69.7, 77.2]
    assert table.xs("OSWorld 2.0", level="benchmark")[["baseline", "harness"]].iloc[0].tolist() == [2.8, 8.3]


# -- figures ---------------------------------------------------------------------------------------------------------


def test_the_figure_by_band_has_a_panel_per_environment_and_says_simulated():
    figure = mea.by_band(runs())
    shown = {a.get_title(loc="left"): a for a in figure.axes if a.get_title(loc="left")}
    assert set(shown) == {"a", "b"}
    lines = {line.get_label(): list(line.get_ydata()) for line in shown["a"].lines}
    assert lines == {mea.SINGLE: [100.0, 0.0], mea.MEA: [100.0, 100.0]}
    assert "not language models" in figure.get_suptitle()


def test_the_sensitivity_figure_shows_both_and_the_difference():
    grid = pd.DataFrame(
        [
            {"task_id": "t", "slip": slip, "recall": recall, "condition": condition, "success": good}
            for slip, recall, condition, good in [
                (0.0, 0.5, mea.SINGLE, True),
                (0.0, 0.5, mea.MEA, True),
                (0.1, 0.5, mea.SINGLE, False),
                (0.1, 0.5, mea.MEA, True),
                (0.0, 1.0, mea.SINGLE, True),
                (0.0, 1.0, mea.MEA, False),
                (0.1, 1.0, mea.SINGLE, True),
                (0.1, 1.0, mea.MEA, True),
            ]
        ]
    )
    figure = mea.sensitivity(grid)
    by_slip, by_recall, difference = [a for a in figure.axes if a.get_title(loc="left")]
    assert difference.images[0].get_array().tolist() == [[0.0, -100.0], [100.0, 0.0]]
    assert [t.get_text() for t in difference.texts] == ["0", "-100", "100", "0"]
    shown = [[list(line.lines[0].get_ydata()) for line in axis.containers] for axis in (by_slip, by_recall)]
    assert shown == [[[100.0, 50.0], [50.0, 100.0]], [[50.0, 100.0], [100.0, 50.0]]], "single context, then MEA"


def rounds() -> pd.DataFrame:
    rows = []
    for profile, suspects in (("x", (0, 0)), ("y", (0, 2, 1))):
        for number, found in enumerate(suspects, 1):
            rows.append(
                {
                    "task_id": "t",
                    "condition": mea.MEA,
                    "agent_profile": profile,
                    "seed": 0,
                    "number": number,
                    "first": 10 * number - 10,
                    "executed": 10 * number - 2,
                    "audited": 10 * number,
                    "completion": "complete" if number == len(suspects) else "incomplete",
                    "suspects": found,
                    "verified": 8,
                    "known": 5,
                    "completed": number,
                }
            )
    return pd.DataFrame(rows)


def test_the_timeline_shows_every_round_and_the_growth_of_the_ledger():
    chosen = mea.most_eventful(rounds())
    assert set(chosen["agent_profile"]) == {"y"}
    figure = mea.timeline(chosen)
    above, below = figure.axes
    assert len(above.patches) == 2 * 3
    assert sum(line.get_marker() == "x" and len(line.get_xdata()) == 1 for line in above.lines) == 2
    grown = {line.get_label(): list(line.get_ydata()) for line in below.lines}
    assert grown["calls verified"] == [8, 16, 24]
    assert grown["completed"] == [1, 2, 3]
    with pytest.raises(InputError):
        mea.timeline(rounds().head(0))


# -- the comparison --------------------------------------------------------------------------------------------------


def test_a_missing_set_is_refused(tmp_path):
    with pytest.raises(InputError, match="no task set"):
        comparison.tasks_of(tmp_path, ["docs"], ["64K"], 1)


DATA = Path(__file__).parents[1] / "data"


def test_the_first_tasks_of_each_band_are_taken():
    rows = comparison.tasks_of(DATA, ["docs", "social"], ["64K", "128K"], 2)
    assert [(r["env"], r["band"]) for r in rows] == [
        (env, band) for env in ("docs", "social") for band in ("64K", "64K", "128K", "128K")[:4]
    ]


def test_a_comparison_keeps_runs_and_rounds_and_repeats(tmp_path):
    tasks = comparison.tasks_of(DATA, ["social"], ["64K"], 1)
    cells = [
        comparison.Cell(tasks[0], comparison.PERFECT, "perfect"),
        comparison.Cell(tasks[0], comparison.SINGLE, "steady", 0, {"slip": 0.0}),
    ]
    made, kept = comparison.compare(cells, tmp_path)
    perfect, single = made.iloc[0], made.iloc[1]
    assert perfect["success"]
    assert single["rounds"] == single["auditor_attempts"] == 0
    assert single["attempts"] == single["executor_attempts"]
    assert single["executor_tokens_in"] > single["executor_tokens_out"] > 0
    assert (single["slip"], pd.isna(perfect["slip"])) == (0.0, True)
    assert perfect["attempts"] == sum(perfect[f"{role}_attempts"] for role in mea.ROLES)
    assert perfect["rounds"] == len(kept) == kept["number"].max()
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    comparison.compare(cells, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert set(before) == {"runs.parquet", "rounds.parquet"}


def test_the_comparison_of_the_parameters_keeps_the_grid_apart(tmp_path):
    asked = msgspec.convert(
        {
            "profile": "one",
            "profiles": {"one": {"tasks": 1, "bands": ["64K"], "processes": 1}},
            "environments": ["social"],
            "construct": {"social": {"first_seed": 1_000_000}},
            "budget_factor": 0.5,
            "mea": {"agents": ["careless"], "slips": [0.0, 0.1], "recalls": [1.0], "grid_band": "64K"},
        },
        Params,
    )
    runs, rounds, grid = comparison.run(asked, None, DATA, tmp_path)
    assert list(runs["condition"]) == [comparison.PERFECT, *comparison.CONDITIONS]
    assert sorted(zip(grid["slip"], grid["condition"], strict=True)) == [
        (slip, condition) for slip in (0.0, 0.1) for condition in (comparison.KEPT, comparison.SINGLE)
    ]
    assert set(rounds["condition"]) == {*runs["condition"]} - {comparison.SINGLE}
    numbers = rounds.groupby(["condition"])["number"].apply(list)
    assert all(n == list(range(1, len(n) + 1)) for n in numbers), "rounds of one run only"
    strangers = msgspec.structs.replace(asked.mea, agents=("nobody",))
    with pytest.raises(ValueError, match="unknown profile 'nobody'"):
        msgspec.structs.replace(asked, mea=strangers)
