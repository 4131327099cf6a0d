"""Each refusal of the plant, from a call of the reference that is right but for one thing."""

from __future__ import annotations

import pytest

from skillhorizon.envs.factory.seed import DAY, plant
from tests.envs.factory.stops import CONSTRAINED, EQUIPMENT, SELECTIVE, before, order_of, regrade, upper


def with_line(arguments, index, **changes):
    lines = [{**line, **changes} if n == index else line for n, line in enumerate(arguments["lines"])]
    return {**arguments, "lines": lines}


# -- inputs ----------------------------------------------------------------------------------------------------------


def test_no_more_may_be_started_than_is_lacking():
    bench, call = before("allocate_inputs")
    bench.assert_refused("over_start", "allocate_inputs", **{**call, "units": call["units"] + 1})
    bench.do("allocate_inputs", **call)
    bench.assert_refused("over_start", "allocate_inputs", **call)
    assert bench.gateway.events[-1].check is False
    assert bench.gateway.events[-1].goal == f"material:{call['order_id']}"


def test_every_line_gets_its_count():
    bench, call = before("allocate_inputs")
    bench.assert_refused("wrong_count", "allocate_inputs", **{**call, "units": call["units"] - 1})
    bench.assert_refused("wrong_count", "allocate_inputs", **{**call, "lines": call["lines"][:1]})


def test_suppliers_must_be_complete():
    bench, call = before("run_program")
    bench.do("run_program", booking=call["booking"])
    (first, second), order = list(bench.world.tables["units"])[:2], None
    for order in bench.world.by_level[2]:
        lines = [{"line": 1, "unit_ids": [first]}, {"line": 2, "unit_ids": [second]}]
        bench.assert_refused("supplier_incomplete", "allocate_inputs", order_id=order.order_id, units=1, lines=lines)


def test_units_must_come_from_the_supplier_that_the_line_names():
    bench, call = before("allocate_inputs", upper)
    lines = [{**a, "unit_ids": b["unit_ids"]} for a, b in zip(call["lines"], call["lines"][::-1], strict=True)]
    bench.assert_refused("wrong_supplier", "allocate_inputs", **{**call, "lines": lines})


def test_units_must_be_free():
    bench, call = before("allocate_inputs", upper)
    taken = call["lines"][0]["unit_ids"]
    bench.do("finalize_units", **regrade(bench, taken[0], "scrap"))
    supplier = bench.world.unit(taken[0]).order_id
    bench.world.tally(supplier, accepted=1)  # as if the supplier had been topped up
    bench.assert_refused("unit_unavailable", "allocate_inputs", **call)


def takes_grade_a(bench, arguments):
    """An order with a line that wants grade A, whose supplier has a free B unit too."""
    world = bench.world
    suppliers = [line.supplier_order for line in world.order(arguments["order_id"]).lines if line.fit == "A"]
    return any(world.unit(u).verdict == "B" for s in suppliers for u in world.free_units[s])


def test_an_a_line_takes_units_that_are_recorded_as_a_and_are_it():
    bench, call = before("allocate_inputs", takes_grade_a, None)
    order = bench.world.order(call["order_id"])
    index, line = next((n, line) for n, line in enumerate(order.lines) if line.fit == "A")
    free = bench.world.free_units[line.supplier_order]
    poor = next(u for u in free if bench.world.unit(u).verdict == "B")
    units = [poor, *call["lines"][index]["unit_ids"][1:]]
    bench.assert_refused("grade_too_low", "allocate_inputs", **with_line(call, index, unit_ids=units))
    bench.do("finalize_units", **regrade(bench, poor, "A"))
    bench.assert_refused("fit_reject", "allocate_inputs", **with_line(call, index, unit_ids=units))


def test_lots_must_be_of_the_material_released_certified_and_large_enough():
    bench, call = before("allocate_inputs")
    material = bench.world.order(call["order_id"]).lines[0].material
    lots = bench.world.tables["lots"]
    count = call["units"]
    own = {
        state: [i for i in bench.world.lots_of[material] if lots[i].state == state]
        for state in ("released", "quarantined")
    }
    low = min(own["released"], key=lambda i: lots[i].cert)
    other = next(i for i in lots if lots[i].material_id != material)
    for lot_id in (*own["quarantined"], low, other):
        parts = [{"lot_id": lot_id, "quantity": count}]
        bench.assert_refused("lot_unusable", "allocate_inputs", **with_line(call, 0, lots=parts))
    good = call["lines"][0]["lots"][0]["lot_id"]
    bench.world.amend("lots", good, quantity_left=count - 1)
    parts = [{"lot_id": good, "quantity": count}]
    bench.assert_refused("insufficient_lot", "allocate_inputs", **with_line(call, 0, lots=parts))


def test_arguments_that_name_a_thing_twice_or_do_not_exist():
    bench, call = before("allocate_inputs")
    part = call["lines"][0]["lots"][0]
    bench.assert_refused("bad_argument", "allocate_inputs", **{**call, "lines": [*call["lines"], call["lines"][0]]})
    bench.assert_refused("bad_argument", "allocate_inputs", **with_line(call, 0, lots=[part, part]))
    bench.assert_refused("bad_argument", "allocate_inputs", **with_line(call, 0, unit_ids=["unt-00000-1"]))
    bench.assert_refused("unknown_id", "allocate_inputs", **with_line(call, 0, line=9))
    bench.assert_refused("unknown_id", "allocate_inputs", **with_line(call, 0, lots=[{**part, "lot_id": "lot-00000"}]))
    bench.assert_refused("unknown_id", "calibrate_tool", cell_id="cel-00000", tool_family="bore")
    lacking = next(c.cell_id for c in plant().cells if (c.cell_id, "bore") not in plant().tool_at)
    bench.assert_refused("unknown_id", "calibrate_tool", cell_id=lacking, tool_family="bore")
    assert all(e.check is None for e in bench.gateway.events[-6:])


def test_an_allocation_is_released_once_and_not_under_an_open_booking():
    bench, call = before("run_program")
    booking = bench.world.artifacts[call["booking"]].content
    bench.assert_refused("booking_open", "release_allocation", allocation=booking.allocation)
    bench.do("cancel_booking", booking=call["booking"])
    bench.do("release_allocation", allocation=booking.allocation)
    bench.assert_refused("not_open", "release_allocation", allocation=booking.allocation)


# -- equipment -------------------------------------------------------------------------------------------------------


def test_bookings_want_an_open_allocation_and_a_program_of_the_product():
    bench, call = before("book_cell")
    world = bench.world
    product = world.order(world.artifacts[call["allocation"]].subject).product_id
    other = next(p for p in plant().programs if p != product)
    program = plant().programs[other][0].program_id
    bench.assert_refused("wrong_program", "book_cell", **{**call, "program_id": program, "revision": 1})
    bench.assert_refused("unknown_id", "book_cell", **{**call, "revision": 9})
    bench.do("release_allocation", allocation=call["allocation"])
    bench.assert_refused("not_open", "book_cell", **call)


def test_only_the_released_revision_may_be_booked():
    bench, call = before("book_cell")
    for revision in {1, 2, 3} - {call["revision"]}:
        bench.assert_refused("revision_not_released", "book_cell", **{**call, "revision": revision})


def test_cells_must_be_qualified_and_able():
    bench, call = before("book_cell")
    rows = plant().program_cells[call["program_id"]]
    program = bench.world.get("programs", call["program_id"])
    foreign = next(c.cell_id for c in plant().cells if c.cell_id not in {r.cell_id for r in rows})
    unfit = next(
        r.cell_id
        for r in rows
        if r.qualified_until is not None or not bench.world.able(bench.world.get("cells", r.cell_id), program)
    )
    for cell_id in (foreign, unfit):
        bench.assert_refused("not_qualified", "book_cell", **{**call, "cell_id": cell_id})


def test_the_interval_must_be_as_long_as_the_run():
    bench, call = before("book_cell")
    for ticks in (call["ticks"] - 1, call["ticks"] + 1):
        bench.assert_refused("duration_mismatch", "book_cell", **{**call, "ticks": ticks})


def test_a_run_begins_when_its_inputs_are_ready_on_a_free_cell():
    bench, call = before("book_cell", lambda bench, c: bench.world.artifacts[c["allocation"]].content.ready > 0)
    ready = bench.world.artifacts[call["allocation"]].content.ready
    bench.assert_refused("inputs_not_ready", "book_cell", **{**call, "start": ready - 1})
    later = -(-call["start"] // DAY) * DAY
    busy = min(b for b in plant().busy[call["cell_id"], later // DAY])
    bench.assert_refused("cell_unavailable", "book_cell", **{**call, "start": busy.end - 1})
    bench.assert_refused("cell_unavailable", "book_cell", **{**call, "start": later})  # before the shift
    bench.world.clock_of[call["cell_id"]] = call["start"] + 1
    bench.assert_refused("cell_unavailable", "book_cell", **call)


def test_two_bookings_of_a_cell_do_not_meet():
    bench, call = before("book_cell")
    bench.do("book_cell", **call)
    for start in (call["start"], call["start"] + call["ticks"] - 1):
        bench.assert_refused("cell_unavailable", "book_cell", **{**call, "start": start})


def test_calibrations_must_be_the_tools_newest_and_good_for_the_units():
    bench, call = before("book_cell")
    identity = call["calibration"].partition("@")[0]
    stem, _, number = identity.rpartition("-")
    older, cell = f"{stem}-{int(number) - 1}@1", call["cell_id"]
    others = [t for t in plant().tools[cell] if bench.world.calibration(call["calibration"]).tool_id != t.tool_id]
    foreign = f"{bench.world.calibrations_of(others[0].tool_id)[0]}@1"
    for calibration in (older, foreign):
        bench.assert_refused("calibration_not_in_force", "book_cell", **{**call, "calibration": calibration})
    bench.assert_refused("unknown_id", "book_cell", **{**call, "calibration": f"{identity}@2"})
    units = bench.world.artifacts[call["allocation"]].content.units
    bench.world.amend("calibrations", identity, units_run=72 - units)
    bench.world.amend("calibrations", identity, units_run=73 - units)
    bench.assert_refused("calibration_not_in_force", "book_cell", **call)
    bench.world.amend("calibrations", identity, units_run=72 - units)
    bench.do("book_cell", **call)


def test_bookings_are_run_or_cancelled_once():
    bench, call = before("run_program")
    bench.do("run_program", **call)
    bench.assert_refused("not_open", "run_program", **call)
    bench.assert_refused("not_open", "cancel_booking", **call)


def test_the_second_booking_of_an_allocation_cannot_be_run():
    bench, call = before("run_program")
    booking = bench.world.artifacts[call["booking"]].content
    hedge = {f: getattr(booking, f) for f in ("allocation", "program_id", "revision", "cell_id", "calibration")}
    ticks = booking.end - booking.start
    start = next(
        t for t in range(booking.end, booking.end + 900) if not any(bench.world.busy(booking.cell_id, t, t + ticks))
    )
    second = bench.do("book_cell", **hedge, start=start, ticks=ticks)["booking"]
    bench.do("run_program", **call)
    bench.assert_refused("not_open", "run_program", booking=second)
    assert "equipment_released" in bench.failing()
    bench.do("cancel_booking", booking=second)
    assert "equipment_released" not in bench.failing()


def test_runs_of_a_cell_go_forward_and_share_the_calibration():
    bench, call = before("run_program")
    booking = bench.world.artifacts[call["booking"]].content
    bench.world.clock_of[booking.cell_id] = booking.start + 1
    bench.assert_refused("out_of_sequence", "run_program", **call)
    bench.world.clock_of[booking.cell_id] = booking.start
    bench.world.amend("calibrations", booking.calibration.partition("@")[0], units_run=72)
    bench.assert_refused("calibration_not_in_force", "run_program", **call)


# -- quality ---------------------------------------------------------------------------------------------------------


def test_captures_must_be_of_the_batch_version():
    bench, call = before("record_observations", lambda bench, c: c["batch"].endswith("@2"), SELECTIVE)
    first = call["batch"].replace("@2", "@1")
    bench.assert_refused(
        "foreign_capture", "record_observations", **{**call, "capture_ids": bench.world.captures_of[first]}
    )
    bench.assert_refused("bad_argument", "record_observations", **{**call, "capture_ids": call["capture_ids"][:1] * 2})


def test_verdicts_want_exactly_the_units_the_evidence_and_the_runs_calibration():
    bench, call = before("finalize_units")
    units = list(call["verdicts"])
    bench.assert_refused("verdict_set", "finalize_units", **{**call, "verdicts": {units[0]: "A"}})
    identity = call["calibration"].partition("@")[0]
    older = f"{identity.rpartition('-')[0]}-1@1"
    bench.assert_refused("calibration_mismatch", "finalize_units", **{**call, "calibration": older})
    order = order_of(bench, call["batch"])
    bench.world.observed[call["batch"]].discard(order.mandatory[1])
    bench.assert_refused("missing_observations", "finalize_units", **call)


def test_a_version_that_lost_all_its_units_is_superseded():
    bench, call = before("finalize_units", lambda bench, c: c["batch"].endswith("@2"), CONSTRAINED)
    world, first = bench.world, call["batch"].replace("@2", "@1")
    for unit in world.units_in(world.artifacts[first]):
        world.set_unit(unit, version=2)
    verdicts = dict.fromkeys(world.artifacts[first].content.unit_ids, "B")
    bench.assert_refused("superseded_version", "finalize_units", **{**call, "batch": first, "verdicts": verdicts})
    captures = world.captures_of[first]
    bench.assert_refused("superseded_version", "record_observations", batch=first, capture_ids=captures)


def test_verdicts_stand_once_a_unit_is_used_and_may_change_before():
    bench, call = before("run_program", lambda bench, c: bench.world.artifacts[c["booking"]].content.start > 60)
    allocation = bench.world.artifacts[bench.world.artifacts[call["booking"]].content.allocation].content
    units = [u for taken in allocation.inputs for u in taken.unit_ids]
    assert units
    unit = next(u for u in units if bench.world.unit(u).verdict == "B")
    bench.do("finalize_units", **regrade(bench, unit, "A"))
    bench.do("finalize_units", **regrade(bench, unit, "B"))
    bench.do("run_program", **call)
    bench.assert_refused("unit_committed", "finalize_units", **regrade(bench, unit, "A"))
    bench.do("finalize_units", **regrade(bench, unit, "B"))


def test_rework_wants_units_on_hold_a_permit_and_a_place():
    bench, call = before("rework_units", configuration=CONSTRAINED)
    world, order = bench.world, order_of(bench, call["batch"])
    good = next(u for u in world.units_of[order.order_id] if world.unit(u).accepted)
    bench.assert_refused("not_on_hold", "rework_units", **{**call, "unit_ids": [good]})
    end = world.artifacts[call["batch"]].content.end
    assert end % DAY
    bench.assert_refused("too_early", "rework_units", **{**call, "day": end // DAY})
    bench.do("finalize_units", **regrade(bench, good, "rework"))
    held = [u for u in world.units_of[order.order_id] if world.unit(u).verdict == "rework"]
    if len(held) > order.rework_permit:
        bench.assert_refused("permit_exceeded", "rework_units", **{**call, "unit_ids": held})
    else:
        world.tally(order.order_id, reworked=order.rework_permit)
        bench.assert_refused("permit_exceeded", "rework_units", **call)
        world.tally(order.order_id, reworked=-order.rework_permit)
    world.ledgers["bench"].reserve(str(call["day"]), 2, order.order_id, "another")
    bench.assert_refused("bench_full", "rework_units", **call)


# -- delivery --------------------------------------------------------------------------------------------------------


def test_only_free_conforming_units_of_a_terminal_order_are_shipped():
    bench, call = before("dispatch_order")
    lower = bench.world.by_level[1][0].order_id
    units = call["unit_ids"]
    bench.assert_refused("not_terminal", "dispatch_order", **{**call, "order_id": lower})
    bench.assert_refused("unit_unavailable", "dispatch_order", **{**call, "unit_ids": [bench.world.units_of[lower][0]]})
    outcomes = bench.world.tables["outcomes"]
    true = outcomes[call["order_id"]]
    spoilt = type(true)(((999, 0, 0, 0),) * len(true.deviations))
    outcomes[call["order_id"]] = spoilt
    bench.assert_refused("gauge_reject", "dispatch_order", **call)
    outcomes[call["order_id"]] = true
    bench.do("dispatch_order", **{**call, "unit_ids": units[:1]})
    bench.assert_refused("unit_unavailable", "dispatch_order", **call)
    bench.do("dispatch_order", **{**call, "unit_ids": units[1:]})


def test_production_closes_over_the_totals_with_nothing_on_hold():
    bench, call = before("close_production", configuration=EQUIPMENT)
    first, *rest = call["levels"]
    for field in ("started", "accepted", "reworked", "scrapped", "shipped"):
        error = bench.assert_refused(
            "balance_mismatch", "close_production", levels=[{**first, field: first[field] + 1}, *rest]
        )
        assert error["details"] == {"level": 1, "field": field}
    assert bench.assert_refused("balance_mismatch", "close_production", levels=rest)["details"] == {"level": 1}
    bench.assert_refused("bad_argument", "close_production", levels=[first, first])
    bench.assert_refused("unknown_id", "close_production", levels=[*call["levels"], {**first, "level": 9}])
    bench.world.on_hold = 1
    bench.assert_refused("units_on_hold", "close_production", **call)


@pytest.mark.parametrize("tool", ["get_artifact", "read_instruments", "get_batch"])
def test_references_that_do_not_exist(tool):
    bench, call = before("record_observations")
    name = "ref" if tool == "get_artifact" else "batch"
    bench.assert_refused("unknown_id", tool, **{name: call["batch"].replace("@1", "@2")})
    if tool != "get_artifact":
        booking = bench.world.artifacts[call["batch"]].content.booking
        bench.assert_refused("unknown_id", tool, **{name: booking})
