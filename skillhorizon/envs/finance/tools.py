"""Operations of the ledger office. An operation validates completely, then changes the world."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Arguments, Id, Int, Ref, refuse_repeats, tool
from skillhorizon.core.world import CURRENT, Artifact
from skillhorizon.envs.finance.queries import SourceId, StageId, released_map
from skillhorizon.envs.finance.records import (
    Aggregate,
    Closure,
    Contract,
    CreditNote,
    Detail,
    DetailBasis,
    HistoricalView,
    IdentityMap,
    Invoice,
    Obligation,
    ObligationRelease,
    Policy,
    ReleasePublication,
    ReleaseReview,
    Reviewer,
    Source,
    Stage,
    StagePublication,
    StageReview,
    Totals,
)
from skillhorizon.envs.finance.rules import account_of, allocation, minor_of, totals_of
from skillhorizon.envs.finance.world import DETAIL_KINDS, FinanceWorld

Revision = Annotated[int, Meta(ge=1, le=1_000_000, description="The revision of the source that you worked on.")]
Amounts = Annotated[dict[Id, Int], Meta(max_length=64, description="Entity -> minor units.")]
Refs = Annotated[list[Ref], Meta(max_length=400)]


class NormalizedItem(Arguments, frozen=True):
    order: Id
    row: Id
    entity: Id
    minor: Int


class AllocatedItem(Arguments, frozen=True):
    line: Id
    invoice: Id
    credits: Annotated[list[Id], Meta(max_length=24)]
    applied: Int
    writeoff: Int
    unapplied: Int


class AdjustedItem(Arguments, frozen=True):
    component: Id
    document: Id | None
    entity: Id
    minor: Int


NormalizedItems = Annotated[list[NormalizedItem], Meta(min_length=1, max_length=64)]
AllocatedItems = Annotated[list[AllocatedItem], Meta(min_length=1, max_length=64)]
AdjustedItems = Annotated[list[AdjustedItem], Meta(min_length=1, max_length=64)]


# -- source packages -------------------------------------------------------------------------------------------------


def _package(world: FinanceWorld, source_id: str, kind: str | None = None, revision: int | None = None) -> Source:
    source = world.source(source_id)
    if kind is not None and source.kind != kind:
        raise Rejected("wrong_state", f"{source_id} holds {source.kind}, not {kind}", source_id=source_id)
    if revision is not None and revision != source.revision:
        raise Rejected("stale_input", f"{source_id} stands at another revision", source_id=source_id, revision=revision)
    world.attempt(f"package:{source_id}")
    return source


def _unsupported(message: str, **details: Any) -> Rejected:
    return Rejected("unsupported_item", message, **details)


def _answer(world: FinanceWorld, name: str, artifact: Artifact, **more: Any) -> dict[str, Any]:
    return {name: artifact.ref, **more, "invalidated": world.invalidated}


def _detail(
    world: FinanceWorld,
    source: Source,
    content: Detail,
    inputs: list[str],
    reads: list[str],
    postings: list[tuple[str, int]],
    right: bool,
    authority_cited: bool = False,
) -> dict[str, Any]:
    """Publish the detail of a source; the answer lists its postings, from which the aggregate follows."""
    goal = f"package:{source.source_id}"
    artifact = world.publish(
        DETAIL_KINDS[source.kind],
        source.source_id,
        content,
        [f"{source.source_id}@{source.revision}", *inputs],
        reads=[f"records:{source.source_id}", *reads],
        basis=DetailBasis(right, totals_of(postings), world.values_cited(content, authority_cited), authority_cited),
        goal=goal,
        module=goal,
    )
    return _answer(world, "detail", artifact, postings=[{"entity": e, "minor": m} for e, m in postings])


@tool("business", refusals=("not_released", "unsupported_item"), checks=False)
def submit_normalization(
    world: FinanceWorld,
    source_id: SourceId,
    revision: Revision,
    contract_id: Id,
    identity_source_id: Id,
    identity_map_id: Id,
    conflict_policy: Policy,
    items: NormalizedItems,
) -> dict[str, Any]:
    """Submit the normalised items of an integration source, citing the contract and the map that you used."""
    source = _package(world, source_id, "integration", revision)
    contract: Contract = world.get("contracts", contract_id)
    identity = released_map(world, identity_map_id)
    if identity.identity_source != identity_source_id:
        raise _unsupported(f"{identity_map_id} is no map of {identity_source_id}", map_id=identity_map_id)
    refuse_repeats("order", (item.order for item in items))
    orders = world.rows_by_order(source_id)
    heads = world.heads(source_id, source.conflict_policy or "first")
    entities = world.entities_of(identity_map_id)
    right_rows = True
    for item in items:
        if item.order not in orders:
            raise Rejected("unknown_id", f"{source_id} has no order {item.order!r}", id=item.order)
        row = next((r for r in orders[item.order] if r.row == item.row), None)
        if row is None:
            raise _unsupported(f"{item.row} is no row of {item.order}", order=item.order)
        if entities.get(account_of(row, contract)) != item.entity:
            raise _unsupported(f"the entity of {item.order} does not follow from the map cited", order=item.order)
        if minor_of(row.amount, contract) != item.minor:
            raise _unsupported(f"the amount of {item.order} does not follow from the contract cited", order=item.order)
        right_rows = right_rows and heads[item.order] == row
    cited = {
        "contract_id": contract_id,
        "identity_source_id": identity_source_id,
        "identity_map_id": identity_map_id,
        "conflict_policy": conflict_policy,
    }
    content = Detail(source_id, revision, cited, tuple(items))
    authority_cited = identity == world.authority(identity_source_id, source.booking_period)
    right = (
        right_rows
        and authority_cited
        and identity_source_id == source.identity_source
        and conflict_policy == source.conflict_policy
        and contract == world.contract_for(source)
    )
    inputs = [f"{contract_id}@1", f"{identity_map_id}@1"]
    postings = [(item.entity, item.minor) for item in items]
    return _detail(world, source, content, inputs, [f"maps:{identity_source_id}"], postings, right, authority_cited)


@tool("business", refusals=("missing_predecessor", "unsupported_item"), checks=False)
def submit_allocation(
    world: FinanceWorld, source_id: SourceId, revision: Revision, items: AllocatedItems
) -> dict[str, Any]:
    """Submit how each line of a remittance batch is applied, citing the invoice and the credit notes you counted."""
    source = _package(world, source_id, "receivables", revision)
    refuse_repeats("line", (item.line for item in items))
    lines = {line.line: line for line in world.tables["records"][source_id].lines}
    invoices: dict[str, Invoice] = {}
    for item in items:
        if item.line not in lines:
            raise Rejected("unknown_id", f"{source_id} has no line {item.line!r}", id=item.line)
        invoices[item.invoice] = world.get("invoices", item.invoice)
    earlier = _predecessors(world, source, {i: invoice.payment_sources for i, invoice in invoices.items()})
    applied: dict[str, int] = {}
    postings: list[tuple[str, int]] = []
    right = True
    for item in sorted(items, key=lambda item: lines[item.line].seq):
        line, invoice = lines[item.line], invoices[item.invoice]
        refuse_repeats("credit note", item.credits)
        notes: list[CreditNote] = [world.get("credit_notes", credit_id) for credit_id in item.credits]
        family = world.family(item.invoice) if notes else []
        for note in notes:
            if note.invoice not in family:
                raise _unsupported(
                    f"{note.credit_id} is no note on {item.invoice} or its reissue", credit_id=note.credit_id
                )
        before = world.entered_before(item.invoice, source_id) + applied.get(item.invoice, 0)
        open_minor = max(0, invoice.amount_minor - sum(note.amount_minor for note in notes) - before)
        expected = allocation(line.paid_minor, open_minor, invoice.tolerance_minor)
        if expected != (item.applied, item.writeoff, item.unapplied):
            raise _unsupported(f"the amounts of {item.line} do not follow from what it cites", line=item.line)
        applied[item.invoice] = applied.get(item.invoice, 0) + item.applied + item.writeoff
        postings += [(invoice.customer, -(item.applied + item.writeoff)), (world.suspense, -item.unapplied)]
        counted = world.counted_credits(item.invoice, source.booking_period)
        right = (
            right
            and item.invoice == world.original(line.reference)
            and sorted(item.credits) == [c.credit_id for c in counted]
        )
    _enter(world, source, "invoice", applied)
    reads = [key for i in invoices for key in (f"credits:{i}", f"entries:{i}")]
    return _detail(world, source, Detail(source_id, revision, {}, tuple(items)), earlier, reads, postings, right)


@tool("business", refusals=("missing_predecessor", "unsupported_item"), checks=False)
def submit_adjustment(
    world: FinanceWorld, source_id: SourceId, revision: Revision, items: AdjustedItems
) -> dict[str, Any]:
    """Submit the adjustments of a maintenance pack's components, each citing its evidence document or null."""
    source = _package(world, source_id, "maintenance", revision)
    refuse_repeats("component", (item.component for item in items))
    components = {c.component_id: c for c in world.components_of(source_id)}
    for item in items:
        if item.component not in components:
            raise Rejected("unknown_id", f"{source_id} has no component {item.component!r}", id=item.component)
    earlier = _predecessors(world, source, {i.component: components[i.component].pack_sources for i in items})
    right = True
    for item in items:
        component = components[item.component]
        minor = 0
        if item.document is not None:
            document = world.get("evidence", item.document)
            if document.component != item.component:
                raise _unsupported(f"{item.document} is no document on {item.component}", document_id=item.document)
            minor = document.amount_minor - world.carrying(component, source_id)
        if (component.entity, minor) != (item.entity, item.minor):
            raise _unsupported(
                f"the adjustment of {item.component} does not follow from what it cites", component_id=item.component
            )
        decisive = world.authoritative(component, source.booking_period)
        right = right and item.document == (decisive and decisive.document_id)
    _enter(world, source, "component", {item.component: item.minor for item in items})
    reads = [key for item in items for key in (f"evidence:{item.component}", f"entries:{item.component}")]
    postings = [(item.entity, item.minor) for item in items]
    return _detail(world, source, Detail(source_id, revision, {}, tuple(items)), earlier, reads, postings, right)


def _predecessors(world: FinanceWorld, source: Source, orders: dict[str, tuple[str, ...]]) -> list[str]:
    """The details of the sources that come earlier on some invoices or components, in their order; all are current."""
    details: dict[tuple[int, int], str] = {}
    for name, order in orders.items():
        for other in order:
            if world.place[other] < world.place[source.source_id]:
                detail = world.detail_of(world.source(other))
                if detail is None or detail.status != CURRENT:
                    message = f"{other} comes earlier on {name} and has no current detail"
                    raise Rejected("missing_predecessor", message, source_id=other, subject_id=name)
                details[world.place[other]] = detail.ref
    return [details[place] for place in sorted(details)]


def _enter(world: FinanceWorld, source: Source, field: str, amounts: dict[str, int]) -> None:
    """Let a source's amounts by invoice or component take the place of those of its detail before."""
    entries, place = world.entries, world.place
    detail = world.detail_of(source)
    before = {getattr(item, field) for item in detail.content.items} if detail else set()
    for name in before:
        del entries[name][source.source_id]
    for name, minor in amounts.items():
        entries.setdefault(name, {})[source.source_id] = minor
    # What a source enters counts for later ones alone, and the first to enter on an object has none behind it.
    own = place[source.source_id]
    counted = [name for name in before | amounts.keys() if any(place[other] > own for other in entries[name])]
    if counted:
        keys = [f"entries:{name}" for name in sorted(counted)]
        world.changed(*keys, cause=f"{source.source_id} was submitted anew")


@tool("business", refusals=("totals_mismatch",))
def submit_aggregate(world: FinanceWorld, source_id: SourceId, detail: Ref, totals: Amounts) -> dict[str, Any]:
    """Submit the totals by entity of a source's current detail. Zeros count as absent."""
    source = _package(world, source_id)
    made = world.current(detail)
    if made.subject != source_id or not isinstance(made.content, Detail):
        raise Rejected("unknown_id", f"{detail} is no detail of {source_id}", ref=detail)
    given = {entity: minor for entity, minor in sorted(totals.items()) if minor}
    if given != made.basis.postings:
        raise Rejected("totals_mismatch", f"the totals are not the postings of {detail}", detail=detail)
    goal = f"package:{source.source_id}"
    artifact = world.publish("aggregate", source_id, Aggregate(source_id, given), [detail], goal=goal, module=goal)
    return _answer(world, "aggregate", artifact)


@tool("business", refusals=("not_published",))
def preserve_view(world: FinanceWorld, source_id: SourceId, aggregate: Ref, publication: Ref) -> dict[str, Any]:
    """Keep an aggregate as the historical view that a publication carried."""
    _package(world, source_id)
    carried = world.artifact(aggregate, "aggregate")
    published = world.artifact(publication, "stage_publication")
    closure: Closure = world.artifacts[published.content.closure].content
    if carried.subject != source_id or aggregate not in (*closure.current, *closure.deferred):
        raise Rejected("not_published", f"{publication} did not carry {aggregate}", aggregate=aggregate)
    if any(world.artifacts[v].content.aggregate == aggregate for v in world.views_of.get(source_id, ())):
        raise Rejected("wrong_state", f"{aggregate} has been preserved already", aggregate=aggregate)
    content = HistoricalView(source_id, aggregate, publication, carried.content.totals)
    goal = f"package:{source_id}"
    artifact = world.publish(
        "historical_view", source_id, content, [aggregate, publication], goal=goal, module=goal, ordinal=carried.version
    )
    world.views_of.setdefault(source_id, []).append(artifact.ref)
    return _answer(world, "historical_view", artifact)


# -- stages ----------------------------------------------------------------------------------------------------------


@tool("business", refusals=("incomplete_stage", "missing_predecessor", "wrong_stage", "out_of_balance"))
def close_stage(
    world: FinanceWorld,
    stage_id: StageId,
    preceding: Ref | None,
    current: Refs,
    deferred: Refs,
    history: Refs,
    closing: Amounts,
) -> dict[str, Any]:
    """Close a stage over one aggregate a source, the preceding stage's closure and the historical views."""
    stage = world.stage(stage_id)
    world.attempt(f"stage:{stage_id}")
    refuse_repeats("reference", (*current, *deferred, *history))
    opening: Totals = {}
    if before := world.preceding(stage):
        if preceding is None or world.closure_of(before.stage_id) is None:
            raise Rejected("missing_predecessor", f"{stage_id} follows {before.stage_id}", stage_id=before.stage_id)
        closure = world.artifact(preceding, "closure")
        if closure.subject != before.stage_id:
            raise Rejected("wrong_stage", f"{preceding} does not close the stage before", ref=preceding)
        opening = world.current(preceding).content.closing
    elif preceding is not None:
        raise Rejected("wrong_stage", f"no stage precedes {stage_id}", ref=preceding)
    sources = set(world.sources_of[stage_id])
    for refs, kind in (((*current, *deferred), "aggregate"), (history, "historical_view")):
        for ref in refs:
            if world.artifact(ref, kind).subject not in sources:
                raise Rejected("wrong_stage", f"{ref} belongs to another stage", ref=ref)
    views = [world.current(ref, "aggregate") for ref in (*current, *deferred)]
    named = [view.subject for view in views]
    if len(named) != len(sources) or set(named) != sources:
        missing = sorted(sources - set(named))[:3]
        raise Rejected("incomplete_stage", "every source of the stage stands in it exactly once", missing=missing)
    movement = totals_of(item for view in views[: len(current)] for item in view.content.totals.items())
    balance = totals_of((*opening.items(), *movement.items()))
    if {entity: minor for entity, minor in sorted(closing.items()) if minor} != balance:
        raise Rejected("out_of_balance", "closing is not opening plus the current views", stage_id=stage_id)
    gross = sum(map(abs, movement.values()))
    content = Closure(stage_id, preceding, tuple(current), tuple(deferred), tuple(history), balance, gross)
    inputs = [*([preceding] if preceding else []), *current, *deferred, *history]
    goal = f"stage:{stage_id}"
    artifact = world.publish("closure", stage_id, content, inputs, goal=goal, module=f"closure:{stage_id}")
    return _answer(world, "closure", artifact, closing=balance, gross_minor=gross)


def _reviewer(world: FinanceWorld, reviewer_id: str, gross: int | None, barred: list[str]) -> None:
    reviewer: Reviewer = world.get("reviewers", reviewer_id)
    limit = reviewer.authority_limit_minor
    if limit is not None and (gross is None or limit < gross):
        raise Rejected("authority_exceeded", f"{reviewer_id} may not review this much", limit_minor=limit)
    if reviewer_id in barred:
        raise Rejected("not_independent", f"{reviewer_id} reviewed a neighbouring stage", reviewer_id=reviewer_id)


def _refuse_published(publications: list[Artifact], closure: str) -> None:
    if publications and publications[-1].content.closure == closure:
        raise Rejected("wrong_state", f"{closure} has been published already", closure=closure)


def _latest_reviewers(world: FinanceWorld, stages: list[Stage]) -> list[str]:
    reviews = [world.newest_of("stage_review", s.stage_id) for s in stages]
    return [r.content.reviewer_id for r in reviews if r is not None]


@tool("business", refusals=("authority_exceeded", "not_independent"))
def review_stage(world: FinanceWorld, closure: Ref, reviewer_id: Id) -> dict[str, Any]:
    """Have a current closure reviewed by someone with the authority and no part in the neighbouring stages."""
    closed = world.current(closure, "closure")
    stage = world.stage(closed.subject)
    goal = f"stage:{stage.stage_id}"
    world.attempt(goal)
    _refuse_published(world.publications_of(stage.stage_id), closure)
    _reviewer(world, reviewer_id, closed.content.gross_minor, _latest_reviewers(world, world.neighbours(stage)))
    content = StageReview(stage.stage_id, closure, reviewer_id)
    artifact = world.publish(
        "stage_review", stage.stage_id, content, [closure], goal=goal, module=f"closure:{stage.stage_id}"
    )
    return _answer(world, "review", artifact)


@tool("business", refusals=("not_reviewed",))
def publish_stage(world: FinanceWorld, closure: Ref, review: Ref) -> dict[str, Any]:
    """Publish a current, reviewed closure. A stage's first publication releases the maps that wait for it."""
    closed = world.current(closure, "closure")
    stage_id = closed.subject
    goal = f"stage:{stage_id}"
    world.attempt(goal)
    before = world.publications_of(stage_id)
    _refuse_published(before, closure)
    if world.artifact(review, "stage_review").content.closure != closure:
        raise Rejected("not_reviewed", f"{review} is the review of another closure", review=review)
    world.current(review)
    content = StagePublication(stage_id, closure, review, closed.content.closing)
    artifact = world.publish(
        "stage_publication", stage_id, content, [closure, review], goal=goal, module=f"closure:{stage_id}"
    )
    for ref in (*closed.content.current, *closed.content.deferred):
        world.carried.setdefault(world.artifacts[ref].subject, {}).setdefault(ref, artifact.ref)
    released: list[IdentityMap] = [] if before else world.having("identity_maps", "released_by", stage_id)
    if not before:
        world.count("stages_published")
        sources = dict.fromkeys(m.identity_source for m in released)
        world.changed(*(f"maps:{i}" for i in sources), cause=f"{stage_id} released maps")
    return _answer(
        world,
        "publication",
        artifact,
        released_maps=[{"map_id": m.map_id, "identity_source": m.identity_source} for m in released],
        stages_published=world.counters["stages_published"],
    )


# -- the release -----------------------------------------------------------------------------------------------------


@tool("business", refusals=("release_open", "authority_exceeded", "not_independent"))
def review_release(
    world: FinanceWorld,
    publications: Refs,
    restated: Annotated[list[Id], Meta(max_length=100)],
    reviewer_id: Id,
) -> dict[str, Any]:
    """Have the whole release reviewed: the latest publication of every stage, and which stages were restated."""
    world.attempt("release")
    refuse_repeats("publication", publications)
    refuse_repeats("stage", restated)
    for ref in publications:
        world.artifact(ref, "stage_publication")
    for stage_id in restated:
        world.stage(stage_id)
    listed = set(publications)
    for stage in world.stages:
        closure, published = world.closure_of(stage.stage_id), world.publications_of(stage.stage_id)
        if closure is None or closure.status != CURRENT:
            raise Rejected("release_open", f"{stage.stage_id} has no current closure", stage_id=stage.stage_id)
        if not published or published[-1].content.closure != closure.ref:
            raise Rejected("release_open", f"the closure of {stage.stage_id} is not published", stage_id=stage.stage_id)
        if published[-1].ref not in listed:
            raise Rejected(
                "release_open", f"the latest publication of {stage.stage_id} is not listed", stage_id=stage.stage_id
            )
    _reviewer(world, reviewer_id, None, _latest_reviewers(world, world.stages[-1:]))
    content = ReleaseReview(tuple(publications), tuple(restated), reviewer_id)
    artifact = world.publish(
        "release_review", world.release_id, content, publications, goal="release", module="release"
    )
    return _answer(world, "review", artifact)


@tool("business")
def publish_release(world: FinanceWorld, review: Ref) -> dict[str, Any]:
    """Publish the release on its current review."""
    world.attempt("release")
    world.current(review, "release_review")
    published = world.newest_of("release_publication", world.release_id)
    if published is not None and published.content.review == review:
        raise Rejected("wrong_state", f"the release has been published on {review} already", review=review)
    artifact = world.publish(
        "release_publication", world.release_id, ReleasePublication(review), [review], goal="release", module="release"
    )
    return _answer(world, "publication", artifact)


@tool("business", refusals=("wrong_stage",))
def release_obligation(world: FinanceWorld, obligation_id: Id, publication: Ref, review: Ref) -> dict[str, Any]:
    """Release an obligation on a publication of its stage, under the release review. A second call replaces it."""
    obligation: Obligation = world.get("obligations", obligation_id)
    goal = f"obligation:{obligation_id}"
    world.attempt(goal)
    published = world.artifact(publication, "stage_publication")
    if published.subject != obligation.stage:
        raise Rejected("wrong_stage", f"{publication} publishes another stage", publication=publication)
    world.current(review, "release_review")
    content = ObligationRelease(obligation_id, publication, review)
    artifact = world.publish(
        "obligation_release", obligation_id, content, [publication, review], goal=goal, module="release"
    )
    return _answer(world, "obligation_release", artifact)
