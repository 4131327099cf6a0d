"""Operations of the transfer desk. An operation validates completely, then changes the world."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.tools import Arguments, Id, Ref, refuse_repeats, tool
from skillhorizon.core.world import Artifact
from skillhorizon.envs.logistics.queries import BookingId, ConsignmentId, stage_of
from skillhorizon.envs.logistics.records import (
    Booking,
    Carriage,
    Consignment,
    Delivery,
    Evaluation,
    FreightDelivery,
    HandlingClass,
    Itinerary,
    Leg,
    Manifest,
    Permit,
    Proof,
    Seat,
    SeatBasis,
    Service,
    Tag,
)
from skillhorizon.envs.logistics.rules import Claim, Piece, custody_min, earliest_movement
from skillhorizon.envs.logistics.world import LogisticsWorld

LegNumber = Annotated[int, Meta(ge=0, le=63, description="A leg of the cohort's route, counted from 0.")]
Kg = Annotated[int, Meta(ge=1, le=1_000_000, description="Whole kg.")]
Services = Annotated[list[Id], Meta(min_length=1, max_length=16, description="One service a leg, in order.")]
Permits = Annotated[list[Id], Meta(max_length=16)]
Sources = Annotated[list[Ref], Meta(max_length=40, description="Release, manifests and tags that prove the pieces.")]
Units = Annotated[list[Id], Meta(min_length=1, max_length=64, description="Units, and items in custody.")]


class ItemProof(Arguments, frozen=True):
    item_id: Id
    proof: Ref


Proofs = Annotated[list[ItemProof], Meta(min_length=1, max_length=16)]


# -- what the operations share ---------------------------------------------------------------------------------------


def _answer(world: LogisticsWorld, name: str, artifact: Artifact, **more: Any) -> dict[str, Any]:
    return {name: artifact.ref, **more, "invalidated": world.invalidated}


def _own(world: LogisticsWorld, ref: str, kind: str, subject: str) -> Artifact:
    """The artifact of this kind, which must be the subject's own."""
    artifact = world.artifact(ref, kind)
    if artifact.subject != subject:
        raise Rejected("bad_argument", f"{ref} is the {kind} of another subject than {subject}", ref=ref)
    return artifact


def _wrong_leg(message: str, **details: Any) -> Rejected:
    return Rejected("wrong_leg", message, **details)


def _refuse_off_lane(service: Service, route: tuple[str, ...], leg: int) -> None:
    if leg + 1 >= len(route) or (service.origin, service.destination) != (route[leg], route[leg + 1]):
        raise _wrong_leg(f"{service.service_id} does not fly leg {leg} of the route", service_id=service.service_id)


def _refuse_withdrawn(service: Service) -> None:
    if service.status == "withdrawn":
        raise Rejected("withdrawn", f"{service.service_id} no longer operates", service_id=service.service_id)


# -- bookings --------------------------------------------------------------------------------------------------------


@tool("business", refusals=("wrong_leg", "withdrawn", "no_seats"))
def confirm_itinerary(world: LogisticsWorld, booking_id: BookingId, service_ids: Services) -> dict[str, Any]:
    """Confirm a booking on one service a leg. A second call exchanges the seats for those of the new services."""
    booking = world.booking(booking_id)
    services = [world.service(service_id) for service_id in service_ids]
    goal = f"itinerary:{booking_id}"
    world.attempt(goal)
    cohort = world.cohort_of(booking)
    if len(services) != booking.alight_leg - booking.board_leg:
        raise _wrong_leg(f"{booking_id} rides another number of legs", legs=booking.alight_leg - booking.board_leg)
    for leg, service in enumerate(services, booking.board_leg):
        _refuse_off_lane(service, cohort.route, leg)
    for service in services:
        _refuse_withdrawn(service)
    identity = derived("itn", booking_id)
    legs = tuple(
        Leg(leg, s.service_id, s.carrier_id, s.origin, s.destination, s.departure_min, s.arrival_min)
        for leg, s in enumerate(services, booking.board_leg)
    )
    claims = [Claim(leg.service_id, booking.party, f"{identity}/{leg.leg}") for leg in legs]
    world.refuse_unfit("seats", claims, "no_seats")
    world.exchange("seats", claims, booking_id)
    world.note_disturbance(world.newest_of("itinerary", booking_id), booking_id)
    artifact = world.publish(
        "itinerary",
        booking_id,
        Itinerary(legs),
        [f"{s.service_id}@1" for s in services],
        reads=[f"service:{s.service_id}" for s in services],
        goal=goal,
        module=f"checkin:{booking_id}",
    )
    return _answer(world, "itinerary", artifact, legs=legs)


@tool("business", refusals=("carriage_refused", "stale_input", "over_weight"))
def check_in_baggage(
    world: LogisticsWorld,
    item_id: Id,
    handling_class: HandlingClass,
    carriage: Carriage,
    itinerary: Ref | None = None,
) -> dict[str, Any]:
    """Declare the class of an item and tag it: for the hold of its booking's itinerary, or for the cohort's custody."""
    item = world.item(item_id)
    booking = world.booking(item.booking_id)
    if (itinerary is None) == (carriage == "hold"):
        raise Rejected("bad_argument", "the hold, and only the hold, takes an itinerary", item_id=item_id)
    if (handling_class == "general") != (carriage == "hold"):
        raise Rejected("carriage_refused", f"{handling_class} goods do not ride in {carriage}", item_id=item_id)
    identity = derived("tag", item_id)
    claims: list[Claim] = []
    if itinerary is not None:
        _own(world, itinerary, "itinerary", booking.booking_id)
        planned: Itinerary = world.current(itinerary).content
        claims = [Claim(leg.service_id, item.kg, f"{identity}/{leg.leg}") for leg in planned.legs]
        world.refuse_unfit("weights", claims, "over_weight")
    before = world.newest_of("tag", item_id)
    if claims:
        world.exchange("weights", claims, booking.booking_id)
    elif before is not None and before.content.carriage == "hold":
        for leg in range(booking.board_leg, booking.alight_leg):
            world.ledgers["weights"].release(f"{identity}/{leg}")
    world.note_disturbance(before, booking.booking_id)
    content = Tag(booking.booking_id, handling_class, carriage, item.kg, booking.ready_min, itinerary)
    inputs = [itinerary] if itinerary else []
    artifact = world.publish("tag", item_id, content, inputs, module=f"checkin:{booking.booking_id}")
    legs = {"board_leg": booking.board_leg, "leave_leg": booking.alight_leg}
    stated = {"handling_class": handling_class, "carriage": carriage, "kg": item.kg, "ready_min": booking.ready_min}
    return _answer(world, "tag", artifact, item_id=item_id, **stated, **legs)


@tool("business", refusals=("wrong_transfer", "stale_input", "no_seats"))
def join_transfer(world: LogisticsWorld, booking_id: BookingId, transfer_id: Id, itinerary: Ref) -> dict[str, Any]:
    """Take a booking's seats on a ground transfer at the hub where it alights. Its mate must ride on the same one."""
    booking = world.booking(booking_id)
    transfer = world.transfer(transfer_id)
    _own(world, itinerary, "itinerary", booking_id)
    goal = f"seat:{booking_id}"
    world.attempt(goal)
    cohort = world.cohort_of(booking)
    if (transfer.cohort_id, transfer.hub_id) != (cohort.cohort_id, cohort.route[booking.alight_leg]):
        raise Rejected("wrong_transfer", f"{transfer_id} serves another cohort or hub", transfer_id=transfer_id)
    world.current(itinerary)
    claims = [Claim(transfer_id, booking.party, derived("sea", booking_id))]
    world.refuse_unfit("seats", claims, "no_seats")
    world.exchange("seats", claims, booking_id)
    world.note_disturbance(world.newest_of("seat", booking_id), booking_id)
    world.seats_taken += 1
    last = world.last_manifest_id(booking)
    bags = world.newest.get(last)
    artifact = world.publish(
        "seat",
        booking_id,
        Seat(transfer_id, transfer.departure_min, transfer.arrival_min),
        [itinerary],
        reads=[derived("itn", booking_id), f"joined:{booking.mate_id}", last],
        basis=SeatBasis(world.seats_taken, None if bags is None else bags.ref),
        goal=goal,
        module=f"share:{cohort.cohort_id}/{booking.alight_leg}",
    )
    world.changed(f"joined:{booking_id}", cause=f"{booking_id} joined {transfer_id}")
    mate = world.newest_of("seat", booking.mate_id)
    return _answer(
        world,
        "seat",
        artifact,
        transfer_id=transfer_id,
        departure_min=transfer.departure_min,
        arrival_min=transfer.arrival_min,
        mate_seat=stage_of(mate, "transfer_id"),
    )


@tool("business", refusals=("incomplete", "stale_input", "no_custody", "over_weight"))
def deliver_baggage(world: LogisticsWorld, booking_id: BookingId, seat: Ref, proofs: Proofs) -> dict[str, Any]:
    """Put all items of a booking on its transfer. Each is proven by its hold tag, or by the last manifest it rides."""
    booking = world.booking(booking_id)
    _own(world, seat, "seat", booking_id)
    refuse_repeats("item", (p.item_id for p in proofs))
    for p in proofs:
        world.item(p.item_id)
        world.artifact(p.proof)
    goal = f"delivery:{booking_id}"
    world.attempt(goal)
    named = {p.item_id for p in proofs}
    if named != set(booking.item_ids):
        wrong = sorted(named.symmetric_difference(booking.item_ids))
        raise Rejected("incomplete", f"exactly the items of {booking_id} are delivered with it", item_ids=wrong)
    for ref in (seat, *(p.proof for p in proofs)):
        world.current(ref)
    for p in proofs:
        _refuse_unproven(world, booking, p)
    transfer_id: str = world.artifacts[seat].content.transfer_id
    kg = sum(world.item(i).kg for i in booking.item_ids)
    claims = [Claim(transfer_id, kg, derived("dlv", booking_id))]
    world.refuse_unfit("weights", claims, "over_weight")
    world.exchange("weights", claims, booking_id)
    content = Delivery(transfer_id, tuple(Proof(p.item_id, p.proof) for p in proofs))
    inputs = dict.fromkeys((seat, *(p.proof for p in proofs)))
    artifact = world.publish("delivery", booking_id, content, inputs, goal=goal, module=f"close:{booking_id}")
    items = [{"item_id": p.item_id, "kg": world.item(p.item_id).kg, "proof": p.proof} for p in proofs]
    return _answer(world, "delivery", artifact, transfer_id=transfer_id, items=items, kg=kg)


def _refuse_unproven(world: LogisticsWorld, booking: Booking, given: ItemProof) -> None:
    proof = world.artifacts[given.proof]
    if proof.kind == "tag":
        proven = proof.subject == given.item_id and proof.content.carriage == "hold"
    else:
        proven = proof.id == world.last_manifest_id(booking) and given.item_id in proof.basis
    if not proven:
        raise Rejected("no_custody", f"{given.proof} does not prove {given.item_id} there", item_id=given.item_id)


@tool(
    "business",
    refusals=("stale_input", "before_ready", "connection_too_short", "transfer_missed", "baggage_missed", "late"),
)
def submit_itinerary(
    world: LogisticsWorld, booking_id: BookingId, itinerary: Ref, seat: Ref, delivery: Ref
) -> dict[str, Any]:
    """Submit a booking's whole journey to network evaluation, which checks its times from door to door."""
    booking = world.booking(booking_id)
    for ref, kind in ((itinerary, "itinerary"), (seat, "seat"), (delivery, "delivery")):
        _own(world, ref, kind, booking_id)
    goal = f"booking:{booking_id}"
    world.attempt(goal)
    planned: Itinerary = world.current(itinerary).content
    taken: Seat = world.current(seat).content
    for proof in world.current(delivery).content.proofs:
        world.current(world.replacement(proof.proof).ref)
    slacks = world.leg_slacks(booking, planned.legs)
    if slacks[0] < 0:
        raise Rejected("before_ready", f"{booking_id} cannot check in for {planned.legs[0].service_id} in time")
    for leg, slack in zip(planned.legs, slacks, strict=True):
        if slack < 0:
            raise Rejected("connection_too_short", f"{booking_id} cannot reach {leg.service_id} in time", leg=leg.leg)
    transfer_slack = world.transfer_slack(booking, planned, taken.departure_min)
    if transfer_slack < 0:
        raise Rejected("transfer_missed", f"{taken.transfer_id} leaves before {booking_id} reaches it")
    bags = world.bag_slacks(booking, taken.departure_min)
    if missed := [item_id for item_id, slack in bags.items() if slack < 0]:
        raise Rejected("baggage_missed", f"{taken.transfer_id} leaves before {missed[0]} reaches it", item_id=missed[0])
    if taken.arrival_min > booking.due_min:
        raise Rejected("late", f"{taken.transfer_id} arrives after {booking_id} is due", due_min=booking.due_min)
    first = world.newest_of("evaluation", booking_id) is None
    artifact = world.publish(
        "evaluation",
        booking_id,
        Evaluation(itinerary, seat, delivery),
        [itinerary, seat, delivery],
        goal=goal,
        module=f"close:{booking_id}",
    )
    if first:
        world.count("bookings_accepted")
    return _answer(
        world,
        "evaluation",
        artifact,
        arrival_min=taken.arrival_min,
        due_slack_min=booking.due_min - taken.arrival_min,
        legs=[
            {"leg": leg.leg, "service_id": leg.service_id, "slack_min": slack}
            for leg, slack in zip(planned.legs, slacks, strict=True)
        ],
        transfer={"transfer_id": taken.transfer_id, "slack_min": transfer_slack},
        bags=[{"item_id": item_id, "slack_min": slack} for item_id, slack in bags.items()],
    )


# -- freight ---------------------------------------------------------------------------------------------------------


@tool(
    "business",
    refusals=(
        "wrong_leg", "withdrawn", "stale_input", "no_custody", "handoff_too_short", "permit_mismatch", "over_weight",
    ),
)  # fmt: skip
def issue_manifest(
    world: LogisticsWorld,
    consignment_id: ConsignmentId,
    leg: LegNumber,
    service_id: Id,
    permit_ids: Permits,
    sources: Sources,
    unit_ids: Units,
    load_kg: Kg,
) -> dict[str, Any]:
    """Move a consignment over a leg: what is aboard, on which service, under which permits, proven by which sources.

    A second call for a leg exchanges the weight.
    """
    consignment = world.consignment(consignment_id)
    service = world.service(service_id)
    permits: list[Permit] = [world.get("permits", permit_id) for permit_id in permit_ids]
    for kind, keys in (("permit", permit_ids), ("source", sources), ("unit", unit_ids)):
        refuse_repeats(kind, keys)
    for unit_id in unit_ids:
        if unit_id not in world.carried:
            raise Rejected("unknown_id", f"no unit or item {unit_id!r}", id=unit_id)
    given = [_source(world, ref) for ref in sources]
    goal = f"movement:{consignment_id}/{leg}"
    world.attempt(goal)
    cohort = world.cohort(consignment.cohort_id)
    _refuse_off_lane(service, cohort.route, leg)
    pieces = world.pieces[consignment_id]
    for unit_id in unit_ids:
        piece = pieces.get(unit_id)
        if piece is None or not piece.board_leg <= leg < piece.leave_leg:
            raise _wrong_leg(f"{unit_id} does not ride leg {leg} of {consignment_id}", id=unit_id)
    _refuse_withdrawn(service)
    for ref in sources:
        world.current(ref)
    classes = _proven_classes(world, consignment_id, leg, service.origin, given, {u: pieces[u] for u in unit_ids})
    handoffs = _handoffs(world, service, given, set(classes.values()))
    _refuse_uncovered(service, permits, set(classes.values()))
    identity = derived("mnf", consignment_id, leg)
    claims = [Claim(service_id, load_kg, identity)]
    world.refuse_unfit("weights", claims, "over_weight")
    world.exchange("weights", claims, consignment_id)
    world.note_disturbance(world.newest.get(identity), consignment_id)
    content = Manifest(
        leg=leg,
        service_id=service_id,
        destination=service.destination,
        departure_min=service.departure_min,
        arrival_min=service.arrival_min,
        permit_ids=tuple(permit_ids),
        unit_ids=tuple(sorted(unit_ids)),
        load_kg=load_kg,
    )
    artifact = world.publish(
        "manifest",
        consignment_id,
        content,
        [*sources, f"{service_id}@1", *(f"{p}@1" for p in permit_ids)],
        reads=[f"service:{service_id}", *(s.id for s in given)],
        basis=classes,
        goal=goal,
        module=goal,
        ordinal=leg,
    )
    return _answer(
        world,
        "manifest",
        artifact,
        service_id=service_id,
        departure_min=service.departure_min,
        arrival_min=service.arrival_min,
        handoffs=handoffs,
        unit_ids=content.unit_ids,
        load_kg=load_kg,
    )


def _source(world: LogisticsWorld, ref: str) -> Artifact:
    artifact = world.artifact(ref)
    if artifact.kind not in ("release", "manifest", "tag"):
        raise Rejected("bad_argument", f"{ref} proves no custody", ref=ref)
    return artifact


def _proven_classes(
    world: LogisticsWorld,
    consignment_id: str,
    leg: int,
    hub_id: str,
    sources: list[Artifact],
    pieces: dict[str, Piece],
) -> dict[str, str]:
    """The class of each piece as the source says that proves it at the hub; refuses ``no_custody``."""
    by_id = {source.id: source for source in sources}
    for source in sources:
        if source.kind == "manifest" and source.content.destination != hub_id:
            raise Rejected("no_custody", f"{source.ref} does not end at {hub_id}", ref=source.ref)
    release = by_id.get(derived("rls", consignment_id))
    previous = by_id.get(derived("mnf", consignment_id, leg - 1)) if leg else None
    found = {}
    for unit_id, piece in pieces.items():
        class_: str | None = None
        if leg > piece.board_leg:
            class_ = previous.basis.get(unit_id) if previous is not None else None
        elif piece.kind == "item":
            tag = by_id.get(derived("tag", unit_id))
            if tag is not None and tag.content.carriage == "custody":
                class_ = tag.content.handling_class
        else:
            proof = by_id.get(piece.giver) if piece.giver else release
            if proof is not None and (proof is release or unit_id in proof.basis):
                class_ = piece.handling_class
        if class_ is None:
            raise Rejected("no_custody", f"no source proves {unit_id} at {hub_id}", id=unit_id)
        found[unit_id] = class_
    return dict(sorted(found.items()))


def _handoffs(
    world: LogisticsWorld, service: Service, sources: list[Artifact], classes: set[str]
) -> list[dict[str, Any]]:
    """From when on each source lets the movement depart (rule 4); refuses ``handoff_too_short``."""
    kappa = custody_min(world.minima[service.origin], classes)
    handoffs = []
    for source in sources:
        content = source.content
        if source.kind == "release":
            earliest = earliest_movement(kappa, content.ready_min, (), ())
        elif source.kind == "tag":
            earliest = earliest_movement(kappa, None, (content.ready_min,), ())
        else:
            earliest = earliest_movement(kappa, None, (), (content.arrival_min,))
        if service.departure_min < earliest:
            raise Rejected(
                "handoff_too_short",
                f"{service.service_id} departs before {source.ref} allows",
                service_id=service.service_id,
                ref=source.ref,
            )
        handoffs.append({"ref": source.ref, "earliest_min": earliest})
    return handoffs


def _refuse_uncovered(service: Service, permits: list[Permit], classes: set[str]) -> None:
    for permit in permits:
        if not permit.covers(service):
            raise Rejected(
                "permit_mismatch", f"{permit.permit_id} is of another carrier or lane", permit_id=permit.permit_id
            )
    uncovered = sorted(classes - {"general"} - {p.handling_class for p in permits})
    if uncovered:
        raise Rejected("permit_mismatch", f"no permit covers {uncovered[0]} goods", handling_class=uncovered[0])


@tool("business", refusals=("wrong_leg", "stale_input", "no_custody", "promised_onward", "incomplete", "late"))
def deliver_consignment(
    world: LogisticsWorld, consignment_id: ConsignmentId, manifest: Ref, unit_ids: Units
) -> dict[str, Any]:
    """Hand the own goods and the received units of a consignment over at the end of its route."""
    consignment: Consignment = world.consignment(consignment_id)
    proof = world.artifact(manifest, "manifest")
    refuse_repeats("unit", unit_ids)
    for unit_id in unit_ids:
        if unit_id not in world.carried:
            raise Rejected("unknown_id", f"no unit or item {unit_id!r}", id=unit_id)
    goal = f"freight:{consignment_id}"
    world.attempt(goal)
    last = len(world.cohort(consignment.cohort_id).route) - 2
    if proof.id != derived("mnf", consignment_id, last):
        raise _wrong_leg(f"{manifest} is not of the last leg of {consignment_id}", ref=manifest)
    world.current(manifest)
    for unit_id in unit_ids:
        if unit_id not in proof.basis:
            raise Rejected("no_custody", f"{manifest} does not carry {unit_id}", id=unit_id)
    pieces = world.pieces[consignment_id]
    for unit_id in unit_ids:
        if pieces[unit_id].kind in ("given", "item"):
            raise Rejected("promised_onward", f"{unit_id} is not for {consignment_id} to deliver", id=unit_id)
    due = [u for u, p in pieces.items() if p.kind == "own" or (p.kind == "received" and u in proof.basis)]
    if missing := sorted(set(due) - set(unit_ids)):
        raise Rejected("incomplete", f"{missing[0]} is delivered with the rest", ids=missing)
    delivered = world.delivered_min(proof, unit_ids)
    if delivered > consignment.due_min:
        raise Rejected("late", f"{consignment_id} is due before it can be handed over", due_min=consignment.due_min)
    content = FreightDelivery(tuple(sorted(unit_ids)), delivered)
    artifact = world.publish("freight_delivery", consignment_id, content, [manifest], goal=goal, module=goal)
    return _answer(world, "freight_delivery", artifact, unit_ids=content.unit_ids, delivered_min=delivered)
