"""Scoring of ResearchOps (Table 8): each round by seven predicates, earlier ones as they stood at their commit.

Identities, eligibility and extractions are judged against what is true of the records; what follows from them is
recomputed from what was cited, so that one mistake fails one predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.world import CURRENT, WITHDRAWN, Artifact
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.build import ResearchGoal
from skillhorizon.envs.research.records import Contribution, LinkRow, StudyRow, Synthesis, Work
from skillhorizon.envs.research.world import ResearchWorld

Judge = Callable[[ResearchWorld, int, Sequence[str]], Reason]
"""Judges the evidence listed up to a round (its ordinal), and the syntheses of its review."""


def _listed(world: ResearchWorld, until: int) -> Iterator[Work]:
    for round_id in world.rounds[:until]:
        for work_id in world.tables["rounds"][round_id].works:
            yield world.tables["works"][work_id]


def _groups(world: ResearchWorld, until: int) -> Iterator[tuple[str, Work]]:
    """Each true study or link once, with the report that truly speaks for it."""
    for group in dict.fromkeys(world.group_of[work.work_id] for work in _listed(world, until)):
        primary = world.true_primary(group, until)
        if primary is not None:
            yield group, world.tables["works"][primary]


def _contributions(world: ResearchWorld) -> Iterator[Artifact]:
    for section in world.sections:
        for identity in world.contributions[section.section_id, CURRENT]:
            yield world.newest[identity]


def identities_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """Every work has its true keys, reports of one study share one declared study, and the right one speaks for it."""
    study_of: dict[str, str] = {}
    group_of: dict[str, str] = {}
    for work in _listed(world, until):
        identity = world.about("identity", work.work_id)
        if identity is None or identity.status != CURRENT:
            return f"{work.work_id} has no current identity"
        content = identity.content
        if (content.registry_key, content.cohort_key) != (world.true_registry(work), world.true_cohort(work)):
            return f"{identity.ref} has wrong keys"
        group = world.group_of[work.work_id]
        if study_of.setdefault(group, content.study_id) != content.study_id:
            return f"{identity.ref} parts a study"
        if group_of.setdefault(content.study_id, group) != group:
            return f"{identity.ref} joins two studies"
    for group, primary in _groups(world, until):
        if world.primary_of(study_of[group]) != primary.work_id:
            return f"another report than the primary one speaks for {study_of[group]}"
    return None


def eligibility_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """The report that truly speaks for a study is screened as rule 3 says, and what is excluded contributes nothing."""
    for _, work in _groups(world, until):
        if work.role == "link":
            rule = world.link_choice(work)[1]
        else:
            rule = world.choice(work, world.true_since(work.work_id)).rule
        screening = world.about("screening", work.work_id)
        if screening is None or screening.status != CURRENT:
            return f"{work.work_id} has no current screening"
        if (screening.content.decision == "include", screening.content.rule) != (rule is None, rule):
            return f"{screening.ref} decides otherwise than the rules"
        if rule is not None and work.role == "study":
            study = world.study_of(work.work_id)
            made = world.contribution_of(study) if study else None
            if made is not None and made.status != WITHDRAWN and made.content.work_id == work.work_id:
                return f"{made.ref} rests on an excluded report"
    return None


def _row_due(world: ResearchWorld, work: Work, until: int) -> LinkRow | StudyRow | None:
    """The row to annotate, whether or not the report should have been included."""
    if work.role == "link":
        return world.link_choice(work)[0]
    return world.choice(work, world.primary_since.get(work.work_id, until)).row


def extraction_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """Current annotations take the right row, and their values follow from it."""
    for work in _listed(world, until):
        annotation = world.about("annotation", work.work_id)
        if annotation is None or annotation.status != CURRENT:
            continue
        row = _row_due(world, work, until)
        if row is not None and row.row != annotation.content.row:
            return f"{annotation.ref} takes another row"
        if not annotation.basis.right:
            return f"{annotation.ref} does not say what its row says"
    return None


def calibrations_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """Every calibration is current, has the routes and parents that are due, and composes what it cites."""
    for identities in world.calibrations_of.values():
        for identity in identities:
            calibration = world.newest[identity]
            if calibration.status != CURRENT:
                return f"{calibration.ref} is {calibration.status}"
            if not calibration.basis.right:
                return f"{calibration.ref} does not follow from its routes, or has others than are due"
    return None


def interpretations_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """Current contributions were carried over by the calibration that is due, rightly."""
    for made in _contributions(world):
        content: Contribution = made.content
        interpretation = world.artifacts[content.interpretation]
        used = interpretation.content.calibration.partition("@")[0]
        if used != world.calibration_due(content.work_id):
            return f"{interpretation.ref} uses another calibration than is due"
        if not interpretation.basis:
            return f"{interpretation.ref} does not follow from what it cites"
    return None


def appraisals_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """Every included report is appraised as its conduct demands."""
    for work in _listed(world, until):
        if not world.included(work.work_id) or not world.speaks(work.work_id):
            continue
        appraisal = world.appraisal(work.work_id)
        if appraisal is None:
            return f"{work.work_id} is not appraised"
        if appraisal.content.judgement != rules.judgement_of(work.conduct):
            return f"{appraisal.ref} judges otherwise than the rules"
    return None


def syntheses_true(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> Reason:
    """Each section's synthesis pools exactly what is not at high risk, and its numbers follow."""
    of_section: dict[str, Artifact] = {}
    for ref in syntheses:
        synthesis = world.artifacts[ref]
        if synthesis.status != CURRENT:
            return f"{ref} is {synthesis.status}"
        of_section[synthesis.content.section_id] = synthesis
    for section in world.sections:
        if section.section_id not in of_section:
            return f"{section.section_id} is not in the review"
        content: Synthesis = of_section[section.section_id].content
        pooled: set[str] = set()
        aside: set[str] = set()
        for identity in world.contributions[section.section_id, CURRENT]:
            made = world.newest[identity]
            appraisal = world.appraisal(made.content.work_id)
            high = appraisal is not None and appraisal.content.judgement == "high"
            (aside if high else pooled).add(made.ref)
        if set(content.pooled) != pooled or set(content.set_aside) != aside:
            return f"the synthesis of {section.section_id} pools others than it should"
        found = [world.artifacts[ref].content for ref in content.pooled]
        if not found:
            return f"the synthesis of {section.section_id} pools nothing"
        true = rules.pooled(section.null, [(c.effect, c.variance) for c in found])
        if (content.effect, content.variance, content.q, content.verdict) != true:
            return f"the synthesis of {section.section_id} does not follow from what it pools"
    return None


JUDGES: tuple[Judge, ...] = (
    identities_true,
    eligibility_true,
    extraction_true,
    calibrations_true,
    interpretations_true,
    appraisals_true,
    syntheses_true,
)


def judged(world: ResearchWorld, until: int, syntheses: Sequence[str]) -> dict[str, Reason]:
    """All seven verdicts on the evidence listed up to a round, as they stand now; None where it is met."""
    return {judge.__name__: judge(world, until, syntheses) for judge in JUDGES}


scoring = Scoring("round", lambda goal: goal.rounds)


def _of_round(judge: Judge) -> Callable[[ResearchWorld, ResearchGoal, str], Reason]:
    @wraps(judge)
    def test(world: ResearchWorld, goal: ResearchGoal, round_id: str) -> Reason:
        review = world.newest_of("review", round_id)
        if review is None:
            return "the round is not committed"
        if round_id != world.last:
            reason: Reason = review.basis[judge.__name__]
            return reason
        if review.status != CURRENT:
            return f"{review.ref} is {review.status}"
        return judge(world, len(world.rounds), review.content.syntheses)

    return test


for _judge in JUDGES:
    scoring.local(idle=False)(_of_round(_judge))


@scoring.delivery(idle=False)
def review_released(world: ResearchWorld, goal: ResearchGoal) -> Reason:
    """The last review is released."""
    return None if world.newest_of("release", world.last) else "the review is not released"


@scoring.delivery(idle=False)
def notice_log_true(world: ResearchWorld, goal: ResearchGoal) -> Reason:
    """Every event came and is settled, with the numbers of contributions that it made be revised and withdrawn."""
    if len(world.notices) != goal.events:
        return f"{len(world.notices)} of {goal.events} events came"
    for notice in world.notices:
        settled = world.tables["notice_log"].get(notice.notice_id)
        if settled is None:
            return f"{notice.notice_id} is not settled"
        if (settled.revised, settled.withdrawn) != world.owed[notice.notice_id]:
            return f"{notice.notice_id} is settled with other numbers"
    return None


@scoring.delivery(idle=True)
def independent_appraisal(world: ResearchWorld, goal: ResearchGoal) -> Reason:
    """No appraisal that counts was made by an author of the paper or a co-author of one."""
    for work_id in world.tables["works"]:
        appraisal = world.appraisal(work_id)
        paper = world.tables["works"][work_id].paper_id
        if appraisal is not None and world.conflicted(appraisal.content.reviewer_id, paper):
            return f"{appraisal.ref} is not independent"
    return None


@scoring.delivery(idle=True)
def flow_true(world: ResearchWorld, goal: ResearchGoal) -> Reason:
    """A flow that was released is that of the state's own records."""
    release = world.newest_of("release", world.last)
    if release is None or release.content == world.flow():
        return None
    return "the flow differs from the records"
