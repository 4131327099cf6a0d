"""The rules of the desk against values worked by hand."""

from __future__ import annotations

import pytest

from skillhorizon.envs.logistics.records import Permit
from skillhorizon.envs.logistics.rules import connection_min, custody_min, earliest_movement, in_force
from skillhorizon.envs.logistics.seed import true_class
from tests.envs.logistics.desk import MINIMA, PROOFS, Desk


@pytest.mark.parametrize(
    ("before", "carrier", "allowance", "minutes"),
    [
        (None, "car-x", 30, 50),  # check-in, without allowance
        ("car-x", "car-x", 0, 40),
        ("car-x", "car-y", 0, 70),
        ("car-x", "car-x", 15, 55),
        ("car-y", "car-x", 30, 100),
    ],
)
def test_rule_1_connections(before, carrier, allowance, minutes):
    assert connection_min(MINIMA, before, carrier, allowance) == minutes


@pytest.mark.parametrize(
    ("commodity", "quantity", "class_"),
    [
        ("clothing", 99, "general"),
        ("perfume", 5, "general"),
        ("perfume", 6, "hazardous"),  # equal counts
        ("ice-cream", 7, "perishable"),
        ("ice-cream", 8, "hazardous"),
        ("honey-bees", 3, "live"),
        ("oil-paintings", 1, "specialist"),
    ],
)
def test_rule_2_classes(commodity, quantity, class_):
    assert true_class(commodity, quantity) == class_


@pytest.mark.parametrize(
    ("classes", "minutes"),
    [
        (["general"], 60),
        (["perishable", "general"], 60),
        (["perishable", "live"], 90),
        (["hazardous"], 90),
        (["live", "specialist", "general"], 100),
    ],
)
def test_rule_3_the_greatest_minimum_of_the_classes(classes, minutes):
    assert custody_min(MINIMA, classes) == minutes


def test_rule_4_a_release_is_ready_as_it_says_and_everything_else_waits_for_custody():
    assert earliest_movement(90, 390, (), ()) == 390
    assert earliest_movement(90, 390, (301,), (300,)) == 391  # 301 + 90 is after 300 + 90 and after 390
    assert earliest_movement(60, None, (), (300, 350)) == 410
    assert earliest_movement(60, None, (), ()) == 0


@pytest.mark.parametrize(
    ("departure", "kg", "holds"),
    [(99, 50, False), (100, 50, True), (199, 50, True), (200, 50, False), (150, 51, False)],
)
def test_rule_5_from_inclusive_until_exclusive_and_the_heaviest_piece(departure, kg, holds):
    permit = Permit("prm-1", "car-x", "hub-a", "hub-b", "live", 100, 200, 50)
    assert in_force(permit, departure, kg) is holds


def test_rule_5_a_permit_is_of_one_carrier_in_one_direction():
    desk = Desk()
    service = desk.world.service("svc-ab1")
    assert Permit("prm-1", "car-x", "hub-a", "hub-b", "live", 0, 1, 1).covers(service)
    assert not Permit("prm-1", "car-y", "hub-a", "hub-b", "live", 0, 1, 1).covers(service)
    assert not Permit("prm-1", "car-x", "hub-b", "hub-a", "live", 0, 1, 1).covers(service)


def test_rules_1_and_7_as_network_evaluation_reports_them():
    # bkg-1: 200 - 120 - 50 = 30; 400 - 300 - 70 - 30 = 0; the transfer at 600: 600 - 500 - 30 - 30 = 40; due 640.
    # bkg-2: 400 - 300 - 50 = 50; 600 - 500 - 30 = 70; its pigeons 600 - 500 - 90 = 10; due 650.
    desk = Desk().delivered()
    first, second = desk.submit("bkg-1"), desk.submit("bkg-2")
    assert [leg["slack_min"] for leg in first["legs"]] == [30, 0]
    assert (first["transfer"]["slack_min"], first["bags"], first["due_slack_min"]) == (40, [], 0)
    assert [leg["slack_min"] for leg in second["legs"]] == [50]
    assert second["transfer"]["slack_min"] == 70
    assert (second["bags"], second["due_slack_min"]) == ([{"item_id": "itm-2", "slack_min": 10}], 10)


def test_rule_4_as_a_manifest_reports_it():
    desk = Desk().checked_in()
    assert desk.move("cns-1", 0)["handoffs"] == [{"ref": "rls-1@1", "earliest_min": 140}]
    # 300 + 90 for the live goods, of the arrival and of what bkg-2 presents
    assert desk.move("cns-1", 1)["handoffs"] == [
        {"ref": "mnf-1-0@1", "earliest_min": 390},
        {"ref": "tag-2@1", "earliest_min": 390},
    ]
    assert desk.move("cns-2", 0)["handoffs"] == [
        {"ref": "rls-2@1", "earliest_min": 340},
        {"ref": "mnf-1-0@1", "earliest_min": 390},
    ]


def test_rule_6_seats_and_weights_are_exchanged_and_never_taken_twice():
    desk = Desk()
    seats, weights = desk.world.ledgers["seats"], desk.world.ledgers["weights"]
    desk.confirm("bkg-1")
    assert (seats.free("svc-ab1"), seats.free("svc-bc2")) == (2, 3)
    desk.confirm("bkg-1", "svc-ab2", "svc-bc2")
    assert (seats.free("svc-ab1"), seats.free("svc-ab2"), seats.free("svc-bc2")) == (4, 0, 3)
    desk.tag("itm-1")
    assert (weights.free("svc-ab2"), weights.free("svc-bc2")) == (250, 880)
    desk.tag("itm-1", handling_class="live", carriage="custody")
    assert (weights.free("svc-ab2"), weights.free("svc-bc2")) == (270, 900)
    desk.move("cns-1", 0)
    desk.move("cns-1", 0, load_kg=200)
    assert weights.free("svc-ab1") == 200
    assert seats.conserved()
    assert weights.conserved()


def test_rule_6_a_transfer_holds_its_pair_and_their_bags():
    desk = Desk().delivered()
    assert desk.world.ledgers["seats"].free("trf-2") == 0  # 2 + 1 of 3
    assert desk.world.ledgers["weights"].free("trf-2") == 0  # 20 + 10 + 5 of 35
    desk.join("bkg-2", "trf-3")
    desk.deliver("bkg-2")
    assert desk.world.ledgers["weights"].free("trf-2") == 15
    assert desk.world.ledgers["weights"].free("trf-3") == 20


def test_rule_8_freight_is_handed_over_after_custody():
    desk = Desk().closed()
    # cns-1 arrives at 500, perishable 60; cns-2 at 800, hazardous 90
    assert desk.world.newest_of("freight_delivery", "cns-1").content.delivered_min == 560
    assert desk.world.newest_of("freight_delivery", "cns-2").content.delivered_min == 890


def test_rule_11_only_what_stood_counts_as_disturbed_and_only_after_a_notice():
    desk = Desk().closed()
    desk.confirm("bkg-2")
    assert not desk.world.disturbed
    desk.withdraw("car-y", 405)  # svc-bc5 and svc-cd1
    desk.confirm("bkg-1")
    desk.tag("itm-1")  # stale since then, so no further disturbance
    assert list(desk.world.disturbed) == ["bkg-1"]
    desk.tag("itm-2")  # of bkg-2
    desk.move("cns-1", 0)
    assert list(desk.world.disturbed) == ["bkg-1", "bkg-2", "cns-1"]
    desk.move("cns-1", 0)
    assert len(desk.world.disturbed) == 3


def test_distinct_bookings_are_counted_when_first_accepted():
    desk = Desk().closed()
    assert desk.world.counters["bookings_accepted"] == len(PROOFS)
    desk.submit("bkg-1")
    assert desk.world.counters["bookings_accepted"] == len(PROOFS)


def test_past_bookings_and_history_can_be_read():
    desk = Desk()
    passenger = desk.do("get_passenger", passenger_id="pax-2")
    assert [b["booking_id"] for b in passenger["past"]] == ["bkg-9"]
    assert desk.do("get_passenger", passenger_id="pax-1")["past"] == []
    for kind, key, first in (
        ("flights", "car-x", "flt-1"),
        ("waybills", "car-x", "wbl-1"),
        ("bookings", "pax-1", "bkg-1"),
        ("custody_events", "wbl-1", "wbl-1"),
    ):
        (row,) = desk.do("list_history", kind=kind, key=key)["items"]
        assert first in row.values()
    assert desk.do("list_history", kind="flights", key="car-y")["items"] == []


def test_services_are_listed_by_departure_within_the_minutes_asked_for_both_inclusive():
    desk = Desk()
    lane = {"origin": "hub-b", "destination": "hub-c"}
    rows = desk.do("list_services", **lane, from_min=400, to_min=430)["items"]
    assert [r["service_id"] for r in rows] == ["svc-bc2", "svc-bc5", "svc-bc3"]
    assert desk.do("list_services", **lane, from_min=401, to_min=404)["items"] == []
    assert desk.do("list_services", origin="hub-c", destination="hub-b", from_min=0, to_min=999)["items"] == []
