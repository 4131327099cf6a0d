"""Scoring of FactoryOps: the final state against what the units truly are (Table 8)."""

from __future__ import annotations

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.envs.factory.build import FactoryGoal
from skillhorizon.envs.factory.records import GRADES
from skillhorizon.envs.factory.world import FactoryWorld

scoring = Scoring("order", lambda goal: goal.orders)


@scoring.local(idle=False)
def quantity(world: FactoryWorld, goal: FactoryGoal, order_id: str) -> Reason:
    """As many units are accepted as the order asks for."""
    wanted, accepted = world.order(order_id).quantity, world.progress(order_id).accepted
    return None if accepted >= wanted else f"{accepted} of {wanted} units are accepted"


@scoring.local(idle=True)
def conforming(world: FactoryWorld, goal: FactoryGoal, order_id: str) -> Reason:
    """Every accepted unit truly keeps its tolerances."""
    for unit in map(world.unit, world.units_of[order_id]):
        if unit.accepted and world.true_grade(unit) not in GRADES:
            return f"{unit.unit_id} is accepted and does not conform"
    return None


@scoring.local(idle=True)
def graded(world: FactoryWorld, goal: FactoryGoal, order_id: str) -> Reason:
    """Every accepted unit that conforms bears its true grade."""
    for unit in map(world.unit, world.units_of[order_id]):
        if unit.accepted and world.true_grade(unit) in set(GRADES) - {unit.verdict}:
            return f"{unit.unit_id} is not of grade {unit.verdict}"
    return None


@scoring.delivery(idle=False)
def terminal_dispatch(world: FactoryWorld, goal: FactoryGoal) -> Reason:
    """Each terminal order has a shipment, and no accepted terminal unit is left behind."""
    for order in world.by_level[None]:
        if order.terminal and not world.progress(order.order_id).shipped:
            return f"{order.order_id} has no shipment"
        if order.terminal and world.free_units[order.order_id]:
            return f"{next(iter(world.free_units[order.order_id]))} is not shipped"
    return None


@scoring.delivery(idle=False)
def material_balance(world: FactoryWorld, goal: FactoryGoal) -> Reason:
    """The latest close equals the final totals of every level."""
    close = world.newest_of("close", world.plan_id)
    if close is None:
        return "production is not closed"
    wrong = [row.level for row in close.content.levels if not world.agrees(row)]
    return f"{close.ref} differs from the totals of level {wrong[0]}" if wrong else None


@scoring.delivery(idle=True)
def equipment_released(world: FactoryWorld, goal: FactoryGoal) -> Reason:
    """No booking and no allocation is left open."""
    left = [*world.bookings["open"], *world.open_allocations]
    return f"{left[0]} is left open" if left else None


@scoring.delivery(idle=True)
def rework_justified(world: FactoryWorld, goal: FactoryGoal) -> Reason:
    """Every reworked unit truly needed the bench."""
    for unit in map(world.unit, world.reworked_units):
        if not world.justly_reworked(unit):
            return f"{unit.unit_id} did not need its rework"
    return None
