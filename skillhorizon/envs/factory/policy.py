"""The reference procedure of the plant, and the plausible mistakes around it.

Orders by level, each made, observed, graded, reworked and topped up before the next one. Programs, orders and
calibrations are read once and remembered until a notice; stock, free units and calendars are always read anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from skillhorizon.core.policy import Job, Memory, Steps, ask, ask_all, run_script
from skillhorizon.envs.factory.records import LARGEST_START
from skillhorizon.envs.factory.seed import DAY
from skillhorizon.envs.factory.world import TOTALS

SKILLS = (
    "dispatch-and-close",
    "execute-and-observe",
    "grade-produced-units",
    "rework-selectively",
    "schedule-equipment",
    "trace-material-demand",
    "verify-tool-calibration",
)


class FactoryPolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.brief: dict[str, Any] = {}
        self.cells: dict[str, dict[str, Any]] = {}
        self.reworkable: list[str] = []
        self.waiting: dict[str, dict[str, Any]] = {}
        """orders that were not started yet, in the order of the list"""
        self.level_of: dict[str, int] = {}
        self.open_in_level: dict[int, int] = {}
        """level -> its orders that are not complete"""
        self.complete: dict[str, None] = {}
        self.short: dict[str, int] = {}
        """started orders -> units still to be started"""
        self.on_hold: dict[str, list[tuple[str, int, list[str]]]] = {}
        """order -> batch versions, their ends, and their units that wait for the bench"""
        self.reworked: dict[str, int] = {}
        self.bench_day = 0
        """the day last used on the bench; those before are mostly full"""
        self.clock: dict[str, int] = {}
        self.to_ship: dict[str, None] = {}
        self.notices_read = 0
        self.closed = False

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        self.brief = yield from ask("read_task_brief")
        yield from ask("list_skills")
        for skill in SKILLS:
            yield from ask("read_skill_file", skill=skill)
        cells = yield from ask_all("list_cells")
        self.cells = {cell["cell_id"]: cell for cell in cells}
        self.memory.keep("cells", self.cells)
        codes = yield from ask_all("list_defect_codes")
        self.reworkable = [code["code"] for code in codes if code["rework_route"] == "bench"]
        self.memory.keep("codes", codes)
        for order in (yield from ask_all("list_orders")):
            self.waiting[order["order_id"]] = order
            self.level_of[order["order_id"]] = order["level"]
            self.open_in_level[order["level"]] = self.open_in_level.get(order["level"], 0) + 1

    def ready(self) -> Iterator[Job]:
        """Production is closed once nothing else can be done."""
        jobs = self._jobs()
        first = next(jobs, None)
        if first is not None:
            yield first
            yield from jobs
        elif self.level_of and not self.closed:
            yield Job("close", self._close)

    def _jobs(self) -> Iterator[Job]:
        for order_id in self.on_hold:
            yield Job(f"rework:{order_id}", partial(self._rework, order_id))
        for order_id in self.short:
            if order_id not in self.on_hold:
                yield Job(f"top-up:{order_id}", partial(self._start, order_id))
        for order_id in self.to_ship:
            yield Job(f"dispatch:{order_id}", partial(self._dispatch, order_id))
        for order_id, listed in self.waiting.items():
            known = self.memory.get(("order", order_id))
            if known is not None:
                suppliers = [line["supplier_order"] for line in known["lines"] if "supplier_order" in line]
                if all(s in self.complete for s in suppliers):
                    yield Job(f"order:{order_id}", partial(self._start, order_id))
            elif not any(self.open_in_level[level] for level in range(1, listed["level"])):
                yield Job(f"order:{order_id}", partial(self._start, order_id))
            else:
                yield Job(f"survey:{order_id}", partial(self._survey, order_id))

    def _survey(self, order_id: str) -> Steps[None]:
        yield from self._order(order_id)

    def _order(self, order_id: str) -> Steps[dict[str, Any]]:
        query = ask("get_order", module=f"order:{order_id}", order_id=order_id)
        return (yield from self.memory.lookup(("order", order_id), query))

    # -- a start: inputs, cell, run, verdicts ----------------------------------------------------------------------

    def _start(self, order_id: str) -> Steps[None]:
        """The first start of an order, or the top-up of what it lost."""
        order = yield from self._order(order_id)
        self.waiting.pop(order_id, None)
        units = min(self.short.setdefault(order_id, order["quantity"]), LARGEST_START)
        allocation = yield from self._allocate(order, units)
        if allocation is None:
            del self.short[order_id]
            return
        run = yield from self._run(order, allocation)
        yield from self._judge(order, run["batch"], run["end"])
        yield from self._read_notices()

    def _allocate(self, order: dict[str, Any], units: int) -> Steps[dict[str, Any] | None]:
        """Inputs for so many units, or for as many as the free inputs allow."""
        module = f"order:{order['order_id']}"
        found = []
        for line in order["lines"]:
            found.append((yield from (self._lots if "material" in line else self._units)(line, module)))
            units = min(units, sum(size for _, size in found[-1]) // line["per_unit"])
        if not units:
            return None
        lines = []
        for line, inputs in zip(order["lines"], found, strict=True):
            wanted = units * line["per_unit"]
            if "material" not in line:
                lines.append({"line": line["line"], "unit_ids": [unit for unit, _ in inputs[:wanted]]})
                continue
            parts: list[dict[str, Any]] = []
            for lot, quantity in inputs:
                if wanted:
                    parts.append({"lot_id": lot, "quantity": min(quantity, wanted)})
                    wanted -= parts[-1]["quantity"]
            lines.append({"line": line["line"], "lots": parts})
        return (
            yield from ask(
                "allocate_inputs",
                module=module,
                goal=f"material:{order['order_id']}",
                order_id=order["order_id"],
                units=units,
                lines=lines,
            )
        )

    def _lots(self, line: dict[str, Any], module: str) -> Steps[list[tuple[str, int]]]:
        """Usable lots of a material, and what they hold."""
        lots = yield from ask_all("list_lots", module=module, material_id=line["material"])
        self.memory.keep(("lots", line["material"]), lots)
        return [
            (lot["lot_id"], lot["quantity_left"])
            for lot in lots
            if lot["state"] == "released" and lot["cert"] >= line["min_cert"] and lot["quantity_left"]
        ]

    def _units(self, line: dict[str, Any], module: str) -> Steps[list[tuple[str, int]]]:
        """Free units that fit a line: for ``any`` those of grade B first."""
        found = yield from ask_all("list_units", module=module, order_id=line["supplier_order"])
        self.memory.keep(("units", line["supplier_order"]), found)
        if line["fit"] == "A":
            return [(unit["unit_id"], 1) for unit in found if unit["grade"] == "A"]
        return [(unit["unit_id"], 1) for unit in sorted(found, key=lambda unit: unit["grade"] != "B")]

    def _run(self, order: dict[str, Any], allocation: dict[str, Any]) -> Steps[dict[str, Any]]:
        order_id, units = order["order_id"], allocation["units"]
        module, goal = f"order:{order_id}", f"equipment:{order_id}"
        programs = yield from self._programs(order)
        _, cell, program_id = min(
            (self.clock.get(cell["cell_id"], 0), cell["cell_id"], program["program_id"])
            for program in programs
            for cell in program["cells"]
            if self._eligible(program, cell)
        )
        header = next(p for p in programs if p["program_id"] == program_id)
        released, ticks = yield from self._ticks(header, units, module, goal)
        calibration = yield from self._calibration(cell, header["tool_family"], units, module)
        earliest = max(allocation["ready"], self.clock.get(cell, 0))
        start = yield from self._gap(cell, earliest, ticks, module)
        self.memory.keep("booking at hand", (order_id, header["tool_family"], earliest))
        booking = yield from ask(
            "book_cell",
            module=module,
            goal=goal,
            allocation=allocation["allocation"],
            program_id=program_id,
            revision=released["revision"],
            cell_id=cell,
            calibration=calibration["calibration"],
            start=start,
            ticks=ticks,
        )
        run = yield from ask("run_program", module=module, goal=goal, booking=booking["booking"])
        self.clock[cell] = run["end"]
        calibration["units_run"] += units
        self.memory.keep(("ticks", order_id), ticks)
        used = {"program_id": program_id, "tool_family": header["tool_family"], "offsets_um": calibration["offsets_um"]}
        self.memory.keep(("run", run["batch"].partition("@")[0]), run | used)
        return run

    def _programs(self, order: dict[str, Any]) -> Steps[list[dict[str, Any]]]:
        query = ask_all("list_programs", module=f"order:{order['order_id']}", product_id=order["product_id"])
        return (yield from self.memory.lookup(("programs", order["product_id"]), query))

    def _eligible(self, program: dict[str, Any], cell: dict[str, Any]) -> bool:
        """Qualified without end, and strong and far-reaching enough."""
        facts = self.cells[cell["cell_id"]]
        able = facts["payload_g"] >= program["payload_g"] and facts["reach_mm"] >= program["reach_mm"]
        return able and cell["qualified_until"] is None

    def _program(self, program_id: str, module: str) -> Steps[dict[str, Any]]:
        query = ask("get_program", module=module, program_id=program_id)
        return (yield from self.memory.lookup(("program", program_id), query))

    def _ticks(self, header: dict[str, Any], units: int, module: str, goal: str) -> Steps[tuple[dict[str, Any], int]]:
        """The released revision, and how long it takes for so many units."""
        program_id = header["program_id"]
        program = yield from self._program(program_id, module)
        released = next(r for r in program["revisions"] if r["state"] == "released")
        waypoints = yield from self.memory.lookup(
            ("waypoints", program_id), ask_all("list_waypoints", module=module, program_id=program_id)
        )
        arguments = {
            "quantity": units,
            "setup_ticks": header["setup_ticks"],
            "feed_pct": released["feed_pct"],
            "waypoints": [[w["move_ms"], w["dwell_ms"]] for w in waypoints],
        }
        output = yield from run_script("schedule-equipment", "run_ticks", arguments, module=module, goal=goal)
        return released, output["ticks"]

    def _calibration(self, cell: str, family: str, units: int, module: str) -> Steps[dict[str, Any]]:
        """The calibration in force, from memory while it is good for so many units; a new one where it has lapsed."""
        key = ("calibrations", cell, family)
        known = self.memory.get(key)
        if known is None or not self._holds(known[0], units):
            page = yield from ask("list_calibrations", module=module, cell_id=cell, tool_family=family)
            known = page["items"]
        if not self._holds(known[0], units):
            made = yield from ask("calibrate_tool", module=module, cell_id=cell, tool_family=family)
            known = [made, *known]
        self.memory.keep(key, known)
        newest: dict[str, Any] = known[0]
        return newest

    @staticmethod
    def _holds(calibration: dict[str, Any], units: int) -> bool:
        return not calibration["void"] and calibration["units_run"] + units <= calibration["valid_units"]

    def _gap(self, cell: str, earliest: int, ticks: int, module: str) -> Steps[int]:
        """The first tick from which the cell is free for so long, by a calendar read now."""
        start = earliest
        cursor: dict[str, Any] = {}
        while True:
            page = yield from ask("list_cell_calendar", module=module, cell_id=cell, from_tick=earliest, **cursor)
            for busy in page["items"]:
                if busy["start"] >= start + ticks:
                    return start
                start = max(start, busy["end"])
            if not page["next_cursor"]:
                return start
            cursor = {"cursor": page["next_cursor"]}

    # -- evidence and verdicts -------------------------------------------------------------------------------------

    def _judge(self, order: dict[str, Any], batch: str, end: int) -> Steps[None]:
        """Observe a batch version that ends at this tick, grade its units and give the verdicts."""
        order_id = order["order_id"]
        module = goal = f"order:{order_id}"
        page = yield from ask("read_instruments", module=module, batch=batch)
        captures, rows = page["captures"], list(page["items"])
        while page["next_cursor"]:
            page = yield from ask("read_instruments", module=module, batch=batch, cursor=page["next_cursor"])
            rows += page["items"]
        chosen = [c["capture_id"] for c in captures if c["kind"] in order["mandatory"]]
        self.memory.keep(("captures", order_id), [*self.memory.get(("captures", order_id), []), (batch, captures)])
        self._keep_last("mandatory kinds", order["mandatory"])
        yield from ask("record_observations", module=module, goal=goal, batch=batch, capture_ids=chosen)
        run = yield from self.memory.lookup(("run", batch.partition("@")[0]), self._run_of(order, batch))
        program = yield from self._program(run["program_id"], module)
        self._keep_last("programs read", program)
        self.memory.keep("run at hand", run)
        arguments = {
            "characteristics": [
                [
                    c["axis"],
                    c["nominal_um"],
                    c["tolerance_um"],
                    c["rework_limit_um"],
                    c["over_code"],
                    c["under_code"],
                ]
                for c in program["characteristics"]
            ],
            "offsets_um": run["offsets_um"],
            "reworkable_codes": self.reworkable,
            "readings_um": rows,
        }
        output = yield from run_script("grade-produced-units", "grade_units", arguments, module=module, goal=goal)
        permit = order["rework_permit"] - self.reworked.get(order_id, 0)
        self.memory.keep("grading at hand", (arguments, permit))
        verdicts = permitted_verdicts([(unit, verdict) for unit, verdict, _, _ in output["verdicts"]], permit)
        answer = yield from ask(
            "finalize_units",
            module=module,
            goal=goal,
            batch=batch,
            calibration=run["calibration"],
            verdicts=verdicts,
        )
        self._note(order, answer["short"] - answer["on_hold"], answer["short"])
        if answer["held"]:
            self.on_hold.setdefault(order_id, []).append((batch, end, answer["held"]))

    def _keep_last(self, key: str, value: Any) -> None:
        """Remember the last few things seen of a kind, each once."""
        self.memory.keep(key, [*(other for other in self.memory.get(key, []) if other != value), value][-4:])

    def _note(self, order: dict[str, Any], to_start: int, short: int) -> None:
        """What is left to do for an order after its verdicts."""
        order_id = order["order_id"]
        self.short.pop(order_id, None)
        if to_start > 0:
            self.short[order_id] = to_start
        if not short and order_id not in self.complete:
            self.complete[order_id] = None
            self.open_in_level[order["level"]] -= 1
            if order["terminal"]:
                self.to_ship[order_id] = None

    def _run_of(self, order: dict[str, Any], batch: str) -> Steps[dict[str, Any]]:
        """Program, cell and offsets of the run of a batch that is not remembered."""
        module = f"order:{order['order_id']}"
        run = yield from ask("get_batch", module=module, batch=batch)
        programs = yield from self._programs(order)
        family = next(p["tool_family"] for p in programs if p["program_id"] == run["program_id"])
        found = yield from ask_all("list_calibrations", module=module, cell_id=run["cell_id"], tool_family=family)
        offsets = next(c["offsets_um"] for c in found if c["calibration"] == run["calibration"])
        return {**run, "offsets_um": offsets, "tool_family": family}

    def _rework(self, order_id: str) -> Steps[None]:
        order = yield from self._order(order_id)
        module = f"order:{order_id}"
        batch, end, held = self.on_hold[order_id].pop(0)
        room = min(len(held), self.brief["bench_units_a_day"])
        day = yield from self._bench_day(max(-(-end // DAY), self.bench_day), room, module)
        if held[room:]:
            self.on_hold[order_id].insert(0, (batch, end, held[room:]))
        if not self.on_hold[order_id]:
            del self.on_hold[order_id]
        self.memory.keep("bench at hand", end)
        answer = yield from ask(
            "rework_units", module=module, goal=f"rework:{order_id}", batch=batch, unit_ids=held[:room], day=day
        )
        self.reworked[order_id] = self.reworked.get(order_id, 0) + room
        yield from self._judge(order, answer["batch"], answer["end"])
        yield from self._read_notices()

    def _bench_day(self, first: int, room: int, module: str) -> Steps[int]:
        """The first day on which the bench has so many free places."""
        while True:
            page = yield from ask("list_bench", module=module, from_day=first)
            for day in page["items"]:
                if day["free"] >= room:
                    self.bench_day = day["day"]
                    return self.bench_day
            first = page["items"][-1]["day"] + 1

    # -- notices, dispatch, close ----------------------------------------------------------------------------------

    def _read_notices(self) -> Steps[None]:
        notices = yield from ask_all("list_notices", since=self.notices_read)
        for notice in notices:
            self.notices_read = max(self.notices_read, notice["sequence"])
        if notices:
            self.memory.forget_where(lambda key: isinstance(key, tuple) and key[0] == "calibrations")

    def _dispatch(self, order_id: str) -> Steps[None]:
        module = f"order:{order_id}"
        units = yield from ask_all("list_units", module=module, order_id=order_id)
        yield from ask(
            "dispatch_order",
            module=module,
            goal=f"dispatch:{order_id}",
            order_id=order_id,
            unit_ids=[unit["unit_id"] for unit in units],
        )
        del self.to_ship[order_id]

    def _close(self) -> Steps[None]:
        orders = yield from ask_all("list_orders", module="close")
        levels = []
        for level in sorted(self.open_in_level):
            rows = [[o["order_id"], *(o[name] for name in TOTALS)] for o in orders if o["level"] == level]
            arguments = {"rows": rows}
            output = yield from run_script(
                "dispatch-and-close", "level_balance", arguments, module="close", goal="close"
            )
            levels.append({"level": level, **output["totals"]})
        yield from ask("close_production", module="close", goal="close", levels=levels)
        self.closed = True


def permitted_verdicts(found: Iterable[tuple[str, str]], permit: int) -> dict[str, str]:
    """Verdicts by unit: of those to be reworked as many as the permit allows, the others scrapped."""
    verdicts = {}
    for unit, verdict in found:
        if verdict == "rework":
            verdict = "rework" if permit > 0 else "scrap"
            permit -= 1
        verdicts[unit] = verdict
    return verdicts
