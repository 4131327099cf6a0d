"""Which tasks are handed out: fresh ones, or those of a released set."""

from __future__ import annotations

from skillhorizon import api, taskset
from skillhorizon.core.errors import InputError
from skillhorizon.core.task import FORMAT, TaskFile


def chosen(env: str, band: str, family: str | None, count: int, first_seed: int, set: str | None) -> list[TaskFile]:
    """Fresh tasks from a seed on, or the first of the released set below a data folder; at least one."""
    if count < 1:
        raise InputError(f"{count} tasks are none")
    return released(env, band, family, count, set) if set else fresh(env, band, family, count, first_seed)


def fresh(env: str, band: str, family: str | None, count: int, first_seed: int) -> list[TaskFile]:
    made = (api.generate(env, family=family, band=band, seed=seed) for seed in range(first_seed, first_seed + count))
    return [one.file() for one in made]


def released(env: str, band: str, family: str | None, count: int, data: str) -> list[TaskFile]:
    rows = taskset.rows(data, env, [band], family)[:count]
    if not rows:
        among = f" and family {family}" if family else ""
        raise InputError(f"the set of {env} in {data} has no tasks of band {band}{among}")
    made = [(taskset.unverified(row), row["digest"]) for row in rows]  # built, and compared, where they are used
    return [TaskFile(FORMAT, task.config, task.seed, task.size, task.measures, digest) for task, digest in made]
