"""Every script of every skill as a program: bad input is an error in JSON and status 2, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from skillhorizon import envs
from tests.envs.bench import ENVIRONMENTS

SCRIPTS = [
    pytest.param(path, id=f"{env}-{name}-{path.stem}")
    for env in ENVIRONMENTS
    for name, skill in envs.load(env).skills.skills.items()
    for file, path in skill.files.items()
    if file.startswith("scripts/")
]


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff\xfe\xfd", b'{"note":1}', b"[" * 100_000, b"9" * 5000],
    ids=["empty", "cut", "array", "not-text", "unknown-key", "deep", "long-number"],
)
@pytest.mark.parametrize("path", SCRIPTS)
def test_shell_form_refuses_with_an_error_and_status_2(path, text):
    done = subprocess.run([sys.executable, "-I", path], input=text, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, b"")
    answer = json.loads(done.stdout)
    assert list(answer) == ["error"]
    assert answer["error"]
