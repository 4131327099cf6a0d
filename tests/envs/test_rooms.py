"""Whoever knows one environment knows all: the same rooms everywhere, and nothing beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillhorizon import envs

REQUIRED = {
    "__init__",
    "records",
    "rules",
    "world",
    "queries",
    "tools",
    "policy",
    "mistakes",
    "build",
    "goals",
}
WHERE_NEEDED = {"seed", "catalog", "plan"}


@pytest.mark.parametrize("env", envs.names())
def test_an_environment_has_the_rooms_of_all_others(env):
    folder = Path(envs.__file__).parent / env
    rooms = {path.stem for path in folder.glob("*.py")}
    assert rooms >= REQUIRED
    assert rooms - REQUIRED <= WHERE_NEEDED
    assert {path.name for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"} == {"skills"}


@pytest.mark.parametrize("env", envs.names())
def test_queries_only_read_and_tools_only_change(env):
    module = f"skillhorizon.envs.{env}."
    kinds: dict[str, set[str]] = {"queries": set(), "tools": set()}
    for tool in envs.load(env).own_tools.values():
        kinds[tool.function.__module__.removeprefix(module)].add(tool.kind)
    assert kinds == {"queries": {"query"}, "tools": {"business"}}
