"""One test a refusal code, on a delivered task; and what is no check, or a failed one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from skillhorizon.envs.docs.policy import DocsPolicy, statement
from tests.envs.bench import Bench, calibrated
from tests.envs.docs.office import CONFIGURATION, Office, affected, decide, revise, sign


@pytest.fixture
def office() -> Office:
    return Office()


# -- submit_contract ---------------------------------------------------------------------------------------------------


def assert_contract_refused(office: Office, code: str, arguments: dict[str, Any]) -> dict[str, Any]:
    error = office.assert_refused(code, "submit_contract", **arguments)
    event = office.gateway.events[-1]
    assert event.check is False
    assert event.goal == f"contract:{arguments['page_id']}"
    return error


def test_parent_missing(office):
    arguments = office.submission(office.child)
    arguments["cites"]["parents"].pop()
    assert_contract_refused(office, "parent_missing", arguments)


def test_parent_unrelated(office):
    page = next(p for p in office.pages if not office.policy.parents[p])
    arguments = office.submission(page)
    arguments["cites"]["parents"] = [office.newest("publication", office.child)]
    assert_contract_refused(office, "parent_unrelated", arguments)


def test_a_parent_is_cited_once(office):
    arguments = office.submission(office.child)
    arguments["cites"]["parents"] *= 2
    assert_contract_refused(office, "parent_unrelated", arguments)


def test_parent_stale_by_version(office):
    page = next(p for p in office.pages if set(office.policy.parents[p]) & affected(office.world))
    arguments = office.submission(page)
    arguments["cites"]["parents"] = [ref.replace("@2", "@1") for ref in arguments["cites"]["parents"]]
    assert_contract_refused(office, "parent_stale", arguments)


def test_parent_stale_by_mark(office):
    page = next(p for p in office.pages if office.policy.parents[p])
    arguments = office.submission(page)
    parent = office.policy.parents[page][0]
    office.announce(parent, office.own_field(parent), -1)
    assert_contract_refused(office, "parent_stale", arguments)


def test_cite_incomplete(office):
    page = office.preserved
    fewer, twice = office.submission(page), office.submission(page)
    fewer["cites"]["blocks"].pop()
    assert_contract_refused(office, "cite_incomplete", fewer)
    keys = office.world.approved[page]
    twins = next(blocks for blocks in keys.values() if len(blocks) == 2)
    twice["cites"]["blocks"] = sorted({*twice["cites"]["blocks"], *twins})
    assert_contract_refused(office, "cite_incomplete", twice)


@pytest.mark.parametrize("kind", ["note", "draft", "superseded", "of another page"])
def test_block_not_binding(office, kind):
    if kind == "note":
        page = office.preserved
        block = office.block(page, kind="note")
    elif kind == "draft":
        page = next(b.page_id for b in office.world.tables["blocks"].values() if b.state == "draft")
        block = office.block(page, state="draft")
    elif kind == "superseded":
        page = office.world.bulletins[0].block.page_id
        block = office.world.bulletins[0].block.supersedes
    else:
        page, other = office.pages[:2]
        block = office.block(other, kind="charter")
    arguments = office.submission(page)
    arguments["cites"]["blocks"].append(block)
    assert_contract_refused(office, "block_not_binding", arguments)


@pytest.mark.parametrize("kind", ["proposed", "late", "of another page"])
def test_grant_unusable(office, kind):
    for page in office.pages:
        day = office.world.terms(page).charter.effective_day
        grants = office.do("list_grants", page_id=page)["items"]
        wrong = [g for g in grants if g["state"] == "proposed" or g["valid_from"] > day]
        chosen = [g for g in wrong if (g["state"] == "proposed") == (kind == "proposed")]
        if kind == "of another page":
            other = next(p for p in office.pages if p != page)
            chosen = office.do("list_grants", page_id=other)["items"]
        if chosen:
            break
    arguments = office.submission(page)
    arguments["cites"]["grants"].append(chosen[0]["grant_id"])
    assert_contract_refused(office, "grant_unusable", arguments)


def test_schema_mismatch(office):
    """A page's own block gives a carried field another type than the stage before does."""
    world = office.world
    page, block = next(
        (p, b)
        for p in office.pages
        if office.policy.parents[p]
        for b in world.governing(p)
        if b.kind == "field" and b.body.name in world.terms(p).carry
    )
    arguments = office.submission(page)
    world.amend("blocks", block.block_id, body=replace(block.body, type="other"))
    assert_contract_refused(office, "schema_mismatch", arguments)


def test_quota_short(office):
    page = next(p for p in office.pages if not office.policy.parents[p])
    arguments = office.submission(page)
    arguments["cites"]["grants"] = []
    assert_contract_refused(office, "quota_short", arguments)


def test_quota_short_in_the_proposal(office):
    arguments = office.submission(office.preserved)
    arguments["proposal"]["used"].pop()
    assert_contract_refused(office, "quota_short", arguments)


def test_purpose_violation(office):
    arguments = office.submission(office.preserved)
    arguments["proposal"]["used"][0]["purposes"] = ["another"]
    assert_contract_refused(office, "purpose_violation", arguments)


def test_quota_expired(office):
    arguments = office.submission(office.preserved)
    day = office.world.terms(office.preserved).charter.effective_day
    arguments["proposal"]["used"][0]["expires_on"] = day - 1
    assert_contract_refused(office, "quota_expired", arguments)


def test_allotment_exceeded(office):
    page = next(p for p in office.pages if office.policy.children.get(p))
    arguments = office.submission(page)
    lots = next(a["lots"] for a in arguments["proposal"]["allotments"] if a["lots"])
    lots[0]["amount"] += 10_000
    assert_contract_refused(office, "allotment_exceeded", arguments)


@pytest.mark.parametrize("section", ["fields", "received", "allotments", "retained", "reservation"])
def test_values_disagree_names_the_section_and_not_the_value(office, section):
    page = next(p for p in office.pages if office.policy.children.get(p))
    arguments = office.submission(page)
    proposal = arguments["proposal"]
    if section == "fields":
        proposal["fields"][0]["limit"] += 1
    elif section == "allotments":
        proposal["allotments"].pop()
    elif section == "reservation":
        proposal["reservation"]["until_day"] += 1
    else:
        proposal[section] = proposal[section][:-1] if section == "received" else [proposal["received"][0]]
    error = assert_contract_refused(office, "values_disagree", arguments)
    assert error["details"] == {"section": section}


def test_an_earlier_edition_owns_no_contract(office):
    arguments = office.submission(office.preserved)
    arguments["page_id"] = office.decoy["page_id"]
    office.assert_refused("wrong_state", "submit_contract", **arguments)


def test_a_grant_is_named_once(office):
    arguments = office.submission(office.preserved)
    arguments["cites"]["grants"] *= 2
    office.assert_refused("bad_argument", "submit_contract", **arguments)


# -- reserve_capacity --------------------------------------------------------------------------------------------------


def held(office: Office, page_id: str, **changes: Any) -> dict[str, Any]:
    content = office.world.newest_of("reservation", page_id).content
    names = ("service_id", "amount", "from_day", "until_day")
    return {"page_id": page_id, **{n: getattr(content, n) for n in names}, **changes}


def test_contract_missing(office):
    office.assert_refused(
        "contract_missing",
        "reserve_capacity",
        **{**held(office, office.preserved), "page_id": office.decoy["page_id"]},
    )


def test_below_contract(office):
    page = office.preserved
    now = held(office, page)
    other = next(s for s in office.world.tables["services"] if s != now["service_id"])
    for change in (
        {"amount": now["amount"] - 1},
        {"from_day": now["from_day"] + 1},
        {"until_day": now["until_day"] - 1},
        {"service_id": other},
    ):
        office.assert_refused("below_contract", "reserve_capacity", **{**now, **change})
    assert office.gateway.events[-1].check is None


def test_outlives_quota(office):
    for page in office.pages:
        content = office.world.newest_of("contract", page).content.content
        expiry = min(lot.expires_on for lot in content.used)
        office.assert_refused("outlives_quota", "reserve_capacity", **held(office, page, until_day=expiry + 1))


def test_capacity_exceeded(office):
    page = office.preserved
    service = office.world.tables["services"][held(office, page)["service_id"]]
    office.assert_refused("capacity_exceeded", "reserve_capacity", **held(office, page, amount=service.capacity + 1))
    office.assert_refused("capacity_exceeded", "reserve_capacity", **held(office, page, from_day=service.first_day - 1))


def test_a_new_reservation_replaces_the_old_one_and_the_ledger_adds_up(office):
    world, page = office.world, office.pages[0]
    now = held(office, page)
    office.do("reserve_capacity", **now)
    assert world.capacity.conserved()
    rows = office.do("list_reservations", service_id=now["service_id"])["items"]
    assert [r["reservation_id"] for r in rows].count(world.newest_of("reservation", page).id) == 1
    assert rows == sorted(rows, key=lambda r: (r["from_day"], r["reservation_id"]))


# -- documents and review ----------------------------------------------------------------------------------------------


def document(office: Office, page_id: str, **changes: Any) -> dict[str, Any]:
    arguments = {
        "page_id": page_id,
        "base_revision": office.newest("revision", page_id),
        "contract": office.newest("contract", page_id),
        "statement": statement(office.do("get_contract", page_id=page_id)["content"]),
        "clauses": list(office.world.newest_of("revision", page_id).content.clauses),
        "text": "Once more.",
    }
    return {**arguments, **changes}


def test_revision_conflict(office):
    office.assert_refused(
        "revision_conflict", "revise_document", **document(office, office.preserved, base_revision=None)
    )
    earlier = office.newest("revision", office.reworked).partition("@")[0] + "@1"
    office.assert_refused(
        "revision_conflict", "revise_document", **document(office, office.reworked, base_revision=earlier)
    )


def test_contract_stale(office):
    earlier = office.newest("contract", office.reworked).partition("@")[0] + "@1"
    office.assert_refused("contract_stale", "revise_document", **document(office, office.reworked, contract=earlier))
    arguments = document(office, office.preserved)
    office.announce(office.preserved, office.own_field(office.preserved), -1)
    office.assert_refused("contract_stale", "revise_document", **arguments)


def request(office: Office, page_id: str, role: str = "engineering", **changes: Any) -> dict[str, Any]:
    arguments = {
        "page_id": page_id,
        "role": role,
        "reviewer_id": office.policy.memory.get(("reviewers", office.policy.rows[page_id]["project_id"]))[role][0],
        "contract": office.newest("contract", page_id),
        "document_revision": office.newest("revision", page_id),
    }
    return {**arguments, **changes}


def test_reviewer_not_eligible(office):
    page = office.preserved
    reviewers = office.policy.memory.get(("reviewers", office.policy.rows[page]["project_id"]))
    stranger = next(iter(set(office.world.standing["people"]) - {p for who in reviewers.values() for p in who}))
    wrong = (reviewers["engineering inside"][0], reviewers["security"][0], reviewers["author inside"][0], stranger)
    for person in wrong:
        office.assert_refused("reviewer_not_eligible", "request_signoff", **request(office, page, reviewer_id=person))
    event = office.gateway.events[-1]
    assert (event.check, event.goal) == (False, f"review:{page}")


def test_a_review_of_what_is_not_current(office):
    page = office.reworked
    contract, revision = (office.newest(k, page).partition("@")[0] + "@1" for k in ("contract", "revision"))
    office.assert_refused("contract_stale", "request_signoff", **request(office, page, contract=contract))
    office.assert_refused("revision_conflict", "request_signoff", **request(office, page, document_revision=revision))


def test_a_statement_that_disagrees_is_a_failed_check_and_no_refusal(office):
    page = office.preserved
    stated = document(office, page)["statement"]
    revision = revise(office, page, office.newest("contract", page), {**stated, "used": stated["used"] + 1})
    answer = sign(office, office.policy, page, "engineering", office.newest("contract", page), revision)
    assert (answer["outcome"], answer["reasons"]) == ("changes_requested", ["statement_disagrees"])
    event = office.gateway.events[-1]
    assert (event.check, event.reason, event.goal) == (False, "statement_disagrees", f"review:{page}")


def asked(office: Office, role: str) -> tuple[str, str]:
    """A page of which a role asks a clause, and the clause."""
    for page_id, found in office.world.tables["clause_requests"].items():
        if found.role == role:
            return page_id, found.clause
    raise LookupError(role)


def test_asking_for_a_clause_is_no_check_and_dropping_it_is_a_failed_one():
    office = Office("expiring-reservations/mixed/chain-join")
    for role in ("security", "engineering"):
        page, clause = asked(office, role)
        mentions = [e for e in office.gateway.events if clause.encode() in e.observation and e.goal == f"review:{page}"]
        first = next(e for e in mentions if e.tool == "request_signoff")
        assert b'"reasons":["clause_requested"]' in first.observation
        assert first.check is None
        contract = office.newest("contract", page)
        revision = revise(office, page, contract, document(office, page)["statement"], clauses=[])
        answer = sign(office, office.policy, page, role, contract, revision)
        assert answer["reasons"] == ["clause_missing"]
        assert office.gateway.events[-1].reason == "clause_missing"


def test_a_clause_given_beforehand_need_not_be_asked_for():
    bench = Bench(calibrated("docs", "64K", "expiring-reservations/mixed/chain-join"))
    policy = bench.task.environment.policy()
    assert isinstance(policy, DocsPolicy)
    for page_id, found in bench.world.tables["clause_requests"].items():
        policy.clauses[page_id] = [found.clause]
    bench.reference(policy=policy)
    assert bench.evaluate().success
    assert not any(b"clause_requested" in e.observation for e in bench.gateway.events if e.tool == "request_signoff")


def test_signoff_missing_and_stale(office):
    page = office.reworked
    arguments = {
        "page_id": page,
        "contract": office.newest("contract", page),
        "document_revision": office.newest("revision", page),
    }
    security, engineering = (office.world.signoff_of(page, r).ref for r in ("security", "engineering"))
    office.assert_refused("signoff_missing", "record_decision", **arguments, signoffs=[security])
    earlier = engineering.partition("@")[0] + "@1"
    office.assert_refused("signoff_stale", "record_decision", **arguments, signoffs=[security, earlier])
    stated = document(office, page)["statement"]
    revision = revise(office, page, arguments["contract"], {**stated, "used": 0})
    arguments["document_revision"] = revision
    office.assert_refused("signoff_stale", "record_decision", **arguments, signoffs=[security, engineering])
    refused = sign(office, office.policy, page, "engineering", arguments["contract"], revision)["signoff"]
    office.assert_refused("signoff_missing", "record_decision", **arguments, signoffs=[security, refused])


# -- publication and tracker -------------------------------------------------------------------------------------------


def test_decision_stale(office):
    page = office.reworked
    earlier = office.newest("decision", page).partition("@")[0] + "@1"
    office.assert_refused("decision_stale", "publish_page", page_id=page, decision=earlier)
    event = office.gateway.events[-1]
    assert (event.check, event.goal) == (False, f"publication:{page}")
    office.announce(office.preserved, office.own_field(office.preserved), -1)
    decision = office.newest("decision", office.preserved)
    office.assert_refused("decision_stale", "publish_page", page_id=office.preserved, decision=decision)


def test_reservation_missing():
    """Everything up to the decision, without a reservation."""

    class Unreserved(DocsPolicy):
        def _reserve(self, page_id):
            self.booked[page_id] = {}
            yield from ()

    bench = Bench(calibrated("docs", "64K", CONFIGURATION))
    bench.reference(policy=Unreserved())
    assert bench.refused is not None
    assert bench.refused.error["code"] == "reservation_missing"


def test_parent_stale_at_publication(office):
    """A mark by an entry that the child did not take does not mark the child; it may still not be published again."""
    page = next(p for p in office.pages if office.policy.parents[p])
    decision = decide(office, office.policy, page)
    parent = office.policy.parents[page][0]
    office.announce(parent, office.own_field(parent), -1)
    assert office.world.artifacts[decision].status == "current"
    office.assert_refused("parent_stale", "publish_page", page_id=page, decision=decision)


def test_item_foreign(office):
    page = office.preserved
    tracker = office.world.get("tracker_items", office.world.items[page]).tracker_id
    items = office.world.standing["tracker_items"].values()
    foreign = next(i.item_id for i in items if i.tracker_id != tracker)
    office.assert_refused(
        "item_foreign",
        "bind_tracker_item",
        item_id=foreign,
        page_id=page,
        publication=office.newest("publication", page),
    )
    event = office.gateway.events[-1]
    assert (event.check, event.goal) == (False, f"page:{page}")


def test_publication_superseded_and_marked(office):
    page = office.reworked
    publication = office.newest("publication", page)
    call = {"item_id": office.world.items[page], "page_id": page}
    earlier = publication.partition("@")[0] + "@1"
    office.assert_refused("publication_superseded", "bind_tracker_item", **call, publication=earlier)
    office.announce(page, office.own_field(page), -1)
    office.assert_refused("stale_input", "bind_tracker_item", **call, publication=publication)


# -- the change window -------------------------------------------------------------------------------------------------


def test_not_announced_and_not_requested(office):
    bulletin = office.world.bulletins[0]
    pages = [office.preserved]
    office.assert_refused(
        "not_announced", "file_impact_statement", bulletin_id=bulletin.proposal.proposal_id, page_ids=pages
    )
    office.assert_refused(
        "not_requested",
        "file_impact_statement",
        bulletin_id=bulletin.bulletin_id,
        page_ids=[*pages, office.decoy["page_id"]],
    )
    office.assert_refused("bad_argument", "file_impact_statement", bulletin_id=bulletin.bulletin_id, page_ids=pages * 2)


def test_a_bulletin_is_unknown_until_it_is_announced():
    bench = Bench(calibrated("docs", "64K", CONFIGURATION))
    bulletin = bench.world.bulletins[0]
    bench.assert_refused("not_announced", "file_impact_statement", bulletin_id=bulletin.bulletin_id, page_ids=[])
    bench.assert_refused("unknown_id", "get_artifact", ref=f"{bulletin.block.block_id}@1")
    assert not bench.do("list_notices")["items"]


def test_polling_while_something_is_open_changes_nothing():
    bench = Bench(calibrated("docs", "64K", CONFIGURATION))
    before = bench.gateway.state_digest()
    answer = bench.do("poll_change_window")
    pages = len(bench.world.items)
    assert answer == {"state": "waiting", "announced": 0, "pages_open": pages, "statements_open": 0}
    assert bench.gateway.state_digest() == before


def test_polling_after_the_end_changes_nothing(office):
    before = office.gateway.state_digest()
    assert office.do("poll_change_window") == {"state": "closed", "announced": 2}
    assert office.gateway.state_digest() == before


def test_script_failed_names_the_rule(office):
    error = office.assert_refused(
        "script_failed",
        "run_skill_script",
        skill="reconcile-interface-contracts",
        script="reconcile_contract",
        input={"terms": {}},
    )
    assert "input must have exactly the fields" in error["message"]
