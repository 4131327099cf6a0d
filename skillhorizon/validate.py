"""Validation of the released sets: each task is built again, run by the reference and in random legal orders.

What has been seen is kept, one small file a task, under what it depends on (row, cached reference run, code). So an
interrupted validation goes on where it was, and nothing that was seen under other code counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import msgspec
import pandas as pd

from skillhorizon import construct, envs, taskset
from skillhorizon.core import bands, generation, trace
from skillhorizon.core.generation import EVALUATION_SEEDS
from skillhorizon.core.progress import parallel
from skillhorizon.core.serial import digest
from skillhorizon.core.task import Task
from skillhorizon.taskset import Row

BEYOND = ("2M", "4M")
"""Bands above those of the released set."""


class Verdict(msgspec.Struct, frozen=True):
    """What validation saw of one task; without ``faults`` it is valid. ``seconds`` of one process."""

    task: str
    env: str
    band: str
    seconds: float
    faults: list[str]


class Assigned(NamedTuple):
    """A row of the set with the cached row of its reference run, and the name of the file for its verdict."""

    row: Row
    reference: Row
    key: str


def validate(
    data: str | Path,
    work: str | Path,
    environments: Iterable[str] | None = None,
    only: Sequence[str] | None = None,
    processes: int = 1,
    orders: int = 1,
) -> list[Verdict]:
    """The verdicts on all tasks of the sets below ``data``, of some environments and of the bands ``only``, each run
    in so many random legal orders."""
    work = Path(work)
    work.mkdir(parents=True, exist_ok=True)
    assigned = [a for name in environments or envs.names() for a in assignments(data, name, only, orders)]
    open_ones = [a for a in assigned if not (work / a.key).is_file()]
    open_ones.sort(key=lambda a: -a.row["workload"])  # the largest first, so that none is left over in the end
    parallel(partial(_examined, work=work, orders=orders), open_ones, "tasks validated", processes)
    return [msgspec.json.decode((work / a.key).read_bytes(), type=Verdict) for a in assigned]


def assignments(
    data: str | Path, environment: str, only: Sequence[str] | None = None, orders: int = 1
) -> list[Assigned]:
    folder = Path(data) / "traces" / construct.AGENT / environment
    references = {row["task_id"]: row for row in trace.read(folder, "runs").to_dict("records")}
    code = taskset.code_digest(environment, "construct.py", "validate.py")
    found = []
    for row in taskset.rows(data, environment, only):
        reference = {str(name): str(value) for name, value in references.get(row["id"], {}).items()}
        found.append(Assigned(row, reference, f"{digest(row, reference, code, orders)[:40]}.json"))
    return found


def examine(row: Row, reference: Row, orders: int = 1) -> Verdict:
    """Build the task of a row again, run it, and compare both with what is on record."""
    begin = perf_counter()
    task = taskset.unverified(row)
    faults = list(_faults(task, row, reference, orders))
    return Verdict(row["id"], row["env"], row["band"], round(perf_counter() - begin, 2), faults)


def _faults(task: Task, row: Row, reference: Row, orders: int) -> Iterable[str]:
    if task.digest != row["digest"]:
        yield "the task that is built has another digest"
        return
    run = generation.run_policy(task)
    if not run.evaluation.success:
        yield "the reference does not succeed"
    seen = {"workload": run.trace.tokens, "R": run.trace.calls, "A": run.trace.business_calls}
    yield from (f"{name} is {value:,}, on record {row[name]:,}" for name, value in seen.items() if value != row[name])
    if not bands.band(row["band"]).holds(row["workload"]):
        yield f"{row['workload']:,} tokens are not of band {row['band']}"
    for name, value in (("trace_digest", run.trace.digest), ("state_digest", run.gateway.state_digest())):
        if reference.get(name) != value:
            yield f"the {name} of the reference run differs from the cached one"
    try:
        construct.validate(task, orders)
    except RuntimeError as error:
        yield str(error)


def _examined(assigned: Assigned, work: Path, orders: int) -> None:
    path = work / assigned.key
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_bytes(msgspec.json.encode(examine(assigned.row, assigned.reference, orders)))
    os.replace(temporary, path)


# -- beyond the released bands -------------------------------------------------------------------------------------


class Reach(msgspec.Struct, frozen=True):
    """One fresh task above the released bands, validated. Times are of one process; ``per_call`` in microseconds of
    the Gateway, without token counting, and ``growth`` is its ratio to that of a 64K task of the same family."""

    env: str
    band: str
    task: str
    workload: int
    R: int
    A: int
    seconds: float
    per_call: float
    growth: float


def beyond(environment: str, band: str, seed: int = EVALUATION_SEEDS) -> Reach:
    """Make and validate one task; raises ``RuntimeError`` where it is not valid."""
    env = envs.load(environment)
    config = env.configs(band)[0]
    before = next(c for c in env.configs("64K") if c.family == config.family)
    per_call_before = _per_call(*generation.generate(env, before, seed))
    begin = perf_counter()
    task, run = generation.generate(env, config, seed)
    seconds = perf_counter() - begin
    per_call = _per_call(task, run)
    begin = perf_counter()
    construct.validate(task)
    seconds += perf_counter() - begin
    measured = (task.workload, run.trace.calls, run.trace.business_calls)
    return Reach(
        environment,
        band,
        task.id,
        *measured,
        round(seconds, 1),
        round(per_call, 1),
        round(per_call / per_call_before, 2),
    )


def _per_call(task: Task, run: generation.ReferenceRun, rounds: int = 5) -> float:
    """Microseconds per Gateway call over the calls of a reference run, the best of some rounds."""
    calls = [(e.tool, msgspec.json.decode(e.call)["arguments"]) for e in run.trace.raw]
    best = float("inf")
    for _ in range(rounds):
        gateway = task.open_unlimited()
        begin = perf_counter()
        for name, arguments in calls:
            gateway.call(name, arguments)
        best = min(best, perf_counter() - begin)
    return 1e6 * best / len(calls)


# -- the summary ---------------------------------------------------------------------------------------------------


def summary(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """One row per environment and band: tasks, how many are valid, seconds of all together."""
    frame = pd.DataFrame(
        [{"env": v.env, "band": v.band, "valid": not v.faults, "seconds": v.seconds} for v in verdicts]
    )
    grouped = frame.groupby(["env", "band"], sort=False)
    return grouped.agg(tasks=("valid", "size"), valid=("valid", "sum"), seconds=("seconds", "sum")).reset_index()
