"""Add up the progress of the orders of one level.

Input: `rows`, `[order, started, accepted, reworked, scrapped, shipped]`, one per order.
Output: `totals`, the sums of the five columns by name; `orders`, how many orders were added up.
"""

import json
import sys

INPUT = {"rows": list}
ROW = {"order": str, "started": int, "accepted": int, "reworked": int, "scrapped": int, "shipped": int}


def run(arguments: dict) -> dict:
    """The totals; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    _, *names = ROW
    totals, seen = dict.fromkeys(names, 0), set()
    for given in arguments["rows"]:
        order, *amounts = row(given, ROW, "row")
        if order in seen:
            raise ValueError(f"order {order!r} appears twice")
        seen.add(order)
        for name, amount in zip(names, amounts, strict=True):
            totals[name] += amount
    return {"totals": totals, "orders": len(seen)}


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
