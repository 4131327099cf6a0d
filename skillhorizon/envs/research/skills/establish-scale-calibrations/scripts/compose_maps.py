"""Compose each link with its parent's map, and take the mean over the routes.

Input, numbers as decimal strings: `routes`, one or more of `{link, parent}`, each
`{slope, intercept}`; the parent is null where the link ends at the reference instrument.

Output: `slope` and `intercept` with six places, rounded half-even once, at the end.
"""

import json
import re
import sys
from fractions import Fraction

INPUT = {"routes": list}
ROUTE = {"link", "parent"}
LINE = {"slope": str, "intercept": str}
DECIMAL = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


def run(arguments: dict) -> dict:
    """The map; ValueError says what is wrong with the input."""
    routes = record(arguments, INPUT, "input")["routes"]
    if not routes:
        raise ValueError("a calibration has at least one route")
    slopes, intercepts = Fraction(0), Fraction(0)
    for route in routes:
        if type(route) is not dict or route.keys() != ROUTE:
            raise ValueError("a route must have exactly the fields link, parent")
        slope, intercept = line(route["link"], "link")
        if route["parent"] is not None:
            further, shift = line(route["parent"], "parent")
            slope, intercept = slope * further, further * intercept + shift
        slopes, intercepts = slopes + slope, intercepts + intercept
    return {"slope": fixed(slopes / len(routes), 6), "intercept": fixed(intercepts / len(routes), 6)}


def line(value, what):
    record(value, LINE, what)
    return number(value["slope"], f"{what}: slope"), number(value["intercept"], f"{what}: intercept")


def number(value, what, positive=False):
    """The exact value of a decimal string."""
    if type(value) is not str or not DECIMAL.fullmatch(value):
        raise ValueError(f"{what} must be a decimal string")
    exact = Fraction(value)
    if positive and exact <= 0:
        raise ValueError(f"{what} must be greater than zero")
    return exact


def fixed(value, places):
    """A decimal string with so many places, rounded half-even; zero has no sign."""
    scaled = round(value * 10**places)
    digits = f"{abs(scaled):0{places + 1}d}"
    return f"{'-' if scaled < 0 else ''}{digits[:-places]}.{digits[-places:]}"


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
