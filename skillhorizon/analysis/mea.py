"""What keeping the task's state apart buys: tables and figures over the runs and rounds of ``skillhorizon.comparison``.

The runs are those of simulated agents, not of language models. Tokens of a role are those that its requests read, over
all requests, and those that it wrote.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skillhorizon.analysis import intervals
from skillhorizon.analysis.figures import GREY, MARKERS, OKABE_ITO
from skillhorizon.core import bands
from skillhorizon.core.errors import InputError

SINGLE, MEA, PERFECT = "single context", "MEA", "MEA, perfect executor"
ROLES = ("manager", "executor", "auditor")
_RUN = ["task_id", "condition", "agent_profile", "seed"]
SIMULATED = "simulated agents, not language models"


def tokens(runs: pd.DataFrame, role: str) -> pd.Series:
    """Tokens that a role read and wrote, by run."""
    return runs[f"{role}_tokens_in"] + runs[f"{role}_tokens_out"]


def summary(runs: pd.DataFrame, by: tuple[str, ...] = ("band", "condition")) -> pd.DataFrame:
    """Means over runs: TS and LGC in percent, attempts as a share of B, rounds, thousands of tokens by role, and the
    share of tokens that manager and auditor take, in percent. ``_low`` and ``_high`` are ends of 95 % intervals, of TS
    Wilson's, of LGC by bootstrap over runs."""
    wide = runs.assign(
        TS=100.0 * runs["success"],
        LGC=100.0 * runs["lgc"],
        attempts_of_B=runs["attempts"] / runs["B"],
        **{f"{role}_ktok": tokens(runs, role) / 1000 for role in ROLES},
    )
    wide["audit_share"] = _share(wide)
    columns = ["TS", "LGC", "attempts_of_B", "rounds", *(f"{role}_ktok" for role in ROLES), "audit_share"]
    table = wide.groupby(list(by), sort=False)[columns].mean()
    table.insert(0, "runs", wide.groupby(list(by), sort=False).size())
    ts = intervals.share(wide, by, "success", "TS")
    lgc = intervals.bootstrapped(wide, by, "LGC", "LGC")
    for place, (name, ends) in enumerate([("TS", ts), ("LGC", lgc)]):
        for n, end in enumerate((f"{name}_low", f"{name}_high")):
            table.insert(2 + 3 * place + n, end, ends[end].reindex(table.index))
    return _in_order(table)


def _share(wide: pd.DataFrame) -> pd.Series:
    total = wide[[f"{role}_ktok" for role in ROLES]].sum(axis=1)
    return 100.0 * (total - wide["executor_ktok"]) / total.where(total > 0, 1.0)


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """Bands in their order, all else as it came."""
    if "band" not in table.index.names:
        return table
    place = {name: n for n, name in enumerate(bands.BANDS)}
    return table.sort_index(
        level="band", key=lambda i: i.map(place) if i.name == "band" else i, sort_remaining=False, kind="stable"
    )


def overhead(runs: pd.DataFrame) -> pd.DataFrame:
    """What the roles cost where nothing goes wrong: of MEA runs with a faithful executor, by environment and band, the
    calls above the reference's in percent of them, and the share of tokens that manager and auditor take."""
    table = pd.DataFrame(
        {
            "env": runs["env"],
            "band": runs["band"],
            "success": runs["success"],
            "calls_over_reference": 100.0 * (runs["attempts"] - runs["R"]) / runs["R"],
            "audit_share": 100.0
            * (tokens(runs, "manager") + tokens(runs, "auditor"))
            / sum(tokens(runs, role) for role in ROLES),
        }
    )
    return _in_order(table.groupby(["env", "band"], sort=False).mean())


def gain(runs: pd.DataFrame, by: tuple[str, ...] = ("env", "band"), of: str = "success") -> pd.DataFrame:
    """MEA minus the single context, in percentage points of TS (or of ``lgc``): positive where MEA is better."""
    means = 100.0 * runs.groupby([*by, "condition"], sort=False)[of].mean().unstack("condition")
    if missing := [c for c in (SINGLE, MEA) if c not in means]:
        raise InputError(f"no runs of the condition {missing[0]!r}")
    return (means[MEA] - means[SINGLE]).unstack(by[-1])


def paired_gain(runs: pd.DataFrame, by: tuple[str, ...] = ("band",)) -> pd.DataFrame:
    """MEA minus the single context on the same task, in points of TS and LGC: the mean over pairs, with the ends of a
    95 % bootstrap interval over pairs."""
    pairs = runs[runs["condition"].isin([SINGLE, MEA])].assign(TS=100.0 * runs["success"], LGC=100.0 * runs["lgc"])
    keys = list(dict.fromkeys([*by, *_RUN]))
    wide = pairs.set_index(keys)[["TS", "LGC"]].unstack("condition")
    points = pd.DataFrame({name: wide[name][MEA] - wide[name][SINGLE] for name in ("TS", "LGC")}).reset_index()
    table = pd.concat([intervals.bootstrapped(points, by, name, name) for name in ("TS", "LGC")], axis=1)
    table.insert(0, "pairs", points.groupby(list(by)).size())
    return _in_order(table)


def where_it_pays(runs: pd.DataFrame, band_names: tuple[str, ...] = ("512K", "1M")) -> pd.DataFrame:
    """By environment: over profiles and some bands, how often MEA has the higher TS, the same, and the lower."""
    chosen = runs[runs["band"].isin(band_names)]
    if chosen.empty:
        return pd.DataFrame(columns=["higher", "same", "lower"])
    points = gain(chosen, ("env", "agent_profile", "band")).stack()
    counts = {"higher": points > 0, "same": points == 0, "lower": points < 0}
    return pd.DataFrame({name: hits.groupby(level="env").sum() for name, hits in counts.items()})


def ends(runs: pd.DataFrame) -> pd.DataFrame:
    """How runs ended, in percent, by condition; of those that were submitted, which succeeded and which did not."""
    submitted = runs["success"].map({True: "succeeded", False: "submitted in vain"})
    how = runs["end"].where(runs["end"] != "submitted", submitted)
    return 100.0 * pd.crosstab(runs["condition"], how, normalize="index")


def most_eventful(rounds: pd.DataFrame) -> pd.DataFrame:
    """The rounds of the run in which audits found most suspect writes; of several, the one with the most rounds."""
    found = rounds.groupby(_RUN, sort=False)["suspects"].agg(["sum", "size"])
    if found.empty:
        return rounds
    chosen = found.sort_values(["sum", "size"], kind="stable").index[-1]
    return rounds.set_index(_RUN).loc[[chosen]].reset_index()


def published(folder: str | Path) -> pd.DataFrame:
    """The headline results of the MEA harness as published: other benchmarks, real models. Nothing here is comparable
    with the numbers of this project."""
    table = pd.read_csv(Path(folder) / "longhorizon_headline.csv")
    table = table.assign(source="published, another benchmark", gain=table["harness"] - table["baseline"])
    return table.set_index(["source", "benchmark", "metric", "backbone"])


# -- figures ---------------------------------------------------------------------------------------------------------


def by_band(runs: pd.DataFrame, of: str = "success") -> Figure:
    """TS (or ``lgc``) by band, one panel per environment, one line per condition."""
    environments = list(dict.fromkeys(runs["env"]))
    conditions = list(dict.fromkeys(runs["condition"]))
    present = [name for name in bands.BANDS if name in set(runs["band"])]
    columns = min(4, len(environments))
    lines = -(-len(environments) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(3 * columns, 2.4 * lines + 0.6), sharey=True, squeeze=False)
    for axis, env in zip(axes.flat, environments, strict=False):
        for n, condition in enumerate(conditions):
            chosen = runs[(runs["env"] == env) & (runs["condition"] == condition)]
            means = 100.0 * chosen.groupby("band")[of].mean().reindex(present)
            style = {"marker": MARKERS[n], "color": OKABE_ITO[n % len(OKABE_ITO)], "markersize": 4, "linewidth": 1.2}
            axis.plot(range(len(present)), means, label=condition, **style)
        axis.set_title(env, loc="left", fontsize=9)
        axis.set_xticks(range(len(present)), present, fontsize=8)
        axis.set_ylim(-4, 104)
    for axis in axes.flat[len(environments) :]:
        axis.set_axis_off()
    for axis in axes[:, 0]:
        axis.set_ylabel("TS, %" if of == "success" else "LGC, %", fontsize=8)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=len(labels), frameon=False, fontsize=8, loc="lower left")
    figure.suptitle(f"By band ({SIMULATED})", fontsize=9, x=0.01, ha="left")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    plt.close(figure)
    return figure


def sensitivity(runs: pd.DataFrame) -> Figure:
    """Where auditing stops paying: TS over the slip rate and over the recall rate, each a mean over the other, and MEA
    minus the single context over both, in points. Where the lines meet, or the difference is not above zero, the
    auditor's calls buy nothing. Whiskers are 95 % bootstrap intervals over tasks."""
    means = 100.0 * runs.groupby(["slip", "recall", "condition"])["success"].mean().unstack("condition")
    grid = (means[MEA] - means[SINGLE]).unstack("recall")
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), width_ratios=(3, 3, 4))
    for axis, rate in zip(axes[:2], ("slip", "recall"), strict=True):
        _lines(axis, runs, rate)
    axes[0].set_ylabel("TS, %", fontsize=8)
    axes[0].legend(frameon=False, fontsize=8, loc="lower left")
    image = {"cmap": "PuOr", "vmin": -100, "vmax": 100}
    shown = axes[2].imshow(grid.to_numpy(), origin="lower", aspect="auto", **image)
    _cells(axes[2], grid, "MEA minus single context, points of TS")
    figure.colorbar(shown, ax=axes[2], fraction=0.046)
    figure.suptitle(f"Where auditing pays ({SIMULATED})", fontsize=9, x=0.01, ha="left")
    figure.tight_layout()
    plt.close(figure)
    return figure


def _lines(axis: Axes, runs: pd.DataFrame, rate: str) -> None:
    """TS over one of the rates, a line per condition; the rates stand at equal distances."""
    by_task = 100.0 * runs.groupby(["condition", rate, "task_id"])["success"].mean()
    table = intervals.bootstrapped(by_task.reset_index(), ["condition", rate], "success", "TS")
    for n, condition in enumerate((SINGLE, MEA)):
        own = table.loc[condition]
        places = np.arange(len(own)) + 0.06 * n  # beside each other, so that whiskers can be told apart
        errors = [own["TS"] - own["TS_low"], own["TS_high"] - own["TS"]]
        axis.errorbar(
            places,
            own["TS"],
            yerr=errors,
            label=condition,
            marker=MARKERS[n],
            color=OKABE_ITO[n],
            linewidth=1.2,
            capsize=2,
        )
    rates = table.loc[SINGLE].index
    axis.set_xticks(range(len(rates)), [f"{r:g}" for r in rates], fontsize=8)
    axis.set_xlabel(f"{rate} rate", fontsize=8)
    axis.set_title(f"by {rate} rate", loc="left", fontsize=9)
    axis.set_ylim(-4, 104)


def _cells(axis: Axes, table: pd.DataFrame, title: str) -> None:
    axis.set_xticks(range(table.shape[1]), [f"{c:g}" for c in table.columns], fontsize=8)
    axis.set_yticks(range(table.shape[0]), [f"{i:g}" for i in table.index], fontsize=8)
    axis.set_xlabel("recall rate", fontsize=8)
    axis.set_ylabel("slip rate", fontsize=8)
    axis.set_title(title, loc="left", fontsize=9)
    for (row, column), value in np.ndenumerate(table.to_numpy(dtype=float)):
        text = axis.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8)
        text.set_bbox({"facecolor": "white", "alpha": 0.6, "edgecolor": "none", "pad": 1})


def timeline(rounds: pd.DataFrame) -> Figure:
    """One run: who made which calls, how the audits ended, and how the ledger grew. ``rounds`` are those of the run."""
    if rounds.empty:
        raise InputError("the run has no rounds to draw")
    figure, (above, below) = plt.subplots(2, 1, figsize=(11, 4.4), sharex=True, height_ratios=(2, 3))
    colours = {"complete": OKABE_ITO[2], "incomplete": OKABE_ITO[4], "blocked": OKABE_ITO[1]}
    for row in rounds.to_dict("records"):
        first, executed, audited = row["first"], row["executed"], row["audited"]
        above.barh(1, executed - first, left=first, color=OKABE_ITO[0 if row["number"] % 2 else 5])
        above.barh(0, max(audited - executed, 0.4), left=executed, color=colours.get(row["completion"], GREY))
        if row["suspects"]:
            above.plot(audited, 0, marker="x", color="black", markersize=5)
    above.set_yticks([0, 1], ["audits", "contracts"], fontsize=8)
    for word, colour in colours.items():
        above.plot([], [], marker="s", linestyle="", color=colour, label=word)
    above.plot([], [], marker="x", linestyle="", color="black", label="suspect writes")
    above.legend(ncols=4, frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0, 1.32))
    below.step(rounds["audited"], rounds["verified"].cumsum(), where="post", label="calls verified", color=OKABE_ITO[0])
    below.step(rounds["audited"], rounds["known"], where="post", label="requirements known", color=OKABE_ITO[4])
    below.step(rounds["audited"], rounds["completed"], where="post", label="completed", color=OKABE_ITO[2])
    below.plot([0, rounds["audited"].max()], [0, rounds["audited"].max()], color=GREY, linewidth=0.6, linestyle=":")
    below.set_xlabel("calls of all roles", fontsize=8)
    below.legend(frameon=False, fontsize=8, loc="upper left")
    figure.tight_layout()
    plt.close(figure)
    return figure
