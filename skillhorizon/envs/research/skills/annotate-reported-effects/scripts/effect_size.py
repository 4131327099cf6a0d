"""Turn one reported row into an effect and its variance, in points of its instrument.

Input, numbers as decimal strings: `metric`, mean_difference or mean_level; `factor`, of the row's
unit to points; `treated`, `{mean, sd, n}`; `control`, likewise for a difference, null for a level;
`cluster`, `{size, icc}` where whole clusters were allocated, otherwise null.

Output: `effect` with six places and `variance` with eight, rounded half-even.
"""

import json
import re
import sys
from fractions import Fraction

INPUT = {"metric", "factor", "treated", "control", "cluster"}
ARM = {"mean": str, "sd": str, "n": int}
CLUSTER = {"size": int, "icc": str}
DECIMAL = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")


def run(arguments: dict) -> dict:
    """Effect and variance; ValueError says what is wrong with the input."""
    if type(arguments) is not dict or arguments.keys() != INPUT:
        raise ValueError(f"input must have exactly the fields {', '.join(sorted(INPUT))}")
    metric, control, cluster = arguments["metric"], arguments["control"], arguments["cluster"]
    if metric not in ("mean_difference", "mean_level"):
        raise ValueError("metric must be mean_difference or mean_level")
    if (control is None) != (metric == "mean_level"):
        raise ValueError("a difference has a control arm, a level has none")
    factor = number(arguments["factor"], "factor", positive=True)
    effect, variance = arm(arguments["treated"], "treated")
    if control is not None:
        other, spread = arm(control, "control")
        effect, variance = effect - other, variance + spread
    inflation = Fraction(1)
    if cluster is not None:
        record(cluster, CLUSTER, "cluster")
        if cluster["size"] < 1:
            raise ValueError("a cluster holds somebody")
        inflation += (cluster["size"] - 1) * number(cluster["icc"], "icc")
    if variance * inflation <= 0:
        raise ValueError("the variance must be greater than zero")
    return {"effect": fixed(factor * effect, 6), "variance": fixed(factor**2 * variance * inflation, 8)}


def arm(value, what):
    """Mean and squared standard error of one arm."""
    record(value, ARM, what)
    if value["n"] < 1:
        raise ValueError(f"{what}: n must be greater than zero")
    deviation = number(value["sd"], f"{what}: sd")
    return number(value["mean"], f"{what}: mean"), deviation**2 / value["n"]


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
