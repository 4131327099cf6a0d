"""Scoring of LogisticsOps: the final state against what the rules of the trade give on the final records (Table 8)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.world import CURRENT, Artifact
from skillhorizon.envs.logistics.records import Manifest, Permit
from skillhorizon.envs.logistics.rules import in_force
from skillhorizon.envs.logistics.seed import true_class
from skillhorizon.envs.logistics.world import LogisticsWorld

ALLOWANCE_SHARE = 16
"""Rule 11: one disturbed booking or consignment in so many bookings is allowed."""


class LogisticsGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which bookings are to be rebooked."""

    bookings: tuple[str, ...]


scoring = Scoring("booking", lambda goal: goal.bookings)


def _as_evaluated(world: LogisticsWorld, kind: str, booking_id: str) -> Reason:
    """The newest artifact of the kind exists, stands, and is the one that the latest evaluation saw."""
    artifact = world.newest_of(kind, booking_id)
    if artifact is None:
        return f"there is no {kind}"
    if artifact.status != CURRENT:
        return f"{artifact.ref} is {artifact.status}: {artifact.cause}"
    evaluation = world.newest_of("evaluation", booking_id)
    if evaluation is not None and getattr(evaluation.content, kind) != artifact.ref:
        return f"{evaluation.ref} did not see {artifact.ref}"
    return None


@scoring.local(idle=False)
def evaluated(world: LogisticsWorld, goal: LogisticsGoal, booking_id: str) -> Reason:
    """Network evaluation accepted the booking."""
    return None if world.newest_of("evaluation", booking_id) else "network evaluation never accepted it"


@scoring.local(idle=False)
def itinerary_current(world: LogisticsWorld, goal: LogisticsGoal, booking_id: str) -> Reason:
    return _as_evaluated(world, "itinerary", booking_id)


@scoring.local(idle=False)
def seat_current(world: LogisticsWorld, goal: LogisticsGoal, booking_id: str) -> Reason:
    return _as_evaluated(world, "seat", booking_id)


@scoring.local(idle=False)
def delivery_current(world: LogisticsWorld, goal: LogisticsGoal, booking_id: str) -> Reason:
    return _as_evaluated(world, "delivery", booking_id)


@scoring.delivery(idle=False)
def baggage_truly_declared(world: LogisticsWorld, goal: LogisticsGoal) -> Reason:
    """The latest tag of every item has its true class (rule 2)."""
    for booking_id in goal.bookings:
        for item_id in world.booking(booking_id).item_ids:
            tag, item = world.newest_of("tag", item_id), world.item(item_id)
            if tag is None:
                return f"{item_id} was not checked in"
            if tag.content.handling_class != true_class(item.commodity, item.quantity):
                return f"{tag.ref} declares another class than {item.commodity} has"
    return None


def _current_manifests(world: LogisticsWorld) -> Iterator[tuple[str, Artifact]]:
    for cohort in world.cohorts:
        for leg in range(len(cohort.route) - 1):
            manifest = world.newest_of("manifest", cohort.consignment_id, leg)
            if manifest is not None and manifest.status == CURRENT:
                yield cohort.consignment_id, manifest


@scoring.delivery(idle=True)
def permits_in_force(world: LogisticsWorld, goal: LogisticsGoal) -> Reason:
    """Each class aboard a current manifest cites a permit in force at departure for its heaviest piece (rule 5)."""
    for consignment_id, manifest in _current_manifests(world):
        content: Manifest = manifest.content
        heaviest: dict[str, int] = {}
        for unit_id, class_ in manifest.basis.items():
            heaviest[class_] = max(heaviest.get(class_, 0), world.pieces[consignment_id][unit_id].kg)
        permits: list[Permit] = [world.tables["permits"][p] for p in content.permit_ids]
        for class_ in sorted(heaviest.keys() - {"general"}):
            such = [p for p in permits if p.handling_class == class_]
            if not any(in_force(p, content.departure_min, heaviest[class_]) for p in such):
                return f"{manifest.ref} carries {class_} goods without a permit in force"
    return None


@scoring.delivery(idle=True)
def weights_respected(world: LogisticsWorld, goal: LogisticsGoal) -> Reason:
    """Each current manifest states its true load, and no service or transfer is overbooked (rules 4 and 6)."""
    for consignment_id, manifest in _current_manifests(world):
        true = sum(world.pieces[consignment_id][u].kg for u in manifest.content.unit_ids)
        if manifest.content.load_kg != true:
            return f"{manifest.ref} states another load than is aboard"
    overbooked = [name for name, ledger in world.ledgers.items() if not ledger.conserved()]
    return f"the {overbooked[0]} do not add up" if overbooked else None


@scoring.delivery(idle=False)
def custody_unbroken(world: LogisticsWorld, goal: LogisticsGoal) -> Reason:
    """Each consignment has a current manifest a leg, and each unit and custody item stands on all of its legs."""
    for cohort in world.cohorts:
        pieces = world.pieces[cohort.consignment_id]
        in_hold = set()
        for unit_id, piece in pieces.items():
            tag = world.newest_of("tag", unit_id) if piece.kind == "item" else None
            if piece.kind == "item" and (tag is None or tag.content.carriage == "hold"):
                in_hold.add(unit_id)
        for leg in range(len(cohort.route) - 1):
            manifest = world.newest_of("manifest", cohort.consignment_id, leg)
            if manifest is None or manifest.status != CURRENT:
                return f"leg {leg} of {cohort.consignment_id} has no current manifest"
            riding = {u for u, p in pieces.items() if p.board_leg <= leg < p.leave_leg} - in_hold
            if missing := sorted(riding - manifest.basis.keys()):
                return f"{manifest.ref} does not carry {missing[0]}"
    return None


@scoring.delivery(idle=False)
def freight_delivered(world: LogisticsWorld, goal: LogisticsGoal) -> Reason:
    """The own goods of each consignment are delivered on a manifest that still supports it (rule 8)."""
    for consignment in world.tables["consignments"].values():
        delivery = world.newest_of("freight_delivery", consignment.consignment_id)
        if delivery is None:
            return f"{consignment.consignment_id} was not delivered"
        if delivery.status != CURRENT:
            return f"{delivery.ref} is {delivery.status}: {delivery.cause}"
        if not {u.unit_id for u in consignment.goods} <= set(delivery.content.unit_ids):
            return f"{delivery.ref} lacks goods of its own"
        if delivery.content.delivered_min > consignment.due_min:
            return f"{delivery.ref} is late"
    return None


@scoring.delivery(idle=True)
def valid_work_kept(world: LogisticsWorld, goal: LogisticsGoal) -> Reason:
    """Hardly anything that still stood was issued again after the first notice (rule 11)."""
    allowed = -(-len(goal.bookings) // ALLOWANCE_SHARE)
    if len(world.disturbed) > allowed:
        return f"{len(world.disturbed)} bookings and consignments were disturbed, {allowed} may be"
    return None
