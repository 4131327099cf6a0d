"""The measures of dependencies over a set, and the pictures of a task too large to draw."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skillhorizon.analysis import horizons
from skillhorizon.core.composition import Module, Need, TaskGraph


def graph():
    """Three stages: a and b; c needs both (a join); d needs c, and reaches back over a whole stage to a."""
    return TaskGraph.of(
        [
            Module("a", "work", 1, "a"),
            Module("b", "work", 1, "b"),
            Module("c", "work", 2, "c", needs=(Need("a", "content"), Need("b", "content"))),
            Module("d", "work", 3, "d", needs=(Need("c", "content"), Need("a", "validity"))),
        ]
    )


def test_the_table_holds_median_and_range_by_environment_and_band():
    measures = dict.fromkeys(horizons.MEASURES, 0)
    rows = [{"env": "docs", "band": "64K", **measures, "modules": n} for n in (4, 9, 20)]
    (row,) = horizons.dependencies(pd.DataFrame(rows)).to_dict("records")
    assert (row["tasks"], row["Modules"], row["Modules, range"], row["Joins, range"]) == (3, "9", "4–20", "0–0")


def test_the_matrix_counts_needs_from_stage_to_stage():
    figure = horizons.stage_matrix(graph())
    shown = np.ma.filled(figure.axes[0].images[0].get_array(), 0)
    # rows need, columns are needed: c needs two of stage 1; d needs one of stage 1 and one of stage 2
    assert shown.tolist() == [[0, 0, 0], [2, 0, 0], [1, 1, 0]]
    assert [bar.get_width() for bar in figure.axes[1].patches] == [2, 1, 1]


def test_growth_draws_the_medians_of_each_environment():
    rows = [
        {"env": env, "band": band, "modules": n * k, "A": n, "depth": n, "joins": n}
        for env, k in (("docs", 1), ("finance", 2))
        for band, values in (("64K", (1, 2, 9)), ("128K", (3, 4, 5)))
        for n in values
    ]
    axis = horizons.growth(pd.DataFrame(rows)).axes[0]
    lines = {line.get_label(): line.get_ydata().tolist() for line in axis.lines if not line.get_label().startswith("_")}
    along = lines.pop(horizons.IN_PROPORTION)
    assert along[1] == 2 * along[0]  # twice the workload
    assert lines == {"docs": [2, 4], "finance": [4, 8]}
    assert axis.lines[0].get_xdata().tolist() == [64 * 1024, 128 * 1024]


def test_updates_say_what_they_wait_for():
    class Effect:
        kind = "correction"

    class Update:
        ordinal, counter, at, effect = 0, "stages_published", 4, Effect()

    (row,) = horizons.updates([Update()]).to_dict("records")
    assert row == {"update": 1, "waits for": "stages published", "to reach": 4, "change": "correction"}
