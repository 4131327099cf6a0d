"""Scoring of SocialOps: the final state against what the rules of the trade give (Table 8).

Parent reports are taken as they were bound, so a fault costs the brief in which it was made and no other.
"""

from __future__ import annotations

import msgspec

from skillhorizon.core.evaluation import Reason, Scoring
from skillhorizon.core.world import CURRENT, Artifact
from skillhorizon.envs.social.records import Post
from skillhorizon.envs.social.rules import ARMS, in_force
from skillhorizon.envs.social.seed import Asset
from skillhorizon.envs.social.world import SocialWorld


class SocialGoal(msgspec.Struct, frozen=True):
    """The private side of scoring: which briefs must be met, and how many updates there are."""

    briefs: tuple[str, ...]
    updates: int


scoring = Scoring("brief", lambda goal: goal.briefs)


def _arms(world: SocialWorld, brief_id: str) -> dict[str, Post]:
    """The arms of the newest experiment."""
    experiment = world.newest_of("experiment", brief_id)
    return {role: world.post(experiment.content.arms[role]).content for role in ARMS} if experiment else {}


def _deployed(world: SocialWorld, brief_id: str) -> Post | None:
    """The post that deploys the winner: the confirmed one, or else the newest that is out."""
    deployment = world.newest_of("deployment", brief_id)
    if deployment is not None:
        confirmed: Post = world.post(deployment.content.post_id).content
        return confirmed
    for post_id in reversed(world.posts_of.get(brief_id, [])):
        post: Post = world.post(post_id).content
        if post.role == "deployment" and world.newest_of("publication", post_id) is not None:
            return post
    return None


@scoring.local(idle=False)
def experiment_concurrent(world: SocialWorld, goal: SocialGoal, brief_id: str) -> Reason:
    """The newest experiment is current, and its arms were published from one tick."""
    experiment = world.newest_of("experiment", brief_id)
    if experiment is None:
        return "no experiment was registered"
    if experiment.status != CURRENT:
        return f"{experiment.ref} is {experiment.status}: {experiment.cause}"
    ticks = []
    for role, post in _arms(world, brief_id).items():
        published = world.newest_of("publication", post.post_id)
        if published is None:
            return f"the {role} was not published"
        ticks.append(published.content.tick)
    return None if ticks[0] == ticks[1] else f"the arms were published from ticks {ticks[0]} and {ticks[1]}"


@scoring.local(idle=False)
def audiences_derived(world: SocialWorld, goal: SocialGoal, brief_id: str) -> Reason:
    """Both arms have the audiences that sources and consents give."""
    brief, arms, binding = world.brief_of(brief_id), _arms(world, brief_id), world.newest_of("binding", brief_id)
    if not arms or binding is None:
        return "no experiment was registered"
    bound = world.bound_reports(binding)
    for role, post in arms.items():
        if set(post.audience_ids) != set(world.list_for(brief, bound, role)):
            return f"the audiences of the {role} do not follow from the sources"
    return None


@scoring.local(idle=False)
def content_derived(world: SocialWorld, goal: SocialGoal, brief_id: str) -> Reason:
    """The arms have their calls to action; every post's asset had the format and a grant when it was published."""
    brief, arms, binding = world.brief_of(brief_id), _arms(world, brief_id), world.newest_of("binding", brief_id)
    deployed = _deployed(world, brief_id)
    if not arms or binding is None or deployed is None:
        return "a post is missing"
    bound = world.bound_reports(binding)
    for role, post in arms.items():
        if post.cta_id != world.cta_for(brief, bound, role):
            return f"the call to action of the {role} is another one's"
    for post in (*arms.values(), deployed):
        if reason := _asset_fault(world, post):
            return reason
    return None


def _asset_fault(world: SocialWorld, post: Post) -> Reason:
    brief = world.brief_of(post.brief_id)
    if post.asset_id is None or post.grant_id is None:
        return f"{post.post_id} has no asset"
    asset: Asset = world.get("assets", post.asset_id)
    if asset.format != brief.format:
        return f"the asset of {post.post_id} has another format"
    published = world.newest_of("publication", post.post_id)
    if published is None:
        return None
    grant = msgspec.structs.replace(world.get("grants", post.grant_id), withdrawn_at=None)
    # a grant that was withdrawn before would have voided the approval
    in_time = in_force(grant, brief.channel, post.role, published.content.tick)
    return None if in_time else f"{grant.grant_id} was not in force when {post.post_id} was published"


@scoring.local(idle=False)
def evidence_fits(world: SocialWorld, goal: SocialGoal, brief_id: str) -> Reason:
    """All three posts cite fitting evidence."""
    brief, deployed = world.brief_of(brief_id), _deployed(world, brief_id)
    posts = [*_arms(world, brief_id).values(), *([deployed] if deployed else [])]
    if len(posts) < 3:
        return "a post is missing"
    for post in posts:
        if not world.evidence_right(brief, post.evidence_post_ids):
            return f"the evidence of {post.post_id} does not fit the claim"
    return None


@scoring.local(idle=False)
def attribution_true(world: SocialWorld, goal: SocialGoal, brief_id: str) -> Reason:
    """The newest report credits each member once, to the right arm, without the parents' members."""
    report = world.newest_of("report", brief_id)
    if report is None:
        return "no report was submitted"
    if report.status != CURRENT:
        return f"{report.ref} is {report.status}: {report.cause}"
    measured = {world.artifacts[ref].content.post_id for ref in report.content.measurements}
    if measured != {post.post_id for post in _arms(world, brief_id).values()}:
        return f"{report.ref} reports an earlier experiment"
    true = world.true_attribution(report.content)
    for role in ARMS:
        if set(report.content.credited[role]) != true[role]:
            return f"{report.ref} credits the {role} with other members"
    return None


@scoring.local(idle=False)
def deployment_current(world: SocialWorld, goal: SocialGoal, brief_id: str) -> Reason:
    """The deployment was confirmed on the newest report, or on one with the same winner."""
    deployment: Artifact | None = world.newest_of("deployment", brief_id)
    if deployment is None:
        return "no deployment was confirmed"
    if deployment.status != CURRENT:
        return f"{deployment.ref} is {deployment.status}: {deployment.cause}"
    return None


@scoring.delivery(idle=False)
def updates_handled(world: SocialWorld, goal: SocialGoal) -> Reason:
    """Every update has happened and was acknowledged with exactly the posts that it voided."""
    if len(world.fired) < goal.updates:
        return f"{goal.updates - len(world.fired)} updates are still to come"
    for notice_id, posts in world.voided_posts.items():
        stated = world.newest_of("acknowledgement", notice_id)
        if stated is None:
            return f"{notice_id} was not acknowledged"
        if list(stated.content.affected_post_ids) != posts:
            return f"{notice_id} was acknowledged with other posts than it voided"
    return None


@scoring.delivery(idle=True)
def publication_constraints_kept(world: SocialWorld, goal: SocialGoal) -> Reason:
    """Publications kept the original caps and cooldowns and the places of the slots; nothing is left booked."""
    if world.agenda:
        return f"{world.agenda[0][1]} is left booked"
    if not world.ledgers["slots"].conserved():
        return "a slot holds more than its places"
    for audience_id, rows in world.own.items():
        limits = world.original_limits[audience_id]
        before: tuple[int, str] | None = None
        for row in rows:
            if world.load(audience_id, row.at) > limits.load_cap:
                return f"{audience_id} was above its cap at tick {row.at}"
            event = (row.at, world.newest[row.post_id or ""].subject)
            if before is not None and event != before and row.at - before[0] < limits.cooldown_hours:
                return f"{audience_id} had two events within its cooldown at tick {row.at}"
            before = event
    return None


@scoring.delivery(idle=True)
def business_inputs_intact(world: SocialWorld, goal: SocialGoal) -> Reason:
    """What the season was given is as it was."""
    for audience_id, limits in world.original_limits.items():
        if world.tables["limits"][audience_id] != limits:
            return f"the limits of {audience_id} were changed"
    return None
