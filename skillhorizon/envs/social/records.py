"""Records of the campaign desk, contents of what is made in it, and its updates.

Time is a whole hour, the tick.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from skillhorizon.core.world import Record
from skillhorizon.envs.social.seed import ArmRole, Role

LEAD, GRACE, WINDOW, REST = 2, 3, 48, 48
"""Hours: least lead of a booking; how long a due post may wait; until it is measured; until an audience is active."""
SLOT_HOURS = 6


class Evidence(Record, frozen=True):
    """The claim's evidence: posts of the brand on the topic between two ticks, both inclusive."""

    brand: str
    topic: str
    objective: str
    from_tick: int
    to_tick: int


class Brief(Record, frozen=True):
    brief_id: str
    wave: int
    lane: int
    title: str
    channel: str
    audience_parents: tuple[str, ...]
    cta_parent: str | None
    audience_limit: int
    opening_audiences: tuple[str, ...]
    opening_cta: str | None
    challenger_cta: str
    consent_batch_id: str
    asset_tag: str
    format: str
    evidence: Evidence
    weight: int

    @property
    def parents(self) -> tuple[str, ...]:
        cta = (self.cta_parent,) if self.cta_parent is not None else ()
        return tuple(dict.fromkeys((*self.audience_parents, *cta)))


class Batch(Record, frozen=True):
    consent_batch_id: str
    audience_ids: tuple[str, ...]


class Pool(Record, frozen=True):
    asset_tag: str
    asset_ids: tuple[str, ...]


class Limits(Record, frozen=True):
    """What the owner of an audience allows in the season."""

    audience_id: str
    load_cap: int
    cooldown_hours: int
    status: Literal["active", "resting"]


class Showing(msgspec.Struct, frozen=True):
    """One publication of a standing programme; its r-th repeat is ``<publication>-r``."""

    offset: int
    points: int
    publication: str


class Programme(Record, frozen=True):
    """What other teams show an audience, by offset in the cycle."""

    audience_id: str
    showings: tuple[Showing, ...]


class Slot(Record, frozen=True):
    slot_id: str
    channel: str
    tick: int
    places: int


class Conversion(msgspec.Struct, frozen=True):
    """``hour`` counts from the tick of the post."""

    conversion_id: str
    member_id: str
    audience_id: str
    hour: int


class Response(Record, frozen=True):
    """How one audience answers one arm of one brief, whenever it is shown to it."""

    brief_id: str
    role: ArmRole
    audience_id: str
    delivered: int
    conversions: tuple[Conversion, ...]


class Withdrawal(msgspec.Struct, frozen=True):
    """Effect of an update: the grants that the brief's posts of these roles carry are withdrawn."""

    brief_id: str
    roles: tuple[Role, ...]


# -- contents of artifacts -------------------------------------------------------------------------------------------


class Binding(msgspec.Struct, frozen=True):
    brief_id: str
    parent_reports: tuple[str, ...]


class Post(msgspec.Struct, frozen=True):
    post_id: str
    brief_id: str
    role: Role
    audience_ids: tuple[str, ...]
    cta_id: str
    copy: str
    asset_id: str | None = None
    grant_id: str | None = None
    evidence_post_ids: tuple[str, ...] = ()


class Approval(msgspec.Struct, frozen=True):
    post: str
    grant_id: str


class Experiment(msgspec.Struct, frozen=True):
    brief_id: str
    control_post_id: str
    challenger_post_id: str

    @property
    def arms(self) -> dict[ArmRole, str]:
        return {"control": self.control_post_id, "challenger": self.challenger_post_id}


class Reactivation(msgspec.Struct, frozen=True):
    audience_id: str
    basis_publication_id: str
    active_from: int


class Booking(msgspec.Struct, frozen=True):
    post_id: str
    slot_id: str
    tick: int


class Publication(msgspec.Struct, frozen=True):
    post: str
    tick: int
    historical_publication_ids: tuple[str, ...]
    audience_loads: dict[str, int]


class Measurement(msgspec.Struct, frozen=True):
    post_id: str
    role: Role
    delivered: int
    conversions: int


class Winner(msgspec.Struct, frozen=True):
    role: ArmRole
    audience_ids: tuple[str, ...]
    cta_id: str


class Report(msgspec.Struct, frozen=True):
    brief_id: str
    parent_reports: tuple[str, ...]
    measurements: tuple[str, ...]
    credited: dict[str, tuple[str, ...]]
    delivered: dict[str, int]
    winner: Winner

    @property
    def members(self) -> frozenset[str]:
        return frozenset(m for members in self.credited.values() for m in members)


class Deployment(msgspec.Struct, frozen=True):
    brief_id: str
    post_id: str
    report: str


class Acknowledgement(msgspec.Struct, frozen=True):
    notice_id: str
    affected_post_ids: tuple[str, ...]
