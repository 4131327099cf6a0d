"""Each refusal of the campaign desk, from a call that is right but for one thing."""

from __future__ import annotations

import pytest

from tests.envs.social.desk import ARMS, FULL, SINGLE, Desk, slot_at


def failed_check(desk: Desk, goal: str) -> None:
    event = desk.gateway.events[-1]
    assert (event.check, event.goal) == (False, goal)


def no_check(desk: Desk) -> None:
    assert desk.gateway.events[-1].check is None


# -- preparing -------------------------------------------------------------------------------------------------------


def test_every_parent_is_bound_by_its_newest_report():
    desk = Desk().parents_reported()
    p, q = desk.report_of("brf-p"), desk.report_of("brf-q")
    desk.assert_refused("stale_parent", "open_brief", brief_id="brf-k", parent_reports=[p])
    failed_check(desk, "binding:brf-k")
    desk.do("submit_report", **desk.reporting("brf-p"))
    desk.assert_refused("stale_parent", "open_brief", brief_id="brf-k", parent_reports=[p, q])
    desk.assert_refused("stale_parent", "open_brief", brief_id="brf-k", parent_reports=[p, desk.report_of("brf-p"), q])
    desk.assert_refused("bad_argument", "open_brief", brief_id="brf-p", parent_reports=[q])
    desk.assert_refused("bad_argument", "open_brief", brief_id="brf-k", parent_reports=[q, q])
    desk.assert_refused("unknown_id", "open_brief", brief_id="brf-k", parent_reports=["rpt-zz@1"])
    desk.open("brf-k")


def test_an_unreported_parent_cannot_be_bound():
    desk = Desk()
    desk.assert_refused("stale_parent", "open_brief", brief_id="brf-k", parent_reports=[])


def test_drafts_need_an_open_brief_known_audiences_and_room():
    desk = Desk()
    arguments = {"brief_id": "brf-p", "role": "control", "audience_ids": ["aud-c"], "cta_id": "cta-p", "copy": "x"}
    desk.assert_refused("wrong_state", "create_draft", **arguments)
    desk.open("brf-p")
    three = ["aud-a", "aud-b", "aud-c"]
    desk.assert_refused("audience_limit", "create_draft", **{**arguments, "audience_ids": three})
    desk.assert_refused("unknown_id", "create_draft", **{**arguments, "audience_ids": ["aud-zz"]})
    desk.assert_refused("unknown_id", "create_draft", **{**arguments, "cta_id": "cta-zz"})
    desk.assert_refused("bad_argument", "create_draft", **{**arguments, "audience_ids": ["aud-a", "aud-a"]})
    desk.assert_refused("wrong_state", "create_draft", **{**arguments, "audience_ids": ["aud-x"]})  # not of this season
    desk.assert_refused("wrong_state", "create_draft", **{**arguments, "role": "deployment"})  # nothing is reported
    desk.do("create_draft", **arguments)


def test_a_published_post_no_longer_changes():
    desk = Desk()
    post = desk.run("brf-p", 6)[0]
    desk.assert_refused("wrong_state", "attach_asset", post_id=post, asset_id="ast-1", grant_id="grt-1")
    desk.assert_refused("wrong_state", "cite_evidence", post_id=post, evidence_post_ids=["pst-s1"])
    desk.assert_refused("wrong_state", "request_approval", post=desk.world.post(post).ref)
    desk.assert_refused("wrong_state", "release_slot", post_id=post)
    desk.assert_refused("unknown_id", "attach_asset", post_id="pst-zz-1", asset_id="ast-1", grant_id="grt-1")


def test_only_the_newest_version_is_approved():
    desk = Desk()
    desk.open("brf-p")
    post = desk.draft("brf-p", "control")
    desk.assert_refused("version_conflict", "request_approval", post=f"{post}@2")
    failed_check(desk, "control_approval:brf-p")
    desk.approve(post)


def test_every_audience_has_consented_to_the_role():
    desk = Desk()
    desk.open("brf-p")
    post = desk.draft("brf-p", "challenger", audience_ids=["aud-c", "aud-d"])  # D has consented to the control only
    error = desk.assert_refused("consent_missing", "request_approval", post=desk.world.post(post).ref)
    assert error["details"] == {"audience_id": "aud-d"}


def test_a_deployment_is_tested_with_the_role_of_the_winner():
    desk = Desk()
    desk.report("brf-q", 30)  # its control wins
    post = desk.draft("brf-q", "deployment", audience_ids=["aud-f"])  # F has consented to the challenger only
    desk.assert_refused("consent_missing", "request_approval", post=desk.world.post(post).ref)
    desk.approve(desk.draft("brf-q", "deployment"))


@pytest.mark.parametrize(
    ("asset", "grant", "advance"),
    [("ast-1", "grt-3", 0), ("ast-4", "grt-4", 0), ("ast-2", "grt-2", 0), ("ast-3", "grt-3", 30)],
    ids=["of another asset", "another channel", "another role", "over"],
)
def test_a_grant_must_cover_the_post_now(asset, grant, advance):
    desk = Desk()
    desk.open("brf-p")
    post = desk.draft("brf-p", "control")
    desk.do("attach_asset", post_id=post, asset_id=asset, grant_id=grant)
    desk.advance(advance)
    desk.assert_refused("grant_mismatch", "request_approval", post=desk.world.post(post).ref)


@pytest.mark.parametrize("cited", [["pst-s1"], ["pst-s1", "pst-s6"], ["pst-s1", "pst-s7"], ["pst-s1", "pst-s8"]])
def test_evidence_is_tested_for_number_brand_topic_and_window(cited):
    desk = Desk()
    desk.open("brf-p")
    post = desk.draft("brf-p", "control")
    desk.do("cite_evidence", post_id=post, evidence_post_ids=cited)
    desk.assert_refused("evidence_unfit", "request_approval", post=desk.world.post(post).ref)


def test_objective_status_and_campaign_of_evidence_are_not_tested():
    desk = Desk()
    desk.open("brf-p")
    post = desk.draft("brf-p", "control")
    for other in ("pst-s3", "pst-s4", "pst-s5"):
        desk.do("cite_evidence", post_id=post, evidence_post_ids=["pst-s1", other])
        desk.approve(post)
        assert desk.gateway.events[-1].check is True


def test_an_experiment_has_two_approved_arms_from_its_sources():
    desk = Desk()
    desk.open("brf-p")
    control, challenger = (desk.draft("brf-p", role) for role in ARMS)
    names = {"brief_id": "brf-p", "control_post_id": control, "challenger_post_id": challenger}
    desk.approve(control)
    desk.assert_refused("approval_void", "register_experiment", **names)
    failed_check(desk, "experiment:brf-p")
    desk.approve(challenger)
    desk.assert_refused("wrong_state", "register_experiment", **{**names, "control_post_id": challenger})
    no_check(desk)
    foreign = desk.draft("brf-p", "challenger", audience_ids=["aud-e"])
    desk.approve(foreign)
    desk.assert_refused("lineage_mismatch", "register_experiment", **{**names, "challenger_post_id": foreign})
    desk.do("register_experiment", **names)


def test_an_experiment_is_not_registered_on_a_stale_binding():
    desk = Desk().parents_reported()
    desk.open("brf-k")
    posts = [desk.draft("brf-k", role) for role in ARMS]
    for post in posts:
        desk.approve(post)
    desk.do("submit_report", **desk.reporting("brf-p", credited={"control": ["mbr-1", "mbr-3"], "challenger": []},
                                             winner="control"))  # fmt: skip
    names = {"brief_id": "brf-k", "control_post_id": posts[0], "challenger_post_id": posts[1]}
    desk.assert_refused("stale_parent", "register_experiment", **names)


def test_an_audience_is_brought_back_on_what_it_saw_last():
    desk = Desk().parents_reported()
    given = {"brief_id": "brf-k", "audience_id": "aud-h"}
    desk.assert_refused("wrong_basis", "reactivate_audience", **given, basis_publication_id="pub-h1-0")
    failed_check(desk, "reactivation:brf-k")
    desk.assert_refused("wrong_basis", "reactivate_audience", **given, basis_publication_id="pub-h1-1")  # still to come
    desk.assert_refused(
        "wrong_state", "reactivate_audience", brief_id="brf-k", audience_id="aud-c", basis_publication_id="p"
    )
    desk.do("reactivate_audience", **given, basis_publication_id="pub-h2-0")
    desk.assert_refused("wrong_state", "reactivate_audience", **given, basis_publication_id="pub-h2-0")


# -- booking ---------------------------------------------------------------------------------------------------------


def test_bookings_need_lead_place_and_channel():
    desk = Desk()
    control, challenger = desk.prepare("brf-p")
    desk.advance(5)
    desk.assert_refused("too_soon", "schedule_post", post_id=control, slot_id=slot_at(6))
    failed_check(desk, "control_slot:brf-p")
    desk.assert_refused("slot_full", "schedule_post", post_id=control, slot_id=slot_at(FULL))
    desk.assert_refused("wrong_state", "schedule_post", post_id=control, slot_id="slt-other")
    desk.assert_refused("unknown_id", "schedule_post", post_id=control, slot_id="slt-zz")
    desk.book(SINGLE, control)
    desk.assert_refused("slot_full", "schedule_post", post_id=challenger, slot_id=slot_at(SINGLE))
    desk.assert_refused("wrong_state", "schedule_post", post_id=control, slot_id=slot_at(60))
    desk.do("release_slot", post_id=control)
    desk.assert_refused("wrong_state", "release_slot", post_id=control)


def test_the_lead_is_two_hours():
    desk = Desk()
    control, _ = desk.prepare("brf-p")
    desk.advance(4)
    desk.book(6, control)
    assert desk.gateway.events[-1].check is True


def test_bookings_need_an_experiment_and_a_standing_approval():
    desk = Desk()
    desk.open("brf-p")
    control, challenger = (desk.draft("brf-p", role) for role in ARMS)
    desk.approve(control)
    desk.approve(challenger)
    desk.assert_refused("wrong_state", "schedule_post", post_id=control, slot_id=slot_at(36))
    desk.register("brf-p", control, challenger)
    desk.do("cite_evidence", post_id=control, evidence_post_ids=["pst-s2", "pst-s3"])
    desk.assert_refused("approval_void", "schedule_post", post_id=control, slot_id=slot_at(36))
    failed_check(desk, "control_slot:brf-p")
    desk.approve(control)
    desk.book(36, control)


def test_a_grant_must_last_to_the_slot():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.do("attach_asset", post_id=posts[0], asset_id="ast-3", grant_id="grt-3")
    desk.approve(posts[0])
    desk.assert_refused("grant_ends", "schedule_post", post_id=posts[0], slot_id=slot_at(30))
    desk.book(24, posts[0])


def test_caps_cooldowns_and_rest():
    desk = Desk(caps={"aud-d": 95})
    control, challenger = desk.prepare("brf-p")
    error = desk.assert_refused("load_cap", "schedule_post", post_id=control, slot_id=slot_at(36))
    assert error["details"]["audience_id"] == "aud-d"
    desk.book(36, challenger)
    desk.assert_refused("cooldown_active", "schedule_post", post_id=control, slot_id=slot_at(54))
    failed_check(desk, "control_slot:brf-p")
    desk.do("set_audience_limits", audience_id="aud-d", load_cap=96, cooldown_hours=24)
    desk.book(36, control)


# -- publishing ------------------------------------------------------------------------------------------------------


def test_the_clock_moves_on_within_the_season():
    desk = Desk()
    desk.advance(10)
    desk.assert_refused("clock_backwards", "advance_clock", to_tick=9)
    desk.assert_refused("season_over", "advance_clock", to_tick=1001)
    desk.advance(1000)


def test_publishing_is_tested_in_this_order():
    desk = Desk()
    posts = desk.prepare("brf-p")
    control = posts[0]
    right = desk.declare(control)
    wrong = {"post_id": "pst-zz-1", "historical_publication_ids": [1], "audience_loads": {"aud-c": "0"}}
    desk.assert_refused("schema", "publish_post", **wrong)
    failed_check(desk, "publication:pst-zz-1")
    desk.assert_refused("schema", "publish_post", **{**right, "audience_loads": {"aud-c": 1.0}})
    desk.assert_refused("schema", "publish_post", **{**right, "audience_loads": {"aud-c": True}})
    failed_check(desk, "control_publication:brf-p")
    desk.assert_refused("unknown_post", "publish_post", **{**right, "post_id": "pst-zz-1"})
    failed_check(desk, "publication:pst-zz-1")
    desk.assert_refused("due_post_state", "publish_post", **right)  # not booked
    desk.book(36, *posts)
    desk.assert_refused("due_post_state", "publish_post", **right)  # not due
    desk.advance(36)
    desk.do("cite_evidence", post_id=control, evidence_post_ids=["pst-s2", "pst-s3"])
    desk.assert_refused("approval_void", "publish_post", **{**right, "historical_publication_ids": []})
    desk.approve(control)
    right = desk.declare(control)
    other = {**right, "audience_loads": {}}
    desk.assert_refused("required_historical_sources", "publish_post", **{**other, "historical_publication_ids": []})
    failed_check(desk, "control_publication:brf-p")
    desk.assert_refused("current_audience_loads", "publish_post", **other)
    desk.assert_refused(
        "current_audience_loads", "publish_post", **{**right, "audience_loads": {"aud-c": 100, "aud-d": 1}}
    )
    desk.do("publish_post", **right)
    desk.assert_refused("due_post_state", "publish_post", **right)  # out already


def test_sources_are_a_multiset():
    desk = Desk()
    desk.report("brf-p", 36)
    challenger = desk.world.newest_of("experiment", "brf-p").content.challenger_post_id
    post = desk.draft("brf-p", "deployment")
    desk.approve(post)
    desk.book(90, post)
    desk.advance(90)
    right = desk.declare(post)
    listed = right["historical_publication_ids"]
    shared = f"pub-{challenger[4:]}"
    assert listed.count(shared) == 2  # the challenger lives on in C and in B
    for wrong in (sorted(set(listed)), [*listed, shared]):
        desk.assert_refused(
            "required_historical_sources", "publish_post", **{**right, "historical_publication_ids": wrong}
        )
    desk.do("publish_post", **{**right, "historical_publication_ids": listed[::-1]})


def test_a_missed_post_is_no_longer_due():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.book(36, *posts)
    desk.advance(40)
    desk.assert_refused("due_post_state", "publish_post", **desk.declare(posts[0]))


def test_a_cap_that_was_lowered_since_the_booking_is_kept():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.book(36, *posts)
    desk.advance(36)
    desk.do("set_audience_limits", audience_id="aud-c", load_cap=195, cooldown_hours=24)  # 100 stand, 96 come
    desk.assert_refused("load_cap", "publish_post", **desk.declare(posts[0]))


# -- reporting and deploying -----------------------------------------------------------------------------------------


def test_a_post_is_measured_once_48_hours_after_its_tick():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.assert_refused("wrong_state", "measure_post", post_id=posts[0])
    desk.book(36, *posts)
    desk.advance(38)
    desk.publish(*posts)
    desk.advance(83)
    desk.assert_refused("window_open", "measure_post", post_id=posts[0])
    failed_check(desk, "control_measurement:brf-p")
    desk.advance(84)
    assert desk.do("measure_post", post_id=posts[0])["delivered"] == 400
    desk.assert_refused("wrong_state", "measure_post", post_id=posts[0])


def test_reports_credit_what_was_measured():
    desk = Desk()
    desk.run("brf-p", 6)
    right = desk.reporting("brf-p")
    credited = right["credited"]
    for wrong, code in (
        ({**credited, "control": ["mbr-4"]}, "credit_unsupported"),  # mbr-4 is no row of the control
        ({"control": ["mbr-1", "mbr-2"], "challenger": ["mbr-2"]}, "double_credit"),
        ({"control": [], "challenger": ["mbr-2"]}, None),
    ):
        if code:
            desk.assert_refused(code, "submit_report", **{**right, "credited": wrong})
            failed_check(desk, "report:brf-p")
    desk.assert_refused("winner_inconsistent", "submit_report", **{**right, "winner": "control"})
    desk.assert_refused(
        "bad_argument", "submit_report", **{**right, "credited": {**credited, "control": ["mbr-1"] * 2}}
    )
    desk.assert_refused("wrong_state", "submit_report", **{**right, "measurements": right["measurements"][::-1]})
    desk.do("submit_report", **right)


def test_reports_need_an_experiment():
    desk = Desk()
    desk.run("brf-p", 6)
    desk.open("brf-q")
    desk.assert_refused("wrong_state", "submit_report", **{**desk.reporting("brf-p"), "brief_id": "brf-q"})


def test_reports_need_their_parents_as_they_were_bound():
    desk = Desk().parents_reported()
    desk.run("brf-k", 156)
    report = desk.reporting("brf-k", credited={"control": ["mbr-7"], "challenger": []}, winner="control")
    fewer = {"control": ["mbr-1", "mbr-3"], "challenger": ["mbr-2"]}
    # 2 of 400 against 1 of 200: equal rates, the control
    desk.do("submit_report", **desk.reporting("brf-p", credited=fewer, winner="control"))
    desk.assert_refused("stale_parent", "submit_report", **report)
    failed_check(desk, "report:brf-k")


def test_a_deployment_is_the_winner_of_the_newest_report():
    desk = Desk()
    old = desk.report("brf-p", 6)
    posts = [desk.draft("brf-p", "deployment"), desk.draft("brf-p", "deployment", cta_id="cta-p")]
    for post, tick in zip(posts, (78, 102), strict=True):
        desk.approve(post)
        desk.book(tick, post)
    right = {"brief_id": "brf-p", "post_id": posts[0], "report": old}
    desk.assert_refused("wrong_state", "confirm_deployment", **right)
    no_check(desk)
    for post, tick in zip(posts, (78, 102), strict=True):
        desk.advance(tick)
        desk.publish(post)
    desk.assert_refused("not_the_winner", "confirm_deployment", **{**right, "post_id": posts[1]})
    failed_check(desk, "brief:brf-p")
    desk.assert_refused("wrong_state", "confirm_deployment", **{**right, "brief_id": "brf-q"})
    new = desk.do("submit_report", **desk.reporting("brf-p"))["report"]
    desk.assert_refused("version_conflict", "confirm_deployment", **right)
    desk.do("confirm_deployment", **{**right, "report": new})


# -- notices, limits, queries ----------------------------------------------------------------------------------------


def test_notices_and_limits_name_what_exists():
    desk = Desk()
    posts = desk.prepare("brf-p")
    desk.assert_refused("unknown_id", "acknowledge_notice", notice_id="ntc-0001", affected_post_ids=[])
    desk.strike("brf-p", "control")
    desk.assert_refused("unknown_id", "acknowledge_notice", notice_id="ntc-0001", affected_post_ids=["pst-zz-1"])
    desk.assert_refused("bad_argument", "acknowledge_notice", notice_id="ntc-0001", affected_post_ids=[posts[0]] * 2)
    desk.assert_refused("wrong_state", "set_audience_limits", audience_id="aud-x", load_cap=1, cooldown_hours=1)


def test_queries_refuse_what_does_not_exist():
    desk = Desk()
    for tool, arguments in (
        ("read_brief", {"brief_id": "brf-zz"}),
        ("list_consents", {"channel": "chn-zz"}),
        ("list_consents", {"channel": "chn-feed", "consent_batch_id": "cbt-zz"}),
        ("list_audiences", {"audience_ids": ["aud-zz"]}),
        ("list_assets", {"tag": "tag-zz"}),
        ("list_exposures", {"audience_ids": ["aud-zz"], "from_tick": 0, "to_tick": 9}),
        ("list_slots", {"channel": "chn-zz", "from_tick": 0}),
        ("list_brief_posts", {"brief_id": "brf-zz"}),
        ("list_conversions", {"measurement_id": "msr-zz"}),
    ):
        desk.assert_refused("unknown_id", tool, **arguments)
    desk.assert_refused("wrong_state", "read_report", brief_id="brf-p")
