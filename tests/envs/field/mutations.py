"""Wrong executions of FieldOps, each failing exactly its predicate; and the mistakes that cost nothing, explained."""

from __future__ import annotations

from typing import Any

import msgspec

from skillhorizon.core.policy import Call, Memory, Steps
from skillhorizon.envs.field.policy import FieldPolicy
from skillhorizon.envs.field.records import DeviceFault, SupplyRevision
from skillhorizon.envs.field.rules import permit_class, valve_order
from tests.envs.bench import Bench, Mutation, once


def _with(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, arguments={**call.arguments, **changes})


def corrective_plan(bench: Bench, service_id: str, device_ids: list[str]) -> str:
    """A legal corrective plan in the earliest contingency window."""
    world = bench.world
    service = world.service(service_id)
    contingency = [w for w in world.tables["windows"].values() if w.kind == "contingency"]
    made = bench.do(
        "plan_isolation",
        service_id=service_id,
        kind="corrective",
        window_id=min(contingency, key=lambda w: w.start_slot).window_id,
        device_ids=device_ids,
        permit_class=permit_class(world.device(d) for d in device_ids),
        parent_records=[world.certificate(f.parent_id).ref for f in service.feeds],
        dependents=world.dependents(service_id),
    )
    ref: str = made["ref"]
    return ref


def a_device(bench: Bench) -> Any:
    """A device that did not fail anew."""
    struck = {u.effect.device_id for u in bench.task.blueprint.updates if isinstance(u.effect, DeviceFault)}
    return bench.world.device(next(d for d in bench.world.devices if d not in struck))


def open_and_close_without_a_test(bench: Bench) -> None:
    """After the acceptance a device is isolated once more, and its test is void."""
    bench.reference()
    device = a_device(bench)
    plan = corrective_plan(bench, device.service_id, [device.device_id])
    valves = valve_order(bench.world.service(device.service_id))
    isolation = bench.do("open_isolation", plan=plan, valve_order=valves)["ref"]
    bench.do("close_isolation", isolation=isolation, valve_order=valves[::-1])


def lower_a_test(bench: Bench) -> None:
    device_id = a_device(bench).device_id

    def lower(call: Call, memory: Memory) -> Call | None:
        given = call.arguments
        return _with(call, test_kpa=given["test_kpa"] - 5) if given["device_id"] == device_id else None

    bench.reference(once("test_device", lower))


def withdraw_a_leaf(bench: Bench) -> None:
    bench.reference()
    leaf = next(s for s in bench.world.services if s not in bench.world.children)
    bench.do("withdraw_certificate", service_id=leaf)


def leave_an_inspection_open(bench: Bench) -> None:
    """After the acceptance an isolation without devices in scope is opened and stays open."""
    bench.reference()
    service_id = bench.world.services[0]
    plan = corrective_plan(bench, service_id, [])
    bench.do("open_isolation", plan=plan, valve_order=valve_order(bench.world.service(service_id)))


def hold_a_crew(bench: Bench) -> None:
    bench.reference()
    world, device = bench.world, a_device(bench)
    corrective_plan(bench, device.service_id, [device.device_id])
    window = world.scope(device)
    code = world.newest_of("diagnosis", device.device_id).content.qualification
    crews = [world.tables["crews"][c] for c in world.crews_of[world.service(device.service_id).depot_id]]
    crew, slot = next((c, s) for c in crews for s in world.free_slots(c, window) if c.qualified(code, s))
    bench.do("reserve_crew", device_id=device.device_id, crew_id=crew.crew_id, slot=slot)


def hold_a_central_unit(bench: Bench) -> None:
    bench.reference()
    world, device = bench.world, a_device(bench)
    corrective_plan(bench, device.service_id, [device.device_id])
    part = next(
        p
        for p in world.parts_of[device.model]
        if world.tables["parts"][p].component == world.newest_of("diagnosis", device.device_id).content.component
    )
    bench.do("reserve_spare", device_id=device.device_id, batch_id=world.batches_of[world.central, part][0])


def pad_the_makeup(bench: Bench) -> None:
    """A service reserves five litres too many where they are free: its trunk's last, and never renewed."""
    world = bench.world
    updates = bench.task.blueprint.updates
    revisions = {u.ordinal for u in updates if isinstance(u.effect, SupplyRevision)}
    struck = {world.device(u.effect.device_id).service_id for u in updates if isinstance(u.effect, DeviceFault)}
    renewed = struck.union(*(world.descendants(s) for s in struck))

    def pad(call: Call, memory: Memory) -> Call | None:
        service = world.service(call.arguments["service_id"])
        amount = call.arguments["amount_lpm"] + 5
        trunks = (service.standby_trunk_id, service.primary_trunk_id)
        roomy = [t for t in trunks if world.ledgers["flow"].free(t) >= amount]
        sharing = [s for s in world.services if world.service(s).primary_trunk_id == service.primary_trunk_id]
        waiting = [s for s in sharing if s != service.service_id and not world.newest_of("flow_reservation", s)]
        if not revisions and roomy[:1] == [service.standby_trunk_id]:
            waiting = []  # nobody else will want the standby
        if waiting or not roomy or not revisions <= set(world.fired) or service.service_id in renewed:
            return None
        return _with(call, trunk_id=roomy[0], amount_lpm=amount)

    bench.reference(once("reserve_flow", pad))


class _Unaccepted(FieldPolicy):
    def _hand_over(self) -> Steps[None]:
        steps = super()._hand_over()
        call = next(steps)
        while True:
            # the answer that the step expects, without the step
            answer = {"ok": True, "result": {}} if call.tool == "request_acceptance" else (yield call)
            try:
                call = steps.send(answer)
            except StopIteration:
                return


def omit_the_acceptance(bench: Bench) -> None:
    bench.reference(policy=_Unaccepted())


MUTATIONS = [
    Mutation("isolated again without a test", frozenset({"restored_and_tested"}), open_and_close_without_a_test),
    Mutation("test a step too low", frozenset({"test_adequate"}), lower_a_test),
    Mutation("leaf certificate withdrawn", frozenset({"services_commissioned"}), withdraw_a_leaf),
    Mutation("inspection left open", frozenset({"isolations_closed"}), leave_an_inspection_open),
    Mutation("crew held after acceptance", frozenset({"crew_time_accounted"}), hold_a_crew),
    Mutation("central unit held after acceptance", frozenset({"stock_accounted"}), hold_a_central_unit),
    Mutation("makeup padded", frozenset({"flow_accounted"}), pad_the_makeup),
    Mutation("acceptance omitted", frozenset({"system_accepted"}), omit_the_acceptance),
]

SURVIVORS = {
    "makeup_padded": "where a supply changes later, the renewal reserves again, and then the right amount",
}
"""Kind of mistake -> why it may cost nothing."""
