"""A killed run goes on where it was: nothing acknowledged is lost, nothing is repeated, and the end is the same.

And no journal that is not whole, or not of this run, is taken for one.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import skillhorizon as sh
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal
from tests.support import ENVIRONMENTS, SMALLEST, assert_refused, command, small_task, told

FIRST = ENVIRONMENTS[0]

SLOW = """
import runpy, sys, time
from skillhorizon.core.journal import Journal
append = Journal.append
def slow(self, row):
    append(self, row)
    time.sleep(0.002)
    with open(acknowledged, "a") as file:
        file.write(f"{row.step}\\n")
Journal.append = slow
acknowledged = sys.argv.pop(1)
runpy.run_module("skillhorizon", run_name="__main__", alter_sys=True)
"""
"""``python -m skillhorizon``, only slower, so that a kill falls into the middle; it notes what it acknowledged."""


def rows(journal: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM calls ORDER BY step").fetchall()


def count(journal: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    except sqlite3.Error:  # not there yet
        return 0


def kill_at(calls: int, journal: Path, acknowledged: Path, *arguments: object) -> None:
    """Begin a command, and kill -9 it once its journal holds this many calls."""
    line = [sys.executable, "-c", SLOW, str(acknowledged), *map(str, arguments)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while count(journal) < calls:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("env", "agent"), [*((env, "shuffled") for env in ENVIRONMENTS), (FIRST, "random")])
def test_a_run_that_is_killed_twice_ends_like_one_that_was_not(env, agent, tmp_path):
    task, whole, journal = tmp_path / "task.json", tmp_path / "whole", tmp_path / "journal"
    small_task(env).save(task)
    undisturbed = sh.run(small_task(env), agent, seed=1, journal=whole)
    line = ("run", task, "--agent", agent, "--seed", 1, "--journal", journal)
    acknowledged = tmp_path / "acknowledged"

    kill_at(undisturbed.calls // 3, journal, acknowledged, *line)
    first = rows(journal)
    kill_at(undisturbed.calls * 2 // 3, journal, acknowledged, *line, "--resume")
    second = rows(journal)
    assert len(first) < len(second) < undisturbed.calls
    assert second[: len(first)] == first

    partial = sh.replay(journal)
    assert (partial.end, partial.calls) == ("stopped", len(second))
    assert partial.trace.raw == undisturbed.trace.raw[: len(second)]

    done = command(*line, "--resume", "--json")
    assert (done.returncode, done.stderr) == (int(agent == "random"), "")
    resumed = msgspec.json.decode(done.stdout)
    assert {k: resumed[k] for k in undisturbed.row()} == msgspec.to_builtins(undisturbed.row())
    assert rows(journal) == rows(whole)

    noted = [int(step) for step in acknowledged.read_text().split()]
    assert noted == sorted(set(noted))  # no acknowledged call was made a second time
    assert set(noted) <= {row[0] for row in second}  # and none was lost
    again = sh.replay(journal)
    assert (again.end, again.row()) == (undisturbed.end, undisturbed.row())


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_resuming_a_finished_run_adds_nothing(env, tmp_path):
    journal = tmp_path / "journal"
    run = sh.run(small_task(env), journal=journal)
    before = rows(journal)
    assert sh.run(small_task(env), journal=journal, resume=True).row() == run.row()
    assert rows(journal) == before


def test_a_run_that_broke_off_in_the_agent_can_be_resumed(tmp_path, monkeypatch):
    from skillhorizon.core.gateway import Gateway

    task, journal = small_task(FIRST), tmp_path / "journal"
    call = Gateway.call

    def breaks(self, *arguments, **options):
        if len(self.events) == 40:
            raise KeyboardInterrupt
        return call(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Gateway, "call", breaks)
        with pytest.raises(KeyboardInterrupt):
            sh.run(task, journal=journal)
    assert sh.replay(journal).calls == 40
    assert sh.run(task, journal=journal, resume=True).row() == sh.run(task).row()


# -- another run's journal -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished journal of the reference, in the bytes of one file."""
    path = tmp_path_factory.mktemp("journal") / "journal"
    sh.run(small_task(FIRST), journal=path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


@pytest.fixture
def journal(whole, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(whole)
    return path


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "task.json"
    small_task(FIRST).save(path)
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--agent", "noop"], "another agent, 'reference'"),
        (["--agent", "reference", "--seed", 1], "another seed, 0"),
    ],
)
def test_a_journal_of_another_agent_or_seed_is_not_resumed(options, words, journal, saved, capsys):
    before = journal.read_bytes()
    assert_refused(told(capsys, "run", saved, *options, "--journal", journal, "--resume"), journal.name, words)
    assert journal.read_bytes() == before


def test_a_journal_of_another_task_is_not_resumed(journal, tmp_path, capsys):
    other = tmp_path / "other.json"
    small_task(FIRST, seed=1).save(other)
    before = journal.read_bytes()
    answer = told(capsys, "run", other, "--agent", "reference", "--journal", journal, "--resume")
    assert_refused(answer, journal.name, "another task")
    assert journal.read_bytes() == before


def test_a_journal_that_exists_is_not_begun_again(journal, saved, capsys):
    before = journal.read_bytes()
    answer = told(capsys, "run", saved, "--agent", "reference", "--journal", journal)
    assert_refused(answer, "exists already")
    assert journal.read_bytes() == before


def test_an_agent_that_works_otherwise_now_is_found(journal, monkeypatch):
    """As after a change of the program: the calls are not those of the journal."""
    from skillhorizon.agents import scripted

    task = small_task(FIRST)
    monkeypatch.setattr(scripted.Procedure, "act", scripted.RandomCalls().act)
    with pytest.raises(InputError, match="call 1 differs from the journal"):
        sh.run(task, journal=journal, resume=True)
    monkeypatch.setattr(scripted.Procedure, "act", scripted.Noop().act)
    with pytest.raises(InputError, match="more calls than the 0"):
        sh.run(task, journal=journal, resume=True)


def test_two_processes_cannot_write_one_journal(tmp_path):
    task, path = small_task(FIRST), tmp_path / "journal"
    journal = Journal.create(path, {"task": msgspec.to_builtins(task.file()), "agent": "noop", "seed": 0})
    other = Journal.load(path)
    gateways = [task.open(journal=j) for j in (journal, other)]
    gateways[0].call("read_task_brief")
    with pytest.raises(InputError, match="cannot write to"):
        gateways[1].call("read_task_brief")
    gateways[0].call("read_task_brief")
    journal.close()
    assert sh.replay(path).calls == 2


# -- no whole journal ----------------------------------------------------------------------------------------------


def altered(*statements):
    def alter(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return alter


def cut(share: float):
    return lambda path: path.write_bytes(path.read_bytes()[: int(len(path.read_bytes()) * share)])


def foreign(path: Path) -> None:
    path.unlink()
    altered("CREATE TABLE notes(text)", "INSERT INTO notes VALUES ('mine')")(path)


WRONG = {
    "missing": (Path.unlink, "no journal at"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "no journal at"),
    "empty": (lambda path: path.write_bytes(b""), "is not a whole journal"),
    "garbage": (lambda path: path.write_bytes(b"garbage " * 999), "is not a whole journal"),
    "another database": (foreign, "is not a whole journal"),
    "cut in the middle": (cut(0.5), "is not a whole journal"),
    "cut near the end": (cut(0.97), ""),
    "an altered observation": (
        altered("UPDATE calls SET observation = replace(observation, 'true', 'false') WHERE step = 7"),
        "altered or truncated at call 7",
    ),
    "an altered argument": (altered("UPDATE calls SET arguments = arguments || ' ' WHERE step = 9"), "at call 9"),
    "an altered module": (altered("UPDATE calls SET module = 'mine' WHERE step = 9"), "at call 9"),
    "an altered type": (altered("UPDATE calls SET observation = x'ff00' WHERE step = 3"), ""),
    "a lost call": (altered("DELETE FROM calls WHERE step = 20"), "at call 20"),
    "a lost end": (altered("DELETE FROM calls WHERE step > 20"), "truncated after call 20"),
    "no calls": (altered("DELETE FROM calls"), "truncated after call 0"),
    "another agent": (altered("UPDATE meta SET value = '\"noop\"' WHERE key = 'agent'"), "altered"),
    "another outcome": (altered("""UPDATE meta SET value = '{"end":"failed"}' WHERE key = 'end'"""), "altered"),
    "another format": (altered("UPDATE meta SET value = '99' WHERE key = 'journal_format'"), "another format (99"),
    "a value of no type": (altered("UPDATE meta SET value = 'x' WHERE key = 'seed'"), "is not a whole journal"),
    "no description": (altered("DELETE FROM meta"), "another format"),
    "no table": (altered("DROP TABLE calls"), "is not a whole journal"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("what", ["evaluate", "replay", "resume"])
def test_what_is_not_a_whole_journal_is_refused_and_left_as_it_was(name, what, journal, saved, capsys):
    spoil, words = WRONG[name]
    spoil(journal)
    before = journal.read_bytes() if journal.is_file() else None
    line = ["run", saved, "--agent", "reference", "--resume", "--journal"] if what == "resume" else [what]
    assert_refused(told(capsys, *line, journal), journal.name, words)
    assert (journal.read_bytes() if journal.is_file() else None) == before


def test_a_journal_whose_task_is_made_otherwise_now_is_refused(tmp_path, capsys):
    file = msgspec.to_builtins(small_task(FIRST).file())
    for change, words in (({"digest": "0" * 64}, "another version"), ({"format": 99}, "version 99")):
        path = tmp_path / words.replace(" ", "-")
        Journal.create(path, {"task": {**file, **change}, "agent": "noop", "seed": 0}).close()
        assert_refused(told(capsys, "evaluate", path), path.name, words)


def test_an_observation_that_the_task_does_not_give_is_refused(tmp_path, capsys):
    """A journal that is whole in itself, but whose calls answer otherwise here."""
    task, path = small_task(FIRST), tmp_path / "journal"
    lying = Journal.create(path, {"task": msgspec.to_builtins(task.file()), "agent": "noop", "seed": 0})
    gateway = small_task(FIRST, seed=1).open(journal=lying)  # the observations are another task's
    gateway.call("read_task_brief")
    lying.close()
    assert small_task(FIRST, seed=1).brief != task.brief
    assert_refused(told(capsys, "replay", path), "the observation of call 1 differs from the journal")


def test_the_band_of_these_tests_is_the_smallest():
    assert small_task(FIRST).config.band == SMALLEST
