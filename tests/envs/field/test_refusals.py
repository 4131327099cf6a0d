"""Each refusal code of FieldOps, once for every tool that declares it: refused, and nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from skillhorizon.envs.field.rules import valve_order
from tests.envs.bench import Bench
from tests.envs.field.mutations import corrective_plan
from tests.envs.field.support import FIELD, before, done

CASES: dict[tuple[str, str], Callable[[], tuple[Bench, dict[str, Any]]]] = {}


def case(tool: str, code: str):
    """Declare a function that returns a bench and the arguments that the tool must refuse with this code."""

    def declare(make):
        CASES[tool, code] = make
        return make

    return declare


def made(bench: Bench, tool: str) -> dict[str, Any]:
    """Arguments of the last call of a tool."""
    calls = (json.loads(e.call) for e in reversed(bench.gateway.events))
    arguments: dict[str, Any] = next(c["arguments"] for c in calls if c["name"] == tool)
    return arguments


def with_feeds(given: dict[str, Any], world: Any) -> bool:
    """Whether the call is for a service that another service feeds."""
    return any(f.parent_kind == "service" for f in world.service(given["service_id"]).feeds)


# -- isolations ------------------------------------------------------------------------------------------------------


@case("plan_isolation", "kind_not_allowed")
def _():
    bench, given = before("plan_isolation")
    return bench, {**given, "kind": "corrective"}


@case("plan_isolation", "plan_exists")
def _():
    bench, _ = before("open_isolation")
    return bench, made(bench, "plan_isolation")


@case("plan_isolation", "window_not_offered")
def _():
    bench, given = before("plan_isolation")
    contingency = next(w for w in bench.world.windows if w.kind == "contingency")
    return bench, {**given, "window_id": contingency.window_id}


@case("plan_isolation", "window_before_supply")
def _():
    bench, given = before("plan_isolation", with_feeds)
    offered = [bench.world.window(w) for w in bench.world.service(given["service_id"]).window_ids]
    return bench, {**given, "window_id": min(offered, key=lambda w: w.start_slot).window_id}


def _neighbours(bench: Bench) -> tuple[str, str]:
    world = bench.world
    child = next(s for s in world.services if world.service(s).feeds[0].parent_kind == "service")
    return world.service(child).feeds[0].parent_id, child


def _corrective(bench: Bench, service_id: str) -> dict[str, Any]:
    """Arguments of a corrective plan, made and cancelled again."""
    plan = corrective_plan(bench, service_id, [])
    bench.do("cancel_plan", plan=plan)
    return made(bench, "plan_isolation")


@case("plan_isolation", "window_conflict")
def _():
    bench = done()
    parent, child = _neighbours(bench)
    given = _corrective(bench, child)
    corrective_plan(bench, parent, [])
    return bench, given


@case("plan_isolation", "permit_mismatch")
def _():
    bench, given = before("plan_isolation")
    other = "cold_work" if given["permit_class"] != "cold_work" else "electrical"
    return bench, {**given, "permit_class": other}


@case("plan_isolation", "parents_mismatch")
def _():
    bench, given = before("plan_isolation", with_feeds)
    return bench, {**given, "parent_records": given["parent_records"] * 2}


@case("plan_isolation", "stale_parent")
def _():
    bench, given = before("plan_isolation", with_feeds)
    feeds = bench.world.service(given["service_id"]).feeds
    bench.do("withdraw_certificate", service_id=next(f.parent_id for f in feeds if f.parent_kind == "service"))
    return bench, given


@case("plan_isolation", "dependents_mismatch")
def _():
    bench, given = before("plan_isolation", with_feeds)
    return bench, {**given, "dependents": [bench.world.services[0]]}


@case("cancel_plan", "reservation_held")
def _():
    bench, given = before("open_isolation")
    device_id = made(bench, "plan_isolation")["device_ids"][0]
    world = bench.world
    device = world.device(device_id)
    code = world.newest_of("diagnosis", device_id).content.qualification
    crews = [world.tables["crews"][c] for c in world.crews_of[world.service(device.service_id).depot_id]]
    free = [(c.crew_id, s) for c in crews for s in world.free_slots(c, world.scope(device)) if c.qualified(code, s)]
    bench.do("reserve_crew", device_id=device_id, crew_id=free[0][0], slot=free[0][1])
    return bench, {"plan": given["plan"]}


@case("open_isolation", "boundary_order")
def _():
    bench, given = before("open_isolation")
    return bench, {**given, "valve_order": given["valve_order"][::-1]}


@case("open_isolation", "trunk_isolated")
def _():
    bench = done()
    world = bench.world
    one = world.services[0]
    apart = {one, *world.neighbours(world.service(one))}
    trunk = world.service(one).primary_trunk_id
    other = next(s for s in world.services if s not in apart and world.service(s).primary_trunk_id == trunk)
    plans = {s: corrective_plan(bench, s, []) for s in (one, other)}
    bench.do("open_isolation", plan=plans[one], valve_order=valve_order(world.service(one)))
    return bench, {"plan": plans[other], "valve_order": valve_order(world.service(other))}


@case("open_isolation", "kind_not_allowed")
def _():
    """A planned isolation of a service that was commissioned in the meantime."""
    bench, given = before("commission_service")
    world = bench.world
    service = world.service(given["service_id"])
    earlier = made(bench, "plan_isolation")
    plan = bench.do("plan_isolation", **{**earlier, "device_ids": [], "permit_class": "cold_work"})["ref"]
    bench.do("commission_service", **given)
    return bench, {"plan": plan, "valve_order": valve_order(service)}


def _planned_correctively(bench: Bench, service_id: str) -> dict[str, Any]:
    plan = corrective_plan(bench, service_id, [])
    return {"plan": plan, "valve_order": valve_order(bench.world.service(service_id))}


@case("open_isolation", "stale_parent")
def _():
    bench = done()
    parent, child = _neighbours(bench)
    given = _planned_correctively(bench, child)
    bench.do("withdraw_certificate", service_id=parent)
    return bench, given


def _child_commissioned_after_planning() -> tuple[Bench, dict[str, Any]]:
    """A corrective plan of a service, one of whose children is commissioned for the first time only then."""
    bench, given = before("commission_service", with_feeds)
    world = bench.world
    service = world.service(given["service_id"])
    parent = next(f.parent_id for f in service.feeds if f.parent_kind == "service")
    plan = corrective_plan(bench, parent, [])
    bench.do("commission_service", **given)
    return bench, {"plan": plan, "valve_order": valve_order(world.service(parent))}


@case("open_isolation", "dependents_mismatch")
def _():
    return _child_commissioned_after_planning()


# -- device cases ----------------------------------------------------------------------------------------------------


@case("submit_diagnosis", "wrong_class")
def _():
    bench, given = before("submit_diagnosis")
    other = "ST-61" if not given["fault_code"].startswith("ST") else "PU-11"
    return bench, {**given, "fault_code": other}


@case("reserve_crew", "no_plan")
def _():
    _, given = before("reserve_crew")
    waiting, _ = before("plan_isolation", lambda g, w: g["service_id"] == w.device(given["device_id"]).service_id)
    return waiting, given


@case("reserve_crew", "crew_out_of_depot")
def _():
    bench, given = before("reserve_crew")
    crews = bench.world.tables["crews"]
    own = crews[given["crew_id"]].depot_id
    return bench, {**given, "crew_id": next(c for c in crews if crews[c].depot_id != own)}


@case("reserve_crew", "crew_unqualified")
def _():
    bench, given = before("reserve_crew")
    world = bench.world
    code = world.newest_of("diagnosis", given["device_id"]).content.qualification
    crews = world.crews_of[world.tables["crews"][given["crew_id"]].depot_id]
    other = next(c for c in crews if not world.tables["crews"][c].qualified(code, given["slot"]))
    return bench, {**given, "crew_id": other}


@case("reserve_crew", "crew_unavailable")
def _():
    bench, given = before("reserve_crew")
    return bench, {**given, "slot": bench.world.scope(bench.world.device(given["device_id"])).end_slot + 1}


@case("reserve_spare", "no_plan")
def _():
    _, given = before("reserve_spare")
    waiting, _ = before("plan_isolation", lambda g, w: g["service_id"] == w.device(given["device_id"]).service_id)
    return waiting, given


@case("reserve_spare", "part_incompatible")
def _():
    bench, given = before("reserve_spare")
    tables = bench.world.tables
    model = bench.world.device(given["device_id"]).model
    other = next(b for b in tables["batches"].values() if tables["parts"][b.part_id].model != model)
    return bench, {**given, "batch_id": other.batch_id}


@case("reserve_spare", "batch_unavailable")
def _():
    bench, given = before("reserve_spare")
    batch = bench.world.tables["batches"][given["batch_id"]]
    others = bench.world.batches_of[batch.depot_id, batch.part_id]
    blocked = next(b for b in others if bench.world.tables["batches"][b].status == "quarantine")
    return bench, {**given, "batch_id": blocked}


@case("reserve_spare", "batch_expired")
def _():
    bench, given = before("reserve_spare")
    end = bench.world.scope(bench.world.device(given["device_id"])).end_slot
    bench.world.amend("batches", given["batch_id"], use_by_slot=end - 1)
    return bench, given


@case("release_reservation", "not_held")
def _():
    bench, _ = before("close_isolation")
    return bench, {"reservation": made(bench, "repair_device")["crew_reservation"]}


@case("repair_device", "device_restored")
def _():
    bench, _ = before("commission_service")
    return bench, made(bench, "repair_device")


@case("repair_device", "isolation_not_open")
def _():
    bench, given = before("test_device")
    return bench, next(
        json.loads(e.call)["arguments"]
        for e in bench.gateway.events
        if e.tool == "repair_device" and json.loads(e.call)["arguments"]["device_id"] == given["device_id"]
    )


@case("repair_device", "reservation_mismatch")
def _():
    bench, given = before("repair_device")
    bench.do("release_reservation", reservation=given["crew_reservation"])
    return bench, given


@case("test_device", "isolation_open")
def _():
    bench, _ = before("close_isolation")
    device_id = made(bench, "repair_device")["device_id"]
    repair = bench.world.newest_of("repair", device_id).ref
    return bench, {"device_id": device_id, "repair": repair, "test_kpa": 5}


@case("test_device", "overpressure")
def _():
    # Eleven tenths of the required pressure are the most: one kPa above its whole part is too much.
    bench, given = before("test_device")
    return bench, {**given, "test_kpa": 11 * given["test_kpa"] // 10 + 1}


# -- services --------------------------------------------------------------------------------------------------------


@case("reserve_flow", "amount_step")
def _():
    bench, given = before("reserve_flow")
    return bench, {**given, "amount_lpm": given["amount_lpm"] + 1}


@case("reserve_flow", "trunk_not_allowed")
def _():
    bench, given = before("reserve_flow")
    service = bench.world.service(given["service_id"])
    own = {service.primary_trunk_id, service.standby_trunk_id}
    return bench, {**given, "trunk_id": next(k.trunk_id for k in bench.world.trunks if k.trunk_id not in own)}


@case("reserve_flow", "trunk_full")
def _():
    bench, given = before("reserve_flow")
    return bench, {**given, "amount_lpm": 100_000}


@case("reserve_flow", "unchanged")
def _():
    bench, _ = before("commission_service")
    return bench, made(bench, "reserve_flow")


@case("commission_service", "certificate_current")
def _():
    bench, given = before("commission_service")
    bench.do("commission_service", **given)
    return bench, given


@case("commission_service", "isolation_open")
def _():
    bench, given = before("commission_service")
    earlier = made(bench, "plan_isolation")
    plan = bench.do("plan_isolation", **{**earlier, "device_ids": [], "permit_class": "cold_work"})["ref"]
    service = bench.world.service(given["service_id"])
    bench.do("open_isolation", plan=plan, valve_order=valve_order(service))
    return bench, given


@case("commission_service", "parents_mismatch")
def _():
    bench, given = before("commission_service")
    return bench, {**given, "parent_records": []}


@case("commission_service", "stale_parent")
def _():
    bench, given = before("commission_service", with_feeds)
    feeds = bench.world.service(given["service_id"]).feeds
    bench.do("withdraw_certificate", service_id=next(f.parent_id for f in feeds if f.parent_kind == "service"))
    return bench, given


@case("commission_service", "tests_incomplete")
def _():
    bench, given = before("commission_service")
    return bench, {**given, "tests": given["tests"][1:]}


@case("commission_service", "inlet_mismatch")
def _():
    bench, given = before("commission_service")
    return bench, {**given, "inlet_kpa": given["inlet_kpa"] - 1}


def _with_limits(**limits: int) -> tuple[Bench, dict[str, Any]]:
    bench, given = before("commission_service")
    service = bench.world.service(given["service_id"])
    bench.world.amend("services", service.service_id, limits=replace(service.limits, **limits))
    return bench, given


@case("commission_service", "inlet_low")
def _():
    _, given = before("commission_service")
    return _with_limits(min_inlet_kpa=given["inlet_kpa"] + 1)


@case("commission_service", "setpoint_out_of_range")
def _():
    _, given = before("commission_service")
    return _with_limits(max_outlet_kpa=given["setpoint_kpa"] - 1)


@case("commission_service", "setpoint_above_supply")
def _():
    bench, given = _with_limits(max_outlet_kpa=10_000, step_kpa=5)
    return bench, {**given, "setpoint_kpa": given["setpoint_kpa"] + 100}


@case("commission_service", "flow_short")
def _():
    bench, given = before("commission_service")
    amount = made(bench, "reserve_flow")["amount_lpm"] - 5
    flow = bench.do("reserve_flow", **{**made(bench, "reserve_flow"), "amount_lpm": amount})["ref"]
    return bench, {**given, "flow_reservation": flow}


@case("withdraw_certificate", "certificate_missing")
def _():
    bench, given = before("commission_service")
    return bench, {"service_id": given["service_id"]}


# -- handing over ----------------------------------------------------------------------------------------------------


def _held(bench: Bench) -> None:
    """Hold a central unit that nobody uses."""
    world = bench.world
    device = world.device(world.devices[0])
    corrective_plan(bench, device.service_id, [device.device_id])
    component = world.newest_of("diagnosis", device.device_id).content.component
    parts = [p for p in world.parts_of[device.model] if world.tables["parts"][p].component == component]
    bench.do("reserve_spare", device_id=device.device_id, batch_id=world.batches_of[world.central, parts[0]][0])


@case("post_resource_return", "open_reservations")
def _():
    bench = done()
    _held(bench)
    device = bench.world.device(bench.world.devices[0])
    depot_id = bench.world.service(device.service_id).depot_id
    return bench, {"depot_id": depot_id, "crew_hours": 0, "units": []}


@case("post_resource_return", "hours_mismatch")
def _():
    bench, given = before("post_resource_return")
    return bench, {**given, "crew_hours": given["crew_hours"] - 4}


@case("post_resource_return", "units_mismatch")
def _():
    bench, given = before("post_resource_return")
    return bench, {**given, "units": given["units"][1:]}


@case("request_acceptance", "certificate_missing")
def _():
    bench, _ = before("commission_service")
    return bench, {"returns": []}


@case("request_acceptance", "certificate_stale")
def _():
    bench, given = before("request_acceptance")
    parent, _ = _neighbours(bench)
    world = bench.world
    trunks = (world.service(parent).primary_trunk_id, world.service(parent).standby_trunk_id)
    now = world.newest_of("flow_reservation", parent).content.trunk_id
    other = next(t for t in trunks if t != now)
    bench.do("reserve_flow", service_id=parent, trunk_id=other, amount_lpm=5)
    return bench, given


@case("request_acceptance", "tests_incomplete")
def _():
    bench, given = before("request_acceptance")
    device = bench.world.device(bench.world.devices[0])
    valves = valve_order(bench.world.service(device.service_id))
    plan = corrective_plan(bench, device.service_id, [device.device_id])
    isolation = bench.do("open_isolation", plan=plan, valve_order=valves)["ref"]
    bench.do("close_isolation", isolation=isolation, valve_order=valves[::-1])
    return bench, given


@case("request_acceptance", "isolation_open")
def _():
    bench, given = before("request_acceptance")
    bench.do("open_isolation", **_planned_correctively(bench, bench.world.services[0]))
    return bench, given


@case("request_acceptance", "open_reservations")
def _():
    bench, given = before("request_acceptance")
    _held(bench)
    return bench, given


@case("request_acceptance", "return_missing")
def _():
    bench, given = before("request_acceptance")
    return bench, {"returns": given["returns"][1:]}


@case("request_acceptance", "stale_return")
def _():
    bench, given = before("request_acceptance")
    bench.do("post_resource_return", **made(bench, "post_resource_return"))
    return bench, given


@case("close_isolation", "boundary_order")
def _():
    bench, given = before("close_isolation")
    return bench, {**given, "valve_order": given["valve_order"][::-1]}


IMPOSSIBLE_AT_OPENING = {
    "window_not_offered",  # windows never change
    "window_before_supply",  # renewals keep the slot, and a new dependent is a mismatch first
    "window_conflict",  # whoever plans second is refused then
}
"""Codes of the schedule that an opening declares, since it checks by the same rule, and that no events bring there."""


@pytest.mark.parametrize(("tool", "code"), CASES, ids=lambda v: str(v))
def test_refused_with_its_code_and_the_state_as_it_was(tool, code):
    bench, arguments = CASES[tool, code]()
    error = bench.assert_refused(code, tool, **arguments)
    event = bench.gateway.events[-1]
    assert event.check is False
    assert event.reason == code
    assert event.goal.partition(":")[0] in ("case", "service", "depot", "system")
    assert error["message"]


def test_every_declared_refusal_has_its_case():
    declared = {(t.name, code) for t in FIELD.own_tools.values() for code in t.refusals}
    assert declared - set(CASES) == {("open_isolation", code) for code in IMPOSSIBLE_AT_OPENING}
    assert set(CASES) <= declared


@pytest.mark.parametrize("tool", ["open_isolation", "cancel_plan"])
def test_a_plan_that_was_opened_is_in_the_wrong_state(tool):
    bench, _ = before("close_isolation")
    plan = made(bench, "open_isolation")
    arguments = plan if tool == "open_isolation" else {"plan": plan["plan"]}
    bench.assert_refused("wrong_state", tool, **arguments)
    assert bench.gateway.events[-1].check is None


def test_superseded_and_withdrawn_artifacts_are_stale_inputs():
    bench, given = before("repair_device")
    bench.do("submit_diagnosis", **made(bench, "submit_diagnosis"))
    again = bench.world.newest_of("diagnosis", made(bench, "submit_diagnosis")["device_id"])
    assert again.version == 2
    if again.subject == given["device_id"]:
        bench.assert_refused("stale_input", "repair_device", **given)
        bench.assert_refused("reservation_mismatch", "repair_device", **{**given, "diagnosis": again.ref})
    other, _ = before("open_isolation")
    plan = made(other, "plan_isolation")
    ref = next(a.ref for a in other.world.list_artifacts("plan", None, None))
    other.do("cancel_plan", plan=ref)
    other.assert_refused("stale_input", "cancel_plan", plan=ref)
    other.do("plan_isolation", **plan)


def test_a_planned_opening_is_not_held_up_by_a_revised_feed():
    """Plans consume the slot alone; only a corrective opening asks for current feeds."""
    bench, given = before("open_isolation", lambda g, w: with_feeds({"service_id": w.artifact(g["plan"]).subject}, w))
    service = bench.world.service(bench.world.artifact(given["plan"]).subject)
    bench.do("withdraw_certificate", service_id=next(f.parent_id for f in service.feeds if f.parent_kind == "service"))
    bench.do("open_isolation", **given)
    assert bench.gateway.events[-1].ok


def test_the_reference_of_codes_names_each_of_them():
    text = FIELD.skills["hand-over-system"].read("references/refusals.md")
    named = {
        code.strip() for line in text.splitlines() if line.startswith("| ") for code in line.split("|")[1].split(",")
    }
    assert named - {"code"} == {code for t in FIELD.own_tools.values() for code in t.refusals}
