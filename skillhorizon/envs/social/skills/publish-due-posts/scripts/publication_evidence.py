"""Work out what a due post must declare: every live past exposure of its audiences, and their loads now.

Input: `post_id`; `now`, a tick; `half_lives`, audience id to hours, for exactly the post's audiences; `exposures` as
listed, of which those in the state `past` count.

Output: `post_id`, `historical_publication_ids` with repeats, `audience_loads`: the arguments of publish_post.
"""

import json
import sys

INPUT = {"post_id": str, "now": int, "half_lives": dict, "exposures": list}
FIELDS = {"audience_id", "at", "points", "publication_id", "state"}


def run(arguments: dict) -> dict:
    """The declaration; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    now, half_lives = arguments["now"], arguments["half_lives"]
    if not half_lives or not all(type(hours) is int and hours > 0 for hours in half_lives.values()):
        raise ValueError("half_lives must hold a positive integer for each audience")
    loads, sources = dict.fromkeys(half_lives, 0), []
    for row in arguments["exposures"]:
        if type(row) is not dict or not row.keys() >= FIELDS:
            raise ValueError(f"an exposure needs the fields {', '.join(sorted(FIELDS))}")
        name, at, points, publication = row["audience_id"], row["at"], row["points"], row["publication_id"]
        if type(at) is not int or type(points) is not int or points < 0:
            raise ValueError("an exposure has a field of another type")
        if type(name) is not str or type(publication) is not str:
            raise ValueError("an exposure has a field of another type")
        if name not in half_lives or row["state"] != "past" or at > now:
            continue
        left = points >> (now - at) // half_lives[name]
        if left:
            loads[name] += left
            sources.append(publication)
    return {
        "post_id": arguments["post_id"],
        "historical_publication_ids": sorted(sources),
        "audience_loads": loads,
    }


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
