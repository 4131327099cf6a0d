"""Tally what the repairs of a depot's devices have used.

Input: `used`, one entry a repair, `{part_id, slots}`: the part built in and the shifts worked.

Output: `crew_hours`, four for each shift, and `units`, `{part_id, quantity}` by part id.
"""

import json
import sys

INPUT = {"used": list}
USE = {"part_id": str, "slots": int}
SLOT_HOURS = 4


def run(arguments: dict) -> dict:
    """The tally; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    slots, units = 0, {}
    for use in arguments["used"]:
        record(use, USE, "use")
        if use["slots"] < 1:
            raise ValueError("slots must be positive")
        slots += use["slots"]
        units[use["part_id"]] = units.get(use["part_id"], 0) + 1
    return {
        "crew_hours": SLOT_HOURS * slots,
        "units": [{"part_id": part_id, "quantity": units[part_id]} for part_id in sorted(units)],
    }


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


def main() -> int:
    try:
        answer, status = json.dumps(run(json.load(sys.stdin.buffer)), sort_keys=True, separators=(",", ":")), 0
    except (ValueError, RecursionError) as fault:
        answer, status = json.dumps({"error": str(fault)}, separators=(",", ":")), 2
    print(answer)
    return status


if __name__ == "__main__":
    sys.exit(main())
