from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from skillhorizon.core.errors import InputError
from skillhorizon.core.gateway import Event, Gateway
from skillhorizon.core.generation import run_policy
from skillhorizon.core.journal import Journal, Row
from skillhorizon.core.task import Task
from tests.toy import ENVIRONMENT

META = {"task": "toy", "seed": 7, "options": {"b": [1, None], "a": "ü"}}


@pytest.fixture
def calls(task: Task) -> list[Event]:
    """The reference's calls, and a few that are refused."""
    gateway = run_policy(task).gateway
    for name, arguments in (
        ("no_such_tool", 5),
        ("get_parcel", {"parcel_id": "\ud800"}),
        ("begin_skill", {"skill": "s"}),
    ):
        gateway.call(name, arguments)  # type: ignore[arg-type]
    gateway.call("quote_parcel", {}, role="read_only")
    return gateway.events


def make(gateway: Gateway, calls: list[Event]) -> None:
    for event in calls:
        call = msgspec.json.decode(event.call)
        gateway.call(call["name"], call["arguments"], module=event.module, goal=event.goal, role=event.role)


@pytest.fixture
def path(tmp_path: Path, task: Task, calls: list[Event]) -> Path:
    """A finished journal of the whole run."""
    journal = Journal.create(tmp_path / "run.sqlite", META)
    make(task.open(journal=journal), calls)
    journal.finish({"end": "submitted"})
    journal.close()
    return tmp_path / "run.sqlite"


def sql(path: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return [connection.execute(s).fetchall() for s in statements][-1]


def refusal(path: Path) -> str:
    """The one line by which a file is refused; nothing in its folder has changed."""
    before = {p: p.read_bytes() for p in path.parent.iterdir() if p.is_file()}
    with pytest.raises(InputError) as refused:
        Journal.load(path)
    assert {p: p.read_bytes() for p in path.parent.iterdir() if p.is_file()} == before
    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)
    return str(refused.value)


# -- what it holds -------------------------------------------------------------------------------------------------


def test_one_row_a_call_as_the_gateway_made_it(path, calls):
    rows = Journal.load(path).rows
    assert [b'{"arguments":%b,"name":%b}' % (r.arguments, msgspec.json.encode(r.name)) for r in rows] == [
        e.call for e in calls
    ]
    kept = ("step", "observation", "module", "goal", "decision", "position", "context_tokens", "role")
    assert [tuple(getattr(r, k) for k in kept) for r in rows] == [tuple(getattr(e, k) for k in kept) for e in calls]


def test_any_sqlite_client_can_read_calls_and_meta_as_text(path, calls):
    assert sql(path, "SELECT count(*), min(step), max(step) FROM calls") == [(len(calls), 1, len(calls))]
    assert sql(path, "SELECT name, arguments FROM calls WHERE step = 1") == [("read_task_brief", "{}")]
    assert sql(path, "SELECT value FROM meta WHERE key = 'options'") == [('{"a":"ü","b":[1,null]}',)]


def test_meta_and_end_come_back(path, tmp_path):
    journal = Journal.load(path)
    assert journal.meta == {**META, "journal_format": 1}
    assert journal.end == {"end": "submitted"}
    Journal.create(tmp_path / "other.sqlite", {}).close()
    assert Journal.load(tmp_path / "other.sqlite").end is None


def test_the_call_is_on_disk_before_its_observation_is_returned(task, tmp_path):
    journal = Journal.create(tmp_path / "j.sqlite", META)
    gateway = task.open(journal=journal)
    for n in range(1, 4):
        gateway.call("list_routes", {"limit": n})
        with closing(sqlite3.connect(tmp_path / "j.sqlite")) as other:
            assert other.execute("SELECT count(*) FROM calls").fetchone() == (n,)


def test_a_durable_journal_holds_the_same(task, calls, path, tmp_path):
    journal = Journal.create(tmp_path / "durable.sqlite", META, durable=True)
    make(task.open(journal=journal), calls)
    journal.close()
    assert Journal.load(tmp_path / "durable.sqlite").rows == Journal.load(path).rows


def test_two_gateways_over_two_journals_do_not_mix(task, tmp_path):
    gateways = [task.open(journal=Journal.create(tmp_path / f"{n}.sqlite", {"n": n})) for n in range(2)]
    for n in range(6):
        gateways[n % 2].call("list_routes", {"limit": 1 + n % 3})
    for n in range(2):
        journal = Journal.load(tmp_path / f"{n}.sqlite")
        assert journal.meta["n"] == n
        assert [r.arguments for r in journal.rows] == [b'{"limit":%d}' % (1 + m % 3) for m in range(6) if m % 2 == n]


# -- resuming ------------------------------------------------------------------------------------------------------


def begun(path: Path, task: Task, calls: list[Event], count: int) -> None:
    journal = Journal.create(path, META)
    make(task.open(journal=journal), calls[:count])
    journal.close()


@pytest.mark.parametrize("way", ["catch up", "repeat"])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_resumed_run_goes_on_to_the_same_events(task, calls, tmp_path, way, count):
    path = tmp_path / "run.sqlite"
    begun(path, task, calls, count)
    journal = Journal.load(path)
    gateway = task.open(journal=journal)
    assert gateway.replaying == (count > 0)
    if way == "catch up":
        gateway.catch_up()
        assert gateway.events == calls[:count]
        make(gateway, calls[count:])
    else:
        make(gateway, calls)
    journal.close()
    assert not gateway.replaying
    assert gateway.events == calls
    assert [r.observation for r in Journal.load(path).rows] == [e.observation for e in calls]


def test_an_agent_that_does_something_else_is_refused_and_nothing_is_written(task, calls, tmp_path):
    begun(tmp_path / "run.sqlite", task, calls, 10)
    journal = Journal.load(tmp_path / "run.sqlite")
    gateway = task.open(journal=journal)
    make(gateway, calls[:4])
    for _ in range(2):
        with pytest.raises(InputError, match=r"^call 5 differs from the journal"):
            gateway.call("list_notices")
    journal.close()
    assert len(Journal.load(tmp_path / "run.sqlite").rows) == 10


def test_a_call_in_other_words_with_the_same_answer_is_another_call(task, tmp_path):
    begun = Journal.create(tmp_path / "run.sqlite", META)
    task.open(journal=begun).call("list_routes", {})
    begun.close()
    with pytest.raises(InputError, match=r"^call 1 differs"):
        task.open(journal=Journal.load(tmp_path / "run.sqlite")).call("list_routes", {"limit": 5})


def test_a_world_that_answers_otherwise_is_refused(task, calls, tmp_path):
    begun(tmp_path / "run.sqlite", task, calls, 10)
    other = ENVIRONMENT.build(task.config, task.seed + 1, task.size)
    gateway = other.open(journal=Journal.load(tmp_path / "run.sqlite"))
    with pytest.raises(InputError, match="the observation of call 1 differs"):
        gateway.catch_up()


# -- what is not taken for a journal -------------------------------------------------------------------------------


def test_an_existing_file_is_never_created_over(tmp_path, path):
    (tmp_path / "empty").touch()
    for existing in (path, tmp_path / "empty", tmp_path):
        before = existing.read_bytes() if existing.is_file() else b""
        with pytest.raises(InputError, match="exists already"):
            Journal.create(existing, META)
        assert (existing.read_bytes() if existing.is_file() else b"") == before


def test_a_journal_needs_a_folder(tmp_path):
    with pytest.raises(InputError, match="cannot create"):
        Journal.create(tmp_path / "no" / "such" / "folder.sqlite", META)


@pytest.mark.parametrize(
    "alter",
    [
        "UPDATE calls SET observation = replace(observation, 'true', 'True') WHERE step = 5",
        "UPDATE calls SET arguments = '{\"limit\":1}' WHERE step = 5",
        "UPDATE calls SET name = 'list_routez' WHERE step = 5",
        "UPDATE calls SET module = 'None' WHERE step = 1",
        "UPDATE calls SET goal = 'g' WHERE step = 5",
        "UPDATE calls SET decision = 6 WHERE step = 5",
        "UPDATE calls SET position = 1 WHERE step = 5",
        "UPDATE calls SET context_tokens = 0 WHERE step = 5",
        "UPDATE calls SET role = 'read_only' WHERE step = 5",
        "UPDATE calls SET chain = '' WHERE step = 5",
        "UPDATE calls SET observation = x'ff' WHERE step = 5",
        "UPDATE calls SET name = x'ff' WHERE step = 5",
        "UPDATE calls SET module = x'6d' WHERE step = 5",
        "DELETE FROM calls WHERE step = 5",
        "DELETE FROM calls WHERE step = 1",
        "DELETE FROM calls WHERE step = (SELECT max(step) FROM calls)",
        "DELETE FROM calls",
        "UPDATE calls SET step = step + 1000",
        "UPDATE calls SET step = 1000 WHERE step = 5",
        "INSERT INTO calls SELECT step + 1000, name, arguments, observation, module, goal, decision, position, "
        "context_tokens, role, chain FROM calls WHERE step = 5",
    ],
)
def test_an_altered_or_missing_call_is_found(path, alter):
    sql(path, alter)
    assert "altered" in (said := refusal(path)) or "truncated" in said or "not a whole journal" in said


def test_a_call_of_another_run_in_the_same_place_is_found(task, tmp_path):
    """Both rows are whole by themselves; what came before them differs."""
    for name, limit in (("one", 1), ("two", 2)):
        journal = Journal.create(tmp_path / name, META)
        gateway = task.open(journal=journal)
        for arguments in ({"limit": limit}, {}, {}):
            gateway.call("list_routes", arguments)
        journal.close()
    sql(
        tmp_path / "one",
        f"ATTACH '{tmp_path / 'two'}' AS two",
        "DELETE FROM calls WHERE step = 3",
        "INSERT INTO calls SELECT * FROM two.calls WHERE step = 3",
        "UPDATE meta SET value = (SELECT value FROM two.meta WHERE key = 'head') WHERE key = 'head'",
    )
    assert "altered or truncated at call 3" in refusal(tmp_path / "one")


def test_an_altered_journal_whose_log_was_not_merged_is_left_as_it_was(path, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE calls SET goal = 'g' WHERE step = 5")
        for name in ("run.sqlite", "run.sqlite-wal"):
            shutil.copy(path.with_name(name), copy)
    before = {p: p.read_bytes() for p in copy.iterdir()}
    assert len(before[copy / "run.sqlite-wal"]) > 0
    with pytest.raises(InputError, match="altered or truncated at call 5"):
        Journal.load(copy / "run.sqlite")
    assert {p: p.read_bytes() for p in before} == before


@pytest.mark.parametrize(
    "alter",
    [
        "UPDATE meta SET value = '8' WHERE key = 'seed'",
        "UPDATE meta SET value = '\"toy \"' WHERE key = 'task'",
        "UPDATE meta SET key = 'seeds' WHERE key = 'seed'",
        "UPDATE meta SET value = '{\"end\":\"stopped\"}' WHERE key = 'end'",
        "DELETE FROM meta WHERE key = 'seed'",
        "DELETE FROM meta WHERE key = 'end'",
        "DELETE FROM meta WHERE key = 'seal'",
        "DELETE FROM meta WHERE key = 'head'",
        "DELETE FROM meta",
        "INSERT INTO meta VALUES ('more', '1')",
        "INSERT INTO meta VALUES (NULL, '1')",
        "INSERT INTO meta VALUES (x'ff', '1')",
        "UPDATE meta SET value = '2' WHERE key = 'journal_format'",
        "UPDATE meta SET value = '{' WHERE key = 'seed'",
        "UPDATE meta SET value = x'ff' WHERE key = 'seed'",
        "DROP TABLE meta",
        "DROP TABLE calls",
        "ALTER TABLE calls DROP COLUMN role",
        "CREATE TABLE other(x); DROP TABLE meta; CREATE TABLE meta(key, value); INSERT INTO meta VALUES (NULL, NULL)",
    ],
)
def test_an_altered_description_of_the_run_is_found(path, alter):
    sql(path, *alter.split(";"))
    assert str(path) in refusal(path)


def test_a_journal_of_another_format_is_named_as_such(path):
    sql(path, "UPDATE meta SET value = '2' WHERE key = 'journal_format'")
    assert "another format (2, not 1)" in refusal(path)


def test_a_file_cut_anywhere_is_found(path, tmp_path):
    whole = path.read_bytes()
    cut = tmp_path / "cut" / "run.sqlite"
    cut.parent.mkdir()
    for size in [0, 1, 15, 16, 99, 100, 4096, *range(4097, len(whole), len(whole) // 40), len(whole) - 1]:
        cut.write_bytes(whole[:size])
        assert str(cut) in refusal(cut)


def test_a_flipped_byte_in_a_call_is_found(path, calls):
    """In each page of the file, so that headers, cells and free space all have their turn."""
    whole, rows = path.read_bytes(), Journal.load(path).rows
    found = 0
    for place in range(150, len(whole), 997):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x04]) + whole[place + 1 :])
        try:
            journal = Journal.load(path)
        except InputError:
            found += 1
        else:
            assert (journal.rows, journal.meta) == (rows, {**META, "journal_format": 1})
    assert found > 20


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00", b"no database at all\n" * 500, b'{"format":1}'])
def test_what_is_no_sqlite_file_is_refused(tmp_path, content):
    (tmp_path / "run.sqlite").write_bytes(content)
    assert "not a whole journal" in refusal(tmp_path / "run.sqlite")


def test_a_database_of_something_else_is_refused_and_left_in_its_mode(tmp_path):
    path = tmp_path / "other.sqlite"
    sql(path, "PRAGMA journal_mode = DELETE", "CREATE TABLE meta(key, value)", "INSERT INTO meta VALUES (1, 2)")
    refusal(path)
    assert sql(path, "PRAGMA journal_mode") == [("delete",)]


def test_what_is_not_there_is_refused_and_not_made(tmp_path):
    for missing in (tmp_path / "run.sqlite", tmp_path):
        assert "no journal at" in refusal(missing)
    assert list(tmp_path.iterdir()) == []


def test_reading_a_journal_changes_nothing_beside_it(path):
    before = {p.name: p.read_bytes() for p in path.parent.iterdir()}
    Journal.load(path).close()
    assert {p.name: p.read_bytes() for p in path.parent.iterdir()} == before


# -- faults --------------------------------------------------------------------------------------------------------


def test_two_processes_cannot_write_into_one_journal(task, calls, path):
    first, second = (task.open(journal=Journal.load(path)) for _ in range(2))
    for gateway in (first, second):
        gateway.catch_up()
    first.call("list_routes")
    for _ in range(2):
        with pytest.raises(InputError, match=r"cannot write|closed"):
            second.call("list_notices")
    assert [r.name for r in Journal.load(path).rows][len(calls) :] == ["list_routes"]


def test_a_journal_that_cannot_be_written_takes_no_further_call(task, tmp_path):
    journal = Journal.create(tmp_path / "j.sqlite", META)
    gateway = task.open(journal=journal)
    gateway.call("list_routes")
    journal.close()
    for _ in range(2):
        with pytest.raises(InputError, match="is closed"):
            gateway.call("list_routes")
    assert len(gateway.events) == 1
    assert len(Journal.load(tmp_path / "j.sqlite").rows) == 1


def test_a_full_disk_loses_no_acknowledged_call(tmp_path):
    journal = Journal.create(tmp_path / "j.sqlite", META)
    row = Row(1, "n", b"{}", b'"' + b"x" * 3000 + b'"', None, None, 1, 0, None, "full")
    journal.append(row)
    assert journal._connection is not None
    journal._connection.execute("PRAGMA max_page_count = 8")
    acknowledged, said = [1], []
    for step in range(2, 12):
        try:
            journal.append(row._replace(step=step))
            acknowledged.append(step)
        except InputError as error:
            said.append(str(error))
    assert "is full" in said[0]
    assert all("is closed" in text for text in said[1:])
    assert len(said) > 1 < len(acknowledged)
    assert [r.step for r in Journal.load(tmp_path / "j.sqlite").rows] == acknowledged


CHILD = """
import sys
from skillhorizon.core.journal import Journal
from tests.toy import ENVIRONMENT

task = ENVIRONMENT.build(ENVIRONMENT.config("64K", "letters/chain"), 1, 12)
gateway = task.open(journal=Journal.create(sys.argv[1], {}))
while True:
    gateway.call("list_parcels", {"route_id": next(iter(gateway.world.tables["routes"]))})
    print(len(gateway.events), flush=True)
"""


def test_a_killed_process_loses_no_acknowledged_call(task, tmp_path):
    path = tmp_path / "run.sqlite"
    line = [sys.executable, "-c", CHILD, str(path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as child:
        assert child.stdout is not None
        for step in child.stdout:
            if int(step) == 300:
                child.kill()
                break
        acknowledged = int([step, *child.stdout.read().split()][-1])
    assert child.returncode == -signal.SIGKILL
    copy = tmp_path / "copy"
    copy.mkdir()
    for left in tmp_path.glob("run.sqlite*"):
        shutil.copy(left, copy)
    journal = Journal.load(path)
    assert len(journal.rows) >= acknowledged >= 300
    gateway = task.open(journal=journal)
    gateway.catch_up()
    gateway.call("list_routes")
    journal.close()
    assert len(Journal.load(path).rows) == len(gateway.events)
    assert len(Journal.load(copy / "run.sqlite").rows) == len(gateway.events) - 1
