"""The LogisticsOps skill scripts: values worked by hand, what they refuse, and their shell form."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy

import pytest

from skillhorizon.envs.logistics import ENVIRONMENT

PLACES = {"check_connections": "rebook-itinerary", "leg_loads": "hand-over-freight"}
RUN = {name: ENVIRONMENT.skills[skill].scripts[name] for name, skill in PLACES.items()}
SCRIPTS = {name: ENVIRONMENT.skills[skill].files[f"scripts/{name}.py"] for name, skill in PLACES.items()}


def leg(service_id: str, departure: int, arrival: int, minimum: int) -> dict[str, object]:
    return {
        "service_id": service_id,
        "carrier_id": "car-x",
        "departure_min": departure,
        "arrival_min": arrival,
        "minimum_min": minimum,
    }


CONNECTIONS = {
    "ready_min": 120,
    "due_min": 640,
    "allowance_min": 30,
    "legs": [leg("svc-1", 200, 300, 50), leg("svc-2", 400, 500, 70), leg("svc-3", 610, 640, 40)],
}
LOADS = {
    "legs": 3,
    "pieces": [
        {"id": "unt-b", "kg": 100, "board_leg": 0, "leave_leg": 3},
        {"id": "unt-a", "kg": 20, "board_leg": 0, "leave_leg": 1},
        {"id": "itm-c", "kg": 7, "board_leg": 1, "leave_leg": 2},
    ],
}
EXAMPLES = {"check_connections": CONNECTIONS, "leg_loads": LOADS}


def test_each_leg_leaves_after_the_instant_before_it_and_the_allowance_counts_from_the_second_on():
    # 120 + 50 = 170, 200 is 30 later; 300 + 70 + 30 = 400, exactly; 500 + 40 + 30 = 570, 610 is 40 later; due as it
    # arrives.
    assert RUN["check_connections"](CONNECTIONS) == {
        "slacks": [
            {"service_id": "svc-1", "earliest_min": 170, "slack_min": 30},
            {"service_id": "svc-2", "earliest_min": 400, "slack_min": 0},
            {"service_id": "svc-3", "earliest_min": 570, "slack_min": 40},
        ],
        "due_slack_min": 0,
        "sound": True,
    }


@pytest.mark.parametrize(
    ("changes", "slack", "due_slack"),
    [
        ({"allowance_min": 31}, -1, 0),  # 300 + 70 + 31 = 401
        ({"due_min": 639}, 0, -1),
    ],
)
def test_one_minute_too_few_is_not_sound(changes, slack, due_slack):
    found = RUN["check_connections"](CONNECTIONS | changes)
    assert found["slacks"][1]["slack_min"] == slack
    assert found["due_slack_min"] == due_slack
    assert not found["sound"]


def test_a_piece_is_aboard_from_its_board_leg_up_to_but_not_on_its_leave_leg():
    assert RUN["leg_loads"](LOADS) == {
        "loads": [
            {"leg": 0, "ids": ["unt-a", "unt-b"], "load_kg": 120},
            {"leg": 1, "ids": ["itm-c", "unt-b"], "load_kg": 107},
            {"leg": 2, "ids": ["unt-b"], "load_kg": 100},
        ]
    }


def test_an_empty_leg_weighs_nothing():
    assert RUN["leg_loads"]({"legs": 1, "pieces": []}) == {"loads": [{"leg": 0, "ids": [], "load_kg": 0}]}


def _broken() -> list[tuple[str, str, object]]:
    """(script, what is wrong, input)"""
    cases: list[tuple[str, str, object]] = []
    for name, example in EXAMPLES.items():
        cases += [(name, "a field too many", example | {"more": 1}), (name, "no object", [])]
        cases += [(name, f"{field} missing", {k: v for k, v in example.items() if k != field}) for field in example]
        cases += [(name, f"{field} of another type", example | {field: True}) for field in example]
    first = CONNECTIONS["legs"][0]
    for what, legs in {
        "no legs": [],
        "a leg twice": [first, first],
        "an arrival before the departure": [first | {"arrival_min": 200}],
        "a negative minimum": [first | {"minimum_min": -1}],
        "a leg with a field too few": [{"service_id": "svc-1"}],
    }.items():
        cases.append(("check_connections", what, CONNECTIONS | {"legs": legs}))
    cases.append(("check_connections", "a negative allowance", CONNECTIONS | {"allowance_min": -1}))
    piece = LOADS["pieces"][0]
    for what, pieces in {
        "a piece twice": [piece, piece],
        "no weight": [piece | {"kg": 0}],
        "a ride of no legs": [piece | {"leave_leg": 0}],
        "a ride past the end": [piece | {"leave_leg": 4}],
        "a ride from before the start": [piece | {"board_leg": -1}],
        "a weight that is no integer": [piece | {"kg": 1.5}],
    }.items():
        cases.append(("leg_loads", what, LOADS | {"pieces": pieces}))
    cases += [("leg_loads", f"{n} legs", LOADS | {"legs": n}) for n in (0, 65)]
    return cases


@pytest.mark.parametrize(("script", "what", "given"), _broken())
def test_bad_input_is_a_value_error(script, what, given):
    with pytest.raises(ValueError, match=r"."):
        RUN[script](given)


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_input_is_left_as_it_was_and_the_shell_form_says_the_same(script):
    given = deepcopy(EXAMPLES[script])
    answer = RUN[script](given)
    assert given == EXAMPLES[script]
    done = subprocess.run(
        [sys.executable, SCRIPTS[script]], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == answer
    failed = subprocess.run([sys.executable, SCRIPTS[script]], input="[]", capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert set(json.loads(failed.stdout)) == {"error"}
