"""What becomes stale by each change: exactly that and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from skillhorizon.core.world import CURRENT, STALE, SUPERSEDED, WITHDRAWN, Update
from skillhorizon.envs.research.records import Change, LinkAnnotation, Outcomes, Put, StudyAnnotation
from skillhorizon.envs.research.seed import PaperEvent
from tests.envs.bench import Bench
from tests.envs.research.support import before, in_last_round


def lost(bench: Bench, change: Callable[[], Any]) -> dict[str, set[str]]:
    """The subjects whose current artifact a change made stale, by kind; syntheses of the open round aside."""
    world = bench.world
    current = {ref for ref, a in world.artifacts.items() if a.status == CURRENT}
    change()
    found: dict[str, set[str]] = {}
    for ref in current:
        artifact = world.artifacts[ref]
        if artifact.status == STALE:
            if artifact.kind == "synthesis":
                assert artifact.content.round_id == world.open_id
                continue
            found.setdefault(artifact.kind, set()).add(artifact.subject)
    return found


def at_the_end() -> Bench:
    """Just before the last commit: everything is made and current."""
    return before("commit_round", in_last_round)[0]


def strike(bench: Bench, puts: list[Put], *keys: str) -> Callable[[], None]:
    change = Change("correction", (), "something became known", tuple(puts), keys)
    return lambda: bench.world.apply_update(Update(9, "never", 1, change))


def contributions(bench: Bench) -> list[Any]:
    found = [bench.world.newest[i] for i in bench.world.newest if i.startswith("con-")]
    return [a for a in found if a.status == CURRENT]


def corrected(bench: Bench, work_id: str, number: int) -> list[Put]:
    world = bench.world
    rows = world.tables["outcomes"][work_id].rows
    row = next(r for r in rows if r.row == number)
    other = replace(row, sample=row.sample + 1) if hasattr(row, "sample") else replace(row, weeks=row.weeks + 1)
    work = world.work(work_id)
    return [
        Put("outcomes", work_id, Outcomes(tuple(other if r is row else r for r in rows))),
        Put("works", work_id, replace(work, version=work.version + 1)),
    ]


def resting_on(bench: Bench, calibrations: set[str]) -> tuple[set[str], set[str]]:
    """Works whose interpretation and studies whose contribution use one of these calibrations."""
    world = bench.world
    works, studies = set(), set()
    for made in contributions(bench):
        used = world.artifacts[made.content.interpretation].content.calibration.partition("@")[0]
        if used in calibrations:
            works.add(made.content.work_id)
            studies.add(made.subject)
    return works, studies


def test_a_corrected_link_strikes_its_closure():
    bench = at_the_end()
    world = bench.world
    link = next(
        a
        for a in world.artifacts.values()
        if a.status == CURRENT and isinstance(a.content, LinkAnnotation) and world.listed_in[a.subject] == 1
    )
    below = {a.id for a in world.newest.values() if a.kind == "calibration" and link.ref in a.basis.ancestry}
    works, studies = resting_on(bench, below)
    assert len(below) > 1
    assert studies
    assert len(studies) < len(contributions(bench))
    found = lost(
        bench, strike(bench, corrected(bench, link.subject, link.content.row), f"row:{link.subject}:{link.content.row}")
    )
    assert found == {
        "annotation": {link.subject},
        "calibration": {world.newest[i].subject for i in below},
        "interpretation": works,
        "contribution": studies,
    }
    kinds = {a.kind for a in world.artifacts.values() if a.status == STALE and a.id in set(world.voided_by["ntc-0003"])}
    assert kinds == {"calibration", "contribution"}


def test_a_corrected_row_strikes_its_study_alone():
    bench = at_the_end()
    made = contributions(bench)[0]
    annotation = bench.world.about("annotation", made.content.work_id).content
    assert isinstance(annotation, StudyAnnotation)
    key = f"row:{made.content.work_id}:{annotation.row}"
    found = lost(bench, strike(bench, corrected(bench, made.content.work_id, annotation.row), key))
    work = {made.content.work_id}
    assert found == {"annotation": work, "interpretation": work, "contribution": {made.subject}}


def test_a_correction_elsewhere_changes_nothing():
    bench = at_the_end()
    made = contributions(bench)[0]
    work_id = made.content.work_id
    cited = bench.world.about("annotation", work_id).content.row
    other = next(r.row for r in bench.world.tables["outcomes"][work_id].rows if r.row != cited)
    assert lost(bench, strike(bench, corrected(bench, work_id, other), f"row:{work_id}:{other}")) == {}
    assert bench.world.work(work_id).version > int(bench.world.about("annotation", work_id).inputs[0][-1])


def test_a_retraction_strikes_the_annotation_of_the_study():
    bench = at_the_end()
    made = contributions(bench)[0]
    work = bench.world.work(made.content.work_id)
    event = Put("paper_events", "evt-00xyz", PaperEvent("evt-00xyz", work.paper_id, 20_700, "retracted"))
    found = lost(bench, strike(bench, [event], f"events:{work.work_id}"))
    expected = {work.work_id}
    assert found == {"annotation": expected, "interpretation": expected, "contribution": {made.subject}}
    assert bench.world.about("screening", work.work_id).status == CURRENT


def test_a_merged_registration_strikes_identities_and_what_cites_them():
    bench = at_the_end()
    world = bench.world
    made = next(a for a in contributions(bench) if world.work(a.content.work_id).registry_id)
    registry_id = world.work(made.content.work_id).registry_id
    named = {w for w in world.listed_in if world.tables["works"][w].registry_id == registry_id}
    other = next(r for r in world.tables["registrations"] if r != registry_id)
    merged = Put("registrations", registry_id, replace(world.get("registrations", registry_id), current_id=other))
    found = lost(bench, strike(bench, [merged], f"registration:{registry_id}"))
    assert found.pop("screening") <= named
    assert found == {"identity": named, "study": {f"wrk-{made.subject[4:]}"}, "contribution": {made.subject}}


def test_an_identity_declared_again_leaves_the_contribution_current():
    bench = at_the_end()
    world = bench.world
    made = contributions(bench)[0]
    content = world.about("identity", made.content.work_id).content
    again = {n: getattr(content, n) for n in content.__struct_fields__}
    found = lost(bench, lambda: bench.do("resolve_identity", **again, primary=made.content.work_id))
    assert found == {"screening": {made.content.work_id}}
    assert world.newest[made.subject].version == int(made.content.study[-1]), "the study has no new version"


def test_another_primary_report_strikes_what_rested_on_the_former():
    bench = at_the_end()
    world = bench.world
    study = next(
        s for s, works in world.reports.items() if len(works) > 1 and world.contribution_of(s).status == CURRENT
    )
    former = world.primary_of(study)
    other = next(w for w in world.reports[study] if w != former)
    content = world.about("identity", other).content
    again = {n: getattr(content, n) for n in content.__struct_fields__}
    free = sum(world.ledgers["reviewers"].free(slot) for slot in world.ledgers["reviewers"].capacity)
    found = lost(bench, lambda: bench.do("resolve_identity", **again, primary=other))
    screened = found.pop("screening", set())
    assert screened <= {other}
    assert found == {"annotation": {former}, "interpretation": {former}, "contribution": {study}}
    assert world.about("appraisal", former).status == WITHDRAWN
    assert sum(world.ledgers["reviewers"].free(s) for s in world.ledgers["reviewers"].capacity) == free + 1
    assert world.works.at(former) == "linked"
    assert world.works.at(other) == "open"


def test_committed_reviews_stay():
    """After all events of a run the reviews and syntheses of earlier rounds are as they were."""
    bench = at_the_end()
    world = bench.world
    struck = [a for a in world.artifacts.values() if a.kind == "contribution" and a.status == SUPERSEDED]
    assert struck
    for artifact in world.artifacts.values():
        if artifact.kind in ("review", "synthesis"):
            assert artifact.status == CURRENT, artifact.ref
            assert artifact.version == 1


def test_an_exclusion_returns_the_unit():
    bench = at_the_end()
    world = bench.world
    work_id = contributions(bench)[0].content.work_id
    slot = next(e.slot for e in world.ledgers["reviewers"].entries(owner=work_id))
    free = world.ledgers["reviewers"].free(slot)
    bench.do("screen_work", work_id=work_id, decision="exclude", rule="design")
    assert world.ledgers["reviewers"].free(slot) == free + 1
    assert world.appraisal(work_id) is None
    assert world.ledgers["reviewers"].conserved()
