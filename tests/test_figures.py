"""Figures: the same bytes again, every module and need drawn where it belongs."""

from __future__ import annotations

from itertools import product
from math import dist

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
    legend = axes.figure.legends[0].get_texts()
    assert [t.get_text() for t in axes.texts] == ["stage 1", "stage 2", "stage 3"]
    assert [t.get_text() for t in legend] == [
        "package",
        "closure",
        "need inside a stage",
        "quantity, reused later",
        "content of the stage before",
        "provenance of the stage before",
    ]


def test_a_graph_of_one_module_can_be_drawn():
    assert figures.task_graph(TaskGraph.of([Module("a", "package", 1, "a")])).axes


def chain(stages: int, deep: int, wide: int) -> TaskGraph:
    """Stages of ``wide`` chains, each ``deep`` modules long, with a need that reaches over all stages."""
    key = "{}-{}-{}".format
    modules = []
    for s, w, d in product(range(stages), range(wide), range(deep)):
        needs = [Need(key(s, w, d - 1), "content")] if d else [Need(key(s - 1, w, deep - 1), "validity")] if s else []
        if (s, w, d) == (stages - 1, 0, deep - 1) and stages > 2:
            needs.append(Need(key(0, wide - 1, 0), "quantity"))
        modules.append(Module(key(s, w, d), f"kind_{d}", s, key(s, w, d), tuple(needs)))
    return TaskGraph.of(modules)


def signs(axes) -> list:
    return [c for c in axes.collections if not hasattr(c, "get_segments")]


@pytest.mark.parametrize(("stages", "deep", "wide"), [(1, 2, 50), (3, 4, 1), (12, 3, 3), (24, 4, 3), (60, 8, 3)])
def test_a_graph_of_any_form_fits_the_width_of_a_notebook(stages, deep, wide):
    """No two modules touch, needs run to the right, and nothing is drawn beyond the edge."""
    graph = chain(stages, deep, wide)
    figure = figures.task_graph(graph, "title")
    axes, places = figure.axes[0], figures.layered(graph)
    assert figure.get_figwidth() <= 12
    assert figure.get_figheight() <= 10
    assert all(places[u][0] < places[v][0] for u, v in graph.edges)
    figure.draw_without_rendering()
    size = max(s.get_sizes()[0] for s in signs(axes)) ** 0.5
    at = sorted(tuple(p) for p in axes.transData.transform(list(places.values())) * 72 / figure.dpi)
    assert min(dist(a, b) for n, a in enumerate(at) for b in at[n + 1 : n + 60]) > 0.9 * size
    whole = figure.bbox
    drawn = [t.get_window_extent() for t in (*axes.texts, axes.title, figure.legends[0])]
    assert all(whole.x0 <= b.x0 and b.x1 <= whole.x1 and whole.y0 <= b.y0 and b.y1 <= whole.y1 for b in drawn)
    lines = [p for c in axes.collections if hasattr(c, "get_segments") for line in c.get_segments() for p in line]
    low, high = axes.get_ylim()
    assert all(low <= y <= high for _, y in lines)


def test_labels_of_many_stages_do_not_touch():
    figure = figures.task_graph(chain(60, 2, 2))
    figure.draw_without_rendering()
    boxes = [t.get_window_extent() for t in figure.axes[0].texts]
    assert all(not a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[n + 1 :])


def test_every_kind_is_drawn_and_named_in_words():
    """More kinds than there are shapes: shapes repeat, and no module is lost."""
    graph = chain(1, 20, 1)
    figure = figures.task_graph(graph)
    assert sum(len(s.get_offsets()) for s in signs(figure.axes[0])) == 20
    assert {f"kind {n}" for n in range(20)} <= {t.get_text() for t in figure.legends[0].get_texts()}


def test_long_needs_leave_the_picture_s_middle_outwards():
    graph = TaskGraph.of(
        [
            *(Module(f"{n}", "package", 1, "x") for n in range(2)),
            Module("m", "package", 2, "x", (Need("0", "content"), Need("1", "content"))),
            *(Module(f"z{n}", "package", 3, "x", (Need(f"{n}", "validity"), Need("m", "content"))) for n in range(2)),
        ]
    )
    places = figures.layered(graph)
    long = figures.task_graph(graph).axes[0].collections
    bows = [
        line for c in long if hasattr(c, "get_segments") for line in c.get_segments() if line[-1][0] - line[0][0] > 1
    ]
    assert len(bows) == 2
    assert all(abs(line[len(line) // 2][1]) > abs(places["0"][1]) for line in bows)


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
    assert goals.get_zorder() > tokens.get_zorder()


@pytest.mark.parametrize("draw", [lambda: figures.task_graph(diamond()), lambda: figures.workload_by_band(tasks())])
def test_saved_figures_are_the_same_bytes_again(draw, tmp_path):
    first = [f.read_bytes() for f in figures.save(draw(), tmp_path / "a")]
    second = [f.read_bytes() for f in figures.save(draw(), tmp_path / "a")]
    assert first == second
    assert {f.name for f in tmp_path.iterdir()} == {"a.png", "a.svg"}
    assert b"Matplotlib v" not in b"".join(first)
