"""The folders for Harbor: what each holds, what the agent's container does not, and every script run as it would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import skillhorizon as sh
from skillhorizon.interop import harbor_export, task_files
from skillhorizon.interop.harbor_export import COLLECT, RUN, SNAPSHOT, URL
from tests.interop.bench import process
from tests.support import ENVIRONMENTS, assert_refused, small_task, told

FIRST = ENVIRONMENTS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    (written,) = harbor_export.export([small_task(FIRST).file()], tmp_path_factory.mktemp("harbor") / "out")
    return written


def shell(*line: object, **environment: object) -> subprocess.CompletedProcess[str]:
    """A script of the folder; ``skillhorizon`` is this one."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, **{k: str(v) for k, v in environment.items()}}
    return subprocess.run([*map(str, line)], capture_output=True, text=True, env=environ, timeout=120)


def snapshot(folder: Path, run: Path, copy: Path) -> None:
    """The command of the collect hook, with paths of ours."""
    line = COLLECT.replace("/snapshot.py", str(folder / "environment/world/snapshot.py"))
    assert shell(*line.replace(RUN, str(run)).replace(SNAPSHOT, str(copy)).split()).returncode == 0


def test_the_configuration_names_server_skills_and_what_is_scored(folder):
    task = small_task(FIRST)
    config = tomllib.loads((folder / "task.toml").read_text())
    assert config["schema_version"] == "1.4"
    assert config["environment"]["mcp_servers"] == [
        {"name": "skillhorizon", "transport": "streamable-http", "url": URL}
    ]
    assert config["environment"]["skills_dir"] == "/skills"
    assert (config["metadata"]["budget"], config["metadata"]["workload_tokens"]) == (task.budget, task.workload)
    assert config["verifier"]["environment_mode"] == "separate"
    assert config["artifacts"] == [{"service": "world", "source": SNAPSHOT}]
    compose = yaml.safe_load((folder / "environment/docker-compose.yaml").read_text())
    assert set(compose["services"]) == {"main", "world"}
    text = (folder / "instruction.md").read_text()
    assert json.loads(text.partition("```json")[2].partition("```")[0]) == json.loads(json.dumps(task.brief))
    assert f"{task.budget} attempts" in text


def test_the_agents_container_gets_the_skills_and_neither_task_nor_package(folder):
    lines = (folder / "environment/Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith(("COPY", "ADD"))] == ["COPY skills /skills"]
    assert not [line for line in lines if line.startswith("RUN") and "pip" in line]
    copied = {p.relative_to(folder / "environment/skills").as_posix() for p in skill_files(folder)}
    skills = small_task(FIRST).environment.skills.skills.values()
    assert copied == {f"{s.name}/{path}" for s in skills for path in s.files}
    digest = small_task(FIRST).digest
    holding = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and digest in p.read_text()}
    assert holding == {"environment/world/task.json"}


def skill_files(folder: Path) -> list[Path]:
    return [p for p in (folder / "environment/skills").rglob("*") if p.is_file()]


def test_the_solution_through_the_server_earns_the_full_reward_and_nothing_earns_none(folder, tmp_path):
    task = small_task(FIRST)
    run, copy, logs = tmp_path / "run.sqlite", tmp_path / "final.sqlite", tmp_path / "logs"
    serve = (folder / "environment/world/Dockerfile").read_text()
    assert '"--shared"' in serve
    assert '"--resume"' in serve
    with process(folder / "environment/world/task.json", "--shared", "--journal", run, "--resume") as (_, url):
        snapshot(folder, run, copy)
        assert shell(folder / "tests/test.sh", JOURNAL=copy, LOGS=logs).returncode == 0
        assert json.loads((logs / "reward.json").read_text()) == {"reward": 0.0, "task_success": 0.0, "lgc": 0.0}
        solved = shell(folder / "solution/solve.sh", SKILLHORIZON_URL=url)
        assert solved.returncode == 0, solved.stderr
        snapshot(folder, run, copy)
    assert shell(folder / "tests/test.sh", JOURNAL=copy, LOGS=logs).returncode == 0
    assert json.loads((logs / "reward.json").read_text()) == {"reward": 1.0, "task_success": 1.0, "lgc": 1.0}
    assert task.measures is not None
    assert sh.replay(copy).gateway.used == task.measures.R


def test_where_there_is_no_verdict_there_is_no_reward(folder, tmp_path):
    broken, logs = tmp_path / "final.sqlite", tmp_path / "logs"
    for content in (None, b"no journal"):
        if content:
            broken.write_bytes(content)
        assert shell(folder / "tests/test.sh", JOURNAL=broken, LOGS=logs).returncode == 2
        assert not (logs / "reward.json").exists()
    other, journal = small_task(FIRST, 1), tmp_path / "other.sqlite"
    sh.run(other, "noop", journal=journal)
    answer = shell(folder / "tests/test.sh", JOURNAL=journal, LOGS=logs)
    assert answer.returncode == 1
    assert f"the journal of {other.id}" in answer.stderr
    assert not (logs / "reward.json").exists()


def test_the_solution_stops_where_the_world_answers_otherwise(folder, tmp_path):
    with process(folder / "environment/world/task.json", "--shared") as (_, url):
        changed = tmp_path / "solution"
        changed.mkdir()
        (changed / "solve.py").write_text((folder / "solution/solve.py").read_text())
        call = {"name": "no_such_tool", "arguments": {}, "ok": True}
        (changed / "calls.jsonl").write_text(json.dumps(call) + "\n")
        answer = shell(sys.executable, changed / "solve.py", SKILLHORIZON_URL=url)
    assert answer.returncode == 1
    assert "call 1 went another way" in answer.stderr


def test_the_command_writes_fresh_and_released_tasks_and_overwrites_nothing(tmp_path, capsys):
    out = tmp_path / "out"
    status, text, _ = told(capsys, "export", "harbor", "--out", out, "--env", FIRST, "--tasks", 2, "--json")
    assert status == 0
    written = json.loads(text)["tasks"]
    assert [Path(p).parent for p in written] == [out, out]
    assert sorted(p.name for p in out.iterdir() if p.is_file()) == ["README.md", "skillhorizon.Dockerfile"]
    exported = [sh.load_task(Path(p) / "environment/world/task.json").digest for p in written]
    assert exported == [small_task(FIRST, seed).digest for seed in (0, 1)]
    assert_refused(told(capsys, "export", "harbor", "--out", out, "--env", FIRST), "not an empty folder")
    assert_refused(
        told(capsys, "export", "harbor", "--out", tmp_path / "o", "--tasks", 0), "'0' is no positive whole number"
    )
    assert_refused(told(capsys, "export", "harbor", "--out", tmp_path / "o", "--env", "none"), "none")
    assert_refused(told(capsys, "export", "harbor", "--out", tmp_path / "o", "--set", tmp_path), "no task set at")
    assert not (tmp_path / "o").exists()


def test_released_tasks_are_those_of_the_set():
    folder = Path(__file__).parents[2] / "data"
    (file,) = task_files.chosen(FIRST, "64K", None, 1, 0, str(folder))
    assert sh.api.rebuild(file, "it").digest == file.digest
