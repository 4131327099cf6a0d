"""The pipeline in a clone of its own, under a small profile, with a second environment beside finance."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TAKEN = (".dvc/config", ".dvcignore", ".gitignore", "dvc.yaml", "data/published", "data/tokenizer", "notebooks")
PARAMS = """
profile: quick
profiles:
  quick: {tasks: 1, bands: [64K]}
  paper: {tasks: 30, bands: [64K, 1M]}
environments: [finance, toy]
construct:
  finance: {first_seed: 1000000}
  toy: {first_seed: 1000000}
budget_factor: 0.5
processes: 1
compute: {engine: processes, address: null}
evaluate: {agents: [hasty], prefixes: [0.0, 0.5]}
agents:
  rules: {entry: brief}
  profiles: {hasty: {slip: 0.01, batch: 4}, steady: {slip: 0.001}}
mea: {tasks: 1, agents: [steady], slips: [0.0], recalls: [1.0], grid_band: 64K, grid_tasks: 1}
"""
OF_THE_SET = {"parameters", "tables", "horizons", "mea", "results", "trace_analysis", "report"}
"""The stages that rest on what all environments' sets and traces are."""


EVALUATED = {"evaluate@hasty-finance", "evaluate@hasty-toy"}


class Clone:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *command: str) -> str:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(self.folder)}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def dvc(self, *arguments: str) -> str:
        return self.run(sys.executable, "-m", "dvc", *arguments)

    def repro(self, *arguments: str) -> set[str]:
        """The stages that ran."""
        lines = self.dvc("repro", *arguments).splitlines()
        return {line.split("'")[1] for line in lines if line.startswith("Running stage")}

    def made(self) -> dict[str, bytes]:
        folders = [*(self.folder / "data" / name for name in ("tasks", "traces", "results")), self.folder / "figures"]
        files = [f for folder in folders for f in sorted(folder.rglob("*")) if f.is_file()]
        return {f.relative_to(self.folder).as_posix(): f.read_bytes() for f in [*files, self.folder / "dvc.lock"]}

    def change(self, old: str, new: str) -> None:
        path = self.folder / "params.yaml"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))


@pytest.fixture
def clone(tmp_path) -> Clone:
    for name in TAKEN:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, target)
    no_caches = shutil.ignore_patterns("__pycache__")
    envs = tmp_path / "skillhorizon" / "envs"
    shutil.copytree(ROOT / "skillhorizon", envs.parent, ignore=no_caches)
    shutil.copytree(ROOT / "tests" / "toy", envs / "toy", ignore=no_caches)
    for source in (envs / "toy").glob("*.py"):
        source.write_text(source.read_text().replace("tests.toy", "skillhorizon.envs.toy"))
    (tmp_path / "params.yaml").write_text(PARAMS)
    found = Clone(tmp_path)
    found.run("git", "init", "-q")
    return found


@pytest.mark.slow
def test_the_pipeline_runs_what_has_changed_and_repeats_to_the_byte(clone):
    everything = {"construct@finance", "construct@toy", "published", *EVALUATED, *OF_THE_SET}
    assert clone.repro() == everything
    made = clone.made()
    assert {
        "data/results/notebooks/01_construct_finance.ipynb",
        "data/results/measured/table06_overlap.csv",
        "data/results/published/table03.csv",
        "data/results/notebooks/05_mea.ipynb",
        "data/results/published/table01.csv",
        "data/results/measured/table01.csv",
        "data/results/report.html",
        "data/tasks/finance.parquet",
        "data/results/notebooks/02_evaluate_hasty_finance.ipynb",
        "data/traces/hasty/toy/prefixes.parquet",
        "data/traces/mea/rounds.parquet",
        "data/traces/reference/toy/events.parquet",
    } <= set(made)
    assert clone.repro() == set()
    assert str(clone.folder).encode() not in b"".join(made.values())

    assert clone.repro("-f") == everything
    assert clone.made() == made

    clone.change("toy: {first_seed: 1000000}", "toy: {first_seed: 2000000}")
    clone.change("paper: {tasks: 30", "paper: {tasks: 31")
    clone.change("processes: 1", "processes: 2")
    # the report is made again only where a number has changed, and another set may give the same ones
    assert clone.repro() | {"report"} == {"construct@toy", "evaluate@hasty-toy", *OF_THE_SET}
    changed = {name for name, data in clone.made().items() if data != made[name]}
    assert {name for name in changed if "finance" in name} == set()
    assert {"data/tasks/toy.parquet", "data/traces/hasty/toy/runs.parquet"} <= changed

    clone.change("hasty: {slip: 0.01", "hasty: {slip: 0.02")
    assert clone.repro("evaluate@hasty-toy", "evaluate@hasty-finance") == EVALUATED
    clone.change("steady: {slip: 0.001", "steady: {slip: 0.002")
    assert clone.repro("evaluate@hasty-toy", "evaluate@hasty-finance") == set()
