"""What becomes stale in the plant: exactly what the rules say, and nothing else."""

from __future__ import annotations

import pytest

from skillhorizon.core.world import CURRENT, STALE, SUPERSEDED, Update
from skillhorizon.envs.factory.records import Drift, Maintenance
from skillhorizon.envs.factory.seed import DAY, plant
from tests.envs.factory.stops import CONSTRAINED, EQUIPMENT, SELECTIVE, before, regrade


def statuses(bench):
    return {ref: artifact.status for ref, artifact in bench.world.artifacts.items()}


def strike(bench, effect):
    """The update as the core would apply it, and which artifacts it changed."""
    earlier = statuses(bench)
    bench.world.begin_call()
    bench.world.apply_update(Update(99, "orders_completed", 1, effect))
    return {ref for ref, status in statuses(bench).items() if earlier[ref] != status}


def late(bench, arguments):
    """A run in the middle of the work."""
    return len(bench.world.artifacts) > 40


def booking_of(bench, ref):
    return bench.world.artifacts[ref].content


def test_drift_voids_calibrations_of_the_family_and_open_bookings_made_with_them():
    bench, call = before("run_program", late, SELECTIVE)
    booking = booking_of(bench, call["booking"])
    family = bench.world.get("programs", booking.program_id).tool_family
    units = dict(bench.world.tables["units"])
    changed = strike(bench, Drift(family))
    made = {ref for ref in changed if ref.startswith("cal-")}
    assert changed - made == {call["booking"]}
    assert [a.goal for a in bench.world.voided if a.kind == "booking"] == [f"equipment:{booking.order_id}"]
    assert bench.world.tables["units"] == units, "accepted units keep their status"
    for tool in bench.world.seed_tables["cell_tools"].values():
        void = [bench.world.get("calibrations", c).void for c in bench.world.calibrations_of(tool.tool_id)]
        if tool.tool_family == family:
            assert all(void)
        else:
            assert not any(void[1:])
    bench.assert_refused("booking_void", "run_program", **call)
    assert bench.do("list_bookings", state="void")["items"][0]["booking"] == call["booking"]
    assert "equipment_released" in bench.failing(), "the allocation is still open"


def test_a_void_booking_is_made_again_with_a_new_calibration():
    bench, call = before("run_program", late, SELECTIVE)
    booking = booking_of(bench, call["booking"])
    program = bench.world.get("programs", booking.program_id)
    strike(bench, Drift(program.tool_family))
    fields = ("allocation", "program_id", "revision", "cell_id", "start")
    again = {f: getattr(booking, f) for f in fields} | {"ticks": booking.end - booking.start}
    bench.assert_refused("calibration_not_in_force", "book_cell", **again, calibration=booking.calibration)
    made = bench.do("calibrate_tool", cell_id=booking.cell_id, tool_family=program.tool_family)
    made = bench.do("book_cell", **again, calibration=made["calibration"])
    bench.do("run_program", booking=made["booking"])


def test_batches_that_ran_before_a_drift_are_graded_by_the_calibration_of_their_run():
    bench, call = before("finalize_units", late, SELECTIVE)
    batch = bench.world.artifacts[call["batch"]].content
    family = bench.world.get("programs", batch.program_id).tool_family
    rows = bench.do("read_instruments", batch=call["batch"])["items"]
    strike(bench, Drift(family))
    made = bench.do("calibrate_tool", cell_id=batch.cell_id, tool_family=family)
    assert bench.do("read_instruments", batch=call["batch"])["items"] == rows
    bench.assert_refused("calibration_mismatch", "finalize_units", **{**call, "calibration": made["calibration"]})
    bench.do("finalize_units", **call)


def test_maintenance_voids_open_bookings_in_the_closed_day_and_no_others():
    bench, call = before("run_program", late)
    booking = booking_of(bench, call["booking"])
    ticks = booking.end - booking.start
    clock = bench.world.clock_of[booking.cell_id]
    start = next(
        t for t in range(clock + DAY, clock + 9 * DAY) if not any(bench.world.busy(booking.cell_id, t, t + ticks))
    )
    fields = ("allocation", "program_id", "revision", "cell_id", "calibration")
    later = bench.do("book_cell", **{f: getattr(booking, f) for f in fields}, start=start, ticks=ticks)["booking"]
    others = tuple(c for c in bench.world.clock_of if c != booking.cell_id)
    assert strike(bench, Maintenance(others)) == set()
    assert strike(bench, Maintenance((booking.cell_id,))) == {call["booking"]}
    bench.assert_refused("booking_void", "run_program", **call)
    busy = bench.do("list_cell_calendar", cell_id=booking.cell_id, from_tick=clock)
    assert {"start": clock, "end": clock + DAY, "kind": "maintenance"} in busy["items"]
    text = bench.do("list_notices")["items"][-1]["text"]
    assert f"{booking.cell_id} from tick {clock} to {clock + DAY}" in text
    bench.do("run_program", booking=later)


def uses_units(bench, arguments):
    content = bench.world.artifacts[booking_of(bench, arguments["booking"]).allocation].content
    return any(taken.unit_ids for taken in content.inputs)


def test_an_allocation_is_stale_while_an_input_is_not_accepted_and_never_after_its_run():
    bench, call = before("run_program", uses_units)
    allocation = bench.world.artifacts[booking_of(bench, call["booking"]).allocation]
    unit = next(u for taken in allocation.content.inputs for u in taken.unit_ids)
    grade = bench.world.unit(unit).verdict
    earlier = statuses(bench)
    answer = bench.do("finalize_units", **regrade(bench, unit, "scrap"))
    supplier = bench.world.unit(unit).order_id
    completion = bench.world.newest_of("completion", supplier)
    assert answer["invalidated"] == sorted([allocation.ref, completion.ref])
    assert bench.gateway.events[-1].invalidated == (f"material:{allocation.subject}", f"order:{supplier}")
    now = statuses(bench)
    changed = {ref for ref in earlier if now[ref] != earlier[ref]}
    assert {r for r in changed if now[r] == STALE} == {allocation.ref, completion.ref}
    assert {now[r] for r in changed} == {STALE, SUPERSEDED}, "the earlier disposition is superseded"
    bench.assert_refused("allocation_stale", "run_program", **call)
    bench.do("cancel_booking", booking=call["booking"])
    fields = ("allocation", "program_id", "revision", "cell_id", "calibration", "start")
    booking = booking_of(bench, call["booking"])
    again = {f: getattr(booking, f) for f in fields} | {"ticks": booking.end - booking.start}
    bench.assert_refused("allocation_stale", "book_cell", **again)
    bench.do("finalize_units", **regrade(bench, unit, grade))
    assert bench.world.artifacts[allocation.ref].status == CURRENT
    assert bench.world.artifacts[completion.ref].status == CURRENT
    bench.do("run_program", booking=bench.do("book_cell", **again)["booking"])
    bench.assert_refused("unit_committed", "finalize_units", **regrade(bench, unit, "scrap"))


def test_a_lost_input_can_be_released_and_is_not_free_afterwards():
    bench, call = before("run_program", uses_units)
    allocation = bench.world.artifacts[booking_of(bench, call["booking"]).allocation]
    unit = next(u for taken in allocation.content.inputs for u in taken.unit_ids)
    bench.do("finalize_units", **regrade(bench, unit, "scrap"))
    bench.do("cancel_booking", booking=call["booking"])
    bench.do("release_allocation", allocation=allocation.ref)
    taken = [u for i in allocation.content.inputs for u in i.unit_ids]
    free = bench.world.free_units
    assert [u for u in taken if u not in free[bench.world.unit(u).order_id]] == [unit]


def test_another_grade_is_no_loss_of_acceptance():
    bench, call = before("run_program", uses_units)
    allocation = bench.world.artifacts[booking_of(bench, call["booking"]).allocation]
    unit = next(u for taken in allocation.content.inputs for u in taken.unit_ids)
    other = "A" if bench.world.unit(unit).verdict == "B" else "B"
    assert bench.do("finalize_units", **regrade(bench, unit, other))["invalidated"] == []
    bench.do("run_program", **call)


def lower_scrap(bench):
    """A scrapped unit of the first level."""
    units = bench.world.tables["units"].values()
    return next((u for u in units if u.verdict == "scrap" and bench.world.order(u.order_id).level == 1), None)


def test_the_close_is_stale_once_a_total_changes_and_current_when_it_is_right_again():
    bench, call = before("close_production", lambda bench, c: lower_scrap(bench) is not None, None)
    close = bench.do("close_production", **call)["close"]
    unit = lower_scrap(bench)
    assert bench.do("finalize_units", **regrade(bench, unit.unit_id, "A"))["invalidated"] == [close]
    assert bench.failing() == {"conforming", "material_balance"}
    bench.do("finalize_units", **regrade(bench, unit.unit_id, "scrap"))
    assert bench.world.artifacts[close].status == CURRENT
    assert bench.failing() == set()


def test_a_rework_supersedes_the_version_for_the_units_that_went_and_only_for_them():
    bench, call = before("rework_units", configuration=CONSTRAINED)
    first = bench.world.artifacts[call["batch"]]
    made = bench.do("rework_units", **call)
    assert made["invalidated"] == []
    assert {u.unit_id for u in bench.world.units_in(bench.world.artifacts[made["batch"]])} == set(call["unit_ids"])
    left = set(first.content.unit_ids) - set(call["unit_ids"])
    assert {u.unit_id for u in bench.world.units_in(first)} == left
    assert made["end"] == DAY * (call["day"] + 1) == bench.world.unit(call["unit_ids"][0]).ready
    assert all(bench.world.unit(u).verdict for u in left)
    assert bench.world.unit(call["unit_ids"][0]).verdict is None


@pytest.mark.parametrize("configuration", [EQUIPMENT, SELECTIVE, CONSTRAINED])
def test_a_whole_reference_run_leaves_nothing_stale_but_void_calibrations(configuration):
    bench, call = before("close_production", configuration=configuration)
    bench.do("close_production", **call)
    stale = [a for a in bench.world.artifacts.values() if a.status == STALE]
    assert {a.kind for a in stale} <= {"calibration"}
    assert len(bench.world.fired) == 2
    kinds = {n.kind for n in bench.world.notices}
    assert kinds <= {"tooling_drift", "cell_maintenance"}
    assert all(t.tool_family in plant().tools_of_family for t in bench.world.seed_tables["cell_tools"].values())
