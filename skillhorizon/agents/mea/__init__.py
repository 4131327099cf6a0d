"""Manage, execute, audit: an agent that keeps the state of its task apart from execution.

``mea:<profile>`` has scripted roles, the executor with a simulated profile. Ablations follow after a slash:
``mea:steady/no-auditor``, ``/no-ledger``, ``/no-fresh-context``.
"""

from __future__ import annotations

from skillhorizon.agents.mea.loop import Limits, Mea, Roles
from skillhorizon.agents.mea.scripted import (
    Faithful,
    Hand,
    ScriptedAuditor,
    ScriptedExecutor,
    ScriptedManager,
    TrustingManager,
)
from skillhorizon.core.task import Task

__all__ = ["Limits", "Mea", "Roles"]
