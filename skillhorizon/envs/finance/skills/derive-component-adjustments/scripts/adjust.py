"""Bring each component of a maintenance pack to the amount that its document proves.

Input: `components`, `{component, class, entity, carrying_minor}`, the carrying amount being the
one before this pack; `evidence`, `{component, document, amount_minor}`, the one document chosen
for a component, or nothing for a component without one.

Output: `items` in the components' order; without a document the amount is 0 and the document null.
"""

import json
import sys

INPUT = {"components": list, "evidence": list}
COMPONENT = {"component": str, "class": str, "entity": str, "carrying_minor": int}
EVIDENCE = {"component": str, "document": str, "amount_minor": int}


def run(arguments: dict) -> dict:
    """The adjustments; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    chosen = {}
    for evidence in arguments["evidence"]:
        record(evidence, EVIDENCE, "evidence")
        if evidence["component"] in chosen:
            raise ValueError(f"component {evidence['component']!r} has two documents")
        chosen[evidence["component"]] = evidence

    items, seen = [], set()
    for entry in arguments["components"]:
        record(entry, COMPONENT, "component")
        component = entry["component"]
        if component in seen:
            raise ValueError(f"component {component!r} appears twice")
        seen.add(component)
        item = {"component": component, "document": None, "entity": entry["entity"], "minor": 0}
        if component in chosen:
            item["document"] = chosen[component]["document"]
            item["minor"] = chosen[component]["amount_minor"] - entry["carrying_minor"]
        items.append(item)
    for component in chosen:
        if component not in seen:
            raise ValueError(f"evidence names component {component!r}, which is not listed")
    return {"items": items}


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
