"""The catalogue that all reviews share, read-only: 11,160 records of papers, people, registrations and instruments.

Made in code from named random streams. Days count from 1 January 1970; a paper's day is that of its publication.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.world import Record

COUNTS = {
    "papers": 1_800,
    "authors": 900,
    "citations": 2_000,
    "authorships": 3_600,
    "paper_events": 1_100,
    "registrations": 720,
    "aliases": 624,
    "cohorts": 240,
    "instruments": 96,
    "venues": 48,
    "topics": 32,
}
"""Records of each table; the total is the paper's 11,160 (Table 3)."""

FIRST_DAY, LAST_DAY = 15_000, 20_500
"""Publication days of the catalogue."""
COMPANION_PAIRS = 60
_TEAM = 10
_TEAM_TOPICS = 3
_SHARED_ACRONYMS = 48
"""Printed names that two cohorts share; their windows tell them apart."""

AliasKind = Literal["cohort", "instrument"]
EventKind = Literal["posted", "published", "indexed", "corrected", "retracted", "withdrawn"]
Relation = Literal["background", "method", "companion"]


class Span(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """Days, both inclusive."""

    from_: int
    to: int


class Enrolled(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """When participants were enrolled (days, both inclusive), and how many."""

    from_: int
    to: int
    n: int


class Paper(Record, frozen=True):
    paper_id: str
    title: str
    venue_id: str
    topic_id: str
    day: int


class Author(Record, frozen=True):
    author_id: str
    name: str


class Citation(Record, frozen=True):
    citing: str
    cited: str
    relation: Relation


class Authorship(Record, frozen=True):
    paper_id: str
    author_id: str
    position: int


class PaperEvent(Record, frozen=True):
    event_id: str
    paper_id: str
    day: int
    kind: EventKind


class Registration(Record, frozen=True):
    """``current_id`` is the registration itself, or the one that it was merged into."""

    registry_id: str
    current_id: str
    cohort_id: str
    enrolled: Enrolled
    outcomes: tuple[str, ...]


class Alias(Record, frozen=True):
    """A printed name, canonical or not, of a cohort or an instrument."""

    kind: AliasKind
    printed: str
    id: str


class Cohort(Record, frozen=True):
    cohort_id: str
    name: str
    windows: tuple[Span, ...]


class Unit(msgspec.Struct, frozen=True):
    """``factor`` carries a value in this unit onto the instrument's points."""

    unit: str
    factor: str


class Instrument(Record, frozen=True):
    instrument_id: str
    name: str
    higher_is: Literal["better", "worse"]
    units: tuple[Unit, ...]


class Venue(Record, frozen=True):
    venue_id: str
    name: str


class Topic(Record, frozen=True):
    topic_id: str
    name: str


_FIRST = (
    "Aino", "Amara", "Bastian", "Carys", "Chidi", "Dagny", "Devi", "Elif", "Emeka", "Farid", "Greta", "Hana", "Ilse",
    "Imran", "Jonas", "Kaori", "Leila", "Luca", "Maren", "Mateo", "Nadia", "Niamh", "Oskar", "Priya", "Quentin", "Rosa",
    "Samir", "Sunniva", "Tariq", "Ulla", "Vera", "Wanda", "Xenia", "Yusuf", "Zofia",
)  # fmt: skip
_LAST = (
    "Abara", "Aldous", "Bekele", "Brandt", "Castellan", "Cho", "Dahl", "Demir", "Eriksen", "Falk", "Ferreira", "Gallo",
    "Grantham", "Haddad", "Hartley", "Ibarra", "Ito", "Jansen", "Kaur", "Keita", "Lindqvist", "Lowell", "Marchetti",
    "Mbeki", "Nakata", "Novak", "Okafor", "Olsen", "Pereira", "Quist", "Rahman", "Rossi", "Saarinen", "Santos",
    "Tanaka", "Thorne", "Uddin", "Vance", "Weiss", "Wren", "Yilmaz", "Zeller",
)  # fmt: skip
_TOPICS = (
    "sleep quality", "fatigue", "low mood", "anxiety", "chronic pain", "headache burden", "balance", "mobility",
    "hand function", "breathlessness", "appetite", "medication adherence", "diabetes distress", "school attendance",
    "parenting stress", "birth recovery", "feeding confidence", "loneliness", "grief", "work ability",
    "attention", "memory complaints", "dizziness", "hearing handicap", "skin comfort", "bladder control",
    "bowel comfort", "wound healing", "exercise tolerance", "self-care", "body image", "falls concern",
)  # fmt: skip
_PRACTICES = (
    "Guided self-help", "Group coaching", "Telephone follow-up", "A home visiting programme", "Paced activity",
    "Peer support", "A brief training course", "Written exercises", "Structured review", "A nurse-led clinic",
    "Shared decision aids", "Stepped care", "A digital diary", "Breathing practice", "Supervised walking",
)  # fmt: skip
_SETTINGS = (
    "regional clinics", "general practice", "community centres", "day hospitals", "rural districts", "two cities",
    "outpatient care", "public schools", "maternity units", "rehabilitation wards",
)  # fmt: skip
_PLACES = (
    "Alder", "Birchmoor", "Carrow", "Dunmere", "Eastvale", "Fenwick", "Glanford", "Harrowby", "Inverness Bay",
    "Juniper", "Kestrel", "Larkhill", "Marlow", "Northgate", "Orchard", "Penrose", "Quayside", "Redfern",
    "Stonebridge", "Tarn", "Upland", "Valehead", "Westmere", "Yarrow",
)  # fmt: skip
_COHORT_WORDS = (
    "Family", "Health", "Recovery", "Birth", "Ageing", "Wellbeing", "Outcomes", "Follow-up", "Community", "Life",
)  # fmt: skip
_TRAITS = (
    "Symptom", "Function", "Distress", "Comfort", "Burden", "Coping", "Vitality", "Concern", "Recovery", "Strain",
    "Wellbeing", "Impact",
)  # fmt: skip
_MAKERS = ("Halden", "Corvin", "Mersey", "Tolland", "Arden", "Brisco", "Lindale", "Oakes")
_FORMS = ("Scale", "Index", "Inventory", "Questionnaire")
_JOURNALS = ("Journal of", "Annals of", "Archives of", "Reports in")
_FIELDS = (
    "Applied Care", "Community Health", "Rehabilitation", "Clinical Trials", "Behavioural Medicine", "Public Health",
    "Nursing Practice", "Primary Care", "Outcome Measurement", "Family Medicine", "Ageing", "Maternal Health",
)  # fmt: skip


@cache
def seed_tables() -> Mapping[str, Mapping[str, Record]]:
    """The catalogue's tables by name; keys are ids, or the parts of a key joined by a vertical bar."""
    tables = _Catalogue().tables
    return MappingProxyType({name: MappingProxyType(rows) for name, rows in tables.items()})


class _Catalogue:
    def __init__(self) -> None:
        self.ids = Ids("research", "catalogue")
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in COUNTS}
        self._people()
        self._papers()
        self._citations()
        self._events()
        self._cohorts()
        self._instruments()
        self._registrations()

    @staticmethod
    def rng(*key: object) -> random.Random:
        return stream("research", "catalogue", *key)

    def _named(self, table: str, prefix: str, names: Iterable[str], make: Any) -> list[str]:
        found = []
        for n, name in enumerate(names):
            identity = self.ids.new(prefix, n)
            self.tables[table][identity] = make(identity, name)
            found.append(identity)
        return found

    def _people(self) -> None:
        rng = self.rng("people")
        names = rng.sample([f"{first} {last}" for first in _FIRST for last in _LAST], COUNTS["authors"])
        self.authors = self._named("authors", "aut", names, Author)
        self.teams = [self.authors[n : n + _TEAM] for n in range(0, len(self.authors), _TEAM)]

    def _papers(self) -> None:
        """Two authors a paper on average, mostly of one team; a team works on a few topics."""
        rng = self.rng("papers")
        self.topics = self._named("topics", "top", _TOPICS, Topic)
        names = [f"{journal} {field}" for journal in _JOURNALS for field in _FIELDS]
        self.venues = self._named("venues", "ven", names, Venue)
        teams_on: dict[str, list[list[str]]] = {topic: [] for topic in self.topics}
        for n, team in enumerate(self.teams):
            for k in range(_TEAM_TOPICS):
                teams_on[self.topics[(n + 11 * k) % len(self.topics)]].append(team)
        sizes = [1, 2, 3, 2] * (COUNTS["papers"] // 4)
        rng.shuffle(sizes)
        for n, size in enumerate(sizes):
            topic = self.topics[n % len(self.topics)]
            paper_id = self.ids.new("pap", n)
            title = f"{rng.choice(_PRACTICES)} and {self.tables['topics'][topic].name} in {rng.choice(_SETTINGS)}"
            day = rng.randint(FIRST_DAY, LAST_DAY)
            self.tables["papers"][paper_id] = Paper(paper_id, title, rng.choice(self.venues), topic, day)
            team = rng.choice(teams_on[topic])
            writers = rng.sample(team, size)
            if size == 3 and rng.random() < 0.3:
                writers[2] = rng.choice([a for a in self.authors if a not in team])
            for position, author_id in enumerate(writers, 1):
                record = Authorship(paper_id, author_id, position)
                self.tables["authorships"][f"{paper_id}|{author_id}"] = record
        self.papers = list(self.tables["papers"])

    def _citations(self) -> None:
        rng = self.rng("citations")
        companions = rng.sample(self.papers, 2 * COMPANION_PAIRS)
        pairs = [tuple(companions[n : n + 2]) for n in range(0, len(companions), 2)]
        for citing, cited in pairs:
            self.tables["citations"][f"{citing}|{cited}"] = Citation(citing, cited, "companion")
        while len(self.tables["citations"]) < COUNTS["citations"]:
            citing, cited = rng.sample(self.papers, 2)
            if f"{cited}|{citing}" not in self.tables["citations"]:
                relation: Relation = rng.choice(("background", "background", "method"))
                self.tables["citations"].setdefault(f"{citing}|{cited}", Citation(citing, cited, relation))

    def _events(self) -> None:
        rng = self.rng("events")
        kinds: tuple[EventKind, ...] = ("posted", "published", "indexed", "corrected")
        for n in range(COUNTS["paper_events"]):
            paper: Paper = self.tables["papers"][rng.choice(self.papers)]
            kind = rng.choices(kinds, (3, 4, 4, 1))[0]
            after = {"posted": -rng.randint(30, 200), "published": 0, "indexed": rng.randint(2, 40)}
            event_id = self.ids.new("evt", n)
            day = paper.day + after.get(kind, rng.randint(60, 400))
            self.tables["paper_events"][event_id] = PaperEvent(event_id, paper.paper_id, day, kind)

    def _cohorts(self) -> None:
        """Enrolment windows lie before every publication; cohorts that share an acronym have windows apart."""
        rng = self.rng("cohorts")
        names = [f"{place} {word} Study" for place in _PLACES for word in _COHORT_WORDS]
        rng.shuffle(names)

        def make(cohort_id: str, name: str) -> Cohort:
            n = len(self.tables["cohorts"])
            start = (9_000 if n % 2 else 11_800) + rng.randint(0, 500)
            middle = start + rng.randint(700, 900)
            spans = (Span(start, middle), Span(middle + rng.randint(60, 200), middle + rng.randint(900, 1_200)))
            return Cohort(cohort_id, name, spans)

        self.cohorts = self._named("cohorts", "coh", names, make)
        for cohort_id in self.cohorts:
            self._alias("cohort", self.tables["cohorts"][cohort_id].name, cohort_id)
        for n in range(_SHARED_ACRONYMS):
            for cohort_id in self.cohorts[2 * n : 2 * n + 2]:
                self._alias("cohort", f"{_PLACES[n % 24][:3].upper()}-{'CDEF'[n // 24]}{n % 7 + 1}", cohort_id)

    def _instruments(self) -> None:
        rng = self.rng("instruments")
        names = [(maker, trait) for maker in _MAKERS for trait in _TRAITS]

        def make(instrument_id: str, name: str) -> Instrument:
            percent = rng.randint(20, 60) * 100
            units = (Unit("points", "1.0000"), Unit("percent of range", f"0.{percent:04d}"), Unit("tenths", "0.1000"))
            return Instrument(instrument_id, name, rng.choice(("better", "worse")), units)

        full = [f"{maker} {trait} {_FORMS[n % len(_FORMS)]}" for n, (maker, trait) in enumerate(names)]
        self.instruments = self._named("instruments", "ins", full, make)
        for instrument_id, (maker, trait) in zip(self.instruments, names, strict=True):
            name = self.tables["instruments"][instrument_id].name
            form = name.rpartition(" ")[2]
            self._alias("instrument", name, instrument_id)
            self._alias("instrument", f"{maker[:2].upper()}{trait[:3].upper()}{form[0]}", instrument_id)
            self._alias("instrument", f"{maker} {form.lower()} of {trait.lower()}", instrument_id)

    def _alias(self, kind: AliasKind, printed: str, identity: str) -> None:
        self.tables["aliases"][f"{kind}|{printed}|{identity}"] = Alias(kind, printed, identity)

    def _registrations(self) -> None:
        """One in twelve was merged into another one of its cohort or of any."""
        rng = self.rng("registrations")
        names = [self.ids.new("reg", n) for n in range(COUNTS["registrations"])]
        for n, registry_id in enumerate(names):
            cohort: Cohort = self.tables["cohorts"][rng.choice(self.cohorts)]
            window = rng.choice(cohort.windows)
            start = rng.randint(window.from_, window.to - 200)
            enrolled = Enrolled(start, rng.randint(start + 60, window.to), rng.randint(40, 420))
            outcomes = tuple(rng.sample(_TOPICS, 2))
            current = names[n - 1] if n % 12 == 11 else registry_id
            record = Registration(registry_id, current, cohort.cohort_id, enrolled, outcomes)
            self.tables["registrations"][registry_id] = record


# -- what is looked up by other keys ---------------------------------------------------------------------------------


class Catalogue(NamedTuple):
    """The catalogue by the keys that questions have; ids in their own order."""

    authors_of: Mapping[str, tuple[str, ...]]
    """paper -> its authors by position"""
    coauthors: Mapping[str, tuple[str, ...]]
    """author -> those who share a paper, by id"""
    papers_by: Mapping[str, tuple[str, ...]]
    events_of: Mapping[str, tuple[PaperEvent, ...]]
    citations_of: Mapping[str, tuple[Citation, ...]]
    """paper -> citations at either end"""
    matches: Mapping[tuple[str, str], tuple[str, ...]]
    """(kind, printed) -> ids"""


@cache
def catalogue() -> Catalogue:
    tables: Any = seed_tables()
    authors_of = _grouped((a.paper_id, a.author_id) for a in tables["authorships"].values())
    together: dict[str, set[str]] = {author: set() for author in tables["authors"]}
    for writers in authors_of.values():
        for author in writers:
            together[author] |= set(writers) - {author}
    citations = tables["citations"].values()
    return Catalogue(
        authors_of=authors_of,
        coauthors={author: tuple(sorted(others)) for author, others in together.items()},
        papers_by=_grouped((a.author_id, a.paper_id) for a in tables["authorships"].values()),
        events_of=_grouped((e.paper_id, e) for e in tables["paper_events"].values()),
        citations_of=_grouped((paper, c) for c in citations for paper in (c.citing, c.cited)),
        matches=_grouped(((a.kind, a.printed), a.id) for a in tables["aliases"].values()),
    )


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, tuple[Any, ...]]:
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in groups.items()}
