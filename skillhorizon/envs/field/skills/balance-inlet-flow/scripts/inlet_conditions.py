"""Work out what a service gets at its inlet, how much flow it must add, and how high it can be set.

Input, kPa and L/min: `feeds`, `{outlet_kpa, flow_lpm, contracted_lpm, share_lpm, loss_coeff}`, the
first three from the parent's record, the last two from the link; `own_lpm`, `contracted_lpm` and
`gain_kpa` of the service; `drops_kpa`, one per device, from its test; `step_kpa`, `max_outlet_kpa`.

Output: `taken_lpm` in the feeds' order, `inlet_kpa`, `makeup_lpm`, `setpoint_kpa`.
"""

import json
import sys

INPUT = {
    "feeds": list,
    "own_lpm": int,
    "contracted_lpm": int,
    "gain_kpa": int,
    "drops_kpa": list,
    "step_kpa": int,
    "max_outlet_kpa": int,
}
FEED = {"outlet_kpa": int, "flow_lpm": int, "contracted_lpm": int, "share_lpm": int, "loss_coeff": int}
FLOW_STEP = 5


def run(arguments: dict) -> dict:
    """The conditions; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    if not arguments["feeds"]:
        raise ValueError("there is no feed")
    step = positive(arguments, "step_kpa")
    drops = arguments["drops_kpa"]
    if any(type(drop) is not int or drop < 0 for drop in drops):
        raise ValueError("drops_kpa must hold integers that are not negative")

    taken, pressures = [], []
    for feed in arguments["feeds"]:
        record(feed, FEED, "feed")
        share, flow = positive(feed, "share_lpm"), not_negative(feed, "flow_lpm")
        contracted = positive(feed, "contracted_lpm")
        part = share if flow >= contracted else share * flow // contracted
        taken.append(part)
        # Rounded up: -(-a // b) is a / b towards the next higher integer.
        pressures.append(feed["outlet_kpa"] - -(-not_negative(feed, "loss_coeff") * part * part // 1_000_000))

    inlet = min(pressures)
    wanted = not_negative(arguments, "own_lpm") + not_negative(arguments, "contracted_lpm") - sum(taken)
    available = inlet + not_negative(arguments, "gain_kpa") - sum(drops)
    return {
        "taken_lpm": taken,
        "inlet_kpa": inlet,
        "makeup_lpm": FLOW_STEP * -(-max(0, wanted) // FLOW_STEP),
        "setpoint_kpa": min(available, arguments["max_outlet_kpa"]) // step * step,
    }


def not_negative(entry, name):
    if entry[name] < 0:
        raise ValueError(f"{name} must not be negative")
    return entry[name]


def positive(entry, name):
    if entry[name] < 1:
        raise ValueError(f"{name} must be positive")
    return entry[name]


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
