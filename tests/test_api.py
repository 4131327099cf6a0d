"""The public interface: its names, tasks and their files, runs, scores and replays."""

from __future__ import annotations

import math
import subprocess
import sys

import msgspec
import pyarrow as pa
import pytest

import skillhorizon as sh
from skillhorizon.core import bands, trace
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal
from tests.support import ENVIRONMENTS, SMALLEST, TOY, WITH_TOY, small_task

# -- the module ----------------------------------------------------------------------------------------------------


def test_every_public_name_is_there_and_no_other():
    assert set(sh.__all__) <= set(dir(sh))
    assert all(getattr(sh, name) for name in sh.__all__)
    with pytest.raises(AttributeError, match="no attribute 'worlds'"):
        sh.worlds  # noqa: B018


def test_importing_is_light_and_core_and_environments_do_not_load_the_interface():
    program = (
        "import sys, skillhorizon; first = set(sys.modules)\n"
        "from skillhorizon import envs; [envs.load(n) for n in envs.names()]\n"
        "print(*sorted({m.partition('.')[0] for m in first} & {'msgspec', 'networkx', 'pandas', 'numpy'}))\n"
        "heavy = {'pandas', 'pyarrow', 'tiktoken', 'skillhorizon.api', 'skillhorizon.agents'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n\n"


def test_environments_are_listed_by_name_and_loaded_by_it():
    assert sh.environments() == sorted(sh.environments())
    for name in sh.environments():
        env = sh.environment(name)
        assert env.name == name
        assert env.families
        assert env.skills
        assert env.tools
        assert env.configs(SMALLEST)
        assert env.seed_tables() is not None
    with pytest.raises(InputError, match="unknown environment 'marketing'; the environments are"):
        sh.environment("marketing")


# -- tasks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
def test_a_task_is_calibrated_and_the_same_for_the_same_arguments(env):
    task = small_task(env)
    again = sh.generate(task.environment, band=SMALLEST, seed=0)
    assert (again.id, again.digest, again.measures) == (task.id, task.digest, task.measures)
    least, most = bands.band(SMALLEST).target
    assert least <= task.workload <= most
    assert task.budget == task.measures.R + math.ceil(task.measures.A / 2)


@pytest.mark.parametrize("env", WITH_TOY)
def test_the_seed_draws_the_configuration_from_all_or_from_one_family(env):
    from skillhorizon.api import choose

    env = small_task(env).environment
    drawn = [choose(env, band=SMALLEST, seed=seed) for seed in range(100)]
    assert len({c.family for c in drawn}) == len(env.families)
    assert drawn == [choose(env, band=SMALLEST, seed=seed) for seed in range(100)]
    for family in env.families:
        assert {choose(env, family, SMALLEST, seed).family for seed in range(20)} == {family}


@pytest.mark.parametrize("env", WITH_TOY)
def test_a_configuration_may_be_named(env):
    env = small_task(env).environment
    config = env.configs(SMALLEST)[-1]
    task = sh.generate(env, family=config.family, band=SMALLEST, seed=3, configuration=config.id)
    assert task.config == config


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"band": "65K"}, "unknown band '65K'; the bands are 64K"),
        ({"family": "cars"}, "no family 'cars'; its families are"),
        ({"configuration": "a/b"}, "no configuration 'a/b' at 64K; it has"),
        ({"seed": -1}, "a seed is a whole number"),
        ({"seed": 2**53}, "a seed is a whole number"),
        ({"seed": 1.5}, "a seed is a whole number"),
        ({"seed": "1"}, "a seed is a whole number"),
        ({"seed": True}, "a seed is a whole number"),
    ],
)
def test_wrong_arguments_of_a_task_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        sh.generate(TOY, **arguments)


def test_a_configuration_of_another_family_is_refused():
    first, *_, last = TOY.configs(SMALLEST)
    assert first.family != last.family
    with pytest.raises(InputError, match=f"no configuration '{last.id}' of family {first.family}"):
        sh.generate(TOY, family=first.family, configuration=last.id)


# -- task files ----------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    def save(env):
        path = tmp_path / f"{env}.json"
        small_task(env).save(path)
        return path

    return save


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_task_file_gives_the_same_task_back(env, saved):
    task, loaded = small_task(env), sh.load_task(saved(env))
    assert (loaded.id, loaded.digest, loaded.measures, loaded.brief) == (
        task.id,
        task.digest,
        task.measures,
        task.brief,
    )


ALTERED = {
    "another seed": {"seed": 1},
    "another size": {"size": 10},
    "a size that no task has": {"size": 10**9},
    "another workload": {"measures": {"workload": 60000, "R": 10, "A": 1}},
    "more calls": {"measures": {"workload": 60000, "R": 10**6, "A": 10**6}},
    "no measures": {"measures": None},
    "another digest": {"digest": "0" * 64},
    "another environment": {"config": {"env": "marketing"}},
    "another band": {"config": {"band": "128K"}},
    "no band": {"config": {"band": "65K"}},
    "another family": {"config": {"family": "cars"}},
    "other options": {"config": {"options": {"stages": 99}}},
    "a wrong type": {"seed": "0"},
    "a field too many": {"solution": 1},
}


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("change", ALTERED.values(), ids=ALTERED)
def test_an_altered_task_file_is_refused_by_name(env, change, saved):
    path = saved(env)
    file = msgspec.json.decode(path.read_bytes())
    for field, value in change.items():
        if isinstance(value, dict) and isinstance(file.get(field), dict):
            file[field] |= value
        else:
            file[field] = value
    path.write_bytes(msgspec.json.encode(file))
    with pytest.raises(InputError, match=path.name):
        sh.load_task(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a task file"),
        (b"{", "is not a task file"),
        (b"\xff\xfe", "is not a task file"),
        (b"[]", "is not a task file"),
        (b'{"format": "1"}', "is not a task file"),
        (b'{"format": 1}', "is not a task file"),
        (b'{"format": 99}', "is a task file of version 99; this program reads version 1"),
        (b'{"format": 1, "config": ' + b"[" * 100_000, "is not a task file"),
    ],
    ids=["empty", "cut", "no text", "a list", "format of a wrong type", "nothing else", "version", "deep"],
)
def test_what_is_no_task_file_is_refused(content, words, tmp_path):
    path = tmp_path / "task.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        sh.load_task(path)


def test_a_missing_task_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            sh.load_task(path)


# -- runs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
@pytest.mark.parametrize("agent", ["reference", "shuffled", "noop", "random"])
def test_a_run_says_what_the_table_of_runs_holds(env, agent):
    task = small_task(env)
    run = sh.run(task, agent, seed=2)
    row = run.row()
    assert tuple(row) == trace.RUN_COLUMNS
    assert pa.Table.from_pylist([row], schema=trace.TABLES["runs"]).to_pylist() == [row]
    assert tuple(run.trace.events.columns) == trace.EVENT_COLUMNS
    assert len(run.trace.events) == run.calls == row["tool_calls"]
    assert row["call_tokens"] + row["observation_tokens"] == run.tokens
    assert (row["agent"], row["seed"], row["task_id"], row["B"]) == (agent, 2, task.id, task.budget)
    assert (row["goals_met"], row["lgc"], row["success"]) == (
        run.evaluation.goals_met,
        run.evaluation.lgc,
        run.evaluation.success,
    )
    assert (row["state_digest"], row["trace_digest"]) == (run.gateway.state_digest(), run.trace.digest)


def test_runs_that_differ_in_anything_differ_in_their_id():
    runs = [sh.run(small_task("toy", t), a, s) for t in (0, 1) for a in ("noop", "random") for s in (0, 1)]
    assert len({run.id for run in runs}) == 8


def test_a_task_that_was_not_measured_runs_without_a_budget():
    task = TOY.build(TOY.configs(SMALLEST)[0], seed=0)
    run = sh.run(task)
    assert run.evaluation.success
    assert (run.row()["R"], run.row()["A"], run.row()["B"]) == (None, None, None)


@pytest.mark.parametrize("env", WITH_TOY)
def test_a_score_is_that_of_the_state_however_it_is_handed_over(env):
    run = sh.run(small_task(env), "random", 1)
    scores = [sh.evaluate(run.task, what) for what in (run, run.gateway, run.gateway.world)]
    assert scores == [run.evaluation] * 3


def test_the_beginning_of_a_run_can_be_scored():
    run = sh.run(small_task("toy"))
    gateway = run.task.open()
    reached = []
    for event in run.trace.raw:
        call = msgspec.json.decode(event.call)
        gateway.call(call["name"], call["arguments"])
        reached.append(sh.evaluate(run.task, gateway).goals_met)
    assert reached[0] == 0
    assert reached[-1] == len(run.evaluation.local)


@pytest.mark.parametrize("arguments", [{"agent": "nobody"}, {"agent": "mea:nobody"}, {"seed": -1}, {"resume": True}])
def test_wrong_arguments_of_a_run_are_refused_and_leave_no_journal(arguments, tmp_path):
    journal = {} if "resume" in arguments else {"journal": tmp_path / "journal"}
    with pytest.raises(InputError):
        sh.run(small_task("toy"), **journal, **arguments)
    assert not list(tmp_path.iterdir())


# -- replays -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", WITH_TOY)
@pytest.mark.parametrize("agent", ["reference", "random"])
def test_a_replay_equals_its_run_to_the_byte(env, agent):
    run = sh.run(small_task(env), agent, seed=4)
    again = sh.replay(run)
    assert again.trace.raw == run.trace.raw
    assert again.row() == run.row()
    assert again.gateway is not run.gateway


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("agent", ["reference", "noop", "random"])
def test_a_journal_alone_gives_the_run_again(env, agent, tmp_path):
    run = sh.run(small_task(env), agent, seed=4, journal=tmp_path / "journal")
    before = (tmp_path / "journal").read_bytes()
    for path in (tmp_path / "journal", str(tmp_path / "journal")):
        again = sh.replay(path)
        assert again.trace.raw == run.trace.raw
        assert again.row() == run.row()
        assert again.evaluation == run.evaluation
        assert again.task.digest == run.task.digest
    assert (tmp_path / "journal").read_bytes() == before


@pytest.mark.parametrize("field", ["observation", "call"])
def test_a_replay_that_differs_is_refused_with_its_place(field):
    run = sh.run(small_task("toy"))
    event = run.trace.raw[9]
    value = getattr(event, field)
    setattr(event, field, value.replace(b"}", b" }", 1))
    with pytest.raises(InputError, match="call 10 of the replay differs"):
        sh.replay(run)


def test_a_journal_of_something_else_is_refused(tmp_path):
    for number, meta in enumerate([{}, {"task": {}, "agent": "noop", "seed": 0}, {"task": 1, "agent": 2, "seed": 3}]):
        journal = Journal.create(tmp_path / str(number), meta)
        journal.close()
        with pytest.raises(InputError, match="is not"):
            sh.replay(tmp_path / str(number))
