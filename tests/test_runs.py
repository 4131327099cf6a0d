"""Whole sets: the tables, the prefixes against a replay, going on after an interruption, processes and a cluster."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from skillhorizon import agents, compute, construct, params, runs, taskset
from skillhorizon.agents.simulated import PROFILES
from skillhorizon.compute import Compute
from skillhorizon.core import trace
from skillhorizon.core.errors import InputError
from skillhorizon.core.task import Task
from tests.support import small_task
from tests.test_construct import small
from tests.test_resumed_conversations import Model

ENV = "finance"


def tasks() -> list[Task]:
    return [small_task(ENV, seed) for seed in range(3)]


def settings(**more) -> params.Params:
    return msgspec.structs.replace(small(ENV, 3), **more)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    rows = [{**construct._task_row(task, 0.5), **task.blueprint.scale} for task in tasks()]
    trace.write_parquet(pa.Table.from_pylist(rows), folder / "tasks" / f"{ENV}.parquet")
    return folder


@pytest.fixture(scope="module")
def made(data, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("out")
    runs.evaluate("careless", ENV, settings(), data, out / "work", out)
    return out


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted((folder / "traces").rglob("*.parquet"))}


# -- the tables ----------------------------------------------------------------------------------------------------


def test_a_run_for_each_task_in_the_order_of_the_set(made):
    folder = made / "traces" / "careless" / ENV
    assert {p.name for p in folder.iterdir()} == {f"{name}.parquet" for name in trace.TABLES}
    found = trace.read(folder, "runs")
    assert list(found["task_id"]) == [task.id for task in tasks()]
    assert list(found["B"]) == [task.budget for task in tasks()]
    assert set(found["agent"]) == {"careless"}
    events = trace.read(folder, "events")
    counted = events.groupby("run_id").agg(
        attempts=("charged", "sum"), calls=("step", "size"), last=("decision", "max")
    )
    counted = counted.loc[found["run_id"]]
    assert list(found["attempts"]) == list(counted["attempts"])
    assert list(found["tool_calls"]) == list(counted["calls"])
    assert all(found["decisions"].to_numpy() >= counted["last"].to_numpy())
    assert (events["context_tokens"] > 0).all()
    assert (found["request_tokens"] > found["observation_tokens"]).all()
    assert found["cost"].isna().all()


def test_prefixes_are_what_a_replay_of_the_calls_up_to_the_cutoff_scores(data, made):
    folder = made / "traces" / "careless" / ENV
    prefixes = trace.read(folder, "prefixes")
    assert list(prefixes["factor"])[:5] == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert len(prefixes) == 15
    for task, (run_id, rows) in zip(tasks(), prefixes.groupby("run_id", sort=False), strict=True):
        assigned = next(a for a in runs.assignments("careless", ENV, settings(), data) if a.row["seed"] == task.seed)
        whole = runs.Watched(task, assigned)
        assigned.worker.act(task, whole, runs.SEED)
        for row in rows.itertuples():
            assert row.attempts == min(task.budget_at(row.factor), whole.used)
            gateway = task.open_unlimited()
            for event in whole.events:
                if gateway.used >= row.attempts:
                    break
                call = msgspec.json.decode(event.call)
                gateway.call(call["name"], call["arguments"])
            evaluation = task.environment.scoring.evaluate(gateway.world, task.blueprint.goal)
            assert (row.goals_met, row.lgc, row.success) == (
                evaluation.goals_met,
                evaluation.lgc,
                evaluation.success,
            ), run_id


def test_the_summary_counts_every_run(made):
    table = runs.summary(trace.read(made / "traces" / "careless" / ENV, "runs"))
    assert list(table.index) == ["64K"]
    assert table.loc["64K", "runs"] == 3
    assert table[[c for c in table if c in ("submitted", "exhausted")]].to_numpy().sum() == 3


# -- nothing is done twice -----------------------------------------------------------------------------------------


def test_finished_runs_are_not_made_again_and_the_bytes_are_the_same(data, made, monkeypatch, tmp_path):
    monkeypatch.setattr(runs, "carry_out", lambda *_: pytest.fail("a finished run was made again"))
    runs.evaluate("careless", ENV, settings(), data, made / "work", tmp_path)
    assert files(tmp_path) == files(made)


def test_an_interrupted_evaluation_goes_on_where_it_was(data, made, monkeypatch, tmp_path):
    carried = []
    original = runs.carry_out

    def breaks(assigned, work=None):
        if len(carried) == 2:
            raise KeyboardInterrupt
        carried.append(assigned.key)
        return original(assigned, work)

    monkeypatch.setattr(runs, "carry_out", breaks)
    with pytest.raises(KeyboardInterrupt):
        runs.evaluate("careless", ENV, settings(), data, tmp_path / "work", tmp_path)
    assert not (tmp_path / "traces").exists()
    first = carried.copy()
    carried.clear()
    carried.append("one more may be made")
    runs.evaluate("careless", ENV, settings(), data, tmp_path / "work", tmp_path)
    assert len(carried) == 2
    assert carried[1] not in first
    assert files(tmp_path) == files(made)


def test_what_determines_a_run_is_in_its_key(data, monkeypatch):
    def keys(agent="careless", **more):
        return [a.key for a in runs.assignments(agent, ENV, settings(**more), data)]

    first = keys()
    assert len(set(first)) == 3
    assert keys(processes=2) == first
    other = {**PROFILES, "careless": msgspec.structs.replace(PROFILES["careless"], slip=0.5)}
    changed = [
        keys("steady"),
        keys(agents=params.Agents(profiles=other)),
        keys(agents=params.Agents(rules=msgspec.structs.replace(params.Agents().rules, entry="discovery"))),
        keys(evaluate=params.Evaluate(prefixes=(0.0,))),
    ]
    monkeypatch.setattr(taskset, "code_digest", lambda *_: "another")
    changed.append(keys())
    assert not any(set(first) & set(k) for k in changed)


def test_any_agent_may_be_evaluated(data, tmp_path):
    found = runs.evaluate("simulated:perfect", ENV, settings(), data, tmp_path / "work", tmp_path)
    assert list(found["success"]) == [True] * 3
    assert (tmp_path / "traces" / "simulated-perfect" / ENV / "runs.parquet").is_file()


def test_an_interrupted_run_of_a_model_goes_on_from_its_journal(data, monkeypatch, tmp_path):
    model = Model()
    monkeypatch.setitem(agents.AGENTS, "paid", model)
    whole = runs.evaluate("paid", ENV, settings(), data, tmp_path / "whole", tmp_path / "a")
    asked, model.asked = model.asked, []
    for share in (0.2, 0.5):
        model.breaks_at = int(len(asked) * share)
        with pytest.raises(ConnectionError):
            runs.evaluate("paid", ENV, settings(), data, tmp_path / "work", tmp_path / "b")
    model.breaks_at = None
    resumed = runs.evaluate("paid", ENV, settings(), data, tmp_path / "work", tmp_path / "b")
    assert model.asked == asked
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert resumed.equals(whole)


def test_the_rules_of_the_parameters_hold_for_every_agent():
    rules = msgspec.structs.replace(params.Agents().rules, entry="discovery")
    asked = settings(agents=params.Agents(rules=rules))
    for name in ("careless", "simulated:perfect", "model:mockllm/model"):
        assert runs.the_agent(name, asked).rules == rules


# -- bad input -----------------------------------------------------------------------------------------------------


def test_without_a_set_there_is_nothing_to_evaluate(tmp_path):
    with pytest.raises(InputError, match="no task set at"):
        runs.evaluate("careless", ENV, settings(), tmp_path, tmp_path)


def test_a_set_of_another_version_is_refused(data, tmp_path):
    rows = [{**construct._task_row(small_task(ENV), 0.5), "digest": "0" * 64}]
    trace.write_parquet(pa.Table.from_pylist(rows), tmp_path / "tasks" / f"{ENV}.parquet")
    with pytest.raises(InputError, match="another version"):
        runs.evaluate("careless", ENV, settings(), tmp_path, tmp_path / "work")


@pytest.mark.parametrize(
    "wrong", [{"engine": "dask"}, {"address": "tcp://x"}, {"engine": "slurm"}, {"engine": "dask", "adress": "x"}]
)
def test_a_wrong_engine_is_refused(wrong):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, Compute)


def test_a_scheduler_that_does_not_answer_is_one_clear_line(monkeypatch):
    distributed = pytest.importorskip("distributed")

    def fails(*arguments, **options):
        raise OSError("timed out")

    monkeypatch.setattr(distributed, "Client", fails)
    with pytest.raises(InputError, match="no Dask scheduler answers at tcp://nowhere:1"):
        list(compute.completed(str, [1], "x", Compute("dask", "tcp://nowhere:1"), 1))


# -- a cluster -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as found:
        yield found


def slowly(number: int) -> tuple[int, int]:
    time.sleep(0.1)
    if number < 0:
        raise ValueError("less than nothing")
    return number * number, os.getpid()


def test_work_on_a_cluster_is_that_of_processes_and_a_failure_is_raised(cluster, data, made, tmp_path):
    remote = Compute("dask", cluster.scheduler_address)
    runs.evaluate("careless", ENV, settings(compute=remote), data, tmp_path / "work", tmp_path)
    assert files(tmp_path) == files(made)
    with pytest.raises(ValueError, match="less than nothing"):
        dict(compute.completed(slowly, [1, -1], "squares", remote, 1))


def test_a_worker_killed_midway_loses_nothing(cluster):
    """The last test of this cluster. What the dead worker had not handed over is done by another."""
    results = {}
    killed = None
    for index, result in compute.completed(slowly, range(12), "squares", Compute("dask", cluster.scheduler_address), 1):
        results[index] = result
        if killed is None:
            killed = result[1]
            os.kill(killed, signal.SIGKILL)
    assert {index: square for index, (square, _) in results.items()} == {n: n * n for n in range(12)}
    assert {pid for _, pid in results.values()} - {killed}
