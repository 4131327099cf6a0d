"""The campaign desk: records, the rules of the trade, and what makes work stale.

Time is a whole hour, the tick. Rule numbers are those of the skills: each rule stands once, in ``rules`` or here, for
the operations, for staleness and for scoring.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from skillhorizon.core.errors import Rejected
from skillhorizon.core.ids import stream
from skillhorizon.core.ledger import Ledger
from skillhorizon.core.world import CURRENT, WITHDRAWN, Artifact, Update, World
from skillhorizon.envs.social.records import (
    Approval,
    Batch,
    Binding,
    Brief,
    Conversion,
    Deployment,
    Experiment,
    Limits,
    Post,
    Programme,
    Report,
    Response,
    Slot,
    Withdrawal,
)
from skillhorizon.envs.social.rules import ARMS, Row, attributed, contribution, live, usable
from skillhorizon.envs.social.seed import ArmRole, Audience, Consent, PastPost, fitting, house

CYCLE = 1440
"""Hours after which an audience's standing programme repeats."""
STATES = ("draft", "approved", "scheduled", "published", "missed", "rights_void")
State = Literal["draft", "approved", "scheduled", "published", "missed", "rights_void"]


# -- arithmetic ------------------------------------------------------------------------------------------------------


def _between(rows: list[Row], start: int, end: int) -> list[Row]:
    """Those between two ticks, both inclusive; ``rows`` are sorted."""
    return rows[bisect_left(rows, (start,)) : bisect_left(rows, (end + 1,))]


class SocialWorld(World):
    prefixes: ClassVar = {
        "binding": "bnd",
        "post": "pst",
        "approval": "apr",
        "experiment": "exp",
        "reactivation": "rct",
        "booking": "bkg",
        "publication": "pub",
        "measurement": "msr",
        "report": "rpt",
        "deployment": "dep",
        "acknowledgement": "ack",
    }

    def __init__(self, tables: Any, updates: Any = (), brief: Any = None, seed_tables: Any = None) -> None:
        super().__init__(tables, updates, brief, seed_tables)
        t = self.tables
        self.house = house()
        self.season_end: int = self.brief.get("season_end", 0)
        self.original_limits: dict[str, Limits] = dict(t["limits"])
        self.briefs: list[Brief] = sorted(t["briefs"].values(), key=lambda b: (b.wave, b.lane))
        self.by_wave: dict[int, list[Brief]] = {}
        for b in self.briefs:
            self.by_wave.setdefault(b.wave, []).append(b)
        self.ctas = {c for b in self.briefs for c in (b.opening_cta, b.challenger_cta) if c is not None}
        self.grants_of: dict[str, list[str]] = {}
        """asset -> its grants of the season, by id"""
        for grant_id in sorted(t["grants"]):
            self.grants_of.setdefault(t["grants"][grant_id].asset_id, []).append(grant_id)
        self.slots: dict[str, list[Slot]] = {}
        """channel -> slots by tick"""
        for slot in sorted(t["slots"].values(), key=lambda s: s.tick):
            self.slots.setdefault(slot.channel, []).append(slot)
        self.ledgers["slots"] = Ledger({slot.slot_id: slot.places for slot in t["slots"].values()})
        self.posts_of: dict[str, list[str]] = {}
        self.in_state: dict[str | None, list[str]] = {None: [], **{state: [] for state in STATES}}
        """state -> its posts by id; all under None"""
        self.carriers: dict[str, dict[str, None]] = {}
        """grant -> posts whose newest version carries it"""
        self.voided_by: dict[str, list[str]] = {}
        """post -> notices that voided it"""
        self.voided_posts: dict[str, list[str]] = {}
        self.own: dict[str, list[Row]] = {}
        """audience -> own publications, by tick"""
        self.booked: dict[str, list[tuple[int, str]]] = {}
        """audience -> booked ticks and posts"""
        self.agenda: list[tuple[int, str]] = []
        """ticks and posts that are booked and not out"""
        self._state: dict[str, State] = {}
        self._programme: dict[str, list[Row]] = {}
        """audience -> what other teams show it, as far as it was asked for"""
        self._turns: dict[str, int] = {}

    # -- looking up ------------------------------------------------------------------------------------------------

    def brief_of(self, brief_id: str) -> Brief:
        found: Brief = self.get("briefs", brief_id)
        return found

    def audience(self, audience_id: str) -> Audience:
        found: Audience = self.get("audiences", audience_id)
        return found

    def limits(self, audience_id: str) -> Limits:
        found: Limits | None = self.tables["limits"].get(audience_id)
        if found is None:
            self.audience(audience_id)
            raise Rejected("wrong_state", f"{audience_id} takes no part in this season", audience_id=audience_id)
        return found

    def newest_of(self, kind: str, subject: str) -> Artifact | None:
        """The newest version of the artifact of this kind about this subject."""
        return self.newest.get(f"{self.prefixes[kind]}-{subject.partition('-')[2]}")

    def post(self, post_id: str) -> Artifact:
        """The newest version of a post of this season; refuses ``unknown_id``."""
        found = self.newest.get(post_id)
        if found is None or found.kind != "post":
            raise Rejected("unknown_id", f"no post {post_id!r} of this season", id=post_id)
        return found

    def approved(self, post_id: str) -> Artifact | None:
        """The approval of a post's newest version, while it stands."""
        approval = self.newest_of("approval", post_id)
        return approval if approval is not None and approval.status == CURRENT else None

    def booking_of(self, post_id: str) -> Artifact | None:
        """The booking of a post that is not out yet."""
        booking = self.newest_of("booking", post_id)
        out = self.newest_of("publication", post_id) is not None
        return None if booking is None or booking.status == WITHDRAWN or out else booking

    def consent(self, audience_id: str, channel: str) -> Consent:
        """The consent of the season's batch, or else the one on record."""
        found: Consent = self.get("consents", f"{audience_id}/{channel}")
        return found

    def reports_of(self, brief: Brief) -> dict[str, Artifact | None]:
        """Parent -> its newest report."""
        return {parent: self.newest_of("report", parent) for parent in brief.parents}

    def bound_reports(self, binding: Artifact) -> dict[str, Report]:
        """Parent -> the report that was bound."""
        contents = (self.artifacts[ref].content for ref in binding.content.parent_reports)
        return {report.brief_id: report for report in contents}

    # -- rules 1 to 5 ----------------------------------------------------------------------------------------------

    def inherited(self, brief: Brief, bound: dict[str, Report]) -> list[str]:
        """Rule 1, without the batch."""
        if not brief.audience_parents:
            return list(brief.opening_audiences)
        parents = (bound[parent].winner.audience_ids for parent in brief.audience_parents)
        return list(dict.fromkeys(a for audiences in parents for a in audiences))

    def batch(self, brief: Brief) -> tuple[str, ...]:
        found: Batch = self.tables["batches"][brief.consent_batch_id]
        return found.audience_ids

    def sources(self, brief: Brief, bound: dict[str, Report]) -> set[str]:
        return {*self.inherited(brief, bound), *self.batch(brief)}

    def list_for(self, brief: Brief, bound: dict[str, Report], role: str) -> list[str]:
        """Rule 2."""
        batch = self.batch(brief)
        new = [a for a in batch if usable(self.consent(a, brief.channel), role)]
        known = [
            a for a in self.inherited(brief, bound) if a not in batch and usable(self.consent(a, brief.channel), role)
        ]
        known.sort(key=lambda a: (-self.audience(a).reach, a))
        return [*new, *known][: max(len(new), brief.audience_limit)]

    def cta_for(self, brief: Brief, bound: dict[str, Report], role: str) -> str | None:
        """Rule 3."""
        if role == "challenger":
            return brief.challenger_cta
        return bound[brief.cta_parent].winner.cta_id if brief.cta_parent is not None else brief.opening_cta

    def evidence(self, brief: Brief, post_ids: Iterable[str]) -> list[PastPost]:
        """Rule 5: those that are of the brief's brand, topic and window."""
        wanted = brief.evidence
        posts: list[PastPost] = [self.get("posts", p) for p in post_ids]
        return [
            p
            for p in posts
            if (self.house.brand_of[p.account_id], p.topic) == (wanted.brand, wanted.topic)
            and wanted.from_tick <= p.at <= wanted.to_tick
        ]

    def evidence_right(self, brief: Brief, post_ids: tuple[str, ...]) -> bool:
        posts = fitting(self.evidence(brief, post_ids), brief.evidence.objective)
        return len(post_ids) == len(posts) == len({p.campaign_id for p in posts}) == 2

    # -- rules 6 to 9: exposures -----------------------------------------------------------------------------------

    def standing(self, audience_id: str, start: int, end: int) -> list[Row]:
        """Exposures by other teams between two ticks, both inclusive, by tick."""
        rows = self._programme.get(audience_id)
        if rows is None:
            seen = self.house.exposures.get(audience_id, ())
            rows = self._programme[audience_id] = [Row(e.at, e.publication_id, e.points) for e in seen]
        if self._turns.get(audience_id, 0) * CYCLE <= end:
            self._continue(audience_id, rows, end)
        return _between(rows, start, end)

    def _continue(self, audience_id: str, rows: list[Row], end: int) -> None:
        """Add what the audience's programme shows it in the cycles up to ``end``."""
        first, last = self._turns.get(audience_id, 0), end // CYCLE
        programme: Programme | None = self.tables["programmes"].get(audience_id)
        showings = programme.showings if programme is not None else ()
        for turn in range(first, last + 1):
            rows += [Row(turn * CYCLE + s.offset, f"{s.publication}-{turn}", s.points) for s in showings]
        self._turns[audience_id] = last + 1

    def exposures(self, audience_id: str, start: int, end: int) -> list[Row]:
        """Everything that an audience sees between two ticks, both inclusive, by tick and publication."""
        rows = self.standing(audience_id, start, end) + self._own_between(audience_id, start, end)
        for tick, post_id in self._booked_between(audience_id, start, end):
            weight = self.brief_of(self.newest[post_id].subject).weight
            rows.append(Row(tick, f"pub-{post_id.partition('-')[2]}", weight, post_id, True))
        rows.sort()
        return rows

    def _own_between(self, audience_id: str, start: int, end: int) -> list[Row]:
        own = self.own.get(audience_id)
        return _between(own, start, end) if own else []

    def _booked_between(self, audience_id: str, start: int, end: int) -> list[tuple[int, str]]:
        booked = self.booked.get(audience_id)
        return booked[bisect_left(booked, (start,)) : bisect_left(booked, (end + 1,))] if booked else []

    def live(self, audience_id: str, tick: int) -> list[tuple[str, int]]:
        """Publications of an audience's past rows that are live at ``tick``, and what each contributes (rule 6)."""
        half_life = self.audience(audience_id).half_life_hours
        start = tick - 8 * half_life
        rows = self.standing(audience_id, start, tick) + self._own_between(audience_id, start, tick)
        return live(rows, tick, half_life)

    def load(self, audience_id: str, tick: int) -> int:
        """Rule 6, over past rows."""
        return sum([left for _, left in self.live(audience_id, tick)])

    def forecast(self, audience_id: str, tick: int) -> int:
        """Rule 6, with the rows that are booked up to ``tick``."""
        half_life = self.audience(audience_id).half_life_hours
        total = self.load(audience_id, tick)
        for at, post_id in self._booked_between(audience_id, tick - 8 * half_life, tick):
            total += contribution(self.brief_of(self.newest[post_id].subject).weight, tick - at, half_life)
        return total

    def declaration(self, audience_ids: Iterable[str], tick: int) -> tuple[list[str], dict[str, int]]:
        """Rule 9: one entry for every live past row of every audience, sorted; and the load of each."""
        sources: list[str] = []
        loads = {}
        for audience_id in audience_ids:
            rows = self.live(audience_id, tick)
            sources += [publication for publication, _ in rows]
            loads[audience_id] = sum([left for _, left in rows])
        return sorted(sources), loads

    def own_events(self, audience_id: str, start: int, end: int) -> list[tuple[int, str]]:
        """Ticks and posts of own publications and bookings on an audience between two ticks, both inclusive."""
        published = [(row.at, row.post_id or "") for row in self._own_between(audience_id, start, end)]
        return [*published, *self._booked_between(audience_id, start, end)]

    def sibling(self, post: Post) -> str | None:
        """The other arm of the experiment that a post is in."""
        experiment = self.newest_of("experiment", post.brief_id)
        if experiment is None or post.role == "deployment":
            return None
        arms = experiment.content.arms
        other: str = arms["challenger" if post.role == "control" else "control"]
        return other if arms[post.role] == post.post_id else None

    def active_from(self, audience_id: str) -> int | None:
        """Rule 7: from when an audience may be shown something, or None while it rests."""
        if self.limits(audience_id).status == "active":
            return 0
        reactivation = self.newest_of("reactivation", audience_id)
        return reactivation.content.active_from if reactivation is not None else None

    def refuse_booking(self, post: Post, tick: int) -> None:
        """Rule 7, for each audience of the post."""
        sibling = self.sibling(post)
        waiting = (
            self.newest[sibling].content.audience_ids
            if sibling is not None
            and self.booking_of(sibling) is None
            and self.newest_of("publication", sibling) is None
            else ()
        )
        weight = self.brief_of(post.brief_id).weight
        for a in post.audience_ids:
            limits = self.limits(a)
            active = self.active_from(a)
            if active is None or tick < active:
                raise Rejected("audience_resting", f"{a} rests at tick {tick}", audience_id=a)
            wait = limits.cooldown_hours
            for at, other in self.own_events(a, tick - wait + 1, tick + wait - 1):
                if (at, other) != (tick, sibling):
                    raise Rejected(
                        "cooldown_active", f"{a} has another event within {wait} h", audience_id=a, post_id=other
                    )
            added = (1 + (a in waiting)) * weight
            half_life = self.audience(a).half_life_hours
            later = [at for at, _ in self._booked_between(a, tick + 1, tick + 8 * half_life)]
            for at in (tick, *later):
                if self.forecast(a, at) + contribution(added, at - tick, half_life) > limits.load_cap:
                    raise Rejected("load_cap", f"{a} would exceed its cap at tick {at}", audience_id=a, tick=at)

    # -- measurements ----------------------------------------------------------------------------------------------

    def response(self, brief_id: str, role: ArmRole, audience_id: str) -> Response:
        """How an audience answers an arm. Where the task foresees no such pairing the answer follows from the ids."""
        known: Response | None = self.tables["responses"].get(f"{brief_id}/{role}/{audience_id}")
        if known is not None:
            return known
        rng = stream("response", brief_id, role, audience_id)
        brief, audience = brief_id.partition("-")[2], audience_id.partition("-")[2]
        rows = tuple(
            Conversion(f"cnv-{brief}-{audience}-{role[1]}{n}", f"mbr-{audience}-{n}", audience_id, rng.randint(1, 47))
            for n in range(rng.randint(6, 8))
        )
        return Response(brief_id, role, audience_id, rng.randint(300, 900), rows)

    def conversions(self, post: Post) -> list[Conversion]:
        """By hour, then id; a deployment is not measured for its own."""
        if post.role == "deployment":
            return []
        rows = [c for a in post.audience_ids for c in self.response(post.brief_id, post.role, a).conversions]
        return sorted(rows, key=lambda c: (c.hour, c.conversion_id))

    def delivered(self, post: Post) -> int:
        role: ArmRole = "challenger" if post.role == "challenger" else "control"
        return sum(self.response(post.brief_id, role, a).delivered for a in post.audience_ids)

    def true_attribution(self, report: Report) -> dict[str, set[str]]:
        """Rule 11 on the report's measurements and bound parent reports."""
        rows: dict[ArmRole, list[Conversion]] = {role: [] for role in ARMS}
        for ref in report.measurements:
            post: Post = self.newest[self.artifacts[ref].content.post_id].content
            if post.role != "deployment":
                rows[post.role] = self.conversions(post)
        excluded = frozenset(m for ref in report.parent_reports for m in self.artifacts[ref].content.members)
        return attributed(rows, excluded)

    # -- posts -----------------------------------------------------------------------------------------------------

    def state_of(self, post_id: str) -> State:
        return self._state[post_id]

    def settle(self, post_id: str) -> None:
        """Put a post where it now belongs."""
        state = self._state_now(post_id)
        before = self._state.get(post_id)
        if before == state:
            return
        if before is None:
            insort(self.in_state[None], post_id)
        else:
            listed = self.in_state[before]
            del listed[bisect_left(listed, post_id)]
        insort(self.in_state[state], post_id)
        self._state[post_id] = state

    def _state_now(self, post_id: str) -> State:
        content: Post = self.newest[post_id].content
        if self.newest_of("publication", post_id) is not None:
            return "published"
        if content.grant_id is not None and self.get("grants", content.grant_id).withdrawn_at is not None:
            return "rights_void"
        booking = self.newest_of("booking", post_id)
        if booking is not None and booking.status == CURRENT:
            return "scheduled"
        if booking is not None and booking.cause == "missed":
            return "missed"
        return "approved" if self.approved(post_id) is not None else "draft"

    def carry(self, post: Post, before: str | None) -> None:
        """Keep which posts carry which grant."""
        if before is not None:
            self.carriers[before].pop(post.post_id, None)
        if post.grant_id is not None:
            self.carriers.setdefault(post.grant_id, {})[post.post_id] = None

    def unbook(self, post: Post, cause: str) -> None:
        """A booking ends without a publication: ``released`` gives its place back, ``missed`` loses it."""
        booking = self.booking_of(post.post_id)
        assert booking is not None
        if cause == "missed":
            self.ledgers["slots"].use(booking.ref)
        else:
            self.ledgers["slots"].release(booking.ref)
        self.clear_booking(post, booking.content.tick)
        self.withdraw(booking.ref, cause)
        self.settle(post.post_id)

    def clear_booking(self, post: Post, tick: int) -> None:
        self.agenda.remove((tick, post.post_id))
        for a in post.audience_ids:
            self.booked[a].remove((tick, post.post_id))

    # -- staleness (rule 13) ---------------------------------------------------------------------------------------

    def consumed(self, brief: Brief) -> dict[str, Any]:
        """What bindings and experiments take of the parents' newest reports."""
        values: dict[str, Any] = {}
        for parent, made in self.reports_of(brief).items():
            winner = made.content.winner if made is not None else None
            values[f"audiences of {parent}"] = winner and parent in brief.audience_parents and winner.audience_ids
            values[f"call to action of {parent}"] = winner and parent == brief.cta_parent and winner.cta_id
        return values

    def credited(self, brief: Brief) -> dict[str, Any]:
        """What reports take of the parents' newest reports."""
        made = self.reports_of(brief).items()
        return {f"members of {parent}": report and sorted(report.content.members) for parent, report in made}

    def staleness(self, artifact: Artifact, cause: str) -> str | None:
        content = artifact.content
        if isinstance(content, Approval):
            post = self.newest[content.post.partition("@")[0]]
            if self.newest_of("publication", post.id) is not None:
                return None
            if post.ref != content.post:
                return f"{post.id} has changed"
            withdrawn = self.get("grants", content.grant_id).withdrawn_at is not None
            return f"{content.grant_id} was withdrawn" if withdrawn else None
        if isinstance(content, Deployment):
            report = self.newest_of("report", content.brief_id)
            return "the winner has changed" if report and report.content.winner != artifact.basis else None
        if isinstance(content, Binding | Experiment | Report):
            brief = self.brief_of(content.brief_id)
            now = self.credited(brief) if isinstance(content, Report) else self.consumed(brief)
            changed = (name for name, value in now.items() if value != artifact.basis[name])
            return next((f"the {name} have changed" for name in changed), None)
        return None

    # -- updates ---------------------------------------------------------------------------------------------------

    def apply_update(self, update: Update) -> None:
        effect: Withdrawal = update.effect
        carried = (self.newest[p].content for p in self.posts_of[effect.brief_id])
        grants = sorted({p.grant_id for p in carried if p.role in effect.roles and p.grant_id is not None})
        grants = [g for g in grants if self.get("grants", g).withdrawn_at is None]
        for grant_id in grants:
            self.amend("grants", grant_id, withdrawn_at=self.clock)
        text = (
            f"Rights withdrawn at tick {self.clock}: {', '.join(grants)}. Posts that are not out and carry one of them "
            "need another asset and a new approval; published posts stay as they are."
        )
        self.announce("rights_withdrawn", grants, text)
        notice_id = self.notices[-1].notice_id
        posts = sorted(p for g in grants for p in self.carriers.get(g, ()) if self.state_of(p) != "published")
        self.voided_posts[notice_id] = posts
        self.changed(*(f"grant:{g}" for g in grants), cause=f"rights withdrawn by {notice_id}")
        for post_id in posts:
            self.voided_by.setdefault(post_id, []).append(notice_id)
            self.settle(post_id)
