"""Operations of the plant. An operation validates completely, then changes the world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import asdict, replace

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.tools import Arguments, Id, Int, Ref, refuse_repeats, tool
from skillhorizon.core.world import STALE, Artifact
from skillhorizon.envs.factory.queries import CellId, Day, Family, Level, OrderId, ProgramId, Tick, calibration_row
from skillhorizon.envs.factory.records import (
    GRADES,
    LARGEST_START,
    Allocation,
    Batch,
    Booking,
    Close,
    Completion,
    Disposition,
    Drawn,
    Input,
    LevelTotals,
    Lot,
    Observation,
    Shipment,
    Unit,
    Verdict,
)
from skillhorizon.envs.factory.rules import run_ticks
from skillhorizon.envs.factory.seed import DAY, Calibration, Cell, Program
from skillhorizon.envs.factory.world import FactoryWorld

Count = Annotated[int, Meta(ge=1, le=100_000)]
UnitIds = Annotated[list[Id], Meta(min_length=1, max_length=200)]
Verdicts = Annotated[dict[Id, Verdict], Meta(min_length=1, max_length=100, description="Unit -> verdict.")]


class LotPart(Arguments, frozen=True):
    lot_id: Id
    quantity: Count


class LineInputs(Arguments, frozen=True):
    """``unit_ids`` of the supplier, or parts of ``lots``."""

    line: Annotated[int, Meta(ge=1, le=9)]
    unit_ids: Annotated[tuple[Id, ...], Meta(max_length=200)] = ()
    lots: Annotated[tuple[LotPart, ...], Meta(max_length=20)] = ()


class LevelRow(Arguments, frozen=True):
    level: Level
    started: Int
    accepted: Int
    reworked: Int
    scrapped: Int
    shipped: Int


# -- queries ---------------------------------------------------------------------------------------------------------


def _answer(world: FactoryWorld, name: str, artifact: Artifact, **more: Any) -> dict[str, Any]:
    return {name: artifact.ref, **more, "invalidated": world.invalidated}


def _make(
    world: FactoryWorld,
    kind: str,
    order_id: str,
    content: Any,
    inputs: Iterable[str],
    goal: str,
    *,
    reads: Sequence[str] = (),
    ordinal: int | None = None,
) -> Artifact:
    """Publish an artifact about an order for a goal of this kind: the next of its kind, or a version of an earlier."""
    return world.publish(
        kind,
        order_id,
        content,
        inputs,
        reads=reads,
        ordinal=world.ordinal(kind, order_id) if ordinal is None else ordinal,
        goal=f"{goal}:{order_id}",
        module=f"order:{order_id}",
    )


def _ordinal(identity: str) -> int:
    return int(identity.rpartition("-")[2])


# -- inputs ----------------------------------------------------------------------------------------------------------


@tool(
    "business",
    refusals=(
        "over_start",
        "wrong_count",
        "supplier_incomplete",
        "wrong_supplier",
        "unit_unavailable",
        "grade_too_low",
        "fit_reject",
        "lot_unusable",
        "insufficient_lot",
    ),
)
def allocate_inputs(
    world: FactoryWorld,
    order_id: OrderId,
    units: Annotated[int, Meta(ge=1, le=1_000, description="Units to start.")],
    lines: Annotated[list[LineInputs], Meta(min_length=1, max_length=9)],
) -> dict[str, Any]:
    """Set inputs aside for a start: for each line of the order supplier's units, or quantities of lots."""
    order = world.order(order_id)
    refuse_repeats("line", (given.line for given in lines))
    known = {line.line: line for line in order.lines}
    for given in lines:
        if given.line not in known:
            raise Rejected("unknown_id", f"{order_id} has no line {given.line}", id=str(given.line))
        foreign, wanted = (given.lots, "unit_ids") if known[given.line].material is None else (given.unit_ids, "lots")
        if foreign:
            raise Rejected("bad_argument", f"line {given.line} takes {wanted}", line=given.line)
        refuse_repeats("lot", (part.lot_id for part in given.lots))
        for part in given.lots:
            world.get("lots", part.lot_id)
        for unit_id in given.unit_ids:
            world.unit(unit_id)
    refuse_repeats("unit", (unit_id for given in lines for unit_id in given.unit_ids))
    world.attempt(f"material:{order_id}")
    progress = world.progress(order_id)
    room = min(order.quantity - progress.accepted - progress.in_process, LARGEST_START)
    if units > room:
        raise Rejected("over_start", f"{order_id} may not start {units} more units", order_id=order_id)
    by_line = {given.line: given for given in lines}
    for line in order.lines:
        count = _count(by_line.get(line.line))
        if count != units * line.per_unit:
            raise Rejected(
                "wrong_count", f"line {line.line} takes {line.per_unit} a unit", line=line.line, per_unit=line.per_unit
            )
    inputs, ready, sources = [], 0, dict[str, None]()
    for line in order.lines:
        given = by_line[line.line]
        if line.material is None:
            units_taken = _supplied(world, line.supplier_order or "", line.fit == "A", given.unit_ids)
            ready = max(ready, *(u.ready for u in units_taken))
            sources |= dict.fromkeys(world.sources_of(units_taken))
        else:
            _stocked(world, line.material, line.min_cert or 0, given.lots)
            sources |= dict.fromkeys(f"{part.lot_id}@1" for part in given.lots)
        drawn = tuple(Drawn(part.lot_id, part.quantity) for part in given.lots)
        inputs.append(Input(line.line, tuple(given.unit_ids), drawn))
    content = Allocation(order_id, units, ready, tuple(inputs))
    unit_ids = [u for i in inputs for u in i.unit_ids]
    for i in inputs:
        for taken in i.lots:
            lot: Lot = world.tables["lots"][taken.lot_id]
            world.amend("lots", taken.lot_id, quantity_left=lot.quantity_left - taken.quantity)
    world.commit(unit_ids, "allocated")
    world.tally(order_id, in_process=units)
    artifact = _make(world, "allocation", order_id, content, sources, "material", reads=unit_ids)
    world.open_allocations[artifact.ref] = None
    return _answer(world, "allocation", artifact, **asdict(content))


def _count(given: LineInputs | None) -> int:
    if given is None:
        return 0
    return len(given.unit_ids) + sum(part.quantity for part in given.lots)


def _supplied(world: FactoryWorld, supplier: str, must_fit: bool, unit_ids: Sequence[str]) -> list[Unit]:
    """Rule 2: units that may go into a line."""
    wanted = world.order(supplier)
    units = [world.unit(u) for u in unit_ids]
    free = world.free_units[supplier]
    if world.progress(supplier).accepted < wanted.quantity:
        raise Rejected("supplier_incomplete", f"{supplier} has not its quantity accepted", order_id=supplier)
    for unit in units:
        if unit.order_id != supplier:
            raise Rejected("wrong_supplier", f"{unit.unit_id} is no unit of {supplier}", unit_id=unit.unit_id)
        if unit.unit_id not in free:
            raise Rejected("unit_unavailable", f"{unit.unit_id} is not free", unit_id=unit.unit_id)
        if must_fit and unit.verdict != "A":
            raise Rejected("grade_too_low", f"{unit.unit_id} is not recorded as A", unit_id=unit.unit_id)
    for unit in units:
        if must_fit and world.true_grade(unit) != "A":
            raise Rejected("fit_reject", f"the ring gauge does not pass {unit.unit_id}", unit_id=unit.unit_id)
    return units


def _stocked(world: FactoryWorld, material: str, min_cert: int, parts: Sequence[LotPart]) -> None:
    """Rule 3: lots that may go into a line."""
    for part in parts:
        lot: Lot = world.tables["lots"][part.lot_id]
        if lot.material_id != material or lot.state != "released" or lot.cert < min_cert:
            raise Rejected("lot_unusable", f"{lot.lot_id} may not go into this line", lot_id=lot.lot_id)
        if lot.quantity_left < part.quantity:
            raise Rejected("insufficient_lot", f"{lot.lot_id} does not hold so much", lot_id=lot.lot_id)


def _open_allocation(world: FactoryWorld, artifact: Artifact) -> Allocation:
    if artifact.ref not in world.open_allocations:
        raise Rejected("not_open", f"{artifact.ref} has been used or released", allocation=artifact.ref)
    content: Allocation = artifact.content
    return content


@tool("business", refusals=("not_open", "booking_open"), checks=False)
def release_allocation(world: FactoryWorld, allocation: Ref) -> dict[str, Any]:
    """Give the inputs of an allocation back that was not run."""
    artifact = world.artifact(allocation, "allocation")
    world.attempt(f"material:{artifact.subject}")
    content = _open_allocation(world, artifact)
    for booking in world.bookings_of.get(allocation, ()):
        if world.booking_state[booking] == "open":
            raise Rejected("booking_open", f"{booking} is open on {allocation}", booking=booking)
    del world.open_allocations[allocation]
    for taken in content.inputs:
        for unit_id in taken.unit_ids:
            world.set_unit(world.unit(unit_id), place="stock")
        for part in taken.lots:
            lot: Lot = world.tables["lots"][part.lot_id]
            world.amend("lots", part.lot_id, quantity_left=lot.quantity_left + part.quantity)
    world.tally(content.order_id, in_process=-content.units)
    world.withdraw(allocation, "released")
    return {"allocation": allocation, "released": True, "invalidated": world.invalidated}


# -- equipment -------------------------------------------------------------------------------------------------------


@tool("business", checks=False)
def calibrate_tool(world: FactoryWorld, cell_id: CellId, tool_family: Family) -> dict[str, Any]:
    """Calibrate a cell's tool. It takes no time; the offsets found hold for the runs to come."""
    tool_id = world.tool(cell_id, tool_family)
    calibration = world.calibrate(tool_id, world.clock_of[cell_id])
    world.publish(
        "calibration",
        tool_id,
        calibration,
        [],
        reads=[calibration.calibration_id],
        ordinal=_ordinal(calibration.calibration_id),
        goal=f"calibration:{tool_id}",
        module=f"calibration:{tool_id}",
    )
    return calibration_row(calibration)


@tool(
    "business",
    refusals=(
        "not_open",
        "allocation_stale",
        "wrong_program",
        "revision_not_released",
        "not_qualified",
        "duration_mismatch",
        "inputs_not_ready",
        "cell_unavailable",
        "calibration_not_in_force",
    ),
)
def book_cell(
    world: FactoryWorld,
    allocation: Ref,
    program_id: ProgramId,
    revision: Annotated[int, Meta(ge=1, le=99)],
    cell_id: CellId,
    calibration: Ref,
    start: Tick,
    ticks: Annotated[int, Meta(ge=1, le=1_000)],
) -> dict[str, Any]:
    """Book a cell for the run of an allocation, with a program's revision and the calibration in force."""
    artifact = world.artifact(allocation, "allocation")
    order = world.order(artifact.subject)
    program: Program = world.get("programs", program_id)
    cell: Cell = world.get("cells", cell_id)
    chosen = next((r for r in world.plant.revisions[program_id] if r.revision == revision), None)
    if chosen is None:
        raise Rejected("unknown_id", f"{program_id} has no revision {revision}", id=str(revision))
    offsets = world.calibration(calibration)
    world.attempt(f"equipment:{order.order_id}")
    content = _open_allocation(world, artifact)
    if artifact.status == STALE:
        raise Rejected("allocation_stale", f"{allocation} is stale: {artifact.cause}", allocation=allocation)
    if program.product_id != order.product_id:
        raise Rejected("wrong_program", f"{program_id} makes another product", program_id=program_id)
    if chosen.state != "released":
        raise Rejected("revision_not_released", f"revision {revision} is {chosen.state}", program_id=program_id)
    end = start + ticks
    qualified = world.qualification(program, cell_id)
    if qualified is None or not world.able(cell, program):
        raise Rejected("not_qualified", f"{cell_id} cannot run {program_id}", cell_id=cell_id)
    if qualified.qualified_until is not None and qualified.qualified_until < end:
        raise Rejected("not_qualified", f"{cell_id} is not qualified for so long", cell_id=cell_id)
    if ticks != run_ticks(content.units, program.setup_ticks, chosen.feed_pct, world.plant.cycle_ms[program_id]):
        raise Rejected("duration_mismatch", f"{content.units} units do not take {ticks} ticks", ticks=ticks)
    if start < content.ready:
        raise Rejected("inputs_not_ready", f"the inputs are ready at {content.ready}", ready=content.ready)
    if start < world.clock_of[cell_id]:
        raise Rejected("cell_unavailable", f"{cell_id} has run until later", clock=world.clock_of[cell_id])
    for busy in world.busy(cell_id, start, end):
        raise Rejected("cell_unavailable", f"{cell_id} is {busy.kind} from {busy.start}", **busy._asdict())
    tool_id = world.plant.tool_at.get((cell_id, program.tool_family))
    if offsets.tool_id != tool_id or offsets.calibration_id != world.calibrations_of(tool_id)[0]:
        raise Rejected("calibration_not_in_force", f"{calibration} is not the tool's newest", calibration=calibration)
    _in_force(world, offsets, content.units)
    booking = Booking(order.order_id, allocation, program_id, revision, cell_id, calibration, start, end)
    reads = [offsets.calibration_id, cell_id]
    made = _make(world, "booking", order.order_id, booking, [allocation, calibration], "equipment", reads=reads)
    world.bookings_of.setdefault(allocation, []).append(made.ref)
    world.move_booking(made.ref, "open")
    return _answer(world, "booking", made, end=end)


def _in_force(world: FactoryWorld, calibration: Calibration, units: int) -> None:
    if not world.holds(calibration, units):
        raise Rejected(
            "calibration_not_in_force",
            f"{calibration.calibration_id} is void or worn for {units} units",
            calibration=f"{calibration.calibration_id}@1",
        )


@tool("business", refusals=("not_open",), checks=False)
def cancel_booking(world: FactoryWorld, booking: Ref) -> dict[str, Any]:
    """Cancel an open booking; its allocation stays."""
    artifact = world.artifact(booking, "booking")
    world.attempt(f"equipment:{artifact.subject}")
    if world.booking_state[booking] != "open":
        raise Rejected("not_open", f"{booking} is {world.booking_state[booking]}", booking=booking)
    world.move_booking(booking, "cancelled")
    world.withdraw(booking, "cancelled")
    return {"booking": booking, "cancelled": True, "invalidated": world.invalidated}


@tool(
    "business",
    refusals=("not_open", "booking_void", "allocation_stale", "out_of_sequence", "calibration_not_in_force"),
)
def run_program(world: FactoryWorld, booking: Ref) -> dict[str, Any]:
    """Run the booked program: the inputs are used up and a batch of units comes out, to be observed and graded."""
    artifact = world.artifact(booking, "booking")
    order_id, content = artifact.subject, artifact.content
    world.attempt(f"equipment:{order_id}")
    state = world.booking_state[booking]
    if state == "void":
        raise Rejected("booking_void", f"{booking} is void: {artifact.cause}", booking=booking)
    if state != "open":
        raise Rejected("not_open", f"{booking} is {state}", booking=booking)
    held = world.artifacts[content.allocation]
    allocation = _open_allocation(world, held)
    if held.status == STALE:
        raise Rejected("allocation_stale", f"{held.ref} is stale: {held.cause}", allocation=held.ref)
    if content.start < world.clock_of[content.cell_id]:
        raise Rejected("out_of_sequence", f"{content.cell_id} has run later work", cell_id=content.cell_id)
    calibration = world.calibration(content.calibration)
    _in_force(world, calibration, allocation.units)
    del world.open_allocations[held.ref]
    world.move_booking(booking, "run")
    world.clock_of[content.cell_id] = content.end
    world.amend("calibrations", calibration.calibration_id, units_run=calibration.units_run + allocation.units)
    for taken in allocation.inputs:
        world.commit(taken.unit_ids, "used")
    first = len(world.units_of[order_id])
    unit_ids = tuple(derived("unt", order_id, first + n) for n in range(1, allocation.units + 1))
    run = Batch(
        order_id,
        held.ref,
        booking,
        content.program_id,
        content.cell_id,
        content.calibration,
        content.end,
        unit_ids,
    )
    batch = _make(world, "batch", order_id, run, [booking, held.ref], "equipment")
    for ordinal, unit_id in enumerate(unit_ids, first + 1):
        unit = Unit(unit_id, order_id, ordinal, batch.id, 1, content.program_id, content.calibration, content.end)
        world.put("units", unit_id, unit)
        world.units_of[order_id].append(unit_id)
    world.take_captures(batch)
    world.tally(order_id, started=allocation.units)
    return _answer(
        world,
        "batch",
        batch,
        unit_ids=unit_ids,
        cell_id=content.cell_id,
        calibration=content.calibration,
        end=content.end,
    )


# -- quality ---------------------------------------------------------------------------------------------------------


def _version(world: FactoryWorld, batch: str, goal: str) -> tuple[Artifact, list[Unit]]:
    """A batch version and the units in it."""
    artifact = world.artifact(batch, "batch")
    world.attempt(f"{goal}:{artifact.subject}")
    units = world.units_in(artifact)
    if not units:
        raise Rejected("superseded_version", f"{batch} holds no unit any more", batch=batch)
    return artifact, units


@tool("business", refusals=("foreign_capture", "superseded_version"), checks=False)
def record_observations(
    world: FactoryWorld, batch: Ref, capture_ids: Annotated[list[Id], Meta(min_length=1, max_length=20)]
) -> dict[str, Any]:
    """Record captures of a batch version as evidence for its verdicts."""
    refuse_repeats("capture", capture_ids)
    captures = [world.get("captures", c) for c in capture_ids]
    artifact, _ = _version(world, batch, "order")
    for capture in captures:
        if capture.batch != batch:
            raise Rejected(
                "foreign_capture", f"{capture.capture_id} was not taken of {batch}", capture_id=capture.capture_id
            )
    content = Observation(batch, tuple(capture_ids))
    observation = _make(world, "observation", artifact.subject, content, [batch], "order")
    kinds = world.observed.setdefault(batch, set())
    kinds.update(c.kind for c in captures)
    world.observations_of.setdefault(batch, []).append(observation.ref)
    return _answer(world, "observation", observation, recorded=sorted(kinds))


_COUNTED_AS: dict[Verdict | None, tuple[str, ...]] = {
    None: ("in_process",),
    "A": ("accepted",),
    "B": ("accepted",),
    "rework": ("on_hold", "in_process"),
    "scrap": ("scrapped",),
}
"""Verdict -> what a unit counts as in its order's progress."""


@tool(
    "business",
    refusals=("superseded_version", "verdict_set", "missing_observations", "calibration_mismatch", "unit_committed"),
)
def finalize_units(world: FactoryWorld, batch: Ref, calibration: Ref, verdicts: Verdicts) -> dict[str, Any]:
    """Give the verdict on every unit of a batch version; again, until a unit has been used or shipped."""
    world.calibration(calibration)
    for unit_id in verdicts:
        world.unit(unit_id)
    artifact, units = _version(world, batch, "order")
    order = world.order(artifact.subject)
    if verdicts.keys() != {u.unit_id for u in units}:
        raise Rejected("verdict_set", f"the verdicts are not on exactly the units of {batch}", batch=batch)
    lacking = [kind for kind in order.mandatory if kind not in world.observed.get(batch, ())]
    if lacking:
        raise Rejected("missing_observations", f"a mandatory kind of {batch} is not recorded", batch=batch)
    if calibration != artifact.content.calibration:
        raise Rejected("calibration_mismatch", f"{batch} was not run under {calibration}", calibration=calibration)
    for unit in units:
        if unit.place in ("used", "shipped") and unit.verdict != verdicts[unit.unit_id]:
            raise Rejected("unit_committed", f"{unit.unit_id} is {unit.place}", unit_id=unit.unit_id)
    changes = dict.fromkeys(("accepted", "on_hold", "scrapped", "in_process"), 0)
    turned = []
    for unit in units:
        verdict = verdicts[unit.unit_id]
        if verdict == unit.verdict:
            continue
        given = world.set_unit(unit, verdict=verdict)
        for name in _COUNTED_AS[unit.verdict]:
            changes[name] -= 1
        for name in _COUNTED_AS[verdict]:
            changes[name] += 1
        if unit.accepted != given.accepted:
            turned.append(unit.unit_id)
    goal = f"order:{order.order_id}"
    known = world.disposition_of.get(batch)
    disposition = _make(
        world,
        "disposition",
        order.order_id,
        Disposition(batch, calibration, dict(verdicts)),
        [batch, calibration, *world.observations_of[batch]],
        "order",
        ordinal=_ordinal(known) if known else None,
    )
    world.disposition_of[batch] = disposition.id
    progress = world.tally(order.order_id, **changes)
    if turned:
        world.changed(*turned, cause="acceptance of a unit changed")
    short = max(0, order.quantity - progress.accepted)
    world.judge(goal, not short, "short" if short else None)
    if world.newest_of("completion", order.order_id):
        world.changed(order.order_id, cause=f"{order.order_id} lacks accepted units")
    elif not short:
        content = Completion(order.order_id, order.quantity)
        inputs, reads = [disposition.ref], [order.order_id]
        world.publish("completion", order.order_id, content, inputs, reads=reads, goal=goal, module=goal)
        world.count("orders_completed")
    return _answer(
        world,
        "disposition",
        disposition,
        accepted=progress.accepted,
        on_hold=progress.on_hold,
        scrapped=progress.scrapped,
        short=short,
        held=[unit_id for unit_id, verdict in verdicts.items() if verdict == "rework"],
    )


@tool("business", refusals=("not_on_hold", "permit_exceeded", "too_early", "bench_full"))
def rework_units(world: FactoryWorld, batch: Ref, unit_ids: UnitIds, day: Day) -> dict[str, Any]:
    """Rework units on hold of a batch version on the bench; they come back as the batch's next version."""
    refuse_repeats("unit", unit_ids)
    artifact = world.artifact(batch, "batch")
    order = world.order(artifact.subject)
    units = [world.unit(u) for u in unit_ids]
    world.attempt(f"rework:{order.order_id}")
    for unit in units:
        inside = (unit.batch_id, unit.version) == (artifact.id, artifact.version)
        if not inside or unit.verdict != "rework" or unit.place != "stock":
            raise Rejected("not_on_hold", f"{unit.unit_id} is not on hold in {batch}", unit_id=unit.unit_id)
    if world.progress(order.order_id).reworked + len(units) > order.rework_permit:
        raise Rejected("permit_exceeded", f"{order.order_id} may not rework so many units", permit=order.rework_permit)
    if DAY * day < artifact.content.end:
        raise Rejected("too_early", f"{batch} is not there at the beginning of day {day}", end=artifact.content.end)
    bench = world.ledgers["bench"]
    following = f"{artifact.id}@{world.newest[artifact.id].version + 1}"
    bench.reserve(str(day), len(units), order.order_id, following, "bench_full")
    bench.use(following)
    end = DAY * (day + 1)
    content = replace(artifact.content, end=end, unit_ids=tuple(sorted(unit_ids, key=_ordinal)), day=day)
    inputs = [batch, *world.sources_of(units)]
    made = _make(world, "batch", order.order_id, content, inputs, "rework", ordinal=_ordinal(artifact.id))
    for unit in units:
        world.set_unit(unit, version=made.version, verdict=None, reworks=unit.reworks + 1, ready=end)
        world.reworked_units[unit.unit_id] = None
    world.take_captures(made)
    progress = world.tally(order.order_id, on_hold=-len(units), reworked=len(units))
    left = order.rework_permit - progress.reworked
    return _answer(world, "batch", made, unit_ids=content.unit_ids, end=end, permit_left=left)


# -- delivery --------------------------------------------------------------------------------------------------------


@tool("business", refusals=("not_terminal", "unit_unavailable", "gauge_reject"))
def dispatch_order(world: FactoryWorld, order_id: OrderId, unit_ids: UnitIds) -> dict[str, Any]:
    """Ship free accepted units of a terminal order."""
    refuse_repeats("unit", unit_ids)
    order = world.order(order_id)
    units = [world.unit(u) for u in unit_ids]
    world.attempt(f"dispatch:{order_id}")
    if not order.terminal:
        raise Rejected("not_terminal", f"{order_id} supplies other orders", order_id=order_id)
    for unit in units:
        if unit.unit_id not in world.free_units[order_id]:
            raise Rejected("unit_unavailable", f"{unit.unit_id} is no free unit of {order_id}", unit_id=unit.unit_id)
    for unit in units:
        if world.true_grade(unit) not in GRADES:
            raise Rejected("gauge_reject", f"the dock gauge does not pass {unit.unit_id}", unit_id=unit.unit_id)
    world.commit(unit_ids, "shipped")
    progress = world.tally(order_id, shipped=len(units))
    sources = world.sources_of(units)
    content = Shipment(order_id, tuple(unit_ids))
    shipment = _make(world, "shipment", order_id, content, sources, "dispatch")
    return _answer(world, "shipment", shipment, shipped=progress.shipped)


@tool("business", refusals=("units_on_hold", "balance_mismatch"))
def close_production(
    world: FactoryWorld, levels: Annotated[list[LevelRow], Meta(min_length=1, max_length=20)]
) -> dict[str, Any]:
    """Close production over the totals of every level."""
    refuse_repeats("level", (row.level for row in levels))
    for row in levels:
        if row.level not in world.totals:
            raise Rejected("unknown_id", f"no level {row.level}", id=str(row.level))
    world.attempt("close")
    if world.on_hold:
        raise Rejected("units_on_hold", "units are still on hold", units=world.on_hold)
    given = {row.level: LevelTotals(**asdict(row)) for row in levels}
    for level, totals in world.totals.items():
        if level not in given:
            raise Rejected("balance_mismatch", f"level {level} is missing", level=level)
        for name, total in totals.items():
            if getattr(given[level], name) != total:
                raise Rejected("balance_mismatch", f"level {level}: {name} differs", level=level, field=name)
    content = Close(tuple(given[level] for level in sorted(given)))
    artifact = world.publish("close", world.plan_id, content, [], reads=["totals"], goal="close", module="close")
    return _answer(world, "close", artifact)
