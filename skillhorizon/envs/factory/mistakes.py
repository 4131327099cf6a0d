"""Plausible mistakes around the reference procedure: wrong alternatives of its consequential calls."""

from __future__ import annotations

from operator import sub
from typing import Any

from skillhorizon.core.policy import Memory, Mistakes, confusing
from skillhorizon.envs.factory.policy import permitted_verdicts
from skillhorizon.envs.factory.rules import graded
from skillhorizon.envs.factory.seed import DAY, FAMILIES, Characteristic


def _wrong_verdicts(given: dict[str, Any], memory: Memory) -> Mistakes:
    """Verdicts that follow from wrong inputs of the grading script, and verdicts given against what it found."""
    if "grading at hand" not in memory or "run at hand" not in memory:
        return
    (right, permit), run = memory.get("grading at hand"), memory.get("run at hand")
    known = memory.get(("calibrations", run["cell_id"], run["tool_family"]), [])
    at = next((n for n, c in enumerate(known) if c["calibration"] == run["calibration"]), None)
    if at is not None:
        for older in known[at + 1 : at + 2]:
            yield "older_offsets", _graded({**right, "offsets_um": older["offsets_um"]}, permit)
    for newest in known[:1]:
        yield "newest_offsets", _graded({**right, "offsets_um": newest["offsets_um"]}, permit)
        yield "newest_calibration_named", {"calibration": newest["calibration"]}
    for program in memory.get("programs read", []):
        axes = [c["axis"] for c in program["characteristics"]]
        rows = [[axis, *row[1:]] for axis, row in zip(axes, right["characteristics"], strict=True)]
        yield "axes_of_another_program", _graded({**right, "characteristics": rows}, permit)
    codes = [code["code"] for code in memory.get("codes", [])[:10] if code["rework_route"] == "bench"]
    yield "codes_of_the_first_page", _graded({**right, "reworkable_codes": codes}, permit)
    verdicts = given["verdicts"]
    for kind, before, after in (
        ("reworkable_scrapped", "rework", "scrap"),
        ("scrap_held_for_rework", "scrap", "rework"),
        ("nonconforming_accepted", "scrap", "B"),
        ("grade_raised", "B", "A"),
    ):
        unit = next((unit for unit, verdict in verdicts.items() if verdict == before), None)
        if unit is not None:
            yield kind, {"verdicts": {**verdicts, unit: after}}


def _graded(given: dict[str, Any], permit: int) -> dict[str, Any]:
    """The verdicts to which the script's answer would lead."""
    rows = [Characteristic("", 0, *row) for row in given["characteristics"]]
    exact = [c.nominal_um + given["offsets_um"][c.axis] for c in rows]
    codes = frozenset(given["reworkable_codes"])
    found = ((unit, graded(rows, tuple(map(sub, r, exact)), codes)[0]) for unit, *r in given["readings_um"])
    return {"verdicts": permitted_verdicts(found, permit)}


def _wrong_allocations(given: dict[str, Any], memory: Memory) -> Mistakes:
    lines = given["lines"]
    order = memory.get(("order", given["order_id"]))
    if order is None:
        return
    wanted = {line["line"]: line for line in order["lines"]}
    for index, line in enumerate(lines):
        facts = wanted[line["line"]]
        if "material" in facts:
            lots = memory.get(("lots", facts["material"]), [])
            for kind, state in (("lot_below_certificate", "released"), ("quarantined_lot", "quarantined")):
                usable = facts["min_cert"] if state == "released" else 0
                for lot in lots:
                    if lot["state"] == state and (lot["cert"] < usable or not usable):
                        part = {"lot_id": lot["lot_id"], "quantity": line["lots"][0]["quantity"]}
                        yield kind, _with_line(lines, index, lots=[part, *line["lots"][1:]])
        elif facts["fit"] == "any":
            supplier = memory.get(("order", facts["supplier_order"]))
            grades = {unit["unit_id"]: unit["grade"] for unit in memory.get(("units", facts["supplier_order"]), [])}
            demanded = [unit for unit, grade in grades.items() if grade == "A"]
            spare = [unit for unit in demanded if unit not in line["unit_ids"]]
            taken = [unit for unit in line["unit_ids"] if grades.get(unit) == "B"]
            # a supplier that nobody asks for grade A makes half its units so; elsewhere they are demanded
            if spare and taken and supplier and len(demanded) != supplier["quantity"] // 2:
                units = [spare[0] if unit == taken[0] else unit for unit in line["unit_ids"]]
                yield "grade_a_into_any", _with_line(lines, index, unit_ids=units)
    if all("unit_ids" in line for line in lines) and len(lines) == 2:
        first, second = lines
        exchanged = [{**first, "unit_ids": second["unit_ids"]}, {**second, "unit_ids": first["unit_ids"]}]
        yield "suppliers_exchanged", {"lines": exchanged}


def _with_line(lines: list[dict[str, Any]], index: int, **changes: Any) -> dict[str, Any]:
    return {"lines": [*lines[:index], {**lines[index], **changes}, *lines[index + 1 :]]}


def _wrong_bookings(given: dict[str, Any], memory: Memory) -> Mistakes:
    program = memory.get(("program", given["program_id"]))
    if program is not None:
        yield "newest_revision", {"revision": program["revisions"][-1]["revision"]}
    if "booking at hand" not in memory:
        return
    order_id, family, unread = memory.get("booking at hand")
    first = memory.get(("ticks", order_id))
    if first is not None:
        yield "ticks_of_the_first_run", {"ticks": first}
    for older in memory.get(("calibrations", given["cell_id"], family), [])[1:2]:
        yield "older_calibration", {"calibration": older["calibration"]}
    for other in FAMILIES:
        if other != family:
            for calibration in memory.get(("calibrations", given["cell_id"], other), [])[:1]:
                yield "other_tools_calibration", {"calibration": calibration["calibration"]}
    yield "calendar_unread", {"start": unread}


def _wrong_observations(given: dict[str, Any], memory: Memory) -> Mistakes:
    seen = memory.get(("captures", _order_of(given["batch"])))
    if not seen:
        return
    *earlier, (_, present) = seen
    kinds = {c["kind"] for c in present if c["capture_id"] in given["capture_ids"]}
    for _, captures in earlier[-1:]:
        chosen = [c["capture_id"] for c in captures if c["kind"] in kinds]
        yield "captures_of_an_earlier_version", {"capture_ids": chosen}
    for other in memory.get("mandatory kinds", [])[-2:-1]:
        chosen = [c["capture_id"] for c in present if c["kind"] in other]
        yield "kinds_of_another_order", {"capture_ids": chosen}


def _order_of(batch: str) -> str:
    return f"ord-{batch.split('-')[1]}"


def _wrong_reworks(given: dict[str, Any], memory: Memory) -> Mistakes:
    end = memory.get("bench at hand", 0)
    if end % DAY:
        yield "day_of_the_run", {"day": end // DAY}
    before, _, version = given["batch"].partition("@")
    if int(version) > 1:
        yield "earlier_version_named", {"batch": f"{before}@{int(version) - 1}"}


def _wrong_dispatches(given: dict[str, Any], memory: Memory) -> Mistakes:
    if len(given["unit_ids"]) > 1:
        yield "unit_left_behind", {"unit_ids": given["unit_ids"][:-1]}


def _wrong_closings(given: dict[str, Any], memory: Memory) -> Mistakes:
    levels = given["levels"]
    planned = [{**row, "started": row["accepted"], "scrapped": 0, "reworked": 0} for row in levels]
    yield "planned_totals", {"levels": planned}
    yield "level_left_out", {"levels": levels[:-1]}


confusions = confusing(
    {
        "allocate_inputs": _wrong_allocations,
        "book_cell": _wrong_bookings,
        "close_production": _wrong_closings,
        "dispatch_order": _wrong_dispatches,
        "finalize_units": _wrong_verdicts,
        "record_observations": _wrong_observations,
        "rework_units": _wrong_reworks,
    }
)
