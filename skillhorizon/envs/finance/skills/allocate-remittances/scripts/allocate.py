"""Allocate the lines of a remittance batch to their original invoices.

Input, amounts in minor units, none negative: `lines`, `{line, seq, paid_minor, invoice}`;
`invoices`, `{invoice, amount_minor, tolerance_minor, credits: [{credit, amount_minor}]}` with the
credit notes that count; `prior`, `{invoice, minor}`, what earlier sources applied and wrote off,
in one entry an invoice or in several, which add up.

Output: `items` by seq, each `{line, invoice, credits, applied, writeoff, unapplied}`.
"""

import json
import sys

INPUT = {"lines": list, "invoices": list, "prior": list}
LINE = {"line": str, "seq": int, "paid_minor": int, "invoice": str}
INVOICE = {"invoice": str, "amount_minor": int, "tolerance_minor": int, "credits": list}
CREDIT = {"credit": str, "amount_minor": int}
PRIOR = {"invoice": str, "minor": int}


def run(arguments: dict) -> dict:
    """The allocation; ValueError says what is wrong with the input."""
    record(arguments, INPUT, "input")
    balances, tolerances, credits = {}, {}, {}
    for entry in arguments["invoices"]:
        record(entry, INVOICE, "invoice")
        invoice = entry["invoice"]
        if invoice in balances:
            raise ValueError(f"invoice {invoice!r} appears twice")
        notes = [record(note, CREDIT, "credit") for note in entry["credits"]]
        credits[invoice] = sorted({note["credit"] for note in notes})
        if len(credits[invoice]) != len(notes):
            raise ValueError(f"invoice {invoice!r} has a credit note twice")
        tolerances[invoice] = not_negative(entry, "tolerance_minor")
        balances[invoice] = not_negative(entry, "amount_minor") - sum(
            not_negative(note, "amount_minor") for note in notes
        )

    for entry in arguments["prior"]:
        record(entry, PRIOR, "prior")
        balances[known(entry["invoice"], balances)] -= not_negative(entry, "minor")

    lines = sorted((record(line, LINE, "line") for line in arguments["lines"]), key=lambda line: line["seq"])
    for name in ("line", "seq"):
        if len({line[name] for line in lines}) != len(lines):
            raise ValueError(f"two lines have the same {name}")
    items = []
    for line in lines:
        invoice, paid = known(line["invoice"], balances), not_negative(line, "paid_minor")
        # Credits and earlier applications may exceed the invoice; then nothing is open.
        outstanding = max(0, balances[invoice])
        applied = min(paid, outstanding)
        rest = outstanding - applied
        writeoff = rest if rest <= tolerances[invoice] else 0
        balances[invoice] -= applied + writeoff
        items.append(
            {
                "line": line["line"],
                "invoice": invoice,
                "credits": credits[invoice],
                "applied": applied,
                "writeoff": writeoff,
                "unapplied": paid - applied,
            }
        )
    return {"items": items}


def known(invoice, balances):
    if invoice not in balances:
        raise ValueError(f"invoice {invoice!r} is not listed")
    return invoice


def not_negative(entry, name):
    if entry[name] < 0:
        raise ValueError(f"{name} must not be negative")
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
