"""Operations of the portfolio office. An operation validates completely, then changes the world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Id, Name, Ref, Text, tool
from skillhorizon.core.world import CURRENT, Artifact
from skillhorizon.envs.docs.queries import PageId
from skillhorizon.envs.docs.records import (
    Basis,
    Binding,
    Block,
    Cites,
    Content,
    Contract,
    Day,
    Decision,
    Grant,
    ImpactStatement,
    Lot,
    Project,
    Publication,
    Receipt,
    Reservation,
    Revision,
    SignOff,
    Statement,
    Support,
    Take,
    TrackerItem,
)
from skillhorizon.envs.docs.rules import (
    Terms,
    covers,
    entitlements,
    quota_digest,
    statement_of,
    taken_fields,
    terms_of,
    total,
    usable,
)
from skillhorizon.envs.docs.world import ROLES, DocsWorld

Whole = Annotated[int, Meta(ge=1, le=2**53 - 1)]
ContractRef = Annotated[Ref, Meta(description="The page's contract, id@version.")]
RevisionRef = Annotated[Ref, Meta(description="The page's document revision, id@version.")]
_REPORT = {
    "clause_requested": "Before this role can agree, the document has to carry one more clause, named beside.",
    "clause_missing": "A clause that this role asked for earlier does not stand in the revision handed in.",
    "statement_disagrees": "What the document states is not what the contract says, compared line by line.",
}


# -- contracts -------------------------------------------------------------------------------------------------------


def _cited_blocks(world: DocsWorld, page_id: str, ids: Sequence[str]) -> list[Block]:
    """Rule 8: one approved block a key."""
    keys = world.approved.get(page_id, {})
    found: dict[str, Block] = {}
    for block_id in ids:
        block: Block = world.get("blocks", block_id)
        if block.page_id != page_id or block.kind == "note" or block.state != "approved":
            raise Rejected("block_not_binding", f"{block_id} binds nothing on {page_id}", block_id=block_id)
        if block.key in found:
            raise Rejected("cite_incomplete", f"two blocks are cited for {block.key}", key=block.key)
        found[block.key] = block
    missing = next((key for key in keys if key not in found), None)
    if missing is not None:
        raise Rejected("cite_incomplete", f"no block is cited for {missing}", key=missing)
    return list(found.values())


def _cited_parents(world: DocsWorld, page_id: str, refs: Iterable[str]) -> dict[str, str]:
    """Rules 2 and 8: parent -> its current, unmarked publication."""
    parents = world.parents_of.get(page_id, [])
    cited: dict[str, str] = {}
    for ref in refs:
        publication = world.artifact(ref, "publication")
        if publication.subject not in parents or publication.subject in cited:
            raise Rejected("parent_unrelated", f"{ref} is not wanted by {page_id}", publication=ref)
        cited[publication.subject] = ref
    for parent in parents:
        if parent not in cited:
            raise Rejected("parent_missing", f"{page_id} derives from {parent}", parent=parent)
    for parent, ref in cited.items():
        newest = world.publication_of(parent)
        if newest is None or newest.ref != ref or newest.status != CURRENT:
            raise Rejected("parent_stale", f"{ref} is not current, or is marked", parent=parent, publication=ref)
    return cited


def _cited_grants(world: DocsWorld, terms: Terms, ids: Sequence[str]) -> list[Grant]:
    if len(set(ids)) != len(ids):
        raise Rejected("bad_argument", "a grant is named twice")
    grants: list[Grant] = [world.get("grants", grant_id) for grant_id in ids]
    for grant in grants:
        if not usable(grant, terms.page_id, terms.charter.effective_day):
            raise Rejected("grant_unusable", f"{terms.page_id} cannot use {grant.grant_id}", grant_id=grant.grant_id)
    return grants


def _lots_serve(lots: Sequence[Lot], who: str, purpose: str, day: int) -> None:
    """Rule 5, of lots proposed for someone."""
    for lot in lots:
        if purpose not in lot.purposes:
            raise Rejected("purpose_violation", f"{lot.grant_id} does not serve {who}", grant_id=lot.grant_id, rule=5)
        if lot.expires_on < day:
            raise Rejected(
                "quota_expired", f"{lot.grant_id} expires too early for {who}", grant_id=lot.grant_id, rule=5
            )


def _agree(proposal: Content, true: Content, terms: Terms) -> None:
    """Refuse a proposal that is not what its citations give, by the rule that it breaks."""
    charter = terms.charter
    _lots_serve(proposal.used, terms.page_id, charter.purpose, charter.effective_day)
    if total(proposal.used) < charter.demand:
        raise Rejected("quota_short", "less is used than the page demands", page_id=terms.page_id, rule=5)
    consumers = {c.page_id: c for c in terms.consumers}
    if terms.consumers:
        entitled = entitlements(terms.consumers, total(true.received) - charter.demand)
        shares = {c.page_id: share for c, share in zip(terms.consumers, entitled, strict=True)}
        for allotment in proposal.allotments:
            consumer = consumers.get(allotment.consumer)
            if consumer is None:
                continue
            _lots_serve(allotment.lots, consumer.page_id, consumer.purpose, consumer.effective_day)
            if total(allotment.lots) > shares[consumer.page_id]:
                raise Rejected(
                    "allotment_exceeded", f"{consumer.page_id} is allotted too much", consumer=consumer.page_id, rule=6
                )
    for section in Content.__struct_fields__:
        if getattr(proposal, section) != getattr(true, section):
            raise Rejected("values_disagree", f"{section} does not follow from what is cited", section=section)


@tool(
    "business",
    refusals=(
        "parent_missing",
        "parent_unrelated",
        "parent_stale",
        "cite_incomplete",
        "block_not_binding",
        "grant_unusable",
        "schema_mismatch",
        "purpose_violation",
        "quota_expired",
        "quota_short",
        "allotment_exceeded",
        "values_disagree",
    ),
)
def submit_contract(world: DocsWorld, page_id: PageId, proposal: Content, cites: Cites) -> dict[str, Any]:
    """Submit the contract of a page with what it cites: one approved block a key, grants, its parents' publications."""
    page = world.page(page_id)
    if page_id not in world.items:
        raise Rejected("wrong_state", f"{page_id} is an earlier edition and owns no contract", page_id=page_id)
    goal = f"contract:{page_id}"
    world.attempt(goal)
    parents = _cited_parents(world, page_id, cites.parents)
    terms = terms_of(page_id, _cited_blocks(world, page_id, cites.blocks))
    grants = _cited_grants(world, terms, cites.grants)
    true = world.contract_from(terms, parents, grants)
    if proposal != true:
        _agree(proposal, true, terms)
    takes = tuple(Take(parent, ref, taken_fields(terms, parent)) for parent, ref in parents.items())
    support = Support(cites.blocks, takes)
    content = Contract(page_id, proposal, cites, quota_digest(proposal))
    artifact = world.publish(
        "contract",
        page.page_id,
        content,
        [*cites.parents, *(f"{i}@1" for i in (*cites.blocks, *cites.grants))],
        reads=world.read_keys(support, page_id),
        goal=goal,
        module=goal,
    )
    world.support[artifact.ref] = support
    return {
        "contract": artifact.ref,
        "quota_digest": content.quota_digest,
        "content": proposal,
        "invalidated": world.invalidated,
    }


@tool("business", refusals=("contract_missing", "below_contract", "outlives_quota", "capacity_exceeded"), checks=False)
def reserve_capacity(
    world: DocsWorld, page_id: PageId, service_id: Id, amount: Whole, from_day: Day, until_day: Day
) -> dict[str, Any]:
    """Reserve capacity of a service for a page with an accepted contract; this replaces what the page held."""
    page = world.page(page_id)
    service = world.get("services", service_id)
    contract = world.newest_of("contract", page_id)
    if contract is None:
        raise Rejected("contract_missing", f"{page_id} has no accepted contract", page_id=page_id)
    content: Content = contract.content.content
    team = world.get("projects", page.project_id).team_id
    wanted = Reservation(page_id, team, service_id, amount, from_day, until_day)
    needed = content.reservation
    if not covers(wanted, needed, ()):
        raise Rejected(
            "below_contract", f"the contract of {page_id} needs more than this", contract=contract.ref, rule=7
        )
    if not covers(wanted, needed, content.used):
        raise Rejected(
            "outlives_quota", "the reservation outlives quota that it rests on", contract=contract.ref, rule=7
        )
    held = world.newest_of("reservation", page_id)
    holder = held.id if held else f"rsv-{page_id.partition('-')[2]}"
    full = world.fits(holder, wanted) if service.first_day <= from_day and until_day <= service.last_day else from_day
    if full is not None:
        raise Rejected(
            "capacity_exceeded", f"{service_id} has no room on day {full}", day=full, capacity=service.capacity
        )
    artifact = world.publish("reservation", page_id, wanted, [contract.ref], reads=(), module=f"contract:{page_id}")
    world.hold(holder, wanted)
    return {"reservation": artifact.ref, "invalidated": world.invalidated}


# -- documents and review --------------------------------------------------------------------------------------------


def _own(world: DocsWorld, ref: str, kind: str, page_id: str) -> Artifact:
    artifact = world.artifact(ref, kind)
    if artifact.subject != page_id:
        raise Rejected("unknown_id", f"{ref} is no {kind} of {page_id}", ref=ref)
    return artifact


def _current_contract(world: DocsWorld, ref: str, page_id: str) -> Artifact:
    contract = _own(world, ref, "contract", page_id)
    if contract.status != CURRENT:
        raise Rejected("contract_stale", f"{ref} is not the newest contract of the page, or is marked", contract=ref)
    return contract


@tool("business", refusals=("revision_conflict", "contract_stale"), checks=False)
def revise_document(
    world: DocsWorld,
    page_id: PageId,
    base_revision: Annotated[str, Meta(max_length=48, description="The head, or null if none.")] | None,
    contract: ContractRef | None,
    statement: Statement | None,
    clauses: Annotated[tuple[Name, ...], Meta(max_length=24)],
    text: Text,
) -> dict[str, Any]:
    """Write the next revision of a page on its head: the contract it states, the statement, all clauses, the prose."""
    page = world.page(page_id)
    if base_revision != world.head_revision(page):
        raise Rejected("revision_conflict", f"{base_revision} is not the head of {page_id}", page_id=page_id)
    if contract is not None:
        _current_contract(world, contract, page_id)
    content = Revision(page_id, base_revision, contract, statement, clauses, text)
    inputs = [ref for ref in (contract, base_revision) if ref is not None and ref in world.artifacts]
    artifact = world.publish("revision", page_id, content, inputs, reads=(), module=f"review:{page_id}")
    return {"document_revision": artifact.ref, "invalidated": world.invalidated}


@tool("business", refusals=("reviewer_not_eligible", "contract_stale", "revision_conflict"), checks=False)
def request_signoff(
    world: DocsWorld,
    page_id: PageId,
    role: Literal["engineering", "security"],
    reviewer_id: Id,
    contract: ContractRef,
    document_revision: RevisionRef,
) -> dict[str, Any]:
    """Ask a reviewer of the project, from outside its team, to sign a revision off against a contract."""
    page = world.page(page_id)
    goal = f"review:{page_id}"
    world.attempt(goal)
    reviewer = world.get("people", reviewer_id)
    project: Project = world.get("projects", page.project_id)
    members = world.standing.members_of.get(page.project_id, ())
    holds = any(m.person_id == reviewer_id and m.role == role for m in members)
    if not holds or reviewer.team_id == project.team_id:
        raise Rejected("reviewer_not_eligible", f"{reviewer_id} may not sign for {role} here", reviewer_id=reviewer_id)
    agreed = _current_contract(world, contract, page_id).content
    revision = _own(world, document_revision, "revision", page_id)
    if revision.status != CURRENT:
        raise Rejected("revision_conflict", f"{document_revision} is not the head", document_revision=document_revision)
    reasons = []
    if role == "engineering":
        states = revision.content.contract == contract and revision.content.statement == statement_of(agreed.content)
        reasons = [] if states else ["statement_disagrees"]
    clause = world.clause_of(page_id, role)
    if clause is not None and clause not in revision.content.clauses:
        reasons.append("clause_requested" if world.signoff_of(page_id, role) is None else "clause_missing")
    outcome: Literal["approved", "changes_requested"] = "changes_requested" if reasons else "approved"
    content = SignOff(
        page_id,
        role,
        reviewer_id,
        contract,
        document_revision,
        agreed.quota_digest,
        outcome,
        tuple(reasons),
        clause if set(reasons) & {"clause_requested", "clause_missing"} else None,
        tuple(_REPORT[reason] for reason in reasons) or _reading(role, agreed.content),
    )
    artifact = world.publish(
        "signoff",
        page_id,
        content,
        [contract, document_revision],
        goal=goal,
        module=goal,
        ordinal=ROLES.index(role) + 1,
    )
    faults = [reason for reason in reasons if reason != "clause_requested"]
    if faults:
        world.judge(goal, False, faults[0])
    elif all((s := world.signoff_of(page_id, r)) and holds_good(s) for r in ROLES):
        world.judge(goal, True)
    return {
        "signoff": artifact.ref,
        "outcome": outcome,
        "reasons": reasons,
        "clause": content.clause,
        "report": content.report,
        "invalidated": world.invalidated,
    }


def _reading(role: str, content: Content) -> tuple[str, ...]:
    """The report of an approval: what the role read, line by line."""
    if role == "engineering":
        return tuple(f"{e.name} {e.limit}, bound by {e.bound_by}: stated as agreed" for e in content.fields)
    return tuple(
        f"{lot.grant_id} of {lot.owner_page}: {lot.amount} until day {lot.expires_on}, for {', '.join(lot.purposes)}"
        for lot in content.received
    )


def holds_good(signoff: Artifact) -> bool:
    return signoff.content.outcome == "approved" and signoff.status == CURRENT


@tool("business", refusals=("signoff_missing", "signoff_stale"), checks=False)
def record_decision(
    world: DocsWorld,
    page_id: PageId,
    contract: ContractRef,
    document_revision: RevisionRef,
    signoffs: Annotated[tuple[Ref, ...], Meta(max_length=8)],
) -> dict[str, Any]:
    """Record the decision on a contract and revision that both roles have signed off."""
    world.page(page_id)
    agreed = _own(world, contract, "contract", page_id)
    _own(world, document_revision, "revision", page_id)
    found = {s.content.role: s for s in (_own(world, ref, "signoff", page_id) for ref in signoffs)}
    for role in ROLES:
        signoff = found.get(role)
        if signoff is None or signoff.content.outcome != "approved":
            raise Rejected("signoff_missing", f"no approval of {role} is listed", role=role)
    for signoff in found.values():
        given: SignOff = signoff.content
        bound = (
            given.quota_digest == agreed.content.quota_digest
            if given.role == "security"
            else (given.contract, given.document_revision) == (contract, document_revision)
        )
        if signoff.status != CURRENT or not bound:
            raise Rejected(
                "signoff_stale", f"{signoff.ref} does not bind this contract and revision", signoff=signoff.ref
            )
    content = Decision(page_id, contract, document_revision, signoffs)
    inputs = [contract, document_revision, *signoffs]
    artifact = world.publish("decision", page_id, content, inputs, module=f"publication:{page_id}")
    return {"decision": artifact.ref, "invalidated": world.invalidated}


@tool("business", refusals=("decision_stale", "reservation_missing", "parent_stale"))
def publish_page(world: DocsWorld, page_id: PageId, decision: Ref) -> dict[str, Any]:
    """Publish a page on its current decision, with a covering reservation and unmarked parents."""
    world.page(page_id)
    decided = _own(world, decision, "decision", page_id)
    goal = f"publication:{page_id}"
    world.attempt(goal)
    if decided.status != CURRENT:
        raise Rejected("decision_stale", f"{decision} no longer rests on what is current", decision=decision)
    contract = world.artifacts[decided.content.contract]
    agreed: Contract = contract.content
    held = world.newest_of("reservation", page_id)
    if held is None or not covers(held.content, agreed.content.reservation, agreed.content.used):
        raise Rejected("reservation_missing", f"no reservation covers {contract.ref}", contract=contract.ref)
    for parent in world.parents_of.get(page_id, ()):
        publication = world.publication_of(parent)
        if publication is None or publication.status != CURRENT:
            raise Rejected("parent_stale", f"the publication of {parent} is marked", parent=parent)
    before = world.publication_of(page_id)
    revision = decided.content.document_revision
    # rule 15: nothing was marked, nothing differs, and the document has not moved on
    needless = (
        before is not None
        and before.status == CURRENT
        and before.content.content == agreed.content
        and before.content.document_revision == revision
    )
    support = world.support[contract.ref]
    content = Publication(page_id, contract.ref, revision, decision, held.ref, agreed.content, agreed.cites)
    artifact = world.publish(
        "publication",
        page_id,
        content,
        [contract.ref, revision, decision, held.ref],
        reads=world.read_keys(support, page_id),
        basis=Basis(needless),
        goal=goal,
        module=goal,
    )
    world.support[artifact.ref] = support
    world.released(artifact, before)
    return {"publication": artifact.ref, "invalidated": world.invalidated}


@tool("business", refusals=("item_foreign", "publication_superseded"))
def bind_tracker_item(world: DocsWorld, item_id: Id, page_id: PageId, publication: Ref) -> dict[str, Any]:
    """Let a tracker item name a page's current publication."""
    item: TrackerItem = world.get("tracker_items", item_id)
    page = world.page(page_id)
    goal = f"page:{page_id}"  # the last step, by which the page is delivered
    world.attempt(goal)
    published = _own(world, publication, "publication", page_id)
    project: Project = world.get("projects", page.project_id)
    if item.tracker_id != project.tracker_id:
        raise Rejected("item_foreign", f"{item_id} is on the tracker of another project", item_id=item_id)
    newest = world.publication_of(page_id)
    if newest is None or newest.ref != publication:
        raise Rejected("publication_superseded", f"{publication} is not the current version", publication=publication)
    world.current(published.ref)
    content = Binding(item_id, page_id, publication)
    artifact = world.publish("binding", item_id, content, [publication], goal=goal, module=f"tracker:{page_id}")
    return {"binding": artifact.ref, "invalidated": world.invalidated}


# -- the change window -----------------------------------------------------------------------------------------------


@tool("business", checks=False)
def poll_change_window(world: DocsWorld) -> dict[str, Any]:
    """Poll the change window: it announces the next bulletin or closes, once all pages and statements are in order."""
    announced = len(world.announced)
    if world.window_closed:
        return {"state": "closed", "announced": announced}
    unstated = sum(world.newest_of("impact_statement", b.bulletin_id) is None for b in world.announced)
    if world.unsettled or unstated:
        return {
            "state": "waiting",
            "announced": announced,
            "pages_open": len(world.unsettled),
            "statements_open": unstated,
        }
    state: Literal["open", "closed"] = "open"
    if announced < len(world.bulletins):
        announced = world.count("bulletins")
        bulletin: str | None = world.bulletins[announced - 1].bulletin_id
    else:
        state, bulletin = "closed", None
    artifact = world.publish("receipt", world.window_id, Receipt(state, announced), (), module="window")
    return {"state": state, "announced": announced, "bulletin_id": bulletin, "receipt": artifact.ref}


@tool("business", refusals=("not_announced", "not_requested"), checks=False)
def file_impact_statement(
    world: DocsWorld, bulletin_id: Id, page_ids: Annotated[tuple[Id, ...], Meta(max_length=1000)]
) -> dict[str, Any]:
    """State which requested pages an announced bulletin affects; a later statement replaces an earlier one."""
    if bulletin_id not in {b.bulletin_id for b in world.announced}:
        raise Rejected("not_announced", f"{bulletin_id} is no bulletin that was announced", bulletin_id=bulletin_id)
    if len(set(page_ids)) != len(page_ids):
        raise Rejected("bad_argument", "a page is named twice")
    for page_id in page_ids:
        if world.page(page_id).page_id not in world.items:
            raise Rejected("not_requested", f"{page_id} is not among the requested pages", page_id=page_id)
    content = ImpactStatement(bulletin_id, tuple(sorted(page_ids)))
    artifact = world.publish("impact_statement", bulletin_id, content, (), module="window")
    return {"impact_statement": artifact.ref, "pages": len(page_ids)}
