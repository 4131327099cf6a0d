"""Rule 16: what becomes stale by each change, exactly that and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skillhorizon.core.world import CURRENT, STALE, SUPERSEDED, WITHDRAWN, Update
from skillhorizon.envs.field.records import Advisory, DeviceFault, SupplyRevision
from skillhorizon.envs.field.rules import required_kpa, signatures, valve_order
from tests.envs.bench import Bench
from tests.envs.field.mutations import corrective_plan
from tests.envs.field.support import before, done


def lost(bench: Bench, change: Callable[[], Any]) -> dict[str, set[str]]:
    """The subjects whose current artifact a change made stale, by kind."""
    world = bench.world
    current = {ref for ref, a in world.artifacts.items() if a.status == CURRENT}
    change()
    found: dict[str, set[str]] = {}
    for ref in current:
        if world.artifacts[ref].status == STALE:
            found.setdefault(world.artifacts[ref].kind, set()).add(world.artifacts[ref].subject)
    return found


def with_children(bench: Bench) -> Any:
    world = bench.world
    return world.service(next(s for s in world.services if 1 < len(world.descendants(s)) < len(world.services) - 2))


def below(bench: Bench, service_id: str) -> set[str]:
    return {service_id, *bench.world.descendants(service_id)}


def update(bench: Bench, effect: Any) -> Callable[[], None]:
    return lambda: bench.world.apply_update(Update(9, "never", 1, effect))


def test_a_revised_supply_strikes_the_records_below_it():
    bench = done()
    world = bench.world
    supply = next(s for s in world.tables["supplies"].values() if len(world.descendants(s.supply_id)) < 9)
    effect = SupplyRevision(supply.supply_id, supply.outlet_kpa - 60, supply.flow_lpm, "revised")
    assert lost(bench, update(bench, effect)) == {"record": set(world.descendants(supply.supply_id))}
    assert world.certificate(supply.supply_id).version == 2
    assert world.artifacts[f"{world.certificate(supply.supply_id).id}@1"].status == SUPERSEDED
    assert world.notices[-1].kind == "supply_revised"


def test_a_device_fault_strikes_its_case_and_the_records_from_its_service_on():
    bench = done()
    world = bench.world
    service = with_children(bench)
    device = world.device(service.device_ids[0])
    inspection = device.inspections[-1]
    effect = DeviceFault(device.device_id, type(inspection)(9, 3, inspection.readings), "failed")
    assert lost(bench, update(bench, effect)) == {
        "diagnosis": {device.device_id},
        "repair": {device.device_id},
        "test": {device.device_id},
        "record": below(bench, service.service_id),
    }
    assert world.device(device.device_id).episode == 2
    assert world.by_device.status[device.device_id] == "faulted"


def test_an_advisory_strikes_nothing():
    bench = done()
    assert lost(bench, update(bench, Advisory(bench.world.depots[0], "gloves"))) == {}


def test_opening_voids_the_tests_in_scope_and_leaves_the_record():
    bench = done()
    service = with_children(bench)
    device_id = service.device_ids[0]
    plan = corrective_plan(bench, service.service_id, [device_id])
    found = lost(bench, lambda: bench.do("open_isolation", plan=plan, valve_order=valve_order(service)))
    assert found == {"test": {device_id}}
    assert bench.world.by_device.status[device_id] == "repaired"
    assert bench.world.certificate(service.service_id).status == CURRENT


def test_the_retest_strikes_the_records():
    bench = done()
    service = with_children(bench)
    device = bench.world.device(service.device_ids[0])
    repair = bench.world.newest_of("repair", device.device_id).ref
    arguments = {"device_id": device.device_id, "repair": repair, "test_kpa": required_kpa(device)}
    assert lost(bench, lambda: bench.do("test_device", **arguments)) == {"record": below(bench, service.service_id)}


def test_another_reservation_strikes_the_records():
    bench = done()
    service = with_children(bench)
    flow = bench.world.newest_of("flow_reservation", service.service_id)
    arguments = {
        "service_id": service.service_id,
        "trunk_id": flow.content.trunk_id,
        "amount_lpm": flow.content.amount_lpm - 5,
    }
    found = lost(bench, lambda: bench.do("reserve_flow", **arguments))
    assert found == {"record": below(bench, service.service_id)}


def test_a_withdrawn_certificate_strikes_the_records_below_it():
    bench = done()
    service_id = with_children(bench).service_id
    found = lost(bench, lambda: bench.do("withdraw_certificate", service_id=service_id))
    assert found == {"record": below(bench, service_id) - {service_id}}
    assert bench.world.certificate(service_id).status == WITHDRAWN
    assert bench.world.by_service.status[service_id] == "withdrawn"


def test_another_diagnosis_strikes_nothing():
    bench = done()
    device = bench.world.device(bench.world.devices[0])
    code = signatures()[device.class_][0].fault_code
    arguments = {"device_id": device.device_id, "fault_code": code, "channels": []}
    assert lost(bench, lambda: bench.do("submit_diagnosis", **arguments)) == {}


def test_a_plan_outlives_the_withdrawal_of_its_feed():
    bench, given = before(
        "open_isolation",
        lambda g, w: w.service(w.artifact(g["plan"]).subject).feeds[0].parent_kind == "service",
    )
    plan = bench.world.artifact(given["plan"])
    feed = bench.world.service(plan.subject).feeds[0].parent_id
    assert "plan" not in lost(bench, lambda: bench.do("withdraw_certificate", service_id=feed))


def test_a_later_repair_strikes_its_depots_return_alone():
    """A device that fails anew is repaired correctively after the returns were posted."""
    bench = done()
    world = bench.world
    device = world.device(world.devices[0])
    service = world.service(device.service_id)
    readings = device.inspections[-1].readings
    effect = DeviceFault(device.device_id, type(device.inspections[-1])(9, 3, readings), "failed")
    update(bench, effect)()
    fault = world.newest_of("diagnosis", device.device_id).content
    arguments = {"device_id": device.device_id, "fault_code": fault.fault_code, "channels": list(fault.channels)}
    diagnosis = bench.do("submit_diagnosis", **arguments)["ref"]
    plan = corrective_plan(bench, service.service_id, [device.device_id])
    crews = [world.tables["crews"][c] for c in world.crews_of[service.depot_id]]
    crew, slot = next(
        (c, s) for c in crews for s in world.free_slots(c, world.scope(device)) if c.qualified(fault.qualification, s)
    )
    parts = [world.tables["parts"][p] for p in world.parts_of[device.model]]
    part = next(p for p in parts if p.component == fault.component and p.rev_from <= device.hw_rev <= p.rev_to)
    batch = world.batches_of[world.central, part.part_id][0]
    case = {
        "device_id": device.device_id,
        "diagnosis": diagnosis,
        "crew_reservation": bench.do("reserve_crew", device_id=device.device_id, crew_id=crew.crew_id, slot=slot)[
            "ref"
        ],
        "spare_reservation": bench.do("reserve_spare", device_id=device.device_id, batch_id=batch)["ref"],
        "isolation": bench.do("open_isolation", plan=plan, valve_order=valve_order(service))["ref"],
    }
    assert lost(bench, lambda: bench.do("repair_device", **case)) == {"depot_return": {service.depot_id}}
    assert world.newest_of("acceptance", world.system_id).status == CURRENT
    bench.do("close_isolation", isolation=case["isolation"], valve_order=valve_order(service)[::-1])
    test = {"repair": world.newest_of("repair", device.device_id).ref, "test_kpa": required_kpa(device)}
    assert bench.do("test_device", device_id=device.device_id, **test)["content"]["result"] == "pass"


def test_a_part_for_other_revisions_fails_the_test():
    bench, given = before("reserve_spare")
    world = bench.world
    right = world.tables["parts"][world.tables["batches"][given["batch_id"]].part_id]
    other = next(
        p
        for p in world.parts_of[right.model]
        if p != right.part_id and world.tables["parts"][p].component == right.component
    )
    wrong = world.batches_of[world.central, other][0]
    spare = bench.do("reserve_spare", device_id=given["device_id"], batch_id=wrong)["ref"]
    service = world.service(world.device(given["device_id"]).service_id)
    live = world.live[service.service_id]
    crew = next(r for r in world.held[service.depot_id] if world.artifacts[r].kind == "crew_reservation")
    diagnosis = world.newest_of("diagnosis", given["device_id"]).ref
    repair = bench.do(
        "repair_device",
        device_id=given["device_id"],
        diagnosis=diagnosis,
        crew_reservation=crew,
        spare_reservation=spare,
        isolation=live.ref,
    )["ref"]
    bench.do("close_isolation", isolation=live.ref, valve_order=valve_order(service)[::-1])
    required = required_kpa(world.device(given["device_id"]))
    test = bench.do("test_device", device_id=given["device_id"], repair=repair, test_kpa=required)
    assert test["content"]["result"] == "fail"
    event = bench.gateway.events[-1]
    assert (event.goal, event.check, event.reason) == (f"case:{given['device_id']}", False, "test_failed")
    assert world.by_device.status[given["device_id"]] == "faulted"
