"""The rules of the ledger office, 1 to 13 of its specification, on values worked by hand (see office.py for those)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from skillhorizon.envs.finance import goals
from skillhorizon.envs.finance.records import (
    Component,
    Contract,
    CreditNote,
    Evidence,
    IdentityMap,
    Line,
    MapEntries,
    Put,
    Row,
    SourceRecords,
)
from skillhorizon.envs.finance.rules import account_of, admitted_classes, allocation, head, minor_of, totals_of
from tests.envs.finance.office import (
    COMPONENTS,
    CONTRACTS,
    DETAILS,
    EVIDENCE,
    MAPS,
    RECORDS,
    SUSPENSE,
    Office,
    adjusted,
    allocated,
)


@pytest.fixture
def office() -> Office:
    return Office()


def with_records(table: str, *records: tuple[str, object]) -> Office:
    """An office that had these records from its beginning."""
    office = Office()
    office.strike(*(Put(table, key, record) for key, record in records), keys=())
    return office


# -- 1 contract, 2 authority -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period", "contract"),
    [("2031-01", "ctr-1"), ("2031-06", "ctr-1"), ("2031-07", "ctr-2"), ("2031-12", "ctr-2")],
)
def test_rule_1_the_contract_holds_the_booking_month_both_ends_included(office, period, contract):
    source = replace(office.world.source("src-i1"), booking_period=period)
    assert office.world.contract_for(source).contract_id == contract


def authority(office: Office, period: str) -> str | None:
    found = office.world.authority("idn-a", period)
    return found and found.map_id


def test_rule_2_a_map_counts_from_the_first_publication_of_its_stage_on_and_for_good(office):
    assert authority(office, "2031-08") == "map-1"  # map-2 waits for stage 1
    office.stage("stg-1")
    assert authority(office, "2031-08") == "map-2"
    office.aggregate("src-m1")
    assert office.world.closure_of("stg-1").status == "stale"
    assert authority(office, "2031-08") == "map-2"  # stage 1 has to be closed again; what it released stays


@pytest.mark.parametrize(
    ("period", "expected"),
    [("2031-07", "map-1"), ("2031-08", "map-2"), ("2031-09", "map-2"), ("2031-10", "map-1"), ("2030-12", None)],
)
def test_rule_2_outside_its_range_a_superseding_map_takes_nothing_away(office, period, expected):
    office.stage("stg-1")
    assert authority(office, period) == expected


def test_rule_2_the_last_of_a_chain_has_authority(office):
    # map-3 supersedes map-2 in September alone, and waits for the same stage
    third = IdentityMap("map-3", "idn-a", "2031-09", "2031-09", "map-2", "stg-1")
    office.strike(Put("map_entries", "map-3", MapEntries(())), Put("identity_maps", "map-3", third), keys=())
    assert authority(office, "2031-09") == "map-1"
    released = office.stage("stg-1")["released_maps"]
    assert [m["map_id"] for m in released] == ["map-2", "map-3"]
    assert authority(office, "2031-09") == "map-3"
    assert authority(office, "2031-08") == "map-2"


# -- 3 heads, 4 amounts ----------------------------------------------------------------------------------------------

SALE = Row("r01", "ord", 1, "sale", "10", "d1", "c1")
CORRECTION = Row("r02", "ord", 2, "correction", "20", "d2", "c2")
METADATA = Row("r03", "ord", 3, "metadata", "30", "d3", "c3")
WITHDRAWAL = Row("r04", "ord", 4, "withdrawal", "0", "d4", "c4")
LATER = Row("r05", "ord", 5, "correction", "50", "d5", "c5")


@pytest.mark.parametrize(
    ("rows", "first", "latest"),
    [
        ([SALE], SALE, SALE),
        ([SALE, CORRECTION], SALE, CORRECTION),
        ([CORRECTION, SALE], SALE, CORRECTION),  # listing order means nothing
        ([SALE, METADATA], SALE, SALE),  # metadata is no amount, however late
        ([SALE, CORRECTION, METADATA], SALE, CORRECTION),
        ([SALE, WITHDRAWAL], SALE, None),
        ([LATER, WITHDRAWAL, SALE], SALE, None),  # a correction after the withdrawal does not revive the order
    ],
)
def test_rule_3_the_head_of_an_order(rows, first, latest):
    assert head(rows, "first") == first
    assert head(rows, "latest_revision") == latest


@pytest.mark.parametrize(
    ("amount", "scale", "sign", "minor"),
    [
        ("12.34", 2, 1, 1234),
        ("12.34", 2, -1, -1234),
        ("12.3", 2, 1, 1230),
        ("1234", 0, 1, 1234),
        ("1234", 2, -1, -123400),
        ("12.34", 0, 1, None),  # a third of a minor unit does not exist: another contract's amount
        ("12.345", 2, 1, None),
    ],
)
def test_rule_4_amounts_are_exact_or_none(amount, scale, sign, minor):
    assert minor_of(amount, Contract("ctr", "fmt", "2031-01", "2031-12", "debit", scale, sign)) == minor


def test_rule_4_the_account_stands_in_the_contracts_column():
    assert account_of(SALE, CONTRACTS[0]) == "d1"
    assert account_of(SALE, CONTRACTS[1]) == "c1"


def test_rules_1_to_4_together(office):
    # the working stands beside the details in office.py
    office.detail("src-i1")
    assert office.aggregate("src-i1")["aggregate"] == "agg-i1@1"
    assert office.world.true_postings(office.world.source("src-i1")) == {"ent-b": 1250, "ent-c": 305}
    assert goals.bindings(office.world, None, "src-i1") is None


def test_rule_3_under_first_nothing_later_counts():
    first = replace(Office().world.source("src-i1"), conflict_policy="first")
    office = with_records("sources", ("src-i1", first))
    # ord-p 10.00 on acc-1, ord-q 7.00 on acc-1 whatever came after it, ord-s 3.05 on acc-3
    assert office.world.true_postings(first) == {"ent-a": 1000 + 700, "ent-c": 305}


# -- 5 what a submission supports ------------------------------------------------------------------------------------


def item(order: str, row: str, entity: str, minor: int) -> dict[str, object]:
    return {"order": order, "row": row, "entity": entity, "minor": minor}


# By ctr-2 the amount 12.50 of ord-p is no whole number, and that of ord-t is -400; by ctr-1 it is 400 x 100.
WRONG_BUT_SUPPORTED = {
    "contract": ("src-i2", {"contract_id": "ctr-1", "items": [item("ord-t", "r02", "ent-a", 40_000)]}),
    "map": ("src-i2", {"identity_map_id": "map-1", "items": [item("ord-t", "r02", "ent-b", -400)]}),
    "policy": ("src-i2", {"conflict_policy": "latest_revision"}),
    "row": ("src-i2", {"items": [item("ord-t", "r01", "ent-c", -450)]}),
    "metadata row": ("src-i1", {"items": [item("ord-p", "r03", "ent-a", 9999), item("ord-s", "r07", "ent-c", 305)]}),
    "withdrawn order": ("src-i1", {"items": [*DETAILS["src-i1"]["items"], item("ord-q", "r06", "ent-a", 800)]}),
    # without crn-1: 1000 open, still 400 applied
    "note left out": ("src-r1", {"items": [allocated("lin-1", "inv-1", [], 400, 0, 0), DETAILS["src-r1"]["items"][1]]}),
    # with the void note: 270 open
    "void note": (
        "src-r1",
        {"items": [DETAILS["src-r1"]["items"][0], allocated("lin-2", "inv-2", ["crn-4"], 270, 0, 50)]},
    ),
    # with the note approved a month later: 850 open
    "late note": (
        "src-r1",
        {"items": [allocated("lin-1", "inv-1", ["crn-1", "crn-2"], 400, 0, 0), DETAILS["src-r1"]["items"][1]]},
    ),
    "reissue": ("src-r1", {"items": [allocated("lin-1", "inv-1r", [], 400, 0, 0), DETAILS["src-r1"]["items"][1]]}),
    # the other customer's invoice: 900 open
    "other invoice": ("src-r1", {"items": [allocated("lin-2", "inv-1", ["crn-1"], 320, 0, 0)]}),
    "superseded document": ("src-m1", {"items": [adjusted("cmp-1", "doc-1", "ent-a", 100)]}),
    "memo": ("src-m1", {"items": [adjusted("cmp-1", "doc-3", "ent-a", 8999)]}),
    "later document": ("src-m1", {"items": [adjusted("cmp-1", "doc-4", "ent-a", 500)]}),
    "withdrawn document": ("src-m1", {"items": [adjusted("cmp-2", "doc-5", "ent-b", -50)]}),
    "document overlooked": ("src-m1", {"items": [adjusted("cmp-1", None, "ent-a", 0)]}),
}


@pytest.mark.parametrize("name", WRONG_BUT_SUPPORTED)
def test_rule_5_another_selection_is_accepted_and_costs_the_bindings(office, name):
    source_id, changes = WRONG_BUT_SUPPORTED[name]
    if source_id == "src-i2":
        office.stage("stg-1")
    office.detail(source_id, **changes)
    assert goals.bindings(office.world, None, source_id).endswith("cites a wrong selection")


def test_rule_5_an_item_left_out_is_accepted_and_costs_the_amounts(office):
    office.detail("src-i1", items=DETAILS["src-i1"]["items"][1:])
    office.aggregate("src-i1", {"ent-c": 305})
    assert goals.bindings(office.world, None, "src-i1") is None
    assert goals.amounts(office.world, None, "src-i1") is not None


# -- 6 allocation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paid", "open_minor", "tolerance", "expected"),
    [
        (400, 900, 10, (400, 0, 0)),  # rest 500, above the tolerance
        (890, 900, 10, (890, 10, 0)),  # rest 10, the tolerance itself
        (889, 900, 10, (889, 0, 0)),  # rest 11
        (900, 900, 10, (900, 0, 0)),  # nothing is left to write off
        (950, 900, 10, (900, 0, 50)),
        (60, 0, 10, (0, 0, 60)),
        (899, 900, 0, (899, 0, 0)),  # no tolerance
    ],
)
def test_rule_6_applied_written_off_unapplied(paid, open_minor, tolerance, expected):
    assert allocation(paid, open_minor, tolerance) == expected


def test_rule_6_notes_count_if_approved_by_the_booking_month_also_on_the_reissue(office):
    def counted(invoice: str, period: str) -> list[str]:
        return [note.credit_id for note in office.world.counted_credits(invoice, period)]

    assert counted("inv-1", "2031-06") == []
    assert counted("inv-1", "2031-07") == ["crn-1"]  # crn-3 is a draft
    assert counted("inv-1", "2031-08") == ["crn-1", "crn-2"]
    assert counted("inv-2", "2031-12") == []  # crn-4 is void
    assert office.world.original("inv-1r") == "inv-1"


def test_rule_6_three_batches_on_one_invoice(office):
    for source_id in ("src-r1", "src-r2", "src-r3"):
        office.package(source_id)
        assert goals.amounts(office.world, None, source_id) is None
        assert goals.bindings(office.world, None, source_id) is None
    page = office.do("list_invoices", invoice_ids=["inv-1", "inv-1r"])
    assert page["items"][0]["applications"] == [
        {"source_id": "src-r1", "minor": 400},
        {"source_id": "src-r2", "minor": 450},  # 445 and 5 written off
        {"source_id": "src-r3", "minor": 0},
    ]
    assert page["items"][1]["applications"] == []


def test_rule_6_earlier_lines_of_the_batch_by_seq_and_credits_above_the_invoice():
    # lin-b, listed first, comes second: lin-a takes 500 of 900, lin-b 400 of the rest and keeps 30
    lines = SourceRecords(lines=(Line("lin-b", 2, 430, "inv-1"), Line("lin-a", 1, 500, "inv-1r")))
    office = with_records("records", ("src-r1", lines))
    items = [allocated("lin-b", "inv-1", ["crn-1"], 400, 0, 30), allocated("lin-a", "inv-1", ["crn-1"], 500, 0, 0)]
    assert office.world.true_postings(office.world.source("src-r1")) == {"ent-a": -900, SUSPENSE: -30}
    office.detail("src-r1", items=items)
    # a note of 2000 leaves nothing open, not less than nothing
    office = with_records("credit_notes", ("crn-1", CreditNote("crn-1", "inv-1", 2000, "approved", "2031-07")))
    office.detail("src-r1", items=[allocated("lin-1", "inv-1", ["crn-1"], 0, 0, 400)])


# -- 7 adjustment ----------------------------------------------------------------------------------------------------


def decisive(period: str, *changed: Evidence) -> str | None:
    office = with_records("evidence", *((d.document_id, d) for d in changed))
    document = office.world.authoritative(COMPONENTS[0], period)
    return document and document.document_id


DOC_1, DOC_2, DOC_3, DOC_4, _ = EVIDENCE


def test_rule_7_the_authoritative_document():
    assert decisive("2031-05") is None
    assert decisive("2031-06") == "doc-1"  # doc-2 supersedes it, but is not issued yet
    assert decisive("2031-07") == "doc-2"  # doc-3 is a memo
    assert decisive("2031-08") == "doc-4"  # issued later than doc-2
    assert decisive("2031-07", replace(DOC_2, status="withdrawn")) == "doc-1"  # what is withdrawn supersedes nothing
    assert decisive("2031-07", replace(DOC_2, class_="opinion")) == "doc-1"  # an accrual admits no opinion
    assert decisive("2031-07", replace(DOC_1, issued="2031-07", seq=9)) == "doc-2"  # superseded, although the newest
    assert decisive("2031-07", replace(DOC_1, issued="2031-07", seq=9), replace(DOC_2, supersedes=None)) == "doc-1"
    assert decisive("2031-08", replace(DOC_4, issued="2031-07", seq=1)) == "doc-2"  # among equals the greater seq


def test_rule_7_classes_of_evidence():
    assert {name: set(classes) for name, classes in admitted_classes().items()} == {
        "accrual": {"statement", "invoice"},
        "provision": {"contract", "opinion"},
        "prepayment": {"invoice", "contract"},
        "deferral": {"contract", "statement"},
    }


def test_rule_7_carrying_is_opening_and_the_entries_of_earlier_packs(office):
    component: Component = COMPONENTS[0]
    office.package("src-m1")
    office.package("src-m2")
    assert office.world.carrying(component, "src-m1") == 1000
    assert office.world.carrying(component, "src-m2") == 1000 + 200
    row = office.do("list_components", component_ids=["cmp-1"])["items"][0]
    assert row["carrying_minor"] == 1000 + 200 + 300
    assert row["entries"] == [{"source_id": "src-m1", "minor": 200}, {"source_id": "src-m2", "minor": 300}]
    office.detail("src-m1")  # again, on the carrying amount before it
    assert goals.amounts(office.world, None, "src-m2") is None


# -- 8 postings ------------------------------------------------------------------------------------------------------


def test_rule_8_postings(office):
    assert totals_of([("b", 5), ("a", 2), ("b", -5), ("a", 1)]) == {"a": 3}  # zero counts as absent
    assert office.detail("src-r1")["postings"] == [
        {"entity": "ent-a", "minor": -400},
        {"entity": SUSPENSE, "minor": 0},
        {"entity": "ent-b", "minor": -300},
        {"entity": SUSPENSE, "minor": -20},
    ]
    office.aggregate("src-r1", {"ent-a": -400, "ent-b": -300, SUSPENSE: -20, "ent-c": 0})
    assert office.world.aggregate_of("src-r1").content.totals == {"ent-a": -400, "ent-b": -300, SUSPENSE: -20}
    office.detail("src-r2")
    # written off counts as settled, like applied: -(445 + 5)
    office.aggregate("src-r2", {"ent-a": -450})


# -- 9 closure -------------------------------------------------------------------------------------------------------


def test_rule_9_closings_roll_forward_without_what_is_deferred(office):
    office.all_stages()
    closures = [office.world.closure_of(s.stage_id).content for s in office.world.stages]
    assert [c.gross_minor for c in closures] == [1475, 550, 66]
    assert closures[1].deferred == ("agg-l2@1",)
    assert closures[2].closing == {"ent-a": -356, "ent-b": 950, "ent-c": -95, SUSPENSE: -80}
    assert goals.stage_accounting(office.world, None) is None


def test_rule_9_a_late_source_under_current_is_silent_and_wrong(office):
    office.stage("stg-1")
    for source_id in office.world.sources_of["stg-2"]:
        office.package(source_id)
    right = office.closing("stg-2")
    closing = {**right["closing"], "ent-a": -350 - 5}
    current = [*right["current"], *right["deferred"]]
    office.do("close_stage", **office.closing("stg-2", current=current, deferred=[], closing=closing))
    assert "agg-l2@1" in goals.stage_accounting(office.world, None)


# -- 10 reviewers ----------------------------------------------------------------------------------------------------


def test_rule_10_authority_to_the_unit_and_independence_of_the_neighbours(office):
    office.stage("stg-1")
    for source_id in office.world.sources_of["stg-1"]:
        office.aggregate(source_id)
    closure = office.do("close_stage", **office.closing("stg-1"))["closure"]
    office.assert_refused("authority_exceeded", "review_stage", closure=closure, reviewer_id="rvr-5")  # 1474 < 1475
    office.do("review_stage", closure=closure, reviewer_id="rvr-4")
    office.do("review_stage", closure=closure, reviewer_id="rvr-1")  # who reviewed this very stage before may again
    for source_id in office.world.sources_of["stg-2"]:
        office.package(source_id)
    second = office.do("close_stage", **office.closing("stg-2"))["closure"]
    office.assert_refused("not_independent", "review_stage", closure=second, reviewer_id="rvr-1")
    office.do("review_stage", closure=second, reviewer_id="rvr-4")  # no longer the latest reviewer of stage 1
    office.assert_refused("not_independent", "review_stage", closure=closure, reviewer_id="rvr-4")  # of the stage after


def test_rule_10_the_release_wants_no_limit_and_not_the_last_stages_reviewer(office):
    office.all_stages()
    latest = [office.world.publications_of(s.stage_id)[-1].ref for s in office.world.stages]
    call = {"publications": latest, "restated": []}
    office.assert_refused("authority_exceeded", "review_release", **call, reviewer_id="rvr-4")
    office.assert_refused("not_independent", "review_release", **call, reviewer_id="rvr-3")
    office.do("review_release", **call, reviewer_id="rvr-2")
    assert goals.release_review(office.world, None) is None


def test_rule_10_restated_are_the_stages_with_more_than_one_publication(office):
    office.all_stages()
    office.aggregate("src-r3")  # a new version, equal totals
    office.do("preserve_view", source_id="src-r3", aggregate="agg-r3@1", publication="pub-3@1")
    office.publish("stg-3")
    latest = ["pub-1@1", "pub-2@1", "pub-3@2"]
    for restated, right in ((["stg-3"], True), ([], False), (["stg-2", "stg-3"], False)):
        office.do("review_release", publications=latest, restated=restated, reviewer_id="rvr-1")
        assert (goals.release_review(office.world, None) is None) == right


# -- 11 staleness (its cases are in test_staleness.py), 12 history, 13 obligations -----------------------------------


def test_rule_11_is_a_comparison_of_values_with_those_at_acceptance(office):
    office.detail("src-r1")
    assert office.world.values_cited(office.world.artifact("alc-r1@1").content, False) == {
        "line lin-1": 400,
        "credits of inv-1": 100,
        "applications to inv-1": 0,
        "line lin-2": 320,
        "credits of inv-2": 0,
        "applications to inv-2": 0,
    }


def test_rule_12_history_is_required_of_what_was_published_and_is_no_longer_current(office):
    office.package("src-m1")
    office.aggregate("src-m1")  # agg-m1@1 was never published
    for source_id in ("src-i1", "src-r1"):
        office.package(source_id)
    office.publish("stg-1")
    assert office.world.history_required("src-m1") == []
    office.detail("src-m1")  # agg-m1@2, published, is stale
    assert office.world.history_required("src-m1") == ["agg-m1@2"]
    office.aggregate("src-m1")  # and now superseded
    assert office.world.history_required("src-m1") == ["agg-m1@2"]
    assert goals.history_kept(office.world, None, "src-m1") is not None
    office.do("preserve_view", source_id="src-m1", aggregate="agg-m1@2", publication="pub-1@1")
    assert goals.history_kept(office.world, None, "src-m1") is None
    assert office.do("get_source", source_id="src-m1")["historical_views"] == ["hsv-m1-2@1"]
    # the view is there, but no closure holds it
    assert "hsv-m1-2@1" not in office.world.closure_of("stg-1").content.history
    assert goals.incorporated(office.world, None, "src-m1") is not None
    office.publish("stg-1")
    assert goals.incorporated(office.world, None, "src-m1") is None


def test_rule_12_a_view_may_name_any_publication_that_carried_the_aggregate(office):
    office.stage("stg-1")
    office.aggregate("src-m1")
    office.publish("stg-1")  # pub-1@2 carries agg-i1@1 as pub-1@1 did
    office.detail("src-i1")
    office.assert_refused(
        "not_published", "preserve_view", source_id="src-m1", aggregate="agg-m1@1", publication="pub-1@2"
    )
    office.do("preserve_view", source_id="src-i1", aggregate="agg-i1@1", publication="pub-1@2")
    assert goals.history_kept(office.world, None, "src-i1") is None


def test_rule_13_an_obligation_rests_on_the_first_or_the_latest_publication(office):
    office.all_stages()
    office.aggregate("src-i1")
    office.publish("stg-1")
    for stage_id in ("stg-2", "stg-3"):
        office.publish(stage_id)
    review = office.release()

    def release(obligation: str, publication: str) -> bool:
        office.do("release_obligation", obligation_id=obligation, publication=publication, review=review)
        return goals.obligations_released(office.world, None) is None

    assert not release("obg-1", "pub-1@1")  # obg-2 is open
    assert release("obg-2", "pub-1@2")
    assert not release("obg-2", "pub-1@1")
    assert not release("obg-1", "pub-1@2")
    release("obg-2", "pub-1@2")
    assert release("obg-1", "pub-1@1")  # a second call replaces the first
    assert {o["status"] for o in office.do("list_obligations")["items"]} == {"released"}


def test_records_of_the_office_are_as_the_rules_say(office):
    """The hand-made office itself: ranges abut, every source has its contract, and maps have one base."""
    assert [c.effective_from for c in CONTRACTS] == ["2031-01", "2031-07"]
    assert [m.supersedes for m in MAPS] == [None, "map-1"]
    for source_id, records in RECORDS.items():
        assert office.world.source(source_id).records == records.count
