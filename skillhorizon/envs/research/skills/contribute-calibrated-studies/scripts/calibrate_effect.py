"""Carry an annotated effect and its variance onto the reference instrument.

Input, numbers as decimal strings: `metric`, mean_difference or mean_level; `effect`, `variance`;
`slope` and `intercept` of the calibration.

Output: `effect` with six places and `variance` with eight, rounded half-even.
"""

import json
import re
import sys
from fractions import Fraction

INPUT = {"metric": str, "effect": str, "variance": str, "slope": str, "intercept": str}
DECIMAL = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


def run(arguments: dict) -> dict:
    """Effect and variance; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    if arguments["metric"] not in ("mean_difference", "mean_level"):
        raise ValueError("metric must be mean_difference or mean_level")
    slope, intercept = number(arguments["slope"], "slope"), number(arguments["intercept"], "intercept")
    effect = slope * number(arguments["effect"], "effect")
    if arguments["metric"] == "mean_level":
        # two levels differ by no intercept: it drops out of every difference
        effect += intercept
    variance = slope**2 * number(arguments["variance"], "variance", positive=True)
    return {"effect": fixed(effect, 6), "variance": fixed(variance, 8)}


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
