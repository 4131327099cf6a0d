"""Queries of the campaign desk. Each list has a declared total order."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import asdict

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Id, Items, Name, tool
from skillhorizon.core.world import CURRENT
from skillhorizon.envs.social.records import SLOT_HOURS, Brief, Limits, Post, Slot
from skillhorizon.envs.social.rules import Row
from skillhorizon.envs.social.seed import PAST, Asset, PastPost
from skillhorizon.envs.social.world import SocialWorld, State

BriefId = Annotated[Id, Meta(description="A brief's id.")]
AudienceIds = Annotated[list[Id], Meta(min_length=1, max_length=8, description="Audiences, at most 8.")]
Tick = Annotated[int, Meta(ge=-PAST, le=1_000_000, description="An hour.")]
_LOOK_AHEAD = 40
"""Slots that a list reaches ahead: ten days."""


# -- queries ---------------------------------------------------------------------------------------------------------


def _progress(world: SocialWorld, brief: Brief) -> str:
    for kind, name in (("deployment", "deployed"), ("report", "reported"), ("experiment", "running")):
        made = world.newest_of(kind, brief.brief_id)
        if made is not None and made.status == CURRENT:
            return name
    return "open" if world.newest_of("binding", brief.brief_id) is not None else "planned"


@tool("query", page=20, order="wave, then lane")
def list_briefs(
    world: SocialWorld,
    wave: Annotated[int, Meta(ge=1, le=10_000)] | None = None,
    status: Literal["planned", "open", "running", "reported", "deployed"] | None = None,
) -> Items:
    """List the briefs of the season, or of a wave: place, parents, status."""
    briefs = world.briefs if wave is None else world.by_wave.get(wave, [])
    if status is not None:
        briefs = [b for b in briefs if _progress(world, b) == status]

    def render(brief: Brief) -> dict[str, Any]:
        return {
            "brief_id": brief.brief_id,
            "wave": brief.wave,
            "lane": brief.lane,
            "parents": brief.parents,
            "status": _progress(world, brief),
        }

    return Items(briefs, render, {"now": world.clock})


@tool("query")
def read_brief(world: SocialWorld, brief_id: BriefId) -> dict[str, Any]:
    """Read a brief: channel, parents, limits, calls to action, consent batch, asset tag, evidence, weight; its work."""
    brief = world.brief_of(brief_id)
    made = {kind: world.newest_of(kind, brief_id) for kind in ("binding", "experiment", "report", "deployment")}
    return {
        **asdict(brief),
        "status": _progress(world, brief),
        **{kind: artifact and {"ref": artifact.ref, "status": artifact.status} for kind, artifact in made.items()},
        "now": world.clock,
    }


@tool("query", page=20, order="audience_id")
def list_consents(
    world: SocialWorld,
    channel: Id,
    audience_ids: Annotated[list[Id], Meta(max_length=40)] | None = None,
    consent_batch_id: Id | None = None,
) -> Items:
    """List consents on a channel: of the audiences named, of a batch, of both together; without either, of all."""
    world.get("channels", channel)
    wanted = set(audience_ids or ())
    for audience_id in wanted:
        world.audience(audience_id)
    if consent_batch_id is not None:
        wanted.update(world.get("batches", consent_batch_id).audience_ids)
    elif audience_ids is None:
        wanted.update(world.house.audience_ids)
    batch = set(world.tables["batches"][consent_batch_id].audience_ids) if consent_batch_id is not None else set()

    def render(audience_id: str) -> dict[str, Any]:
        consent = asdict(world.consent(audience_id, channel))
        return {**consent, "consent_batch_id": consent_batch_id if audience_id in batch else None}

    return Items(sorted(wanted), render, {"now": world.clock})


@tool("query", page=8, order="audience_id")
def list_audiences(world: SocialWorld, audience_ids: AudienceIds) -> Items:
    """Read audiences: reach, half-life, load cap, cooldown, whether they rest, overlaps with others in permille."""
    for audience_id in audience_ids:
        world.audience(audience_id)

    def render(audience_id: str) -> dict[str, Any]:
        limits: Limits | None = world.tables["limits"].get(audience_id)
        terms = {
            "load_cap": limits and limits.load_cap,
            "cooldown_hours": limits and limits.cooldown_hours,
            "status": limits.status if limits else "out of season",
            "active_from": world.active_from(audience_id) if limits else None,
        }
        overlaps = dict(world.house.overlaps.get(audience_id, ()))
        return {**asdict(world.audience(audience_id)), **terms, "overlaps": overlaps}

    return Items(sorted(set(audience_ids)), render, {"now": world.clock})


@tool("query", page=4, order="asset_id; its grants by id")
def list_assets(world: SocialWorld, tag: Name) -> Items:
    """List the assets under a tag, each with its grants: channels, roles, range of ticks, withdrawal."""
    pool = world.get("pools", tag)

    def render(asset_id: str) -> dict[str, Any]:
        asset: Asset = world.get("assets", asset_id)
        ids = sorted([*world.house.grants.get(asset_id, ()), *world.grants_of.get(asset_id, ())])
        grants = []
        for grant_id in ids:
            grant = asdict(world.get("grants", grant_id))
            grants.append({name: value for name, value in grant.items() if name != "asset_id" and value is not None})
        return {**asdict(asset), "grants": grants}

    return Items(pool.asset_ids, render, {"now": world.clock})


@tool("query", page=10, order="at descending, then post_id")
def list_posts(world: SocialWorld, brand: Name, topic: Name, from_tick: Tick, to_tick: Tick) -> Items:
    """List past posts of a brand on a topic between two ticks, both inclusive: campaign, objective, figures, status."""
    posts: list[PastPost] = world.house.between(brand, topic, from_tick, to_tick)
    return Items(posts, extra={"now": world.clock})


@tool("query", page=20, order="audience_id, then at, then publication_id")
def list_exposures(world: SocialWorld, audience_ids: AudienceIds, from_tick: Tick, to_tick: Tick) -> Items:
    """List what audiences saw or will see between two ticks, both inclusive. Own posts bear a `post_id`."""
    for audience_id in audience_ids:
        world.audience(audience_id)
    end = min(to_tick, world.season_end)
    rows = [(a, row) for a in sorted(set(audience_ids)) for row in world.exposures(a, from_tick, end)]
    now = world.clock

    def render(pair: tuple[str, Row]) -> dict[str, Any]:
        audience_id, (at, publication_id, points, post_id, booked) = pair
        shown = {
            "audience_id": audience_id,
            "publication_id": publication_id,
            "at": at,
            "points": points,
            "state": "booked" if booked or at > now else "past",
        }
        if post_id is not None:
            shown["post_id"] = post_id
        return shown

    return Items(rows, render, {"now": now})


@tool("query", page=12, order="tick")
def list_slots(world: SocialWorld, channel: Id, from_tick: Tick) -> Items:
    """List the slots of a channel over the ten days from a tick on: places, and how many are free."""
    world.get("channels", channel)
    slots = world.slots.get(channel, [])
    first = -(-max(from_tick, 0) // SLOT_HOURS)

    def render(slot: Slot) -> dict[str, Any]:
        free = world.ledgers["slots"].free(slot.slot_id)
        return {"slot_id": slot.slot_id, "tick": slot.tick, "places": slot.places, "free": free}

    return Items(slots[first : first + _LOOK_AHEAD], render, {"now": world.clock})


@tool("query", page=10, order="post_id")
def list_brief_posts(world: SocialWorld, brief_id: BriefId | None = None, status: State | None = None) -> Items:
    """List posts of this season, of one brief or in one status: version, booking, and the notices that voided them."""
    if brief_id is not None:
        world.brief_of(brief_id)
        posts = sorted(world.posts_of.get(brief_id, ()))
        posts = [p for p in posts if status is None or world.state_of(p) == status]
    else:
        posts = world.in_state[status]

    def render(post_id: str) -> dict[str, Any]:
        post = world.post(post_id)
        content: Post = post.content
        booking = world.booking_of(post_id)
        return {
            "post": post.ref,
            "brief_id": content.brief_id,
            "role": content.role,
            "status": world.state_of(post_id),
            "approved": world.approved(post_id) is not None,
            "grant_id": content.grant_id,
            "tick": booking.content.tick if booking else None,
            "voided_by": world.voided_by.get(post_id, ()),
        }

    return Items(posts, render, {"now": world.clock})


@tool("query")
def read_report(
    world: SocialWorld, brief_id: BriefId, version: Annotated[int, Meta(ge=1, le=10_000)] | None = None
) -> dict[str, Any]:
    """Read a brief's newest report, or one version of it: parents, credited members, delivered, winner."""
    world.brief_of(brief_id)
    newest = world.newest_of("report", brief_id)
    if newest is None:
        raise Rejected("wrong_state", f"{brief_id} has no report", brief_id=brief_id)
    report = newest if version is None else world.artifact(f"{newest.id}@{version}", "report")
    return {"report": report.ref, "status": report.status, **asdict(report.content), "now": world.clock}


@tool("query", page=20, order="hour, then conversion_id")
def list_conversions(world: SocialWorld, measurement_id: Id) -> Items:
    """List the conversions that a measurement counted: member, audience, hour since the post."""
    measured = world.newest.get(measurement_id)
    if measured is None or measured.kind != "measurement":
        raise Rejected("unknown_id", f"no measurement {measurement_id!r}", id=measurement_id)
    return Items(world.conversions(world.post(measured.content.post_id).content), extra={"now": world.clock})
