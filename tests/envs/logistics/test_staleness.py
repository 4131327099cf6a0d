"""Rule 10: what a change makes stale, and nothing else. Each test starts from a desk where all is done."""

from __future__ import annotations

import pytest

from tests.envs.logistics.desk import Desk


@pytest.fixture
def desk() -> Desk:
    return Desk().closed()


def test_a_withdrawal_strikes_the_itineraries_and_manifests_on_it_and_their_evaluations_at_once(desk):
    # car-y from 400: svc-bc2 (both itineraries, cns-1 leg 1, cns-2 leg 0), svc-bc5, svc-cd1 (cns-2 leg 1)
    assert desk.withdraw("car-y", 400) == {
        "itn-1@1", "itn-2@1", "mnf-1-1@1", "mnf-2-0@1", "mnf-2-1@1", "evl-1@1", "evl-2@1",
    }  # fmt: skip


def test_departures_before_the_minute_still_operate(desk):
    # car-y from 401: svc-bc5, which nobody uses, and svc-cd1
    assert desk.withdraw("car-y", 401) == {"mnf-2-1@1"}
    assert desk.world.service("svc-bc2").status == "open"
    assert desk.world.service("svc-bc5").status == "withdrawn"


def test_a_withdrawal_of_a_carrier_that_nobody_uses_strikes_nothing(desk):
    assert desk.withdraw("car-x", 301) == set()


def test_a_new_itinerary_makes_its_hold_tags_stale_and_nothing_that_it_still_reaches(desk):
    answer = desk.confirm("bkg-1", "svc-ab1", "svc-bc2")
    assert set(answer["invalidated"]) == {"tag-1@1", "evl-1@1"}


def test_a_new_itinerary_that_misses_the_transfer_makes_the_seat_stale(desk):
    # svc-bc3 arrives at 530: 530 + 30 + 30 = 590 reaches trf-2 at 600; svc-bc4 at 580: 640 does not.
    assert set(desk.confirm("bkg-1", "svc-ab1", "svc-bc3")["invalidated"]) == {"tag-1@1", "evl-1@1"}
    assert "sea-1@1" in desk.confirm("bkg-1", "svc-ab1", "svc-bc4")["invalidated"]


def test_a_seat_is_valid_again_once_a_newer_itinerary_reaches_its_transfer(desk):
    desk.confirm("bkg-1", "svc-ab1", "svc-bc4")
    assert desk.world.newest["sea-1"].status == "stale"
    desk.confirm("bkg-1", "svc-ab1", "svc-bc3")
    assert desk.world.newest["sea-1"].status == "current"


def test_a_hold_tag_waits_for_the_new_itinerary_and_the_delivery_for_the_new_tag(desk):
    desk.withdraw("car-y", 400)
    assert desk.world.newest["tag-1"].status == "current"
    desk.confirm("bkg-1", "svc-ab1", "svc-bc3")
    assert desk.world.newest["tag-1"].status == "stale"
    assert desk.world.newest["dlv-1"].status == "current"
    assert set(desk.tag("itm-1")["invalidated"]) == {"dlv-1@1"}


def test_a_mate_on_another_transfer_makes_the_seat_stale_and_its_own_delivery_too(desk):
    assert set(desk.join("bkg-2", "trf-3")["invalidated"]) == {"sea-1@1", "dlv-2@1", "evl-1@1", "evl-2@1"}
    # the mate follows: the first seat is not struck again
    assert set(desk.join("bkg-1", "trf-3")["invalidated"]) == {"dlv-1@1"}


def test_joining_the_same_transfer_again_leaves_mate_and_delivery(desk):
    assert set(desk.join("bkg-2")["invalidated"]) == {"evl-2@1"}


def test_a_new_custody_tag_makes_the_manifest_stale_on_which_it_boards_alone(desk):
    assert set(desk.tag("itm-2")["invalidated"]) == {"mnf-1-1@1"}


def test_a_new_manifest_in_time_leaves_everything_downstream(desk):
    # svc-ab2 would arrive at 330; the same service again changes nothing for leg 1, for cns-2 or for the freight
    assert desk.move("cns-1", 0)["invalidated"] == []


def test_a_new_manifest_that_arrives_too_late_makes_its_takers_stale(desk):
    # 330 + 90 = 420 is after both movements at 400, the own next one and the one that takes the relay unit.
    answer = desk.move("cns-1", 0, service_id="svc-ab2")
    assert set(answer["invalidated"]) == {"mnf-1-1@1", "mnf-2-0@1"}


def test_custody_downstream_of_what_is_stale_waits(desk):
    desk.move("cns-1", 0, service_id="svc-ab2")
    assert desk.world.newest["mnf-2-1"].status == "current"
    # svc-bc3 at 430 arrives at 530: 530 + 90 = 620 is before 700, so leg 1 of cns-2 stands
    sources = ["rls-2@1", "mnf-1-0@2"]
    answer = desk.move("cns-2", 0, service_id="svc-bc3", permit_ids=["prm-bcx-h"], sources=sources)
    assert answer["invalidated"] == []
    assert desk.stale() == {"mnf-1-1@1"}


def test_a_unit_dropped_makes_stale_who_carries_it_on_and_who_delivered_it(desk):
    # unt-r is of no concern to leg 1 of cns-1
    answer = desk.move("cns-1", 0, unit_ids=["unt-1", "unt-2"], load_kg=220, permit_ids=["prm-ab-p"])
    assert set(answer["invalidated"]) == {"mnf-2-0@1"}
    answer = desk.move("cns-1", 1, unit_ids=["unt-1", "itm-2"], load_kg=110, sources=["mnf-1-0@2", "tag-2@1"])
    assert set(answer["invalidated"]) == {"frd-1@1"}


def test_a_bag_dropped_or_late_makes_the_delivery_stale(desk):
    answer = desk.move("cns-1", 1, unit_ids=["unt-1", "unt-2"], load_kg=220, sources=["mnf-1-0@1"])
    assert set(answer["invalidated"]) == {"dlv-2@1", "evl-2@1"}


def test_a_bag_that_misses_the_transfer_makes_seat_and_delivery_stale_and_late_freight_its_delivery(desk):
    # svc-bc3 arrives at 530: the pigeons are there at 620, trf-2 leaves at 600; the goods at 590, due at 600.
    permits = ["prm-bcx-p", "prm-bcx-l"]
    answer = desk.move("cns-1", 1, service_id="svc-bc3", permit_ids=permits)
    assert set(answer["invalidated"]) == {"sea-2@1", "dlv-2@1", "evl-2@1"}
    # svc-bc4 arrives at 580: 640 is after 600 for the goods as well
    answer = desk.move("cns-1", 1, service_id="svc-bc4", permit_ids=permits)
    assert set(answer["invalidated"]) == {"frd-1@1"}


def test_an_evaluation_is_void_as_soon_as_anything_that_it_saw_is_replaced(desk):
    assert set(desk.deliver("bkg-1")["invalidated"]) == {"evl-1@1"}
    assert set(desk.submit("bkg-1")["invalidated"]) == set()
    assert desk.stale() == set()


def test_permits_services_and_releases_never_make_anything_stale_by_themselves(desk):
    desk.world.begin_call()
    desk.world.changed("prm-ab-p", "rls-1", "svc-ab1", cause="nothing happened")
    assert desk.world.invalidated == []
