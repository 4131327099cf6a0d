"""Which tasks are handed out: fresh ones, or those of a released set."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from skillhorizon import api, envs
from skillhorizon.core.errors import InputError
from skillhorizon.core.task import FORMAT, Measures, TaskFile


def chosen(env: str, band: str, family: str | None, count: int, first_seed: int, set: str | None) -> list[TaskFile]:
    """Fresh tasks from a seed on, or the first of the released set in a folder; at least one."""
    if count < 1:
        raise InputError(f"{count} tasks are none")
    return released(env, band, family, count, set) if set else fresh(env, band, family, count, first_seed)


def fresh(env: str, band: str, family: str | None, count: int, first_seed: int) -> list[TaskFile]:
    made = (api.generate(env, family=family, band=band, seed=seed) for seed in range(first_seed, first_seed + count))
    return [one.file() for one in made]


def released(env: str, band: str, family: str | None, count: int, folder: str) -> list[TaskFile]:
    path = Path(folder) / f"{env}.parquet"
    if not path.is_file():
        raise InputError(f"no task set at {path}")
    rows = [r for r in pq.read_table(path).to_pylist() if r["band"] == band and family in (None, r["family"])]
    environment = envs.load(env)
    files = [
        TaskFile(
            FORMAT,
            config=environment.config(band, row["configuration"]),
            seed=row["seed"],
            size=row["size"],
            digest=row["digest"],
            measures=Measures(row["workload"], row["R"], row["A"]),
        )
        for row in rows[:count]
    ]
    if not files:
        raise InputError(f"{path} has no tasks of band {band}" + (f" and family {family}" if family else ""))
    return files
