"""Figures: the same bytes again, every module and need drawn where it belongs."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
import pytest

from skillhorizon.analysis import figures
from skillhorizon.core.composition import Module, Need, TaskGraph
from tests.support import small_task


@pytest.fixture(autouse=True)
def _no_window():
    with mpl.rc_context({"backend": "agg"}):
        yield


def diamond() -> TaskGraph:
    """Two packages, closed; a package of stage 3 that reuses one of them."""
    return TaskGraph.of(
        [
            Module("a", "package", 1, "a"),
            Module("b", "package", 1, "b"),
            Module("close", "closure", 1, "close", (Need("a", "content"), Need("b", "content"))),
            Module("c", "package", 2, "c", (Need("close", "provenance"),)),
            Module("d", "package", 3, "d", (Need("a", "quantity"), Need("c", "content"))),
        ]
    )


def tasks() -> pd.DataFrame:
    return pd.DataFrame({"band": ["64K", "1M"], "family": ["x", "y"], "workload": [60_000, 1_000_000]})


def test_stages_stand_from_left_to_right_and_nothing_hides_another():
    places = figures.layered(diamond())
    assert places["a"][0] == places["b"][0] < places["close"][0] < places["c"][0] < places["d"][0]
    assert len(set(places.values())) == 5


def test_needs_run_from_left_to_right_in_a_real_task():
    graph = small_task("toy").graph
    places = figures.layered(graph)
    assert set(places) == set(graph)
    assert len(set(places.values())) == len(graph)
    assert all(places[u][0] < places[v][0] for u, v in graph.edges)


def test_ordering_inside_a_column_follows_what_is_needed():
    """Two chains a-c and b-d, declared crosswise, are drawn without a crossing."""
    graph = TaskGraph.of(
        [
            Module("a", "package", 1, "a"),
            Module("b", "package", 1, "b"),
            Module("d", "package", 2, "d", (Need("b", "content"),)),
            Module("c", "package", 2, "c", (Need("a", "content"),)),
        ]
    )
    places = figures.layered(graph)
    assert (places["a"][1] - places["b"][1]) * (places["c"][1] - places["d"][1]) > 0


def test_a_task_graph_shows_every_module_need_and_stage():
    graph = diamond()
    axes = figures.task_graph(graph, "title").axes[0]
    kinds = {"package": 4, "closure": 1}
    lines = [c for c in axes.collections if hasattr(c, "get_segments")]
    dots = [c for c in axes.collections if not hasattr(c, "get_segments")]
    assert sorted(len(d.get_offsets()) for d in dots) == sorted(kinds.values())
    assert sum(len(c.get_segments()) for c in lines) == graph.number_of_edges()
    texts = {t.get_text() for t in axes.texts} | {t.get_text() for t in axes.get_legend().get_texts()}
    assert {"stage 1", "stage 2", "stage 3", "package", "closure", "quantity, reused later"} <= texts


def test_a_graph_of_one_module_can_be_drawn():
    assert figures.task_graph(TaskGraph.of([Module("a", "package", 1, "a")])).axes


def test_workloads_are_shares_of_the_upper_bound():
    axes = figures.workload_by_band(tasks()).axes[0]
    points = [tuple(p) for c in axes.collections for p in c.get_offsets()]
    assert [round(y, 1) for _, y in points] == [91.6, 95.4]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["64K", "1M"]


def test_the_progress_of_a_run_falls_where_accepted_goals_are_void():
    events = pd.DataFrame(
        {
            "step": [1, 2, 3, 4],
            "goal": ["g", None, "h", "g"],
            "check": [True, None, True, False],
            "invalidated": [[], [], ["g"], []],
            "call_tokens": 1,
            "observation_tokens": 9,
        }
    )
    goals, tokens = figures.run_progress(events).axes
    assert list(goals.lines[-1].get_ydata()) == [1, 1, 1, 1]
    assert [line.get_xdata()[0] for line in goals.lines[:-1]] == [3]
    assert list(tokens.lines[0].get_ydata()) == [10, 20, 30, 40]


@pytest.mark.parametrize("draw", [lambda: figures.task_graph(diamond()), lambda: figures.workload_by_band(tasks())])
def test_saved_figures_are_the_same_bytes_again(draw, tmp_path):
    first = [f.read_bytes() for f in figures.save(draw(), tmp_path / "a")]
    second = [f.read_bytes() for f in figures.save(draw(), tmp_path / "a")]
    assert first == second
    assert {f.name for f in tmp_path.iterdir()} == {"a.png", "a.svg"}
    assert b"Matplotlib v" not in b"".join(first)
