"""Sets of tasks: complete, valid, balanced, the same bytes however they are made."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import pandas as pd
import pyarrow.parquet as pq
import pytest

from skillhorizon import construct, envs, params
from skillhorizon.core import trace
from skillhorizon.core.bands import band
from skillhorizon.core.environment import Facts
from skillhorizon.core.evaluation import Scoring
from skillhorizon.core.generation import EVALUATION_SEEDS
from skillhorizon.core.policy import ask
from skillhorizon.core.task import Measures
from tests.toy import ENVIRONMENT as TOY

ROOT = Path(__file__).parents[1]


def small(environment: str, tasks: int, bands: tuple[str, ...] = ("64K",), processes: int = 1, **more) -> params.Params:
    return params.Params(
        profile="small",
        profiles={"small": params.Profile(tasks, bands)},
        environments=("finance",),
        construct={environment: params.Construct(EVALUATION_SEEDS)} | {"finance": params.Construct(EVALUATION_SEEDS)},
        budget_factor=more.get("budget_factor", 0.5),
        processes=processes,
    )


@pytest.fixture
def toy(monkeypatch):
    """The toy environment as if it were one of the package's; a test may put another in its place."""
    known = {"toy": TOY}
    monkeypatch.setattr(envs, "names", lambda: ("finance", "toy"))
    monkeypatch.setattr(envs, "load", known.__getitem__)
    return known


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("set")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(envs, "names", lambda: ("finance", "toy"))
        patch.setattr(envs, "load", {"toy": TOY}.__getitem__)
        construct.construct("toy", small("toy", 3, ("64K", "128K")), None, folder)
    return folder


def tasks_of(folder: Path, environment: str = "toy") -> pd.DataFrame:
    return pq.read_table(folder / "tasks" / f"{environment}.parquet").to_pandas()


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_set_is_exactly_these_files(made):
    assert set(files_of(made)) == {
        "tasks/toy.json",
        "tasks/toy.parquet",
        "traces/reference/toy/compactions.parquet",
        "traces/reference/toy/events.parquet",
        "traces/reference/toy/runs.parquet",
    }


def test_tasks_stand_in_the_order_of_the_plan_families_in_turn(made):
    tasks = tasks_of(made)
    assert list(tasks["band"]) == ["64K"] * 3 + ["128K"] * 3
    assert list(tasks["family"]) == ["crates", "letters", "crates"] * 2
    assert list(tasks["configuration"]) == ["crates/chain", "letters/chain", "crates/fan"] * 2
    assert tasks["id"].is_unique
    assert (tasks["seed"] >= EVALUATION_SEEDS).all()


def test_every_task_lies_in_the_target_of_its_band(made):
    for task in tasks_of(made).itertuples():
        least, most = band(task.band).target
        assert least <= task.workload <= most


def test_a_task_is_built_again_from_its_row(made):
    for task in tasks_of(made).itertuples():
        config = TOY.config(task.band, task.configuration)
        again = TOY.build(config, task.seed, task.size)
        again.measures = Measures(task.workload, task.R, task.A)
        assert again.digest == task.digest
        assert again.id == task.id
        assert again.graph.measures["depth"] == task.depth


def test_work_counts_stand_under_the_names_of_table_6(made):
    tasks = tasks_of(made)
    work = msgspec.json.decode((made / "tasks" / "toy.json").read_bytes())["work"]
    assert work == ["Parcels", "Routes", "Business calls"]
    assert (tasks["Parcels"] == tasks["size"]).all()
    assert (tasks["Routes"] == -(-tasks["size"] // 4)).all()
    assert (tasks["Business calls"] == tasks["A"]).all()


def test_the_allowance_follows_the_factor(toy, tmp_path):
    construct.construct("toy", small("toy", 1, budget_factor=0.3), None, tmp_path)
    task = tasks_of(tmp_path).iloc[0]
    assert task["B"] == task["R"] + -(-3 * task["A"] // 10)


def test_reference_runs_are_whole_and_fit_their_tasks(made):
    tasks, runs = tasks_of(made), trace.read(made / "traces" / "reference" / "toy", "runs")
    assert tuple(runs.columns) == trace.RUN_COLUMNS
    assert list(runs["task_id"]) == list(tasks["id"])
    assert list(runs["call_tokens"] + runs["observation_tokens"]) == list(tasks["workload"])
    assert list(runs["tool_calls"]) == list(tasks["R"])
    assert list(runs["B"]) == list(tasks["B"])
    assert (runs["lgc"] == 1).all()
    assert runs["success"].all()
    assert (runs["attempts"] <= runs["B"]).all()
    assert set(runs["end"]) == {"submitted"}
    assert set(runs["agent"]) == {"reference"}


def test_events_belong_to_the_runs(made):
    folder = made / "traces" / "reference" / "toy"
    runs, events = trace.read(folder, "runs").set_index("run_id"), trace.read(folder, "events")
    assert tuple(events.columns) == trace.EVENT_COLUMNS
    counts = events.groupby("run_id", sort=False).agg(
        calls=("step", "size"), last=("step", "max"), tokens=("observation_tokens", "sum")
    )
    assert list(counts.index) == list(runs.index)
    assert (counts["calls"] == runs["tool_calls"]).all()
    assert (counts["last"] == runs["tool_calls"]).all()
    assert (counts["tokens"] == runs["observation_tokens"]).all()
    assert len(trace.read(folder, "compactions")) == 0


def test_the_facts_are_those_of_tables_3_and_4(made):
    facts = msgspec.json.decode((made / "tasks" / "toy.json").read_bytes())
    zones = len(TOY.seed_tables()["zones"])
    assert facts["title"] == "ToyOps"
    assert facts["seed_records"] == {"zones": zones}
    assert facts["resources"] == {"rates": None, "zones": zones}
    assert facts["fixed_factors"] == ["family", "pattern"]
    assert facts["knob"] == "parcels"
    assert facts["set"] == {"tasks": 3, "bands": ["64K", "128K"], "first_seed": EVALUATION_SEEDS, "budget_factor": 0.5}


def test_an_environment_without_seed_tables_says_so(toy):
    generated = dataclasses.replace(TOY, seed_tables=dict, facts=Facts({"rates": None}))
    facts = construct.describe(generated)
    assert facts["seed_records"] == "generated"
    assert facts["resources"] == {"rates": None}


def test_a_shorter_set_is_the_beginning_of_a_longer_one(made, toy, tmp_path):
    construct.construct("toy", small("toy", 2), None, tmp_path / "short")
    pd.testing.assert_frame_equal(tasks_of(tmp_path / "short"), tasks_of(made).iloc[:2])


def test_the_same_parameters_give_the_same_bytes(toy, tmp_path):
    for name in "ab":
        construct.construct("toy", small("toy", 1), None, tmp_path / name)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


# -- sets that must not be written ---------------------------------------------------------------------------------


class Forgetful(TOY.policy):
    """In another order than its own it stops before the depot is closed."""

    def ready(self):
        return (job for job in super().ready() if not job.key.startswith("depot:"))


def test_a_reference_that_fails_stops_everything(toy, tmp_path):
    toy["toy"] = dataclasses.replace(TOY, policy=Forgetful)
    with pytest.raises(RuntimeError, match="reference does not succeed on toy-64K"):
        construct.construct("toy", small("toy", 1), None, tmp_path)
    assert files_of(tmp_path) == {}


class Astray(TOY.policy):
    """Asks for a route that does not exist."""

    def opening(self):
        yield from ask("list_parcels", route_id="rte-none")


def test_any_failure_names_its_task_and_travels_between_processes(toy, tmp_path):
    toy["toy"] = dataclasses.replace(TOY, policy=Astray)
    where = f"toy, crates/chain, 64K, {EVALUATION_SEEDS}: Refused: list_parcels was refused: unknown_id"
    with pytest.raises(RuntimeError, match=where) as failed:
        construct.construct("toy", small("toy", 1), None, tmp_path)
    assert str(pickle.loads(pickle.dumps(failed.value))) == str(failed.value)


def test_an_order_that_fails_stops_everything(toy, tmp_path, monkeypatch):
    real = construct.run_policy

    def forgetful(task, rng=None):
        assert rng is not None
        task.environment = dataclasses.replace(TOY, policy=Forgetful)
        return real(task, rng)

    monkeypatch.setattr(construct, "run_policy", forgetful)
    with pytest.raises(RuntimeError, match="random legal order 1 does not succeed on toy-64K"):
        construct.construct("toy", small("toy", 1), None, tmp_path)
    assert files_of(tmp_path) == {}


def test_a_goal_that_doing_nothing_meets_stops_everything(toy, tmp_path):
    scoring = Scoring(TOY.scoring.kind, TOY.scoring._subjects)
    scoring.local_predicates = [
        p._replace(test=lambda world, goal, subject: None) for p in TOY.scoring.local_predicates
    ]
    scoring.delivery_predicates = TOY.scoring.delivery_predicates
    toy["toy"] = dataclasses.replace(TOY, scoring=scoring)
    with pytest.raises(RuntimeError, match=r"doing nothing meets (\d+) of \1 goals of toy-64K"):
        construct.construct("toy", small("toy", 1), None, tmp_path)
    assert files_of(tmp_path) == {}


def test_a_set_that_fails_leaves_the_one_before(made, toy):
    before = files_of(made)
    toy["toy"] = dataclasses.replace(TOY, policy=Forgetful)
    with pytest.raises(RuntimeError):
        construct.construct("toy", small("toy", 1), None, made)
    assert files_of(made) == before


# -- over processes ------------------------------------------------------------------------------------------------

IN_A_PROCESS = """
import sys
from pathlib import Path
from skillhorizon import construct
from tests.test_construct import small
if __name__ == "__main__":
    construct.construct("finance", small("finance", 3, processes=int(sys.argv[2])), None, sys.argv[1])
"""


@pytest.mark.slow
def test_processes_and_hash_seeds_change_no_byte(tmp_path):
    found = []
    for processes, hash_seed in ((1, "1"), (2, "2")):
        out = tmp_path / hash_seed
        script = tmp_path / f"make{hash_seed}.py"
        script.write_text(IN_A_PROCESS)
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        line = [sys.executable, script, out, str(processes)]
        subprocess.run(line, check=True, env=environment, cwd=tmp_path, timeout=300)
        found.append(files_of(out))
    assert found[0] == found[1]
    assert len(tasks_of(tmp_path / "1", "finance")) == 3
