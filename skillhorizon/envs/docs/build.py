"""Construction of DocOps tasks: families, topologies and variants into lanes of pages, quota, services and bulletins.

Page i stands in lane i mod 3 at level i // 3; each lane is a project of the seed world. Each page draws from streams of
its own, keyed without the number of pages, so a larger task has the same pages and more. The right answers are nowhere
written down: they follow from blocks, grants and links by the rules.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, NeedKind, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from skillhorizon.envs.docs.records import (
    Block,
    Bulletin,
    Carry,
    Charter,
    ClauseRequest,
    Consumer,
    Content,
    FieldTerm,
    ForeignReservation,
    Grant,
    Import,
    Link,
    Page,
    Proposal,
    Service,
    ServiceUse,
    TrackerItem,
)
from skillhorizon.envs.docs.rules import Given, Pool, Terms, affected, lot_of, merged, reconcile, taken_fields
from skillhorizon.envs.docs.seed import (
    ASPECTS,
    COMMON_PURPOSE,
    FIELDS,
    OWN_FIELDS,
    PURPOSES,
    Vocabulary,
    seed_ids,
    seed_tables,
)

LANES = 3
FAMILIES = ("expiring-reservations", "independent-amendments", "expiry-amendments")
TOPOLOGIES = ("chain-join", "braided", "distributed")
PLANS = (("mixed", TOPOLOGIES), ("uniform", TOPOLOGIES[:2]))
"""Variants and their topologies: five plans, hence 15 configurations in every band."""
SENTENCES = {"64K": (1, 3), "128K": (3, 2), "256K": (2, 2), "512K": (3, 3), "1M": (3, 3), "2M": (3, 3), "4M": (3, 3)}
"""Prose of a block, in sentences beyond the first, without and with bulletins: the fine knob of the workload."""
MIXED_SENTENCES = {"512K": 3, "1M": 5, "2M": 5, "4M": 5}
"""Further ones where purposes are mixed: quota then splits into fewer lots, which the larger bands would feel."""
_FAR = 999
_SHARES = (18, 25, 36)
"""Per cent of the pages that a bulletin is to affect."""
_MOST_AFFECTED, _MOST_PRESERVED, _LARGEST = 29, 56, 105
"""The paper's limits of what a bulletin affects and preserves, and the most pages of its largest tasks."""
_EXPIRIES = ((2, 3, 4, 6, 8, 12, 16, 20, 24), (0, 1, 2, 3, 4, 6, 8, 10, 12, 16))
_FOREIGN = 10
_CLAUSES = (
    "appeal-against-throttling", "data-retention-period", "fallback-when-exhausted", "notice-before-change",
    "owner-on-call", "regional-exception", "replay-protection", "rollback-path",
)  # fmt: skip
_OPENINGS = {
    "charter": "This page settles what its callers may rely on, from which day and for how long.",
    "carry": "These fields go on from stage to stage and each page may only tighten them.",
    "service": "Calls of this page run on the shared service named here.",
    "field": "Limit agreed for this field on this page.",
    "import": "The fields named here are taken over from the page beside.",
    "consumer": "Terms on which the consumer named here may draw on what this page leaves over.",
    "interface": "How callers reach the interface that this contract describes.",
    "note": "For the reader only; no term of the contract follows from this.",
}
_PROSE = (
    "The figure was discussed with everyone who calls the interface today.",
    "It was measured over a full month, weekends and month's end included.",
    "Whoever needs more asks the owner of the page before the effective day.",
    "The value replaces what the kickoff minutes said.",
    "Monitoring compares it daily with what is really called.",
    "A breach is answered with an error that names the field, never with silence.",
    "Teams that only read are bound by it as well.",
    "The review board saw the figure and had no objection.",
    "Older clients need no change as long as they stay below it.",
    "It holds for all regions alike until a page says otherwise.",
    "The reasoning stands in the minutes of the planning round.",
    "Test and staging calls count in the same way.",
    "Nothing here changes who answers for the data.",
    "The wording was kept short so that it can be quoted.",
    "Support has a copy and quotes it to callers who ask.",
    "An exception needs both reviewing roles and a day on which it ends.",
)


class DocsGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which pages must be delivered."""

    pages: tuple[str, ...]


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Five plans by three families: 15 in every band."""
    return tuple(
        TaskConfig("docs", family, variant, topology, band, {"bulletins": 0 if family == FAMILIES[0] else 2})
        for variant, topologies in PLANS
        for topology in topologies
        for family in FAMILIES
    )


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed with ``size`` pages (at least 6)."""
    return Builder(config, seed, size).blueprint()


class Plan(NamedTuple):
    """What is known of a page before its contract: place, terms, and whom it derives from."""

    page_id: str
    lane: int
    level: int
    purpose: str
    effective: int
    horizon: int
    imports: dict[int, Vocabulary]
    """page number -> the field taken from it; the page of the stage before is not among them"""


class Builder:
    def __init__(self, config: TaskConfig, seed: int, pages: int) -> None:
        self.key = ("docs", config.id, config.band, seed)
        self.config = config
        self.n = pages
        self.ids = Ids(*self.key)
        self.ids.avoid(seed_ids())
        rng = self.rng("lanes")
        self.projects = rng.sample(sorted(seed_tables()["projects"]), LANES)
        self.codes = rng.sample(PURPOSES, LANES)
        fields = rng.sample(FIELDS, 4 * LANES)
        self.carry = [fields[4 * lane : 4 * lane + 4] for lane in range(LANES)]
        self.bulletins = int(config.options["bulletins"])
        self.protected = rng.randrange(LANES) if self.bulletins else None
        self.sentences = SENTENCES[config.band][self.bulletins > 0]
        if config.variant == "mixed":
            self.sentences += MIXED_SENTENCES.get(config.band, 0)
        self.services = sorted(self.ids.new("svc", n) for n in range(2))
        self.tables: dict[str, dict[str, Any]] = {
            name: {}
            for name in (
                "pages", "blocks", "page_links", "grants", "services", "reservations", "tracker_items",
                "clause_requests",
            )
        }  # fmt: skip
        self.plans = [self._plan(i) for i in range(pages)]
        self.children: list[list[int]] = [[] for _ in range(pages)]
        for i in range(pages):
            for parent in self.parents(i):
                self.children[parent].append(i)
        self.grants: list[list[Grant]] = []
        self.contents: list[Content] = []
        self.terms: list[Terms] = []
        self.drafts: list[Block] = []

    # -- places ----------------------------------------------------------------------------------------------------

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables[table][key] = record

    def beside(self, lane: int, level: int) -> list[tuple[int, int]]:
        """(lane, level) of the parents beside the stage before."""
        topology = self.config.pattern
        found = []
        if lane != self.protected:
            if topology == "braided":
                found.append(((lane + 1 + (level - 1) % 2) % LANES, level - 1))
            elif level % 3 == 1:
                found.append(((lane + 1) % LANES, level - 1))
        if topology == "distributed" and level >= 2:
            older = lane if lane == self.protected else (lane + 2) % LANES
            found.append((older, (level - 1) // 2))
        return found

    def parents(self, i: int) -> list[int]:
        """The page of the stage before, then the others."""
        return [i - LANES, *self.plans[i].imports] if i >= LANES else []

    def _plan(self, i: int) -> Plan:
        rng = self.rng("page", i)
        lane, level = i % LANES, i // LANES
        purpose = self.codes[lane]
        if self.config.variant == "mixed" and rng.random() >= 2 / 3:
            purpose = COMMON_PURPOSE
        effective = 100 + 7 * level + rng.randint(0, 2)
        horizon = effective + 7 * rng.randint(3, 6)
        beside = self.beside(lane, level) if level else []
        imports = {
            LANES * parent_level + parent_lane: self.carry[parent_lane][(level + lane) % 4]
            for parent_lane, parent_level in beside
        }
        return Plan(self.ids.new("pag", i), lane, level, purpose, effective, horizon, imports)

    # -- the whole -------------------------------------------------------------------------------------------------

    def blueprint(self) -> Blueprint:
        for i in range(self.n):
            self._add_page(i)
        self._add_services()
        updates = self._updates() if self.bulletins else ()
        rows = sorted(
            (
                {"page_id": p.page_id, "project_id": self.projects[p.lane], "item_id": self.ids.new("itm", i)}
                for i, p in enumerate(self.plans)
            ),
            key=lambda row: row["page_id"],
        )
        for row in rows:
            tracker = seed_tables()["projects"][row["project_id"]].tracker_id
            self.put("tracker_items", row["item_id"], TrackerItem(row["item_id"], tracker, None))
        goal_text = (
            "Deliver the interface contract of every page below. Each page's blocks say what it asks for; its contract "
            "takes in the current publications of the pages that it derives from, keeps every declared field and "
            "limit, and hands quota on with its owner, purposes and expiry. Reserve the service capacity that the "
            "contract needs, bring the document into line with it, obtain both sign-offs, record the decision, "
            "publish, and let the page's tracker item name the publication. Any order that the dependencies allow will "
            "do. Then poll the change window until it is closed: bulletins may be announced, and whatever they affect "
            "is to be reconciled and published again, and nothing else."
        )
        window_id = self.ids.new("win", 0)
        brief = {"goal": goal_text, "window_id": window_id, "pages": rows}
        return Blueprint(
            tables=self.tables,
            updates=updates,
            graph=self._graph(window_id),
            brief=brief,
            goal=DocsGoal(tuple(p.page_id for p in self.plans)),
            scale={"Pages": self.n, "Configured depth": -(-self.n // LANES)},
        )

    # -- a page ----------------------------------------------------------------------------------------------------

    def _add_page(self, i: int) -> None:
        plan, project_id = self.plans[i], self.projects[self.plans[i].lane]
        rng = self.rng("blocks", i)
        title = f"{seed_tables()['projects'][project_id].title}: {rng.choice(ASPECTS)}"
        kind: Any = rng.choice(("PRD", "RFC"))
        self.put("pages", plan.page_id, Page(plan.page_id, project_id, kind, title, None))
        self.grants.append(self._add_grants(i, rng))
        own = [lot_of(g) for g in self.grants[i] if g.state == "active" and g.valid_from <= plan.effective]
        given = {parent: self._given(parent, i) for parent in self.parents(i)}
        received = merged((*(lot for g in given.values() for lot in g.lots), *own))
        if self.children[i]:
            demand = sum(lot.amount for lot in own) * rng.randint(40, 60) // 100
        else:
            demand = sum(
                lot.amount for lot in received if plan.purpose in lot.purposes and plan.effective <= lot.expires_on
            )
        charter = Charter(plan.purpose, plan.effective, plan.horizon, demand)
        pool = Pool(received)
        pool.draw(plan.purpose, plan.effective, demand)
        consumers = self._consumers(i, sum(pool.left))
        carry = Carry(tuple(f.name for f in self.carry[plan.lane]))
        service = ServiceUse(rng.choice(self.services))
        imports = [Import(self.plans[p].page_id, (field.name,)) for p, field in plan.imports.items()]
        fields = self._fields(plan, rng)
        bodies = [
            ("charter", "charter", charter),
            ("interface", "interface", {}),
            ("carry", "carry", carry),
            ("service", "service", service),
            *(("field", f"field:{f.name}", f) for f in fields),
            *(("import", f"import:{m.page_id}", m) for m in imports),
            *(("consumer", f"consumer:{c.page_id}", c) for c in consumers),
        ]
        blocks = self._add_blocks(i, bodies, rng)
        terms = Terms(
            plan.page_id,
            charter,
            carry.fields,
            service.service_id,
            tuple((b.body, b.block_id) for b in blocks if b.kind == "field"),
            {m.page_id: m.fields for m in imports},
            tuple(sorted(consumers, key=lambda c: c.page_id)),
        )
        self.terms.append(terms)
        self.contents.append(reconcile(terms, list(given.values()), own))
        self._add_links(i)
        if i % 5 == 2:
            role: Any = "engineering" if i // 5 % 2 else "security"
            self.put("clause_requests", plan.page_id, ClauseRequest(plan.page_id, role, rng.choice(_CLAUSES)))

    def _add_grants(self, i: int, rng: random.Random) -> list[Grant]:
        """One or two usable grants, and one that is proposed or valid too late."""
        plan = self.plans[i]
        decoy: Any = rng.choice(("proposed", "late"))
        found = []
        for n, kind in enumerate(("first", "second", decoy)):
            if kind == "second" and rng.random() < 0.5:
                continue
            purposes = {plan.purpose, self.codes[plan.lane]}
            if self.config.variant == "uniform":
                purposes = set(self.codes)
            else:
                if rng.random() < 0.6:
                    purposes.add(COMMON_PURPOSE)
                if rng.random() < 0.6:
                    purposes.add(rng.choice([c for c in self.codes if c != self.codes[plan.lane]]))
            expires = plan.effective + 7 * rng.choice(_EXPIRIES[n == 1])
            if self.config.family == "independent-amendments":
                expires = _FAR
            valid = plan.effective + rng.randint(1, 9) if kind == "late" else plan.effective - rng.randint(3, 30)
            grant_id = self.ids.new("grt", i, n)
            state: Any = "proposed" if kind == "proposed" else "active"
            expires = max(expires, valid)
            amount = rng.randint(240, 720)
            grant = Grant(grant_id, plan.page_id, tuple(sorted(purposes)), amount, valid, expires, state)
            self.put("grants", grant_id, grant)
            found.append(grant)
        return found

    def _given(self, parent: int, i: int) -> Given:
        """What the contract of a parent gives this page."""
        plan, content = self.plans[i], self.contents[parent]
        names = {plan.imports[parent].name} if parent in plan.imports else {f.name for f in self.carry[plan.lane]}
        lots = next(a.lots for a in content.allotments if a.consumer == plan.page_id)
        return Given(tuple(e for e in content.fields if e.name in names), lots)

    def _consumers(self, i: int, quota: int) -> list[Consumer]:
        weights = [self.rng("weight", i, c).randint(1, 5) + 4 * (c == i + LANES) for c in self.children[i]]
        consumers = []
        for child, weight in zip(self.children[i], weights, strict=True):
            plan = self.plans[child]
            per_cent = self.rng("limit", i, child).choice((90, 100, 120, 130))
            limit = quota * weight // sum(weights) * per_cent // 100
            consumers.append(Consumer(plan.page_id, plan.purpose, plan.effective, weight, limit))
        return consumers

    def _fields(self, plan: Plan, rng: random.Random) -> list[FieldTerm]:
        lane = self.carry[plan.lane]
        names = [*(rng.sample(lane, 2) if plan.level else lane), rng.choice(OWN_FIELDS)]
        return [
            FieldTerm(f.name, f.type, 3_000 + rng.randrange(2_000) - 10 * min(plan.level, 40), rng.random() < 0.4)
            for f in names
        ]

    def _add_blocks(self, i: int, bodies: list[tuple[str, str, Any]], rng: random.Random) -> list[Block]:
        """The governing blocks; among them two overtaken ones, two notes, and on some pages a draft."""
        plan = self.plans[i]
        day = plan.effective - rng.randint(30, 45)
        listed: list[tuple[str, str, Any, str, int | None]] = [
            (kind, key, body, "governs", day + rng.randint(0, 6)) for kind, key, body in bodies
        ]
        fields = [row for row in listed if row[0] == "field"][:-1]  # of the lane; the page's own comes last
        consumers = [row for row in listed if row[0] == "consumer"]
        overtaken = rng.sample(fields, 2)
        if consumers:
            overtaken[1] = rng.choice(consumers)
        extra: list[tuple[str, str, Any, str, int | None]] = []
        for kind, key, body, _, decided in overtaken:
            figure = body.limit * rng.choice((60, 80, 125)) // 100 + rng.randint(1, 9)
            other = replace(body, limit=figure + (figure == body.limit))
            extra.append((kind, key, other, "approved", (decided or 0) - 9))
        extra += [("note", f"note:{number}", {}, "approved", day) for number in (1, 2)]
        if i % 5 == 4:
            kind, key, body, *_ = fields[0]
            extra.append((kind, key, replace(body, limit=body.limit - rng.randint(50, 400)), "draft", None))
        for row in extra:
            listed.insert(rng.randint(1, len(listed)), row)
        governing: list[Block] = []
        for order, (kind, key, body, role, decided) in enumerate(listed, 1):
            block_id = self.ids.new("blk", i, order)
            state: Any = "draft" if role == "draft" else "approved"
            text = self.prose(kind, rng)
            block = Block(block_id, plan.page_id, order, key, kind, state, decided, None, text, body)  # type: ignore[arg-type]
            self.put("blocks", block_id, block)
            if role == "draft":
                self.drafts.append(block)
            elif role == "governs":
                governing.append(block)
        return governing

    def prose(self, kind: str, rng: random.Random) -> str:
        return " ".join((_OPENINGS[kind], *rng.sample(_PROSE, self.sentences)))

    def _add_links(self, i: int) -> None:
        plan, rng = self.plans[i], self.rng("links", i)
        standing = seed_tables()
        near = standing.pages_of[self.projects[plan.lane]]
        links: list[tuple[str, Any, Any]] = [(self.plans[p].page_id, "derives_from", "active") for p in self.parents(i)]
        links.append((rng.choice(near), rng.choice(("mentions", "derives_from")), "retired"))
        links.append((rng.choice(near), "mentions", rng.choice(("active", "active", "retired"))))
        for n, (target, kind, state) in enumerate(links):
            link_id = self.ids.new("lnk", i, n)
            self.put("page_links", link_id, Link(link_id, plan.page_id, target, kind, state))

    # -- services --------------------------------------------------------------------------------------------------

    def _add_services(self) -> None:
        """Capacity is the greatest daily sum of what is reserved in the end: no slack on that day."""
        first, last = 80, max(p.horizon for p in self.plans) + 28
        teams = sorted(seed_tables()["teams"])
        for number, service_id in enumerate(self.services):
            rng = self.rng("service", number)
            load = [0] * (last + 1)
            for n in range(_FOREIGN):
                start = rng.randint(first, last - 14)
                until = min(last, start + rng.randint(10, 40))
                amount = rng.randint(40, 260)
                reservation_id = self.ids.new("rsv", number, n)
                held = ForeignReservation(reservation_id, service_id, rng.choice(teams), amount, start, until)
                self.put("reservations", reservation_id, held)
                for day in range(start, until + 1):
                    load[day] += amount
            for content in self.contents:
                needed = content.reservation
                if needed.service_id == service_id:
                    for day in range(needed.from_day, needed.until_day + 1):
                        load[day] += needed.amount
            self.put("services", service_id, Service(service_id, max(load), first, last))

    # -- bulletins -------------------------------------------------------------------------------------------------

    def _updates(self) -> tuple[Update, ...]:
        rng = self.rng("bulletins")
        lanes = [lane for lane in range(LANES) if lane != self.protected]
        rng.shuffle(lanes)
        shares = rng.sample(_SHARES, self.bulletins)
        return tuple(
            Update(number, "bulletins", number, self._bulletin(number, lane, share, rng))
            for number, (lane, share) in enumerate(zip(lanes, shares, strict=True), 1)
        )

    def _bulletin(self, number: int, lane: int, share: int, rng: random.Random) -> Bulletin:
        """A new limit that binds on its page and wherever the field goes from there, and nowhere else."""
        numbers = {p.page_id: i for i, p in enumerate(self.plans)}
        children = {p.page_id: [self.plans[c].page_id for c in self.children[i]] for i, p in enumerate(self.plans)}

        def taken(child: str, parent: str) -> tuple[str, ...]:
            return taken_fields(self.terms[numbers[child]], parent)

        carried = {f.name for f in self.carry[lane]}
        most = max(_MOST_AFFECTED, _MOST_AFFECTED * self.n // _LARGEST)
        least = max(2, self.n - _MOST_PRESERVED) if self.n <= _MOST_AFFECTED + _MOST_PRESERVED else 2
        best: tuple[Any, ...] | None = None
        for i in range(lane, self.n, LANES):
            for term, block_id in self.terms[i].fields:
                if term.name not in carried:
                    continue
                reached = affected(self.plans[i].page_id, term.name, children, taken)
                fits = least <= len(reached) <= min(most, self.n - 3)
                rank = (not fits, abs(100 * len(reached) - share * self.n), i // LANES, term.name)
                if best is None or rank < best[0]:
                    best = (rank, i, block_id, reached)
        assert best is not None, "every page limits fields of its lane"
        _, i, block_id, reached = best
        before: Block = self.tables["blocks"][block_id]
        name = before.body.name
        least_limit = min(e.limit for p in reached for e in self.contents[numbers[p]].fields if e.name == name)
        term = replace(before.body, limit=least_limit - rng.randint(1, 40))
        new_id = self.ids.new("blk", "bulletin", number)
        order = 1 + max(b.order for b in self.tables["blocks"].values() if b.page_id == before.page_id)
        decided = (before.decided_on or 0) + rng.randint(20, 40)
        block = Block(
            new_id, before.page_id, order, before.key, "field", "approved", decided, block_id,
            self.prose("field", rng), term,
        )  # fmt: skip
        bulletin_id = self.ids.new("bul", number)
        text = (
            f"Bulletin {bulletin_id}: block {new_id} of page {before.page_id} takes the place of block {block_id} and "
            f"sets another limit for {name}."
        )
        return Bulletin(bulletin_id, block, text, self._proposal(number, rng))

    def _proposal(self, number: int, rng: random.Random) -> Proposal:
        draft = rng.choice(self.drafts)
        proposal_id = self.ids.new("prp", number)
        text = (
            f"Proposal {proposal_id}: draft block {draft.block_id} of page {draft.page_id} would set another limit for "
            f"{draft.body.name}. It is open for comment."
        )
        return Proposal(proposal_id, draft.page_id, draft.block_id, text)

    # -- the graph -------------------------------------------------------------------------------------------------

    def _graph(self, window_id: str) -> TaskGraph:
        """Four modules a page, each needing the one before; a contract needs its parents' publications."""
        modules = []
        for i, plan in enumerate(self.plans):
            stage, page_id = plan.level + 1, plan.page_id
            needs = [Need(f"publication:{self.plans[p].page_id}", "content") for p in self.parents(i)]
            kinds: tuple[tuple[str, NeedKind], ...] = (
                ("review", "content"), ("publication", "validity"), ("tracker", "provenance"),
            )  # fmt: skip
            modules.append(Module(f"contract:{page_id}", "contract", stage, page_id, tuple(needs)))
            before = f"contract:{page_id}"
            for kind, need in kinds:
                modules.append(Module(f"{kind}:{page_id}", kind, stage, page_id, (Need(before, need),)))
                before = f"{kind}:{page_id}"
        published = tuple(Need(f"publication:{p.page_id}", "validity") for p in self.plans)
        modules.append(Module("window", "window", self.plans[-1].level + 2, window_id, published))
        return TaskGraph.of(modules)
