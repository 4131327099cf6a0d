"""The FieldOps skill scripts: values worked by hand, what they refuse, and their shell form."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from copy import deepcopy

import pytest

from tests.envs.field.support import FIELD

PLACES = {"inlet_conditions": "balance-inlet-flow", "tally_resources": "hand-over-system"}
RUN = {name: FIELD.skills[skill].scripts[name] for name, skill in PLACES.items()}
SCRIPTS = {name: FIELD.skills[skill].files[f"scripts/{name}.py"] for name, skill in PLACES.items()}

INLET = {
    "feeds": [
        {"outlet_kpa": 520, "flow_lpm": 300, "contracted_lpm": 300, "share_lpm": 100, "loss_coeff": 2001},
        {"outlet_kpa": 505, "flow_lpm": 210, "contracted_lpm": 280, "share_lpm": 71, "loss_coeff": 1000},
    ],
    "own_lpm": 60,
    "contracted_lpm": 150,
    "gain_kpa": 15,
    "drops_kpa": [4, 9],
    "step_kpa": 20,
    "max_outlet_kpa": 560,
}
USED = {
    "used": [
        {"part_id": "prt-b", "slots": 1},
        {"part_id": "prt-a", "slots": 1},
        {"part_id": "prt-b", "slots": 1},
    ]
}
EXAMPLES = {"inlet_conditions": INLET, "tally_resources": USED}


def test_inlet_is_the_worse_feed_and_curtailed_shares_are_cut():
    # Feed 1 takes its 100: loss 2001 * 10000 / 10^6 = 20.01 -> 21, leaving 499.
    # Feed 2 offers 210 of 280: 71 * 210 / 280 = 53.25 -> 53; loss 1000 * 2809 / 10^6 = 2.8 -> 3, leaving 502.
    # Inlet 499. Makeup 60 + 150 - 153 = 57 -> 60. Setpoint: 499 + 15 - 13 = 501, down to a multiple of 20: 500.
    assert RUN["inlet_conditions"](INLET) == {
        "taken_lpm": [100, 53],
        "inlet_kpa": 499,
        "makeup_lpm": 60,
        "setpoint_kpa": 500,
    }


def test_the_outlet_limit_caps_the_setpoint_and_makeup_is_never_negative():
    # 499 + 90 - 13 = 576 is above 560; 20 + 30 - 153 is negative.
    found = RUN["inlet_conditions"](INLET | {"gain_kpa": 90, "own_lpm": 20, "contracted_lpm": 30})
    assert (found["setpoint_kpa"], found["makeup_lpm"]) == (560, 0)


def test_no_devices_no_drop():
    assert RUN["inlet_conditions"](INLET | {"drops_kpa": [], "step_kpa": 1})["setpoint_kpa"] == 514


def test_four_hours_a_shift_and_units_by_part():
    assert RUN["tally_resources"](USED) == {
        "crew_hours": 12,
        "units": [{"part_id": "prt-a", "quantity": 1}, {"part_id": "prt-b", "quantity": 2}],
    }
    assert RUN["tally_resources"]({"used": []}) == {"crew_hours": 0, "units": []}


def changed(name, *path, to):
    example = deepcopy(EXAMPLES[name])
    target = example
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = to
    return example


FAULTS = [
    ("inlet_conditions", changed("inlet_conditions", "feeds", to=[]), "no feed"),
    ("inlet_conditions", changed("inlet_conditions", "feeds", 0, to=3), "feed must be an object"),
    ("inlet_conditions", changed("inlet_conditions", "feeds", 0, "share_lpm", to=0), "share_lpm"),
    ("inlet_conditions", changed("inlet_conditions", "feeds", 0, "contracted_lpm", to=0), "contracted_lpm"),
    ("inlet_conditions", changed("inlet_conditions", "feeds", 1, "flow_lpm", to=-1), "flow_lpm"),
    ("inlet_conditions", changed("inlet_conditions", "feeds", 1, "loss_coeff", to=1.5), "loss_coeff"),
    ("inlet_conditions", changed("inlet_conditions", "drops_kpa", to=[True]), "drops_kpa"),
    ("inlet_conditions", changed("inlet_conditions", "step_kpa", to=0), "step_kpa"),
    ("inlet_conditions", changed("inlet_conditions", "own_lpm", to=-5), "own_lpm"),
    ("tally_resources", changed("tally_resources", "used", 0, "slots", to=0), "slots"),
    ("tally_resources", changed("tally_resources", "used", 0, "part_id", to=7), "part_id"),
    ("tally_resources", changed("tally_resources", "used", 0, to=[]), "use must be an object"),
]
for _name, _example in EXAMPLES.items():
    FAULTS += [
        (_name, {key: value for key, value in _example.items() if key != missing}, "input must have exactly")
        for missing in _example
    ]
    FAULTS += [
        (_name, _example | {"note": 1}, "input must have exactly"),
        (_name, [_example], "input must be an object"),
        (_name, None, "input must be an object"),
    ]


@pytest.mark.parametrize(("name", "arguments", "message"), FAULTS)
def test_bad_input_is_a_value_error_that_says_what_is_wrong(name, arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RUN[name](arguments)


@pytest.mark.parametrize("name", SCRIPTS)
def test_input_is_left_as_it_was(name):
    before = deepcopy(EXAMPLES[name])
    RUN[name](EXAMPLES[name])
    assert EXAMPLES[name] == before


def shell(name, text):
    return subprocess.run([sys.executable, "-I", SCRIPTS[name]], input=text, capture_output=True, timeout=60)


@pytest.mark.parametrize("name", SCRIPTS)
def test_shell_form_answers_one_compact_object(name):
    done = shell(name, json.dumps(EXAMPLES[name]).encode())
    expected = json.dumps(RUN[name](EXAMPLES[name]), sort_keys=True, separators=(",", ":"))
    assert (done.returncode, done.stdout.decode().rstrip("\r\n"), done.stderr) == (0, expected, b"")
