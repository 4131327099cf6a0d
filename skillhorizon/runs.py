"""Agents on the task sets: every task of an environment, scored, with the traces that the analysis reads.

``<data>/traces/<agent>/<env>/…``   runs, events and all other tables of ``core.trace``, in the order of the set

A finished run is kept in a work folder under what determines it (agent, task, code), so an interrupted evaluation goes
on where it was, and one that is repeated runs nothing again.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa

from skillhorizon import agents, compute, taskset
from skillhorizon.agents.models import ModelAgent
from skillhorizon.agents.protocol import Agent
from skillhorizon.agents.scripted import SCRIPTED
from skillhorizon.agents.simulated import Simulated
from skillhorizon.core import links, trace
from skillhorizon.core.evaluation import Evaluation
from skillhorizon.core.gateway import Gateway, Observation
from skillhorizon.core.journal import Journal
from skillhorizon.core.serial import digest
from skillhorizon.core.task import Task
from skillhorizon.params import Params, load

SEED = 0
_HARNESS = ("actions", "compaction", "harness", "protocol", "scripted", "simulated")
_FAMILIES = {"mea": "agents/mea", "model": "agents/models.py"}
_BESIDE = ("compactions", "prefixes", "sightings", "matches")


class Assignment(NamedTuple):
    """One run to be made: an agent on a task of a set, with its allowance. ``key`` is its file in the work folder."""

    agent: str
    worker: Agent
    row: taskset.Row
    prefixes: tuple[float, ...]
    key: str

    @property
    def budget(self) -> int:
        budget: int = self.row["B"]
        return budget


class Finished(msgspec.Struct):
    """One finished run: its row, its events as an Arrow stream, and its rows of all other tables."""

    run: dict[str, Any]
    events: bytes
    rows: dict[str, list[dict[str, Any]]]


def folder_name(agent: str) -> str:
    """The agent's name as that of a folder."""
    return agent.replace(":", "-").replace("/", "-")


def evaluate(
    agent: str, environment: str, params: Params, data: str | Path, work: str | Path, out: str | Path | None = None
) -> pd.DataFrame:
    """Let an agent work on the whole set of an environment in ``data``; returns the table of its runs.

    Finished runs are kept in ``work``; the traces are written below ``out``, by default below ``data``.
    """
    data, work = Path(data), Path(work) / folder_name(agent) / environment
    assigned = assignments(agent, environment, params, data)
    work.mkdir(parents=True, exist_ok=True)
    open_ones = [a for a in assigned if not (work / a.key).is_file()]
    # the longest are begun first, so that none is left over in the end
    open_ones.sort(key=lambda a: -a.budget)
    label = f"{agent} on {environment}"
    for index, finished in compute.completed(
        partial(carry_out, work=work), open_ones, label, params.compute, params.cores()
    ):
        _keep(finished, work / open_ones[index].key)
    done = [msgspec.msgpack.decode((work / a.key).read_bytes(), type=Finished) for a in assigned]
    folder = Path(out or data) / "traces" / folder_name(agent) / environment
    runs = [f.run for f in done]
    trace.write(
        folder,
        {
            "runs": runs,
            "events": pa.concat_tables(pa.ipc.open_stream(f.events).read_all() for f in done),
            **{name: [row for f in done for row in f.rows[name]] for name in _BESIDE},
        },
    )
    return trace.read(folder, "runs")


def assignments(agent: str, environment: str, params: Params, data: Path) -> list[Assignment]:
    """The runs of an agent on the set of an environment, in the set's order."""
    rows = taskset.rows(data, environment)
    worker = the_agent(agent, params)
    described = (worker.profile, worker.rules) if isinstance(worker, Simulated) else params.agents.rules
    code = taskset.code_digest(environment, *sources(agent))
    prefixes = params.evaluate.prefixes
    return [
        Assignment(
            agent, worker, row, prefixes, digest(agent, described, SEED, row["digest"], row["B"], prefixes, code)[:40]
        )
        for row in rows
    ]


def sources(agent: str) -> list[str]:
    """The sources of the package, beside core and environment, that a run of this agent depends on."""
    family = agent.partition(":")[0]
    own = [_FAMILIES[family]] if family in _FAMILIES else []
    return ["runs.py", *(f"agents/{name}.py" for name in _HARNESS), *own]


def the_agent(name: str, params: Params) -> Agent:
    """The agent of this name under the rules of the parameters, which also say what a simulated one is like."""
    if name in params.agents.profiles:
        return Simulated(name, params.agents.profiles[name], params.agents.rules)
    worker = agents.agent(name)
    if isinstance(worker, Simulated):
        return Simulated(worker.name, worker.profile, params.agents.rules)
    if isinstance(worker, ModelAgent):
        return ModelAgent(worker.name, worker.requests, params.agents.rules)
    return worker


def described(names: Iterable[str], params: str | Path) -> dict[str, Agent | None]:
    """The agents of these names as a file of parameters describes them; None where there is no such agent now."""
    known = load(params)
    listed = {*agents.AGENTS, *known.agents.profiles}
    return {name: the_agent(name, known) if name in listed else None for name in names}


def carry_out(assigned: Assignment, work: Path | None = None) -> Finished:
    """Make one run. That of a model, which costs, is journaled in ``work`` and goes on where it was interrupted."""
    task = taskset.task_of(assigned.row)
    journal = None
    costs_nothing = isinstance(assigned.worker, Simulated) or assigned.agent in SCRIPTED
    if work is not None and not costs_nothing:
        path = work / f"{assigned.key}.sqlite"
        journal = Journal.load(path) if path.is_file() else Journal.create(path, {"key": assigned.key})
    gateway = Watched(task, assigned, journal)
    with _no_collection():
        outcome = assigned.worker.act(task, gateway, SEED)
    evaluation = gateway.score()
    told = trace.Trace(gateway.events, f"{task.id}-{assigned.agent}-{SEED}", gateway.world.artifacts)
    run = trace.run_row(
        task,
        told,
        evaluation,
        agent=assigned.agent,
        seed=SEED,
        end=outcome.end,
        budget=assigned.budget,
        state_digest=gateway.state_digest(),
        decisions=outcome.decisions,
        compactions=sum(c.adopted for c in outcome.compactions),
        request_tokens=outcome.request_tokens,
        response_tokens=outcome.response_tokens,
        cost=outcome.cost,
    )
    beside = {
        "compactions": map(msgspec.to_builtins, outcome.compactions),
        "prefixes": gateway.prefixes(evaluation),
        "sightings": links.sightings(told.raw, gateway.world.artifacts),
        "matches": links.matches(told.raw),
    }
    rows = {name: [{"run_id": told.run_id, **row} for row in found] for name, found in beside.items()}
    if journal is not None:
        journal.finish(msgspec.to_builtins(outcome))
        journal.close()
    return Finished(run, _stream(told.table(whole=False)), rows)


class Watched(Gateway):
    """A gateway that scores the world as the run passes each prefix of its allowance. The agent sees none of it."""

    def __init__(self, task: Task, assigned: Assignment, journal: Journal | None = None) -> None:
        super().__init__(task.world(), task.environment.tools, assigned.budget, journal)
        self._task = task
        self._cutoffs = {factor: task.budget_at(factor) for factor in assigned.prefixes}
        self._reached: dict[int, Evaluation] = {}

    def call(self, *arguments: Any, **options: Any) -> Observation:
        answer = super().call(*arguments, **options)
        if self.used in self._cutoffs.values() and self.used not in self._reached:
            self._reached[self.used] = self.score()
        return answer

    def score(self) -> Evaluation:
        return self._task.environment.scoring.evaluate(self.world, self._task.blueprint.goal)

    def prefixes(self, final: Evaluation) -> Iterator[dict[str, Any]]:
        """A row for each prefix; a run that ended before it had reached what it reached in the end."""
        for factor, attempts in self._cutoffs.items():
            reached = self._reached.get(attempts, final)
            yield {
                "factor": factor,
                "attempts": min(attempts, self.used),
                "goals_met": reached.goals_met,
                "lgc": reached.lgc,
                "success": reached.success,
            }


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """LGC and TS in percent by band, with how the runs ended and what they used of their allowance."""
    grouped = runs.assign(used=runs["attempts"] / runs["B"]).groupby("band", sort=False)
    table = grouped.agg(
        runs=("run_id", "size"), LGC=("lgc", "mean"), TS=("success", "mean"), used=("used", "median"),
        compactions=("compactions", "mean"),
    )  # fmt: skip
    table[["LGC", "TS", "used"]] = (100 * table[["LGC", "TS", "used"]]).round(1)
    ends = grouped["end"].value_counts().unstack(fill_value=0)
    return table.round(1).join(ends)


@contextmanager
def _no_collection() -> Iterator[None]:
    """A run makes many objects and hardly a cycle; looking for some takes a tenth of its time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _keep(finished: Finished, path: Path) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.msgpack.encode(finished))
    os.replace(temporary, path)


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()
