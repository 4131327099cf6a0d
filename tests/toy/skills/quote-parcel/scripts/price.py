"""Price of a parcel in whole cents, rounded up, plus the surcharge of its zone.

Input: `grams`, `cents_per_kg`, `surcharge`, whole numbers of at least zero.
Output: `cents`.
"""

import json
import sys

FIELDS = ("grams", "cents_per_kg", "surcharge")


def run(arguments: dict) -> dict:
    """The amount; ValueError says what is wrong with the input."""
    if type(arguments) is not dict or sorted(arguments) != sorted(FIELDS):
        raise ValueError(f"the input must have exactly the fields {', '.join(FIELDS)}")
    for name in FIELDS:
        if type(arguments[name]) is not int or arguments[name] < 0:
            raise ValueError(f"{name} must be a whole number of at least zero")
    return {"cents": -(-arguments["grams"] * arguments["cents_per_kg"] // 1000) + arguments["surcharge"]}


def main() -> int:
    try:
        answer, status = run(json.load(sys.stdin)), 0
    except ValueError as fault:
        answer, status = {"error": str(fault)}, 2
    print(json.dumps(answer, sort_keys=True, separators=(",", ":")))
    return status


if __name__ == "__main__":
    sys.exit(main())
