"""Scoring the final state: local goals, delivery requirements, LGC and TS (paper C.1, Table 8).

An environment declares named predicates. Each says whether doing nothing passes it (``idle``), and a test holds it to
that. A predicate answers None when it is met and otherwise the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from skillhorizon.core.world import World

Reason = str | None
LocalTest = Callable[[Any, Any, str], Reason]
DeliveryTest = Callable[[Any, Any], Reason]


class Predicate(NamedTuple):
    name: str
    idle: bool
    test: Callable[..., Reason]


def _declare(predicates: list[Predicate], idle: bool, test: Callable[..., Reason]) -> None:
    if any(p.name == test.__name__ for p in predicates):
        raise TypeError(f"two predicates are called {test.__name__}: one verdict would hide the other")
    predicates.append(Predicate(test.__name__, idle, test))


class GoalResult(msgspec.Struct, frozen=True):
    """One local goal, met when no predicate failed; ``failed`` gives the reason of each that did."""

    goal: str
    failed: dict[str, str]

    @property
    def met(self) -> bool:
        return not self.failed


class Requirement(msgspec.Struct, frozen=True):
    """One delivery requirement of the whole task."""

    name: str
    reason: str | None

    @property
    def met(self) -> bool:
        return self.reason is None


class Evaluation(msgspec.Struct, frozen=True):
    """``lgc`` is the share of local goals met, from 0 to 1; ``success`` wants all of them and every delivery."""

    local: list[GoalResult]
    delivery: list[Requirement]

    @property
    def goals_met(self) -> int:
        return sum(g.met for g in self.local)

    @property
    def lgc(self) -> float:
        return self.goals_met / len(self.local)

    @property
    def success(self) -> bool:
        return self.goals_met == len(self.local) and all(r.met for r in self.delivery)

    @property
    def delivery_failed(self) -> list[str]:
        return [r.name for r in self.delivery if not r.met]


class Scoring:
    """The evaluator of one environment.

    kind      the kind of its local goals: goal ``kind:subject``
    subjects  the subjects that a task's private goal requires, in order
    """

    def __init__(self, kind: str, subjects: Callable[[Any], Iterable[str]]) -> None:
        self.kind = kind
        self._subjects = subjects
        self.local_predicates: list[Predicate] = []
        self.delivery_predicates: list[Predicate] = []

    def local(self, *, idle: bool) -> Callable[[LocalTest], LocalTest]:
        """Declare ``test(world, goal, subject)``; ``idle`` says whether doing nothing passes it."""

        def declare(test: LocalTest) -> LocalTest:
            _declare(self.local_predicates, idle, test)
            return test

        return declare

    def delivery(self, *, idle: bool) -> Callable[[DeliveryTest], DeliveryTest]:
        """Declare ``test(world, goal)``; ``idle`` says whether doing nothing passes it."""

        def declare(test: DeliveryTest) -> DeliveryTest:
            _declare(self.delivery_predicates, idle, test)
            return test

        return declare

    def check_declaration(self, goal: Any) -> None:
        """An empty criterion would score full marks for nothing: refuse it when the task is loaded (``ValueError``)."""
        subjects = list(self._subjects(goal))
        if not subjects:
            raise ValueError("the task requires no local goal")
        if len(set(subjects)) < len(subjects):
            raise ValueError("the task requires a local goal twice")
        for kind, predicates in (("local", self.local_predicates), ("delivery", self.delivery_predicates)):
            if all(p.idle for p in predicates):
                raise ValueError(f"doing nothing would pass every {kind} predicate")

    def evaluate(self, world: World, goal: Any) -> Evaluation:
        local = []
        for subject in self._subjects(goal):
            reasons = {p.name: p.test(world, goal, subject) for p in self.local_predicates}
            failed = {name: reason for name, reason in reasons.items() if reason is not None}
            local.append(GoalResult(f"{self.kind}:{subject}", failed))
        delivery = [Requirement(p.name, p.test(world, goal)) for p in self.delivery_predicates]
        return Evaluation(local, delivery)
