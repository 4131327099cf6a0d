"""Make the keys by which two reports are recognised as one study.

Input: `registry_id`, the current id of the registration that the work names, or null; `cohort_id`,
the id of the cohort that its printed name means, or null; `enrolled`, `{from, to, n}` as the work
prints it, with days and a number of people.

Output: `registry_key` and `cohort_key`, each null where its id is.
"""

import json
import sys

INPUT = {"registry_id", "cohort_id", "enrolled"}
ENROLLED = {"from": int, "to": int, "n": int}


def run(arguments: dict) -> dict:
    """The keys; ValueError says what is wrong with the input."""
    if type(arguments) is not dict or arguments.keys() != INPUT:
        raise ValueError(f"input must have exactly the fields {', '.join(sorted(INPUT))}")
    for name in ("registry_id", "cohort_id"):
        value = arguments[name]
        if value is not None and (type(value) is not str or not value or "|" in value):
            raise ValueError(f"{name} must be an id or null")
    enrolled = record(arguments["enrolled"], ENROLLED, "enrolled")
    if enrolled["from"] > enrolled["to"] or enrolled["n"] < 1:
        raise ValueError("enrolled must not end before it begins, and hold somebody")
    cohort = arguments["cohort_id"]
    key = f"{cohort}|{enrolled['from']}|{enrolled['to']}|{enrolled['n']}" if cohort else None
    return {"registry_key": arguments["registry_id"], "cohort_key": key}


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
