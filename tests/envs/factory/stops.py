"""A reference run of the plant that is stopped where a test wants to go on by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skillhorizon.core.policy import Call
from skillhorizon.envs import load
from tests.envs.bench import Bench, calibrated

EQUIPMENT, SELECTIVE, CONSTRAINED = (
    next(c.id for c in load("factory").configs("64K") if c.family == family) for family in load("factory").families
)


class Stopped(Exception):
    pass


def before(
    tool: str,
    where: Callable[[Bench, dict[str, Any]], bool] = lambda bench, arguments: True,
    configuration: str | None = EQUIPMENT,
) -> tuple[Bench, dict[str, Any]]:
    """A bench just before the first call of a tool for which ``where`` holds, and the arguments of that call.

    With no configuration given, in the first one whose reference makes such a call.
    """
    for config in [configuration] if configuration else [c.id for c in load("factory").configs("64K")]:
        bench = Bench(calibrated("factory", "64K", config))
        held: dict[str, Any] = {}

        def stop(call: Call, memory: Any, bench: Bench = bench, held: dict[str, Any] = held) -> Call:
            if call.tool == tool and where(bench, call.arguments):
                held.update(call.arguments)
                raise Stopped
            return call

        try:
            bench.reference(stop)
        except Stopped:
            return bench, held
    raise AssertionError(f"no such call of {tool}")


def upper(bench: Bench, arguments: dict[str, Any]) -> bool:
    """An order that takes units of others."""
    return bench.world.order(arguments["order_id"]).level > 1


def order_of(bench: Bench, batch: str) -> Any:
    return bench.world.order(bench.world.artifacts[batch].subject)


def regrade(bench: Bench, unit_id: str, verdict: str) -> dict[str, Any]:
    """Give the verdicts of a unit's batch version again, with another one on this unit."""
    unit = bench.world.unit(unit_id)
    batch = f"{unit.batch_id}@{unit.version}"
    verdicts = {u.unit_id: u.verdict for u in bench.world.units_in(bench.world.artifacts[batch])}
    return {"batch": batch, "calibration": unit.calibration, "verdicts": {**verdicts, unit_id: verdict}}
