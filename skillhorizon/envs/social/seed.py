"""The house that all tasks share: accounts, campaigns, posts, assets, audiences, and what they saw. Read-only.

Ticks are hours; everything here lies between -1,920 and -1. The records are made in code from named random streams, in
exactly the numbers of the paper's Table 3.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.world import Record

PAST = 1920
"""Hours that the records reach back."""
BRANDS = ("Alderly", "Brightmoor", "Cobalt Lane", "Dunmere", "Elmfield", "Farrow", "Greywick", "Harlow Tea")
CHANNELS = ("feed", "stories", "video", "forum", "newsletter", "audio")
OPEN_CHANNELS = 4
"""Campaigns of the season run on two of the first four channels; old grants for the last two are of no use to them."""
TOPICS = ("care", "craft", "gifts", "outdoors", "season", "travel")
OBJECTIVES = ("awareness", "sales", "signups")
FORMATS = ("carousel", "clip", "still", "story")
ROLES = ("control", "challenger", "deployment")
_WINDOW_ROWS, _FITTING, _CAMPAIGNS = (18, 25), 6, 3
_HOLDERS = ("Northlight", "Pavel & Daughters", "Quill Archive", "Studio Renn", "Tidewater", "Umbra")
_SCENES = ("harbour", "kitchen", "meadow", "market", "station", "terrace", "workshop", "yard")
_MOODS = ("at dawn", "close up", "from above", "in rain", "in use", "unpacked")
_PEOPLE = ("commuters", "cyclists", "gardeners", "hosts", "parents", "readers", "renters", "runners", "students")
_HABITS = ("lapsed", "loyal", "new", "regional", "seasonal", "weekend")

ArmRole = Literal["control", "challenger"]
Role = Literal["control", "challenger", "deployment"]


class Channel(Record, frozen=True):
    channel_id: str
    name: str


class Account(Record, frozen=True):
    account_id: str
    brand: str
    channel: str
    followers: int


class Campaign(Record, frozen=True):
    campaign_id: str
    brand: str
    topic: str
    objective: str


class PastPost(Record, frozen=True):
    post_id: str
    publication_id: str
    account_id: str
    campaign_id: str
    topic: str
    objective: str
    at: int
    impressions: int
    clicks: int
    status: Literal["live", "corrected", "removed"]


class Asset(Record, frozen=True):
    asset_id: str
    format: str
    title: str
    rights_holder: str


class PostAsset(Record, frozen=True):
    post_id: str
    asset_id: str


class Grant(Record, frozen=True):
    """Covers its channels and roles from ``from_tick`` up to but not including ``until_tick``."""

    grant_id: str
    asset_id: str
    channels: tuple[str, ...]
    roles: tuple[str, ...]
    from_tick: int
    until_tick: int
    withdrawn_at: int | None


class Audience(Record, frozen=True):
    audience_id: str
    name: str
    reach: int
    half_life_hours: Literal[24, 48]


class Overlap(Record, frozen=True):
    pair: tuple[str, str]
    permille: int


class Consent(Record, frozen=True):
    audience_id: str
    channel: str
    status: Literal["granted", "withdrawn"]
    roles: tuple[str, ...]


class Exposure(Record, frozen=True):
    audience_id: str
    publication_id: str
    at: int
    points: int


class _Seed:
    """Makes the tables one after the other; each later one refers to earlier ones."""

    def __init__(self) -> None:
        self.ids = Ids("social seed")
        self.tables: dict[str, dict[str, Any]] = {}

    def rng(self, *key: object) -> random.Random:
        return stream("social seed", *key)

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables.setdefault(table, {})[key] = record

    def tables_made(self) -> Mapping[str, Mapping[str, Record]]:
        self._accounts()
        self._campaigns()
        self._audiences()
        self._posts()
        self._assets()
        return self.tables

    def _accounts(self) -> None:
        self.channels = [self.ids.new("chn", name) for name in CHANNELS]
        for channel_id, name in zip(self.channels, CHANNELS, strict=True):
            self.put("channels", channel_id, Channel(channel_id, name))
        self.accounts: dict[str, list[str]] = {brand: [] for brand in BRANDS}
        rng = self.rng("accounts")
        for brand in BRANDS:
            for channel_id in self.channels:
                account_id = self.ids.new("acc", brand, channel_id)
                self.accounts[brand].append(account_id)
                followers = int(rng.lognormvariate(9.6, 0.7))
                self.put("accounts", account_id, Account(account_id, brand, channel_id, followers))

    def _campaigns(self) -> None:
        """Each brand has three or four campaigns on every topic."""
        self.campaigns: list[Campaign] = []
        for n in range(180):
            rng = self.rng("campaign", n)
            brand, topic = BRANDS[n % 8], TOPICS[n // 8 % 6]
            campaign = Campaign(self.ids.new("cmp", n), brand, topic, rng.choice(OBJECTIVES))
            self.campaigns.append(campaign)
            self.put("campaigns", campaign.campaign_id, campaign)

    def _audiences(self) -> None:
        rng = self.rng("audiences")
        self.audiences = [self.ids.new("aud", n) for n in range(240)]
        names = [f"{habit} {people}" for people in _PEOPLE for habit in _HABITS]
        for n, audience_id in enumerate(self.audiences):
            name = f"{names[n % len(names)]} {n // len(names) + 1}"
            reach = int(rng.lognormvariate(9.2, 0.5)) + n
            self.put("audiences", audience_id, Audience(audience_id, name, reach, 24 if reach > 9900 else 48))
            for channel_id in self.channels:
                granted = rng.random() < 0.75
                roles = rng.choice((ROLES[:2], ROLES[:2], ROLES[:1], ROLES[1:2])) if granted else ()
                consent = Consent(audience_id, channel_id, "granted" if granted else "withdrawn", roles)
                self.put("consents", f"{audience_id}/{channel_id}", consent)
        circle = rng.sample(self.audiences, 240)
        for n, one in enumerate(circle):
            for step in (1, 2, 3):
                pair = tuple(sorted((one, circle[(n + step) % 240])))
                self.put("audience_overlaps", "/".join(pair), Overlap(pair, rng.randint(8, 260)))  # type: ignore[arg-type]

    def _posts(self) -> None:
        """35 rounds of 120 posts; in each round every audience sees one post, and every post has two audiences."""
        self.posts: list[str] = []
        for turn in range(35):
            rng = self.rng("round", turn)
            order = rng.sample(self.audiences, 240)
            for n in range(120):
                at = -PAST + (turn * 120 + n) * PAST // 4200
                campaign = rng.choice(self.campaigns)
                post_id = self.ids.new("pst", turn, n)
                publication_id = self.ids.new("pub", turn, n)
                objective = campaign.objective if rng.random() < 0.5 else rng.choice(OBJECTIVES)
                impressions = int(rng.lognormvariate(8.4, 0.6))
                clicks = impressions * rng.randint(4, 40) // 1000
                fate = rng.random()
                status: Any = "live" if fate < 0.82 else "corrected" if fate < 0.93 else "removed"
                account_id = rng.choice(self.accounts[campaign.brand])
                self.posts.append(post_id)
                self.put(
                    "posts",
                    post_id,
                    PastPost(
                        post_id, publication_id, account_id, campaign.campaign_id, campaign.topic, objective,
                        at, impressions, clicks, status,
                    ),
                )  # fmt: skip
                for audience_id in order[2 * n : 2 * n + 2]:
                    exposure = Exposure(audience_id, publication_id, at, rng.randint(96, 224))
                    self.put("exposures", f"{audience_id}/{publication_id}", exposure)

    def _assets(self) -> None:
        rng = self.rng("assets")
        assets = [self.ids.new("ast", n) for n in range(900)]
        useless = tuple(self.channels[OPEN_CHANNELS:])
        for n, asset_id in enumerate(assets):
            title = f"{rng.choice(_SCENES)} {rng.choice(_MOODS)}"
            self.put("assets", asset_id, Asset(asset_id, FORMATS[n % 4], title, rng.choice(_HOLDERS)))
            for number in range(2):
                grant_id = self.ids.new("grt", n, number)
                start = -rng.randint(900, PAST)
                if number:
                    until, channels = 1_000_000, [rng.choice(useless)]
                else:
                    until, channels = -rng.randint(1, 800), sorted(rng.sample(self.channels, 2))
                roles = tuple(r for r in ROLES if rng.random() < 0.7) or ROLES
                self.put("grants", grant_id, Grant(grant_id, asset_id, tuple(channels), roles, start, until, None))
        for post_id in rng.sample(self.posts, 2800):
            asset_id = rng.choice(assets)
            self.put("post_assets", f"{post_id}/{asset_id}", PostAsset(post_id, asset_id))


@cache
def seed_tables() -> Mapping[str, Mapping[str, Record]]:
    """All 20,734 records by table and key; made once a process."""
    return _Seed().tables_made()


# -- the records by what they belong to ------------------------------------------------------------------------------


class Window(NamedTuple):
    """Where a brief's claim has its evidence: both ticks inclusive."""

    brand: str
    topic: str
    objective: str
    from_tick: int
    to_tick: int


class House:
    """The seed records grouped as the tools and the rules ask for them, each group in its declared order."""

    def __init__(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        self.brand_of = {a.account_id: a.brand for a in tables["accounts"].values()}
        self.channels = [c.channel_id for c in tables["channels"].values()]
        self.posts: dict[tuple[str, str], list[PastPost]] = {}
        """(brand, topic) -> posts, the newest first"""
        for post in sorted(tables["posts"].values(), key=lambda p: (-p.at, p.post_id)):
            self.posts.setdefault((self.brand_of[post.account_id], post.topic), []).append(post)
        self.exposures: dict[str, list[Exposure]] = {}
        """audience -> exposures, the oldest first"""
        for exposure in sorted(tables["exposures"].values(), key=lambda e: (e.at, e.publication_id)):
            self.exposures.setdefault(exposure.audience_id, []).append(exposure)
        self.overlaps: dict[str, list[tuple[str, int]]] = {}
        for overlap in tables["audience_overlaps"].values():
            for one, other in (overlap.pair, overlap.pair[::-1]):
                self.overlaps.setdefault(one, []).append((other, overlap.permille))
        for found in self.overlaps.values():
            found.sort()
        self.grants: dict[str, list[str]] = {}
        """asset -> its old grants, by id"""
        for grant_id in sorted(tables["grants"]):
            self.grants.setdefault(tables["grants"][grant_id].asset_id, []).append(grant_id)
        self.audience_ids = list(tables["audiences"])
        self.characters = frozenset(
            key for name, rows in tables.items() if name not in _PAIRED for key in rows
        ) | frozenset(p.publication_id for p in tables["posts"].values())

    @property
    def windows(self) -> list[Window]:
        """Every window with enough evidence: six fitting posts of three campaigns among 18 to 25."""
        return _windows()

    def between(self, brand: str, topic: str, start: int, end: int) -> list[PastPost]:
        """Posts of a brand on a topic between two ticks, both inclusive, the newest first."""
        return [p for p in self.posts.get((brand, topic), ()) if start <= p.at <= end]


_PAIRED = ("post_assets", "audience_overlaps", "consents", "exposures")


def fitting(posts: list[PastPost], objective: str) -> list[PastPost]:
    """Those that may be cited for an objective (rule 5)."""
    return [p for p in posts if p.objective == objective and p.status == "live"]


@cache
def house() -> House:
    return House(seed_tables())


@cache
def _windows() -> list[Window]:
    found = []
    for (brand, topic), posts in sorted(house().posts.items()):
        for first in range(0, len(posts) - _WINDOW_ROWS[1], 3):
            rows = posts[first : first + _WINDOW_ROWS[0] + first % (_WINDOW_ROWS[1] - _WINDOW_ROWS[0])]
            start, end = rows[-1].at, rows[0].at
            listed = house().between(brand, topic, start, end)
            for objective in OBJECTIVES:
                fit = fitting(listed, objective)
                enough = len(fit) >= _FITTING and len({p.campaign_id for p in fit}) >= _CAMPAIGNS
                if enough and len(listed) <= _WINDOW_ROWS[1]:
                    found.append(Window(brand, topic, objective, start, end))
    return found
