"""The network that all tasks share, read-only: 21,150 records of hubs, carriers, passengers, bookings and history.

Made in code from named random streams, in exactly the numbers of the paper's Table 3. Minutes of history are negative:
a task begins at minute zero.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from functools import cache, cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.world import Record
from skillhorizon.envs.logistics.rules import SKILLS

COUNTS = {
    "hubs": 24,
    "carriers": 12,
    "lanes": 276,
    "hub_minima": 168,
    "passengers": 850,
    "flights": 320,
    "bookings": 4_100,
    "booking_segments": 8_200,
    "baggage_items": 5_150,
    "waybills": 410,
    "custody_events": 1_640,
}
"""Records of each table; the total is the paper's 21,150 (Table 3)."""
MINIMA = {
    "checkin": (45, 60),
    "same_carrier": (35, 55),
    "other_carrier": (60, 85),
    "transfer": (20, 40),
    "custody_ordinary": (60, 80),
    "custody_regulated": (80, 100),
    "custody_specialist": (90, 115),
}
"""Least and greatest minutes of each kind of hub minimum."""
CLASSES = ("general", "perishable", "live", "hazardous", "specialist")
Assistance = Literal["none", "escort", "wheelchair"]
_LANGUAGES = ("en", "es", "fr", "de", "ar", "zh", "pt", "hi")
_REGIONS = ("north", "east", "south", "west")
_TWO_ITEMS = COUNTS["baggage_items"] - COUNTS["bookings"]
_FIRST_ITEMS = (40, 15, 15, 15, 15)
"""Per cent of the bookings whose first item is of each class."""
_EVENTS = ("received", "loaded", "unloaded", "handed over")


class Hub(Record, frozen=True):
    hub_id: str
    region: str


class Carrier(Record, frozen=True):
    carrier_id: str
    region: str


class Lane(Record, frozen=True):
    """A pair of hubs; flown in both directions."""

    lane_id: str
    hub_a: str
    hub_b: str
    block_min: int


class HubMinimum(Record, frozen=True):
    hub_id: str
    kind: str
    minutes: int


class Passenger(Record, frozen=True):
    passenger_id: str
    tier: str
    language: str
    home_hub_id: str
    assistance: Assistance


class Flight(Record, frozen=True):
    flight_id: str
    carrier_id: str
    lane_id: str
    origin: str
    destination: str
    seats: int
    kg: int
    minute_of_day: int


class PastBooking(Record, frozen=True):
    booking_id: str
    passenger_id: str
    party: int


class Segment(Record, frozen=True):
    booking_id: str
    seq: int
    flight_id: str
    status: Literal["flown", "cancelled", "open"]


class BaggageItem(Record, frozen=True):
    item_id: str
    booking_id: str
    kg: int
    commodity: str
    quantity: int


class Waybill(Record, frozen=True):
    waybill_id: str
    carrier_id: str
    origin: str
    destination: str
    handling_class: str
    kg: int


class CustodyEvent(Record, frozen=True):
    waybill_id: str
    seq: int
    kind: str
    hub_id: str
    minute: int


class Commodity(NamedTuple):
    """A row of the class table: from ``threshold`` pieces on, another class than the base one."""

    name: str
    base: str
    threshold: int | None
    above: str | None


@cache
def commodities() -> dict[str, Commodity]:
    """Rule 2: the class table, from the skill's own reference."""
    path = SKILLS / "check-in-baggage" / "references" / "commodity-classes.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {
            r["commodity"]: Commodity(
                r["commodity"],
                r["base_class"],
                int(r["threshold"]) if r["threshold"] else None,
                r["class_from_threshold"] or None,
            )
            for r in csv.DictReader(file)
        }


def true_class(commodity: str, quantity: int) -> str:
    """Rule 2."""
    row = commodities()[commodity]
    if row.above is not None and row.threshold is not None and quantity >= row.threshold:
        return row.above
    return row.base


class Network(dict[str, Mapping[str, Any]]):
    """The seed tables, with their records grouped once for all tasks of the process."""

    def _grouped(self, table: str, field: str) -> dict[str, list[Any]]:
        groups: dict[str, list[Any]] = {}
        for record in self.get(table, {}).values():
            groups.setdefault(getattr(record, field), []).append(record)
        return groups

    @cached_property
    def minima(self) -> dict[str, dict[str, int]]:
        """hub -> kind -> minutes"""
        found = {hub: {m.kind: m.minutes for m in rows} for hub, rows in self._grouped("hub_minima", "hub_id").items()}
        return dict(sorted(found.items()))

    @cached_property
    def block_min(self) -> dict[tuple[str, str], int]:
        """(hub, hub), in both directions -> minutes"""
        lanes = self["lanes"].values()
        there = {(lane.hub_a, lane.hub_b): lane.block_min for lane in lanes}
        return there | {(b, a): minutes for (a, b), minutes in there.items()}

    @cached_property
    def items_of(self) -> dict[str, list[BaggageItem]]:
        return self._grouped("baggage_items", "booking_id")

    @cached_property
    def segments_of(self) -> dict[str, list[Segment]]:
        return self._grouped("booking_segments", "booking_id")

    @cached_property
    def bookings_of(self) -> dict[str, list[PastBooking]]:
        """By passenger, each list by id."""
        groups = self._grouped("bookings", "passenger_id")
        return {passenger: sorted(rows, key=lambda b: b.booking_id) for passenger, rows in groups.items()}

    @cached_property
    def flights_of(self) -> dict[str, list[Flight]]:
        groups = self._grouped("flights", "carrier_id")
        return {carrier: sorted(rows, key=lambda f: f.flight_id) for carrier, rows in groups.items()}

    @cached_property
    def waybills_of(self) -> dict[str, list[Waybill]]:
        groups = self._grouped("waybills", "carrier_id")
        return {carrier: sorted(rows, key=lambda w: w.waybill_id) for carrier, rows in groups.items()}

    @cached_property
    def events_of(self) -> dict[str, list[CustodyEvent]]:
        return self._grouped("custody_events", "waybill_id")

    @cached_property
    def pools(self) -> dict[tuple[int, str], list[PastBooking]]:
        """(number of items, class of the first) -> bookings, by id"""
        pools: dict[tuple[int, str], list[PastBooking]] = {}
        for _, booking in sorted(self["bookings"].items()):
            items = self.items_of[booking.booking_id]
            key = len(items), true_class(items[0].commodity, items[0].quantity)
            pools.setdefault(key, []).append(booking)
        return pools

    @cached_property
    def ids(self) -> list[str]:
        """Ids that no object of a task may repeat."""
        tables = ("hubs", "carriers", "lanes", "passengers", "flights", "bookings", "baggage_items", "waybills")
        return [key for table in tables for key in self[table]]


class _Seed:
    """Makes the tables one after the other; each later one refers to earlier ones."""

    def __init__(self) -> None:
        self.ids = Ids("logistics", "seed")
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in COUNTS}

    def rng(self, *key: object) -> random.Random:
        return stream("logistics", "seed", *key)

    def put(self, table: str, key: str, record: Record) -> str:
        self.tables[table][key] = record
        return key

    def network(self) -> Network:
        self._hubs()
        self._flights()
        self._passengers()
        self._bookings()
        self._baggage()
        self._waybills()
        return Network({name: MappingProxyType(rows) for name, rows in self.tables.items()})

    def _hubs(self) -> None:
        self.hubs = [self.ids.new("hub", n) for n in range(COUNTS["hubs"])]
        self.carriers = [self.ids.new("car", n) for n in range(COUNTS["carriers"])]
        for n, hub_id in enumerate(self.hubs):
            rng = self.rng("hub", n)
            self.put("hubs", hub_id, Hub(hub_id, _REGIONS[n % 4]))
            for kind, (least, most) in MINIMA.items():
                self.put("hub_minima", f"{hub_id}/{kind}", HubMinimum(hub_id, kind, rng.randint(least, most)))
        for n, carrier_id in enumerate(self.carriers):
            self.put("carriers", carrier_id, Carrier(carrier_id, _REGIONS[n % 4]))
        rng = self.rng("lanes")
        for a, b in combinations(self.hubs, 2):
            near = self.tables["hubs"][a].region == self.tables["hubs"][b].region
            lane_id = self.ids.new("lan", a, b)
            self.put("lanes", lane_id, Lane(lane_id, a, b, rng.randint(70, 110) if near else rng.randint(85, 150)))

    def _flights(self) -> None:
        """Every hub has departures; the rest go where they will."""
        lanes = list(self.tables["lanes"].values())
        lanes_at = {hub: [lane for lane in lanes if hub in (lane.hub_a, lane.hub_b)] for hub in self.hubs}
        self.departures: dict[str, list[str]] = {hub: [] for hub in self.hubs}
        for n in range(COUNTS["flights"]):
            rng = self.rng("flight", n)
            origin = self.hubs[n % len(self.hubs)]
            lane = rng.choice(lanes_at[origin])
            flight_id = self.ids.new("flt", n)
            flight = Flight(
                flight_id=flight_id,
                carrier_id=rng.choice(self.carriers),
                lane_id=lane.lane_id,
                origin=origin,
                destination=lane.hub_b if origin == lane.hub_a else lane.hub_a,
                seats=rng.choice((72, 110, 144, 180)),
                kg=100 * rng.randint(12, 60),
                minute_of_day=5 * rng.randint(66, 276),
            )
            self.put("flights", flight_id, flight)
            self.departures[origin].append(flight_id)

    def _passengers(self) -> None:
        for n in range(COUNTS["passengers"]):
            rng = self.rng("passenger", n)
            passenger_id = self.ids.new("pax", n)
            passenger = Passenger(
                passenger_id=passenger_id,
                tier=rng.choices(("basic", "silver", "gold"), (60, 28, 12))[0],
                language=rng.choices(_LANGUAGES, (30, 15, 12, 10, 9, 10, 8, 6))[0],
                home_hub_id=rng.choice(self.hubs),
                assistance=rng.choices(("none", "escort", "wheelchair"), (60, 22, 18))[0],
            )
            self.put("passengers", passenger_id, passenger)

    def _bookings(self) -> None:
        """Four bookings of every passenger, the others spread over all; two connecting segments each."""
        rng = self.rng("owners")
        passengers = list(self.tables["passengers"])
        owners = passengers * (COUNTS["bookings"] // len(passengers))
        owners += rng.sample(passengers, COUNTS["bookings"] - len(owners))
        rng.shuffle(owners)
        flights = self.tables["flights"]
        names = list(flights)
        for n, passenger_id in enumerate(owners):
            rng = self.rng("booking", n)
            booking_id = self.ids.new("bkg", n)
            party = rng.choices((1, 2, 3, 4), (32, 30, 23, 15))[0]
            self.put("bookings", booking_id, PastBooking(booking_id, passenger_id, party))
            first = rng.choice(names)
            second = rng.choice(self.departures[flights[first].destination])
            for seq, flight_id in enumerate((first, second), 1):
                status = rng.choices(("flown", "cancelled", "open"), (70, 18, 12))[0]
                segment = Segment(booking_id, seq, flight_id, status)  # type: ignore[arg-type]
                self.put("booking_segments", f"{booking_id}/{seq}", segment)

    def _baggage(self) -> None:
        two = set(self.rng("two items").sample(range(COUNTS["bookings"]), _TWO_ITEMS))
        for n, booking_id in enumerate(self.tables["bookings"]):
            rng = self.rng("baggage", n)
            classes = [rng.choices(CLASSES, _FIRST_ITEMS)[0], *(["general"] if n in two else [])]
            for number, class_ in enumerate(classes):
                item_id = self.ids.new("itm", n, number)
                commodity, quantity = self._goods(class_, rng)
                kg = rng.randint(18, 60) if class_ == "specialist" else rng.randint(6, 32)
                self.put("baggage_items", item_id, BaggageItem(item_id, booking_id, kg, commodity, quantity))

    @staticmethod
    def _goods(class_: str, rng: random.Random) -> tuple[str, int]:
        """A commodity and a quantity that make this class, by the base class or by the threshold."""
        choices = [(c, False) for c in commodities().values() if c.base == class_]
        choices += [(c, True) for c in commodities().values() if c.above == class_]
        commodity, above = rng.choice(choices)
        if commodity.threshold is None:
            return commodity.name, rng.randint(1, 12)
        if above:
            return commodity.name, rng.randint(commodity.threshold, 2 * commodity.threshold)
        return commodity.name, rng.randint(1, commodity.threshold - 1)

    def _waybills(self) -> None:
        lanes = list(self.tables["lanes"].values())
        for n in range(COUNTS["waybills"]):
            rng = self.rng("waybill", n)
            lane = rng.choice(lanes)
            ends = [lane.hub_a, lane.hub_b]
            rng.shuffle(ends)
            waybill_id = self.ids.new("wbl", n)
            class_ = rng.choices(CLASSES, (50, 18, 10, 12, 10))[0]
            carrier_id = rng.choice(self.carriers)
            kg = 10 * rng.randint(3, 90)
            self.put("waybills", waybill_id, Waybill(waybill_id, carrier_id, ends[0], ends[1], class_, kg))
            minute = -rng.randint(2_000, 400_000)
            for seq, (kind, hub_id) in enumerate(zip(_EVENTS, (ends[0], ends[0], ends[1], ends[1]), strict=True), 1):
                self.put("custody_events", f"{waybill_id}/{seq}", CustodyEvent(waybill_id, seq, kind, hub_id, minute))
                minute += lane.block_min + rng.randint(2, 9) if kind == "loaded" else rng.randint(40, 240)


@cache
def seed_tables() -> Network:
    """The shared tables, made once a process."""
    return _Seed().network()
