"""Records of the portfolio office, and the contents of what is made in it.

Days are day numbers; quota is in calls a minute. Clause requests and bulletins show themselves in time, the basis of a
publication never; all else is public.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from skillhorizon.core.tools import Arguments, Id, Name, Ref
from skillhorizon.core.world import Record

Role = Literal["author", "engineering", "security"]
State = Literal["approved", "draft", "superseded"]
Day = Annotated[int, Meta(ge=0, le=100_000, description="A day number.")]
Amount = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class Team(Record, frozen=True):
    team_id: str
    name: str


class Person(Record, frozen=True):
    person_id: str
    name: str
    team_id: str


class Member(Record, frozen=True):
    project_id: str
    person_id: str
    role: Role


class Project(Record, frozen=True):
    project_id: str
    team_id: str
    tracker_id: str
    title: str


class Page(Record, frozen=True):
    """``head_revision`` is the head of an earlier edition; of a requested page it follows from its revisions."""

    page_id: str
    project_id: str
    kind: Literal["PRD", "RFC"]
    title: str
    head_revision: str | None


class Charter(msgspec.Struct, frozen=True):
    purpose: str
    effective_day: int
    horizon_day: int
    demand: int


class Carry(msgspec.Struct, frozen=True):
    fields: tuple[str, ...]


class ServiceUse(msgspec.Struct, frozen=True):
    service_id: str


class FieldTerm(msgspec.Struct, frozen=True):
    name: str
    type: str
    limit: int
    required: bool


class Import(msgspec.Struct, frozen=True):
    page_id: str
    fields: tuple[str, ...]


class Consumer(msgspec.Struct, frozen=True):
    page_id: str
    purpose: str
    effective_day: int
    weight: int
    limit: int


class Block(Record, frozen=True):
    block_id: str
    page_id: str
    order: int
    key: str
    kind: Literal["charter", "carry", "service", "field", "import", "consumer", "interface", "note"]
    state: State
    decided_on: int | None
    supersedes: str | None
    text: str
    body: Any


class Link(Record, frozen=True):
    link_id: str
    from_page: str
    to_page: str
    kind: Literal["derives_from", "mentions"]
    state: Literal["active", "retired"]


class Tracker(Record, frozen=True):
    tracker_id: str
    name: str


class TrackerItem(Record, frozen=True):
    """``page_id`` is what the item of an earlier edition stands for."""

    item_id: str
    tracker_id: str
    page_id: str | None


class EarlierRevision(Record, frozen=True):
    revision_id: str
    page_id: str
    number: int
    author_id: str
    day: int


class Comment(Record, frozen=True):
    comment_id: str
    page_id: str
    person_id: str
    day: int
    text: str


class EarlierDecision(Record, frozen=True):
    decision_id: str
    page_id: str
    revision_id: str
    day: int
    outcome: Literal["accepted", "deferred"]


class EarlierSignOff(Record, frozen=True):
    signoff_id: str
    decision_id: str
    page_id: str
    person_id: str
    role: Role
    day: int


class Grant(Record, frozen=True):
    grant_id: str
    owner_page: str
    purposes: tuple[str, ...]
    amount: int
    valid_from: int
    expires_on: int
    state: Literal["active", "proposed"]


class Service(Record, frozen=True):
    """``first_day`` and ``last_day`` bound the calendar in which capacity is kept."""

    service_id: str
    capacity: int
    first_day: int
    last_day: int


class ForeignReservation(Record, frozen=True):
    reservation_id: str
    service_id: str
    team_id: str
    amount: int
    from_day: int
    until_day: int


class ClauseRequest(Record, frozen=True):
    """What a reviewer will ask of a page; known to nobody until it is asked."""

    page_id: str
    role: Role
    clause: str


class Proposal(msgspec.Struct, frozen=True):
    proposal_id: str
    page_id: str
    block_id: str
    text: str


class Bulletin(msgspec.Struct, frozen=True):
    """Effect of an update: ``block`` replaces the governing block that it names; a proposal may go with it."""

    bulletin_id: str
    block: Block
    text: str
    proposal: Proposal


# -- contracts -------------------------------------------------------------------------------------------------------


class Lot(Arguments, frozen=True):
    """Quota of one grant: it keeps owner, purposes and expiry wherever it goes."""

    grant_id: Id
    owner_page: Id
    purposes: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=12)]
    amount: Amount
    expires_on: Day


Lots = Annotated[tuple[Lot, ...], Meta(max_length=1000)]


class Entry(Arguments, frozen=True):
    name: Name
    type: Name
    limit: Amount
    required: bool
    bound_by: Id
    set_in: Id


class Allotment(Arguments, frozen=True):
    consumer: Id
    lots: Lots


class Booking(Arguments, frozen=True):
    service_id: Id
    amount: Amount
    from_day: Day
    until_day: Day


class Content(Arguments, frozen=True):
    """A contract: fields by name, lots by (expires_on, grant_id), allotments by consumer."""

    fields: Annotated[tuple[Entry, ...], Meta(max_length=64)]
    received: Lots
    used: Lots
    allotments: Annotated[tuple[Allotment, ...], Meta(max_length=64)]
    retained: Lots
    reservation: Booking


class Cites(Arguments, frozen=True):
    blocks: Annotated[tuple[Id, ...], Meta(max_length=64)]
    grants: Annotated[tuple[Id, ...], Meta(max_length=24)]
    parents: Annotated[tuple[Ref, ...], Meta(max_length=24)]


class Statement(Arguments, frozen=True):
    """What the document says of its contract (rule 9)."""

    limits: Annotated[dict[Name, Amount], Meta(max_length=64)]
    used: Amount
    allotted: Annotated[dict[Id, Amount], Meta(max_length=64)]
    until_day: Day


class Contract(msgspec.Struct, frozen=True):
    page_id: str
    content: Content
    cites: Cites
    quota_digest: str


class Revision(msgspec.Struct, frozen=True):
    page_id: str
    base_revision: str | None
    contract: str | None
    statement: Statement | None
    clauses: tuple[str, ...]
    text: str


class SignOff(msgspec.Struct, frozen=True):
    page_id: str
    role: Role
    reviewer_id: str
    contract: str
    document_revision: str
    quota_digest: str
    outcome: Literal["approved", "changes_requested"]
    reasons: tuple[str, ...]
    clause: str | None
    report: tuple[str, ...]


class Decision(msgspec.Struct, frozen=True):
    page_id: str
    contract: str
    document_revision: str
    signoffs: tuple[str, ...]


class Reservation(msgspec.Struct, frozen=True):
    page_id: str
    team_id: str
    service_id: str
    amount: int
    from_day: int
    until_day: int


class Publication(msgspec.Struct, frozen=True):
    page_id: str
    contract: str
    document_revision: str
    decision: str
    reservation: str
    content: Content
    cites: Cites


class Binding(msgspec.Struct, frozen=True):
    item_id: str
    page_id: str
    publication: str


class Receipt(msgspec.Struct, frozen=True):
    """Of a poll that moved the change window on."""

    state: Literal["open", "closed"]
    announced: int


class ImpactStatement(msgspec.Struct, frozen=True):
    bulletin_id: str
    page_ids: tuple[str, ...]


class Take(NamedTuple):
    """The fields that a page takes from one of its parents, and the publication it took them from."""

    parent: str
    publication: str
    fields: tuple[str, ...]


class Support(NamedTuple):
    """What a contract and its publications rest on."""

    blocks: tuple[str, ...]
    takes: tuple[Take, ...]


class Basis(msgspec.Struct, frozen=True):
    """Kept beside a publication: whether it was needless (rule 15)."""

    needless: bool
