"""The review office: records, what is true of them by the rules, and what makes work stale.

Days count from 1 January 1970; numbers that enter arithmetic are decimal strings. Rule numbers are those of the
protocol; the pure ones stand in ``rules``, those over records here, for operations, staleness and scoring alike.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, STALE, WITHDRAWN, Artifact, Update, World
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.records import (
    Calibration,
    Change,
    Flow,
    LinkAnnotation,
    LinkRow,
    Protocol,
    Reviewer,
    Round,
    Section,
    Status,
    StudyAnnotation,
    StudyRow,
    Work,
)
from skillhorizon.envs.research.rules import Candidate, Rule
from skillhorizon.envs.research.seed import Catalogue, Citation, PaperEvent, Registration, catalogue


class Shelves:
    """Keys on shelves, each in order; a key stands on one shelf at most."""

    def __init__(self) -> None:
        self._shelves: dict[Any, list[str]] = {}
        self._place: dict[str, Any] = {}

    def put(self, key: str, shelf: Any) -> None:
        before = self._place.get(key)
        if before == shelf:
            return
        if before is not None:
            keys = self._shelves[before]
            del keys[bisect_left(keys, key)]
        self._place[key] = shelf
        insort(self._shelves.setdefault(shelf, []), key)

    def at(self, key: str) -> Any:
        return self._place.get(key)

    def __getitem__(self, shelf: Any) -> list[str]:
        return self._shelves.get(shelf, [])


class Choice(NamedTuple):
    """What rule 3 gives for a report: the row to take, or the first rule that excludes it."""

    row: StudyRow | None
    rule: Rule | None


_FIRST_PREFIX = {"identity": "idn", "screening": "scr", "appraisal": "app", "annotation": "ann"}


class ResearchWorld(World):
    prefixes: ClassVar[Mapping[str, str]] = {
        **_FIRST_PREFIX,
        "study": "std",
        "calibration": "cal",
        "interpretation": "itp",
        "contribution": "con",
        "synthesis": "syn",
        "review": "rev",
        "release": "rel",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        t = self.tables
        self.catalogue: Catalogue = catalogue()
        self.protocol: Protocol = t["protocol"]["protocol"]
        self.sections: list[Section] = sorted(t["sections"].values(), key=lambda s: s.ordinal)
        self.rounds: list[str] = [r.round_id for r in sorted(t["rounds"].values(), key=lambda r: r.ordinal)]
        self.listed_in: dict[str, int] = {w: r.ordinal for r in t["rounds"].values() for w in r.works}
        self.open_id: str | None = None
        self.work_of = {w.paper_id: w.work_id for w in t["works"].values()}
        self._matches: dict[tuple[str, str], list[str]] = {}
        for alias in t["aliases"].values():
            self._matches.setdefault((alias.kind, alias.printed), []).append(alias.id)
        self._citations: dict[str, list[Citation]] = {}
        for citation in t["citations"].values():
            for paper in (citation.citing, citation.cited):
                self._citations.setdefault(paper, []).append(citation)
        self._events: dict[str, list[PaperEvent]] = {}
        self.struck: dict[str, dict[str, int]] = {}
        """work -> retracted or withdrawn -> ordinal of the round in which that became known (0: from the start)"""
        for event in t["paper_events"].values():
            self._add_event(event)
        self.panels: dict[str, list[Reviewer]] = {round_id: [] for round_id in self.rounds}
        for reviewer in sorted(t["reviewers"].values(), key=lambda r: r.author_id):
            self.panels[reviewer.round_id].append(reviewer)
        capacity = {f"{r.round_id}/{r.author_id}": r.quota for r in t["reviewers"].values()}
        self.ledgers["reviewers"] = Ledger(capacity)
        self._state_of_the_work()
        self._unite()
        self.true_scopes: dict[str, list[Candidate]] = {}
        """instrument -> calibrations as the links give them"""
        self._true_calibrations()

    def _state_of_the_work(self) -> None:
        """Indices over what has been made."""
        self.works = Shelves()
        """listed works by status"""
        self.contributions = Shelves()
        """contribution ids by (section, status)"""
        self.reports: dict[str, dict[str, None]] = {}
        """study -> works declared as its reports"""
        self.declared: dict[str, dict[str, None]] = {}
        """registry key, or cohort -> works declared under it"""
        self.primary_since: dict[str, int] = {}
        """work -> ordinal of the round in which it was declared its study's primary report"""
        self.calibrations_of: dict[str, list[str]] = {}
        """instrument -> calibration ids, in order"""
        self.links_of: dict[tuple[int, str, str], dict[str, None]] = {}
        """(round, section, from-instrument) -> annotated link works"""
        self._link_key: dict[str, tuple[int, str, str]] = {}
        self.cited_by: dict[str, str] = {}
        """link work -> calibration whose newest version cites it"""
        self.promoted: dict[str, None] = {}
        """works that became primary in the open round"""
        self.made_now: dict[str, None] = {}
        """contributions made in the open round"""
        self.assigned: dict[str, str | None] = {}
        """work -> calibration due to it, fixed when the round of its becoming primary is committed"""
        self.stale_by: dict[str, dict[str, str | None]] = {}
        """kind -> references that became stale -> the notice that did it"""
        self.voided_by: dict[str, list[str]] = {}
        """notice -> ids of the identities, calibrations and contributions that it voided"""
        self.owed: dict[str, tuple[int, int]] = {}
        """notice -> contributions revised and withdrawn after it, when it was settled"""
        self._choices: dict[tuple[Any, ...], Choice] = {}
        self._counted: set[str] = set()
        self._striking: str | None = None

    # -- looking up ------------------------------------------------------------------------------------------------

    @property
    def last(self) -> str:
        return self.rounds[-1]

    @property
    def opened(self) -> Round | None:
        return self.tables["rounds"][self.open_id] if self.open_id else None

    def round(self, round_id: str) -> Round:
        found: Round = self.get("rounds", round_id)
        return found

    def work(self, work_id: str) -> Work:
        """A work that has been listed; later ones are not known yet."""
        found: Work = self.get("works", work_id)
        if self.tables["rounds"][found.round_id].state == "waiting":
            raise Rejected("unknown_id", f"no work {work_id!r}", id=work_id)
        return found

    def section(self, section_id: str) -> Section:
        found: Section = self.get("sections", section_id)
        return found

    def newest_of(self, kind: str, subject: str, ordinal: int | None = None) -> Artifact | None:
        """The newest version of the artifact of this kind about this subject."""
        return self.newest.get(derived(self.prefixes[kind], subject, ordinal))

    def about(self, kind: str, work_id: str) -> Artifact | None:
        """The newest identity, screening, appraisal or annotation of a work."""
        return self.newest.get(f"{_FIRST_PREFIX[kind]}-{work_id[4:]}")

    def matches(self, kind: str, printed: str) -> list[str]:
        return sorted({*self.catalogue.matches.get((kind, printed), ()), *self._matches.get((kind, printed), ())})

    def events_of(self, paper_id: str) -> list[PaperEvent]:
        """By day, then id."""
        found = [*self.catalogue.events_of.get(paper_id, ()), *self._events.get(paper_id, ())]
        return sorted(found, key=lambda e: (e.day, e.event_id))

    def citations_of(self, paper_id: str) -> list[Citation]:
        """By citing, then cited paper."""
        found = [*self.catalogue.citations_of.get(paper_id, ()), *self._citations.get(paper_id, ())]
        return sorted(found, key=lambda c: (c.citing, c.cited))

    def conflicted(self, author_id: str, paper_id: str) -> bool:
        """Rule 5: an author of the paper, or a co-author of one."""
        together = self.catalogue.coauthors.get(author_id, ())
        return any(a == author_id or a in together for a in self.catalogue.authors_of[paper_id])

    def study_of(self, work_id: str) -> str | None:
        identity = self.about("identity", work_id)
        return identity.content.study_id if identity else None

    def primary_of(self, study_id: str) -> str:
        primary: str = self.newest[study_id].content.primary
        return primary

    def speaks(self, work_id: str) -> bool:
        """Whether the work is declared the primary report of its declared study."""
        study = self.study_of(work_id)
        return study is not None and self.primary_of(study) == work_id

    def contribution_of(self, study_id: str) -> Artifact | None:
        return self.newest_of("contribution", study_id)

    def included(self, work_id: str) -> bool:
        screening = self.about("screening", work_id)
        return screening is not None and screening.status == CURRENT and screening.content.decision == "include"

    def appraisal(self, work_id: str) -> Artifact | None:
        """The appraisal that counts, if there is one."""
        appraisal = self.about("appraisal", work_id)
        return appraisal if appraisal is not None and appraisal.status == CURRENT else None

    def candidates(self, instrument_id: str) -> Iterator[Candidate]:
        """The calibrations from an instrument, as the choice between them sees them."""
        for identity in self.calibrations_of.get(instrument_id, ()):
            content: Calibration = self.newest[identity].content
            ordinal = self.tables["rounds"][content.round_id].ordinal
            yield Candidate(identity, ordinal, frozenset(content.populations), content.depth, min(content.works))

    # -- where each work stands ------------------------------------------------------------------------------------

    def _status(self, work: Work) -> Status:
        """Rule 12."""
        screening = self.about("screening", work.work_id)
        study = self.study_of(work.work_id)
        if study is None:
            return "open"
        if self.primary_of(study) != work.work_id:
            return "linked"
        if screening is None or screening.status != CURRENT:
            return "open"
        if screening.content.decision == "exclude":
            return "excluded"
        if work.role == "link":
            return "calibrating" if work.work_id in self.cited_by else "open"
        made = self.contribution_of(study)
        contributed = made is not None and made.status != WITHDRAWN and made.content.work_id == work.work_id
        return "contributed" if contributed else "open"

    def review_status(self, *work_ids: str | None) -> None:
        """Put works on the shelf of their status; the first disposal of a work of the open round counts."""
        for work_id in work_ids:
            if work_id is None:
                continue
            work: Work = self.tables["works"][work_id]
            status = self._status(work)
            self.works.put(work_id, status)
            if status != "open" and work.round_id == self.open_id and work_id not in self._counted:
                self._counted.add(work_id)
                self.count(f"disposed:{self.listed_in[work_id]}")

    def demote(self, work_id: str, cause: str) -> None:
        """Rule 5: the appraisal of a report that is excluded or no longer speaks lapses, and its unit is returned."""
        appraisal = self.appraisal(work_id)
        if appraisal is not None:
            self.ledgers["reviewers"].release(appraisal.id)
            self.withdraw(appraisal.ref, cause)

    # -- rules 1 and 2: which reports are one study ----------------------------------------------------------------

    def true_registry(self, work: Work) -> str | None:
        if work.registry_id is None:
            return None
        registration: Registration = self.get("registrations", work.registry_id)
        return registration.current_id

    def true_cohort(self, work: Work) -> str | None:
        """Of the cohorts that print this name, the one with a window around the enrolment; it never changes."""
        if work.work_id not in self._cohorts:
            self._cohorts[work.work_id] = self._cohort(work)
        return self._cohorts[work.work_id]

    def _cohort(self, work: Work) -> str | None:
        if work.cohort is None:
            return None
        found = self.matches("cohort", work.cohort)
        if len(found) > 1:
            e = work.enrolled
            windows = ((c, w) for c in found for w in self.get("cohorts", c).windows)
            found = [c for c, w in windows if w.from_ <= e.from_ and e.to <= w.to]
        return rules.cohort_key(found[0], work.enrolled)

    def same_study(self, one: Work, other: Work) -> bool:
        """Rule 1."""
        for key in (self.true_registry, self.true_cohort):
            mine, its = key(one), key(other)
            if mine is not None and its is not None:
                return mine == its
        ends = {one.paper_id, other.paper_id}
        return any(c.relation == "companion" and {c.citing, c.cited} == ends for c in self.citations_of(one.paper_id))

    def _unite(self) -> None:
        """Groups of works that report one study; compares only works that share a key or a companion citation."""
        self._cohorts: dict[str, str | None] = {}
        self.group_of: dict[str, str] = {}
        self.group: dict[str, list[str]] = {}
        self._sharing: dict[str, list[str]] = {}
        works: dict[str, Work] = self.tables["works"]
        for work_id in sorted(works):
            work = works[work_id]
            self.group_of[work_id] = work_id
            self.group[work_id] = [work_id]
            near = dict.fromkeys(
                w
                for c in self.citations_of(work.paper_id)
                if c.relation == "companion"
                for paper in (c.citing, c.cited)
                if (w := self.work_of.get(paper)) in self.group_of and w != work_id
            )
            for key in (self.true_registry(work), self.true_cohort(work)):
                if key is not None:
                    near |= dict.fromkeys(self._sharing.get(key, ()))
                    self._sharing.setdefault(key, []).append(work_id)
            for other in near:
                self._join(work_id, other)

    def _join(self, one: str, other: str) -> None:
        works = self.tables["works"]
        kept, gone = self.group_of[other], self.group_of[one]
        if kept == gone or not self.same_study(works[one], works[other]):
            return
        for work_id in self.group.pop(gone):
            self.group_of[work_id] = kept
            self.group[kept].append(work_id)

    def true_primary(self, group: str, until: int) -> str | None:
        """Rule 2 among the reports listed up to a round; a withdrawn report speaks only where no other is left."""
        works = self.tables["works"]
        listed = [w for w in self.group[group] if self.listed_in[w] <= until]
        left = [w for w in listed if "withdrawn" not in self.struck.get(w, ())]
        return min(left or listed, key=lambda w: rules.rank(works[w].kind, works[w].day, w), default=None)

    def true_since(self, work_id: str) -> int:
        """Ordinal of the round in which a true primary report became that."""
        works = self.tables["works"]
        mine = rules.rank(works[work_id].kind, works[work_id].day, work_id)
        better = [w for w in self.group[self.group_of[work_id]] if rules.rank(works[w].kind, works[w].day, w) < mine]
        return max([self.listed_in[work_id], *(self.struck.get(w, {}).get("withdrawn", 0) for w in better)])

    # -- rule 3: eligibility ---------------------------------------------------------------------------------------

    def instrument_of(self, printed: str) -> str:
        """Instruments share no printed name."""
        own = self._matches.get(("instrument", printed))
        return own[0] if own else self.catalogue.matches["instrument", printed][0]

    def choice(self, work: Work, until: int) -> Choice:
        """Rule 3 for a study report, with the calibrations of rounds up to ``until``."""
        struck = self.struck.get(work.work_id, {})
        key = (work.work_id, work.version, until, *struck)
        if key not in self._choices:
            self._choices[key] = self._choice(work, until, struck)
        return self._choices[key]

    def _choice(self, work: Work, until: int, struck: Mapping[str, int]) -> Choice:
        section: Section = self.tables["sections"][work.section_id]
        p = self.protocol
        row, row_rule = self._row(work, section, until)
        rule = _struck_rule(struck)
        if rule is None:
            if work.design not in section.designs:
                rule = "design"
            elif work.population not in section.populations:
                rule = "population"
            elif work.enrolled.n < p.minimum_n:
                rule = "sample"
            else:
                rule = row_rule
        return Choice(row, rule)

    def _row(self, work: Work, section: Section, until: int) -> Choice:
        rows: list[StudyRow] = [r for r in self.tables["outcomes"][work.work_id].rows if r.metric == section.metric]
        if not rows:
            return Choice(None, "metric")
        if not (rows := [r for r in rows if r.analysis == "intention_to_treat"]):
            return Choice(None, "analysis")
        if not (rows := [r for r in rows if self.protocol.min_weeks <= r.weeks <= self.protocol.max_weeks]):
            return Choice(None, "follow_up")
        for row in sorted(rows, key=lambda r: (-r.weeks, r.row)):
            known = self.true_scopes.get(self.instrument_of(row.instrument), ())
            if any(c.round <= until and work.population in c.scope for c in known):
                return Choice(row, None)
        return Choice(None, "no_calibration")

    def link_choice(self, work: Work) -> tuple[LinkRow | None, Rule | None]:
        """Rules 3 and 7 for a link."""
        struck = self.struck.get(work.work_id, {})
        rows: list[LinkRow] = self.tables["outcomes"][work.work_id].rows
        enough = [r for r in rows if r.sample >= self.protocol.minimum_link_sample]
        row = min(enough, key=lambda r: (-r.sample, r.row), default=None)
        if struck:
            return row, _struck_rule(struck)
        return row, None if row else "sample"

    # -- rules 6 to 9: true extractions and calibrations -----------------------------------------------------------

    def study_values(self, work: Work, row: StudyRow) -> dict[str, Any]:
        """What an annotation of this row says when it is right."""
        instrument_id = self.instrument_of(row.instrument)
        factor = next((u.factor for u in self.get("instruments", instrument_id).units if u.unit == row.unit), "1")
        effect, variance = rules.effect_of(row.metric, factor, row.treated, row.control, work.cluster)
        return {
            "metric": row.metric,
            "instrument_id": instrument_id,
            "unit": row.unit,
            "population": work.population,
            "effect": effect,
            "variance": variance,
        }

    def link_values(self, row: LinkRow) -> dict[str, Any]:
        from_id, to_id = self.instrument_of(row.from_.instrument), self.instrument_of(row.to.instrument)
        opposed = self.get("instruments", from_id).higher_is != self.get("instruments", to_id).higher_is
        slope, intercept = rules.link_of(row.from_, row.to, opposed)
        return {
            "from_instrument_id": from_id,
            "to_instrument_id": to_id,
            "populations": tuple(sorted(row.populations)),
            "slope": slope,
            "intercept": intercept,
        }

    def _true_calibrations(self) -> None:
        """Rule 8 over the links that are eligible when they are listed, round by round."""
        for round_id in self.rounds:
            ordinal = self.tables["rounds"][round_id].ordinal
            found: dict[tuple[str, str], list[tuple[str, LinkRow]]] = {}
            for work_id in self.tables["rounds"][round_id].works:
                work: Work = self.tables["works"][work_id]
                if work.role != "link":
                    continue
                row, rule = self.link_choice(work)
                if row is not None and rule is None:
                    instrument = self.instrument_of(row.from_.instrument)
                    found.setdefault((work.section_id, instrument), []).append((work_id, row))
            made = []
            for (_, instrument), links in sorted(found.items()):
                scope, depth = frozenset(rules.POPULATIONS), 1
                for _, row in links:
                    target = self.instrument_of(row.to.instrument)
                    parent = rules.parent_among(self.true_scopes.get(target, ()), row.populations, ordinal)
                    scope &= frozenset(row.populations) & (parent.scope if parent else scope)
                    depth = max(depth, 1 + parent.depth if parent else 1)
                made.append((instrument, Candidate(links[0][0], ordinal, scope, depth, links[0][0])))
            for instrument, candidate in made:
                self.true_scopes.setdefault(instrument, []).append(candidate)

    def place_link(self, link: Work, from_instrument_id: str) -> None:
        """Of one round, section and from-instrument: the annotated links, which are one calibration's routes."""
        key = (self.listed_in[link.work_id], link.section_id, from_instrument_id)
        before = self._link_key.get(link.work_id)
        if before is not None:
            del self.links_of[before][link.work_id]
        self._link_key[link.work_id] = key
        self.links_of.setdefault(key, {})[link.work_id] = None

    def parents_due(self, round_: Round, section_id: str, from_instrument_id: str) -> dict[str, str | None]:
        """Rule 8: the links that a new calibration takes as its routes, and the parent of each."""
        due: dict[str, str | None] = {}
        for work_id in self.links_of.get((round_.ordinal, section_id, from_instrument_id), ()):
            annotation = self.about("annotation", work_id)
            if annotation is None or annotation.status != CURRENT:
                continue
            content: LinkAnnotation = annotation.content
            if content.to_instrument_id == self.protocol.reference_instrument_id:
                due[work_id] = None
            else:
                known = self.candidates(content.to_instrument_id)
                parent = rules.parent_among(known, content.populations, round_.ordinal)
                due[work_id] = parent.id if parent else None
        return due

    def calibration_due(self, work_id: str) -> str | None:
        """Rule 9, on what was annotated; fixed once the round is committed in which the report became primary."""
        if work_id in self.assigned:
            return self.assigned[work_id]
        annotation = self.about("annotation", work_id)
        if annotation is None or not isinstance(annotation.content, StudyAnnotation):
            return None
        known = self.candidates(annotation.content.instrument_id)
        since = self.primary_since.get(work_id, 0)
        chosen = rules.calibration_among(known, annotation.content.population, since)
        return chosen.id if chosen else None

    def flow(self) -> Flow:
        """Where the listed works went, by the state's own records."""
        excluded: dict[str, int] = {}
        for work_id in self.works["excluded"]:
            rule = self.newest[f"scr-{work_id[4:]}"].content.rule
            excluded[rule] = excluded.get(rule, 0) + 1
        links = len(self.works["calibrating"])
        linked, included = len(self.works["linked"]), len(self.works["contributed"])
        review = self.newest_of("review", self.last)
        refs = review.content.syntheses if review else ()
        pooled = sum(len(self.artifacts[ref].content.pooled) for ref in refs)
        return Flow(links + linked + sum(excluded.values()) + included, links, linked, excluded, included, pooled)

    # -- staleness -------------------------------------------------------------------------------------------------

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        match artifact.kind:
            case "identity":
                work = self.tables["works"][artifact.subject]
                return cause if self.true_registry(work) != artifact.basis else None
            case "study":
                primary = self.about("identity", artifact.content.primary)
                if primary is None or primary.status != CURRENT or primary.content.study_id != artifact.id:
                    return cause
                return None
            case "annotation":
                return self._annotation_staleness(artifact, cause)
            case "appraisal" | "release":
                return None
            case "synthesis" | "review" if self.frozen(artifact.content.round_id):
                return None
        return super().staleness(artifact, cause)

    def _annotation_staleness(self, artifact: Artifact, cause: str) -> str | None:
        work_id, content = artifact.subject, artifact.content
        if self.tables["outcomes"][work_id].at(content.row) != artifact.basis.row:
            return cause
        if work_id in self.struck:
            return cause
        return None if isinstance(content, LinkAnnotation) or self.speaks(work_id) else cause

    def frozen(self, round_id: str) -> bool:
        return self.tables["rounds"][round_id].state == "committed"

    def changed(self, *keys: str, cause: str) -> None:
        before = len(self.voided)
        super().changed(*keys, cause=cause)
        for artifact in self.voided[before:]:
            self.stale_by.setdefault(artifact.kind, {})[artifact.ref] = self._striking
            if artifact.kind == "contribution":
                self.contributions.put(artifact.id, (artifact.content.section_id, STALE))
            elif artifact.kind == "screening":
                self.review_status(artifact.subject)
            if self._striking and artifact.kind in ("identity", "calibration", "contribution"):
                self.voided_by[self._striking].append(artifact.id)

    def stale(self, kind: str) -> list[str]:
        """References of a kind that are stale now."""
        return [ref for ref in self.stale_by.get(kind, ()) if self.artifacts[ref].status == STALE]

    # -- updates ---------------------------------------------------------------------------------------------------

    def apply_update(self, update: Update) -> None:
        effect: Change = update.effect
        for put in effect.puts:
            self.put(put.table, put.key, put.record)
            if put.table == "paper_events":
                self._add_event(put.record)
        self.announce(effect.kind, effect.subjects, effect.text)
        self._striking = self.notices[-1].notice_id
        self.voided_by[self._striking] = []
        for put in effect.puts:
            if put.table == "registrations":
                self._merged(put.record)
        self.changed(*effect.keys, cause=effect.text)
        self._striking = None

    def _add_event(self, event: PaperEvent) -> None:
        self._events.setdefault(event.paper_id, []).append(event)
        work_id = self.work_of.get(event.paper_id)
        if work_id is not None and event.kind in ("retracted", "withdrawn"):
            ordinal = self.tables["rounds"][self.open_id].ordinal if self.open_id else 0
            self.struck.setdefault(work_id, {})[event.kind] = ordinal

    def _merged(self, registration: Registration) -> None:
        """Works of the registration may now be reports of another one's study."""
        mine = self._sharing.pop(registration.registry_id, [])
        others = self._sharing.setdefault(registration.current_id, [])
        for work_id in mine:
            for other in list(others):
                self._join(work_id, other)
        others += mine


def _struck_rule(struck: Mapping[str, int]) -> Rule | None:
    if "retracted" in struck:
        return "retracted"
    return "withdrawn" if struck else None
