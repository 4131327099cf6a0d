"""A campaign desk of two first briefs and a child, made and worked out by hand; the tests of SocialOps stand in it.

Each brief has its right lists, conversions and report here, worked out from the records in the comments beside them,
so a test says only what it does otherwise.
"""

from __future__ import annotations

from typing import Any

from skillhorizon.core.gateway import Gateway
from skillhorizon.core.world import Update
from skillhorizon.envs.social import ENVIRONMENT
from skillhorizon.envs.social.records import (
    Batch,
    Brief,
    Conversion,
    Evidence,
    Limits,
    Pool,
    Programme,
    Response,
    Showing,
    Slot,
    Withdrawal,
)
from skillhorizon.envs.social.seed import Account, Asset, Audience, Channel, Consent, Grant, PastPost
from skillhorizon.envs.social.world import SocialWorld
from tests.envs.bench import Bench

ARMS = ("control", "challenger")
FEED, FORUM = "chn-feed", "chn-forum"

AUDIENCES = (
    Audience("aud-a", "a", 1000, 24),
    Audience("aud-b", "b", 2000, 48),
    Audience("aud-c", "c", 3000, 24),
    Audience("aud-d", "d", 500, 48),
    Audience("aud-e", "e", 700, 24),
    Audience("aud-f", "f", 900, 24),
    Audience("aud-g", "g", 400, 48),
    Audience("aud-h", "h", 300, 24),
    Audience("aud-x", "x", 9000, 24),
)
ROLES_OF = {
    "aud-a": ARMS,
    "aud-b": ARMS,
    "aud-c": ARMS,
    "aud-d": ("control",),
    "aud-e": ARMS,
    "aud-f": ("challenger",),
    "aud-g": ARMS,
    "aud-h": ARMS,
    "aud-x": (),
}
PROGRAMMES = (
    Programme("aud-c", (Showing(10, 200, "pub-c1"), Showing(40, 100, "pub-c2"))),
    Programme("aud-b", (Showing(0, 150, "pub-b1"),)),
    Programme("aud-g", (Showing(20, 96, "pub-g1"),)),
    Programme("aud-h", (Showing(5, 100, "pub-h1"), Showing(50, 100, "pub-h2"))),
)
LIMITS = tuple(
    Limits(a.audience_id, 1000, 24, "resting" if a.audience_id == "aud-h" else "active")
    for a in AUDIENCES
    if a.audience_id != "aud-x"
)
EVIDENCE = Evidence("Alderly", "care", "sales", -100, -1)
BRIEFS = (
    Brief("brf-p", 1, 0, "P", FEED, (), None, 2, ("aud-a", "aud-b"), "cta-p", "cta-p2", "cbt-p", "tag-p", "still",
          EVIDENCE, 96),
    Brief("brf-q", 1, 1, "Q", FEED, (), None, 2, ("aud-e", "aud-f"), "cta-q", "cta-q2", "cbt-q", "tag-p", "still",
          EVIDENCE, 96),
    Brief("brf-k", 2, 0, "K", FEED, ("brf-p",), "brf-q", 3, (), None, "cta-k2", "cbt-k", "tag-p", "still",
          EVIDENCE, 96),
)  # fmt: skip
BATCHES = {"cbt-p": ("aud-c", "aud-d", "aud-x"), "cbt-q": ("aud-g",), "cbt-k": ("aud-h",)}
LISTS = {
    # the batch gives c to both arms and d to the control; b (2000) comes before a (1000) in what the challenger lacks
    "brf-p": {"control": ["aud-c", "aud-d"], "challenger": ["aud-c", "aud-b"]},
    # g from the batch; f has consented to the challenger only and is the larger one there
    "brf-q": {"control": ["aud-g", "aud-e"], "challenger": ["aud-g", "aud-f"]},
    # h from the batch, then the audiences of P's winner, its challenger, by reach: c (3000), b (2000)
    "brf-k": {"control": ["aud-h", "aud-c", "aud-b"], "challenger": ["aud-h", "aud-c", "aud-b"]},
}
CTAS = {
    "brf-p": {"control": "cta-p", "challenger": "cta-p2"},
    "brf-q": {"control": "cta-q", "challenger": "cta-q2"},
    # Q's winner is its control
    "brf-k": {"control": "cta-q", "challenger": "cta-k2"},
}
ROWS: dict[tuple[str, str, str], tuple[int, tuple[tuple[str, int], ...]]] = {
    ("brf-p", "control", "aud-c"): (100, (("mbr-1", 5), ("mbr-2", 7))),
    ("brf-p", "control", "aud-d"): (300, (("mbr-1", 3), ("mbr-3", 9))),
    ("brf-p", "challenger", "aud-c"): (100, (("mbr-2", 6), ("mbr-4", 10))),
    ("brf-p", "challenger", "aud-b"): (100, (("mbr-3", 9),)),
    ("brf-q", "control", "aud-g"): (50, (("mbr-5", 4),)),
    ("brf-q", "control", "aud-e"): (50, ()),
    ("brf-q", "challenger", "aud-g"): (50, (("mbr-6", 4),)),
    ("brf-q", "challenger", "aud-f"): (50, ()),
    ("brf-k", "control", "aud-h"): (100, (("mbr-4", 1), ("mbr-7", 8))),
    ("brf-k", "challenger", "aud-h"): (100, (("mbr-5", 2), ("mbr-7", 20))),
}
REPORTS: dict[str, Any] = {
    # mbr-1 once; mbr-2 came first by the challenger (6 before 7); mbr-3 at hour 9 on both, so the control's.
    # 2 members for 400 delivered against 2 for 200: 2 * 200 < 2 * 400, the challenger wins
    "brf-p": ({"control": ["mbr-1", "mbr-3"], "challenger": ["mbr-2", "mbr-4"]}, "challenger"),
    # 1 for 100 against 1 for 100: the control at equal rates
    "brf-q": ({"control": ["mbr-5"], "challenger": ["mbr-6"]}, "control"),
    # P has credited mbr-4, Q mbr-5; mbr-7 came first by the control
    "brf-k": ({"control": ["mbr-7"], "challenger": []}, "control"),
}
POSTS = {
    p.post_id: p
    for p in (
        PastPost("pst-s1", "pub-s1", "acc-1", "cmp-1", "care", "sales", -10, 100, 5, "live"),
        PastPost("pst-s2", "pub-s2", "acc-1", "cmp-2", "care", "sales", -100, 100, 5, "live"),
        PastPost("pst-s3", "pub-s3", "acc-1", "cmp-1", "care", "sales", -30, 100, 5, "live"),
        PastPost("pst-s4", "pub-s4", "acc-1", "cmp-3", "care", "signups", -40, 100, 5, "live"),
        PastPost("pst-s5", "pub-s5", "acc-1", "cmp-3", "care", "sales", -50, 100, 5, "corrected"),
        PastPost("pst-s6", "pub-s6", "acc-1", "cmp-3", "care", "sales", -101, 100, 5, "live"),  # before the window
        PastPost("pst-s7", "pub-s7", "acc-1", "cmp-3", "gifts", "sales", -50, 100, 5, "live"),
        PastPost("pst-s8", "pub-s8", "acc-2", "cmp-4", "care", "sales", -50, 100, 5, "live"),  # another brand
    )
}
GRANTS = (
    Grant("grt-1", "ast-1", (FEED,), ("control", "challenger"), -50, 9000, None),
    Grant("grt-2", "ast-2", (FEED,), ("deployment",), -50, 9000, None),
    Grant("grt-3", "ast-3", (FEED,), ("control", "challenger", "deployment"), 0, 30, None),
    Grant("grt-4", "ast-4", (FORUM,), ("control", "challenger", "deployment"), 0, 9000, None),
    Grant("grt-5", "ast-5", (FEED,), ("control", "challenger", "deployment"), 0, 9000, None),
)
ASSETS = {g.asset_id: Asset(g.asset_id, "clip" if g.asset_id == "ast-9" else "still", "t", "h") for g in GRANTS}
FULL, SINGLE = 12, 24
"""Ticks of a slot without a place and of one with a single place; all others have two."""


def slot_at(tick: int) -> str:
    return f"slt-{tick}"


class Desk(Bench):
    """The desk behind its Gateway. ``updates`` are declared with it; ``strike`` makes one happen at once."""

    def __init__(self, *updates: Update, caps: dict[str, int] | None = None) -> None:
        house_accounts = {"acc-1": Account("acc-1", "Alderly", FEED, 1), "acc-2": Account("acc-2", "Farrow", FEED, 1)}
        consents = {
            f"{a}/{channel}": Consent(a, channel, "granted" if roles else "withdrawn", roles)
            for a, roles in ROLES_OF.items()
            for channel in (FEED, FORUM)
        }
        tables: dict[str, dict[str, Any]] = {
            "channels": {c: Channel(c, c) for c in (FEED, FORUM)},
            "accounts": house_accounts,
            "audiences": {a.audience_id: a for a in AUDIENCES},
            "posts": POSTS,
            "assets": ASSETS,
            "briefs": {b.brief_id: b for b in BRIEFS},
            "batches": {name: Batch(name, members) for name, members in BATCHES.items()},
            "consents": consents,
            "pools": {"tag-p": Pool("tag-p", tuple(ASSETS))},
            "grants": {g.grant_id: g for g in GRANTS},
            "limits": {
                m.audience_id: Limits(m.audience_id, (caps or {}).get(m.audience_id, 1000), 24, m.status)
                for m in LIMITS
            },
            "programmes": {p.audience_id: p for p in PROGRAMMES},
            "slots": {slot_at(t): Slot(slot_at(t), FEED, t, {FULL: 0, SINGLE: 1}.get(t, 2)) for t in range(0, 1200, 6)}
            | {"slt-other": Slot("slt-other", FORUM, 6, 2)},
            "responses": {
                f"{brief}/{role}/{audience}": Response(
                    brief,
                    role,  # type: ignore[arg-type]
                    audience,
                    delivered,
                    tuple(
                        Conversion(f"cnv-{brief[4:]}{role[1]}{audience[4:]}{n}", member, audience, hour)
                        for n, (member, hour) in enumerate(rows)
                    ),
                )
                for (brief, role, audience), (delivered, rows) in ROWS.items()
            },
        }
        self.world = SocialWorld(tables, updates, {"season_end": 1000})
        self.world.house = _House(self.world.house)  # type: ignore[assignment]
        self.gateway = Gateway(self.world, ENVIRONMENT.tools)

    # -- the right calls -------------------------------------------------------------------------------------------

    def report_of(self, brief_id: str) -> str:
        ref: str = self.world.newest_of("report", brief_id).ref
        return ref

    def open(self, brief_id: str) -> Any:
        parents = self.world.brief_of(brief_id).parents
        return self.do("open_brief", brief_id=brief_id, parent_reports=[self.report_of(p) for p in parents])

    def draft(self, brief_id: str, role: str, **changes: Any) -> str:
        """The right post of a brief, with asset and evidence, or one that differs; its id."""
        if role == "deployment":
            winner = self.world.newest_of("report", brief_id).content.winner
            audiences, cta = list(winner.audience_ids), winner.cta_id
        else:
            audiences, cta = LISTS[brief_id][role], CTAS[brief_id][role]
        given = {"audience_ids": audiences, "cta_id": cta, **changes}
        answer = self.do("create_draft", brief_id=brief_id, role=role, copy="Text.", **given)
        post_id: str = answer["post_id"]
        asset = "2" if role == "deployment" else "1"
        self.do("attach_asset", post_id=post_id, asset_id=f"ast-{asset}", grant_id=f"grt-{asset}")
        self.do("cite_evidence", post_id=post_id, evidence_post_ids=["pst-s1", "pst-s2"])
        return post_id

    def approve(self, post_id: str) -> Any:
        return self.do("request_approval", post=self.world.post(post_id).ref)

    def prepare(self, brief_id: str) -> list[str]:
        """Open a brief, draft and approve both arms, register them; the arms."""
        self.open(brief_id)
        posts = [self.draft(brief_id, role) for role in ARMS]
        for post_id in posts:
            self.approve(post_id)
        self.register(brief_id, *posts)
        return posts

    def register(self, brief_id: str, control: str, challenger: str) -> Any:
        return self.do("register_experiment", brief_id=brief_id, control_post_id=control, challenger_post_id=challenger)

    def book(self, tick: int, *posts: str) -> None:
        for post_id in posts:
            self.do("schedule_post", post_id=post_id, slot_id=slot_at(tick))

    def advance(self, tick: int) -> Any:
        return self.do("advance_clock", to_tick=tick)

    def declare(self, post_id: str) -> dict[str, Any]:
        """The right arguments to publish a post now, by the world's own rule."""
        audiences = self.world.post(post_id).content.audience_ids
        sources, loads = self.world.declaration(audiences, self.world.clock)
        return {"post_id": post_id, "historical_publication_ids": sources, "audience_loads": loads}

    def publish(self, *posts: str) -> None:
        for post_id in posts:
            self.do("publish_post", **self.declare(post_id))

    def reporting(self, brief_id: str, **changes: Any) -> dict[str, Any]:
        """The right report of a brief whose arms were measured, or another one."""
        arms = self.world.newest_of("experiment", brief_id).content.arms
        measurements = [self.world.newest_of("measurement", arms[role]).ref for role in ARMS]
        credited, winner = REPORTS[brief_id]
        return {"brief_id": brief_id, "measurements": measurements, "credited": credited, "winner": winner, **changes}

    def run(self, brief_id: str, tick: int) -> list[str]:
        """A brief's experiment from opening to measurement, with its arms at ``tick``."""
        posts = self.prepare(brief_id)
        if brief_id == "brf-k":
            self.reactivate()
        self.book(tick, *posts)
        self.advance(tick)
        self.publish(*posts)
        self.advance(tick + 48)
        for post_id in posts:
            self.do("measure_post", post_id=post_id)
        return posts

    def reactivate(self) -> Any:
        """H is brought back on what it saw last."""
        last = self.world.exposures("aud-h", 0, self.world.clock)[-1].publication_id
        arguments = {"brief_id": "brf-k", "audience_id": "aud-h", "basis_publication_id": last}
        return self.do("reactivate_audience", **arguments)

    def report(self, brief_id: str, tick: int, **changes: Any) -> str:
        self.run(brief_id, tick)
        ref: str = self.do("submit_report", **self.reporting(brief_id, **changes))["report"]
        return ref

    def parents_reported(self) -> Desk:
        """P at 6, Q at 60; the clock stands at 108."""
        self.report("brf-p", 6)
        self.report("brf-q", 60)
        return self

    def strike(self, brief_id: str, *roles: str) -> set[str]:
        """Rights are withdrawn now; the references that became stale."""
        self.world.begin_call()
        self.world.apply_update(Update(9, "", 1, Withdrawal(brief_id, roles)))  # type: ignore[arg-type]
        return set(self.world.invalidated)


class _House:
    """The house without its own records: the desk has its accounts, and no exposure before tick 0."""

    def __init__(self, house: Any) -> None:
        self.brand_of = {"acc-1": "Alderly", "acc-2": "Farrow"}
        self.exposures: dict[str, Any] = {}
        self.overlaps: dict[str, Any] = {}
        self.grants: dict[str, Any] = {}
        self.audience_ids = [a.audience_id for a in AUDIENCES]

    def between(self, brand: str, topic: str, start: int, end: int) -> list[PastPost]:
        rows = [p for p in POSTS.values() if (self.brand_of[p.account_id], p.topic) == (brand, topic)]
        return sorted((p for p in rows if start <= p.at <= end), key=lambda p: (-p.at, p.post_id))
