"""The same simulated executor in one context, and in the three roles of MEA, on the same tasks with the same allowance.

``<out>/runs.parquet``     one row a run, columns ``RUN``
``<out>/rounds.parquet``   one row a round of each MEA run, columns ``ROUND``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from skillhorizon import agents, envs
from skillhorizon.agents.mea.loop import ROLES
from skillhorizon.agents.mea.state import Round, Spent, Terminal
from skillhorizon.core import bands, trace
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.progress import parallel
from skillhorizon.core.task import Measures, Task
from skillhorizon.params import Params

_TEXT, _COUNT, _SHARE = pa.string(), pa.int64(), pa.float64()
_SPENT = [f"{role}_{what}" for role in ROLES for what in ("requests", "tokens_in", "tokens_out", "attempts")]

RUN = pa.schema(
    [
        *((name, _TEXT) for name in ("task_id", "env", "band", "condition", "agent", "agent_profile")),
        ("seed", _COUNT),
        *((name, _COUNT) for name in ("R", "A", "B", "attempts")),
        ("end", _TEXT),
        ("lgc", _SHARE),
        ("success", pa.bool_()),
        ("rounds", _COUNT),
        *((name, _COUNT) for name in _SPENT),
        ("slip", _SHARE),
        ("recall", _SHARE),
    ]
)
ROUND = pa.schema(
    [
        ("task_id", _TEXT),
        ("agent", _TEXT),
        ("seed", _COUNT),
        *((name, _COUNT) for name in ("number", "first", "executed", "audited")),
        *((name, _TEXT) for name in ("route", "completion", "integrity")),
        *((name, _COUNT) for name in ("verified", "gaps", "suspects", "completed", "known", "failures")),
        *((name, _COUNT) for name in _SPENT),
    ]
)


CONDITIONS = {
    "single context": "simulated:{}",
    "MEA": "mea:{}",
    "MEA, no auditor": "mea:{}/no-auditor",
    "MEA, no ledger": "mea:{}/no-ledger",
    "MEA, no fresh context": "mea:{}/no-fresh-context",
}
"""Condition -> the agent's name, once a profile is put in."""
FAITHFUL = {"MEA, perfect executor": "mea:perfect"}
GRID = ("single context", "MEA")


class Cell(NamedTuple):
    """One run to be made. ``rates`` are those of the profile that are set otherwise: slip, recall."""

    task: Mapping[str, Any]
    condition: str
    agent: str
    profile: str
    seed: int = 0
    rates: Mapping[str, float] = {}


def run(
    params: Params, profile: str | None, tasks: str | Path, out: str | Path
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The comparison that the parameters ask for, on the sets in the folder ``tasks``.

    Returns the runs, their rounds, and the runs of the grid of failure rates, and keeps all three below ``out``.
    """
    asked = params.mea
    settings = [params.settings(env, profile) for env in params.environments]
    names = settings[0].bands
    processes = settings[0].processes
    chosen = tasks_of(tasks, params.environments, names, asked.tasks)
    cells = [Cell(task, condition, agent, "perfect") for task in chosen for condition, agent in FAITHFUL.items()]
    cells += [
        Cell(task, condition, agent.format(name), name)
        for task in chosen
        for name in asked.agents
        for condition, agent in CONDITIONS.items()
    ]
    band = asked.grid_band if asked.grid_band in names else names[-1]
    small = tasks_of(tasks, params.environments, [band], asked.grid_tasks)
    grid = [
        Cell(task, condition, CONDITIONS[condition].format(f"{name},slip={slip},recall={recall}"), name, 0, rates)
        for task in small
        for name in asked.agents[:1]
        for slip in asked.slips
        for recall in asked.recalls
        for rates in [{"slip": slip, "recall": recall}]
        for condition in GRID
    ]
    made, rounds = compare([*cells, *grid], out, processes)
    of_grid = made["slip"].notna()
    return made[~of_grid].reset_index(drop=True), rounds, made[of_grid].reset_index(drop=True)


def tasks_of(folder: str | Path, environments: Iterable[str], names: Sequence[str], each: int) -> list[dict[str, Any]]:
    """The first tasks of each band of the sets in a folder, as rows; raises ``InputError`` where a set is missing."""
    columns = ["id", "env", "configuration", "band", "seed", "size", "workload", "R", "A", "digest"]
    found: list[dict[str, Any]] = []
    for env in environments:
        path = Path(folder) / f"{env}.parquet"
        if not path.is_file():
            raise InputError(f"no task set at {path}; the stage `construct` makes it")
        rows = pq.read_table(path, columns=columns).to_pylist()
        for band in names:
            found += [row for row in rows if row["band"] == band][:each]
    return found


def rebuilt(row: Mapping[str, Any]) -> Task:
    """A task of a set; raises ``InputError`` where what is built differs from what was made."""
    environment = envs.load(row["env"])
    measures = Measures(row["workload"], row["R"], row["A"])
    config = environment.config(row["band"], row["configuration"])
    task = Task(environment, config, row["seed"], row["size"], measures)
    if task.digest != row["digest"]:
        raise InputError(f"task {row['id']} of the set is another one here: another version made it")
    return task


def compare(cells: Sequence[Cell], out: str | Path, processes: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make all runs, the longest first, and keep what came of them; returns runs and rounds."""
    order = sorted(range(len(cells)), key=lambda i: -bands.band(cells[i].task["band"]).upper)
    made = dict(zip(order, parallel(carry_out, [cells[i] for i in order], "runs", processes), strict=True))
    runs = [made[i][0] for i in range(len(cells))]
    rounds = [row for i in range(len(cells)) for row in made[i][1]]
    tables = {
        "runs": pa.Table.from_pylist(runs, schema=RUN),
        "rounds": pa.Table.from_pylist(rounds, schema=ROUND),
    }
    for name, table in tables.items():
        trace.write_parquet(table, Path(out) / f"{name}.parquet")
    return tables["runs"].to_pandas(), tables["rounds"].to_pandas()


def carry_out(cell: Cell) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """One run and its rounds."""
    task = rebuilt(cell.task)
    gateway = task.open()
    outcome = agents.agent(cell.agent).act(task, gateway, cell.seed)
    evaluation = task.environment.scoring.evaluate(gateway.world, task.blueprint.goal)
    key = {"task_id": task.id, "agent": cell.agent, "seed": cell.seed}
    rounds = [msgspec.json.decode(n.body, type=Round) for n in gateway.notes if n.kind == "round"]
    ends = [msgspec.json.decode(n.body, type=Terminal) for n in gateway.notes if n.kind == "terminal"]
    spent = ends[0].spent if ends else {"executor": one_context(gateway)}
    measures = task.measures
    assert measures is not None
    row = {
        **key,
        "env": task.config.env,
        "band": task.config.band,
        "condition": cell.condition,
        "agent_profile": cell.profile,
        "R": measures.R,
        "A": measures.A,
        "B": gateway.budget,
        "attempts": gateway.used,
        "end": outcome.end,
        "lgc": evaluation.lgc,
        "success": evaluation.success,
        "rounds": len(rounds),
        **_columns(spent),
        "slip": cell.rates.get("slip"),
        "recall": cell.rates.get("recall"),
    }
    return row, [{**key, **_round(r)} for r in rounds]


def one_context(gateway: Gateway) -> Spent:
    """What a run in one context used up: each decision is a request that reads all of its context."""
    from skillhorizon.core import tokens

    contexts = {e.decision: e.context_tokens or 0 for e in gateway.events}
    out = sum(tokens.count_each([e.call for e in gateway.events]))
    return Spent(len(contexts), sum(contexts.values()), out, gateway.used)


def _columns(spent: Mapping[str, Spent]) -> dict[str, int]:
    return {
        f"{role}_{name}": value
        for role in ROLES
        for name, value in msgspec.structs.asdict(spent.get(role, Spent())).items()
    }


def _round(r: Round) -> dict[str, Any]:
    audit = r.audit
    return {
        "number": r.number,
        "first": r.first,
        "executed": r.executed,
        "audited": r.audited,
        "route": r.route,
        "completion": audit.completion if audit else None,
        "integrity": audit.integrity if audit else None,
        "verified": len(audit.verified) if audit else 0,
        "gaps": len(audit.gaps) if audit else 0,
        "suspects": len(audit.suspects) if audit else 0,
        "completed": r.completed,
        "known": r.known,
        "failures": len(r.failures),
        **_columns(r.spent),
    }
