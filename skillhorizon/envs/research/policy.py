"""The reference procedure of the review office.

Round by round: links and their calibrations before the studies that use them, every work identified before any study
is assessed, notices settled as soon as they are seen, syntheses when everything listed is disposed of.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from skillhorizon.core.policy import Job, Memory, Steps, ask, ask_all, run_script
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.records import Conduct
from skillhorizon.envs.research.rules import Candidate

_IDENTIFY, _SCREEN = "acquire-and-resolve-works", "screen-and-appraise-reports"
_ANNOTATE, _ESTABLISH = "annotate-reported-effects", "establish-scale-calibrations"
_CONTRIBUTE, _SYNTHESISE = "contribute-calibrated-studies", "synthesise-review-round"
_SKILLS = (_IDENTIFY, _SCREEN, _ANNOTATE, _ESTABLISH, _CONTRIBUTE, _SYNTHESISE, "settle-publication-notices")
_REFERENCES = ((_IDENTIFY, "references/report-kinds.csv"), (_SCREEN, "references/exclusion-rules.csv"))
Row = dict[str, Any]


class ResearchPolicy:
    """Knows only what the tools answered. ``memory`` holds observations; the rest is the state of its own work."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.protocol: Row = {}
        self.sections: dict[str, Row] = {}
        self.rounds: list[str] = []
        self.ordinal = 0
        self.open = False
        self.released = False
        self.notices_read = 0
        self.notices: list[Row] = []
        """read and not settled"""
        self.unread: dict[str, None] = {}
        """works of the open round whose text is to be acquired"""
        self.keyless: dict[str, None] = {}
        """read reports without keys, to be resolved after those with keys"""
        self.uncalibrated: dict[tuple[str, str], list[str]] = {}
        """(section, from-instrument) -> annotated links of the open round that wait for their calibration"""
        self.due: dict[str, None] = {}
        """reports that speak for a study and are to be assessed"""
        self.panel: dict[str, int] = {}
        """reviewer of the open round -> what is left of the quota"""
        self.study_of: dict[str, str] = {}
        self.study: dict[str, Row] = {}
        """study -> its newest answer: reference, primary"""
        self.reports: dict[str, dict[str, None]] = {}
        self.since: dict[str, int] = {}
        """work -> ordinal of the round in which it became primary"""
        self.screened: dict[str, Row] = {}
        self.judged: dict[str, str] = {}
        self.annotations: dict[str, Row] = {}
        self.calibrations: dict[str, Row] = {}
        self.of_instrument: dict[str, dict[str, None]] = {}
        """instrument -> calibrations that start from it"""
        self.by_ref: dict[str, Row] = {}
        self.used: dict[str, str] = {}
        """work -> calibration of its interpretation"""
        self.contributed: dict[str, Row] = {}
        """study -> its contribution, unless withdrawn"""
        self.withdrawn: dict[str, str] = {}
        self.syntheses: dict[str, Row] = {}

    # -- the plan --------------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        yield from ask("read_task_brief")
        yield from ask("list_skills")
        for skill in _SKILLS:
            yield from ask("read_skill_file", skill=skill)
        for skill, path in _REFERENCES:
            yield from ask("read_skill_file", skill=skill, path=path)
        self.protocol = yield from ask("read_protocol")
        self.sections = {s["section_id"]: s for s in self.protocol["sections"]}
        for section_id, section in self.sections.items():
            self.memory.keep(("null", section_id), section["null"])
        self.rounds = [r["round_id"] for r in self.protocol["rounds"]]

    def ready(self) -> Iterator[Job]:
        if self.released or not self.rounds:
            return
        if not self.open:
            yield Job(f"open:{self.rounds[self.ordinal]}", self._open)
            return
        if self.notices:
            # first of all: whatever rests on what a notice voids would be refused
            yield Job(f"notice:{self.notices[0]['notice_id']}", partial(self._settle, self.notices[0]))
            return
        for work_id in self.unread:
            yield Job(f"intake:{work_id}", partial(self._intake, work_id))
        if not self.unread:
            for work_id in self.keyless:
                yield Job(f"identity:{work_id}", partial(self._resolve_keyless, work_id))
        waiting = {self._listed(w)["section_id"] for w in self.unread if self._listed(w)["role"] == "link"}
        for section_id, instrument_id in self.uncalibrated:
            if section_id not in waiting:
                yield Job(f"calibration:{instrument_id}", partial(self._calibrate, section_id, instrument_id))
        if self.unread or self.keyless or self.uncalibrated:
            return
        for work_id in self.due:
            yield Job(f"study:{work_id}", partial(self._assess, work_id))
        if self.due:
            return
        left = [s for s in self.sections if s not in self.syntheses]
        for section_id in left:
            yield Job(f"synthesis:{section_id}", partial(self._synthesise, section_id))
        if not left:
            yield Job(f"commit:{self.round_id}", self._commit)

    @property
    def round_id(self) -> str:
        return self.rounds[self.ordinal - 1]

    def _listed(self, work_id: str) -> Row:
        row: Row = self.memory.get(("listed", work_id))
        return row

    def _poll(self) -> Steps[None]:
        """Look at the notice board, as one does after each work that is disposed of."""
        found = yield from ask_all("list_notices", module=f"round:{self.round_id}", since=self.notices_read)
        for notice in found:
            self.notices_read = notice["sequence"]
            self.notices.append(notice)

    def _open(self) -> Steps[None]:
        round_id = self.rounds[self.ordinal]
        module = f"round:{round_id}"
        yield from ask("open_round", module=module, goal=module, round_id=round_id)
        self.ordinal += 1
        self.open = True
        works = yield from ask_all("list_round_works", module=module, round_id=round_id)
        for work in sorted(works, key=lambda w: (w["role"], w["work_id"])):
            self.memory.keep(("listed", work["work_id"]), work)
            self.unread[work["work_id"]] = None
        reviewers = yield from ask_all("list_reviewers", module=module, round_id=round_id)
        self.panel = {r["author_id"]: r["left"] for r in reviewers}
        for reviewer in self.panel:
            query = ask_all("list_coauthors", module=module, author_id=reviewer)
            yield from self.memory.lookup(("coauthors", reviewer), query)
        self.syntheses = {}
        yield from self._poll()

    # -- identity --------------------------------------------------------------------------------------------------

    def _work(self, work_id: str) -> Steps[Row]:
        query = ask("read_work", module=f"work:{work_id}", work_id=work_id)
        return (yield from self.memory.lookup(("work", work_id), query))

    def _events(self, work_id: str) -> Steps[list[str]]:
        """What happened to a work's paper: kinds of events."""
        query = ask_all("list_publication_events", module=f"work:{work_id}", work_id=work_id)
        events = yield from self.memory.lookup(("events", work_id), query)
        return [e["kind"] for e in events]

    def _intake(self, work_id: str) -> Steps[None]:
        module = f"work:{work_id}"
        yield from ask("acquire_work", module=module, round_id=self.round_id, work_id=work_id)
        work = yield from self._work(work_id)
        del self.unread[work_id]
        if work["role"] == "study" and work["cohort"] is None and work["registry_id"] is None:
            self.keyless[work_id] = None
            return
        yield from self._resolve(work_id)
        if work["role"] == "link":
            yield from self._accept_link(work_id)

    def _resolve_keyless(self, work_id: str) -> Steps[None]:
        yield from self._resolve(work_id)
        del self.keyless[work_id]

    def _keys(self, work: Row) -> Steps[tuple[str | None, str | None]]:
        """Ids of the registration as it stands now and of the cohort that the printed name means."""
        module = f"work:{work['work_id']}"
        registry_id = work["registry_id"]
        if registry_id is not None:
            query = ask("get_registration", module=module, registry_id=registry_id)
            registration = yield from self.memory.lookup(("registration", registry_id), query)
            registry_id = registration["current_id"]
        if work["cohort"] is None:
            return registry_id, None
        query_all = ask_all("lookup_alias", module=module, kind="cohort", printed=work["cohort"])
        found = yield from self.memory.lookup(("cohort", work["cohort"]), query_all)
        start, end = work["enrolled"]["from"], work["enrolled"]["to"]
        if len(found) > 1:
            found = [c for c in found if any(w["from"] <= start and end <= w["to"] for w in c["windows"])]
        return registry_id, found[0]["cohort_id"]

    def _resolve(self, work_id: str) -> Steps[None]:
        module = f"work:{work_id}"
        work = yield from self._work(work_id)
        registry_id, cohort_id = yield from self._keys(work)
        arguments = {"registry_id": registry_id, "cohort_id": cohort_id, "enrolled": work["enrolled"]}
        keys = yield from run_script(_IDENTIFY, "study_key", arguments, module=module)
        study = yield from self._same_study(work_id, keys, cohort_id)
        yield from self._declare(work_id, keys, study)

    def _same_study(self, work_id: str, keys: Row, cohort_id: str | None) -> Steps[str | None]:
        """Rule 1: a study declared before that this work reports too."""
        module = f"work:{work_id}"
        registry_key, cohort_key = keys["registry_key"], keys["cohort_key"]
        self.memory.keep(("keys", work_id), keys)
        if registry_key is None and cohort_key is None:
            cited = yield from ask_all("list_citations", module=module, work_id=work_id)
            for row in cited:
                if row["relation"] == "companion" and row["other_work_id"] in self.study_of:
                    return self.study_of[row["other_work_id"]]
            return None
        found = yield from ask_all("find_reports", module=module, cohort_id=cohort_id, registry_id=registry_key)
        found = [row for row in found if row["work_id"] != work_id]
        self.memory.keep(("found", work_id), found)
        for row in found:
            if registry_key and row["registry_key"]:
                same = registry_key == row["registry_key"]
            else:
                same = cohort_key is not None and cohort_key == row["cohort_key"]
            if same:
                study: str = row["study_id"]
                return study
        return None

    def _speaker(self, works: list[str]) -> Steps[str]:
        """Rule 2: the best report that is not withdrawn, or the best where all are."""
        ranked = sorted(works, key=lambda w: rules.rank(self._listed(w)["kind"], self._listed(w)["day"], w))
        for work_id in ranked:
            events = [] if len(ranked) == 1 else (yield from self._events(work_id))
            if "withdrawn" not in events:
                return work_id
        return ranked[0]

    def _declare(self, work_id: str, keys: Row, study: str | None) -> Steps[None]:
        reports = [*self.reports.get(study or "", ())]
        primary = yield from self._speaker(list(dict.fromkeys([*reports, work_id])))
        answer = yield from ask(
            "resolve_identity",
            module=f"work:{work_id}",
            work_id=work_id,
            registry_key=keys["registry_key"],
            cohort_key=keys["cohort_key"],
            study_id=study or "new",
            primary=primary,
        )
        yield from self._declared(work_id, answer)

    def _declared(self, work_id: str, answer: Row) -> Steps[None]:
        study, primary = answer["study_id"], answer["primary"]
        left = self.study_of.get(work_id)
        if left is not None and left != study:
            self.reports[left].pop(work_id, None)
        former = self.study[study]["primary"] if study in self.study else None
        self.study_of[work_id] = study
        self.reports.setdefault(study, {})[work_id] = None
        self.study[study] = answer
        self.memory.keep(("study", work_id), study)
        self.memory.keep(("reports", study), list(self.reports[study]))
        if primary != former:
            self.since[primary] = self.ordinal
            if former is not None:
                self.due.pop(former, None)
            if self._listed(primary)["role"] == "study":
                self.due[primary] = None
        if primary != work_id:
            self.due.pop(work_id, None)
        if primary != work_id or former is not None:
            yield from self._poll()

    # -- links -----------------------------------------------------------------------------------------------------

    def _outcomes(self, work_id: str) -> Steps[list[Row]]:
        query = ask_all("read_outcomes", module=f"work:{work_id}", work_id=work_id)
        return (yield from self.memory.lookup(("outcomes", work_id), query))

    def _instrument(self, printed: str, module: str) -> Steps[str]:
        query = ask_all("lookup_alias", module=module, kind="instrument", printed=printed)
        found = yield from self.memory.lookup(("instrument", printed), query)
        identity: str = found[0]["instrument_id"]
        return identity

    def _scale(self, instrument_id: str, module: str) -> Steps[Row]:
        query = ask("get_instrument", module=module, instrument_id=instrument_id)
        return (yield from self.memory.lookup(("scale", instrument_id), query))

    def _accept_link(self, work_id: str) -> Steps[None]:
        """Screen, appraise and annotate a link."""
        events = yield from self._events(work_id)
        rows = yield from self._outcomes(work_id)
        enough = [r for r in rows if r["sample"] >= self.protocol["minimum_link_sample"]]
        rule = next((r for r in ("retracted", "withdrawn") if r in events), None if enough else "sample")
        if not (yield from self._screen(work_id, rule)):
            return
        yield from self._appraise(work_id)
        answer = yield from self._annotate_link(work_id)
        key = (self._listed(work_id)["section_id"], answer["from_instrument_id"])
        self.uncalibrated.setdefault(key, []).append(work_id)

    def _annotate_link(self, work_id: str) -> Steps[Row]:
        module = f"work:{work_id}"
        work = yield from self._work(work_id)
        rows = yield from self._outcomes(work_id)
        row = min(rows, key=lambda r: (-r["sample"], r["row"]))
        ends = []
        for end in ("from", "to"):
            instrument_id = yield from self._instrument(row[end]["instrument"], module)
            ends.append((yield from self._scale(instrument_id, module)))
        arguments = {
            "means": {end: row[end]["mean"] for end in ("from", "to")},
            "sds": {end: row[end]["sd"] for end in ("from", "to")},
            "opposed": ends[0]["higher_is"] != ends[1]["higher_is"],
        }
        line = yield from run_script(_ESTABLISH, "link_scales", arguments, module=module)
        answer = yield from ask(
            "annotate_link",
            module=module,
            work=work["work"],
            row=row["row"],
            from_instrument_id=ends[0]["instrument_id"],
            to_instrument_id=ends[1]["instrument_id"],
            populations=row["populations"],
            slope=line["slope"],
            intercept=line["intercept"],
        )
        self._annotated(work_id, answer)
        return answer

    def _annotated(self, work_id: str, answer: Row) -> None:
        if work_id in self.annotations:
            self.memory.keep(("annotation before", work_id), self.annotations[work_id])
        self.annotations[work_id] = answer
        self.memory.keep(("made", answer["annotation"]), answer)

    # -- calibrations ----------------------------------------------------------------------------------------------

    def _candidates(self, instrument_id: str) -> list[Candidate]:
        return [
            Candidate(i, c["ordinal"], frozenset(c["populations"]), c["depth"], min(c["works"]))
            for i in self.of_instrument.get(instrument_id, ())
            for c in (self.calibrations[i],)
        ]

    def _calibrate(self, section_id: str, instrument_id: str) -> Steps[None]:
        """Rule 8: the accepted links of a section that start from one instrument are the routes of one calibration."""
        parents: dict[str, str | None] = {}
        for work_id in sorted(self.uncalibrated[section_id, instrument_id]):
            link = self.annotations[work_id]
            target = link["to_instrument_id"]
            parents[work_id] = None
            if target != self.protocol["reference_instrument_id"]:
                known = self._candidates(target)
                parent = rules.parent_among(known, link["populations"], self.ordinal)
                parents[work_id] = parent.id if parent else None
        yield from self._establish(None, section_id, instrument_id, parents)
        del self.uncalibrated[section_id, instrument_id]
        yield from self._poll()

    def _establish(
        self, identity: str | None, section_id: str, instrument_id: str, parents: dict[str, str | None]
    ) -> Steps[None]:
        """Compose the routes (link work -> calibration that follows, None at the reference) and submit the map."""
        links = {w: self.annotations[w] for w in parents}
        further = {w: self.calibrations[c] for w, c in parents.items() if c}
        module = f"calibration:{identity}" if identity else f"work:{next(iter(links))}"
        maps: list[Row] = [
            {"link": _line(links[w]), "parent": _line(further[w]) if w in further else None} for w in links
        ]
        line: Row = maps[0]["link"]
        if further or len(maps) > 1:
            line = yield from run_script(_ESTABLISH, "compose_maps", {"routes": maps}, module=module)
        scopes = [set(c["populations"]) for c in (*links.values(), *further.values())]
        answer = yield from ask(
            "establish_calibration",
            module=module,
            round_id=self.round_id,
            calibration_id=identity,
            section_id=section_id,
            from_instrument_id=instrument_id,
            routes=[
                {"link": links[w]["annotation"], "parent": further[w]["calibration"] if w in further else None}
                for w in links
            ],
            populations=sorted(set.intersection(*scopes)),
            slope=line["slope"],
            intercept=line["intercept"],
        )
        made = answer["calibration_id"]
        before = self.calibrations.get(made)
        ordinal = before["ordinal"] if before else self.ordinal
        self.calibrations[made] = self.by_ref[answer["calibration"]] = {**answer, "ordinal": ordinal}
        self.memory.keep(("made", answer["calibration"]), answer)
        self.of_instrument.setdefault(instrument_id, {})[made] = None
        known = [self.calibrations[c] for c in self.of_instrument[instrument_id]]
        self.memory.keep(("calibrations", instrument_id), known)

    def _ancestry(self, ref: str) -> dict[str, None]:
        """All link annotations of a calibration and of those it is composed of."""
        found: dict[str, None] = {}
        for route in self.by_ref[ref]["routes"]:
            found[route["link"]] = None
            if route["parent"]:
                found |= self._ancestry(route["parent"])
        return found

    # -- studies ---------------------------------------------------------------------------------------------------

    def _assess(self, work_id: str) -> Steps[None]:
        """Screen the report that speaks for a study; appraise, annotate and contribute it if it is included."""
        row, rule = yield from self._choose(work_id)
        self.due.pop(work_id, None)
        if not (yield from self._screen(work_id, rule)):
            yield from self._withdraw(self.study_of[work_id], rule or "retracted")
            yield from self._poll()
            return
        yield from self._appraise(work_id)
        if row is None:
            # included against the rules: the row that comes nearest
            row = (yield from self._outcomes(work_id))[0]
        yield from self._annotate(work_id, row)
        yield from self._contribute(work_id)
        yield from self._poll()

    def _choose(self, work_id: str) -> Steps[tuple[Row | None, str | None]]:
        """Rule 3: the row to take and no rule, or the first rule that excludes the report."""
        work = yield from self._work(work_id)
        events = yield from self._events(work_id)
        rows = yield from self._outcomes(work_id)
        section, p = self.sections[work["section_id"]], self.protocol
        rows = [r for r in rows if r["metric"] == section["metric"]]
        treated = [r for r in rows if r["analysis"] == "intention_to_treat"]
        within = [r for r in treated if p["min_weeks"] <= r["weeks"] <= p["max_weeks"]]
        chosen = None
        for row in sorted(within, key=lambda r: (-r["weeks"], r["row"])):
            instrument_id = yield from self._instrument(row["instrument"], f"work:{work_id}")
            known = self._candidates(instrument_id)
            if rules.calibration_among(known, work["population"], self.since[work_id]):
                chosen = row
                break
        applies = {
            "retracted": "retracted" in events,
            "withdrawn": "withdrawn" in events,
            "design": work["design"] not in section["designs"],
            "population": work["population"] not in section["populations"],
            "sample": work["enrolled"]["n"] < p["minimum_n"],
            "metric": not rows,
            "analysis": not treated,
            "follow_up": not within,
            "no_calibration": chosen is None,
        }
        self.memory.keep(("rules", work_id), [name for name, holds in applies.items() if holds])
        return chosen, next((name for name, holds in applies.items() if holds), None)

    def _screen(self, work_id: str, rule: str | None) -> Steps[bool]:
        module = f"work:{work_id}"
        decision = "exclude" if rule else "include"
        answer = yield from ask("screen_work", module=module, work_id=work_id, decision=decision, rule=rule)
        self.screened[work_id] = answer
        return bool(answer["decision"] == "include")

    def _appraise(self, work_id: str) -> Steps[None]:
        """Rule 5: the independent reviewer with most of the quota left, among equals the lowest id."""
        work = yield from self._work(work_id)
        free = [r for r in self.panel if self.panel[r] and not self._conflicted(r, work)]
        reviewer = min(free or self.panel, key=lambda r: (-self.panel[r], r))
        self.memory.keep("panel", dict(self.panel))
        judgement = rules.judgement_of(msgspec.convert(work["conduct"], Conduct))
        answer = yield from ask(
            "appraise_work", module=f"work:{work_id}", work_id=work_id, reviewer_id=reviewer, judgement=judgement
        )
        self.panel[answer["reviewer_id"]] = answer["left"]
        self.judged[work_id] = answer["judgement"]

    def _conflicted(self, reviewer: str, work: Row) -> bool:
        together = {a["author_id"] for a in self.memory.get(("coauthors", reviewer), ())}
        return any(a["author_id"] == reviewer or a["author_id"] in together for a in work["authors"])

    def _annotate(self, work_id: str, row: Row) -> Steps[None]:
        module = f"work:{work_id}"
        work = yield from self._work(work_id)
        instrument_id = yield from self._instrument(row["instrument"], module)
        scale = yield from self._scale(instrument_id, module)
        arguments = {
            "metric": row["metric"],
            "factor": next(u["factor"] for u in scale["units"] if u["unit"] == row["unit"]),
            "treated": row["treated"],
            "control": row["control"],
            "cluster": work["cluster"],
        }
        effect = yield from run_script(_ANNOTATE, "effect_size", arguments, module=module)
        answer = yield from ask(
            "annotate_study",
            module=module,
            work=work["work"],
            row=row["row"],
            metric=row["metric"],
            instrument_id=instrument_id,
            unit=row["unit"],
            population=work["population"],
            effect=effect["effect"],
            variance=effect["variance"],
        )
        self._annotated(work_id, answer)

    def _contribute(self, work_id: str) -> Steps[None]:
        """Rules 9 and 10: by the calibration that was due when the report became primary, in its newest version."""
        module = f"work:{work_id}"
        annotation = self.annotations[work_id]
        if work_id not in self.used:
            known = self._candidates(annotation["instrument_id"])
            chosen = rules.calibration_among(known, annotation["population"], self.since[work_id])
            # without one no calibration is right; the newest at hand will be refused
            self.used[work_id] = chosen.id if chosen else next(reversed(self.calibrations))
        calibration = self.calibrations[self.used[work_id]]
        arguments = {"metric": annotation["metric"], "effect": annotation["effect"], "variance": annotation["variance"]}
        arguments |= _line(calibration)
        moved = yield from run_script(_CONTRIBUTE, "calibrate_effect", arguments, module=module)
        made = yield from ask(
            "interpret_study",
            module=module,
            annotation=annotation["annotation"],
            calibration=calibration["calibration"],
            effect=moved["effect"],
            variance=moved["variance"],
        )
        self.used[work_id] = self.by_ref[made["calibration"]]["calibration_id"]
        study = self.study_of[work_id]
        answer = yield from ask(
            "contribute_study",
            module=module,
            round_id=self.round_id,
            section_id=self._listed(work_id)["section_id"],
            study=self.study[study]["study"],
            interpretation=made["interpretation"],
            bindings=[made["annotation"], *self._ancestry(made["calibration"])],
        )
        self.contributed[study] = {**answer, "work_id": work_id}
        self.memory.keep(("made", answer["contribution"]), answer)

    def _withdraw(self, study: str, rule: str) -> Steps[None]:
        """Take back what a study contributed that is excluded or turns out to be another one."""
        made = self.contributed.pop(study, None)
        if made is None:
            return
        reason = rule if rule in ("retracted", "withdrawn", "linked") else "withdrawn"
        module = f"work:{made['work_id']}"
        yield from ask("withdraw_contribution", module=module, contribution=made["contribution"], reason=reason)
        self.withdrawn[study] = reason

    # -- notices ---------------------------------------------------------------------------------------------------

    def _settle(self, notice: Row) -> Steps[None]:
        module = f"round:{self.round_id}"
        stale = yield from ask_all("list_stale", module=module, kind="contribution")
        voided = [row["subject"] for row in stale if row["notice_id"] == notice["notice_id"]]
        for study in voided:
            self.withdrawn.pop(study, None)
        for subject in notice["subject_ids"]:
            if subject.startswith("reg-"):
                yield from self._merge(subject)
            elif notice["kind"] == "correction":
                yield from self._correct(subject)
            elif subject in self.study_of:
                yield from self._strike(subject)
        for row in (yield from ask_all("list_stale", module=module, kind="calibration")):
            yield from self._revise(row["ref"].partition("@")[0])
        for study in voided:
            primary = self.study[study]["primary"]
            if study in self.contributed and self.contributed[study]["contribution"] in {r["ref"] for r in stale}:
                yield from self._contribute(primary)
        gone = sum(study in self.withdrawn for study in voided)
        yield from ask(
            "settle_notice",
            module=module,
            notice_id=notice["notice_id"],
            revised=len(voided) - gone,
            withdrawn=gone,
        )
        self.notices.remove(notice)
        yield from self._poll()

    def _correct(self, work_id: str) -> Steps[None]:
        """Read a corrected work again; renew its annotation if the row that it cites is another one now."""
        before = {r["row"]: r for r in self.memory.get(("outcomes", work_id), ())}
        self.memory.forget(("work", work_id), ("outcomes", work_id))
        yield from self._work(work_id)
        rows = yield from self._outcomes(work_id)
        if work_id not in self.annotations:
            return
        number = self.annotations[work_id]["row"]
        if next((r for r in rows if r["row"] == number), None) == before.get(number):
            return
        if self._listed(work_id)["role"] == "link":
            yield from self._annotate_link(work_id)
        else:
            row, _ = yield from self._choose(work_id)
            yield from self._annotate(work_id, row or rows[0])

    def _strike(self, work_id: str) -> Steps[None]:
        """A work was retracted or withdrawn: another report may speak for its study, or it is excluded."""
        self.memory.forget(("events", work_id))
        events = yield from self._events(work_id)
        study = self.study_of[work_id]
        if self.study[study]["primary"] != work_id:
            return
        if self._listed(work_id)["role"] == "link":
            rule = next((r for r in ("retracted", "withdrawn") if r in events), None)
            yield from self._screen(work_id, rule)
            return
        speaker = yield from self._speaker(list(self.reports[study]))
        if speaker != work_id:
            yield from self._declare(speaker, self.memory.get(("keys", speaker)), study)
        yield from self._assess(self.study[self.study_of[speaker]]["primary"])

    def _merge(self, registry_id: str) -> Steps[None]:
        """A registration is part of another one now: its reports belong to that one's study."""
        self.memory.forget(("registration", registry_id))
        for work_id in list(self.study_of):
            work = self.memory.get(("work", work_id))
            if work is None or work["registry_id"] != registry_id:
                continue
            current, cohort_id = yield from self._keys(work)
            keys = {**self.memory.get(("keys", work_id)), "registry_key": current}
            left = self.study_of[work_id]
            study = yield from self._same_study(work_id, keys, cohort_id)
            yield from self._declare(work_id, keys, study)
            if not self.reports[left]:
                yield from self._withdraw(left, "linked")

    def _revise(self, identity: str) -> Steps[None]:
        """Rule 8: a revision keeps the surviving routes and their parents."""
        before = self.calibrations[identity]
        parents = {}
        for work_id, route in zip(before["works"], before["routes"], strict=True):
            if self.screened[work_id]["decision"] == "include":
                parents[work_id] = self.by_ref[route["parent"]]["calibration_id"] if route["parent"] else None
        yield from self._establish(identity, before["section_id"], before["from_instrument_id"], parents)

    # -- syntheses and reviews -------------------------------------------------------------------------------------

    def _synthesise(self, section_id: str) -> Steps[None]:
        module = f"round:{self.round_id}"
        section = self.sections[section_id]
        made = [c for c in self.contributed.values() if c["section_id"] == section_id]
        high = [c for c in made if self.judged[c["work_id"]] == "high"]
        pooled = [c for c in made if c not in high]
        items = [{"effect": c["effect"], "variance": c["variance"]} for c in pooled]
        arguments = {"null": section["null"], "items": items}
        found = yield from run_script(_SYNTHESISE, "pool_effects", arguments, module=module)
        answer = yield from ask(
            "submit_synthesis",
            module=module,
            round_id=self.round_id,
            section_id=section_id,
            pooled=[c["contribution"] for c in pooled],
            set_aside=[c["contribution"] for c in high],
            **found,
        )
        self.syntheses[section_id] = answer

    def _commit(self) -> Steps[None]:
        round_id = self.round_id
        module = f"round:{round_id}"
        yield from self._poll()
        if self.notices:
            self.syntheses = {}
            return
        refs = [self.syntheses[s]["synthesis"] for s in self.sections]
        yield from ask("commit_round", module=module, goal=module, round_id=round_id, syntheses=refs)
        self.open = False
        if self.ordinal == len(self.rounds):
            yield from ask("release_review", module=module, flow=self._flow())
            self.released = True

    def _flow(self) -> Row:
        """Where all works of all rounds went."""
        excluded: dict[str, int] = {}
        links = linked = included = 0
        for work_id, study in self.study_of.items():
            if self.study[study]["primary"] != work_id:
                linked += 1
            elif self.screened[work_id]["decision"] == "exclude":
                rule = self.screened[work_id]["rule"]
                excluded[rule] = excluded.get(rule, 0) + 1
            elif self._listed(work_id)["role"] == "link":
                links += 1
            else:
                included += 1
        return {
            "reports": len(self.study_of),
            "links": links,
            "linked": linked,
            "excluded": excluded,
            "included": included,
            "pooled": sum(s["pooled"] for s in self.syntheses.values()),
        }


def _line(row: Row) -> Row:
    return {"slope": row["slope"], "intercept": row["intercept"]}
