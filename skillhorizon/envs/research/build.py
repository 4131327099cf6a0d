"""Construction of ResearchOps tasks: a plan of cells, studies and events turned into records.

Each work draws from a stream of its own, keyed by what it is, so a larger task has the same works and more. The right
answers are nowhere written down: they follow from the records by the rules.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import derived
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from skillhorizon.envs.research import catalog
from skillhorizon.envs.research.plan import Event, Place, Plan, Report, StudyPlan
from skillhorizon.envs.research.records import (
    Arm,
    Change,
    Cluster,
    Conduct,
    LinkRow,
    Measured,
    Outcomes,
    Protocol,
    Put,
    Reviewer,
    Round,
    Section,
    StudyRow,
    Work,
)
from skillhorizon.envs.research.rules import Judgement, Metric, rank
from skillhorizon.envs.research.seed import (
    Alias,
    Catalogue,
    Citation,
    Enrolled,
    Instrument,
    PaperEvent,
    Registration,
    catalogue,
    seed_tables,
)

FAMILIES = ("identity-compatibility", "study-retraction", "ambiguity-withdrawal")
SHAPES = (
    ("light", "chain-join"),
    ("heavy", "chain-join"),
    ("light", "braided"),
    ("exclusions", "distributed"),
    ("reports", "distributed"),
)
"""Variant (which of extra reports and exclusions are many) and topology."""


class Scale(NamedTuple):
    """Of one band: sections and rounds by shape, studies that one event hits, works (least, first guess, most), and
    tenths of sentences and table lines a work."""

    sections: tuple[int, ...]
    rounds: tuple[int, ...]
    hits: int
    works: tuple[int, int, int]
    prose: int


SCALES = {
    "64K": Scale((2, 2, 2, 2, 2), (3, 3, 3, 3, 3), 1, (15, 20, 21), 250),
    "128K": Scale((3, 3, 3, 3, 3), (3, 3, 3, 3, 3), 1, (39, 39, 39), 390),
    "256K": Scale((4, 4, 3, 4, 5), (4, 4, 4, 4, 4), 2, (76, 84, 92), 350),
    "512K": Scale((5, 5, 4, 5, 6), (4, 5, 4, 5, 5), 3, (165, 175, 185), 320),
    "1M": Scale((6, 6, 5, 6, 8), (5, 6, 5, 6, 6), 5, (365, 375, 395), 230),
    "2M": Scale((8, 8, 8, 8, 8), (7, 7, 7, 7, 7), 8, (640, 740, 840), 230),
    "4M": Scale((10, 10, 10, 10, 10), (8, 8, 8, 8, 8), 12, (1_280, 1_480, 1_640), 180),
}
NEAR_PANEL = 15
"""Percent of works by people near a reviewer of their round."""
PANEL = 4
_GOAL = (
    "Bring the living evidence review to release. Round by round: open it, obtain and identify every listed work, "
    "screen and appraise the reports that speak for a study, establish the calibrations that the accepted links give, "
    "annotate, calibrate and contribute the included studies, synthesise every section over all evidence so far, and "
    "commit. Publication events may become known while you work; notices say so. Renew exactly what they void, settle "
    "each notice, and leave committed reviews as they are. Release the last review with its flow of reports."
)
_TABLES = (
    "protocol", "sections", "rounds", "reviewers", "works", "outcomes", "aliases", "citations", "paper_events",
    "registrations", "receipts", "notice_log",
)  # fmt: skip
_ADMITTED = {"mean_difference": ("cluster_trial", "parallel_trial"), "mean_level": ("registry_cohort", "single_arm")}
_OTHER_DESIGNS = ("case_series", "crossover_trial")
_OTHER_METRIC: dict[Metric, Metric] = {"mean_difference": "mean_level", "mean_level": "mean_difference"}


class ResearchGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: the rounds that the review must have, and how many events come."""

    rounds: tuple[str, ...]
    events: int


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Three families by five shapes: 15 in every band."""
    scale = SCALES[band]
    return tuple(
        TaskConfig(
            "research",
            family,
            variant,
            pattern,
            band,
            {"sections": scale.sections[n], "rounds": scale.rounds[n], "hits": scale.hits},
        )
        for n, (variant, pattern) in enumerate(SHAPES)
        for family in FAMILIES
    )


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed, of ``size`` works or, where that is too few for its cells, the least."""
    return Builder(Plan(config, seed, size)).blueprint()


def decimal(value: int, places: int) -> str:
    """An integer number of the last place as a decimal string."""
    digits = f"{abs(value):0{places + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"


def noise(rng: random.Random, spread: int) -> int:
    """About normal around zero, with this standard deviation."""
    return sum(rng.randint(-spread, spread) for _ in range(3))


class Printed(NamedTuple):
    """How the reports of one study name it."""

    cohort_id: str
    enrolled: Enrolled
    registry_id: str | None


class Builder:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.catalogue: Catalogue = catalogue()
        self.tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
        self.round_ids = [plan.ids.new("rnd", r) for r in range(1, plan.T + 1)]
        self.section_ids = [plan.ids.new("sec", s) for s in range(plan.S)]
        self.prose = SCALES[plan.config.band].prose
        self.aliased = 70 if plan.many_reports else 35
        self.unregistered = 50 if plan.family == "ambiguity-withdrawal" else 10
        self.listed: dict[int, list[str]] = {r: [] for r in range(1, plan.T + 1)}
        self.taken: set[tuple[str, Enrolled]] = set()
        self.printed: dict[str, Printed] = {}
        """original work -> how its study is printed"""
        self.before: dict[int, Printed] = {}
        """section -> the study before the one that is made"""
        self.rows_of: dict[str, int] = {}
        """study work -> its row that rule 3 takes"""

    def rng(self, *key: object) -> random.Random:
        return self.plan.rng(*key)

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables[table][key] = record

    # -- the whole -------------------------------------------------------------------------------------------------

    def blueprint(self) -> Blueprint:
        self._instruments()
        self._protocol()
        self._panels()
        for cell in self.plan.cells.values():
            for n in range(len(cell.links)):
                self._link(cell.place, n)
        for study in self.plan.studies:
            for report in study.reports:
                self._report(study, report)
        updates = tuple(self._update(event) for event in self.plan.events)
        for r, round_id in enumerate(self.round_ids, 1):
            self.put("rounds", round_id, Round(round_id, r, "waiting", tuple(sorted(self.listed[r]))))
            quota = -(-self._appraisals(r) // 3)
            for author_id in self.panels[r]:
                self.put("reviewers", f"{round_id}/{author_id}", Reviewer(round_id, author_id, quota))
        brief = {
            "goal": _GOAL,
            "rounds": self.plan.T,
            "sections": self.plan.S,
            "works": self.plan.works,
            "reference_instrument_id": self.reference,
        }
        return Blueprint(
            tables=self.tables,
            updates=updates,
            graph=self._graph(),
            brief=brief,
            goal=ResearchGoal(tuple(self.round_ids), len(updates)),
            scale={"Source works": self.plan.works, "Rounds": self.plan.T},
        )

    # -- what stands from the start --------------------------------------------------------------------------------

    def _instruments(self) -> None:
        """The reference, one instrument a general cell, and decoys that no link starts from."""
        rng = self.rng("instruments")
        seed: Any = seed_tables()["instruments"]
        self.instrument: dict[str, Instrument] = seed
        drawn = rng.sample(sorted(seed), len(seed))
        self.reference, rest = drawn[0], drawn[1:]
        self.of_cell, self.decoys = rest[: self.plan.instruments], rest[self.plan.instruments :]
        self.center: dict[str, tuple[int, int]] = {}
        """instrument -> mean and standard deviation in its points, in hundredths"""
        for instrument_id in drawn:
            own = self.rng("scale", instrument_id)
            self.center[instrument_id] = own.randint(2_500, 6_000), own.randint(650, 1_250)
            name = self.instrument[instrument_id].name
            alias = name.rpartition(" ")[0]
            self.put("aliases", f"instrument|{alias}|{instrument_id}", Alias("instrument", alias, instrument_id))
        self.names: dict[str, list[str]] = {}
        known: Any = seed_tables()["aliases"].values()
        for entry in (*known, *self.tables["aliases"].values()):
            self.names.setdefault(entry.id, []).append(entry.printed)

    def _cell_instrument(self, place: Place) -> str:
        return self.of_cell[self.plan.cells[place].instrument]

    def _protocol(self) -> None:
        rng = self.rng("protocol")
        self.protocol = Protocol(
            self.reference,
            rng.choice((40, 50, 60)),
            rng.choice((80, 100)),
            rng.choice((6, 8)),
            rng.choice((26, 36, 52)),
        )
        self.put("protocol", "protocol", self.protocol)
        topics: Any = seed_tables()["topics"]
        ids = sorted(topics)
        rng.shuffle(ids)
        self.level: list[int] = []
        """true effect of each section on the reference scale, in hundredths of its standard deviation"""
        for s, section_id in enumerate(self.section_ids):
            metric: Metric = "mean_level" if s % 3 == 1 else "mean_difference"
            mean, sd = self.center[self.reference]
            null = 0 if metric == "mean_difference" else mean + sd * rng.choice((-1, 1)) * rng.randint(5, 30) // 100
            self.level.append(rng.choice((-1, 1)) * rng.randint(0, 45))
            own = tuple(ids[s :: self.plan.S])
            title = f"{topics[own[0]].name} and {topics[own[1]].name}".capitalize()
            populations = tuple(sorted(self.plan.admitted[s]))
            section = Section(
                section_id, s + 1, title, own, metric, decimal(null * 10_000, 6), populations, _ADMITTED[metric]
            )
            self.put("sections", section_id, section)

    def _appraisals(self, r: int) -> int:
        """Appraisals that a round needs: its links, included originals and superseding articles, and survivors."""
        studies, events = self.plan.included, self.plan.events
        included = sum(study.original.round == r for study in studies)
        later = sum(s.extra.round == r for s in studies if s.extra and s.extra.role == "superseding")
        links = sum(len(cell.links) for cell in self.plan.cells.values() if cell.place[1] == r)
        survivors = sum(len(e.studies) for e in events if e.round == r and e.kind == "withdrawal")
        return included + later + links + survivors

    def section(self, s: int) -> Section:
        found: Section = self.tables["sections"][self.section_ids[s]]
        return found

    def _panels(self) -> None:
        """Reviewers from teams apart, and for each section its papers, none of them near two of one panel."""
        rng = self.rng("panels")
        together = self.catalogue.coauthors
        authors = [a for a in sorted(together) if 2 <= len(together[a]) <= 8]
        rng.shuffle(authors)
        self.panels: dict[int, list[str]] = {}
        near: dict[int, dict[str, int]] = {}
        for r in self.listed:
            panel: list[str] = []
            known: set[str] = set()
            while len(panel) < PANEL:
                author = authors.pop()
                circle = {author, *together[author]}
                if not known & circle:
                    panel.append(author)
                    known |= circle
            self.panels[r] = sorted(panel)
            near[r] = {}
            for author in panel:
                papers = {p for a in (author, *together[author]) for p in self.catalogue.papers_by.get(a, ())}
                for paper in papers:
                    near[r][paper] = near[r].get(paper, 0) + 1
        twice = {paper for papers in near.values() for paper, count in papers.items() if count > 1}
        self.near = {r: set(papers) for r, papers in near.items()}
        self.circle = {
            r: {p for p in papers if not set(self.panels[r]) & set(self.catalogue.authors_of[p])}
            for r, papers in near.items()
        }
        """round -> papers near a reviewer by co-authorship alone"""
        companions: Any = seed_tables()["citations"].values()
        self.companions = {p for c in companions if c.relation == "companion" for p in (c.citing, c.cited)}
        topics = {t: s for s in range(self.plan.S) for t in self.section(s).topics}
        self.pool: list[list[str]] = [[] for _ in range(self.plan.S)]
        catalogued: Any = seed_tables()["papers"]
        for paper_id in sorted(catalogued):
            if paper_id not in twice:
                self.pool[topics[catalogued[paper_id].topic_id]].append(paper_id)
        for s, pool in enumerate(self.pool):
            self.rng("pool", s).shuffle(pool)

    def _paper(self, s: int, r: int, rng: random.Random, keyless: bool, circle: bool = False) -> Any:
        """A paper of the section not used before; one that a keyless work uses has no companion in the catalogue."""
        wanted = circle or rng.randrange(100) < NEAR_PANEL
        near = self.circle[r] if circle else self.near[r]
        pools = [self.pool[s], *(p for p in self.pool if p is not self.pool[s])]
        found = None
        for pool in pools:
            fitting = (p for p in pool if not (keyless and p in self.companions))
            for paper_id in fitting:
                found = found or paper_id
                if (paper_id in near) == wanted:
                    found = paper_id
                    break
            if found is not None:
                pool.remove(found)
                return seed_tables()["papers"][found]
        raise ValueError("the catalogue has no paper left")

    # -- links -----------------------------------------------------------------------------------------------------

    def _link(self, place: Place, n: int) -> None:
        cell = self.plan.cells[place]
        s, r = place
        work_id = cell.links[n]
        rng = self.rng("link", s, r, n)
        # in each round one report at least that not every reviewer may judge
        paper = self._paper(s, r, rng, keyless=True, circle=n == 0 and s == r % self.plan.S)
        target = cell.parents[n]
        ends = (self._cell_instrument(place), self._cell_instrument(target) if target else self.reference)
        printed = [self._spelling(i, rng) for i in ends]
        least = self.protocol.minimum_link_sample
        covered = tuple(sorted(cell.populations[n]))
        samples = sorted((rng.randint(least, 4 * least) for _ in range(2)), reverse=True)
        drawn: list[tuple[Any, int]] = [(covered, samples[0] + 7), (tuple(rng.sample(covered, 1)), samples[1])]
        drawn += [(covered, rng.randint(least // 3, least - 1)) for _ in range(rng.randint(0, 2))]
        rng.shuffle(drawn)
        rows = []
        for row, (populations, sample) in enumerate(drawn, 1):
            scales = []
            for instrument_id, name in zip(ends, printed, strict=True):
                mean, sd = self.center[instrument_id]
                shown = mean + noise(rng, 60), sd * rng.randint(93, 107) // 100
                scales.append(Measured(name, decimal(shown[0], 2), decimal(shown[1], 2)))
            rows.append(LinkRow(row, scales[0], scales[1], populations, sample))
        self.put("outcomes", work_id, Outcomes(tuple(rows)))
        start = rng.randint(9_000, 14_000)
        enrolled = Enrolled(
            start, start + rng.randint(90, 500), max(sample for _, sample in drawn) + rng.randint(5, 40)
        )
        self._work(
            work_id, s, r, "link", "article", paper, "validation_study", None, None, enrolled, None, "low", None, rng
        )

    # -- studies ---------------------------------------------------------------------------------------------------

    def _report(self, study: StudyPlan, report: Report) -> None:
        s, r, role = study.section, report.round, report.role
        section = self.section(s)
        rng = self.rng(role, study.section, study.round, study.number)
        joined = rng.choice(("registry", "cohort", "companion")) if role != "original" else ""
        paper = self._paper(s, r, rng, keyless=joined == "companion")
        cohort, registry_id, enrolled = self._identity(study, role, joined, paper.paper_id, rng)
        broken = study.broken
        design = rng.choice(_OTHER_DESIGNS if "design" in broken else section.designs)
        population = study.population
        if "population" in broken:
            population = rng.choice([p for p in ("adolescents", "perinatal") if p not in section.populations])
        cluster = None
        if design == "cluster_trial":
            cluster = Cluster(rng.randint(8, 30), decimal(rng.randint(100, 600), 4))
        rows, chosen = self._rows(study, enrolled.n, rng)
        self.put("outcomes", report.work_id, Outcomes(rows))
        self.rows_of[report.work_id] = chosen
        kind = self._kind(study, report, paper, rng)
        risk = study.risk if role == "original" else rng.choice(("low", "some"))
        self._work(
            report.work_id, s, r, "study", kind, paper, design, cohort, registry_id, enrolled, population, risk,
            cluster, rng,
        )  # fmt: skip
        for name in ("retracted", "withdrawn"):
            if name in broken:
                self._strike(report.work_id, name, rng)

    def _kind(self, study: StudyPlan, report: Report, paper: Any, rng: random.Random) -> Any:
        """So that the planned report speaks for the study."""
        extra = study.extra
        if report.role == "superseding":
            return "article"
        if report.role == "subordinate":
            original: Work = self.tables["works"][study.original.work_id]
            earlier = original.kind == "article" and paper.day < original.day
            return "article" if earlier and rng.random() < 0.4 else rng.choice(("preprint", "secondary"))
        if extra is None:
            return rng.choices(("article", "preprint", "secondary"), (7, 2, 1))[0]
        return "preprint" if extra.role == "superseding" else "article"

    def _identity(
        self, study: StudyPlan, role: str, joined: str, paper_id: str, rng: random.Random
    ) -> tuple[str | None, str | None, Enrolled]:
        """Printed cohort, registry and enrolment; an extra report is joined to its study in one of three ways."""
        if role == "original":
            made = self._new_study(study, rng)
            self.printed[study.original.work_id] = made
            return self._cohort_name(made.cohort_id, rng), made.registry_id, made.enrolled
        made = self.printed[study.original.work_id]
        if joined == "companion":
            other = self.tables["works"][study.original.work_id].paper_id
            citing, cited = rng.sample((paper_id, other), 2)
            self.put("citations", f"{citing}|{cited}", Citation(citing, cited, "companion"))
            return None, None, made.enrolled
        name = self._cohort_name(made.cohort_id, rng)
        if joined == "cohort" or made.registry_id is None:
            return name, None, made.enrolled
        registry_id, enrolled = made.registry_id, made.enrolled
        if rng.random() < 0.4:
            enrolled = self._distinct(made.cohort_id, replace(enrolled, n=enrolled.n - rng.randint(1, 5)))
        if rng.random() < 0.4:
            registry_id = self._registration(made, made.registry_id, "second", study.original.work_id)
        return name, registry_id, enrolled

    def _distinct(self, cohort_id: str, enrolled: Enrolled) -> Enrolled:
        while (cohort_id, enrolled) in self.taken:
            enrolled = replace(enrolled, n=enrolled.n + 1)
        self.taken.add((cohort_id, enrolled))
        return enrolled

    def _new_study(self, study: StudyPlan, rng: random.Random) -> Printed:
        """A near miss shares cohort and window with the study before it in its section, but not the number."""
        least = self.protocol.minimum_n
        n = rng.randint(least // 3, least - 1) if "sample" in study.broken else rng.randint(least + 6, 6 * least)
        cohorts: Any = seed_tables()["cohorts"]
        names = list(cohorts)
        shared = names[:96] if self.unregistered > 10 and rng.random() < 0.7 else names
        cohort_id = rng.choice(shared)
        window = rng.choice(cohorts[cohort_id].windows)
        start = rng.randint(window.from_, window.to - 200)
        enrolled = Enrolled(start, rng.randint(start + 60, window.to), n)
        before = self.before.get(study.section)
        if before and rng.random() < 0.2:
            cohort_id, enrolled = before.cohort_id, replace(before.enrolled, n=n)
        enrolled = self._distinct(cohort_id, enrolled)
        registered = study.paired or rng.randrange(100) >= self.unregistered
        made = self.before[study.section] = Printed(cohort_id, enrolled, None)
        registry_id = self._registration(made, None, "first", study.original.work_id) if registered else None
        return Printed(cohort_id, enrolled, registry_id)

    def _registration(self, made: Printed, current: str | None, *key: object) -> str:
        registry_id = self.plan.ids.new("reg", *key)
        topics: Any = seed_tables()["topics"].values()
        outcomes = tuple(self.rng("outcomes", registry_id).sample([t.name for t in topics], 2))
        record = Registration(registry_id, current or registry_id, made.cohort_id, made.enrolled, outcomes)
        self.put("registrations", registry_id, record)
        return registry_id

    def _spelling(self, identity: str, rng: random.Random) -> str:
        """The canonical name, or another one that is known."""
        canonical, *others = self.names[identity]
        return rng.choice(others) if others and rng.randrange(100) < self.aliased else canonical

    def _cohort_name(self, cohort_id: str, rng: random.Random) -> str:
        """In the family of ambiguities an acronym that two cohorts share is printed wherever there is one."""
        names = self.names[cohort_id]
        if len(names) == 1:
            place, word, _ = names[0].rsplit(" ", 2)
            alias = f"{place} {word[:3]}. cohort"
            self.put("aliases", f"cohort|{alias}|{cohort_id}", Alias("cohort", alias, cohort_id))
            names.append(alias)
        if self.unregistered > 10 and len(names) > 1 and names[1].isupper() and rng.random() < 0.8:
            return names[1]
        return self._spelling(cohort_id, rng)

    def _rows(self, study: StudyPlan, n: int, rng: random.Random) -> tuple[tuple[StudyRow, ...], int]:
        """The row that counts, an early and a per-protocol one on the same instrument, and decoys; its number."""
        broken = study.broken
        section = self.section(study.section)
        metric = _OTHER_METRIC[section.metric] if "metric" in broken else section.metric
        counted: Any = "per_protocol" if "analysis" in broken else "intention_to_treat"
        own = rng.choice(self.decoys) if "no_calibration" in broken else self._cell_instrument(study.cell)
        first, last = self.protocol.min_weeks, self.protocol.max_weeks
        weeks = rng.randint(first + 6, last - 4)
        early = rng.randint(first, weeks - 2)
        if "follow_up" in broken:
            weeks, early = last + rng.randint(2, 12), rng.randint(1, first - 1)
        effect = self.level[study.section]
        rows = [
            (own, metric, weeks, counted, 100),
            (own, metric, early, counted, 60),
            (own, metric, weeks, "per_protocol" if counted == "intention_to_treat" else "completers", 130),
        ]
        decoys = [
            (own, _OTHER_METRIC[section.metric], weeks, "intention_to_treat", 100),
            (own, metric, last + rng.randint(2, 20), counted, 80),
            (rng.choice(self.decoys), metric, weeks + 2, counted, 90),
            (own, metric, early, "completers", 120),
            (rng.choice(self.decoys), _OTHER_METRIC[section.metric], early, "per_protocol", 70),
            (rng.choice(self.decoys), metric, rng.randint(1, first - 1), counted, 40),
        ]
        rows += rng.sample(decoys, rng.randint(3, 6))
        rng.shuffle(rows)
        made = []
        spelled: dict[str, str] = {}
        for number, (instrument_id, its_metric, its_weeks, analysis, share) in enumerate(rows, 1):
            name = spelled.setdefault(instrument_id, self._spelling(instrument_id, rng))
            unit = rng.choice(self.instrument[instrument_id].units)
            factor = int(unit.factor.replace(".", ""))
            arms = self._arms(instrument_id, its_metric, effect * share // 100, n, analysis, rng)
            shown = [
                Arm(
                    decimal(_nearest(mean * 10_000, factor), 2), decimal(max(1, _nearest(sd * 10_000, factor)), 2), size
                )
                for mean, sd, size in arms
            ]
            control = shown[1] if len(shown) > 1 else None
            made.append(StudyRow(number, name, unit.unit, its_metric, its_weeks, analysis, shown[0], control))
        chosen = rows.index((own, metric, weeks, counted, 100)) + 1
        return tuple(made), chosen

    def _arms(
        self, instrument_id: str, metric: str, effect: int, n: int, analysis: str, rng: random.Random
    ) -> list[tuple[int, int, int]]:
        """Mean and standard deviation in hundredths of a point, and size, of one or two arms.

        ``effect`` is on the reference scale in hundredths of a standard deviation, turned where the scales oppose.
        """
        opposed = self.instrument[instrument_id].higher_is != self.instrument[self.reference].higher_is
        mean, sd = self.center[instrument_id]
        kept = n if analysis == "intention_to_treat" else n * rng.randint(70, 90) // 100
        moved = sd * effect // 100 * (-1 if opposed else 1)
        spread = sd * rng.randint(92, 108) // 100
        if metric == "mean_level":
            return [(mean + moved + noise(rng, max(1, sd // _root(kept))), spread, max(kept, 4))]
        half = max(kept // 2, 4)
        treated = mean + moved + noise(rng, max(1, sd * 14 // (10 * _root(half))))
        return [(treated, spread, half), (mean, sd * rng.randint(92, 108) // 100, max(kept - half, 4))]

    # -- works -----------------------------------------------------------------------------------------------------

    def _work(
        self,
        work_id: str,
        s: int,
        r: int,
        role: Literal["link", "study"],
        kind: Any,
        paper: Any,
        design: str,
        cohort: str | None,
        registry_id: str | None,
        enrolled: Enrolled,
        population: Any,
        risk: Judgement,
        cluster: Cluster | None,
        rng: random.Random,
    ) -> None:
        conduct = _conduct(risk if role == "study" else rng.choice(("low", "some", "high")), rng)
        facts = {
            "design": design,
            "population": population,
            "n": enrolled.n,
            "cluster": cluster,
            "missing": conduct.missing_percent,
            "arms": design.endswith("trial"),
        }
        amount = self.prose // 10 + (rng.randrange(10) < self.prose % 10)
        texts = catalog.texts(facts, self._figure(work_id, role, rng), amount, rng)
        work = Work(
            work_id, paper.paper_id, 1, self.round_ids[r - 1], self.section_ids[s], role, kind, paper.day, design,
            cohort, registry_id, enrolled, population, conduct, cluster, *texts,
        )  # fmt: skip
        self.put("works", work_id, work)
        self.listed[r].append(work_id)

    def _figure(self, work_id: str, role: str, rng: random.Random) -> str:
        """The sentence of the abstract that gives a figure."""
        if role == "link":
            return "Both instruments were answered in one sitting, in an order drawn at random."
        row: StudyRow = self.tables["outcomes"][work_id].at(self.rows_of[work_id])
        shifted = decimal(int(row.treated.mean.replace(".", "")) + rng.randint(20, 400), 2)
        return f"Of completers the mean on the {row.instrument} at {row.weeks} weeks was {shifted} ({row.unit})."

    def _strike(self, work_id: str, kind: Any, rng: random.Random) -> None:
        work: Work = self.tables["works"][work_id]
        event_id = self.plan.ids.new("evt", work_id, kind)
        self.put("paper_events", event_id, PaperEvent(event_id, work.paper_id, work.day + rng.randint(30, 600), kind))

    # -- events ----------------------------------------------------------------------------------------------------

    def _update(self, event: Event) -> Update:
        rng = self.rng("update", event.number)
        if event.kind == "correction":
            effect = self._correction(event, rng)
        elif event.kind == "retraction":
            effect = self._retraction(event, rng)
        else:
            effect = self._withdrawal(event, rng)
        at = -(-6 * len(self.listed[event.round]) // 10)
        return Update(event.number, f"disposed:{event.round}", at, effect)

    def _corrected(self, work_id: str, row: Any) -> tuple[Put, Put]:
        """Another row in the place of one, in the next version of the work."""
        outcomes: Outcomes = self.tables["outcomes"][work_id]
        work: Work = self.tables["works"][work_id]
        rows = tuple(row if r.row == row.row else r for r in outcomes.rows)
        return Put("outcomes", work_id, Outcomes(rows)), Put("works", work_id, replace(work, version=work.version + 1))

    def _correction(self, event: Event, rng: random.Random) -> Change:
        puts: list[Put] = []
        subjects, keys = [], []
        if event.link is not None:
            place, n = event.link
            work_id = self.plan.cells[place].links[n]
            used = max(self.tables["outcomes"][work_id].rows, key=lambda r: (r.sample, -r.row))
            end = replace(used.to, mean=_moved(used.to.mean, rng, 40), sd=_moved(used.to.sd, rng, 25))
            corrected = [(work_id, replace(used, to=end))]
        else:
            corrected = [
                (w, self._errs(w, self.rows_of[w], rng)) for s in event.studies if (w := s.primary(event.round).work_id)
            ]
            if event.unused is not None:
                work_id = event.unused.primary(event.round).work_id
                others = [r.row for r in self.tables["outcomes"][work_id].rows if r.row != self.rows_of[work_id]]
                corrected.append((work_id, self._errs(work_id, rng.choice(others), rng)))
        for work_id, row in corrected:
            puts += self._corrected(work_id, row)
            subjects.append(work_id)
            keys.append(f"row:{work_id}:{row.row}")
        text = f"Corrections of outcome figures were published for {', '.join(subjects)}."
        return Change("correction", tuple(subjects), text, tuple(puts), tuple(keys))

    def _errs(self, work_id: str, number: int, rng: random.Random) -> StudyRow:
        row: StudyRow = self.tables["outcomes"][work_id].at(number)
        return replace(row, treated=replace(row.treated, mean=_moved(row.treated.mean, rng, 90)))

    def _event_put(self, work_id: str, kind: Any, event: Event) -> Put:
        event_id = self.plan.ids.new("evt", "update", event.number, work_id)
        work: Work = self.tables["works"][work_id]
        return Put("paper_events", event_id, PaperEvent(event_id, work.paper_id, 20_600 + event.round, kind))

    def _retraction(self, event: Event, rng: random.Random) -> Change:
        if event.link is not None:
            place, n = event.link
            works = [self.plan.cells[place].links[n]]
        else:
            works = [report.work_id for study in event.studies for report in study.reports]
        puts = tuple(self._event_put(w, "retracted", event) for w in works)
        known = [w for w in works if self.tables["works"][w].round_id in self.round_ids[: event.round]]
        text = f"Retracted for all reports: {', '.join(known)}."
        return Change("retraction", tuple(known), text, puts, tuple(f"events:{w}" for w in works))

    def _withdrawal(self, event: Event, rng: random.Random) -> Change:
        works = [study.original.work_id for study in event.studies]
        puts = [self._event_put(w, "withdrawn", event) for w in works]
        keys = [f"events:{w}" for w in works]
        merged = []
        for pair in event.pairs:
            ids = [study.original.work_id for study in pair]
            kept, gone = sorted(ids, key=lambda w: rank(self.tables["works"][w].kind, self.tables["works"][w].day, w))
            current = self.tables["works"][kept].registry_id
            registration: Registration = self.tables["registrations"][self.tables["works"][gone].registry_id]
            puts.append(Put("registrations", registration.registry_id, replace(registration, current_id=current)))
            keys.append(f"registration:{registration.registry_id}")
            merged.append(registration.registry_id)
        parts = [f"Withdrawn by their publishers: {', '.join(works)}."] if works else []
        parts += [f"Merged into other registrations: {', '.join(merged)}."] if merged else []
        return Change("withdrawal", (*works, *merged), " ".join(parts), tuple(puts), tuple(keys))

    # -- the graph -------------------------------------------------------------------------------------------------

    def calibration_id(self, place: Place) -> str:
        return derived("cal", self._cell_instrument(place), place[1] * 100 + place[0] + 1)

    def _graph(self) -> TaskGraph:
        modules: list[Module] = []
        in_round: dict[int, list[str]] = {r: [] for r in self.listed}

        def add(key: str, kind: str, r: int, needs: dict[str, Any]) -> None:
            listed = tuple(Need(of, need) for of, need in needs.items())
            modules.append(Module(key, kind, r, key.partition(":")[2], listed))
            in_round[r].append(key)

        plan = self.plan
        for cell in plan.cells.values():
            r = cell.place[1]
            for work_id in cell.links:
                add(f"work:{work_id}", "link", r, {})
            needs: dict[str, Any] = {f"work:{w}": "content" for w in cell.links}
            needs |= {f"calibration:{self.calibration_id(p)}": "content" for p in cell.actual if p}
            add(f"calibration:{self.calibration_id(cell.place)}", "calibration", r, needs)
        for study in plan.studies:
            used = f"calibration:{self.calibration_id(study.cell)}"
            add(f"work:{study.original.work_id}", "study", study.round, {used: "content"} if not study.broken else {})
        for study in plan.studies:
            if study.extra:
                needs = {f"work:{study.original.work_id}": "validity"}
                add(f"work:{study.extra.work_id}", "extra report", study.extra.round, needs)
        for event in plan.events:
            struck = [s.original.work_id for s in event.studies]
            struck += [s.original.work_id for pair in event.pairs for s in pair]
            struck += [plan.cells[event.link[0]].links[event.link[1]]] if event.link else []
            struck += [event.unused.original.work_id] if event.unused else []
            add(f"update:{event.number}", "update", event.round, {f"work:{w}": "validity" for w in struck})
        for r, round_id in enumerate(self.round_ids, 1):
            needs = dict.fromkeys(in_round[r], "content")
            if r > 1:
                needs[f"round:{self.round_ids[r - 2]}"] = "provenance"
            add(f"round:{round_id}", "round", r, needs)
        return TaskGraph.of(modules)


def _nearest(numerator: int, denominator: int) -> int:
    """The whole number nearest to a ratio."""
    return (2 * numerator + denominator) // (2 * denominator)


def _root(n: int) -> int:
    """Whole part of the square root, at least 1."""
    root = 1
    while (root + 1) ** 2 <= n:
        root += 1
    return root


def _moved(value: str, rng: random.Random, most: int) -> str:
    """Another decimal with two places, near this one and never below a tenth for a positive one."""
    cents = int(value.replace(".", ""))
    step = rng.randint(most // 3, most)
    return decimal(cents + step if cents <= 10 + step or rng.random() < 0.5 else cents - step, 2)


def _conduct(risk: Judgement, rng: random.Random) -> Conduct:
    """Answers that rule 4 judges so."""
    answers: list[Any] = ["yes"] * 4
    missing = rng.randint(3, 20)
    if risk == "some":
        answers[rng.randrange(4)] = rng.choice(("no", "unclear"))
        if rng.random() < 0.5:
            answers[rng.choice([n for n in range(4) if answers[n] == "yes"])] = "unclear"
    elif risk == "high":
        if rng.random() < 0.5:
            missing = rng.randint(21, 38)
            answers[rng.randrange(4)] = rng.choice(("yes", "unclear"))
        else:
            for n in rng.sample(range(4), 2):
                answers[n] = "no"
    concealed, blinded, registered, followed = answers
    return Conduct(concealed, blinded, registered, followed, missing)
