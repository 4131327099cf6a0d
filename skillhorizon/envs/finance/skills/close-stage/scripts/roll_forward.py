"""Roll the balances of a stage forward from the preceding closure.

Input, entity to integer minor units: `opening`, the closing balances of the preceding closure
(empty for the first stage); `views`, the totals of each aggregate that the stage recognises.

Output: `movement`, the sum of the views by entity; `closing`, opening plus movement; `gross`, the
sum of the movement's absolute amounts. Entities that come to zero are left out.
"""

import json
import sys

INPUT = {"opening": dict, "views": list}


def run(arguments: dict) -> dict:
    """The balances; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    movement, closing = {}, {}
    add(movement, arguments["views"], "view")
    add(closing, (arguments["opening"], movement), "opening")
    movement = {entity: minor for entity, minor in movement.items() if minor}
    return {
        "closing": {entity: minor for entity, minor in closing.items() if minor},
        "movement": movement,
        "gross": sum(map(abs, movement.values())),
    }


def add(totals, views, what):
    """Add the amounts of each view to the totals, by entity."""
    for view in views:
        if type(view) is not dict:
            raise ValueError(f"{what} must be an object")
        for entity, minor in view.items():
            if type(entity) is not str or type(minor) is not int:
                raise ValueError(f"{what}: the amount of {entity!r} must be of type int")
            totals[entity] = totals.get(entity, 0) + minor


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
