"""How work and its dependencies grow with the horizon: a table over the released sets, and pictures.

Paper 3.1 and A.2 name depth, joins and reuse spans as what describes a dependency graph, and print no numbers of them.
Here they are those of the set: *depth* is the number of modules on the longest chain of needs, a *join* is a module
that needs two or more others, a *reuse* is a need that reaches back over at least one whole stage, and its *span* is
the number of stages between the two.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from skillhorizon.analysis.figures import GREY, MARKERS, OKABE_ITO, save
from skillhorizon.core import bands
from skillhorizon.core.composition import TaskGraph

MEASURES = {
    "modules": "Modules",
    "needs": "Needs",
    "depth": "Depth",
    "joins": "Joins",
    "reuse_needs": "Reuses",
    "longest_reuse": "Longest reuse span",
}
IN_PROPORTION = "as the workload does"
NOTE = "Measured here: medians over the released tasks, which no agent has a part in. Both axes are logarithmic."
GROWING = {"modules": "Modules", "A": "Business calls", "depth": "Depth (modules)", "joins": "Joins"}


def titles(data: str | Path) -> dict[str, str]:
    """Environment -> its title, of all sets below ``data``."""
    return {path.stem: json.loads(path.read_text())["title"] for path in sorted(Path(data).glob("tasks/*.json"))}


def released(data: str | Path) -> pd.DataFrame:
    """The rows of all sets below ``data``, with the environment's title in the column ``environment``."""
    rows = pd.concat([pd.read_parquet(path) for path in sorted(Path(data).glob("tasks/*.parquet"))], ignore_index=True)
    return rows.assign(environment=rows["env"].map(titles(data)))


def dependencies(tasks: pd.DataFrame) -> pd.DataFrame:
    """One row per environment and band: for each measure the median and, as ``least–most``, its range."""
    found = []
    for (env, band), group in tasks.groupby(["env", "band"], sort=False):
        row: dict[str, Any] = {"env": env, "band": band, "tasks": len(group)}
        for column, title in MEASURES.items():
            row[title] = f"{group[column].median():g}"
            row[f"{title}, range"] = f"{group[column].min()}–{group[column].max()}"
        found.append(row)
    return pd.DataFrame(found)


def growth(tasks: pd.DataFrame) -> Figure:
    """Medians by band of modules, business calls, depth and joins, one line per environment; both axes logarithmic.

    The grey line grows as the workload does: what lies along it is proportional to the horizon.
    """
    order = [b for b in bands.BANDS if b in set(tasks["band"])]
    uppers = np.array([bands.band(b).upper for b in order], dtype=float)
    figure, axes = plt.subplots(2, 2, figsize=(7.0, 5.2), layout="constrained", sharex=True)
    shown = dict(zip(tasks["env"], tasks["environment"] if "environment" in tasks else tasks["env"], strict=True))
    names = sorted(shown)
    for axis, (column, title) in zip(axes.flat, GROWING.items(), strict=True):
        medians = tasks.pivot_table(index="band", columns="env", values=column, aggfunc="median").loc[order]
        for number, name in enumerate(names):
            axis.plot(
                uppers,
                medians[name],
                color=OKABE_ITO[number % len(OKABE_ITO)],
                marker=MARKERS[number],
                markersize=4,
                linewidth=1.4,
                label=shown[name],
            )
        start = medians.iloc[0].min() * 0.7
        along = start * uppers / uppers[0]
        axis.plot(uppers, along, color=GREY, linestyle=(0, (2, 2)), linewidth=1.2, zorder=0, label=IN_PROPORTION)
        axis.set(xscale="log", yscale="log", title=title)
        axis.set_xticks(uppers, order)
        axis.minorticks_off()
        axis.grid(axis="y", color="#e6e6e6", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[1]:
        axis.set_xlabel("Workload band (reference tokens)")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    figure.suptitle(NOTE, x=0.012, ha="left", fontsize=6.5, color="#666666")
    return figure


def stage_matrix(graph: TaskGraph, title: str = "") -> Figure:
    """A task too large to draw module by module: who needs whom, stage by stage.

    A cell counts the needs that modules of its row's stage have of modules of its column's stage, on a logarithmic
    scale; on the diagonal are the needs inside a stage, far left of it the long-range reuses. The bars count modules.
    """
    stages = sorted({stage for _, stage in graph.nodes(data="stage")})
    place = {stage: number for number, stage in enumerate(stages)}
    counts = np.zeros((len(stages), len(stages)))
    for of, by in graph.edges:
        counts[place[graph.nodes[by]["stage"]], place[graph.nodes[of]["stage"]]] += 1
    modules = np.bincount([place[stage] for _, stage in graph.nodes(data="stage")], minlength=len(stages))
    figure, (matrix, bars) = plt.subplots(
        1, 2, figsize=(7.0, 5.4), layout="constrained", sharey=True, width_ratios=(4, 1)
    )
    shown = matrix.imshow(
        np.ma.masked_equal(counts, 0),
        cmap="cividis_r",
        norm=LogNorm(1, max(counts.max(), 2)),
        aspect="auto",
        interpolation="nearest",
        extent=(0.5, len(stages) + 0.5, len(stages) + 0.5, 0.5),
    )
    matrix.set(xlabel="Stage whose results are needed", ylabel="Stage that needs them", title=title)
    matrix.spines[["top", "right"]].set_visible(False)
    bars.barh(np.arange(1, len(stages) + 1), modules, height=1.0, color=OKABE_ITO[0])
    bars.set(xlabel="Modules", title=f"{len(graph):,} in all")
    bars.spines[["top", "right"]].set_visible(False)
    scale = figure.colorbar(shown, ax=matrix, location="bottom", label="Needs", shrink=0.6, aspect=40)
    scale.set_ticks([n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= counts.max()], minor=False)
    scale.ax.xaxis.set_major_formatter("{x:g}")
    scale.ax.minorticks_off()
    return figure


def updates(planned: Sequence[Any]) -> pd.DataFrame:
    """The updates that a task declares: what each waits for, and what kind of change it is. No agent sees this."""
    return pd.DataFrame(
        [
            {
                "update": update.ordinal + 1,
                "waits for": update.counter.replace("_", " "),
                "to reach": update.at,
                "change": getattr(update.effect, "kind", None) or type(update.effect).__name__,
            }
            for update in planned
        ]
    )


def main() -> None:
    """Write the table and the picture: ``python -m skillhorizon.analysis.horizons DATA FIGURES``."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("figures", type=Path)
    options = parser.parse_args()
    tasks = released(options.data)
    path = options.data / "results" / "measured" / "dependencies.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    dependencies(tasks).to_csv(path, index=False, lineterminator="\n")
    save(growth(tasks), options.figures / "measured" / "horizon_growth")


if __name__ == "__main__":
    main()
