"""Combine inherited and newly consented audiences into the list of each arm.

Input: `inherited` and `new`, lists of audience ids; `consents`, `{audience_id, status, roles}` on the brief's
channel; `reach`, audience id to reach; `audience_limit`.

Output: `control` and `challenger`, audience ids in order; `dropped`, those that neither arm takes, by id.
"""

import json
import sys

INPUT = {"inherited": list, "new": list, "consents": list, "reach": dict, "audience_limit": int}
CONSENT = {"audience_id": str, "status": str, "roles": list}


def run(arguments: dict) -> dict:
    """The lists of the arms; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    limit = arguments["audience_limit"]
    if limit < 1:
        raise ValueError("audience_limit must be positive")
    new, inherited = (ids(arguments[name], name) for name in ("new", "inherited"))
    inherited = [a for a in inherited if a not in new]
    roles = {}
    for consent in arguments["consents"]:
        record(consent, CONSENT, "consent")
        if consent["audience_id"] in roles:
            raise ValueError(f"audience {consent['audience_id']!r} has two consents")
        roles[consent["audience_id"]] = ids(consent["roles"], "roles") if consent["status"] == "granted" else []
    for audience in (*new, *inherited):
        if audience not in roles:
            raise ValueError(f"audience {audience!r} has no consent listed")
    chosen = {}
    for role in ("control", "challenger"):
        first = sorted(a for a in new if role in roles[a])
        rest = [a for a in inherited if role in roles[a]]
        for audience in rest:
            if type(arguments["reach"].get(audience)) is not int:
                raise ValueError(f"audience {audience!r} has no reach listed")
        rest.sort(key=lambda a: (-arguments["reach"][a], a))
        chosen[role] = [*first, *rest][: max(len(first), limit)]
    taken = {a for listed in chosen.values() for a in listed}
    return {**chosen, "dropped": sorted({*new, *inherited} - taken)}


def ids(values, what):
    if not all(type(value) is str for value in values) or len(set(values)) != len(values):
        raise ValueError(f"{what} must be a list of different ids")
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
