"""Scoring of FinanceOps: the final state against what the rules of the trade give on the final records (Table 8)."""

from __future__ import annotations

import msgspec

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.world import CURRENT
from skillhorizon.envs.finance.records import Closure
from skillhorizon.envs.finance.world import FinanceWorld


class FinanceGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which packages the release must hold."""

    packages: tuple[str, ...]


scoring = Scoring("package", lambda goal: goal.packages)


@scoring.local(idle=False)
def bindings(world: FinanceWorld, goal: FinanceGoal, source_id: str) -> Reason:
    """The newest detail selected rightly when it was accepted, and is not stale."""
    detail = world.detail_of(world.source(source_id))
    if detail is None:
        return "no detail was submitted"
    if detail.status != CURRENT:
        return f"{detail.ref} is {detail.status}: {detail.cause}"
    return None if detail.basis.right else f"{detail.ref} cites a wrong selection"


@scoring.local(idle=False)
def amounts(world: FinanceWorld, goal: FinanceGoal, source_id: str) -> Reason:
    """The newest aggregate equals the true postings."""
    aggregate = world.aggregate_of(source_id)
    if aggregate is None:
        return "no aggregate was submitted"
    true = world.true_postings(world.source(source_id))
    return None if aggregate.content.totals == true else f"{aggregate.ref} differs from the true totals"


@scoring.local(idle=True)
def history_kept(world: FinanceWorld, goal: FinanceGoal, source_id: str) -> Reason:
    """Every aggregate that was published and is no longer current has its historical view."""
    kept = {world.artifacts[view].content.aggregate for view in world.views_of.get(source_id, ())}
    lost = [ref for ref in world.history_required(source_id) if ref not in kept]
    return f"no view keeps {lost[0]}" if lost else None


@scoring.local(idle=False)
def incorporated(world: FinanceWorld, goal: FinanceGoal, source_id: str) -> Reason:
    """The latest closure of the stage holds the newest aggregate and every view of the source."""
    closure = world.closure_of(world.source(source_id).stage)
    if closure is None:
        return "the stage is not closed"
    content: Closure = closure.content
    aggregate = world.aggregate_of(source_id)
    if aggregate is None or aggregate.ref not in (*content.current, *content.deferred):
        return f"{closure.ref} does not hold the newest aggregate"
    missing = [view for view in world.views_of.get(source_id, ()) if view not in content.history]
    return f"{closure.ref} does not hold {missing[0]}" if missing else None


@scoring.delivery(idle=False)
def stage_accounting(world: FinanceWorld, goal: FinanceGoal) -> Reason:
    """Every stage's closure rests on the latest one before it and recognises only what the cutoff admits."""
    before: str | None = None
    for stage in world.stages:
        closure = world.closure_of(stage.stage_id)
        if closure is None:
            return f"{stage.stage_id} is not closed"
        content: Closure = closure.content
        if content.preceding != before:
            return f"{closure.ref} does not rest on {before}"
        for refs, current in ((content.current, True), (content.deferred, False)):
            for ref in refs:
                booked = world.source(world.artifacts[ref].subject).booking_period
                if (booked <= stage.cutoff) != current:
                    return f"{closure.ref} holds {ref} on the wrong side of its cutoff"
        before = closure.ref
    return None


@scoring.delivery(idle=False)
def release_review(world: FinanceWorld, goal: FinanceGoal) -> Reason:
    """The latest release review names exactly the latest publications, and exactly the restated stages."""
    review = world.newest_of("release_review", world.release_id)
    if review is None:
        return "the release was not reviewed"
    published = {s.stage_id: world.publications_of(s.stage_id) for s in world.stages}
    if set(review.content.publications) != {p[-1].ref for p in published.values() if p}:
        return f"{review.ref} does not name exactly the latest publications"
    if set(review.content.restated) != {stage for stage, p in published.items() if len(p) > 1}:
        return f"{review.ref} does not name exactly the restated stages"
    return None


@scoring.delivery(idle=False)
def publication(world: FinanceWorld, goal: FinanceGoal) -> Reason:
    """The release is published on its latest review, and each stage's latest publication is of its latest closure."""
    for stage in world.stages:
        published, closure = world.publications_of(stage.stage_id), world.closure_of(stage.stage_id)
        if not published or closure is None or published[-1].content.closure != closure.ref:
            return f"the latest closure of {stage.stage_id} is not published"
    review = world.newest_of("release_review", world.release_id)
    released = world.newest_of("release_publication", world.release_id)
    if review is None or released is None or released.content.review != review.ref:
        return "the release is not published on its latest review"
    return None


@scoring.delivery(idle=False)
def obligations_released(world: FinanceWorld, goal: FinanceGoal) -> Reason:
    """Every obligation is released on the publication that its basis names."""
    for obligation in world.tables["obligations"].values():
        released = world.newest_of("obligation_release", obligation.obligation_id)
        published = world.publications_of(obligation.stage)
        if released is None or not published:
            return f"{obligation.obligation_id} is not released"
        right = published[0] if obligation.basis == "as_first_published" else published[-1]
        if released.content.publication != right.ref:
            return f"{obligation.obligation_id} is released on another publication than its basis names"
    return None
