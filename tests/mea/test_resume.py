"""A run that is killed anywhere goes on at its round: the same calls, the same rounds, no write twice."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import skillhorizon as sh
from skillhorizon.core.errors import InputError
from skillhorizon.core.journal import Journal
from tests.mea.support import rounds, terminal
from tests.support import ENVIRONMENTS, small_task

AGENT = "mea:perfect"


def cut(path, calls: int, notes: int) -> None:
    """Make a journal what it was when a process died after so many calls and notes."""
    journal = Journal.load(path)
    rows, kept, meta = journal.rows[:calls], journal.notes[:notes], journal.meta
    path.unlink()
    again = Journal.create(path, {k: v for k, v in meta.items() if k != "journal_format"})
    for step in range(calls + 1):
        for note in kept:
            if note.step == step:
                again.note(note.step, note.kind, note.body)
        if step < calls:
            again.append(rows[step]._replace(chain=""))
    again.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("mea") / "whole"
    return sh.run(small_task(ENVIRONMENTS[1]), AGENT, journal=path), path


def moments(path) -> list[tuple[int, int]]:
    """(calls, notes) just before and just after an intent, a write, an audit's read, and the end of a round."""
    journal = Journal.load(path)
    found = []
    for number, note in enumerate(journal.notes):
        if note.kind in ("intent", "round") and number % 9 == 4:
            found += [(note.step, number), (note.step, number + 1), (note.step + 1, number + 1)]
    return [m for m in found if m[0] <= len(journal.rows)]


def test_a_run_killed_at_any_moment_ends_like_one_that_was_not(whole, tmp_path):
    undisturbed, journal = whole
    assert undisturbed.evaluation.success
    places = moments(journal)
    assert len(places) >= 12
    for number, (calls, notes) in enumerate(places):
        path = tmp_path / str(number)
        path.write_bytes(journal.read_bytes())
        cut(path, calls, notes)
        lost = any(n.step == calls and n.kind == "intent" for n in Journal.load(path).notes)
        run = sh.run(small_task(ENVIRONMENTS[1]), AGENT, journal=path, resume=True)
        assert run.evaluation.success
        writes = [e.call for e in run.gateway.events if e.kind == "business"]
        assert writes == [e.call for e in undisturbed.gateway.events if e.kind == "business"]
        if not lost:
            assert [e.call for e in run.gateway.events] == [e.call for e in undisturbed.gateway.events]
            assert rounds(run.gateway) == rounds(undisturbed.gateway)


def test_a_finished_run_is_repeated_from_its_journal(whole):
    undisturbed, journal = whole
    again = sh.replay(journal)
    assert again.trace.digest == undisturbed.trace.digest
    assert again.end == "submitted"


def test_another_agent_s_journal_is_refused(whole, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(whole[1].read_bytes())
    with pytest.raises(InputError, match="journal of another agent"):
        sh.run(small_task(ENVIRONMENTS[1]), "mea:perfect/no-auditor", journal=path, resume=True)


def test_an_altered_checkpoint_is_found(whole, tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(whole[1].read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE notes SET body = replace(body, 'execute', 'blocked') WHERE kind = 'round'")
    with pytest.raises(InputError, match="altered or truncated at note"):
        Journal.load(path)


def test_a_terminal_report_stands_in_the_journal(whole):
    end = terminal(whole[0].gateway)
    assert end.end == "submitted"
    assert end.rounds == len(rounds(whole[0].gateway))
    assert end.spent["executor"].attempts + end.spent["auditor"].attempts == whole[0].gateway.used
    assert Journal.load(whole[1]).notes[-1].kind == "terminal"
