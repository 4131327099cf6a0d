"""The two sources of every table: ``Published``, the paper's own numbers, and ``Measured``, this project's files.

Both answer the same questions with frames of the same columns, so that a table is one function of either.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pandas as pd
import pyarrow.parquet as pq

from skillhorizon.core import bands
from skillhorizon.core.errors import InputError

RESOURCES = ("environment", "resource", "count", "seed_records", "seed_records_kind", "skills")
CALIBRATION = ("environment", "fixed_factors", "scale_adjustment")
BANDS = ("band", "lower_exclusive", "upper_inclusive")
WORK = ("environment", "attribute", "band", "value")


class Source(Protocol):
    """Environments go by the names that the paper prints (FinanceOps) in all frames."""

    def resources(self) -> pd.DataFrame:
        """One row per named resource, columns ``RESOURCES``."""

    def calibration(self) -> pd.DataFrame:
        """One row per environment, columns ``CALIBRATION``."""

    def bands(self) -> pd.DataFrame:
        """One row per band, columns ``BANDS``, in tokens of reference workload."""

    def work(self) -> pd.DataFrame:
        """Work counts, columns ``WORK``: each task's, or the two ends of a published range."""


class Published:
    """The paper's tables as transcribed in ``data/published``."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def resources(self) -> pd.DataFrame:
        return self._read("table03_environment_resources")

    def calibration(self) -> pd.DataFrame:
        return self._read("table04_calibration")

    def bands(self) -> pd.DataFrame:
        return self._read("table05_bands")

    def work(self) -> pd.DataFrame:
        ranges = self._read("table06_business_scale")
        ends = ranges.melt(["environment", "attribute", "band"], ["min", "max"])
        return ends[list(WORK)]

    def _read(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.csv"
        if not path.is_file():
            raise InputError(f"no published table at {path}")
        return pd.read_csv(path).convert_dtypes()


class Measured:
    """The sets that ``construct`` made, ``<env>.json`` and ``<env>.parquet`` in a folder: all of them, or some."""

    def __init__(self, folder: str | Path, *environments: str) -> None:
        self.folder = Path(folder)
        self._only = environments

    def resources(self) -> pd.DataFrame:
        rows = []
        for facts in self.facts.values():
            seeded = facts["seed_records"] != "generated"
            shared = {
                "environment": facts["title"],
                "seed_records": sum(facts["seed_records"].values()) if seeded else None,
                "seed_records_kind": "seeded" if seeded else "generated",
                "skills": len(facts["skills"]),
            }
            rows += [{**shared, "resource": name, "count": count} for name, count in facts["resources"].items()]
        return pd.DataFrame(rows, columns=list(RESOURCES))

    def calibration(self) -> pd.DataFrame:
        rows = [(f["title"], "; ".join(f["fixed_factors"]), f["knob"]) for f in self.facts.values()]
        return pd.DataFrame(rows, columns=list(CALIBRATION))

    def bands(self) -> pd.DataFrame:
        used = {name for tasks in self.tasks.values() for name in tasks["band"]}
        return pd.DataFrame([band for band in bands.BANDS.values() if band.name in used], columns=list(BANDS))

    def work(self) -> pd.DataFrame:
        frames = [
            self.tasks[env].melt("band", facts["work"], "attribute").assign(environment=facts["title"])
            for env, facts in self.facts.items()
        ]
        return pd.concat(frames, ignore_index=True)[list(WORK)]

    def workloads(self) -> pd.DataFrame:
        """Reference workload of every task: columns environment, band, workload (tokens)."""
        frames = [
            tasks[["band", "workload"]].assign(environment=self.facts[env]["title"])
            for env, tasks in self.tasks.items()
        ]
        return pd.concat(frames, ignore_index=True)[["environment", "band", "workload"]]

    @cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """By short name of the environment, sorted."""
        paths = {path.stem: path for path in sorted(self.folder.glob("*.json"))}
        chosen = self._only or tuple(paths)
        if missing := sorted(set(chosen) - set(paths)) or ([] if chosen else ["any environment"]):
            raise InputError(f"no task set of {missing[0]} in {self.folder}; the stage `construct` makes it")
        return {name: msgspec.json.decode(paths[name].read_bytes()) for name in chosen}

    @cached_property
    def tasks(self) -> dict[str, pd.DataFrame]:
        """The tasks of each environment."""
        return {env: pq.read_table(self.folder / f"{env}.parquet").to_pandas() for env in self.facts}
