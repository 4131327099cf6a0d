"""Scoring of DocOps: the final state against what the rules give on the final blocks, grants and links (Table 8)."""

from __future__ import annotations

from skillhorizon.core.errors import Rejected
from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.world import CURRENT
from skillhorizon.envs.docs.build import DocsGoal
from skillhorizon.envs.docs.records import (
    Publication,
)
from skillhorizon.envs.docs.rules import covers, statement_of
from skillhorizon.envs.docs.world import DocsWorld

scoring = Scoring("page", lambda goal: goal.pages)


@scoring.local(idle=False)
def contract_correct(world: DocsWorld, goal: DocsGoal, page_id: str) -> Reason:
    """What is published follows from governing blocks, all usable grants and the parent versions it cites."""
    publication = world.publication_of(page_id)
    if publication is None:
        return "the page is not published"
    terms = world.terms(page_id)
    grants = world.usable_grants(page_id, terms.charter.effective_day)
    cited = {take.parent: take.publication for take in world.support[publication.ref].takes}
    try:
        true = world.contract_from(terms, cited, grants)
    except Rejected as refusal:
        return f"{publication.ref}: {refusal.message}"
    return None if publication.content.content == true else f"{publication.ref} is not what its sources give"


@scoring.local(idle=False)
def publication_current(world: DocsWorld, goal: DocsGoal, page_id: str) -> Reason:
    """The page is published and its publication is unmarked."""
    publication = world.publication_of(page_id)
    if publication is None:
        return "the page is not published"
    return None if publication.status == CURRENT else f"{publication.ref} is marked: {publication.cause}"


@scoring.local(idle=False)
def document_agrees(world: DocsWorld, goal: DocsGoal, page_id: str) -> Reason:
    """The head revision is the published one, states the contract and has the clauses asked for."""
    publication, head = world.publication_of(page_id), world.newest_of("revision", page_id)
    if publication is None or head is None:
        return "the page is not published"
    if publication.content.document_revision != head.ref:
        return f"{head.ref} is not the revision that {publication.ref} published"
    if head.content.statement != statement_of(publication.content.content):
        return f"{head.ref} does not state what was published"
    request = world.tables["clause_requests"].get(page_id)
    if request is not None and request.clause not in head.content.clauses:
        return f"{head.ref} lacks the clause {request.clause}"
    return None


@scoring.local(idle=False)
def tracker_matches(world: DocsWorld, goal: DocsGoal, page_id: str) -> Reason:
    """The item that the brief names binds the newest publication."""
    publication, binding = world.publication_of(page_id), world.newest_of("binding", world.items[page_id])
    if publication is None or binding is None:
        return "the tracker item names no publication"
    return None if binding.content.publication == publication.ref else f"{binding.ref} does not name {publication.ref}"


@scoring.delivery(idle=False)
def window_completed(world: DocsWorld, goal: DocsGoal) -> Reason:
    """The change window is closed and every bulletin was announced."""
    if not world.window_closed:
        return "the change window is not closed"
    return None if len(world.announced) == len(world.bulletins) else "a bulletin was not announced"


@scoring.delivery(idle=False)
def impact_statements_exact(world: DocsWorld, goal: DocsGoal) -> Reason:
    """The latest statement on each bulletin names exactly the pages that it affects (rule 14)."""
    if len(world.announced) < len(world.bulletins) or not (world.bulletins or world.window_closed):
        return "the change window is not over"
    for bulletin in world.bulletins:
        statement = world.newest_of("impact_statement", bulletin.bulletin_id)
        affected = world.impact(bulletin.block.page_id, bulletin.block.body.name)
        if statement is None or set(statement.content.page_ids) != affected:
            return f"the statement on {bulletin.bulletin_id} does not name exactly the pages affected"
    return None


@scoring.delivery(idle=False)
def service_ledger_exact(world: DocsWorld, goal: DocsGoal) -> Reason:
    """Each page holds exactly the reservation that its published contract needs (rule 7)."""
    for page_id in goal.pages:
        publication, held = world.publication_of(page_id), world.newest_of("reservation", page_id)
        if publication is None or held is None:
            return f"{page_id} holds no reservation for a publication"
        content: Publication = publication.content
        needed, has = content.content.reservation, held.content
        same = (has.amount, has.from_day, has.until_day) == (needed.amount, needed.from_day, needed.until_day)
        if not same or not covers(has, needed, content.content.used):
            return f"{held.ref} is not exactly what {publication.ref} needs"
    return None


@scoring.delivery(idle=True)
def no_needless_publication(world: DocsWorld, goal: DocsGoal) -> Reason:
    """No page was published again without need (rule 15)."""
    for publication in world.list_artifacts("publication", None, None):
        if publication.basis.needless:
            return f"{publication.ref} was needless"
    return None


@scoring.delivery(idle=True)
def foreign_records_intact(world: DocsWorld, goal: DocsGoal) -> Reason:
    """Nothing was made about pages and tracker items that the brief does not name."""
    own = {*goal.pages, *world.items.values(), world.window_id, *(b.bulletin_id for b in world.bulletins)}
    foreign = next((a.ref for a in world.list_artifacts(None, None, None) if a.subject not in own), None)
    return None if foreign is None else f"{foreign} concerns a record that was not requested"
