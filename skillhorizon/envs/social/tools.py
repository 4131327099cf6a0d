"""Operations of the campaign desk. An operation validates completely, then changes the world."""

from __future__ import annotations

from bisect import insort
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from skillhorizon.core.errors import Rejected
from skillhorizon.core.tools import Arguments, Id, Ref, refuse_repeats, tool
from skillhorizon.core.world import CURRENT, Artifact
from skillhorizon.envs.social.queries import AudienceIds, BriefId, Tick
from skillhorizon.envs.social.records import (
    GRACE,
    LEAD,
    REST,
    WINDOW,
    Acknowledgement,
    Approval,
    Binding,
    Booking,
    Deployment,
    Experiment,
    Measurement,
    Post,
    Publication,
    Reactivation,
    Report,
    Slot,
    Winner,
)
from skillhorizon.envs.social.rules import ARMS, Row, in_force, usable, winner_of
from skillhorizon.envs.social.seed import PAST, ArmRole, Role
from skillhorizon.envs.social.world import SocialWorld

PostId = Annotated[Id, Meta(description="A post's id.")]
AudienceId = Annotated[Id, Meta(description="An audience's id.")]
Ids = Annotated[list[Id], Meta(max_length=400)]


class Credited(Arguments, frozen=True):
    """Members credited to each arm."""

    control: Ids
    challenger: Ids


def _answer(world: SocialWorld, name: str, artifact: Artifact, **more: Any) -> dict[str, Any]:
    return {name: artifact.ref, **more, "invalidated": world.invalidated}


# -- preparing -------------------------------------------------------------------------------------------------------


def _binding(world: SocialWorld, brief_id: str) -> Artifact:
    binding = world.newest_of("binding", brief_id)
    if binding is None:
        raise Rejected("wrong_state", f"{brief_id} has not been opened", brief_id=brief_id)
    return binding


def _report(world: SocialWorld, brief_id: str) -> Artifact:
    """The newest report of a brief, while it stands."""
    report = world.newest_of("report", brief_id)
    if report is None or report.status != CURRENT:
        raise Rejected("wrong_state", f"{brief_id} has no current report", brief_id=brief_id)
    return report


def _draft(world: SocialWorld, post_id: str) -> Post:
    """A post that may still change."""
    post: Post = world.post(post_id).content
    if world.newest_of("publication", post_id) is not None:
        raise Rejected("wrong_state", f"{post_id} has been published", post_id=post_id)
    return post


def _goal(post: Post, kind: str) -> str:
    return f"{post.role}_{kind}:{post.brief_id}"


def _module(post: Post) -> str:
    return f"{'deployment' if post.role == 'deployment' else 'experiment'}:{post.brief_id}"


def _stale_parent(message: str, **details: Any) -> Rejected:
    return Rejected("stale_parent", message, **details)


@tool("business", refusals=("stale_parent",))
def open_brief(
    world: SocialWorld, brief_id: BriefId, parent_reports: Annotated[list[Ref], Meta(max_length=12)]
) -> dict[str, Any]:
    """Open a brief on the newest report of each of its parents; a brief of the first wave has none."""
    brief = world.brief_of(brief_id)
    goal = f"binding:{brief_id}"
    world.attempt(goal)
    refuse_repeats("report", parent_reports)
    given = {world.artifact(ref, "report").subject: ref for ref in parent_reports}
    for subject in given:
        if subject not in brief.parents:
            raise Rejected("bad_argument", f"{subject} is no parent of {brief_id}", brief_id=subject)
    if len(given) != len(parent_reports):
        raise _stale_parent("two versions of one report are named", brief_id=brief_id)
    for parent, newest in world.reports_of(brief).items():
        if parent not in given:
            raise _stale_parent(f"the report of {parent} is missing", brief_id=parent)
        if newest is None or newest.ref != given[parent] or newest.status != CURRENT:
            raise _stale_parent(f"{given[parent]} is not the current report of {parent}", brief_id=parent)
    ordered = tuple(given[parent] for parent in brief.parents)
    artifact = world.publish(
        "binding",
        brief_id,
        Binding(brief_id, ordered),
        ordered,
        basis=world.consumed(brief),
        goal=goal,
        module=f"experiment:{brief_id}",
    )
    return _answer(world, "binding", artifact, parent_reports=ordered)


def _publish_post(world: SocialWorld, post: Post, inputs: list[str]) -> dict[str, Any]:
    """The next version of a post."""
    ordinal = int(post.post_id.rpartition("-")[2])
    before = world.newest.get(post.post_id)
    world.carry(post, before.content.grant_id if before is not None else None)
    artifact = world.publish("post", post.brief_id, post, inputs, reads=(), ordinal=ordinal, module=_module(post))
    world.settle(post.post_id)
    return _answer(world, "post", artifact)


@tool("business", refusals=("audience_limit",))
def create_draft(
    world: SocialWorld,
    brief_id: BriefId,
    role: Role,
    audience_ids: AudienceIds,
    cta_id: Id,
    copy: Annotated[str, Meta(min_length=1, max_length=600, description="The text of the post.")],
) -> dict[str, Any]:
    """Draft a post of an opened brief: an arm or, once a report stands, the deployment of the winner."""
    brief = world.brief_of(brief_id)
    refuse_repeats("audience", audience_ids)
    for audience_id in audience_ids:
        world.audience(audience_id)
    if cta_id not in world.ctas:
        raise Rejected("unknown_id", f"no call to action {cta_id!r}", id=cta_id)
    for audience_id in audience_ids:
        world.limits(audience_id)
    binding = _binding(world, brief_id)
    inputs = [_report(world, brief_id).ref if role == "deployment" else binding.ref]
    if len(audience_ids) > brief.audience_limit:
        limit = brief.audience_limit
        raise Rejected("audience_limit", f"a post of {brief_id} has at most {limit} audiences", limit=limit)
    posts = world.posts_of.setdefault(brief_id, [])
    post_id = f"pst-{brief_id.partition('-')[2]}-{len(posts) + 1}"
    posts.append(post_id)
    answer = _publish_post(world, Post(post_id, brief_id, role, tuple(audience_ids), cta_id, copy), inputs)
    return {
        **answer,
        "post_id": post_id,
        "brief_id": brief_id,
        "role": role,
        "audience_ids": audience_ids,
        "cta_id": cta_id,
    }


@tool("business")
def attach_asset(world: SocialWorld, post_id: PostId, asset_id: Id, grant_id: Id) -> dict[str, Any]:
    """Put an asset into a post, under one of its grants, in the place of the one before."""
    post = _draft(world, post_id)
    world.get("assets", asset_id)
    world.get("grants", grant_id)
    changed = replace(post, asset_id=asset_id, grant_id=grant_id)
    return _publish_post(world, changed, [world.newest[post_id].ref])


@tool("business")
def cite_evidence(
    world: SocialWorld, post_id: PostId, evidence_post_ids: Annotated[list[Id], Meta(min_length=1, max_length=6)]
) -> dict[str, Any]:
    """Cite past posts as the evidence of a post's claim, in the place of those before."""
    post = _draft(world, post_id)
    refuse_repeats("post", evidence_post_ids)
    for cited in evidence_post_ids:
        world.get("posts", cited)
    changed = replace(post, evidence_post_ids=tuple(evidence_post_ids))
    return _publish_post(world, changed, [world.newest[post_id].ref])


@tool("business", refusals=("version_conflict", "consent_missing", "grant_mismatch", "evidence_unfit"))
def request_approval(world: SocialWorld, post: Ref) -> dict[str, Any]:
    """Have the newest version of a post approved: consents, the asset's grant, the evidence."""
    version = world.artifact(post, "post")
    content = _draft(world, version.id)
    brief = world.brief_of(content.brief_id)
    goal = _goal(content, "approval")
    world.attempt(goal)
    if world.newest[version.id].ref != post:
        raise Rejected("version_conflict", f"{post} is not the newest version", post=post)
    role = content.role
    named: Any = _report(world, brief.brief_id).content.winner.role if role == "deployment" else role
    for audience_id in content.audience_ids:
        if not usable(world.consent(audience_id, brief.channel), named):
            message = f"{audience_id} has given no consent on this channel for the {named}"
            raise Rejected("consent_missing", message, audience_id=audience_id)
    if content.grant_id is None or content.asset_id is None:
        raise Rejected("grant_mismatch", f"{version.id} has no asset", post=post)
    grant = world.get("grants", content.grant_id)
    if grant.asset_id != content.asset_id or not in_force(grant, brief.channel, role, world.clock):
        message = f"{grant.grant_id} does not cover the asset, channel and role now"
        raise Rejected("grant_mismatch", message, grant_id=grant.grant_id)
    cited = content.evidence_post_ids
    if len(cited) != 2 or len(world.evidence(brief, cited)) != 2:
        raise Rejected("evidence_unfit", "two posts of the brand, topic and window are to be cited", post=post)
    first = not any(
        world.newest_of("approval", other) is not None
        for other in world.posts_of[brief.brief_id]
        if world.post(other).content.role == role
    )
    artifact = world.publish(
        "approval",
        version.id,
        Approval(post, grant.grant_id),
        [post],
        reads=(version.id, f"grant:{grant.grant_id}"),
        goal=goal,
        module=_module(content),
    )
    world.settle(version.id)
    if first:
        world.count(f"{'arms' if role in ARMS else 'deployment'}_approved:{brief.brief_id}")
    return _answer(world, "approval", artifact, post=post)


@tool("business", refusals=("approval_void", "lineage_mismatch", "stale_parent"))
def register_experiment(
    world: SocialWorld, brief_id: BriefId, control_post_id: PostId, challenger_post_id: PostId
) -> dict[str, Any]:
    """Register two approved arms as the experiment of a brief. The newest registration counts."""
    brief = world.brief_of(brief_id)
    goal = f"experiment:{brief_id}"
    world.attempt(goal)
    posts = [world.post(p).content for p in (control_post_id, challenger_post_id)]
    for post, role in zip(posts, ARMS, strict=True):
        if (post.brief_id, post.role) != (brief_id, role):
            raise Rejected("wrong_state", f"{post.post_id} is no {role} of {brief_id}", post_id=post.post_id)
        _draft(world, post.post_id)
    binding = _binding(world, brief_id)
    if binding.status != CURRENT:
        raise _stale_parent(f"{binding.ref} is {binding.status}", binding=binding.ref)
    approvals = [_approval(world, post.post_id) for post in posts]
    sources = world.sources(brief, world.bound_reports(binding))
    for post in posts:
        if foreign := sorted(set(post.audience_ids) - sources):
            raise Rejected("lineage_mismatch", f"{foreign[0]} is none of the sources", audience_id=foreign[0])
    artifact = world.publish(
        "experiment",
        brief_id,
        Experiment(brief_id, control_post_id, challenger_post_id),
        [binding.ref, *(a.ref for a in approvals)],
        reads=[f"rpt-{parent.partition('-')[2]}" for parent in brief.parents],
        basis=binding.basis,
        goal=goal,
        module=f"experiment:{brief_id}",
    )
    return _answer(world, "experiment", artifact)


def _approval(world: SocialWorld, post_id: str) -> Artifact:
    approval = world.approved(post_id)
    if approval is None:
        raise Rejected("approval_void", f"the newest version of {post_id} is not approved", post_id=post_id)
    return approval


@tool("business", refusals=("wrong_basis",))
def reactivate_audience(
    world: SocialWorld, brief_id: BriefId, audience_id: AudienceId, basis_publication_id: Id
) -> dict[str, Any]:
    """Bring a resting audience back, on the publication that it saw last; it is active 48 hours from now."""
    world.brief_of(brief_id)
    limits = world.limits(audience_id)
    goal = f"reactivation:{brief_id}"
    world.attempt(goal)
    if limits.status != "resting" or world.newest_of("reactivation", audience_id) is not None:
        raise Rejected("wrong_state", f"{audience_id} does not rest", audience_id=audience_id)
    past = [row for row in world.exposures(audience_id, world.clock - PAST, world.clock) if not row.booked]
    if not past or basis_publication_id not in {r.publication_id for r in past if r.at == past[-1].at}:
        raise Rejected("wrong_basis", f"{audience_id} has seen something since, or never saw this", id=audience_id)
    active_from = world.clock + REST
    artifact = world.publish(
        "reactivation",
        audience_id,
        Reactivation(audience_id, basis_publication_id, active_from),
        [],
        goal=goal,
        module=f"experiment:{brief_id}",
    )
    return _answer(world, "reactivation", artifact, active_from=active_from)


# -- booking and publishing ------------------------------------------------------------------------------------------


@tool(
    "business",
    refusals=(
        "approval_void", "too_soon", "slot_full", "audience_resting", "cooldown_active", "load_cap", "grant_ends",
    ),
)  # fmt: skip
def schedule_post(world: SocialWorld, post_id: PostId, slot_id: Id) -> dict[str, Any]:
    """Book a slot for an approved post: an arm of the registered experiment, or a deployment with its report."""
    post = _draft(world, post_id)
    slot: Slot = world.get("slots", slot_id)
    brief = world.brief_of(post.brief_id)
    goal = _goal(post, "slot")
    world.attempt(goal)
    if world.booking_of(post_id) is not None:
        raise Rejected("wrong_state", f"{post_id} is booked already", post_id=post_id)
    if slot.channel != brief.channel:
        raise Rejected("wrong_state", f"{slot_id} is a slot of another channel", slot_id=slot_id)
    if post.role == "deployment":
        basis = _report(world, brief.brief_id)
    else:
        experiment = world.newest_of("experiment", brief.brief_id)
        if experiment is None or experiment.status != CURRENT or experiment.content.arms[post.role] != post_id:
            raise Rejected("wrong_state", f"{post_id} is in no current experiment", post_id=post_id)
        basis = experiment
    approval = _approval(world, post_id)
    if slot.tick < world.clock + LEAD:
        raise Rejected("too_soon", f"a slot is booked at least {LEAD} h ahead", tick=slot.tick, now=world.clock)
    ledger = world.ledgers["slots"]
    if not ledger.fits(slot_id, 1):
        raise Rejected("slot_full", f"{slot_id} has no free place", slot_id=slot_id)
    world.refuse_booking(post, slot.tick)
    grant = world.get("grants", post.grant_id or "")
    if not in_force(grant, brief.channel, post.role, slot.tick):
        raise Rejected("grant_ends", f"{grant.grant_id} is not in force at tick {slot.tick}", grant_id=grant.grant_id)
    artifact = world.publish(
        "booking",
        post_id,
        Booking(post_id, slot_id, slot.tick),
        [approval.ref, basis.ref],
        reads=(),
        goal=goal,
        module=_module(post),
    )
    ledger.reserve(slot_id, 1, owner=post_id, holder=artifact.ref, code="slot_full")
    insort(world.agenda, (slot.tick, post_id))
    for audience_id in post.audience_ids:
        insort(world.booked.setdefault(audience_id, []), (slot.tick, post_id))
    world.settle(post_id)
    return _answer(world, "booking", artifact, tick=slot.tick)


@tool("business")
def release_slot(world: SocialWorld, post_id: PostId) -> dict[str, Any]:
    """Give back the place that a post which is not out has booked."""
    post = _draft(world, post_id)
    booking = world.booking_of(post_id)
    if booking is None:
        raise Rejected("wrong_state", f"{post_id} has no booking", post_id=post_id)
    world.unbook(post, "released")
    return {"booking": booking.ref, "tick": booking.content.tick}


@tool("business", refusals=("clock_backwards", "season_over"))
def advance_clock(world: SocialWorld, to_tick: Tick) -> dict[str, Any]:
    """Move the clock on. A post that has been due for more than three hours is missed and loses its place."""
    if to_tick < world.clock:
        raise Rejected("clock_backwards", "the clock only moves on", now=world.clock)
    if to_tick > world.season_end:
        raise Rejected("season_over", "the season ends before that", season_end=world.season_end)
    world.advance(to_tick)
    missed = []
    while world.agenda and world.agenda[0][0] + GRACE < to_tick:
        post_id = world.agenda[0][1]
        world.unbook(world.post(post_id).content, "missed")
        missed.append(post_id)
    due = [{"post_id": p, "tick": tick} for tick, p in world.agenda[:20] if tick <= to_tick]
    return {"now": to_tick, "due": due, "missed": missed}


@tool(
    "business",
    refusals=(
        "schema", "unknown_post", "due_post_state", "approval_void", "required_historical_sources",
        "current_audience_loads", "load_cap",
    ),
)  # fmt: skip
def publish_post(
    world: SocialWorld,
    post_id: PostId,
    historical_publication_ids: Annotated[list[Any], Meta(max_length=400, description="Publications, repeats kept.")],
    audience_loads: Annotated[dict[str, Any], Meta(max_length=40, description="Audience -> its load now, an integer.")],
) -> dict[str, Any]:
    """Publish a due post, naming every live past exposure of its audiences and the load of each now."""
    found = world.newest.get(post_id)
    post: Post | None = found.content if found is not None and found.kind == "post" else None
    goal = _goal(post, "publication") if post else f"publication:{post_id}"
    world.attempt(goal)
    if not {*map(type, historical_publication_ids)} <= {str}:
        raise Rejected("schema", "historical_publication_ids is a list of ids", field="historical_publication_ids")
    if not {*map(type, audience_loads.values())} <= {int}:
        raise Rejected("schema", "audience_loads holds integers", field="audience_loads")
    if post is None:
        raise Rejected("unknown_post", f"no post {post_id!r} of this season", id=post_id)
    booking, now = world.booking_of(post_id), world.clock
    if booking is None or not booking.content.tick <= now <= booking.content.tick + GRACE:
        raise Rejected("due_post_state", f"{post_id} is not due", post_id=post_id, status=world.state_of(post_id))
    approval = _approval(world, post_id)
    sources, loads = world.declaration(post.audience_ids, now)
    if sorted(historical_publication_ids) != sources:
        message = "the list is not one entry for each audience and live past exposure"
        raise Rejected("required_historical_sources", message, post_id=post_id, now=now)
    if audience_loads != loads:
        raise Rejected("current_audience_loads", "the loads are not those of now", post_id=post_id, now=now)
    weight = world.brief_of(post.brief_id).weight
    for audience_id, load in audience_loads.items():
        if load + weight > world.limits(audience_id).load_cap:
            raise Rejected("load_cap", f"{audience_id} would exceed its cap", audience_id=audience_id)
    tick: int = booking.content.tick
    content = Publication(world.newest[post_id].ref, tick, tuple(historical_publication_ids), audience_loads)
    artifact = world.publish(
        "publication", post_id, content, [approval.ref, booking.ref], reads=(), goal=goal, module=_module(post)
    )
    world.ledgers["slots"].use(booking.ref)
    world.clear_booking(post, tick)
    for audience_id in post.audience_ids:
        insort(world.own.setdefault(audience_id, []), Row(tick, artifact.id, weight, post_id))
    world.settle(post_id)
    return _answer(world, "publication", artifact, tick=tick)


# -- reporting and deploying -----------------------------------------------------------------------------------------


@tool("business", refusals=("window_open",))
def measure_post(world: SocialWorld, post_id: PostId) -> dict[str, Any]:
    """Measure a published post once its window of 48 hours is closed: members reached, conversions."""
    post: Post = world.post(post_id).content
    goal = _goal(post, "measurement")
    world.attempt(goal)
    published = world.newest_of("publication", post_id)
    if published is None:
        raise Rejected("wrong_state", f"{post_id} has not been published", post_id=post_id)
    if measured := world.newest_of("measurement", post_id):
        raise Rejected("wrong_state", f"{post_id} has been measured already", measurement=measured.ref)
    if world.clock < published.content.tick + WINDOW:
        raise Rejected("window_open", f"{post_id} is measured {WINDOW} h after its tick", tick=published.content.tick)
    content = Measurement(post_id, post.role, world.delivered(post), len(world.conversions(post)))
    artifact = world.publish(
        "measurement", post_id, content, [published.ref], reads=(), goal=goal, module=f"report:{post.brief_id}"
    )
    return _answer(world, "measurement", artifact, delivered=content.delivered, conversions=content.conversions)


@tool("business", refusals=("stale_parent", "credit_unsupported", "double_credit", "winner_inconsistent"))
def submit_report(
    world: SocialWorld,
    brief_id: BriefId,
    measurements: Annotated[list[Ref], Meta(min_length=2, max_length=2, description="Control, then challenger.")],
    credited: Credited,
    winner: ArmRole,
) -> dict[str, Any]:
    """Report an experiment: both measurements, the members credited to each arm, the winner."""
    brief = world.brief_of(brief_id)
    goal = f"report:{brief_id}"
    world.attempt(goal)
    experiment = world.newest_of("experiment", brief_id)
    if experiment is None:
        raise Rejected("wrong_state", f"{brief_id} has no experiment", brief_id=brief_id)
    measured = dict(zip(ARMS, (world.artifact(ref, "measurement").content for ref in measurements), strict=True))
    for role, measurement in measured.items():
        if measurement.post_id != experiment.content.arms[role]:
            raise Rejected("wrong_state", f"{measurement.post_id} is not the {role}", post_id=measurement.post_id)
    members = {"control": credited.control, "challenger": credited.challenger}
    for role in ARMS:
        refuse_repeats("member", members[role])
    binding = _binding(world, brief_id)
    bound = world.bound_reports(binding)
    if binding.status != CURRENT or experiment.status != CURRENT:
        raise _stale_parent("what the experiment took of its parents has changed", binding=binding.ref)
    for parent, newest in world.reports_of(brief).items():
        if newest is None or newest.content.members != bound[parent].members:
            raise _stale_parent(f"the members credited by {parent} have changed since it was bound", brief_id=parent)
    for role in ARMS:
        rows = {c.member_id for c in world.conversions(world.post(measured[role].post_id).content)}
        if unsupported := sorted(set(members[role]) - rows):
            raise Rejected("credit_unsupported", f"{unsupported[0]} has no row in the {role}", id=unsupported[0])
    if both := sorted(set(members["control"]) & set(members["challenger"])):
        raise Rejected("double_credit", f"{both[0]} is credited to both arms", id=both[0])
    delivered: dict[str, int] = {role: measured[role].delivered for role in ARMS}
    if winner != winner_of({role: len(members[role]) for role in ARMS}, delivered):
        raise Rejected("winner_inconsistent", "the winner does not follow from the counts", winner=winner)
    won: Post = world.post(measured[winner].post_id).content
    content = Report(
        brief_id,
        binding.content.parent_reports,
        tuple(measurements),
        {role: tuple(sorted(members[role])) for role in ARMS},
        delivered,
        Winner(winner, won.audience_ids, won.cta_id),
    )
    artifact = world.publish(
        "report",
        brief_id,
        content,
        [binding.ref, experiment.ref, *measurements],
        reads=[f"rpt-{parent.partition('-')[2]}" for parent in brief.parents],
        basis=world.credited(brief),
        goal=goal,
        module=f"report:{brief_id}",
    )
    return _answer(world, "report", artifact, credited=content.credited, winner=content.winner)


@tool("business", refusals=("version_conflict", "not_the_winner"))
def confirm_deployment(world: SocialWorld, brief_id: BriefId, post_id: PostId, report: Ref) -> dict[str, Any]:
    """Confirm that a published post deploys the winner of a brief's newest report."""
    world.brief_of(brief_id)
    post: Post = world.post(post_id).content
    made = world.artifact(report, "report")
    goal = f"brief:{brief_id}"
    world.attempt(goal)
    if made.subject != brief_id:
        raise Rejected("wrong_state", f"{report} reports another brief", report=report)
    if (post.brief_id, post.role) != (brief_id, "deployment"):
        raise Rejected("wrong_state", f"{post_id} is no deployment of {brief_id}", post_id=post_id)
    published = world.newest_of("publication", post_id)
    if published is None:
        raise Rejected("wrong_state", f"{post_id} has not been published", post_id=post_id)
    if world.newest[made.id].ref != report or made.status != CURRENT:
        raise Rejected("version_conflict", f"{report} is not the current report", report=report)
    winner: Winner = made.content.winner
    if set(post.audience_ids) != set(winner.audience_ids) or post.cta_id != winner.cta_id:
        raise Rejected("not_the_winner", f"{post_id} differs from the winner of {report}", post_id=post_id)
    artifact = world.publish(
        "deployment",
        brief_id,
        Deployment(brief_id, post_id, report),
        [published.ref, report],
        reads=(made.id,),
        basis=winner,
        goal=goal,
        module=f"deployment:{brief_id}",
    )
    return _answer(world, "deployment", artifact)


# -- notices and limits ----------------------------------------------------------------------------------------------


@tool("business")
def acknowledge_notice(world: SocialWorld, notice_id: Id, affected_post_ids: Ids) -> dict[str, Any]:
    """State which posts a notice voided. A later statement replaces an earlier one."""
    if notice_id not in world.voided_posts:
        raise Rejected("unknown_id", f"no notice {notice_id!r}", id=notice_id)
    refuse_repeats("post", affected_post_ids)
    for post_id in affected_post_ids:
        world.post(post_id)
    content = Acknowledgement(notice_id, tuple(sorted(affected_post_ids)))
    artifact = world.publish("acknowledgement", notice_id, content, [], goal=f"notice:{notice_id}")
    return _answer(world, "acknowledgement", artifact)


@tool("business")
def set_audience_limits(
    world: SocialWorld,
    audience_id: AudienceId,
    load_cap: Annotated[int, Meta(ge=0, le=100_000)],
    cooldown_hours: Annotated[int, Meta(ge=0, le=1000)],
) -> dict[str, Any]:
    """Change the limits of an audience. A tool of the audience's owner; no brief asks for it."""
    world.limits(audience_id)
    world.amend("limits", audience_id, load_cap=load_cap, cooldown_hours=cooldown_hours)
    return {"audience_id": audience_id, "load_cap": load_cap, "cooldown_hours": cooldown_hours}
