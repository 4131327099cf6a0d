"""Every refusal of every operation: its code, no change of the state, a failed check only where the code is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skillhorizon.core.world import Update
from skillhorizon.envs.logistics import ENVIRONMENT
from tests.envs.bench import assert_every_code_is_tried
from tests.envs.logistics.desk import PROOFS, Desk

Arguments = dict[str, Any]
Case = Callable[[Desk], Arguments]
CASES: list[tuple[str, str, str, Case]] = []
"""(tool, code, goal of the failed check or nothing, what brings the desk there and gives the arguments)"""


def case(tool: str, code: str, goal: str = "") -> Callable[[Case], Case]:
    def declare(make: Case) -> Case:
        CASES.append((tool, code, goal, make))
        return make

    return declare


# -- itineraries -----------------------------------------------------------------------------------------------------


def itinerary(booking_id: str, *service_ids: str) -> Arguments:
    return {"booking_id": booking_id, "service_ids": list(service_ids)}


@case("confirm_itinerary", "wrong_leg", "itinerary:bkg-1")
def too_few_services(desk):
    return itinerary("bkg-1", "svc-ab1")


@case("confirm_itinerary", "wrong_leg", "itinerary:bkg-1")
def services_in_another_order(desk):
    return itinerary("bkg-1", "svc-bc2", "svc-ab1")


@case("confirm_itinerary", "withdrawn", "itinerary:bkg-2")
def withdrawn_service(desk):
    desk.withdraw("car-y", 400)
    return itinerary("bkg-2", "svc-bc2")


@case("confirm_itinerary", "no_seats", "itinerary:bkg-1")
def another_has_the_last_seats(desk):
    desk.confirm("bkg-2", "svc-bc5")
    return itinerary("bkg-1", "svc-ab1", "svc-bc5")  # one of two seats is left for a party of two


@case("confirm_itinerary", "unknown_id")
def booking_of_the_past(desk):
    return itinerary("bkg-9", "svc-bc2")


@case("confirm_itinerary", "unknown_id")
def no_such_service(desk):
    return itinerary("bkg-2", "svc-zz9")


@case("confirm_itinerary", "bad_argument")
def no_services(desk):
    return itinerary("bkg-2")


# -- baggage ---------------------------------------------------------------------------------------------------------


def tag(item_id: str, handling_class: str, carriage: str, itinerary: str | None = None) -> Arguments:
    return {"item_id": item_id, "handling_class": handling_class, "carriage": carriage, "itinerary": itinerary}


@case("check_in_baggage", "carriage_refused")
def live_goods_in_the_hold(desk):
    desk.confirm("bkg-2")
    return tag("itm-2", "live", "hold", "itn-2@1")


@case("check_in_baggage", "carriage_refused")
def general_goods_in_custody(desk):
    return tag("itm-2b", "general", "custody")


@case("check_in_baggage", "stale_input")
def hold_of_an_older_itinerary(desk):
    desk.confirm("bkg-1")
    desk.confirm("bkg-1")
    return tag("itm-1", "general", "hold", "itn-1@1")


@case("check_in_baggage", "over_weight")
def no_kg_left_in_the_hold(desk):
    desk.confirm("bkg-1", "svc-ab2", "svc-bc2")
    desk.move("cns-1", 0, service_id="svc-ab2")  # all 270 kg
    return tag("itm-1", "general", "hold", "itn-1@1")


@case("check_in_baggage", "bad_argument")
def hold_without_an_itinerary(desk):
    return tag("itm-1", "general", "hold")


@case("check_in_baggage", "bad_argument")
def custody_with_an_itinerary(desk):
    desk.confirm("bkg-2")
    return tag("itm-2", "live", "custody", "itn-2@1")


@case("check_in_baggage", "bad_argument")
def hold_of_another_bookings_itinerary(desk):
    desk.confirm("bkg-2")
    return tag("itm-1", "general", "hold", "itn-2@1")


@case("check_in_baggage", "unknown_id")
def item_of_a_booking_of_the_past(desk):
    return tag("itm-9", "general", "hold", "itn-9@1")


# -- transfers -------------------------------------------------------------------------------------------------------


def seat(booking_id: str, transfer_id: str, itinerary: str) -> Arguments:
    return {"booking_id": booking_id, "transfer_id": transfer_id, "itinerary": itinerary}


@case("join_transfer", "wrong_transfer", "seat:bkg-1")
def transfer_of_another_cohort(desk):
    desk.confirm("bkg-1")
    return seat("bkg-1", "trf-9", "itn-1@1")


@case("join_transfer", "stale_input", "seat:bkg-1")
def seat_on_a_withdrawn_itinerary(desk):
    desk.confirm("bkg-1")
    desk.withdraw("car-x", 0)
    return seat("bkg-1", "trf-1", "itn-1@1")


@case("join_transfer", "no_seats", "seat:bkg-1")
def party_larger_than_the_transfer(desk):
    desk.confirm("bkg-1")
    return seat("bkg-1", "trf-4", "itn-1@1")


@case("join_transfer", "bad_argument")
def itinerary_of_the_mate(desk):
    desk.confirm("bkg-2")
    return seat("bkg-1", "trf-1", "itn-2@1")


@case("join_transfer", "unknown_id")
def no_such_transfer(desk):
    desk.confirm("bkg-1")
    return seat("bkg-1", "trf-zz", "itn-1@1")


# -- deliveries ------------------------------------------------------------------------------------------------------


def delivery(desk: Desk, booking_id: str, *proofs: dict[str, str], transfer_id: str = "trf-2") -> Arguments:
    desk.moved()
    desk.join(booking_id, transfer_id)
    return {"booking_id": booking_id, "seat": f"sea-{booking_id[4]}@1", "proofs": list(proofs) or PROOFS[booking_id]}


@case("deliver_baggage", "incomplete", "delivery:bkg-2")
def item_not_named(desk):
    return delivery(desk, "bkg-2", PROOFS["bkg-2"][0])


@case("deliver_baggage", "incomplete", "delivery:bkg-1")
def item_of_the_mate(desk):
    return delivery(desk, "bkg-1", *PROOFS["bkg-1"], PROOFS["bkg-2"][0])


@case("deliver_baggage", "stale_input", "delivery:bkg-2")
def superseded_proof(desk):
    arguments = delivery(desk, "bkg-2")
    desk.move("cns-1", 1)
    return arguments


@case("deliver_baggage", "no_custody", "delivery:bkg-2")
def manifest_of_the_leg_before(desk):
    return delivery(desk, "bkg-2", {"item_id": "itm-2", "proof": "mnf-1-0@1"}, PROOFS["bkg-2"][1])


@case("deliver_baggage", "no_custody", "delivery:bkg-2")
def tag_of_an_item_in_custody(desk):
    return delivery(desk, "bkg-2", {"item_id": "itm-2", "proof": "tag-2@1"}, PROOFS["bkg-2"][1])


@case("deliver_baggage", "no_custody", "delivery:bkg-2")
def tag_of_another_item(desk):
    return delivery(desk, "bkg-2", PROOFS["bkg-2"][0], {"item_id": "itm-2b", "proof": "tag-1@1"})


@case("deliver_baggage", "over_weight", "delivery:bkg-2")
def bags_heavier_than_the_transfer_takes(desk):
    return delivery(desk, "bkg-2", transfer_id="trf-4")  # 10 + 5, and it takes 14


@case("deliver_baggage", "bad_argument")
def item_twice(desk):
    return delivery(desk, "bkg-1", *PROOFS["bkg-1"], *PROOFS["bkg-1"])


@case("deliver_baggage", "unknown_id")
def no_such_proof(desk):
    return delivery(desk, "bkg-1", {"item_id": "itm-1", "proof": "tag-1@9"})


# -- network evaluation ----------------------------------------------------------------------------------------------


@case("submit_itinerary", "stale_input", "booking:bkg-1")
def older_delivery(desk):
    desk.delivered()
    desk.deliver("bkg-1")
    return desk.submission("bkg-1", delivery="dlv-1@1")


@case("submit_itinerary", "stale_input", "booking:bkg-1")
def hold_tag_not_renewed(desk):
    desk.delivered()
    desk.confirm("bkg-1")
    return desk.submission("bkg-1")


@case("submit_itinerary", "stale_input", "booking:bkg-2")
def last_manifest_not_renewed(desk):
    desk.delivered()
    desk.tag("itm-2")
    return desk.submission("bkg-2")


@case("submit_itinerary", "before_ready", "booking:bkg-2")
def check_in_cut_short(desk):
    # svc-bc1 leaves at 350, bkg-2 is ready at 300 + 50: that is in time. One minute later it is not.
    desk.world.amend("rebookings", "bkg-2", ready_min=301)
    desk.confirm("bkg-2", "svc-bc1")
    return _rest(desk, "bkg-2")


@case("submit_itinerary", "connection_too_short", "booking:bkg-1")
def allowance_forgotten(desk):
    # 300 + 40 with the same carrier is before 350; with the wheelchair's 30 more it is not
    desk.confirm("bkg-1", "svc-ab1", "svc-bc1")
    return _rest(desk, "bkg-1")


@case("submit_itinerary", "transfer_missed", "booking:bkg-1")
def passenger_too_late_for_the_transfer(desk):
    desk.confirm("bkg-1", "svc-ab1", "svc-bc3")  # 530 + 60 = 590
    return _rest(desk, "bkg-1", "trf-1")


@case("submit_itinerary", "baggage_missed", "booking:bkg-2")
def bag_too_late_for_the_transfer(desk):
    desk.confirm("bkg-2")  # there at 530, the pigeons at 590
    return _rest(desk, "bkg-2", "trf-1")


@case("submit_itinerary", "late", "booking:bkg-1")
def transfer_arrives_after_the_booking_is_due(desk):
    desk.confirm("bkg-1")
    return _rest(desk, "bkg-1", "trf-3")  # at 700, due at 640


@case("submit_itinerary", "bad_argument")
def seat_of_the_mate(desk):
    desk.delivered()
    return desk.submission("bkg-1", seat="sea-2@1")


@case("submit_itinerary", "unknown_id")
def seat_for_an_itinerary(desk):
    desk.delivered()
    return desk.submission("bkg-1", itinerary="sea-1@1")


def _rest(desk: Desk, booking_id: str, transfer_id: str = "trf-2") -> Arguments:
    """All that follows an itinerary, up to the submission."""
    for item_id in ("itm-1",) if booking_id == "bkg-1" else ("itm-2", "itm-2b"):
        desk.tag(item_id)
    desk.move("cns-1", 0)
    if booking_id == "bkg-2":
        desk.move("cns-1", 1)
    desk.join(booking_id, transfer_id)
    desk.deliver(booking_id)
    return desk.submission(booking_id)


# -- movements -------------------------------------------------------------------------------------------------------


@case("issue_manifest", "wrong_leg", "movement:cns-1/0")
def service_of_another_lane(desk):
    return desk.movement("cns-1", 0, service_id="svc-bc2")


@case("issue_manifest", "wrong_leg", "movement:cns-1/2")
def leg_past_the_end(desk):
    return desk.movement("cns-1", 0) | {"leg": 2}


@case("issue_manifest", "wrong_leg", "movement:cns-1/1")
def unit_that_left_before(desk):
    desk.moved()
    return desk.movement("cns-1", 1, unit_ids=["unt-1", "unt-2", "unt-r"])


@case("issue_manifest", "wrong_leg", "movement:cns-2/0")
def unit_of_another_consignment(desk):
    desk.moved()
    return desk.movement("cns-2", 0, unit_ids=["unt-3", "unt-1"])


@case("issue_manifest", "withdrawn", "movement:cns-1/0")
def movement_on_a_withdrawn_service(desk):
    desk.withdraw("car-x", 200)
    return desk.movement("cns-1", 0)


@case("issue_manifest", "stale_input", "movement:cns-1/1")
def superseded_source(desk):
    desk.moved()
    desk.move("cns-1", 0)
    return desk.movement("cns-1", 1)


@case("issue_manifest", "no_custody", "movement:cns-1/1")
def predecessor_not_cited(desk):
    desk.checked_in().move("cns-1", 0)
    return desk.movement("cns-1", 1, sources=["tag-2@1"])


@case("issue_manifest", "no_custody", "movement:cns-1/1")
def tag_not_cited(desk):
    desk.checked_in().move("cns-1", 0)
    return desk.movement("cns-1", 1, sources=["mnf-1-0@1"])


@case("issue_manifest", "no_custody", "movement:cns-1/1")
def item_tagged_for_the_hold(desk):
    desk.checked_in().move("cns-1", 0)
    return desk.movement(
        "cns-1", 1, unit_ids=["unt-1", "unt-2", "itm-2b"], sources=["mnf-1-0@1", "tag-2b@1"], load_kg=225
    )


@case("issue_manifest", "no_custody", "movement:cns-2/0")
def relay_unit_left_off_by_the_giver(desk):
    desk.move("cns-1", 0, unit_ids=["unt-1", "unt-2"], load_kg=220)
    return desk.movement("cns-2", 0)


@case("issue_manifest", "no_custody", "movement:cns-1/1")
def manifest_that_ends_elsewhere(desk):
    desk.moved()
    return desk.movement("cns-1", 1, sources=["mnf-1-0@1", "tag-2@1", "mnf-2-0@1"])


@case("issue_manifest", "handoff_too_short", "movement:cns-1/1")
def departs_before_custody_allows(desk):
    desk.checked_in().move("cns-1", 0)
    return desk.movement("cns-1", 1, service_id="svc-bc1", permit_ids=["prm-bcx-p", "prm-bcx-l"])  # 350, not 390


@case("issue_manifest", "handoff_too_short", "movement:cns-1/0")
def departs_before_the_release_is_ready(desk):
    desk.world.amend("services", "svc-ab1", departure_min=139)
    return desk.movement("cns-1", 0)


@case("issue_manifest", "permit_mismatch", "movement:cns-1/0")
def class_without_a_permit(desk):
    return desk.movement("cns-1", 0, permit_ids=["prm-ab-p"])


@case("issue_manifest", "permit_mismatch", "movement:cns-1/1")
def permit_of_another_carrier(desk):
    desk.checked_in().move("cns-1", 0)
    return desk.movement("cns-1", 1, permit_ids=["prm-bcy-p", "prm-bcx-l"])


@case("issue_manifest", "permit_mismatch", "movement:cns-1/0")
def permit_of_another_lane_beside_the_right_ones(desk):
    return desk.movement("cns-1", 0, permit_ids=["prm-ab-p", "prm-ab-h", "prm-bcx-h"])


@case("issue_manifest", "over_weight", "movement:cns-1/0")
def load_above_the_free_kg(desk):
    return desk.movement("cns-1", 0, load_kg=401)


@case("issue_manifest", "bad_argument")
def source_that_proves_nothing(desk):
    desk.confirm("bkg-1")
    return desk.movement("cns-1", 0, sources=["rls-1@1", "itn-1@1"])


@case("issue_manifest", "bad_argument")
def unit_twice(desk):
    return desk.movement("cns-1", 0, unit_ids=["unt-1", "unt-1"])


@case("issue_manifest", "bad_argument")
def no_load(desk):
    return desk.movement("cns-1", 0, load_kg=0)


@case("issue_manifest", "unknown_id")
def no_such_unit(desk):
    return desk.movement("cns-1", 0, unit_ids=["unt-zz"])


@case("issue_manifest", "unknown_id")
def item_of_the_past(desk):
    return desk.movement("cns-1", 0, unit_ids=["itm-9"])


# -- freight ---------------------------------------------------------------------------------------------------------


def freight(consignment_id: str, manifest: str, *unit_ids: str) -> Arguments:
    return {"consignment_id": consignment_id, "manifest": manifest, "unit_ids": list(unit_ids)}


@case("deliver_consignment", "wrong_leg", "freight:cns-1")
def manifest_of_an_earlier_leg(desk):
    desk.moved()
    return freight("cns-1", "mnf-1-0@1", "unt-1", "unt-2")


@case("deliver_consignment", "wrong_leg", "freight:cns-1")
def manifest_of_another_consignment(desk):
    desk.moved()
    return freight("cns-1", "mnf-2-1@1", "unt-1", "unt-2")


@case("deliver_consignment", "stale_input", "freight:cns-1")
def withdrawn_manifest(desk):
    desk.moved()
    desk.withdraw("car-y", 400)
    return freight("cns-1", "mnf-1-1@1", "unt-1", "unt-2")


@case("deliver_consignment", "no_custody", "freight:cns-1")
def unit_not_aboard(desk):
    desk.moved()
    return freight("cns-1", "mnf-1-1@1", "unt-1", "unt-2", "unt-3")


@case("deliver_consignment", "promised_onward", "freight:cns-1")
def unit_owed_to_another_consignment(desk):
    # The relay unit rides to the end of the first route, where the second one is to take it.
    consignment = desk.world.consignment("cns-1")
    pieces = desk.world.pieces["cns-1"]
    pieces["unt-r"] = pieces["unt-r"]._replace(leave_leg=2)
    desk.checked_in().move("cns-1", 0)
    assert consignment.given
    desk.move(
        "cns-1", 1, unit_ids=["unt-1", "unt-2", "unt-r", "itm-2"], permit_ids=["prm-bcy-p", "prm-bcy-l", "prm-bcy-h"]
    )
    return freight("cns-1", "mnf-1-1@1", "unt-1", "unt-2", "unt-r")


@case("deliver_consignment", "promised_onward", "freight:cns-1")
def item_of_a_passenger(desk):
    desk.moved()
    return freight("cns-1", "mnf-1-1@1", "unt-1", "unt-2", "itm-2")


@case("deliver_consignment", "incomplete", "freight:cns-1")
def own_goods_not_named(desk):
    desk.moved()
    return freight("cns-1", "mnf-1-1@1", "unt-1")


@case("deliver_consignment", "incomplete", "freight:cns-2")
def received_unit_not_named(desk):
    desk.moved()
    return freight("cns-2", "mnf-2-1@1", "unt-3")


@case("deliver_consignment", "late", "freight:cns-1")
def handed_over_after_it_is_due(desk):
    desk.moved()
    permits = ["prm-bcx-p", "prm-bcx-l"]
    desk.move("cns-1", 1, service_id="svc-bc4", permit_ids=permits)  # 580 + 60, due at 600
    return freight("cns-1", "mnf-1-1@2", "unt-1", "unt-2")


@case("deliver_consignment", "bad_argument")
def freight_unit_twice(desk):
    desk.moved()
    return freight("cns-1", "mnf-1-1@1", "unt-1", "unt-1")


@case("deliver_consignment", "unknown_id")
def freight_unit_that_does_not_exist(desk):
    desk.moved()
    return freight("cns-1", "mnf-1-1@1", "unt-zz")


@case("deliver_consignment", "unknown_id")
def tag_for_a_manifest(desk):
    desk.moved()
    return freight("cns-1", "tag-2@1", "unt-1")


# -- queries ---------------------------------------------------------------------------------------------------------


def _unknown(tool: str, **arguments: Any) -> None:
    def no_such_object(desk: Desk) -> Arguments:
        return arguments

    case(tool, "unknown_id")(no_such_object)


_unknown("get_cohort", cohort_id="coh-9")
_unknown("get_booking", booking_id="bkg-9")
_unknown("get_consignment", consignment_id="cns-9")
_unknown("get_passenger", passenger_id="pax-9")
_unknown("get_hub", hub_id="hub-z")
_unknown("list_services", origin="hub-a", destination="hub-z", from_min=0, to_min=1)
_unknown("list_permits", origin="hub-z", destination="hub-a")
_unknown("list_transfers", cohort_id="coh-9", hub_id="hub-c")
_unknown("list_transfers", cohort_id="coh-1", hub_id="hub-z")
_unknown("get_journey", booking_id="bkg-9")
_unknown("list_history", kind="bookings", key="car-x")


# -- the tests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "code", "goal", "make"), [pytest.param(*c, id=f"{c[0]}-{c[1]}-{c[3].__name__}") for c in CASES]
)
def test_refusal(tool, code, goal, make):
    desk = Desk()
    desk.assert_refused(code, tool, **make(desk))
    desk.assert_recorded(code, goal)


def test_every_code_that_an_operation_declares_is_tried():
    assert_every_code_is_tried(ENVIRONMENT, {(tool, code) for tool, code, _, _ in CASES})


def test_mates_on_different_transfers_are_never_both_accepted():
    desk = Desk().delivered()
    desk.submit("bkg-1")
    desk.join("bkg-2", "trf-3")
    desk.assert_refused("stale_input", "submit_itinerary", **desk.submission("bkg-1"))
    desk.join("bkg-1", "trf-2")
    desk.assert_refused("stale_input", "submit_itinerary", **desk.submission("bkg-2"))


def test_accepted_operations_pass_their_check_but_a_tag_has_none():
    desk = Desk()
    desk.confirm("bkg-2")
    assert (desk.gateway.events[-1].goal, desk.gateway.events[-1].check) == ("itinerary:bkg-2", True)
    desk.tag("itm-2")
    assert desk.gateway.events[-1].check is None


def test_what_is_not_checked_is_accepted():
    """True class, permit window and piece limit, load arithmetic, minima at confirmation, times at joining."""
    desk = Desk()
    desk.confirm("bkg-1", "svc-ab1", "svc-bc1")  # departs 50 after the arrival
    desk.confirm("bkg-2")
    for item_id in ("itm-1", "itm-2"):
        desk.tag(item_id)
    desk.tag("itm-2", handling_class="hazardous")  # pigeons
    desk.move("cns-1", 0, load_kg=1)
    sources = ["mnf-1-0@1", "tag-2@2"]
    desk.move("cns-1", 1, sources=sources, permit_ids=["prm-bcy-p", "prm-bcy-h"], service_id="svc-bc5", load_kg=1)
    desk.join("bkg-1", "trf-1")


def test_a_refused_call_fires_no_update():
    desk = Desk(Update(1, "bookings_accepted", 1, None))
    desk.assert_refused(
        "unknown_id", "submit_itinerary", booking_id="bkg-1", itinerary="a-1@1", seat="b-1@1", delivery="c-1@1"
    )
    assert desk.world.fired == []
