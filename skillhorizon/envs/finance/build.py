"""Construction of FinanceOps tasks: families, variants and patterns into stages, sources, facts and updates.

Stages are counted 1..T; stage 0 stands for what is open from the start. A lane is a source's seq - 1. Each source
draws from a stream of its own, keyed by stage and lane, so a wider task has the same lanes and more. The right
answers are nowhere written down: they follow from the records by the rules of the trade.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from skillhorizon.envs.finance.goals import FinanceGoal
from skillhorizon.envs.finance.records import (
    Amendment,
    Component,
    Contract,
    CreditNote,
    Evidence,
    Format,
    IdentityMap,
    Invoice,
    Line,
    MapEntries,
    Obligation,
    PackEntry,
    Put,
    Reviewer,
    Row,
    Source,
    SourceRecords,
    Stage,
)
from skillhorizon.envs.finance.rules import admitted_classes, head
from skillhorizon.envs.finance.world import FinanceWorld

STAGES = {"64K": 4, "128K": 6, "256K": 10, "512K": 16, "1M": 24, "2M": 36, "4M": 54}
UPDATES = {"64K": 1, "128K": 2, "256K": 3, "512K": 5, "1M": 8, "2M": 12, "4M": 18}
PATTERNS = ("staggered", "distributed")
LATE_LANE = 3
"""Books after its stage's cutoff, hence is disclosed as deferred."""
DECOY_STAGE, DECOY_LANE = 2, 4
"""Where a wrong selection has the right effect on every amount."""
_ACCOUNTS, _FREE_ACCOUNTS, _MOVED_ACCOUNTS = 20, 14, 8
_GOAL = (
    "Bring the release to delivery: turn every source of every stage into a correct, current aggregate, close, "
    "review and publish each stage in order, have the whole release reviewed and published, and release its "
    "obligations. Records may be corrected while you work; notices say so. Whatever a correction makes stale "
    "must be renewed, and what was published before must be kept as a historical view."
)
_TABLES = (
    "stages", "sources", "records", "formats", "contracts", "identity_maps", "map_entries",
    "invoices", "credit_notes", "components", "evidence", "reviewers", "obligations",
)  # fmt: skip
_OBLIGATION_KINDS = ("covenant report", "tax filing", "grant statement", "audit file", "lender notice")


class Draws(NamedTuple):
    """What a variant turns. ``items`` are orders, lines or components a source, least and most."""

    items: tuple[int, int]
    updates: tuple[str, ...]
    carried: int = 1
    visits: int = 2
    formats: int = 3
    chain: int = 2
    revisions: int = 2
    latest: float = 0.5
    credits: float = 0.3
    reissues: float = 0.15
    decoys: float = 0.4
    exact: float = 0.5


VARIANTS: dict[tuple[str, str], Draws] = {
    ("heterogeneous-integration", "format-periods"): Draws((4, 5), ("correction",), formats=5),
    ("heterogeneous-integration", "identity-supersession"): Draws((3, 5), ("supersession", "correction"), chain=3),
    ("heterogeneous-integration", "revision-conflicts"): Draws((3, 5), ("correction",), revisions=4, latest=0.8),
    ("receivables-reconciliation", "short-over"): Draws((2, 3), ("paid amount",), exact=0.2),
    ("receivables-reconciliation", "credit-evidence"): Draws(
        (2, 4), ("late approval",), credits=0.9, reissues=0.35, decoys=0.7
    ),
    ("receivables-reconciliation", "split-settlement"): Draws(
        (3, 4), ("paid amount", "late approval"), carried=2, visits=3
    ),
    ("release-maintenance", "evidence-renewal"): Draws((1, 2), ("newer document",)),
    ("release-maintenance", "evidence-withdrawal"): Draws((2, 2), ("withdrawal",), decoys=0.8),
    ("release-maintenance", "carried-components"): Draws((2, 3), ("newer document", "withdrawal"), carried=2, visits=3),
}
FAMILIES = tuple(dict.fromkeys(family for family, _ in VARIANTS))


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Nine variants by two patterns: 18 in every band."""
    return tuple(
        TaskConfig("finance", family, variant, pattern, band, {"stages": STAGES[band], "updates": UPDATES[band]})
        for pattern in PATTERNS
        for family, variant in VARIANTS
    )


def month(number: int) -> str:
    """``YYYY-MM`` of a month counted from 1, which is January 2031."""
    return f"{2031 + (number - 1) // 12}-{(number - 1) % 12 + 1:02d}"


def cutoff(ordinal: int) -> int:
    """Rule of the calendar: stage ``ordinal`` closes at month 6 + ordinal."""
    return 6 + ordinal


class Struck(NamedTuple):
    """Update ``number`` (from 1) fires once ``published`` stages are, and strikes an earlier ``stage``."""

    number: int
    published: int
    stage: int


def struck_stages(stages: int, updates: int) -> list[Struck]:
    """When each update fires and where it strikes."""
    plan = []
    for u in range(1, updates + 1):
        published = -(-stages * u // (updates + 1)) + 1
        back = 1 if stages < 10 else (2 if stages >= 24 else 1) + u % 3
        plan.append(Struck(u, published, published - back))
    return plan


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed, ``size`` sources wide (at least 6)."""
    return _BUILDERS[config.family](config, seed, size).blueprint()


def correction(source: Source, records: SourceRecords) -> tuple[Put, Put]:
    """Other records of a source, which count one revision more."""
    corrected = replace(source, revision=source.revision + 1, records=records.count)
    return Put("records", source.source_id, records), Put("sources", source.source_id, corrected)


def written(minor: int, contract: Contract) -> str:
    """An amount in minor units as the rows under this contract write it."""
    return f"{minor // 100}.{minor % 100:02d}" if contract.scale_exponent == 2 else str(minor)


class Builder:
    """What all three families share: stages, sources, parents, reviewers, obligations, updates, the graph."""

    kind: Literal["integration", "receivables", "maintenance"]

    def __init__(self, config: TaskConfig, seed: int, width: int) -> None:
        self.key = ("finance", config.id, config.band, seed)
        self.config = config
        self.draws = VARIANTS[config.family, config.variant]
        self.width = width
        self.T = int(config.options["stages"])
        self.struck_at = {s.stage: s for s in struck_stages(self.T, int(config.options["updates"]))}
        self.ids = Ids(*self.key)
        self.stage_ids = [self.ids.new("stg", k) for k in range(1, self.T + 1)]
        self.entities = [self.ids.new("ent", n) for n in range(10)]
        self.suspense = self.ids.new("ent", "suspense")
        self.release_id = self.ids.new("rel", 0)
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
        self.needs: dict[str, list[Need]] = defaultdict(list)
        """source -> what its package needs"""

    # -- places ----------------------------------------------------------------------------------------------------

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    def parent(self, k: int, lane: int) -> int:
        """The earlier stage, or 0, that a source of stage ``k`` depends on."""
        if (k, lane) == (DECOY_STAGE, DECOY_LANE):
            return 1
        if self.config.pattern == "staggered":
            return max(0, k - 1 - lane % 2)
        return self.rng("parent", k, lane).randrange(k)

    def booking(self, k: int, lane: int) -> int:
        """The month in which a source books, by default just before its cutoff; the late lane just after."""
        return cutoff(k) + 1 if lane == LATE_LANE else cutoff(k) - lane % 2

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables[table][key] = record

    # -- the whole -------------------------------------------------------------------------------------------------

    def blueprint(self) -> Blueprint:
        self.source_ids = {
            (k, lane): self.ids.new("src", k, lane) for k in range(1, self.T + 1) for lane in range(self.width)
        }
        for k, stage_id in enumerate(self.stage_ids, 1):
            self.put("stages", stage_id, Stage(stage_id, k, month(cutoff(k))))
        self.prepare()
        for k, lane in self.source_ids:
            self.add_source(k, lane, self.rng("source", k, lane))
        self.finish()
        self._add_reviewers()
        return Blueprint(
            tables=self.tables,
            updates=self._updates(),
            graph=self._graph(),
            brief={
                "goal": _GOAL,
                "release_id": self.release_id,
                "stages": self.T,
                "sources": len(self.source_ids),
                "obligations": self._add_obligations(),
                "suspense_entity": self.suspense,
            },
            goal=FinanceGoal(tuple(self.source_ids.values())),
            scale={"Work packages": len(self.source_ids), "Logical stages": self.T},
        )

    def prepare(self) -> None:
        """Facts that are there before any source."""

    def add_source(self, k: int, lane: int, rng: random.Random) -> None:
        raise TypeError(f"{type(self).__name__} adds no sources")

    def finish(self) -> None:
        """Facts that follow from all sources together."""

    def amendment(self, world: FinanceWorld, struck: Struck, kind: str) -> Amendment:
        raise TypeError(f"{type(self).__name__} has no update {kind}")

    def _add_reviewers(self) -> None:
        rng = self.rng("reviewers")
        for n in range(6):
            limit = None if n < 3 else rng.choice((50, 200, 600, 1500)) * 1000
            reviewer_id = self.ids.new("rvr", n)
            self.put("reviewers", reviewer_id, Reviewer(reviewer_id, limit))

    def _add_obligations(self) -> int:
        rng = self.rng("obligations")
        count = 2 + self.T // 4
        restated = rng.sample(sorted({k for s in self.struck_at.values() for k in range(s.stage, s.published + 1)}), 2)
        for n in range(count):
            stage = restated[n] if n < 2 else rng.randint(1, self.T)
            obligation_id = self.ids.new("obg", n)
            basis: Any = "current" if n % 2 else "as_first_published"
            kind = _OBLIGATION_KINDS[n % len(_OBLIGATION_KINDS)]
            self.put("obligations", obligation_id, Obligation(obligation_id, kind, self.stage_ids[stage - 1], basis))
        return count

    def _updates(self) -> tuple[Update, ...]:
        """The updates in turn, each made on the records as those before it leave them."""
        world, kinds = FinanceWorld(self.tables), self.draws.updates
        updates = []
        for struck in self.struck_at.values():
            effect = self.amendment(world, struck, kinds[(struck.number - 1) % len(kinds)])
            updates.append(Update(struck.number, "stages_published", struck.published, effect))
            world.apply_update(updates[-1])
        return tuple(updates)

    def _graph(self) -> TaskGraph:
        modules = [
            Module(f"package:{source_id}", "package", k, source_id, tuple(dict.fromkeys(self.needs[source_id])))
            for (k, _), source_id in self.source_ids.items()
        ]
        closures = [f"closure:{stage_id}" for stage_id in self.stage_ids]
        for k, stage_id in enumerate(self.stage_ids, 1):
            needs = [Need(f"package:{self.source_ids[k, lane]}", "content") for lane in range(self.width)]
            if k > 1:
                needs.append(Need(closures[k - 2], "provenance"))
            modules.append(Module(closures[k - 1], "closure", k, stage_id, tuple(needs)))
        release = tuple(Need(closure, "provenance") for closure in closures)
        modules.append(Module("release", "release", self.T, self.release_id, release))
        return TaskGraph.of(modules)

    def _source(self, k: int, lane: int, records: SourceRecords, booking: int, **more: Any) -> None:
        source_id, stage_id = self.source_ids[k, lane], self.stage_ids[k - 1]
        source = Source(source_id, stage_id, lane + 1, self.kind, month(booking), records.count, 1, **more)
        self.put("sources", source_id, source)
        self.put("records", source_id, records)


class Integration(Builder):
    """Sources in their own formats; identity maps released by the publication of earlier stages."""

    kind = "integration"

    def prepare(self) -> None:
        rng = self.rng("formats")
        self.contract_in: dict[tuple[str, str], Contract] = {}
        """(format, month) -> contract in force"""
        self.accounts = sorted(self.ids.new("acc", n) for n in range(_ACCOUNTS))
        rng.shuffle(self.accounts)
        last = cutoff(self.T) + 3
        for n in range(self.draws.formats):
            name = self.ids.new("fmt", n)
            columns = ["row", "order", "rev", "kind", "amount", "debit", "credit"]
            rng.shuffle(columns)
            self.put("formats", name, Format(name, tuple(columns)))
            terms: tuple[Any, int, int] = (rng.choice(("debit", "credit")), rng.choice((0, 2)), rng.choice((1, -1)))
            for start in range(1 - n % 4, last + 1, 4):
                contract_id = self.ids.new("ctr", n, start)
                months = [month(m) for m in range(max(start, 1), start + 4)]
                contract = Contract(contract_id, name, months[0], months[-1], *terms)
                self.put("contracts", contract_id, contract)
                self.contract_in.update(((name, m), contract) for m in months)
                column, scale, sign = terms
                other = "credit" if column == "debit" else "debit"
                terms = rng.choice(((other, scale, sign), (column, 2 - scale, sign), (column, scale, -sign)))
        self.authority: dict[tuple[str, str], str] = {}
        """(identity source, month) -> map that decides there, once all are released"""
        self.identity_sources: dict[tuple[int, bool], str] = {}
        for j in range(self.T):
            for late in (False, True):
                self._add_chain(j, late, last)
        self.lasting_order: dict[str, str] = {}
        """source -> its order that no row withdraws"""

    def _add_chain(self, j: int, late: bool, last: int) -> None:
        """Base map, and the maps that supersede it and that stage ``j`` releases."""
        rng = self.rng("chain", j, late)
        name = self.identity_sources[j, late] = self.ids.new("idn", j, late)
        if late:
            ranges = [(1, last), (cutoff(j) + 1, last)]
        else:
            ranges = [(1, last), (cutoff(j) - 3, cutoff(j)), (cutoff(j) - 1, cutoff(j))][: self.draws.chain]
        entries = {account: rng.choice(self.entities) for account in self.accounts}
        before: str | None = None
        for number, (begin, end) in enumerate(ranges):
            if number:
                for account in rng.sample(self.accounts, _MOVED_ACCOUNTS):
                    entries[account] = rng.choice([e for e in self.entities if e != entries[account]])
            releaser = self.stage_ids[j - 1] if number and j else None
            map_id = self.ids.new("map", j, late, number)
            self.put("identity_maps", map_id, IdentityMap(map_id, name, month(begin), month(end), before, releaser))
            self.put("map_entries", map_id, MapEntries(tuple(sorted(entries.items()))))
            self.authority.update(((name, month(m)), map_id) for m in range(begin, end + 1))
            before = map_id

    def parent(self, k: int, lane: int) -> int:
        return super().parent(k, 0 if k in self.struck_at and lane == 1 else lane)

    def add_source(self, k: int, lane: int, rng: random.Random) -> None:
        j = self.parent(k, lane)
        late = lane == LATE_LANE
        struck = self.struck_at.get(k) if lane < 3 else None
        twin = struck is not None and lane < 2
        name = self.identity_sources[j, late]
        booking = self.booking(k, lane) if late else cutoff(j) - (self.rng("twin", k) if twin else rng).randrange(4)
        if j:
            self.needs[self.source_ids[k, lane]].append(Need(f"closure:{self.stage_ids[j - 1]}", "validity"))
        drawn = rng.random() < self.draws.latest
        policy = "latest_revision" if (twin if struck else drawn) else "first"
        form = rng.choice(list(self.tables["formats"]))
        contract = self.contract_in[form, month(booking)]
        usable = self.accounts[:_FREE_ACCOUNTS]
        if (k, lane) == (DECOY_STAGE, DECOY_LANE):
            usable = self._agreeing(self.authority[name, month(booking)])
        rows: list[Row] = []
        for n in range(rng.randint(*self.draws.items)):
            order = self.ids.new("ord", k, lane, n)
            account = self.reserved(struck) if twin and struck and n == 0 else rng.choice(usable)
            rows += self._order(order, account, contract, usable, n == 0, rng)
            if n == 0:
                self.lasting_order[self.source_ids[k, lane]] = order
        rng.shuffle(rows)
        labelled = tuple(replace(row, row=f"r{n:02d}") for n, row in enumerate(rows, 1))
        self._source(
            k, lane, SourceRecords(rows=labelled), booking, format=form, identity_source=name, conflict_policy=policy
        )

    def reserved(self, struck: Struck) -> str:
        """The account that only the twins of this update use."""
        return self.accounts[_ACCOUNTS - 1 - struck.number % (_ACCOUNTS - _FREE_ACCOUNTS)]

    def _agreeing(self, map_id: str) -> list[str]:
        """Accounts on which a map and the one that it supersedes agree."""
        before = self.tables["identity_maps"][map_id].supersedes
        entries, others = (dict(self.tables["map_entries"][m].entries) for m in (map_id, before))
        return [a for a in self.accounts[:_FREE_ACCOUNTS] if entries[a] == others[a]]

    def _order(
        self, order: str, account: str, contract: Contract, usable: list[str], lasting: bool, rng: random.Random
    ) -> list[Row]:
        """A sale and its revisions; a lasting order is never withdrawn."""
        weights = {"correction": 5, "metadata": 3, "withdrawal": 0 if lasting else 2}
        revisions = rng.choices(list(weights), list(weights.values()), k=rng.randint(0, self.draws.revisions))
        rows = []
        for rev, kind in enumerate(("sale", *revisions), 1):
            other = rng.choice(usable)
            debit, credit = (account, other) if contract.account_column == "debit" else (other, account)
            rows.append(Row("", order, rev, kind, written(rng.randint(1_000, 99_999), contract), debit, credit))  # type: ignore[arg-type]
        return rows

    def amendment(self, world: FinanceWorld, struck: Struck, kind: str) -> Amendment:
        rng = self.rng("update", struck.number)
        sources = [world.source(self.source_ids[struck.stage, lane]) for lane in range(3)]
        if kind == "supersession":
            return self._supersession(world, sources[0], struck, rng)
        puts: list[Put] = []
        for source in sources:
            rows = world.tables["records"][source.source_id].rows
            of_order = [r for r in rows if r.order == self.lasting_order[source.source_id]]
            last = head(of_order, "latest_revision")
            assert last is not None, "a lasting order has no withdrawal"
            contract = world.contract_for(source)
            amount = written(rng.randint(1_000, 99_999), contract)
            while amount in {r.amount for r in of_order}:
                amount = written(rng.randint(1_000, 99_999), contract)
            row = replace(last, row=f"r{len(rows) + 1:02d}", rev=len(of_order) + 1, kind="correction", amount=amount)
            puts += correction(source, SourceRecords(rows=(*rows, row)))
        subjects = tuple(s.source_id for s in sources)
        text = f"Sources {', '.join(subjects)} received a corrected row each."
        return Amendment("correction", subjects, text, tuple(puts), tuple(f"records:{s}" for s in subjects))

    def _supersession(self, world: FinanceWorld, source: Source, struck: Struck, rng: random.Random) -> Amendment:
        name, period = source.identity_source or "", source.booking_period
        before = self.authority[name, period]
        entries = dict(world.tables["map_entries"][before].entries)
        account = self.reserved(struck)
        entries[account] = rng.choice([e for e in self.entities if e != entries[account]])
        map_id = self.authority[name, period] = self.ids.new("map", "update", struck.number)
        text = f"Map {map_id} of identity source {name} supersedes {before} in {period}."
        releaser = world.tables["identity_maps"][before].released_by  # nobody sees it before what it supersedes
        puts = (
            Put("map_entries", map_id, MapEntries(tuple(sorted(entries.items())))),
            Put("identity_maps", map_id, IdentityMap(map_id, name, period, period, before, releaser)),
        )
        return Amendment("supersession", (name, map_id), text, puts, (f"maps:{name}",))


class Carried(Builder):
    """Families whose sources come back to the same object: first what the parent's source left open, then new ones."""

    def prepare(self) -> None:
        self.visits: dict[str, list[tuple[int, int]]] = {}
        """invoice or component -> the (stage, lane) of its sources, in order"""
        self.held: dict[tuple[int, int], list[str]] = {}
        """(stage, lane) -> its invoices or components in order, without the decoy: nothing later comes back to that"""

    def add_source(self, k: int, lane: int, rng: random.Random) -> None:
        decoy = (k, lane) == (DECOY_STAGE, DECOY_LANE)
        count = rng.randint(*self.draws.items)
        parent = self.held.get((self.parent(k, lane), lane), [])
        open_ones = [o for o in parent if len(self.visits[o]) < self.draws.visits]
        held = open_ones[-self.draws.carried :][: count - decoy]
        held += [self.new_object(k, lane, n, rng, decoy and n == count - 1) for n in range(len(held), count)]
        for o in held:
            for before in self.visits.setdefault(o, []):
                self.needs[self.source_ids[k, lane]].append(Need(f"package:{self.source_ids[before]}", "quantity"))
            self.visits[o].append((k, lane))
        self.held[k, lane] = held[: count - decoy]
        self.visit(k, lane, held, held[-1] if decoy else None, rng)

    def new_object(self, k: int, lane: int, n: int, rng: random.Random, decoy: bool) -> str:
        raise TypeError(f"{type(self).__name__} carries nothing")

    def visit(self, k: int, lane: int, held: list[str], decoy: str | None, rng: random.Random) -> None:
        raise TypeError(f"{type(self).__name__} visits nothing")

    def struck_objects(self, struck: Struck) -> Iterator[tuple[int, str]]:
        """For lanes 0 and 1 an object of the struck source, if possible one that a later source uses too."""
        for lane in (0, 1):
            place = (struck.stage, lane)
            later = [o for o in self.held[place] if self.visits[o][-1] != place]
            yield lane, (later or self.held[place])[0]


class Receivables(Carried):
    """Remittance batches that pay invoices, in part and over several batches, beside credit notes."""

    kind = "receivables"

    def prepare(self) -> None:
        super().prepare()
        self.reissue: dict[str, str] = {}
        self.pending: dict[tuple[int, int, str], str] = {}

    def new_object(self, k: int, lane: int, n: int, rng: random.Random, decoy: bool) -> str:
        invoice_id = self.ids.new("inv", k, lane, n)
        booking = self.booking(k, lane)
        owed = 0
        if rng.random() >= self.draws.exact:
            owed = rng.choice((rng.randint(1, 600), rng.randint(700, 9_000), -rng.randint(100, 4_000)))
        if decoy or rng.random() < self.draws.reissues:
            self.reissue[invoice_id] = self.ids.new("inv", k, lane, n, "reissue")
        names = (invoice_id, self.reissue.get(invoice_id, invoice_id))
        if not decoy and rng.random() < self.draws.credits:
            for c in range(rng.randint(1, 2)):
                approved = booking - rng.randint(0, 2)
                owed += self._note(rng.choice(names), (k, lane, n, c), rng, "approved", approved).amount_minor
        if not decoy and rng.random() < self.draws.decoys:
            status = rng.choice(("draft", "void", "approved"))
            late = booking + rng.randint(3, 6) if status == "approved" else None
            self._note(rng.choice(names), (k, lane, n, "decoy"), rng, status, late)
        customer, tolerance = rng.choice(self.entities), rng.choice((0, 0, rng.randint(50, 600)))
        self.put("invoices", invoice_id, Invoice(invoice_id, customer, owed, month(booking - 2), None, tolerance, ()))
        return invoice_id

    def _note(self, invoice_id: str, key: Any, rng: random.Random, status: Any, approved: int | None) -> CreditNote:
        credit_id = self.ids.new("crn", *key)
        note = CreditNote(credit_id, invoice_id, rng.randint(500, 8_000), status, month(approved) if approved else None)
        self.put("credit_notes", credit_id, note)
        return note

    def visit(self, k: int, lane: int, held: list[str], decoy: str | None, rng: random.Random) -> None:
        lines = []
        for n, invoice_id in enumerate(held, 1):
            paid = rng.randint(2_000, 60_000)
            reissue = self.reissue.get(invoice_id)
            named = reissue if reissue and (invoice_id == decoy or rng.random() < 0.5) else invoice_id
            invoice = self.tables["invoices"][invoice_id]
            payments = (*invoice.payment_sources, self.source_ids[k, lane])
            invoice = replace(invoice, amount_minor=invoice.amount_minor + paid, payment_sources=payments)
            self.put("invoices", invoice_id, invoice)
            lines.append(Line(self.ids.new("lin", k, lane, n), n, paid, named))
        self._source(k, lane, SourceRecords(lines=tuple(lines)), self.booking(k, lane))
        if (struck := self.struck_at.get(k)) and lane < 2:
            # drafts, one of which a late approval may turn into a note that counts
            rng = self.rng("pending", struck.number, lane)
            for invoice_id in held:
                note = self._note(invoice_id, ("pending", struck.number, lane, invoice_id), rng, "draft", None)
                self.pending[struck.number, lane, invoice_id] = note.credit_id

    def finish(self) -> None:
        for invoice in list(self.tables["invoices"].values()):
            invoice = replace(invoice, amount_minor=max(invoice.amount_minor, 1_000))
            self.put("invoices", invoice.invoice_id, invoice)
            if reissue := self.reissue.get(invoice.invoice_id):
                self.put("invoices", reissue, replace(invoice, invoice_id=reissue, reissue_of=invoice.invoice_id))

    def amendment(self, world: FinanceWorld, struck: Struck, kind: str) -> Amendment:
        rng = self.rng("update", struck.number)
        puts: list[Put] = []
        subjects, keys = [], []
        for lane, invoice_id in self.struck_objects(struck):
            source = world.source(self.source_ids[struck.stage, lane])
            if kind == "paid amount":
                lines = list(world.tables["records"][source.source_id].lines)
                index = self.held[struck.stage, lane].index(invoice_id)
                paid = lines[index].paid_minor + rng.choice((-1, 1)) * rng.randint(300, 1_500)
                lines[index] = replace(lines[index], paid_minor=paid)
                puts += correction(source, SourceRecords(lines=tuple(lines)))
                subjects.append(source.source_id)
                keys.append(f"records:{source.source_id}")
            else:
                note = world.tables["credit_notes"][self.pending[struck.number, lane, invoice_id]]
                note = replace(note, status="approved", approved=source.booking_period)
                puts.append(Put("credit_notes", note.credit_id, note))
                subjects += [invoice_id, note.credit_id]
                keys.append(f"credits:{invoice_id}")
        if kind == "paid amount":
            text = f"The paid amount of a line was corrected in {' and '.join(subjects)}."
        else:
            text = f"Credit notes {' and '.join(subjects[1::2])} on {' and '.join(subjects[::2])} have been approved."
        return Amendment(kind.replace(" ", "_"), tuple(subjects), text, tuple(puts), tuple(keys))


class Maintenance(Carried):
    """Packs of components whose book value follows the decisive evidence document."""

    kind = "maintenance"

    def prepare(self) -> None:
        super().prepare()
        self.seqs: dict[str, int] = {}

    def new_object(self, k: int, lane: int, n: int, rng: random.Random, decoy: bool) -> str:
        component_id = self.ids.new("cmp", k, lane, n)
        class_, entity = rng.choice(sorted(admitted_classes())), rng.choice(self.entities)
        component = Component(component_id, class_, entity, rng.randint(20_000, 400_000), ())
        self.put("components", component_id, component)
        return component_id

    def document(self, component: Component, class_: str, issued: int, amount: int, **more: Any) -> Evidence:
        """The next document on a component; by default it is valid and supersedes none."""
        name = component.component_id
        seq = self.seqs[name] = self.seqs.get(name, 0) + 1
        more = {"status": "valid", "supersedes": None} | more
        return Evidence(self.ids.new("doc", name, seq), name, class_, month(issued), seq, amount, **more)

    def visit(self, k: int, lane: int, held: list[str], decoy: str | None, rng: random.Random) -> None:
        booking = self.booking(k, lane)
        struck = k in self.struck_at and lane < 2
        for component_id in held:
            component: Component = self.tables["components"][component_id]
            packs = (*component.pack_sources, self.source_ids[k, lane])
            self.put("components", component_id, replace(component, pack_sources=packs))
            for document in self._evidence(component, booking, struck, component_id == decoy, rng):
                self.put("evidence", document.document_id, document)
        pack = tuple(PackEntry(component_id, n) for n, component_id in enumerate(held, 1))
        self._source(k, lane, SourceRecords(pack=pack), booking)

    def _evidence(
        self, component: Component, booking: int, struck: bool, equal_effect: bool, rng: random.Random
    ) -> Iterator[Evidence]:
        """What a visit finds: mostly a document that decides, perhaps an older one, and some that do not count."""
        admitted = sorted(admitted_classes()[component.class_])
        others = sorted({c for classes in admitted_classes().values() for c in classes} - set(admitted))
        amount = component.opening_minor + rng.randint(-9_000, 9_000)
        if struck or equal_effect or rng.random() < 0.85:
            older = None
            if rng.random() < 0.5:
                # not before the visit that came last: to that one it would count as newer than its own
                came = [self.booking(*place) for place in self.visits[component.component_id][:-1]]
                issued = max([booking - 1, *(last + 1 for last in came)])
                older = self.document(component, rng.choice(admitted), issued, amount - rng.randint(100, 900))
                yield older
            replaced = older.document_id if older and rng.random() < 0.5 else None
            yield self.document(component, rng.choice(admitted), booking, amount, supersedes=replaced)
        if equal_effect:
            yield self.document(component, "memo", booking, amount)
        for kind in ("memo", "withdrawn", "later", "class"):
            if rng.random() < self.draws.decoys / 2:
                value = amount + rng.choice((-1, 1)) * rng.randint(200, 5_000)
                chosen = "memo" if kind == "memo" else rng.choice(others if kind == "class" else admitted)
                status = "withdrawn" if kind == "withdrawn" else "valid"
                yield self.document(component, chosen, booking + (kind == "later"), value, status=status)

    def amendment(self, world: FinanceWorld, struck: Struck, kind: str) -> Amendment:
        rng = self.rng("update", struck.number)
        puts, subjects, texts = [], [], []
        for lane, component_id in self.struck_objects(struck):
            component: Component = world.tables["components"][component_id]
            booking = self.booking(struck.stage, lane)
            decisive = world.authoritative(component, month(booking))
            assert decisive is not None, "a struck pack has evidence"
            if kind == "withdrawal":
                document = replace(decisive, status="withdrawn")
            else:
                amount = decisive.amount_minor + rng.choice((-1, 1)) * rng.randint(300, 4_000)
                admitted = sorted(admitted_classes()[component.class_])
                document = self.document(component, rng.choice(admitted), booking, amount)
            puts.append(Put("evidence", document.document_id, document))
            subjects += [component_id, document.document_id]
            verb = "was withdrawn" if kind == "withdrawal" else "was issued"
            texts.append(f"Document {document.document_id} on component {component_id} {verb}.")
        keys = tuple(f"evidence:{c}" for c in subjects[::2])
        return Amendment(kind.replace(" ", "_"), tuple(subjects), " ".join(texts), tuple(puts), keys)


_BUILDERS: dict[str, type[Builder]] = dict(zip(FAMILIES, (Integration, Receivables, Maintenance), strict=True))
