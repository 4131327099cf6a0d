"""Operations of the review office. Each validates completely, then changes the world.

Numbers that are handed in are never recomputed: wrong ones pass and only scoring finds them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import derived
from skillhorizon.core.tools import Arguments, Id, Ref, refuse_repeats, tool
from skillhorizon.core.world import CURRENT, STALE, SUPERSEDED, WITHDRAWN, Artifact
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.goals import judged
from skillhorizon.envs.research.queries import InstrumentId, RoundId, SectionId, WorkId, calibration_shown
from skillhorizon.envs.research.records import (
    Appraisal,
    Calibration,
    Contribution,
    Extracted,
    Flow,
    Identity,
    Interpretation,
    LinkAnnotation,
    Mapped,
    Receipt,
    Review,
    Round,
    Route,
    Screening,
    Settlement,
    Study,
    StudyAnnotation,
    Synthesis,
    Work,
)
from skillhorizon.envs.research.rules import Judgement, Metric, Population, Rule, Verdict
from skillhorizon.envs.research.world import ResearchWorld

Key = Annotated[str, Meta(min_length=1, max_length=60, description="A registry or cohort key.")]
Unit = Annotated[str, Meta(min_length=1, max_length=40, description="A unit of the instrument, as the row prints it.")]
RowNumber = Annotated[int, Meta(ge=1, le=99, description="A row of the work's outcomes.")]
Six = Annotated[str, Meta(pattern=r"^-?[0-9]{1,9}\.[0-9]{6}$", description="A decimal with six places.")]
Eight = Annotated[str, Meta(pattern=r"^[0-9]{1,9}\.[0-9]{8}$", description="A positive decimal with eight places.")]
Four = Annotated[str, Meta(pattern=r"^[0-9]{1,9}\.[0-9]{4}$", description="A decimal with four places.")]
Count = Annotated[int, Meta(ge=0, le=100_000)]
Populations = Annotated[list[Population], Meta(min_length=1, max_length=4)]
Refs = Annotated[list[Ref], Meta(max_length=400)]


class RouteGiven(Arguments, frozen=True):
    link: Ref
    parent: Ref | None


Routes = Annotated[list[RouteGiven], Meta(min_length=1, max_length=4)]


class FlowGiven(Arguments, frozen=True):
    """Numbers of reports; `excluded` by rule; `pooled` counts pooled contributions."""

    reports: Count
    links: Count
    linked: Count
    excluded: dict[Rule, Count]
    included: Count
    pooled: Count


# -- rounds and works ------------------------------------------------------------------------------------------------


def _open(world: ResearchWorld, round_id: str | None = None) -> Round:
    """The open round, which an argument may name."""
    if round_id is not None:
        world.round(round_id)
    opened = world.opened
    if opened is None:
        raise Rejected("wrong_state", "no round is open")
    if round_id not in (None, opened.round_id):
        raise Rejected("wrong_state", f"{round_id} is not the open round", round_id=round_id)
    return opened


def _held(world: ResearchWorld, work_id: str) -> Work:
    """A work that has been acquired."""
    work = world.work(work_id)
    if work_id not in world.tables["receipts"]:
        raise Rejected("wrong_state", f"{work_id} has not been acquired", work_id=work_id)
    return work


def _left(world: ResearchWorld) -> int:
    return len(world.works["open"])


@tool("business", refusals=("round_order",))
def open_round(world: ResearchWorld, round_id: RoundId) -> dict[str, Any]:
    """Open a round after the one before it is committed. Its works are listed from now on."""
    round_ = world.round(round_id)
    if round_.state != "waiting":
        raise Rejected("wrong_state", f"{round_id} is {round_.state}", round_id=round_id)
    if round_.ordinal > 1 and world.tables["rounds"][world.rounds[round_.ordinal - 2]].state != "committed":
        raise Rejected("round_order", "an earlier round has not been committed", round_id=round_id)
    world.amend("rounds", round_id, state="open")
    world.open_id = round_id
    for work_id in round_.works:
        world.works.put(work_id, "open")
    return {"round_id": round_id, "ordinal": round_.ordinal, "listed": len(round_.works), "open_works": _left(world)}


@tool("business", refusals=("not_listed",))
def acquire_work(world: ResearchWorld, round_id: RoundId, work_id: WorkId) -> dict[str, Any]:
    """Obtain the text of a work that the open round lists."""
    opened = _open(world, round_id)
    work = world.work(work_id)
    if work.round_id != opened.round_id:
        raise Rejected("not_listed", f"{work_id} is not listed in {round_id}", work_id=work_id)
    world.put("receipts", work_id, Receipt(work_id, round_id))
    return {"work": work.ref, "acquired": True}


@tool("business")
def resolve_identity(
    world: ResearchWorld,
    work_id: WorkId,
    registry_key: Key | None,
    cohort_key: Key | None,
    study_id: Annotated[Id, Meta(description='A study declared before, or "new".')],
    primary: Annotated[Id, Meta(description="The work that speaks for the study: this one or another report of it.")],
) -> dict[str, Any]:
    """Declare a work's keys, the study that it reports, and which of that study's reports is the primary one."""
    opened = _open(world)
    work = _held(world, work_id)
    study = derived("std", work_id) if study_id == "new" else study_id
    if study_id != "new" and study_id not in world.reports:
        raise Rejected("unknown_id", f"no study {study_id!r}", id=study_id)
    if primary != work_id and primary not in world.reports.get(study, ()):
        raise Rejected("unknown_id", f"{study} has no report {primary!r}", id=primary)
    before = world.about("identity", work_id)
    left = before.content.study_id if before else None
    spoke = world.primary_of(left) if left else None
    known = world.newest.get(study)
    former = known.content.primary if known else None
    if before is not None:
        _undeclare(world, before.content)
    for key in _declared_keys(registry_key, cohort_key):
        world.declared.setdefault(key, {})[work_id] = None
    if left and left != study:
        del world.reports[left][work_id]
    world.reports.setdefault(study, {})[work_id] = None
    identity = world.publish(
        "identity",
        work_id,
        Identity(work_id, registry_key, cohort_key, study),
        [work.ref],
        reads=[f"registration:{work.registry_id}"] if work.registry_id else [],
        basis=world.true_registry(work),
        module=f"work:{work_id}",
    )
    speaker = world.about("identity", primary)
    assert speaker is not None
    if former != primary:
        subject = known.subject if known else work_id
        world.publish(
            "study", subject, Study(study, primary), [speaker.ref], reads=[speaker.id], module=f"work:{work_id}"
        )
        world.primary_since[primary] = opened.ordinal
        world.assigned.pop(primary, None)
        world.promoted[primary] = None
    for other in dict.fromkeys((former, spoke, primary)):
        if other is not None and other != primary:
            world.demote(other, f"{other} no longer speaks for its study")
        if other is not None:
            world.changed(f"primary:{other}", cause=f"{primary} speaks for {study}")
    world.review_status(work_id, former, spoke, primary)
    return {
        "identity": identity.ref,
        "study_id": study,
        "study": world.newest[study].ref,
        "primary": primary,
        "open_works": _left(world),
    }


def _declared_keys(registry_key: str | None, cohort_key: str | None) -> list[str]:
    return [key for key in (registry_key, cohort_key and cohort_key.partition("|")[0]) if key]


def _undeclare(world: ResearchWorld, content: Identity) -> None:
    for key in _declared_keys(content.registry_key, content.cohort_key):
        world.declared[key].pop(content.work_id, None)


@tool("business", refusals=("missing_rule", "not_primary"))
def screen_work(
    world: ResearchWorld, work_id: WorkId, decision: Literal["include", "exclude"], rule: Rule | None = None
) -> dict[str, Any]:
    """Include a primary report, or exclude it under a rule."""
    _open(world)
    _held(world, work_id)
    identity = world.about("identity", work_id)
    if identity is None:
        raise Rejected("wrong_state", f"the identity of {work_id} has not been resolved", work_id=work_id)
    if decision == "exclude" and rule is None:
        raise Rejected("missing_rule", "an exclusion names its rule", work_id=work_id)
    if decision == "include" and rule is not None:
        raise Rejected("bad_argument", "an inclusion names no rule")
    world.current(identity.ref)
    if not world.speaks(work_id):
        raise Rejected("not_primary", f"another report speaks for the study of {work_id}", work_id=work_id)
    content = Screening(work_id, decision, rule)
    screening = world.publish("screening", work_id, content, [identity.ref], module=f"work:{work_id}")
    if decision == "exclude":
        world.demote(work_id, f"{work_id} was excluded")
    world.review_status(work_id)
    return {
        "screening": screening.ref,
        "work_id": work_id,
        "decision": decision,
        "rule": rule,
        "open_works": _left(world),
    }


@tool("business", refusals=("reviewer_quota", "reviewer_is_author"))
def appraise_work(world: ResearchWorld, work_id: WorkId, reviewer_id: Id, judgement: Judgement) -> dict[str, Any]:
    """Have an included report's risk of bias judged by a reviewer of the open round; takes one unit of the quota."""
    opened = _open(world)
    work = _held(world, work_id)
    if not world.included(work_id) or not world.speaks(work_id):
        raise Rejected("wrong_state", f"{work_id} is not included", work_id=work_id)
    slot = f"{opened.round_id}/{reviewer_id}"
    if slot not in world.tables["reviewers"]:
        raise Rejected("unknown_id", f"the round has no reviewer {reviewer_id!r}", id=reviewer_id)
    if reviewer_id in world.catalogue.authors_of[work.paper_id]:
        raise Rejected("reviewer_is_author", f"{reviewer_id} is an author of {work_id}", reviewer_id=reviewer_id)
    holder = derived("app", work_id)
    ledger = world.ledgers["reviewers"]
    ledger.reserve(slot, 1, work_id, holder, code="reviewer_quota")
    content = Appraisal(work_id, reviewer_id, judgement)
    appraisal = world.publish("appraisal", work_id, content, [work.ref], reads=[], module=f"work:{work_id}")
    return {**asdict(content), "appraisal": appraisal.ref, "left": ledger.free(slot)}


# -- annotations and calibrations ------------------------------------------------------------------------------------


def _cited(world: ResearchWorld, ref: str, role: str) -> Work:
    """The work behind a reference, if it stands at that version, is of the role, included and appraised."""
    work_id, _, version = ref.partition("@")
    work = _held(world, work_id)
    if version != str(work.version):
        if not version.isdecimal() or not 0 < int(version) < work.version:
            raise Rejected("unknown_id", f"no work {ref!r}", id=ref)
        raise Rejected("stale_input", f"{work_id} stands at another version", work=ref)
    if work.role != role:
        raise Rejected("wrong_state", f"{work_id} is no {role}", work_id=work_id)
    return work


def _admitted(world: ResearchWorld, work: Work) -> None:
    if not world.included(work.work_id):
        raise Rejected("wrong_state", f"{work.work_id} is not included", work_id=work.work_id)
    if world.appraisal(work.work_id) is None:
        raise Rejected("wrong_state", f"{work.work_id} has not been appraised", work_id=work.work_id)


def _row(world: ResearchWorld, work: Work, row: int) -> Any:
    found = world.tables["outcomes"][work.work_id].at(row)
    if found is None:
        raise Rejected("unknown_id", f"{work.work_id} has no row {row}", id=str(row))
    return found


def _says(content: Any, values: dict[str, Any]) -> bool:
    return all(getattr(content, name) == value for name, value in values.items())


@tool("business", refusals=("stale_input",))
def annotate_link(
    world: ResearchWorld,
    work: Ref,
    row: RowNumber,
    from_instrument_id: InstrumentId,
    to_instrument_id: InstrumentId,
    populations: Populations,
    slope: Six,
    intercept: Six,
) -> dict[str, Any]:
    """Annotate a row of an accepted link: the instruments, the populations, and the line from one to the other."""
    opened = _open(world)
    link = _cited(world, work, "link")
    found = _row(world, link, row)
    for instrument_id in (from_instrument_id, to_instrument_id):
        world.get("instruments", instrument_id)
    refuse_repeats("population", populations)
    _admitted(world, link)
    content = LinkAnnotation(
        link.work_id, row, from_instrument_id, to_instrument_id, tuple(sorted(populations)), slope, intercept
    )
    annotation = _annotate(world, link, content, found, world.link_values(found), [])
    if world.listed_in[link.work_id] == opened.ordinal:
        world.place_link(link, from_instrument_id)
    return {**asdict(content), "annotation": annotation.ref}


def _annotate(
    world: ResearchWorld, work: Work, content: Any, row: Any, values: dict[str, Any], reads: list[str]
) -> Artifact:
    return world.publish(
        "annotation",
        work.work_id,
        content,
        [work.ref],
        reads=[f"row:{work.work_id}:{content.row}", f"events:{work.work_id}", *reads],
        basis=Extracted(row, _says(content, values)),
        module=f"work:{work.work_id}",
    )


@tool("business", refusals=("stale_input", "not_primary"))
def annotate_study(
    world: ResearchWorld,
    work: Ref,
    row: RowNumber,
    metric: Metric,
    instrument_id: InstrumentId,
    unit: Unit,
    population: Population,
    effect: Six,
    variance: Eight,
) -> dict[str, Any]:
    """Annotate a row of an included study report: effect and variance in the instrument's points."""
    _open(world)
    study = _cited(world, work, "study")
    found = _row(world, study, row)
    world.get("instruments", instrument_id)
    _positive(variance)
    if world.about("identity", study.work_id) is not None and not world.speaks(study.work_id):
        raise Rejected("not_primary", f"another report speaks for the study of {work}", work=work)
    _admitted(world, study)
    content = StudyAnnotation(study.work_id, row, metric, instrument_id, unit, population, effect, variance)
    values = world.study_values(study, found)
    annotation = _annotate(world, study, content, found, values, [f"primary:{study.work_id}"])
    return {**asdict(content), "annotation": annotation.ref}


def _positive(variance: str) -> None:
    if not variance.strip("0."):
        raise Rejected("bad_argument", "a variance is greater than zero")


@tool("business", refusals=("stale_input", "route_mismatch", "scope_mismatch"))
def establish_calibration(
    world: ResearchWorld,
    round_id: RoundId,
    calibration_id: Annotated[Id | None, Meta(description="The calibration to revise, or null for a new one.")],
    section_id: SectionId,
    from_instrument_id: InstrumentId,
    routes: Routes,
    populations: Populations,
    slope: Six,
    intercept: Six,
) -> dict[str, Any]:
    """Establish or revise the calibration that carries an instrument's values onto the reference instrument.

    One route a link annotation; its parent is the calibration of the link's target, null if that is the reference.
    """
    opened = _open(world, round_id)
    section = world.section(section_id)
    world.get("instruments", from_instrument_id)
    refuse_repeats("population", populations)
    refuse_repeats("link", (r.link for r in routes))
    known = world.newest.get(calibration_id) if calibration_id else None
    if calibration_id and (known is None or known.kind != "calibration"):
        raise Rejected("unknown_id", f"no calibration {calibration_id!r}", id=calibration_id)
    if known and (known.content.section_id, known.content.from_instrument_id) != (section_id, from_instrument_id):
        raise Rejected("wrong_state", f"{calibration_id} is of another section or instrument", id=calibration_id)
    origin = world.round(known.content.round_id) if known else opened
    ordinal = origin.ordinal * 100 + section.ordinal
    identity = derived("cal", from_instrument_id, ordinal)
    world.attempt(f"calibration:{identity}")
    links, parents = _cited_routes(world, routes, from_instrument_id, origin.ordinal)
    scope = set.intersection(*(set(a.content.populations) for a in (*links, *(p for p in parents if p))))
    if scope != set(populations):
        raise Rejected("scope_mismatch", "populations are those that all links and parents share", routes=len(routes))
    works = tuple(a.subject for a in links)
    content = Calibration(
        round_id=origin.round_id,
        section_id=section_id,
        from_instrument_id=from_instrument_id,
        routes=tuple(Route(r.link, r.parent) for r in routes),
        works=works,
        populations=tuple(sorted(populations)),
        slope=slope,
        intercept=intercept,
        depth=1 + max((p.content.depth for p in parents if p), default=0),
    )
    before = world.newest.get(identity)
    if before is not None and origin.ordinal < opened.ordinal:
        struck = {w for w in before.basis.due if w in world.struck}
        due = {w: parent for w, parent in before.basis.due.items() if w not in struck}
    else:
        due = world.parents_due(origin, section_id, from_instrument_id)
    given = {a.subject: p.id if p else None for a, p in zip(links, parents, strict=True)}
    maps = [(a.content.line, p.content.line if p else None) for a, p in zip(links, parents, strict=True)]
    ancestry = dict.fromkeys(ref for p in parents if p for ref in p.basis.ancestry) | dict.fromkeys(
        a.ref for a in links
    )
    artifact = world.publish(
        "calibration",
        from_instrument_id,
        content,
        [*(a.ref for a in links), *(p.ref for p in parents if p)],
        basis=Mapped(tuple(ancestry), due, given == due and rules.composed(maps) == content.line),
        module=f"calibration:{identity}",
        ordinal=ordinal,
    )
    if before is None:
        world.calibrations_of.setdefault(from_instrument_id, []).append(identity)
        world.calibrations_of[from_instrument_id].sort()
    dropped = [w for w in (before.content.works if before else ()) if w not in works]
    for work_id in dropped:
        world.cited_by.pop(work_id, None)
    world.cited_by.update(dict.fromkeys(works, identity))
    world.review_status(*dropped, *works)
    return {**calibration_shown(artifact), "calibration_id": identity, "open_works": _left(world)}


def _cited_routes(
    world: ResearchWorld, routes: list[RouteGiven], from_instrument_id: str, before: int
) -> tuple[list[Artifact], list[Artifact | None]]:
    """Link annotations and parents of the routes, all current and fitting; parents are of earlier rounds."""
    links = [world.current(r.link, "annotation") for r in routes]
    parents = [world.current(r.parent, "calibration") if r.parent else None for r in routes]
    for link, parent in zip(links, parents, strict=True):
        content = link.content
        if not isinstance(content, LinkAnnotation):
            raise Rejected("unknown_id", f"{link.ref} annotates no link", id=link.ref)
        if content.from_instrument_id != from_instrument_id:
            raise Rejected("route_mismatch", f"{link.ref} starts from another instrument", link=link.ref)
        if parent is None:
            if content.to_instrument_id != world.protocol.reference_instrument_id:
                raise Rejected("route_mismatch", f"{link.ref} does not end at the reference instrument", link=link.ref)
        elif parent.content.from_instrument_id != content.to_instrument_id:
            raise Rejected("route_mismatch", f"{parent.ref} does not start where {link.ref} ends", link=link.ref)
        elif world.round(parent.content.round_id).ordinal >= before:
            raise Rejected("route_mismatch", f"{parent.ref} is of no earlier round", parent=parent.ref)
    return links, parents


# -- contributions ---------------------------------------------------------------------------------------------------


@tool("business", refusals=("stale_input", "instrument_mismatch", "population_out_of_scope"))
def interpret_study(
    world: ResearchWorld, annotation: Ref, calibration: Ref, effect: Six, variance: Eight
) -> dict[str, Any]:
    """Carry an annotated effect onto the reference instrument by a calibration."""
    _open(world)
    annotated = world.artifact(annotation, "annotation")
    used = world.artifact(calibration, "calibration")
    content: StudyAnnotation = annotated.content
    if not isinstance(content, StudyAnnotation):
        raise Rejected("unknown_id", f"{annotation} annotates no study", id=annotation)
    _positive(variance)
    world.attempt(f"interpretation:{derived('itp', annotated.subject)}")
    world.current(annotation)
    world.current(calibration)
    line: Calibration = used.content
    if line.from_instrument_id != content.instrument_id:
        raise Rejected("instrument_mismatch", f"{calibration} starts from another instrument", calibration=calibration)
    if content.population not in line.populations:
        raise Rejected("population_out_of_scope", f"{calibration} covers others", population=content.population)
    made = Interpretation(annotated.subject, annotation, calibration, effect, variance)
    right = rules.calibrated(content.metric, content.effect, content.variance, line.line) == (effect, variance)
    module = f"work:{annotated.subject}"
    artifact = world.publish(
        "interpretation", annotated.subject, made, [annotation, calibration], basis=right, module=module
    )
    return {**asdict(made), "interpretation": artifact.ref}


@tool("business", refusals=("stale_input", "incomplete_bindings", "foreign_binding", "wrong_section"))
def contribute_study(
    world: ResearchWorld,
    round_id: RoundId,
    section_id: SectionId,
    study: Ref,
    interpretation: Ref,
    bindings: Annotated[list[Ref], Meta(max_length=400)],
) -> dict[str, Any]:
    """Contribute an interpreted study to its section, bound to its annotation and to all links of the calibration."""
    opened = _open(world, round_id)
    world.section(section_id)
    declared = world.artifact(study, "study")
    interpreted = world.artifact(interpretation, "interpretation")
    for ref in bindings:
        world.artifact(ref, "annotation")
    refuse_repeats("binding", bindings)
    identity = derived("con", declared.id)
    world.attempt(f"contribution:{identity}")
    for ref in (study, interpretation, *bindings):
        world.current(ref)
    work: Work = world.tables["works"][interpreted.subject]
    if declared.content.primary != work.work_id:
        raise Rejected("foreign_binding", f"{interpretation} is of another study", interpretation=interpretation)
    _admitted(world, work)
    made: Interpretation = interpreted.content
    due = {made.annotation, *world.artifacts[made.calibration].basis.ancestry}
    if foreign := [ref for ref in bindings if ref not in due]:
        raise Rejected("foreign_binding", f"{foreign[0]} does not stand behind {interpretation}", binding=foreign[0])
    if len(bindings) < len(due):
        raise Rejected(
            "incomplete_bindings",
            "bind the study's annotation and every link annotation of the calibration and its ancestors",
            bound=len(bindings),
        )
    if section_id != work.section_id:
        raise Rejected("wrong_section", f"{work.work_id} is listed for another section", section_id=section_id)
    content = Contribution(
        round_id, section_id, study, work.work_id, interpretation, tuple(bindings), made.effect, made.variance
    )
    artifact = world.publish(
        "contribution",
        declared.id,
        content,
        [study, interpretation, *bindings],
        goal=f"contribution:{identity}",
        module=f"work:{work.work_id}",
    )
    world.contributions.put(identity, (section_id, CURRENT))
    world.made_now[identity] = None
    world.review_status(work.work_id)
    return {
        "contribution": artifact.ref,
        "section_id": section_id,
        "effect": made.effect,
        "variance": made.variance,
        "ordinal": opened.ordinal,
        "open_works": _left(world),
    }


@tool("business")
def withdraw_contribution(
    world: ResearchWorld, contribution: Ref, reason: Literal["retracted", "withdrawn", "linked"]
) -> dict[str, Any]:
    """Take a contribution back."""
    _open(world)
    made = world.artifact(contribution, "contribution")
    if made.status == SUPERSEDED:
        raise Rejected("stale_input", f"{contribution} is {made.status}", ref=contribution, status=made.status)
    if made.status == WITHDRAWN:
        raise Rejected("wrong_state", f"{contribution} has been withdrawn", contribution=contribution)
    world.withdraw(contribution, reason)
    world.contributions.put(made.id, (made.content.section_id, WITHDRAWN))
    world.review_status(made.content.work_id)
    return {"contribution": contribution, "status": WITHDRAWN, "reason": reason, "open_works": _left(world)}


# -- syntheses, notices, reviews -------------------------------------------------------------------------------------


@tool("business", refusals=("stale_input", "unaccounted_contribution"))
def submit_synthesis(
    world: ResearchWorld,
    round_id: RoundId,
    section_id: SectionId,
    pooled: Refs,
    set_aside: Refs,
    effect: Six,
    variance: Eight,
    q: Four,
    verdict: Verdict,
) -> dict[str, Any]:
    """Submit a section's synthesis over all its current contributions, pooled or set aside."""
    opened = _open(world, round_id)
    section = world.section(section_id)
    named = [*pooled, *set_aside]
    refuse_repeats("contribution", named)
    _positive(variance)
    for ref in named:
        if world.artifact(ref, "contribution").content.section_id != section_id:
            raise Rejected("unknown_id", f"{ref} is no contribution to {section_id}", id=ref)
    identity = derived("syn", section_id, opened.ordinal)
    world.attempt(f"synthesis:{identity}")
    for ref in named:
        world.current(ref)
    if len(world.contributions[section_id, CURRENT]) > len(named):
        raise Rejected("unaccounted_contribution", "a current contribution is in neither list", section_id=section_id)
    content = Synthesis(round_id, section_id, tuple(pooled), tuple(set_aside), effect, variance, q, verdict)
    artifact = world.publish(
        "synthesis",
        section.section_id,
        content,
        named,
        goal=f"synthesis:{identity}",
        module=f"round:{round_id}",
        ordinal=opened.ordinal,
    )
    return {"synthesis": artifact.ref, "section_id": section_id, "pooled": len(pooled), "verdict": verdict}


@tool("business", refusals=("affected_open",))
def settle_notice(world: ResearchWorld, notice_id: Id, revised: Count, withdrawn: Count) -> dict[str, Any]:
    """Enter a notice into the log, with how many contributions that it voided were revised and how many withdrawn."""
    opened = _open(world)
    if notice_id not in world.voided_by:
        raise Rejected("unknown_id", f"no notice {notice_id!r}", id=notice_id)
    voided = [world.newest[identity] for identity in dict.fromkeys(world.voided_by[notice_id])]
    for artifact in voided:
        if artifact.status not in (CURRENT, WITHDRAWN):
            raise Rejected("affected_open", f"{artifact.ref}, which it voided, is {artifact.status}", ref=artifact.ref)
    ends = [a.status for a in voided if a.kind == "contribution"]
    world.owed[notice_id] = (ends.count(CURRENT), ends.count(WITHDRAWN))
    world.put("notice_log", notice_id, Settlement(notice_id, revised, withdrawn))
    return {"notice_id": notice_id, "round_id": opened.round_id, "revised": revised, "withdrawn": withdrawn}


@tool("business", refusals=("open_work", "open_notice", "stale_input", "unused_calibration"))
def commit_round(world: ResearchWorld, round_id: RoundId, syntheses: Refs) -> dict[str, Any]:
    """Commit the review of the open round over one synthesis a section. All but the last are frozen from then on."""
    opened = _open(world, round_id)
    refuse_repeats("synthesis", syntheses)
    made = [world.artifact(ref, "synthesis") for ref in syntheses]
    goal = f"round:{round_id}"
    world.attempt(goal)
    if unsettled := [n.notice_id for n in world.notices if n.notice_id not in world.tables["notice_log"]]:
        raise Rejected("open_notice", f"{unsettled[0]} has not been settled", notice_id=unsettled[0])
    if world.works["open"]:
        raise Rejected("open_work", f"{world.works['open'][0]} has not been disposed of", open_works=_left(world))
    for kind in ("contribution", "calibration"):
        if stale := world.stale(kind):
            raise Rejected("stale_input", f"{stale[0]} is {STALE}", ref=stale[0], status=STALE)
    for synthesis in made:
        world.current(synthesis.ref)
    if sorted(s.content.section_id for s in made if s.content.round_id == round_id) != sorted(
        s.section_id for s in world.sections
    ):
        raise Rejected("open_work", "the review needs one synthesis of this round for every section")
    used = {
        world.artifacts[made_now.content.interpretation].content.calibration.partition("@")[0]
        for identity in world.made_now
        if (made_now := world.newest[identity]).status == CURRENT
    }
    for identity in dict.fromkeys(world.cited_by.get(w) for w in opened.works):
        if identity is not None and world.newest[identity].content.round_id == round_id and identity not in used:
            raise Rejected("unused_calibration", f"no contribution of this round uses {identity}", calibration=identity)
    last = round_id == world.last
    basis = None if last else judged(world, opened.ordinal, syntheses)
    artifact = world.publish(
        "review", round_id, Review(round_id, tuple(syntheses)), syntheses, basis=basis, goal=goal, module=goal
    )
    if not last:
        world.assigned |= {w: world.calibration_due(w) for w in world.promoted if world.speaks(w)}
        world.amend("rounds", round_id, state="committed")
        world.open_id = None
        world.promoted, world.made_now = {}, {}
    return {"review": artifact.ref, "round_id": round_id, "final": last}


@tool("business", refusals=("flow_sum", "stale_input"))
def release_review(world: ResearchWorld, flow: FlowGiven) -> dict[str, Any]:
    """Release the last review with the flow of reports: reports = links + linked + all excluded + included."""
    opened = _open(world)
    review = world.newest_of("review", world.last)
    if opened.round_id != world.last or review is None:
        raise Rejected("wrong_state", "the last round has not been committed")
    world.current(review.ref)
    excluded: dict[str, int] = {rule: n for rule, n in sorted(flow.excluded.items()) if n}
    if flow.reports != flow.links + flow.linked + sum(excluded.values()) + flow.included:
        raise Rejected("flow_sum", "reports are links, linked, excluded and included together", reports=flow.reports)
    content = Flow(flow.reports, flow.links, flow.linked, excluded, flow.included, flow.pooled)
    artifact = world.publish("release", world.last, content, [review.ref], module=f"round:{world.last}")
    world.amend("rounds", world.last, state="committed")
    world.open_id = None
    return {"release": artifact.ref, "review": review.ref}
