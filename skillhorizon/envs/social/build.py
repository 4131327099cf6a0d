"""Construction of SocialOps tasks: waves of briefs whose reports feed later ones, on a season of audiences and slots.

Waves are counted from 1, lanes from 0. Each brief draws from streams of its own, keyed by wave and lane, so a longer
season has the same briefs and more. What the briefs lead to is worked out here by the world's own rules, brief by
brief, since a child's conversions must repeat members that its parents have truly credited.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from skillhorizon.core.composition import Module, Need, TaskGraph
from skillhorizon.core.ids import Ids, stream
from skillhorizon.core.task import Blueprint, TaskConfig
from skillhorizon.core.world import Record, Update
from skillhorizon.envs.social.goals import SocialGoal
from skillhorizon.envs.social.records import (
    SLOT_HOURS,
    Batch,
    Brief,
    Conversion,
    Evidence,
    Limits,
    Pool,
    Programme,
    Report,
    Response,
    Showing,
    Slot,
    Winner,
    Withdrawal,
)
from skillhorizon.envs.social.rules import ARMS, attributed, winner_of
from skillhorizon.envs.social.seed import (
    FORMATS,
    OPEN_CHANNELS,
    ROLES,
    ArmRole,
    Consent,
    Grant,
    house,
    seed_tables,
)
from skillhorizon.envs.social.world import CYCLE, SocialWorld

PATTERNS = ("staggered", "distributed", "alternating-fork-join", "protected-branch")
CAMPAIGNS = {"64K": 2, "128K": 2, "256K": 3, "512K": 3, "1M": 3, "2M": 3, "4M": 4}
"""Briefs a wave; the last wave may hold fewer."""
_BRIEFS = {"64K": 3, "128K": 5, "256K": 10, "512K": 18, "1M": 35, "2M": 70, "4M": 140}
"""Briefs with which calibration begins."""
WEIGHT = 96
LIMITS = (2, 3, 4)
"""Most audiences a post has in the first wave, the second, and from the third on."""
PER_BRIEF, SLACK = 340, 240
"""Hours that a season has for each brief, and beyond."""
_FOREVER = 1_000_000
_GOAL = (
    "Carry out every brief of the season, wave by wave. For each: bind its parents' reports, derive the audiences "
    "and calls to action of two arms, draft them with licensed assets and evidence, have them approved and registered, "
    "book, publish and measure them, report the winner, and deploy it. Rights may be withdrawn while you work; notices "
    "say so. State for each notice which posts it voided, and bring those back that are still to be published. Leave "
    "the limits of audiences as they are, and nothing booked at the end."
)
_SUBJECTS = ("spring range", "members' club", "repair service", "travel set", "gift box", "workshop day", "night line")
_CLAIMS = ("made to last", "back in stock", "now with free returns", "for the whole house", "by popular demand")


class Family(NamedTuple):
    """What a family turns: the load cap's slack, the cooldown, repeats across arms, resting audiences.

    ``pace`` is about how many hours a brief takes where the briefs are worked one by one.
    """

    q: int
    cooldown: int
    across: bool
    resting: bool
    pace: int


FAMILY = {
    "overlapping-conversions": Family(3, 24, True, False, 66),
    "cooldown-reactivation": Family(7, 36, False, True, 77),
    "overlap-reactivation": Family(7, 36, True, True, 77),
}
FAMILIES = tuple(FAMILY)
Place = tuple[int, int]
"""Wave and lane."""


@cache
def configurations(band: str) -> tuple[TaskConfig, ...]:
    """Three families by four patterns, and once more by one with two kinds of updates: 15 in every band."""
    kinds = (*(("single", pattern) for pattern in PATTERNS), ("double", "distributed"))
    return tuple(
        TaskConfig("social", family, variant, pattern, band, {"campaigns": CAMPAIGNS[band]})
        for variant, pattern in kinds
        for family in FAMILIES
    )


def guess(config: TaskConfig) -> int:
    """Briefs with which calibration begins."""
    return _BRIEFS[config.band]


def build(config: TaskConfig, seed: int, size: int) -> Blueprint:
    """The task of a configuration and seed with ``size`` briefs (at least 3)."""
    return Builder(config, seed, size).blueprint()


class Builder:
    def __init__(self, config: TaskConfig, seed: int, size: int) -> None:
        self.key = ("social", config.id, config.band, seed)
        self.config = config
        self.family = FAMILY[config.family]
        self.N, self.C = size, int(config.options["campaigns"])
        self.W = -(-size // self.C)
        self.places: list[Place] = [(w, n) for w in range(1, self.W + 1) for n in range(self.C)][:size]
        self.ids = Ids(*self.key)
        self.ids.avoid(house().characters)
        self.house = house()
        self.tables: dict[str, dict[str, Any]] = {
            name: {}
            for name in (
                "briefs", "batches", "consents", "pools", "grants", "limits", "programmes", "slots", "responses",
            )
        }  # fmt: skip
        self.brief_ids = {place: self.ids.new("brf", *place) for place in self.places}
        self.channels = self.rng("channels").sample(self.house.channels[:OPEN_CHANNELS], 2)
        self.season_end = PER_BRIEF * size + SLACK
        self.used_as_parent: Counter[Place] = Counter()
        self.granted: Counter[str] = Counter()
        self.identities: dict[tuple[object, ...], str] = {}

    def rng(self, *key: object) -> random.Random:
        return stream(*self.key, *key)

    def put(self, table: str, key: str, record: Record) -> None:
        self.tables[table][key] = record

    def lanes(self, wave: int) -> int:
        """Briefs of a wave."""
        return self.C if wave < self.W else self.N - self.C * (self.W - 1)

    def channel(self, lane: int) -> str:
        return self.channels[lane % 2]

    # -- the whole -------------------------------------------------------------------------------------------------

    def blueprint(self) -> Blueprint:
        self.struck = self._struck()
        self._deal_audiences()
        self.resting = self._resting()
        self._add_pools()
        parents = {place: self._parents(place) for place in self.places}
        for place in self.places:
            self._add_brief(place, *parents[place])
        for audience_id in sorted(self.met):
            self._add_audience(audience_id)
        self._add_slots()
        self._foresee()
        updates = self._updates()
        return Blueprint(
            tables=self.tables,
            updates=updates,
            graph=self._graph(),
            brief={
                "goal": _GOAL,
                "briefs": self.N,
                "waves": self.W,
                "channels": self.channels,
                "season_end": self.season_end,
                "posts_per_brief": 3,
            },
            goal=SocialGoal(tuple(self.brief_ids.values()), len(updates)),
            scale={"Posts": 3 * self.N, "Waves": self.W},
        )

    # -- parents ---------------------------------------------------------------------------------------------------

    def _parents(self, place: Place) -> tuple[list[Place], Place | None]:
        """Whose audiences and whose call to action a brief takes over."""
        w, lane = place
        if w == 1:
            return [], None
        beside = (lane + 1) % self.C
        audiences: list[Place] = [(w - 1, lane)]
        if self.config.pattern == "staggered":
            cta = (max(1, w - 1 - lane % 3), beside)
        elif self.config.pattern == "distributed":
            earlier = [p for p in self.places if p[0] < w and p != (w - 1, lane)]
            least = min(earlier, key=lambda p: (self.used_as_parent[p], p))
            audiences.append(least)
            further = [p for p in earlier if p != least]
            cta = self.rng("cta parent", *place).choice(further) if further else least
        elif self.config.pattern == "alternating-fork-join":
            if w % 2 == 0:
                audiences = [(w - 1, n) for n in range(self.lanes(w - 1))]
                cta = (w - 1, beside)
            else:
                audiences = [(w - 1, self.rng("hub", w).randrange(self.C))]
                cta = (w - 1, lane)
        elif lane == self.C - 1:
            cta = (w - 1, lane)
        else:
            cta = (w - 1, self.C - 1 if w == self.W else (lane + 1) % (self.C - 1))
        self.used_as_parent.update({*audiences, cta})
        return audiences, cta

    # -- briefs and what they need ---------------------------------------------------------------------------------

    def _add_brief(self, place: Place, audiences: list[Place], cta: Place | None) -> None:
        rng = self.rng("brief", *place)
        w, lane = place
        window = rng.choice(self.house.windows)
        brief_id = self.brief_ids[place]
        title = f"{window.brand}: {rng.choice(_SUBJECTS)}, {rng.choice(_CLAIMS)}"
        brief = Brief(
            brief_id=brief_id,
            wave=w,
            lane=lane,
            title=title,
            channel=self.channel(lane),
            audience_parents=tuple(self.brief_ids[p] for p in audiences),
            cta_parent=self.brief_ids[cta] if cta else None,
            audience_limit=LIMITS[min(w, 3) - 1],
            opening_audiences=self.opening[place] if w == 1 else (),
            opening_cta=self.ids.new("cta", "opening", *place) if w == 1 else None,
            challenger_cta=self.ids.new("cta", *place),
            consent_batch_id=self.ids.new("cbt", *place),
            asset_tag=self.ids.new("tag", *place),
            format=self.formats[w],
            evidence=Evidence(*window),
            weight=WEIGHT,
        )
        self.put("briefs", brief_id, brief)
        self.put("batches", brief.consent_batch_id, Batch(brief.consent_batch_id, tuple(sorted(self.dealt[place]))))
        self.put("pools", brief.asset_tag, Pool(brief.asset_tag, tuple(sorted(self.pools[place]))))

    def _deal_audiences(self) -> None:
        """Opening audiences of the first wave, then four fresh ones a brief; once all were used, batches return."""
        deck = self.rng("deck").sample(self.house.audience_ids, len(self.house.audience_ids))
        self.opening: dict[Place, tuple[str, ...]] = {}
        consents: Any = seed_tables()["consents"]
        for place in self.places[: self.C]:
            channel = self.channel(place[1])
            both = [a for a in deck if set(consents[f"{a}/{channel}"].roles) >= set(ARMS)][:2]
            other = next(a for a in deck if a not in both and not set(consents[f"{a}/{channel}"].roles) >= set(ARMS))
            self.opening[place] = tuple(sorted((*both, other)))
            deck = [a for a in deck if a not in self.opening[place]]
        self.dealt: dict[Place, list[str]] = {}
        """both-role audience, one-role audience, two decoys"""
        self.fresh: set[Place] = set()
        turns: dict[int, list[Place]] = {0: [], 1: []}
        for place in self.places:
            served = turns[place[1] % 2]
            if len(deck) >= 4:
                self.dealt[place], deck = deck[:4], deck[4:]
                self.fresh.add(place)
                self._add_consents(place)
            else:
                # the least recently used batch of the same channel, with the consents it has
                self.dealt[place] = self.dealt[served.pop(0)]
            served.append(place)
        self.met = {a for audiences in (*self.opening.values(), *self.dealt.values()) for a in audiences}

    def _add_consents(self, place: Place) -> None:
        rng = self.rng("consents", *place)
        here = self.channel(place[1])
        other = self.channel(place[1] + 1)
        both, one, elsewhere, withdrawn = self.dealt[place]
        role = rng.choice(ARMS)
        only_here = rng.random() < 0.5
        self._consent(both, (here, other), ARMS)
        self._consent(one, (here,) if only_here else (here, other), (role,))
        if only_here:
            self._consent(one, (other,), ())
        self._consent(elsewhere, (here,), ())
        self._consent(elsewhere, (other,), ARMS)
        self._consent(withdrawn, (here, other), ())

    def _consent(self, audience_id: str, channels: tuple[str, ...], roles: tuple[str, ...]) -> None:
        for channel in channels:
            consent = Consent(audience_id, channel, "granted" if roles else "withdrawn", roles)
            self.put("consents", f"{audience_id}/{channel}", consent)

    def _add_audience(self, audience_id: str) -> None:
        """What other teams show it, and the limits that leave room for two posts beside that and some more."""
        rng = self.rng("programme", audience_id)
        gaps = [rng.randint(42, 64) for _ in range(27)]
        while total := sum(gaps) - CYCLE:
            place = rng.randrange(27)
            step = -1 if total > 0 else 1
            if 42 <= gaps[place] + step <= 64:
                gaps[place] += step
        showings, at = [], rng.randint(0, gaps[-1] - 1)
        for n, gap in enumerate(gaps):
            publication = self.ids.new("pub", audience_id, n)
            showings.append(Showing(at, rng.randint(96, 224), publication))
            at += gap
        self.put("programmes", audience_id, Programme(audience_id, tuple(showings)))
        ambient = self._ambient(audience_id, showings) + 2 * WEIGHT
        cap = ambient + -(-ambient // self.family.q)
        status: Any = "resting" if audience_id in self.resting_audiences else "active"
        self.put("limits", audience_id, Limits(audience_id, cap, self.family.cooldown, status))

    def _ambient(self, audience_id: str, showings: list[Showing]) -> int:
        """The highest load of the season before own posts; it stands at the tick of some showing, or at the start."""
        audience: Any = seed_tables()["audiences"][audience_id]
        half_life = audience.half_life_hours
        rows = [(e.at, e.points) for e in self.house.exposures[audience_id] if e.at >= -8 * half_life]
        rows += [(turn * CYCLE + s.offset, s.points) for turn in (0, 1) for s in showings]
        highest = 0
        for place, (at, _) in enumerate(rows):
            tick = max(at, 0)
            recent = rows[max(0, place - 24) : place + 1]
            highest = max(highest, sum(points >> (tick - then) // half_life for then, points in recent))
        return highest

    def _add_slots(self) -> None:
        """Every six hours on both channels, of four a day two with both places."""
        for channel in self.channels:
            rng = self.rng("slots", channel)
            for day in range(-(-self.season_end // 24) + 1):
                places = [2, 2, rng.randint(0, 1), rng.randint(0, 1)]
                rng.shuffle(places)
                for n, free in enumerate(places):
                    tick = 24 * day + SLOT_HOURS * n
                    slot_id = self.ids.new("slt", channel, tick)
                    self.put("slots", slot_id, Slot(slot_id, channel, tick, free))

    # -- assets ----------------------------------------------------------------------------------------------------

    def _add_pools(self) -> None:
        """Eight assets a brief, of which two are shared with the next lane of the wave."""
        assets: Any = seed_tables()["assets"]
        decks: dict[str, list[str]] = {}
        for form in FORMATS:
            listed = [a for a in assets if assets[a].format == form]
            decks[form] = self.rng("assets", form).sample(listed, len(listed))
        taken: Counter[str] = Counter()
        order = self.rng("formats").sample(FORMATS, len(FORMATS))
        self.formats = {w: order[w % len(order)] for w in range(1, self.W + 1)}
        self.pools: dict[Place, list[str]] = {}

        def draw(form: str) -> str:
            deck = decks[form]
            taken[form] += 1
            return deck[(taken[form] - 1) % len(deck)]

        shared: list[str] = []
        for number, place in enumerate(self.places):
            w, lane = place
            rng = self.rng("pool", *place)
            form = self.formats[w]
            kept = shared if lane and self._shares(place) else []
            misfit = order[(w + 1 + rng.randrange(3)) % 4]
            # roles of the six assets that last the season; the next lane has the third and fourth as its first two
            pairs = [ROLES[:2], ROLES[1:], ROLES[:2], ROLES[1:], (ROLES[0], ROLES[2]), (ROLES[0], ROLES[2])]
            own = [*kept, *(draw(form) for _ in range(5 - len(kept))), draw(misfit)]
            for asset_id, roles in list(zip(own, pairs, strict=True))[len(kept) :]:
                self._grant(asset_id, tuple(self.channels), roles, _FOREVER)
            early, elsewhere = draw(form), draw(form)
            # about when the brief's deployment is drafted and not yet out
            self._grant(early, (self.channel(lane),), ROLES, (number + 1) * self.family.pace - rng.randint(1, 8))
            foreign = [c for c in self.house.channels if c not in self.channels]
            self._grant(elsewhere, (rng.choice(foreign),), ROLES, _FOREVER)
            self.pools[place] = [*own, early, elsewhere]
            shared = own[2:4]

    def _shares(self, place: Place) -> bool:
        """Whether a pool shares two assets with that of the lane before; the protected lane shares none."""
        return not (self.config.pattern == "protected-branch" and place[1] == self.C - 1)

    def _grant(self, asset_id: str, channels: tuple[str, ...], roles: tuple[str, ...], until: int) -> None:
        number = self.granted[asset_id]
        self.granted[asset_id] += 1
        grant_id = self.ids.new("grt", asset_id, number)
        start = -self.rng("grant", asset_id, number).randint(24, 600)
        self.put("grants", grant_id, Grant(grant_id, asset_id, channels, roles, start, until, None))

    # -- what will happen ------------------------------------------------------------------------------------------

    def _foresee(self) -> None:
        """Conversions brief by brief, and what the parents' true reports make of them."""
        brief_of: dict[str, Place] = {brief_id: place for place, brief_id in self.brief_ids.items()}
        world = SocialWorld(self.tables, seed_tables=seed_tables())
        reports: dict[str, Report] = {}
        for brief in world.briefs:
            place = brief_of[brief.brief_id]
            bound = {parent: reports[parent] for parent in brief.parents}
            lists = {role: world.list_for(brief, bound, role) for role in ARMS}
            if place in self.fresh and min(map(len, lists.values())) < brief.audience_limit:
                self._consent(self.dealt[place][2], (brief.channel,), ARMS)
                world.tables["consents"].update(self.tables["consents"])
                lists = {role: world.list_for(brief, bound, role) for role in ARMS}
            known = sorted({m for report in bound.values() for m in report.members})
            members: dict[str, set[str]] = {}
            delivered: dict[str, int] = {}
            wanted = self.rng("misleads", *place).random() < 0.5
            for attempt in range(60):
                responses = self._responses(place, brief.brief_id, lists, known, attempt)
                rows = {role: [c for r in responses if r.role == role for c in r.conversions] for role in ARMS}
                delivered = {role: sum(r.delivered for r in responses if r.role == role) for role in ARMS}
                members = attributed(rows, frozenset(known))
                true = winner_of({role: len(members[role]) for role in ARMS}, delivered)
                raw = winner_of({role: len(rows[role]) for role in ARMS}, delivered)
                if not self.family.across or (raw != true) == wanted:
                    break
            for response in responses:
                self.put("responses", f"{brief.brief_id}/{response.role}/{response.audience_id}", response)
            winner = Winner(true, tuple(lists[true]), world.cta_for(brief, bound, true) or "")
            credited: dict[str, tuple[str, ...]] = {role: tuple(sorted(members[role])) for role in ARMS}
            reports[brief.brief_id] = Report(brief.brief_id, (), (), credited, delivered, winner)

    def _responses(
        self, place: Place, brief_id: str, lists: dict[ArmRole, list[str]], known: list[str], attempt: int
    ) -> list[Response]:
        """Six to eight rows an audience. A fifth of a child's are members of its parents; four in ten repeat one."""
        rng = self.rng("responses", *place, attempt)
        parents_members = set(known)
        seen: list[tuple[str, ArmRole, str]] = []
        found = []
        for role in ARMS:
            for audience_id in lists[role]:
                rows: list[Conversion] = []
                here: set[str] = set()
                for n in range(rng.randint(6, 8)):
                    chance = rng.random()
                    others = [
                        m for m, r, a in seen if m not in here and (r == role if not self.family.across else True)
                        and (r, a) != (role, audience_id)
                    ]  # fmt: skip
                    if known and chance < 0.2:
                        member = rng.choice(known)
                    elif chance < 0.6 and others:
                        member = rng.choice(others)
                    else:
                        member = self._identity("mbr", place, role, audience_id, n)
                    if member in here:
                        member = self._identity("mbr", place, role, audience_id, n)
                    here.add(member)
                    conversion_id = self._identity("cnv", place, role, audience_id, n)
                    rows.append(Conversion(conversion_id, member, audience_id, rng.randint(1, 47)))
                seen += [(row.member_id, role, audience_id) for row in rows if row.member_id not in parents_members]
                found.append(Response(brief_id, role, audience_id, rng.randint(300, 900), tuple(rows)))
        return found

    def _identity(self, prefix: str, place: Place, role: str, audience_id: str, n: int) -> str:
        """The same id at every attempt."""
        key = (prefix, *place, role, audience_id, n)
        if key not in self.identities:
            self.identities[key] = self.ids.new(*key)
        return self.identities[key]

    # -- updates and graph -----------------------------------------------------------------------------------------

    def _struck(self) -> list[Place]:
        """Briefs whose arms lose their rights, and with ``double`` one more that loses its deployment's."""
        count = max(1, self.W // 3)
        struck: list[Place] = []
        for j in range(1, count + 1):
            wave = -(-j * self.W // (count + 1))
            lanes = range(self.lanes(wave))
            free = [(wave, n) for n in lanes if self._may_be_struck((wave, n), struck)]
            struck.append(self.rng("struck", j).choice(free))
        if self.config.variant == "double":
            free = [p for p in self.places if self._may_be_struck(p, struck)]
            struck += self.rng("struck", "deployment").sample(free, min(1, len(free)))
        return struck

    def _may_be_struck(self, place: Place, struck: list[Place]) -> bool:
        protected = self.config.pattern == "protected-branch" and place[1] == self.C - 1
        near = [(place[0], place[1] + step) for step in (-2, -1, 0, 1, 2)]
        return not protected and not any(p in struck for p in near)

    def _resting(self) -> list[Place]:
        """Briefs whose audience of both roles rests when they come to it."""
        if not self.family.resting:
            return []
        later = [p for p in self.places if p[0] > 1 and p in self.fresh]
        return self.rng("resting").sample(later, min((self.N + 1) // 4, len(later)))

    @property
    def resting_audiences(self) -> set[str]:
        return {self.dealt[place][0] for place in self.resting}

    def _updates(self) -> tuple[Update, ...]:
        updates = []
        for ordinal, place in enumerate(self.struck, 1):
            brief_id = self.brief_ids[place]
            if ordinal > max(1, self.W // 3):
                effect, counter, at = Withdrawal(brief_id, ("deployment",)), f"deployment_approved:{brief_id}", 1
            else:
                effect, counter, at = Withdrawal(brief_id, ARMS), f"arms_approved:{brief_id}", 2
            updates.append(Update(ordinal, counter, at, effect))
        return tuple(updates)

    def _graph(self) -> TaskGraph:
        """Three modules a brief: the experiment takes over the parents' reports, and so does the own report."""
        modules = []
        for place, brief_id in self.brief_ids.items():
            brief: Brief = self.tables["briefs"][brief_id]
            needs = tuple(
                Need(f"report:{parent}", "content" if parent in brief.audience_parents else "provenance")
                for parent in brief.parents
            )
            for kind, before in (
                ("experiment", needs),
                ("report", (Need(f"experiment:{brief_id}", "provenance"),)),
                ("deployment", (Need(f"report:{brief_id}", "content"),)),
            ):
                modules.append(Module(f"{kind}:{brief_id}", kind, place[0], brief_id, before))
        return TaskGraph.of(modules)
