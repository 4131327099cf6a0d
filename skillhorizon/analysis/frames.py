"""Frames that the tables and figures are made of: one layout for the paper's numbers and for this project's own.

A frame is named after its table or figure (``table09``, ``figure6``). Its columns are those of the CSV in
``data/published``; measured frames carry agents in the column ``model`` and, where an interval is given, ``*_low`` and
``*_high`` beside a value. Frames without a CSV in ``data/published``:

``figure3a``   environment, band, required, completed, and both as ``*_ratio`` of the first band
``figure4b``   as ``table13``, at more thresholds
``figure6``    for the paper drawn anew from its counts; what it prints of it is ``figure6_printed``
``figure5a``   as panel a of ``figure5``, by model (measured only)
``figure7``    environment, model, band, required, completed: mean goals of an execution
``facts_…``    what the text states beside the tables (measured only)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from skillhorizon.analysis import measures, sampling, scale, tables
from skillhorizon.analysis.populations import REFERENCE, Traces
from skillhorizon.analysis.sources import Measured
from skillhorizon.core import bands
from skillhorizon.core.errors import InputError

Frames = Mapping[str, pd.DataFrame]

PUBLISHED, MEASURED = "published", "measured"
SIMULATED = "simulated agents, not language models"
SOURCES = {PUBLISHED: "published: language models, numbers of the paper", MEASURED: f"measured here: {SIMULATED}"}

ENVIRONMENTS = ("SocialOps", "DocOps", "LogisticsOps", "FieldOps", "FinanceOps", "ResearchOps", "FactoryOps")
"""In the order of the paper's figures."""

MODELS = ("Grok 4.6", "Gemini 3.8 Flash", "Qwen3.8-Flash", "GPT-5.6 Sol", "DeepSeek V4.1 Flash")
"""The paper's, in the order of its figures."""

GOALS = {
    "FinanceOps": "Completed work packages",
    "FieldOps": "Restored device cases",
    "SocialOps": "Accepted briefs",
    "LogisticsOps": "Network bookings",
    "ResearchOps": "Accepted review rounds",
    "DocOps": "Accepted pages",
    "FactoryOps": "Quantity-complete orders",
}
"""The local goals of each environment, as Figure 7 calls them."""

_SIZES = {
    "FinanceOps": ("Work packages", 1),
    "FieldOps": ("Devices", 1),
    "SocialOps": ("Posts", 3),
    "LogisticsOps": ("Bookings", 1),
    "ResearchOps": ("Rounds", 1),
    "DocOps": ("Pages", 1),
    "FactoryOps": ("Orders", 1),
}
"""The row of Table 6 that counts an environment's local goals, and how many of it make one goal."""


_OF_THE_SET = {3: tables.table03, 4: tables.table04, 5: tables.table05, 6: tables.table06}


def published(folder: str | Path) -> dict[str, pd.DataFrame]:
    """All frames that the paper's numbers give, from the folder of its transcribed tables.

    ``figure7`` is an approximation, and so is ``figure3a``, which rests on it: required is the middle of Table 6's
    range (three posts to a brief), completed is that times Table 9's LGC.
    """
    folder = Path(folder)
    found = {
        key(path.stem): read(path) for path in sorted(folder.glob("*.csv")) if path.stem.startswith(("table", "figure"))
    }
    if missing := [f"table{n:02}" for n in range(1, 22) if f"table{n:02}" not in found]:
        raise InputError(f"no published {missing[0]} in {folder}")
    found["figure4b"] = found["table13"]
    found["figure6_printed"] = found["figure6"]
    found["figure6"] = _orders_drawn_anew(read(folder / "text_facts.csv"))
    found["figure7"] = _approximate_progress(found["table06"], found["table09"])
    ordered = found["figure7"].assign(band=pd.Categorical(found["figure7"]["band"], bands_of(found["figure7"])))
    found["figure3a"] = scale.figure3a(ordered.rename(columns={"required": "goals_required", "completed": "goals_met"}))
    return found


def measured(data: str | Path, agents: Sequence[str] | None = None) -> dict[str, pd.DataFrame]:
    """All frames that the traces and task sets below ``data`` give."""
    return {**of_runs(data, agents), **of_events(data, agents)}


def of_runs(data: str | Path, agents: Sequence[str] | None = None) -> dict[str, pd.DataFrame]:
    """The frames that need the table of runs alone, and those of the task sets (Tables 3 to 6).

    Without ``agents``, those of all agents but the reference; where there are no others, the reference's.
    """
    source = Measured(Path(data) / "tasks")
    of_the_set = {f"table{number:02}": make(source) for number, make in _OF_THE_SET.items()}
    return _named(measures.of_runs(_traces(data, agents))) | of_the_set


def of_events(data: str | Path, agents: Sequence[str] | None = None) -> dict[str, pd.DataFrame]:
    """The frames that take a look into the runs, call by call; ``agents`` as above."""
    return _named(measures.of_events(_traces(data, agents)))


def _traces(data: str | Path, agents: Sequence[str] | None) -> Traces:
    folder = Path(data) / "traces"
    if agents is None and not any(p.parents[1].name != REFERENCE for p in folder.glob("*/*/runs.parquet")):
        agents = [REFERENCE]
    return Traces(data, agents)


def _named(found: Frames) -> dict[str, pd.DataFrame]:
    return {key(name): frame for name, frame in found.items()}


def key(name: str) -> str:
    """``table09_env_results`` is table09; facts keep their whole name."""
    return name.split("_")[0] if name.startswith(("table", "figure")) else name


def read(path: Path) -> pd.DataFrame:
    """A CSV as a frame; an empty cell is missing, the word None is a word."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""]).convert_dtypes()


def _orders_drawn_anew(facts: pd.DataFrame) -> pd.DataFrame:
    """Figure 6 follows from how many tasks of each family were solved, and the text says that."""
    counts = facts.set_index("fact_id")["value"]
    outcomes = {}
    for name in counts.index[counts.index.str.match(r"sampling_.*_successes")]:
        tasks, won = int(counts[name.replace("_successes", "_tasks")]), int(counts[name])
        outcomes[name] = [True] * won + [False] * (tasks - won)
    return sampling.curve(outcomes)


def _approximate_progress(scale: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    units = pd.DataFrame([(e, a, n) for e, (a, n) in _SIZES.items()], columns=["environment", "attribute", "posts"])
    sizes = scale.merge(units, on=["environment", "attribute"])
    sizes["required"] = (sizes["min"] + sizes["max"]) / 2 / sizes["posts"]
    cells = results.merge(sizes[["environment", "band", "required"]], on=["environment", "band"])
    cells["completed"] = cells["required"] * cells["lgc"] / 100
    return cells[["environment", "model", "band", "required", "completed"]]


def in_order(values: Iterable[str], order: Iterable[str]) -> list[str]:
    """Those of ``order`` that occur, then the others as they come."""
    present = list(dict.fromkeys(values))
    return [v for v in order if v in present] + [v for v in present if v not in set(order)]


def bands_of(frame: pd.DataFrame) -> list[str]:
    return in_order(frame["band"], bands.BANDS)


def environments_of(frame: pd.DataFrame) -> list[str]:
    return in_order(frame["environment"], ENVIRONMENTS)
