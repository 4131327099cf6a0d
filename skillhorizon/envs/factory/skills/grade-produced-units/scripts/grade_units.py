"""Grade units by what the instruments read.

Input: `characteristics`, `[axis, nominal, tolerance, rework_limit, over_code, under_code]` in the
program's order; `offsets_um`, the run's calibration by axis; `reworkable_codes`, the codes whose
route is the bench; `readings_um`, `[unit, r1, r2, ...]` with one reading per characteristic.

Output: `verdicts`, `[unit, verdict, code, excess]` in the order of the readings: verdict is A, B,
rework or scrap; code and excess are those of the worst failing characteristic, else null and 0.
"""

import json
import sys

INPUT = {"characteristics": list, "offsets_um": dict, "reworkable_codes": list, "readings_um": list}
CHARACTERISTIC = {
    "axis": str,
    "nominal": int,
    "tolerance": int,
    "rework_limit": int,
    "over_code": str,
    "under_code": str,
}


def run(arguments: dict) -> dict:
    """The verdicts; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    offsets, reworkable = arguments["offsets_um"], arguments["reworkable_codes"]
    characteristics = [row(c, CHARACTERISTIC, "characteristic") for c in arguments["characteristics"]]
    if not characteristics:
        raise ValueError("there must be at least one characteristic")
    for axis, *_ in characteristics:
        if type(offsets.get(axis)) is not int:
            raise ValueError(f"offsets_um must give axis {axis!r} in whole µm")
    if not all(type(code) is str for code in reworkable):
        raise ValueError("reworkable_codes must be of type str")
    columns = {"unit": str} | {f"r{k}": int for k in range(1, len(characteristics) + 1)}
    verdicts = []
    for reading in arguments["readings_um"]:
        unit, *values = row(reading, columns, "reading")
        verdicts.append([unit, *grade(characteristics, offsets, reworkable, values)])
    if len({verdict[0] for verdict in verdicts}) < len(verdicts):
        raise ValueError("a unit appears twice")
    return {"verdicts": verdicts}


def grade(characteristics, offsets, reworkable, values):
    """Verdict, code and excess of one unit."""
    within_half, mendable, worst, excess = True, True, None, 0
    for (axis, nominal, tolerance, limit, over, under), value in zip(characteristics, values, strict=True):
        deviation = value - nominal - offsets[axis]
        within_half = within_half and 2 * abs(deviation) <= tolerance
        if abs(deviation) > tolerance:
            mendable = mendable and 0 < deviation <= limit and over in reworkable
            if abs(deviation) - tolerance > excess:
                worst, excess = over if deviation > 0 else under, abs(deviation) - tolerance
    if worst is None:
        return "A" if within_half else "B", None, 0
    return "rework" if mendable else "scrap", worst, excess


def record(value, fields, what):
    """The value, if it is an object with exactly these fields of exactly these types."""
    if type(value) is not dict:
        raise ValueError(f"{what} must be an object")
    if value.keys() != fields.keys():
        raise ValueError(f"{what} must have exactly the fields {', '.join(fields)}")
    for name, kind in fields.items():
        if type(value[name]) is not kind:
            raise ValueError(f"{what}: {name} must be of type {kind.__name__}")
    return value


def row(value, columns, what):
    """The value, if it is an array of exactly these columns, each of its type."""
    if type(value) is not list or len(value) != len(columns):
        raise ValueError(f"{what} must be an array of {', '.join(columns)}")
    for cell, (name, kind) in zip(value, columns.items(), strict=True):
        if type(cell) is not kind:
            raise ValueError(f"{what}: {name} must be of type {kind.__name__}")
    return value


def main() -> int:
    try:
        answer, status = json.dumps(run(json.load(sys.stdin.buffer)), sort_keys=True, separators=(",", ":")), 0
    except (ValueError, RecursionError) as fault:
        answer, status = json.dumps({"error": str(fault)}, separators=(",", ":")), 2
    print(answer)
    return status


if __name__ == "__main__":
    sys.exit(main())
