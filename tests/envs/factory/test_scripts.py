"""The FactoryOps skill scripts: values worked by hand, and what they refuse."""

from __future__ import annotations

import pytest

from skillhorizon.core.errors import Rejected
from skillhorizon.envs import load

SKILLS = load("factory").skills
CHARACTERISTICS = [
    ["x", 50_000, 80, 120, "dfc-aaaaa", "dfc-bbbbb"],
    ["r", 20_000, 60, 140, "dfc-ccccc", "dfc-ddddd"],
]
GRADE = {
    "characteristics": CHARACTERISTICS,
    "offsets_um": {"x": 30, "y": 999, "z": 999, "r": -20},
    "reworkable_codes": ["dfc-aaaaa"],
    "readings_um": [],
}


def grade(*readings: int) -> list:
    rows = [[f"unt-7qk2m-{n}", *pair] for n, pair in enumerate(zip(readings[::2], readings[1::2], strict=True), 1)]
    return SKILLS["grade-produced-units"].run("grade_units", {**GRADE, "readings_um": rows})["verdicts"]


def test_readings_are_nominal_plus_deviation_plus_offset_of_the_axis():
    # x: 50,000 + 30 is exact, r: 20,000 - 20; so the deviations are (40, -30), (-80, 60), (81, 0), (121, 0), (0, 61)
    assert grade(50_070, 19_950, 49_950, 20_040, 50_111, 19_980, 50_151, 19_980, 50_030, 20_041) == [
        ["unt-7qk2m-1", "A", None, 0],
        ["unt-7qk2m-2", "B", None, 0],
        ["unt-7qk2m-3", "rework", "dfc-aaaaa", 1],
        ["unt-7qk2m-4", "scrap", "dfc-aaaaa", 41],
        ["unt-7qk2m-5", "scrap", "dfc-ccccc", 1],
    ]


def test_an_undersize_unit_bears_the_under_code():
    assert grade(49_949, 19_980) == [["unt-7qk2m-1", "scrap", "dfc-bbbbb", 1]]


def test_ticks():
    # 2 * (8 + 22) s and 2 * (5 + 25) s: 60 s a unit; 40 units at 80 % are 3,000 s = 3.33 ticks, so 4, and 2 of set-up
    arguments = {"quantity": 40, "setup_ticks": 2, "feed_pct": 80, "waypoints": [[8_000, 22_000], [5_000, 25_000]]}
    assert SKILLS["schedule-equipment"].run("run_ticks", arguments) == {"cycle_ms": 60_000, "ticks": 6}


def test_sums_of_a_level():
    rows = [["ord-aaaaa", 9, 8, 1, 1, 0], ["ord-bbbbb", 4, 4, 0, 0, 4]]
    assert SKILLS["dispatch-and-close"].run("level_balance", {"rows": rows}) == {
        "orders": 2,
        "totals": {"started": 13, "accepted": 12, "reworked": 1, "scrapped": 1, "shipped": 4},
    }


TICKS = {"quantity": 4, "setup_ticks": 1, "feed_pct": 100, "waypoints": [[1, 1]]}


@pytest.mark.parametrize(
    ("skill", "script", "arguments"),
    [
        ("schedule-equipment", "run_ticks", {**TICKS, "quantity": 0}),
        ("schedule-equipment", "run_ticks", {**TICKS, "feed_pct": True}),
        ("schedule-equipment", "run_ticks", {**TICKS, "waypoints": [[1, 1, 1]]}),
        ("schedule-equipment", "run_ticks", {**TICKS, "waypoints": [[-1, 1]]}),
        ("schedule-equipment", "run_ticks", {**TICKS, "more": 1}),
        ("grade-produced-units", "grade_units", {**GRADE, "characteristics": []}),
        ("grade-produced-units", "grade_units", {**GRADE, "offsets_um": {"x": 1}}),
        ("grade-produced-units", "grade_units", {**GRADE, "reworkable_codes": [["dfc-aaaaa"]]}),
        ("grade-produced-units", "grade_units", {**GRADE, "readings_um": [["unt-7qk2m-1", 1]]}),
        ("grade-produced-units", "grade_units", {**GRADE, "readings_um": [["unt-7qk2m-1", 1, 1]] * 2}),
        ("dispatch-and-close", "level_balance", {"rows": [["ord-aaaaa", 1, 1, 1, 1]]}),
        ("dispatch-and-close", "level_balance", {"rows": [["ord-aaaaa", 1, 1, 1, 1, 1]] * 2}),
        ("dispatch-and-close", "level_balance", {"rows": [["ord-aaaaa", 1.0, 1, 1, 1, 1]]}),
    ],
)
def test_bad_input_is_refused(skill, script, arguments):
    with pytest.raises(Rejected, match=script) as refusal:
        SKILLS[skill].run(script, arguments)
    assert refusal.value.code == "script_failed"
