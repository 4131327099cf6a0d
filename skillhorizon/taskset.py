"""The released task sets: rows of ``data/tasks/<env>.parquet``, each a recipe from which its task is built again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from skillhorizon import envs
from skillhorizon.core.errors import InputError
from skillhorizon.core.task import Measures, Task

Row = dict[str, Any]
_PACKAGE = Path(__file__).parent


def rows(
    data: str | Path, environment: str, bands: Iterable[str] | None = None, family: str | None = None
) -> list[Row]:
    """The rows of an environment's set in its order, all or those of some bands and of one family."""
    path = Path(data) / "tasks" / f"{environment}.parquet"
    if not path.is_file():
        raise InputError(f"no task set at {path}; construct it first")
    wanted = None if bands is None else set(bands)
    return [
        row
        for row in pq.read_table(path).to_pylist()
        if (wanted is None or row["band"] in wanted) and family in (None, row["family"])
    ]


def unverified(row: Row) -> Task:
    """The task of a row, not yet built: whether it has the row's digest is for the caller to see."""
    environment = envs.load(row["env"])
    config = environment.config(row["band"], row["configuration"])
    return Task(environment, config, row["seed"], row["size"], Measures(row["workload"], row["R"], row["A"]))


def task_of(row: Row) -> Task:
    """The task of a row, built and compared with its digest; ``InputError`` where it differs."""
    task = unverified(row)
    if task.digest != row["digest"]:
        raise InputError(f"{row['id']} differs from the task set, which another version made; construct it again")
    return task


@cache
def code_digest(environment: str, *sources: str) -> str:
    """SHA-256 over the sources that a run depends on: core, the environment, and ``sources`` of the package."""
    places = [*(_PACKAGE / name for name in ("core", *sources)), envs.folder(environment)]
    files = [f for place in places for f in ([place] if place.is_file() else sorted(place.rglob("*")))]
    state = hashlib.sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            state.update(file.relative_to(_PACKAGE).as_posix().encode() + b"\0" + file.read_bytes())
    return state.hexdigest()
