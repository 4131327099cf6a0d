"""The plant that all tasks share: cells and their calendars, programs, products, materials, history. Read-only.

Ticks are quarters of an hour, 96 a day; lengths are µm (waypoints and reach mm), times ms. The records are made in
code from named random streams, in exactly the numbers of the paper's Table 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations
from operator import attrgetter
from typing import Any, Literal, NamedTuple, TypeVar

from skillhorizon.core.ids import Ids, derived, stream
from skillhorizon.core.world import Record

DAY = 96
"""Ticks of a day."""
DAYS = 40
"""Days for which the plant's own calendars are kept, from day 0."""
FREE = (36, 72)
"""Ticks of every cell's day that maintenance and other customers leave free."""
AXES = ("x", "y", "z", "r")
FAMILIES = ("bore", "deburr", "drill", "face", "ream", "slot")
VALID_UNITS = 72
WIDEST = 150
"""Offsets stay within so many µm on every axis."""
LONGEST_MS = 400_000
"""No program's cycle is longer."""
_INTERFACES = ("bayonet", "dovetail", "flange", "pilot", "spigot", "tenon")
_PROCESSES = ("boring", "brushing", "deburring", "drilling", "facing", "gauging", "reaming", "slotting", "washing")
_LABELS = (
    "bore undersize", "bore oversize", "burr at entry", "burr at exit", "chatter marks", "chip recut", "face bellied",
    "face proud", "feed marks", "edge rolled", "pocket deep", "pocket shallow", "position drift", "run-out",
    "shoulder proud", "slot narrow", "slot wide", "taper",
)  # fmt: skip
_CALIBRATIONS, _RUNS = 15, 8


class Cell(Record, frozen=True):
    cell_id: str
    payload_g: int
    reach_mm: int


class CellProcess(Record, frozen=True):
    cell_id: str
    process: str


class CellTool(Record, frozen=True):
    tool_id: str
    cell_id: str
    tool_family: str


class Offsets(Record, frozen=True):
    """µm by axis."""

    x: int
    y: int
    z: int
    r: int


class Calibration(Record, frozen=True):
    """``made_at`` is a tick, negative before day 0; ``units_run`` counts the units run under it."""

    calibration_id: str
    tool_id: str
    offsets_um: Offsets
    made_at: int
    valid_units: int
    units_run: int
    void: bool


class Window(Record, frozen=True):
    """Maintenance of a cell, from ``start`` up to but not including ``end``."""

    cell_id: str
    start: int
    end: int


class Occupancy(Record, frozen=True):
    """Another customer's booking."""

    cell_id: str
    start: int
    end: int


class Product(Record, frozen=True):
    """``accepts`` are the interfaces of components that may be built in."""

    product_id: str
    interface: str
    accepts: tuple[str, str, str]
    main_material: str
    insert_material: str
    min_cert: int


class Material(Record, frozen=True):
    material_id: str
    kind: Literal["main", "insert"]


class Program(Record, frozen=True):
    program_id: str
    product_id: str
    tool_family: str
    payload_g: int
    reach_mm: int
    setup_ticks: int


class Revision(Record, frozen=True):
    program_id: str
    revision: int
    feed_pct: int
    state: Literal["retired", "released", "draft"]


class ProgramCell(Record, frozen=True):
    """``qualified_until`` is a tick, or None where the qualification does not end."""

    program_id: str
    cell_id: str
    qualified_until: int | None


class Waypoint(Record, frozen=True):
    program_id: str
    seq: int
    x: int
    y: int
    z: int
    move_ms: int
    dwell_ms: int


class Characteristic(Record, frozen=True):
    """Dimension ``k`` of a product, as this program sees it: on which axis it is measured."""

    program_id: str
    k: int
    axis: str
    nominal_um: int
    tolerance_um: int
    rework_limit_um: int
    over_code: str
    under_code: str


class DefectCode(Record, frozen=True):
    code: str
    label: str
    rework_route: Literal["bench", "none"]


class PastRun(Record, frozen=True):
    run_id: str
    program_id: str
    revision: int
    cell_id: str
    made_at: int
    units: int
    accepted: int


class PastMeasurement(Record, frozen=True):
    measurement_id: str
    run_id: str
    seq: int
    axis: str
    reading_um: int


class Busy(NamedTuple):
    """A cell cannot work from ``start`` up to but not including ``end``."""

    start: int
    end: int
    kind: str


def moved(offsets: Offsets, rng: random.Random) -> Offsets:
    """What the next calibration of a tool finds: 20 to 50 µm away on every axis."""

    def step(offset: int) -> int:
        distance = rng.choice((-1, 1)) * rng.randint(20, 50)
        return offset + distance if abs(offset + distance) <= WIDEST else offset - distance

    return Offsets(step(offsets.x), step(offsets.y), step(offsets.z), step(offsets.r))


# -- the records -----------------------------------------------------------------------------------------------------


class _Seed:
    """Makes the tables one after the other; each later one refers to earlier ones."""

    def __init__(self) -> None:
        self.ids = Ids("factory seed")
        self.tables: dict[str, dict[str, Any]] = {}

    def rng(self, *key: object) -> random.Random:
        return stream("factory seed", *key)

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables.setdefault(table, {})[key] = record

    def tables_made(self) -> Mapping[str, Mapping[str, Record]]:
        self._cells()
        self._calibrations()
        self._calendars()
        self._materials_and_codes()
        self._products()
        self._programs()
        self._history()
        return self.tables

    def _cells(self) -> None:
        self.cells = sorted(self.ids.new("cel", n) for n in range(18))
        rng = self.rng("cells")
        payloads = rng.sample(range(4_000, 22_000, 500), 18)
        reaches = rng.sample(range(900, 2_800, 50), 18)
        self.tools: dict[tuple[str, str], str] = {}
        for n, cell in enumerate(self.cells):
            self.put("cells", cell, Cell(cell, payloads[n], reaches[n]))
            for process in sorted(rng.sample(_PROCESSES, 5)):
                self.put("cell_processes", f"{cell}/{process}", CellProcess(cell, process))
            lacking = {FAMILIES[n % 6], FAMILIES[(n + 1 + n // 6) % 6]}
            for family in FAMILIES:
                if family not in lacking:
                    tool_id = self.tools[cell, family] = self.ids.new("tol", n, family)
                    self.put("cell_tools", tool_id, CellTool(tool_id, cell, family))

    def _calibrations(self) -> None:
        for (cell, family), tool_id in self.tools.items():
            rng = self.rng("calibrations", cell, family)
            offsets = Offsets(*(rng.randint(-100, 100) for _ in AXES))
            made = -rng.randint(30, 40) * _CALIBRATIONS * 2
            for n in range(1, _CALIBRATIONS + 1):
                calibration_id = derived("cal", tool_id, n)
                newest = n == _CALIBRATIONS
                run = rng.randint(0, VALID_UNITS - 36) if newest else rng.randint(60, VALID_UNITS)
                calibration = Calibration(calibration_id, tool_id, offsets, made, VALID_UNITS, run, False)
                self.put("calibrations", calibration_id, calibration)
                offsets = moved(offsets, rng)
                made += rng.randint(30, 60)

    def _calendars(self) -> None:
        for n, cell in enumerate(self.cells):
            for day in range(DAYS):
                rng = self.rng("calendar", cell, day)
                bookings = 2 + (n + day) % 2
                early = 1 + rng.randrange(bookings)
                # maintenance takes one place more, before the free ticks or after them
                before = early + (upkeep_early := rng.random() < 0.5)
                spans = [
                    *self._spans(rng, day * DAY, day * DAY + FREE[0], before),
                    *self._spans(rng, day * DAY + FREE[1], (day + 1) * DAY, bookings + 1 - before),
                ]
                upkeep = rng.randrange(before) if upkeep_early else rng.randrange(before, bookings + 1)
                start, end = spans.pop(upkeep)
                self.put("maintenance_windows", f"{cell}/{day}", Window(cell, start, end))
                for number, (start, end) in enumerate(spans):
                    self.put("occupancy", f"{cell}/{day}/{number}", Occupancy(cell, start, end))

    @staticmethod
    def _spans(rng: random.Random, start: int, end: int, count: int) -> list[tuple[int, int]]:
        """``count`` spans that do not meet, one in each equal part of the range."""
        width = (end - start) // max(count, 1)
        found = []
        for n in range(count):
            begin = start + n * width + rng.randint(0, width // 3)
            found.append((begin, begin + rng.randint(3, max(3, width // 2))))
        return found

    def _materials_and_codes(self) -> None:
        self.materials: dict[str, list[str]] = {"main": [], "insert": []}
        for kind in ("main", "insert"):
            for n in range(20):
                material_id = self.ids.new("mat", kind, n)
                self.materials[kind].append(material_id)
                self.put("materials", material_id, Material(material_id, kind))
        self.codes: dict[str, list[str]] = {"bench": [], "none": []}
        for n, label in enumerate(_LABELS):
            code = self.ids.new("dfc", n)
            route = "none" if n % 9 in (1, 4, 6, 8) else "bench"
            self.codes[route].append(code)
            self.put("defect_codes", code, DefectCode(code, label, route))  # type: ignore[arg-type]

    def _products(self) -> None:
        self.dimensions: dict[str, list[tuple[int, int, int, str, str]]] = {}
        triples = list(combinations(_INTERFACES, 3)) * 3
        self.rng("accepts").shuffle(triples)
        every_code = [*self.codes["bench"], *self.codes["none"]]
        for n in range(60):
            rng = self.rng("product", n)
            product_id = self.ids.new("prd", n)
            main, insert = rng.choice(self.materials["main"]), rng.choice(self.materials["insert"])
            interface = _INTERFACES[n % 6]
            self.put(
                "products", product_id, Product(product_id, interface, triples[n], main, insert, rng.randint(2, 4))
            )
            dimensions = []
            for k in range(4):
                nominal, tolerance = rng.randint(40, 900) * 100, rng.choice((60, 80, 100))
                over = rng.choice(self.codes["bench"] if k == n % 4 else every_code)
                under = rng.choice([c for c in every_code if c != over])
                dimensions.append((nominal, tolerance, tolerance + rng.choice((40, 60, 80)), over, under))
            self.dimensions[product_id] = dimensions

    def _programs(self) -> None:
        self.cells_of: dict[str, list[str]] = {}
        for n, product_id in enumerate(self.dimensions):
            rng = self.rng("programs", n)
            families = rng.sample(FAMILIES, 3)
            axes = list(AXES)
            rng.shuffle(axes)
            for m, family in enumerate(families):
                program_id = self.ids.new("prg", n, m)
                self._program(program_id, product_id, family, self.rng("program", n, m))
                for k, dimension in enumerate(self.dimensions[product_id]):
                    key, axis = f"{program_id}/{k + 1}", axes[(k + m) % 4]
                    self.put("characteristics", key, Characteristic(program_id, k + 1, axis, *dimension))

    def _program(self, program_id: str, product_id: str, family: str, rng: random.Random) -> None:
        """Three cells of which two are eligible for good; the third is expired, too weak or too short."""
        cells = rng.sample([c for c in self.cells if (c, family) in self.tools], 3)
        fault = rng.choice(("expired", "payload_g", "reach_mm"))
        facts = self.tables["cells"]
        payload = min(facts[c].payload_g for c in cells) - rng.randint(2, 8) * 100
        reach = min(facts[c].reach_mm for c in cells) - rng.randint(1, 4) * 20
        unfit = rng.choice(cells)
        if fault != "expired":
            unfit, next_one = sorted(cells, key=lambda c: getattr(facts[c], fault))[:2]
            limit = getattr(facts[next_one], fault)
            payload, reach = (limit, reach) if fault == "payload_g" else (payload, limit)
        program = Program(program_id, product_id, family, payload, reach, rng.randint(1, 2))
        self.put("programs", program_id, program)
        self.cells_of[program_id] = sorted(cells)
        for cell in cells:
            until = -rng.randint(1, 30) * DAY if fault == "expired" and cell == unfit else None
            self.put("program_cells", f"{program_id}/{cell}", ProgramCell(program_id, cell, until))
        newest = rng.choice(("draft", "draft", "released"))
        states = ("retired", "released", "draft") if newest == "draft" else ("retired", "retired", "released")
        for revision, (state, feed) in enumerate(zip(states, rng.sample(range(80, 121, 5), 3), strict=True), 1):
            self.put("program_revisions", f"{program_id}/{revision}", Revision(program_id, revision, feed, state))  # type: ignore[arg-type]
        times = [(rng.randint(30, 120) * 100, rng.randint(80, 300) * 100) for _ in range(10)]
        while sum(map(sum, times)) > LONGEST_MS:
            longest = max(range(10), key=lambda i: times[i][1])
            times[longest] = (times[longest][0], max(8_000, times[longest][1] - 5_000))
        side = reach * 5 // 9  # a cube of this side lies within reach
        for seq, (move, dwell) in enumerate(times, 1):
            x, y, z = rng.randint(-side, side), rng.randint(-side, side), rng.randint(40, side)
            self.put("waypoints", f"{program_id}/{seq:02d}", Waypoint(program_id, seq, x, y, z, move, dwell))

    def _history(self) -> None:
        for program_id in self.tables["programs"]:
            rng = self.rng("history", program_id)
            cells = self.cells_of[program_id]
            for n in range(_RUNS):
                run_id = self.ids.new("run", program_id, n)
                units = rng.randint(4, 48)
                accepted = units - rng.choice((0, 0, 0, 1, 2))
                made = -rng.randint(2, 60) * DAY + rng.randint(36, 60)
                run = PastRun(run_id, program_id, rng.randint(1, 2), rng.choice(cells), made, units, accepted)
                self.put("past_runs", run_id, run)
                for seq, axis in enumerate(sorted(rng.sample(AXES, 3)), 1):
                    nominal = rng.choice(self.dimensions[self.tables["programs"][program_id].product_id])[0]
                    reading = nominal + rng.randint(-90, 90)
                    key = derived("msr", run_id, seq)
                    self.put("past_measurements", key, PastMeasurement(key, run_id, seq, axis, reading))


@cache
def seed_tables() -> Mapping[str, Mapping[str, Record]]:
    """All 13,438 records by table and key; made once a process."""
    return _Seed().tables_made()


# -- the records by what they belong to ------------------------------------------------------------------------------


class Plant:
    """The seed records grouped as the tools and the rules ask for them, each group in its declared order."""

    def __init__(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        rows = {name: list(table.values()) for name, table in tables.items()}
        for table, field in (
            ("cells", "cell_id"), ("programs", "program_id"), ("program_cells", "cell_id"),
            ("defect_codes", "code"), ("past_runs", "run_id"),
        ):  # fmt: skip
            rows[table].sort(key=attrgetter(field))
        self.cells: list[Cell] = rows["cells"]
        self.codes: list[DefectCode] = rows["defect_codes"]
        self.reworkable = frozenset(c.code for c in self.codes if c.rework_route == "bench")
        self.processes: Groups[CellProcess] = _grouped(rows["cell_processes"], "cell_id")
        self.tools: Groups[CellTool] = _grouped(rows["cell_tools"], "cell_id")
        self.tools_of_family: Groups[CellTool] = _grouped(rows["cell_tools"], "tool_family")
        self.tool_at: dict[tuple[str, str], str] = {(t.cell_id, t.tool_family): t.tool_id for t in rows["cell_tools"]}
        self.calibrations: Groups[Calibration] = _grouped(rows["calibrations"], "tool_id")
        """oldest first; how a calibration stands now is the world's"""
        self.programs: Groups[Program] = _grouped(rows["programs"], "product_id")
        self.revisions: Groups[Revision] = _grouped(rows["program_revisions"], "program_id")
        self.program_cells: Groups[ProgramCell] = _grouped(rows["program_cells"], "program_id")
        self.waypoints: Groups[Waypoint] = _grouped(rows["waypoints"], "program_id")
        self.characteristics: Groups[Characteristic] = _grouped(rows["characteristics"], "program_id")
        self.runs: Groups[PastRun] = _grouped(rows["past_runs"], "program_id")
        self.measurements: Groups[PastMeasurement] = _grouped(rows["past_measurements"], "run_id")
        self.cycle_ms = {p: sum(w.move_ms + w.dwell_ms for w in points) for p, points in self.waypoints.items()}
        self.dimensions = {p: self.characteristics[programs[0].program_id] for p, programs in self.programs.items()}
        """product -> its four dimensions; their axes are those of one of its programs and mean nothing here"""
        self.busy: dict[tuple[str, int], list[Busy]] = {}
        """(cell, day) -> maintenance and other customers' bookings, by start"""
        for kind, table in (("maintenance", "maintenance_windows"), ("booked", "occupancy")):
            for span in rows[table]:
                self.busy.setdefault((span.cell_id, span.start // DAY), []).append(Busy(span.start, span.end, kind))
        for spans in self.busy.values():
            spans.sort()


R = TypeVar("R", bound=Record)
Groups = dict[str, list[R]]


def _grouped(records: Iterable[R], field: str) -> Groups[R]:
    groups: Groups[R] = {}
    for record in records:
        groups.setdefault(getattr(record, field), []).append(record)
    return groups


@cache
def plant() -> Plant:
    return Plant(seed_tables())
