"""Frames that the tables and figures are made of: one layout for the paper's numbers and for this project's own.

A frame is named after its table or figure (``table09``, ``figure6``). Its columns are those of the CSV in
``data/published``; measured frames carry agents in the column ``model`` and, where an interval is given, ``*_low`` and
``*_high`` beside a value. Frames without a CSV in ``data/published``:

``progress``   environment, model, band, required, completed: mean goals of an execution (Figures 3a and 7)
``figure4b``   band, q_pct, task_success_pct: as ``table13``, at more thresholds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from skillhorizon.core import bands
from skillhorizon.core.errors import InputError

Frames = Mapping[str, pd.DataFrame]

PUBLISHED, MEASURED = "published", "measured"
SIMULATED = "simulated agents, not language models"
SOURCES = {PUBLISHED: "published: language models, numbers of the paper", MEASURED: f"measured here: {SIMULATED}"}

ENVIRONMENTS = ("SocialOps", "DocOps", "LogisticsOps", "FieldOps", "FinanceOps", "ResearchOps", "FactoryOps")
"""In the order of the paper's figures."""

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


def published(folder: str | Path) -> dict[str, pd.DataFrame]:
    """All frames that the paper's numbers give, from the folder of its transcribed tables.

    ``progress`` is an approximation: required is the middle of Table 6's range (three posts to a brief), completed is
    that times Table 9's LGC.
    """
    folder = Path(folder)
    found = {path.stem.split("_")[0]: read(path) for path in sorted(folder.glob("*.csv")) if _is_item(path.stem)}
    if missing := [f"table{n:02}" for n in range(1, 22) if f"table{n:02}" not in found]:
        raise InputError(f"no published {missing[0]} in {folder}")
    found["figure4b"] = found["table13"]
    found["progress"] = _approximate_progress(found["table06"], found["table09"])
    return found


def read(path: Path) -> pd.DataFrame:
    """A CSV as a frame; an empty cell is missing, the word None is a word."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""]).convert_dtypes()


def _is_item(name: str) -> bool:
    return name.startswith(("table", "figure"))


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
