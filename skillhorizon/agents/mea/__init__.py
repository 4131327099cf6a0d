"""Manage, execute, audit: an agent that keeps the state of its task apart from execution.

``mea:<profile>`` has scripted roles, the executor with the failure rates of a simulated profile. Ablations follow
after slashes: ``mea:steady/no-auditor``, ``/no-ledger``, ``/no-fresh-context``. ``mea:model:<name>`` has a model in
each role.
"""

from __future__ import annotations

from collections.abc import Callable

from skillhorizon.agents import models
from skillhorizon.agents.harness import AsyncMind, Mind
from skillhorizon.agents.mea.audits import ScriptedAuditor
from skillhorizon.agents.mea.hands import Faithful, Hand, Simulated
from skillhorizon.agents.mea.loop import Limits, Mea, Roles
from skillhorizon.agents.mea.minds import MindAuditor, MindExecutor, MindManager
from skillhorizon.agents.mea.roles import Auditor
from skillhorizon.agents.mea.scripted import ScriptedExecutor, ScriptedManager, TrustingManager
from skillhorizon.agents.simulated import PROFILES, Profile
from skillhorizon.core.errors import InputError
from skillhorizon.core.ids import stream
from skillhorizon.core.task import Task

OVERSIGHT = 0.05
"""That the scripted auditor takes a wrong call for the right one."""
ABLATIONS = ("no-auditor", "no-ledger", "no-fresh-context")
PERFECT = "perfect"


def _models(name: str) -> Callable[[], Mind | AsyncMind]:
    """Minds that are one model; ``InputError`` where it cannot be used."""
    model = models.load(name)
    return lambda: models.ModelMind(model)


MINDS: dict[str, Callable[[str], Callable[[], Mind | AsyncMind]]] = {"model": _models}
"""Kind of mind -> what makes those of a name."""


def simulated(
    profile: Profile | None,
    name: str = "",
    *,
    auditor: bool = True,
    ledger: bool = True,
    fresh: bool = True,
    oversight: float = OVERSIGHT,
    limits: Limits | None = None,
) -> Mea:
    """Scripted roles, the executor with the failure rates of a profile; without one it makes no mistake."""

    def team(task: Task, seed: int) -> Roles:
        policy, confusions = task.environment.policy, task.environment.confusions
        hand: Hand = Faithful()
        if profile is not None:
            rng = stream("hand", name, task.id, seed)
            hand = Simulated(profile, confusions, task.environment.tools, rng)
        executor = ScriptedExecutor(policy, hand, fresh)
        if not auditor:
            return Roles(TrustingManager(), executor, None)
        missed = 0.0 if profile is None else oversight
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


def auditors(name: str, task: Task, seed: int = 0) -> Callable[[], Auditor]:
    """Makes auditors of a task without a memory: ``scripted``, or a model as ``model:<name>``."""
    kind, colon, argument = name.partition(":")
    if name == "scripted":
        return lambda: ScriptedAuditor(task.environment.policy, seed, OVERSIGHT)
    if not colon or kind not in MINDS:
        raise InputError(f"unknown auditor {name!r}; there are scripted, {', '.join(f'{k}:…' for k in MINDS)}")
    make = MINDS[kind](argument)
    return lambda: MindAuditor(make())


def family(argument: str) -> Mea:
    """The agent ``mea:<argument>``."""
    kind, colon, name = argument.partition(":")
    if colon:
        if kind not in MINDS:
            known = ", ".join(f"mea:{k}:…" for k in MINDS) or "none"
            raise InputError(f"no minds of the kind {kind!r} for mea:{argument}; there are {known}")
        return minded(MINDS[kind](name))
    profile, *ablations = argument.split("/")
    if unknown := [a for a in ablations if a not in ABLATIONS]:
        raise InputError(f"unknown ablation {unknown[0]!r}; the ablations are {', '.join(ABLATIONS)}")
    if profile != PERFECT and profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r} for mea:{argument}; they are {', '.join([PERFECT, *PROFILES])}")
    return simulated(
        PROFILES.get(profile),
        profile,
        auditor="no-auditor" not in ablations,
        ledger="no-ledger" not in ablations,
        fresh="no-fresh-context" not in ablations,
    )
