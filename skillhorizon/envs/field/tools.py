"""Operations of the field desk. An operation validates completely, then changes the world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Arguments, Id, Name, Ref, refuse_repeats, tool
from skillhorizon.core.world import CURRENT, WITHDRAWN, Artifact
from skillhorizon.envs.field.queries import DepotId, DeviceId, ServiceId
from skillhorizon.envs.field.records import (
    SLOT_HOURS,
    Acceptance,
    Batch,
    Commission,
    Crew,
    CrewReservation,
    DepotReturn,
    Device,
    Diagnosis,
    FlowReservation,
    Held,
    Isolation,
    LockTag,
    Part,
    PartUse,
    Permit,
    Plan,
    PlanKind,
    PressureTest,
    Repair,
    Service,
    SpareReservation,
    Window,
)
from skillhorizon.envs.field.rules import FLOW_STEP, permit_class, required_kpa, shift, signature_of_code, valve_order
from skillhorizon.envs.field.world import FieldWorld, Live

Kpa = Annotated[int, Meta(ge=0, le=100_000, description="kPa.")]
Lpm = Annotated[int, Meta(ge=-1_000_000, le=1_000_000, description="L/min.")]
Slot = Annotated[int, Meta(ge=0, le=1_000_000, description="A slot: a shift of four hours.")]
DeviceIds = Annotated[list[Id], Meta(max_length=8)]
ValveOrder = Annotated[list[Id], Meta(max_length=16, description="Valves in the order of operation.")]
ParentRecords = Annotated[list[Ref], Meta(max_length=8, description="One current record of each parent.")]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]


class Unit(Arguments, frozen=True):
    part_id: Id
    quantity: Annotated[int, Meta(ge=1, le=100_000)]


# -- what operations share -------------------------------------------------------------------------------------------


def _answer(world: FieldWorld, artifact: Artifact) -> dict[str, Any]:
    """The artifact as it stands now, and what the call made stale."""
    return {**world.artifacts[artifact.ref].public(), "invalidated": world.invalidated}


def _of_service(world: FieldWorld, service_id: str) -> Service:
    service = world.service(service_id)
    world.attempt(f"service:{service_id}")
    return service


def _of_case(world: FieldWorld, device_id: str) -> Device:
    device = world.device(device_id)
    world.attempt(f"case:{device_id}")
    return device


def _own(world: FieldWorld, ref: str, kind: str, subject: str) -> Artifact:
    """A current artifact of the subject; refuses ``unknown_id`` and ``stale_input``."""
    artifact = world.current(ref, kind)
    if artifact.subject != subject:
        raise Rejected("unknown_id", f"{ref} is no {kind.replace('_', ' ')} of {subject}", ref=ref)
    return artifact


def _parents(world: FieldWorld, service: Service, refs: list[str]) -> dict[str, Artifact]:
    """The cited records by parent; refuses ``parents_mismatch`` and ``stale_parent``."""
    records = [world.artifact(ref, "record") for ref in refs]
    if sorted(r.subject for r in records) != sorted(f.parent_id for f in service.feeds):
        raise Rejected("parents_mismatch", f"the records are not one of each feed of {service.service_id}", cited=refs)
    _current_parents(records)
    return {r.subject: r for r in records}


def _current_parents(records: list[Artifact]) -> None:
    for record in records:
        if record.status != CURRENT:
            raise Rejected("stale_parent", f"{record.ref} is {record.status}", ref=record.ref)


def _schedule(world: FieldWorld, service: Service, kind: PlanKind, window: Window, dependents: list[str]) -> None:
    """Rules 5 to 7 for a plan; at the opening of a corrective isolation they hold once more."""
    service_id = service.service_id
    offered = window.kind == "contingency" if kind == "corrective" else window.window_id in service.window_ids
    if not offered:
        raise Rejected("window_not_offered", f"{window.window_id} is not offered for {kind} work", kind=kind)
    if sorted(dependents) != world.dependents(service_id):
        raise Rejected("dependents_mismatch", f"these are not the dependents of {service_id}", dependents=dependents)
    if window.start_slot < world.earliest_start(service, kind):
        raise Rejected("window_before_supply", f"{window.window_id} starts too early", start_slot=window.start_slot)
    for other in world.neighbours(service):
        live = world.live.get(other)
        if live is not None and live.window_id == window.window_id:
            raise Rejected("window_conflict", f"{other} is isolated in the same window", service_id=other)


def _open_isolation(world: FieldWorld, service_id: str) -> bool:
    live = world.live.get(service_id)
    return live is not None and live.kind == "isolation"


# -- isolations ------------------------------------------------------------------------------------------------------
_SCHEDULE = (
    "kind_not_allowed",
    "window_not_offered",
    "window_before_supply",
    "window_conflict",
    "stale_parent",
    "dependents_mismatch",
)


def _kind_allowed(world: FieldWorld, service: Service, kind: PlanKind) -> None:
    if (world.certificate(service.service_id) is None) != (kind == "planned"):
        raise Rejected("kind_not_allowed", f"{kind} work does not fit the certificate's history", kind=kind)


@tool("business", refusals=("plan_exists", "permit_mismatch", "parents_mismatch", *_SCHEDULE), checks=False)
def plan_isolation(
    world: FieldWorld,
    service_id: ServiceId,
    kind: PlanKind,
    window_id: Id,
    device_ids: DeviceIds,
    permit_class: Permit,
    parent_records: ParentRecords,
    dependents: Annotated[list[Id], Meta(max_length=40, description="Children that hold a record.")],
) -> dict[str, Any]:
    """Plan the isolation of a service in a window, over the devices in scope (none: an inspection)."""
    service = _of_service(world, service_id)
    window = world.window(window_id)
    refuse_repeats("device", device_ids)
    refuse_repeats("dependent", dependents)
    for device_id in device_ids:
        if device_id not in service.device_ids:
            raise Rejected("unknown_id", f"{service_id} has no device {device_id!r}", id=device_id)
    for dependent in dependents:
        world.service(dependent)
    _kind_allowed(world, service, kind)
    if service_id in world.live:
        raise Rejected("plan_exists", f"{service_id} has {world.live[service_id].ref}", ref=world.live[service_id].ref)
    _parents(world, service, parent_records)
    _schedule(world, service, kind, window, dependents)
    if permit_class != permit_needed(world, device_ids):
        raise Rejected("permit_mismatch", f"the devices in scope need another permit than {permit_class}")
    slots = window.start_slot, window.end_slot
    content = Plan(kind, window_id, *slots, tuple(device_ids), permit_class, tuple(dependents))
    ordinal = world.next_ordinal("plan", service_id)
    plan = world.make("plan", service_id, content, parent_records, f"isolate:{service_id}", ordinal=ordinal)
    world.live[service_id] = Live("plan", plan.ref, window_id)
    return _answer(world, plan)


def permit_needed(world: FieldWorld, device_ids: list[str]) -> Permit:
    return permit_class(world.tables["devices"][d] for d in device_ids)


def _live_plan(world: FieldWorld, plan: str) -> Artifact:
    artifact = world.current(plan, "plan")
    live = world.live.get(artifact.subject)
    if live is None or live.ref != plan:
        raise Rejected("wrong_state", f"{plan} has been opened already", plan=plan)
    return artifact


@tool("business", refusals=("reservation_held",), checks=False)
def cancel_plan(world: FieldWorld, plan: Ref) -> dict[str, Any]:
    """Cancel a plan that was not opened, once the reservations made under it are released."""
    world.attempt(f"service:{world.artifact(plan, 'plan').subject}")
    made = _live_plan(world, plan)
    held = world.held[world.service(made.subject).depot_id]
    for ref in held:
        if plan in world.artifacts[ref].inputs:
            raise Rejected("reservation_held", f"{ref} is held under {plan}", reservation=ref)
    del world.live[made.subject]
    world.withdraw(plan, f"{plan} was cancelled")
    return _answer(world, made)


@tool("business", refusals=("boundary_order", "trunk_isolated", *_SCHEDULE), checks=False)
def open_isolation(world: FieldWorld, plan: Ref, valve_order: ValveOrder) -> dict[str, Any]:
    """Open a planned isolation by its valves. Tests of the devices in scope are void from then on."""
    service = _of_service(world, world.artifact(plan, "plan").subject)
    made = _live_plan(world, plan)
    service_id = service.service_id
    content: Plan = made.content
    _kind_allowed(world, service, content.kind)
    if content.kind == "corrective":
        _current_parents([r for f in service.feeds if (r := world.certificate(f.parent_id)) is not None])
        _schedule(world, service, content.kind, world.window(content.window_id), list(content.dependents))
    _boundary(service, valve_order, reverse=False)
    if service.primary_trunk_id in world.open_on:
        other = world.open_on[service.primary_trunk_id]
        raise Rejected("trunk_isolated", f"{other} is isolated on {service.primary_trunk_id}", service_id=other)
    tags = tuple(LockTag(valve, f"tag-{valve.partition('-')[2]}") for valve in valve_order)
    opened = Isolation("open", content.window_id, content.device_ids, tags)
    ordinal = world.next_ordinal("isolation", service_id)
    isolation = world.make("isolation", service_id, opened, [plan], f"isolate:{service_id}", ordinal=ordinal)
    world.live[service_id] = Live("isolation", isolation.ref, content.window_id)
    world.open_on[service.primary_trunk_id] = service_id
    world.isolated_until[service_id] = world.window(content.window_id).end_slot
    for device_id in content.device_ids:
        world.openings[device_id] = world.openings.get(device_id, 0) + 1
    world.changed(*(f"openings:{d}" for d in content.device_ids), cause=f"{isolation.ref} was opened")
    return _answer(world, isolation)


def _boundary(service: Service, order: list[str], reverse: bool) -> None:
    right = valve_order(service)
    if order != (right[::-1] if reverse else right):
        raise Rejected(
            "boundary_order", f"these are not the valves of {service.service_id} in their order", order=order
        )


@tool("business", refusals=("boundary_order",), checks=False)
def close_isolation(world: FieldWorld, isolation: Ref, valve_order: ValveOrder) -> dict[str, Any]:
    """Close an open isolation: the same valves in reverse."""
    service = _of_service(world, world.artifact(isolation, "isolation").subject)
    opened = world.current(isolation, "isolation")
    service_id = service.service_id
    if opened.content.state != "open":
        raise Rejected("wrong_state", f"{isolation} is closed", isolation=isolation)
    _boundary(service, valve_order, reverse=True)
    content = Isolation("closed", opened.content.window_id, opened.content.device_ids, ())
    ordinal = int(opened.id.rpartition("-")[2])
    closed = world.make("isolation", service_id, content, [isolation], f"restore:{service_id}", ordinal=ordinal)
    del world.live[service_id]
    del world.open_on[service.primary_trunk_id]
    return _answer(world, closed)


# -- device cases ----------------------------------------------------------------------------------------------------


@tool("business", refusals=("wrong_class",), checks=False)
def submit_diagnosis(
    world: FieldWorld, device_id: DeviceId, fault_code: Name, channels: Annotated[list[Name], Meta(max_length=16)]
) -> dict[str, Any]:
    """Submit the fault of a device, with the channels that led to it. It names component and qualification."""
    device = _of_case(world, device_id)
    signature = signature_of_code().get(fault_code)
    if signature is None:
        raise Rejected("unknown_id", f"no fault code {fault_code!r}", id=fault_code)
    if signature.class_ != device.class_:
        raise Rejected(
            "wrong_class", f"{fault_code} is a fault of another class than {device_id}", fault_code=fault_code
        )
    found = signature.component, signature.qualification, tuple(channels)
    content = Diagnosis(device.episode, device.class_, fault_code, *found)
    inputs = [f"{device_id}@{device.episode}"]
    diagnosis = world.make("diagnosis", device_id, content, inputs, f"isolate:{device.service_id}")
    return _answer(world, diagnosis)


def _ground(world: FieldWorld, device: Device) -> tuple[Artifact, Window]:
    """Diagnosis and window on which a reservation rests."""
    diagnosis = world.newest_of("diagnosis", device.device_id)
    if diagnosis is None or diagnosis.status != CURRENT:
        raise Rejected("wrong_state", f"{device.device_id} has no current diagnosis", device_id=device.device_id)
    window = world.scope(device)
    if window is None:
        raise Rejected("no_plan", f"{device.device_id} is in no live plan and no open isolation")
    return diagnosis, window


def _reserve(
    world: FieldWorld, device: Device, kind: Literal["crew", "spare"], diagnosis: Artifact, slot: str, content: Any
) -> dict[str, Any]:
    live = world.live[device.service_id]
    plan = live.ref if live.kind == "plan" else world.artifacts[live.ref].inputs[0]
    device_id, ordinal = device.device_id, world.next_ordinal(kind, device.device_id)
    inputs = [diagnosis.ref, plan]
    artifact = world.make(f"{kind}_reservation", device_id, content, inputs, f"case:{device_id}", ordinal=ordinal)
    world.ledgers[f"{kind}s"].reserve(slot, 1, device_id, artifact.id)
    world.held[world.service(device.service_id).depot_id][artifact.ref] = None
    return _answer(world, artifact)


@tool("business", refusals=("no_plan", "crew_out_of_depot", "crew_unqualified", "crew_unavailable"), checks=False)
def reserve_crew(world: FieldWorld, device_id: DeviceId, crew_id: Id, slot: Slot) -> dict[str, Any]:
    """Reserve one shift of a crew for a device that is diagnosed and in a live plan or open isolation."""
    device = _of_case(world, device_id)
    crew: Crew = world.get("crews", crew_id)
    diagnosis, window = _ground(world, device)
    if crew.depot_id != world.service(device.service_id).depot_id:
        raise Rejected("crew_out_of_depot", f"{crew_id} belongs to another depot", depot_id=crew.depot_id)
    if not crew.qualified(diagnosis.content.qualification, slot):
        raise Rejected("crew_unqualified", f"{crew_id} does not hold what {diagnosis.ref} needs at {slot}", slot=slot)
    if slot not in world.free_slots(crew, window):
        raise Rejected("crew_unavailable", f"{crew_id} is not free in slot {slot} of the window", slot=slot)
    content = CrewReservation(crew_id, slot, window.window_id, diagnosis.content.qualification)
    return _reserve(world, device, "crew", diagnosis, shift(crew_id, slot), content)


@tool("business", refusals=("no_plan", "part_incompatible", "batch_unavailable", "batch_expired"), checks=False)
def reserve_spare(world: FieldWorld, device_id: DeviceId, batch_id: Id) -> dict[str, Any]:
    """Reserve one unit of a batch, of the device's depot or central, for a device that is diagnosed and planned."""
    device = _of_case(world, device_id)
    batch: Batch = world.get("batches", batch_id)
    diagnosis, window = _ground(world, device)
    part: Part = world.tables["parts"][batch.part_id]
    if (part.model, part.component) != (device.model, diagnosis.content.component):
        raise Rejected(
            "part_incompatible", f"{part.part_id} is not for what {diagnosis.ref} names", part_id=part.part_id
        )
    stores = (world.service(device.service_id).depot_id, world.central)
    if batch.depot_id not in stores or batch.status != "released" or not world.ledgers["spares"].free(batch_id):
        raise Rejected("batch_unavailable", f"{batch_id} has nothing to give here", status=batch.status)
    if batch.use_by_slot < window.end_slot:
        raise Rejected("batch_expired", f"{batch_id} expires before the window ends", use_by_slot=batch.use_by_slot)
    content = SpareReservation(batch_id, batch.depot_id, part.part_id, part.component, batch.use_by_slot)
    return _reserve(world, device, "spare", diagnosis, batch_id, content)


@tool("business", refusals=("not_held",), checks=False)
def release_reservation(world: FieldWorld, reservation: Ref) -> dict[str, Any]:
    """Give back a crew's shift or a spare unit that is held and not used."""
    artifact = world.artifact(reservation)
    ledgers = {"crew_reservation": world.ledgers["crews"], "spare_reservation": world.ledgers["spares"]}
    if artifact.kind not in ledgers:
        raise Rejected("unknown_id", f"no reservation {reservation!r}", id=reservation)
    device = _of_case(world, artifact.subject)
    held = world.held[world.service(device.service_id).depot_id]
    if reservation not in held:
        raise Rejected("not_held", f"{reservation} was used or released", reservation=reservation)
    del held[reservation]
    ledgers[artifact.kind].release(artifact.id)
    world.withdraw(reservation, f"{reservation} was released")
    return _answer(world, artifact)


@tool("business", refusals=("device_restored", "isolation_not_open", "reservation_mismatch"), checks=False)
def repair_device(
    world: FieldWorld,
    device_id: DeviceId,
    diagnosis: Ref,
    crew_reservation: Ref,
    spare_reservation: Ref,
    isolation: Ref,
) -> dict[str, Any]:
    """Repair a device under its open isolation. Uses up the shift and the unit reserved."""
    device = _of_case(world, device_id)
    _own(world, diagnosis, "diagnosis", device_id)
    crew = world.artifact(crew_reservation, "crew_reservation")
    spare = world.artifact(spare_reservation, "spare_reservation")
    world.artifact(isolation, "isolation")
    if world.passing_test(device_id) is not None:
        raise Rejected("device_restored", f"the test of {device_id} stands", device_id=device_id)
    service = world.service(device.service_id)
    window, live = world.scope(device), world.live.get(device.service_id)
    if window is None or live != Live("isolation", isolation, window.window_id):
        raise Rejected("isolation_not_open", f"{isolation} is not open over {device_id}", isolation=isolation)
    held = world.held[service.depot_id]
    for reservation in (crew, spare):
        if reservation.subject != device_id or reservation.ref not in held:
            raise Rejected("reservation_mismatch", f"{reservation.ref} is not held for {device_id}")
        if diagnosis not in reservation.inputs:
            raise Rejected("reservation_mismatch", f"{reservation.ref} was made under another diagnosis")
    if not window.start_slot <= crew.content.slot <= window.end_slot:
        raise Rejected("reservation_mismatch", f"{crew.ref} lies outside the window of {isolation}")
    batch: Batch = world.tables["batches"][spare.content.batch_id]
    if batch.use_by_slot < window.end_slot:
        raise Rejected("reservation_mismatch", f"{spare.ref} expires before the window of {isolation} ends")
    shift_used = crew.content.crew_id, crew.content.slot
    content = Repair(device.episode, batch.part_id, batch.batch_id, *shift_used)
    repair = world.make("repair", device_id, content, [diagnosis, crew.ref, spare.ref, isolation], f"case:{device_id}")
    for reservation, ledger in ((crew, "crews"), (spare, "spares")):
        del held[reservation.ref]
        world.ledgers[ledger].use(reservation.id)
    world.spent[batch.batch_id] = world.spent.get(batch.batch_id, 0) + 1
    units = world.units[service.depot_id]
    units[batch.part_id] = units.get(batch.part_id, 0) + 1
    world.repairs[service.depot_id].append(repair.ref)
    world.changed(f"repairs:{service.depot_id}", cause=f"{repair.ref} came later")
    return _answer(world, repair)


@tool("business", refusals=("isolation_open", "overpressure"))
def test_device(world: FieldWorld, device_id: DeviceId, repair: Ref, test_kpa: Kpa) -> dict[str, Any]:
    """Test a repaired device after its isolation is closed. Measures its pressure drop; it may fail."""
    device = _of_case(world, device_id)
    _own(world, repair, "repair", device_id)
    if _open_isolation(world, device.service_id):
        raise Rejected("isolation_open", f"{device.service_id} is isolated", service_id=device.service_id)
    if 10 * test_kpa > 11 * required_kpa(device):
        raise Rejected("overpressure", f"{device_id} would not stand {test_kpa} kPa", test_kpa=test_kpa)
    passed = world.sound(world.artifacts[repair], device)
    loss = 1 if passed else max(20, test_kpa // 10)
    held = tuple(Held(minute, max(0, test_kpa - loss * (minute // 10))) for minute in (0, 10, 20))
    drop = world.tables["gauges"][device_id].drop_kpa
    content = PressureTest(test_kpa, held, drop, "pass" if passed else "fail")
    openings = world.openings.get(device_id, 0)
    test = world.make("test", device_id, content, [repair], f"restore:{device.service_id}", basis=openings)
    if not passed:
        world.judge(f"case:{device_id}", False, "test_failed")
    return _answer(world, test)


# -- services --------------------------------------------------------------------------------------------------------


@tool("business", refusals=("amount_step", "trunk_not_allowed", "trunk_full", "unchanged"), checks=False)
def reserve_flow(world: FieldWorld, service_id: ServiceId, trunk_id: Id, amount_lpm: Lpm) -> dict[str, Any]:
    """Reserve a service's makeup flow on one of its two trunks, in the place of what it had reserved."""
    service = _of_service(world, service_id)
    world.get("trunks", trunk_id)
    if amount_lpm <= 0 or amount_lpm % FLOW_STEP:
        raise Rejected("amount_step", f"{amount_lpm} is no positive multiple of {FLOW_STEP}", amount_lpm=amount_lpm)
    if trunk_id not in (service.primary_trunk_id, service.standby_trunk_id):
        raise Rejected("trunk_not_allowed", f"{trunk_id} does not reach {service_id}", trunk_id=trunk_id)
    before = world.newest_of("flow_reservation", service_id)
    content = FlowReservation(trunk_id, "primary" if trunk_id == service.primary_trunk_id else "standby", amount_lpm)
    if before is not None and before.content == content:
        raise Rejected("unchanged", f"{before.ref} says the same", ref=before.ref)
    holder = f"{world.prefixes['flow_reservation']}-{service_id.partition('-')[2]}"
    world.ledgers["flow"].reserve(trunk_id, amount_lpm, service_id, holder, code="trunk_full")
    flow = world.make("flow_reservation", service_id, content, [], f"commission:{service_id}")
    return _answer(world, flow)


@tool(
    "business",
    refusals=(
        "certificate_current",
        "isolation_open",
        "parents_mismatch",
        "stale_parent",
        "tests_incomplete",
        "inlet_mismatch",
        "inlet_low",
        "setpoint_out_of_range",
        "setpoint_above_supply",
        "flow_short",
    ),
)
def commission_service(
    world: FieldWorld,
    service_id: ServiceId,
    parent_records: ParentRecords,
    tests: Annotated[list[Ref], Meta(max_length=8, description="The passing test of each device.")],
    flow_reservation: Ref,
    inlet_kpa: Kpa,
    setpoint_kpa: Kpa,
) -> dict[str, Any]:
    """Commission a service, first or anew. Its record is its certificate and what its children rely on."""
    service = _of_service(world, service_id)
    flow = _own(world, flow_reservation, "flow_reservation", service_id)
    before = world.certificate(service_id)
    if before is not None and before.status == CURRENT:
        raise Rejected("certificate_current", f"{before.ref} is current", ref=before.ref)
    if _open_isolation(world, service_id):
        raise Rejected("isolation_open", f"{service_id} is isolated", service_id=service_id)
    records = _parents(world, service, parent_records)
    _tests(world, service, tests)
    found = world.inlet(service, records)
    limits = service.limits
    if inlet_kpa != found.inlet_kpa:
        raise Rejected("inlet_mismatch", f"the gauge does not show {inlet_kpa} kPa", inlet_kpa=inlet_kpa)
    if inlet_kpa < limits.min_inlet_kpa:
        raise Rejected("inlet_low", f"{service_id} needs more at its inlet", min_inlet_kpa=limits.min_inlet_kpa)
    if setpoint_kpa % limits.step_kpa or not limits.min_outlet_kpa <= setpoint_kpa <= limits.max_outlet_kpa:
        raise Rejected("setpoint_out_of_range", f"{setpoint_kpa} kPa cannot be set", **asdict(limits))
    if setpoint_kpa > found.available_kpa:
        raise Rejected(
            "setpoint_above_supply", f"the inlet does not carry {setpoint_kpa} kPa", setpoint_kpa=setpoint_kpa
        )
    amount: int = flow.content.amount_lpm
    if amount < found.makeup_lpm:
        raise Rejected("flow_short", f"{flow.ref} leaves {service_id} short of flow", amount_lpm=amount)
    offered = found.taken_lpm + amount - service.own_lpm
    content = Commission(setpoint_kpa, offered, service.contracted_lpm, world.in_service_from(service))
    inputs = [*parent_records, *tests, flow_reservation]
    episodes = {d: world.device(d).episode for d in service.device_ids}
    record = world.make("record", service_id, content, inputs, f"commission:{service_id}", basis=episodes)
    if before is None:
        world.count("services_commissioned")
        for counter in world.awaited.get(service_id, ()):
            world.count(counter)
    return _answer(world, record)


def _tests(world: FieldWorld, service: Service, refs: list[str]) -> None:
    for ref in refs:
        world.artifact(ref, "test")
    standing: Mapping[str, Artifact | None] = {d: world.passing_test(d) for d in service.device_ids}
    for device_id, test in standing.items():
        if test is None or test.ref not in refs:
            raise Rejected("tests_incomplete", f"no standing test of {device_id} is cited", device_id=device_id)
    if len(refs) != len(standing):
        raise Rejected("tests_incomplete", f"there is not one test for each device of {service.service_id}", tests=refs)


@tool("business", refusals=("certificate_missing",), checks=False)
def withdraw_certificate(world: FieldWorld, service_id: ServiceId) -> dict[str, Any]:
    """Withdraw a service's certificate; what rests on it is stale from then on."""
    _of_service(world, service_id)
    record = world.certificate(service_id)
    if record is None or record.status == WITHDRAWN:
        raise Rejected("certificate_missing", f"{service_id} holds no certificate", service_id=service_id)
    world.withdraw(record.ref, f"{record.ref} was withdrawn")
    return _answer(world, record)


# -- handing over ----------------------------------------------------------------------------------------------------


@tool("business", refusals=("open_reservations", "hours_mismatch", "units_mismatch"))
def post_resource_return(
    world: FieldWorld, depot_id: DepotId, crew_hours: Count, units: Annotated[list[Unit], Meta(max_length=400)]
) -> dict[str, Any]:
    """Post a depot's crew hours and spare units by part, over every repair of its devices."""
    if depot_id not in world.repairs:
        raise Rejected("unknown_id", f"no depot {depot_id!r} with services", id=depot_id)
    world.attempt(f"depot:{depot_id}")
    refuse_repeats("part", (u.part_id for u in units))
    for unit in units:
        world.get("parts", unit.part_id)
    if world.held[depot_id]:
        raise Rejected("open_reservations", f"{next(iter(world.held[depot_id]))} is still held", depot_id=depot_id)
    repairs = world.repairs[depot_id]
    if crew_hours != SLOT_HOURS * len(repairs):
        raise Rejected("hours_mismatch", f"{crew_hours} hours are not those of the shifts used", crew_hours=crew_hours)
    if {u.part_id: u.quantity for u in units} != world.units[depot_id]:
        raise Rejected("units_mismatch", "the units are not those built in", depot_id=depot_id)
    content = DepotReturn(crew_hours, tuple(PartUse(u.part_id, u.quantity) for u in units))
    returned = world.make("depot_return", depot_id, content, repairs, "handover", basis=len(repairs))
    return _answer(world, returned)


@tool(
    "business",
    refusals=(
        "certificate_missing",
        "certificate_stale",
        "tests_incomplete",
        "isolation_open",
        "open_reservations",
        "return_missing",
        "stale_return",
    ),
)
def request_acceptance(
    world: FieldWorld, returns: Annotated[list[Ref], Meta(max_length=64, description="The return of each depot.")]
) -> dict[str, Any]:
    """Request the acceptance of the whole system, citing one current return of each depot."""
    world.attempt("system")
    cited = [world.artifact(ref, "depot_return") for ref in returns]
    for code, status in (
        ("certificate_missing", "uncommissioned"),
        ("certificate_missing", "withdrawn"),
        ("certificate_stale", "stale"),
    ):
        if lacking := world.by_service.ids(status):
            raise Rejected(code, f"{lacking[0]} is {status}", service_id=lacking[0])
    if unready := [*world.by_device.ids("faulted")[:1], *world.by_device.ids("repaired")[:1]]:
        raise Rejected("tests_incomplete", f"{unready[0]} has no standing test", device_id=unready[0])
    if world.open_on:
        raise Rejected("isolation_open", "a service is isolated", service_id=next(iter(world.open_on.values())))
    for depot_id, held in world.held.items():
        if held:
            raise Rejected("open_reservations", f"{next(iter(held))} is still held", depot_id=depot_id)
    if sorted(r.subject for r in cited) != world.depots:
        raise Rejected("return_missing", "there is not one return of each depot", returns=returns)
    for returned in cited:
        if returned.status != CURRENT:
            raise Rejected("stale_return", f"{returned.ref} is {returned.status}", ref=returned.ref)
    content, seen = Acceptance(tuple(returns)), len(world.fired)
    artifact = world.make("acceptance", world.system_id, content, returns, "handover", basis=seen)
    return _answer(world, artifact)
