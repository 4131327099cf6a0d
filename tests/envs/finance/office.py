"""A ledger office of three stages and nine sources, made and worked out by hand; the tests of FinanceOps stand in it.

Each source has its right detail and totals here, worked out from the records in the comments beside them, so a test
says only what it does otherwise.
"""

from __future__ import annotations

from typing import Any

from skillhorizon.core.gateway import Gateway
from skillhorizon.core.world import STALE, Update
from skillhorizon.envs.finance import ENVIRONMENT
from skillhorizon.envs.finance.records import (
    Amendment,
    Component,
    Contract,
    CreditNote,
    Evidence,
    Format,
    IdentityMap,
    Invoice,
    Line,
    MapEntries,
    Obligation,
    PackEntry,
    Put,
    Reviewer,
    Row,
    Source,
    SourceRecords,
    Stage,
)
from skillhorizon.envs.finance.world import FinanceWorld
from tests.envs.bench import Bench

SUSPENSE = "ent-s"

STAGES = (Stage("stg-1", 1, "2031-07"), Stage("stg-2", 2, "2031-08"), Stage("stg-3", 3, "2031-09"))
SOURCES = (
    Source("src-i1", "stg-1", 1, "integration", "2031-06", 7, 1, "fmt-x", "idn-a", "latest_revision"),
    Source("src-r1", "stg-1", 2, "receivables", "2031-07", 2, 1),
    Source("src-m1", "stg-1", 3, "maintenance", "2031-07", 2, 1),
    Source("src-i2", "stg-2", 1, "integration", "2031-08", 2, 1, "fmt-x", "idn-a", "first"),
    Source("src-r2", "stg-2", 2, "receivables", "2031-08", 1, 1),
    Source("src-m2", "stg-2", 3, "maintenance", "2031-08", 1, 1),
    Source("src-l2", "stg-2", 4, "integration", "2031-09", 1, 1, "fmt-x", "idn-a", "first"),  # after the cutoff
    Source("src-r3", "stg-3", 1, "receivables", "2031-09", 1, 1),
    Source("src-i3", "stg-3", 2, "integration", "2031-08", 1, 1, "fmt-x", "idn-a", "latest_revision"),
)
FORMAT = Format("fmt-x", ("order", "rev", "kind", "amount", "debit", "credit", "row"))
CONTRACTS = (
    Contract("ctr-1", "fmt-x", "2031-01", "2031-06", "debit", 2, 1),
    Contract("ctr-2", "fmt-x", "2031-07", "2031-12", "credit", 0, -1),
)
MAPS = (
    IdentityMap("map-1", "idn-a", "2031-01", "2031-12", None, None),
    IdentityMap("map-2", "idn-a", "2031-08", "2031-09", "map-1", "stg-1"),
)
ENTRIES = {
    "map-1": MapEntries((("acc-1", "ent-a"), ("acc-2", "ent-b"), ("acc-3", "ent-c"))),
    "map-2": MapEntries((("acc-1", "ent-a"), ("acc-2", "ent-c"), ("acc-3", "ent-c"))),  # moves acc-2 only
}
INVOICES = (
    Invoice("inv-1", "ent-a", 1000, "2031-05", None, 10, ("src-r1", "src-r2", "src-r3")),
    Invoice("inv-1r", "ent-a", 1000, "2031-05", "inv-1", 10, ("src-r1", "src-r2", "src-r3")),
    Invoice("inv-2", "ent-b", 300, "2031-05", None, 0, ("src-r1",)),
)
CREDIT_NOTES = (
    CreditNote("crn-1", "inv-1", 100, "approved", "2031-07"),  # the booking month of src-r1: counts there
    CreditNote("crn-2", "inv-1r", 50, "approved", "2031-08"),  # on the reissue; counts from src-r2 on
    CreditNote("crn-3", "inv-1", 70, "draft", None),
    CreditNote("crn-4", "inv-2", 30, "void", "2031-06"),
)
COMPONENTS = (
    Component("cmp-1", "accrual", "ent-a", 1000, ("src-m1", "src-m2")),
    Component("cmp-2", "provision", "ent-b", 500, ("src-m1",)),
)
EVIDENCE = (
    Evidence("doc-1", "cmp-1", "statement", "2031-06", 1, 1100, "valid", None),
    Evidence("doc-2", "cmp-1", "invoice", "2031-07", 2, 1200, "valid", "doc-1"),
    Evidence("doc-3", "cmp-1", "memo", "2031-07", 3, 9999, "valid", None),
    Evidence("doc-4", "cmp-1", "statement", "2031-08", 4, 1500, "valid", None),
    Evidence("doc-5", "cmp-2", "contract", "2031-07", 1, 450, "withdrawn", None),
)
REVIEWERS = (
    Reviewer("rvr-1", None),
    Reviewer("rvr-2", None),
    Reviewer("rvr-3", None),
    Reviewer("rvr-4", 1475),  # the gross of stage 1, to the unit
    Reviewer("rvr-5", 1474),
)
OBLIGATIONS = (
    Obligation("obg-1", "tax filing", "stg-1", "as_first_published"),
    Obligation("obg-2", "tax filing", "stg-1", "current"),
)
RECORDS = {
    "src-i1": SourceRecords(
        rows=(
            Row("r01", "ord-p", 1, "sale", "10.00", "acc-1", "acc-3"),
            Row("r02", "ord-p", 2, "correction", "12.50", "acc-2", "acc-3"),
            Row("r03", "ord-p", 3, "metadata", "99.99", "acc-1", "acc-3"),
            Row("r04", "ord-q", 1, "sale", "7.00", "acc-1", "acc-3"),
            Row("r05", "ord-q", 2, "withdrawal", "0.00", "acc-1", "acc-3"),
            Row("r06", "ord-q", 3, "correction", "8.00", "acc-1", "acc-3"),
            Row("r07", "ord-s", 1, "sale", "3.05", "acc-3", "acc-1"),
        )
    ),
    "src-i2": SourceRecords(
        rows=(
            Row("r01", "ord-t", 2, "correction", "450", "acc-1", "acc-3"),
            Row("r02", "ord-t", 1, "sale", "400", "acc-1", "acc-2"),
        )
    ),
    "src-l2": SourceRecords(rows=(Row("r01", "ord-u", 1, "sale", "5", "acc-3", "acc-1"),)),
    "src-i3": SourceRecords(rows=(Row("r01", "ord-v", 1, "sale", "6", "acc-2", "acc-1"),)),
    "src-r1": SourceRecords(lines=(Line("lin-1", 1, 400, "inv-1r"), Line("lin-2", 2, 320, "inv-2"))),
    "src-r2": SourceRecords(lines=(Line("lin-3", 1, 445, "inv-1"),)),
    "src-r3": SourceRecords(lines=(Line("lin-4", 1, 60, "inv-1"),)),
    "src-m1": SourceRecords(pack=(PackEntry("cmp-1", 1), PackEntry("cmp-2", 2))),
    "src-m2": SourceRecords(pack=(PackEntry("cmp-1", 1),)),
}


def _normalization(contract: str, identity_map: str, policy: str, *items: tuple[str, str, str, int]) -> dict[str, Any]:
    return {
        "contract_id": contract,
        "identity_source_id": "idn-a",
        "identity_map_id": identity_map,
        "conflict_policy": policy,
        "items": [dict(zip(("order", "row", "entity", "minor"), item, strict=True)) for item in items],
    }


def allocated(line: str, invoice: str, credits: list[str], applied: int, writeoff: int, unapplied: int) -> Any:
    amounts = {"applied": applied, "writeoff": writeoff, "unapplied": unapplied}
    return {"line": line, "invoice": invoice, "credits": credits, **amounts}


def adjusted(component: str, document: str | None, entity: str, minor: int) -> Any:
    return {"component": component, "document": document, "entity": entity, "minor": minor}


DETAILS: dict[str, dict[str, Any]] = {
    # June, hence ctr-1: debit account, amount x 100. ord-p: revision 2, 12.50 on acc-2; ord-q is withdrawn; ord-s 3.05.
    "src-i1": _normalization(
        "ctr-1", "map-1", "latest_revision", ("ord-p", "r02", "ent-b", 1250), ("ord-s", "r07", "ent-c", 305)
    ),
    # August, hence ctr-2: credit account, -amount; map-2 since stage 1 is published; first keeps revision 1 on acc-2.
    "src-i2": _normalization("ctr-2", "map-2", "first", ("ord-t", "r02", "ent-c", -400)),
    "src-l2": _normalization("ctr-2", "map-2", "first", ("ord-u", "r01", "ent-a", -5)),
    "src-i3": _normalization("ctr-2", "map-2", "latest_revision", ("ord-v", "r01", "ent-a", -6)),
    # inv-1: 1000 - 100 = 900 open, 400 applied, the rest of 500 is above the tolerance; inv-2: 300 open, 20 too much.
    "src-r1": {
        "items": [allocated("lin-1", "inv-1", ["crn-1"], 400, 0, 0), allocated("lin-2", "inv-2", [], 300, 0, 20)]
    },
    # 1000 - 150 - 400 = 450 open, 445 applied, the rest of 5 is within the tolerance.
    "src-r2": {"items": [allocated("lin-3", "inv-1", ["crn-1", "crn-2"], 445, 5, 0)]},
    # 1000 - 150 - 400 - 450 = 0 open.
    "src-r3": {"items": [allocated("lin-4", "inv-1", ["crn-1", "crn-2"], 0, 0, 60)]},
    # cmp-1: doc-2 supersedes doc-1, the memo is no evidence, doc-4 comes later: 1200 - 1000. cmp-2: nothing valid.
    "src-m1": {"items": [adjusted("cmp-1", "doc-2", "ent-a", 200), adjusted("cmp-2", None, "ent-b", 0)]},
    # doc-4 is there now: 1500 - (1000 + 200).
    "src-m2": {"items": [adjusted("cmp-1", "doc-4", "ent-a", 300)]},
}
TOTALS: dict[str, dict[str, int]] = {
    "src-i1": {"ent-b": 1250, "ent-c": 305},
    "src-i2": {"ent-c": -400},
    "src-l2": {"ent-a": -5},
    "src-i3": {"ent-a": -6},
    "src-r1": {"ent-a": -400, "ent-b": -300, SUSPENSE: -20},
    "src-r2": {"ent-a": -450},
    "src-r3": {SUSPENSE: -60},
    "src-m1": {"ent-a": 200},
    "src-m2": {"ent-a": 300},
}
CLOSINGS: dict[str, dict[str, int]] = {
    # 200 - 400, 1250 - 300, 305, -20; gross 200 + 950 + 305 + 20 = 1475
    "stg-1": {"ent-a": -200, "ent-b": 950, "ent-c": 305, SUSPENSE: -20},
    # opening + (300 - 450, -400), without src-l2; gross 150 + 400 = 550
    "stg-2": {"ent-a": -350, "ent-b": 950, "ent-c": -95, SUSPENSE: -20},
    # opening + (-6, -60); gross 66
    "stg-3": {"ent-a": -356, "ent-b": 950, "ent-c": -95, SUSPENSE: -80},
}
SUBMIT = {
    "integration": "submit_normalization",
    "receivables": "submit_allocation",
    "maintenance": "submit_adjustment",
}


class Office(Bench):
    """The office behind its Gateway. ``updates`` are declared with it; ``strike`` makes one happen at once."""

    def __init__(self, *updates: Update) -> None:
        tables = {
            "stages": {s.stage_id: s for s in STAGES},
            "sources": {s.source_id: s for s in SOURCES},
            "records": RECORDS,
            "formats": {FORMAT.format: FORMAT},
            "contracts": {c.contract_id: c for c in CONTRACTS},
            "identity_maps": {m.map_id: m for m in MAPS},
            "map_entries": ENTRIES,
            "invoices": {i.invoice_id: i for i in INVOICES},
            "credit_notes": {c.credit_id: c for c in CREDIT_NOTES},
            "components": {c.component_id: c for c in COMPONENTS},
            "evidence": {d.document_id: d for d in EVIDENCE},
            "reviewers": {r.reviewer_id: r for r in REVIEWERS},
            "obligations": {o.obligation_id: o for o in OBLIGATIONS},
        }
        brief = {"suspense_entity": SUSPENSE, "release_id": "rel-1"}
        self.world = FinanceWorld(tables, updates, brief)
        self.gateway = Gateway(self.world, ENVIRONMENT.tools)

    # -- the right calls -------------------------------------------------------------------------------------------

    def submission(self, source_id: str, /, **changes: Any) -> tuple[str, dict[str, Any]]:
        """The right submission of a source on the records as they came, or with other arguments."""
        source = self.world.source(source_id)
        arguments = {"source_id": source_id, "revision": source.revision, **DETAILS[source_id], **changes}
        return SUBMIT[source.kind], arguments

    def detail(self, source_id: str, **changes: Any) -> Any:
        tool, arguments = self.submission(source_id, **changes)
        return self.do(tool, **arguments)

    def aggregate(self, source_id: str, totals: dict[str, int] | None = None) -> Any:
        detail = self.world.detail_of(self.world.source(source_id)).ref
        totals = TOTALS[source_id] if totals is None else totals
        return self.do("submit_aggregate", source_id=source_id, detail=detail, totals=totals)

    def package(self, source_id: str) -> None:
        self.detail(source_id)
        self.aggregate(source_id)

    def closing(self, stage_id: str, **changes: Any) -> dict[str, Any]:
        """The right arguments to close a stage over the newest aggregates, or others."""
        before = self.world.preceding(self.world.stage(stage_id))
        sources = self.world.sources_of[stage_id]
        arguments = {
            "stage_id": stage_id,
            "preceding": self.world.closure_of(before.stage_id).ref if before else None,
            "current": [self.world.aggregate_of(s).ref for s in sources if s != "src-l2"],
            "deferred": [self.world.aggregate_of(s).ref for s in sources if s == "src-l2"],
            "history": [view for s in sources for view in self.world.views_of.get(s, ())],
            "closing": CLOSINGS[stage_id],
        }
        return arguments | changes

    def publish(self, stage_id: str, reviewer: str | None = None, **changes: Any) -> Any:
        """Close, review and publish a stage; stages 1, 2 and 3 have reviewers of their own."""
        closure = self.do("close_stage", **self.closing(stage_id, **changes))["closure"]
        reviewer = reviewer or f"rvr-{stage_id[-1]}"
        review = self.do("review_stage", closure=closure, reviewer_id=reviewer)["review"]
        return self.do("publish_stage", closure=closure, review=review)

    def stage(self, stage_id: str) -> Any:
        """All of a stage: packages, closure, review, publication."""
        for source_id in self.world.sources_of[stage_id]:
            self.package(source_id)
        return self.publish(stage_id)

    def all_stages(self) -> Office:
        for stage in STAGES:
            self.stage(stage.stage_id)
        return self

    def release(self) -> str:
        """Review the release, with stage 1 restated if it was; the review's reference."""
        published = {s.stage_id: self.world.publications_of(s.stage_id) for s in STAGES}
        restated = [stage_id for stage_id, p in published.items() if len(p) > 1]
        latest = [p[-1].ref for p in published.values()]
        answer = self.do("review_release", publications=latest, restated=restated, reviewer_id="rvr-1")
        review: str = answer["review"]
        return review

    # -- what happens to it ----------------------------------------------------------------------------------------

    def strike(self, *puts: Put, keys: tuple[str, ...]) -> set[str]:
        """Records change now; the references that became stale."""
        self.world.begin_call()
        self.world.apply_update(amendment(*puts, keys=keys))
        return set(self.world.invalidated)

    def stale(self) -> set[str]:
        """References of everything that is stale."""
        return {ref for ref, artifact in self.world.artifacts.items() if artifact.status == STALE}


def amendment(*puts: Put, keys: tuple[str, ...], at: int = 1) -> Update:
    """An update that fires when ``at`` stages have been published."""
    subjects = tuple(put.key for put in puts)
    return Update(at, "stages_published", at, Amendment("correction", subjects, "Records changed.", puts, keys))
