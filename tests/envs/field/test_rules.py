"""The rules of FieldOps on values worked by hand; the working stands beside each."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from skillhorizon.envs.field import rules
from skillhorizon.envs.field.records import Crew, Device, Inspection, Limits, Qualification, Reading, Valve
from tests.envs.field.support import before, done, small


def reading(channel: str, value: int, calibration: str = "valid") -> Reading:
    return Reading(channel, "C", value, 10, 20, calibration)  # type: ignore[arg-type]


def device(**changes: object) -> Device:
    """A pump of 500 kPa, its latest inspection with bearing_temp and vibration out of range."""
    old = Inspection(1, -9, (reading("seal_leak", 25), reading("motor_current", 5)))
    new = Inspection(
        2,
        -2,
        (
            reading("bearing_temp", 21),
            reading("vibration", 9),
            reading("seal_leak", 20),
            reading("motor_current", 99, "overdue"),
        ),
    )
    made = Device("dev-aaaaa", "srv-aaaaa", "pump", "PX-210", 4, "1", 500, 700, "kiosk", True, 1, (new, old), ())
    return replace(made, **changes)


def test_rule_1_flags_valid_channels_out_of_range_in_the_latest_round():
    # Round 2: 21 > 20 and 9 < 10 are out, 20 is the end of the range and in, 99 is overdue. Round 1 is older.
    assert rules.flagged(device()) == {"bearing_temp", "vibration"}
    fault = rules.fault_of(device())
    assert (fault.fault_code, fault.component, fault.qualification) == ("PU-11", "bearing_set", "rotating")


def test_rule_1_every_pair_of_a_classs_four_channels_is_one_signature():
    for class_, rows in rules.signatures().items():
        channels = {c for s in rows for c in s.channels}
        assert len(channels) == 4, class_
        assert len({s.channels for s in rows}) == len(rows) == 6
        assert len({s.component for s in rows}) == 3
    assert len(rules.signature_of_code()) == 36
    assert len(rules.qualifications()) == 5


@pytest.mark.parametrize(
    ("places", "permit"),
    [
        ([], "cold_work"),
        ([("kiosk", False), ("surface", False)], "cold_work"),
        ([("kiosk", False), ("surface", True)], "electrical"),
        ([("chamber", False), ("surface", True)], "confined_space"),
    ],
)
def test_rule_2_permit(places, permit):
    assert rules.permit_class(device(location=p, powered=e) for p, e in places) == permit


def test_rule_3_open_valves_inlet_side_first_each_by_chainage():
    boundary = (
        Valve("v-out-30", "outlet", 30, 80, "open"),
        Valve("v-in-90", "inlet", 90, 80, "open"),
        Valve("v-in-20", "inlet", 20, 80, "closed"),
        Valve("v-out-5", "outlet", 5, 80, "open"),
        Valve("v-in-60", "inlet", 60, 80, "open"),
    )
    service = next(iter(small().world().tables["services"].values()))
    assert rules.valve_order(replace(service, boundary=boundary)) == ["v-in-60", "v-in-90", "v-out-5", "v-out-30"]


def test_rule_9_a_certificate_holds_to_its_last_slot():
    crew = Crew("crw-aaaaa", "dep-aaaaa", (Qualification("rotating", 7), Qualification("electrical", 9)), (7, 8))
    assert crew.qualified("rotating", 7)
    assert not crew.qualified("rotating", 8)
    assert not crew.qualified("hydraulic", 1)


@pytest.mark.parametrize(
    ("class_", "design", "required"),
    [
        ("pump", 500, 650),  # 500 * 130 / 100 = 650
        ("regulator", 495, 745),  # 495 * 1.5 = 742.5, next multiple of 5
        ("valve", 500, 750),
        ("actuator", 455, 505),  # 455 * 1.1 = 500.5
        ("meter", 500, 625),
        ("strainer", 505, 710),  # 505 * 1.4 = 707
    ],
)
def test_rule_11_required_pressure(class_, design, required):
    assert rules.required_kpa(device(class_=class_, design_kpa=design)) == required


def test_rule_12_share_and_loss():
    assert rules.taken_lpm(90, 100, 100) == 90
    assert rules.taken_lpm(90, 130, 100) == 90
    assert rules.taken_lpm(90, 99, 100) == 89  # 90 * 99 / 100 = 89.1
    assert rules.taken_lpm(88, 63, 120) == 46  # 88 * 63 / 120 = 46.2
    assert rules.loss_kpa(2000, 100) == 20  # 2000 * 100^2 / 10^6 = 20 exactly
    assert rules.loss_kpa(2001, 100) == 21  # 20.01, rounded up
    assert rules.loss_kpa(500, 0) == 0


def test_rule_13_makeup_in_steps_of_five():
    assert rules.makeup_lpm(73, 67, 88) == 55  # 52
    assert rules.makeup_lpm(73, 67, 90) == 50  # 50 exactly
    assert rules.makeup_lpm(10, 20, 40) == 0


def test_rule_14_highest_setpoint():
    limits = Limits(300, 350, 480, 20)
    assert rules.highest_setpoint(455, limits) == 440  # 455 down to a multiple of 20
    assert rules.highest_setpoint(600, limits) == 480  # the outlet limit
    assert rules.highest_setpoint(600, replace(limits, max_outlet_kpa=475)) == 460


def test_rule_4_and_5_windows_follow_the_feeds():
    """Supplies are in service from 0, so the first row takes slots 0..2 and is in service from 3, and so on."""
    bench = done()
    world = bench.world
    for service_id in world.services:
        service, record = world.service(service_id), world.certificate(service_id)
        held = [world.certificate(f.parent_id).content.in_service_from for f in service.feeds]
        assert record.content.in_service_from == max(held) + 3  # every service of this task has devices
        plan = next(a for a in world.list_artifacts("plan", None, None) if a.subject == service_id)
        assert plan.content.start_slot == max(held)


def test_rule_4_renewals_keep_the_slot():
    bench = done()
    world = bench.world
    service_id = world.services[0]
    first = world.certificate(service_id)
    bench.do("withdraw_certificate", service_id=service_id)
    given = next(g for g in _commissionings(bench) if g["service_id"] == service_id)
    parents = [world.certificate(f.parent_id).ref for f in world.service(service_id).feeds]
    renewed = bench.do("commission_service", **{**given, "parent_records": parents})
    assert renewed["ref"] == f"{first.id}@2"
    assert renewed["content"] == {
        "outlet_kpa": first.content.outlet_kpa,
        "flow_lpm": first.content.flow_lpm,
        "contracted_lpm": first.content.contracted_lpm,
        "in_service_from": first.content.in_service_from,
    }


def _commissionings(bench):
    calls = [json.loads(e.call) for e in bench.gateway.events]
    return [c["arguments"] for c in calls if c["name"] == "commission_service"]


def test_rule_14_the_record_offers_what_was_taken_and_added_less_own_use():
    bench, given = before("commission_service")
    world = bench.world
    service = world.service(given["service_id"])
    amount = world.newest_of("flow_reservation", service.service_id).content.amount_lpm
    feed = service.feeds[0]
    supply = world.certificate(feed.parent_id).content
    taken = min(feed.share_lpm, feed.share_lpm * supply.flow_lpm // supply.contracted_lpm)
    assert len(service.feeds) == 1
    record = bench.do("commission_service", **given)["content"]
    assert record["flow_lpm"] == taken + amount - service.own_lpm
    assert record["flow_lpm"] >= service.contracted_lpm
    assert record["outlet_kpa"] == given["setpoint_kpa"]


def test_rule_15_hours_and_units_of_a_depot():
    bench, given = before("post_resource_return")
    world = bench.world
    cases = [d for d in world.devices if world.service(world.device(d).service_id).depot_id == given["depot_id"]]
    assert given["crew_hours"] == 4 * len(cases)
    assert sum(u["quantity"] for u in given["units"]) == len(cases)


def test_reference_tables_are_what_the_rules_use():
    world = small().open_unlimited()
    text = world.call("read_skill_file", {"skill": "repair-and-test-device", "path": "references/test-factors.csv"})[
        "result"
    ]["text"]
    rows = dict(line.split(",") for line in text.splitlines()[1:])
    assert {c: int(f) for c, f in rows.items()} == rules.pressure_factors()
    text = world.call("read_skill_file", {"skill": "diagnose-device-fault", "path": "references/fault-signatures.csv"})[
        "result"
    ]["text"]
    assert {line.split(",")[1] for line in text.splitlines()[1:]} == set(rules.signature_of_code())
