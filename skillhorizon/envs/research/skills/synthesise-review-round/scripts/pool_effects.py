"""Pool calibrated effects by inverse variance and compare the mean with the null.

Input, numbers as decimal strings: `null`; `items`, one or more of `{effect, variance}`, the
contributions that are pooled.

Output: `effect` (six places), `variance` (eight), `q` (four), all rounded half-even, and `verdict`:
mixed, above, below or inconclusive.
"""

import json
import re
import sys
from fractions import Fraction

INPUT = {"null": str, "items": list}
ITEM = {"effect": str, "variance": str}
DECIMAL = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?")
Z_SQUARED = Fraction("3.8416")


def run(arguments: dict) -> dict:
    """The synthesis; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    null, items = number(arguments["null"], "null"), arguments["items"]
    if not items:
        raise ValueError("nothing to pool")
    effects, variances = [], []
    for item in items:
        record(item, ITEM, "item")
        effects.append(number(item["effect"], "effect"))
        variances.append(number(item["variance"], "variance", positive=True))
    # Over the product of all variances the weights 1/v are whole numbers, which keeps exact sums of
    # many terms short: effects in units of 10^-12, variances likewise.
    unit = 10**12
    whole = [int(e * unit) for e in effects]
    spread = [int(v * unit) for v in variances]
    product = 1
    for v in spread:
        product *= v
    weights = [product // v for v in spread]
    total = sum(weights)
    first = sum(w * e for w, e in zip(weights, whole, strict=True))
    second = sum(w * e * e for w, e in zip(weights, whole, strict=True))
    mean, variance = Fraction(first, total * unit), Fraction(product, total * unit)
    q = Fraction(second * total - first**2, product * total * unit)
    return {
        "effect": fixed(mean, 6),
        "variance": fixed(variance, 8),
        "q": fixed(q, 4),
        "verdict": verdict(mean - null, variance, q, len(items)),
    }


def verdict(distance, variance, q, k):
    if k > 1 and q > 2 * (k - 1):
        return "mixed"
    if distance**2 >= Z_SQUARED * variance:
        return "above" if distance > 0 else "below"
    return "inconclusive"


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
