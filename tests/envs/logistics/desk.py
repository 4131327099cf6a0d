"""A transfer desk of two cohorts on three lanes, made and worked out by hand; the tests of LogisticsOps stand in it.

The first cohort goes a-b-c, the second b-c-d. All hubs have the same minima. What each right call rests on is worked
out in the comments beside the records, so a test says only what it does otherwise.
"""

from __future__ import annotations

from typing import Any

from skillhorizon.core.gateway import Gateway
from skillhorizon.core.world import STALE, Update
from skillhorizon.envs.logistics import ENVIRONMENT
from skillhorizon.envs.logistics.records import (
    Booking,
    Cohort,
    Consignment,
    PassengerFile,
    Permit,
    RelayUnit,
    ReleaseTerms,
    Service,
    Transfer,
    Unit,
    Withdrawal,
)
from skillhorizon.envs.logistics.seed import (
    BaggageItem,
    Carrier,
    CustodyEvent,
    Flight,
    Hub,
    HubMinimum,
    Lane,
    Network,
    Passenger,
    PastBooking,
    Segment,
    Waybill,
)
from skillhorizon.envs.logistics.world import LogisticsWorld
from tests.envs.bench import Bench

HUBS = ("hub-a", "hub-b", "hub-c", "hub-d")
MINIMA = {
    "checkin": 50,
    "same_carrier": 40,
    "other_carrier": 70,
    "transfer": 30,
    "custody_ordinary": 60,
    "custody_regulated": 90,
    "custody_specialist": 100,
}
NETWORK: dict[str, dict[str, Any]] = {
    "hubs": {h: Hub(h, "north") for h in HUBS},
    "carriers": {c: Carrier(c, "north") for c in ("car-x", "car-y")},
    "lanes": {
        "lan-1": Lane("lan-1", "hub-a", "hub-b", 100),
        "lan-2": Lane("lan-2", "hub-b", "hub-c", 100),
        "lan-3": Lane("lan-3", "hub-c", "hub-d", 100),
    },
    "hub_minima": {f"{h}/{kind}": HubMinimum(h, kind, n) for h in HUBS for kind, n in MINIMA.items()},
    "passengers": {
        "pax-1": Passenger("pax-1", "gold", "en", "hub-a", "wheelchair"),
        "pax-2": Passenger("pax-2", "basic", "fr", "hub-b", "none"),
    },
    "flights": {"flt-1": Flight("flt-1", "car-x", "lan-1", "hub-a", "hub-b", 100, 2000, 600)},
    "bookings": {b: PastBooking(b, p, 1) for b, p in (("bkg-1", "pax-1"), ("bkg-2", "pax-2"), ("bkg-9", "pax-2"))},
    "booking_segments": {"bkg-9/1": Segment("bkg-9", 1, "flt-1", "flown")},
    "baggage_items": {
        "itm-1": BaggageItem("itm-1", "bkg-1", 20, "clothing", 3),
        "itm-2": BaggageItem("itm-2", "bkg-2", 10, "racing-pigeons", 2),
        "itm-2b": BaggageItem("itm-2b", "bkg-2", 5, "perfume", 5),  # hazardous from 6 on
        "itm-3": BaggageItem("itm-3", "bkg-3", 7, "books", 1),
        "itm-4": BaggageItem("itm-4", "bkg-4", 9, "toys", 1),
        "itm-9": BaggageItem("itm-9", "bkg-9", 8, "books", 1),
    },
    "waybills": {"wbl-1": Waybill("wbl-1", "car-x", "hub-a", "hub-b", "general", 40)},
    "custody_events": {"wbl-1/1": CustodyEvent("wbl-1", 1, "received", "hub-a", -900)},
}
# Assistance adds 30 for pax-1 and nothing for pax-2.
BOOKINGS = (
    Booking("bkg-1", "coh-1", "pax-1", "bkg-2", 0, 2, 2, 120, 640, ("itm-1",), (), ()),
    Booking("bkg-2", "coh-1", "pax-2", "bkg-1", 1, 2, 1, 300, 650, ("itm-2", "itm-2b"), (), ()),
    Booking("bkg-3", "coh-2", "pax-1", "bkg-4", 0, 2, 1, 300, 1000, ("itm-3",), (), ()),
    Booking("bkg-4", "coh-2", "pax-2", "bkg-3", 1, 2, 1, 500, 1000, ("itm-4",), (), ()),
)
SERVICES = (
    Service("svc-ab1", "car-x", "hub-a", "hub-b", 200, 300, 4, 400),
    Service("svc-ab2", "car-x", "hub-a", "hub-b", 230, 330, 2, 270),
    Service("svc-bc1", "car-x", "hub-b", "hub-c", 350, 450, 5, 900),
    Service("svc-bc2", "car-y", "hub-b", "hub-c", 400, 500, 5, 900),
    Service("svc-bc3", "car-x", "hub-b", "hub-c", 430, 530, 5, 900),
    Service("svc-bc4", "car-x", "hub-b", "hub-c", 480, 580, 5, 900),
    Service("svc-bc5", "car-y", "hub-b", "hub-c", 405, 505, 2, 200),
    Service("svc-cd1", "car-y", "hub-c", "hub-d", 700, 800, 5, 900),
)
PERMITS = (
    Permit("prm-ab-p", "car-x", "hub-a", "hub-b", "perishable", 0, 500, 120),
    Permit("prm-ab-h", "car-x", "hub-a", "hub-b", "hazardous", 0, 500, 50),
    Permit("prm-bcx-p", "car-x", "hub-b", "hub-c", "perishable", 0, 600, 120),
    Permit("prm-bcx-l", "car-x", "hub-b", "hub-c", "live", 0, 600, 10),
    Permit("prm-bcx-h", "car-x", "hub-b", "hub-c", "hazardous", 0, 600, 80),
    Permit("prm-bcy-p", "car-y", "hub-b", "hub-c", "perishable", 0, 600, 120),
    Permit("prm-bcy-l", "car-y", "hub-b", "hub-c", "live", 400, 401, 10),  # at 400, and then no more
    Permit("prm-bcy-h", "car-y", "hub-b", "hub-c", "hazardous", 0, 600, 80),
    Permit("prm-cd-h", "car-y", "hub-c", "hub-d", "hazardous", 0, 900, 80),
)
CONSIGNMENTS = (
    Consignment(
        "cns-1",
        "coh-1",
        "perishable",
        600,
        (Unit("unt-1", 100, "crate", (60, 40, 50)), Unit("unt-2", 120, "crate", (60, 40, 50))),
        (RelayUnit("unt-r", 50, "drum", "hazardous", 0, 1, "cns-2", 0),),
        (),
        ReleaseTerms("hub-a", 140, ("unt-1", "unt-2", "unt-r")),
    ),
    Consignment(
        "cns-2",
        "coh-2",
        "hazardous",
        900,
        (Unit("unt-3", 80, "drum", (60, 40, 50)),),
        (),
        (RelayUnit("unt-r", 50, "drum", "hazardous", 0, 2, "cns-1", 0),),
        ReleaseTerms("hub-b", 340, ("unt-3",)),
    ),
)
TRANSFERS = (
    Transfer("trf-1", "coh-1", "hub-c", 560, 600, 3, 35),
    Transfer("trf-2", "coh-1", "hub-c", 600, 640, 3, 35),
    Transfer("trf-3", "coh-1", "hub-c", 660, 700, 3, 35),
    Transfer("trf-4", "coh-1", "hub-c", 590, 630, 1, 14),
    Transfer("trf-9", "coh-2", "hub-d", 900, 950, 2, 16),
)
ITINERARIES = {
    # Ready 120 + 50 = 170, departs 200; arrives 300, another carrier 70 and 30 more: 400, departs 400.
    "bkg-1": ["svc-ab1", "svc-bc2"],
    # Ready 300 + 50 = 350, departs 400.
    "bkg-2": ["svc-bc2"],
}
TAGS: dict[str, dict[str, Any]] = {
    "itm-1": {"handling_class": "general", "carriage": "hold"},
    "itm-2": {"handling_class": "live", "carriage": "custody"},
    "itm-2b": {"handling_class": "general", "carriage": "hold"},
}
MANIFESTS: dict[tuple[str, int], dict[str, Any]] = {
    # Released at 140, departs 200; 100 + 120 + 50 kg.
    ("cns-1", 0): {
        "service_id": "svc-ab1",
        "permit_ids": ["prm-ab-p", "prm-ab-h"],
        "sources": ["rls-1@1"],
        "unit_ids": ["unt-1", "unt-2", "unt-r"],
        "load_kg": 270,
    },
    # Live goods board: 90 after the arrival at 300 and after bkg-2 presents them at 300, so from 390; departs 400.
    ("cns-1", 1): {
        "service_id": "svc-bc2",
        "permit_ids": ["prm-bcy-p", "prm-bcy-l"],
        "sources": ["mnf-1-0@1", "tag-2@1"],
        "unit_ids": ["unt-1", "unt-2", "itm-2"],
        "load_kg": 230,
    },
    # Hazardous: 90 after the giver's arrival at 300; the release is ready at 340; departs 400.
    ("cns-2", 0): {
        "service_id": "svc-bc2",
        "permit_ids": ["prm-bcy-h"],
        "sources": ["rls-2@1", "mnf-1-0@1"],
        "unit_ids": ["unt-3", "unt-r"],
        "load_kg": 130,
    },
    # 500 + 90 = 590, departs 700.
    ("cns-2", 1): {
        "service_id": "svc-cd1",
        "permit_ids": ["prm-cd-h"],
        "sources": ["mnf-2-0@1"],
        "unit_ids": ["unt-3", "unt-r"],
        "load_kg": 130,
    },
}
PROOFS = {
    "bkg-1": [{"item_id": "itm-1", "proof": "tag-1@1"}],
    "bkg-2": [{"item_id": "itm-2", "proof": "mnf-1-1@1"}, {"item_id": "itm-2b", "proof": "tag-2b@1"}],
}
# At hub-c: bkg-1 arrives 500, + 30 + 30 = 560; bkg-2 500 + 30 = 530; itm-2 500 + 90 = 590. So trf-2 at 600, which
# arrives at 640, when bkg-1 is due.
SERVING = "trf-2"


class Desk(Bench):
    """The desk behind its Gateway. ``withdraw`` lets a carrier withdraw at once."""

    def __init__(self, *updates: Update) -> None:
        cohorts = (
            Cohort("coh-1", 0, ("hub-a", "hub-b", "hub-c"), ("bkg-1", "bkg-2"), "cns-1"),
            Cohort("coh-2", 1, ("hub-b", "hub-c", "hub-d"), ("bkg-3", "bkg-4"), "cns-2"),
        )
        tables = {
            "cohorts": {c.cohort_id: c for c in cohorts},
            "rebookings": {b.booking_id: b for b in BOOKINGS},
            "passenger_files": {"pax-2": PassengerFile("pax-2", ("bkg-9",))},
            "services": {s.service_id: s for s in SERVICES},
            "permits": {p.permit_id: p for p in PERMITS},
            "consignments": {c.consignment_id: c for c in CONSIGNMENTS},
            "transfers": {t.transfer_id: t for t in TRANSFERS},
        }
        self.world = LogisticsWorld(tables, updates, {}, Network(NETWORK))
        self.gateway = Gateway(self.world, ENVIRONMENT.tools)
        self.refused = None

    # -- the right calls -------------------------------------------------------------------------------------------

    def newest(self, identity: str) -> str:
        ref: str = self.world.newest[identity].ref
        return ref

    def confirm(self, booking_id: str, *service_ids: str) -> Any:
        services = list(service_ids) or ITINERARIES[booking_id]
        return self.do("confirm_itinerary", booking_id=booking_id, service_ids=services)

    def tag(self, item_id: str, **changes: Any) -> Any:
        arguments = {"item_id": item_id, **TAGS[item_id], **changes}
        if arguments["carriage"] == "hold":
            arguments.setdefault("itinerary", self.newest(f"itn-{item_id[4]}"))
        return self.do("check_in_baggage", **arguments)

    def checked_in(self) -> Desk:
        """Both bookings of the first cohort confirmed and their items tagged."""
        self.confirm("bkg-1")
        self.confirm("bkg-2")
        for item_id in TAGS:
            self.tag(item_id)
        return self

    def movement(self, consignment_id: str, leg: int, **changes: Any) -> dict[str, Any]:
        """The right arguments of a movement over the first versions of its sources, or others."""
        return {"consignment_id": consignment_id, "leg": leg, **MANIFESTS[consignment_id, leg], **changes}

    def move(self, consignment_id: str, leg: int, **changes: Any) -> Any:
        return self.do("issue_manifest", **self.movement(consignment_id, leg, **changes))

    def moved(self) -> Desk:
        """Everything checked in, and all four movements made."""
        self.checked_in()
        for consignment_id, leg in MANIFESTS:
            self.move(consignment_id, leg)
        return self

    def join(self, booking_id: str, transfer_id: str = SERVING) -> Any:
        itinerary = self.newest(f"itn-{booking_id[4]}")
        return self.do("join_transfer", booking_id=booking_id, transfer_id=transfer_id, itinerary=itinerary)

    def deliver(self, booking_id: str, **changes: Any) -> Any:
        seat = self.newest(f"sea-{booking_id[4]}")
        proofs = [{**p, "proof": self.newest(p["proof"].partition("@")[0])} for p in PROOFS[booking_id]]
        return self.do("deliver_baggage", **{"booking_id": booking_id, "seat": seat, "proofs": proofs} | changes)

    def submission(self, booking_id: str, **changes: Any) -> dict[str, Any]:
        n = booking_id[4]
        refs = {"itinerary": f"itn-{n}", "seat": f"sea-{n}", "delivery": f"dlv-{n}"}
        return {"booking_id": booking_id, **{name: self.newest(identity) for name, identity in refs.items()}, **changes}

    def submit(self, booking_id: str) -> Any:
        return self.do("submit_itinerary", **self.submission(booking_id))

    def delivered(self) -> Desk:
        """Both bookings moved, seated and delivered."""
        self.moved()
        for booking_id in PROOFS:
            self.join(booking_id)
        for booking_id in PROOFS:
            self.deliver(booking_id)
        return self

    def closed(self) -> Desk:
        """All of the first cohort, and the freight of both."""
        self.delivered()
        for booking_id in PROOFS:
            self.submit(booking_id)
        self.do("deliver_consignment", consignment_id="cns-1", manifest="mnf-1-1@1", unit_ids=["unt-1", "unt-2"])
        self.do("deliver_consignment", consignment_id="cns-2", manifest="mnf-2-1@1", unit_ids=["unt-3", "unt-r"])
        return self

    # -- what happens to it ----------------------------------------------------------------------------------------

    def withdraw(self, carrier_id: str, from_min: int) -> set[str]:
        """The carrier withdraws now; the references that became stale."""
        self.world.begin_call()
        self.world.apply_update(Update(1, "bookings_accepted", 1, Withdrawal(carrier_id, from_min)))
        return set(self.world.invalidated)

    def stale(self) -> set[str]:
        """References of everything that is stale."""
        return {ref for ref, artifact in self.world.artifacts.items() if artifact.status == STALE}
