"""The comparison with MEA as the report shows it: tables and figures that the paper does not have.

What is counted is defined in ``analysis.mea`` and ``skillhorizon.comparison``; here it is laid out. All of it is
measured on simulated agents, except the last table, which holds what another paper published about language models on
other benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from skillhorizon.analysis import horizons, mea, results
from skillhorizon.analysis.frames import ENVIRONMENTS, MEASURED, PUBLISHED, bands_of, in_order
from skillhorizon.analysis.results import Sheet
from skillhorizon.core.errors import InputError

HARNESS = "longhorizon_headline.csv"


class Comparison(NamedTuple):
    """runs: of all conditions and profiles; grid: those with failure rates of their own; rounds: of MEA's runs."""

    runs: pd.DataFrame
    grid: pd.DataFrame
    rounds: pd.DataFrame

    @property
    def imperfect(self) -> pd.DataFrame:
        return self.runs[self.runs["condition"] != mea.PERFECT]


class Table(NamedTuple):
    """``frame`` is what the sheets lay out."""

    title: str
    text: str
    frame: pd.DataFrame
    sheets: list[Sheet]
    source: str = MEASURED


def read(data: str | Path) -> Comparison | None:
    """What the stage ``mea`` left below a folder of data; None where it has not run."""
    folder = Path(data) / "traces" / "mea"
    if not (folder / "runs.parquet").is_file():
        return None
    titles = horizons.titles(data)
    made = pd.read_parquet(folder / "runs.parquet")
    made["env"] = made["env"].map(lambda env: titles.get(env, env))
    order = in_order(made["env"], ENVIRONMENTS)
    made = made.sort_values("env", key=lambda names: names.map(order.index), kind="stable")
    rounds = pd.read_parquet(folder / "rounds.parquet")
    of_grid = made["slip"].notna()
    return Comparison(made[~of_grid], made[of_grid], rounds[rounds["slip"].isna()])


def tables(compared: Comparison, published: str | Path) -> dict[str, Table]:
    """The tables by the stem of their files. ``published`` is the folder of transcribed tables."""
    runs = compared.imperfect
    found = {
        "mea_conditions": Table(
            "One context, MEA, and MEA without one of its parts",
            "The same simulated executor on the same tasks under the same allowance B. Attempts are those of all roles "
            "together; tokens are what the requests of a role read and what it wrote.",
            *_conditions(runs),
        ),
        "mea_bands": Table(
            "The same by band",
            "Brackets hold 95 % intervals over the tasks of a cell, which are few.",
            *_by_band(runs),
        ),
        "mea_ends": Table(
            "How the runs ended (%)",
            "A run that was submitted has succeeded, or failed although its agent took it for finished.",
            *_shares(mea.ends(runs), {"condition": "Condition"}),
        ),
        "mea_overhead": Table(
            "What the roles cost where nothing goes wrong",
            "MEA with an executor that makes no mistake: calls above those of the reference, and the share of all "
            "tokens that manager and auditor take.",
            *_overhead(mea.overhead(compared.runs[compared.runs["condition"] == mea.PERFECT])),
        ),
    }
    if {mea.SINGLE, mea.MEA} <= set(runs["condition"]):
        found["mea_gain"] = Table(
            "Points of TS that MEA is above the single context",
            "Over all profiles; below zero MEA is worse.",
            *_shares(mea.gain(runs)[bands_of(runs)], {"env": "Environment"}, 0),
        )
        found["mea_paired_gain"] = Table(
            "Points that MEA is above the single context on the same task",
            "Means over pairs of runs by the same executor; brackets hold 95 % bootstrap intervals over pairs.",
            *_paired(mea.paired_gain(runs)),
        )
    if (Path(published) / HARNESS).is_file():
        found["mea_published"] = Table(
            "Published results of the harness that the design follows",
            "Other benchmarks, other agents, language models: no number here can be compared with those above.",
            *_headline(mea.published(published)),
            PUBLISHED,
        )
    return found


def figures(compared: Comparison) -> dict[str, tuple[str, Figure]]:
    """The figures by the stem of their files, each with its title."""
    one = compared.imperfect
    first = one[one["agent_profile"] == one["agent_profile"].iloc[0]]
    wanted: dict[str, tuple[str, Callable[[], Figure]]] = {
        "mea_ts": ("Task success by band and condition", lambda: mea.by_band(first)),
        "mea_lgc": ("Local-goal completion by band and condition", lambda: mea.by_band(first, "lgc")),
        "mea_rates": ("How much depends on the failure rates", lambda: mea.sensitivity(compared.grid)),
        "mea_run": (
            "One run: contracts and audits, and how the ledger grew",
            lambda: mea.timeline(mea.most_eventful(compared.rounds)),
        ),
    }
    drawn = {}
    for name, (title, draw) in wanted.items():
        try:
            drawn[name] = title, draw()
        except (InputError, KeyError):  # a comparison of few conditions has no such figure
            continue
    return drawn


Laid = tuple[pd.DataFrame, list[Sheet]]


def _conditions(runs: pd.DataFrame) -> Laid:
    found = mea.summary(runs, ("agent_profile", "condition")).reset_index()
    found["attempts_of_B"] *= 100.0
    heads = {
        "agent_profile": ("Executor", 0),
        "condition": ("Condition", 0),
        "runs": ("Runs", 0),
        "TS": ("TS (%)", 1),
        "LGC": ("LGC (%)", 1),
        "attempts_of_B": ("Attempts of B (%)", 1),
        "rounds": ("Rounds", 1),
        **{f"{role}_ktok": (f"{role.capitalize()} (1,000 tokens)", 0) for role in mea.ROLES},
        "audit_share": ("Manager and auditor (% of tokens)", 1),
    }
    return found, [results.plain(found, heads, 2)]


def _by_band(runs: pd.DataFrame) -> Laid:
    found = mea.summary(runs, ("agent_profile", "condition", "band")).reset_index()
    order = list(dict.fromkeys(zip(runs["agent_profile"], runs["condition"], strict=True)))
    place = pd.Series([*zip(found["agent_profile"], found["condition"], strict=True)], index=found.index)
    found = found.loc[place.map(order.index).sort_values(kind="stable").index]
    rows = {"agent_profile": "Executor", "condition": "Condition"}
    return found, [
        results.crossed(found, rows, "band", results.values(found, column), bands_of(found), f"{column} (%)")
        for column in ("TS", "LGC")
    ]


def _overhead(found: pd.DataFrame) -> Laid:
    table = found.reset_index()
    order = in_order(table["env"], ENVIRONMENTS)
    table = table.sort_values("env", key=lambda names: names.map(order.index), kind="stable")
    titles = {
        "calls_over_reference": "Calls above the reference (%)",
        "audit_share": "Manager and auditor (% of tokens)",
    }
    return table, [
        results.crossed(table, {"env": "Environment"}, "band", results.values(table, column), bands_of(table), title)
        for column, title in titles.items()
    ]


def _shares(found: pd.DataFrame, stub: dict[str, str], decimals: int = 1) -> Laid:
    table = found.reset_index().rename(columns=str)
    heads = {**{k: (v, 0) for k, v in stub.items()}, **{c: (_words(c), decimals) for c in map(str, found.columns)}}
    return table, [results.plain(table, heads)]


def _paired(found: pd.DataFrame) -> Laid:
    heads = {"band": ("Band", 0), "pairs": ("Pairs", 0), "TS": ("TS (points)", 1), "LGC": ("LGC (points)", 1)}
    table = found.reset_index()
    return table, [results.plain(table, heads)]


def _headline(found: pd.DataFrame) -> Laid:
    table = found.reset_index().drop(columns="source")
    table["metric"] = table["metric"].str.replace("_", " ")
    numbers = set(table.columns[table.dtypes.map(pd.api.types.is_numeric_dtype)])
    return table, [results.plain(table, {c: (_words(c), 2 if c in numbers else 0) for c in table.columns}, 2)]


def _words(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]
