"""Construction of FinanceOps tasks: families, variants and patterns into stages, sources, facts and updates.

Stages are counted 1..T; stage 0 stands for what is open from the start. A lane is a source's seq - 1. Each source
draws from a stream of its own, keyed by stage and lane, so a wider task has the same lanes and more. The right
answers are nowhere written down: they follow from the records by the rules of the trade.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from skillhorizon.envs.finance.world import (
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
    admitted_classes,
    head,
)

STAGES = {"64K": 4, "128K": 6, "256K": 10, "512K": 16, "1M": 24, "2M": 36, "4M": 54}
UPDATES = {"64K": 1, "128K": 2, "256K": 3, "512K": 5, "1M": 8, "2M": 12, "4M": 18}
PATTERNS = ("staggered", "distributed")
LATE_LANE = 3
"""Books after its stage's cutoff, hence is disclosed as deferred."""
DECOY_STAGE, DECOY_LANE = 2, 4
"""Where a wrong selection has the right effect on every amount."""
_ACCOUNTS, _FREE_ACCOUNTS, _MOVED_ACCOUNTS = 20, 14, 8
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
_KINDS = dict(zip(FAMILIES, ("integration", "receivables", "maintenance"), strict=True))


class FinanceGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which packages the release must hold."""

    packages: tuple[str, ...]


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Nine variants by two patterns: 18 in every band."""
    options: dict[str, int | str] = {"stages": STAGES[band], "updates": UPDATES[band]}
    return tuple(
        TaskConfig("finance", family, variant, pattern, band, options)
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
    return {"integration": Integration, "receivables": Receivables, "maintenance": Maintenance}[_KINDS[config.family]](
        config, seed, size
    ).blueprint()


class Builder:
    """What all three families share: stages, sources, parents, reviewers, obligations, updates, the graph."""

    kind: str

    def __init__(self, config: TaskConfig, seed: int, width: int) -> None:
        self.key = ("finance", config.id, config.band, seed)
        self.config = config
        self.draws = VARIANTS[config.family, config.variant]
        self.width = width
        self.T = int(config.options["stages"])
        self.struck = struck_stages(self.T, int(config.options["updates"]))
        self.struck_at = {s.stage: s for s in self.struck}
        self.ids = Ids(*self.key)
        self.stage_ids = [self.ids.new("stg", k) for k in range(1, self.T + 1)]
        self.entities = [self.ids.new("ent", n) for n in range(10)]
        self.suspense = self.ids.new("ent", "suspense")
        self.release_id = self.ids.new("rel", 0)
        self.tables: dict[str, dict[str, Any]] = {
            name: {}
            for name in (
                "stages", "sources", "records", "formats", "contracts", "identity_maps", "map_entries",
                "invoices", "credit_notes", "components", "evidence", "reviewers", "obligations",
            )
        }  # fmt: skip
        self.needs: dict[str, list[Need]] = {}

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
        obligations = self._add_obligations()
        initial = {name: dict(rows) for name, rows in self.tables.items()}
        goal_text = (
            "Bring the release to delivery: turn every source of every stage into a correct, current aggregate, close, "
            "review and publish each stage in order, have the whole release reviewed and published, and release its "
            "obligations. Records may be corrected while you work; notices say so. Whatever a correction makes stale "
            "must be renewed, and what was published before must be kept as a historical view."
        )
        brief = {
            "goal": goal_text,
            "release_id": self.release_id,
            "stages": self.T,
            "sources": len(self.source_ids),
            "obligations": obligations,
            "suspense_entity": self.suspense,
        }
        return Blueprint(
            tables=initial,
            updates=self._updates(),
            graph=self._graph(),
            brief=brief,
            goal=FinanceGoal(tuple(self.source_ids.values())),
            scale={"Work packages": len(self.source_ids), "Logical stages": self.T},
        )

    def prepare(self) -> None:
        """Facts that are there before any source."""

    def add_source(self, k: int, lane: int, rng: random.Random) -> None:
        raise TypeError(f"{type(self).__name__} adds no sources")

    def finish(self) -> None:
        """Facts that follow from all sources together."""

    def amendment(self, struck: Struck, kind: str) -> Amendment:
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
        restated = rng.sample(sorted({k for s in self.struck for k in range(s.stage, s.published + 1)}), 2)
        for n in range(count):
            stage = restated[n] if n < 2 else rng.randint(1, self.T)
            obligation_id = self.ids.new("obg", n)
            basis: Any = "current" if n % 2 else "as_first_published"
            kind = _OBLIGATION_KINDS[n % len(_OBLIGATION_KINDS)]
            self.put("obligations", obligation_id, Obligation(obligation_id, kind, self.stage_ids[stage - 1], basis))
        return count

    def _updates(self) -> tuple[Update, ...]:
        """The updates in turn, each made on the records as those before it leave them (``initial`` is set aside)."""
        updates = []
        for struck in self.struck:
            kinds = self.draws.updates
            effect = self.amendment(struck, kinds[(struck.number - 1) % len(kinds)])
            updates.append(Update(struck.number, "stages_published", struck.published, effect))
        return tuple(updates)

    def _graph(self) -> TaskGraph:
        modules = []
        for k, stage_id in enumerate(self.stage_ids, 1):
            packages = [f"package:{self.source_ids[k, lane]}" for lane in range(self.width)]
            for key in packages:
                needs = tuple(dict.fromkeys(self.needs.get(key, ())))
                modules.append(Module(key, "package", k, key.partition(":")[2], needs))
            closure_needs = [Need(key, "content") for key in packages]
            if k > 1:
                closure_needs.append(Need(f"closure:{self.stage_ids[k - 2]}", "provenance"))
            modules.append(Module(f"closure:{stage_id}", "closure", k, stage_id, tuple(closure_needs)))
        release = tuple(Need(f"closure:{stage_id}", "provenance") for stage_id in self.stage_ids)
        modules.append(Module("release", "release", self.T, self.release_id, release))
        return TaskGraph.of(modules)

    def need(self, source_id: str, of: str, kind: Any) -> None:
        self.needs.setdefault(f"package:{source_id}", []).append(Need(of, kind))

    def _source(self, k: int, lane: int, records: SourceRecords, booking: int, **more: Any) -> None:
        source_id = self.source_ids[k, lane]
        count = len(records.rows or records.lines or records.pack)
        source = Source(source_id, self.stage_ids[k - 1], lane + 1, self.kind, month(booking), count, 1, **more)  # type: ignore[arg-type]
        self.put("sources", source_id, source)
        self.put("records", source_id, records)

    def _amended_records(self, source_id: str, records: SourceRecords) -> list[Put]:
        """A correction of a source's records: they count one revision more."""
        source: Source = self.tables["sources"][source_id]
        count = len(records.rows or records.lines or records.pack)
        amended = replace(source, revision=source.revision + 1, records=count)
        return [self._amend("records", source_id, records), self._amend("sources", source_id, amended)]

    def _amend(self, table: str, key: str, record: Record) -> Put:
        self.put(table, key, record)
        return Put(table, key, record)


class Integration(Builder):
    """Sources in their own formats; identity maps released by the publication of earlier stages."""

    kind = "integration"

    def prepare(self) -> None:
        rng = self.rng("formats")
        self.accounts = sorted(self.ids.new("acc", n) for n in range(_ACCOUNTS))
        rng.shuffle(self.accounts)
        self.formats: list[str] = []
        last = cutoff(self.T) + 3
        for n in range(self.draws.formats):
            name = self.ids.new("fmt", n)
            columns = ["row", "order", "rev", "kind", "amount", "debit", "credit"]
            rng.shuffle(columns)
            self.put("formats", name, Format(name, tuple(columns)))
            self.formats.append(name)
            terms: tuple[Any, int, int] = (rng.choice(("debit", "credit")), rng.choice((0, 2)), rng.choice((1, -1)))
            start = 1 - n % 4
            while start <= last:
                contract_id = self.ids.new("ctr", n, start)
                begin, end = month(max(start, 1)), month(start + 3)
                self.put("contracts", contract_id, Contract(contract_id, name, begin, end, *terms))
                terms = self._other_terms(terms, rng)
                start += 4
        self.final: dict[tuple[str, int], str] = {}
        """(identity source, month) -> map that is the final authority there"""
        self.before: dict[str, str] = {}
        """map -> the map it supersedes"""
        self.identity_sources: dict[tuple[int, bool], str] = {}
        for j in range(self.T):
            for late in (False, True):
                self._add_chain(j, late, last)
        self.struck_orders: dict[str, str] = {}

    @staticmethod
    def _other_terms(terms: tuple[Any, int, int], rng: random.Random) -> tuple[Any, int, int]:
        column, scale, sign = terms
        turned = rng.randrange(3)
        return (
            ("credit" if column == "debit" else "debit") if turned == 0 else column,
            2 - scale if turned == 1 else scale,
            -sign if turned == 2 else sign,
        )

    def _add_chain(self, j: int, late: bool, last: int) -> None:
        """Base map, and the maps that supersede it and that stage ``j`` releases."""
        rng = self.rng("chain", j, late)
        name = self.identity_sources[j, late] = self.ids.new("idn", j, late)
        releaser = self.stage_ids[j - 1] if j else None
        if late:
            ranges = [(1, last), (cutoff(j) + 1, last)]
        else:
            ranges = [(1, last), (cutoff(j) - 3, cutoff(j)), (cutoff(j) - 1, cutoff(j))][: self.draws.chain]
        entries = {account: rng.choice(self.entities) for account in self.accounts}
        previous: str | None = None
        for number, (begin, end) in enumerate(ranges):
            if number:
                for account in rng.sample(self.accounts, _MOVED_ACCOUNTS):
                    entries[account] = rng.choice([e for e in self.entities if e != entries[account]])
            previous = self._add_map(
                name, (j, late, number), month(begin), month(end), previous, releaser if number else None, entries
            )
            for m in range(begin, end + 1):
                self.final[name, m] = previous

    def _add_map(
        self,
        name: str,
        key: Any,
        begin: str,
        end: str,
        before: str | None,
        releaser: str | None,
        entries: dict[str, str],
    ) -> str:
        map_id = self.ids.new("map", *key)
        self.put("identity_maps", map_id, IdentityMap(map_id, name, begin, end, before, releaser))
        self.put("map_entries", map_id, MapEntries(tuple(sorted(entries.items()))))
        if before:
            self.before[map_id] = before
        return map_id

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
            self.need(self.source_ids[k, lane], f"closure:{self.stage_ids[j - 1]}", "validity")
        policy = "latest_revision" if rng.random() < self.draws.latest else "first"
        if struck:
            policy = "latest_revision" if twin else "first"
        form = rng.choice(self.formats)
        contract = next(
            c
            for c in self.tables["contracts"].values()
            if c.format == form and c.effective_from <= month(booking) <= c.effective_to
        )
        usable = self.accounts[:_FREE_ACCOUNTS]
        if (k, lane) == (DECOY_STAGE, DECOY_LANE):
            usable = self._agreeing(self.final[name, booking])
        rows: list[Row] = []
        for n in range(rng.randint(*self.draws.items)):
            order = self.ids.new("ord", k, lane, n)
            account = self.reserved(struck) if twin and struck and n == 0 else rng.choice(usable)
            rows += self._order(order, account, contract, usable, n == 0, rng)
            if n == 0:
                self.struck_orders[self.source_ids[k, lane]] = order
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
        entries, others = (dict(self.tables["map_entries"][m].entries) for m in (map_id, self.before[map_id]))
        return [a for a in self.accounts[:_FREE_ACCOUNTS] if entries[a] == others[a]]

    def _order(
        self, order: str, account: str, contract: Contract, usable: list[str], lasting: bool, rng: random.Random
    ) -> list[Row]:
        """A sale and its revisions; a lasting order is never withdrawn."""
        kinds = ["sale"]
        for _ in range(rng.randint(0, self.draws.revisions)):
            kinds.append(rng.choices(("correction", "metadata", "withdrawal"), (5, 3, 0 if lasting else 2))[0])
        rows = []
        for rev, kind in enumerate(kinds, 1):
            other = rng.choice(usable)
            debit, credit = (account, other) if contract.account_column == "debit" else (other, account)
            rows.append(Row("", order, rev, kind, self._amount(contract, rng), debit, credit))  # type: ignore[arg-type]
        return rows

    @staticmethod
    def _amount(contract: Contract, rng: random.Random) -> str:
        minor = rng.randint(1_000, 99_999)
        return f"{minor // 100}.{minor % 100:02d}" if contract.scale_exponent == 2 else str(minor)

    def amendment(self, struck: Struck, kind: str) -> Amendment:
        rng = self.rng("update", struck.number)
        if kind == "supersession":
            return self._supersession(struck, rng)
        subjects, puts = [], []
        for lane in range(3):
            source_id = self.source_ids[struck.stage, lane]
            records: SourceRecords = self.tables["records"][source_id]
            source: Source = self.tables["sources"][source_id]
            order = self.struck_orders[source_id]
            rows = [r for r in records.rows if r.order == order]
            last = head(rows, "latest_revision")
            assert last is not None, "a lasting order has no withdrawal"
            contract = next(
                c
                for c in self.tables["contracts"].values()
                if c.format == source.format and c.effective_from <= source.booking_period <= c.effective_to
            )
            amount = self._amount(contract, rng)
            while amount in {r.amount for r in rows}:
                amount = self._amount(contract, rng)
            label, rev = f"r{len(records.rows) + 1:02d}", max(r.rev for r in rows) + 1
            row = replace(last, row=label, rev=rev, kind="correction", amount=amount)
            puts += self._amended_records(source_id, SourceRecords(rows=(*records.rows, row)))
            subjects.append(source_id)
        text = f"Sources {', '.join(subjects)} received a corrected row each."
        return Amendment("correction", tuple(subjects), text, tuple(puts), tuple(f"records:{s}" for s in subjects))

    def _supersession(self, struck: Struck, rng: random.Random) -> Amendment:
        source: Source = self.tables["sources"][self.source_ids[struck.stage, 0]]
        name = source.identity_source or ""
        when = next(m for m in range(1, cutoff(self.T) + 3) if month(m) == source.booking_period)
        before = self.final[name, when]
        entries = dict(self.tables["map_entries"][before].entries)
        account = self.reserved(struck)
        entries[account] = rng.choice([e for e in self.entities if e != entries[account]])
        map_id = self.ids.new("map", "update", struck.number)
        identity = IdentityMap(map_id, name, source.booking_period, source.booking_period, before, None)
        self.final[name, when] = map_id
        text = f"Map {map_id} of identity source {name} supersedes {before} in {source.booking_period}."
        puts = (
            self._amend("map_entries", map_id, MapEntries(tuple(sorted(entries.items())))),
            self._amend("identity_maps", map_id, identity),
        )
        return Amendment("supersession", (name, map_id), text, puts, (f"maps:{name}",))


class Carried(Builder):
    """Families whose sources come back to the same object: first what the parent's source left open, then new ones."""

    def prepare(self) -> None:
        self.visits: dict[str, list[tuple[int, int]]] = {}
        """invoice or component -> the (stage, lane) of its sources, in order"""
        self.held: dict[tuple[int, int], list[str]] = {}
        """(stage, lane) -> invoices or components, in the order of its records"""
        self.closed: set[str] = set()

    def add_source(self, k: int, lane: int, rng: random.Random) -> None:
        parent = self.parent(k, lane)
        open_ones = [
            o
            for o in self.held.get((parent, lane), ())
            if len(self.visits[o]) < self.draws.visits and o not in self.closed
        ]
        count = rng.randint(*self.draws.items)
        decoy = (k, lane) == (DECOY_STAGE, DECOY_LANE)
        carried = open_ones[-self.draws.carried :][: count - 1 if decoy else count]
        held = carried + [
            self.new_object(k, lane, n, rng, decoy and n == count - 1) for n in range(len(carried), count)
        ]
        for o in held:
            for before in self.visits.setdefault(o, []):
                self.need(self.source_ids[k, lane], f"package:{self.source_ids[before]}", "quantity")
            self.visits[o].append((k, lane))
        self.held[k, lane] = held
        if decoy:
            self.closed.add(held[-1])
        self.visit(k, lane, held, rng)

    def new_object(self, k: int, lane: int, n: int, rng: random.Random, decoy: bool) -> str:
        raise TypeError(f"{type(self).__name__} carries nothing")

    def visit(self, k: int, lane: int, held: list[str], rng: random.Random) -> None:
        raise TypeError(f"{type(self).__name__} visits nothing")

    def struck_objects(self, struck: Struck) -> list[tuple[int, str]]:
        """For lanes 0 and 1 an object of the struck source, if possible one that a later source uses too."""
        found = []
        for lane in (0, 1):
            place = (struck.stage, lane)
            later = [o for o in self.held[place] if self.visits[o][-1] != place]
            found.append((lane, (later or self.held[place])[0]))
        return found


class Receivables(Carried):
    """Remittance batches that pay invoices, in part and over several batches, beside credit notes."""

    kind = "receivables"

    def prepare(self) -> None:
        super().prepare()
        self.invoices: dict[str, dict[str, Any]] = {}
        self.lines: dict[tuple[int, int], list[Line]] = {}
        self.paid: dict[str, int] = {}
        self.pending: dict[tuple[int, int, str], str] = {}

    def new_object(self, k: int, lane: int, n: int, rng: random.Random, decoy: bool) -> str:
        d = self.draws
        invoice_id = self.ids.new("inv", k, lane, n)
        booking = self.booking(k, lane)
        residual = 0
        if rng.random() >= d.exact:
            residual = rng.choice((rng.randint(1, 600), rng.randint(700, 9_000), -rng.randint(100, 4_000)))
        reissue = self.ids.new("inv", k, lane, n, "reissue") if decoy or rng.random() < d.reissues else None
        credited = 0
        if not decoy and rng.random() < d.credits:
            for c in range(rng.randint(1, 2)):
                approved = booking - rng.randint(0, 2)
                note = self._note(
                    rng.choice((invoice_id, reissue or invoice_id)), (k, lane, n, c), rng, "approved", approved
                )
                credited += note.amount_minor
        if not decoy and rng.random() < d.decoys:
            kind = rng.choice(("draft", "void", "approved"))
            late = booking + rng.randint(3, 6) if kind == "approved" else None
            self._note(rng.choice((invoice_id, reissue or invoice_id)), (k, lane, n, "decoy"), rng, kind, late)
        self.invoices[invoice_id] = {
            "customer": rng.choice(self.entities),
            "issued": month(booking - 2),
            "tolerance_minor": rng.choice((0, 0, rng.randint(50, 600))),
            "rest": credited + residual,
            "reissue": reissue,
        }
        return invoice_id

    def _note(
        self, invoice_id: str, key: tuple[object, ...], rng: random.Random, status: Any, approved: int | None = None
    ) -> CreditNote:
        credit_id = self.ids.new("crn", *key)
        when = None if approved is None else month(approved)
        note = CreditNote(credit_id, invoice_id, rng.randint(500, 8_000), status, when)
        self.put("credit_notes", credit_id, note)
        return note

    def visit(self, k: int, lane: int, held: list[str], rng: random.Random) -> None:
        decoy = (k, lane) == (DECOY_STAGE, DECOY_LANE)
        lines = []
        for n, invoice_id in enumerate(held, 1):
            paid = rng.randint(2_000, 60_000)
            reissue = self.invoices[invoice_id]["reissue"]
            by_reissue = reissue and ((decoy and n == len(held)) or rng.random() < 0.5)
            self.paid[invoice_id] = self.paid.get(invoice_id, 0) + paid
            lines.append(Line(self.ids.new("lin", k, lane, n), n, paid, reissue if by_reissue else invoice_id))
        self.lines[k, lane] = lines
        self._source(k, lane, SourceRecords(lines=tuple(lines)), self.booking(k, lane))
        if (struck := self.struck_at.get(k)) and lane < 2:
            # drafts, one of which a late approval may turn into a note that counts
            rng = self.rng("pending", struck.number, lane)
            for invoice_id in held:
                note = self._note(invoice_id, ("pending", struck.number, lane, invoice_id), rng, "draft")
                self.pending[struck.number, lane, invoice_id] = note.credit_id

    def finish(self) -> None:
        for invoice_id, facts in self.invoices.items():
            amount = max(self.paid[invoice_id] + facts["rest"], 1_000)
            sources = tuple(self.source_ids[place] for place in self.visits[invoice_id])
            for identity, of in ((invoice_id, None), (facts["reissue"], invoice_id)):
                if identity is not None:
                    invoice = Invoice(
                        identity, facts["customer"], amount, facts["issued"], of, facts["tolerance_minor"], sources
                    )
                    self.put("invoices", identity, invoice)

    def amendment(self, struck: Struck, kind: str) -> Amendment:
        rng = self.rng("update", struck.number)
        puts: list[Put] = []
        subjects, keys = [], []
        for lane, invoice_id in self.struck_objects(struck):
            source_id = self.source_ids[struck.stage, lane]
            if kind == "paid amount":
                records: SourceRecords = self.tables["records"][source_id]
                index = self.held[struck.stage, lane].index(invoice_id)
                line = records.lines[index]
                paid = line.paid_minor + rng.choice((-1, 1)) * rng.randint(300, 1_500)
                lines = (*records.lines[:index], replace(line, paid_minor=paid), *records.lines[index + 1 :])
                puts += self._amended_records(source_id, SourceRecords(lines=lines))
                subjects.append(source_id)
                keys.append(f"records:{source_id}")
            else:
                note = self.tables["credit_notes"][self.pending[struck.number, lane, invoice_id]]
                approved = self.tables["sources"][source_id].booking_period
                note = replace(note, status="approved", approved=approved)
                puts.append(self._amend("credit_notes", note.credit_id, note))
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
        self.facts: dict[str, tuple[str, str, int]] = {}
        self.seqs: dict[str, int] = {}

    def new_object(self, k: int, lane: int, n: int, rng: random.Random, decoy: bool) -> str:
        component_id = self.ids.new("cmp", k, lane, n)
        class_ = rng.choice(sorted(admitted_classes()))
        self.facts[component_id] = (class_, rng.choice(self.entities), rng.randint(10_000, 400_000))
        return component_id

    def _document(
        self,
        component: str,
        class_: str,
        issued: int,
        amount: int,
        status: str = "valid",
        supersedes: str | None = None,
    ) -> Evidence:
        seq = self.seqs[component] = self.seqs.get(component, 0) + 1
        document_id = self.ids.new("doc", component, seq)
        document = Evidence(document_id, component, class_, month(issued), seq, amount, status, supersedes)  # type: ignore[arg-type]
        self.put("evidence", document_id, document)
        return document

    def visit(self, k: int, lane: int, held: list[str], rng: random.Random) -> None:
        booking = self.booking(k, lane)
        struck = k in self.struck_at and lane < 2
        decoy = (k, lane) == (DECOY_STAGE, DECOY_LANE)
        for component in held:
            class_, _, opening = self.facts[component]
            admitted = sorted(admitted_classes()[class_])
            others = sorted({c for classes in admitted_classes().values() for c in classes} - set(admitted))
            amount = opening + rng.randint(-9_000, 9_000)
            equal_effect = decoy and component == held[-1]
            if struck or equal_effect or rng.random() < 0.85:
                before = None
                if rng.random() < 0.5:
                    before = self._document(
                        component, rng.choice(admitted), booking - 1, amount - rng.randint(100, 900)
                    )
                replaced = before.document_id if before and rng.random() < 0.5 else None
                self._document(component, rng.choice(admitted), booking, amount, supersedes=replaced)
            if equal_effect:
                self._document(component, "memo", booking, amount)
            for kind in ("memo", "withdrawn", "later", "class"):
                if rng.random() < self.draws.decoys / 2:
                    value = amount + rng.choice((-1, 1)) * rng.randint(200, 5_000)
                    chosen = (
                        "memo" if kind == "memo" else rng.choice(others if kind == "class" and others else admitted)
                    )
                    issued = booking + 1 if kind == "later" else booking
                    self._document(component, chosen, issued, value, "withdrawn" if kind == "withdrawn" else "valid")
        pack = tuple(PackEntry(component, n) for n, component in enumerate(held, 1))
        self._source(k, lane, SourceRecords(pack=pack), booking)

    def finish(self) -> None:
        for component_id, (class_, entity, opening) in self.facts.items():
            sources = tuple(self.source_ids[place] for place in self.visits[component_id])
            self.put("components", component_id, Component(component_id, class_, entity, opening, sources))

    def amendment(self, struck: Struck, kind: str) -> Amendment:
        rng = self.rng("update", struck.number)
        puts, subjects = [], []
        for lane, component in self.struck_objects(struck):
            booking = self.booking(struck.stage, lane)
            class_ = self.facts[component][0]
            admitted = admitted_classes()[class_]
            such = [
                d
                for d in self.tables["evidence"].values()
                if d.component == component
                and d.status == "valid"
                and d.class_ in admitted
                and d.issued <= month(booking)
            ]
            replaced = {d.supersedes for d in such}
            decisive = max((d for d in such if d.document_id not in replaced), key=lambda d: (d.issued, d.seq))
            if kind == "withdrawal":
                document = replace(decisive, status="withdrawn")
            else:
                amount = decisive.amount_minor + rng.choice((-1, 1)) * rng.randint(300, 4_000)
                document = self._document(component, rng.choice(sorted(admitted)), booking, amount)
            puts.append(self._amend("evidence", document.document_id, document))
            subjects += [component, document.document_id]
        verb = "was withdrawn" if kind == "withdrawal" else "was issued"
        text = " ".join(
            f"Document {d} on component {c} {verb}." for c, d in zip(subjects[::2], subjects[1::2], strict=True)
        )
        keys = tuple(f"evidence:{c}" for c in subjects[::2])
        return Amendment(kind.replace(" ", "_"), tuple(subjects), text, tuple(puts), keys)
