"""What several tests share: one small task per environment, and the command line in this process or in its own."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import skillhorizon as sh
from skillhorizon.cli import main
from skillhorizon.core.task import Task
from tests.toy import ENVIRONMENT as TOY

SMALLEST = "64K"
ENVIRONMENTS = sh.environments()
WITH_TOY = [*ENVIRONMENTS, TOY.name]
"""Task files and journals name their environment, so they exist for the registered ones alone."""


@cache
def small_task(env: str, seed: int = 0) -> Task:
    """Shared by many tests: open it, never change it."""
    return sh.generate(TOY if env == TOY.name else env, band=SMALLEST, seed=seed)


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """``python -m skillhorizon …`` in a process of its own."""
    line = [sys.executable, "-m", "skillhorizon", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


def told(capsys, *arguments: object) -> tuple[int, str, str]:
    """Status, standard output and standard error of a command in this process."""
    capsys.readouterr()
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def assert_refused(answer: tuple[int, str, str], *words: str) -> None:
    """Status 2, one clear line on standard error, nothing else."""
    status, out, err = answer
    assert (status, out) == (2, ""), answer
    assert err.startswith("skillhorizon: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
