"""The business environments, found by their folders."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from skillhorizon.core.environment import Environment
from skillhorizon.core.errors import InputError


@cache
def names() -> tuple[str, ...]:
    """Names of the environments, sorted."""
    return tuple(sorted(p.parent.name for p in Path(__file__).parent.glob("*/build.py")))


@cache
def load(name: str) -> Environment:
    """The environment; raises ``InputError`` for an unknown name."""
    environment: Environment = import_module(f"{__name__}.{folder(name).name}").ENVIRONMENT
    return environment


def folder(name: str) -> Path:
    """Where the environment lies; raises ``InputError`` for an unknown name."""
    if name not in names():
        raise InputError(f"unknown environment {name!r}; the environments are {', '.join(names())}")
    return Path(__file__).parent / name
