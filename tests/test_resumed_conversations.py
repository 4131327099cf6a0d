"""A conversation that was killed goes on where it was: no reply is asked for twice, no attempt is charged twice."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

import skillhorizon as sh
from skillhorizon import agents
from skillhorizon.agents.compaction import Limits
from skillhorizon.agents.harness import Harnessed, Reply, Rules
from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Gateway
from skillhorizon.core.journal import Journal
from tests.support import command, small_task
from tests.test_resume import kill_at, rows

ENV = "finance"
RULES = Rules(compaction=Limits(trigger=12_000, guard=40_000, kept_below=11_500))


def acts(*names: str) -> str:
    actions = [{"name": n, "arguments": {}} for n in names]
    return msgspec.json.encode({"type": "actions", "actions": actions}).decode()


FINAL = '{"type":"final","text":"done"}'
READS = ("list_stages", "list_reviewers", "list_skills")
TEXTS = [
    acts("read_task_brief"),
    FINAL,
    "\ud800 nonsense",
    *[acts(*READS), acts(*READS, "no_such_tool", "list_skills")] * 12,
    FINAL,
    acts("list_skills"),
    FINAL,
]


class Paid:
    """A mind whose replies cannot be had again; it keeps which were asked for."""

    repeatable = False

    def __init__(self, asked: list[str], breaks_at: int | None = None) -> None:
        self.asked = asked
        self.breaks_at = breaks_at

    def respond(self, messages) -> Reply:
        return self._answer(TEXTS[n] if (n := self._said()) < len(TEXTS) else FINAL, "respond")

    def summarise(self, messages) -> Reply:
        return self._answer("It goes well.", "summarise")

    def _said(self) -> int:
        return self.asked.count("respond")

    def _answer(self, text: str, kind: str) -> Reply:
        if len(self.asked) == self.breaks_at:
            raise ConnectionError("the line is dead")
        self.asked.append(kind)
        return Reply(text)


class Model(Harnessed):
    rules = RULES
    repeatable = False

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.breaks_at: int | None = None

    def mind(self, task, gateway, seed) -> Paid:
        return Paid(self.asked, self.breaks_at)


@pytest.fixture
def model(monkeypatch) -> Model:
    found = Model()
    monkeypatch.setitem(agents.AGENTS, "paid", found)
    return found


def notes(path: Path) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT * FROM notes ORDER BY number").fetchall()


@pytest.fixture
def undisturbed(tmp_path, model):
    """An uninterrupted run with its journal and all that was asked for."""
    run = sh.run(small_task(ENV), "paid", journal=tmp_path / "whole")
    asked, model.asked = model.asked, []
    assert {c.adopted for c in run.outcome.compactions} == {True}
    assert len(run.outcome.compactions) >= 2
    return run, tmp_path / "whole", asked


def same(journal: Path, resumed: sh.Run, undisturbed) -> None:
    run, whole, _ = undisturbed
    assert resumed.outcome == run.outcome
    assert resumed.row() == run.row()
    assert (rows(journal), notes(journal)) == (rows(whole), notes(whole))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_a_lost_connection_costs_nothing(share, tmp_path, model, undisturbed):
    total = len(undisturbed[2])
    model.breaks_at = int(total * share)
    with pytest.raises(ConnectionError):
        sh.run(small_task(ENV), "paid", journal=tmp_path / "journal")
    assert sh.replay(tmp_path / "journal").end == "stopped"
    model.breaks_at = None
    resumed = sh.run(small_task(ENV), "paid", journal=tmp_path / "journal", resume=True)
    assert model.asked == undisturbed[2]  # each once, in the same order
    same(tmp_path / "journal", resumed, undisturbed)


@pytest.mark.parametrize("calls", [0, 1, 20, 41])
def test_a_reply_that_was_kept_but_not_carried_out_is_carried_out(calls, tmp_path, model, undisturbed, monkeypatch):
    """A kill between the reply and its calls, or in the middle of a batch."""
    call = Gateway.call

    def dies(self, *arguments, **options):
        if len(self.events) == calls:
            raise KeyboardInterrupt
        return call(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Gateway, "call", dies)
        with pytest.raises(KeyboardInterrupt):
            sh.run(small_task(ENV), "paid", journal=tmp_path / "journal")
    assert len(rows(tmp_path / "journal")) == calls
    resumed = sh.run(small_task(ENV), "paid", journal=tmp_path / "journal", resume=True)
    assert model.asked == undisturbed[2]
    same(tmp_path / "journal", resumed, undisturbed)


def test_resuming_a_finished_conversation_asks_nobody(model, undisturbed):
    run, whole, _ = undisturbed
    before = (rows(whole), notes(whole))
    resumed = sh.run(small_task(ENV), "paid", journal=whole, resume=True)
    assert model.asked == []
    assert resumed.outcome == run.outcome
    assert (rows(whole), notes(whole)) == before


def test_a_replay_needs_no_mind(undisturbed, model):
    run, whole, _ = undisturbed
    again = sh.replay(whole)
    assert model.asked == []
    assert (again.row(), again.outcome) == (run.row(), run.outcome)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE notes SET body = replace(body, 'goes', 'went') WHERE kind = 'summarise'",
        "UPDATE notes SET step = step + 1 WHERE number = 5",
        "UPDATE notes SET kind = 'other' WHERE number = 5",
        "DELETE FROM notes WHERE number = 5",
        "DELETE FROM notes WHERE number > 20",
        "DELETE FROM notes",
        "DROP TABLE notes",
    ],
)
def test_altered_or_lost_replies_are_found(statement, undisturbed):
    whole = undisturbed[1]
    with closing(sqlite3.connect(whole)) as connection, connection:
        connection.execute(statement)
    with pytest.raises(InputError, match=r"altered or truncated|truncated after"):
        Journal.load(whole)


def test_replies_of_another_version_are_not_taken(tmp_path, model, undisturbed, monkeypatch):
    """As after a change of the rules: the summary falls elsewhere."""
    monkeypatch.setattr(model, "rules", Rules(), raising=False)
    with pytest.raises(InputError, match="another agent or version"):
        sh.run(small_task(ENV), "paid", journal=undisturbed[1], resume=True)


# -- killed for real -----------------------------------------------------------------------------------------------

PAID = """
import sys, time
import skillhorizon as sh
from skillhorizon import agents
from tests.test_resumed_conversations import Model, Paid
answer = Paid._answer
def slow(self, *what):
    time.sleep(0.01)
    return answer(self, *what)
Paid._answer = slow
agents.AGENTS["paid"] = Model()
sh.run(sh.load_task(sys.argv[1]), "paid", journal=sys.argv[2])
"""


def test_a_killed_conversation_goes_on(tmp_path, model, undisturbed):
    task, journal = tmp_path / "task.json", tmp_path / "journal"
    small_task(ENV).save(task)
    with subprocess.Popen([sys.executable, "-c", PAID, task, journal], stderr=subprocess.PIPE) as process:
        while not journal.exists() or len(known(journal)) < 15:
            assert process.poll() is None, process.stderr.read()
        process.kill()
    kept = notes(journal)
    assert 15 <= len(kept) < len(undisturbed[2])
    model.asked = [kind for _, _, kind, _, _ in kept]  # the mind goes on where the world has heard of it
    resumed = sh.run(small_task(ENV), "paid", journal=journal, resume=True)
    assert model.asked == undisturbed[2]
    same(journal, resumed, undisturbed)


def known(journal: Path) -> list[tuple]:
    try:
        return notes(journal)
    except sqlite3.Error:  # not there yet
        return []


@pytest.mark.parametrize("name", ["careless", "simulated:shuffled"])
def test_a_killed_simulated_agent_goes_on_as_if_nothing_had_been(name, tmp_path):
    task, whole, journal = tmp_path / "task.json", tmp_path / "whole", tmp_path / "journal"
    small_task(ENV).save(task)
    run = sh.run(small_task(ENV), name, seed=1, journal=whole)
    line = ("run", task, "--agent", name, "--seed", 1, "--journal", journal)
    kill_at(run.calls // 2, journal, tmp_path / "acknowledged", *line)
    assert len(rows(journal)) < run.calls
    done = command(*line, "--resume", "--json")
    assert done.stderr == ""
    resumed = msgspec.json.decode(done.stdout)
    assert {k: resumed[k] for k in run.row()} == msgspec.to_builtins(run.row())
    assert rows(journal) == rows(whole)
