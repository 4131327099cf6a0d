"""Check whether a passenger can reach every service of an itinerary.

Input, in minutes: `ready_min`, when the passenger is at the first hub; `due_min`, when it must have
arrived; `allowance_min`, what its assistance adds to each connection; `legs`, in order, each with
`service_id`, `carrier_id`, `departure_min`, `arrival_min` and `minimum_min` (check-in for the first
leg; for later ones the connection, without allowance).

Output: `slacks`, one for each leg in order: `earliest_min`, the earlier instant + minimum (+ allowance
after the first leg), where the earlier instant is `ready_min` and then the arrival before, and
`slack_min`, departure - earliest; `due_slack_min`, due_min - last arrival; `sound`, whether no slack
is below zero.
"""

import json
import sys

INPUT = {"ready_min": int, "due_min": int, "allowance_min": int, "legs": list}
LEG = {"service_id": str, "carrier_id": str, "departure_min": int, "arrival_min": int, "minimum_min": int}


def run(arguments: dict) -> dict:
    """The slacks of one itinerary; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    if arguments["allowance_min"] < 0:
        raise ValueError("allowance_min must not be negative")
    if not arguments["legs"]:
        raise ValueError("legs must not be empty")
    slacks, seen = [], set()
    instant, allowance = arguments["ready_min"], 0
    for leg in arguments["legs"]:
        record(leg, LEG, "leg")
        if leg["service_id"] in seen:
            raise ValueError(f"service {leg['service_id']!r} appears twice")
        seen.add(leg["service_id"])
        if leg["minimum_min"] < 0:
            raise ValueError(f"service {leg['service_id']!r}: minimum_min must not be negative")
        if leg["arrival_min"] <= leg["departure_min"]:
            raise ValueError(f"service {leg['service_id']!r} arrives before it departs")
        earliest = instant + leg["minimum_min"] + allowance
        slack = leg["departure_min"] - earliest
        slacks.append({"service_id": leg["service_id"], "earliest_min": earliest, "slack_min": slack})
        instant, allowance = leg["arrival_min"], arguments["allowance_min"]
    due_slack = arguments["due_min"] - instant
    sound = due_slack >= 0 and all(slack["slack_min"] >= 0 for slack in slacks)
    return {"slacks": slacks, "due_slack_min": due_slack, "sound": sound}


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
