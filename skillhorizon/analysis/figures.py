"""Figures, each a function ``data -> matplotlib Figure``; ``save`` writes PNG and SVG whose bytes repeat.

Colours are safe for the colour-blind: cividis where order matters, Okabe and Ito's palette for kinds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skillhorizon.core import bands
from skillhorizon.core.composition import TaskGraph

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
NEED_COLOURS = dict(zip(("validity", "quantity", "content", "provenance"), OKABE_ITO, strict=False))
MARKERS = "osD^vP*X"
GREY = "#9a9a9a"

Point = tuple[float, float]
Places = Mapping[str, Point]


def save(figure: Figure, path: str | Path) -> list[Path]:
    """Write ``<path>.png`` and ``<path>.svg``, the same bytes every time for one version of matplotlib."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    files = []
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        temporary = path.with_name(f"{path.name}.{suffix}.tmp")
        with mpl.rc_context({"svg.hashsalt": "skillhorizon"}):
            figure.savefig(temporary, format=suffix, dpi=150, metadata=metadata)
        files.append(path.with_name(f"{path.name}.{suffix}"))
        os.replace(temporary, files[-1])
    return files


def layered(graph: TaskGraph) -> Places:
    """Places for a task graph: stages from left to right, what depends on what inside a stage likewise.

    A column holds the modules of one stage that lie equally deep within it, ordered so that few needs cross.
    """
    stages: dict[int, list[str]] = {}
    for node, stage in graph.nodes(data="stage"):
        stages.setdefault(stage, []).append(node)
    columns: list[list[str]] = []
    for stage in sorted(stages):
        columns += [list(c) for c in nx.topological_generations(graph.subgraph(stages[stage]))]
    height: dict[str, float] = {}
    for column in columns:
        height.update(_stacked(column))
    for sweep in range(7):
        for column in columns:
            wish = {}
            for node in column:
                others = graph.predecessors(node) if sweep == 0 else nx.all_neighbors(graph, node)
                wish[node] = -fmean([height[o] for o in others] or [height[node]])
            column.sort(key=wish.__getitem__)
            height.update(_stacked(column))
    return {node: (x, height[node]) for x, column in enumerate(columns) for node in column}


def _stacked(column: list[str]) -> dict[str, float]:
    """Heights of the nodes of a column from top to bottom, its middle at zero."""
    return {node: (len(column) - 1) / 2 - number for number, node in enumerate(column)}


def task_graph(graph: TaskGraph, title: str = "") -> Figure:
    """The modules of a task and their needs: colour is the stage, shape the kind of module.

    Needs inside a stage are grey, needs of an earlier stage coloured by kind, and stronger where they reach back
    over at least one whole stage (reuse).
    """
    places = layered(graph)
    kinds = list(dict.fromkeys(kind for _, kind in graph.nodes(data="kind")))
    width = max((x for x, _ in places.values()), default=0) + 1
    rows = max((abs(y) for _, y in places.values()), default=0) * 2 + 1
    figure, axes = plt.subplots(figsize=(min(max(6.0, 0.95 * width + 2), 16), min(max(3.0, 0.38 * rows + 1.2), 9)))
    _draw_needs(axes, graph, places)
    stages = sorted({stage for _, stage in graph.nodes(data="stage")})
    colours = mpl.colormaps["cividis"].resampled(max(len(stages), 2))
    size = min(110.0, 9000 / (rows * width / 8 + 40))
    for kind, marker in zip(kinds, MARKERS, strict=False):
        nodes = [n for n, k in graph.nodes(data="kind") if k == kind]
        shade = [colours(stages.index(graph.nodes[n]["stage"])) for n in nodes]
        xs, ys = zip(*(places[n] for n in nodes), strict=True)
        axes.scatter(xs, ys, s=size, c=shade, marker=marker, edgecolors="black", linewidths=0.5, zorder=3)
    _label_stages(axes, graph, places)
    _explain(axes, graph, dict(zip(kinds, MARKERS, strict=False)))
    axes.autoscale_view()
    axes.set_ylim(bottom=-rows / 2 - 0.9)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_axis_off()
    return _finished(figure)


def workload_by_band(tasks: pd.DataFrame) -> Figure:
    """Reference workload of each task as a share of its band's upper bound; the shaded part is the target."""
    present = [name for name in bands.BANDS if name in set(tasks["band"])]
    families = list(dict.fromkeys(tasks["family"]))
    figure, axes = plt.subplots(figsize=(max(4.5, 1.3 * len(present) + 3), 3.4))
    axes.axhspan(85, 100, color="#e8e8e8", zorder=0)
    for number, (family, colour, marker) in enumerate(zip(families, OKABE_ITO, MARKERS, strict=False)):
        own = tasks[tasks["family"] == family]
        at = own["band"].map(present.index) + (number - (len(families) - 1) / 2) * 0.22
        share = 100 * own["workload"] / own["band"].map(lambda name: bands.band(name).upper)
        axes.scatter(at, share, s=22, color=colour, marker=marker, alpha=0.75, linewidths=0, label=family)
    axes.set_xticks(range(len(present)), present)
    axes.set_xlim(-0.6, len(present) - 0.4)
    axes.set_ylim(min(84, axes.get_ylim()[0]), 101)
    axes.set_xlabel("band")
    axes.set_ylabel("reference workload\n(% of the band's upper bound)")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _finished(figure)


def run_progress(events: pd.DataFrame, title: str = "") -> Figure:
    """A run, call by call: goals that stand accepted (left) and tokens so far (right).

    events   of one run, columns ``core.trace.EVENT_COLUMNS``
    An orange line marks each call after which accepted goals were void.
    """
    standing: set[str] = set()
    accepted = []
    for goal, check, voided in zip(events["goal"], events["check"], events["invalidated"], strict=True):
        if check is True:
            standing.add(goal)
        standing.difference_update(voided)
        accepted.append(len(standing))
    figure, axes = plt.subplots(figsize=(8, 3))
    for step in events["step"][events["invalidated"].map(len) > 0]:
        axes.axvline(step, color=OKABE_ITO[1], linewidth=1.2)
    axes.step(events["step"], accepted, where="post", color=OKABE_ITO[0])
    axes.set_xlabel("call")
    axes.set_ylabel("goals accepted", color=OKABE_ITO[0])
    tokens = axes.twinx()
    tokens.plot(events["step"], (events["call_tokens"] + events["observation_tokens"]).cumsum(), color=GREY)
    tokens.set_ylabel("tokens so far", color="#6a6a6a")
    axes.set_title(title, loc="left", fontsize=10)
    return _finished(figure)


def _draw_needs(axes: Axes, graph: TaskGraph, places: Places) -> None:
    span = _spans(graph)
    crowd = min(1.0, (60 / max(1, sum(s > 1 for s in span.values()))) ** 0.3)
    groups = [(GREY, 0.5, 0.6, [_ends(e, places) for e, s in span.items() if s == 0])]
    for kind, colour in NEED_COLOURS.items():
        own = {e: s for e, s in span.items() if s and graph.edges[e]["kind"] == kind}
        groups.append((colour, 0.6, 0.5, [_bow(_ends(e, places)) for e, s in own.items() if s == 1]))
        groups.append((colour, 1.3, 0.85, [_bow(_ends(e, places)) for e, s in own.items() if s > 1]))
    for order, (colour, width, alpha, lines) in enumerate(groups):
        drawn = LineCollection(
            lines, colors=colour, linewidths=width * crowd, alpha=alpha * crowd, zorder=1 + order / 10
        )
        axes.add_collection(drawn)


def _spans(graph: TaskGraph) -> dict[tuple[str, str], int]:
    """How many stages each need reaches back."""
    stage = dict(graph.nodes(data="stage"))
    return {(u, v): stage[v] - stage[u] for u, v in graph.edges}


def _ends(edge: tuple[str, str], places: Places) -> list[Point]:
    return [places[node] for node in edge]


def _bow(ends: list[Point], points: int = 24) -> list[Point]:
    """A curve that leaves the straight line by a tenth of its length, so that long needs do not hide others."""
    (x0, y0), (x1, y1) = ends
    lift = 0.1 * (x1 - x0)
    steps = [i / (points - 1) for i in range(points)]
    return [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t + 4 * lift * t * (1 - t)) for t in steps]


def _label_stages(axes: Axes, graph: TaskGraph, places: Places) -> None:
    bottom = min((y for _, y in places.values()), default=0.0)
    stages = sorted({s for _, s in graph.nodes(data="stage")})
    for stage in stages:
        columns = [places[n][0] for n, s in graph.nodes(data="stage") if s == stage]
        middle = (min(columns) + max(columns)) / 2
        label = f"stage {stage}" if len(stages) <= 8 or stage == stages[0] else str(stage)
        axes.text(middle, bottom - 0.9, label, ha="center", va="top", fontsize=8)


def _explain(axes: Axes, graph: TaskGraph, markers: Mapping[str, str]) -> None:
    handles = [
        Line2D([], [], marker=m, linestyle="", markerfacecolor="white", markeredgecolor="black", label=kind)
        for kind, m in markers.items()
    ]
    span = _spans(graph)
    reach = {
        kind: max((s for e, s in span.items() if graph.edges[e]["kind"] == kind), default=0) for kind in NEED_COLOURS
    }
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, label="need inside a stage"))
    for kind, colour in NEED_COLOURS.items():
        if reach[kind]:
            handles.append(Line2D([], [], color=colour, linewidth=0.8, label=f"{kind} of the stage before"))
        if reach[kind] > 1:
            handles.append(Line2D([], [], color=colour, linewidth=2, label=f"{kind}, reused later"))
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _finished(figure: Figure) -> Figure:
    """Out of pyplot's hands: a notebook shows what a cell returns, and nothing twice."""
    figure.tight_layout()
    plt.close(figure)
    return figure
