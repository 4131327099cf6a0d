"""The rules of the review and the skill scripts, at values worked by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from skillhorizon.core.errors import Rejected
from skillhorizon.envs.research import rules
from skillhorizon.envs.research.records import Arm, Cluster, Conduct, Measured
from skillhorizon.envs.research.rules import Candidate
from skillhorizon.envs.research.seed import Enrolled
from tests.envs.research.support import RESEARCH

SKILLS = RESEARCH.skills
IDENTIFY, ANNOTATE = "acquire-and-resolve-works", "annotate-reported-effects"
ESTABLISH, CONTRIBUTE = "establish-scale-calibrations", "contribute-calibrated-studies"
SYNTHESISE = "synthesise-review-round"
DIFFERENCE = {
    "metric": "mean_difference",
    "factor": "1.0000",
    "treated": {"mean": "21.20", "sd": "6.10", "n": 84},
    "control": {"mean": "25.51", "sd": "6.70", "n": 80},
    "cluster": {"size": 20, "icc": "0.02"},
}
LINK = {"means": {"from": "31.40", "to": "44.10"}, "sds": {"from": "8.20", "to": "12.30"}, "opposed": True}
ROUTE = {
    "link": {"slope": "-1.500000", "intercept": "91.200000"},
    "parent": {"slope": "0.840000", "intercept": "3.125000"},
}
MOVE = {
    "metric": "mean_difference",
    "effect": "-4.310000",
    "variance": "1.38565964",
    "slope": "-1.260000",
    "intercept": "79.733000",
}
POOL = {
    "null": "0.000000",
    "items": [
        {"effect": "5.430600", "variance": "2.19987324"},
        {"effect": "2.100000", "variance": "0.90000000"},
    ],
}


def run(skill: str, script: str, **input: object) -> dict:
    return SKILLS[skill].run(script, input)


# -- the golden chain of the specification, and its rules -----------------------------------------------------------


def test_an_effect_with_its_design_effect():
    # 21.20 - 25.51 = -4.31; 6.10²/84 + 6.70²/80 = 0.4429762 + 0.561125 = 1.0041012; times 1 + 19 * 0.02 = 1.38
    assert run(ANNOTATE, "effect_size", **DIFFERENCE) == {"effect": "-4.310000", "variance": "1.38565964"}
    made = rules.effect_of(
        "mean_difference", "1.0000", Arm("21.20", "6.10", 84), Arm("25.51", "6.70", 80), Cluster(20, "0.02")
    )
    assert made == ("-4.310000", "1.38565964")


def test_a_level_in_another_unit():
    # 0.3 * 50.00 = 15; 0.09 * 10²/40 = 0.225
    level = {"metric": "mean_level", "factor": "0.3000", "control": None, "cluster": None}
    arm = {"mean": "50.00", "sd": "10.00", "n": 40}
    assert run(ANNOTATE, "effect_size", treated=arm, **level) == {"effect": "15.000000", "variance": "0.22500000"}
    assert rules.effect_of("mean_level", "0.3000", Arm("50.00", "10.00", 40), None, None) == ("15.000000", "0.22500000")


def test_a_link_of_opposed_scales():
    # slope -12.30/8.20 = -1.5; intercept 44.10 + 1.5 * 31.40 = 91.2. Not opposed: 1.5 and 44.10 - 47.10 = -3
    assert run(ESTABLISH, "link_scales", **LINK) == {"slope": "-1.500000", "intercept": "91.200000"}
    assert run(ESTABLISH, "link_scales", **LINK | {"opposed": False}) == {"slope": "1.500000", "intercept": "-3.000000"}
    scales = Measured("a", "31.40", "8.20"), Measured("b", "44.10", "12.30")
    assert rules.link_of(*scales, True) == ("-1.500000", "91.200000")


def test_composition_takes_the_link_first_and_the_mean_over_routes():
    # -1.5 * 0.84 = -1.26; 0.84 * 91.2 + 3.125 = 79.733. With a second route (1, 2) to the reference:
    # (-1.26 + 1) / 2 = -0.13; (79.733 + 2) / 2 = 40.8665
    assert run(ESTABLISH, "compose_maps", routes=[ROUTE]) == {"slope": "-1.260000", "intercept": "79.733000"}
    direct = {"link": {"slope": "1.000000", "intercept": "2.000000"}, "parent": None}
    both = {"slope": "-0.130000", "intercept": "40.866500"}
    assert run(ESTABLISH, "compose_maps", routes=[ROUTE, direct]) == both
    link, parent = ("-1.500000", "91.200000"), ("0.840000", "3.125000")
    assert rules.composed([(link, parent)]) == ("-1.260000", "79.733000")
    assert rules.composed([(link, parent), (("1.000000", "2.000000"), None)]) == ("-0.130000", "40.866500")


def test_an_intercept_moves_levels_and_no_differences():
    # -1.26 * -4.31 = 5.4306; 1.5876 * 1.38565964 = 2.1998732; a level: 5.4306 + 79.733
    moved = {"effect": "5.430600", "variance": "2.19987324"}
    assert run(CONTRIBUTE, "calibrate_effect", **MOVE) == moved
    level = run(CONTRIBUTE, "calibrate_effect", **MOVE | {"metric": "mean_level"})
    assert level == {"effect": "85.163600", "variance": "2.19987324"}
    line = ("-1.260000", "79.733000")
    assert rules.calibrated("mean_difference", "-4.310000", "1.38565964", line) == ("5.430600", "2.19987324")
    assert rules.calibrated("mean_level", "-4.310000", "1.38565964", line) == ("85.163600", "2.19987324")


def test_pooling():
    # w = 0.4545717 and 1.1111111; mean (2.468598 + 2.333333) / 1.5656828 = 3.066988; 1 / 1.5656828 = 0.638699;
    # q = 0.4545717 * 2.363612² + 1.1111111 * 0.966988² = 2.539544 + 1.038962 = 3.5785 > 2 * (2 - 1): mixed
    found = {"effect": "3.066988", "variance": "0.63869899", "q": "3.5785", "verdict": "mixed"}
    assert run(SYNTHESISE, "pool_effects", **POOL) == found
    assert rules.pooled("0.000000", [("5.430600", "2.19987324"), ("2.100000", "0.90000000")])._asdict() == found


@pytest.mark.parametrize(
    ("null", "items", "expected"),
    [
        # one study: z² = 1.96² / 1 = 3.8416 reaches the limit exactly
        ("0.000000", [("1.960000", "1.00000000")], ("1.960000", "1.00000000", "0.0000", "above")),
        ("0.000000", [("-1.960000", "1.00000000")], ("-1.960000", "1.00000000", "0.0000", "below")),
        ("0.000000", [("1.959999", "1.00000000")], ("1.959999", "1.00000000", "0.0000", "inconclusive")),
        # equal weights: mean 2, variance 1/2, q = 1 + 1 = 2, which is not more than 2 * (2 - 1)
        (
            "5.000000",
            [("1.000000", "1.00000000"), ("3.000000", "1.00000000")],
            ("2.000000", "0.50000000", "2.0000", "below"),
        ),
    ],
)  # fmt: skip
def test_verdicts_at_their_limits(null, items, expected):
    assert rules.pooled(null, items) == expected
    rows = [{"effect": e, "variance": v} for e, v in items]
    assert tuple(run(SYNTHESISE, "pool_effects", null=null, items=rows).values()) == expected


def test_rounding_is_half_even_and_zero_has_no_sign():
    half = rules.number
    assert [rules.fixed(half(x), 2) for x in ("0.125", "0.135", "-0.125", "-0.001", "12.345")] == [
        "0.12", "0.14", "-0.12", "0.00", "12.34",
    ]  # fmt: skip
    arm = {"mean": "10.00", "sd": "1.00", "n": 8}
    effect = run(ANNOTATE, "effect_size", **DIFFERENCE | {"treated": arm, "control": arm, "cluster": None})
    assert effect == {"effect": "0.000000", "variance": "0.25000000"}


def test_keys():
    enrolled = {"from": 9000, "to": 9400, "n": 212}
    keys = {"registry_key": "reg-aaaaa", "cohort_key": "coh-bbbbb|9000|9400|212"}
    assert run(IDENTIFY, "study_key", registry_id="reg-aaaaa", cohort_id="coh-bbbbb", enrolled=enrolled) == keys
    assert rules.cohort_key("coh-bbbbb", Enrolled(9000, 9400, 212)) == keys["cohort_key"]
    nothing = {"registry_key": None, "cohort_key": None}
    assert run(IDENTIFY, "study_key", registry_id=None, cohort_id=None, enrolled=enrolled) == nothing


# -- choices ---------------------------------------------------------------------------------------------------------


def test_articles_precede_preprints_then_the_later_day_then_the_lower_id():
    reports = [
        ("preprint", 900, "wrk-a"),
        ("article", 300, "wrk-d"),
        ("article", 500, "wrk-c"),
        ("article", 500, "wrk-b"),
    ]
    assert sorted(reports, key=lambda r: rules.rank(*r)) == [reports[3], reports[2], reports[1], reports[0]]
    assert list(rules.exclusion_order()) == [
        "retracted", "withdrawn", "design", "population", "sample", "metric", "analysis", "follow_up", "no_calibration",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "missing", "expected"),
    [
        ("yes yes yes yes", 20, "low"),
        ("yes yes yes yes", 21, "high"),
        ("yes yes yes unclear", 0, "some"),
        ("no yes yes unclear", 0, "some"),
        ("no no yes yes", 0, "high"),
        ("unclear unclear unclear unclear", 20, "some"),
    ],
)
def test_risk_of_bias(answers, missing, expected):
    assert rules.judgement_of(Conduct(*answers.split(), missing)) == expected


def candidate(name: str, round_: int, scope: str, depth: int, anchor: str) -> Candidate:
    return Candidate(name, round_, frozenset(scope), depth, anchor)


def test_parents():
    wide, narrow = candidate("wide", 1, "abc", 3, "w9"), candidate("narrow", 2, "a", 1, "w1")
    assert rules.parent_among([narrow, wide], "ab", 3) == wide, "most populations in common"
    assert rules.parent_among([narrow, wide], "a", 3) == wide, "as many in common, more of its own"
    assert rules.parent_among([narrow, wide], "a", 1) is None, "none of an earlier round"
    deep, flat = candidate("deep", 1, "ab", 2, "w1"), candidate("flat", 1, "ab", 1, "w2")
    assert rules.parent_among([deep, flat], "ab", 2) == flat
    assert rules.parent_among([candidate("other", 1, "ab", 1, "w0"), flat], "ab", 2).id == "other"


def test_calibrations():
    wide, narrow = candidate("wide", 1, "abc", 1, "w1"), candidate("narrow", 3, "a", 4, "w9")
    assert rules.calibration_among([wide, narrow], "a", 3) == narrow, "the specific one"
    assert rules.calibration_among([wide, narrow], "a", 2) == wide, "which was not there yet"
    assert rules.calibration_among([wide, narrow], "b", 3) == wide, "and covers others"
    assert rules.calibration_among([narrow], "b", 3) is None


# -- scripts as programs, and their refusals -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("skill", "script", "input"),
    [
        (IDENTIFY, "study_key", {"registry_id": "", "cohort_id": None, "enrolled": {"from": 1, "to": 2, "n": 3}}),
        (IDENTIFY, "study_key", {"registry_id": None, "cohort_id": None, "enrolled": {"from": 3, "to": 2, "n": 3}}),
        (IDENTIFY, "study_key", {"registry_id": None, "cohort_id": None}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"control": None}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"metric": "mean_level"}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"metric": "ratio"}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"factor": 1}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"factor": "0.0"}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"treated": {"mean": "1", "sd": "1", "n": 0}}),
        (ANNOTATE, "effect_size", DIFFERENCE | {"cluster": {"size": 0, "icc": "0.02"}}),
        (ESTABLISH, "link_scales", LINK | {"opposed": 1}),
        (ESTABLISH, "link_scales", LINK | {"sds": {"from": "0.00", "to": "12.30"}}),
        (ESTABLISH, "compose_maps", {"routes": []}),
        (ESTABLISH, "compose_maps", {"routes": [{"link": ROUTE["link"]}]}),
        (CONTRIBUTE, "calibrate_effect", MOVE | {"variance": "0.00000000"}),
        (CONTRIBUTE, "calibrate_effect", MOVE | {"slope": "1e3"}),
        (SYNTHESISE, "pool_effects", POOL | {"items": []}),
        (SYNTHESISE, "pool_effects", POOL | {"items": [{"effect": "1.0", "variance": "0.0"}]}),
        (SYNTHESISE, "pool_effects", POOL | {"null": 0}),
    ],
)
def test_scripts_refuse_bad_input(skill, script, input):
    with pytest.raises(Rejected) as refusal:
        SKILLS[skill].run(script, input)
    assert refusal.value.code == "script_failed"


@pytest.mark.parametrize(
    ("skill", "script", "input"),
    [(ANNOTATE, "effect_size", DIFFERENCE), (SYNTHESISE, "pool_effects", POOL), (ESTABLISH, "link_scales", LINK)],
)
def test_scripts_are_programs(skill, script, input):
    command = [sys.executable, SKILLS[skill].files[f"scripts/{script}.py"]]
    made = subprocess.run(command, input=json.dumps(input), capture_output=True, text=True, check=False)
    assert (made.returncode, json.loads(made.stdout)) == (0, SKILLS[skill].run(script, input))
    failed = subprocess.run(command, input="[]", capture_output=True, text=True, check=False)
    assert (failed.returncode, list(json.loads(failed.stdout))) == (2, ["error"])


def test_scripts_and_rules_agree():
    """The arithmetic of the scoring is written a second time, with other means; both give the same strings."""
    for n in range(1, 40):
        items = [
            (rules.fixed(rules.number(f"{7 * k - 3 * n}.25") / 3, 6), f"{k * n + 1}.0000000{k % 9}")
            for k in range(1, n + 1)
        ]
        rows = [{"effect": e, "variance": v} for e, v in items]
        assert rules.pooled("0.500000", items)._asdict() == run(SYNTHESISE, "pool_effects", null="0.500000", items=rows)
        arm = SimpleNamespace(mean=f"{n}.13", sd=f"{n}.77", n=3 * n)
        given = {"metric": "mean_level", "factor": "0.3100", "treated": vars(arm), "control": None, "cluster": None}
        assert tuple(run(ANNOTATE, "effect_size", **given).values()) == rules.effect_of(
            "mean_level", "0.3100", arm, None, None
        )
