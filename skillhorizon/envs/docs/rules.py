"""Rules 3 to 7 and 14 of the portfolio office: pure functions over values."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from skillhorizon.core.errors import Rejected
from skillhorizon.core.serial import canonical
from skillhorizon.envs.docs.records import (
    Allotment,
    Block,
    Booking,
    Charter,
    Consumer,
    Content,
    Entry,
    FieldTerm,
    Grant,
    Lot,
    Reservation,
    Statement,
)

SKILLS = Path(__file__).parent / "skills"

ALLOTMENT = "allotment"
"""The entry of a page that stands for its quota; every other entry is the name of a field."""


# -- rules 3 to 7: a contract from its terms ---------------------------------------------------------------------------


class Terms(NamedTuple):
    """What the blocks of a page say, one block a key."""

    page_id: str
    charter: Charter
    carry: tuple[str, ...]
    service_id: str
    fields: tuple[tuple[FieldTerm, str], ...]
    """with the block that each stands in"""
    imports: dict[str, tuple[str, ...]]
    consumers: tuple[Consumer, ...]
    """by page_id"""


class Given(NamedTuple):
    """What a parent gives a page: the entries that the page takes, and the lots allotted to it."""

    fields: tuple[Entry, ...]
    lots: tuple[Lot, ...]


def terms_of(page_id: str, blocks: Iterable[Block]) -> Terms:
    """The terms in some blocks of a page; without charter, carry and service a page owns no contract."""
    single: dict[str, Any] = {}
    fields: list[tuple[FieldTerm, str]] = []
    imports: dict[str, tuple[str, ...]] = {}
    consumers: list[Consumer] = []
    for block in blocks:
        if block.kind == "field":
            fields.append((block.body, block.block_id))
        elif block.kind == "import":
            imports[block.body.page_id] = block.body.fields
        elif block.kind == "consumer":
            consumers.append(block.body)
        else:
            single[block.kind] = block.body
    if not {"charter", "carry", "service"} <= single.keys():
        raise Rejected("wrong_state", f"{page_id} has no charter, carry and service blocks", page_id=page_id)
    consumers.sort(key=lambda c: c.page_id)
    service = single["service"].service_id
    return Terms(page_id, single["charter"], single["carry"].fields, service, tuple(fields), imports, tuple(consumers))


def field_entries(terms: Terms, given: Iterable[Given]) -> tuple[Entry, ...]:
    """Rule 3. Ties: inherited before local, then lower bound_by."""
    best: dict[str, tuple[tuple[int, bool, str, str], Entry]] = {}
    required: set[str] = set()
    local = [
        Entry(term.name, term.type, term.limit, term.required, terms.page_id, block_id)
        for term, block_id in terms.fields
    ]
    for here, entries in ((False, [e for parent in given for e in parent.fields]), (True, local)):
        for e in entries:
            rank = (e.limit, here, e.bound_by, e.set_in)
            known = best.get(e.name)
            if known is not None and known[1].type != e.type:
                raise Rejected(
                    "schema_mismatch", f"the types of {e.name} disagree", field=e.name, page_id=terms.page_id
                )
            if known is None or rank < known[0]:
                best[e.name] = (rank, e)
            if e.required:
                required.add(e.name)
    for name in terms.carry:
        if name not in best:
            raise Rejected("schema_mismatch", f"no block or parent limits {name}", field=name, page_id=terms.page_id)
    return tuple(
        e if e.required == (name in required) else replace(e, required=True) for name, (_, e) in sorted(best.items())
    )


def lot_order(lot: Lot) -> tuple[int, str]:
    return lot.expires_on, lot.grant_id


def resized(lot: Lot, amount: int) -> Lot:
    return lot if amount == lot.amount else Lot(lot.grant_id, lot.owner_page, lot.purposes, amount, lot.expires_on)


def merged(lots: Iterable[Lot]) -> tuple[Lot, ...]:
    """Rule 4: lots of one grant are one lot."""
    by_grant: dict[str, Lot] = {}
    for lot in lots:
        known = by_grant.get(lot.grant_id)
        by_grant[lot.grant_id] = lot if known is None else resized(lot, lot.amount + known.amount)
    return tuple(sorted(by_grant.values(), key=lot_order))


class Pool:
    """Lots in order, drawn down by those whom they serve (rules 5 and 6)."""

    def __init__(self, lots: Sequence[Lot]) -> None:
        self.lots = lots
        self.left = [lot.amount for lot in lots]

    def draw(self, purpose: str, day: int, amount: int) -> tuple[Lot, ...]:
        """As much of ``amount`` as the lots that serve this purpose on this day give, soonest expiry first."""
        drawn: list[Lot] = []
        left = self.left
        for n, lot in enumerate(self.lots):
            if amount <= 0:
                break
            if left[n] > 0 and day <= lot.expires_on and purpose in lot.purposes:
                taken = min(left[n], amount)
                left[n] -= taken
                amount -= taken
                drawn.append(resized(lot, taken))
        return tuple(drawn)

    def rest(self) -> tuple[Lot, ...]:
        return tuple(resized(lot, left) for lot, left in zip(self.lots, self.left, strict=True) if left)


def total(lots: Iterable[Lot]) -> int:
    return sum([lot.amount for lot in lots])


def entitlements(consumers: Sequence[Consumer], quota: int) -> list[int]:
    """Rule 6: the share of each consumer by weight, at most its limit."""
    weights = sum(c.weight for c in consumers)
    return [min(c.limit, quota * c.weight // weights) for c in consumers]


def booking_of(terms: Terms, used: Iterable[Lot]) -> Booking:
    """Rule 7: the capacity that a page needs."""
    charter = terms.charter
    until = min((charter.horizon_day, *(lot.expires_on for lot in used)))
    return Booking(terms.service_id, charter.demand, charter.effective_day, until)


def reconcile(terms: Terms, given: Sequence[Given], grants: Iterable[Lot]) -> Content:
    """Rules 3 to 7. Refuses what cannot be satisfied: ``schema_mismatch``, ``quota_short``."""
    charter = terms.charter
    received = merged((*(lot for parent in given for lot in parent.lots), *grants))
    pool = Pool(received)
    used = pool.draw(charter.purpose, charter.effective_day, charter.demand)
    if total(used) < charter.demand:
        raise Rejected(
            "quota_short", "the lots that serve the page are less than its demand", page_id=terms.page_id, rule=5
        )
    shares = entitlements(terms.consumers, sum(pool.left)) if terms.consumers else []
    allotments = tuple(
        Allotment(consumer.page_id, pool.draw(consumer.purpose, consumer.effective_day, share))
        for consumer, share in zip(terms.consumers, shares, strict=True)
    )
    fields = field_entries(terms, given)
    return Content(fields, received, used, allotments, pool.rest(), booking_of(terms, used))


def quota_digest(content: Content) -> str:
    """12 hex characters over everything but the fields."""
    parts = (content.received, content.used, content.allotments, content.retained, content.reservation)
    return hashlib.sha256(canonical(parts)).hexdigest()[:12]


def statement_of(content: Content) -> Statement:
    """Rule 9."""
    return Statement(
        {e.name: e.limit for e in content.fields},
        total(content.used),
        {a.consumer: total(a.lots) for a in content.allotments},
        content.reservation.until_day,
    )


def taken_fields(terms: Terms, parent: str) -> tuple[str, ...]:
    """Rule 2: what the import block of a parent names, or all carried fields where it has none."""
    return terms.imports.get(parent, terms.carry)


def affected(
    page_id: str, field: str, children_of: Mapping[str, Sequence[str]], taken: Callable[[str, str], Iterable[str]]
) -> set[str]:
    """Rule 14: the page and every page that takes the field from it, directly or through others.

    ``taken(child, parent)`` are the fields that a child takes.
    """
    found, queue = {page_id}, [page_id]
    while queue:
        parent = queue.pop()
        for child in children_of.get(parent, ()):
            if child not in found and field in taken(child, parent):
                found.add(child)
                queue.append(child)
    return found


def covers(held: Reservation, needed: Booking, used: Iterable[Lot]) -> bool:
    """Rule 7: a held reservation may be larger or start earlier, and outlives no quota used."""
    return (
        held.service_id == needed.service_id
        and held.amount >= needed.amount
        and held.from_day <= needed.from_day
        and needed.until_day <= held.until_day
        and all(held.until_day <= lot.expires_on for lot in used)
    )


def usable(grant: Grant, page_id: str, day: int) -> bool:
    return grant.owner_page == page_id and grant.state == "active" and grant.valid_from <= day


def lot_of(grant: Grant) -> Lot:
    return Lot(grant.grant_id, grant.owner_page, grant.purposes, grant.amount, grant.expires_on)


def entry_of(block: Block) -> str:
    """The entry by which superseding a block marks its page."""
    return block.body.name if block.kind == "field" else ALLOTMENT


def slot(service_id: str, day: int) -> str:
    return f"{service_id}/{day}"
