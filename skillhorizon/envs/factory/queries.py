"""Queries of the plant. Each list has a declared total order."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.tools import Id, Items, Name, Ref, tool
from skillhorizon.envs.factory.records import HORIZON, Order, Unit
from skillhorizon.envs.factory.seed import Calibration, Cell, Program
from skillhorizon.envs.factory.world import BENCH_DAYS, FactoryWorld

OrderId = Annotated[Id, Meta(description="An order's id.")]
ProgramId = Annotated[Id, Meta(description="A program's id.")]
CellId = Annotated[Id, Meta(description="A cell's id.")]
Family = Annotated[Name, Meta(description="A tool family.")]
Tick = Annotated[int, Meta(ge=0, le=96_000, description="A tick of 15 minutes, 96 a day.")]
Day = Annotated[int, Meta(ge=0, lt=BENCH_DAYS, description="A day, from 0.")]
Level = Annotated[int, Meta(ge=1, le=100)]


# -- queries ---------------------------------------------------------------------------------------------------------


@tool("query", page=10, order="level, then id")
def list_orders(world: FactoryWorld, level: Level | None = None) -> Items:
    """List production orders with their progress in units, of one level or of all."""

    def render(order: Order) -> dict[str, Any]:
        head = {
            "order_id": order.order_id,
            "level": order.level,
            "quantity": order.quantity,
            "terminal": order.terminal,
        }
        return head | asdict(world.progress(order.order_id))

    return Items(world.by_level.get(level, []), render)


@tool("query")
def get_order(world: FactoryWorld, order_id: OrderId) -> dict[str, Any]:
    """Read an order: product, quantity, input lines, mandatory kinds of captures, rework permit, progress."""
    return {**asdict(world.order(order_id)), "progress": world.progress(order_id)}


@tool("query", page=12, order="ordinal, the number that ends the id")
def list_units(world: FactoryWorld, order_id: OrderId) -> Items:
    """List the free accepted units of an order: recorded grade, tick of readiness, raw readings, calibration."""
    world.order(order_id)
    free = world.free_units[order_id]
    units = world.tables["units"]

    def render(unit_id: str) -> dict[str, Any]:
        unit: Unit = units[unit_id]
        return {
            "unit_id": unit_id,
            "grade": unit.verdict,
            "ready": unit.ready,
            "readings_um": world.readings(unit),
            "calibration": unit.calibration,
        }

    return Items(sorted(free, key=free.__getitem__), render)


@tool("query", page=10, order="id")
def list_lots(world: FactoryWorld, material_id: Id) -> Items:
    """List the lots of a material: certificate class, state, quantity left."""
    world.get("materials", material_id)
    lots = world.tables["lots"]
    return Items(world.lots_of.get(material_id, []), lambda lot_id: _without(asdict(lots[lot_id]), "material_id"))


@tool("query", page=10, order="id")
def list_programs(world: FactoryWorld, product_id: Id) -> Items:
    """List the programs that make a product: tool family, needs, set-up, and the cells qualified for each."""
    world.get("products", product_id)

    def render(program: Program) -> dict[str, Any]:
        cells = [
            {"cell_id": c.cell_id, "qualified_until": c.qualified_until}
            for c in world.plant.program_cells[program.program_id]
        ]
        return {**_without(asdict(program), "product_id"), "cells": cells}

    return Items(world.plant.programs[product_id], render)


@tool("query")
def get_program(world: FactoryWorld, program_id: ProgramId) -> dict[str, Any]:
    """Read a program: its revisions with feed and state, and the characteristics as this program measures them."""
    world.get("programs", program_id)
    revisions = [
        {"revision": r.revision, "feed_pct": r.feed_pct, "state": r.state} for r in world.plant.revisions[program_id]
    ]
    characteristics = [_without(asdict(c), "program_id") for c in world.plant.characteristics[program_id]]
    return {"program_id": program_id, "revisions": revisions, "characteristics": characteristics}


@tool("query", page=10, order="seq")
def list_waypoints(world: FactoryWorld, program_id: ProgramId) -> Items:
    """List the waypoints of a program: position in mm, time to move there and to dwell in ms."""
    world.get("programs", program_id)
    return Items(world.plant.waypoints[program_id], lambda w: _without(asdict(w), "program_id"))


@tool("query", page=6, order="id")
def list_cells(world: FactoryWorld) -> Items:
    """List the robot cells: payload, reach, processes, tool families."""

    def render(cell: Cell) -> dict[str, Any]:
        return {
            **asdict(cell),
            "processes": [p.process for p in world.plant.processes[cell.cell_id]],
            "tool_families": [t.tool_family for t in world.plant.tools[cell.cell_id]],
        }

    return Items(world.plant.cells, render)


@tool("query", page=8, order="start, then end")
def list_cell_calendar(world: FactoryWorld, cell_id: CellId, from_tick: Tick) -> Items:
    """List what keeps a cell busy in the four days from a tick, and its clock: the end of its last run."""
    world.get("cells", cell_id)
    busy = sorted(world.busy(cell_id, from_tick, from_tick + HORIZON))
    return Items(busy, lambda b: b._asdict(), {"clock": world.clock_of[cell_id]})


@tool("query", page=3, order="age, newest first")
def list_calibrations(world: FactoryWorld, cell_id: CellId, tool_family: Family) -> Items:
    """List the calibrations of a cell's tool: offsets by axis, units run under each, whether it is void."""
    ids = world.calibrations_of(world.tool(cell_id, tool_family))
    return Items(ids, lambda i: calibration_row(world.get("calibrations", i)))


def calibration_row(calibration: Calibration) -> dict[str, Any]:
    fields = _without(asdict(calibration), "calibration_id", "tool_id")
    return {"calibration": f"{calibration.calibration_id}@1", **fields}


@tool("query", page=10, order="code")
def list_defect_codes(world: FactoryWorld) -> Items:
    """List the defect codes: label, and the route by which such a defect can be reworked."""
    return Items(world.plant.codes)


@tool("query", page=10, order="day")
def list_bench(world: FactoryWorld, from_day: Day) -> Items:
    """List the rework bench's days: units that it takes a day, and how many places are free."""
    bench = world.ledgers["bench"]

    def render(day: int) -> dict[str, Any]:
        return {"day": day, "capacity": bench.capacity[str(day)], "free": bench.free(str(day))}

    return Items(range(from_day, BENCH_DAYS), render)


@tool("query", page=16, order="ordinal of the unit")
def read_instruments(world: FactoryWorld, batch: Ref) -> Items:
    """Read the instruments of a batch version: five captures, and raw readings in µm of each of its units."""
    version = world.artifact(batch, "batch")
    captures = [world.tables["captures"][c] for c in world.captures_of[batch]]
    extra = {
        "captures": [_without(asdict(c), "batch") for c in captures],
        "columns": ["unit", "r1", "r2", "r3", "r4"],
    }
    return Items(world.units_in(version), lambda u: [u.unit_id, *world.readings(u)], extra)


@tool("query")
def get_batch(world: FactoryWorld, batch: Ref) -> dict[str, Any]:
    """Read a batch version: its run, what was recorded of it, and the verdict on each of its units."""
    version = world.artifact(batch, "batch")
    content = _without(asdict(version.content), "unit_ids")
    return {
        "batch": batch,
        **content,
        "recorded": sorted(world.observed.get(batch, ())),
        "verdicts": {u.unit_id: u.verdict for u in world.units_in(version)},
    }


@tool("query", page=10, order="id")
def list_bookings(world: FactoryWorld, state: Literal["open", "run", "void", "cancelled"]) -> Items:
    """List our bookings in one state."""
    return Items(world.bookings[state], lambda ref: {"booking": ref, **asdict(world.artifacts[ref].content)})


@tool("query", page=10, order="id")
def list_past_runs(world: FactoryWorld, program_id: ProgramId) -> Items:
    """List earlier runs of a program, for context."""
    world.get("programs", program_id)
    return Items(world.plant.runs[program_id])


@tool("query", page=10, order="seq")
def list_past_measurements(world: FactoryWorld, run_id: Id) -> Items:
    """List the measurements of an earlier run, for context."""
    world.get("past_runs", run_id)
    return Items(world.plant.measurements[run_id])


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
