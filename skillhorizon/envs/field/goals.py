"""Scoring of FieldOps: the final state against what the rules of the trade give on the final records (Table 8)."""

from __future__ import annotations

import msgspec

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT
from skillhorizon.envs.field.records import SLOT_HOURS
from skillhorizon.envs.field.rules import required_kpa
from skillhorizon.envs.field.world import FieldWorld


class FieldGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which devices the system needs, and how many updates it must have seen."""

    devices: tuple[str, ...]
    updates: int


scoring = Scoring("case", lambda goal: goal.devices)


@scoring.local(idle=False)
def restored_and_tested(world: FieldWorld, goal: FieldGoal, device_id: str) -> Reason:
    """The latest repair is of the present episode; the latest test is of it, passed and is not void."""
    repair, test = world.newest_of("repair", device_id), world.newest_of("test", device_id)
    if repair is None or repair.status != CURRENT:
        return "no repair of the present fault"
    if test is None or test.inputs[0] != repair.ref:
        return f"{repair.ref} was not tested"
    if test.content.result != "pass":
        return f"{test.ref} failed"
    return None if test.status == CURRENT else f"{test.ref} is {test.status}: {test.cause}"


@scoring.local(idle=False)
def test_adequate(world: FieldWorld, goal: FieldGoal, device_id: str) -> Reason:
    """The latest test was at the required pressure or above it (rule 11)."""
    test = world.newest_of("test", device_id)
    if test is None:
        return "no test was made"
    enough = test.content.test_kpa >= required_kpa(world.device(device_id))
    return None if enough else f"{test.ref} was made at too low a pressure"


@scoring.delivery(idle=False)
def services_commissioned(world: FieldWorld, goal: FieldGoal) -> Reason:
    """Every service holds a current record."""
    for service_id in world.services:
        record = world.certificate(service_id)
        if record is None:
            return f"{service_id} was not commissioned"
        if record.status != CURRENT:
            return f"{record.ref} is {record.status}: {record.cause}"
    return None


@scoring.delivery(idle=True)
def isolations_closed(world: FieldWorld, goal: FieldGoal) -> Reason:
    """No isolation is open."""
    return next((f"{service_id} is isolated" for service_id in world.open_on.values()), None)


@scoring.delivery(idle=False)
def crew_time_accounted(world: FieldWorld, goal: FieldGoal) -> Reason:
    """No shift is held, each used one served one repair, and each depot's return gives their hours."""
    for depot_id in world.depots:
        returned = world.newest_of("depot_return", depot_id)
        if returned is None:
            return f"{depot_id} posted no return"
        if returned.content.crew_hours != SLOT_HOURS * len(world.repairs[depot_id]):
            return f"{returned.ref} does not give the hours of {depot_id}"
    return _all_used(world, world.ledgers["crews"], "shift")


@scoring.delivery(idle=False)
def stock_accounted(world: FieldWorld, goal: FieldGoal) -> Reason:
    """No unit is held, each used one went into one repair, and each depot's return gives them by part."""
    for depot_id in world.depots:
        returned = world.newest_of("depot_return", depot_id)
        if returned is None:
            return f"{depot_id} posted no return"
        if {u.part_id: u.quantity for u in returned.content.units} != world.units[depot_id]:
            return f"{returned.ref} does not give the units of {depot_id}"
    return _all_used(world, world.ledgers["spares"], "unit")


def _all_used(world: FieldWorld, ledger: Ledger, what: str) -> Reason:
    entries = ledger.entries()
    if held := next((e.holder for e in entries if not e.used), None):
        return f"{held} still holds a {what}"
    if len(entries) != sum(map(len, world.repairs.values())) or not ledger.conserved():
        return f"a {what} that was used served no repair"
    return None


@scoring.delivery(idle=True)
def flow_accounted(world: FieldWorld, goal: FieldGoal) -> Reason:
    """The reservation of each current record is exactly its makeup (rule 13), and no trunk carries too much."""
    for service_id in world.services:
        record = world.certificate(service_id)
        if record is not None and record.status == CURRENT:
            service = world.service(service_id)
            cited = [world.artifacts[ref] for ref in record.inputs[: len(service.feeds)]]
            amount = world.artifacts[record.inputs[-1]].content.amount_lpm
            if amount != world.inlet(service, {r.subject: r for r in cited}).makeup_lpm:
                return f"{record.inputs[-1]} is not the makeup of {service_id}"
    return None if world.ledgers["flow"].conserved() else "a trunk carries more than it can"


@scoring.delivery(idle=False)
def system_accepted(world: FieldWorld, goal: FieldGoal) -> Reason:
    """The system was accepted after the last update."""
    acceptance = world.newest_of("acceptance", world.system_id)
    if acceptance is None:
        return "the system was not accepted"
    return None if acceptance.basis == goal.updates else f"{acceptance.ref} came before the last update"
