"""Roles that do what a test tells them, on the mail room of the toy environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import msgspec

from skillhorizon.agents.mea.loop import Limits, Mea, Roles
from skillhorizon.agents.mea.roles import Changes, Desk, View
from skillhorizon.agents.mea.state import (
    Audit,
    Contract,
    Criterion,
    Decision,
    Finding,
    Report,
    Requirement,
    Round,
    Terminal,
)
from skillhorizon.agents.protocol import Outcome
from skillhorizon.core.gateway import Gateway
from tests.support import TOY, small_task

TASK = small_task(TOY.name)
DEPOT = TASK.brief["depot"]
ROUTES = list(TASK.blueprint.tables["routes"])
PARCELS = list(TASK.blueprint.tables["parcels"])


class Told:
    """Answers of a role, one a turn; the last one again and again. An exception among them is raised."""

    def __init__(self, *answers: Any) -> None:
        self._answers: Iterator[Any] = iter([*answers[:-1]])
        self._last = repeat(answers[-1])
        self.turns: list[tuple[Any, ...]] = []

    def _turn(self, *seen: Any) -> Any:
        self.turns.append(seen)
        answer = next(self._answers, None) or next(self._last)
        if isinstance(answer, Exception):
            raise answer
        return answer(*seen) if callable(answer) else answer


class ToldManager(Told):
    def decide(self, view: View, desk: Desk) -> Decision:
        return self._turn(view, desk)


class ToldExecutor(Told):
    def execute(self, task: Any, contract: Contract, desk: Desk) -> Report:
        return self._turn(contract, desk)


class ToldAuditor(Told):
    def audit(self, task: Any, contract: Contract, report: Report, changes: Changes, desk: Desk) -> Audit:
        return self._turn(contract, report, changes, desk)


def needed(name: str, *objects: str) -> Requirement:
    return Requirement(name, f"see to {name}", source=(DEPOT,), objects=objects)


def work(*names: str, calls: int = 10, **fields: Any) -> Decision:
    """A contract for these requirements, which it names for the first time."""
    criteria = tuple(Criterion(name, f"{name} is seen to") for name in names)
    contract = Contract("see to it", criteria, calls, **fields)
    return Decision("execute", contract=contract, requirements=tuple(needed(name, *names) for name in names))


DONE = Decision("done")


def passed(*names: str, evidence: tuple[int, ...] = (1,), **fields: Any) -> Audit:
    findings = tuple(Finding(name, "completed", evidence) for name in names)
    return Audit("complete", "clean", findings=findings, verified=evidence, **fields)


def failed(*names: str, **fields: Any) -> Audit:
    return Audit("incomplete", "clean", findings=tuple(Finding(name, "pending") for name in names), **fields)


def calling(*calls: tuple[str, dict[str, Any]], end: str = "finished") -> Callable[[Contract, Desk], Report]:
    """An executor's turn that makes these calls."""

    def turn(contract: Contract, desk: Desk) -> Report:
        for name, arguments in calls:
            desk.call(name, arguments)
        return Report(end=end)  # type: ignore[arg-type]

    return turn


READ = ("list_routes", {})


def quote(parcel_id: str, cents: int | None = None) -> tuple[str, dict[str, Any]]:
    """The call that quotes a parcel without a companion."""
    world = TASK.world()
    parcel = world.tables["parcels"][parcel_id]
    rate = next(r for r in world.tables["rates"].values() if r.zone == parcel.zone)
    window = max(world.tables["windows"], key=world.windows.free)
    right = world.true_price(parcel) if cents is None else cents
    return (
        "quote_parcel",
        {"parcel_id": parcel_id, "rate_id": rate.rate_id, "cents": right, "place": {"window_id": window}},
    )


ALONE = [p for p in PARCELS if TASK.blueprint.tables["parcels"][p].companion is None]


def run(
    manager: Any, executor: Any = None, auditor: Any = None, limits: Limits | None = None, **options: Any
) -> tuple[Outcome, Gateway]:
    gateway = options.pop("gateway", None) or TASK.open()
    roles = Roles(manager, executor or ToldExecutor(calling(READ)), auditor or ToldAuditor(failed("a")))
    return Mea(lambda task, seed: roles, limits, **options).act(TASK, gateway, 0), gateway


def rounds(gateway: Gateway) -> list[Round]:
    return [msgspec.json.decode(n.body, type=Round) for n in gateway.notes if n.kind == "round"]


def terminal(gateway: Gateway) -> Terminal:
    (note,) = [n for n in gateway.notes if n.kind == "terminal"]
    return msgspec.json.decode(note.body, type=Terminal)
