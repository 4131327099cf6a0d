"""Forecast the loads of audiences at candidate ticks, and find the ticks that fit an event.

Input: `audiences`, `{audience_id, half_life_hours, load_cap, cooldown_hours, active_from, added}` where `added` is
what the event adds to the audience; `exposures` as listed, past and booked; `own_ticks`, audience id to the ticks of
own events on it, published or booked; `ticks`, the candidates.

Output: `loads`, audience id to its load at each candidate before the event; `ok`, whether each candidate fits;
`first_ok`, the earliest that does, or null.
"""

import json
import sys

INPUT = {"audiences": list, "exposures": list, "own_ticks": dict, "ticks": list}
AUDIENCE = {
    "audience_id": str, "half_life_hours": int, "load_cap": int, "cooldown_hours": int, "active_from": int,
    "added": int,
}  # fmt: skip
FIELDS = {"audience_id", "at", "points"}


def run(arguments: dict) -> dict:
    """Loads and fitting ticks; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    ticks = integers(arguments["ticks"], "ticks")
    audiences = {record(a, AUDIENCE, "audience")["audience_id"]: a for a in arguments["audiences"]}
    if len(audiences) != len(arguments["audiences"]):
        raise ValueError("an audience is listed twice")
    rows = {name: [] for name in audiences}
    for row in arguments["exposures"]:
        if type(row) is not dict or not row.keys() >= FIELDS:
            raise ValueError(f"an exposure needs the fields {', '.join(sorted(FIELDS))}")
        name, at, points = row["audience_id"], row["at"], row["points"]
        if type(name) is not str or type(at) is not int or type(points) is not int or points < 0:
            raise ValueError("an exposure has a field of another type")
        if name in rows:
            rows[name].append((at, points))
    loads, ok = {}, [True] * len(ticks)
    for name, audience in audiences.items():
        half_life = audience["half_life_hours"]
        if half_life < 1 or audience["added"] < 0:
            raise ValueError(f"{name}: half_life_hours must be positive and added not negative")
        own = integers(arguments["own_ticks"].get(name, []), f"own_ticks of {name}")
        loads[name] = [load(rows[name], tick, half_life) for tick in ticks]
        for place, tick in enumerate(ticks):
            room = audience["load_cap"] - loads[name][place] >= audience["added"]
            apart = all(abs(tick - other) >= audience["cooldown_hours"] for other in own)
            ok[place] = ok[place] and room and apart and tick >= audience["active_from"] and all(
                load(rows[name], later, half_life) + (audience["added"] >> (later - tick) // half_life)
                <= audience["load_cap"]
                for later in own
                if later > tick
            )  # fmt: skip
    fitting = [tick for tick, fits in zip(ticks, ok, strict=True) if fits]
    return {"loads": loads, "ok": ok, "first_ok": min(fitting, default=None)}


def load(rows, tick, half_life):
    return sum([points >> (tick - at) // half_life for at, points in rows if at <= tick])


def integers(values, what):
    if type(values) is not list or not all(type(value) is int for value in values):
        raise ValueError(f"{what} must be a list of integers")
    return values


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
