"""Construction of FieldOps tasks: a mesh of services in rows, its devices, and resources that just suffice.

A place is a service's number, counted row by row; row and lane follow from it and from the width of the mesh. Each
place draws from streams of its own. The right answers are nowhere written down: they follow from the records by the
rules of the trade, and the resources are what those rules need, run once over the rows.
"""

from __future__ import annotations

import random
from functools import cache
from math import isqrt
from typing import Any, NamedTuple

from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from skillhorizon.envs.field.catalog import CHANNELS, LOCATIONS, LOG_LINES, MODELS, SPARE_CHANNELS
from skillhorizon.envs.field.goals import FieldGoal
from skillhorizon.envs.field.records import (
    Advisory,
    Batch,
    Crew,
    Depot,
    Device,
    DeviceFault,
    Feed,
    Gauge,
    Inspection,
    Limits,
    Part,
    Qualification,
    Reading,
    Service,
    Supply,
    SupplyRevision,
    Trunk,
    Valve,
    Window,
)
from skillhorizon.envs.field.rules import (
    FLOW_STEP,
    Signature,
    fault_of,
    highest_setpoint,
    loss_kpa,
    makeup_lpm,
    qualifications,
    signatures,
    taken_lpm,
)

FAMILIES = ("mesh-convergence", "mesh-supply-shocks")
SPREADS = {"sparse": (0, 1, 1, 2), "even": (1, 2), "paired": (2,), "cluster": (2, 3), "dense": (3,)}
"""Devices of a service, in turn along its row."""
_BANDS = ("64K", "128K", "256K", "512K", "1M", "2M", "4M")
_WINDOW_SLOTS = 3
_SHOCK_KPA = 60
_ADVISORIES = (
    "the stores office opens an hour later this week.",
    "vehicles are inspected at the gate from today on.",
    "the monthly meeting of foremen is moved by a day.",
    "new gloves have arrived and may be collected.",
    "visitors are expected on the site tomorrow.",
)
_WEAK_KPA = 430
"""Where the pressure falls below this the service has a booster."""


class Profile(NamedTuple):
    """Details by band (the last one goes on), and the changes in the shocks family."""

    spread: str
    pattern: str
    details: tuple[str, ...]
    shocks: tuple[str, ...]


PROFILES = (
    Profile("sparse", "chain-join", ("lean", "full", "full", "full", "lean"), ("pressure", "flow")),
    Profile("sparse", "braided", ("standard", "full", "full", "full", "lean"), ("flow", "pressure")),
    Profile("even", "distributed", ("lean", "standard", "full", "standard", "lean"), ("pressure", "pressure")),
    Profile("even", "fork-join", ("standard", "full", "full", "full", "lean"), ("device fault",)),
    Profile("paired", "braided", ("lean", "standard", "full", "standard", "lean"), ("flow", "flow")),
    Profile("cluster", "chain-join", ("standard", "full", "full", "full", "lean"), ("device fault",)),
    Profile("dense", "distributed", ("lean", "standard", "full", "standard", "lean"), ("pressure", "flow")),
)


class Detail(NamedTuple):
    """How much is recorded of a device and of a service's boundary."""

    channels: int
    rounds: int
    valves: int
    log: int


class Shock(NamedTuple):
    """An effect that waits for ``at`` first commissionings below its holder."""

    holder_id: str
    at: int
    effect: SupplyRevision | DeviceFault


DETAILS = {"lean": Detail(7, 1, 6, 2), "standard": Detail(8, 2, 6, 3), "full": Detail(8, 3, 12, 4)}


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Seven profiles by two scenarios: 14 in every band."""
    made = []
    for family in FAMILIES:
        for p in PROFILES:
            detail = p.details[min(_BANDS.index(band), len(p.details) - 1)]
            shocks = ", ".join(p.shocks) if family == "mesh-supply-shocks" else "none"
            options: dict[str, int | str] = {"detail": detail, "shocks": shocks}
            made.append(TaskConfig("field", family, p.spread, p.pattern, band, options))
    return tuple(made)


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed, ``size`` services large (at least 8)."""
    return Builder(config, seed, size).blueprint()


class Builder:
    """One task. ``S`` services stand in rows of ``w`` lanes, on ``q`` supply points."""

    def __init__(self, config: TaskConfig, seed: int, size: int) -> None:
        self.key = ("field", config.id, config.band, seed)
        self.config = config
        self.detail = DETAILS[str(config.options["detail"])]
        self.shocks = str(config.options["shocks"]).split(", ") if config.options["shocks"] != "none" else []
        self.ids = Ids(*self.key)
        self.S = size
        self.w = max(3, (isqrt(64 * size) + 5) // 10)  # 0.8 √S, rounded
        self.q = max(3, -(-self.w // 2))
        self.depots = [self.ids.new("dep", n) for n in range(max(2, -(-self.w // 3)))]
        self.central = self.ids.new("dep", "central")
        self.supply_ids = [self.ids.new("sup", n) for n in range(self.q)]
        self.service_ids = [self.ids.new("srv", i) for i in range(size)]
        self.system_id = self.ids.new("sys", 0)
        self.tables: dict[str, dict[str, Any]] = {
            name: {}
            for name in (
                "depots", "supplies", "services", "devices", "gauges", "windows", "crews", "parts", "batches", "trunks",
            )
        }  # fmt: skip

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables[table][key] = record

    def blueprint(self) -> Blueprint:
        self.parents = [self._parents(i) for i in range(self.S)]
        self.children: dict[str, list[int]] = {}
        for i, parents in enumerate(self.parents):
            for parent in parents:
                self.children.setdefault(parent, []).append(i)
        for depot_id in (*self.depots, self.central):
            self.put("depots", depot_id, Depot(depot_id, depot_id == self.central))
        self._add_parts()
        self.devices = [self._devices(i) for i in range(self.S)]
        self.slot_index = self._slot_indices()
        self._balance_flows()
        self._balance_pressures()
        self._add_windows()
        self._add_services()
        shocks = self._shocks()
        self._add_crews()
        self._add_stock()
        return Blueprint(
            tables=self.tables,
            updates=self._updates(shocks),
            graph=self._graph(),
            brief=self._brief(),
            goal=FieldGoal(tuple(d for devices in self.devices for d in devices), len(shocks) + 2),
            scale={"Devices": len(self.tables["devices"]), "Services": self.S},
        )

    # -- the mesh --------------------------------------------------------------------------------------------------

    def place(self, i: int) -> tuple[int, int]:
        """Row and lane."""
        return divmod(i, self.w)

    def _parents(self, i: int) -> list[str]:
        """What feeds a service, by the pattern; one to three, the last row always three."""
        level, j = self.place(i)
        if level == 0:
            return [self.supply_ids[j % self.q]]
        row = self.service_ids[(level - 1) * self.w : level * self.w]
        before = [row[n % len(row)] for n in self._lanes_before(level, j)]
        if self.config.pattern == "distributed":
            rng = self.rng("parents", i)
            if level >= 3:
                before.append(self.service_ids[rng.randrange((level - 2) * self.w)])
            if level % 3 == 0:
                before.append(self.supply_ids[rng.randrange(self.q)])
        if level == (self.S - 1) // self.w:
            before += [row[(j + n) % len(row)] for n in range(1, 3)]
        return list(dict.fromkeys(before))[:3]

    def _lanes_before(self, level: int, j: int) -> list[int]:
        if self.config.pattern == "chain-join":
            return [j, j + 1] if level % 3 == 0 else [j]
        if self.config.pattern == "braided":
            return [j, j + 1, j - 1] if level % 4 == 0 else [j, j + 1]
        if self.config.pattern == "fork-join":
            if level % 2:
                return [j // 2]
            return [2 * j, 2 * j + 1, 2 * j + 2] if level % 4 == 0 else [2 * j, 2 * j + 1]
        return [j]

    def _slot_indices(self) -> list[int]:
        """Rule 5 run over the rows: the number of each service's earliest window."""
        after = dict.fromkeys(self.supply_ids, 0)
        indices = []
        for i, parents in enumerate(self.parents):
            index = max(after[p] for p in parents)
            indices.append(index)
            after[self.service_ids[i]] = index + 1 if self.devices[i] else index
        return indices

    def _graph(self) -> TaskGraph:
        modules = []
        for i, service_id in enumerate(self.service_ids):
            level, _ = self.place(i)
            parents = [f"commission:{p}" for p in self.parents[i] if p in self.tables["services"]]
            needs = [Need(p, "quantity") for p in parents]
            if self.devices[i]:
                isolate = Module(
                    f"isolate:{service_id}", "isolate", level, service_id, tuple(Need(p, "validity") for p in parents)
                )
                cases = [
                    Module(f"case:{d}", "case", level, d, (Need(isolate.key, "validity"),)) for d in self.devices[i]
                ]
                restored = tuple(Need(case.key, "content") for case in cases)
                restore = Module(f"restore:{service_id}", "restore", level, service_id, restored)
                modules += [isolate, *cases, restore]
                needs.append(Need(restore.key, "validity"))
            modules.append(Module(f"commission:{service_id}", "commission", level, service_id, tuple(needs)))
        commissioned = tuple(Need(f"commission:{s}", "provenance") for s in self.service_ids)
        modules.append(Module("handover", "handover", self.place(self.S - 1)[0] + 1, self.system_id, commissioned))
        return TaskGraph.of(modules)

    # -- devices and parts -----------------------------------------------------------------------------------------

    def _add_parts(self) -> None:
        """Two parts for each component of each model; the revisions that they fit follow each other."""
        self.part_of: dict[tuple[str, str, int], str] = {}
        for class_, models in MODELS.items():
            components = sorted({s.component for s in signatures()[class_]})
            for model in models:
                for component in components:
                    cut = self.rng("parts", model, component).randint(3, 6)
                    for low, high in ((1, cut), (cut + 1, 9)):
                        part_id = self.ids.new("prt", model, component, low)
                        self.put("parts", part_id, Part(part_id, model, component, low, high))
                        for rev in range(low, high + 1):
                            self.part_of[model, component, rev] = part_id

    def _devices(self, i: int) -> list[str]:
        level, lane = self.place(i)
        spread = SPREADS[self.config.variant]
        made = []
        for n in range(spread[(lane + level) % len(spread)]):
            rng = self.rng("device", i, n)
            device_id = self.ids.new("dev", i, n)
            class_ = rng.choice(sorted(MODELS))
            design = 5 * rng.randint(90, 190)
            device = Device(
                device_id=device_id,
                service_id=self.service_ids[i],
                class_=class_,
                model=rng.choice(MODELS[class_]),
                hw_rev=rng.randint(1, 9),
                serial=f"{rng.randint(10, 99)}-{rng.randint(1000, 9999)}",
                design_kpa=design,
                rated_kpa=design + 5 * rng.randint(design // 25, design // 12),
                location=rng.choice(LOCATIONS),  # type: ignore[arg-type]
                powered=class_ in ("pump", "actuator") or rng.random() < 0.4,
                episode=1,
                inspections=self._inspections(class_, rng),
                log=tuple(rng.sample(LOG_LINES, self.detail.log)),
            )
            self.put("devices", device_id, device)
            self.put("gauges", device_id, Gauge(device_id, rng.randint(2, 9)))
            made.append(device_id)
        return made

    def _inspections(self, class_: str, rng: random.Random) -> tuple[Inspection, ...]:
        """The last round shows the fault; older ones show others."""
        shown = rng.sample(signatures()[class_], self.detail.rounds)
        slot = -rng.randint(2, 9)
        made = []
        for number, signature in zip(range(self.detail.rounds, 0, -1), shown, strict=True):
            made.append(Inspection(number, slot, self._readings(class_, signature, rng)))
            slot -= rng.randint(6, 30)
        return tuple(made[::-1])

    def _readings(self, class_: str, signature: Signature, rng: random.Random) -> tuple[Reading, ...]:
        """The signature's channels out of range; now and then one more, with an overdue calibration."""
        diagnostic = CHANNELS[class_]
        spare = rng.sample(sorted(SPARE_CHANNELS), self.detail.channels - len(diagnostic))
        others = sorted(set(diagnostic) - signature.channels)
        overdue = rng.choice(others) if rng.random() < 0.3 else None
        made = []
        for channel, (unit, low, high) in {**diagnostic, **{c: SPARE_CHANNELS[c] for c in spare}}.items():
            span = high - low
            value = rng.randint(low + span // 10, high - span // 10)
            if channel in signature.channels or channel == overdue:
                excess = rng.randint(1 + span // 10, 1 + span // 2)
                value = low - excess if low > excess and rng.random() < 0.3 else high + excess
            calibration = "overdue" if channel == overdue or (channel in spare and rng.random() < 0.2) else "valid"
            made.append(Reading(channel, unit, value, low, high, calibration))  # type: ignore[arg-type]
        rng.shuffle(made)
        return tuple(made)

    # -- flow and pressure -----------------------------------------------------------------------------------------

    def _balance_flows(self) -> None:
        """From the last row up: what each service passes on, uses, and takes from its feeds (always less than both)."""
        self.own = [0] * self.S
        self.contracted: dict[str, int] = dict.fromkeys((*self.supply_ids, *self.service_ids), 0)
        self.share: dict[tuple[str, int], int] = {}
        for i in range(self.S - 1, -1, -1):
            rng = self.rng("flow", i)
            service_id = self.service_ids[i]
            self.own[i] = rng.randint(25, 80)
            self.contracted[service_id] = self.contracted[service_id] or rng.randint(40, 120)
            wanted = (self.own[i] + self.contracted[service_id]) * rng.randint(50, 70) // 100
            parents = self.parents[i]
            for n, parent in enumerate(parents):
                share = wanted * (n + 1) // len(parents) - wanted * n // len(parents)
                self.share[parent, i] = share
                self.contracted[parent] += share
        rng = self.rng("supplies")
        short = rng.choice(self.supply_ids) if rng.random() < 0.5 else None
        for supply_id in self.supply_ids:
            contracted = self.contracted[supply_id]
            flow = 9 * contracted // 10 if supply_id == short else contracted + rng.randint(0, 25)
            self.put("supplies", supply_id, Supply(supply_id, 10 * rng.randint(54, 66), flow, contracted))

    def _balance_pressures(self) -> None:
        """From the first row down, at the lowest pressures that any course of events can bring.

        Pressure shocks lower what is available and cut flows only raise it, so every limit that holds here holds.
        """
        rng = self.rng("shocks")
        self.revised = (
            dict(zip(rng.sample(self.supply_ids, 2), self.shocks, strict=False)) if len(self.shocks) == 2 else {}
        )
        outlet = {
            s.supply_id: s.outlet_kpa - (_SHOCK_KPA if self.revised.get(s.supply_id) == "pressure" else 0)
            for s in self.tables["supplies"].values()
        }
        self.coefficients: dict[tuple[str, int], int] = {}
        self.gains: list[int] = []
        self.limits: list[Limits] = []
        for i, service_id in enumerate(self.service_ids):
            rng = self.rng("pressure", i)
            pressures = []
            for parent in self.parents[i]:
                share = self.share[parent, i]
                coefficient = self.coefficients[parent, i] = rng.randint(4, 22) * 1_000_000 // (share * share)
                pressures.append(outlet[parent] - loss_kpa(coefficient, share))
            inlet = min(pressures)
            drops = sum(self.tables["gauges"][d].drop_kpa for d in self.devices[i])
            gain = FLOW_STEP * rng.randint(12, 24) if inlet - drops < _WEAK_KPA else 0
            step = rng.choice((5, 10, 10, 20))
            available = inlet + gain - drops
            setpoint = available // step * step
            limits = Limits(
                min_inlet_kpa=inlet - rng.randint(5, 25),
                min_outlet_kpa=setpoint - rng.choice((0, step)),
                max_outlet_kpa=setpoint + step * rng.randint(1, 6),
                step_kpa=step,
            )
            outlet[service_id] = highest_setpoint(available, limits)
            self.gains.append(gain)
            self.limits.append(limits)

    def _makeups(self, flows: dict[str, int]) -> list[int]:
        """Rule 13 for each service, with these flows of the supply points; services offer what they contracted."""
        return [
            makeup_lpm(
                self.own[i],
                self.contracted[service_id],
                sum(
                    taken_lpm(self.share[p, i], flows.get(p, self.contracted[p]), self.contracted[p])
                    for p in self.parents[i]
                ),
            )
            for i, service_id in enumerate(self.service_ids)
        ]

    def _add_trunks(self) -> list[tuple[str, str]]:
        """Pairs of a primary, which holds the first makeups of its services, and a standby for what outgrows it."""
        supplies = self.tables["supplies"]
        flows = {s: supplies[s].flow_lpm for s in self.supply_ids}
        cut = {s: _cut(supplies[s]) for s, change in self.revised.items() if change == "flow"}
        first, last = self._makeups(flows), self._makeups({**flows, **cut})
        pairs = []
        count = max(2, self.S // 12)
        for n in range(count):
            rng = self.rng("trunks", n)
            ids = self.ids.new("trk", n, "primary"), self.ids.new("trk", n, "standby")
            pairs.append(ids)
            total, rise, largest = sum(first[n::count]), sum(last[n::count]) - sum(first[n::count]), max(last[n::count])
            for trunk_id, room in zip(ids, (total + rng.randint(0, 4), rise + largest), strict=True):
                base = 10 * rng.randint(20, 80)
                self.put("trunks", trunk_id, Trunk(trunk_id, base + room, base))
        return [pairs[i % count] for i in range(self.S)]

    # -- windows and services --------------------------------------------------------------------------------------

    def _add_windows(self) -> None:
        """Each earliest window once, each again a whole cycle later, then the contingency windows."""
        self.cycle = max(self.slot_index) + 1
        self.windows = []
        for n in range(2 * self.cycle + max(2, self.S // 60)):
            window_id = self.ids.new("win", n)
            start = _WINDOW_SLOTS * n
            kind = "planned" if n < 2 * self.cycle else "contingency"
            window = Window(window_id, start, start + _WINDOW_SLOTS - 1, kind)  # type: ignore[arg-type]
            self.windows.append(window)
            self.put("windows", window_id, window)

    def _add_services(self) -> None:
        trunks = self._add_trunks()
        for i, service_id in enumerate(self.service_ids):
            rng = self.rng("service", i)
            k = self.slot_index[i]
            offered = [k, self.cycle + k, k - 1][: 3 if k else 2]
            service = Service(
                service_id=service_id,
                depot_id=self.depot_of(i),
                device_ids=tuple(self.devices[i]),
                feeds=tuple(self._feed(i, parent, rng) for parent in self.parents[i]),
                own_lpm=self.own[i],
                contracted_lpm=self.contracted[service_id],
                gain_kpa=self.gains[i],
                limits=self.limits[i],
                primary_trunk_id=trunks[i][0],
                standby_trunk_id=trunks[i][1],
                window_ids=tuple(sorted(self.windows[n].window_id for n in offered)),
                boundary=self._boundary(i, rng),
            )
            self.put("services", service_id, service)

    def depot_of(self, i: int) -> str:
        lanes = min(self.w, self.S)
        return self.depots[self.place(i)[1] * len(self.depots) // lanes]

    def _feed(self, i: int, parent: str, rng: random.Random) -> Feed:
        return Feed(
            parent_id=parent,
            parent_kind="supply" if parent in self.tables["supplies"] else "service",
            link_id=self.ids.new("lnk", i, parent),
            length_m=10 * rng.randint(12, 240),
            bore_mm=rng.choice((80, 100, 150, 200)),
            share_lpm=self.share[parent, i],
            loss_coeff=self.coefficients[parent, i],
        )

    def _boundary(self, i: int, rng: random.Random) -> tuple[Valve, ...]:
        """Half on each side, one of them normally closed; chainages differ on a side."""
        half = self.detail.valves // 2
        closed = rng.randrange(self.detail.valves)
        chainages = [*rng.sample(range(5, 200), half), *rng.sample(range(5, 200), half)]
        valves = [
            Valve(
                valve_id=self.ids.new("vlv", i, n),
                side="inlet" if n < half else "outlet",
                chainage_m=chainages[n],
                bore_mm=rng.choice((80, 100, 150)),
                normal="closed" if n == closed else "open",
            )
            for n in range(self.detail.valves)
        ]
        rng.shuffle(valves)
        return tuple(valves)

    # -- crews and stock -------------------------------------------------------------------------------------------

    def _cases(self) -> list[tuple[str, int, Device]]:
        """Depot, window number and device of each case, a coming fault's too."""
        devices = self.tables["devices"]
        cases = [(self.depot_of(i), self.slot_index[i], devices[d]) for i in range(self.S) for d in self.devices[i]]
        if self.struck is not None:
            i, device = self.struck
            cases.append((self.depot_of(i), 2 * self.cycle, device))
        return cases

    def _add_crews(self) -> None:
        """In each planned window exactly as many shifts of each qualification as its cases need, and one to spare."""
        demand: dict[tuple[str, int, str], int] = {}
        for depot_id, k, device in self._cases():
            if k < self.cycle:
                key = depot_id, k, fault_of(device).qualification
                demand[key] = demand.get(key, 0) + 1
        for depot_id in self.depots:
            rng = self.rng("crews", depot_id)
            totals = {q: sum(demand.get((depot_id, k, q), 0) for k in range(self.cycle)) for q in qualifications()}
            scarce = min((n == 0, n, q) for q, n in totals.items())[2]
            lapsed = max((n, q) for q, n in totals.items())[1]
            for q in qualifications():
                wanted = [demand.get((depot_id, k, q), 0) for k in range(self.cycle)]
                held = (q, rng.choice([o for o in qualifications() if o != q])) if q == scarce else (q,)
                self._add_specialists(depot_id, held, wanted, rng)
            one_each = [rng.choice(self._slots(n)) for n in range(len(self.windows))]
            self._add_crew(depot_id, "standby", qualifications(), one_each, rng)
            later = [s for n in range(1, len(self.windows)) for s in rng.sample(self._slots(n), 2)]
            self._add_crew(depot_id, "lapsed", (lapsed,), later, rng, valid_until=rng.randint(0, 2))

    def _add_specialists(self, depot_id: str, held: tuple[str, ...], wanted: list[int], rng: random.Random) -> None:
        count = max(1, *(-(-n // _WINDOW_SLOTS) for n in wanted))
        slots: list[list[int]] = [[] for _ in range(count)]
        for n, window in enumerate(self.windows):
            if window.kind == "contingency":
                slots[0].append(rng.choice(self._slots(n)))
            else:
                shifts = [(crew, slot) for crew in range(count) for slot in self._slots(n)]
                for crew, slot in rng.sample(shifts, wanted[n % self.cycle]):
                    slots[crew].append(slot)
        for crew in range(count):
            self._add_crew(depot_id, f"{held[0]} {crew}", held, slots[crew], rng)

    def _add_crew(
        self, depot_id: str, name: str, held: tuple[str, ...], slots: list[int], rng: random.Random,
        valid_until: int | None = None,
    ) -> None:  # fmt: skip
        crew_id = self.ids.new("crw", depot_id, name)
        last = self.windows[-1].end_slot
        certificates = tuple(
            Qualification(code, last + rng.randint(5, 60) if valid_until is None else valid_until)
            for code in sorted(held)
        )
        self.put("crews", crew_id, Crew(crew_id, depot_id, certificates, tuple(sorted(slots))))

    def _slots(self, n: int) -> list[int]:
        return list(range(_WINDOW_SLOTS * n, _WINDOW_SLOTS * (n + 1)))

    def _add_stock(self) -> None:
        """Per depot and part as many units as its cases need, half of them short-dated; one of each part central."""
        ends: dict[tuple[str, str], list[int]] = {}
        for depot_id, k, device in self._cases():
            part_id = self.part_of[device.model, fault_of(device).component, device.hw_rev]
            ends.setdefault((depot_id, part_id), []).append(self.windows[k].end_slot)
        last = self.windows[-1].end_slot
        for (depot_id, part_id), slots in sorted(ends.items()):
            rng = self.rng("stock", depot_id, part_id)
            slots.sort()
            short = len(slots) // 2
            if short:
                self._add_batch(depot_id, part_id, "short", short, slots[short - 1], "released")
            self._add_batch(depot_id, part_id, "long", len(slots) - short, last + rng.randint(3, 90), "released")
            self._add_batch(depot_id, part_id, "decoy", rng.randint(1, 3), last + rng.randint(3, 90), "quarantine")
        for part_id in self.tables["parts"]:
            self._add_batch(
                self.central, part_id, "central", 1, last + self.rng("central", part_id).randint(3, 90), "released"
            )

    def _add_batch(self, depot_id: str, part_id: str, name: str, units: int, use_by: int, status: Any) -> None:
        batch_id = self.ids.new("bat", depot_id, part_id, name)
        self.put("batches", batch_id, Batch(batch_id, depot_id, part_id, units, use_by, status))

    # -- updates ---------------------------------------------------------------------------------------------------

    def _below(self) -> dict[str, int]:
        """How many services lie below each supply point and service."""
        below = dict.fromkeys((*self.supply_ids, *self.service_ids), 0)
        for holder_id in (*reversed(self.service_ids), *self.supply_ids):
            for child in self.children.get(holder_id, ()):
                below[holder_id] |= below[self.service_ids[child]] | 1 << child
        return {holder_id: services.bit_count() for holder_id, services in below.items()}

    def _shocks(self) -> list[Shock]:
        """What the shocks family brings; a device that fails anew is also kept as ``struck``."""
        self.struck: tuple[int, Device] | None = None
        below = self._below()
        if self.shocks == ["device fault"]:
            return [self._device_fault(below)]
        after = (max(2, self.S // 10), max(3, 3 * self.S // 20))
        shocks = []
        for (supply_id, change), at in zip(self.revised.items(), after, strict=False):
            supply: Supply = self.tables["supplies"][supply_id]
            outlet = supply.outlet_kpa - (_SHOCK_KPA if change == "pressure" else 0)
            flow = _cut(supply) if change == "flow" else supply.flow_lpm
            text = f"Supply point {supply_id} has a new record; what rests on the old one must be certified anew."
            shocks.append(Shock(supply_id, min(at, below[supply_id]), SupplyRevision(supply_id, outlet, flow, text)))
        return shocks

    def _device_fault(self, below: dict[str, int]) -> Shock:
        """On a service with a few others below it, once all of them are commissioned."""
        rng = self.rng("fault")
        most = max(4, 3 * self.S // 25)
        with_devices = [i for i in range(self.S) if self.devices[i]]
        far = {i: max(2 - below[self.service_ids[i]], below[self.service_ids[i]] - most, 0) for i in with_devices}
        i = rng.choice([i for i in with_devices if far[i] == min(far.values())])
        device: Device = self.tables["devices"][rng.choice(self.devices[i])]
        signature = rng.choice([s for s in signatures()[device.class_] if s != fault_of(device)])
        latest = device.inspections[-1].round + 1
        slot = self.windows[2 * self.cycle].start_slot - 1
        inspection = Inspection(latest, slot, self._readings(device.class_, signature, rng))
        self.struck = i, replace(device, inspections=(*device.inspections, inspection))
        text = f"Device {device.device_id} has failed again; see its new inspection."
        service_id = self.service_ids[i]
        return Shock(service_id, max(1, below[service_id]), DeviceFault(device.device_id, inspection, text))

    def _updates(self, shocks: list[Shock]) -> tuple[Update, ...]:
        """Shocks wait for first commissionings below their holder, advisories for those of the whole mesh."""
        rng = self.rng("advisories")
        made = [
            Update(n, f"commissioned_below:{shock.holder_id}", shock.at, shock.effect)
            for n, shock in enumerate(shocks, 1)
        ]
        for number, text in enumerate(rng.sample(_ADVISORIES, 2), 1):
            depot_id = rng.choice(self.depots)
            at = -(-number * self.S // 3)
            made.append(Update(len(made) + 1, "services_commissioned", at, Advisory(depot_id, f"{depot_id}: {text}")))
        return tuple(made)

    def _brief(self) -> dict[str, Any]:
        goal_text = (
            "Bring the mesh back into service and hand it over. Restore every device and prove it by a test at the "
            "required pressure; commission every service on its feeds' current records; leave no isolation open and no "
            "reservation held; post each depot's crew hours and spare units; then have the system accepted. Supplies "
            "and devices may change while you work; notices say so. What a change makes stale must be renewed before "
            "acceptance, and what it does not touch stays as it is."
        )
        return {
            "goal": goal_text,
            "system_id": self.system_id,
            "services": self.S,
            "devices": len(self.tables["devices"]),
            "depots": len(self.depots),
            "central_depot_id": self.central,
        }


def _cut(supply: Supply) -> int:
    """What a supply point offers after a flow shock, L/min."""
    return 3 * min(supply.flow_lpm, supply.contracted_lpm) // 4
