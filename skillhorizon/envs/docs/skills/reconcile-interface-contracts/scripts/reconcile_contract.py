"""Reconcile the contract of a page from its own terms, what its parents give it, and its grants.

Input, days as day numbers and quota in calls a minute:
`terms`, `{page_id, purpose, effective_day, horizon_day, demand, service_id, carry, fields, consumers}` with
`carry` a list of field names, `fields` `{name, type, limit, required, block_id}` and `consumers`
`{page_id, purpose, effective_day, weight, limit}`;
`parents`, `{page_id, fields, lots}` with the entries taken and the lots allotted to the page;
`grants`, lots. An entry is `{name, type, limit, required, bound_by, set_in}`, a lot `{grant_id, owner_page,
purposes, amount, expires_on}`.

Output: the content of the contract: `fields`, `received`, `used`, `allotments`, `retained`, `reservation`.
"""

import json
import sys
from operator import is_

INPUT = {"terms": dict, "parents": list, "grants": list}
TERMS = {
    "page_id": str,
    "purpose": str,
    "effective_day": int,
    "horizon_day": int,
    "demand": int,
    "service_id": str,
    "carry": list,
    "fields": list,
    "consumers": list,
}
FIELD = {"name": str, "type": str, "limit": int, "required": bool, "block_id": str}
CONSUMER = {"page_id": str, "purpose": str, "effective_day": int, "weight": int, "limit": int}
PARENT = {"page_id": str, "fields": list, "lots": list}
ENTRY = {"name": str, "type": str, "limit": int, "required": bool, "bound_by": str, "set_in": str}
LOT = {"grant_id": str, "owner_page": str, "purposes": list, "amount": int, "expires_on": int}


def run(arguments: dict) -> dict:
    """The content; ValueError names the rule that cannot be satisfied, or what is wrong with the input."""
    record(arguments, INPUT, "input")
    terms = record(arguments["terms"], TERMS, "terms")
    parents = [record(parent, PARENT, "parent") for parent in arguments["parents"]]
    distinct("parent", (parent["page_id"] for parent in parents))
    consumers = [record(consumer, CONSUMER, "consumer") for consumer in terms["consumers"]]
    distinct("consumer", (consumer["page_id"] for consumer in consumers))
    consumers.sort(key=lambda consumer: consumer["page_id"])

    fields = merge_fields(terms, parents)
    received = merge_lots([lot for parent in parents for lot in parent["lots"]] + arguments["grants"])
    left = [lot["amount"] for lot in received]
    used = draw(received, left, terms["purpose"], terms["effective_day"], terms["demand"])
    if sum(lot["amount"] for lot in used) < terms["demand"]:
        raise ValueError("rule 5: the lots that serve the page are less than its demand (quota_short)")
    quota, weights = sum(left), sum(consumer["weight"] for consumer in consumers)
    allotments = []
    for consumer in consumers:
        if consumer["weight"] <= 0 or consumer["limit"] < 0:
            raise ValueError(f"consumer {consumer['page_id']!r} needs a positive weight and no negative limit")
        share = min(consumer["limit"], quota * consumer["weight"] // weights)
        lots = draw(received, left, consumer["purpose"], consumer["effective_day"], share)
        allotments.append({"consumer": consumer["page_id"], "lots": lots})
    return {
        "fields": fields,
        "received": received,
        "used": used,
        "allotments": allotments,
        "retained": [part(lot, rest) for lot, rest in zip(received, left, strict=True) if rest],
        "reservation": {
            "service_id": terms["service_id"],
            "amount": terms["demand"],
            "from_day": terms["effective_day"],
            "until_day": min([terms["horizon_day"]] + [lot["expires_on"] for lot in used]),
        },
    }


def merge_fields(terms, parents):
    """Rule 3: the least limit of each field, and where it was set."""
    merged, order = {}, {}
    candidates = [(record(entry, ENTRY, "entry"), False) for parent in parents for entry in parent["fields"]]
    for field in terms["fields"]:
        record(field, FIELD, "field")
        own = {name: field[name] for name in ("name", "type", "limit", "required")}
        candidates.append(({**own, "bound_by": terms["page_id"], "set_in": field["block_id"]}, True))
    distinct("field", (field["name"] for field in terms["fields"]))
    for entry, local in candidates:
        name, rank = entry["name"], (entry["limit"], local, entry["bound_by"], entry["set_in"])
        if name not in merged:
            merged[name], order[name] = entry, rank
            continue
        known = merged[name]
        if known["type"] != entry["type"]:
            raise ValueError(f"rule 3: the types of {name!r} disagree (schema_mismatch)")
        required = known["required"] or entry["required"]
        if rank < order[name]:
            known, order[name] = entry, rank
        merged[name] = {**known, "required": required}
    for name in terms["carry"]:
        if name not in merged:
            raise ValueError(f"rule 3: no block and no parent limits {name!r} (schema_mismatch)")
    return [merged[name] for name in sorted(merged)]


def merge_lots(lots):
    """Rule 4: one lot a grant, by expiry, then grant."""
    merged = {}
    for lot in lots:
        record(lot, LOT, "lot")
        if lot["amount"] < 0:
            raise ValueError("the amount of a lot must not be negative")
        known = merged.get(lot["grant_id"])
        if known is not None:
            if {**known, "amount": 0} != {**lot, "amount": 0}:
                raise ValueError(f"two lots of {lot['grant_id']!r} differ in more than their amount")
            lot = {**lot, "amount": lot["amount"] + known["amount"]}
        merged[lot["grant_id"]] = lot
    return sorted(merged.values(), key=lambda lot: (lot["expires_on"], lot["grant_id"]))


def draw(lots, left, purpose, day, amount):
    """Rules 5 and 6: up to the amount, in order, from the lots that serve this purpose on this day."""
    drawn = []
    for n, lot in enumerate(lots):
        if amount <= 0:
            break
        if left[n] and day <= lot["expires_on"] and purpose in lot["purposes"]:
            taken = min(left[n], amount)
            left[n] -= taken
            amount -= taken
            drawn.append(part(lot, taken))
    return drawn


def part(lot, amount):
    return lot if lot["amount"] == amount else {**lot, "amount": amount}


def distinct(what, keys):
    seen = set()
    for key in keys:
        if key in seen:
            raise ValueError(f"{what} {key!r} appears twice")
        seen.add(key)


def record(value, fields, what):
    """The value, if it is an object with exactly these fields of exactly these types."""
    alike = type(value) is dict and value.keys() == fields.keys()
    if alike and all(map(is_, map(type, map(value.get, fields)), fields.values())):
        return value
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
