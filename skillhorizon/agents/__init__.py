"""Agents by name. An agent reaches a world only through the Gateway that it is handed.

A name is a plain one (``reference``) or ``family:argument``; a family makes its agents from the argument.
"""

from __future__ import annotations

from collections.abc import Callable

from skillhorizon.agents import mea, simulated
from skillhorizon.agents.models import ModelAgent
from skillhorizon.agents.protocol import Agent
from skillhorizon.agents.scripted import SCRIPTED
from skillhorizon.core.errors import InputError

AGENTS: dict[str, Agent] = {**SCRIPTED, **simulated.SIMULATED}
FAMILIES: dict[str, Callable[[str], Agent]] = {
    "mea": mea.family,
    "model": ModelAgent,
    "simulated": simulated.family,
}


def names() -> tuple[str, ...]:
    """Names of the agents, sorted; a family stands as ``family:…``."""
    return tuple(sorted([*AGENTS, *(f"{family}:…" for family in FAMILIES)]))


def agent(name: str) -> Agent:
    """The agent with this name; raises ``InputError`` for an unknown one."""
    if name in AGENTS:
        return AGENTS[name]
    family, colon, argument = name.partition(":")
    if colon and argument and family in FAMILIES:
        return FAMILIES[family](argument)
    raise InputError(f"unknown agent {name!r}; the agents are {', '.join(names())}")
