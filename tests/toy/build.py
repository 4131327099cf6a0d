"""Construction: ``size`` parcels in routes of four, two updates of a rate."""

from __future__ import annotations

import csv
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from tests.toy.world import SKILLS, Amendment, Parcel, Rate, Route, Window, Zone

FAMILIES = ("crates", "letters")
PATTERNS = ("chain", "fan")
CANARY = "canary-of-the-goal"
ROUTE = 4
_COMPANION = 3
"""Parcel 3 of every route cites the same parcel two routes before."""


class ToyGoal(msgspec.Struct, frozen=True):
    parcels: tuple[str, ...]
    canary: str = CANARY


def configurations(band: str) -> tuple[TaskConfig, ...]:
    return tuple(TaskConfig("toy", f, "", p, band, {"grams": 500}) for p in PATTERNS for f in FAMILIES)


@cache
def seed_tables() -> dict[str, dict[str, Zone]]:
    path = SKILLS / "quote-parcel" / "references" / "zones.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {"zones": {row["zone"]: Zone(row["zone"], int(row["surcharge"])) for row in csv.DictReader(file)}}


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    key = ("toy", config.id, config.band, seed)
    ids, zones = Ids(*key), sorted(seed_tables()["zones"])
    count = -(-size // ROUTE)
    routes = [ids.new("rte", n) for n in range(count)]
    parcels = {n: ids.new("par", n) for n in range(size)}
    depot = ids.new("dep", 0)
    tables: dict[str, dict[str, Record]] = {"routes": {}, "parcels": {}, "rates": {}, "windows": {}}
    for n, route_id in enumerate(routes):
        after = routes[n - 1] if n and config.pattern == "chain" else None
        tables["routes"][route_id] = Route(route_id, n + 1, after)
    for n, parcel_id in parcels.items():
        rng = stream(*key, "parcel", n)
        companion = parcels.get(n - 2 * ROUTE) if n % ROUTE == _COMPANION else None
        grams = rng.randint(1, 9) * int(config.options["grams"])
        tables["parcels"][parcel_id] = Parcel(
            parcel_id, routes[n // ROUTE], n % ROUTE + 1, grams, zones[n % len(zones)], companion
        )
    rates = [Rate(ids.new("rat", z), z, stream(*key, "rate", z).randint(100, 900), "ordinary") for z in zones]
    tables["rates"] = {r.rate_id: r for r in rates}
    for n in range(-(-size // 10)):
        window_id = ids.new("win", n)
        tables["windows"][window_id] = Window(window_id, 11)
    return Blueprint(
        tables=tables,
        updates=_updates(rates[0], count),
        graph=_graph(tables, routes, depot),
        brief={"goal": "Quote every parcel, close every route, then the depot. Rates may change.", "depot": depot},
        goal=ToyGoal(tuple(parcels.values())),
        scale={"Parcels": size, "Routes": count},
    )


def _updates(rate: Rate, routes: int) -> tuple[Update, ...]:
    """A dearer rate after half of the routes, and a new label, which no quote rests on, with the next closure."""
    dearer = replace(rate, cents_per_kg=rate.cents_per_kg + 25)
    renamed = replace(dearer, label="renamed")
    half = max(1, routes // 2)
    return (
        Update(1, "closed", half, Amendment(dearer, f"The rate of zone {rate.zone} was raised.")),
        Update(2, "closed", half + 1, Amendment(renamed, f"The rate of zone {rate.zone} has another label.")),
    )


def _graph(tables: dict[str, dict[str, Any]], routes: list[str], depot: str) -> TaskGraph:
    modules = []
    for parcel in tables["parcels"].values():
        cited = [Need(f"quote:{parcel.companion}", "validity")] if parcel.companion else []
        stage = tables["routes"][parcel.route].ordinal
        modules.append(Module(f"quote:{parcel.parcel_id}", "quote", stage, parcel.parcel_id, tuple(cited)))
    for route in tables["routes"].values():
        parts = [p.parcel_id for p in tables["parcels"].values() if p.route == route.route_id]
        needs = [Need(f"quote:{part}", "content") for part in parts]
        if route.after:
            needs.append(Need(f"route:{route.after}", "provenance"))
        modules.append(Module(f"route:{route.route_id}", "route", route.ordinal, route.route_id, tuple(needs)))
    closures = tuple(Need(f"route:{r}", "content") for r in routes)
    modules.append(Module(f"depot:{depot}", "depot", len(routes), depot, closures))
    return TaskGraph.of(modules)
