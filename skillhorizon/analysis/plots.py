"""Figures 1 to 7, each a function of frames (``analysis.frames``): the same code for the paper's numbers and ours.

Panels stand where the paper has them, so that a published and a measured figure can be laid side by side. Each figure
says below where its numbers come from, and what the paper's text does not give. Colour and marker belong together
(Okabe and Ito's palette for kinds, cividis for bands), so nothing rests on colour alone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from skillhorizon.analysis import figures
from skillhorizon.analysis.figures import GREY, MARKERS, OKABE_ITO
from skillhorizon.analysis.frames import (
    ENVIRONMENTS,
    GOALS,
    MEASURED,
    MODELS,
    PUBLISHED,
    SOURCES,
    Frames,
    bands_of,
    environments_of,
    in_order,
)
from skillhorizon.core import bands

WIDTH = 7.2
"""Inches: a page's text width, at which the smallest letters are still read."""

RETRIES = dict(zip((3, 4, 5, 6, 7), zip(OKABE_ITO, MARKERS, strict=False), strict=False))

LAMBDAS = {0.0: "0", 0.125: "1/8", 0.25: "1/4", 0.375: "3/8", 0.5: "1/2"}
STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}
OUTCOMES = {
    "task_success": ("Task success", OKABE_ITO[0], "white"),
    "failure_lgc_100": ("Failure: LGC = 100 %", "#000000", "white"),
    "failure_lgc_75_to_100": ("Failure: 75 % ≤ LGC < 100 %", OKABE_ITO[4], "black"),
    "failure_lgc_below_75": ("Failure: LGC < 75 %", "#d9d9d9", "black"),
}


def figure2(frames: Frames, source: str) -> Figure:
    """Task success by environment and band, one line a model or agent; the last panel pools the environments."""
    results, pooled = frames["table09"], frames["table01"]
    panels = environments_of(results)
    looks = _looks(results["model"])
    order = bands_of(results)
    with mpl.rc_context(STYLE):
        figure, grid = _grid(len(panels) + 1, 4, 1.75)
        for axes, environment in zip(grid, panels, strict=False):
            _lines(axes, results[results["environment"] == environment], "ts", order, looks)
            axes.set_title(environment)
        overall = pooled[(pooled["metric"] == "TS") & pooled["band"].isin(order)]
        _lines(grid[len(panels)], overall, "value", order, looks)
        grid[len(panels)].set_title("Overall", fontweight="bold")
        grid[len(panels)].set_facecolor("#f6f6f6")
        for axes in grid[: len(panels) + 1]:
            axes.set_ylim(-4, 104)
            axes.set_yticks([0, 50, 100])
        bars = "; bars are 95 % intervals" if "ts_low" in results else ""
        labels = ("Workload scale (reference tokens)", "Task success (%)")
        return finished(figure, source, bars, _model_handles(looks), labels)


def figure3(frames: Frames, source: str) -> Figure:
    """(a) Required against completed goals, relative to the first band. (b) Failed finals that left most undone."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.3), width_ratios=[1.15, 1])
        _growth(left, frames["figure3a"])
        _unfinished(right, frames["figure3b"])
        note = ""
        if source == PUBLISHED:
            note = (
                "; (a) is an approximation: the paper prints no counts, so the middle of Table 6's ranges stands for "
                "required, and that times Table 9's LGC for completed"
            )
        return finished(figure, source, note)


def figure4(frames: Frames, source: str) -> Figure:
    """(a) Outcomes of all executions by band. (b) Task success among those with at least q of their goals."""
    with mpl.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 3.1), width_ratios=[1.35, 1])
        _outcomes(left, frames["figure4a"])
        thresholds = frames["figure4b"]
        order = bands_of(thresholds)
        for band, colour, marker in _band_looks(order):
            part = thresholds[thresholds["band"] == band].sort_values("q_pct")
            right.plot(
                part["q_pct"].astype(float),
                part["task_success_pct"].astype(float),
                color=colour,
                marker=marker,
                label=band,
                markevery=ceil(len(part) / 6) if len(part) else 1,
            )
        lowest = thresholds["task_success_pct"].astype(float).min()
        right.set_xlim(48, 102)  # the paper's axes, unless a line leaves them
        right.set_ylim(min(40.0, 10 * (lowest // 10) if pd.notna(lowest) else 40.0) - 2, 103)
        right.set_xlabel("Terminal LGC of at least q (%)")
        right.set_ylabel("Conditional task success (%)")
        right.set_title("(b) Delivery at completion thresholds", loc="left")
        right.legend(
            fontsize=7.5, loc="center left", bbox_to_anchor=(1.0, 0.5)
        )  # beside the lines, which fill the panel
        note = "; (b) at the four thresholds of Table 13" if source == PUBLISHED else ""
        handles = [Patch(color=colour, label=label) for label, colour, _ in OUTCOMES.values()]
        return finished(figure, source, note, handles)


def figure5(frames: Frames, source: str) -> Figure:
    """(a) Recovery within 3 to 7 further checks. (b-d) LGC, TS and recovery along prefixes of the allowance."""
    points = frames["figure5"]
    recovery = frames["figure5a"] if "figure5a" in frames else points[points["panel"] == "a"]
    if "model" not in recovery:
        recovery = recovery.assign(model="Mean of all models")
    models = in_order(recovery["model"], MODELS)
    order = bands_of(points)
    with mpl.rc_context(STYLE):
        figure = plt.figure(figsize=(WIDTH, 4.9))
        upper, lower = figure.subfigures(2, 1, squeeze=False)[:, 0]
        places = max(len(models), 2)
        upper_axes = upper.subplots(1, places, sharey=True, squeeze=False)[0]
        for axes, model in zip(upper_axes, models, strict=False):
            _recovery(axes, recovery[recovery["model"] == model], order)
            axes.set_title(model, fontsize=8.5)
            if places > 4:
                axes.tick_params(axis="x", labelsize=6, labelrotation=45)
        for axes in upper_axes[len(models) :]:
            axes.set_axis_off()
            _nothing(axes, "by model: no number in the text" if source == PUBLISHED else "no further agents")
        upper_axes[0].set_ylabel("Verified recovery (%)")
        upper.text(0.012, 0.93, "(a) Local recovery within 3–7 retries", fontsize=9)
        handles = [
            Line2D([], [], color=colour, marker=marker, label=f"{x:g}")
            for x, (colour, marker) in RETRIES.items()
            if x in set(recovery["x"])
        ]
        upper.legend(
            handles=handles,
            title="Retries:",
            alignment="right",
            loc="upper right",
            bbox_to_anchor=(0.99, 1.02),
            ncols=max(len(handles), 1),
            fontsize=7.5,
            title_fontsize=7.5,
            columnspacing=1.0,
        )
        titles = {"b": "(b) Local-goal completion", "c": "(c) Task success", "d": "(d) Failed-goal recovery"}
        lower_axes = lower.subplots(1, 3)
        for axes, (panel, title) in zip(lower_axes, titles.items(), strict=True):
            _prefixes(axes, points[points["panel"] == panel], order, source)
            axes.set_title(title, loc="left")
        lower_axes[0].set_ylabel("Rate (%)")
        lower_axes[1].set_xlabel("Extra-allowance coefficient λ")
        looks = _band_looks(order)
        handles = [Line2D([], [], color=c, marker=m, label=b) for b, c, m in looks]
        upper.subplots_adjust(left=0.085, right=0.985, top=0.76, bottom=0.14, wspace=0.12)
        lower.subplots_adjust(left=0.085, right=0.985, top=0.9, bottom=0.36, wspace=0.22)
        lower.legend(handles=handles, loc="lower center", ncols=max(len(handles), 1), bbox_to_anchor=(0.5, 0.07))
        note = "; the text states the end points only, as means over the five models, and none for (d)"
        if source == MEASURED:
            note = "; where lines of (a) coincide, further retries recovered nothing more"
        _footnote(figure, source, note)
        return _closed(figure)


def figure6(frames: Frames, source: str) -> Figure:
    """Mean task success of the first n tasks over many family-balanced orders, with the central 90 %."""
    if "figure6" not in frames:
        return _empty(source, "no such execution")
    points = frames["figure6"]
    wide = points.pivot_table(index="sampled_tasks", columns="statistic", values="value_pct").sort_index().astype(float)
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(0.75 * WIDTH, 3.0))
        ends = wide.dropna(subset=["p5", "p95"]) if {"p5", "p95"} <= set(wide) else wide.iloc[:0]
        axes.fill_between(ends.index, ends["p5"], ends["p95"], color=OKABE_ITO[5], alpha=0.35, linewidth=0)
        if "figure6_printed" in frames:
            _printed(axes, frames["figure6_printed"])
        axes.plot([], [], color=OKABE_ITO[5], linewidth=7, alpha=0.5, label="Central 90 % of the orders")
        if "mean" in wide:
            mean = wide["mean"].dropna()
            axes.plot(mean.index, mean, color=OKABE_ITO[0], label="Mean TS")
        if "full_set_ts" in wide and (full := wide["full_set_ts"].dropna()).size:
            value = full.iloc[-1]
            axes.axhline(value, color=OKABE_ITO[1], linestyle="--", linewidth=1.2, label=f"Full set: {value:.1f} %")
        axes.set_xlim(0, 1.04 * wide.index.max())
        axes.set_xlabel("Sampled tasks")
        axes.set_ylabel("Task success (%)")
        axes.legend(loc="lower right")
        note = (
            "; the orders were drawn anew from the successes that the text gives for each of the three families, the "
            "crosses are the ends of the range that it prints"
        )
        if source == MEASURED and "model" in points:
            pool = points[["model", "environment", "band"]].iloc[0]
            note = f"; {pool['model']}, {pool['environment']} at {pool['band']}, {wide.index.max()} tasks"
        return finished(figure, source, note)


def _printed(axes: Axes, points: pd.DataFrame) -> None:
    """The ends of the range that the text prints."""
    ends = points[points["statistic"].isin(["p5", "p95"])]
    axes.plot(ends["sampled_tasks"], ends["value_pct"], "x", color="black", markersize=6, label="Printed in the text")
    for at, value in zip(ends["sampled_tasks"], ends["value_pct"], strict=True):
        axes.annotate(f"{value:.1f}", (at, value), (7, 0), textcoords="offset points", va="center", fontsize=7.5)


def figure7(frames: Frames, source: str) -> Figure:
    """Mean completed goals of an execution by band (lines) and those required (dashed), in each environment's units."""
    progress = frames["figure7"]
    panels = environments_of(progress)
    looks = _looks(progress["model"])
    order = bands_of(progress)
    with mpl.rc_context(STYLE):
        figure, grid = _grid(len(panels) + 1, 4, 1.9)
        for axes, environment in zip(grid, panels, strict=False):
            part = progress[progress["environment"] == environment]
            needed = part.groupby("band")["required"].mean().reindex(order).astype(float)
            axes.plot(range(len(order)), needed, color="black", linestyle="--", linewidth=1.2)
            _lines(axes, part, "completed", order, looks, 0.0)  # shifted, a rising line would pass what is required
            axes.set_title(environment, pad=15)
            label = GOALS.get(environment, "Goals")
            axes.text(0.5, 1.04, label, transform=axes.transAxes, ha="center", fontsize=7, color="#555555")
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        grid[len(panels)].set_axis_off()
        handles = [*_model_handles(looks), Line2D([], [], color="black", linestyle="--", label="Required (mean)")]
        grid[len(panels)].legend(handles=handles, loc="center")
        note = ""
        if source == PUBLISHED:
            note = (
                "; an approximation: middles of Table 6's ranges (three posts a brief), and those times Table 9's LGC"
            )
        labels = ("Reference workload (tokens); units and scales of each environment", "Goals per task")
        return finished(figure, source, note, (), labels)


FIGURES: dict[str, tuple[str, Callable[[Frames, str], Figure]]] = {
    "figure2": ("Task success across environments and bands", figure2),
    "figure3": ("Required work outgrows completed work", figure3),
    "figure4": ("Local completion and delivery", figure4),
    "figure5": ("Recovery across bands and along the allowance", figure5),
    "figure6": ("How much the sample of tasks matters", figure6),
    "figure7": ("Completed and required goals", figure7),
}
"""What each figure is called, and its function."""


def title(name: str) -> str:
    return f"Figure {name[6:]}. {FIGURES[name][0]}"


def write(frames: Frames, source: str, folder: str | Path, *names: str) -> list[Path]:
    """Write figures as ``<folder>/<source>/figureN.png`` and ``.svg``, all or those named; returns the files."""
    files: list[Path] = []
    for name in names or FIGURES:
        files += figures.save(FIGURES[name][1](frames, source), Path(folder) / source / name)
    return files


# -- panels --------------------------------------------------------------------------------------------------------


def _growth(axes: Axes, growth: pd.DataFrame) -> None:
    order = bands_of(growth)
    across = up = 1.0
    environments = in_order(growth["environment"], ENVIRONMENTS)
    for environment, colour, marker in zip(environments, cycle(OKABE_ITO), cycle(MARKERS), strict=False):
        part = growth[growth["environment"] == environment].set_index("band").reindex(order)
        part = part[["required_ratio", "completed_ratio"]].astype(float).dropna()
        axes.plot(part["required_ratio"], part["completed_ratio"], color=colour, marker=marker, label=environment)
        across = max([across, *part["required_ratio"]])
        up = max([up, *part["completed_ratio"]])
    axes.plot([0, 1.2 * across], [0, 1.2 * across], color=GREY, linewidth=1.0, linestyle=(0, (5, 2)))
    axes.set_xlim(0, 1.06 * across)
    axes.set_ylim(0, 1.15 * up)
    at = min(across, 1.08 * up)
    axes.annotate(
        "equal growth", (at, at), (5, -4), textcoords="offset points", color="#6a6a6a", fontsize=7.5, va="top"
    )
    axes.set_xlabel(f"Required work / {order[0] if order else 'first band'} baseline")
    axes.set_ylabel("Completed work / baseline")
    axes.set_title("(a) Work and output growth", loc="left")
    axes.legend(fontsize=7, loc="upper left", labelspacing=0.3, handlelength=1.6)


def _unfinished(axes: Axes, rates: pd.DataFrame) -> None:
    order = bands_of(rates)
    part = rates.set_index("band").reindex(order)
    heights = part["joint_event_pct"].astype(float)
    axes.bar(
        range(len(order)),
        heights,
        color=[colour for _, colour, _ in _band_looks(order)],
        width=0.66,
        edgecolor="#444444",
        linewidth=0.5,
    )
    _whiskers(axes, range(len(order)), part, "joint_event_pct")
    high = part["joint_event_pct_high"].astype(float) if "joint_event_pct_high" in part else heights
    for place, height in enumerate(heights):
        if pd.notna(height):
            beside = (3, 1, "left") if "joint_event_pct_high" in part else (0, 2, "center")
            axes.annotate(
                f"{height:.1f}", (place, height), beside[:2], textcoords="offset points", ha=beside[2], va="bottom"
            )
    axes.set_xticks(
        range(len(order)), [f"{b}\nn={n:,}" for b, n in zip(order, part["n"].fillna(0).astype(int), strict=True)]
    )
    axes.set_ylim(0, max([10.0, *(1.3 * high.dropna())]))
    axes.grid(axis="x", visible=False)
    axes.set_xlabel("Reference workload (tokens)")
    axes.set_ylabel("Failed finals with both (%)")
    axes.set_title("(b) Unfinished work at final", loc="left")
    axes.text(
        0.03, 0.95, "completion < 25 %\nallowance left > 50 %", transform=axes.transAxes, va="top", color="#555555"
    )


def _outcomes(axes: Axes, outcomes: pd.DataFrame) -> None:
    order = bands_of(outcomes)
    wide = outcomes.pivot_table(index="band", columns="outcome", values="pct").reindex(order).astype(float)
    left = pd.Series(0.0, index=wide.index)
    for outcome, (label, colour, ink) in OUTCOMES.items():
        width = wide[outcome].fillna(0.0) if outcome in wide else left * 0
        axes.barh(range(len(order)), width, left=left, color=colour, height=0.72, label=label)
        for place, (start, share) in enumerate(zip(left, width, strict=True)):
            if share >= 6:
                axes.text(start + share / 2, place, f"{share:.1f}", ha="center", va="center", color=ink, fontsize=7.5)
        left = left + width
    axes.set_yticks(range(len(order)), order)
    axes.invert_yaxis()
    axes.set_xlim(0, 100.5)
    axes.grid(visible=False)
    axes.set_xlabel("Executions (%)")
    axes.set_ylabel("Reference workload")
    axes.set_title("(a) Outcomes", loc="left")


def _recovery(axes: Axes, points: pd.DataFrame, order: list[str]) -> None:
    for place, (x, (colour, marker)) in enumerate(RETRIES.items()):
        part = points[points["x"] == x].set_index("band").reindex(order)
        style = "-" if len(order) > 2 else ":"
        heights = part["value_pct"].astype(float)
        size = 3.4 + 1.1 * (len(RETRIES) - 1 - place)  # where lines meet, each is still seen behind the next
        axes.plot(
            range(len(order)), heights, color=colour, marker=marker, linestyle=style, markersize=size, linewidth=1.2,
            markeredgewidth=0,
        )  # fmt: skip
    axes.set_xticks(range(len(order)), order)
    axes.tick_params(axis="x", labelsize=6.5)
    axes.set_xlim(-0.4, len(order) - 0.6)
    lowest = (
        axes.get_ylim()[0] if points.empty else min(axes.get_ylim()[0], points["value_pct"].astype(float).min() - 3)
    )
    axes.set_ylim(max(0, min(50.0, lowest)), 102)


def _empty(source: str, words: str) -> Figure:
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(0.75 * WIDTH, 3.0))
        axes.set_axis_off()
        _nothing(axes, words)
        return finished(figure, source)


def _nothing(axes: Axes, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color="#777777", style="italic")


def _prefixes(axes: Axes, points: pd.DataFrame, order: list[str], source: str) -> None:
    axes.set_xticks(list(LAMBDAS), list(LAMBDAS.values()))
    axes.set_xlim(-0.03, 0.53)
    if points.empty:
        axes.set_ylim(-3, 103)
        _nothing(axes, "no number in the text" if source == PUBLISHED else "no such execution")
        return
    for band, colour, marker in _band_looks(order):
        part = points[points["band"] == band].sort_values("x")
        style = "-" if len(part) > 2 else ":"
        axes.plot(
            part["x"].astype(float), part["value_pct"].astype(float), color=colour, marker=marker, linestyle=style
        )
    axes.set_ylim(-3, 103)


def _lines(
    axes: Axes,
    frame: pd.DataFrame,
    column: str,
    order: list[str],
    looks: dict[str, tuple[str, str]],
    apart: float = 0.05,
) -> None:
    """One line a model over the bands, with the interval of each point where the frame has one.

    Lines with intervals are shifted sideways by ``apart`` of the distance between two bands.
    """
    for place, (model, (colour, marker)) in enumerate(looks.items()):
        part = frame[frame["model"] == model].set_index("band").reindex(order)
        beside = (place - (len(looks) - 1) / 2) * apart if f"{column}_low" in frame else 0.0
        at = [i + beside for i in range(len(order))]
        _whiskers(axes, at, part, column, colour)
        axes.plot(
            at, part[column].astype(float), color=colour, marker=marker, markeredgecolor="white", markeredgewidth=0.4
        )
    axes.set_xticks(range(len(order)), order)
    axes.tick_params(axis="x", labelsize=6.5)
    axes.set_xlim(-0.4, len(order) - 0.6)


def _whiskers(axes: Axes, at: Iterable[float], part: pd.DataFrame, column: str, colour: str = "#333333") -> None:
    if f"{column}_low" not in part:
        return
    low, high = part[f"{column}_low"].astype(float), part[f"{column}_high"].astype(float)
    axes.vlines(list(at), low, high, color=colour, linewidth=0.8, alpha=0.55)


# -- looks ---------------------------------------------------------------------------------------------------------


def _looks(models: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Model or agent -> colour and marker. Names of the paper keep theirs, whatever stands beside them."""
    names = in_order(models, MODELS)
    return {name: (OKABE_ITO[i % len(OKABE_ITO)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(names)}


def _model_handles(looks: dict[str, tuple[str, str]]) -> list[Line2D]:
    return [Line2D([], [], color=c, marker=m, label=name) for name, (c, m) in looks.items()]


def _ramp(steps: int) -> list[Any]:
    """Ordered colours, dark to light, none too light for white paper."""
    return [mpl.colormaps["cividis"](0.05 + 0.8 * i / max(steps - 1, 1)) for i in range(steps)]


def _band_looks(order: list[str]) -> list[tuple[str, Any, str]]:
    """Band, colour, marker: a band of the paper looks the same whichever others are there."""
    known = [*bands.PAPER_BANDS, *(b for b in order if b not in bands.PAPER_BANDS)]
    looks = dict(zip(known, zip(_ramp(len(known)), MARKERS, strict=False), strict=False))
    return [(band, *looks[band]) for band in order]


def _grid(panels: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """``panels`` axes in rows of ``columns``; places beyond them stay empty."""
    columns = min(columns, panels)
    rows = ceil(panels / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, rows * height + 0.7), squeeze=False)
    flat = list(axes.flat)
    for spare in flat[panels:]:
        spare.set_axis_off()
    return figure, flat


def finished(
    figure: Figure, source: str, note: str = "", handles: Sequence[Any] = (), labels: tuple[str, str] | None = None
) -> Figure:
    """Footnote, legend and the label that the panels share below, the panels in what is left."""
    inches = figure.get_figheight()
    below = 0.08 + 0.13 * _footnote(figure, source, note)
    if handles:
        rows = ceil(len(handles) / 6)
        figure.legend(
            handles=list(handles),
            loc="lower center",
            ncols=ceil(len(handles) / rows),
            bbox_to_anchor=(0.5, below / inches),
            columnspacing=1.3,
            handlelength=1.8,
        )
        below += 0.08 + 0.17 * rows
    left = 0.0
    if labels:
        figure.text(0.5, (below + 0.04) / inches, labels[0], ha="center", va="bottom", fontsize=8.5)
        below += 0.2
        left = 0.2 / figure.get_figwidth()
        figure.text(0.3 * left, 0.5 + 0.5 * below / inches, labels[1], rotation=90, va="center", fontsize=8.5)
    figure.tight_layout(rect=(left, below / inches, 1, 1), w_pad=0.8)
    return _closed(figure)


def _footnote(figure: Figure, source: str, note: str) -> int:
    """Where the numbers come from, in the lower left corner; returns the number of lines."""
    text = SOURCES[source] + note
    lines = textwrap.wrap(text[:1].upper() + text[1:] + ".", int(19.5 * figure.get_figwidth()))
    figure.text(0.012, 0.01, "\n".join(lines), fontsize=6.5, color="#666666", va="bottom", linespacing=1.15)
    return len(lines)


def _closed(figure: Figure) -> Figure:
    """Out of pyplot's hands: a notebook shows what a cell returns, and nothing twice."""
    plt.close(figure)
    return figure
