"""Pick the arm with more credited members for those it reached; at equal rates the control.

Input: `credited` and `delivered`, each `control` and `challenger`, counts that are not negative.

Output: `winner`.
"""

import json
import sys

INPUT = {"credited": dict, "delivered": dict}
ARMS = {"control": int, "challenger": int}


def run(arguments: dict) -> dict:
    """The winner; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    for name in INPUT:
        if min(record(arguments[name], ARMS, name).values()) < 0:
            raise ValueError(f"{name} must not be negative")
    credited, delivered = arguments["credited"], arguments["delivered"]
    # rates are compared crosswise, without a division
    control = credited["control"] * delivered["challenger"]
    return {"winner": "control" if control >= credited["challenger"] * delivered["control"] else "challenger"}


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
