"""Records of the transfer desk, contents of what is made in it, and its updates.

Times are integer minutes from the task's beginning, weights integer kg, legs are counted from 0.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from skillhorizon.core.world import Record

HandlingClass = Literal["general", "perishable", "live", "hazardous", "specialist"]
Carriage = Literal["hold", "custody"]


class Cohort(Record, frozen=True):
    """Four bookings and a consignment that travel along one route of hubs."""

    cohort_id: str
    sequence: int
    route: tuple[str, ...]
    booking_ids: tuple[str, ...]
    consignment_id: str


class CancelledSegment(msgspec.Struct, frozen=True):
    flight_id: str
    carrier_id: str
    origin: str
    destination: str
    minute_of_day: int


class LogEntry(msgspec.Struct, frozen=True):
    """What the desk noted about a booking, before the task."""

    minute: int
    channel: str
    text: str


class Booking(Record, frozen=True):
    """A booking to be rebooked: it rides the legs ``board_leg`` to ``alight_leg`` - 1 of its cohort's route."""

    booking_id: str
    cohort_id: str
    passenger_id: str
    mate_id: str
    board_leg: int
    alight_leg: int
    party: int
    ready_min: int
    due_min: int
    item_ids: tuple[str, ...]
    cancelled: tuple[CancelledSegment, ...]
    log: tuple[LogEntry, ...]


class PassengerFile(Record, frozen=True):
    """The past bookings of a passenger that the desk has on file."""

    passenger_id: str
    past: tuple[str, ...]


class Service(Record, frozen=True):
    service_id: str
    carrier_id: str
    origin: str
    destination: str
    departure_min: int
    arrival_min: int
    seats: int
    kg: int
    status: Literal["open", "withdrawn"] = "open"


class Permit(Record, frozen=True):
    """``valid_until_min`` is exclusive."""

    permit_id: str
    carrier_id: str
    origin: str
    destination: str
    handling_class: HandlingClass
    valid_from_min: int
    valid_until_min: int
    max_piece_kg: int

    def covers(self, service: Service) -> bool:
        """Whether it is a permit of the service's carrier on its lane."""
        return (self.carrier_id, self.origin, self.destination) == (
            service.carrier_id,
            service.origin,
            service.destination,
        )


class Unit(msgspec.Struct, frozen=True):
    unit_id: str
    kg: int
    packaging: str
    size_cm: tuple[int, int, int]


class RelayUnit(msgspec.Struct, frozen=True):
    """A unit that one consignment carries first and another one after it, on the legs before ``leave_leg``.

    ``other`` is the other consignment; ``other_leg`` the leg on which it takes the unit aboard (of a unit given), or
    whose manifest proves the unit (of a unit received).
    """

    unit_id: str
    kg: int
    packaging: str
    handling_class: HandlingClass
    board_leg: int
    leave_leg: int
    other: str
    other_leg: int


class ReleaseTerms(msgspec.Struct, frozen=True):
    hub_id: str
    ready_min: int
    unit_ids: tuple[str, ...]


class Consignment(Record, frozen=True):
    consignment_id: str
    cohort_id: str
    handling_class: HandlingClass
    due_min: int
    goods: tuple[Unit, ...]
    given: tuple[RelayUnit, ...]
    received: tuple[RelayUnit, ...]
    release: ReleaseTerms


class Transfer(Record, frozen=True):
    transfer_id: str
    cohort_id: str
    hub_id: str
    departure_min: int
    arrival_min: int
    seats: int
    kg: int


class Withdrawal(msgspec.Struct, frozen=True):
    """Effect of an update: the carrier's departures from ``from_min`` on no longer operate."""

    carrier_id: str
    from_min: int


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Release(msgspec.Struct, frozen=True):
    hub_id: str
    ready_min: int
    unit_ids: tuple[str, ...]


class Leg(msgspec.Struct, frozen=True):
    leg: int
    service_id: str
    carrier_id: str
    origin: str
    destination: str
    departure_min: int
    arrival_min: int


class Itinerary(msgspec.Struct, frozen=True):
    legs: tuple[Leg, ...]

    @property
    def arrival_min(self) -> int:
        return self.legs[-1].arrival_min


class Tag(msgspec.Struct, frozen=True):
    booking_id: str
    handling_class: HandlingClass
    carriage: Carriage
    kg: int
    ready_min: int
    itinerary: str | None


class Manifest(msgspec.Struct, frozen=True):
    """Proof that the units reached ``destination`` in custody."""

    leg: int
    service_id: str
    destination: str
    departure_min: int
    arrival_min: int
    permit_ids: tuple[str, ...]
    unit_ids: tuple[str, ...]
    load_kg: int


class Seat(msgspec.Struct, frozen=True):
    transfer_id: str
    departure_min: int
    arrival_min: int


class SeatBasis(msgspec.Struct, frozen=True):
    """Its place among all seats taken, and the manifest of the bags as it stood then."""

    place: int
    manifest: str | None


class Proof(msgspec.Struct, frozen=True):
    item_id: str
    proof: str


class Delivery(msgspec.Struct, frozen=True):
    transfer_id: str
    proofs: tuple[Proof, ...]


class FreightDelivery(msgspec.Struct, frozen=True):
    unit_ids: tuple[str, ...]
    delivered_min: int


class Evaluation(msgspec.Struct, frozen=True):
    itinerary: str
    seat: str
    delivery: str
