"""Figure 1: what an environment offers, how a task is composed of modules, and what working on it looks like.

Measured, it shows one real task: its graph, and the reference's run through it, call by call. Published, it shows the
eight units and three skills that the paper's drawing names; which of them are joined the text does not say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from skillhorizon.analysis import plots
from skillhorizon.analysis.figures import GREY, MARKERS, OKABE_ITO, layered
from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.task import Task

TITLE = "Tasks composed of skill-grounded modules"
STALE = "#C00000"
_KINDS = (OKABE_ITO[5], OKABE_ITO[4], OKABE_ITO[2], OKABE_ITO[3], OKABE_ITO[0], "#bbbbbb")


class Structure(NamedTuple):
    """What Figure 1 draws.

    offers   what the environment offers: a head and its lines
    graph    the modules of the task and their needs
    stale    modules whose accepted result an update makes void
    events   of a run through the task, columns ``core.trace.EVENT_COLUMNS``; None for a sketch of the loop
    title    of the panel with the graph
    note     below the figure
    """

    offers: Sequence[tuple[str, Sequence[str]]]
    graph: TaskGraph
    stale: frozenset[str]
    events: pd.DataFrame | None = None
    title: str = "task composition"
    note: str = ""


def of_task(task: Task, events: pd.DataFrame) -> Structure:
    """The structure of a task, with the events of its reference run."""
    env = task.environment
    facts = env.facts.resources
    operations = [name for name, tool in env.own_tools.items() if tool.kind == "business"]
    offers = [
        ("Business objects", list(facts)[:4]),
        (f"Public tools: {len(env.own_tools)}", [f"{len(operations)} operations, such as", *operations[:3]]),
        (f"Skill library: {len(list(env.skills.catalog()))}", [s["name"] for s in env.skills.catalog()][:4]),
    ]
    voided = {goal for goals in events["invalidated"] for goal in goals}
    measures = task.graph.measures
    title = (
        f"{measures['modules']} modules, {measures['joins']} joins, {measures['reuse_needs']} reuses of earlier output"
    )
    stale = frozenset(voided & set(task.graph))
    note = (
        f"; task {task.config.env}, {task.config.id} at {task.config.band}, seed {task.seed}, and the reference's run"
    )
    return Structure(offers, task.graph, stale, events, title, note)


def published() -> Structure:
    """The paper's drawing as far as its text goes."""
    skills = dict(zip("12345678", ("s1", "s2", "s2", "s1", "s3", "s1", "s2", "s3"), strict=True))
    needs = {"3": "12", "4": "1", "5": "34", "6": "2", "7": "56", "8": "71"}
    stages = {"1": 1, "2": 1, "3": 2, "4": 2, "5": 3, "6": 2, "7": 4, "8": 5}
    modules = [
        Module(f"m{m}", skill, stages[m], f"m{m}", tuple(Need(f"m{n}", "content") for n in needs.get(m, "")))
        for m, skill in skills.items()
    ]
    offers = [
        ("Business objects", ["documents, data,", "interfaces, domain entities"]),
        ("Resources and state", ["data stores, system state,", "configurations"]),
        ("Public tools", ["search, calculators,", "code execution"]),
        ("Skill library", ["skills s1, s2, s3"]),
    ]
    note = (
        "; the units and skills are the paper's, which of them are joined is this drawing's, as the text does not say"
    )
    return Structure(
        offers, TaskGraph.of(modules), frozenset({"m3", "m5"}), None, "compose, extend, reuse, update", note
    )


def figure1(structure: Structure, source: str) -> Figure:
    """(a) The environment. (b) The growing task. (c) Execution: accepted goals, and updates that void some."""
    with mpl.rc_context({**plots.STYLE, "axes.grid": False}):
        figure = plt.figure(figsize=(plots.WIDTH, 4.9))
        grid = figure.add_gridspec(2, 2, width_ratios=[0.34, 1], height_ratios=[1.5, 1])
        left = figure.add_subplot(grid[:, 0])
        composed, executed = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
        _offers(left, structure.offers)
        _graph(composed, structure)
        if structure.events is None:
            _loop(executed)
        else:
            _run(executed, structure.events)
        return plots.finished(figure, source, structure.note)


def _offers(axes: Axes, offers: Sequence[tuple[str, Sequence[str]]]) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_title("(a) Environment", loc="left")
    height = 1 / len(offers)
    for place, (head, lines) in enumerate(offers):
        low = 1 - (place + 1) * height + 0.02
        box = FancyBboxPatch(
            (0.02, low),
            0.96,
            height - 0.05,
            boxstyle="round,pad=0,rounding_size=0.03",
            facecolor="#f3f6fa",
            edgecolor="#8aa3bd",
            linewidth=0.9,
        )
        axes.add_patch(box)
        top = low + height - 0.075
        axes.text(0.07, top, head, va="top", fontweight="bold", fontsize=8)
        for number, line in enumerate(lines):
            shown = line.replace("_", " ").replace("-", " ")
            axes.text(
                0.07,
                top - 0.055 - 0.042 * number,
                shown if len(shown) < 31 else shown[:29] + "…",
                va="top",
                fontsize=6.8,
            )


def _places(graph: TaskGraph) -> dict[str, tuple[float, float]]:
    """Where ``layered`` puts each module. It walks over sets, whose order is that of hashes: numbers keep theirs."""
    numbers = {node: number for number, node in enumerate(graph)}
    places: dict[Any, tuple[float, float]] = {**layered(nx.relabel_nodes(graph, numbers))}
    return {node: places[number] for node, number in numbers.items()}


def _graph(axes: Axes, structure: Structure) -> None:
    graph = structure.graph
    places = _places(graph)
    kinds = list(dict.fromkeys(kind for _, kind in graph.nodes(data="kind")))
    looks = {k: (_KINDS[i % len(_KINDS)], MARKERS[i % len(MARKERS)]) for i, k in enumerate(kinds)}
    stage = dict(graph.nodes(data="stage"))
    size = min(13.0, 150 / max(len({x for x, _ in places.values()}), 1))
    for u, v in graph.edges:
        reach = stage[v] - stage[u]
        void = u in structure.stale and v in structure.stale
        colour = STALE if void else OKABE_ITO[0] if reach > 1 else "#7d7d7d"
        (x0, y0), (x1, y1) = places[u], places[v]
        passing = y0 == y1 and x1 - x0 > 1  # a straight line would run through what stands between
        bow = 0.22 if structure.events is not None else 0.32  # the sketch has wider gaps to go around
        bend = (bow if y0 >= 0 else -bow) if reach > 1 or passing else 0.0
        arrow = FancyArrowPatch(
            places[u],
            places[v],
            arrowstyle="-|>",
            mutation_scale=7,
            connectionstyle=f"arc3,rad={-bend}",
            color=colour,
            linewidth=1.5 if reach > 1 else 0.9,
            linestyle="--" if reach > 1 else "-",
            shrinkA=size / 2,
            shrinkB=size / 2 + 1,
            zorder=1,
        )
        axes.add_patch(arrow)
    for kind, (colour, marker) in looks.items():
        own = [n for n in graph if graph.nodes[n]["kind"] == kind]
        xs, ys = zip(*(places[n] for n in own), strict=True)
        rims = [STALE if n in structure.stale else "#333333" for n in own]
        widths = [2.0 if n in structure.stale else 0.6 for n in own]
        axes.scatter(xs, ys, s=size**2, c=colour, marker=marker, edgecolors=rims, linewidths=widths, zorder=3)
    if structure.events is None:
        for node, (x, y) in places.items():
            axes.text(x, y, node, ha="center", va="center", fontsize=6.5, zorder=4)
    axes.margins(0.06, 0.14)
    axes.set_axis_off()
    axes.set_title(f"(b) Growing task: {structure.title}", loc="left")
    handles = [
        Line2D(
            [], [], linestyle="", marker=m, color=c, markeredgecolor="#333333", markersize=6, label=k.replace("_", " ")
        )
        for k, (c, m) in looks.items()
    ]
    handles += [
        Line2D([], [], color="#7d7d7d", linewidth=0.9, label="need"),
        Line2D([], [], color=OKABE_ITO[0], linewidth=1.5, linestyle="--", label="earlier-output reuse"),
    ]
    if structure.stale:
        handles.append(
            Line2D(
                [], [], color=STALE, marker="o", markerfacecolor="white", markeredgewidth=2, label="stale after update"
            )
        )
    axes.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.02),
        ncols=4 if len(handles) > 5 else len(handles),
        fontsize=7,
        handlelength=1.7,
        columnspacing=1.2,
    )


def _run(axes: Axes, events: pd.DataFrame) -> None:
    standing: set[str] = set()
    accepted = []
    for goal, check, voided in zip(events["goal"], events["check"], events["invalidated"], strict=True):
        if check is True:
            standing.add(goal)
        standing.difference_update(voided)
        accepted.append(len(standing))
    struck = events["step"][events["invalidated"].map(len) > 0]
    axes.step(events["step"], accepted, where="post", color=OKABE_ITO[2])
    axes.fill_between(events["step"], accepted, step="post", color=OKABE_ITO[2], alpha=0.15, linewidth=0)
    for step in struck:
        axes.axvline(step, color=STALE, linewidth=1.1)
    if len(struck):
        axes.annotate(
            "update: work goes stale",
            (struck.iloc[0], 1.18 * max(accepted)),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color=STALE,
            fontsize=7.5,
        )
    tokens = int((events["call_tokens"] + events["observation_tokens"]).sum())
    axes.set_title(f"(c) Execution: {len(events)} calls and observations, L = {tokens:,} tokens", loc="left")
    axes.set_xlabel("Call")
    axes.set_ylabel("Goals accepted")
    axes.set_xlim(0, events["step"].max())
    axes.set_ylim(0, 1.32 * max([1, *accepted]))  # room for the word above the steps


def _loop(axes: Axes) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, 10)
    axes.set_ylim(0, 3)
    axes.set_title("(c) Execution", loc="left")
    for x, text, colour in ((1.0, "Agent", OKABE_ITO[5]), (5.2, "Environment", OKABE_ITO[4])):
        axes.text(
            x, 1.5, text, ha="center", va="center", bbox={"boxstyle": "round,pad=0.5", "fc": colour, "alpha": 0.35}
        )
    for y, text, ends in ((1.85, "actions", (1.7, 4.1)), (1.15, "feedback", (4.1, 1.7))):
        axes.annotate("", (ends[1], y), (ends[0], y), arrowprops={"arrowstyle": "-|>", "color": "#555555"})
        axes.text(
            2.9, y + (0.12 if y > 1.5 else -0.12), text, ha="center", va="bottom" if y > 1.5 else "top", fontsize=7.5
        )
    axes.text(8.35, 2.25, "execution history", ha="center", fontsize=7.5)
    for number in range(3):
        for row, letter in enumerate("ao"):
            axes.text(
                7.5 + 0.85 * number,
                1.65 - 0.75 * row,
                f"{letter}{number + 1}",
                ha="center",
                va="center",
                fontsize=7.5,
                bbox={"boxstyle": "round,pad=0.3", "fc": "white", "ec": GREY},
            )
