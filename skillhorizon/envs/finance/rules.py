"""Arithmetic of the ledger office: pure functions over values. Rule numbers are those of the skills.

Amounts are integer minor units; months are ``YYYY-MM`` and compare as text; ranges are inclusive.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from pathlib import Path

from skillhorizon.envs.finance.records import Contract, Row, Totals

SKILLS = Path(__file__).parent / "skills"


# -- arithmetic ------------------------------------------------------------------------------------------------------


def head(rows: Iterable[Row], policy: str) -> Row | None:
    """Rule 3: the row of one order that counts, or None where the order is withdrawn."""
    rows = list(rows)
    counted = [r for r in rows if r.kind in ("sale", "correction")]
    if policy == "first":
        return min(counted, key=lambda r: r.rev)
    if any(r.kind == "withdrawal" for r in rows):
        return None
    return max(counted, key=lambda r: r.rev)


def minor_of(amount: str, contract: Contract) -> int | None:
    """Rule 4: sign * amount * 10^scale in minor units, or None where that is a fraction."""
    scaled = Decimal(amount).scaleb(contract.scale_exponent)
    whole = int(scaled)
    return contract.sign * whole if whole == scaled else None


def account_of(row: Row, contract: Contract) -> str:
    return row.debit if contract.account_column == "debit" else row.credit


def allocation(paid: int, open_minor: int, tolerance: int) -> tuple[int, int, int]:
    """Rule 6: applied, written off, unapplied."""
    applied = min(paid, open_minor)
    rest = open_minor - applied
    return applied, rest if 0 < rest <= tolerance else 0, paid - applied


def totals_of(postings: Iterable[tuple[str, int]]) -> Totals:
    """Rule 8: sums by entity; zeros count as absent."""
    totals: Totals = {}
    for entity, minor in postings:
        totals[entity] = totals.get(entity, 0) + minor
    return {entity: minor for entity, minor in sorted(totals.items()) if minor}


@cache
def admitted_classes() -> dict[str, frozenset[str]]:
    """Rule 7: document classes admitted for each class of component, from the skill's own reference table."""
    path = SKILLS / "derive-component-adjustments" / "references" / "component-classes.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {r["class"]: frozenset(r["admitted_document_classes"].split()) for r in csv.DictReader(file)}
