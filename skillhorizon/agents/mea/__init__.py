"""Manage, execute, audit: an agent that keeps the state of its task apart from execution.

``mea:<profile>`` has scripted roles, the executor with the failure rates of a simulated profile. Ablations follow
after slashes: ``mea:steady/no-auditor``, ``/no-ledger``, ``/no-fresh-context``. ``mea:model:<name>`` has a model in
each role.
"""

from __future__ import annotations

from collections.abc import Callable

from skillhorizon.agents.harness import AsyncMind, Mind
from skillhorizon.agents.mea.hands import Faithful, Hand, Rates, Simulated
from skillhorizon.agents.mea.loop import Limits, Mea, Roles
from skillhorizon.agents.mea.minds import MindAuditor, MindExecutor, MindManager
from skillhorizon.agents.mea.scripted import ScriptedAuditor, ScriptedExecutor, ScriptedManager, TrustingManager
from skillhorizon.core.errors import InputError
from skillhorizon.core.ids import stream
from skillhorizon.core.task import Task

OVERSIGHT = 0.05
"""That the scripted auditor takes a wrong call for the right one."""
ABLATIONS = ("no-auditor", "no-ledger", "no-fresh-context")
PERFECT = "perfect"
MINDS: dict[str, Callable[[str], Callable[[], Mind | AsyncMind]]] = {}
"""Kind of mind -> what makes those of a name: with ``model`` among them ``mea:model:<name>`` is an agent."""


def simulated(
    rates: Rates | None,
    *,
    auditor: bool = True,
    ledger: bool = True,
    fresh: bool = True,
    oversight: float = OVERSIGHT,
    limits: Limits | None = None,
) -> Mea:
    """Scripted roles, the executor with these failure rates; without any, it makes no mistake."""

    def team(task: Task, seed: int) -> Roles:
        policy, confusions = task.environment.policy, task.environment.confusions
        hand: Hand = Faithful() if rates is None else Simulated(rates, confusions, stream("hand", task.id, seed))
        executor = ScriptedExecutor(policy, hand, fresh)
        if not auditor:
            return Roles(TrustingManager(), executor, None)
        missed = 0.0 if rates is None else oversight
        return Roles(ScriptedManager(policy), executor, ScriptedAuditor(policy, seed, missed))

    return Mea(team, limits, ledger)


def minded(
    manager: Callable[[], Mind | AsyncMind],
    executor: Callable[[], Mind | AsyncMind] | None = None,
    auditor: Callable[[], Mind | AsyncMind] | None = None,
    limits: Limits | None = None,
) -> Mea:
    """A mind in each role, by default of the manager's kind, each of its own."""

    def team(task: Task, seed: int) -> Roles:
        return Roles(MindManager(manager()), MindExecutor((executor or manager)()), MindAuditor((auditor or manager)()))

    return Mea(team, limits)


def named(argument: str, rates_of: Callable[[str], Rates | None]) -> Mea:
    """The agent ``mea:<argument>``; ``rates_of`` gives the failure rates of a profile, or raises ``InputError``."""
    kind, colon, name = argument.partition(":")
    if colon:
        if kind not in MINDS:
            known = ", ".join(f"mea:{k}:…" for k in MINDS) or "none"
            raise InputError(f"no minds of the kind {kind!r} for mea:{argument}; there are {known}")
        return minded(MINDS[kind](name))
    profile, *ablations = argument.split("/")
    if unknown := [a for a in ablations if a not in ABLATIONS]:
        raise InputError(f"unknown ablation {unknown[0]!r}; the ablations are {', '.join(ABLATIONS)}")
    return simulated(
        None if profile == PERFECT else rates_of(profile),
        auditor="no-auditor" not in ablations,
        ledger="no-ledger" not in ablations,
        fresh="no-fresh-context" not in ablations,
    )


def family(argument: str) -> Mea:
    """The agent ``mea:<argument>``."""
    return named(argument, rates_of)


def rates_of(profile: str) -> Rates:
    """The failure rates of a simulated profile, as far as they concern one contract; ``InputError`` for no profile."""
    raise InputError(f"unknown profile {profile!r}")
