"""The rules of the campaign desk, worked out by hand on the desk's records."""

from __future__ import annotations

import pytest

from skillhorizon.core.evaluation import Evaluation
from skillhorizon.envs.social.goals import SocialGoal, scoring
from skillhorizon.envs.social.records import Conversion, Response
from skillhorizon.envs.social.rules import attributed, contribution, in_force, usable, winner_of
from skillhorizon.envs.social.seed import Consent, Grant
from tests.envs.social.desk import ARMS, CTAS, FEED, FORUM, LISTS, REPORTS, Desk, slot_at


def score(desk: Desk, *briefs: str) -> Evaluation:
    return scoring.evaluate(desk.world, SocialGoal(briefs or ("brf-p",), 0))


def rows(**of: list[tuple[str, int]]):
    return {role: [Conversion("c", m, "aud-a", hour) for m, hour in of.get(role, [])] for role in ARMS}


# -- arithmetic ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "age", "half_life", "left"),
    [(96, 0, 24, 96), (96, 23, 24, 96), (96, 24, 24, 48), (96, 47, 48, 96), (96, 167, 24, 1), (96, 168, 24, 0),
     (224, 191, 24, 1), (224, 192, 24, 0)],
)  # fmt: skip
def test_contribution_halves_with_each_whole_half_life(points, age, half_life, left):
    assert contribution(points, age, half_life) == left


@pytest.mark.parametrize(
    ("changes", "tick", "holds"),
    [({}, 0, True), ({}, 29, True), ({}, 30, False), ({}, -1, False), ({"withdrawn_at": 9}, 5, False),
     ({"channels": (FORUM,)}, 5, False), ({"roles": ("challenger",)}, 5, False)],
)  # fmt: skip
def test_a_grant_is_in_force_on_its_channel_for_its_roles_up_to_its_end(changes, tick, holds):
    given = {"channels": (FEED,), "roles": ("control",), "from_tick": 0, "until_tick": 30, "withdrawn_at": None}
    grant = Grant("grt", "ast", **{**given, **changes})
    assert in_force(grant, FEED, "control", tick) is holds


def test_consent_names_the_role_and_is_granted():
    assert usable(Consent("a", FEED, "granted", ("control",)), "control")
    assert not usable(Consent("a", FEED, "granted", ("control",)), "challenger")
    assert not usable(Consent("a", FEED, "withdrawn", ("control",)), "control")


def test_a_member_counts_once_for_its_first_hour():
    given = rows(control=[("m1", 5), ("m1", 3), ("m2", 7), ("m3", 9)], challenger=[("m2", 6), ("m3", 9), ("m4", 1)])
    assert attributed(given, frozenset()) == {"control": {"m1", "m3"}, "challenger": {"m2", "m4"}}
    assert attributed(given, frozenset({"m4", "m1"})) == {"control": {"m3"}, "challenger": {"m2"}}


def test_the_control_wins_at_equal_rates():
    assert winner_of({"control": 2, "challenger": 1}, {"control": 400, "challenger": 200}) == "control"
    assert winner_of({"control": 2, "challenger": 1}, {"control": 401, "challenger": 200}) == "challenger"


# -- lists and calls to action ---------------------------------------------------------------------------------------


def test_lists_take_the_batch_first_then_what_the_winner_had():
    desk = Desk().parents_reported()
    for brief_id, lists in LISTS.items():
        desk.open(brief_id)
        brief, binding = desk.world.brief_of(brief_id), desk.world.newest_of("binding", brief_id)
        bound = desk.world.bound_reports(binding)
        for role in ARMS:
            assert desk.world.list_for(brief, bound, role) == lists[role]
            assert desk.world.cta_for(brief, bound, role) == CTAS[brief_id][role]


def test_sources_are_the_winners_audiences_and_the_batch():
    desk = Desk().parents_reported()
    desk.open("brf-k")
    bound = desk.world.bound_reports(desk.world.newest_of("binding", "brf-k"))
    # P's winner had c and b; d, of its control, and all of Q, who is parent of the call to action only, are foreign
    assert desk.world.sources(desk.world.brief_of("brf-k"), bound) == {"aud-c", "aud-b", "aud-h"}


def test_evidence_is_two_live_posts_of_the_objective_from_different_campaigns():
    world = Desk().world
    brief = world.brief_of("brf-p")
    assert world.evidence_right(brief, ("pst-s1", "pst-s2"))  # both ends of the window are inside
    for other in ("pst-s3", "pst-s4", "pst-s5", "pst-s6", "pst-s7", "pst-s8"):
        assert not world.evidence_right(brief, ("pst-s1", other)), other
    assert not world.evidence_right(brief, ("pst-s1",))


# -- exposures -------------------------------------------------------------------------------------------------------


def test_loads_of_a_standing_programme():
    world = Desk().world
    # C has half-lives of 24 h: 200 at 10, 100 at 40
    assert [world.load("aud-c", t) for t in (9, 10, 33, 34, 40, 58, 64)] == [0, 200, 200, 100, 200, 150, 100]
    # and again after 1,440 h, when nothing of the first cycle is left
    assert [world.load("aud-c", t) for t in (1449, 1450, 1480)] == [0, 200, 200]
    # 1,450 - 40 = 1,410 h are 58 half-lives
    assert world.declaration(["aud-c"], 1480) == (["pub-c1-1", "pub-c2-1"], {"aud-c": 200})


def test_own_posts_count_once_they_are_out_and_a_publication_in_each_audience():
    desk = Desk()
    control, challenger = desk.prepare("brf-p")
    desk.book(36, control, challenger)
    world = desk.world
    # at 36: C's 200 are 26 h old, 100; the forecast adds both arms, 192
    assert (world.load("aud-c", 36), world.forecast("aud-c", 36)) == (100, 292)
    desk.advance(36)
    assert world.declaration(["aud-c", "aud-b"], 36)[1] == {"aud-c": 100, "aud-b": 150}
    desk.publish(control)
    sources, loads = world.declaration(["aud-c", "aud-b"], 36)
    assert sources == sorted(["pub-c1-0", "pub-b1-0", f"pub-{control[4:]}"])
    assert loads == {"aud-c": 196, "aud-b": 150}
    desk.publish(challenger)
    sources, loads = world.declaration(["aud-c", "aud-b"], 38)
    assert sources.count(f"pub-{challenger[4:]}") == 2
    assert loads == {"aud-c": 292, "aud-b": 246}


def test_exposures_are_listed_with_own_posts_and_what_is_booked():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.book(36, *posts)
    desk.advance(36)
    desk.publish(posts[0])
    items = desk.do("list_exposures", audience_ids=["aud-c"], from_tick=0, to_tick=45)["items"]
    assert [(row["at"], row["state"], row.get("post_id")) for row in items] == [
        (10, "past", None), (36, "past", posts[0]), (36, "booked", posts[1]), (40, "booked", None),
    ]  # fmt: skip


def test_a_booking_counts_both_arms_and_leaves_later_ones_their_room():
    # C at 36 holds 100 and both arms add 192: 292 fit, 291 do not
    for cap, code in ((292, None), (291, "load_cap")):
        desk = Desk(caps={"aud-c": cap})
        posts = desk.prepare("brf-p")
        if code:
            desk.assert_refused(code, "schedule_post", post_id=posts[0], slot_id=slot_at(36))
        else:
            desk.book(36, *posts)
            desk.advance(36)
            desk.publish(*posts)


def test_a_post_booked_before_another_one_still_leaves_it_room():
    desk = Desk(caps={"aud-c": 240})
    desk.report("brf-p", 6)  # C: 192 of both arms at 6; 200 more at 10
    post = desk.draft("brf-p", "deployment")
    desk.approve(post)
    # at 102: 192 >> 4 = 12, 200 >> 3 = 25, 100 >> 2 = 25; 62 and 96 fit
    desk.book(102, post)
    assert desk.world.forecast("aud-c", 102) == 158
    second = desk.draft("brf-p", "deployment")
    desk.approve(second)
    # at 78: 192 >> 3, 200 >> 2, 100 >> 1 are 124, so 220 there; at 102 it leaves 48, and 158 + 48 fit
    desk.book(78, second)
    assert desk.world.forecast("aud-c", 102) == 206


def test_cooldown_keeps_events_apart_and_lets_the_arms_share_one():
    desk = Desk()
    control, challenger = desk.prepare("brf-p")
    desk.book(36, control)
    error = desk.assert_refused("cooldown_active", "schedule_post", post_id=challenger, slot_id=slot_at(54))
    assert error["details"]["post_id"] == control
    desk.assert_refused("cooldown_active", "schedule_post", post_id=challenger, slot_id=slot_at(18))
    desk.book(60, challenger)  # exactly 24 h
    desk.do("release_slot", post_id=challenger)
    desk.book(36, challenger)


def test_a_resting_audience_is_active_48_hours_after_it_was_brought_back():
    desk = Desk().parents_reported()
    posts = desk.prepare("brf-k")
    desk.assert_refused("audience_resting", "schedule_post", post_id=posts[0], slot_id=slot_at(114))
    assert desk.reactivate()["active_from"] == 156  # the clock stands at 108
    desk.assert_refused("audience_resting", "schedule_post", post_id=posts[0], slot_id=slot_at(150))
    desk.book(156, *posts)


def test_a_due_post_waits_three_hours_and_is_then_missed_with_its_place():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.book(36, *posts)
    assert desk.advance(39) == {
        "now": 39, "due": [{"post_id": p, "tick": 36} for p in posts], "missed": [],
    }  # fmt: skip
    desk.publish(posts[0])
    assert desk.advance(40)["missed"] == [posts[1]]
    assert desk.world.state_of(posts[1]) == "missed"
    assert desk.world.ledgers["slots"].free(slot_at(36)) == 0
    desk.book(66, posts[1])
    desk.advance(66)
    desk.publish(posts[1])
    assert desk.world.ledgers["slots"].conserved()


def test_a_released_place_is_free_again():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.book(36, *posts)
    desk.do("release_slot", post_id=posts[0])
    assert desk.world.ledgers["slots"].free(slot_at(36)) == 1
    assert desk.world.state_of(posts[0]) == "approved"


# -- reports and the whole -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("brief_id", ["brf-p", "brf-q"])
def test_reports_credit_and_decide(brief_id):
    desk = Desk()
    report = desk.world.artifacts[desk.report(brief_id, 6)].content
    credited, winner = REPORTS[brief_id]
    assert {role: list(members) for role, members in report.credited.items()} == credited
    assert desk.world.true_attribution(report) == {role: set(members) for role, members in credited.items()}
    assert report.winner.role == winner
    assert list(report.winner.audience_ids) == LISTS[brief_id][winner]


def test_a_child_leaves_out_the_members_of_all_its_parents():
    desk = Desk().parents_reported()
    for audience in ("aud-c", "aud-b"):  # what these two answer in the child is not made by hand
        for role in ARMS:
            desk.world.put("responses", f"brf-k/{role}/{audience}", Response("brf-k", role, audience, 0, ()))
    report = desk.world.artifacts[desk.report("brf-k", 156)].content
    assert desk.world.true_attribution(report) == {"control": {"mbr-7"}, "challenger": set()}
    assert not [g.failed for g in score(desk, "brf-k").local if "attribution_true" in g.failed]


def test_a_brief_carried_out_by_hand_meets_everything():
    desk = Desk()
    desk.report("brf-p", 6)
    post = desk.draft("brf-p", "deployment")
    desk.approve(post)
    desk.book(78, post)
    desk.advance(78)
    desk.publish(post)
    desk.do("confirm_deployment", brief_id="brf-p", post_id=post, report=desk.report_of("brf-p"))
    evaluation = score(desk)
    assert evaluation.success, (evaluation.local, evaluation.delivery)


def test_the_newest_experiment_is_what_counts():
    desk = Desk()
    desk.report("brf-p", 6)
    desk.run("brf-p", 78)
    failed = score(desk).local[0].failed
    assert failed["attribution_true"] == "rpt-p@1 reports an earlier experiment"
    desk.do("submit_report", **desk.reporting("brf-p"))
    assert "attribution_true" not in score(desk).local[0].failed


def test_answers_outside_the_task_do_not_depend_on_order_or_clock():
    one, other = Desk().world, Desk().world
    other.advance(500)
    assert one.response("brf-p", "control", "aud-e") == other.response("brf-p", "control", "aud-e")
    assert one.response("brf-p", "control", "aud-e") != one.response("brf-p", "challenger", "aud-e")
