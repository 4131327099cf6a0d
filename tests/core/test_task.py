from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from skillhorizon.core.composition import Module, TaskGraph
from skillhorizon.core.errors import InputError
from skillhorizon.core.task import Measures, Task, TaskConfig, decode_task_file, read_task_file
from skillhorizon.core.world import Update
from tests.toy import ENVIRONMENT
from tests.toy.build import ToyGoal

MEASURES = Measures(60_000, 100, 45)


@pytest.fixture
def measured(task: Task) -> Task:
    return Task(ENVIRONMENT, task.config, task.seed, task.size, MEASURES)


# -- task files ----------------------------------------------------------------------------------------------------


def test_a_task_file_holds_the_recipe_the_measures_and_the_digest(measured, tmp_path):
    measured.save(tmp_path / "task.json")
    file = read_task_file(tmp_path / "task.json")
    assert file == measured.file()
    again = Task(ENVIRONMENT, file.config, file.seed, file.size, file.measures)
    assert (again.digest, again.id, again.budget) == (file.digest, measured.id, measured.budget)
    assert [p.name for p in tmp_path.iterdir()] == ["task.json"]


def test_a_task_that_was_not_measured_can_be_saved_but_has_no_budget(task, tmp_path):
    task.save(tmp_path / "task.json")
    assert read_task_file(tmp_path / "task.json").measures is None
    for wanted in ("workload", "budget"):
        with pytest.raises(InputError, match="has not been measured"):
            getattr(task, wanted)
    assert task.open().budget is None


def test_a_file_is_never_overwritten(measured, tmp_path):
    for name in ("file", "folder"):
        (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match="exists already"):
            measured.save(tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_task_cannot_be_saved_where_there_is_no_folder(measured, tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        measured.save(tmp_path / "no" / "task.json")


def altered(path: tuple[str, ...], value: Any) -> bytes:
    """The file of a measured task with one value set, or taken away where it is ``...``."""
    task = Task(ENVIRONMENT, ENVIRONMENT.config("64K", "letters/chain"), 1, 12, MEASURES)
    data = msgspec.to_builtins(task.file())
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return msgspec.json.encode(data)


def test_the_unaltered_file_is_read():
    assert decode_task_file(altered(("seed",), 1), "task.json").seed == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), ...),
        (("format",), "1"),
        (("config",), ...),
        (("config", "band"), ...),
        (("config", "band"), 64),
        (("config", "colour"), "red"),
        (("config", "options"), []),
        (("seed",), 1.5),
        (("seed",), ...),
        (("size",), None),
        (("measures", "R"), "100"),
        (("measures", "B"), 5),
        (("digest",), None),
        (("more",), 1),
    ],
)
def test_a_file_with_a_wrong_missing_or_unknown_field_is_refused(path, value):
    with pytest.raises(InputError, match=r"task\.json is not a task file") as refusal:
        decode_task_file(altered(path, value), "task.json")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_file_of_another_version_is_named_as_such_whatever_else_it_holds(version):
    data = msgspec.json.encode({"format": version, "anything": "else"})
    with pytest.raises(
        InputError, match=rf"task\.json is a task file of version {version}; this program reads version 1"
    ):
        decode_task_file(data, "task.json")


def test_a_truncated_file_is_refused_wherever_it_is_cut():
    whole = altered(("seed",), 1)
    for size in range(len(whole)):
        with pytest.raises(InputError, match="is not a task file"):
            decode_task_file(whole[:size], "task.json")


@pytest.mark.parametrize(
    "data", [b"garbage", b"\xff\xfe", b"null", b"[]", b"{}", b"[" * 100_000, b'{"format":1} x', b"\x00"]
)
def test_garbage_is_refused(data):
    with pytest.raises(InputError, match="is not a task file"):
        decode_task_file(data, "task.json")


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    for missing in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError, match=f"cannot read {missing}: "):
            read_task_file(missing)


# -- digests -------------------------------------------------------------------------------------------------------


def digest_of(task: Task, **changes: Any) -> str:
    """Of the same recipe, built into something else."""
    blueprint = task.blueprint._replace(**changes)
    other = dataclasses.replace(ENVIRONMENT, builder=lambda *_: blueprint)
    return Task(other, task.config, task.seed, task.size, task.measures).digest


def test_the_digest_changes_with_every_part_of_what_was_built(measured):
    b = measured.blueprint
    assert digest_of(measured) == measured.digest
    rate = next(iter(b.tables["rates"].values()))
    changes: list[dict[str, Any]] = [
        {"tables": {**b.tables, "rates": {**b.tables["rates"], "rat-x": rate}}},
        {"tables": {**b.tables, "rates": {k: replace(r, label="x") for k, r in b.tables["rates"].items()}}},
        {"tables": {**b.tables, "more": {}}},
        {"updates": b.updates[:1]},
        {"updates": (replace(b.updates[0], at=9), *b.updates[1:])},
        {"updates": b.updates[::-1]},
        {"graph": TaskGraph.of([Module("a", "k", 1, "s")])},
        {"brief": {**b.brief, "goal": "Another."}},
        {"goal": ToyGoal(b.goal.parcels, "another canary")},
        {"goal": ToyGoal(b.goal.parcels[1:])},
        {"scale": {**b.scale, "Parcels": 1}},
    ]
    digests = {digest_of(measured, **change) for change in changes}
    assert len(digests | {measured.digest}) == len(changes) + 1


def test_the_digest_changes_with_every_part_of_the_recipe_and_with_the_measures(measured):
    config = measured.config
    tasks = [
        Task(ENVIRONMENT, replace(config, options={"grams": 501}), 1, 12, MEASURES),
        Task(ENVIRONMENT, replace(config, band="128K"), 1, 12, MEASURES),
        Task(ENVIRONMENT, replace(config, family="crates"), 1, 12, MEASURES),
        Task(ENVIRONMENT, config, 2, 12, MEASURES),
        Task(ENVIRONMENT, config, 1, 13, MEASURES),
        Task(ENVIRONMENT, config, 1, 12, Measures(60_000, 100, 46)),
        Task(ENVIRONMENT, config, 1, 12),
    ]
    assert len({t.digest for t in [measured, *tasks]}) == len(tasks) + 1
    assert Task(ENVIRONMENT, config, 1, 12, MEASURES).digest == measured.digest


def test_the_digest_is_the_same_in_another_process_with_another_hash_seed(task):
    program = (
        "from tests.toy import ENVIRONMENT\n"
        "task = ENVIRONMENT.build(ENVIRONMENT.config('64K', 'letters/chain'), 1, 12)\n"
        "print(task.digest, task.open().state_digest())"
    )
    line, root = [sys.executable, "-c", program], Path(__file__).parents[2]
    said = {
        subprocess.run(
            line, env={"PYTHONHASHSEED": seed}, cwd=root, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{task.digest} {task.open().state_digest()}\n"}


# -- budgets and names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "budget"), [(0, 100), (0.125, 106), (0.25, 112), (0.5, 123), (1, 145), (0.2, 109), (0.02, 101)]
)
def test_the_budget_is_r_and_the_part_of_a_rounded_up(measured, factor, budget):
    """R = 100, A = 45: an eighth of 45 is 5.625, a quarter 11.25, a half 22.5, a fifth exactly 9."""
    assert measured.budget_at(factor) == budget


def test_the_budget_is_exact_where_binary_fractions_are_not(task):
    """0.07 * 100 is a little more than 7 in binary floating point."""
    assert math.ceil(0.07 * 100) == 8
    assert Task(ENVIRONMENT, task.config, 1, 12, Measures(1, 10, 100)).budget_at(0.07) == 17


def test_a_measured_task_opens_with_its_own_budget_unless_another_is_given(measured):
    assert measured.budget == 123
    assert measured.open().budget == 123
    assert measured.open(budget=5).budget == 5
    assert measured.open_unlimited().budget is None


def test_names_say_environment_band_configuration_seed_and_size(measured):
    assert TaskConfig("e", "family", "variant", "pattern", "64K").id == "family/variant/pattern"
    assert measured.config.id == "letters/chain"
    assert measured.id == "toy-64K-letters.chain-1-12"


def test_the_brief_names_the_skills_and_nothing_of_the_goal(measured):
    assert measured.brief == {**measured.blueprint.brief, "skills": ["quote-parcel"]}
    assert not any(str(v) in str(measured.brief) for v in measured.blueprint.goal.parcels)


def test_every_opened_world_is_fresh(measured):
    first, second = measured.open(), measured.open()
    first.world.amend("rates", next(iter(first.world.tables["rates"])), label="x")
    assert second.state_digest() == measured.open().state_digest() != first.state_digest()


def test_updates_are_part_of_the_recipe(measured):
    assert [u.at for u in measured.blueprint.updates] == [1, 2]
    assert all(isinstance(u, Update) for u in measured.blueprint.updates)
