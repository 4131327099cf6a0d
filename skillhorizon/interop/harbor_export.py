"""Tasks as folders of Harbor (schema 1.4): ``harbor run -p DIR``.

The world runs in a service of its own beside the agent's container, which holds neither this package nor the task
file: from both the goal could be built again. The agent gets the brief, the skills and the MCP server. The solution
makes the calls of the reference run through that server; the verifier, in a container of its own, scores the journal.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from importlib import resources
from importlib.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec

from skillhorizon import api
from skillhorizon.core.errors import InputError
from skillhorizon.core.generation import run_policy
from skillhorizon.core.task import Task, TaskFile
from skillhorizon.interop.mcp_server import instructions

SCHEMA = "1.4"
URL = "http://world:8000/mcp"
RUN, SNAPSHOT = "/journal/run.sqlite", "/journal/final.sqlite"
SECONDS_A_CALL = 20
"""Time that an agent has for each call of the allowance, thinking included."""

COLLECT = f"python /snapshot.py {RUN} {SNAPSHOT}"


def export(files: Iterable[TaskFile], folder: str | Path) -> list[Path]:
    """Write a folder for each task below ``folder``, which must not exist or be empty; return them."""
    folder = Path(folder)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise InputError(f"{folder} exists already and is not an empty folder")
    written = []
    for file in files:
        task = api.rebuild(file, "a task")
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / directory_name(task)
        partial = folder / f".{target.name}"
        _write(task, partial)
        partial.rename(target)
        written.append(target)
    if written:
        for name in ("README.md", "skillhorizon.Dockerfile"):
            (folder / name).write_text((_templates() / name).read_text(encoding="utf-8"), encoding="utf-8")
    return written


def directory_name(task: Task) -> str:
    return task.id.lower().replace("/", "-")


def _write(task: Task, folder: Path) -> None:
    for part in ("environment", "solution", "tests"):
        _copy(_templates() / part, folder / part)
    for script in ("solution/solve.sh", "tests/test.sh"):
        (folder / script).chmod(0o755)
    task.save(folder / "environment/world/task.json")
    for skill in task.environment.skills.skills.values():
        for path, source in skill.files.items():
            copied = folder / "environment/skills" / skill.name / path
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copied)
    (folder / "instruction.md").write_text(_instruction(task), encoding="utf-8")
    (folder / "task.toml").write_text(_configuration(task), encoding="utf-8")
    (folder / "tests/task_id").write_text(task.id + "\n", encoding="utf-8")
    with (folder / "solution/calls.jsonl").open("w", encoding="utf-8") as lines:
        for event in run_policy(task).trace.raw:
            call = msgspec.json.decode(event.call)
            print(json.dumps({**call, "ok": event.ok}, ensure_ascii=False, sort_keys=True), file=lines)


def _instruction(task: Task) -> str:
    brief = msgspec.json.format(msgspec.json.encode(task.brief, order="sorted"), indent=2).decode()
    return (
        f"{instructions(task)}\n\n"
        f"The MCP server is `skillhorizon` ({URL}). The skills that the brief names are in `/skills`.\n\n"
        f"The brief:\n\n```json\n{brief}\n```\n"
    )


def _configuration(task: Task) -> str:
    config = task.config
    tables: list[tuple[str, dict[str, Any]]] = [
        ("", {"schema_version": SCHEMA}),
        (
            "[task]",
            {
                "name": f"skillhorizon/{directory_name(task)}",
                "version": task.digest[:12],
                "description": f"A business task of {task.environment.title}, band {config.band}.",
                "keywords": ["long-horizon", "business", config.env],
            },
        ),
        (
            "[metadata]",
            {
                "environment": config.env,
                "family": config.family,
                "configuration": config.id,
                "band": config.band,
                "workload_tokens": task.workload,
                "budget": task.budget,
            },
        ),
        ("[agent]", {"timeout_sec": float(max(3600, SECONDS_A_CALL * task.budget)), "user": "agent"}),
        ("[environment]", {"build_timeout_sec": 1200.0, "skills_dir": "/skills"}),
        ("[[environment.mcp_servers]]", {"name": "skillhorizon", "transport": "streamable-http", "url": URL}),
        ("[verifier]", {"environment_mode": "separate", "timeout_sec": 1800.0}),
        ("[verifier.environment]", {"build_timeout_sec": 1200.0}),
        ("[[verifier.collect]]", {"service": "world", "command": COLLECT}),
        ("[[artifacts]]", {"service": "world", "source": SNAPSHOT}),
    ]
    blocks = ["\n".join([title, *(f"{key} = {json.dumps(value)}" for key, value in t.items())]) for title, t in tables]
    return "\n\n".join(blocks).lstrip() + "\n"


def _templates() -> Traversable:
    return resources.files("skillhorizon.interop") / "harbor_files"


def _copy(source: Traversable, target: Path) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        for child in source.iterdir():
            if child.name != "__pycache__":
                _copy(child, target / child.name)
    else:
        target.write_bytes(source.read_bytes())
