"""Rule 13: exactly what it names becomes stale, and nothing else."""

from __future__ import annotations

from skillhorizon.core.world import STALE
from tests.envs.social.desk import ARMS, Desk, slot_at


def stale(desk: Desk) -> set[str]:
    return {ref for ref, artifact in desk.world.artifacts.items() if artifact.status == STALE}


def report_anew(desk: Desk, brief_id: str, credited=None, winner: str | None = None):
    changes = {name: value for name, value in (("credited", credited), ("winner", winner)) if value is not None}
    return desk.do("submit_report", **desk.reporting(brief_id, **changes))


def test_an_approval_goes_with_any_change_of_its_post():
    desk = Desk()
    control, challenger = desk.prepare("brf-p")
    desk.book(36, control, challenger)
    answer = desk.do("attach_asset", post_id=control, asset_id="ast-5", grant_id="grt-5")
    assert answer["invalidated"] == [f"apr-{control[4:]}@1"]
    assert stale(desk) == {f"apr-{control[4:]}@1"}
    assert desk.gateway.events[-1].invalidated == ("control_approval:brf-p",)
    # registration and booking name the post and stay
    desk.approve(control)
    assert not stale(desk)
    desk.advance(36)
    desk.publish(control, challenger)


def test_withdrawn_rights_void_what_is_not_out_and_carries_them():
    desk = Desk()
    control, challenger = desk.prepare("brf-p")
    desk.do("attach_asset", post_id=challenger, asset_id="ast-5", grant_id="grt-5")
    desk.approve(challenger)
    desk.open("brf-q")
    neighbour = desk.draft("brf-q", "control")  # carries grt-1 too, and was not approved
    desk.book(36, control, challenger)
    assert desk.strike("brf-p", "control") == {f"apr-{control[4:]}@1"}
    states = {p: desk.world.state_of(p) for p in (control, challenger, neighbour)}
    assert states == {control: "rights_void", challenger: "scheduled", neighbour: "rights_void"}
    assert desk.world.voided_posts == {"ntc-0001": sorted([control, neighbour])}
    listed = desk.do("list_brief_posts", status="rights_void")["items"]
    assert [row["voided_by"] for row in listed] == [["ntc-0001"]] * 2
    notice = desk.do("list_notices")["items"][0]
    assert (notice["kind"], notice["subject_ids"]) == ("rights_withdrawn", ["grt-1"])
    desk.advance(36)
    desk.publish(challenger)
    desk.assert_refused("approval_void", "publish_post", **desk.declare(control))
    # another asset and another approval, and the booking holds
    desk.do("attach_asset", post_id=control, asset_id="ast-5", grant_id="grt-5")
    desk.approve(control)
    desk.publish(control)


def test_published_posts_keep_their_approvals_and_are_not_voided():
    desk = Desk()
    posts = desk.run("brf-p", 6)
    before = {ref: a.status for ref, a in desk.world.artifacts.items()}
    assert desk.strike("brf-p", *ARMS) == set()
    assert {ref: a.status for ref, a in desk.world.artifacts.items()} == before
    assert desk.world.voided_posts == {"ntc-0001": []}
    assert [desk.world.state_of(p) for p in posts] == ["published"] * 2


def test_a_grant_is_withdrawn_once():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.strike("brf-p", *ARMS)
    assert desk.world.voided_posts["ntc-0001"] == posts
    desk.strike("brf-p", *ARMS)
    assert desk.world.voided_posts["ntc-0002"] == []


def test_binding_and_experiment_go_when_what_they_took_has_changed():
    desk = Desk().parents_reported()
    desk.prepare("brf-k")
    # the same winner with fewer members: 1 of 400 against 2 of 200
    report_anew(desk, "brf-p", {"control": ["mbr-1"], "challenger": ["mbr-2", "mbr-4"]})
    assert not stale(desk)
    # another winner: its audiences were inherited
    answer = report_anew(desk, "brf-p", {"control": ["mbr-1", "mbr-3"], "challenger": []}, "control")
    assert answer["invalidated"] == ["bnd-k@1", "exp-k@1"] == sorted(stale(desk))
    assert desk.gateway.events[-1].invalidated == ("binding:brf-k", "experiment:brf-k")
    # and back again
    report_anew(desk, "brf-p")
    assert not stale(desk)


def test_the_parent_of_the_call_to_action_counts_for_that_alone():
    desk = Desk().parents_reported()
    desk.prepare("brf-k")
    report_anew(desk, "brf-q", {"control": [], "challenger": ["mbr-6"]}, "challenger")
    assert stale(desk) == {"bnd-k@1", "exp-k@1"}


def test_a_report_goes_when_a_bound_report_credits_other_members():
    desk = Desk().parents_reported()
    desk.run("brf-k", 156)
    # members of C and B in the child are left out: this is no test of attribution
    report = report_anew(desk, "brf-k", {"control": ["mbr-7"], "challenger": []}, "control")["report"]
    report_anew(desk, "brf-q")  # nothing differs
    assert not stale(desk)
    answer = report_anew(desk, "brf-p", {"control": ["mbr-1"], "challenger": ["mbr-2", "mbr-4"]})
    assert answer["invalidated"] == [report]
    assert stale(desk) == {report}
    assert desk.gateway.events[-1].invalidated == ("report:brf-k",)


def test_a_deployment_goes_when_a_newer_report_changes_the_winner():
    desk = Desk()
    desk.report("brf-p", 6)
    post = desk.draft("brf-p", "deployment")
    desk.approve(post)
    desk.book(78, post)
    desk.advance(78)
    desk.publish(post)
    desk.do("confirm_deployment", brief_id="brf-p", post_id=post, report=desk.report_of("brf-p"))
    report_anew(desk, "brf-p", {"control": ["mbr-1"], "challenger": ["mbr-2", "mbr-4"]})
    assert not stale(desk)
    report_anew(desk, "brf-p", {"control": ["mbr-1", "mbr-3"], "challenger": []}, "control")
    assert stale(desk) == {"dep-p@1"}
    assert desk.gateway.events[-1].invalidated == ("brief:brf-p",)


def test_limits_slots_and_clock_make_nothing_stale():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.book(36, *posts)
    desk.do("set_audience_limits", audience_id="aud-c", load_cap=1, cooldown_hours=1)
    desk.do("release_slot", post_id=posts[0])
    desk.advance(200)
    assert not stale(desk)
    desk.assert_refused("load_cap", "schedule_post", post_id=posts[1], slot_id=slot_at(300))
