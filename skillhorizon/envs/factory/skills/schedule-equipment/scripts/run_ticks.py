"""How many ticks of a quarter of an hour a cell is needed for a run.

Input: `quantity`, the units of the run; `setup_ticks` of the program; `feed_pct` of the revision;
`waypoints`, `[move_ms, dwell_ms]` of every waypoint of the program.

Output: `cycle_ms`, the time of one unit at a feed of 100 %; `ticks`, the set-up and all cycles at
the given feed, rounded up to whole ticks.
"""

import json
import sys

INPUT = {"quantity": int, "setup_ticks": int, "feed_pct": int, "waypoints": list}
WAYPOINT = {"move_ms": int, "dwell_ms": int}
TICK_MS = 900_000


def run(arguments: dict) -> dict:
    """The ticks; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    quantity, feed = arguments["quantity"], arguments["feed_pct"]
    if quantity < 1 or feed < 1 or arguments["setup_ticks"] < 0:
        raise ValueError("quantity and feed_pct must be positive, and setup_ticks not negative")
    cycle = 0
    for waypoint in arguments["waypoints"]:
        move, dwell = row(waypoint, WAYPOINT, "waypoint")
        if move < 0 or dwell < 0:
            raise ValueError("a waypoint's times cannot be negative")
        cycle += move + dwell
    running = -(-quantity * cycle * 100 // (feed * TICK_MS))
    return {"cycle_ms": cycle, "ticks": arguments["setup_ticks"] + running}


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
