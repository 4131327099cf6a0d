"""Rule 11: exactly what rests on a changed value becomes stale, and nothing else (values worked out in office.py)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from skillhorizon.core.world import CURRENT
from skillhorizon.envs.finance import goals
from skillhorizon.envs.finance.records import (
    CreditNote,
    Evidence,
    IdentityMap,
    Line,
    MapEntries,
    Put,
    Row,
    SourceRecords,
)
from tests.envs.finance.office import (
    CREDIT_NOTES,
    DETAILS,
    ENTRIES,
    EVIDENCE,
    RECORDS,
    SOURCES,
    Office,
    adjusted,
    allocated,
    amendment,
)

DETAIL = {"i": "nrm", "r": "alc", "m": "adj", "l": "nrm"}


@pytest.fixture
def office() -> Office:
    """All three stages published."""
    return Office().all_stages()


def stale(*sources: str, from_stage: int | None = None) -> set[str]:
    """First versions of details and aggregates of these sources, and of closures and reviews from a stage on."""
    made = {f"{kind}-{s}@1" for s in sources for kind in (DETAIL[s[0]], "agg")}
    return made | {f"{kind}-{n}@1" for n in range(from_stage or 4, 4) for kind in ("cls", "rvw")}


def corrected(source_id: str, **records: Any) -> tuple[Put, Put]:
    source = next(s for s in SOURCES if s.source_id == source_id)
    return Put("records", source_id, SourceRecords(**records)), Put("sources", source_id, replace(source, revision=2))


def with_row(source_id: str, row: Row) -> tuple[Put, Put]:
    return corrected(source_id, rows=(*RECORDS[source_id].rows, row))


# -- rows ------------------------------------------------------------------------------------------------------------


def test_a_correction_under_latest_revision_strikes_its_source_and_the_closures_from_its_stage_on(office):
    puts = with_row("src-i1", Row("r08", "ord-p", 4, "correction", "13.00", "acc-2", "acc-3"))
    assert office.strike(*puts, keys=("records:src-i1",)) == stale("i1", from_stage=1)


@pytest.mark.parametrize(
    "row",
    [
        Row("r08", "ord-p", 4, "metadata", "13.00", "acc-2", "acc-3"),
        Row("r08", "ord-q", 4, "correction", "13.00", "acc-2", "acc-3"),  # the order is withdrawn and not cited
        Row("r08", "ord-p", 4, "correction", "12.50", "acc-2", "acc-3"),  # the same value again
    ],
)
def test_a_row_that_leaves_the_heads_alone_strikes_nobody(office, row):
    assert office.strike(*with_row("src-i1", row), keys=("records:src-i1",)) == set()


def test_a_withdrawal_strikes_where_the_order_is_cited(office):
    puts = with_row("src-i1", Row("r08", "ord-s", 2, "withdrawal", "0.00", "acc-3", "acc-1"))
    assert office.strike(*puts, keys=("records:src-i1",)) == stale("i1", from_stage=1)


def test_a_correction_under_first_strikes_nobody(office):
    puts = with_row("src-i2", Row("r03", "ord-t", 3, "correction", "500", "acc-1", "acc-2"))
    assert office.strike(*puts, keys=("records:src-i2",)) == set()
    assert office.world.source("src-i2").revision == 2  # a submission now would have to name it


def test_the_policy_that_counts_is_the_one_cited():
    office = Office()
    office.stage("stg-1")
    office.detail("src-i2", conflict_policy="latest_revision")
    puts = with_row("src-i2", Row("r03", "ord-t", 3, "correction", "500", "acc-1", "acc-2"))
    assert office.strike(*puts, keys=("records:src-i2",)) == {"nrm-i2@1"}


# -- maps ------------------------------------------------------------------------------------------------------------


def superseding(account: str, period: str = "2031-08") -> tuple[Put, Put]:
    """A map that supersedes map-2 in one month and moves one account to ent-d."""
    entries = MapEntries(tuple((a, "ent-d" if a == account else e) for a, e in ENTRIES["map-2"].entries))
    identity = IdentityMap("map-3", "idn-a", period, period, "map-2", "stg-1")
    return Put("map_entries", "map-3", entries), Put("identity_maps", "map-3", identity)


def test_a_map_that_moves_an_unused_account_strikes_nobody(office):
    # in August src-i2 uses acc-2 and src-i3 uses acc-1
    assert office.strike(*superseding("acc-3"), keys=("maps:idn-a",)) == set()
    assert goals.bindings(office.world, None, "src-i2") is None


def test_a_map_that_moves_a_used_account_strikes_those_who_use_it(office):
    assert office.strike(*superseding("acc-2"), keys=("maps:idn-a",)) == stale("i2", from_stage=2)


def test_a_map_strikes_only_the_months_of_its_range(office):
    # src-i3 uses acc-1 in August, src-l2 uses it in September
    assert office.strike(*superseding("acc-1", "2031-09"), keys=("maps:idn-a",)) == stale("l2", from_stage=2)


def test_a_detail_that_had_not_cited_the_authority_rests_on_no_map():
    office = Office()
    office.stage("stg-1")
    wrong = {"order": "ord-t", "row": "r02", "entity": "ent-b", "minor": -400}
    office.detail("src-i2", identity_map_id="map-1", items=[wrong])
    assert office.strike(*superseding("acc-2"), keys=("maps:idn-a",)) == set()


def test_the_release_of_a_map_voids_what_was_made_before_it_on_accounts_that_it_moves():
    office = Office()
    early = {"order": "ord-t", "row": "r02", "entity": "ent-b", "minor": -400}
    office.detail("src-i2", identity_map_id="map-1", items=[early])
    office.detail("src-l2", identity_map_id="map-1")
    assert goals.bindings(office.world, None, "src-i2") is None  # map-1 is the authority as long as stage 1 is open
    answer = office.stage("stg-1")
    assert answer["released_maps"] == [{"map_id": "map-2", "identity_source": "idn-a"}]
    assert answer["invalidated"] == ["nrm-i2@1"]
    assert goals.bindings(office.world, None, "src-l2") is None  # acc-1 stays, so this one was right and is
    office.aggregate("src-m1")
    assert office.publish("stg-1")["released_maps"] == []


# -- remittances -----------------------------------------------------------------------------------------------------


def paid(source_id: str, line: Line) -> tuple[Put, Put]:
    lines = tuple(line if old.line == line.line else old for old in RECORDS[source_id].lines)
    return corrected(source_id, lines=lines)


def note(credit_id: str, status: str, approved: str | None) -> Put:
    old = next(n for n in CREDIT_NOTES if n.credit_id == credit_id)
    return Put("credit_notes", credit_id, replace(old, status=status, approved=approved))


@pytest.mark.parametrize(
    ("approved", "struck"),
    [
        ("2031-07", stale("r1", "r2", "r3", from_stage=1)),
        ("2031-08", stale("r2", "r3", from_stage=2)),
        ("2031-09", stale("r3", from_stage=3)),
        ("2031-10", set()),
    ],
)
def test_a_late_approval_strikes_the_batches_that_book_in_its_month_or_later(office, approved, struck):
    assert office.strike(note("crn-3", "approved", approved), keys=("credits:inv-1",)) == struck


@pytest.mark.parametrize("status", ["draft", "void"])
def test_a_note_that_does_not_count_strikes_nobody(office, status):
    written = Put("credit_notes", "crn-5", CreditNote("crn-5", "inv-1", 90, status, None))
    assert office.strike(written, keys=("credits:inv-1",)) == set()
    assert [n["credit_id"] for n in office.do("list_credit_notes", invoice_ids=["inv-1"])["items"]][-1] == "crn-5"


def test_a_paid_amount_strikes_its_batch_and_the_next_only_once_it_is_submitted_again(office):
    assert office.strike(*paid("src-r1", Line("lin-1", 1, 390, "inv-1r")), keys=("records:src-r1",)) == (
        stale("r1", from_stage=1)
    )
    items = [allocated("lin-1", "inv-1", ["crn-1"], 390, 0, 0), DETAILS["src-r1"]["items"][1]]
    answer = office.detail("src-r1", items=items)
    # 10 more are open for src-r2, and src-r3 counts what both before it applied
    assert set(answer["invalidated"]) == stale("r2", "r3")


def test_an_earlier_batch_that_applies_the_same_again_strikes_nobody_later(office):
    answer = office.detail("src-r1")
    assert set(answer["invalidated"]) == {"agg-r1@1"} | stale(from_stage=1)


def test_an_application_that_is_added_or_dropped_strikes_the_later_batch():
    office = Office()
    second = DETAILS["src-r1"]["items"][1:]  # the line on inv-1 is left out
    office.detail("src-r1", items=second)
    # 1000 - 150 = 850 open: the rest of 405 is above the tolerance
    office.detail("src-r2", items=[allocated("lin-3", "inv-1", ["crn-1", "crn-2"], 445, 0, 0)])
    assert office.detail("src-r1")["invalidated"] == ["alc-r2@1"]
    office.detail("src-r1", items=second)
    assert office.stale() == set()  # and valid again


def test_a_line_that_the_detail_left_out_does_not_strike_it():
    office = Office()
    office.detail("src-r1", items=DETAILS["src-r1"]["items"][:1])
    assert office.strike(*paid("src-r1", Line("lin-2", 2, 1, "inv-2")), keys=("records:src-r1",)) == set()


def test_a_grandchild_is_valid_again_by_itself_once_the_child_makes_good(office):
    office.strike(*paid("src-r1", Line("lin-1", 1, 395, "inv-1r")), keys=("records:src-r1",))
    items = [allocated("lin-1", "inv-1", ["crn-1"], 395, 0, 0), DETAILS["src-r1"]["items"][1]]
    office.detail("src-r1", items=items)
    office.aggregate("src-r1", {"ent-a": -395, "ent-b": -300, "ent-s": -20})
    assert {"alc-r2@1", "alc-r3@1"} <= office.stale()
    assert office.world.history_required("src-r3") == ["agg-r3@1"]
    # 1000 - 150 - 395 = 455 open, 445 applied, the rest of 10 is the tolerance: 395 + 455 = 850 as before
    office.detail("src-r2", items=[allocated("lin-3", "inv-1", ["crn-1", "crn-2"], 445, 10, 0)])
    assert not {"alc-r3@1", "agg-r3@1"} & office.stale()
    assert office.world.history_required("src-r3") == []
    assert office.world.artifacts["alc-r3@1"].cause is None
    assert "cls-3@1" in office.stale()  # its preceding closure is stale still


# -- evidence --------------------------------------------------------------------------------------------------------


def document(document_id: str, class_: str, issued: str, seq: int, status: str = "valid") -> Put:
    return Put("evidence", document_id, Evidence(document_id, "cmp-1", class_, issued, seq, 1250, status, None))


@pytest.mark.parametrize(
    ("put", "struck"),
    [
        (document("doc-6", "invoice", "2031-07", 5), stale("m1", from_stage=1)),
        (document("doc-6", "invoice", "2031-08", 5), stale("m2", from_stage=2)),
        (document("doc-6", "invoice", "2031-09", 5), set()),  # after both
        (document("doc-6", "memo", "2031-07", 5), set()),
        (document("doc-6", "opinion", "2031-07", 5), set()),  # no evidence for an accrual
        (document("doc-6", "invoice", "2031-06", 5), set()),  # older than doc-2
        (document("doc-6", "invoice", "2031-07", 5, "withdrawn"), set()),
        (Put("evidence", "doc-2", replace(EVIDENCE[1], status="withdrawn")), stale("m1", from_stage=1)),
        (Put("evidence", "doc-1", replace(EVIDENCE[0], status="withdrawn")), set()),  # superseded anyhow
        (Put("evidence", "doc-3", replace(EVIDENCE[2], status="withdrawn")), set()),
    ],
)
def test_a_document_strikes_the_packs_for_which_it_decides(office, put, struck):
    assert office.strike(put, keys=("evidence:cmp-1",)) == struck


def test_a_later_pack_is_struck_when_the_carrying_amount_differs(office):
    office.strike(document("doc-6", "invoice", "2031-07", 5), keys=("evidence:cmp-1",))
    answer = office.detail("src-m1", items=[adjusted("cmp-1", "doc-6", "ent-a", 250), DETAILS["src-m1"]["items"][1]])
    assert set(answer["invalidated"]) == stale("m2")


# -- aggregates, closures, and what never changes --------------------------------------------------------------------


def test_an_aggregate_goes_with_its_detail_and_closures_with_what_they_hold(office):
    assert set(office.detail("src-m2")["invalidated"]) == {"agg-m2@1"} | stale(from_stage=2)
    assert office.world.closure_of("stg-1").status == CURRENT


def test_a_deferred_aggregate_counts_like_a_current_one(office):
    assert set(office.aggregate("src-l2")["invalidated"]) == stale(from_stage=2)


def test_closing_again_voids_the_closures_after(office):
    answer = office.do("close_stage", **office.closing("stg-1"))
    assert set(answer["invalidated"]) == {"rvw-1@1"} | stale(from_stage=2)


def test_publications_views_and_released_obligations_never_change(office):
    review = office.release()
    release = office.do("publish_release", review=review)["publication"]
    office.do("release_obligation", obligation_id="obg-1", publication="pub-1@1", review=review)
    office.do("preserve_view", source_id="src-i1", aggregate="agg-i1@1", publication="pub-1@1")
    made = ["pub-1@1", "pub-2@1", "pub-3@1", "hsv-i1-1@1", "obr-1@1", release]
    before = {ref: office.world.artifacts[ref] for ref in made}
    puts = with_row("src-i1", Row("r08", "ord-p", 4, "correction", "13.00", "acc-2", "acc-3"))
    office.strike(*puts, keys=("records:src-i1",))
    assert {ref: office.world.artifacts[ref] for ref in made} == before
    items = [{**DETAILS["src-i1"]["items"][0], "row": "r08", "minor": 1300}, DETAILS["src-i1"]["items"][1]]
    office.detail("src-i1", items=items)
    office.aggregate("src-i1", {"ent-b": 1300, "ent-c": 305})
    office.publish("stg-1", closing={"ent-a": -200, "ent-b": 1000, "ent-c": 305, "ent-s": -20})
    for ref, artifact in before.items():
        assert office.world.artifacts[ref].content == artifact.content
        assert office.world.artifacts[ref].status == ("superseded" if ref == "pub-1@1" else CURRENT)
    # the review of the release names a publication that is no longer the latest
    assert review in office.stale()


def test_an_update_is_announced_when_it_fires_and_not_before():
    puts = with_row("src-i1", Row("r08", "ord-p", 4, "correction", "13.00", "acc-2", "acc-3"))
    office = Office(amendment(*puts, keys=("records:src-i1",), at=2))
    office.stage("stg-1")
    assert office.do("list_notices")["items"] == []
    assert office.do("list_records", source_id="src-i1")["items"][-1] == [
        "ord-s",
        1,
        "sale",
        "3.05",
        "acc-3",
        "acc-1",
        "r07",
    ]
    assert office.stage("stg-2")["invalidated"] == []  # it fires behind the call, so the answer says nothing of it
    (notice,) = office.do("list_notices")["items"]
    assert notice["subject_ids"] == ["src-i1", "src-i1"]
    assert office.stale() == stale("i1", from_stage=1) - {"cls-3@1", "rvw-3@1"}
    source = office.do("get_source", source_id="src-i1")
    assert (source["revision"], source["detail_stale"], source["aggregate_stale"]) == (2, True, True)
    assert source["history_required"] == ["agg-i1@1"]
    assert [s["closure_stale"] for s in office.do("list_stages")["items"]] == [True, True, False]
