"""Wrong executions of SocialOps, each failing exactly its predicate; and the mistakes that cost nothing, explained."""

from __future__ import annotations

from typing import Any

import msgspec

from skillhorizon.core.errors import Rejected
from skillhorizon.core.policy import Call, Memory, Steps, ask
from skillhorizon.envs.social.policy import SocialPolicy
from skillhorizon.envs.social.rules import winner_of
from tests.envs.bench import Bench, Mutation, once


def _with(call: Call, **changes: Any) -> Call:
    return msgspec.structs.replace(call, arguments={**call.arguments, **changes})


def book_the_challenger_a_cooldown_later(bench: Bench) -> None:
    world = bench.world

    def later(call: Call, memory: Memory) -> Call | None:
        post = world.post(call.arguments["post_id"]).content
        if post.role != "challenger":
            return None
        tick = world.booking_of(world.sibling(post)).content.tick
        wait = max(world.limits(a).cooldown_hours for a in post.audience_ids)
        for slot in world.slots[world.brief_of(post.brief_id).channel]:
            if slot.tick >= tick + wait and world.ledgers["slots"].fits(slot.slot_id, 1):
                try:
                    world.refuse_booking(post, slot.tick)
                except Rejected:
                    continue
                return _with(call, slot_id=slot.slot_id)
        return None

    bench.reference(once("schedule_post", later))


def leave_a_batch_audience_out(bench: Bench) -> None:
    world = bench.world

    def omit(call: Call, memory: Memory) -> Call | None:
        batch = world.batch(world.brief_of(call.arguments["brief_id"]))
        kept = [a for a in call.arguments["audience_ids"] if a not in batch]
        return _with(call, audience_ids=kept) if kept else None

    bench.reference(once("create_draft", omit))


def take_the_losers_call_to_action(bench: Bench) -> None:
    world = bench.world

    def lose(call: Call, memory: Memory) -> Call | None:
        brief = world.brief_of(call.arguments["brief_id"])
        if call.arguments["role"] != "control" or brief.cta_parent is None:
            return None
        posts = [world.post(p).content for p in world.posts_of[brief.cta_parent]]
        return _with(call, cta_id=next(p.cta_id for p in posts if p.cta_id != call.arguments["cta_id"]))

    bench.reference(once("create_draft", lose))


def attach_another_format(bench: Bench) -> None:
    """On a deployment that no update strikes: what is struck gets another asset anyway."""
    world = bench.world
    struck = {u.effect.brief_id for u in bench.task.blueprint.updates if "deployment" in u.effect.roles}

    def misfit(call: Call, memory: Memory) -> Call | None:
        post = world.post(call.arguments["post_id"]).content
        brief = world.brief_of(post.brief_id)
        if post.role != "deployment" or brief.brief_id in struck:
            return None
        for asset_id in world.tables["pools"][brief.asset_tag].asset_ids:
            for grant_id in world.grants_of[asset_id]:
                grant = world.get("grants", grant_id)
                covers = post.role in grant.roles and brief.channel in grant.channels
                if covers and world.get("assets", asset_id).format != brief.format:
                    return _with(call, asset_id=asset_id, grant_id=grant_id)
        return None

    bench.reference(once("attach_asset", misfit))


def cite_a_corrected_post(bench: Bench) -> None:
    world = bench.world

    def cite(call: Call, memory: Memory) -> Call | None:
        wanted = world.brief_of(world.post(call.arguments["post_id"]).content.brief_id).evidence
        listed = world.house.between(wanted.brand, wanted.topic, wanted.from_tick, wanted.to_tick)
        corrected = [p.post_id for p in listed if p.status == "corrected"]
        kept = call.arguments["evidence_post_ids"][0]
        return _with(call, evidence_post_ids=[kept, corrected[0]]) if corrected else None

    bench.reference(once("cite_evidence", cite))


def leave_a_member_out(bench: Bench) -> None:
    world = bench.world

    def shorten(call: Call, memory: Memory) -> Call | None:
        credited = {**call.arguments["credited"], "control": call.arguments["credited"]["control"][1:]}
        delivered = [world.artifacts[ref].content.delivered for ref in call.arguments["measurements"]]
        counts = {role: len(members) for role, members in credited.items()}
        winner = winner_of(counts, dict(zip(("control", "challenger"), delivered, strict=True)))
        return _with(call, credited=credited, winner=winner)

    bench.reference(once("submit_report", shorten))


class _Unconfirmed(SocialPolicy):
    """Leaves the confirmation of the last brief's deployment out."""

    def _deploy(self, brief_id: str) -> Steps[None]:
        if brief_id != list(self.stage)[-1]:
            yield from super()._deploy(brief_id)
            return
        yield from self._publish(brief_id, ["deployment"], f"deployment:{brief_id}")
        self.stage[brief_id] = "done"


def drop_a_confirmation(bench: Bench) -> None:
    bench.reference(policy=_Unconfirmed())


def omit_a_voided_post(bench: Bench) -> None:
    def shorten(call: Call, memory: Memory) -> Call:
        return _with(call, affected_post_ids=call.arguments["affected_post_ids"][1:])

    bench.reference(once("acknowledge_notice", shorten))


class _Spare(SocialPolicy):
    """Drafts and books a second deployment of the first brief at the end, and leaves it there."""

    def _close(self) -> Steps[None]:
        brief_id = next(iter(self.stage))
        yield from self._schedule_deployment(brief_id)
        self.stage[brief_id] = "done"
        del self.due[brief_id]
        yield from super()._close()


def leave_a_spare_draft_booked(bench: Bench) -> None:
    bench.reference(policy=_Spare())


class _Owner(SocialPolicy):
    """Raises the cap of an audience, which no brief asks for."""

    def _close(self) -> Steps[None]:
        audience_id = next(iter(self.posts.values()))["audience_ids"][0]
        limits = (yield from ask("list_audiences", audience_ids=[audience_id]))["items"][0]
        yield from ask(
            "set_audience_limits",
            audience_id=audience_id,
            load_cap=limits["load_cap"] + 100,
            cooldown_hours=limits["cooldown_hours"],
        )
        yield from super()._close()


def raise_a_cap(bench: Bench) -> None:
    bench.reference(policy=_Owner())


MUTATIONS = [
    Mutation("challenger a cooldown later", frozenset({"experiment_concurrent"}), book_the_challenger_a_cooldown_later),
    Mutation("batch audience left out", frozenset({"audiences_derived"}), leave_a_batch_audience_out),
    Mutation("loser's call to action", frozenset({"content_derived"}), take_the_losers_call_to_action),
    Mutation("asset of another format", frozenset({"content_derived"}), attach_another_format),
    Mutation("corrected post cited", frozenset({"evidence_fits"}), cite_a_corrected_post),
    Mutation("member left out", frozenset({"attribution_true"}), leave_a_member_out),
    Mutation("confirmation dropped", frozenset({"deployment_current"}), drop_a_confirmation),
    Mutation("voided post omitted", frozenset({"updates_handled"}), omit_a_voided_post),
    Mutation("spare draft left booked", frozenset({"publication_constraints_kept"}), leave_a_spare_draft_booked),
    Mutation("cap raised", frozenset({"business_inputs_intact"}), raise_a_cap),
]

SURVIVORS: dict[str, str] = {
    "asset_that_ends_early": "it costs nothing where the post comes out before its grant ends",
}
"""Kind of mistake -> why it may cost nothing."""
