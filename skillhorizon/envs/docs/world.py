"""The portfolio office: pages and their blocks, interface contracts, and what makes a publication stale.

Days are day numbers and only compared with days, both ends of a range inclusive; quota is in calls a minute. Rule
numbers are those of the skills: each rule stands here once, for the operations, for staleness and for scoring.
"""

from __future__ import annotations

import hashlib
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.serial import canonical
from skillhorizon.core.world import CURRENT, Artifact, Update, World
from skillhorizon.envs.docs.records import (
    Allotment,
    Block,
    Booking,
    Bulletin,
    Charter,
    ClauseRequest,
    Consumer,
    Content,
    Entry,
    FieldTerm,
    ForeignReservation,
    Grant,
    Lot,
    Member,
    Page,
    Reservation,
    SignOff,
    Statement,
    Support,
)

SKILLS = Path(__file__).parent / "skills"
ALLOTMENT = "allotment"
"""The entry of a page that stands for its quota; every other entry is the name of a field."""
ROLES = ("security", "engineering")


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


class Standing(dict[str, Mapping[str, Any]]):
    """The seed world, with its records grouped once for all tasks of the process."""

    def _grouped(self, table: str, field: str) -> dict[str, list[Any]]:
        groups: dict[str, list[Any]] = {}
        for record in self.get(table, {}).values():
            groups.setdefault(getattr(record, field), []).append(record)
        return groups

    @cached_property
    def members_of(self) -> dict[str, list[Member]]:
        groups = self._grouped("project_members", "project_id")
        return {project: sorted(rows, key=lambda m: (m.person_id, m.role)) for project, rows in groups.items()}

    @cached_property
    def pages_of(self) -> dict[str, list[str]]:
        return {k: sorted(p.page_id for p in rows) for k, rows in self._grouped("pages", "project_id").items()}

    @cached_property
    def blocks_of(self) -> dict[str, list[str]]:
        groups = self._grouped("blocks", "page_id")
        return {k: [b.block_id for b in sorted(rows, key=lambda b: b.order)] for k, rows in groups.items()}

    @cached_property
    def links_from(self) -> dict[str, list[str]]:
        return {k: sorted(r.link_id for r in rows) for k, rows in self._grouped("page_links", "from_page").items()}


class DocsWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {
        "contract": "ctr",
        "reservation": "rsv",
        "revision": "rev",
        "signoff": "sgn",
        "decision": "dcs",
        "publication": "pub",
        "binding": "bnd",
        "receipt": "rcp",
        "impact_statement": "imp",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        t = self.tables
        self.standing = seed_tables if isinstance(seed_tables, Standing) else Standing(seed_tables or {})
        self.window_id: str = self.brief.get("window_id", "")
        self.items = {row["page_id"]: row["item_id"] for row in self.brief.get("pages", ())}
        """requested page -> its tracker item"""
        self.bulletins: list[Bulletin] = [u.effect for u in updates]
        self.pages_of: dict[str, list[str]] = {}
        for page in sorted(t["pages"].values(), key=lambda p: p.page_id):
            self.pages_of.setdefault(page.project_id, []).append(page.page_id)
        self.blocks_of: dict[str, list[str]] = {}
        self.approved: dict[str, dict[str, list[str]]] = {}
        """page -> key -> its approved blocks, notes left out"""
        for block in sorted(t["blocks"].values(), key=lambda b: (b.page_id, b.order)):
            self._index(block)
        self.links_from: dict[str, list[str]] = {}
        self.parents_of: dict[str, list[str]] = {}
        self.children_of: dict[str, list[str]] = {}
        for link in sorted(t["page_links"].values(), key=lambda link: link.link_id):
            self.links_from.setdefault(link.from_page, []).append(link.link_id)
            if link.kind == "derives_from" and link.state == "active":
                self.parents_of.setdefault(link.from_page, []).append(link.to_page)
                self.children_of.setdefault(link.to_page, []).append(link.from_page)
        self.grants_of: dict[str, list[str]] = {}
        for grant in sorted(t["grants"].values(), key=lambda g: g.grant_id):
            self.grants_of.setdefault(grant.owner_page, []).append(grant.grant_id)
        self.given: dict[str, tuple[dict[str, Entry], dict[str, tuple[Lot, ...]]]] = {}
        """publication -> its entries by field, its lots by consumer"""
        self.support: dict[str, Support] = {}
        """contract or publication -> what it rests on"""
        self.marked: dict[str, frozenset[str]] = {}
        """page -> the entries by which its newest publication is marked"""
        self.unsettled = set(self.items)
        """requested pages without a publication, or with a marked one"""
        self.reserved: dict[str, list[tuple[int, str]]] = {}
        """service -> (from_day, id) of its reservations, sorted"""
        self.held: dict[str, ForeignReservation | Reservation] = {}
        self.capacity = self.ledgers["services"] = Ledger(
            {slot(s.service_id, d): s.capacity for s in t["services"].values() for d in _days(s.first_day, s.last_day)}
        )
        for held in sorted(t["reservations"].values(), key=lambda r: r.reservation_id):
            self._enter(held.reservation_id, held.team_id, held)

    # -- looking up ------------------------------------------------------------------------------------------------

    def page(self, page_id: str) -> Page:
        page: Page = self.get("pages", page_id)
        return page

    def newest_of(self, kind: str, subject: str, ordinal: int | None = None) -> Artifact | None:
        """The newest version of the artifact of this kind about this subject."""
        return self.newest.get(derived(self.prefixes[kind], subject, ordinal))

    def signoff_of(self, page_id: str, role: str) -> Artifact | None:
        return self.newest_of("signoff", page_id, ROLES.index(role) + 1)

    def publication_of(self, page_id: str) -> Artifact | None:
        return self.newest_of("publication", page_id)

    def head_revision(self, page: Page) -> str | None:
        revision = self.newest_of("revision", page.page_id)
        return revision.ref if revision else page.head_revision

    def governing(self, page_id: str) -> list[Block]:
        """Rule 1: per key the approved block that was decided last."""
        table = self.tables["blocks"]
        return [
            max((table[b] for b in blocks), key=lambda b: b.decided_on)
            for blocks in self.approved.get(page_id, {}).values()
        ]

    def terms(self, page_id: str) -> Terms:
        return terms_of(page_id, self.governing(page_id))

    def usable_grants(self, page_id: str, day: int) -> list[Grant]:
        """Rule 8: own, active, valid by the effective day."""
        grants = (self.tables["grants"][g] for g in self.grants_of.get(page_id, ()))
        return [g for g in grants if usable(g, page_id, day)]

    def give(self, publication: str, page_id: str, fields: Iterable[str]) -> Given:
        """What one version of a parent's publication gives a page; refuses a field that it does not have."""
        entries, lots = self.given[publication]
        for name in fields:
            if name not in entries:
                raise Rejected("schema_mismatch", f"{publication} has no field {name}", field=name, page_id=page_id)
        return Given(tuple(entries[name] for name in fields), lots.get(page_id, ()))

    def contract_from(self, terms: Terms, publications: Mapping[str, str], grants: Iterable[Grant]) -> Content:
        """Rules 2 to 7 over some terms, parent -> publication, and grants."""
        given = [
            self.give(ref, terms.page_id, taken_fields(terms, parent)) for parent, ref in sorted(publications.items())
        ]
        return reconcile(terms, given, map(lot_of, grants))

    def impact(self, page_id: str, field: str) -> set[str]:
        """Rule 14 by the governing blocks."""
        return affected(page_id, field, self.children_of, lambda child, parent: taken_fields(self.terms(child), parent))

    @property
    def announced(self) -> list[Bulletin]:
        return self.bulletins[: self.counters.get("bulletins", 0)]

    @property
    def window_closed(self) -> bool:
        receipt = self.newest_of("receipt", self.window_id)
        return receipt is not None and receipt.content.state == "closed"

    # -- reservations (rule 7) -------------------------------------------------------------------------------------

    def fits(self, holder: str, wanted: Reservation) -> int | None:
        """The first day without room for what is wanted, once what the holder has is given back; else None."""
        for day in _days(wanted.from_day, wanted.until_day):
            if not self.capacity.fits(slot(wanted.service_id, day), wanted.amount, f"{holder}/{day}"):
                return day
        return None

    def hold(self, holder: str, wanted: Reservation) -> None:
        """Exchange the holder's reservation, if any, for another one, which fits."""
        before = self.held.get(holder)
        if before is not None:
            for day in _days(before.from_day, before.until_day):
                self.capacity.release(f"{holder}/{day}")
            self.reserved[before.service_id].remove((before.from_day, holder))
        self._enter(holder, wanted.page_id, wanted)

    def _enter(self, holder: str, owner: str, held: ForeignReservation | Reservation) -> None:
        for day in _days(held.from_day, held.until_day):
            self.capacity.reserve(slot(held.service_id, day), held.amount, owner, f"{holder}/{day}")
        insort(self.reserved.setdefault(held.service_id, []), (held.from_day, holder))
        self.held[holder] = held

    # -- staleness (rules 10 to 12) --------------------------------------------------------------------------------

    def marks(self, artifact: Artifact) -> dict[str, str]:
        """Rule 12: the entries by which a contract or publication is marked, each with its cause."""
        page_id, support = artifact.subject, self.support[artifact.ref]
        found: dict[str, str] = {}
        for block_id in support.blocks:
            block: Block = self.tables["blocks"][block_id]
            if block.state == "superseded":
                found[entry_of(block)] = f"{block_id} was superseded"
        for parent, publication, fields in support.takes:
            newest = self.publication_of(parent)
            if newest is None:
                continue
            suspect = self.marked.get(parent, frozenset())
            if newest.ref == publication and not suspect:
                continue
            (entries, lots), (entries_then, lots_then) = self.given[newest.ref], self.given[publication]
            for name in fields:
                if name in suspect:
                    found[name] = f"{name} of {parent} is suspect"
                elif entries.get(name) != entries_then.get(name):
                    found[name] = f"{name} of {parent} differs in {newest.ref}"
            if ALLOTMENT in suspect:
                found[ALLOTMENT] = f"the allotments of {parent} are suspect"
            elif lots.get(page_id) != lots_then.get(page_id):
                found[ALLOTMENT] = f"the allotment of {parent} differs in {newest.ref}"
        return found

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        if artifact.kind in ("contract", "publication"):
            return next(iter(self.marks(artifact).values()), None)
        if artifact.kind == "signoff":
            return self._lapse(artifact.content)
        if artifact.kind in ("decision", "binding"):
            return super().staleness(artifact, cause)
        return None

    def _lapse(self, signoff: SignOff) -> str | None:
        """Rule 10: why an approval no longer holds."""
        if signoff.outcome != "approved":
            return None
        contract = self.newest_of("contract", signoff.page_id)
        revision = self.newest_of("revision", signoff.page_id)
        assert contract is not None, "an approval binds one"
        assert revision is not None, "an approval binds one"
        if signoff.role == "security":
            if contract.content.quota_digest != signoff.quota_digest:
                return f"{contract.ref} has another quota digest"
            clause = self.clause_of(signoff.page_id, "security")
            dropped = clause is not None and clause not in revision.content.clauses
            return f"{revision.ref} drops the clause {clause}" if dropped else None
        if contract.ref != signoff.contract or contract.status != CURRENT:
            return f"{contract.ref} is not the contract that was approved, or is marked"
        return None if revision.ref == signoff.document_revision else f"{revision.ref} was not approved"

    def clause_of(self, page_id: str, role: str) -> str | None:
        """The clause that a role asks of a page."""
        request: ClauseRequest | None = self.tables["clause_requests"].get(page_id)
        return request.clause if request is not None and request.role == role else None

    def read_keys(self, support: Support, page_id: str) -> list[str]:
        """What a contract or publication is asked again for: its blocks, and the entries that it took."""
        keys = [f"block:{block_id}" for block_id in support.blocks]
        for parent, _, fields in support.takes:
            keys += [f"{parent}/{name}" for name in fields]
            keys.append(f"{parent}/{ALLOTMENT}:{page_id}")
        return keys

    def released(self, publication: Artifact, before: Artifact | None) -> None:
        """A publication is out: what it gives, whom it touches, and that it is settled."""
        content: Content = publication.content.content
        entries = {e.name: e for e in content.fields}
        lots = {a.consumer: a.lots for a in content.allotments}
        page_id = publication.subject
        self.given[publication.ref] = (entries, lots)
        self.unsettled.discard(page_id)
        keys: list[str] = []
        if before is not None:
            entries_then, lots_then = self.given[before.ref]
            names = sorted({*entries, *entries_then})
            keys += [f"{page_id}/{n}" for n in names if entries.get(n) != entries_then.get(n)]
            consumers = sorted({*lots, *lots_then})
            keys += [f"{page_id}/{ALLOTMENT}:{c}" for c in consumers if lots.get(c) != lots_then.get(c)]
            self._spread([page_id, *self.children_of.get(page_id, ())], keys, publication.ref)

    def _spread(self, pages: list[str], keys: list[str], cause: str) -> None:
        """Bring the marks of these pages, and on down of those that took from them, up to date."""
        queue = deque(pages)
        while queue:
            page_id = queue.popleft()
            publication = self.publication_of(page_id)
            if publication is None:
                continue
            then, now = self.marked.get(page_id, frozenset()), frozenset(self.marks(publication))
            if now == then:
                continue
            self.marked[page_id] = now
            for entry in sorted(now ^ then):
                if entry == ALLOTMENT:
                    keys += [f"{page_id}/{ALLOTMENT}:{c}" for c in self.given[publication.ref][1]]
                else:
                    keys.append(f"{page_id}/{entry}")
            if page_id in self.items:
                (self.unsettled.add if now else self.unsettled.discard)(page_id)
            queue += self.children_of.get(page_id, ())
        self.changed(*keys, cause=cause)

    # -- updates ---------------------------------------------------------------------------------------------------

    def _index(self, block: Block) -> None:
        self.blocks_of.setdefault(block.page_id, []).append(block.block_id)
        if block.state == "approved" and block.kind != "note":
            self.approved.setdefault(block.page_id, {}).setdefault(block.key, []).append(block.block_id)

    def apply_update(self, update: Update) -> None:
        """Rule 13: a bulletin's block takes the place of the one that it supersedes."""
        bulletin: Bulletin = update.effect
        block, before = bulletin.block, bulletin.block.supersedes or ""
        self.amend("blocks", before, state="superseded")
        self.approved[block.page_id][block.key].remove(before)
        self.put("blocks", block.block_id, block)
        self._index(block)
        self.announce("bulletin", (bulletin.bulletin_id, block.page_id, block.block_id), bulletin.text)
        proposal = bulletin.proposal
        self.announce("proposal", (proposal.proposal_id, proposal.page_id, proposal.block_id), proposal.text)
        self._spread([block.page_id], [f"block:{before}"], bulletin.bulletin_id)


def usable(grant: Grant, page_id: str, day: int) -> bool:
    return grant.owner_page == page_id and grant.state == "active" and grant.valid_from <= day


def lot_of(grant: Grant) -> Lot:
    return Lot(grant.grant_id, grant.owner_page, grant.purposes, grant.amount, grant.expires_on)


def entry_of(block: Block) -> str:
    """The entry by which superseding a block marks its page."""
    return block.body.name if block.kind == "field" else ALLOTMENT


def slot(service_id: str, day: int) -> str:
    return f"{service_id}/{day}"


def _days(first: int, last: int) -> range:
    return range(first, last + 1)
