"""The portfolio office: pages and their blocks, interface contracts, and what makes a publication stale.

Days are day numbers and only compared with days, both ends of a range inclusive; quota is in calls a minute. Rule
numbers are those of the skills: each rule stands once, in ``rules`` or here, for the operations, for staleness and for
scoring.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, Artifact, Update, World
from skillhorizon.envs.docs.records import (
    Block,
    Bulletin,
    ClauseRequest,
    Content,
    Entry,
    ForeignReservation,
    Grant,
    Lot,
    Member,
    Page,
    Reservation,
    SignOff,
    Support,
)
from skillhorizon.envs.docs.rules import (
    ALLOTMENT,
    Given,
    Terms,
    affected,
    entry_of,
    lot_of,
    reconcile,
    slot,
    taken_fields,
    terms_of,
    usable,
)

ROLES = ("security", "engineering")


# -- rules 3 to 7: a contract from its terms ---------------------------------------------------------------------------


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


def _days(first: int, last: int) -> range:
    return range(first, last + 1)
