"""The task set of one environment: planned, calibrated, validated, and kept with its reference traces.

``<out>/tasks/<env>.parquet``            one row per task, in the order of the plan
``<out>/tasks/<env>.json``               what Tables 3 and 4 of the paper say of the environment
``<out>/traces/reference/<env>/…``       runs, events and compactions of the reference
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa

from skillhorizon import envs
from skillhorizon.core import bands, ids, trace
from skillhorizon.core.environment import Environment
from skillhorizon.core.generation import Planned, ReferenceRun, generate, plan, run_policy
from skillhorizon.core.progress import parallel
from skillhorizon.core.task import Task
from skillhorizon.params import Params, Settings

CALLS = "Business calls"
"""The work count that Table 6 has for every environment: A."""


AGENT = "reference"


class Made(NamedTuple):
    """One finished task without its world: its row, its work counts (Table 6), its reference run and the events."""

    task: dict[str, Any]
    work: dict[str, int]
    run: dict[str, Any]
    events: pa.Table


def construct(name: str, params: Params, profile: str | None, out: str | Path) -> pd.DataFrame:
    """Make the set of one environment and write it below ``out``; returns its tasks.

    The same parameters give the same bytes. Nothing is written unless every task is made and valid.
    """
    environment = envs.load(name)
    settings = params.settings(name, profile)
    made = make(environment, settings)
    out = Path(out)
    tasks = pa.Table.from_pylist([m.task | m.work for m in made])
    trace.write(
        out / "traces" / AGENT / name,
        {"runs": [m.run for m in made], "events": pa.concat_tables(m.events for m in made), "compactions": []},
    )
    trace.write_parquet(tasks, out / "tasks" / f"{name}.parquet")
    facts = {**describe(environment), "work": list(made[0].work), "set": _set(settings)}
    _write_json(facts, out / "tasks" / f"{name}.json")
    return tasks.to_pandas()


def make(environment: Environment, settings: Settings) -> list[Made]:
    """All tasks of a set over processes, in the order of the plan; the largest are begun first."""
    planned = [p for band in settings.bands for p in plan(environment, band, settings.tasks, settings.first_seed)]
    order = sorted(range(len(planned)), key=lambda i: -bands.band(planned[i].band).upper)
    work = partial(make_one, budget_factor=settings.budget_factor)
    label = f"{environment.name} tasks"
    found = dict(zip(order, parallel(work, [planned[i] for i in order], label, settings.processes), strict=True))
    return [found[i] for i in range(len(planned))]


def make_one(planned: Planned, budget_factor: float) -> Made:
    """Generate, validate and measure one task; raises ``RuntimeError`` where the environment is at fault."""
    environment = envs.load(planned.env)
    try:
        task, run = generate(environment, environment.config(planned.band, planned.configuration), planned.seed)
        validate(task)
    except Exception as error:
        # One type that surely travels between processes, and the task that it is about.
        raise RuntimeError(f"{', '.join(map(str, planned))}: {type(error).__name__}: {error}") from error
    run.trace.run_id = f"{task.id}-{AGENT}-0"
    row = _task_row(task, budget_factor)
    work = {**task.blueprint.scale, CALLS: run.trace.business_calls}
    return Made(row, work, _run_row(task, run, row["B"]), _events(run))


def validate(task: Task, orders: int = 1) -> None:
    """Random legal orders reach the goal and doing nothing reaches none of it, or ``RuntimeError``.

    That the reference succeeds has been seen when the task was generated.
    """
    rng = ids.stream("random legal order", task.id)
    for number in range(1, orders + 1):
        shuffled = run_policy(task, rng).evaluation
        if not shuffled.success:
            failed = [g.goal for g in shuffled.local if not g.met][:3] + shuffled.delivery_failed
            raise RuntimeError(f"random legal order {number} does not succeed on {task.id}: {failed}")
    idle = task.environment.scoring.evaluate(task.world(), task.blueprint.goal)
    if idle.goals_met or idle.success:
        raise RuntimeError(f"doing nothing meets {idle.goals_met} of {len(idle.local)} goals of {task.id}")


def describe(environment: Environment) -> dict[str, Any]:
    """What Tables 3 and 4 say of an environment."""
    tables = {name: len(rows) for name, rows in environment.seed_tables().items()}
    facts = environment.facts
    return {
        "env": environment.name,
        "title": environment.title,
        "families": environment.families,
        "skills": [s["name"] for s in environment.skills.catalog()],
        "seed_records": tables or "generated",
        "resources": {name: tables[table] if table else None for name, table in facts.resources.items()},
        "fixed_factors": facts.fixed_factors,
        "knob": facts.knob,
    }


def _set(settings: Settings) -> dict[str, Any]:
    """The parameters that made a set."""
    return {name: value for name, value in msgspec.structs.asdict(settings).items() if name != "processes"}


def _events(run: ReferenceRun) -> pa.Table:
    """The events without digests of single observations: these take most room, and the run's digest proves them all."""
    events = run.trace.table()
    at = events.column_names.index("observation_digest")
    return events.set_column(at, events.schema.field(at), pa.nulls(len(events), pa.string()))


def _task_row(task: Task, budget_factor: float) -> dict[str, Any]:
    config, measures = task.config, task.measures
    assert measures is not None
    return {
        "id": task.id,
        "env": config.env,
        "family": config.family,
        "variant": config.variant,
        "pattern": config.pattern,
        "configuration": config.id,
        "band": config.band,
        "seed": task.seed,
        "size": task.size,
        "workload": measures.workload,
        "R": measures.R,
        "A": measures.A,
        "B": task.budget_at(budget_factor),
        "digest": task.digest,
        **task.graph.measures,
    }


def _run_row(task: Task, run: ReferenceRun, budget: int) -> dict[str, Any]:
    """The reference's row in ``runs``; chance plays no part in it (seed 0)."""
    return trace.run_row(
        task,
        run.trace,
        run.evaluation,
        agent=AGENT,
        seed=0,
        end="submitted",
        budget=budget,
        state_digest=run.gateway.state_digest(),
    )


def _write_json(value: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    os.replace(temporary, path)
