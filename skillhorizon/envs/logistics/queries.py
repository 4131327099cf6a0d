"""Queries of the transfer desk. Each list has a declared total order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.tools import Id, Items, tool
from skillhorizon.core.world import Artifact
from skillhorizon.envs.logistics.records import Cohort, HandlingClass, Permit, Service, Transfer
from skillhorizon.envs.logistics.seed import Passenger
from skillhorizon.envs.logistics.world import LogisticsWorld

BookingId = Annotated[Id, Meta(description="A booking's id.")]
ConsignmentId = Annotated[Id, Meta(description="A consignment's id.")]
HubId = Annotated[Id, Meta(description="A hub's id.")]
Minute = Annotated[int, Meta(ge=-10_000_000, le=10_000_000, description="A minute.")]


# -- queries ---------------------------------------------------------------------------------------------------------


@tool("query", page=8, order="sequence")
def list_cohorts(world: LogisticsWorld) -> Items:
    """List the cohorts: sequence, origin and destination of the route, consignment."""

    def render(cohort: Cohort) -> dict[str, Any]:
        return {
            "cohort_id": cohort.cohort_id,
            "sequence": cohort.sequence,
            "origin": cohort.route[0],
            "destination": cohort.route[-1],
            "consignment_id": cohort.consignment_id,
        }

    return Items(world.cohorts, render)


@tool("query")
def get_cohort(world: LogisticsWorld, cohort_id: Id) -> dict[str, Any]:
    """Read a cohort: the hubs of its route in order, the legs between them, its four bookings, its consignment."""
    cohort = world.cohort(cohort_id)
    legs = [
        {"leg": leg, "origin": a, "destination": b, "block_min": world.network.block_min[a, b]}
        for leg, (a, b) in enumerate(pairwise(cohort.route))
    ]
    return {**asdict(cohort), "legs": legs}


@tool("query")
def get_booking(world: LogisticsWorld, booking_id: BookingId) -> dict[str, Any]:
    """Read a booking: party, legs and hubs, times, baggage items, the mate who shares its ground transfer."""
    booking = world.booking(booking_id)
    route = world.cohort_of(booking).route
    record = asdict(booking)
    del record["item_ids"]
    items = [world.item(i) for i in booking.item_ids]
    return {
        **record,
        "board_hub": route[booking.board_leg],
        "alight_hub": route[booking.alight_leg],
        "items": [{"item_id": i.item_id, "kg": i.kg, "commodity": i.commodity, "quantity": i.quantity} for i in items],
    }


@tool("query")
def get_consignment(world: LogisticsWorld, consignment_id: ConsignmentId) -> dict[str, Any]:
    """Read a consignment: class, time due, own goods, units it gives to and receives from others, its release."""
    consignment = world.consignment(consignment_id)
    release = world.newest_of("release", consignment_id)
    return {**asdict(consignment), "release_ref": release and release.ref}


@tool("query")
def get_passenger(world: LogisticsWorld, passenger_id: Id) -> dict[str, Any]:
    """Read a passenger: tier, language, home hub, assistance needed, past bookings on file."""
    passenger: Passenger = world.get("passengers", passenger_id)
    file = world.tables["passenger_files"].get(passenger_id)
    return {**asdict(passenger), "past": [_past(world, booking_id) for booking_id in file.past] if file else []}


def _past(world: LogisticsWorld, booking_id: str) -> dict[str, Any]:
    network = world.network
    segments = []
    for segment in network.segments_of[booking_id]:
        flight = network["flights"][segment.flight_id]
        segments.append(
            {
                "flight_id": flight.flight_id,
                "carrier_id": flight.carrier_id,
                "origin": flight.origin,
                "destination": flight.destination,
                "status": segment.status,
            }
        )
    items = [{"commodity": i.commodity, "kg": i.kg} for i in network.items_of[booking_id]]
    party = network["bookings"][booking_id].party
    return {"booking_id": booking_id, "party": party, "segments": segments, "items": items}


@tool("query")
def get_hub(world: LogisticsWorld, hub_id: HubId) -> dict[str, Any]:
    """Read a hub: its region and its seven minima in minutes."""
    hub = world.get("hubs", hub_id)
    return {"hub_id": hub_id, "region": hub.region, "minima": world.minima[hub_id]}


@tool("query", page=8, order="departure, then id")
def list_services(world: LogisticsWorld, origin: HubId, destination: HubId, from_min: Minute, to_min: Minute) -> Items:
    """List the services of a lane that depart from `from_min` to `to_min`: times, seats and kg, total and free."""
    _lane(world, origin, destination)
    keys = world.services_on.get((origin, destination), [])
    low, high = bisect_left(keys, (from_min, "")), bisect_right(keys, (to_min, "~"))
    seats, weights = world.ledgers["seats"], world.ledgers["weights"]

    def render(key: tuple[int, str]) -> dict[str, Any]:
        service: Service = world.tables["services"][key[1]]
        return {
            "service_id": service.service_id,
            "carrier_id": service.carrier_id,
            "departure_min": service.departure_min,
            "arrival_min": service.arrival_min,
            "seats": service.seats,
            "free_seats": seats.free(service.service_id),
            "kg": service.kg,
            "free_kg": weights.free(service.service_id),
            "status": service.status,
        }

    return Items(keys[low:high], render, {"origin": origin, "destination": destination})


@tool("query", page=8, order="id")
def list_permits(
    world: LogisticsWorld, origin: HubId, destination: HubId, handling_class: HandlingClass | None = None
) -> Items:
    """List the handling permits of a lane, of all classes or of one."""
    _lane(world, origin, destination)
    permits = world.permits_on.get((origin, destination), [])
    if handling_class is not None:
        permits = [p for p in permits if p.handling_class == handling_class]

    def render(permit: Permit) -> dict[str, Any]:
        return {
            "permit_id": permit.permit_id,
            "carrier_id": permit.carrier_id,
            "handling_class": permit.handling_class,
            "valid_from_min": permit.valid_from_min,
            "valid_until_min": permit.valid_until_min,
            "max_piece_kg": permit.max_piece_kg,
        }

    return Items(permits, render, {"origin": origin, "destination": destination})


def _lane(world: LogisticsWorld, *hubs: str) -> None:
    for hub_id in hubs:
        world.get("hubs", hub_id)


@tool("query", page=8, order="departure, then id")
def list_transfers(world: LogisticsWorld, cohort_id: Id, hub_id: HubId) -> Items:
    """List the ground transfers of a cohort at a hub: times, seats and kg, total and free."""
    world.cohort(cohort_id)
    _lane(world, hub_id)
    seats, weights = world.ledgers["seats"], world.ledgers["weights"]

    def render(transfer: Transfer) -> dict[str, Any]:
        return {
            "transfer_id": transfer.transfer_id,
            "departure_min": transfer.departure_min,
            "arrival_min": transfer.arrival_min,
            "seats": transfer.seats,
            "free_seats": seats.free(transfer.transfer_id),
            "kg": transfer.kg,
            "free_kg": weights.free(transfer.transfer_id),
        }

    return Items(world.transfers_at.get((cohort_id, hub_id), []), render, {"cohort_id": cohort_id, "hub_id": hub_id})


@tool("query")
def get_journey(world: LogisticsWorld, booking_id: BookingId) -> dict[str, Any]:
    """Read what exists for a booking: itinerary, tags, custody trail, seat and the mate's, delivery, evaluation."""
    booking = world.booking(booking_id)
    itinerary = world.newest_of("itinerary", booking_id)
    tags = [(i, world.newest_of("tag", i)) for i in booking.item_ids]
    consignment_id = world.cohort_of(booking).consignment_id
    trail = []
    if any(tag is not None and tag.content.carriage == "custody" for _, tag in tags):
        for leg in range(booking.board_leg, booking.alight_leg):
            manifest = world.newest_of("manifest", consignment_id, leg)
            fields = ("leg", "service_id", "destination", "departure_min", "arrival_min")
            trail.append(stage_of(manifest, *fields) or {"leg": leg, "ref": None})
    seat, mate = world.newest_of("seat", booking_id), world.newest_of("seat", booking.mate_id)
    return {
        "booking_id": booking_id,
        "itinerary": stage_of(itinerary, "legs"),
        "tags": [{"item_id": i, **(stage_of(tag, *_TAG_FIELDS) or {"ref": None})} for i, tag in tags],
        "custody_trail": trail,
        "seat": stage_of(seat, "transfer_id", "departure_min", "arrival_min"),
        "mate_seat": stage_of(mate, "transfer_id"),
        "delivery": stage_of(world.newest_of("delivery", booking_id), "transfer_id", "proofs"),
        "evaluation": stage_of(world.newest_of("evaluation", booking_id)),
        "due_min": booking.due_min,
    }


_TAG_FIELDS = ("handling_class", "carriage", "kg", "itinerary")


def stage_of(artifact: Artifact | None, *fields: str) -> dict[str, Any] | None:
    if artifact is None:
        return None
    content = artifact.content
    return {"ref": artifact.ref, "status": artifact.status, **{name: getattr(content, name) for name in fields}}


@tool("query", page=8, order="id")
def list_history(
    world: LogisticsWorld, kind: Literal["flights", "bookings", "waybills", "custody_events"], key: Id
) -> Items:
    """List records of past operations: flights or waybills of a carrier, bookings of a passenger, events of a waybill.

    Nothing here operates any more.
    """
    network = world.network
    table, rows = {
        "flights": ("carriers", network.flights_of),
        "waybills": ("carriers", network.waybills_of),
        "bookings": ("passengers", network.bookings_of),
        "custody_events": ("waybills", network.events_of),
    }[kind]
    world.get(table, key)
    found: list[Any] = rows.get(key, [])  # type: ignore[attr-defined]
    return Items(found)
