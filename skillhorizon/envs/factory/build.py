"""Construction of FactoryOps tasks: a supply graph over levels, from the last level's quantities down to raw stock.

Levels are counted 1..L, positions in a level 0..w-1. Terminal quantities are drawn; every other order makes exactly
what its consumers will start, losses included, so stock, grade A units and (where constrained) rework permits have no
slack. Each order draws from a stream of its own, keyed by level and position. Which units turn out how is fixed by
their place in the order's starts, so no order of work changes what is needed.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import msgspec

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Update
from skillhorizon.envs.factory.records import (
    LARGEST_START,
    Drift,
    Line,
    Lot,
    Maintenance,
    Order,
    Outcomes,
    Progress,
    Shift,
    Walk,
)
from skillhorizon.envs.factory.seed import DAY, Calibration, Characteristic, Product, plant, seed_tables
from skillhorizon.envs.factory.world import KINDS, FactoryWorld

BANDS: dict[str, tuple[tuple[int, str, int, int], ...]] = {
    "64K": ((2, "mesh", 3, 4), (2, "mesh", 6, 7), (2, "rooted", 3, 4), (2, "rooted", 5, 6), (2, "distributed", 4, 5)),
    "128K": (
        (3, "mesh", 4, 5), (3, "rooted", 4, 5), (3, "distributed", 4, 6), (4, "staggered", 3, 4), (4, "mesh", 2, 3),
    ),
    "256K": (
        (3, "mesh", 4, 5), (3, "rooted", 4, 5), (4, "distributed", 4, 5), (4, "mesh", 2, 3), (5, "rooted", 3, 4),
    ),
    "512K": (
        (4, "mesh", 3, 4), (4, "rooted", 3, 4), (4, "distributed", 4, 5), (5, "staggered", 2, 3), (5, "rooted", 3, 4),
    ),
    "1M": (
        (4, "mesh", 3, 4), (4, "rooted", 4, 5), (4, "distributed", 4, 6), (5, "staggered", 2, 3),
        (5, "distributed", 3, 4),
    ),
}  # fmt: skip
"""Band -> levels, topology, least and greatest terminal quantity. The bands above 1M take its rows."""
_ORDERS = {"64K": 13, "128K": 24, "256K": 52, "512K": 104, "1M": 206, "2M": 412, "4M": 824}
"""Orders of a task with which calibration begins."""
_FIT_CHANCE = 1 / 3
_ATTEMPTS = 100


class Family(NamedTuple):
    """What a family turns: the rework bench, the kinds of updates, lapsed tools, the shift."""

    bench_units_a_day: int
    updates: tuple[str, str]
    lapsed: int
    shift: Shift


FAMILY: dict[str, Family] = {
    "equipment-windows": Family(4, ("maintenance", "maintenance"), 36, Shift(24, 84)),
    "selective-rework": Family(4, ("drift", "maintenance"), 6, Shift(0, DAY)),
    "constrained-rework": Family(2, ("drift", "drift"), 6, Shift(0, DAY)),
}
FAMILIES = tuple(FAMILY)


class FactoryGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which orders must be complete."""

    orders: tuple[str, ...]


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Three families by five rows of the band's table: 15 in every band."""
    return tuple(
        TaskConfig(
            "factory",
            family,
            f"levels-{levels}-units-{least}-{most}",
            topology,
            band,
            {"levels": levels, "least_units": least, "most_units": most},
        )
        for levels, topology, least, most in BANDS.get(band, BANDS["1M"])
        for family in FAMILIES
    )


def guess(config: TaskConfig) -> int:
    """Orders a level at which calibration begins."""
    return round(_ORDERS[config.band] / int(config.options["levels"]))


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed, ``size`` orders a level (at least 4)."""
    for attempt in range(_ATTEMPTS):
        try:
            return Builder(config, seed, size, attempt).blueprint()
        except StartTooLargeError:
            continue
    raise RuntimeError(f"no draw of {config.id} keeps every start within {LARGEST_START} units")


class StartTooLargeError(Exception):
    """An order would have to start more units than one start may hold."""


class Plan:
    """An order while it is planned."""

    def __init__(self, order_id: str, level: int, position: int, product: Product) -> None:
        self.order_id = order_id
        self.level = level
        self.position = position
        self.product = product
        self.suppliers: list[Plan] = []
        self.fits: list[str] = []
        """of each line to a supplier: ``any`` or ``A``"""
        self.consumers: list[tuple[Plan, int]] = []
        """consumer and index of its line"""
        self.reworkable = 0
        self.scraps = 0
        self.permit = 0
        self.quantity = 0

    @property
    def starts(self) -> int:
        """Units that it must start: its quantity and what is lost."""
        return self.quantity + self.scraps + max(0, self.reworkable - self.permit)

    @property
    def reworked(self) -> int:
        return min(self.reworkable, self.permit)


class Builder:
    def __init__(self, config: TaskConfig, seed: int, width: int, attempt: int) -> None:
        self.key = ("factory", config.id, config.band, seed, attempt)
        self.config = config
        self.family = FAMILY[config.family]
        self.L = int(config.options["levels"])
        self.width = width
        self.ids = Ids(*self.key)
        self.plant = plant()
        self.products: list[Product] = list(seed_tables()["products"].values())  # type: ignore[arg-type]
        self.levels: list[list[Plan]] = []
        self.scrap_styles = 0

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    # -- the whole -------------------------------------------------------------------------------------------------

    def blueprint(self) -> Blueprint:
        for number in range(1, self.L + 1):
            self.levels.append([self._order(number, i) for i in range(self.width)])
        self.orders = [plan for level in self.levels for plan in level]
        self._draw_defects()
        for level in reversed(self.levels):
            for plan in level:
                self._fix_quantity(plan)
        outcomes = {p.order_id: self._outcomes(p) for p in self.orders}
        tables: dict[str, dict[str, Any]] = {
            "orders": {p.order_id: self._record(p) for p in self.orders},
            "order_progress": {p.order_id: Progress() for p in self.orders},
            "lots": self._lots(),
            "shifts": {"all": self.family.shift},
            "calibrations": self._lapsed(),
            "closures": {},
            "units": {},
            "captures": {},
            "outcomes": outcomes,
            "walks": {tool: Walk(f"{self.rng('walk', tool).getrandbits(64):016x}") for tool in self.plant.calibrations},
        }
        goal_text = (
            "Make every production order complete: start its units from accepted units of its suppliers or from raw "
            "stock, run them on a cell, record what must be observed, give each unit its verdict, and top up what was "
            "lost until the ordered quantity is accepted. Stock, grade A units and rework are planned without slack. "
            "Tools may drift and cells may close for maintenance while you work; notices say so. Dispatch every "
            "accepted unit of the terminal orders, leave no booking or allocation open, and close production over the "
            "totals of each level."
        )
        plan_id = self.ids.new("pln", 0)
        brief = {
            "goal": goal_text,
            "plan_id": plan_id,
            "orders": len(self.orders),
            "levels": self.L,
            "ticks_a_day": DAY,
            "shift": self.family.shift,
            "bench_units_a_day": self.family.bench_units_a_day,
        }
        return Blueprint(
            tables=tables,
            updates=self._updates(),
            graph=self._graph(plan_id),
            brief=brief,
            goal=FactoryGoal(tuple(p.order_id for p in self.orders)),
            scale={"Orders": len(self.orders), "Levels": self.L},
        )

    # -- the supply graph ------------------------------------------------------------------------------------------

    def _order(self, level: int, position: int) -> Plan:
        rng = self.rng("order", level, position)
        suppliers = self._suppliers(level, position)
        needed = {s.product.interface for s in suppliers}
        product = rng.choice([p for p in self.products if needed <= set(p.accepts)])
        plan = Plan(self.ids.new("ord", level, position), level, position, product)
        plan.suppliers = suppliers
        plan.fits = ["any", "A" if rng.random() < _FIT_CHANCE else "any"][: len(suppliers)]
        for line, supplier in enumerate(suppliers):
            supplier.consumers.append((plan, line))
        return plan

    def _suppliers(self, level: int, position: int) -> list[Plan]:
        """The order's own one in the level before, where every order has one such consumer, and one by the topology."""
        if level == 1:
            return []
        w, before = self.width, self.levels[level - 2]
        places = list(range(w))
        self.rng("suppliers", level).shuffle(places)
        first = places[position]
        earlier = max(1, level - 2)
        at, place = {
            "mesh": (level - 1, (first + 1) % w),
            "distributed": (earlier, (position + -(-w // 2)) % w),
            "rooted": (1, position % -(-w // 3)),
            "staggered": (earlier if position % 2 else level - 1, (position + 1) % w),
        }[self.config.pattern]
        if (at, place) == (level - 1, first):
            place = (place + 1) % w
        return [before[first], self.levels[at - 1][place]]

    # -- quantities and defects ------------------------------------------------------------------------------------

    def _draw_defects(self) -> None:
        """Which orders lose units; how many rework permits every order has."""
        rng = self.rng("defects")
        n = len(self.orders)
        shuffled = rng.sample(self.orders, n)
        if self.config.family == "equipment-windows":
            for plan in shuffled[: n // 6]:
                plan.scraps = 1
            return
        selective = self.config.family == "selective-rework"
        marked = n // 4 if selective else n // 6
        for number, plan in enumerate(shuffled):
            # an order without defects has a permit too, so that the permit gives nothing away
            plan.permit = rng.randint(2, 3) if selective else rng.randint(1, 2)
            if number < marked:
                plan.reworkable = rng.randint(1, 2)
                plan.permit = plan.reworkable + 1 if selective else plan.reworkable
            if (selective and number < n // 12) or (not selective and marked <= number < marked + n // 12):
                plan.scraps = 1
            if not selective and marked <= number < marked + n // 12:
                plan.reworkable, plan.permit = 2, 1

    def _fix_quantity(self, plan: Plan) -> None:
        """Drawn for a terminal order, else what the consumers start; then which of the lines on it get grade A."""
        rng = self.rng("quantity", plan.level, plan.position)
        if plan.level == self.L:
            plan.quantity = rng.randint(int(self.config.options["least_units"]), int(self.config.options["most_units"]))
        else:
            plan.quantity = sum(consumer.starts for consumer, _ in plan.consumers)
        if plan.reworkable > plan.permit and plan.quantity == 2:
            plan.scraps = 0
        elif plan.reworkable <= plan.permit and (over := plan.reworkable - plan.quantity + 1) > 0:
            plan.reworkable -= over
            plan.permit -= over
        if plan.starts > LARGEST_START:
            raise StartTooLargeError
        tight = [(consumer, line) for consumer, line in plan.consumers if consumer.fits[line] == "A"]
        while tight and sum(consumer.starts for consumer, _ in tight) > plan.quantity - plan.reworked:
            consumer, line = tight.pop()
            consumer.fits[line] = "any"

    def _outcomes(self, plan: Plan) -> Outcomes:
        """Deviations by ordinal: defects among the first ``quantity`` units, top-ups good, and the A units needed."""
        rng = self.rng("outcomes", plan.level, plan.position)
        dimensions = self.plant.dimensions[plan.product.product_id]
        kinds = ["good"] * plan.starts
        defects = ["rework"] * plan.reworkable + ["scrap"] * plan.scraps
        for place, kind in zip(
            rng.sample(range(plan.quantity), len(defects)), rng.sample(defects, len(defects)), strict=True
        ):
            kinds[place] = kind
        tight = sum(consumer.starts for consumer, line in plan.consumers if consumer.fits[line] == "A")
        good = [place for place, kind in enumerate(kinds) if kind == "good"]
        for place in rng.sample(good, min(tight or plan.quantity // 2, len(good))):
            kinds[place] = "A"
        # one more than is needed, for whoever starts too many
        return Outcomes(tuple(self._deviations(kind, dimensions, rng) for kind in (*kinds, "good")))

    def _deviations(self, kind: str, dimensions: list[Characteristic], rng: random.Random) -> tuple[int, ...]:
        """All within half the tolerance; unless the unit is of grade A, one dimension stands out."""
        deviations = [rng.randint(-(c.tolerance_um // 2), c.tolerance_um // 2) for c in dimensions]
        if kind == "A":
            return tuple(deviations)
        bench = [k for k, c in enumerate(dimensions) if c.over_code in self.plant.reworkable]
        lost = [k for k, c in enumerate(dimensions) if c.over_code not in self.plant.reworkable]
        k = rng.choice(bench) if kind == "rework" else rng.randrange(4)
        c = dimensions[k]
        if kind == "good":
            value = rng.choice((-1, 1)) * rng.randint(c.tolerance_um // 2 + 1, c.tolerance_um)
        elif kind == "rework":
            value = rng.randint(c.tolerance_um + 1, c.rework_limit_um)
        else:
            style = self.scrap_styles % 3
            self.scrap_styles += 1
            if style == 2 and lost:
                k = rng.choice(lost)
                value = rng.randint(dimensions[k].tolerance_um + 1, dimensions[k].rework_limit_um)
            elif style == 0:
                value = -rng.randint(c.tolerance_um + 1, c.rework_limit_um)
            else:
                value = rng.randint(c.rework_limit_um + 1, c.rework_limit_um + 40)
        deviations[k] = value
        return tuple(deviations)

    # -- records ---------------------------------------------------------------------------------------------------

    def _record(self, plan: Plan) -> Order:
        rng = self.rng("record", plan.level, plan.position)
        product = plan.product
        if plan.suppliers:
            lines = [
                Line(number, 1, supplier_order=s.order_id, component=s.product.product_id, fit=fit)  # type: ignore[arg-type]
                for number, (s, fit) in enumerate(zip(plan.suppliers, plan.fits, strict=True), 1)
            ]
        else:
            lines = [
                Line(1, 1, material=product.main_material, min_cert=product.min_cert),
                Line(2, 2, material=product.insert_material, min_cert=product.min_cert),
            ]
        mandatory = ("dimensions", *sorted(rng.sample(KINDS[1:], 2)))
        terminal = plan.level == self.L
        return Order(
            plan.order_id,
            plan.level,
            product.product_id,
            plan.quantity,
            terminal,
            tuple(lines),
            mandatory,
            plan.permit,
        )

    def _lots(self) -> dict[str, Lot]:
        """Released lots hold exactly what the first level starts; a quarantined and a low one lie beside them."""
        needed: Counter[str] = Counter()
        certs: dict[str, list[int]] = {}
        for plan in self.levels[0]:
            for material, per_unit in ((plan.product.main_material, 1), (plan.product.insert_material, 2)):
                needed[material] += plan.starts * per_unit
                certs.setdefault(material, []).append(plan.product.min_cert)
        lots: dict[str, Lot] = {}

        def add(key: tuple[object, ...], material: str, cert: int, state: Any, quantity: int) -> None:
            lot_id = self.ids.new("lot", *key)
            lots[lot_id] = Lot(lot_id, material, cert, state, quantity)

        for material, total in sorted(needed.items()):
            rng = self.rng("lots", material)
            cuts = sorted(rng.sample(range(1, total), min(rng.randint(0, 2), total - 1)))
            for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, total], strict=True)):
                add((material, number), material, max(certs[material]), "released", end - start)
            add((material, "quarantined"), material, max(certs[material]), "quarantined", rng.randint(4, 40))
            add((material, "low"), material, min(certs[material]) - 1, "released", rng.randint(4, 40))
        return lots

    def _lapsed(self) -> dict[str, Calibration]:
        """Tools whose newest calibration is void or worn out when the task begins."""
        rng = self.rng("lapsed")
        lapsed = {}
        for tool in sorted(rng.sample(sorted(self.plant.calibrations), self.family.lapsed)):
            newest = self.plant.calibrations[tool][-1]
            void = rng.random() < 0.5
            run = newest.units_run if void else newest.valid_units
            lapsed[newest.calibration_id] = msgspec.structs.replace(newest, void=void, units_run=run)
        return lapsed

    # -- updates and graph -----------------------------------------------------------------------------------------

    def _updates(self) -> tuple[Update, ...]:
        """Two, when two fifths and seven tenths of the orders are complete, where the upper levels will feel them."""
        upper = [plan for level in self.levels[self.L // 2 :] for plan in level]
        programs = [program for plan in upper for program in self.plant.programs[plan.product.product_id]]
        families = Counter(p.tool_family for p in programs)
        cells: Counter[str] = Counter()
        facts = seed_tables()["cells"]
        for program in programs:
            for qualified in self.plant.program_cells[program.program_id]:
                cell: Any = facts[qualified.cell_id]
                if qualified.qualified_until is None and FactoryWorld.able(cell, program):
                    cells[qualified.cell_id] += 1
        by_use = sorted(families, key=lambda f: (-families[f], f))
        by_pairs = sorted(cells, key=lambda c: (-cells[c], c))
        n = len(self.orders)
        updates, drifts, closures = [], 0, 0
        for ordinal, kind in enumerate(self.family.updates, 1):
            at = -(-2 * n // 5) if ordinal == 1 else -(-7 * n // 10)
            if kind == "drift":
                effect: Drift | Maintenance = Drift(by_use[drifts])
                drifts += 1
            else:
                effect = Maintenance(tuple(sorted(by_pairs[6 * closures : 6 * closures + 6])))
                closures += 1
            updates.append(Update(ordinal, "orders_completed", at, effect))
        return tuple(updates)

    def _graph(self, plan_id: str) -> TaskGraph:
        modules = []
        for plan in self.orders:
            needs = tuple(Need(f"order:{s.order_id}", "provenance") for s in plan.suppliers)
            modules.append(Module(f"order:{plan.order_id}", "order", plan.level, plan.order_id, needs))
        terminal = tuple(Need(f"order:{p.order_id}", "quantity") for p in self.levels[-1])
        modules.append(Module("close", "close", self.L, plan_id, terminal))
        return TaskGraph.of(modules)
