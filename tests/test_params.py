"""params.yaml is read typed; anything wrong in it is one clear line before any work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillhorizon import cli, params
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
        (put("profiles/small/tasks", "2"), ["Expected `int`", "profiles.small.tasks"]),
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
        (put("budget_factor", float("nan")), ["finite"]),
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


# -- every section of the project's own file -----------------------------------------------------------------------

GONE = object()


def edited(place: str, value: object) -> dict:
    """The project's own parameters with another value at a place; ``GONE`` takes the key away."""
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    *folders, name = place.split(".")
    section = content
    for folder in folders:
        section = section[folder]
    if value is GONE:
        del section[name]
    else:
        section[name] = value
    return content


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        # the general ones
        ("profile", "papr", "profile: unknown profile 'papr'; the profiles are paper, quick"),
        ("profile", GONE, "missing required field `profile`"),
        ("profile", ["paper"], "profile: Expected `str`, got `array`"),
        ("profil", "quick", "unknown field `profil`"),
        ("environments", "docs", "environments: Expected `array`"),
        ("environments", ["docs", "docs"], "environments must name at least one environment, and each once"),
        ("environments", ["docs", "doks"], "environments: unknown environment 'doks'"),
        ("environments", [1], "environments[0]: Expected `str`, got `int`"),
        ("budget_factor", None, "budget_factor: Expected `float`, got `null`"),
        ("budget_factor", "1/2", "budget_factor: Expected `float`, got `str`"),
        ("processes", 1.5, "processes: Expected `int | null`, got `float`"),
        ("horizons", {"bands": ["64K"]}, "unknown field `horizons`"),
        # profiles
        ("profiles", ["paper"], "profiles: Expected `object`, got `array`"),
        ("profiles.quick.tasks", 0, "profiles.quick.tasks: Expected `int` >= 1"),
        ("profiles.quick.tasks", "three", "profiles.quick.tasks: Expected `int`, got `str`"),
        ("profiles.quick.tasks", GONE, "profiles.quick: Object missing required field `tasks`"),
        ("profiles.quick.band", ["64K"], "profiles.quick: Object contains unknown field `band`"),
        ("profiles.quick.bands", ["64k"], "profiles.quick: bands: unknown band '64k'"),
        ("profiles.quick.bands", [64], "profiles.quick.bands[0]: Expected `str`, got `int`"),
        ("profiles.paper.budget_factor", -1, "profiles.paper.budget_factor: Expected `float` >= 0"),
        ("profiles.my profile", {"tasks": 1, "bands": ["64K"]}, "profiles: 'my profile' is no name"),
        ("profiles.new", None, "profiles.new: Expected `object`, got `null`"),
        # construct
        ("construct.docs", GONE, "construct has no entry for environment 'docs'"),
        ("construct.dcos", {"first_seed": 1_000_000}, "construct: unknown environment 'dcos'"),
        ("construct.docs.first_seed", 42, "construct.docs.first_seed: Expected `int` >= 1000000"),
        ("construct.docs.seed", 1_000_000, "construct.docs: Object contains unknown field `seed`"),
        ("construct.social.first_seed", "1e6", "construct.social.first_seed: Expected `int`, got `str`"),
        # compute
        ("compute", None, "compute: Expected `object`, got `null`"),
        ("compute.engine", "ray", "compute.engine: Invalid enum value 'ray'"),
        ("compute.adress", "tcp://host:1", "compute: Object contains unknown field `adress`"),
        ("compute.address", "tcp://host:1", "compute: the address of a scheduler and the engine dask go together"),
        ("compute.engine", "dask", "compute: the address of a scheduler and the engine dask go together"),
        # evaluate
        ("evaluate.agents", ["diligent", "lazy"], "evaluate.agents: unknown profile 'lazy'"),
        ("evaluate.agents", [], "evaluate: agents must name at least one agent"),
        ("evaluate.agents", ["hasty", "hasty"], "evaluate: agents must name at least one agent, and each once"),
        ("evaluate.prefixes", [0.5, 0.25], "evaluate: prefixes must name at least one share of A, and rise"),
        ("evaluate.prefixes", [0.0, float("inf")], "evaluate.prefixes[1]: must be finite"),
        ("evaluate.prefixes", [], "evaluate: prefixes must name at least one"),
        ("evaluate.prefixes", ["0"], "evaluate.prefixes[0]: Expected `float`, got `str`"),
        ("evaluate.agent", ["hasty"], "evaluate: Object contains unknown field `agent`"),
        # agents
        ("agents.rules.entry", "briefs", "agents.rules.entry: Invalid enum value 'briefs'"),
        ("agents.rules.idle_responses", 0, "agents.rules.idle_responses: Expected `int` >= 1"),
        ("agents.rules.compaction.triger", 1000, "agents.rules.compaction: Object contains unknown field `triger`"),
        ("agents.rules.compaction.trigger", "200K", "agents.rules.compaction.trigger: Expected `int`, got `str`"),
        ("agents.rules.compaction.trigger", 500_000, "agents.rules.compaction: the trigger of a compaction must not"),
        ("agents.rules.compaction.retained", [4, 2], "agents.rules.compaction: retained must be even numbers"),
        ("agents.rules.compaction.guard", -1, "agents.rules.compaction.guard: Expected `int` >= 0"),
        ("agents.rule", {}, "agents: Object contains unknown field `rule`"),
        ("agents.profiles.steady.slip", "1e-3", "agents.profiles.steady.slip: Expected `float`, got `str`"),
        ("agents.profiles.steady.slip", 1.5, "agents.profiles.steady.slip: Expected `float` <= 1"),
        ("agents.profiles.steady.slipp", 0.1, "agents.profiles.steady: Object contains unknown field `slipp`"),
        ("agents.profiles.steady.batch", 9, "agents.profiles.steady.batch: Expected `int` <= 8"),
        ("agents.profiles.steady.shuffled", "no", "agents.profiles.steady.shuffled: Expected `bool`, got `str`"),
        ("agents.profiles.steady.stop", float("inf"), "agents.profiles.steady.stop: must be finite"),
        ("agents.profiles.hasty", 3, "agents.profiles.hasty: Expected `object`, got `int`"),
        ("agents.profiles.reference", {}, "agents: profiles cannot redefine 'reference'"),
        ("agents.profiles.mea", {}, "agents: profiles cannot redefine 'mea'"),
        ("agents.profiles.a/b", {}, "agents: profiles: 'a/b' is no name"),
        # mea
        ("mea.tasks", 0, "mea.tasks: Expected `int` >= 1"),
        ("mea.agents", ["stedy"], "mea.agents: unknown profile 'stedy'"),
        ("mea.agents", [], "mea: agents must hold at least one value"),
        ("mea.slips", [0.0, 0.0], "mea: slips must hold at least one value, and each once"),
        ("mea.slips", [2.0], "mea.slips[0]: Expected `float` <= 1"),
        ("mea.recalls", 0.9, "mea.recalls: Expected `array`, got `float`"),
        ("mea.grid_band", "128k", "mea: grid_band: unknown band '128k'"),
        ("mea.auditors", ["scripd"], "mea: auditors: unknown auditor 'scripd'; an auditor is scripted or model:<name>"),
        ("mea.grid", "128K", "mea: Object contains unknown field `grid`"),
    ],
)
def test_a_wrong_edit_of_any_section_stops_the_command_with_one_line_that_names_the_key(
    tmp_path, capsys, place, value, words
):
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(edited(place, value)))
    assert cli.main(["params", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"skillhorizon: {path}: ")
    assert words in said.err


def test_a_key_that_stands_twice_is_refused(tmp_path):
    text = (ROOT / "params.yaml").read_text()
    with pytest.raises(InputError, match="key 'budget_factor' stands twice"):
        load(tmp_path, text + "budget_factor: 0.25\n")


def test_the_command_says_what_the_parameters_ask_for(tmp_path, capsys):
    path = tmp_path / "params.yaml"
    path.write_text(yaml.safe_dump(edited("profiles.paper.budget_factor", 0.25)))
    assert cli.main(["params", str(path)]) == 0
    said = capsys.readouterr().out
    assert "profile paper: 30 tasks a band (64K, 128K, 256K, 512K, 1M), B = R + ceil(0.25 A)" in said
    assert "compaction from 200,000 tokens on" in said
