"""Queries and the two operations of the mail room."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Arguments, Id, Items, Ref, tool
from skillhorizon.core.world import CURRENT
from tests.toy.world import Closure, Parcel, Quote, QuoteBasis, Rate, Route, ToyWorld, Window

ParcelId = Annotated[Id, Meta(description="A parcel's id.")]
Cents = Annotated[int, Meta(ge=0, le=10_000_000, description="Whole cents.")]
Refs = Annotated[list[Ref], Meta(max_length=100)]


class Place(Arguments, frozen=True):
    """Where the parcel is to travel."""

    window_id: Id


@tool("query", page=5, order="ordinal")
def list_routes(world: ToyWorld) -> Items:
    """List the routes, and the one after which each is closed."""
    rows: list[Route] = sorted(world.tables["routes"].values(), key=lambda r: r.ordinal)
    return Items(rows)


@tool("query", page=4, order="seq")
def list_parcels(world: ToyWorld, route_id: Id) -> Items:
    """List the parcels of a route with their newest quotes."""
    world.get("routes", route_id)

    def render(parcel: Parcel) -> dict[str, Any]:
        quote = world.newest_of("quote", parcel.parcel_id)
        return {"parcel": parcel, "quote": quote and quote.ref}

    return Items(world.parcels_of(route_id), render, {"route_id": route_id})


@tool("query")
def get_parcel(world: ToyWorld, parcel_id: ParcelId) -> Parcel:
    """Read one parcel."""
    parcel: Parcel = world.get("parcels", parcel_id)
    return parcel


@tool("query", page=10, order="zone")
def list_rates(world: ToyWorld) -> Items:
    """List the rates by zone."""
    rows: list[Rate] = sorted(world.tables["rates"].values(), key=lambda r: r.zone)
    return Items(rows)


@tool("query", page=20, order="window id")
def list_windows(world: ToyWorld) -> Items:
    """List the windows and their free places."""
    rows: list[Window] = sorted(world.tables["windows"].values(), key=lambda w: w.window_id)
    return Items(rows, lambda w: {"window_id": w.window_id, "free": world.windows.free(w.window_id)})


@tool("business", refusals=("wrong_rate", "wrong_companion", "window_full"))
def quote_parcel(
    world: ToyWorld,
    parcel_id: ParcelId,
    rate_id: Id,
    cents: Cents,
    place: Place,
    companion: Ref | None = None,
) -> dict[str, Any]:
    """Quote a parcel: by which rate, how many cents, in which window, and its companion's quote where it has one."""
    parcel: Parcel = world.get("parcels", parcel_id)
    rate: Rate = world.get("rates", rate_id)
    window: Window = world.get("windows", place.window_id)
    goal = f"parcel:{parcel_id}"
    world.attempt(goal)
    if rate.zone != parcel.zone:
        raise Rejected("wrong_rate", f"{rate_id} is the rate of another zone", rate_id=rate_id)
    inputs = []
    if companion is not None:
        inputs = [world.current(companion, "quote").ref]
    if (companion and world.artifact(companion).subject) != parcel.companion:
        raise Rejected("wrong_companion", f"{parcel_id} has another companion or none", parcel_id=parcel_id)
    holder = f"place:{parcel_id}"
    world.windows.reserve(window.window_id, 1, parcel_id, holder, "window_full")
    quote = world.publish(
        "quote",
        parcel_id,
        Quote(parcel_id, window.window_id, cents),
        inputs,
        reads=[f"rate:{parcel.zone}", *(ref.partition("@")[0] for ref in inputs)],
        basis=QuoteBasis(rate.cents_per_kg),
        goal=goal,
        module=f"quote:{parcel_id}",
    )
    return {"quote": quote.ref, "invalidated": world.invalidated}


@tool("business", refusals=("stale_input", "incomplete", "not_closed"))
def close_group(world: ToyWorld, group_id: Id, inputs: Refs) -> dict[str, Any]:
    """Close a route over the current quotes of its parcels, or the depot over the current closures of its routes."""
    if group_id == world.depot:
        world.attempt(f"depot:{group_id}")
        kind, subjects = "closure", list(world.tables["routes"])
    else:
        route: Route = world.get("routes", group_id)
        world.attempt(f"route:{group_id}")
        kind, subjects = "quote", [p.parcel_id for p in world.parcels_of(group_id)]
        before = world.newest_of("closure", route.after) if route.after else None
        if route.after and (before is None or before.status != CURRENT):
            raise Rejected("not_closed", f"{route.after} has no current closure", route_id=route.after)
    rows = [world.current(ref, kind) for ref in inputs]
    if sorted(row.subject for row in rows) != sorted(subjects):
        raise Rejected("incomplete", f"{group_id} needs each of its {len(subjects)} parts once", parts=len(subjects))
    if group_id == world.depot:
        for entry in world.windows.entries():
            if not entry.used:
                world.windows.use(entry.holder)
    else:
        world.count("closed")
    goal = f"depot:{group_id}" if group_id == world.depot else f"route:{group_id}"
    total = sum(row.content.cents for row in rows)
    closure = world.publish("closure", group_id, Closure(group_id, total), inputs, goal=goal, module=goal)
    return {"closure": closure.ref, "invalidated": world.invalidated}
