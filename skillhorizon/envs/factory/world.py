"""The plant at work: orders over levels, lots and units, cells and calibrations, and the rules that bind them.

Ticks are quarters of an hour, 96 a day; lengths are integer µm. Each rule stands once, in ``rules`` or here, for the
operations, for staleness and for scoring: 1 start, 2 inputs, 3 lots, 4 run time, 5 pair of program and cell, 6 window,
7 calibration in force, 8 reading, 9 grade, 10 rework, 11 readiness, 12 evidence, 13 drift, 14 maintenance, 15
staleness. What a unit truly measures is hidden: only instruments and gauges tell.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from operator import add
from typing import Any, ClassVar

from msgspec.structs import replace

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived, stream
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import Artifact, Update, World
from skillhorizon.envs.factory.records import (
    Booking,
    Capture,
    Closure,
    Deviations,
    Drift,
    LevelTotals,
    Order,
    Progress,
    Shift,
    Unit,
    Verdict,
    Walk,
)
from skillhorizon.envs.factory.rules import after_rework, graded
from skillhorizon.envs.factory.seed import (
    DAY,
    VALID_UNITS,
    Busy,
    Calibration,
    Cell,
    Characteristic,
    Program,
    ProgramCell,
    moved,
    plant,
)

LONGEST_RUN = 36
"""Ticks of the longest run that the rules allow (rule 4 with 60 units)."""
BENCH_DAYS = 1_000
KINDS = ("dimensions", "clamp_force", "coolant_ph", "spindle_load", "surface_temp")
TOTALS = ("started", "accepted", "reworked", "scrapped", "shipped")
BOOKING_STATES = ("open", "run", "void", "cancelled")


# -- arithmetic ------------------------------------------------------------------------------------------------------


class FactoryWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {
        "allocation": "alo",
        "calibration": "cal",
        "booking": "bkg",
        "batch": "bat",
        "observation": "obs",
        "disposition": "dsp",
        "completion": "cpl",
        "shipment": "shp",
        "close": "clo",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        self.plant = plant()
        t = self.tables
        self.plan_id: str = self.brief.get("plan_id", "")
        self.shift: Shift = t["shifts"]["all"]
        orders: list[Order] = sorted(t["orders"].values(), key=lambda o: (o.level, o.order_id))
        self.by_level: dict[int | None, list[Order]] = {None: orders}
        for order in orders:
            self.by_level.setdefault(order.level, []).append(order)
        self.lots_of: dict[str, list[str]] = {}
        for lot_id in sorted(t["lots"]):
            self.lots_of.setdefault(t["lots"][lot_id].material_id, []).append(lot_id)
        self.totals = {level: dict.fromkeys(TOTALS, 0) for level in self.by_level if level is not None}
        self.on_hold = 0
        self.ledgers["bench"] = Ledger(
            dict.fromkeys(map(str, range(BENCH_DAYS)), self.brief.get("bench_units_a_day", 0))
        )
        # what follows is derived from the records and artifacts, kept so that no call searches them
        self.units_of: dict[str, list[str]] = {o.order_id: [] for o in orders}
        self.free_units: dict[str, dict[str, int]] = {o.order_id: {} for o in orders}
        """order -> its free accepted units -> ordinal"""
        self.made: dict[tuple[str, str], int] = {}
        """(kind, order) -> artifacts made so far"""
        self.clock_of: dict[str, int] = dict.fromkeys((c.cell_id for c in self.plant.cells), 0)
        """cell -> end of its last run"""
        self.own: dict[str, list[tuple[int, int, str]]] = {cell: [] for cell in self.clock_of}
        """cell -> our bookings that are open or were run, by start"""
        self.closed: dict[str, list[Busy]] = {cell: [] for cell in self.clock_of}
        self.bookings: dict[str, list[str]] = {state: [] for state in BOOKING_STATES}
        self.booking_state: dict[str, str] = {}
        self.bookings_of: dict[str, list[str]] = {}
        """allocation -> its bookings"""
        self.open_allocations: dict[str, None] = {}
        self.captures_of: dict[str, list[str]] = {}
        self.observed: dict[str, set[str]] = {}
        """batch version -> kinds recorded"""
        self.observations_of: dict[str, list[str]] = {}
        """batch version -> its observations"""
        self.disposition_of: dict[str, str] = {}
        """batch version -> id of its disposition"""
        self.reworked_units: dict[str, None] = {}
        self._days: dict[tuple[str, int], list[Busy]] = {}
        self._exact: dict[tuple[str, str], list[int]] = {}
        self._calibrations: dict[str, list[str]] = {}

    # -- looking up ------------------------------------------------------------------------------------------------

    def order(self, order_id: str) -> Order:
        order: Order = self.get("orders", order_id)
        return order

    def progress(self, order_id: str) -> Progress:
        progress: Progress = self.tables["order_progress"][order_id]
        return progress

    def unit(self, unit_id: str) -> Unit:
        unit: Unit = self.get("units", unit_id)
        return unit

    def tool(self, cell_id: str, tool_family: str) -> str:
        """The cell's tool of a family, or the refusal ``unknown_id``."""
        self.get("cells", cell_id)
        tool_id = self.plant.tool_at.get((cell_id, tool_family))
        if tool_id is None:
            raise Rejected("unknown_id", f"{cell_id} has no tool of family {tool_family!r}", id=tool_family)
        return tool_id

    def calibration(self, ref: str) -> Calibration:
        """By reference; a calibration has one version."""
        identity, _, version = ref.partition("@")
        if version != "1":
            raise Rejected("unknown_id", f"no calibration {ref!r}", id=ref)
        calibration: Calibration = self.get("calibrations", identity)
        return calibration

    def calibrations_of(self, tool_id: str) -> list[str]:
        """Ids of a tool's calibrations, newest first."""
        known = self._calibrations.get(tool_id)
        if known is None:
            known = [c.calibration_id for c in reversed(self.plant.calibrations[tool_id])]
            self._calibrations[tool_id] = known
        return known

    def newest_of(self, kind: str, subject: str) -> Artifact | None:
        """The newest version of the one artifact of this kind about this subject."""
        return self.newest.get(derived(self.prefixes[kind], subject))

    def sources_of(self, units: Iterable[Unit]) -> list[str]:
        """The dispositions that gave units their verdicts, by reference, each once."""
        batches = dict.fromkeys((unit.batch_id, unit.version) for unit in units)
        return [self.newest[self.disposition_of[f"{batch}@{version}"]].ref for batch, version in batches]

    def ordinal(self, kind: str, subject: str) -> int:
        """The next ordinal of artifacts of this kind about an order."""
        number = self.made[kind, subject] = self.made.get((kind, subject), 0) + 1
        return number

    def units_in(self, batch: Artifact) -> list[Unit]:
        """The units of a batch version: those that no later version took over."""
        units = (self.tables["units"][u] for u in batch.content.unit_ids)
        return [u for u in units if u.version == batch.version]

    # -- what is true of a unit (hidden) ---------------------------------------------------------------------------

    def dimensions(self, order_id: str) -> list[Characteristic]:
        return self.plant.dimensions[self.tables["orders"][order_id].product_id]

    def deviations(self, unit: Unit) -> Deviations:
        """True deviations as they are now, after its reworks. Units beyond those planned turn out like the last."""
        outcomes = self.tables["outcomes"][unit.order_id].deviations
        deviations: Deviations = outcomes[min(unit.ordinal, len(outcomes)) - 1]
        for _ in range(unit.reworks):
            deviations = after_rework(self.dimensions(unit.order_id), deviations, self.plant.reworkable)
        return deviations

    def true_grade(self, unit: Unit) -> Verdict:
        return graded(self.dimensions(unit.order_id), self.deviations(unit), self.plant.reworkable)[0]

    def justly_reworked(self, unit: Unit) -> bool:
        """Whether the bench was what the unit needed, each time."""
        return unit.reworks == 1 and self.true_grade(replace(unit, reworks=0)) == "rework"

    def readings(self, unit: Unit) -> list[int]:
        """Rule 8: what the instruments show, under the calibration of the unit's run."""
        return list(map(add, self._shown(unit.program_id, unit.calibration), self.deviations(unit)))

    def _shown(self, program_id: str, calibration: str) -> list[int]:
        """What a program's instruments show of a unit without deviations."""
        known = self._exact.get((program_id, calibration))
        if known is None:
            offsets = self.calibration(calibration).offsets_um
            rows = self.plant.characteristics[program_id]
            known = self._exact[program_id, calibration] = [c.nominal_um + getattr(offsets, c.axis) for c in rows]
        return known

    # -- rules 5 to 7: cells, windows, calibrations ----------------------------------------------------------------

    def qualification(self, program: Program, cell_id: str) -> ProgramCell | None:
        return next((c for c in self.plant.program_cells[program.program_id] if c.cell_id == cell_id), None)

    @staticmethod
    def able(cell: Cell, program: Program) -> bool:
        """Rule 5: the cell carries and reaches what the program needs."""
        return cell.payload_g >= program.payload_g and cell.reach_mm >= program.reach_mm

    def busy(self, cell_id: str, start: int, end: int) -> Iterator[Busy]:
        """Rule 6: everything that keeps a cell from working within [start, end), in no order."""
        for day in range(start // DAY, (end - 1) // DAY + 1):
            yield from (b for b in self._day(cell_id, day) if b.end > start and b.start < end)
        yield from (b for b in self.closed[cell_id] if b.end > start and b.start < end)
        own = self.own[cell_id]
        for first, last, _ in own[bisect_left(own, (start - LONGEST_RUN,)) : bisect_left(own, (end,))]:
            if last > start:
                yield Busy(first, last, "own")

    def _day(self, cell_id: str, day: int) -> list[Busy]:
        """The hours outside the shift, maintenance and other customers' bookings of one day."""
        known = self._days.get((cell_id, day))
        if known is None:
            known = list(self.plant.busy.get((cell_id, day), ()))
            if self.shift.opens:
                known.append(Busy(day * DAY, day * DAY + self.shift.opens, "closed"))
            if self.shift.closes < DAY:
                known.append(Busy(day * DAY + self.shift.closes, (day + 1) * DAY, "closed"))
            self._days[cell_id, day] = known
        return known

    @staticmethod
    def holds(calibration: Calibration, units: int) -> bool:
        """Rule 7 but for being the newest: not void, and good for so many more units."""
        return not calibration.void and calibration.units_run + units <= calibration.valid_units

    # -- changes that several operations make ----------------------------------------------------------------------

    def tally(self, order_id: str, **changes: int) -> Progress:
        """Add to an order's progress and to the totals of its level."""
        before = self.progress(order_id)
        after: Progress = self.amend(
            "order_progress", order_id, **{name: getattr(before, name) + n for name, n in changes.items() if n}
        )
        totals = self.totals[self.tables["orders"][order_id].level]
        moved_totals = False
        for name, amount in changes.items():
            if name == "on_hold":
                self.on_hold += amount
            elif name != "in_process" and amount:
                totals[name] += amount
                moved_totals = True
        if moved_totals:
            self.changed("totals", cause=f"the totals of {order_id} changed")
        return after

    def set_unit(self, unit: Unit, **changes: Any) -> Unit:
        """Change fields of a unit, and keep the index of free units."""
        unit = replace(unit, **changes)
        self.put("units", unit.unit_id, unit)
        free = self.free_units[unit.order_id]
        if unit.place == "stock" and unit.accepted:
            free[unit.unit_id] = unit.ordinal
        else:
            free.pop(unit.unit_id, None)
        return unit

    def commit(self, unit_ids: Iterable[str], place: str) -> None:
        """Take units out of stock, or from allocation into use."""
        units, free = self.tables["units"], self.free_units
        for unit_id in unit_ids:
            unit = replace(units[unit_id], place=place)
            self.put("units", unit_id, unit)
            free[unit.order_id].pop(unit_id, None)

    def move_booking(self, ref: str, state: str) -> None:
        """Into another state; a cancelled or void booking no longer keeps its cell."""
        before = self.booking_state.get(ref)
        if before is not None:
            refs = self.bookings[before]
            del refs[bisect_left(refs, ref)]
        self.booking_state[ref] = state
        insort(self.bookings[state], ref)
        booking: Booking = self.artifacts[ref].content
        slot = (booking.start, booking.end, ref)
        if before is None:
            insort(self.own[booking.cell_id], slot)
        elif state in ("void", "cancelled"):
            self.own[booking.cell_id].remove(slot)

    # -- staleness (rule 15) ---------------------------------------------------------------------------------------

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        """Allocations, open bookings, calibrations, completions and the close; nothing else ever becomes stale."""
        content = artifact.content
        if artifact.kind == "allocation":
            if artifact.ref not in self.open_allocations:
                return None
            units = (self.tables["units"][u] for i in content.inputs for u in i.unit_ids)
            return next((f"{u.unit_id} is no longer accepted" for u in units if not u.accepted), None)
        if artifact.kind == "booking":
            if self.booking_state.get(artifact.ref) == "run":
                return None
            if self.calibration(content.calibration).void:
                return f"{content.calibration} is void"
            shut = any(b.end > content.start and b.start < content.end for b in self.closed[content.cell_id])
            return f"{content.cell_id} is closed for maintenance" if shut else None
        if artifact.kind == "calibration":
            return cause if self.tables["calibrations"][artifact.id].void else None
        if artifact.kind == "completion":
            return cause if self.progress(content.order_id).accepted < content.quantity else None
        if artifact.kind == "close":
            return cause if any(not self.agrees(row) for row in content.levels) else None
        return None

    def agrees(self, row: LevelTotals) -> bool:
        return all(getattr(row, name) == total for name, total in self.totals[row.level].items())

    # -- updates ---------------------------------------------------------------------------------------------------

    def apply_update(self, update: Update) -> None:
        effect = update.effect
        if isinstance(effect, Drift):
            text = f"Tools of family {effect.tool_family} have drifted: every calibration of theirs is void."
            self.announce("tooling_drift", (effect.tool_family,), text)
            keys = [c for t in self.plant.tools_of_family[effect.tool_family] for c in self.calibrations_of(t.tool_id)]
            for calibration_id in keys:
                self.amend("calibrations", calibration_id, void=True)
        else:
            spans = []
            for cell_id in effect.cells:
                start = self.clock_of[cell_id]
                self.closed[cell_id].append(Busy(start, start + DAY, "maintenance"))
                closure = Closure(cell_id, start, start + DAY)
                self.put("closures", f"{cell_id}/{update.ordinal}", closure)
                spans.append(f"{cell_id} from tick {start} to {start + DAY}")
            text = f"Closed for maintenance: {', '.join(spans)}."
            self.announce("cell_maintenance", effect.cells, text)
            keys = list(effect.cells)
        self.changed(*keys, cause=text)
        for artifact in self.voided:
            if artifact.kind == "booking" and self.booking_state[artifact.ref] == "open":
                self.move_booking(artifact.ref, "void")

    # -- run-time draws --------------------------------------------------------------------------------------------

    def calibrate(self, tool_id: str, made_at: int) -> Calibration:
        """What calibrating a tool finds now: the offsets have moved since the calibration before."""
        ids = self.calibrations_of(tool_id)
        before: Calibration = self.get("calibrations", ids[0])
        number = len(ids) + 1
        walk: Walk = self.tables["walks"][tool_id]
        offsets = moved(before.offsets_um, stream(walk.key, number))
        calibration = Calibration(derived("cal", tool_id, number), tool_id, offsets, made_at, VALID_UNITS, 0, False)
        self.put("calibrations", calibration.calibration_id, calibration)
        ids.insert(0, calibration.calibration_id)
        return calibration

    def take_captures(self, batch: Artifact) -> None:
        """The instruments' five records of a batch version; the ids tell nothing of the kinds."""
        order_id = batch.subject
        rng = stream(self.plan_id, "captures", batch.ref)
        kinds = rng.sample(KINDS, len(KINDS))
        first = self.made.get(("capture", order_id), 0)
        self.made["capture", order_id] = first + len(kinds)
        ids = self.captures_of[batch.ref] = []
        for number, kind in enumerate(kinds, first + 1):
            capture_id = derived("cap", order_id, number)
            low = rng.randint(*_RANGES[kind])
            capture = Capture(capture_id, batch.ref, kind, low, low + rng.randint(1, 40))
            self.put("captures", capture_id, capture)
            ids.append(capture_id)


_RANGES = {
    "dimensions": (4, 12),
    "clamp_force": (2_400, 3_100),
    "coolant_ph": (84, 93),
    "spindle_load": (310, 620),
    "surface_temp": (285, 390),
}
"""Where the lower ends of captures lie: readings, N, tenths, tenths of a per cent, tenths of a kelvin."""
