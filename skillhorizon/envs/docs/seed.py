"""The standing portfolio that all tasks share, read-only: 22,612 records of teams, projects and earlier editions.

Made in code from named random streams. Its pages are earlier editions, of the same shape as those that a task asks for.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from skillhorizon.core.ids import Ids, stream
from skillhorizon.envs.docs.records import (
    Block,
    Charter,
    Comment,
    EarlierDecision,
    EarlierRevision,
    EarlierSignOff,
    FieldTerm,
    Link,
    Member,
    Page,
    Person,
    Project,
    Team,
    Tracker,
    TrackerItem,
)
from skillhorizon.envs.docs.world import Standing

COUNTS = {
    "teams": 28,
    "people": 420,
    "project_members": 1_260,
    "projects": 140,
    "pages": 1_600,
    "blocks": 6_400,
    "page_links": 2_400,
    "trackers": 12,
    "tracker_items": 1_600,
    "revisions": 4_800,
    "comments": 1_940,
    "decisions": 800,
    "signoffs": 1_212,
}
"""Records of each table; the total is the paper's 22,612 (Table 3)."""

COMMON_PURPOSE = "platform"
PURPOSES = (
    "settlement", "fulfilment", "reporting", "onboarding", "notification", "search", "archive", "pricing", "support",
)  # fmt: skip
SUBJECTS = (
    "Ledger intake", "Order routing", "Consent registry", "Invoice rendering", "Session store", "Catalogue feed",
    "Fraud signals", "Device pairing", "Refund desk", "Quota broker", "Audit export", "Address book", "Media relay",
    "Shift planner", "Rate card", "Event mirror", "Token exchange", "Price tracker", "Parcel tracing", "Loyalty points",
)  # fmt: skip
ASPECTS = ("interface limits", "call contract", "consumer terms", "capacity plan", "handover terms", "field limits")


class Vocabulary(NamedTuple):
    name: str
    type: str


FIELDS = tuple(
    Vocabulary(f"{thing}_{unit}", type_)
    for thing in ("request", "batch", "payload", "session", "queue", "retry", "cursor", "cache", "export", "stream")
    for unit, type_ in (("ms", "duration"), ("kb", "size"), ("rows", "count"))
)
"""Names of contract fields, each with its type."""
OWN_FIELDS = tuple(
    Vocabulary(f"{thing}_{unit}", type_)
    for thing in ("draft", "notice", "receipt", "digest", "thumbnail", "preview", "summary", "transcript")
    for unit, type_ in (("ms", "duration"), ("kb", "size"), ("rows", "count"))
)
"""Fields of a page's own, which no lane carries."""

_GIVEN = (
    "Ada", "Bilal", "Chen", "Dora", "Emil", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kira", "Lars", "Mina", "Noor",
    "Oleg", "Pia", "Quinn", "Rosa", "Sven", "Tara", "Umar", "Vera", "Wim", "Xenia", "Yara", "Zeno",
)  # fmt: skip
_FAMILY = (
    "Abel", "Brandt", "Costa", "Duarte", "Eklund", "Ferri", "Gupta", "Haas", "Ito", "Jansen", "Kovac", "Lindt",
    "Moreau", "Nagy", "Okafor", "Petrov", "Quist", "Rossi", "Silva", "Tamm", "Ueda", "Vogel", "Weiss",
)  # fmt: skip
_REMARKS = (
    "Please name the team that answers for this figure.",
    "The unit was per hour in the edition before; is it per minute now?",
    "We can live with this limit until the next review.",
    "Who is told when this changes?",
    "The example still shows the old name of the field.",
    "Agreed in the call; the wording can stay.",
)
_AREAS = ("Core", "Data", "Edge", "Growth", "Money", "People", "Risk")
_DUTIES = ("services", "tooling", "interfaces", "operations")


class _Seed:
    def __init__(self) -> None:
        self.ids = Ids("docs", "seed")
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in COUNTS}

    def put(self, table: str, key: str, record: Any) -> str:
        self.tables[table][key] = record
        return key

    def rng(self, *key: object) -> random.Random:
        return stream("docs", "seed", *key)

    def build(self) -> Standing:
        self._people()
        self._projects()
        self._pages()
        self._history()
        return Standing({name: MappingProxyType(rows) for name, rows in self.tables.items()})

    def _people(self) -> None:
        rng = self.rng("people")
        names = [f"{area} {duty}" for area in _AREAS for duty in _DUTIES]
        self.teams = [self.put("teams", t := self.ids.new("tem", n), Team(t, names[n])) for n in range(COUNTS["teams"])]
        everybody = rng.sample([f"{g} {f}" for g in _GIVEN for f in _FAMILY], COUNTS["people"])
        self.team_of: dict[str, str] = {}
        for n, name in enumerate(everybody):
            # every team has some people, the larger ones two or three times as many as the smaller
            team = self.teams[n % 28] if n < 140 else rng.choices(self.teams, range(3, 31))[0]
            person_id = self.ids.new("per", n)
            self.put("people", person_id, Person(person_id, name, team))
            self.team_of[person_id] = team
        self.trackers = [
            self.put("trackers", t := self.ids.new("trk", n), Tracker(t, f"Portfolio board {n + 1}"))
            for n in range(COUNTS["trackers"])
        ]

    def _projects(self) -> None:
        """Nine members each: three authors, and for each reviewing role two from outside the team and one inside."""
        titles = [f"{subject} {n}" for n in range(1, 8) for subject in SUBJECTS]
        people = list(self.team_of)
        self.projects: list[str] = []
        self.authors: dict[str, list[str]] = {}
        self.reviewers: dict[str, dict[Any, list[str]]] = {}
        for n in range(COUNTS["projects"]):
            rng = self.rng("project", n)
            project_id, team = self.ids.new("prj", n), self.teams[n % 28]
            self.put("projects", project_id, Project(project_id, team, rng.choice(self.trackers), titles[n]))
            inside = [p for p in people if self.team_of[p] == team]
            outside = rng.sample([p for p in people if self.team_of[p] != team], 4)
            own = rng.sample(inside, 5)
            roles = {"author": own[:3], "engineering": [*outside[:2], own[3]], "security": [*outside[2:], own[4]]}
            for role, persons in roles.items():
                for person in persons:
                    key = f"{project_id}/{person}/{role}"
                    self.put("project_members", key, Member(project_id, person, role))  # type: ignore[arg-type]
            self.projects.append(project_id)
            self.authors[project_id] = own[:3]
            self.reviewers[project_id] = {role: roles[role] for role in ("engineering", "security")}

    def _pages(self) -> None:
        """Earlier editions: pages with four blocks, three revisions and a tracker item each."""
        rng = self.rng("pages")
        crowd = [project for project in self.projects for _ in range(5)]
        crowd += rng.choices(self.projects, [1 + n % 9 for n in range(140)], k=COUNTS["pages"] - len(crowd))
        self.pages: list[Page] = []
        self.heads: dict[str, list[str]] = {}
        for n, project_id in enumerate(sorted(crowd)):
            rng = self.rng("page", n)
            page_id, day = self.ids.new("pag", n), rng.randint(5, 80)
            revisions = [self.ids.new("rev", n, number) for number in (1, 2, 3)]
            for number, revision_id in enumerate(revisions, 1):
                author = rng.choice(self.authors[project_id])
                when = day + 3 * number
                self.put("revisions", revision_id, EarlierRevision(revision_id, page_id, number, author, when))
            title = f"{self.tables['projects'][project_id].title}: {rng.choice(ASPECTS)}"
            page = Page(page_id, project_id, rng.choice(("PRD", "RFC")), title, revisions[-1])
            self.put("pages", page_id, page)
            self.pages.append(page)
            self.heads[page_id] = revisions
            self._blocks(page, n, day, rng)
            tracker = self.tables["projects"][project_id].tracker_id
            item_id = self.ids.new("itm", n)
            self.put("tracker_items", item_id, TrackerItem(item_id, tracker, page_id))

    def _blocks(self, page: Page, n: int, day: int, rng: random.Random) -> None:
        field = rng.choice(FIELDS)
        term = FieldTerm(field.name, field.type, rng.randint(2_000, 6_000), rng.random() < 0.5)
        charter = Charter(rng.choice(PURPOSES), day, day + 7 * rng.randint(3, 6), rng.randint(90, 400))
        texts: list[tuple[Any, str, Any, str]] = [
            ("charter", "charter", charter, "Why the page was written, and for how long it was to hold."),
            ("interface", "interface", {}, "What callers had to know about the interface in that edition."),
            ("field", f"field:{term.name}", term, "The limit that was agreed for this field in that edition."),
            ("note", "note:1", {}, "Kept from the edition before; nothing follows from it any more."),
        ]
        for order, (kind, key, body, text) in enumerate(texts, 1):
            block_id = self.ids.new("blk", n, order)
            state: Any = "draft" if kind == "note" and rng.random() < 0.2 else "approved"
            decided = None if state == "draft" else day - rng.randint(1, 4)
            self.put(
                "blocks", block_id, Block(block_id, page.page_id, order, key, kind, state, decided, None, text, body)
            )

    def _history(self) -> None:
        """Links between pages of one project where it has several, comments, and the decisions of half the pages."""
        rng = self.rng("history")
        siblings: dict[str, list[str]] = {}
        for page in self.pages:
            siblings.setdefault(page.project_id, []).append(page.page_id)
        for n in range(COUNTS["page_links"]):
            page = self.pages[n] if n < len(self.pages) else rng.choice(self.pages)
            near = siblings[page.project_id] if rng.random() < 0.8 else [p.page_id for p in rng.sample(self.pages, 2)]
            target = rng.choice([p for p in near if p != page.page_id])
            kind: Any = "derives_from" if rng.random() < 0.6 else "mentions"
            state: Any = "retired" if rng.random() < 0.25 else "active"
            link_id = self.ids.new("lnk", n)
            self.put("page_links", link_id, Link(link_id, page.page_id, target, kind, state))
        for n in range(COUNTS["comments"]):
            page = rng.choice(self.pages)
            person = rng.choice([*self.authors[page.project_id], *self.reviewers[page.project_id]["security"]])
            comment_id = self.ids.new("cmt", n)
            remark = rng.choice(_REMARKS)
            self.put("comments", comment_id, Comment(comment_id, page.page_id, person, rng.randint(8, 95), remark))
        decided = rng.sample(self.pages, COUNTS["decisions"])
        # both roles signed the first of them, security alone the rest
        both = COUNTS["signoffs"] - COUNTS["decisions"]
        for n, page in enumerate(decided):
            decision_id, day = self.ids.new("dcs", n), rng.randint(20, 95)
            outcome: Any = "accepted" if n < both or rng.random() < 0.6 else "deferred"
            revision = self.heads[page.page_id][-1]
            self.put("decisions", decision_id, EarlierDecision(decision_id, page.page_id, revision, day, outcome))
            for role in ("security", "engineering") if n < both else ("security",):
                signoff_id = self.ids.new("sgn", n, role)
                person = rng.choice(self.reviewers[page.project_id][role][:2])
                self.put(
                    "signoffs",
                    signoff_id,
                    EarlierSignOff(signoff_id, decision_id, page.page_id, person, role, day - rng.randint(1, 5)),
                )


@cache
def seed_tables() -> Standing:
    """The shared tables, built once a process."""
    return _Seed().build()


@cache
def seed_ids() -> frozenset[str]:
    """The ids of all seed records that have one of their own."""
    tables: Mapping[str, Mapping[str, Any]] = seed_tables()
    return frozenset(key for name, rows in tables.items() if name != "project_members" for key in rows)
