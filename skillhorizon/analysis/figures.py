"""Figures, each a function ``data -> matplotlib Figure``; ``save`` writes PNG and SVG whose bytes repeat.

Colours are safe for the colour-blind: cividis where order matters, Okabe and Ito's palette for kinds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import cycle
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import Any

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
MARKERS = "osD^vP*XphH<>d"
GREY = "#9a9a9a"
MOST_COLUMNS = 100
"""Of a drawn task graph: more would stand closer than their signs are wide."""

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

    A column holds the modules of one stage that lie equally deep within it, ordered so that few needs cross. Where
    that would give more than ``MOST_COLUMNS``, neighbouring columns of a stage are folded into one, in which deeper
    modules stand lower and a little further right.
    """
    columns, lean = _columns(graph)
    height: dict[str, float] = {}
    wish: dict[str, tuple[float, float]] = {}
    for column in columns:
        height.update(_stacked(column))
    for sweep in range(7):
        for column in columns:
            for node in column:
                others = graph.predecessors(node) if sweep == 0 else nx.all_neighbors(graph, node)
                wish[node] = lean[node], -fmean([height[o] for o in others] or [height[node]])
            column.sort(key=wish.__getitem__)
            height.update(_stacked(column))
    return {node: (x + lean[node], height[node]) for x, column in enumerate(columns) for node in column}


def _columns(graph: TaskGraph) -> tuple[list[list[str]], dict[str, float]]:
    """The columns from left to right, and how far each node stands to the right of its column's left edge."""
    stages: dict[int, list[str]] = {}
    for node, stage in graph.nodes(data="stage"):
        stages.setdefault(stage, []).append(node)
    # a subgraph walks its nodes in the order of a set, which differs from process to process
    place = {node: number for number, node in enumerate(graph)}
    depths = [
        [sorted(generation, key=place.__getitem__) for generation in nx.topological_generations(graph.subgraph(nodes))]
        for _, nodes in sorted(stages.items())
    ]
    most = max(1, MOST_COLUMNS // max(1, len(stages))) if sum(map(len, depths)) > MOST_COLUMNS else MOST_COLUMNS
    columns: list[list[str]] = []
    lean = {}
    for generations in depths:
        step = ceil(len(generations) / most)
        for folded in (generations[start : start + step] for start in range(0, len(generations), step)):
            columns.append([node for generation in folded for node in generation])
            for number, generation in enumerate(folded):
                lean.update(dict.fromkeys(generation, 0.8 * number / len(folded)))
    return columns, lean


def _stacked(column: list[str]) -> dict[str, float]:
    """Heights of the nodes of a column from top to bottom, its middle at zero."""
    return {node: (len(column) - 1) / 2 - number for number, node in enumerate(column)}


def task_graph(graph: TaskGraph, title: str = "") -> Figure:
    """The modules of a task and their needs: colour is the stage, shape the kind of module.

    Needs inside a stage are grey, needs of an earlier stage coloured by kind, and stronger where they reach back
    over at least one whole stage (reuse).
    """
    places = layered(graph)
    lines = _lines(graph, places)
    columns = max((x for x, _ in places.values()), default=0.0) + 1
    heights = [y for _, y in places.values()] + [y for line in lines.values() for _, y in line]
    top, bottom = max(heights, default=0.0) + 0.6, min(heights, default=0.0) - 0.6
    width, height = min(max(8.0, 0.8 * columns), 12.0), min(max(2.2, 0.34 * (top - bottom)), 7.5)
    size = min(10.0, max(2.5, 0.65 * 72 * min(width / (columns + 1), height / (top - bottom))))
    handles = _handles(graph)
    beside = int(width // 2.3)
    below = 0.2 + 0.18 * ceil(len(handles) / beside)
    figure, axes = plt.subplots(figsize=(width, height + below + 0.5))
    _draw_needs(axes, graph, lines)
    _draw_modules(axes, graph, places, size)
    axes.set_xlim(-0.2 - 0.012 * columns, 1.012 * columns - 0.8)
    axes.set_ylim(bottom, top)
    axes.set_axis_off()
    _label_stages(axes, graph, places)
    axes.set_title(title, loc="left", fontsize=10)
    figure.legend(handles=handles, ncols=beside, frameon=False, fontsize=9, loc="lower left")
    return _finished(figure, (0, below / (height + below + 0.5), 1, 1))


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
    struck = events["step"][events["invalidated"].map(len) > 0]
    for step in struck:
        axes.axvline(step, color=OKABE_ITO[1], linewidth=1.2 if len(struck) <= 12 else 0.4)
    axes.step(events["step"], accepted, where="post", color=OKABE_ITO[0], linewidth=1.8)
    axes.set_xlabel("call")
    axes.set_ylabel("goals accepted", color=OKABE_ITO[0])
    tokens = axes.twinx()
    tokens.plot(
        events["step"], (events["call_tokens"] + events["observation_tokens"]).cumsum(), color=GREY, linewidth=1.2
    )
    tokens.set_ylabel("tokens so far", color="#6a6a6a")
    # where both rise alike, the goals stay visible
    axes.set_zorder(tokens.get_zorder() + 1)
    axes.patch.set_visible(False)
    tokens.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_title(title, loc="left", fontsize=10)
    return _finished(figure)


def _lines(graph: TaskGraph, places: Places) -> dict[tuple[str, str], list[Point]]:
    """The line of each need: straight inside a stage, else a bow that the height of the picture can hold."""
    columns = max((x for x, _ in places.values()), default=0.0) + 1
    rows = max((abs(y) for _, y in places.values()), default=0.0) * 2 + 1
    rise = min(0.1, (0.5 * rows + 2) / columns)
    lines = {}
    for (u, v), span in _spans(graph).items():
        ends = [places[u], places[v]]
        lines[u, v] = _bow(ends, rise) if span else ends
    return lines


def _draw_needs(axes: Axes, graph: TaskGraph, lines: Mapping[tuple[str, str], list[Point]]) -> None:
    span = _spans(graph)
    crowd = min(1.0, (60 / max(1, sum(s > 1 for s in span.values()))) ** 0.3)
    groups = [(GREY, 0.6, 0.8, [lines[e] for e, s in span.items() if s == 0])]
    for kind, colour in NEED_COLOURS.items():
        own = {e: s for e, s in span.items() if s and graph.edges[e]["kind"] == kind}
        groups.append((colour, 0.8, 0.6, [lines[e] for e, s in own.items() if s == 1]))
        groups.append((colour, 1.5, 0.85, [lines[e] for e, s in own.items() if s > 1]))
    for order, (colour, width, alpha, drawn) in enumerate(groups):
        axes.add_collection(
            LineCollection(drawn, colors=colour, linewidths=width * crowd, alpha=alpha * crowd, zorder=1 + order / 10)
        )


def _draw_modules(axes: Axes, graph: TaskGraph, places: Places, size: float) -> None:
    """Signs of ``size`` points."""
    stages = sorted({stage for _, stage in graph.nodes(data="stage")})
    colours = mpl.colormaps["cividis"].resampled(max(len(stages), 2))
    for kind, marker in _markers(graph).items():
        nodes = [n for n, k in graph.nodes(data="kind") if k == kind]
        shade = [colours(stages.index(graph.nodes[n]["stage"])) for n in nodes]
        xs, ys = zip(*(places[n] for n in nodes), strict=True)
        axes.scatter(xs, ys, s=size**2, c=shade, marker=marker, edgecolors="black", linewidths=size / 18, zorder=3)


def _markers(graph: TaskGraph) -> dict[str, str]:
    """Kind of module -> its shape."""
    return dict(zip(dict.fromkeys(kind for _, kind in graph.nodes(data="kind")), cycle(MARKERS), strict=False))


def _spans(graph: TaskGraph) -> dict[tuple[str, str], int]:
    """How many stages each need reaches back."""
    stage = dict(graph.nodes(data="stage"))
    return {(u, v): stage[v] - stage[u] for u, v in graph.edges}


def _bow(ends: list[Point], rise: float, points: int = 24) -> list[Point]:
    """A curve that leaves the straight line by ``rise`` of its length, so that long needs do not hide others.

    It leaves it outwards: upwards in the upper half of the picture, downwards in the lower.
    """
    (x0, y0), (x1, y1) = ends
    lift = rise * (x1 - x0) * (1 if y0 + y1 >= 0 else -1)
    steps = [i / (points - 1) for i in range(points)]
    return [(x0 + (x1 - x0) * t, y0 + (y1 - y0) * t + 4 * lift * t * (1 - t)) for t in steps]


def _label_stages(axes: Axes, graph: TaskGraph, places: Places) -> None:
    """Each stage's number below its columns; of many stages some, so that no label touches the next."""
    stages = sorted({s for _, s in graph.nodes(data="stage")})
    below = axes.get_xaxis_transform()
    few = len(stages) <= 8
    if not few:
        axes.text(-0.01, -0.01, "stage", ha="right", va="top", fontsize=8, transform=axes.transAxes)
    for stage in stages[:: ceil(len(stages) / 26)]:
        columns = [places[n][0] for n, s in graph.nodes(data="stage") if s == stage]
        middle = (min(columns) + max(columns)) / 2
        label = f"stage {stage}" if few else str(stage)
        axes.text(middle, -0.01, label, ha="center", va="top", fontsize=8, transform=below)


def _handles(graph: TaskGraph) -> list[Line2D]:
    """The legend: the shapes by kind of module, and the lines that the graph has."""
    outline: dict[str, Any] = {"linestyle": "", "markerfacecolor": "white", "markeredgecolor": "black"}
    handles = [Line2D([], [], marker=m, label=k.replace("_", " "), **outline) for k, m in _markers(graph).items()]
    span = _spans(graph)
    reach = {(graph.edges[e]["kind"], min(s, 2)) for e, s in span.items()}
    if 0 in span.values():
        handles.append(Line2D([], [], color=GREY, linewidth=1.0, label="need inside a stage"))
    for kind, colour in NEED_COLOURS.items():
        if (kind, 1) in reach:
            handles.append(Line2D([], [], color=colour, linewidth=1.0, label=f"{kind} of the stage before"))
        if (kind, 2) in reach:
            handles.append(Line2D([], [], color=colour, linewidth=2.4, label=f"{kind}, reused later"))
    return handles


def _finished(figure: Figure, within: tuple[float, float, float, float] | None = None) -> Figure:
    """Out of pyplot's hands: a notebook shows what a cell returns, and nothing twice."""
    figure.tight_layout(rect=within)
    plt.close(figure)
    return figure
