"""The transfer desk: records, the rules of the trade, and what makes work stale.

Times are integer minutes from the task's beginning, weights integer kg, legs are counted from 0. Rule numbers are those
of the skills: each rule stands once, in ``rules`` or here, for the operations, for staleness and for scoring.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, Artifact, Update, World
from skillhorizon.envs.logistics.records import (
    Booking,
    Cohort,
    Consignment,
    Delivery,
    Itinerary,
    Leg,
    Manifest,
    Permit,
    Release,
    ReleaseTerms,
    Service,
    Transfer,
    Withdrawal,
)
from skillhorizon.envs.logistics.rules import Claim, Piece, connection_min, custody_min, earliest_movement
from skillhorizon.envs.logistics.seed import Network

ALLOWANCES = {"none": 0, "escort": 15, "wheelchair": 30}
"""Rule 1: minutes that a passenger's assistance adds to every connection."""


# -- arithmetic ------------------------------------------------------------------------------------------------------


class LogisticsWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {
        "release": "rls",
        "itinerary": "itn",
        "tag": "tag",
        "manifest": "mnf",
        "seat": "sea",
        "delivery": "dlv",
        "freight_delivery": "frd",
        "evaluation": "evl",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        t = self.tables
        self.network = seed_tables if isinstance(seed_tables, Network) else Network(seed_tables or {})
        self.minima = self.network.minima
        self.cohorts: list[Cohort] = sorted(t["cohorts"].values(), key=lambda c: c.sequence)
        self.services_on: dict[tuple[str, str], list[tuple[int, str]]] = {}
        """(origin, destination) -> departure and id of its services, in that order"""
        self.services_of: dict[str, list[str]] = {}
        for service in sorted(t["services"].values(), key=lambda s: (s.departure_min, s.service_id)):
            key = service.departure_min, service.service_id
            self.services_on.setdefault((service.origin, service.destination), []).append(key)
            self.services_of.setdefault(service.carrier_id, []).append(service.service_id)
        self.permits_on: dict[tuple[str, str], list[Permit]] = {}
        for permit in sorted(t["permits"].values(), key=lambda p: p.permit_id):
            self.permits_on.setdefault((permit.origin, permit.destination), []).append(permit)
        self.transfers_at: dict[tuple[str, str], list[Transfer]] = {}
        for transfer in sorted(t["transfers"].values(), key=lambda x: (x.departure_min, x.transfer_id)):
            self.transfers_at.setdefault((transfer.cohort_id, transfer.hub_id), []).append(transfer)
        rooms = [*t["services"].items(), *t["transfers"].items()]
        self.ledgers = {
            "seats": Ledger({key: record.seats for key, record in rooms}),
            "weights": Ledger({key: record.kg for key, record in rooms}),
        }
        self.pieces: dict[str, dict[str, Piece]] = {}
        """consignment -> unit or item -> how it rides there"""
        self.carried: set[str] = set()
        """every unit and item of the task"""
        for consignment in t["consignments"].values():
            self.pieces[consignment.consignment_id] = self._pieces(consignment)
            self.carried |= self.pieces[consignment.consignment_id].keys()
        self.seats_taken = 0
        self.disturbed: dict[str, None] = {}
        """bookings and consignments of which something current was issued again after a notice (rule 11)"""
        for consignment in t["consignments"].values():
            terms: ReleaseTerms = consignment.release
            content = Release(terms.hub_id, terms.ready_min, terms.unit_ids)
            self.publish("release", consignment.consignment_id, content, ())
        self.begin_call()

    def _pieces(self, consignment: Consignment) -> dict[str, Piece]:
        cohort = self.tables["cohorts"][consignment.cohort_id]
        last = len(cohort.route) - 1
        pieces = {u.unit_id: Piece(u.kg, consignment.handling_class, 0, last, "own") for u in consignment.goods}
        for u in consignment.given:
            pieces[u.unit_id] = Piece(u.kg, u.handling_class, u.board_leg, u.leave_leg, "given")
        for u in consignment.received:
            giver = derived("mnf", u.other, u.other_leg)
            pieces[u.unit_id] = Piece(u.kg, u.handling_class, u.board_leg, u.leave_leg, "received", giver)
        for booking_id in cohort.booking_ids:
            booking: Booking = self.tables["rebookings"][booking_id]
            for item_id in booking.item_ids:
                kg = self.item(item_id).kg
                pieces[item_id] = Piece(kg, None, booking.board_leg, booking.alight_leg, "item")
        return pieces

    # -- looking up ------------------------------------------------------------------------------------------------

    def cohort(self, cohort_id: str) -> Cohort:
        cohort: Cohort = self.get("cohorts", cohort_id)
        return cohort

    def booking(self, booking_id: str) -> Booking:
        """A booking of this task; the network's other ones are history."""
        booking: Booking | None = self.tables["rebookings"].get(booking_id)
        if booking is None:
            raise Rejected("unknown_id", f"no booking {booking_id!r} is to be rebooked", id=booking_id)
        return booking

    def consignment(self, consignment_id: str) -> Consignment:
        consignment: Consignment = self.get("consignments", consignment_id)
        return consignment

    def service(self, service_id: str) -> Service:
        service: Service = self.get("services", service_id)
        return service

    def transfer(self, transfer_id: str) -> Transfer:
        transfer: Transfer = self.get("transfers", transfer_id)
        return transfer

    def item(self, item_id: str) -> Any:
        return self.get("baggage_items", item_id)

    def cohort_of(self, booking: Booking) -> Cohort:
        cohort: Cohort = self.tables["cohorts"][booking.cohort_id]
        return cohort

    def allowance(self, booking: Booking) -> int:
        return ALLOWANCES[self.get("passengers", booking.passenger_id).assistance]

    def newest_of(self, kind: str, subject: str, ordinal: int | None = None) -> Artifact | None:
        """The newest version of the artifact of this kind about this subject."""
        return self.newest.get(derived(self.prefixes[kind], subject, ordinal))

    def replacement(self, ref: str) -> Artifact:
        """The newest version of the artifact that a reference names one version of."""
        return self.newest[ref.partition("@")[0]]

    def last_manifest_id(self, booking: Booking) -> str:
        """Of the manifest that brings the booking's custody items to where it alights."""
        return derived("mnf", self.cohort_of(booking).consignment_id, booking.alight_leg - 1)

    # -- capacity (rule 6) -----------------------------------------------------------------------------------------

    def refuse_unfit(self, ledger: str, claims: Sequence[Claim], code: str) -> None:
        """Refuse where a claim does not fit once what its holder has is given back. Slots of claims are distinct."""
        book = self.ledgers[ledger]
        for claim in claims:
            if not book.fits(claim.slot, claim.amount, instead_of=claim.holder):
                raise Rejected(code, f"{claim.slot} has no room for {claim.amount}", id=claim.slot)

    def exchange(self, ledger: str, claims: Sequence[Claim], owner: str) -> None:
        for claim in claims:
            self.ledgers[ledger].reserve(claim.slot, claim.amount, owner, claim.holder)

    # -- rules 1, 7 and 8 ------------------------------------------------------------------------------------------

    def leg_slacks(self, booking: Booking, legs: Sequence[Leg]) -> list[int]:
        """Rule 1: of each leg, minutes between when the passenger can board and the departure."""
        allowance = self.allowance(booking)
        there, before = booking.ready_min, None
        slacks = []
        for leg in legs:
            wait = connection_min(self.minima[leg.origin], before, leg.carrier_id, allowance)
            slacks.append(leg.departure_min - there - wait)
            there, before = leg.arrival_min, leg.carrier_id
        return slacks

    def transfer_slack(self, booking: Booking, itinerary: Itinerary, departure_min: int) -> int:
        """Rule 7: minutes between when the passenger can be at the transfers and a departure."""
        last = itinerary.legs[-1]
        return departure_min - last.arrival_min - self.minima[last.destination]["transfer"] - self.allowance(booking)

    def bag_slack(self, manifest: Artifact, item_id: str, departure_min: int) -> int:
        """Rule 7: the same for an item aboard a last manifest."""
        content: Manifest = manifest.content
        kappa = custody_min(self.minima[content.destination], (manifest.basis[item_id],))
        return departure_min - content.arrival_min - kappa

    def bag_slacks(self, booking: Booking, departure_min: int) -> dict[str, int]:
        """Rule 7: the same for each custody item of the booking that its last manifest carries."""
        manifest = self.newest.get(self.last_manifest_id(booking))
        if manifest is None:
            return {}
        aboard = [i for i in booking.item_ids if i in manifest.basis]
        return {i: self.bag_slack(manifest, i, departure_min) for i in aboard}

    def delivered_min(self, manifest: Artifact, unit_ids: Iterable[str]) -> int:
        """Rule 8: when the units of a last manifest can be handed over."""
        content: Manifest = manifest.content
        kappa = custody_min(self.minima[content.destination], {manifest.basis[u] for u in unit_ids})
        return content.arrival_min + kappa

    # -- staleness (rule 10) ---------------------------------------------------------------------------------------

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        return _STALENESS[artifact.kind](self, artifact, cause)

    def _never(self, artifact: Artifact, cause: str) -> str | None:
        return None

    def _at_once(self, artifact: Artifact, cause: str) -> str | None:
        return super().staleness(artifact, cause)

    def _withdrawn_leg(self, itinerary: Artifact, cause: str) -> str | None:
        services = self.tables["services"]
        gone = [leg.service_id for leg in itinerary.content.legs if services[leg.service_id].status == "withdrawn"]
        return f"{gone[0]} was withdrawn" if gone else None

    def _tag_outdated(self, tag: Artifact, cause: str) -> str | None:
        cited = tag.content.itinerary
        return None if cited is None or self.replacement(cited).ref == cited else f"{cited} was replaced"

    def _manifest_unsupported(self, manifest: Artifact, cause: str) -> str | None:
        content: Manifest = manifest.content
        service: Service = self.tables["services"][content.service_id]
        if service.status == "withdrawn":
            return f"{content.service_id} was withdrawn"
        for ref in manifest.inputs:
            source = self.artifacts.get(ref)  # None for the service and the permits
            newest = self.replacement(ref) if source is not None else None
            if source is None or newest is None or newest.ref == ref:
                continue
            if source.kind == "tag":
                return f"{ref} was replaced"
            dropped = [u for u in content.unit_ids if u in source.basis and u not in newest.basis]
            if dropped:
                return f"{newest.ref} no longer carries {dropped[0]}"
            kappa = custody_min(self.minima[service.origin], manifest.basis.values())
            if content.departure_min < earliest_movement(kappa, None, (), (newest.content.arrival_min,)):
                return f"{newest.ref} arrives too late for {content.service_id}"
        return None

    def _seat_unsupported(self, seat: Artifact, cause: str) -> str | None:
        booking = self.booking(seat.subject)
        departure = seat.content.departure_min
        itinerary = self.replacement(seat.inputs[0])
        if itinerary.ref != seat.inputs[0] and self.transfer_slack(booking, itinerary.content, departure) < 0:
            return f"{itinerary.ref} misses {seat.content.transfer_id}"
        mate = self.newest_of("seat", booking.mate_id)
        moved = mate is not None and mate.content.transfer_id != seat.content.transfer_id
        if mate is not None and moved and mate.basis.place > seat.basis.place:
            return f"{booking.mate_id} joined {mate.content.transfer_id}"
        manifest = self.newest.get(self.last_manifest_id(booking))
        if manifest is None or manifest.version == 1 or manifest.ref == seat.basis.manifest:
            return None
        missed = [i for i, slack in self.bag_slacks(booking, departure).items() if slack < 0]
        return f"{missed[0]} misses {seat.content.transfer_id}" if missed else None

    def _delivery_unsupported(self, delivery: Artifact, cause: str) -> str | None:
        content: Delivery = delivery.content
        seat = self.replacement(delivery.inputs[0])
        if seat.content.transfer_id != content.transfer_id:
            return f"{delivery.subject} joined {seat.content.transfer_id}"
        departure = self.tables["transfers"][content.transfer_id].departure_min
        for proof in content.proofs:
            newest = self.replacement(proof.proof)
            if newest.ref == proof.proof:
                continue
            if newest.kind == "tag":
                return f"{proof.proof} was replaced"
            if proof.item_id not in newest.basis:
                return f"{newest.ref} no longer carries {proof.item_id}"
            if self.bag_slack(newest, proof.item_id, departure) < 0:
                return f"{proof.item_id} misses {content.transfer_id}"
        return None

    def _freight_unsupported(self, delivery: Artifact, cause: str) -> str | None:
        manifest = self.replacement(delivery.inputs[0])
        if manifest.ref == delivery.inputs[0]:
            return None
        units = delivery.content.unit_ids
        dropped = [u for u in units if u not in manifest.basis]
        if dropped:
            return f"{manifest.ref} no longer carries {dropped[0]}"
        due = self.tables["consignments"][delivery.subject].due_min
        return f"{manifest.ref} arrives too late" if self.delivered_min(manifest, units) > due else None

    # -- disturbance (rule 11) and updates -------------------------------------------------------------------------

    def note_disturbance(self, before: Artifact | None, subject: str) -> None:
        """To be called before a version that replaces ``before`` is published."""
        if self.notices and before is not None and before.status == CURRENT:
            self.disturbed[subject] = None

    def apply_update(self, update: Update) -> None:
        effect: Withdrawal = update.effect
        withdrawn = []
        for service_id in self.services_of.get(effect.carrier_id, ()):
            service: Service = self.tables["services"][service_id]
            if service.departure_min >= effect.from_min and service.status == "open":
                self.amend("services", service_id, status="withdrawn")
                withdrawn.append(service_id)
        text = f"Carrier {effect.carrier_id} withdraws all its departures from minute {effect.from_min} on."
        self.announce("carrier_withdrawal", (effect.carrier_id,), text)
        self.changed(*(f"service:{s}" for s in withdrawn), cause=text)


_STALENESS: dict[str, Callable[[LogisticsWorld, Artifact, str], str | None]] = {
    "release": LogisticsWorld._never,
    "itinerary": LogisticsWorld._withdrawn_leg,
    "tag": LogisticsWorld._tag_outdated,
    "manifest": LogisticsWorld._manifest_unsupported,
    "seat": LogisticsWorld._seat_unsupported,
    "delivery": LogisticsWorld._delivery_unsupported,
    "freight_delivery": LogisticsWorld._freight_unsupported,
    "evaluation": LogisticsWorld._at_once,
}
