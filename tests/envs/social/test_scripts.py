"""The SocialOps skill scripts: values worked by hand, what they refuse, and that they run alone."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from skillhorizon.core.errors import Rejected
from skillhorizon.envs import load

SKILLS = load("social").skills


def run(skill, script, arguments):
    return SKILLS[skill].run(script, arguments)


# -- lists -----------------------------------------------------------------------------------------------------------

COMBINE = {
    "inherited": ["aud-1", "aud-2", "aud-3", "aud-9"],
    "new": ["aud-9", "aud-8", "aud-7"],
    "consents": [
        {"audience_id": "aud-1", "status": "granted", "roles": ["control", "challenger"]},
        {"audience_id": "aud-2", "status": "granted", "roles": ["control", "challenger"]},
        {"audience_id": "aud-3", "status": "granted", "roles": ["challenger"]},
        {"audience_id": "aud-7", "status": "granted", "roles": ["control"]},
        {"audience_id": "aud-8", "status": "withdrawn", "roles": ["control", "challenger"]},
        {"audience_id": "aud-9", "status": "granted", "roles": ["control", "challenger"]},
    ],
    "reach": {"aud-1": 500, "aud-2": 500, "aud-3": 900},
    "audience_limit": 3,
}


def test_new_audiences_come_first_and_inherited_ones_by_reach_then_id():
    # control: 7 and 9 are new, 1 and 2 tie at 500 and 1 is the lower id; challenger: 9, then 3 (900), then 1
    # 2 is in neither list, 8 has withdrawn
    assert run("derive-variant-audiences", "combine_audiences", COMBINE) == {
        "control": ["aud-7", "aud-9", "aud-1"],
        "challenger": ["aud-9", "aud-3", "aud-1"],
        "dropped": ["aud-2", "aud-8"],
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"audience_limit": 0},
        {"consents": COMBINE["consents"][1:]},
        {"consents": [*COMBINE["consents"], COMBINE["consents"][0]]},
        {"reach": {"aud-1": 500}},
        {"new": ["aud-9", "aud-9"]},
        {"new": [9]},
        {"extra": 1},
    ],
)
def test_lists_need_whole_input(changes):
    with pytest.raises(Rejected) as refusal:
        run("derive-variant-audiences", "combine_audiences", {**COMBINE, **changes})
    assert refusal.value.code == "script_failed"


# -- loads -----------------------------------------------------------------------------------------------------------

AUDIENCE = {
    "audience_id": "aud-1", "half_life_hours": 24, "load_cap": 300, "cooldown_hours": 24, "active_from": 0,
    "added": 96,
}  # fmt: skip
ROWS = [
    {"audience_id": "aud-1", "at": 0, "points": 200, "publication_id": "pub-1", "state": "past"},
    {"audience_id": "aud-1", "at": 30, "points": 101, "publication_id": "pub-2", "state": "booked"},
    {"audience_id": "aud-2", "at": 0, "points": 999, "publication_id": "pub-3", "state": "past"},
]


def forecast(audience=None, own=None, ticks=(23, 24, 30, 48)):
    arguments = {
        "audiences": [{**AUDIENCE, **(audience or {})}],
        "exposures": ROWS,
        "own_ticks": own or {},
        "ticks": list(ticks),
    }
    return run("schedule-within-limits", "forecast_load", arguments)


def test_a_load_halves_with_every_whole_half_life():
    # 23: 200; 24: 200 >> 1 = 100; 30: 100 + 101 = 201; 48: 200 >> 2 = 50, and 101 is 18 h old
    # 300 - 96 = 204 is the most that may stand before
    assert forecast() == {"loads": {"aud-1": [200, 100, 201, 151]}, "ok": [True] * 4, "first_ok": 23}
    assert forecast({"load_cap": 295})["ok"] == [False, True, False, True]


def test_cooldown_activity_and_later_own_rows_are_kept():
    # an own event at 30: 6 h and 7 h are too near, 54 is exactly 24 h away
    assert forecast(own={"aud-1": [30]}, ticks=(23, 24, 30, 54))["ok"] == [False, False, False, True]
    assert forecast({"active_from": 24})["first_ok"] == 24
    # 200 + 96 at 6 fit 296; at 30 they are 48, beside 100 + 101: 249
    near = {"load_cap": 296, "cooldown_hours": 6}
    assert forecast(near, {"aud-1": [30]}, (6,))["ok"] == [True]
    # at 7 the event is 23 h old when the other one comes, and counts in full: 201 + 96 = 297
    assert forecast(near, {"aud-1": [30]}, (7,))["ok"] == [False]
    assert forecast({**near, "load_cap": 297}, {"aud-1": [30]}, (7,))["ok"] == [True]


@pytest.mark.parametrize("audience", [{"half_life_hours": 0}, {"added": -1}, {"load_cap": "9"}, {"more": 1}])
def test_forecasts_need_whole_input(audience):
    with pytest.raises(Rejected):
        forecast(audience)


# -- declarations ----------------------------------------------------------------------------------------------------


def declare(**changes):
    rows = [
        {"audience_id": "aud-1", "at": 52, "points": 100, "publication_id": "pub-2", "state": "past"},
        {"audience_id": "aud-1", "at": 4, "points": 96, "publication_id": "pub-1", "state": "past"},
        {"audience_id": "aud-2", "at": 4, "points": 96, "publication_id": "pub-1", "state": "past"},
        {"audience_id": "aud-1", "at": 100, "points": 96, "publication_id": "pub-4", "state": "booked"},
        {"audience_id": "aud-1", "at": 101, "points": 96, "publication_id": "pub-5", "state": "past"},
        {"audience_id": "aud-3", "at": 99, "points": 96, "publication_id": "pub-6", "state": "past"},
    ]
    arguments = {"post_id": "pst-1", "now": 100, "half_lives": {"aud-1": 24, "aud-2": 48}, "exposures": rows}
    return run("publish-due-posts", "publication_evidence", {**arguments, **changes})


def test_a_publication_is_named_once_for_each_audience_in_which_it_lives():
    # aud-1: 96 h are 4 half-lives, 96 >> 4 = 6; 48 h are 2, 100 >> 2 = 25; aud-2: 96 h are 2, 96 >> 2 = 24
    assert declare() == {
        "post_id": "pst-1",
        "historical_publication_ids": ["pub-1", "pub-1", "pub-2"],
        "audience_loads": {"aud-1": 31, "aud-2": 24},
    }


def test_what_has_decayed_is_no_source():
    # 192 h are 8 half-lives of aud-1: 96 >> 8 = 0, and 4 of aud-2: 96 >> 4 = 6; pub-2 is 6 half-lives old: 100 >> 6 = 1
    answer = declare(now=196)
    assert answer["historical_publication_ids"] == ["pub-1", "pub-2", "pub-5"]
    assert answer["audience_loads"] == {"aud-1": 1 + 12, "aud-2": 6}  # pub-5: 95 h, 96 >> 3 = 12


@pytest.mark.parametrize(
    "changes", [{"half_lives": {}}, {"half_lives": {"aud-1": 0}}, {"now": "1"}, {"exposures": [{}]}]
)
def test_declarations_need_whole_input(changes):
    with pytest.raises(Rejected):
        declare(**changes)


# -- reports ---------------------------------------------------------------------------------------------------------

CONVERSIONS = {
    "control": [
        {"member_id": "mbr-1", "hour": 5},
        {"member_id": "mbr-1", "hour": 3},
        {"member_id": "mbr-2", "hour": 7},
        {"member_id": "mbr-3", "hour": 9},
        {"member_id": "mbr-9", "hour": 1},
    ],
    "challenger": [
        {"member_id": "mbr-2", "hour": 6, "audience_id": "aud-1"},
        {"member_id": "mbr-3", "hour": 9},
        {"member_id": "mbr-4", "hour": 2},
    ],
}


def test_each_member_counts_once_for_its_first_hour_and_the_control_at_a_tie():
    # 7 rows that are not mbr-9's belong to 4 members
    arguments = {"conversions": CONVERSIONS, "exclude_members": ["mbr-9", "mbr-0"]}
    assert run("report-deduplicated-results", "dedupe_conversions", arguments) == {
        "credited": {"control": ["mbr-1", "mbr-3"], "challenger": ["mbr-2", "mbr-4"]},
        "duplicates": 3,
        "excluded": 1,
    }


@pytest.mark.parametrize(
    ("credited", "delivered", "winner"),
    [
        ((2, 2), (400, 200), "challenger"),
        ((2, 1), (400, 200), "control"),  # equal rates
        ((0, 0), (1, 1), "control"),
        ((1, 2), (100, 201), "control"),  # 1 * 201 against 2 * 100
        ((1, 2), (101, 201), "challenger"),  # 201 against 202
    ],
)
def test_rates_are_compared_crosswise(credited, delivered, winner):
    arguments = {
        name: dict(zip(("control", "challenger"), pair, strict=True))
        for name, pair in (("credited", credited), ("delivered", delivered))
    }
    assert run("report-deduplicated-results", "pick_winner", arguments) == {"winner": winner}


def test_reports_need_whole_input():
    for script, arguments in (
        ("dedupe_conversions", {"conversions": {"control": []}, "exclude_members": []}),
        ("dedupe_conversions", {"conversions": {"control": [{}], "challenger": []}, "exclude_members": []}),
        ("dedupe_conversions", {"conversions": {"control": [], "challenger": []}, "exclude_members": [1]}),
        ("pick_winner", {"credited": {"control": -1, "challenger": 0}, "delivered": {"control": 1, "challenger": 1}}),
    ):
        with pytest.raises(Rejected):
            run("report-deduplicated-results", script, arguments)


@pytest.mark.parametrize(
    ("skill", "script"), [(s.name, script) for s in SKILLS.skills.values() for script in s.scripts]
)
def test_a_script_runs_alone_and_says_what_is_wrong(skill, script):
    path = SKILLS.folder / skill / "scripts" / f"{script}.py"
    bad = subprocess.run([sys.executable, str(path)], input=b"{}", capture_output=True)
    assert bad.returncode == 2
    assert json.loads(bad.stdout).keys() == {"error"}
    if script == "pick_winner":
        counts = {"credited": {"control": 1, "challenger": 0}, "delivered": {"control": 1, "challenger": 1}}
        good = subprocess.run([sys.executable, str(path)], input=json.dumps(counts).encode(), capture_output=True)
        assert (good.returncode, json.loads(good.stdout)) == (0, {"winner": "control"})
