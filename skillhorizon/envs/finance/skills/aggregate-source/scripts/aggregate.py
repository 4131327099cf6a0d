"""Add up postings by entity.

Input: `postings`, `{entity, minor}` in integer minor units.
Output: `totals`, entity to sum; an entity that comes to zero is left out.
"""

import json
import sys

INPUT = {"postings": list}
POSTING = {"entity": str, "minor": int}


def run(arguments: dict) -> dict:
    """The totals; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    totals = {}
    for posting in arguments["postings"]:
        record(posting, POSTING, "posting")
        totals[posting["entity"]] = totals.get(posting["entity"], 0) + posting["minor"]
    return {"totals": {entity: minor for entity, minor in totals.items() if minor}}


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
