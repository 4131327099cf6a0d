"""Construction of LogisticsOps tasks: cohorts on routes that continue each other, a timetable, and rooms that suffice.

A node is one leg of the network at one time; cohorts whose routes overlap share its services and permits. Each cohort,
node and pair draws from streams of its own. The right answers are nowhere written down: they follow from the records
by the rules of the trade, and the rooms are what the house rule (rule 9) needs, before and after each withdrawal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Update
from skillhorizon.envs.logistics.catalog import CHANNELS, LOG_LINES, PACKAGING
from skillhorizon.envs.logistics.goals import LogisticsGoal
from skillhorizon.envs.logistics.records import (
    Booking,
    CancelledSegment,
    Cohort,
    Consignment,
    LogEntry,
    PassengerFile,
    Permit,
    RelayUnit,
    ReleaseTerms,
    Service,
    Transfer,
    Unit,
    Withdrawal,
)
from skillhorizon.envs.logistics.rules import connection_min, custody_min, earliest_movement, in_force
from skillhorizon.envs.logistics.seed import PastBooking, seed_tables, true_class
from skillhorizon.envs.logistics.world import ALLOWANCES

TOPOLOGIES = ("staggered", "distributed")
SPANS = {"staggered": (2, 1, 3, 2), "distributed": (2, 1, 1, 4)}
"""Legs that each booking of a cohort rides; the first two alight half-way, the others at the end."""
LEGS = {"64K": 4, "128K": 4, "256K": 5, "512K": 6, "1M": 8, "2M": 8, "4M": 8}
_TWO_WITHDRAWALS_FROM = 60
"""Bookings from which a task with withdrawals has two of them."""
_FIRST_SLOT, _SLOT = 600, 480
_FULL = 6
"""The place of the service without room among the seven of a node."""
_SHOWN_PERMITS = 8
_ATTEMPTS = 80
_HEAVY_ITEM_KG = 60


class Family(NamedTuple):
    """``two_items`` bookings of a cohort have two items. ``goods`` and ``classed`` go through the cohorts in turn: the
    class of the consignment, and the classes that items have which are not general."""

    two_items: int
    goods: tuple[str, ...]
    classed: tuple[tuple[str, ...], ...]
    disrupted: bool


FAMILIES: dict[str, Family] = {
    "carrier-disruption": Family(1, ("general", "perishable"), (("hazardous",), ("perishable",)), True),
    "restricted-handling": Family(
        2, ("perishable", "live", "hazardous"), (("perishable", "live", "hazardous"),), False
    ),
    "specialist-disruption": Family(1, ("specialist",), (("specialist", "live"),), True),
}


class Variant(NamedTuple):
    """``spare`` seats and kg are left on a service after what the plans need; kg in per cent of that.

    Where kg are left at all the heaviest item finds room: a classed item in a hold is then no matter of weight.
    """

    parties: tuple[int, int]
    goods_kg: tuple[int, int]
    assisted: float
    spare_seats: int
    spare_kg: int


VARIANTS = {
    "seats": Variant((2, 4), (90, 300), 0.3, 0, 25),
    "weight": Variant((1, 3), (180, 420), 0.3, 3, 0),
    "connections": Variant((1, 3), (90, 300), 0.4, 1, 10),
}
_FILES = {"64K": 4, "128K": 4, "256K": 4, "512K": 4, "1M": 2, "2M": 2, "4M": 2}
"""Past bookings that a passenger's file holds."""
_LOG = {"64K": 4, "128K": 15, "256K": 12, "512K": 8, "1M": 2, "2M": 2, "4M": 2}
"""Lines of the desk's log on a booking."""
_GOAL = (
    "Bring every cohort's bookings and freight through the coming operation. Confirm each booking on services that its "
    "party can reach, check every item in under its true class, move each consignment leg by leg in unbroken custody "
    "under permits in force, hand over what is promised to other consignments, put mates on one ground transfer, "
    "deliver baggage and freight in time, and have network evaluation accept every booking. Carriers may withdraw "
    "while you work; notices say so. Replan what that breaks and leave standing what still holds."
)


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Three families by three variants by two topologies: 18 in every band."""
    options: dict[str, int | str] = {"legs": LEGS[band], "files": _FILES[band], "log": _LOG[band]}
    return tuple(
        TaskConfig("logistics", family, variant, topology, band, options)
        for topology in TOPOLOGIES
        for family in FAMILIES
        for variant in VARIANTS
    )


class Ride(NamedTuple):
    """A piece as one consignment carries it; ``item_of`` is the booking of an item."""

    piece_id: str
    kg: int
    class_: str
    board_leg: int
    leave_leg: int
    item_of: Booking | None = None


class Node(NamedTuple):
    """A leg of the network at one time. ``after`` is the node before it on the route that first flew it."""

    number: int
    origin: str
    destination: str
    slot: int
    after: int | None

    @property
    def start(self) -> int:
        return _FIRST_SLOT + _SLOT * self.slot


class Edge(NamedTuple):
    """A relay unit from one cohort to a later one, which takes it aboard on ``board_leg`` of its own route."""

    giver: int
    receiver: int
    unit_id: str
    kg: int
    given_until: int
    board_leg: int


Closed = Callable[[Service], bool]
Choices = Mapping[tuple[str, str], list[Service]]
"""Lane -> its operating services by arrival, then id."""


class Plan(NamedTuple):
    """What the house rule gives while some services are closed: services of each booking, service of each movement."""

    itineraries: dict[str, list[Service]]
    movements: dict[tuple[int, int], Service]


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed, ``size`` cohorts large."""
    return Builder(config, seed, size).blueprint()


class Builder:
    def __init__(self, config: TaskConfig, seed: int, size: int) -> None:
        self.key = ("logistics", config.id, config.band, seed)
        self.config = config
        self.family = FAMILIES[config.family]
        self.variant = VARIANTS[config.variant]
        self.C = size
        self.L = int(config.options["legs"])
        self.m = self.L // 2
        self.N = 4 * size
        self.network = seed_tables()
        self.minima = self.network.minima
        self.hubs = sorted(self.network["hubs"])
        self.ids = Ids(*self.key)
        self.ids.avoid(self.network.ids)
        names = ("cohorts", "rebookings", "passenger_files", "services", "permits", "consignments", "transfers")
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in names}

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    def blueprint(self) -> Blueprint:
        self._lay_routes()
        self.edges = self._edges()
        self._draw_bookings()
        self._draw_consignments()
        self._list_rides()
        updates = self._timetable()
        self._add_rooms()
        return Blueprint(
            tables=self.tables,
            updates=updates,
            graph=self._graph(),
            brief=self._brief(),
            goal=LogisticsGoal(tuple(b for cohort in self.bookings for b in (x.booking_id for x in cohort))),
            scale={"Bookings": self.N, "Legs": self.L},
        )

    # -- routes ----------------------------------------------------------------------------------------------------

    def parent(self, c: int) -> int:
        return c - 1 if self.config.pattern == "staggered" else (c - 1) // 2

    def elder(self, c: int) -> int | None:
        """The cohort before the parent, of which every other cohort receives a unit too."""
        if c % 2 or c < (2 if self.config.pattern == "staggered" else 4):
            return None
        return self.parent(self.parent(c))

    def _lay_routes(self) -> None:
        """A child's route begins half-way on its parent's and goes on to new hubs."""
        self.nodes: list[Node] = []
        self.on_route: list[list[Node]] = []
        self.routes: list[list[str]] = []
        flown: dict[tuple[str, str], list[int]] = {}
        for c in range(self.C):
            rng = self.rng("route", c)
            if c:
                p = self.parent(c)
                route, nodes = self.routes[p][self.m :], self.on_route[p][self.m :]
                first = self.on_route[p][0].slot + self.m
            else:
                route, nodes, first = [rng.choice(self.hubs)], [], 0
            route, nodes = list(route), list(nodes)
            for k in range(len(nodes), self.L):
                destination = self._next_hub(route, first + k, flown, rng)
                node = Node(len(self.nodes), route[-1], destination, first + k, nodes[-1].number if nodes else None)
                flown.setdefault((route[-1], destination), []).append(first + k)
                self.nodes.append(node)
                nodes.append(node)
                route.append(destination)
            self.on_route.append(nodes)
            self.routes.append(route)
        self.nodes_on: dict[tuple[str, str], list[int]] = {}
        """lane -> numbers of its nodes"""
        for node in self.nodes:
            self.nodes_on.setdefault((node.origin, node.destination), []).append(node.number)
        numbers = range(len(self.nodes))
        self.service_ids = [[self.ids.new("svc", n, place) for place in range(7)] for n in numbers]
        self.permit_ids = [[self.ids.new("prm", n, place) for place in range(_SHOWN_PERMITS)] for n in numbers]

    def _next_hub(
        self, route: list[str], slot: int, flown: Mapping[tuple[str, str], list[int]], rng: random.Random
    ) -> str:
        """A hub off the route, over a lane that is not flown yet; where none is left, not about the same time."""
        hubs = [h for h in self.hubs if h not in route]
        rng.shuffle(hubs)
        apart = {h: min((abs(slot - s) for s in flown.get((route[-1], h), ())), default=None) for h in hubs}
        fresh = [h for h in hubs if apart[h] is None]
        return fresh[0] if fresh else max(hubs, key=lambda h: (apart[h], h))

    def slot_start(self, c: int, k: int) -> int:
        return self.on_route[c][k].start

    def _edges(self) -> list[Edge]:
        edges = []
        for c in range(1, self.C):
            kinds = [("parent", self.parent(c), self.m, 0)]
            if (q := self.elder(c)) is not None:
                kinds.append(("elder", q, self.L, self.L - 2 * self.m))
            for kind, giver, until, board in kinds:
                kg = self.rng("relay", kind, c).randint(30, 120)
                edges.append(Edge(giver, c, self.ids.new("unt", kind, c), kg, until, board))
        return edges

    # -- bookings and freight --------------------------------------------------------------------------------------

    def _draw_bookings(self) -> None:
        """Real bookings of the network that have the items, the party and the assistance wanted, each used once."""
        self.bookings: list[list[Booking]] = []
        self.used: set[str] = set()
        self.cohort_ids = [self.ids.new("coh", c) for c in range(self.C)]
        for c in range(self.C):
            rng = self.rng("bookings", c)
            spans = SPANS[self.config.pattern]
            classes = ["general"] * 4
            wanted = self.family.classed[c % len(self.family.classed)]
            for place, class_ in zip(rng.sample(range(4), len(wanted)), wanted, strict=True):
                classes[place] = class_
            two = set(rng.sample(range(4), self.family.two_items))
            found = [self._find(1 + (n in two), classes[n], rng) for n in range(4)]
            made = []
            for n, past in enumerate(found):
                alight = self.m if n < 2 else self.L
                board = alight - spans[n]
                booking = Booking(
                    booking_id=past.booking_id,
                    cohort_id=self.cohort_ids[c],
                    passenger_id=past.passenger_id,
                    mate_id=found[n ^ 1].booking_id,
                    board_leg=board,
                    alight_leg=alight,
                    party=past.party,
                    ready_min=self.slot_start(c, board) - 180 + rng.randint(0, 60),
                    due_min=0,
                    item_ids=tuple(i.item_id for i in self.network.items_of[past.booking_id]),
                    cancelled=self._cancelled(past.booking_id),
                    log=self._log(rng),
                )
                made.append(booking)
                others = [b.booking_id for b in self.network.bookings_of[past.passenger_id] if b != past]
                file = PassengerFile(past.passenger_id, tuple(others[: int(self.config.options["files"])]))
                self.tables["passenger_files"][past.passenger_id] = file
            self.bookings.append(made)

    def _find(self, items: int, class_: str, rng: random.Random) -> PastBooking:
        """The next fitting booking from a random place on; where none is left the wishes are given up one by one."""
        assisted = rng.random() < self.variant.assisted
        least, most = self.variant.parties
        pool = self.network.pools[items, class_]
        start = rng.randrange(len(pool))
        passengers = self.network["passengers"]

        def unmet(booking: PastBooking) -> int:
            """What is wrong with a booking, the worst first."""
            wrong_party = not least <= booking.party <= most
            wrong_help = (passengers[booking.passenger_id].assistance != "none") != assisted
            return 4 * wrong_party + 2 * wrong_help + (booking.passenger_id in self.used)

        found: PastBooking | None = None
        for n in range(len(pool)):
            booking = pool[(start + n) % len(pool)]
            if booking.booking_id in self.used or (found is not None and unmet(booking) >= unmet(found)):
                continue
            found = booking
            if not unmet(found):
                break
        if found is None:
            raise ValueError(f"the network has no booking left with {items} items, the first of them {class_}")
        self.used |= {found.booking_id, found.passenger_id}
        return found

    def _cancelled(self, booking_id: str) -> tuple[CancelledSegment, ...]:
        flights = [self.network["flights"][s.flight_id] for s in self.network.segments_of[booking_id]]
        return tuple(
            CancelledSegment(f.flight_id, f.carrier_id, f.origin, f.destination, f.minute_of_day) for f in flights
        )

    def _log(self, rng: random.Random) -> tuple[LogEntry, ...]:
        texts = rng.sample(LOG_LINES, int(self.config.options["log"]))
        minutes = sorted(rng.sample(range(-2_880, 0), len(texts)))
        return tuple(LogEntry(n, rng.choice(CHANNELS), text) for n, text in zip(minutes, texts, strict=True))

    def _draw_consignments(self) -> None:
        self.consignments: list[Consignment] = []
        consignment_ids = [self.ids.new("cns", c) for c in range(self.C)]
        goods_class = [self.family.goods[c % len(self.family.goods)] for c in range(self.C)]
        given: list[list[Any]] = [[] for _ in range(self.C)]
        received: list[list[Any]] = [[] for _ in range(self.C)]
        for e in self.edges:
            class_: Any = goods_class[e.receiver]
            receiver, giver = consignment_ids[e.receiver], consignment_ids[e.giver]
            unit = e.unit_id, e.kg, self.rng("packaging", e.unit_id).choice(PACKAGING[class_]), class_
            given[e.giver].append(RelayUnit(*unit, 0, e.given_until, receiver, e.board_leg))
            received[e.receiver].append(RelayUnit(*unit, e.board_leg, self.L, giver, e.given_until - 1))
        for c in range(self.C):
            rng = self.rng("goods", c)
            goods = tuple(
                Unit(
                    unit_id=self.ids.new("unt", c, n),
                    kg=rng.randint(*self.variant.goods_kg),
                    packaging=rng.choice(PACKAGING[goods_class[c]]),
                    size_cm=(rng.choice((60, 80, 120)), rng.choice((40, 60, 80)), rng.randint(40, 150)),
                )
                for n in range(2)
            )
            released = tuple(sorted([u.unit_id for u in goods] + [u.unit_id for u in given[c]]))
            consignment = Consignment(
                consignment_id=consignment_ids[c],
                cohort_id=self.cohort_ids[c],
                handling_class=goods_class[c],  # type: ignore[arg-type]
                due_min=self.slot_start(c, self.L - 1) + 540,
                goods=goods,
                given=tuple(given[c]),
                received=tuple(received[c]),
                release=ReleaseTerms(self.routes[c][0], self.slot_start(c, 0) - 60, released),
            )
            self.consignments.append(consignment)
            self.tables["consignments"][consignment.consignment_id] = consignment
            booking_ids = tuple(b.booking_id for b in self.bookings[c])
            cohort = Cohort(self.cohort_ids[c], c, tuple(self.routes[c]), booking_ids, consignment.consignment_id)
            self.tables["cohorts"][cohort.cohort_id] = cohort

    def _list_rides(self) -> None:
        """What each movement has aboard, and the manifests that hand goods over to it."""
        self.hold_kg: dict[str, int] = {}
        self.rides: dict[tuple[int, int], list[Ride]] = {(c, k): [] for c in range(self.C) for k in range(self.L)}
        self.givers: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for c, k in self.rides:
            self.givers[c, k] = [(c, k - 1)] if k else []
        for e in self.edges:
            self.givers[e.receiver, e.board_leg].append((e.giver, e.given_until - 1))
        for c, consignment in enumerate(self.consignments):
            class_ = consignment.handling_class
            rides = [Ride(u.unit_id, u.kg, class_, 0, self.L) for u in consignment.goods]
            rides += [
                Ride(u.unit_id, u.kg, u.handling_class, u.board_leg, u.leave_leg)
                for u in (*consignment.given, *consignment.received)
            ]
            for booking in self.bookings[c]:
                self.hold_kg[booking.booking_id] = 0
                for item in self.network.items_of[booking.booking_id]:
                    true = true_class(item.commodity, item.quantity)
                    if true == "general":
                        self.hold_kg[booking.booking_id] += item.kg
                    else:
                        rides.append(Ride(item.item_id, item.kg, true, booking.board_leg, booking.alight_leg, booking))
            for ride in rides:
                for k in range(ride.board_leg, ride.leave_leg):
                    self.rides[c, k].append(ride)
        self.movements_on: dict[int, list[tuple[int, int]]] = {}
        for c, k in self.rides:
            self.movements_on.setdefault(self.on_route[c][k].number, []).append((c, k))

    # -- the timetable ---------------------------------------------------------------------------------------------

    def _timetable(self) -> tuple[Update, ...]:
        """Services and permits; carriers that withdraw are placed anew until they break enough and not too much."""
        carriers = sorted(self.network["carriers"])
        self.rng("carriers").shuffle(carriers)
        self.leaving, self.staying = (carriers[:2], carriers[2:]) if self.family.disrupted else ([], carriers)
        best: tuple[int, int, tuple[Update, ...]] | None = None
        for attempt in range(_ATTEMPTS):
            self._draw_services(attempt)
            updates, excess = self._withdrawals()
            if best is None or excess < best[0]:
                best = excess, attempt, updates
            if not excess:
                break
        assert best is not None
        if best[1] != attempt:
            self._draw_services(best[1])
            self._withdrawals()
        for name, records in (("services", self.services), ("permits", self.permits)):
            self.tables[name] = {getattr(r, f"{name[:-1]}_id"): r for of_node in records for r in of_node}
        self._add_transfers()
        return best[2]

    def _draw_services(self, attempt: int) -> None:
        self.services: list[list[Service]] = []
        """of each node: three sound ones, an early, a near, a late and a full one"""
        self.permits: list[list[Permit]] = []
        for node in self.nodes:
            rng = self.rng("services", node.number)
            lapsed = rng.choices((0, 1, 2), (3, 2, 1))[0]
            carriers = rng.sample(self.staying, 7)
            self._place_leaving(carriers, node.number, lapsed, attempt)
            start = node.start
            early = self._early(node, rng)
            departures = [
                start + rng.randint(0, 40),
                start + rng.randint(70, 110),
                start + rng.randint(150, 205),
                early,
                early + rng.randint(30, 40),
                start + rng.randint(300, 345),
                start + rng.randint(20, 60),
            ]
            block = self.network.block_min[node.origin, node.destination]
            services = []
            for place, (carrier_id, departure) in enumerate(zip(carriers, departures, strict=True)):
                service_id = self.service_ids[node.number][place]
                arrival = departure + block + rng.randint(0, 4)
                service = Service(service_id, carrier_id, node.origin, node.destination, departure, arrival, 0, 0)
                services.append(service)
            self.services.append(services)
            self.permits.append(self._draw_permits(node, services, lapsed))

    def _place_leaving(self, carriers: list[str], node: int, lapsed: int, attempt: int) -> None:
        """Of the two that may leave, one is often the first sound carrier, the other at times a permitted one; in turn.
        Never are both permitted ones among them."""
        if not self.leaving:
            return
        rng = self.rng("leaving", attempt, node)
        first, second = self.leaving if node % 2 == 0 else self.leaving[::-1]
        taken: list[int] = []
        if rng.random() < 0.3:
            carriers[0] = first
            taken.append(0)
        if rng.random() < 0.2:
            permitted = [p for p in range(3) if p != lapsed]
            if not set(permitted) & set(taken):
                carriers[rng.choice(permitted)] = second

    def _early(self, node: Node, rng: random.Random) -> int:
        """Just before most can be there: after the first sound arrival, or on the very first leg after check-in."""
        if node.after is None:
            ready = [b.ready_min for b in self.bookings[0] if b.board_leg == 0]
            base = min(ready, default=node.start - 150) + self.minima[node.origin]["checkin"]
        else:
            base = self.services[node.after][0].arrival_min + self.minima[node.origin]["other_carrier"]
        return base - rng.randint(5, 25)

    def _draw_permits(self, node: Node, services: list[Service], lapsed: int) -> list[Permit]:
        """Two sound carriers hold all that the node needs; the third's have lapsed; fillers are of no use either."""
        rng = self.rng("permits", node.number)
        heaviest: dict[str, list[int]] = {}
        """class -> heaviest piece of each movement that has the class aboard"""
        for movement in self.movements_on[node.number]:
            for class_, kg in self._heaviest(movement).items():
                heaviest.setdefault(class_, []).append(kg)
        made: list[tuple[str, str, int, int, int]] = []
        for class_, pieces in sorted(heaviest.items()):
            for place in range(3):
                departure = services[place].departure_min
                limit = max(pieces) + rng.randint(0, 40)
                before, after = rng.randint(300, 1_300), rng.randint(200, 1_300)
                if place == lapsed:
                    after = -rng.randint(0, 119)
                made.append((services[place].carrier_id, class_, departure - before, departure + after, limit))
        # the lapsed ones of the last classes give way where a page would not hold all
        sound = [m for m in made if m[0] != services[lapsed].carrier_id]
        made = [*sound, *(m for m in made if m[0] == services[lapsed].carrier_id)][:_SHOWN_PERMITS]
        classes = sorted(heaviest) or ["hazardous", "live", "perishable"]
        while len(made) < _SHOWN_PERMITS:
            class_ = rng.choice(classes)
            service = services[rng.randrange(7)]
            least = min(heaviest.get(class_, [60]))
            fault = rng.choice(("past", "future", "light"))
            start, end = (
                service.departure_min - rng.randint(300, 1_300),
                service.departure_min + rng.randint(200, 1_300),
            )
            limit = max(heaviest.get(class_, [60])) + rng.randint(0, 40)
            if fault == "past":
                end = service.departure_min - rng.randint(0, 119)
            elif fault == "future":
                start = service.departure_min + rng.randint(1, 120)
            else:
                limit = max(1, least - rng.randint(1, 30))
            made.append((service.carrier_id, class_, start, end, limit))
        return [
            Permit(self.permit_ids[node.number][n], carrier, node.origin, node.destination, class_, *rest)  # type: ignore[arg-type]
            for n, (carrier, class_, *rest) in enumerate(made)
        ]

    def _heaviest(self, movement: tuple[int, int]) -> dict[str, int]:
        """Heaviest piece of each class but general that the movement has aboard."""
        found: dict[str, int] = {}
        for ride in self.rides[movement]:
            if ride.class_ != "general":
                found[ride.class_] = max(found.get(ride.class_, 0), ride.kg)
        return found

    def _add_transfers(self) -> None:
        """Four a pair, of which one always serves; bookings are due soon after it arrives."""
        for c, bookings in enumerate(self.bookings):
            for pair in (bookings[:2], bookings[2:]):
                e = pair[0].alight_leg
                hub_id, node = self.routes[c][e], self.on_route[c][e - 1]
                rng = self.rng("transfers", c, e)
                serving = node.start + 480 + rng.randint(0, 20)
                tempting = (
                    self.services[node.number][0].arrival_min + self.minima[hub_id]["transfer"] + rng.randint(0, 15)
                )
                departures = (serving, tempting, serving - rng.randint(90, 150), serving + rng.randint(60, 120))
                party = sum(b.party for b in pair)
                kg = sum(i.kg for b in pair for i in self.network.items_of[b.booking_id])
                arrivals = [departure + rng.randint(20, 45) for departure in departures]
                for n, (departure, arrival) in enumerate(zip(departures, arrivals, strict=True)):
                    transfer_id = self.ids.new("trf", c, e, n)
                    transfer = Transfer(transfer_id, self.cohort_ids[c], hub_id, departure, arrival, party, kg)
                    self.tables["transfers"][transfer_id] = transfer
                for booking in pair:
                    due = arrivals[0] + rng.randint(10, 50)
                    self.tables["rebookings"][booking.booking_id] = replace(booking, due_min=due)

    # -- the house rule (rule 9) -----------------------------------------------------------------------------------

    def _plan(self, closed: Closed) -> Plan:
        """What the house rule gives from the beginning, without regard to room: rooms are made for it."""
        itineraries = {}
        choices: dict[tuple[str, str], list[Service]] = {}
        for lane, numbers in self.nodes_on.items():
            operating = [s for n in numbers for s in self.services[n][:_FULL] if not closed(s)]
            choices[lane] = sorted(operating, key=lambda s: (s.arrival_min, s.service_id))
        for c, bookings in enumerate(self.bookings):
            for booking in bookings:
                itineraries[booking.booking_id] = self._planned_itinerary(c, booking, choices)
        movements: dict[tuple[int, int], Service] = {}
        for c, k in self.rides:
            movements[c, k] = self._planned_movement(c, k, choices, movements)
        return Plan(itineraries, movements)

    def _planned_itinerary(self, c: int, booking: Booking, choices: Choices) -> list[Service]:
        allowance = ALLOWANCES[self.network["passengers"][booking.passenger_id].assistance]
        there, before = booking.ready_min, None
        planned: list[Service] = []
        for node in self.on_route[c][booking.board_leg : booking.alight_leg]:
            minima = self.minima[node.origin]
            service = next(
                s
                for s in choices[node.origin, node.destination]
                if s.departure_min >= there + connection_min(minima, before, s.carrier_id, allowance)
            )
            planned.append(service)
            there, before = service.arrival_min, service.carrier_id
        return planned

    def _planned_movement(
        self, c: int, k: int, choices: Choices, movements: Mapping[tuple[int, int], Service]
    ) -> Service:
        node, rides = self.on_route[c][k], self.rides[c, k]
        earliest = earliest_movement(
            custody_min(self.minima[node.origin], {r.class_ for r in rides}),
            self.consignments[c].release.ready_min if k == 0 else None,
            [r.item_of.ready_min for r in rides if r.item_of is not None and r.board_leg == k],
            [movements[giver].arrival_min for giver in self.givers[c, k]],
        )
        heaviest = self._heaviest((c, k))
        lane = node.origin, node.destination
        permits = [p for number in self.nodes_on[lane] for p in self.permits[number]]
        return next(
            s
            for s in choices[lane]
            if s.departure_min >= earliest
            and all(
                any(
                    p.handling_class == class_ and p.carrier_id == s.carrier_id and in_force(p, s.departure_min, kg)
                    for p in permits
                )
                for class_, kg in heaviest.items()
            )
        )

    # -- withdrawals -----------------------------------------------------------------------------------------------

    def _withdrawals(self) -> tuple[tuple[Update, ...], int]:
        """The updates, the plans before and after each, and by how much they miss the number of bookings to be broken.

        A carrier leaves from the latest slot start on that breaks enough of the bookings accepted by then (the
        reference takes the cohorts in their order) and at least one manifest.
        """
        gone: list[Withdrawal] = []

        def closed(service: Service) -> bool:
            return any(service.carrier_id == w.carrier_id and service.departure_min >= w.from_min for w in gone)

        self.plans = [self._plan(closed)]
        if not self.leaving:
            return (), 0
        low, high = -(-self.N // 20), -(-self.N // 14)
        after = [self.C // 2]
        if self.N >= _TWO_WITHDRAWALS_FROM:
            low, high = max(1, low // 2), max(2, -(-high // 2))
            after = [2 * self.C // 5, 4 * self.C // 5]
        updates, missed = [], 0
        for number, cohorts in enumerate(after):
            carrier_id = self.leaving[number]
            from_min, excess = self._from_min(carrier_id, cohorts, low, high)
            missed += excess
            gone.append(Withdrawal(carrier_id, from_min))
            updates.append(Update(number + 1, "bookings_accepted", 4 * cohorts, gone[-1]))
            self.plans.append(self._plan(closed))
        return tuple(updates), missed

    def _from_min(self, carrier_id: str, cohorts: int, low: int, high: int) -> tuple[int, int]:
        plan = self.plans[-1]
        last = [
            max((s.departure_min for s in plan.itineraries[b.booking_id] if s.carrier_id == carrier_id), default=-1)
            for bookings in self.bookings[:cohorts]
            for b in bookings
        ]
        movement = max(
            (s.departure_min for (c, _), s in plan.movements.items() if c < cohorts and s.carrier_id == carrier_id),
            default=-1,
        )
        best = 0, self.N
        for slot in range(max(n.slot for n in self.nodes), -1, -1):
            start = _FIRST_SLOT + _SLOT * slot
            broken = sum(departure >= start for departure in last)
            excess = max(low - broken, broken - high, 0) + self.C * (movement < start)
            if excess < best[1]:
                best = start, excess
            if not excess:
                break
        return best

    # -- rooms -----------------------------------------------------------------------------------------------------

    def _add_rooms(self) -> None:
        """Each service has room for whatever any plan puts on it, and the variant's spare; others have a little."""
        seats: dict[str, int] = {}
        kg: dict[str, int] = {}
        for bookings in self.bookings:
            for b in bookings:
                for service_id in {s.service_id for plan in self.plans for s in plan.itineraries[b.booking_id]}:
                    seats[service_id] = seats.get(service_id, 0) + b.party
                    kg[service_id] = kg.get(service_id, 0) + self.hold_kg[b.booking_id]
        for movement, rides in self.rides.items():
            for service_id in {plan.movements[movement].service_id for plan in self.plans}:
                kg[service_id] = kg.get(service_id, 0) + sum(r.kg for r in rides)
        services = self.tables["services"]
        for of_node, node in zip(self.services, self.nodes, strict=True):
            rng = self.rng("rooms", node.number)
            for place, service in enumerate(of_node):
                few, little = rng.randint(1, 6), rng.randint(100, 900)
                if place == _FULL:
                    few = little = 0
                if wanted := seats.get(service.service_id):
                    few = wanted + self.variant.spare_seats
                if wanted := kg.get(service.service_id):
                    spare = -(-wanted * self.variant.spare_kg // 100)
                    little = wanted + (max(spare, _HEAVY_ITEM_KG) if spare else 0)
                services[service.service_id] = replace(service, seats=few, kg=little)

    # -- graph and brief -------------------------------------------------------------------------------------------

    def _graph(self) -> TaskGraph:
        return TaskGraph.of(m for c in range(self.C) for m in self._modules(c))

    def _modules(self, c: int) -> Iterator[Module]:
        consignment_id, cohort_id = self.consignments[c].consignment_id, self.cohort_ids[c]

        def movement(cohort: int, leg: int) -> str:
            return f"movement:{self.consignments[cohort].consignment_id}/{leg}"

        for booking in self.bookings[c]:
            yield Module(f"checkin:{booking.booking_id}", "checkin", c, booking.booking_id)
        for k in range(self.L):
            boarding = {r.item_of.booking_id for r in self.rides[c, k] if r.item_of and r.board_leg == k}
            needs = [Need(f"checkin:{b}", "validity") for b in sorted(boarding)]
            needs += [Need(movement(*giver), "provenance") for giver in self.givers[c, k]]
            yield Module(movement(c, k), "movement", c, consignment_id, tuple(needs))
        for pair in (self.bookings[c][:2], self.bookings[c][2:]):
            share = f"share:{cohort_id}/{pair[0].alight_leg}"
            needs = [Need(f"checkin:{b.booking_id}", "validity") for b in pair]
            needs.append(Need(movement(c, pair[0].alight_leg - 1), "content"))
            yield Module(share, "share", c, cohort_id, tuple(needs))
            for b in pair:
                yield Module(f"close:{b.booking_id}", "close", c, b.booking_id, (Need(share, "content"),))
        yield Module(
            f"freight:{consignment_id}", "freight", c, consignment_id, (Need(movement(c, self.L - 1), "provenance"),)
        )

    def _brief(self) -> dict[str, Any]:
        return {"goal": _GOAL, "cohorts": self.C, "bookings": self.N, "legs": self.L}
