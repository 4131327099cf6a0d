"""Validation of released sets: what was altered is named, what was interrupted goes on, what was seen counts once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skillhorizon import cli, construct, taskset, validate
from skillhorizon.core.errors import InputError
from skillhorizon.params import load

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    """A small set as ``construct`` makes it: three DocOps tasks at 64K."""
    data = tmp_path_factory.mktemp("data")
    construct.construct("docs", load(ROOT / "params.yaml"), "quick", data)
    return data


def altered(released: Path, target: Path, changes: dict[int, dict[str, object]]) -> Path:
    """A copy of the set with other values in some rows."""
    copy = target / "data"
    subprocess.run(["cp", "-r", str(released), str(copy)], check=True)
    path = copy / "tasks" / "docs.parquet"
    found = pq.read_table(path)
    rows = found.to_pylist()
    for index, change in changes.items():
        rows[index] |= change
    pq.write_table(pa.Table.from_pylist(rows, found.schema), path)
    return copy


def test_a_set_as_it_was_made_is_valid(released, tmp_path):
    verdicts = validate.validate(released, tmp_path / "work", ["docs"])
    assert [v.faults for v in verdicts] == [[], [], []]
    assert [v.task for v in verdicts] == [row["id"] for row in taskset.rows(released, "docs")]
    (row,) = validate.summary(verdicts).to_dict("records")
    assert (row["env"], row["band"], row["tasks"], row["valid"]) == ("docs", "64K", 3, 3)


def test_what_was_altered_is_named(released, tmp_path):
    rows = taskset.rows(released, "docs")
    other = {1: {"digest": "0" * 64}, 2: {"A": rows[2]["A"] + 1}}
    data = altered(released, tmp_path, other)
    verdicts = validate.validate(data, tmp_path / "work", ["docs"])
    assert [v.faults for v in verdicts] == [
        [],
        ["the task that is built has another digest"],
        ["the task that is built has another digest"],  # the measures set the budget, so they are in the digest
    ]


def test_a_reference_run_that_differs_from_the_cached_one_is_named(released, tmp_path):
    data = altered(released, tmp_path, {})
    path = data / "traces" / "reference" / "docs" / "runs.parquet"
    runs = pq.read_table(path)
    rows = runs.to_pylist()
    rows[0]["trace_digest"] = "0" * 64
    pq.write_table(pa.Table.from_pylist(rows, runs.schema), path)
    first, *others = validate.validate(data, tmp_path / "work", ["docs"])
    assert first.faults == ["the trace_digest of the reference run differs from the cached one"]
    assert [v.faults for v in others] == [[], []]


def test_wrong_measures_are_named(released):
    """Beside a row whose digest was made to fit, each measure is compared with the reference run."""
    (row, *_), reference = taskset.rows(released, "docs"), {}
    wrong = row | {"R": row["R"] + 1}
    wrong["digest"] = taskset.unverified(wrong).digest
    faults = validate.examine(wrong, reference).faults
    assert f"R is {row['R']:,}, on record {row['R'] + 1:,}" in faults


def test_the_command_fails_and_names_the_task(released, tmp_path, capsys):
    data = altered(released, tmp_path, {0: {"seed": 1_000_999}})
    row = taskset.rows(data, "docs")[0]
    arguments = ["validate", "--env", "docs", "--data", str(data), "--work", str(tmp_path / "work"), "--processes", "1"]
    assert cli.main(arguments) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"{row['id']}: the task that is built has another digest"
    assert out[-1] == "3 tasks: 1 are not valid"
    assert cli.main([*arguments, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_what_was_seen_is_not_run_again(released, tmp_path, monkeypatch):
    work = tmp_path / "work"
    first = validate.validate(released, work, ["docs"])
    monkeypatch.setattr(validate, "examine", lambda *_: pytest.fail("it has been validated"))
    assert validate.validate(released, work, ["docs"]) == first
    monkeypatch.undo()
    monkeypatch.setattr(taskset, "code_digest", lambda *_: "other code")
    counted = []
    monkeypatch.setattr(validate, "examine", lambda row, *_: counted.append(row["id"]) or first[0])
    validate.validate(released, work, ["docs"])
    assert len(counted) == 3
    validate.validate(released, work, ["docs"], orders=2)
    assert len(counted) == 6


def test_killed_in_the_middle_it_goes_on(released, tmp_path):
    work = tmp_path / "work"
    command = [sys.executable, "-m", "skillhorizon", "validate", "--env", "docs", "--processes", "1", "--json"]
    command += ["--data", str(released), "--work", str(work)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while not list(work.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    seen = {path.name: path.stat().st_mtime_ns for path in work.glob("*.json")}
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["ok"] is True
    assert seen.items() <= {path.name: path.stat().st_mtime_ns for path in work.glob("*.json")}.items()


def test_a_missing_set_is_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="no t"):
        validate.validate(tmp_path, tmp_path / "work", ["docs"])
