"""Records of the ledger office, contents of what is made in it, and its updates.

Amounts are integer minor units; months are ``YYYY-MM`` and compare as text; ranges are inclusive.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from skillhorizon.core.world import Record

Totals = dict[str, int]
Policy = Literal["first", "latest_revision"]


class Stage(Record, frozen=True):
    stage_id: str
    ordinal: int
    cutoff: str


class Source(Record, frozen=True, omit_defaults=True):
    """A work package. ``revision`` counts the corrections of its records."""

    source_id: str
    stage: str
    seq: int
    kind: Literal["integration", "receivables", "maintenance"]
    booking_period: str
    records: int
    revision: int
    format: str | None = None
    identity_source: str | None = None
    conflict_policy: Policy | None = None


class Row(msgspec.Struct, frozen=True):
    row: str
    order: str
    rev: int
    kind: Literal["sale", "correction", "metadata", "withdrawal"]
    amount: str
    debit: str
    credit: str


class Line(msgspec.Struct, frozen=True):
    line: str
    seq: int
    paid_minor: int
    reference: str


class PackEntry(msgspec.Struct, frozen=True):
    component: str
    seq: int


class SourceRecords(Record, frozen=True):
    """The records of one source in its own format; exactly one of the three is filled."""

    rows: tuple[Row, ...] = ()
    lines: tuple[Line, ...] = ()
    pack: tuple[PackEntry, ...] = ()

    @property
    def count(self) -> int:
        return len(self.rows or self.lines or self.pack)


class Format(Record, frozen=True):
    format: str
    columns: tuple[str, ...]


class Contract(Record, frozen=True):
    contract_id: str
    format: str
    effective_from: str
    effective_to: str
    account_column: Literal["debit", "credit"]
    scale_exponent: int
    sign: int


class IdentityMap(Record, frozen=True):
    map_id: str
    identity_source: str
    effective_from: str
    effective_to: str
    supersedes: str | None
    released_by: str | None


class MapEntries(Record, frozen=True):
    """Account and entity, by account."""

    entries: tuple[tuple[str, str], ...]


class Invoice(Record, frozen=True):
    invoice_id: str
    customer: str
    amount_minor: int
    issued: str
    reissue_of: str | None
    tolerance_minor: int
    payment_sources: tuple[str, ...]


class CreditNote(Record, frozen=True):
    credit_id: str
    invoice: str
    amount_minor: int
    status: Literal["draft", "approved", "void"]
    approved: str | None


class Component(Record, frozen=True, rename={"class_": "class"}):
    component_id: str
    class_: str
    entity: str
    opening_minor: int
    pack_sources: tuple[str, ...]


class Evidence(Record, frozen=True, rename={"class_": "class"}):
    document_id: str
    component: str
    class_: str
    issued: str
    seq: int
    amount_minor: int
    status: Literal["valid", "withdrawn"]
    supersedes: str | None


class Reviewer(Record, frozen=True):
    reviewer_id: str
    authority_limit_minor: int | None


class Obligation(Record, frozen=True):
    obligation_id: str
    kind: str
    stage: str
    basis: Literal["as_first_published", "current"]


class Put(msgspec.Struct, frozen=True):
    table: str
    key: str
    record: Any


class Amendment(msgspec.Struct, frozen=True):
    """Effect of an update: records as they stand from now on, and the keys of what was read of them."""

    kind: str
    subjects: tuple[str, ...]
    text: str
    puts: tuple[Put, ...]
    keys: tuple[str, ...]


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Detail(msgspec.Struct, frozen=True):
    """Public content of a normalisation, allocation or adjustment: what was cited, and the items."""

    source_id: str
    revision: int
    cited: dict[str, str]
    items: tuple[Any, ...]


class DetailBasis(msgspec.Struct, frozen=True):
    """Kept beside a detail: whether its selections were right, its postings, and the values it rests on.

    ``values`` maps each thing cited to its value at acceptance; the detail is stale iff one of them differs now.
    """

    right: bool
    postings: Totals
    values: dict[str, Any]
    authority_cited: bool = False


class Aggregate(msgspec.Struct, frozen=True):
    source_id: str
    totals: Totals


class HistoricalView(msgspec.Struct, frozen=True):
    source_id: str
    aggregate: str
    publication: str
    totals: Totals


class Closure(msgspec.Struct, frozen=True):
    stage_id: str
    preceding: str | None
    current: tuple[str, ...]
    deferred: tuple[str, ...]
    history: tuple[str, ...]
    closing: Totals
    gross_minor: int


class StageReview(msgspec.Struct, frozen=True):
    stage_id: str
    closure: str
    reviewer_id: str


class StagePublication(msgspec.Struct, frozen=True):
    stage_id: str
    closure: str
    review: str
    closing: Totals


class ReleaseReview(msgspec.Struct, frozen=True):
    publications: tuple[str, ...]
    restated: tuple[str, ...]
    reviewer_id: str


class ReleasePublication(msgspec.Struct, frozen=True):
    review: str


class ObligationRelease(msgspec.Struct, frozen=True):
    obligation_id: str
    publication: str
    review: str
