"""params.yaml is read typed; anything wrong in it is one clear line before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillhorizon import params
from skillhorizon.core.bands import PAPER_BANDS
from skillhorizon.core.errors import InputError

ROOT = Path(__file__).parents[1]


def good() -> dict:
    return {
        "profile": "small",
        "profiles": {"small": {"tasks": 2, "bands": ["64K"]}, "large": {"tasks": 30, "bands": ["64K", "1M"]}},
        "environments": ["finance"],
        "construct": {"finance": {"first_seed": 3_000_000}},
        "budget_factor": 0.5,
        "processes": 3,
    }


def load(tmp_path: Path, content: object) -> params.Params:
    path = tmp_path / "params.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return params.load(path)


def test_the_project_s_own_parameters_are_the_paper_s():
    found = params.load(ROOT / "params.yaml")
    assert found.profile == "paper"
    for environment in found.environments:
        settings = found.settings(environment)
        assert (settings.tasks, settings.bands, settings.budget_factor) == (30, PAPER_BANDS, 0.5)
    assert found.settings("finance", "quick").bands == ("64K",)


def test_settings_are_those_of_the_profile(tmp_path):
    found = load(tmp_path, good())
    assert found.settings("finance") == params.Settings(2, ("64K",), 3_000_000, 0.5, 3)
    assert found.settings("finance", "large") == params.Settings(30, ("64K", "1M"), 3_000_000, 0.5, 3)


def test_a_profile_overrides_the_general_values(tmp_path):
    content = good()
    content["profiles"]["small"] |= {"budget_factor": 0, "processes": 1}
    found = load(tmp_path, content)
    assert found.settings("finance") == params.Settings(2, ("64K",), 3_000_000, 0.0, 1)
    assert found.settings("finance", "large").budget_factor == 0.5


def test_without_a_number_of_processes_all_cores_work(tmp_path):
    settings = load(tmp_path, good() | {"processes": None}).settings("finance")
    assert settings.processes >= 1


def put(path: str, value: object) -> dict:
    content = good()
    *folders, name = path.split("/")
    place = content
    for folder in folders:
        place = place[folder]
    place[name] = value
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (put("profiles/small/tasks", "2"), ["Expected `int`", "profiles[...].tasks"]),
        (put("profiles/small/tasks", True), ["Expected `int`"]),
        (put("profiles/small/tasks", 0), [">= 1"]),
        (put("profiles/small/tasks", 1001), ["<= 1000"]),
        (put("profiles/small/bands", "64K"), ["Expected `array`"]),
        (put("profiles/small/bands", ["64K", "64K"]), ["each once"]),
        (put("profiles/small/bands", []), ["at least one band"]),
        (put("profiles/small/bands", ["65K"]), ["unknown band '65K'", "64K, 128K"]),
        (put("profiles/small/task", 3), ["unknown field `task`"]),
        (put("profile", "tiny"), ["unknown profile 'tiny'", "large, small"]),
        (put("environments", []), ["at least one environment"]),
        (put("environments", ["finance", "finance"]), ["each once"]),
        (put("environments", ["finanse"]), ["unknown environment 'finanse'", "finance"]),
        (put("construct", {}), ["no entry for environment 'finance'"]),
        (put("construct/finanse", {"first_seed": 1_000_000}), ["unknown environment 'finanse'"]),
        (put("construct/finance", {}), ["missing required field `first_seed`"]),
        (put("construct/finance/first_seed", 5), [">= 1000000"]),
        (put("construct/finance/first_seed", 1e6), ["Expected `int`"]),
        (put("budget_factor", "half"), ["Expected `float`"]),
        (put("budget_factor", -0.5), [">= 0"]),
        (put("budget_factor", float("nan")), [">= 0"]),
        (put("budget_factor", float("inf")), ["finite"]),
        (put("processes", 0), [">= 1"]),
        (put("proceses", 2), ["unknown field `proceses`"]),
        ("profile: [", ["is not YAML"]),
        ("", ["Expected `object`"]),
        ("- 1\n", ["Expected `object`"]),
    ],
)
def test_a_wrong_value_is_one_clear_line(tmp_path, content, words):
    with pytest.raises(InputError) as refused:
        load(tmp_path, content)
    message = str(refused.value)
    assert "\n" not in message
    assert "params.yaml" in message
    for word in words:
        assert word in message


def test_a_missing_file_and_an_unreadable_one_are_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        params.load(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"profile: \xe9")
    with pytest.raises(InputError, match="is not YAML"):
        params.load(tmp_path / "latin.yaml")


def test_settings_of_an_unknown_profile_or_environment_are_refused(tmp_path):
    found = load(tmp_path, good())
    with pytest.raises(InputError, match="unknown profile 'tiny'"):
        found.settings("finance", "tiny")
    with pytest.raises(InputError, match="no entry for environment 'field'"):
        found.settings("field")
