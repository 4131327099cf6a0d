"""Scoring of the mail room on its final state."""

from __future__ import annotations

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.world import CURRENT
from tests.toy.build import ToyGoal
from tests.toy.world import ToyWorld

scoring = Scoring("parcel", lambda goal: goal.parcels)


@scoring.local(idle=False)
def quoted(world: ToyWorld, goal: ToyGoal, parcel_id: str) -> Reason:
    """The newest quote is current and its amount is right."""
    quote = world.newest_of("quote", parcel_id)
    if quote is None or quote.status != CURRENT:
        return "no current quote"
    right = quote.content.cents == world.true_price(world.tables["parcels"][parcel_id])
    return None if right else f"{quote.ref} has a wrong amount"


@scoring.local(idle=True)
def one_place(world: ToyWorld, goal: ToyGoal, parcel_id: str) -> Reason:
    """The parcel takes no more than one place."""
    places = world.windows.entries(owner=parcel_id)
    return None if len(places) <= 1 else f"{len(places)} places"


@scoring.delivery(idle=False)
def depot_closed(world: ToyWorld, goal: ToyGoal) -> Reason:
    """The depot's newest closure is current."""
    closure = world.newest_of("closure", world.depot)
    return None if closure is not None and closure.status == CURRENT else "the depot has no current closure"


@scoring.delivery(idle=True)
def windows_kept(world: ToyWorld, goal: ToyGoal) -> Reason:
    """No window holds more than its places."""
    return None if world.windows.conserved() else "a window is overbooked"
