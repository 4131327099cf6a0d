"""The plan of a review: cells, links, studies, extra reports and events, before any record is written.

Sections are counted from 0 and rounds from 1. A cell (section, round) is one new calibration; which older ones its
links lead to is the topology. Every choice draws from a stream of its own, keyed by what it is about.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import get_args

from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import TaskConfig
from skillhorizon.envs.research.rules import (
    POPULATIONS,
    Candidate,
    Judgement,
    Population,
    Rule,
    calibration_among,
    exclusion_order,
    parent_among,
)
from skillhorizon.envs.research.seed import seed_tables

CORE: tuple[Population, ...] = ("adults", "older_adults")
"""Covered by every general calibration, so that a specific one is never anybody's parent (rule 8)."""
MOST_EVENTS = 4
_CATALOGUE_IDS = ("papers", "authors", "registrations", "cohorts", "instruments", "venues", "topics", "paper_events")
Place = tuple[int, int]
"""(section, round)"""


@dataclass
class Cell:
    """One calibration: its links lead to ``parents`` (None: the reference). A specific one covers one population."""

    place: Place
    parents: list[Place | None]
    instrument: int
    specific: bool
    links: list[str] = field(default_factory=list)
    populations: list[frozenset[str]] = field(default_factory=list)
    """of each link"""
    actual: list[Place | None] = field(default_factory=list)
    """the calibration that rule 8 gives for each link"""
    scope: frozenset[str] = frozenset()
    depth: int = 1


@dataclass
class Report:
    work_id: str
    round: int
    role: str
    """original, subordinate or superseding"""


@dataclass
class StudyPlan:
    """``cell`` holds the calibration that its original is to use; ``broken`` are the exclusion rules that apply."""

    section: int
    number: int
    round: int
    first: bool
    cell: Place
    population: Population
    reports: list[Report]
    broken: tuple[Rule, ...] = ()
    risk: Judgement = "low"
    hit: bool = False
    paired: bool = False
    """its registration is merged with another study's"""

    @property
    def original(self) -> Report:
        return self.reports[0]

    @property
    def extra(self) -> Report | None:
        return self.reports[1] if len(self.reports) > 1 else None

    def primary(self, until: int) -> Report:
        """Of the reports listed up to a round, while none is withdrawn."""
        extra = self.extra
        return extra if extra and extra.role == "superseding" and extra.round <= until else self.original


@dataclass
class Event:
    """What becomes known in a round: a link corrected or retracted, or studies struck each in its way."""

    number: int
    round: int
    kind: str
    link: tuple[Place, int] | None = None
    studies: list[StudyPlan] = field(default_factory=list)
    pairs: list[tuple[StudyPlan, StudyPlan]] = field(default_factory=list)
    unused: StudyPlan | None = None


def rounded(numerator: int, hundredths: int) -> int:
    """So many hundredths of a number, rounded half up."""
    return (numerator * hundredths + 50) // 100


class Plan:
    """``size`` is the number of works: as many original studies as fit beside links and extra reports."""

    def __init__(self, config: TaskConfig, seed: int, size: int) -> None:
        self.key = ("research", config.id, config.band, seed)
        self.config = config
        self.family, self.pattern = config.family, config.pattern
        self.S, self.T = int(config.options["sections"]), int(config.options["rounds"])
        self.hits = int(config.options["hits"])
        self.many_reports = config.variant in ("heavy", "reports")
        self.many_exclusions = config.variant in ("heavy", "exclusions")
        self.ids = Ids(*self.key)
        self.ids.avoid(i for table in _CATALOGUE_IDS for i in seed_tables()[table])
        self.admitted = [
            (*CORE, *self.rng("section", s).sample([p for p in POPULATIONS if p not in CORE], s % 2))
            for s in range(self.S)
        ]
        self.cells: dict[Place, Cell] = {}
        self.instruments = 0
        for r in range(1, self.T + 1):
            for s in range(self.S):
                self._add_cell(s, r)
        self.links = sum(len(c.links) for c in self.cells.values())
        self.originals, self.subordinate, self.superseding = self._sizes(size)
        self.works = self.links + self.originals + self.subordinate + self.superseding
        self.studies = list(self._originals())
        self._exclude_and_judge()
        self._add_reports()
        self.struck_links: set[tuple[Place, int]] = set()
        self.events = [self._event(e) for e in range(1, min(MOST_EVENTS, self.T - 1) + 1)]

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    # -- calibrations ----------------------------------------------------------------------------------------------

    def _parents(self, s: int, r: int) -> list[Place | None]:
        neighbour = (s + 1) % self.S
        if r == 1:
            return [None]
        if self.pattern == "braided":
            return [(s, r - 1), (neighbour, r - 1)]
        if self.pattern == "distributed" and r > 2:
            older: list[Place | None] = [(neighbour, 1 + (s + r) % (r - 2))]
            return [*older, (s, r - 1)] if (s + r) % 2 == 0 else older
        return [(s, r - 1), (neighbour, r - 1)] if (s + r) % 2 == 0 else [(s, r - 1)]

    def _add_cell(self, s: int, r: int) -> None:
        rng = self.rng("cell", s, r)
        limit = 1 if self.family == "identity-compatibility" else 0
        general = self.cells.get((s, r - 2))
        specific = general is not None and not general.specific and (s + r) % 3 <= limit
        instrument = general.instrument if general is not None and specific else self.instruments
        cell = Cell((s, r), self._parents(s, r), instrument, specific)
        self.instruments += not specific
        cell.links = [self.ids.new("wrk", "link", s, r, n) for n in range(len(cell.parents))]
        # Both links of a calibration cover the same populations, all of them within what either parent covers or
        # within what neither does: the scope is then the same whichever route is retracted.
        ends = [self.cells[self._general(p)].scope if p else frozenset(POPULATIONS) for p in cell.parents]
        shared, anywhere = frozenset.intersection(*ends), frozenset.union(*ends)
        if specific:
            covered = frozenset({rng.choice(CORE)})
        else:
            free = [p for p in POPULATIONS if p not in CORE and (p in shared or p not in anywhere)]
            covered = frozenset((*CORE, *(p for p in free if rng.random() < 0.6)))
        cell.populations = [covered] * len(cell.links)
        scope = covered
        for parent in cell.parents:
            found = self.parent_of(parent, covered, r) if parent else None
            cell.actual.append(found)
            if found:
                scope &= self.cells[found].scope
                cell.depth = max(cell.depth, 1 + self.cells[found].depth)
        cell.scope = scope
        self.cells[s, r] = cell

    def _general(self, place: Place) -> Place:
        return (place[0], place[1] - 2) if self.cells[place].specific else place

    def candidates(self, instrument: int) -> list[Candidate]:
        return [
            Candidate(f"{c.place[0]} {c.place[1]}", c.place[1], c.scope, c.depth, min(c.links))
            for c in self.cells.values()
            if c.instrument == instrument
        ]

    def parent_of(self, target: Place, populations: frozenset[str], before: int) -> Place:
        found = parent_among(self.candidates(self.cells[target].instrument), populations, before)
        assert found is not None
        return _place(found)

    def calibration_for(self, cell: Place, population: str, until: int) -> Place:
        """Rule 9: what a report on this cell's instrument and population uses that becomes primary in a round."""
        found = calibration_among(self.candidates(self.cells[cell].instrument), population, until)
        assert found is not None
        return _place(found)

    def closure(self, place: Place) -> set[Place]:
        """A calibration and all that are composed of it."""
        found = {place}
        for cell in self.cells.values():  # by round: parents come first
            if found & set(cell.actual):
                found.add(cell.place)
        return found

    # -- studies ---------------------------------------------------------------------------------------------------

    def _extra(self, originals: int) -> tuple[int, int]:
        """Subordinate reports and superseding articles."""
        if self.many_reports:
            return max(2, rounded(originals, 9)), max(1, rounded(originals, 6))
        least = 1 if self.family == "identity-compatibility" else 0
        return max(1, rounded(originals, 6)), max(least, rounded(originals, 3))

    def _sizes(self, size: int) -> tuple[int, int, int]:
        originals = len(self.cells)
        while self.links + originals + 1 + sum(self._extra(originals + 1)) <= size:
            originals += 1
        subordinate, superseding = self._extra(originals)
        rest = size - self.links - originals - subordinate - superseding
        return originals, subordinate + max(0, rest), superseding

    def _originals(self) -> Iterator[StudyPlan]:
        """K studies a section over the rounds, early rounds first; what is too many is dropped from the end."""
        per_section = -(-self.originals // self.S)
        count = {
            (s, r): per_section // self.T + (r <= per_section % self.T)
            for r in range(1, self.T + 1)
            for s in range(self.S)
        }
        trim = self.S * per_section - self.originals
        for place in sorted(count, key=lambda p: (-p[1], -p[0])):
            dropped = min(trim, count[place] - 1)
            count[place] -= dropped
            trim -= dropped
        for (s, r), n in sorted(count.items(), key=lambda item: (item[0][1], item[0][0])):
            for number in range(n):
                yield self._original(s, r, number)

    def _original(self, s: int, r: int, number: int) -> StudyPlan:
        rng = self.rng("study", s, r, number)
        place = (s, r)
        if number and number % 2 == 0 and r > 1:
            if self.pattern == "chain-join":
                older = [(s, k) for k in range(1, r)]
            elif self.pattern == "braided":
                older = [(k, r - 1) for k in range(self.S)]
            else:
                older = [(k, q) for q in range(1, r) for k in range(self.S)]
            place = rng.choice(older)
        cell = self.cells[place]
        fitting = [p for p in self.admitted[s] if p in cell.scope and self.calibration_for(place, p, r) == place]
        work_id = self.ids.new("wrk", "study", s, r, number)
        return StudyPlan(s, number, r, number == 0, place, rng.choice(fitting), [Report(work_id, r, "original")])

    @property
    def included(self) -> list[StudyPlan]:
        return [study for study in self.studies if not study.broken]

    def _exclude_and_judge(self) -> None:
        """Exclusions among all but the first of each cell, spread over the sections; each breaks a later rule too."""
        rng = self.rng("exclusions")
        others = [study for study in self.studies if not study.first]
        rng.shuffle(others)
        others.sort(key=lambda study: (study.round == 1, study.number))
        wanted = max(2, rounded(self.originals, 8)) if self.many_exclusions else max(1, rounded(self.originals, 4))
        order: list[Rule] = sorted(get_args(Rule), key=exclusion_order().__getitem__)
        names = rng.sample(range(len(order)), len(order))
        for n, study in enumerate(others[: min(wanted, max(1, len(others) - 2))]):
            index = names[n % len(names)]
            later = order[index + 1 :]
            study.broken = (order[index], *(rng.sample(later, 1) if later else ()))
        high = 0
        for study in others:
            if not study.broken:
                study.risk = rng.choice(("low", "some", "high")) if high else "high"
                high += study.risk == "high"
        for study in self.studies:
            if study.first:
                study.risk = rng.choice(("low", "some"))

    def _add_reports(self) -> None:
        """Subordinate reports in their study's round or the next, superseding articles in a later one."""
        rng = self.rng("reports")
        free = [study for study in self.included if study.round < self.T]
        rng.shuffle(free)
        free.sort(key=lambda study: study.first)
        early = [study for study in free if study.round <= max(1, self.T - 2)]
        later = [study for study in free if study not in early]
        for n in range(self.superseding):
            # early studies come last: events need some that stay as they are
            study = next(s for s in (*later, *early) if len(s.reports) == 1)
            round_ = rng.randint(study.round + 1, self.T)
            study.reports.append(Report(self.ids.new("wrk", "superseding", n), round_, "superseding"))
        anywhere = [*self.included]
        rng.shuffle(anywhere)
        for n in range(self.subordinate):
            soon = n < 2 * self.hits
            study = next(s for s in (*(early if soon else ()), *anywhere) if len(s.reports) == 1)
            round_ = study.round if soon else min(self.T, study.round + rng.randint(0, 1))
            study.reports.append(Report(self.ids.new("wrk", "subordinate", n), round_, "subordinate"))

    # -- events ----------------------------------------------------------------------------------------------------

    def _event(self, number: int) -> Event:
        round_ = self.T - min(MOST_EVENTS, self.T - 1) + number
        event = Event(number, round_, "")
        odd = number % 2 == 1
        if self.family == "study-retraction":
            event.kind = "retraction"
            if odd:
                event.studies = self._struck(event, self.hits + 1, reports_first=True)
            else:
                event.link = self._link(event, joined=True)
        elif odd:
            event.kind = "correction"
            event.link = self._link(event, joined=False)
        elif self.family == "identity-compatibility":
            event.kind = "correction"
            event.studies = self._struck(event, self.hits)
            event.unused = next(iter(self._struck(event, 1)), None)
        else:
            event.kind = "withdrawal"
            event.studies = self._struck(event, max(1, self.hits // 2), surviving=True)
            event.pairs = self._pairs(event, self.hits)
        return event

    def _exposed(self, event: Event) -> list[StudyPlan]:
        """Included studies of earlier rounds that no event has struck and no later article supersedes."""
        rng = self.rng("event", event.number)
        found = [
            study
            for study in self.included
            if study.round < event.round
            and not study.hit
            and not (study.extra and study.extra.role == "superseding" and study.extra.round >= event.round)
        ]
        rng.shuffle(found)
        found.sort(key=lambda study: study.first)
        return found

    def _struck(
        self, event: Event, wanted: int, reports_first: bool = False, surviving: bool = False
    ) -> list[StudyPlan]:
        found = self._exposed(event)
        if reports_first:
            found.sort(key=lambda study: len(study.reports) == 1)
        if surviving:
            found = [s for s in found if s.extra and s.extra.role == "subordinate" and s.extra.round < event.round]
        for study in found[:wanted]:
            study.hit = True
        return found[:wanted]

    def _pairs(self, event: Event, wanted: int) -> list[tuple[StudyPlan, StudyPlan]]:
        """Two studies of a section, each with one report, whose registrations turn out to be one."""
        pairs: list[tuple[StudyPlan, StudyPlan]] = []
        by_section: dict[int, list[StudyPlan]] = {}
        for study in self._exposed(event):
            if len(study.reports) == 1:
                by_section.setdefault(study.section, []).append(study)
        while len(pairs) < wanted and (left := [s for s in by_section.values() if len(s) > 1]):
            studies = max(left, key=len)
            one, other = studies.pop(0), studies.pop(0)
            one.hit = other.hit = one.paired = other.paired = True
            pairs.append((one, other))
        return pairs

    def _link(self, event: Event, joined: bool) -> tuple[Place, int]:
        """The link of an earlier round whose closure touches nearest 8 % of the studies; ``joined``: one of two."""
        struck = self.struck_links
        wanted = max(2, rounded(self.originals, 8))
        choices = [
            (cell.place, n)
            for cell in self.cells.values()
            if cell.place[1] < event.round and (len(cell.links) > 1 or not joined)
            for n in range(len(cell.links))
            if (cell.place, n) not in struck and not (joined and (cell.place, 1 - n) in struck)
        ]
        found = min(choices, key=lambda c: (abs(len(self.touched(c[0], event.round)) - wanted), c))
        struck.add(found)
        return found

    def touched(self, place: Place, before: int) -> list[StudyPlan]:
        """Included studies of rounds before one that rest on a calibration."""
        closure = self.closure(place)
        return [
            study
            for study in self.included
            if study.round < before
            and self.calibration_for(study.cell, study.population, study.primary(before - 1).round) in closure
        ]


def _place(found: Candidate) -> Place:
    s, r = found.id.split()
    return int(s), int(r)
