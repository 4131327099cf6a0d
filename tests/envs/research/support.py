"""What the tests of ResearchOps share: small tasks, and the reference stopped before one of its calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from skillhorizon import envs
from skillhorizon.core.policy import Call, Memory
from skillhorizon.core.task import Task
from tests.envs.bench import Bench

RESEARCH = envs.load("research")
CORRECTIONS = "identity-compatibility/heavy/chain-join"
RETRACTIONS = "study-retraction/heavy/chain-join"
WITHDRAWALS = "ambiguity-withdrawal/heavy/chain-join"


@cache
def small(configuration: str = CORRECTIONS, seed: int = 1) -> Task:
    """A task of twenty works, not calibrated; open it, never change it."""
    return RESEARCH.build(RESEARCH.config("64K", configuration), seed)


class _Stop(Exception):
    pass


def before(
    tool: str, when: Callable[[dict[str, Any], Any], bool] = lambda given, world: True, task: Task | None = None
) -> tuple[Bench, dict[str, Any]]:
    """The bench just before the reference's first call of a tool that ``when`` accepts, and that call's arguments."""
    bench = Bench(task or small())
    found: list[dict[str, Any]] = []

    def stop(call: Call, memory: Memory) -> Call:
        if call.tool == tool and when(call.arguments, bench.world):
            found.append(call.arguments)
            raise _Stop
        return call

    try:
        bench.reference(stop)
    except _Stop:
        return bench, found[0]
    raise LookupError(f"the reference makes no such call of {tool}")


def in_last_round(given: dict[str, Any], world: Any) -> bool:
    return bool(world.open_id == world.last)


def done(task: Task | None = None) -> Bench:
    """The bench after the whole reference."""
    bench = Bench(task or small())
    bench.reference()
    assert bench.evaluate().success
    return bench
