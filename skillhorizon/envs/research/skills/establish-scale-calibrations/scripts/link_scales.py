"""Make the line that carries values of one instrument onto another, from one sample that answered both.

Input, numbers as decimal strings: `means` and `sds`, each `{from, to}`, of the row; `opposed`, true
where higher is better on one of the two and worse on the other.

Output: `slope` and `intercept` with six places, rounded half-even.
"""

import json
import re
import sys
from fractions import Fraction

INPUT = {"means": dict, "sds": dict, "opposed": bool}
PAIR = {"from": str, "to": str}
DECIMAL = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


def run(arguments: dict) -> dict:
    """The line; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    means = record(arguments["means"], PAIR, "means")
    sds = record(arguments["sds"], PAIR, "sds")
    start, end = number(sds["from"], "sds: from", positive=True), number(sds["to"], "sds: to", positive=True)
    slope = end / start * (-1 if arguments["opposed"] else 1)
    intercept = number(means["to"], "means: to") - slope * number(means["from"], "means: from")
    return {"slope": fixed(slope, 6), "intercept": fixed(intercept, 6)}


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
