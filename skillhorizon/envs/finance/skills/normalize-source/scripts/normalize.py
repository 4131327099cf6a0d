"""Turn the rows of an integration source into canonical amounts.

Input: `columns` (the names of a row's cells, in order), `rows` (arrays of cells), `entries`
(`{account, entity}` of one identity map), `account_column`, `scale_exponent` and `sign` of one
format contract, and `policy`, the source's rule for an order with several revisions.

Output: `items`, one for each order that counts, by order id; `excluded_orders`, those with no
row that counts; `unmapped_accounts`, accounts that the entries lack (their orders get no item).
"""

import json
import re
import sys

INPUT = {
    "columns": list,
    "rows": list,
    "entries": list,
    "account_column": str,
    "scale_exponent": int,
    "sign": int,
    "policy": str,
}
ROW = {"row": str, "order": str, "rev": int, "kind": str, "amount": str, "debit": str, "credit": str}
ENTRY = {"account": str, "entity": str}
# Which of an order's revisions stands for it.
POLICIES = {"first": min, "latest_revision": max}
LARGEST_EXPONENT = 9
DECIMAL = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")


def run(arguments: dict) -> dict:
    """The items of one source; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    columns, account_column = arguments["columns"], arguments["account_column"]
    exponent, sign, policy = arguments["scale_exponent"], arguments["sign"], arguments["policy"]
    if account_column not in ("debit", "credit"):
        raise ValueError("account_column must be debit or credit")
    if not 0 <= exponent <= LARGEST_EXPONENT:
        raise ValueError(f"scale_exponent must be 0 to {LARGEST_EXPONENT}")
    if sign not in (1, -1):
        raise ValueError("sign must be 1 or -1")
    if policy not in POLICIES:
        raise ValueError("policy must be first or latest_revision")
    for name in columns:
        if type(name) is not str or name not in ROW:
            raise ValueError(f"unknown column {name!r}")
    if len(columns) != len(ROW) or len(set(columns)) != len(ROW):
        raise ValueError(f"columns must name each of {', '.join(ROW)} once")

    entities = {}
    for entry in arguments["entries"]:
        record(entry, ENTRY, "entry")
        if entry["account"] in entities:
            raise ValueError(f"account {entry['account']!r} has two entries")
        entities[entry["account"]] = entry["entity"]

    revisions, withdrawn = amounts_by_order(columns, arguments["rows"])
    if policy == "first":
        withdrawn = ()  # the first record is kept, whatever came after it
    items, excluded, unmapped = [], [], set()
    for order in sorted(revisions):
        of_order = revisions[order]
        if not of_order or order in withdrawn:
            excluded.append(order)
            continue
        head = of_order[POLICIES[policy](of_order)]
        minor = sign * minor_units(head, exponent)
        account = head[account_column]
        if account in entities:
            items.append({"order": order, "row": head["row"], "entity": entities[account], "minor": minor})
        else:
            unmapped.add(account)
    return {"items": items, "excluded_orders": excluded, "unmapped_accounts": sorted(unmapped)}


def amounts_by_order(columns, rows):
    """Each order's sale and correction rows by revision, and the orders that a row withdraws."""
    revisions, withdrawn, seen = {}, set(), set()
    for cells in rows:
        if type(cells) is not list or len(cells) != len(columns):
            raise ValueError(f"each row must be an array of {len(columns)} cells")
        row = record(dict(zip(columns, cells, strict=True)), ROW, "row")
        order, rev, kind = row["order"], row["rev"], row["kind"]
        if row["row"] in seen:
            raise ValueError(f"row {row['row']!r} appears twice")
        seen.add(row["row"])
        of_order = revisions.setdefault(order, {})
        if kind in ("sale", "correction"):
            if rev in of_order:
                raise ValueError(f"order {order!r} has two amounts of revision {rev}")
            of_order[rev] = row
        elif kind == "withdrawal":
            withdrawn.add(order)
        elif kind != "metadata":
            raise ValueError(f"row {row['row']!r} has the unknown kind {kind!r}")
    return revisions, withdrawn


def minor_units(row, exponent):
    """The row's decimal text times 10 to the exponent, on its digits, so that nothing is rounded."""
    if not DECIMAL.fullmatch(row["amount"]):
        raise ValueError(f"row {row['row']!r}: amount must be a plain decimal number")
    units, _, fraction = row["amount"].partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > exponent:
        raise ValueError(f"row {row['row']!r}: amount is not exact in minor units")
    return int(units + fraction.ljust(exponent, "0"))


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
