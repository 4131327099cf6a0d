"""What the proofs over environments share: tasks, reference runs that are led astray, and the form of a mutation."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from skillhorizon import envs
from skillhorizon.core import generation
from skillhorizon.core.environment import Environment
from skillhorizon.core.evaluation import Evaluation
from skillhorizon.core.policy import Call, Memory, Policy, Refused, drive
from skillhorizon.core.task import Task, TaskConfig

SEED = 5
ENVIRONMENTS = envs.names()

Change = Callable[[Call, Memory], Call]


@cache
def calibrated(env: str, band: str, configuration: str) -> Task:
    """One calibrated task of a configuration, made once a session."""
    environment = envs.load(env)
    return generation.generate(environment, environment.config(band, configuration), SEED)[0]


def configurations(band: str, per_family: int | None = None) -> Iterator[tuple[str, str]]:
    """(environment, configuration) of a band: all, or the first few of each family."""
    for env in ENVIRONMENTS:
        environment = envs.load(env)
        for family in environment.families:
            chosen = [c.id for c in environment.configs(band) if c.family == family]
            yield from ((env, c) for c in chosen[:per_family])


class Bench:
    """A task on the bench: its Gateway without a budget, and ways to carry the reference out on it."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.gateway = task.open_unlimited()
        self.world: Any = self.gateway.world
        self.refused: Refused | None = None

    def reference(
        self, change: Change | None = None, policy: Policy | None = None, rng: random.Random | None = None
    ) -> Policy:
        """Carry the reference (or another policy) out; ``change`` may put another call in the place of one.

        Ends at the first refusal that the policy does not expect, which ``refused`` then holds.
        """
        policy = policy or self.task.environment.policy()

        def perform(call: Call) -> dict[str, Any]:
            call = change(call, policy.memory) if change else call
            return self.gateway.call(call.tool, call.arguments, module=call.module, goal=call.goal)

        try:
            drive(policy, perform, rng)
        except Refused as refused:
            self.refused = refused
        return policy

    def do(self, tool: str, **arguments: Any) -> Any:
        """A call that must be accepted; its result."""
        observation = self.gateway.call(tool, arguments)
        assert observation["ok"], observation
        return observation["result"]

    def assert_refused(self, code: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call that must be refused with this code and change nothing; its error."""
        before = self.gateway.state_digest()
        observation = self.gateway.call(tool, arguments)
        assert not observation["ok"], observation
        assert observation["error"]["code"] == code, observation
        assert self.gateway.state_digest() == before
        error: dict[str, Any] = observation["error"]
        return error

    def assert_recorded(self, code: str, goal: str | None) -> None:
        """The last event is a refusal that made and voided nothing: a failed check of ``goal``, or no check at all."""
        event = self.gateway.events[-1]
        assert (event.check, event.reason) == ((False, code) if goal else (None, None))
        assert event.goal == goal or not goal
        assert event.produced == event.invalidated == ()

    def evaluate(self) -> Evaluation:
        return self.task.environment.scoring.evaluate(self.world, self.task.blueprint.goal)

    def failing(self) -> set[str]:
        """Names of the predicates that fail, on any local goal or as a delivery requirement."""
        evaluation = self.evaluate()
        return {name for goal in evaluation.local for name in goal.failed} | set(evaluation.delivery_failed)


class Mutation(NamedTuple):
    """A wrong execution that fails exactly the predicates named, on the configurations to which it applies.

    ``act`` gets a fresh bench and carries everything out, wrong step included. ``fails`` names one predicate as a
    rule; more than one only where the specification says that they fall together.
    """

    name: str
    fails: frozenset[str]
    act: Callable[[Bench], None]
    applies: Callable[[TaskConfig], bool] = lambda config: True


def table(env: str) -> Any:
    """The environment's module of mutations: ``MUTATIONS`` and ``SURVIVORS``."""
    return importlib.import_module(f"tests.envs.{env}.mutations")


def assert_every_code_is_tried(environment: Environment, tried: set[tuple[str, str]]) -> None:
    """Each tool's declared refusals are among the (tool, code) tried, and each operation's two common ones."""
    for tool in environment.own_tools.values():
        common = ("bad_argument", "unknown_id") if tool.kind == "business" else ()
        assert {(tool.name, code) for code in (*tool.refusals, *common)} <= tried


def once(tool: str, make: Callable[[Call, Memory], Call | None]) -> Change:
    """A change of the first call of a tool for which ``make`` gives another one."""
    done = False

    def change(call: Call, memory: Memory) -> Call:
        nonlocal done
        if done or call.tool != tool:
            return call
        other = make(call, memory)
        done = other is not None
        return other or call

    return change
