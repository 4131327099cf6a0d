"""Whether skill packages keep the Agent Skills format and their scripts keep the house's contract.

The format is judged by its public validator (``skills-ref``). The contract is that of a shell: on input that a script
cannot take it prints one JSON object with ``error`` and exits with status 2.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

BAD_INPUTS = (b"no JSON", b"[]", b'{"no such field": 0}')
_SECONDS = 60


class SkillReport(NamedTuple):
    skill: str
    scripts: int
    problems: list[str]


def check_folder(folder: Path) -> Iterator[SkillReport]:
    """One report per package in a folder of packages, by name."""
    for package in sorted(p for p in folder.iterdir() if p.is_dir()):
        scripts = sorted(package.glob("scripts/*.py"))
        yield SkillReport(package.name, len(scripts), [*_format(package), *(f for s in scripts for f in _contract(s))])


def _format(package: Path) -> list[str]:
    from skills_ref import validate

    try:
        return [" ".join(problem.split()) for problem in validate(package)]
    except UnicodeDecodeError as error:
        return [f"SKILL.md is not UTF-8 ({error.reason})"]


def _contract(script: Path) -> Iterator[str]:
    for data in BAD_INPUTS:
        what = f"{script.name} on {data.decode()!r}"
        try:
            done = subprocess.run([sys.executable, str(script)], input=data, capture_output=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            yield f"{what} does not end within {_SECONDS} s"
            continue
        if done.returncode != 2:
            yield f"{what} exits with status {done.returncode}, not 2"
        elif done.stderr:
            yield f"{what} writes to standard error"
        elif not _says_error(done.stdout):
            yield f"{what} does not print one JSON object with `error`"


def _says_error(output: bytes) -> bool:
    try:
        answer = msgspec.json.decode(output)
    except msgspec.DecodeError:
        return False
    return isinstance(answer, dict) and isinstance(answer.get("error"), str) and bool(answer["error"])
