"""Attribute conversions: each member once, to the arm of the earliest hour, and none that a parent has credited.

Input: `conversions`, `control` and `challenger`, each a list of `{member_id, hour}` and whatever else a row holds;
`exclude_members`, ids that parent reports credited.

Output: `credited`, the members of each arm by id; `duplicates`, rows that count for nothing because their member
counts elsewhere; `excluded`, rows of excluded members.
"""

import json
import sys

INPUT = {"conversions": dict, "exclude_members": list}
ARMS = {"control": list, "challenger": list}


def run(arguments: dict) -> dict:
    """The attribution; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    record(arguments["conversions"], ARMS, "conversions")
    excluded = arguments["exclude_members"]
    if not all(type(member) is str for member in excluded):
        raise ValueError("exclude_members must be a list of ids")
    barred = set(excluded)
    best, rows, barred_rows = {}, 0, 0
    for place, arm in enumerate(ARMS):
        for row in arguments["conversions"][arm]:
            if type(row) is not dict or type(row.get("member_id")) is not str or type(row.get("hour")) is not int:
                raise ValueError("a conversion needs member_id and hour")
            if row["member_id"] in barred:
                barred_rows += 1
                continue
            rows += 1
            # at one hour the control comes first
            claim = (row["hour"], place)
            best[row["member_id"]] = min(best.get(row["member_id"], claim), claim)
    credited = {arm: sorted(m for m, (_, at) in best.items() if at == place) for place, arm in enumerate(ARMS)}
    return {"credited": credited, "duplicates": rows - len(best), "excluded": barred_rows}


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
