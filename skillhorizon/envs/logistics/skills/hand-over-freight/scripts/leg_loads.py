"""List what is aboard on every leg of a route, and what it weighs.

Input: `legs`, the number of legs; `pieces`, units and custody items with `id`, `kg`, `board_leg` and
`leave_leg`. A piece is aboard on the legs from `board_leg` up to but not including `leave_leg`.

Output: `loads`, one for each leg in order: `leg`, `ids` of the pieces aboard, sorted, and `load_kg`.
"""

import json
import sys

INPUT = {"legs": int, "pieces": list}
PIECE = {"id": str, "kg": int, "board_leg": int, "leave_leg": int}
MOST_LEGS = 64


def run(arguments: dict) -> dict:
    """The loads of all legs; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    legs = arguments["legs"]
    if not 1 <= legs <= MOST_LEGS:
        raise ValueError(f"legs must be 1 to {MOST_LEGS}")
    aboard, seen = [[] for _ in range(legs)], set()
    for piece in arguments["pieces"]:
        record(piece, PIECE, "piece")
        name = piece["id"]
        if name in seen:
            raise ValueError(f"piece {name!r} appears twice")
        seen.add(name)
        if piece["kg"] <= 0:
            raise ValueError(f"piece {name!r}: kg must be positive")
        if not 0 <= piece["board_leg"] < piece["leave_leg"] <= legs:
            raise ValueError(f"piece {name!r} must board before it leaves, within the {legs} legs")
        for leg in range(piece["board_leg"], piece["leave_leg"]):
            aboard[leg].append(piece)
    return {
        "loads": [
            {"leg": leg, "ids": sorted(p["id"] for p in pieces), "load_kg": sum(p["kg"] for p in pieces)}
            for leg, pieces in enumerate(aboard)
        ]
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
