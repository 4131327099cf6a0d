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
from msgspec.structs import replace

from skillhorizon import taskset
from skillhorizon.agents import mea
from skillhorizon.agents.harness import RULES, Rules
from skillhorizon.agents.mea.flips import NO_VERDICT, audited, flip_rate
from skillhorizon.agents.mea.loop import ROLES
from skillhorizon.agents.mea.state import Round, Spent, Terminal
from skillhorizon.agents.protocol import Agent, Outcome
from skillhorizon.agents.simulated import PROFILES, Profile, Simulated
from skillhorizon.core import bands, trace
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.progress import parallel
from skillhorizon.params import Params

_TEXT, _COUNT, _SHARE = pa.string(), pa.int64(), pa.float64()
_SPENT = [f"{role}_{what}" for role in ROLES for what in ("requests", "tokens_in", "tokens_out", "attempts")]

RUN = pa.schema(
    [
        *((name, _TEXT) for name in ("task_id", "env", "band", "condition", "agent_profile")),
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
        *((name, _TEXT) for name in ("task_id", "condition", "agent_profile")),
        ("seed", _COUNT),
        *((name, _COUNT) for name in ("number", "first", "executed", "audited")),
        *((name, _TEXT) for name in ("route", "completion", "integrity")),
        *((name, _COUNT) for name in ("verified", "gaps", "suspects", "completed", "known", "failures")),
        *((name, _COUNT) for name in _SPENT),
        ("slip", _SHARE),
        ("recall", _SHARE),
    ]
)


SINGLE, KEPT, PERFECT = "single context", "MEA", "MEA, perfect executor"
NO_AUDITOR, NO_LEDGER, NO_FRESH = "MEA, no auditor", "MEA, no ledger", "MEA, no fresh context"
CONDITIONS = (SINGLE, KEPT, NO_AUDITOR, NO_LEDGER, NO_FRESH)


class Cell(NamedTuple):
    """One run to be made. ``weaknesses`` are the profile's where it is not one of those that come with the package;
    ``rates`` are those among them that are set otherwise, by name."""

    task: taskset.Row
    condition: str
    profile: str
    seed: int = 0
    rates: Mapping[str, float] = {}
    weaknesses: Profile | None = None
    rules: Rules = RULES

    @property
    def agent(self) -> Agent:
        if self.condition == PERFECT:
            return mea.simulated(None)
        profile = replace(self.weaknesses or PROFILES[self.profile], **self.rates)
        if self.condition == SINGLE:
            return Simulated(self.profile, profile, self.rules)
        return mea.simulated(
            profile,
            self.profile,
            auditor=self.condition != NO_AUDITOR,
            ledger=self.condition != NO_LEDGER,
            fresh=self.condition != NO_FRESH,
        )


def run(
    params: Params, profile: str | None, data: str | Path, out: str | Path
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The comparison that the parameters ask for, on the sets in a folder of data.

    Returns the runs, their rounds, and the runs of the grid of failure rates, and keeps all of it below ``out``.
    """
    asked, known = params.mea, params.agents.profiles
    rules = params.agents.rules
    settings = params.settings(params.environments[0], profile)
    chosen = tasks_of(data, params.environments, settings.bands, asked.tasks)
    cells = [Cell(task, PERFECT, "perfect") for task in chosen]
    cells += [
        Cell(task, condition, name, 0, {}, known[name], rules)
        for task in chosen
        for name in asked.agents
        for condition in (CONDITIONS if name == asked.agents[0] else (SINGLE, KEPT))
    ]
    band = asked.grid_band if asked.grid_band in settings.bands else settings.bands[-1]
    grid = [
        Cell(task, condition, asked.agents[0], 0, {"slip": slip, "recall": recall}, known[asked.agents[0]], rules)
        for task in tasks_of(data, params.environments, [band], asked.grid_tasks)
        for slip in asked.slips
        for recall in asked.recalls
        for condition in (SINGLE, KEPT)
    ]
    made, rounds = compare([*cells, *grid], out, settings.processes)
    of_grid = made["slip"].notna()
    kept = rounds[rounds["slip"].isna()].reset_index(drop=True)
    return made[~of_grid].reset_index(drop=True), kept, made[of_grid].reset_index(drop=True)


def flips(params: Params, profile: str | None, data: str | Path, times: int = 5) -> pd.DataFrame:
    """How often auditors contradict themselves: what the first executor left in one context, in the smallest band, is
    audited so many times by each kind of auditor. One row a state, with the rate (``flips.flip_rate``)."""
    asked = params.mea
    name = asked.agents[0]
    band = params.settings(params.environments[0], profile).bands[0]
    rows = []
    for row in tasks_of(data, params.environments, [band], asked.tasks):
        task = taskset.task_of(row)
        for auditor in asked.auditors:
            gateway = task.open_unlimited()
            Simulated(name, params.agents.profiles[name], params.agents.rules).act(task, gateway, 0)
            verdicts = audited(mea.auditors(auditor, task), task, gateway, times)
            none = sum(v is NO_VERDICT for v in verdicts)
            rows.append(
                {
                    "auditor": auditor,
                    "env": task.config.env,
                    "task_id": task.id,
                    "audits": times,
                    "without_verdict": none,
                    "flip_rate": flip_rate(verdicts),
                }
            )
    return pd.DataFrame(rows)


def tasks_of(data: str | Path, environments: Iterable[str], names: Sequence[str], each: int) -> list[taskset.Row]:
    """The first tasks of each band of the sets in a folder of data; raises ``InputError`` where a set is missing."""
    return [row for env in environments for band in names for row in taskset.rows(data, env, [band])[:each]]


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
    task = taskset.task_of(cell.task)
    gateway = task.open()
    outcome = cell.agent.act(task, gateway, cell.seed)
    evaluation = task.environment.scoring.evaluate(gateway.world, task.blueprint.goal)
    key = {"task_id": task.id, "condition": cell.condition, "agent_profile": cell.profile, "seed": cell.seed}
    rates = {"slip": cell.rates.get("slip"), "recall": cell.rates.get("recall")}
    rounds = [msgspec.json.decode(n.body, type=Round) for n in gateway.notes if n.kind == "round"]
    ends = [msgspec.json.decode(n.body, type=Terminal) for n in gateway.notes if n.kind == "terminal"]
    spent = ends[0].spent if ends else {"executor": one_context(outcome, gateway)}
    measures = task.measures
    assert measures is not None
    row = {
        **key,
        "env": task.config.env,
        "band": task.config.band,
        "R": measures.R,
        "A": measures.A,
        "B": gateway.budget,
        "attempts": gateway.used,
        "end": outcome.end,
        "lgc": evaluation.lgc,
        "success": evaluation.success,
        "rounds": len(rounds),
        **_columns(spent),
        **rates,
    }
    return row, [{**key, **_round(r), **rates} for r in rounds]


def one_context(outcome: Outcome, gateway: Gateway) -> Spent:
    """What a run in one context used up."""
    requests, read, written = outcome.decisions, outcome.request_tokens, outcome.response_tokens
    return Spent(requests or 0, read or 0, written or 0, gateway.used)


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
